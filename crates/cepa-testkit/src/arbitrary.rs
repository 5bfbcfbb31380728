//! Generated conversations: valid ones with everything a conversation can hold, and damaged ones.
//!
//! Deterministic: a seed gives the same conversation for ever, so that a failure can be looked at again.

use cepa_core::{
    Args, AssistantMessage, Content, FinishReason, Media, Message, Origin, Part, RawJson, Replay, ToolCall, ToolStatus,
    Usage,
};

/// Random numbers from a seed (SplitMix64).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = end.max(1) as u64;
        // Below `end`, which came from a usize.
        usize::try_from(self.next_u64() % end).unwrap_or_default()
    }

    /// True so many times in a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of these, or the type's default if there is none.
    pub fn pick<T: Clone + Default>(&mut self, choices: &[T]) -> T {
        choices.get(self.below(choices.len())).cloned().unwrap_or_default()
    }
}

/// What a generated conversation may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The most rounds; a round begins with a user message.
    pub rounds: usize,
    /// Images and documents in user messages, of the kinds that every wire takes.
    pub media: bool,
    /// Media and parts that some wire must convert or refuse: sounds, odd media types, unknown parts.
    pub odd_media: bool,
    /// Ids that are empty, repeated, long, or of characters that some provider refuses.
    pub odd_ids: bool,
    /// System messages in the middle, blank texts, replies without anything.
    pub odd_texts: bool,
    /// Reasoning, and replay blocks of models that may be others than the one that is asked.
    pub foreign_replay: bool,
    /// Missing, doubled, orphaned, swapped and late results.
    pub damage: bool,
}

impl Plan {
    /// What a well-behaved conversation with one provider looks like.
    pub const PLAIN: Self = Self {
        rounds: 5,
        media: true,
        odd_media: false,
        odd_ids: false,
        odd_texts: false,
        foreign_replay: false,
        damage: false,
    };

    /// Everything that is valid: each batch of calls is followed by its results in order.
    pub const VALID: Self = Self { odd_ids: true, odd_texts: true, foreign_replay: true, ..Self::PLAIN };

    /// Everything, damage included.
    pub const WILD: Self = Self { odd_media: true, damage: true, ..Self::VALID };
}

