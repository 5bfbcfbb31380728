//! The chat: a prompt, turns, decisions in place, and a few commands that begin with a slash.

use std::{
    collections::HashSet,
    io::{self, IsTerminal, Stdout},
    path::Path,
};

use cepa::{CancellationToken, Decisions, ErrorKind, Pause, TurnResult, TurnStream, ids};

use crate::{
    approve::{self, Answer},
    config::Db,
    config::nearest,
    drive::{View, drive},
    exit::{Exit, Problem},
    input::{self, Heard, Input, Want},
    list,
    render::Terminal,
    run,
    session::Session,
    shown,
    signals::{Signal, Signals},
    stderr,
    style::Style,
    visible::one_line,
};

const HELP: &str = "  /new            begin a new conversation
  /open ID        continue another one
  /pending        decide the calls that wait
  /history        show this conversation
  /tools          list the tools
  /retry          send the last message again
  /quit           leave (also Ctrl-D)
Ctrl-C cancels what runs; once more leaves.
Pasted lines are one message. A line that ends with \\ goes on in the next one.";

const COMMANDS: [&str; 8] = ["/help", "/new", "/open", "/pending", "/history", "/tools", "/retry", "/quit"];

/// One chat.
struct Chat<'a> {
    session: &'a mut Session,
    terminal: Terminal<Stdout>,
    input: Input,
    signals: Signals,
    /// The conversation's id.
    id: String,
    /// The last message, for `/retry`.
    last: Option<String>,
    /// Ctrl-C was the last thing that came: once more leaves.
    is_leaving: bool,
    /// Whether both sides are a terminal, so that a prompt makes sense.
    has_prompt: bool,
}

/// Whether the chat goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    GoOn,
    Leave,
}

/// Talks until the person leaves.
///
/// # Errors
/// What cannot be told at the prompt: a model that cannot be chosen, a folder that is not there, a closed output.
pub(crate) async fn chat(session: &mut Session) -> Result<Exit, Problem> {
    let named = session.settings.conversation.clone();
    let root = session.root()?;
    let model = session.model().await?.line();
    let mut chat = Chat {
        terminal: Terminal::new(io::stdout(), Style::of_stdout()),
        input: Input::new(),
        signals: Signals::listen()?,
        id: named.clone().unwrap_or_else(|| ids::new_id("c")),
        last: None,
        is_leaving: false,
        has_prompt: io::stdin().is_terminal() && io::stdout().is_terminal(),
        session,
    };
    chat.welcome(&model, &root)?;
    if named.is_some() {
        // Before the prompt: what waits there is asked first.
        chat.enter().await?;
    }
    let left = chat.talk().await;
    match left {
        Ok(exit) => chat.farewell().await.map(|()| exit),
        Err(problem) => Err(problem),
    }
}

