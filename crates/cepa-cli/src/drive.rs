//! One turn from its first event to its result, shown as it runs, with Ctrl-C on the way.

use std::{io, time::Duration};

use cepa::{AgentEvent, CancellationToken, ErrorKind, TurnError, TurnResult, TurnStream};

use crate::{
    exit::{Exit, Problem},
    signals::Signals,
    stderr,
};

/// How long a turn whose reader is gone may take to come to an end.
const UNREAD: Duration = Duration::from_secs(2);

/// How a turn is shown on standard output.
pub(crate) trait View {
    /// Shows an event.
    fn event(&mut self, event: &AgentEvent) -> io::Result<()>;
    /// Shows what came of the turn.
    fn result(&mut self, result: &TurnResult, model: &str) -> io::Result<()>;
    /// Shows that it failed; the error itself goes to standard error.
    fn failure(&mut self, failed: &TurnError, exit: Exit, conversation: Option<&str>) -> io::Result<()>;
}

/// Polls the turn to its end. Ctrl-C cancels it, and a second one leaves at once; a closed output cancels it too.
///
/// # Errors
/// What the turn failed with; that the person wants to leave; that nobody reads.
pub(crate) async fn drive(
    mut turn: TurnStream,
    cancel: &CancellationToken,
    signals: &mut Signals,
    view: &mut dyn View,
) -> Result<TurnResult, Problem> {
    let mut unread: Option<Problem> = None;
    let leave = tokio::time::sleep(Duration::MAX);
    tokio::pin!(leave);
    loop {
        tokio::select! {
            biased;
            _ = signals.next() => {
                if cancel.is_cancelled() {
                    return Err(Problem::Quit);
                }
                cancel.cancel();
                stderr::note("cancelling (Ctrl-C again leaves at once)");
            }
            () = &mut leave => return Err(unread.unwrap_or(Problem::OutputClosed)),
            event = turn.next() => match event {
                Some(Ok(AgentEvent::Done(result))) => return unread.map_or(Ok(*result), Err),
                Some(Ok(event)) => {
                    if unread.is_none() && let Err(error) = view.event(&event) {
                        unread = Some(error.into());
                        cancel.cancel();
                        leave.as_mut().reset(tokio::time::Instant::now() + UNREAD);
                    }
                }
                Some(Err(failed)) => return Err(unread.unwrap_or_else(|| failed.into())),
                None => return Err(Problem::new(ErrorKind::Cancelled, "the turn was given up")),
            },
        }
    }
}
