//! A paused turn as plain data, for callers that keep it themselves.

use cepa_core::{Error, ErrorKind};
use serde::{Deserialize, Serialize};

use crate::store::StoredTurn;

/// The version of the form below.
pub(crate) const PAUSED_SCHEMA: u32 = 1;

/// A paused turn, complete: serialise it, move it, give it to `resume_with` in another process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PausedState {
    schema: u32,
    turn: StoredTurn,
}

impl PausedState {
    pub(crate) fn new(turn: StoredTurn) -> Self {
        Self { schema: PAUSED_SCHEMA, turn }
    }

    /// The turn's id.
    pub fn turn_id(&self) -> &str {
        &self.turn.row.id
    }

    /// The turn, if this version can read it.
    ///
    /// # Errors
    /// `invalid_input` for a state that a newer version wrote.
    pub fn into_turn(self) -> Result<StoredTurn, Error> {
        if self.schema > PAUSED_SCHEMA {
            let message =
                format!("the paused state has schema {}; this version reads up to {PAUSED_SCHEMA}", self.schema);
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        Ok(self.turn)
    }
}
