//! How a command ends: its exit code, and the one line that says what went wrong.

use std::{io, process::ExitCode};

use cepa::{Error, ErrorKind, TurnError, TurnStatus};

use crate::visible::one_line;

/// How a command ended, as its caller sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Completed,
    Failed,
    Usage,
    Paused,
    Exhausted,
    Cancelled,
    /// Nobody reads what is printed any more: as a command that a broken pipe ended.
    OutputClosed,
}

impl Exit {
    /// The code; the same numbers stand in `--help`.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Paused => 3,
            Self::Exhausted => 4,
            Self::Cancelled => 130,
            Self::OutputClosed => 141,
        }
    }

    pub(crate) const fn of(status: TurnStatus) -> Self {
        match status {
            TurnStatus::Completed => Self::Completed,
            TurnStatus::Paused => Self::Paused,
            TurnStatus::Cancelled => Self::Cancelled,
            TurnStatus::Exhausted => Self::Exhausted,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command did not come to its end.
#[derive(Debug)]
pub(crate) enum Problem {
    /// An error to be told.
    Told(Box<TurnError>),
    /// The person wants to leave at once.
    Quit,
    /// Standard output is closed.
    OutputClosed,
}

impl Problem {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error::new(kind, message.into()).into()
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Told(turn) => match turn.error.kind() {
                ErrorKind::InvalidConfig => Exit::Usage,
                // A key that is missing, or cannot be one; what a provider says about a key has a status.
                ErrorKind::Auth if turn.error.status().is_none() => Exit::Usage,
                ErrorKind::Cancelled => Exit::Cancelled,
                _ => Exit::Failed,
            },
            Self::Quit => Exit::Cancelled,
            Self::OutputClosed => Exit::OutputClosed,
        }
    }

    /// The line to tell; `None` where there is nothing to say.
    pub(crate) fn line(&self) -> Option<String> {
        match self {
            Self::Told(turn) => Some(error_line(&turn.error)),
            Self::Quit | Self::OutputClosed => None,
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::Told(Box::new(error.into()))
    }
}

impl From<TurnError> for Problem {
    fn from(error: TurnError) -> Self {
        Self::Told(Box::new(error))
    }
}

impl From<io::Error> for Problem {
    /// An error of writing to standard output.
    fn from(error: io::Error) -> Self {
        // A terminal that went away answers EIO.
        let gone = error.kind() == io::ErrorKind::BrokenPipe || error.raw_os_error() == Some(EIO);
        if gone {
            return Self::OutputClosed;
        }
        Self::new(ErrorKind::Store, format!("the output cannot be written ({error}): check where it goes"))
    }
}

const EIO: i32 = 5;

/// An error as one line: what happened and what to do first, then what a support desk asks for.
pub(crate) fn error_line(error: &Error) -> String {
    let mut details = vec![error.kind().as_str().to_owned()];
    if let Some(provider) = error.provider() {
        details.push(provider.to_owned());
    }
    if let Some(status) = error.status() {
        details.push(format!("status {status}"));
    }
    if let Some(id) = error.request_id() {
        details.push(format!("request {id}"));
    }
    if let Some(wait) = error.retry_after() {
        details.push(format!("try again in {} s", wait.as_secs_f64().ceil()));
    }
    let details = details.join(", ");
    one_line(&format!("{} [{details}]", error.message()), 2_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_whatever_a_server_said() {
        let error = Error::new(ErrorKind::Auth, "no\nkey \u{1b}[31m").with_provider("openai").with_status(401);
        assert_eq!(error_line(&error), "no key ␛[31m [auth, openai, status 401]");
    }

    #[test]
    fn a_missing_key_is_a_setting_and_a_refused_one_is_an_error() {
        let missing = Error::new(ErrorKind::Auth, "no API key");
        assert_eq!(Problem::from(missing.clone()).exit(), Exit::Usage);
        assert_eq!(Problem::from(missing.with_status(401)).exit(), Exit::Failed);
    }

    #[test]
    fn a_closed_output_is_no_error() {
        let closed = Problem::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((closed.exit(), closed.line()), (Exit::OutputClosed, None));
        let full = Problem::from(io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(full.exit(), Exit::Failed);
        assert!(full.line().is_some());
    }
}
