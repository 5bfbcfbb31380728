//! `cepa recover`: finishes the turns that a crash interrupted, or that waited too long, each in the folder where it began.
//! What another process works on is left alone.

use std::time::{Duration, Instant};

use cepa::{TurnResult, TurnStore, ids};

use crate::{
    exit::{Exit, Problem},
    run,
    session::{LEASE_WAIT, Session},
    signals::Signals,
    stderr,
    visible::one_line,
};

/// Finishes what was interrupted. The exit code is of the worst that came of it.
///
/// # Errors
/// What the store fails with. A turn that fails is told in its place.
pub(crate) async fn recover(session: &mut Session) -> Result<Exit, Problem> {
    let mut signals = Signals::listen()?;
    let Some(store) = session.existing_store()? else { return none() };
    let interrupted = store.interrupted(ids::now_ms()).await?;
    if interrupted.is_empty() {
        return none();
    }
    let mut exit = Exit::Completed;
    // Whoever held a conversation may have died a moment ago: that is known when its lease has run out.
    let until = Instant::now() + LEASE_WAIT;
    for turn in interrupted {
        let conversation = session.conversation_of_turn(&turn.id, &turn.conversation).await?;
        let name = one_line(&turn.conversation, 100);
        let is_left = async || {
            let interrupted = store.interrupted(ids::now_ms()).await?;
            Ok::<bool, Problem>(interrupted.iter().any(|left| left.id == turn.id))
        };
        let mut told = false;
        let recovered = loop {
            let recovered = tokio::select! {
                recovered = conversation.recover_if_free() => recovered,
                _ = signals.next() => return Err(Problem::Quit),
            };
            if !matches!(recovered, Ok(None)) || Instant::now() >= until || !is_left().await? {
                break recovered;
            }
            if !std::mem::replace(&mut told, true) {
                stderr::note(&format!(
                    "conversation {name}: another process works on it, or died a moment ago; waiting up to {} s to know",
                    LEASE_WAIT.as_secs()
                ));
            }
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(200)) => {}
                _ = signals.next() => return Err(Problem::Quit),
            }
        };
        match recovered {
            Ok(None) => {
                // If it is no longer there, another process was faster.
                if is_left().await? {
                    stderr::note(&format!("conversation {name}: another process is working on it, left alone"));
                }
            }
            Ok(Some(result)) => {
                stderr::note(&format!("conversation {name}: {}", result.status.as_str()));
                show(&result)?;
                exit = worse(exit, Exit::of(result.status));
            }
            Err(failed) => {
                let problem = Problem::from(failed);
                stderr::note(&format!("conversation {name}: {}", problem.line().unwrap_or_default()));
                exit = worse(exit, problem.exit());
            }
        }
    }
    Ok(exit)
}

fn none() -> Result<Exit, Problem> {
    stderr::note("no turn was interrupted");
    Ok(Exit::Completed)
}

fn show(result: &TurnResult) -> Result<(), Problem> {
    run::view(false).result(result, "")?;
    run::say_end(result);
    Ok(())
}

/// An error before a pause before anything else.
fn worse(a: Exit, b: Exit) -> Exit {
    let rank = |exit: Exit| match exit {
        Exit::Completed => 0,
        Exit::Exhausted => 1,
        Exit::Cancelled => 2,
        Exit::Paused => 3,
        Exit::Usage => 4,
        Exit::Failed => 5,
        Exit::OutputClosed => 6,
    };
    if rank(b) > rank(a) { b } else { a }
}
