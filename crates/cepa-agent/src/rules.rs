//! What a commit may do to the rows of a turn: the rules that every store applies, each said once.

use std::time::Duration;

use cepa_core::{Error, ErrorKind, RawJson, ToolFailure};

use crate::{
    ids,
    memory::Version,
    pause::{Pause, PauseState},
    store::{CallChange, CallKey, CallRow, CallState, TurnRow},
};

impl CallRow {
    /// The hash of the arguments that run, or would.
    pub fn args_hash(&self) -> String {
        ids::hash(self.executed_args.as_ref().map_or(self.args.as_str(), RawJson::as_str))
    }

    /// The call's name inside its turn.
    pub const fn key(&self) -> CallKey {
        CallKey { batch: self.batch, idx: self.idx }
    }
}

impl CallChange {
    /// Which call it changes.
    pub const fn key(&self) -> CallKey {
        match self {
            Self::Planned(row) => row.key(),
            Self::Started { key, .. } | Self::Finished { key, .. } | Self::Unknown { key, .. } => *key,
        }
    }
}

/// Whether a result is final. A failure that a person can repair is not: the call may run again, or be answered.
fn is_final(row: &CallRow) -> bool {
    let repairable = Some(ToolFailure::Environment.as_str());
    row.state == CallState::Finished && row.result.as_ref().and_then(|result| result.failure.as_deref()) != repairable
}

/// Whether a change of a call may be made.
///
/// # Errors
/// `conflict` if the call has come further than the change knows.
pub fn check_change(before: Option<&CallRow>, change: &CallChange) -> Result<(), Error> {
    let key = change.key();
    let planned = || before.ok_or_else(|| conflict(key, "was never planned"));
    match change {
        CallChange::Planned(row) => match before {
            Some(before) if before.state != CallState::Planned && before != row => {
                Err(conflict(key, "has already started"))
            }
            Some(_) | None => Ok(()),
        },
        CallChange::Started { attempt, .. } => {
            let row = planned()?;
            if is_final(row) {
                return Err(conflict(key, "has already finished"));
            }
            if *attempt <= row.attempt {
                return Err(conflict(key, "has already been entered this often"));
            }
            Ok(())
        }
        CallChange::Finished { result, .. } => {
            let row = planned()?;
            // The same step may be written twice.
            if is_final(row) && row.result.as_ref() != Some(result) {
                return Err(conflict(key, "already has another result"));
            }
            Ok(())
        }
        CallChange::Unknown { .. } => {
            if planned()?.state == CallState::Finished {
                return Err(conflict(key, "has already finished"));
            }
            Ok(())
        }
    }
}

/// Makes a change that [`check_change`] allows. A body that was entered stays entered, a final result stays the result.
pub fn apply_change(row: &mut CallRow, change: CallChange) {
    match change {
        CallChange::Planned(planned) => *row = planned,
        CallChange::Started { attempt, executed_args, at, .. } => {
            row.state = CallState::Started;
            row.attempt = attempt;
            row.started = Some(at);
            row.result = None;
            row.finished = None;
            if executed_args.is_some() {
                row.executed_args = executed_args;
            }
        }
        CallChange::Finished { result, at, .. } => {
            if !is_final(row) {
                row.state = CallState::Finished;
                row.result = Some(result);
                row.finished = Some(at);
            }
        }
        CallChange::Unknown { .. } => row.state = CallState::Unknown,
    }
}

/// The row of a call after a change.
///
/// # Errors
/// As [`check_change`].
pub fn change_call(before: Option<&CallRow>, change: &CallChange) -> Result<CallRow, Error> {
    check_change(before, change)?;
    match (before.cloned(), change) {
        (_, CallChange::Planned(row)) => Ok(row.clone()),
        (Some(mut row), _) => {
            apply_change(&mut row, change.clone());
            Ok(row)
        }
        (None, _) => Err(conflict(change.key(), "was never planned")),
    }
}

fn conflict(key: CallKey, what: &str) -> Error {
    let message = format!("call {}.{} {what}: read the turn again before going on", key.batch, key.idx);
    Error::new(ErrorKind::Conflict, message)
}

/// What a commit does with a pause of which it says that it is over without a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// It waited: it is closed now.
    Now,
    /// It was over without a decision before.
    Before,
}

