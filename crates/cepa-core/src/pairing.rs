//! Calls and their results belong together: the one place that checks, groups and heals them.

use std::{collections::HashMap, ops::Range, sync::Arc};

use crate::{Entry, History, Message, Role, ToolCall, ToolStatus};

/// What the model reads where a call has no result.
pub const MISSING_RESULT: &str =
    "No result: the call was interrupted. It is not known whether it ran; check before you repeat it.";

/// What is wrong with a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A call is not answered right behind its message.
    MissingResult,
    /// A result answers no open call.
    OrphanResult,
    /// The results do not stand in the order of the calls.
    ResultOrder,
}

/// Checks that every batch of calls is followed at once by exactly its results in call order, and that no other
/// result exists. The error is the index of the first message that is wrong.
///
/// ```
/// use cepa_core::{History, Message, ToolStatus, pairing};
/// let orphan = History::from(vec![Message::user("hi"), Message::tool("c1", "t", ToolStatus::Ok, "x")]);
/// assert_eq!(pairing::validate(&orphan), Err((1, pairing::Problem::OrphanResult)));
/// assert_eq!(pairing::validate(&pairing::heal(&orphan)), Ok(()));
/// ```
pub fn validate(history: &History) -> Result<(), (usize, Problem)> {
    let mut open: &[ToolCall] = &[];
    for (index, message) in history.messages().enumerate() {
        match message {
            Message::Tool(result) => match open.split_first() {
                Some((call, rest)) if call.id == result.tool_call_id => open = rest,
                Some(_) if open.iter().any(|call| call.id == result.tool_call_id) => {
                    return Err((index, Problem::ResultOrder));
                }
                Some(_) | None => return Err((index, Problem::OrphanResult)),
            },
            Message::System(_) | Message::User(_) | Message::Assistant(_) => {
                if !open.is_empty() {
                    return Err((index, Problem::MissingResult));
                }
                open = message.tool_calls();
            }
        }
    }
    if open.is_empty() { Ok(()) } else { Err((history.len(), Problem::MissingResult)) }
}

/// The groups of a well-paired history, in order and without gaps: a message with calls and all its results, or any
/// other message alone. A window and an encoder never split a group.
pub fn groups(history: &History) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    for (index, message) in history.messages().enumerate() {
        match groups.last_mut() {
            Some(group) if message.role() == Role::Tool => group.end = index + 1,
            _ => groups.push(index..index + 1),
        }
    }
    groups
}

/// A history that is legal for every provider: missing results are added in place, orphans and duplicates are left
/// out, results stand in call order right behind their calls. A result belongs to the latest call of its id that is
/// still open. Deterministic and idempotent; what was checked before is not looked at again.
pub fn heal(history: &History) -> History {
    let start = history.checked();
    if start == history.len() {
        return history.clone();
    }
    let mut healed = match check(history, start) {
        Ok(()) => history.clone(),
        Err(from) => rebuild(history, from),
    };
    healed.mark_checked(healed.len());
    healed
}

/// Whether a history is well paired from an index on, before which it is; else the index from which it is not: that of a
/// message whose calls are not answered as they should be, or of a result that answers none.
fn check(history: &History, start: usize) -> Result<(), usize> {
    let sealed = history.len() - history.tail().len();
    let mut open: &[ToolCall] = &[];
    // How far it is well paired, and how far that can be said to all who share the chunks.
    let (mut paired, mut shared) = (start, 0);
    for (index, entry) in history.iter_from(start).enumerate() {
        match &entry.message {
            Message::Tool(result) => match open.split_first() {
                Some((call, rest)) if call.id == result.tool_call_id => open = rest,
                Some(_) | None => break,
            },
            message @ (Message::System(_) | Message::User(_) | Message::Assistant(_)) => {
                if !open.is_empty() {
                    break;
                }
                open = message.tool_calls();
            }
        }
        if open.is_empty() {
            paired = start + index + 1;
            if paired <= sealed {
                shared = paired;
            }
        }
    }
    history.mark_shared(shared);
    if paired == history.len() { Ok(()) } else { Err(paired) }
}

fn rebuild(history: &History, start: usize) -> History {
    let entries: Vec<&Arc<Entry>> = history.iter_from(start).collect();
    let mut answers = match_results(&entries);
    let mut healed = history.up_to(start);
    for (index, entry) in entries.iter().enumerate() {
        if entry.message.role() == Role::Tool {
            continue;
        }
        healed.push_shared(Arc::clone(entry));
        for (place, call) in entry.message.tool_calls().iter().enumerate() {
            match answers.remove(&(index, place)) {
                Some(answer) => healed.push_shared(answer),
                None => healed.push(missing_result(entry, place, call)),
            }
        }
    }
    healed
}

/// Finds for each call (message index, place in it) the result that answers it.
fn match_results(entries: &[&Arc<Entry>]) -> HashMap<(usize, usize), Arc<Entry>> {
    // For each id the open calls, batch by batch; within a batch the first is answered first.
    let mut open: HashMap<&str, Vec<(usize, std::collections::VecDeque<usize>)>> = HashMap::new();
    let mut answers = HashMap::new();
    for (index, entry) in entries.iter().enumerate() {
        for (place, call) in entry.message.tool_calls().iter().enumerate() {
            let batches = open.entry(&call.id).or_default();
            match batches.last_mut() {
                Some((batch, places)) if *batch == index => places.push_back(place),
                _ => batches.push((index, [place].into())),
            }
        }
        if let Message::Tool(result) = &entry.message
            && let Some(batches) = open.get_mut(result.tool_call_id.as_str())
            && let Some((batch, places)) = batches.last_mut()
        {
            if let Some(place) = places.pop_front() {
                answers.insert((*batch, place), Arc::clone(entry));
            }
            if places.is_empty() {
                batches.pop();
            }
        }
    }
    answers
}

/// The id derives from the message with the call, so that the same hole is always filled with the same entry.
fn missing_result(entry: &Entry, place: usize, call: &ToolCall) -> Entry {
    let message = Message::tool(&call.id, &call.name, ToolStatus::Unknown, MISSING_RESULT);
    match &entry.id {
        Some(id) => Entry::with_id(format!("{id}/missing/{place}"), entry.created, message),
        None => Entry::new(message),
    }
}

#[cfg(test)]
#[path = "pairing_tests.rs"]
mod tests;
