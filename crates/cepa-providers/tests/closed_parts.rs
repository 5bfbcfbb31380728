//! What is kept of a history beside it changes nothing of what is sent, whoever asks in which order, and is held once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::Barrier;

use bytes::Bytes;
use cepa_core::{Args, AssistantMessage, ChatRequest, Error, History, Message, Origin, ToolCall, ToolStatus, pairing};
use cepa_providers::wire::{
    Dialect,
    anthropic::AnthropicMessages,
    gemini::GenerateContent,
    openai_chat::{self, OpenAiChat, SystemPlace},
    openai_responses::{self, Responses},
};
use cepa_testkit::arbitrary::{self, Plan, Rng};

type Encode = Box<dyn Fn(&History) -> Result<Vec<Bytes>, Error> + Send + Sync>;

fn encoders() -> [(&'static str, Encode); 6] {
    fn of<D: Dialect + 'static>(dialect: D) -> Encode {
        Box::new(move |history| dialect.encode(&ChatRequest::new(history.clone())))
    }
    let origin = |model: &str| Origin { provider: "p".into(), model: model.into() };
    let single = openai_chat::Quirks { system: SystemPlace::Single, ..openai_chat::Quirks::default() };
    [
        ("chat", of(OpenAiChat::new(origin("m"), openai_chat::Quirks::default()))),
        ("chat of another model", of(OpenAiChat::new(origin("n"), openai_chat::Quirks::default()))),
        ("single", of(OpenAiChat::new(origin("m"), single))),
        ("anthropic", of(AnthropicMessages::new(origin("m")))),
        ("gemini", of(GenerateContent::new(origin("m")))),
        ("responses", of(Responses::new(origin("m"), openai_responses::Quirks::default()))),
    ]
}

/// What is sent, or why nothing is.
fn sent(encode: &Encode, history: &History) -> Result<Vec<u8>, String> {
    encode(history).map(|pieces| pieces.concat()).map_err(|error| error.to_string())
}

/// The same messages, of which nothing is known.
fn anew(history: &History) -> History {
    history.messages().cloned().collect()
}

fn check(encoders: &[(&str, Encode)], which: usize, history: &History) {
    let (name, encode) = &encoders[which];
    let (with, without) = (sent(encode, history), sent(encode, &anew(history)));
    assert!(
        with == without,
        "{name}, {} messages:\n{}\nis not\n{}",
        history.len(),
        with.map_or_else(|e| e, |b| String::from_utf8_lossy(&b).into_owned()),
        without.map_or_else(|e| e, |b| String::from_utf8_lossy(&b).into_owned())
    );
}

// P2: what a request holds does not hang on what was asked for before.
#[test]
fn histories_that_share_what_they_hold_are_sent_as_if_alone() {
    let encoders = encoders();
    for seed in 0..80 {
        let mut rng = Rng::new(seed);
        let plan = [Plan::PLAIN, Plan::VALID, Plan::WILD][rng.below(3)];
        let mut histories = vec![History::new()];
        for _ in 0..40 {
            let at = rng.below(histories.len());
            match rng.below(8) {
                0..4 => {
                    let messages = arbitrary::history(&mut rng, Plan { rounds: 3, ..plan });
                    // Some of a round, so that calls stand open at the end.
                    let taken = if rng.chance(30) { rng.below(messages.len() + 1) } else { messages.len() };
                    messages.into_iter().take(taken).for_each(|message| histories[at].push(message));
                }
                4 => histories.push(histories[at].clone()),
                // A window: the entries themselves in another history.
                5 => {
                    let from = rng.below(histories[at].len() + 1);
                    let left_out = rng.below(20);
                    let window = histories[at].iter_from(from).filter(|_| !rng.chance(left_out)).cloned().collect();
                    histories.push(window);
                }
                6 => {
                    let healed = pairing::heal(&histories[at]);
                    assert_eq!(healed, pairing::heal(&anew(&histories[at])));
                    histories.push(healed);
                }
                _ => {
                    let large = "x".repeat(rng.below(20_000));
                    histories[at].push(Message::user(large.as_str()));
                    histories[at].push(Message::assistant(large));
                }
            }
            let at = rng.below(histories.len());
            check(&encoders, rng.below(encoders.len()), &histories[at]);
            if histories.len() > 6 {
                histories.remove(rng.below(6));
            }
        }
    }
}

