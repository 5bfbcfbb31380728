//! Any conversation, valid or damaged, over both wires.

use cepa_core::{
    ChatOptions, ChatRequest, ErrorKind, Extra, History, Message, Part, RawJson, Role, Thinking, Tool, ToolChoice,
    ToolOutput, ToolSet, ToolSpec, pairing,
};
use cepa_testkit::arbitrary::{Plan, Rng, for_all};
use serde::Deserialize;

use super::wires::{Wire, messages};

const SEEDS: u64 = 600;

pub(crate) fn wires() -> Vec<Wire> {
    vec![
        Wire::openai("model-a"),
        Wire::deepseek("model-a"),
        Wire::strict("model-a"),
        Wire::named("mistral", "model-a"),
        Wire::named("ollama", "model-a"),
        Wire::named("zai", "model-a"),
        Wire::anthropic("model-a"),
        Wire::gemini("gemini-3-a"),
        Wire::gemini("gemini-2.5-a"),
        Wire::responses("model-a"),
    ]
}

fn tools() -> ToolSet {
    let schema = r#"{"type":"object","properties":{"city":{"type":"string"}}}"#;
    let tool = |name: &str, schema| {
        let spec = ToolSpec::new(name, "What it does.", schema).expect("a good spec");
        Tool::new(spec, |_, _| async { Ok(ToolOutput::new("")) })
    };
    let all = [tool("get_weather", Some(schema)), tool("files.read", None), tool("list-files", Some(schema))];
    ToolSet::new(all).expect("all different")
}

/// A request with these messages and random settings.
pub(crate) fn request(messages: &[Message], rng: &mut Rng) -> ChatRequest {
    let thinking = match rng.below(4) {
        0 => Some(Thinking::Budget(2048)),
        1 => Some(Thinking::Effort("low".to_owned())),
        2 => Some(Thinking::Off),
        _ => None,
    };
    let tools = if rng.chance(70) { tools() } else { ToolSet::default() };
    let tool_choice = match rng.below(5) {
        0 => Some(ToolChoice::Auto),
        1 => Some(ToolChoice::None),
        2 => Some(ToolChoice::Required),
        3 => Some(ToolChoice::Tool("files.read".to_owned())),
        _ => None,
    };
    // A forced tool that is not offered, or that a model cannot be forced to while it thinks, is a caller's fault.
    let forced = matches!(tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_)));
    let tool_choice = tool_choice.filter(|_| !(tools.is_empty() || forced && thinking.is_some()));
    ChatRequest {
        system_prompt: rng.chance(40).then(|| "Be brief.".into()),
        tools,
        tool_choice,
        options: ChatOptions {
            max_tokens: rng.chance(50).then_some(4096),
            cache: rng.chance(50).then_some(true),
            parallel_tool_calls: rng.chance(30).then_some(false),
            stop: if rng.chance(20) { vec!["END".to_owned()] } else { vec![] },
            thinking,
            ..ChatOptions::default()
        },
        ..ChatRequest::new(History::from(messages.to_vec()))
    }
}

// W3: what is made is taken; what cannot be taken is refused before it is sent, with an error that is the caller's.
// M6: damage of any kind is healed on the way out.
#[test]
fn what_leaves_is_legal() {
    for plan in [Plan::PLAIN, Plan::VALID, Plan::WILD] {
        let property = |messages: &[Message], rng: &mut Rng| {
            for wire in wires() {
                match wire.encode(&request(messages, rng)) {
                    Ok(body) => wire.judge(&body)?,
                    Err(error) => {
                        let is_callers = matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::InvalidConfig);
                        let is_empty = !messages.iter().any(|message| message.role() != Role::System);
                        if !is_callers || !(plan.odd_media || is_empty) {
                            return Err(format!("{:?} refused: {error}", wire.origin()));
                        }
                    }
                }
            }
            Ok(())
        };
        for_all(0..SEEDS, plan, property).unwrap_or_else(|failure| panic!("{plan:?}\n{failure}"));
    }
}

// W2: the same request gives the same bytes: encoded again, encoded for somebody else in between, read back from JSON.
// P2: what is kept beside a message is what would be made anew.
#[test]
fn encoding_is_the_same_each_time() {
    let property = |messages: &[Message], rng: &mut Rng| {
        let request = request(messages, rng);
        let copies = || {
            messages.iter().map(|message| {
                let json = serde_json::to_string(message).expect("a message is JSON");
                serde_json::from_str::<Message>(&json).expect("a message comes back")
            })
        };
        // All encode, then all once more: what one keeps beside the messages must not disturb another.
        let wires = wires();
        let firsts: Vec<Option<String>> = wires.iter().map(|wire| wire.encode(&request).ok()).collect();
        for (wire, first) in wires.iter().zip(firsts) {
            let Some(first) = first else { continue };
            let after_others = wire.encode(&request).map_err(|error| error.to_string())?;
            let again = wire.encode(&request).map_err(|error| error.to_string())?;
            let fresh = ChatRequest { messages: copies().collect(), ..request.clone() };
            let fresh = wire.encode(&fresh).map_err(|error| error.to_string())?;
            for (what, body) in [("again", again), ("after others", after_others), ("from JSON", fresh)] {
                if body != first {
                    return Err(format!("{what}:\n{first}\n{body}"));
                }
            }
        }
        Ok(())
    };
    for_all(0..SEEDS, Plan::WILD, property).unwrap_or_else(|failure| panic!("{failure}"));
}

