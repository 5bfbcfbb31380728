//! How many tokens a message has: a counter of the caller's, or an estimate that learns from reported usage.

use cepa_core::{AssistantMessage, Content, Media, Message, Origin, Part, Source};

/// Counts the tokens of a message as it is sent.
///
/// A function is a counter:
///
/// ```
/// use cepa_agent::Window;
/// let window = Window::tokens(8_000, |message: &cepa_core::Message| message.text().len() as u64 / 4)?;
/// # let _ = window;
/// # Ok::<(), cepa_core::Error>(())
/// ```
pub trait TokenCounter: Send + Sync + 'static {
    /// The tokens of one message, with its calls and their arguments.
    fn count(&self, message: &Message) -> u64;

    /// Whether the counts are estimates, to be scaled by the usage that the conversation's replies report.
    fn is_estimate(&self) -> bool {
        false
    }
}

impl<F: Fn(&Message) -> u64 + Send + Sync + 'static> TokenCounter for F {
    fn count(&self, message: &Message) -> u64 {
        self(message)
    }
}

/// The counter for any model: a token for four bytes (so about one for a Chinese character), scaled by what the
/// provider reported for this conversation.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokenEstimate;

/// What the frame of a message costs: its role, its separators.
const PER_MESSAGE: u64 = 4;
/// An image, or anything behind a URL, of which only the provider knows the size.
const PER_MEDIUM: u64 = 1000;

fn of_text(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}

fn of_medium(medium: &Media) -> u64 {
    match &medium.source {
        Source::Bytes(bytes) => PER_MEDIUM.max(bytes.len() as u64 / 32),
        Source::Url(_) => PER_MEDIUM,
    }
}

fn of_content(content: &Content) -> u64 {
    let of_part = |part: &Part| match part {
        Part::Text(text) => of_text(text),
        Part::Image(_) => PER_MEDIUM,
        Part::Audio(medium) | Part::Document(medium) => of_medium(medium),
        // Sent to nobody.
        Part::Reasoning(_) | Part::Other(_) => 0,
    };
    match content {
        Content::Text(text) => of_text(text),
        Content::Parts(parts) => parts.iter().map(of_part).sum(),
    }
}

impl TokenCounter for TokenEstimate {
    fn count(&self, message: &Message) -> u64 {
        let content = message.content().map_or(0, of_content);
        let calls = message.tool_calls().iter();
        let calls: u64 = calls.map(|call| PER_MESSAGE + of_text(&call.name) + of_text(call.args.as_str())).sum();
        let replay = match message {
            Message::Assistant(reply) => reply.replay.iter().map(|block| of_text(block.data.as_str())).sum(),
            Message::System(_) | Message::User(_) | Message::Tool(_) => 0,
        };
        PER_MESSAGE + content + calls + replay
    }

    fn is_estimate(&self) -> bool {
        true
    }
}

/// How far the estimates of one conversation are from the truth: `real` tokens were reported where `counted` were
/// counted.
///
/// Two replies that follow each other tell it: by how much the second request was larger is what the messages between
/// them cost. The system prompt and the tools, which nobody counts here, are in both and cancel out.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    real: u64,
    counted: u64,
    before: Option<Reported>,
    /// The view was cut since the last request: the next one is not comparable.
    cut: bool,
}

#[derive(Clone, Debug)]
struct Reported {
    input: u64,
    counted: u64,
    origin: Option<Origin>,
}

/// The weight of the assumption that the estimate is right, in tokens.
const PRIOR: u64 = 2000;
/// What is further off is not an estimate gone wrong but something else: a filter that rewrote the request.
const CREDIBLE: u64 = 4;

impl Default for Scale {
    fn default() -> Self {
        Self { real: PRIOR, counted: PRIOR, before: None, cut: false }
    }
}

impl Scale {
    /// Learns from a reply; `counted` is the count of all messages before it.
    pub(super) fn learn(&mut self, reply: &AssistantMessage, counted: u64) {
        let Some(usage) = reply.usage.filter(|usage| usage.input > 0) else { return };
        if std::mem::take(&mut self.cut) {
            self.before = None;
            return;
        }
        let now = Reported { input: usage.input, counted, origin: reply.origin.clone() };
        let before = self.before.replace(now);
        let Some(before) = before.filter(|before| before.origin == reply.origin) else { return };
        let real = usage.input.saturating_sub(before.input);
        let counted = counted.saturating_sub(before.counted);
        if real > 0 && counted > 0 && real / CREDIBLE <= counted && counted / CREDIBLE <= real {
            self.real = self.real.saturating_add(real);
            self.counted = self.counted.saturating_add(counted);
        }
    }

    /// The view was cut.
    pub(super) fn was_cut(&mut self) {
        self.cut = true;
    }

    /// A count in real tokens, as a fraction: numerator and denominator.
    pub(super) fn apply(&self, counted: u64) -> (u128, u128) {
        (u128::from(counted) * u128::from(self.real), u128::from(self.counted))
    }
}
