//! The chat on a terminal: what is pasted, and what is typed.

#![cfg(unix)]
// The lints that helpers of tests may break know only tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    process::Child,
    sync::mpsc,
    time::{Duration, Instant},
};

use common::Home;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// A chat whose both sides are a terminal.
struct Terminal {
    child: Child,
    keys: File,
    screen: mpsc::Receiver<u8>,
}

impl Terminal {
    fn new(home: &Home) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
        let theirs = OpenOptions::new().read(true).write(true).open(name).unwrap();
        let mut command = home.command(&[]);
        command.env("NO_COLOR", "1").stdin(theirs.try_clone().unwrap()).stdout(theirs.try_clone().unwrap());
        let child = command.stderr(theirs).spawn().unwrap();
        let keys = File::from(ours);
        let mut screen = keys.try_clone().unwrap();
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut byte = [0];
            while screen.read_exact(&mut byte).is_ok() && sender.send(byte[0]).is_ok() {}
        });
        Self { child, keys, screen: receiver }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// What is on the screen until this text.
    #[track_caller]
    fn until(&self, text: &str) -> String {
        let end = Instant::now() + Duration::from_secs(30);
        let mut shown = Vec::new();
        while !shown.ends_with(text.as_bytes()) {
            match self.screen.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(byte) => shown.push(byte),
                Err(why) => panic!("no {text:?} ({why}) in {}", String::from_utf8_lossy(&shown)),
            }
        }
        String::from_utf8(shown).unwrap()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn ctrl_c_in_the_middle_of_new_arguments_asks_again_on_a_new_line() {
    let home = Home::new();
    let mut terminal = Terminal::new(&home);
    terminal.until("> ");
    terminal.press("run ls\n");
    terminal.until("later > ");
    terminal.press("e\n");
    terminal.until("(empty to go back): ");
    common::interrupt(&terminal.child);
    let asked = terminal.until("later > ");
    assert!(asked.starts_with("\r\n"), "{asked:?}");
}

#[test]
fn what_is_pasted_is_one_message_also_without_a_line_break_at_its_end() {
    let home = Home::new();
    let mut terminal = Terminal::new(&home);
    terminal.until("> ");
    terminal.press("one\ntwo\nthree");
    terminal.until("three");
    // Longer than it takes to answer: nothing is sent before Enter.
    assert_eq!(terminal.screen.recv_timeout(Duration::from_millis(300)), Err(mpsc::RecvTimeoutError::Timeout));
    terminal.press(" four\n");
    terminal.until("offline model");
    terminal.until("> ");
    terminal.press("what did I say\n");
    terminal.until("one\r\ntwo\r\nthree four\r\n");
    // A line alone is sent at once.
    terminal.until("> ");
    terminal.press("list files\n");
    terminal.until("the working folder");
}
