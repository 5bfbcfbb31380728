//! Disks and neighbours that do not do what one hopes for: a full file system, damaged files, others who hold the
//! database. A turn fails with a typed error or goes on; nothing that was acknowledged is lost, nothing is mixed.
//!
//! `CEPA_SOAK_DISK` says how many damages and limits are tried of each kind (`cargo xtask soak disk`).
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that fails panics")]

mod busy;
mod damage;
#[path = "../durability/mod.rs"]
mod durability;
mod file_system;
mod scene;
