//! The same work through two loops written by hand and through cepa's public API.

pub mod bare;
pub mod bare_hyper;
pub mod cepa;
mod db;