fn round(number: usize, text: &str) -> [Message; 4] {
    let id = format!("call{number}");
    let tool_calls = vec![ToolCall::new(&id, "add", Args::decode(r#"{"a":1}"#))];
    [
        Message::user(format!("{number} {text}")),
        Message::Assistant(AssistantMessage { tool_calls, ..AssistantMessage::default() }),
        Message::tool(&id, "add", ToolStatus::Ok, text),
        Message::assistant(text),
    ]
}

fn conversation(rounds: usize, text: &str) -> History {
    (0..rounds).flat_map(|number| round(number, text)).collect()
}

// P2
#[test]
fn threads_that_encode_the_same_history_do_not_disturb_each_other() {
    let encoders = encoders();
    for text in [10, 1_000].map(|size| "x".repeat(size)) {
        let history = conversation(100, &text);
        let begin = Barrier::new(8);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (mut own, encoders, begin, text) = (history.clone(), &encoders, &begin, &text);
                scope.spawn(move || {
                    begin.wait();
                    for step in 0..8 {
                        check(encoders, (thread / 2 + step / 4) % encoders.len(), &own);
                        round(1000 * thread + step, text).into_iter().for_each(|message| own.push(message));
                    }
                });
            }
        });
    }
}

/// Names which case a process tries.
#[cfg(target_os = "linux")]
const CASE: &str = "CEPA_CLOSED_CASE";

#[cfg(target_os = "linux")]
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<usize>().unwrap() * 1024
}

/// How many bytes a history of these messages takes, and how many what is kept of it.
#[cfg(target_os = "linux")]
fn held(case: &str) -> (usize, usize) {
    let (which, way) = case.split_once(' ').unwrap();
    let encoders = encoders();
    let encode = &encoders[which.parse::<usize>().unwrap()].1;
    let text = "0123456789".repeat(30);
    let mut size = 0;
    match way {
        "grown" => {
            let mut history = History::new();
            let before = resident();
            for message in (0..MESSAGES / 4).flat_map(|number| round(number, &text)) {
                history.push(message);
                size = encode(&history).unwrap().iter().map(Bytes::len).sum();
            }
            (size, resident() - before)
        }
        // With a word from the system in each round.
        "told" => {
            let mut history = History::new();
            let before = resident();
            for number in 0..MESSAGES / 4 {
                round(number, &text).into_iter().for_each(|message| history.push(message));
                history.push(Message::system(format!("it is {number} o'clock")));
                size = encode(&history).unwrap().iter().map(Bytes::len).sum();
            }
            (size, resident() - before)
        }
        "threads" => {
            let before = resident();
            let history = conversation(MESSAGES / 4, &text);
            let begin = Barrier::new(8);
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        begin.wait();
                        encode(&history).unwrap();
                    });
                }
            });
            size = encode(&history).unwrap().iter().map(Bytes::len).sum();
            (size, resident() - before)
        }
        _ => panic!("{way}"),
    }
}

#[cfg(target_os = "linux")]
const MESSAGES: usize = 8_000;

// P3: what is kept is held once, beside the messages themselves.
#[cfg(target_os = "linux")]
#[test]
fn what_is_kept_is_held_once() {
    use std::process::Command;

    if let Ok(case) = std::env::var(CASE) {
        let (size, held) = held(&case);
        println!("{size} bytes: {held} held");
        return;
    }
    for (way, encoders) in [("grown", 3..5), ("told", 2..3), ("threads", 3..5)] {
        for which in encoders {
            let output = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "what_is_kept_is_held_once", "--nocapture"])
                .env(CASE, format!("{which} {way}"))
                .env("MALLOC_ARENA_MAX", "1")
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            let Some((size, held)) = said.lines().find_map(|line| line.split_once(" bytes: ")) else {
                panic!("{way} {which}: {said}{}", String::from_utf8_lossy(&output.stderr));
            };
            let (size, held): (usize, usize) =
                (size.rsplit(' ').next().unwrap().parse().unwrap(), held.trim_end_matches(" held").parse().unwrap());
            println!("{way} {which}: {size} bytes, {held} held");
            // The texts of the messages and what is sent of them; and what else a message takes.
            assert!(held <= size * 5 / 2 + 3_000_000 + MESSAGES * 450, "{way} {which}: {size} bytes, {held} held");
        }
    }
}

// A long chain is dropped step by step, on whatever stack.
#[test]
fn a_long_history_is_dropped_on_a_small_stack() {
    let encoders = encoders();
    let history = conversation(5_000, "x");
    for (_, encode) in &encoders {
        encode(&history).unwrap();
    }
    let other = history.clone();
    std::thread::Builder::new().stack_size(32 * 1024).spawn(move || drop(history)).unwrap().join().unwrap();
    std::thread::Builder::new().stack_size(32 * 1024).spawn(move || drop(other)).unwrap().join().unwrap();
}
