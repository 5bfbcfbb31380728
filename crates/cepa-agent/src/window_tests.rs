//! What a window shows, and when it moves.

use std::sync::Arc;

use cepa_core::{
    Args, AssistantMessage, Content, Entry, Error, ErrorKind, History, Message, Origin, Role, ToolCall, ToolStatus,
    Usage, pairing,
};
use proptest::{collection::vec, prelude::*};

use super::{Cut, TokenCounter, TokenEstimate, Window, Windowed};
use crate::{ChatMemory, InMemory, Loaded, Version, memory::load_whole};

/// A conversation in shorthand: `s1`, `u1`, `a1` are texts of that role; `c:x,y` calls x and y; `x=` answers x.
fn conversation(text: &str) -> History {
    let message = |word: &str| match word.split_at(1) {
        ("s", _) => Message::system(word),
        ("u", _) => Message::user(word),
        ("c", ids) => Message::Assistant(AssistantMessage {
            tool_calls: ids
                .trim_start_matches(':')
                .split(',')
                .map(|id| ToolCall::new(id, "f", Args::empty()))
                .collect(),
            ..AssistantMessage::default()
        }),
        _ => match word.strip_suffix('=') {
            Some(id) => Message::tool(id, "f", ToolStatus::Ok, word),
            None => Message::assistant(word),
        },
    };
    text.split_whitespace().map(message).collect()
}

fn shorthand(history: &History) -> String {
    let word = |message: &Message| match message {
        Message::Assistant(reply) if !reply.tool_calls.is_empty() => {
            format!("c:{}", reply.tool_calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>().join(","))
        }
        _ => message.text().into_owned(),
    };
    history.messages().map(word).collect::<Vec<_>>().join(" ")
}

fn view(window: &Window, history: &History) -> History {
    let mut cut = Cut::default();
    cut.read(history, &window.0);
    cut.view(history)
}

fn seen(messages: u64, text: &str) -> String {
    shorthand(&view(&Window::messages(messages).unwrap(), &conversation(text)))
}

/// A quarter of the characters of content, call names and arguments.
fn quarter(message: &Message) -> u64 {
    let calls = message.tool_calls().iter().map(|call| call.name.len() + call.args.as_str().len()).sum::<usize>();
    (message.text().chars().count() + calls) as u64 / 4
}

#[tokio::test]
async fn a_window_of_nothing_is_refused() {
    // M5: a window of 0 is `invalid_config`.
    assert_eq!(Window::messages(0).unwrap_err().kind(), ErrorKind::InvalidConfig);
    assert_eq!(Window::tokens(0, TokenEstimate).unwrap_err().kind(), ErrorKind::InvalidConfig);
}

#[test]
fn what_a_window_shows() {
    // M5: whole groups, a user message first, never an orphan; over the limit it cuts to three quarters.
    for (messages, before, after) in [
        (4, "u1 c:x x= a1", "u1 c:x x= a1"),
        (4, "u1 c:x x= a1 u2 a2", "u2 a2"),
        (4, "u1 c:x,y,z x= y= z= a1 u2", "u2"),
        (8, "u1 a1 u2 a2 u3 a3 u4 a4 u5", "u3 a3 u4 a4 u5"),
        (8, "u1 a1 u2 a2 u3 a3 u4 a4 u5 a5 u6", "u3 a3 u4 a4 u5 a5 u6"),
        // System messages stay, in front; they do not count; behind the beginning they stay where they are.
        (3, "s1 u1 a1 u2 a2", "s1 u2 a2"),
        (3, "s1 u1 a1 s2 s3 u2 s4 a2", "s1 s2 s3 u2 s4 a2"),
        (1, "s1 s2", "s1 s2"),
        // The last user message and all that follows it is never cut.
        (4, "u1 a1 u2 c:1,2,3,4,5 1= 2= 3= 4= 5=", "u2 c:1,2,3,4,5 1= 2= 3= 4= 5="),
        (1, "u1 a1 u2 c:x x= c:y y= a2", "u2 c:x x= c:y y= a2"),
        // A batch that is being run, and one that nobody finished.
        (4, "u1 a1 u2 c:x,y x=", "u2 c:x,y x="),
        (4, "u1 c:x,y x= u2 a2", "u2 a2"),
        // What stands before the first user message is no beginning.
        (9, "s1 a0 x= u1 a1", "s1 u1 a1"),
        // Without one there is nothing to begin with.
        (1, "a1 a2 a3", "a1 a2 a3"),
    ] {
        assert_eq!(seen(messages, before), after, "{messages} of `{before}`");
    }
}