impl Chat<'_> {
    fn welcome(&mut self, model: &str, root: &Path) -> Result<(), Problem> {
        let style = self.terminal.style();
        self.terminal.line(&format!("{} {}", style.bold("cepa"), env!("CARGO_PKG_VERSION")))?;
        self.terminal.line(model)?;
        let root = one_line(&root.display().to_string(), 300);
        self.terminal.line(&format!("conversation: {}   folder: {root}   /help for help", one_line(&self.id, 100)))?;
        Ok(())
    }

    async fn talk(&mut self) -> Result<Exit, Problem> {
        let mut has_looked = self.session.settings.conversation.is_some();
        loop {
            self.prompt("> ")?;
            if !std::mem::replace(&mut has_looked, true) {
                self.look_for_waiting().await?;
            }
            let Some(message) = self.listen().await? else {
                return Ok(if self.is_leaving { Exit::Cancelled } else { Exit::Completed });
            };
            let heard = match message.trim() {
                "" => Ok(Then::GoOn),
                command if message.starts_with('/') && !command.contains('\n') => self.command(command).await,
                _ => self.say(message).await.map(|()| Then::GoOn),
            };
            match heard {
                Ok(Then::GoOn) => {}
                Ok(Then::Leave) => return Ok(Exit::Completed),
                Err(problem @ Problem::Told(_)) => {
                    // The conversation stands; the person decides what to do about it.
                    if let Some(line) = problem.line() {
                        stderr::note(&format!("cepa: {line}"));
                    }
                }
                Err(problem @ (Problem::Quit | Problem::OutputClosed)) => return Err(problem),
            }
        }
    }

    fn prompt(&mut self, prompt: &str) -> Result<(), Problem> {
        if self.has_prompt {
            let prompt = self.terminal.style().bold(prompt);
            self.terminal.ask(&prompt)?;
        }
        Ok(())
    }

    /// The next message; `None` to leave. A line that ends with a backslash goes on.
    async fn listen(&mut self) -> Result<Option<String>, Problem> {
        let mut message = String::new();
        loop {
            tokio::select! {
                heard = self.input.next(Want::Message) => {
                    match heard {
                        Heard::Over if message.is_empty() => {
                            self.is_leaving = false;
                            return Ok(None);
                        }
                        Heard::Over => {}
                        Heard::TooLong => {
                            stderr::note(&format!("cepa: {}", input::too_long().message()));
                            message.clear();
                            self.prompt("> ")?;
                            continue;
                        }
                        Heard::Text(line) => {
                            self.is_leaving = false;
                            if let Some(line) = line.strip_suffix('\\') {
                                message.push_str(line);
                                message.push('\n');
                                self.prompt(". ")?;
                                continue;
                            }
                            message.push_str(&line);
                        }
                    }
                    return Ok(Some(message));
                }
                signal = self.signals.next() => {
                    if signal == Signal::Terminate || std::mem::replace(&mut self.is_leaving, true) {
                        self.is_leaving = true;
                        return Ok(None);
                    }
                    message.clear();
                    self.input.drop_begun();
                    self.terminal.line("")?;
                    self.terminal.line("Ctrl-C again, or Ctrl-D, leaves.")?;
                    self.prompt("> ")?;
                }
            }
        }
    }

    async fn command(&mut self, line: &str) -> Result<Then, Problem> {
        let (command, rest) =
            line.split_once(char::is_whitespace).map_or((line, ""), |(word, rest)| (word, rest.trim()));
        match command {
            "/help" | "/?" => self.terminal.line(HELP)?,
            "/quit" | "/exit" | "/q" => return Ok(Then::Leave),
            "/new" => {
                self.id = ids::new_id("c");
                self.last = None;
                self.terminal.line(&format!("conversation: {}", self.id))?;
            }
            "/open" if rest.is_empty() => {
                self.terminal.line("Which one? /open ID; `cepa conversations` lists them.")?;
            }
            "/open" => {
                rest.clone_into(&mut self.id);
                self.last = None;
                let new = if self.is_new().await? { " (new: nothing was said in it yet)" } else { "" };
                self.terminal.line(&format!("conversation: {}{new}", one_line(&self.id, 100)))?;
                self.enter().await?;
            }
            "/pending" => {
                if !self.decide_waiting().await? {
                    self.terminal.line("Nothing waits for a decision in this conversation.")?;
                    self.look_for_waiting().await?;
                }
            }
            "/history" => {
                let count = match self.session.existing_store()? {
                    Some(store) => list::print_history(&*store, &self.id, false, self.terminal.out()?).await?,
                    None => 0,
                };
                if count == 0 {
                    self.terminal.line("Nothing was said yet.")?;
                }
            }
            "/tools" => self.list_tools()?,
            "/retry" => match self.last.clone() {
                Some(last) => self.say(last).await?,
                None => self.terminal.line("Nothing was said yet.")?,
            },
            _ => {
                let hint = nearest(command, COMMANDS.into_iter()).unwrap_or("/help");
                let command = one_line(command, 60);
                self.terminal.line(&format!(
                    "There is no command {command}. Do you mean {hint}? To say it, begin with a space."
                ))?;
            }
        }
        Ok(Then::GoOn)
    }

    fn list_tools(&mut self) -> Result<(), Problem> {
        for tool in cepa_cli::tools::ready_tools(&self.session.root()?)? {
            let asks = if tool.flags().sensitive { " (asks first)" } else { "" };
            let does = tool.spec().description.split(". ").next().unwrap_or_default();
            self.terminal.line(&format!("  {}{asks}: {}", tool.name(), one_line(does.trim_end_matches('.'), 100)))?;
        }
        Ok(())
    }

    /// One turn.
    async fn say(&mut self, message: String) -> Result<(), Problem> {
        self.last = Some(message.clone());
        let conversation = self.session.conversation(&self.id).await?;
        let cancel = CancellationToken::new();
        let turn = conversation.chat_stream_with(message, self.session.options(&cancel)?);
        let waiting = self.go_on(turn, &cancel).await?;
        self.decide(waiting).await
    }

    /// Shows a turn to its end. Returns what waits then.
    async fn go_on(&mut self, turn: TurnStream, cancel: &CancellationToken) -> Result<Vec<Pause>, Problem> {
        let driven = drive(turn, cancel, &mut self.signals, &mut self.terminal).await;
        self.is_leaving = cancel.is_cancelled();
        match driven {
            Ok(result) => {
                self.end(&result)?;
                Ok(result.pending)
            }
            Err(problem) => {
                self.terminal.out()?;
                Err(problem)
            }
        }
    }

    fn end(&mut self, result: &TurnResult) -> Result<(), Problem> {
        self.terminal.result(result, "")?;
        if let Some(line) = run::ended_early(result) {
            let line = self.terminal.style().dim(&format!("({line})"));
            self.terminal.line(&line)?;
        }
        Ok(())
    }

    /// Opens a conversation that may be there: finishes what a crash interrupted, asks what waits.
    async fn enter(&mut self) -> Result<(), Problem> {
        if self.session.existing_store()?.is_none() {
            return Ok(());
        }
        let id = self.id.clone();
        tokio::select! {
            finished = self.session.finish_interrupted(&id) => finished?,
            signal = self.signals.next() => match signal {
                Signal::Interrupt => self.is_leaving = true,
                Signal::Terminate => return Err(Problem::Quit),
            },
        }
        self.decide_waiting().await.map(|_| ())
    }

    /// Whether the store knows nothing of this conversation.
    async fn is_new(&mut self) -> Result<bool, Problem> {
        let Some(store) = self.session.existing_store()? else { return Ok(true) };
        Ok(store.page(&self.id, 0, 1).await?.is_empty() && store.live_turns(Some(&self.id)).await?.is_empty())
    }

    /// Asks what waits in this conversation; whether anything did.
    async fn decide_waiting(&mut self) -> Result<bool, Problem> {
        let Some(store) = self.session.existing_store()? else { return Ok(false) };
        let waiting = store.pending(Some(&self.id)).await?;
        let any = !waiting.is_empty();
        self.decide(waiting).await?;
        Ok(any)
    }

    /// Asks about waiting calls, one after another, and drives the turn on, until nothing waits or the person says later.
    async fn decide(&mut self, mut waiting: Vec<Pause>) -> Result<(), Problem> {
        let mut told = HashSet::new();
        while let Some(pause) = waiting.first().cloned() {
            let of = waiting.len();
            if of > 1 && told.insert(pause.turn.clone()) {
                self.terminal.line(&format!("{of} calls wait for your decision:"))?;
                for pause in &waiting {
                    self.terminal.line(&format!("  {}", shown::summary(pause)))?;
                }
            }
            let mut lead = if of > 1 { format!("{of} left. ") } else { String::new() };
            if let Some(root) = self.session.other_root(&pause).await? {
                lead.push_str(&format!("In the folder {}: ", one_line(&root.display().to_string(), 300)));
            }
            let (terminal, input, signals) = (&mut self.terminal, &mut self.input, &mut self.signals);
            let decision = match approve::ask(&pause, &lead, terminal, input, signals).await? {
                Answer::Decide(decision) => decision,
                Answer::Later => {
                    self.is_leaving = true;
                    self.terminal.line("It goes on waiting: /pending asks again. A new message cancels it.")?;
                    return Ok(());
                }
                Answer::Gone => return Ok(()),
            };
            let conversation = self.session.conversation_of_turn(&pause.turn, &pause.conversation).await?;
            let cancel = CancellationToken::new();
            let options = self.session.options(&cancel)?;
            let turn = conversation.resume_stream(Decisions::one(&pause.id, decision), options);
            waiting = match self.go_on(turn, &cancel).await {
                Ok(waiting) => waiting,
                Err(Problem::Told(failed)) if is_about_the_decision(failed.error.kind()) => {
                    self.terminal.line(&one_line(failed.error.message(), 1_000))?;
                    self.session.store()?.pending(Some(&pause.conversation)).await?
                }
                Err(problem) => return Err(problem),
            };
        }
        Ok(())
    }

    /// Says what waits elsewhere. The prompt is there already: it is written over, and repeated below.
    async fn look_for_waiting(&mut self) -> Result<(), Problem> {
        // What is wrong with the store is told when it is needed.
        let Ok(Some(store)) = self.session.existing_store() else { return Ok(()) };
        let Ok(waiting) = store.pending(None).await else { return Ok(()) };
        let mut ids: Vec<&str> = waiting.iter().map(|pause| pause.conversation.as_str()).collect();
        ids.dedup();
        let Some(last) = ids.last() else { return Ok(()) };
        let calls =
            if waiting.len() == 1 { "1 call waits".to_owned() } else { format!("{} calls wait", waiting.len()) };
        if self.has_prompt {
            self.terminal.ask("\r")?;
        }
        self.terminal.line(&format!("{calls} for a decision elsewhere: /open {} to decide", one_line(last, 100)))?;
        self.prompt("> ")
    }

    /// Says what is left behind.
    async fn farewell(&mut self) -> Result<(), Problem> {
        if self.has_prompt {
            self.terminal.line("")?;
        }
        let store = match &self.session.settings.db {
            Db::File(_) => self.session.existing_store().ok().flatten(),
            Db::Nowhere => None,
        };
        let Some(store) = store else { return Ok(()) };
        let waiting = store.pending(Some(&self.id)).await.unwrap_or_default();
        for pause in &waiting {
            let id = one_line(&self.id, 100);
            self.terminal.line(&format!("still waits: {}", shown::summary(pause)))?;
            self.terminal.line(&format!("  cepa --conversation {id}   or   cepa approve {}", pause.id))?;
        }
        Ok(())
    }
}

/// Whether an error says something about the decision that was just made, and the call may still wait.
fn is_about_the_decision(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::InvalidInput
            | ErrorKind::InvalidTool
            | ErrorKind::AlreadyDecided
            | ErrorKind::Expired
            | ErrorKind::NotPaused
    )
}