const TEXTS: &[&str] = &[
    "What is the weather?",
    "晴 22°C, 北京 👩‍👩‍👧 e\u{301}",
    "quotes \" and \\ and </script> and {\"a\":1}",
    "lines\nand\r\ntabs\tand \u{0}\u{7f}\u{2028}\u{feff}",
    " leading and trailing ",
    "a",
];
const ODD_TEXTS: &[&str] = &["", " ", "\n\t ", "\u{a0}"];
const NAMES: &[&str] = &["get_weather", "read_file", "list-files"];
const ARGS: &[&str] = &[
    "{}",
    r#"{"city":"Oslo"}"#,
    r#"{ "b" : 1, "a" : [1, {"x": null}] }"#,
    r#"{"order":2512292042121000001,"big":123456789012345678901234567890,"f":1.50}"#,
    r#"{"text":"\u00e9 \ud83d\ude00 \\ \" \n"}"#,
];
const BROKEN_ARGS: &[&str] = &[r#"{"city":"Os"#, "[1]", "nonsense", r#"{"a":1} trailing"#];
const ODD_IDS: &[&str] = &[
    "",
    "call_1",
    "functions.get_weather:0",
    "call_a|fc_b",
    "get_weather",
    "toolu_01A09q90qw90lq917835lq9",
    "call_0123456789012345678901234567890123456789012345678901234567890123456789",
    "编号",
];

/// A conversation.
///
/// ```
/// use cepa_core::{History, pairing};
/// use cepa_testkit::arbitrary::{Plan, Rng, history};
/// let messages = history(&mut Rng::new(7), Plan::VALID);
/// assert_eq!(messages, history(&mut Rng::new(7), Plan::VALID));
/// assert_eq!(pairing::validate(&History::from(messages)), Ok(()));
/// ```
pub fn history(rng: &mut Rng, plan: Plan) -> Vec<Message> {
    let mut messages = Vec::new();
    if rng.chance(30) {
        messages.push(Message::system(text(rng, plan)));
    }
    if plan.odd_texts && rng.chance(10) {
        messages.push(Message::assistant("Welcome!"));
    }
    for _ in 0..=rng.below(plan.rounds) {
        round(rng, plan, &mut messages);
    }
    if plan.damage {
        for _ in 0..=rng.below(3) {
            damage(rng, &mut messages);
        }
    }
    // Something must be asked.
    messages.push(Message::user("and now?"));
    messages
}

fn round(rng: &mut Rng, plan: Plan, messages: &mut Vec<Message>) {
    if plan.odd_texts && rng.chance(15) {
        messages.push(Message::system(text(rng, plan)));
    }
    messages.push(user(rng, plan));
    if plan.odd_texts && rng.chance(10) {
        messages.push(user(rng, plan));
    }
    for _ in 0..rng.below(3) {
        batch(rng, plan, messages);
    }
    // A round that failed or was cancelled has no answer.
    if rng.chance(85) {
        let mut reply = reply(rng, plan);
        reply.tool_calls.clear();
        messages.push(Message::Assistant(reply));
    }
}

/// A reply with calls, and their results.
fn batch(rng: &mut Rng, plan: Plan, messages: &mut Vec<Message>) {
    let mut message = reply(rng, plan);
    let calls = 1 + rng.below(3);
    message.tool_calls = (0..calls).map(|_| call(rng, plan)).collect();
    message.finish_reason = Some(FinishReason::ToolCalls);
    let results: Vec<Message> = message.tool_calls.iter().map(|call| result(rng, plan, call)).collect();
    messages.push(Message::Assistant(message));
    messages.extend(results);
}

fn text(rng: &mut Rng, plan: Plan) -> String {
    let choices = if plan.odd_texts && rng.chance(12) { ODD_TEXTS } else { TEXTS };
    rng.pick(choices).to_owned()
}

fn user(rng: &mut Rng, plan: Plan) -> Message {
    let text = text(rng, plan);
    if !plan.media || rng.chance(60) {
        return Message::user(text);
    }
    let mut parts = vec![Part::Text(text)];
    parts.extend((0..rng.below(3)).map(|_| media(rng, plan)));
    if rng.chance(30) {
        parts.rotate_left(1);
    }
    Message::user(parts)
}

fn media(rng: &mut Rng, plan: Plan) -> Part {
    if plan.odd_media && rng.chance(30) {
        return match rng.below(4) {
            0 => Part::Audio(Media::bytes("audio/wav", &b"RIFF"[..])),
            1 => Part::Image(Media::bytes("image/tiff", &b"II*"[..])),
            2 => Part::Document(Media::bytes("application/msword", &b"doc"[..])),
            _ => Part::Other(
                RawJson::of(&serde_json::json!({"type": "hologram", "data": 1}))
                    .unwrap_or_else(|_| RawJson::empty_object()),
            ),
        };
    }
    match rng.below(3) {
        0 => Part::Image(Media::bytes("image/png", &b"\x89PNG"[..])),
        1 => Part::Image(Media::url("https://example.com/a.png")),
        _ => Part::Document(Media::bytes("application/pdf", &b"%PDF-1.7"[..]).named("a.pdf")),
    }
}

fn reply(rng: &mut Rng, plan: Plan) -> AssistantMessage {
    let origin = Origin {
        provider: rng.pick(&["openai", "anthropic", "deepseek"]).into(),
        model: rng.pick(&["model-a", "model-b"]).into(),
    };
    let mut parts = Vec::new();
    let mut replay = Vec::new();
    if plan.foreign_replay && rng.chance(30) {
        parts.push(Part::Reasoning("private musing".to_owned()));
        replay.push(Replay {
            format: rng.pick(&["anthropic", "openai_chat", "some_other"]).to_owned(),
            // Of a model that nobody asks: what was made by the one that is asked has the form its wire gave it.
            provider: "elsewhere".to_owned(),
            model: "unknown".to_owned(),
            data: RawJson::parse(r#"{"type":"thinking","thinking":"private musing","signature":"c2ln"}"#)
                .unwrap_or_else(|_| RawJson::empty_object()),
        });
    }
    if rng.chance(70) {
        parts.push(Part::Text(text(rng, plan)));
    }
    let content = match parts.as_slice() {
        [] if !plan.odd_texts => Some(Content::Text("Done.".to_owned())),
        [] => None,
        [Part::Text(text)] => Some(Content::Text(text.clone())),
        _ => Some(Content::Parts(parts)),
    };
    AssistantMessage {
        content,
        origin: rng.chance(80).then_some(origin),
        finish_reason: Some(if plan.odd_texts { odd_finish(rng) } else { FinishReason::Stop }),
        usage: rng.chance(50).then_some(Usage { input: 10, output: 5, ..Usage::default() }),
        replay,
        ..AssistantMessage::default()
    }
}

fn odd_finish(rng: &mut Rng) -> FinishReason {
    match rng.below(6) {
        0 => FinishReason::Length,
        1 => FinishReason::Refusal,
        2 => FinishReason::ContentFilter,
        3 => FinishReason::Cancelled,
        4 => FinishReason::Other,
        _ => FinishReason::Stop,
    }
}

fn call(rng: &mut Rng, plan: Plan) -> ToolCall {
    let id = if plan.odd_ids && rng.chance(50) {
        rng.pick(ODD_IDS).to_owned()
    } else {
        format!("call_{:08x}", rng.next_u64() >> 32)
    };
    let choices = if plan.odd_ids && rng.chance(15) { BROKEN_ARGS } else { ARGS };
    let args = rng.pick(choices);
    let name = if plan.odd_ids && rng.chance(10) { rng.pick(&["files.read", "", "名"]) } else { rng.pick(NAMES) };
    ToolCall::new(id, name, Args::decode(args))
}

fn result(rng: &mut Rng, plan: Plan, call: &ToolCall) -> Message {
    let status = match rng.below(8) {
        0 => ToolStatus::Error,
        1 => ToolStatus::Rejected,
        2 => ToolStatus::Unknown,
        3 => ToolStatus::Cancelled,
        _ => ToolStatus::Ok,
    };
    let content: Content = match (plan.media && rng.chance(10), rng.chance(15)) {
        (true, _) => {
            vec![Part::Text("a picture".to_owned()), Part::Image(Media::bytes("image/png", &b"\x89PNG"[..]))].into()
        }
        (false, true) => "".into(),
        (false, false) => text(rng, plan).into(),
    };
    Message::tool(call.id.clone(), call.name.clone(), status, content)
}

/// Does one thing to a conversation that a crash, an edited store or a careless import would do.
pub fn damage(rng: &mut Rng, messages: &mut Vec<Message>) {
    let results: Vec<usize> =
        messages.iter().enumerate().filter(|(_, m)| matches!(m, Message::Tool(_))).map(|(index, _)| index).collect();
    let some_result = rng.pick(&results);
    let somewhere = rng.below(messages.len() + 1);
    match rng.below(6) {
        // A result is lost, doubled, late, or in another place of its batch.
        0 if !results.is_empty() => drop(messages.remove(some_result)),
        1 if !results.is_empty() => {
            if let Some(doubled) = messages.get(some_result).cloned() {
                messages.insert(somewhere, doubled);
            }
        }
        2 if !results.is_empty() => {
            let late = messages.remove(some_result);
            messages.insert(somewhere.min(messages.len()), late);
        }
        3 if some_result + 1 < messages.len() => messages.swap(some_result, some_result + 1),
        // An orphan; a beginning that was cut off.
        4 => messages.insert(somewhere, Message::tool("nobody", "get_weather", ToolStatus::Ok, "orphan")),
        _ => drop(messages.drain(..rng.below(messages.len().min(4)))),
    }
}

/// Checks a property on the conversation of each seed; the error names the seed and shows the shortest conversation
/// (by leaving messages out) for which it does not hold.
///
/// The property's own randomness comes from the generator it is given, which is the same each time.
///
/// # Errors
/// The first failure.
pub fn for_all(
    seeds: std::ops::Range<u64>,
    plan: Plan,
    property: impl Fn(&[Message], &mut Rng) -> Result<(), String>,
) -> Result<(), String> {
    for seed in seeds {
        let messages = history(&mut Rng::new(seed), plan);
        let holds = |messages: &[Message]| property(messages, &mut Rng::new(!seed));
        if let Err(why) = holds(&messages) {
            let (messages, why) = shortest(messages, why, holds);
            let lines: Vec<String> =
                messages.iter().map(|message| serde_json::to_string(message).unwrap_or_default()).collect();
            return Err(format!("seed {seed}: {why}\nthe shortest conversation:\n{}", lines.join("\n")));
        }
    }
    Ok(())
}

fn shortest(
    mut messages: Vec<Message>,
    mut why: String,
    holds: impl Fn(&[Message]) -> Result<(), String>,
) -> (Vec<Message>, String) {
    let mut index = 0;
    while index < messages.len() {
        let mut fewer = messages.clone();
        fewer.remove(index);
        match holds(&fewer) {
            Err(still) => (messages, why, index) = (fewer, still, 0),
            Ok(()) => index += 1,
        }
    }
    (messages, why)
}

#[cfg(test)]
#[path = "arbitrary_tests.rs"]
mod tests;