#[test]
fn tokens_count_calls_results_and_system_messages() {
    // M5
    let big = "b".repeat(400);
    let tokens = |most, text: &str| {
        shorthand(&view(&Window::tokens(most, quarter as fn(&Message) -> u64).unwrap(), &conversation(text)))
    };
    assert_eq!(tokens(50, &format!("u1 a1 u{big}")), format!("u{big}"));
    assert_eq!(tokens(150, &format!("u1 a{big} u2 a2")), format!("u1 a{big} u2 a2"));
    assert_eq!(tokens(150, &format!("s{} u1 a{big} u2 a2", "s".repeat(240))), format!("s{} u2 a2", "s".repeat(240)));
    let history: History = conversation("u1")
        .messages()
        .cloned()
        .chain([
            Message::Assistant(AssistantMessage {
                tool_calls: vec![ToolCall::new("x", "write", Args::of(&serde_json::json!({"content": big})))],
                ..AssistantMessage::default()
            }),
            Message::tool("x", "write", ToolStatus::Ok, "ok"),
            Message::assistant("done"),
            Message::user("u2"),
        ])
        .collect();
    assert_eq!(shorthand(&view(&Window::tokens(100, quarter as fn(&Message) -> u64).unwrap(), &history)), "u2");
}

#[test]
fn estimates_learn_from_reported_usage() {
    // M5: where every message really has three times the tokens that are estimated, three times less is shown.
    let text = "word ".repeat(40);
    let history = |factor: Option<u64>| -> History {
        let mut input = 700; // the system prompt and the tools, which nobody counts
        let mut messages = Vec::new();
        for _ in 0..200 {
            messages.push(Message::user(text.as_str()));
            input += factor.unwrap_or(1) * TokenEstimate.count(&Message::user(text.as_str()));
            let mut reply =
                AssistantMessage { content: Some(Content::Text(text.clone())), ..AssistantMessage::default() };
            reply.usage = factor.map(|_| Usage { input, output: 50, ..Usage::default() });
            input += factor.unwrap_or(1) * TokenEstimate.count(&Message::Assistant(reply.clone()));
            messages.push(Message::Assistant(reply));
        }
        messages.into_iter().collect()
    };
    let shown = |factor| view(&Window::tokens(6000, TokenEstimate).unwrap(), &history(factor)).len();
    let (plain, right, dear) = (shown(None), shown(Some(1)), shown(Some(3)));
    assert_eq!(plain, right, "right estimates stay as they are");
    assert!(dear * 2 < right && dear * 4 > right, "{dear} of {right}");
}

#[test]
fn usage_that_cannot_be_compared_teaches_nothing() {
    let mut history = Vec::new();
    for n in 0..60 {
        history.push(Message::user("word ".repeat(20)));
        let origin = Origin { provider: "p".into(), model: if n % 2 == 0 { "a" } else { "b" }.into() };
        let input = if n % 2 == 0 { 1_000 + n * 30 } else { 900_000 };
        let usage = Some(Usage { input, ..Usage::default() });
        let content = Some(Content::Text("ok".into()));
        history.push(Message::Assistant(AssistantMessage {
            content,
            usage,
            origin: Some(origin),
            ..Default::default()
        }));
    }
    let plain: Vec<Message> = history
        .iter()
        .cloned()
        .map(|message| match message {
            Message::Assistant(reply) => Message::Assistant(AssistantMessage { usage: None, ..reply }),
            other => other,
        })
        .collect();
    let window = Window::tokens(1000, TokenEstimate).unwrap();
    assert_eq!(view(&window, &history.into()).len(), view(&window, &plain.into()).len());
}

