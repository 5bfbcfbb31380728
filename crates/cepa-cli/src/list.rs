//! What is kept: waiting calls, conversations, messages.

use std::io::{self, Write};

use cepa::{ErrorKind, Message, ToolMessage, TurnStore, ids};
use serde::Serialize;

use crate::{
    exit::{Exit, Problem},
    json_lines::{self, Pending, Time},
    session::Session,
    shown::{self, Much},
    stderr,
    style::Style,
    visible::{Care, one_line, visible},
};

/// How many rows are read at once.
const PAGE: usize = 200;

/// Lists the calls that wait.
///
/// # Errors
/// What the store or standard output fails with.
pub(crate) async fn pending(session: &mut Session, json: bool) -> Result<Exit, Problem> {
    let mut pauses = match session.existing_store()? {
        Some(store) => store.pending(session.settings.conversation.as_deref()).await?,
        None => Vec::new(),
    };
    // What nobody decided in time waits no longer; `cepa recover`, or the next message, tells the model so.
    let now = ids::now_ms();
    pauses.retain(|pause| !pause.is_expired(now));
    if json {
        json_lines::print(&pauses.iter().map(Pending::from).collect::<Vec<_>>())?;
        return Ok(Exit::Completed);
    }
    let mut out = io::stdout();
    if pauses.is_empty() {
        writeln!(out, "nothing waits for a decision")?;
    }
    for pause in &pauses {
        let mut place = format!("in conversation {}", one_line(&pause.conversation, 100));
        if let Some(root) = session.other_root(pause).await? {
            place.push_str(&format!(", in the folder {}", one_line(&root.display().to_string(), 300)));
        }
        if let Some(expires) = pause.expires {
            place.push_str(&format!(", to be decided until {}", when(expires)));
        }
        writeln!(out, "{}  {}  {place}", pause.id, when(pause.created))?;
        for line in shown::call(pause, Much::Everything, Style::of_stdout()).lines() {
            writeln!(out, "  {line}")?;
        }
    }
    if !pauses.is_empty() {
        writeln!(out, "decide with one of:")?;
        for way in ["approve ID", "reject ID [WHY]", "edit ID '{\"path\": …}'", "reply ID TEXT"] {
            writeln!(out, "  cepa {way}")?;
        }
    }
    out.flush()?;
    Ok(Exit::Completed)
}

/// A conversation in the list for programs.
#[derive(Serialize)]
struct ConversationOut<'a> {
    id: &'a str,
    title: Option<&'a str>,
    messages: u64,
    created: Time,
    updated: Time,
}

/// Lists the conversations.
///
/// # Errors
/// As [`pending`].
pub(crate) async fn conversations(session: &mut Session, json: bool, limit: usize) -> Result<Exit, Problem> {
    let store = session.existing_store()?;
    let list = match &store {
        Some(store) => store.list(0, limit).await?,
        None => Vec::new(),
    };
    if json {
        let list: Vec<_> = list
            .iter()
            .map(|info| ConversationOut {
                id: &info.id,
                title: info.title.as_deref(),
                messages: info.messages,
                created: Time::of(info.created),
                updated: Time::of(info.updated),
            })
            .collect();
        json_lines::print(&list)?;
        return Ok(Exit::Completed);
    }
    let mut out = io::stdout();
    if list.is_empty() {
        writeln!(out, "there are no conversations")?;
    }
    for info in &list {
        let begins = match (&info.title, &store) {
            (Some(title), _) => title.clone(),
            (None, Some(store)) => beginning(&**store, &info.id).await,
            (None, None) => String::new(),
        };
        let id = one_line(&info.id, 100);
        let messages = info.messages;
        writeln!(out, "{id}  {}  messages: {messages}  {}", when(info.updated), one_line(&begins, 60))?;
    }
    out.flush()?;
    Ok(Exit::Completed)
}

/// How a conversation begins. One that cannot be read is not hidden from the list.
async fn beginning(store: &dyn TurnStore, id: &str) -> String {
    match store.page(id, 0, 1).await {
        Ok(entries) => entries.first().map(|entry| entry.message.text().into_owned()).unwrap_or_default(),
        Err(error) => format!("(unreadable: {})", error.message()),
    }
}

