//! `cepa run` and the decisions, for scripts: one turn, its answer on standard output, its end in the exit code.

use std::io::{self, IsTerminal};

use cepa::{
    CancellationToken, Decision, Decisions, Error, ErrorKind, Pause, PauseState, TurnError, TurnResult, TurnStore,
    TurnStream, ids,
};
use serde_json::Value;

use crate::{
    args::{Changed, Decide},
    drive::{View, drive},
    exit::{Exit, Problem},
    input,
    json_lines::JsonLines,
    render::{Answer, Terminal},
    session::Session,
    shown,
    signals::Signals,
    stderr,
    style::Style,
    visible::one_line,
};

/// How standard output is used.
pub(crate) fn view(json: bool) -> Box<dyn View> {
    if json {
        Box::new(JsonLines)
    } else if io::stdout().is_terminal() {
        Box::new(Terminal::new(io::stdout(), Style::of_stdout()))
    } else {
        Box::new(Answer)
    }
}

/// One turn with a prompt.
///
/// # Errors
/// What the turn failed with; JSON has been told of it.
pub(crate) async fn run(session: &mut Session, prompt: &[String], json: bool) -> Result<Exit, Problem> {
    let mut view = view(json);
    let id = session.settings.conversation.clone().unwrap_or_else(|| ids::new_id("c"));
    let ran = async {
        let message = message(prompt, || io::stdin().is_terminal(), input::read_to_end)?;
        let mut signals = listen()?;
        say_model(session).await?;
        let conversation = session.conversation(&id).await?;
        tokio::select! {
            finished = session.finish_interrupted(&id) => finished?,
            _ = signals.next() => return Err(Problem::Quit),
        }
        let store = session.store()?;
        let waiting = store.pending(Some(&id)).await?;
        let cancel = CancellationToken::new();
        let turn = conversation.chat_stream_with(message, session.options(&cancel)?);
        let ended = go_on(session, turn, &cancel, &mut signals, view.as_mut()).await;
        say_cancelled(&*store, &waiting).await?;
        ended
    }
    .await;
    told(ran, view.as_mut(), Some(&id))
}

/// Decides one waiting call, and drives the turn on. `changed` is there where the decision would let the call run.
///
/// # Errors
/// As [`run`].
pub(crate) async fn decide(
    session: &mut Session,
    decide: &Decide,
    changed: Option<&Changed>,
    decision: Decision,
) -> Result<Exit, Problem> {
    let mut view = view(decide.json);
    let mut id = None;
    let decided = async {
        let mut signals = listen()?;
        let store = session.existing_store()?;
        let pause = match store {
            Some(store) => store.pause(&decide.pause).await?.map(|pause| (store, pause)),
            None => None,
        };
        let Some((store, pause)) = pause else {
            let text = format!("there is no waiting call {}: see `cepa pending`", one_line(&decide.pause, 100));
            return Err(Problem::new(ErrorKind::NotPaused, text));
        };
        id = Some(pause.conversation.clone());
        let conversation = session.conversation_of_turn(&pause.turn, &pause.conversation).await?;
        say_model(session).await?;
        if is_decided_so(&pause, &decision) {
            let is_over = store.turn(&pause.turn).await?.is_none_or(|stored| !stored.row.state.is_live());
            stderr::note(match is_over {
                true => "already decided this way; this is what came of it:",
                false => "already decided this way; the turn goes on",
            });
        }
        let cancel = CancellationToken::new();
        let decisions = Decisions::one(&pause.id, decision);
        let mut options = session.options(&cancel)?;
        if changed.is_some_and(|changed| changed.accept_changed_tools) {
            options = options.accept_changed_tools();
        }
        let turn = conversation.resume_stream(decisions, options);
        match go_on(session, turn, &cancel, &mut signals, view.as_mut()).await {
            Err(Problem::Told(failed)) if changed.is_some() && can_be_accepted(session, &pause, &failed)? => {
                let mut failed = *failed;
                let message = format!("{} (--accept-changed-tools does that)", failed.error.message());
                failed.error = failed.error.with_message(message);
                Err(failed.into())
            }
            decided => decided,
        }
    }
    .await;
    told(decided, view.as_mut(), id.as_deref())
}

/// Says which of the calls that waited the new message cancelled: nobody can decide about them any more.
async fn say_cancelled(store: &dyn TurnStore, waited: &[Pause]) -> Result<(), Error> {
    for pause in waited {
        if store.pause(&pause.id).await?.is_some_and(|now| now.state == PauseState::Cancelled) {
            stderr::note(&format!("this message cancelled the waiting call {}: {}", pause.id, shown::summary(pause)));
        }
    }
    Ok(())
}

/// Whether this is the decision that was made before. The digits and the order of edited arguments are told apart by the
/// library, which then refuses.
fn is_decided_so(pause: &Pause, decision: &Decision) -> bool {
    match (&pause.decision, decision) {
        (Some(Decision::Edit { args: before }), Decision::Edit { args }) => {
            let value = |args: &str| serde_json::from_str::<Value>(args).ok();
            value(before) == value(args)
        }
        (before, decision) => before.as_ref() == Some(decision),
    }
}

/// Whether a decision failed because the tool is another now. If the tool is gone there is nothing to accept.
fn can_be_accepted(session: &Session, pause: &Pause, failed: &TurnError) -> Result<bool, Error> {
    let is_there = || {
        let tools = cepa_cli::tools::ready_tools(&session.root()?)?;
        Ok(tools.iter().any(|tool| tool.name() == pause.tool))
    };
    if failed.error.kind() == ErrorKind::InvalidTool { is_there() } else { Ok(false) }
}