#[tokio::test]
async fn a_view_deletes_nothing_and_hides_no_damage() {
    // M5, M7
    let memory = InMemory::new();
    let window = Windowed::new(memory.clone(), Window::messages(2).unwrap());
    let said: Vec<Arc<Entry>> = conversation("u1 a1 u2 a2 u3").iter().cloned().collect();
    let version = window.append("c", Version::default(), said).await.unwrap();
    assert_eq!(shorthand(&load_whole(&window, "c").await.unwrap().1), "u3");
    assert_eq!(load_whole(&memory, "c").await.unwrap(), (version, conversation("u1 a1 u2 a2 u3")));
    assert_eq!(window.page("c", 0, 9).await.unwrap().len(), 5);

    /// A memory in which a row cannot be read.
    struct Damaged;
    impl ChatMemory for Damaged {
        fn load<'a>(&'a self, _: &'a str, _: Option<Version>) -> cepa_core::BoxFuture<'a, Result<Loaded, Error>> {
            Box::pin(async { Err(Error::new(ErrorKind::Corrupt, "row 4 does not parse")) })
        }
        fn append<'a>(
            &'a self,
            _: &'a str,
            version: Version,
            _: Vec<Arc<Entry>>,
        ) -> cepa_core::BoxFuture<'a, Result<Version, Error>> {
            Box::pin(async move { Ok(version) })
        }
        fn clear<'a>(&'a self, _: &'a str) -> cepa_core::BoxFuture<'a, Result<(), Error>> {
            Box::pin(async { Ok(()) })
        }
        fn list(&self, _: usize, _: usize) -> cepa_core::BoxFuture<'_, Result<Vec<crate::ConversationInfo>, Error>> {
            Box::pin(async { Ok(Vec::new()) })
        }
        fn page<'a>(
            &'a self,
            _: &'a str,
            _: u64,
            _: usize,
        ) -> cepa_core::BoxFuture<'a, Result<Vec<Arc<Entry>>, Error>> {
            Box::pin(async { Ok(Vec::new()) })
        }
        fn load_lossy<'a>(
            &'a self,
            _: &'a str,
        ) -> cepa_core::BoxFuture<'a, Result<(History, Vec<crate::CorruptRow>), Error>> {
            let row = crate::CorruptRow { seq: 4, why: "does not parse".into() };
            Box::pin(async { Ok((conversation("u1 a1 u2"), vec![row])) })
        }
    }
    let window = Windowed::new(Damaged, Window::messages(2).unwrap());
    assert_eq!(window.load("c", None).await.unwrap_err().kind(), ErrorKind::Corrupt);
    let (rest, corrupt) = window.load_lossy("c").await.unwrap();
    assert_eq!((shorthand(&rest).as_str(), corrupt[0].seq), ("u2", 4));
}

/// Messages as they come, sometimes damaged.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just("u1".to_owned()),
        4 => Just("a1".to_owned()),
        1 => Just("s1".to_owned()),
        2 => Just("c:x x=".to_owned()),
        2 => Just("c:y,z y= z=".to_owned()),
        1 => Just("c:x,z".to_owned()),
        1 => Just("c:y,y y= x= y=".to_owned()),
        1 => Just("z= x=".to_owned()),
        1 => Just("c:v,w w= v=".to_owned()),
    ]
}

fn story() -> impl Strategy<Value = History> {
    vec(word(), 0..60).prop_map(|words| conversation(&words.join(" ")))
}

fn unchecked(history: &History) -> History {
    history.iter().cloned().collect()
}

fn count(history: &History) -> u64 {
    history.messages().filter(|message| message.role() != Role::System).count() as u64
}

