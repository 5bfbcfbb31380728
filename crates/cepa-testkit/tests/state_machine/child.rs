//! A step in a process of its own: this test program again, which kills itself at a write.

use std::{
    fs::{self, File},
    path::PathBuf,
    process::Command,
};

use serde::{Deserialize, Serialize};

use crate::{
    facts::{Fact, Facts},
    program::{Ending, Reply, Setup, Who},
    scene::Scene,
    world::{Deed, Process, patiently, perform},
};

const TASK: &str = "CEPA_STATE_MACHINE_TASK";

#[derive(Serialize, Deserialize)]
struct Task {
    path: PathBuf,
    log: PathBuf,
    setup: Setup,
    who: Who,
    deed: Deed,
    replies: Vec<Reply>,
    ending: Ending,
    /// The last number that was given away.
    last: u64,
    /// How far the clock has come.
    ahead: i64,
}

/// Lets another process do something, which dies as the ending says, and learns what it saw.
pub(crate) fn run(scene: &Scene, setup: &Setup, who: Who, deed: &Deed, replies: &[Reply], ending: Ending) {
    let log = scene.path().with_extension("log");
    File::create(&log).unwrap();
    let task = Task {
        path: scene.path().to_owned(),
        log: log.clone(),
        setup: *setup,
        who,
        deed: deed.clone(),
        replies: replies.to_vec(),
        ending,
        last: scene.facts().last(),
        ahead: scene.ahead(),
    };
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "a_process_that_dies", "--nocapture", "--test-threads=1"]);
    let done = child.env(TASK, serde_json::to_string(&task).unwrap()).output().unwrap();
    // It was killed, or came to its end before that write.
    let said = || String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.code().is_none_or(|code| code == 0), "{}", said());
    for line in fs::read_to_string(&log).unwrap().lines() {
        let fact: Fact = serde_json::from_str(line).unwrap();
        scene.facts().add(fact);
    }
}

/// The other process, if this is it.
pub(crate) async fn main() {
    let Ok(task) = std::env::var(TASK) else { return };
    let task: Task = serde_json::from_str(&task).unwrap();
    let log = File::options().append(true).open(&task.log).unwrap();
    let scene = Scene::new(&task.path, Facts::default().logged(log, task.last), task.ahead, true);
    let process = Process::start(task.who, &task.setup, &scene);
    let cancel = scene.set(task.who, &task.replies, Some(task.ending), None);
    drop(patiently(perform(process.agent.clone(), task.deed, cancel.clone()), cancel).await);
}
