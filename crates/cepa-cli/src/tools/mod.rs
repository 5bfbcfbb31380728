//! The tools that come with the command: files below one folder, a shell, the time.
//!
//! `list_files`, `read_file`, `search_files` and `current_time` change nothing. `write_file`, `edit_file` and `run_shell`
//! are sensitive: a person is asked before they run. The file tools cannot leave the folder; the shell is only started
//! there, it can do what the user can.

mod edit;
#[cfg(unix)]
mod env;
mod glob;
#[cfg(unix)]
mod group;
mod ignored;
mod list;
mod nearest;
#[cfg(unix)]
mod output;
mod read;
mod root;
mod search;
#[cfg(unix)]
mod shell;
#[cfg(test)]
mod testing;
mod text;
mod time;
mod typed;
mod walk;
mod write;

use std::{path::Path, sync::Arc};

use cepa::{CancellationToken, Error, Tool, ToolError};

use root::Root;
use typed::{
    Effect::{ReadOnly, Sensitive},
    file_tool,
};

/// All ready tools, with `root` as the folder that the file tools may touch and the shell starts in.
///
/// # Errors
/// `invalid_config` if `root` is not a folder that can be opened.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// let tools = cepa_cli::tools::ready_tools(folder.path())?;
/// assert!(tools.iter().any(|tool| tool.name() == "read_file" && tool.flags().read_only));
/// assert!(tools.iter().any(|tool| tool.name() == "write_file" && tool.flags().sensitive));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn ready_tools(root: &Path) -> Result<Vec<Tool>, Error> {
    let root = Arc::new(Root::open(root)?);
    let list = "Lists a folder below the working folder: names, sizes, links. Folders end with /.";
    let read = "Reads a text file below the working folder, whole or some of its lines. Tells its size and line count.";
    let search = "Finds the lines of files below the working folder that contain a text or match a regular expression.";
    let write = "Writes a text file below the working folder. An existing file is replaced; missing folders are made.";
    let edit = "Replaces a text that occurs exactly once in a file below the working folder.";
    let time = "Tells the current date, time and weekday, here and in UTC.";
    let tools = vec![
        file_tool("list_files", list, ReadOnly, &root, list::list_files)?,
        file_tool("read_file", read, ReadOnly, &root, read::read_file)?,
        file_tool("search_files", search, ReadOnly, &root, search::search_files)?,
        file_tool("write_file", write, Sensitive, &root, write::write_file)?,
        file_tool("edit_file", edit, Sensitive, &root, edit::edit_file)?,
        Tool::typed("current_time", time, |args: time::CurrentTime, _| async move {
            time::current_time(jiff::Timestamp::now(), &args)
        })?
        .with_flags(ReadOnly.flags("time")),
        #[cfg(unix)]
        shell_tool(root)?,
    ];
    Ok(tools)
}

#[cfg(unix)]
fn shell_tool(root: Arc<Root>) -> Result<Tool, Error> {
    let description = "Runs a command line with sh in the working folder and returns what it prints and its exit code. \
                       It gets no input, and no environment variables that look like keys. What it leaves in the \
                       background is killed when it ends.";
    let tool = Tool::typed("run_shell", description, move |args: shell::RunShell, context| {
        let root = root.clone();
        async move { shell::run_shell(root.path(), &args, context.cancel()).await }
    })?;
    Ok(tool.with_flags(Sensitive.flags("shell")))
}

/// The sign that a call is no longer wanted, for work that runs on a thread.
#[derive(Clone, Debug)]
struct Stop(CancellationToken);

impl Stop {
    fn is_set(&self) -> bool {
        self.0.is_cancelled()
    }

    fn check(&self) -> Result<(), ToolError> {
        if self.is_set() { Err(ToolError::semantic("cancelled")) } else { Ok(()) }
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