// W2: the messages of a request are the beginning of those of every later request of the conversation.
#[test]
fn a_later_request_begins_with_the_bytes_of_an_earlier_one() {
    let property = |messages: &[Message], rng: &mut Rng| {
        let settings = ChatRequest { messages: History::new(), ..request(&[], rng) };
        let later_system = messages.iter().skip_while(|m| m.role() == Role::System).any(|m| m.role() == Role::System);
        for wire in wires() {
            if later_system && !wire.keeps_its_start() {
                continue;
            }
            let mut history = History::new();
            let mut before: Option<String> = None;
            for (index, message) in messages.iter().enumerate() {
                history.push(message.clone());
                let next = messages.get(index + 1);
                // A request leaves when the user has spoken, or when a batch has all its results.
                let batch_is_over = next.is_none_or(|next| next.role() != Role::Tool);
                let leaves = message.role() == Role::User || (message.role() == Role::Tool && batch_is_over);
                if !leaves {
                    continue;
                }
                let request = ChatRequest { messages: history.clone(), ..settings.clone() };
                let Ok(body) = wire.encode(&without_cache_marks(request)) else { return Ok(()) };
                let sent = super::wires::messages(&body);
                if let Some(before) = before.filter(|before| !sent.starts_with(before.as_str())) {
                    return Err(format!("{:?}: not a beginning:\n{before}\n{sent}", wire.origin()));
                }
                // The brackets that close the last message close it later where the user speaks again.
                before = Some(sent.trim_end_matches([']', '}']).to_owned());
            }
        }
        Ok(())
    };
    for_all(0..SEEDS, Plan::VALID, property).unwrap_or_else(|failure| panic!("{failure}"));
}

/// `cache_control` members move with the end of the conversation, and are told apart from its bytes.
fn without_cache_marks(mut request: ChatRequest) -> ChatRequest {
    request.options.cache = None;
    request
}

/// A call as it is on a wire: the text of its arguments.
fn sent_arguments(wire: &Wire, body: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct Turn {
        content: Option<RawJson>,
        #[serde(default)]
        parts: Vec<Part>,
        #[serde(default)]
        tool_calls: Vec<Call>,
        arguments: Option<String>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Part {
        function_call: Option<GeminiCall>,
    }
    #[derive(Deserialize)]
    struct GeminiCall {
        args: RawJson,
    }
    #[derive(Deserialize)]
    struct Call {
        function: Function,
    }
    #[derive(Deserialize)]
    struct Function {
        arguments: String,
    }
    let turns: Vec<Turn> = serde_json::from_str(&messages(body)).expect("messages");
    let mut sent = Vec::new();
    for turn in turns {
        sent.extend(turn.tool_calls.into_iter().map(|call| call.function.arguments));
        sent.extend(turn.arguments);
        let calls = turn.parts.into_iter().filter_map(|part| part.function_call);
        sent.extend(calls.map(|call| call.args.as_str().to_owned()));
        let blocks: Vec<Extra> = turn.content.and_then(|content| content.read().ok()).unwrap_or_default();
        for block in blocks.iter().filter(|block| wire.is_anthropic() && is_type(block, "tool_use")) {
            sent.push(block.get("input").expect("a use has input").as_str().to_owned());
        }
    }
    sent
}

fn is_type(block: &Extra, kind: &str) -> bool {
    block.get("type").and_then(|raw| raw.read::<String>().ok()).is_some_and(|found| found == kind)
}

// W3: nothing is dropped in silence: texts, media, calls and the very digits of their arguments are in the body.
#[test]
fn nothing_is_lost() {
    let property = |messages: &[Message], rng: &mut Rng| {
        let request = request(messages, rng);
        let healed = pairing::heal(&request.messages);
        for wire in wires() {
            let Ok(body) = wire.encode(&request) else { continue };
            let wanted: Vec<&str> =
                healed.messages().flat_map(Message::tool_calls).map(|call| call.args.as_object_str()).collect();
            let sent = sent_arguments(&wire, &body);
            if sent != wanted {
                return Err(format!("{:?}: arguments {wanted:?} became {sent:?}", wire.origin()));
            }
            let mut images = 0;
            for message in healed.messages() {
                let text = message.text();
                let is_in = body.contains(json_inside(&text).as_str());
                if !text.trim().is_empty() && !is_in {
                    return Err(format!("{:?}: {text:?} is not in\n{body}", wire.origin()));
                }
                images += parts(message).iter().filter(|part| matches!(part, Part::Image(_))).count();
            }
            let sent = body.matches("iVBORw==").count() + body.matches("iVBO").count() + body.matches("a.png").count();
            if images > 0 && sent == 0 {
                return Err(format!("{:?}: {images} images are not in\n{body}", wire.origin()));
            }
        }
        Ok(())
    };
    for_all(0..SEEDS, Plan::VALID, property).unwrap_or_else(|failure| panic!("{failure}"));
}

fn parts(message: &Message) -> &[Part] {
    match message.content() {
        Some(cepa_core::Content::Parts(parts)) => parts,
        Some(cepa_core::Content::Text(_)) | None => &[],
    }
}

/// A text as it stands inside a JSON string.
fn json_inside(text: &str) -> String {
    let json = serde_json::to_string(text).expect("a text is JSON");
    json.trim_matches('"').to_owned()
}
