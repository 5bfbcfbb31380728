//! `cepa audit`: what people were shown, what they decided, and what then ran.

use std::io::{self, Write};

use cepa::{AuditEntry, AuditKind, TurnStore};
use serde_json::Value;

use crate::{
    exit::{Exit, Problem},
    json_lines::Time,
    list::when_exactly,
    session::Session,
    visible::one_line,
};

/// How many entries are read at once.
const PAGE: usize = 500;
/// How much of a value is shown; `--json` has all of it.
const LINE: usize = 300;

/// Prints the audit trail, oldest first.
///
/// # Errors
/// What the store or standard output fails with.
pub(crate) async fn audit(session: &mut Session, json: bool) -> Result<Exit, Problem> {
    let conversation = session.settings.conversation.clone();
    let mut out = io::stdout();
    let (mut after, mut count) = (0, 0_usize);
    if let Some(store) = session.existing_store()? {
        loop {
            let page = store.audit(conversation.as_deref(), after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            count += page.len();
            for entry in &page {
                if json {
                    writeln!(out, "{}", for_programs(entry))?;
                } else {
                    writeln!(out, "{}", for_people(entry))?;
                }
            }
        }
    }
    if count == 0 && !json {
        match &conversation {
            Some(id) => writeln!(out, "nothing in conversation {}", one_line(id, 100))?,
            None => writeln!(out, "nobody was asked anything")?,
        }
    }
    out.flush()?;
    Ok(Exit::Completed)
}

/// One flat object; the time as elsewhere.
fn for_programs(entry: &AuditEntry) -> Value {
    let mut members = entry.data.clone();
    members.insert("seq".into(), entry.seq.into());
    members.insert("at".into(), serde_json::to_value(Time::of(entry.at)).unwrap_or_default());
    members.insert("what".into(), entry.what.as_str().into());
    members.insert("actor".into(), entry.actor.clone().into());
    members.insert("pause_id".into(), entry.pause.clone().into());
    Value::Object(members)
}

/// One line: when, what, by whom, which call, in which conversation.
fn for_people(entry: &AuditEntry) -> String {
    let text = |name: &str| entry.data.get(name).and_then(Value::as_str).map(|text| one_line(text, LINE));
    let mut line = format!("{}  {:<9}", when_exactly(entry.at), entry.what.as_str());
    if let Some(pause) = &entry.pause {
        line.push_str(&format!("  {}", one_line(pause, 100)));
    }
    if let Some(actor) = &entry.actor {
        line.push_str(&format!("  by {}", one_line(actor, 100)));
    }
    // What was shown is told once; later entries name the pause.
    let args = match entry.what {
        AuditKind::Shown | AuditKind::Ran => text("args"),
        AuditKind::Edited => text("edited_args"),
        AuditKind::Approved
        | AuditKind::Rejected
        | AuditKind::Replied
        | AuditKind::Expired
        | AuditKind::Cancelled
        | AuditKind::Finished
        | AuditKind::Unknown
        | AuditKind::Cleared => None,
    };
    if let Some(tool) = text("tool") {
        line.push_str(&format!("  {tool}"));
    }
    for told in [args, text("status"), text("reason"), text("content")].into_iter().flatten() {
        line.push_str(&format!("  {told}"));
    }
    line.push_str(&format!("  in {}", one_line(entry.conversation(), 100)));
    line
}