proptest! {
    // M5: any history, damaged or not, × any window.
    #[test]
    fn any_history_in_any_window(history in story(), most in 1..24u64) {
        let window = Window::messages(most).unwrap();
        let seen = view(&window, &history);
        // A suffix of what is stored, behind the system messages of what is not shown.
        let own: Vec<&Arc<Entry>> = history.iter().collect();
        let shown: Vec<&Arc<Entry>> = seen.iter().collect();
        let start = (0..=own.len())
            .rfind(|start| {
                let (before, rest) = own.split_at(*start);
                let kept = before.iter().filter(|entry| entry.message.role() == Role::System).chain(rest);
                kept.map(|entry| Arc::as_ptr(entry)).eq(shown.iter().map(|entry| Arc::as_ptr(entry)))
            })
            .expect("a suffix behind system messages");
        let users: Vec<usize> = (0..own.len()).filter(|at| own[*at].message.role() == Role::User).collect();
        // It begins with a user message, if there is one; the last one and all that follows is shown.
        let first = seen.messages().find(|message| message.role() != Role::System);
        prop_assert!(users.is_empty() || first.is_some_and(|first| first.role() == Role::User));
        prop_assert!(users.last().is_none_or(|last| start <= *last || seen.len() >= own.len() - last));
        // What leaves is healed: well paired, within the limit, and the same as if the stored rows had been healed.
        let healed = pairing::heal(&unchecked(&seen));
        prop_assert_eq!(pairing::validate(&healed), Ok(()));
        let last_turn = users.last().map_or(own.len(), |last| {
            let rest: History = own[*last..].iter().map(|entry| Arc::clone(entry)).collect();
            count(&pairing::heal(&rest)) as usize
        });
        let is_last_turn = count(&healed) as usize == last_turn;
        prop_assert!(users.is_empty() || count(&healed) <= most || is_last_turn, "{} > {most}", count(&healed));
        prop_assert_eq!(&healed, &pairing::heal(&unchecked(&view(&window, &pairing::heal(&unchecked(&history))))));
    }

    // M5, W2: the beginning only moves forward, only when the limit is passed, and then by a step.
    #[test]
    fn the_beginning_moves_rarely(history in story(), most in 1..24u64) {
        let window = Window::messages(most).unwrap();
        let mut cut = Cut::default();
        let mut before = History::new();
        let mut grown = History::new();
        for entry in history.iter() {
            grown.push_shared(entry.clone());
            let moved = cut.moved_at();
            cut.push(entry, &window.0);
            let now = cut.view(&grown);
            prop_assert_eq!(&now, &view(&window, &grown), "reading on is the same as reading anew");
            if cut.moved_at() == moved {
                let mut longer = before.clone();
                longer.push_shared(entry.clone());
                prop_assert_eq!(&now, &longer, "the view only grew");
            } else if count(&before) > 0 && before.messages().any(|message| message.role() == Role::User) {
                let weight = |history: &History| history.messages().map(|message| window.0.weight(message)).sum::<u64>();
                prop_assert!(weight(&before) + window.0.weight(&entry.message) > most);
                let users = now.messages().filter(|message| message.role() == Role::User).count();
                prop_assert!(weight(&now) * 4 <= most * 3 || users == 1);
            }
            before = now;
        }
    }

    // M5: whoever holds an earlier view gets the same by what is told to have changed.
    #[test]
    fn what_changed_leads_to_the_same_view(
        parts in vec((vec(word(), 1..8), any::<bool>(), 0..30u8), 1..12),
        most in 1..24u64,
    ) {
        let memory = InMemory::new();
        let window = || Windowed::new(memory.clone(), Window::messages(most).unwrap());
        let one = window();
        let run = async {
            let (mut held, mut version) = ((Version::default(), History::new()), Version::default());
            for (words, look, what) in parts {
                let entries: Vec<Arc<Entry>> = conversation(&words.join(" ")).iter().cloned().collect();
                version = one.append("c", version, entries).await?;
                if what == 0 {
                    one.clear("c").await?;
                    version = load_whole(&memory, "c").await?.0;
                }
                if !look {
                    continue;
                }
                // Another look, at any time, by somebody else, changes nothing.
                let fresh = window();
                let looked = if what % 2 == 0 { &one } else { &fresh };
                match looked.load("c", Some(held.0)).await? {
                    Loaded::Unchanged => {}
                    Loaded::Added { version, entries } => {
                        held.0 = version;
                        held.1.extend(entries);
                    }
                    Loaded::Whole { version, history } => held = (version, history),
                }
                assert_eq!(held, load_whole(&window(), "c").await?);
            }
            Ok::<(), Error>(())
        };
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(run).unwrap();
    }
}
