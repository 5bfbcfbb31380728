//! `cargo xtask bench`: what a model call costs through cepa and through a loop written by hand, on one mock server.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::run;

const CLIENTS: [&str; 2] = ["floor", "cepa"];
const REPEATS: usize = 5;
const TURNS: &str = "500";
const BUILD_LIMIT: Duration = Duration::from_secs(20 * 60);

/// A process that ends with us.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It holds nothing: being killed is its way to end.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

pub(crate) fn command() -> Result<()> {
    let bench = run::root()?.join("bench");
    let mut build = run::cargo(&["build", "--release", "--locked"])?;
    run::shown(build.current_dir(&bench), BUILD_LIMIT)?;
    let bin = bench.join("target/release");
    let (_server, url) = start(&bin.join("mockllm"))?;
    let mut figures = vec![Vec::new(); CLIENTS.len()];
    // In turn, so that whatever else the machine does falls on both.
    for _ in 0..REPEATS {
        for (client, figures) in CLIENTS.iter().zip(&mut figures) {
            figures.push(measure(&bin.join(client), &url)?);
        }
    }
    let medians: Vec<f64> = figures.iter_mut().map(|figures| median(figures)).collect();
    println!("CPU time of the client for one model call (user + system), median of {REPEATS} runs of {TURNS} turns");
    println!("of 11 calls each, against a model server that does not think:\n");
    println!("| client | µs a call | lowest | highest | ratio |");
    println!("|---|---|---|---|---|");
    for ((client, figures), median) in CLIENTS.iter().zip(&figures).zip(&medians) {
        let (low, high) = (figures.first().copied().unwrap_or_default(), figures.last().copied().unwrap_or_default());
        let ratio = median / medians.first().copied().unwrap_or(1.0);
        println!("| {client} | {median:.1} | {low:.1} | {high:.1} | {ratio:.2} |");
    }
    Ok(())
}

fn start(server: &Path) -> Result<(Server, String)> {
    let mut child = Command::new(server).stdout(Stdio::piped()).spawn().context("the mock server does not start")?;
    let stdout = child.stdout.take().context("the mock server has no output")?;
    let server = Server(child);
    let mut url = String::new();
    BufReader::new(stdout).read_line(&mut url)?;
    Ok((server, url.trim().to_owned()))
}

fn measure(client: &Path, url: &str) -> Result<f64> {
    let output = Command::new(client).args([url, TURNS]).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        bail!("{} failed", client.display());
    }
    let line: Value = serde_json::from_slice(&output.stdout)?;
    line.get("cpu_us_per_call").and_then(Value::as_f64).context("the client printed no figure")
}

fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}