async fn go_on(
    session: &mut Session,
    turn: TurnStream,
    cancel: &CancellationToken,
    signals: &mut Signals,
    view: &mut dyn View,
) -> Result<Exit, Problem> {
    let result = drive(turn, cancel, signals, view).await?;
    let model = session.model().await?.name();
    view.result(&result, &model)?;
    say_end(&result);
    Ok(Exit::of(result.status))
}

/// Tells a view of a failure.
fn told(ran: Result<Exit, Problem>, view: &mut dyn View, conversation: Option<&str>) -> Result<Exit, Problem> {
    let exit = ran.as_ref().map_or_else(Problem::exit, |exit| *exit);
    match &ran {
        Err(Problem::Told(failed)) => view.failure(failed, exit, conversation)?,
        // Whoever leaves in a hurry wants to know that it was no success, too.
        Err(Problem::Quit) => {
            view.failure(&Error::new(ErrorKind::Cancelled, "cancelled").into(), exit, conversation)?;
        }
        Ok(_) | Err(Problem::OutputClosed) => {}
    }
    ran
}

fn listen() -> Result<Signals, Error> {
    Signals::listen().map_err(|error| Error::new(ErrorKind::InvalidConfig, format!("signals cannot be heard: {error}")))
}

/// Says which model answers: always if it is none, else only to a person.
async fn say_model(session: &mut Session) -> Result<(), Error> {
    let model = session.model().await?;
    if model.is_offline() || io::stderr().is_terminal() {
        stderr::note(&model.line());
    }
    Ok(())
}

/// What a person must know of a turn that did not end with an answer.
pub(crate) fn say_end(result: &TurnResult) {
    for pause in &result.pending {
        stderr::note(&format!("waits for a decision: {}", shown::summary(pause)));
        stderr::note(&format!("decide with: cepa approve {}   (or reject, edit, reply)", pause.id));
    }
    if let Some(line) = ended_early(result) {
        stderr::note(line);
    }
}

/// Why a turn ended before its answer was whole.
pub(crate) fn ended_early(result: &TurnResult) -> Option<&'static str> {
    use cepa::{FinishReason, TurnStatus};
    match (result.status, result.finish_reason) {
        (TurnStatus::Exhausted, _) => {
            Some("stopped: the tool calls of one turn are used up (max_batches); say \"go on\" to continue")
        }
        (TurnStatus::Cancelled, _) => Some("cancelled; the conversation is kept"),
        (TurnStatus::Completed, Some(FinishReason::Length)) => {
            Some("the answer was cut: the model's output limit is reached")
        }
        (TurnStatus::Completed, Some(FinishReason::ContentFilter)) => {
            Some("the answer was cut by the provider's filter")
        }
        (TurnStatus::Completed, Some(FinishReason::Refusal)) => Some("the model refused"),
        (TurnStatus::Completed | TurnStatus::Paused, _) => None,
    }
}

/// The message of `cepa run`: the prompt, and what is piped in beside it.
fn message(
    prompt: &[String],
    is_terminal: impl Fn() -> bool,
    read: impl Fn() -> Result<String, Error>,
) -> Result<String, Error> {
    let prompt = prompt.join(" ");
    let usage = || Error::new(ErrorKind::InvalidConfig, "there is nothing to say: cepa run \"PROMPT\", or pipe it in");
    if prompt.len() > input::MAX_MESSAGE {
        return Err(input::too_long());
    }
    let prompt = prompt.trim();
    if is_terminal() && prompt != "-" {
        return if prompt.is_empty() { Err(usage()) } else { Ok(prompt.to_owned()) };
    }
    let piped = read()?;
    match (prompt, piped.trim()) {
        ("" | "-", "") => Err(usage()),
        ("" | "-", text) => Ok(text.to_owned()),
        (prompt, "") => Ok(prompt.to_owned()),
        (prompt, _) => Ok(format!("{prompt}\n\nFrom standard input:\n{piped}")),
    }
}

/// A text argument of a decision: words, or `-` for standard input.
///
/// # Errors
/// What standard input fails with.
pub(crate) fn text_or_stdin(words: &[String]) -> Result<String, Error> {
    match words {
        [only] if only == "-" => Ok(input::read_to_end()?.trim_end_matches(['\n', '\r']).to_owned()),
        words => Ok(words.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(prompt: &[&str], piped: Option<&str>) -> Result<String, ErrorKind> {
        let prompt: Vec<String> = prompt.iter().map(|word| (*word).to_owned()).collect();
        message(&prompt, || piped.is_none(), || Ok(piped.unwrap_or_default().to_owned())).map_err(|error| error.kind())
    }

    #[test]
    fn the_message_is_the_prompt_and_what_is_piped_in() {
        assert_eq!(of(&["say", "hello"], None), Ok("say hello".into()));
        assert_eq!(of(&["sum up"], Some("")), Ok("sum up".into()));
        assert_eq!(of(&["sum up"], Some("a\nb\n")), Ok("sum up\n\nFrom standard input:\na\nb\n".into()));
        assert_eq!(of(&["-"], Some(" a\n")), Ok("a".into()));
        assert_eq!(of(&[], Some("a")), Ok("a".into()));
        for nothing in [of(&[], None), of(&["  "], None), of(&["-"], Some("\n"))] {
            assert_eq!(nothing, Err(ErrorKind::InvalidConfig));
        }
    }
}
