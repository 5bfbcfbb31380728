//! Call ids: on the wire unique in the whole request and of the provider's alphabet; in replies never missing.

use std::{
    borrow::Cow,
    collections::{HashSet, VecDeque},
    hash::{BuildHasher, Hasher, RandomState},
};

use cepa_core::ToolCall;

use super::{hash, seen::Seen};

/// Which ids a provider takes. Ids that it takes are never changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IdRule {
    alphabet: Alphabet,
    min: usize,
    max: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Alphabet {
    /// Visible ASCII.
    Visible,
    /// `[a-zA-Z0-9_-]`.
    Word,
    /// `[a-zA-Z0-9]`.
    Alphanumeric,
}

impl IdRule {
    /// Any visible ASCII: servers that write long ids (vLLM, LiteLLM) get them back unchanged.
    pub const VISIBLE: Self = Self { alphabet: Alphabet::Visible, min: 1, max: 512 };
    /// At most 40 characters: `Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum
    /// length 40` (<https://github.com/vercel/ai/issues/5171>).
    pub const VISIBLE_40: Self = Self { max: 40, ..Self::VISIBLE };
    /// `^[a-zA-Z0-9_-]+$` (<https://github.com/theopenco/llmgateway/pull/3389>).
    pub const WORD: Self = Self { alphabet: Alphabet::Word, min: 1, max: 256 };
    /// The same, at most 64 of them: `Invalid 'input[95].call_id': string too long. Expected a string with maximum length
    /// 64` (<https://github.com/AnswerDotAI/fastllm/issues/45>).
    pub const WORD_64: Self = Self { max: 64, ..Self::WORD };
    /// Nine letters and digits
    /// (<https://docs.vllm.ai/en/v0.15.0/api/vllm/tool_parsers/mistral_tool_parser/>, which names Mistral's own check).
    pub const ALNUM_9: Self = Self { alphabet: Alphabet::Alphanumeric, min: 9, max: 9 };

    /// Whether an id can be sent as it is.
    pub fn accepts(&self, id: &str) -> bool {
        let fits = |byte: u8| match self.alphabet {
            Alphabet::Visible => byte.is_ascii_graphic(),
            Alphabet::Word => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Alphabet::Alphanumeric => byte.is_ascii_alphanumeric(),
        };
        (self.min..=self.max).contains(&id.len()) && id.bytes().all(fits)
    }

    /// The `nth` id in place of `original`: the same for the same question, for ever.
    fn replacement(&self, original: &str, nth: u64) -> String {
        let hash = hash::stable(original, nth);
        match self.alphabet {
            Alphabet::Visible | Alphabet::Word => format!("call_{hash:016x}"),
            Alphabet::Alphanumeric => base62(hash),
        }
    }
}

fn base62(mut hash: u64) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let digit = |rest: u64| usize::try_from(rest).ok().and_then(|at| DIGITS.get(at)).copied().unwrap_or(b'0');
    (0..9)
        .map(|_| {
            let rest = hash % 62;
            hash /= 62;
            char::from(digit(rest))
        })
        .collect()
}

/// The ids of one request, given out call by call in the order of the history.
///
/// Calls and results are paired by position, as [`pairing::heal`](cepa_core::pairing::heal) leaves them: the ids in the
/// history may be missing, empty or repeated. What a call gets depends only on the calls before it, so that it is the
/// same in every later request.
///
/// ```
/// use cepa_core::{Args, ToolCall};
/// use cepa_providers::wire::ids::{IdRule, WireIds};
///
/// let calls = [ToolCall::new("c1", "t", Args::empty()), ToolCall::new("c1", "t", Args::empty())];
/// let mut ids = WireIds::new(IdRule::VISIBLE);
/// let sent = ids.calls(&calls);
/// assert_eq!(sent[0], "c1");
/// assert_ne!(sent[1], "c1");
/// assert_eq!(ids.result("c1").as_ref(), Some(&sent[0]));
/// assert_eq!(ids.result("c1").as_ref(), Some(&sent[1]));
/// ```
#[derive(Clone, Debug)]
pub struct WireIds {
    rule: IdRule,
    /// The hashes of the ids on the wire.
    used: Seen,
    /// The ids of the calls that wait for their results; `None` for one that is the history's.
    open: VecDeque<Option<String>>,
}

impl WireIds {
    /// For one request.
    pub fn new(rule: IdRule) -> Self {
        Self { rule, used: Seen::default(), open: VecDeque::new() }
    }

    /// The ids of one message's calls, in order; their results are asked for with [`WireIds::result`].
    pub fn calls<'a>(&mut self, calls: &'a [ToolCall]) -> Vec<Cow<'a, str>> {
        let ids: Vec<_> = calls.iter().map(|call| self.assign(&call.id)).collect();
        let made = |id: &Cow<'_, str>| matches!(id, Cow::Owned(_)).then(|| id.to_string());
        self.open = ids.iter().map(made).collect();
        ids
    }

    /// The id of the call that the next result answers, `known` being its id in the history; `None` for a result that
    /// answers none.
    pub fn result<'a>(&mut self, known: &'a str) -> Option<Cow<'a, str>> {
        self.open.pop_front().map(|made| made.map_or(Cow::Borrowed(known), Cow::Owned))
    }

    /// The ids so far, from which other requests may go on.
    pub(super) fn settle(&mut self) -> Self {
        Self { rule: self.rule, used: self.used.settle(), open: self.open.clone() }
    }

    fn assign<'a>(&mut self, id: &'a str) -> Cow<'a, str> {
        let hash = |id: &str| hash::stable(id, 0);
        if self.rule.accepts(id) && self.used.insert(hash(id)) {
            return Cow::Borrowed(id);
        }
        // The first replacement that is free. An id that comes again and again has used up very many, so they are not tried
        // one after another.
        let is_used = |nth: u64| self.used.has(hash(&self.rule.replacement(id, nth)));
        let (mut from, mut nth, mut step) = (0, 0, 1);
        while is_used(nth) {
            (from, nth, step) = (nth + 1, nth + step, step * 2);
        }
        while from < nth {
            let middle = from + (nth - from) / 2;
            if is_used(middle) { from = middle + 1 } else { nth = middle }
        }
        let made = self.rule.replacement(id, nth);
        self.used.insert(hash(&made));
        Cow::Owned(made)
    }
}

/// The ids of one reply: what is missing, empty or repeated in it gets a fresh one.
#[derive(Debug, Default)]
pub struct ReplyIds {
    used: HashSet<String>,
}

impl ReplyIds {
    /// For one reply.
    pub fn new() -> Self {
        Self::default()
    }

    /// The id of the next call: the provider's if there is one and it is the first of its kind, else a fresh one that
    /// matches `^[a-zA-Z0-9_-]+$`.
    pub fn settle(&mut self, id: Option<&str>) -> String {
        let id = match id {
            Some(id) if !id.trim().is_empty() && !self.used.contains(id) => id.to_owned(),
            _ => fresh(),
        };
        self.used.insert(id.clone());
        id
    }
}

/// An id that no other call of the conversation has. The standard library's hash keys are random enough for that, and save
/// a dependency.
fn fresh() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("call_{:016x}{:08x}", random(), random() >> 32)
}

#[cfg(test)]
#[path = "ids_tests.rs"]
mod tests;
