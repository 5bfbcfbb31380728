//! What is packed comes back as it was, and is small.

use std::sync::Arc;

use cepa_core::{
    Args, AssistantMessage, Content, Entry, Extra, FinishReason, History, Media, Message, Origin, Part, RawJson,
    Replay, ToolCall, ToolMessage, ToolStatus, Usage,
};
use cepa_testkit::arbitrary;
use proptest::prelude::*;

use super::{
    InMemory,
    packed::{pack, unpack},
};
use crate::memory::{ChatMemory, Loaded, Version, load_whole};

fn json(text: &str) -> RawJson {
    RawJson::parse(text).unwrap()
}

/// Everything that can be seen of entries.
fn seen<'a>(entries: impl Iterator<Item = &'a Arc<Entry>>) -> Vec<(Option<String>, i64, Message)> {
    let plain = |entry: &Arc<Entry>| (entry.id.as_deref().map(str::to_owned), entry.created, entry.message.clone());
    entries.map(plain).collect()
}

fn comes_back(history: &History) {
    let back: Vec<Arc<Entry>> = unpack(&pack(history)).collect::<Result<_, _>>().unwrap();
    assert_eq!(seen(back.iter()), seen(history.iter()));
}

fn extra() -> Extra {
    // Also what JSON could not tell apart: a member of the message's own name.
    [("content".to_owned(), json("1")), ("é".to_owned(), json(r#"{ "n": 1.00 }"#))].into()
}

#[test]
fn every_member_of_every_message_comes_back() {
    // M7: whatever there is.
    let raw = |text: &str| Args::Object(json(text));
    let call = |args| ToolCall { id: "c".into(), name: "f".into(), args, extra: extra() };
    let media = Media::bytes("image/png", vec![0, 255, 10]).named("a \u{0}.png");
    let parts = vec![
        Part::Text("晴".into()),
        Part::Reasoning(String::new()),
        Part::Other(json(r#"{"type":"text","text":"not ours"}"#)),
        Part::Image(media),
        Part::Audio(Media::url("https://a/b")),
        Part::Document(Media { media_type: Some(String::new()), ..Media::url("") }),
    ];
    let origin = |model: &str| Some(Origin { provider: "p".into(), model: model.into() });
    let usage = Usage { input: u64::MAX, output: 127, cache_read: 128, cache_write: 0, reasoning: 1 };
    let data = json("[1, 2]");
    let replay = vec![Replay { format: "f".into(), provider: "p".into(), model: "m".into(), data }];
    let full = AssistantMessage {
        content: Some(Content::Parts(parts.clone())),
        tool_calls: vec![call(raw("{ }")), call(Args::Invalid { raw: "{".into(), why: "cut".into() })],
        origin: origin("m"),
        finish_reason: Some(FinishReason::PauseTurn),
        usage: Some(usage),
        replay,
        extra: extra(),
    };
    let result = ToolMessage {
        tool_call_id: "c".into(),
        name: String::new(),
        content: Content::Parts(parts),
        status: ToolStatus::Unknown,
        writes: Some(json("{}")),
        executed_args: Some(json(r#"{"a" :1}"#)),
        extra: extra(),
    };
    let messages = [
        Message::system("s"),
        Message::user(Content::Parts(vec![])),
        Message::Assistant(full.clone()),
        Message::Assistant(AssistantMessage::default()),
        Message::Assistant(AssistantMessage { origin: origin("m"), ..AssistantMessage::default() }),
        Message::Assistant(AssistantMessage { origin: origin("n"), extra: extra(), ..AssistantMessage::default() }),
        Message::tool("", "", ToolStatus::Ok, ""),
        Message::Tool(result.clone()),
        Message::Tool(ToolMessage { writes: None, status: ToolStatus::Ok, extra: Extra::new(), ..result }),
    ];
    let ids = ["t1/u0", "t1/a0", "é", "è", "", "x", "xy", "x", "m0-9"];
    let times = [5, i64::MAX, i64::MIN, 0, -1, 1_700_000_000_000, 0, 0, 1];
    let named = messages.iter().zip(ids).zip(times);
    comes_back(&named.map(|((message, id), at)| Arc::new(Entry::with_id(id, at, message.clone()))).collect());
    comes_back(&messages.into_iter().collect());
    comes_back(&History::new());
}

#[test]
fn what_is_cut_or_broken_is_corrupt_and_named() {
    let history: History = [Message::user("one"), Message::assistant("two")].into_iter().collect();
    let packed = pack(&history);
    for len in 1..packed.len() {
        let cut = packed.split_at(len).0;
        let read: Vec<_> = unpack(cut).collect();
        let whole = read.iter().filter(|row| row.is_ok()).count();
        assert!(whole <= 1, "{len}: {read:?}");
        if let Some(Err(error)) = read.last() {
            assert_eq!(error.kind(), cepa_core::ErrorKind::Corrupt);
            assert!(error.message().contains(&format!("message {}", whole + 1)), "{error}");
        }
    }
}

proptest! {
    // M7: any history.
    #[test]
    fn any_history_comes_back(seed in any::<u64>(), ids in any::<bool>()) {
        let messages = arbitrary::history(&mut arbitrary::Rng::new(seed), arbitrary::Plan::WILD);
        let entry = |(n, message)| match ids {
            true => Entry::with_id(format!("t{}/a{n}", n / 3), seed as i64 >> (n % 64), message),
            false => Entry::new(message),
        };
        comes_back(&messages.into_iter().enumerate().map(|numbered| Arc::new(entry(numbered))).collect());
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        unpack(&bytes).take(300).for_each(drop);
    }
}

/// Turns as the agent leaves them.
fn turn(conversation: usize, n: usize) -> Vec<Arc<Entry>> {
    let (id, at) = (format!("t1kq{conversation:05}{n:02}0123456789"), 1_700_000_000_000 + n as i64 * 5_000);
    let reply = AssistantMessage {
        content: Some("word0 word1 word2 ".into()),
        origin: Some(Origin { provider: "openai".into(), model: "say-3".into() }),
        finish_reason: Some(FinishReason::Stop),
        usage: Some(Usage { input: 100, output: 3, ..Usage::default() }),
        ..AssistantMessage::default()
    };
    let said = Entry::with_id(format!("{id}/u0"), at, Message::user(format!("hello there {conversation} {n}")));
    vec![Arc::new(said), Arc::new(Entry::with_id(format!("{id}/a0"), at + 900, Message::Assistant(reply)))]
}

async fn talk(memory: &InMemory, conversation: usize) -> Version {
    let mut version = Version::default();
    for n in 0..10 {
        version = memory.append(&conversation.to_string(), version, turn(conversation, n)).await.unwrap();
    }
    version
}

#[test]
fn an_idle_conversation_is_smaller_than_its_json() {
    // P3: one compact buffer.
    let history: History = (0..10).flat_map(|n| turn(1, n)).collect();
    let stored: usize = history.messages().map(|message| RawJson::of(message).unwrap().as_str().len()).sum();
    let packed = pack(&history).len();
    assert!(packed * 2 < stored, "{packed} bytes for {stored}");
}

#[tokio::test]
async fn those_unused_are_packed_and_come_back_whole() {
    // P3, M1, M8: an idle one is found, appended to, paged and listed as a hot one is.
    let memory = InMemory::new().hot_bytes(30_000);
    let versions = [talk(&memory, 0).await, talk(&memory, 1).await, talk(&memory, 2).await];
    for other in 3..20 {
        talk(&memory, other).await;
    }
    let wanted: History = (0..10).flat_map(|n| turn(0, n)).collect();
    assert!(matches!(memory.load("0", Some(versions[0])).await.unwrap(), Loaded::Unchanged));
    assert_eq!(seen(memory.page("0", 5, 3).await.unwrap().iter()), seen(wanted.iter().skip(5).take(3)));
    let (version, history) = load_whole(&memory, "0").await.unwrap();
    assert_eq!((version, seen(history.iter())), (versions[0], seen(wanted.iter())));
    let again = load_whole(&memory, "0").await.unwrap().1;
    assert!(history.iter().zip(again.iter()).all(|(a, b)| Arc::ptr_eq(a, b)), "it is hot now");

    // What was said is not said twice.
    assert_eq!(memory.append("1", Version::default(), turn(1, 4)).await.unwrap(), versions[1]);
    let more = [turn(2, 9), turn(2, 10)].concat();
    assert_eq!(memory.append("2", versions[2], more).await.unwrap().seq, 22);
    match memory.load("2", Some(versions[2])).await.unwrap() {
        Loaded::Added { entries, .. } => assert_eq!(seen(entries.iter()), seen(turn(2, 10).iter())),
        other => panic!("{other:?}"),
    }
    let list = memory.list(0, 100).await.unwrap();
    assert_eq!((list.len(), list[0].id.as_str(), list[0].messages), (20, "2", 22));
    memory.clear("5").await.unwrap();
    assert_eq!(load_whole(&memory, "5").await.unwrap(), (Version { epoch: 1, seq: 0 }, History::new()));
}

#[tokio::test]
async fn a_conversation_in_use_is_not_packed_however_long_it_is() {
    // M8: else each load would read all of it.
    let memory = InMemory::new().hot_bytes(1_000);
    talk(&memory, 0).await;
    let (_, one) = load_whole(&memory, "0").await.unwrap();
    let (_, two) = load_whole(&memory, "0").await.unwrap();
    assert!(one.iter().zip(two.iter()).all(|(a, b)| Arc::ptr_eq(a, b)));
}
