//! Arguments changed in the person's own editor.

use std::{ffi::OsString, io::Write as _};

use cepa::{Error, ErrorKind, RawJson};

use crate::{places::process_env, signals::Signals};

/// The editor of this person, if one is set.
pub(crate) fn chosen() -> Option<OsString> {
    process_env("VISUAL").or_else(|| process_env("EDITOR"))
}

/// The arguments as they are left in the editor; `None` if they are as they were.
///
/// # Errors
/// `invalid_input` if the editor cannot be started, or failed.
pub(crate) async fn edit(editor: &OsString, args: &RawJson, signals: &mut Signals) -> Result<Option<String>, Error> {
    let failed = |what: String| Error::new(ErrorKind::InvalidInput, format!("the editor {what}; nothing was decided"));
    let before = pretty(args);
    // Only this user can read it, and it is removed in the end.
    let mut file = tempfile::Builder::new()
        .prefix("cepa-arguments-")
        .suffix(".json")
        .tempfile()
        .map_err(|error| failed(format!("got no file ({error})")))?;
    file.write_all(before.as_bytes()).map_err(|error| failed(format!("got no file ({error})")))?;
    // `EDITOR` may hold options; the shell splits them, as every program that uses it does.
    let mut script = editor.clone();
    script.push(" \"$1\"");
    let mut command = tokio::process::Command::new("sh");
    command.arg("-c").arg(script).arg("sh").arg(file.path());
    let running = command.status();
    tokio::pin!(running);
    let status = loop {
        tokio::select! {
            status = &mut running => break status,
            // It is the editor's Ctrl-C.
            _ = signals.next() => {}
        }
    };
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(failed(format!("ended with {status}"))),
        Err(error) => return Err(failed(format!("cannot be started ({error})"))),
    }
    let after = std::fs::read_to_string(file.path()).map_err(|error| failed(format!("left no text ({error})")))?;
    Ok(Some(after.trim().to_owned()).filter(|after| *after != before.trim()))
}

/// The arguments in lines; as they are if that would change them.
fn pretty(args: &RawJson) -> String {
    let value = args.read::<serde_json::Value>().ok();
    let has_same_numbers = |value: &serde_json::Value| {
        let digits = |text: &str| text.chars().filter(char::is_ascii_digit).count();
        digits(&value.to_string()) == digits(args.as_str())
    };
    let pretty = value.filter(has_same_numbers).and_then(|value| serde_json::to_string_pretty(&value).ok());
    pretty.unwrap_or_else(|| args.as_str().to_owned())
}
