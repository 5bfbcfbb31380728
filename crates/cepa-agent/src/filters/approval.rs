//! Asks before a call runs, and waits for the answer on the spot.

use std::{
    fmt,
    future::poll_fn,
    io::{BufRead, IsTerminal, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::Poll,
};

use cepa_core::{
    BoxFuture, Error, ErrorKind, Filter, Next, Tool, ToolCall, ToolOutput, ToolRequest, ToolResponse, ToolStatus,
    Writes,
};

use super::{Place, has_place};
use crate::{texts::Texts, turn::rejected};

/// What somebody who was asked says about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It may run.
    Allow,
    /// It must not.
    Refuse {
        /// Why, for the model.
        reason: Option<String>,
    },
}

impl From<bool> for Answer {
    fn from(allowed: bool) -> Self {
        if allowed { Self::Allow } else { Self::Refuse { reason: None } }
    }
}

type Ask = dyn Fn(ToolCall) -> BoxFuture<'static, Answer> + Send + Sync;

/// Asks about each call before it runs, and waits for the answer; a refused call becomes a result with status
/// `rejected`. Filters further inside can no longer change the arguments that were shown.
///
/// For scripts and terminals. It knows nothing of the loop's gate and its pauses: the process waits, and if it ends, the
/// question is gone. A function that panics refuses.
///
/// ```
/// use cepa_agent::filters::Approval;
/// let approval = Approval::asking(|call| async move { call.name != "delete_everything" });
/// # let _ = approval;
/// ```
#[derive(Clone)]
pub struct Approval {
    place: Place,
    ask: Arc<Ask>,
    only: Arc<dyn Fn(&Tool) -> bool + Send + Sync>,
    texts: Arc<Texts>,
}

has_place!(Approval);

impl Approval {
    /// Asks an async function, which answers with an [`Answer`] or a `bool`.
    pub fn asking<F, Fut>(ask: F) -> Self
    where
        F: Fn(ToolCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: Into<Answer>> + Send + 'static,
    {
        let ask = move |call| -> BoxFuture<'static, Answer> {
            let answer = ask(call);
            Box::pin(async move { answer.await.into() })
        };
        Self {
            place: Place::named("approval"),
            ask: Arc::new(ask),
            only: Arc::new(|_| true),
            texts: Arc::new(Texts::default()),
        }
    }

    /// Asks on the terminal: the question goes to stderr, the answer (`y`, or `n` and a reason) comes from stdin. Where
    /// stdin is no terminal, nobody can be asked, and the call is refused.
    pub fn terminal() -> Self {
        Self::asking(ask_terminal)
    }

    /// Asks only about tools for which this holds; all others run unasked.
    pub fn only(mut self, which: impl Fn(&Tool) -> bool + Send + Sync + 'static) -> Self {
        self.only = Arc::new(which);
        self
    }

    /// Replaces the texts that the model reads about a refused call.
    pub fn texts(mut self, texts: Texts) -> Self {
        self.texts = Arc::new(texts);
        self
    }

    async fn answer(&self, request: &ToolRequest) -> Result<Answer, Error> {
        let ask = || (self.ask)(request.call.clone());
        let Ok(mut asked) = catch_unwind(AssertUnwindSafe(ask)) else { return Ok(failed()) };
        let answer = poll_fn(|context| {
            let polled = catch_unwind(AssertUnwindSafe(|| asked.as_mut().poll(context)));
            polled.unwrap_or_else(|_| Poll::Ready(failed()))
        });
        tokio::select! {
            biased;
            () = request.context.cancel().cancelled() => {
                Err(Error::new(ErrorKind::Cancelled, "cancelled while waiting for an answer"))
            }
            answer = answer => Ok(answer),
        }
    }
}

fn failed() -> Answer {
    Answer::Refuse { reason: Some("the question could not be asked".to_owned()) }
}

impl fmt::Debug for Approval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approval").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Filter<Tool> for Approval {
    fn around(&self, mut request: ToolRequest, next: Next<Tool>) -> BoxFuture<'_, Result<ToolResponse, Error>> {
        Box::pin(async move {
            if !(self.only)(&request.tool) {
                return next.run(request).await;
            }
            match self.answer(&request).await? {
                Answer::Allow => {
                    // The tool compares: what was shown is what runs. An earlier decision is not overruled.
                    let shown = request.call.args.clone();
                    request.decided.get_or_insert(shown);
                    next.run(request).await
                }
                Answer::Refuse { reason } => {
                    let content = rejected(&self.texts, reason.as_deref()).into();
                    let output = ToolOutput { content, status: ToolStatus::Rejected };
                    Ok(ToolResponse { output, writes: Writes::new() })
                }
            }
        })
    }
}

/// One question at a time: calls may run side by side.
static TERMINAL: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

async fn ask_terminal(call: ToolCall) -> Answer {
    let _turn = TERMINAL.lock().await;
    let (answer, answered) = tokio::sync::oneshot::channel();
    // A thread of its own: a runtime would wait for a blocked read when it is shut down.
    std::thread::spawn(move || {
        let stdin = std::io::stdin();
        let asked = if stdin.is_terminal() {
            ask_on(&call, &mut std::io::stderr().lock(), &mut stdin.lock())
        } else {
            Ok(Answer::Refuse { reason: Some("there is no terminal on which to ask for approval".to_owned()) })
        };
        // Nobody waits for it any more if the turn was cancelled.
        drop(answer.send(asked.unwrap_or_else(|_| failed())));
    });
    answered.await.unwrap_or_else(|_| failed())
}

/// Asks one question. The end of the input is a no.
fn ask_on(call: &ToolCall, out: &mut impl Write, input: &mut impl BufRead) -> std::io::Result<Answer> {
    write!(out, "Run {} {}? [y/N] ", visible(&call.name), visible(call.args.as_str()))?;
    out.flush()?;
    let mut line = String::new();
    input.read_line(&mut line)?;
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    Ok(match word.to_lowercase().as_str() {
        "y" | "yes" if rest.is_empty() => Answer::Allow,
        "n" | "no" => Answer::Refuse { reason: Some(rest.trim().to_owned()).filter(|reason| !reason.is_empty()) },
        _ => Answer::Refuse { reason: None },
    })
}

/// A text that cannot move the cursor, hide itself or turn its direction: what is approved is what is seen.
fn visible(text: &str) -> String {
    let hides = |c: char| {
        let invisible = ['\u{200b}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2060}'..='\u{206f}'];
        c.is_control() || c == '\u{feff}' || c == '\u{ad}' || invisible.iter().any(|range| range.contains(&c))
    };
    text.chars().map(|c| if hides(c) { c.escape_unicode().to_string() } else { c.to_string() }).collect()
}

#[cfg(test)]
#[path = "approval_tests.rs"]
mod tests;
