//! The `cepa` command: an agent in the terminal.

mod approve;
mod args;
mod audit;
mod chat;
mod config;
mod doctor;
mod drive;
mod editor;
mod exit;
mod input;
mod json_lines;
mod list;
mod model;
mod offline;
mod places;
mod probe;
mod recover;
mod render;
mod run;
mod session;
mod shown;
mod signals;
mod stderr;
mod style;
mod visible;

use std::process::ExitCode;

use cepa::{Decision, Error, ErrorKind};
use clap::Parser;

use args::{Cli, Command};
use config::Settings;
use exit::{Exit, Problem};
use session::Session;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output; if nobody reads them there is nothing to add.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Completed }.into();
        }
    };
    stderr::show_warnings();
    let exit = match work(cli) {
        Ok(exit) => exit,
        Err(problem) => {
            if let Some(line) = problem.line() {
                stderr::note(&format!("cepa: {line}"));
            }
            problem.exit()
        }
    };
    exit.into()
}

fn work(cli: Cli) -> Result<Exit, Problem> {
    let here = std::env::current_dir().map_err(|error| {
        let text = format!("the folder that this was started in cannot be used ({error}): go to another one");
        Error::new(ErrorKind::InvalidConfig, text)
    })?;
    let settings = Settings::read(&cli.options, &here, &places::process_env)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
        Error::new(ErrorKind::InvalidConfig, format!("the system gives this process no more resources ({error})"))
    })?;
    let mut session = Session::new(settings);
    let done = runtime.block_on(async {
        signals::outlive_the_file_limit();
        command(&mut session, cli.command.unwrap_or(Command::Chat)).await
    });
    // The store closes its file; what still waits in a read is left behind.
    drop(session);
    runtime.shutdown_background();
    done
}

async fn command(session: &mut Session, command: Command) -> Result<Exit, Problem> {
    match command {
        Command::Chat => chat::chat(session).await,
        Command::Run { prompt, json } => run::run(session, &prompt, json).await,
        Command::Pending { json } => list::pending(session, json).await,
        Command::Approve { decide, changed } => run::decide(session, &decide, Some(&changed), Decision::Approve).await,
        Command::Reject { decide, reason } => {
            let reason = Some(run::text_or_stdin(&reason)?).filter(|reason| !reason.trim().is_empty());
            run::decide(session, &decide, None, Decision::Reject { reason }).await
        }
        Command::Edit { decide, changed, args } => {
            let decision = Decision::edit(&run::text_or_stdin(&[args])?)?;
            run::decide(session, &decide, Some(&changed), decision).await
        }
        Command::Reply { decide, text } => {
            let content = run::text_or_stdin(&text)?;
            run::decide(session, &decide, None, Decision::Reply { content }).await
        }
        Command::Conversations { json, limit } => list::conversations(session, json, limit).await,
        Command::History { id, json } => list::history(session, &id, json).await,
        Command::Audit { json } => audit::audit(session, json).await,
        Command::Doctor => doctor::doctor(session).await,
        Command::Recover => recover::recover(session).await,
    }
}
