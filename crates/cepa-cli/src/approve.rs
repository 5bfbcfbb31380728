//! Asking in place: a waiting call is shown, and the person says what is to become of it.

use cepa::{Decision, Pause};

use crate::{
    editor,
    exit::Problem,
    input::{Heard, Input, Want},
    render::Terminal,
    shown::{self, Much},
    signals::{Signal, Signals},
    visible::one_line,
};

/// What the person said.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    Decide(Decision),
    /// Not now; the call goes on waiting.
    Later,
    /// There is nobody to answer any more.
    Gone,
}

/// One typed line, understood.
#[derive(Debug, PartialEq, Eq)]
enum Said<'a> {
    Approve,
    Edit(&'a str),
    Reject(&'a str),
    Reply(&'a str),
    View,
    Later,
    Unclear,
}

fn understand(line: &str) -> Said<'_> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).map_or((line, ""), |(word, rest)| (word, rest.trim()));
    match word.to_lowercase().as_str() {
        // Only alone: "a" may begin a sentence.
        "a" | "approve" | "y" | "yes" if rest.is_empty() => Said::Approve,
        "e" | "edit" => Said::Edit(rest),
        "r" | "reject" | "n" | "no" => Said::Reject(rest),
        "l" | "reply" => Said::Reply(rest),
        "v" | "view" if rest.is_empty() => Said::View,
        "d" | "later" if rest.is_empty() => Said::Later,
        _ => Said::Unclear,
    }
}

/// Asks about one call until there is an answer.
///
/// # Errors
/// What standard output fails with; that the person wants to leave.
pub(crate) async fn ask<W: std::io::Write>(
    pause: &Pause,
    lead: &str,
    terminal: &mut Terminal<W>,
    input: &mut Input,
    signals: &mut Signals,
) -> Result<Answer, Problem> {
    let style = terminal.style();
    let mut show = Some(Much::Beginning);
    loop {
        if let Some(much) = show.take() {
            terminal.line(&format!("\n{lead}{}", shown::call(pause, much, style)))?;
        }
        terminal.ask(&format!("{} > ", shown::choices(pause)))?;
        let line = match listen(Want::Answer, input, signals).await? {
            Some(Heard::Text(line)) => line,
            Some(Heard::TooLong) => {
                terminal.line("That was too long to be an answer.")?;
                continue;
            }
            // Neither of them ended the line of the question.
            Some(Heard::Over) => {
                terminal.line("")?;
                return Ok(Answer::Gone);
            }
            None => {
                terminal.line("")?;
                return Ok(Answer::Later);
            }
        };
        let decision = match understand(&line) {
            Said::Approve => Decision::Approve,
            Said::Later => return Ok(Answer::Later),
            Said::View => {
                show = Some(Much::Everything);
                continue;
            }
            Said::Reject(reason) => {
                let reason =
                    match more(reason, "why, for the model (empty for no reason)", terminal, input, signals).await? {
                        Some(reason) => reason,
                        None => continue,
                    };
                Decision::Reject { reason: Some(reason).filter(|reason| !reason.is_empty()) }
            }
            Said::Reply(content) => {
                match more(content, "the result that the model reads", terminal, input, signals).await? {
                    Some(content) if !content.is_empty() => Decision::Reply { content },
                    Some(_) | None => continue,
                }
            }
            Said::Edit(args) => {
                let args =
                    if args.is_empty() { edit(pause, terminal, input, signals).await? } else { Some(args.to_owned()) };
                let Some(args) = args else { continue };
                match Decision::edit(&args) {
                    Ok(decision) => decision,
                    Err(error) => {
                        terminal.line(&one_line(error.message(), 500))?;
                        continue;
                    }
                }
            }
            Said::Unclear => {
                terminal.line("Answer with one of the letters; nothing was decided.")?;
                continue;
            }
        };
        return Ok(Answer::Decide(decision));
    }
}

/// What is typed; `None` for Ctrl-C.
async fn listen(want: Want, input: &mut Input, signals: &mut Signals) -> Result<Option<Heard>, Problem> {
    tokio::select! {
        heard = input.next(want) => Ok(Some(heard)),
        signal = signals.next() => match signal {
            Signal::Interrupt => Ok(None),
            Signal::Terminate => Err(Problem::Quit),
        },
    }
}

/// The rest of an answer: what stood behind its letter, else another line. `None` to be asked again.
async fn more<W: std::io::Write>(
    given: &str,
    question: &str,
    terminal: &mut Terminal<W>,
    input: &mut Input,
    signals: &mut Signals,
) -> Result<Option<String>, Problem> {
    if !given.is_empty() {
        return Ok(Some(given.to_owned()));
    }
    terminal.ask(&format!("{question}: "))?;
    Ok(match listen(Want::Line, input, signals).await? {
        Some(Heard::Text(line)) => Some(line.trim().to_owned()),
        // Without an end nothing was said.
        Some(Heard::TooLong) => None,
        // Neither of them ended the line of the question.
        Some(Heard::Over) | None => {
            terminal.line("")?;
            None
        }
    })
}

/// New arguments: from the person's editor, or typed as JSON. `None` to be asked again.
async fn edit<W: std::io::Write>(
    pause: &Pause,
    terminal: &mut Terminal<W>,
    input: &mut Input,
    signals: &mut Signals,
) -> Result<Option<String>, Problem> {
    if input.is_terminal
        && let Some(editor) = editor::chosen()
    {
        return match editor::edit(&editor, &pause.args, signals).await {
            Ok(Some(args)) => Ok(Some(args)),
            Ok(None) => {
                terminal.line("Nothing was changed.")?;
                Ok(None)
            }
            Err(error) => {
                terminal.line(&one_line(error.message(), 500))?;
                Ok(None)
            }
        };
    }
    terminal.line(&format!("now: {}", one_line(pause.args.as_str(), usize::MAX)))?;
    more("", "new arguments as a JSON object (empty to go back)", terminal, input, signals)
        .await
        .map(|args| args.filter(|args| !args.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        for yes in ["a", " Y ", "yes", "approve"] {
            assert_eq!(understand(yes), Said::Approve);
        }
        for unclear in ["", "a look first", "ok", "yes but", "aa", "list files"] {
            assert_eq!(understand(unclear), Said::Unclear, "{unclear}");
        }
        assert_eq!(understand("r not on a Sunday"), Said::Reject("not on a Sunday"));
        assert_eq!(understand("no"), Said::Reject(""));
        assert_eq!(understand("l  it is 5"), Said::Reply("it is 5"));
        assert_eq!(understand("e {\"a\": 1}"), Said::Edit("{\"a\": 1}"));
        assert_eq!(understand("later"), Said::Later);
    }
}
