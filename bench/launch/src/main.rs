//! Runs a program and prints what it cost as a whole, as one JSON line: CPU time, time, peak memory.
//!
//! The kernel counts the memory of whoever starts a program into that program's peak, so the starter must be small: a
//! script would hide what is measured.

use std::{
    error::Error,
    process::{Command, Stdio},
    time::Instant,
};

use wait4::{ResUse, Wait4};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let mut command = Command::new(args.next().ok_or("usage: launch PROGRAM [ARGUMENT...]")?);
    let start = Instant::now();
    let child = command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    let ResUse { status, rusage } = child.wait4()?;
    let wall_us = start.elapsed().as_micros();
    if !status.success() {
        return Err(format!("{}: {status}", command.get_program().display()).into());
    }
    let cpu_us = (rusage.utime + rusage.stime).as_micros();
    println!(r#"{{"cpu_us": {cpu_us}, "wall_us": {wall_us}, "peak_bytes": {}}}"#, rusage.maxrss);
    Ok(())
}
