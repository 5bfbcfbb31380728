//! What is read: CPU time, memory, allocations, and the mock server's counts.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    time::Instant,
};

use cpu_time::ProcessTime;
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Stats};

use crate::{Result, work::Work};

/// CPU microseconds of this process so far, user and system.
pub(crate) fn cpu_us() -> f64 {
    ProcessTime::now().as_duration().as_secs_f64() * 1e6
}

/// Resident memory now.
pub(crate) fn resident_bytes() -> Result<u64> {
    status("VmRSS:")
}

fn status(key: &str) -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(key)).ok_or("the kernel tells no such figure")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}

/// Bytes that are allocated now; 0 in a binary that does not count.
pub(crate) fn live_bytes() -> usize {
    let Stats { bytes_allocated, bytes_deallocated, .. } = INSTRUMENTED_SYSTEM.stats();
    bytes_allocated.saturating_sub(bytes_deallocated)
}

fn allocations() -> usize {
    let Stats { allocations, reallocations, .. } = INSTRUMENTED_SYSTEM.stats();
    allocations + reallocations
}

/// Calls and request bytes that the server has counted.
fn server_counts(work: &Work) -> Result<(u64, u64)> {
    let mut socket = TcpStream::connect(work.address())?;
    socket.write_all(b"GET /stats HTTP/1.1\r\nhost: mock\r\nconnection: close\r\n\r\n")?;
    let mut reply = String::new();
    socket.read_to_string(&mut reply)?;
    let body = reply.split_once("\r\n\r\n").map(|(_, body)| body).ok_or("the server gave no counts")?;
    let counts: Value = serde_json::from_str(body.trim())?;
    let count = |key: &str| counts[key].as_u64().ok_or("the server gave no counts");
    Ok((count("calls")?, count("bytes")?))
}

/// Request bytes that the server has counted so far.
pub(crate) fn sent_bytes(work: &Work) -> Result<u64> {
    Ok(server_counts(work)?.1)
}

/// A stretch of work that is measured.
pub(crate) struct Region {
    counts: (u64, u64),
    allocations: usize,
    wall: Instant,
    cpu_us: f64,
}

impl Region {
    pub(crate) fn start(work: &Work) -> Result<Self> {
        let (counts, allocations) = (server_counts(work)?, allocations());
        Ok(Self { counts, allocations, wall: Instant::now(), cpu_us: cpu_us() })
    }

    /// Prints what it cost, with what the scenario adds.
    pub(crate) fn end(self, work: &Work, turns: usize, more: Value) -> Result<()> {
        let cpu_us = cpu_us() - self.cpu_us;
        let (wall_us, allocations) = (self.wall.elapsed().as_secs_f64() * 1e6, allocations() - self.allocations);
        let (calls, bytes) = server_counts(work)?;
        let mut line = json!({
            "scenario": work.scenario, "turns": turns, "calls": calls - self.counts.0,
            "request_bytes": bytes - self.counts.1, "cpu_us": cpu_us, "wall_us": wall_us,
            "peak_bytes": status("VmHWM:")?,
        });
        if allocations > 0 {
            line["allocations"] = allocations.into();
        }
        if let (Some(line), Value::Object(more)) = (line.as_object_mut(), more) {
            line.extend(more);
        }
        println!("{line}");
        Ok(())
    }
}