/// Whether a pause may be closed. A decision that somebody made meanwhile is never overwritten.
///
/// # Errors
/// `conflict` if it was decided, or if there is no such pause.
pub fn close_pause(id: &str, state: Option<PauseState>) -> Result<Closing, Error> {
    match state {
        Some(PauseState::Pending) => Ok(Closing::Now),
        Some(PauseState::Expired | PauseState::Cancelled) => Ok(Closing::Before),
        Some(PauseState::Approved | PauseState::Edited | PauseState::Rejected | PauseState::Replied) => {
            let message = format!("pause {id} was decided meanwhile: read the turn again before going on");
            Err(Error::new(ErrorKind::Conflict, message))
        }
        None => Err(Error::new(ErrorKind::Conflict, format!("there is no pause {id} to close"))),
    }
}

/// Whether a new pause is still to be written. One that is there already, decided or not, is left as it is.
///
/// # Errors
/// `conflict` if another pause has its id.
pub fn add_pause(stored: Option<&Pause>, new: &Pause) -> Result<bool, Error> {
    match stored {
        None => Ok(true),
        Some(stored) if (&stored.turn, stored.key, &stored.args_hash) == (&new.turn, new.key, &new.args_hash) => {
            Ok(false)
        }
        Some(_) => Err(Error::new(ErrorKind::Conflict, format!("the pause id {} is already used", new.id))),
    }
}

/// Whether the row of a new turn is still to be written: the same step may be written twice.
///
/// # Errors
/// `conflict` if another turn has its id.
pub fn add_turn(stored: Option<&TurnRow>, new: &TurnRow) -> Result<bool, Error> {
    match stored {
        None => Ok(true),
        Some(stored) if (&stored.conversation, &stored.input) == (&new.conversation, &new.input) => Ok(false),
        Some(_) => Err(Error::new(ErrorKind::Conflict, format!("the turn id {} is already used", new.id))),
    }
}

/// Whether nothing of a turn is to stay: it is over, and has no conversation.
pub const fn leaves_nothing(row: &TurnRow) -> bool {
    row.ephemeral && !row.state.is_live()
}

/// Who drives a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// The holder, if anybody holds it.
    pub by: Option<String>,
    /// The newest token; 0 before the first holder.
    pub token: u64,
    /// Until when it is held, in milliseconds since 1970.
    pub until: i64,
}

impl Holding {
    /// The conversation in a holder's hands: free, past its time, or already his. The token stays if nobody else
    /// had it since.
    ///
    /// # Errors
    /// `busy` while another holds it.
    pub fn take(&self, conversation: &str, holder: &str, now: i64, until: i64) -> Result<Self, Error> {
        let token = match &self.by {
            Some(by) if by == holder => self.token,
            Some(_) if now < self.until => {
                // A holder that lives renews its lease again and again: when it will be done is not known here.
                let wait = Duration::from_millis(self.until.saturating_sub(now).unsigned_abs());
                let message = format!(
                    "another process works on conversation `{conversation}`; if that process died it is free in at most {} s",
                    wait.as_millis().div_ceil(1000)
                );
                return Err(Error::new(ErrorKind::Busy, message).with_retry_after(wait));
            }
            Some(_) | None => self.token.saturating_add(1),
        };
        Ok(Self { by: Some(holder.to_owned()), token, until })
    }

    /// Whether a token may still write.
    ///
    /// # Errors
    /// `busy` if somebody took the conversation over.
    pub fn check(&self, conversation: &str, token: u64) -> Result<(), Error> {
        if self.token == token {
            return Ok(());
        }
        let message = format!("conversation `{conversation}` was taken over by another turn: nothing was written");
        Err(Error::new(ErrorKind::Busy, message))
    }
}

/// The error of an append that expects another version.
pub fn version_conflict(conversation: &str, expected: Version, now: Version) -> Error {
    let message = format!(
        "conversation `{conversation}` is at {}/{}, not at {}/{}: load it again and append to what is there",
        now.epoch, now.seq, expected.epoch, expected.seq
    );
    Error::new(ErrorKind::Conflict, message)
}

/// The error of a commit for a turn that is not there.
pub fn no_such_turn(id: &str) -> Error {
    let message = format!("there is no turn {id}: its conversation was cleared while it ran");
    Error::new(ErrorKind::Conflict, message)
}

/// The error of forgetting a turn that is part of a conversation.
pub fn not_ephemeral(id: &str) -> Error {
    let message = format!("turn {id} belongs to a conversation: clear the conversation instead");
    Error::new(ErrorKind::InvalidInput, message)
}

/// The id of the message that comes to this place without one. `n` counts the tries: a caller may have used such a
/// name himself.
pub fn message_id(place: Version, n: u32) -> String {
    match n {
        0 => format!("m{}-{}", place.epoch, place.seq),
        _ => format!("m{}-{}-{n}", place.epoch, place.seq),
    }
}
