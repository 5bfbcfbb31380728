//! What the model is told about calls that did not end with a result of their own.

use cepa_core::ToolSet;

/// The texts, replaceable as a whole (another language, another tone). `{…}` in a text is filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Texts {
    /// A person or the gate refused, without a reason.
    pub rejected: String,
    /// As [`Texts::rejected`], with `{reason}`.
    pub rejected_because: String,
    /// The turn was cancelled before the call began.
    pub cancelled: String,
    /// The time for the turn was up before the call began.
    pub deadline: String,
    /// A new message came while the call waited for a decision.
    pub superseded: String,
    /// Nobody decided in time.
    pub expired: String,
    /// The body was entered and nobody knows how it ended.
    pub unknown: String,
    /// The batches of the turn are used up.
    pub limit: String,
    /// The reply was cut before its end.
    pub cut_reply: String,
    /// The body took longer than `{limit}`.
    pub timeout: String,
    /// Put before the result of a call that ran with other arguments, `{args}`.
    pub edited: String,
    /// Stands where a long result was cut: `{cut}` characters are missing, `{id}` names the result.
    pub cut_result: String,
}

impl Default for Texts {
    fn default() -> Self {
        Self {
            rejected: "Rejected: this call was not allowed and did not run.".into(),
            rejected_because: "Rejected: this call was not allowed and did not run. Reason: {reason}".into(),
            cancelled: "Cancelled: this call did not run.".into(),
            deadline: "Cancelled: the time for this turn was up. This call did not run.".into(),
            superseded: "Cancelled: this call did not run, because the user sent a new message instead of deciding \
                         on it."
                .into(),
            expired: "Expired: nobody decided on this call in time. It did not run.".into(),
            unknown: "Unknown: this call was started and interrupted. It may or may not have had its effect; check \
                      before you repeat it."
                .into(),
            limit: "Not run: the limit of tool calls for this turn was reached.".into(),
            cut_reply: "Not run: the reply was cut before its end, so this call may be incomplete. Send it again, \
                        shorter."
                .into(),
            timeout: "Timed out after {limit}: the call was stopped.".into(),
            edited: "(Run with changed arguments: {args})\n".into(),
            cut_result: "\n[… {cut} characters left out; read them with read_result, id \"{id}\" …]\n".into(),
        }
    }
}

/// The text with its places filled in.
pub(crate) fn fill(text: &str, places: &[(&str, &str)]) -> String {
    places.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

/// What the model is told about a tool that does not exist.
pub(crate) fn unknown_tool(name: &str, offered: &ToolSet) -> String {
    let nearest = offered.iter().map(|tool| (distance(name, tool.name()), tool.name())).min();
    let mut text = format!("There is no tool `{name}`.");
    if let Some((_, nearest)) = nearest.filter(|(distance, nearest)| *distance <= nearest.len().max(3) / 2) {
        text.push_str(&format!(" Did you mean `{nearest}`?"));
    }
    let names: Vec<&str> = offered.iter().map(cepa_core::Tool::name).collect();
    text.push_str(&match names.as_slice() {
        [] => " No tools are available.".to_owned(),
        names => format!(" Available: {}.", names.join(", ")),
    });
    text
}

/// What the model is told about a call that was decided on before its tool changed.
pub(crate) fn changed_tool(name: &str) -> String {
    format!("Not run: the tool `{name}` has changed since this call was decided on. Call it again as it is now.")
}

/// What the model is told about arguments that the tool does not take.
pub(crate) fn bad_arguments(name: &str, why: &str) -> String {
    format!("The call of `{name}` did not run: {why}. Correct the arguments and call it again.")
}

/// How many letters differ (Levenshtein), for names up to 64 letters.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut next = vec![i + 1];
        let mut left = i + 1;
        for ((y, above), diagonal) in b.iter().zip(row.iter().skip(1)).zip(row.iter()) {
            left = (diagonal + usize::from(x != *y)).min(above + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}
