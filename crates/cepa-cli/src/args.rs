//! The command line: commands, options, and what `--help` says about them.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

const EXIT_CODES: &str = "Exit codes:
  0    done: the turn is completed
  1    an error; what it was is said on standard error in one line
  2    the command line or a setting is wrong, or the key is missing
  3    the turn waits for a decision: see `cepa pending`
  4    the turn used up its tool calls (max_batches)
  130  cancelled (Ctrl-C)
  141  nobody reads the output any more";

const ABOUT: &str =
    "An agent in the terminal: it talks with you, works in one folder, and asks before it changes anything.

Without a command it opens a chat.";

const MODELS: &str = "The model: --model, else `model` in cepa.toml, else the key in OPENAI_API_KEY or ANTHROPIC_API_KEY, else an Ollama or
llama.cpp server on this machine, else a small stand-in that needs no network. A key of another provider, such as
GEMINI_API_KEY or GOOGLE_API_KEY, chooses nothing by itself: name its model.

Settings are read from cepa.toml in this folder, and below it in the user's configuration folder (`cepa doctor` says where):
model, base_url, api_key_env, system_prompt, max_batches, root, db.";

/// What was asked for.
#[derive(Debug, Parser)]
#[command(name = "cepa", version, about = ABOUT, after_help = MODELS, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) options: Options,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Options of every command.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Options {
    /// The model: openai/NAME, openai-responses/NAME, anthropic/NAME, gemini/NAME, ollama/NAME, llama.cpp, offline, or another provider of the catalog
    #[arg(long, global = true, value_name = "PROVIDER/NAME")]
    pub(crate) model: Option<String>,
    /// Where the model's server is, if not at its usual address
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// The conversation to continue, or the id of a new one
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) conversation: Option<String>,
    /// The folder that the tools work in [default: this one]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// The database that keeps conversations [default: in the user's data folder]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) db: Option<PathBuf>,
    /// Who decides, for the audit trail [default: the user of this system]
    #[arg(long = "as", global = true, value_name = "NAME")]
    pub(crate) actor: Option<String>,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Talk (also what happens without a command)
    Chat,
    /// One turn, for scripts. Calls that wait in the conversation are cancelled by the new message
    #[command(after_help = EXIT_CODES)]
    Run {
        /// What to say; `-` reads it from standard input. What is piped in beside a prompt is added to it
        prompt: Vec<String>,
        /// Print events as JSON lines; the last one is the result
        #[arg(long)]
        json: bool,
    },
    /// List the calls that wait for a decision
    Pending {
        /// As a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Let a waiting call run as it was shown; the turn goes on
    #[command(after_help = EXIT_CODES)]
    Approve {
        #[command(flatten)]
        decide: Decide,
        #[command(flatten)]
        changed: Changed,
    },
    /// Do not let a waiting call run
    #[command(after_help = EXIT_CODES)]
    Reject {
        #[command(flatten)]
        decide: Decide,
        /// Why, for the model
        reason: Vec<String>,
    },
    /// Let a waiting call run with other arguments
    #[command(after_help = EXIT_CODES)]
    Edit {
        #[command(flatten)]
        decide: Decide,
        #[command(flatten)]
        changed: Changed,
        /// The arguments: a JSON object; `-` reads it from standard input
        args: String,
    },
    /// Answer in the place of a waiting call, which does not run
    #[command(after_help = EXIT_CODES)]
    Reply {
        #[command(flatten)]
        decide: Decide,
        /// The result that the model reads; `-` reads it from standard input
        #[arg(required = true)]
        text: Vec<String>,
    },
    /// List the conversations, the last one first
    Conversations {
        /// As a JSON array
        #[arg(long)]
        json: bool,
        /// How many
        #[arg(long, short = 'n', default_value_t = 50, value_name = "NUMBER", value_parser = at_least_one)]
        limit: usize,
    },
    /// Show a conversation
    History {
        /// Its id
        id: String,
        /// As JSON lines, one message each
        #[arg(long)]
        json: bool,
    },
    /// Show what was asked of people, what they decided, and what then ran; of one conversation with --conversation
    Audit {
        /// As JSON lines, one entry each
        #[arg(long)]
        json: bool,
    },
    /// Check settings, model, database and tools, and say what is wrong
    Doctor,
    /// Finish the turns that a crash interrupted, or whose calls waited too long for a decision
    #[command(after_help = EXIT_CODES)]
    Recover,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("give at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

/// Which call is decided, and how the turn that goes on is shown.
#[derive(Args, Clone, Debug)]
pub(crate) struct Decide {
    /// The pause's id, from `cepa pending`
    pub(crate) pause: String,
    /// Print events as JSON lines; the last one is the result
    #[arg(long)]
    pub(crate) json: bool,
}

/// For the decisions that let a call run.
#[derive(Args, Clone, Debug)]
pub(crate) struct Changed {
    /// Let the call run though its tool has changed since it was shown
    #[arg(long)]
    pub(crate) accept_changed_tools: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_stand_before_or_after_the_words() {
        let cli = Cli::try_parse_from(["cepa", "--db", "a.db", "run", "say", "hello", "--model", "offline"]).unwrap();
        assert_eq!(cli.options.db.as_deref(), Some(std::path::Path::new("a.db")));
        assert_eq!(cli.options.model.as_deref(), Some("offline"));
        let Some(Command::Run { prompt, json }) = cli.command else { panic!("{:?}", cli.command) };
        assert_eq!((prompt, json), (vec!["say".to_owned(), "hello".to_owned()], false));
    }
}