/// Shows a conversation.
///
/// # Errors
/// `invalid_input` if there is none of that id; else as [`pending`].
pub(crate) async fn history(session: &mut Session, id: &str, json: bool) -> Result<Exit, Problem> {
    let Some(store) = session.existing_store()? else { return Err(no_conversation(id)) };
    // Not behind a lock: what is written waits for the store in between.
    let mut out = io::stdout();
    let shown = print_history(&*store, id, json, &mut out).await;
    match shown {
        Ok(0) => Err(no_conversation(id)),
        Ok(_) => Ok(Exit::Completed),
        Err(Problem::Told(failed)) if failed.error.kind() == ErrorKind::Corrupt => {
            stderr::note(&format!("cepa: {}", one_line(failed.error.message(), 500)));
            readable(&*store, id, json, &mut out).await
        }
        Err(problem) => Err(problem),
    }
}

/// Prints the messages of a conversation, and says how many there are.
///
/// # Errors
/// As [`pending`].
pub(crate) async fn print_history(
    store: &dyn TurnStore,
    id: &str,
    json: bool,
    out: &mut impl Write,
) -> Result<u64, Problem> {
    // A row that cannot be read must show before half of the conversation is printed.
    let mut pages = Vec::new();
    let mut count = 0_u64;
    loop {
        let page = store.page(id, count, PAGE).await?;
        if page.is_empty() {
            break;
        }
        count += page.len() as u64;
        pages.extend(page);
    }
    for entry in &pages {
        print_message(out, &entry.message, entry.created, json)?;
    }
    out.flush()?;
    Ok(count)
}

/// Prints what can be read, and says what cannot.
async fn readable(store: &dyn TurnStore, id: &str, json: bool, out: &mut impl Write) -> Result<Exit, Problem> {
    let (history, corrupt) = store.load_lossy(id).await?;
    for entry in history.iter() {
        print_message(out, &entry.message, entry.created, json)?;
    }
    out.flush()?;
    for row in &corrupt {
        stderr::note(&format!("message {} is left out: {}", row.seq, one_line(&row.why, 300)));
    }
    Ok(Exit::Failed)
}

fn print_message(out: &mut impl Write, message: &Message, created: i64, json: bool) -> io::Result<()> {
    if json {
        return writeln!(out, "{}", serde_json::to_string(message)?);
    }
    let at = when(created);
    match message {
        Message::System(_) => writeln!(out, "system  {at}")?,
        Message::User(_) => writeln!(out, "you  {at}")?,
        Message::Assistant(reply) => {
            let by = reply.origin.as_ref().map(|origin| format!("{}/{}", origin.provider, origin.model));
            writeln!(out, "assistant  {at}  {}", one_line(&by.unwrap_or_default(), 100))?;
        }
        Message::Tool(ToolMessage { name, status, .. }) => {
            writeln!(out, "{}  {at}  {}", one_line(name, 100), status.as_str())?;
        }
    }
    for line in visible(&message.text(), Care::Reading).lines() {
        writeln!(out, "  {line}")?;
    }
    for call in message.tool_calls() {
        writeln!(out, "  → {} {}", one_line(&call.name, 100), one_line(call.args.as_str(), 300))?;
    }
    Ok(())
}

fn no_conversation(id: &str) -> Problem {
    let text = format!("there is no conversation {}: `cepa conversations` lists them", one_line(id, 100));
    Problem::new(ErrorKind::InvalidInput, text)
}

/// A time as a person reads it, in the zone of this machine.
pub(crate) fn when(ms: i64) -> String {
    time(ms, "%Y-%m-%d %H:%M")
}

/// A time as it must stand in a trail: with its seconds, and with the zone's distance from UTC.
pub(crate) fn when_exactly(ms: i64) -> String {
    time(ms, "%Y-%m-%d %H:%M:%S%:z")
}

fn time(ms: i64, format: &str) -> String {
    match jiff::Timestamp::from_millisecond(ms) {
        Ok(time) => time.to_zoned_datetime(jiff::tz::TimeZone::system()).strftime(format).to_string(),
        Err(_) => "?".to_owned(),
    }
}
