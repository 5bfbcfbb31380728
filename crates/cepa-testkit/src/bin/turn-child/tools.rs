//! Tools that note in a file, synced to disk, that their body was entered and that it came to its end.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use cepa_core::{Error, Tool, ToolError, ToolFlags, ToolOutput, ToolSpec};

use crate::program::{Manner, TOOLS};

/// What a person is shown to be asked about, and what tells one call from another.
const SCHEMA: &str =
    r#"{"type":"object","properties":{"n":{"type":"integer"},"for":{"type":"string"}},"required":["n"]}"#;

/// The tools of every program.
pub(crate) fn all(ran: &Path, pace: Duration) -> Result<Vec<Tool>, Error> {
    TOOLS.iter().map(|&(name, manner)| tool(name, manner, ran.to_owned(), pace)).collect()
}

fn flags(manner: Manner) -> ToolFlags {
    let flags = ToolFlags::default();
    match manner {
        Manner::Once => flags,
        Manner::OnceConcurrent => ToolFlags { concurrent: true, ..flags },
        Manner::OnceSensitive => ToolFlags { sensitive: true, ..flags },
        Manner::OnceDirect => ToolFlags { return_direct: true, ..flags },
        Manner::Idempotent => ToolFlags { idempotent: true, ..flags },
        Manner::ReadOnly => ToolFlags { read_only: true, ..flags },
    }
}

fn tool(name: &'static str, manner: Manner, ran: PathBuf, pace: Duration) -> Result<Tool, Error> {
    let spec = ToolSpec::new(name, "Does one thing.", Some(SCHEMA))?.with_flags(flags(manner));
    Ok(Tool::new(spec, move |args, context| {
        let ran = ran.clone();
        let key = context.idempotency_key().unwrap_or("none").to_owned();
        async move {
            let attempt = entered(&ran, &key)? + 1;
            let line = format!("{name}\t{key}\t{attempt}\t{}", args.as_str());
            note(&ran, "begin", &line)?;
            tokio::time::sleep(pace).await;
            note(&ran, "end", &line)?;
            if name == "mount" && attempt == 1 {
                return Err(ToolError::environment("the disk is not mounted"));
            }
            let filler = if name == "long" { "…".repeat(3_000) } else { String::new() };
            Ok(ToolOutput::new(format!("{name} ran as {key} attempt {attempt}{filler}")))
        }
    }))
}

/// How often a body was entered under this key.
fn entered(ran: &Path, key: &str) -> io::Result<usize> {
    let mut text = String::new();
    match File::open(ran) {
        Ok(mut file) => file.read_to_string(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    let ours = |line: &&str| line.starts_with("begin\t") && line.split('\t').nth(2) == Some(key);
    Ok(text.lines().filter(ours).count())
}

fn note(ran: &Path, what: &str, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(ran)?;
    // One write, so that lines of several processes stay whole.
    file.write_all(format!("{what}\t{line}\n").as_bytes())?;
    file.sync_data()
}
