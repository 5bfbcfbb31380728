//! Long conversations, of which wires keep the closed part: what is sent is what would be made anew.

use cepa_core::{ChatRequest, History, Message};
use cepa_testkit::arbitrary::{Plan, Rng, for_all};

use super::any_history::{request, wires};

const SEEDS: u64 = 6;

/// Some of the texts are so long that pieces are shared, and joined.
fn with_long_texts(messages: &[Message], rng: &mut Rng) -> Vec<Message> {
    let lengthen = |message: &Message| match message {
        Message::User(_) if rng.chance(20) => {
            let lengths = [300, 2_000, 5_000, 20_000];
            Message::user("long ".repeat(rng.pick(&lengths) / 5))
        }
        other => other.clone(),
    };
    messages.iter().map(lengthen).collect()
}

// P2, W2: whatever was kept beside a history, by this wire or by others, for clones that went on in another way or with other
// settings: the bytes are those of a history of which nothing is kept.
#[test]
fn what_is_kept_is_what_would_be_made_anew() {
    for plan in [Plan { rounds: 40, ..Plan::VALID }, Plan { rounds: 30, ..Plan::WILD }] {
        let property = |messages: &[Message], rng: &mut Rng| {
            let messages = with_long_texts(messages, rng);
            let wires = wires();
            let mut stored = History::new();
            let mut kept: Vec<(usize, History)> = Vec::new();
            for end in 1..=messages.len() {
                stored.push(messages[end - 1].clone());
                if rng.chance(3) {
                    kept.push((end, stored.clone()));
                }
                if !rng.chance(15) {
                    continue;
                }
                // A request brings messages that are not stored yet; at times it goes back to an earlier end.
                let (begin, mut history) = match kept.get(rng.below(8)) {
                    Some((end, history)) => (*end, history.clone()),
                    None => (end, stored.clone()),
                };
                let last = (begin + rng.below(40)).min(messages.len());
                messages[begin..last].iter().for_each(|message| history.push(message.clone()));
                let settings = request(&[], rng);
                for wire in [rng.below(wires.len()), rng.below(wires.len()), rng.below(3)].map(|wire| &wires[wire]) {
                    let body = |messages: History| wire.encode(&ChatRequest { messages, ..settings.clone() });
                    let (found, wanted) = (body(history.clone()), body(messages[..last].to_vec().into()));
                    match (found, wanted) {
                        (Ok(found), Ok(wanted)) if found == wanted => {}
                        (Err(found), Err(wanted)) if found.to_string() == wanted.to_string() => {}
                        (found, wanted) => {
                            return Err(format!("{:?}, to {last}:\n{found:?}\ninstead of\n{wanted:?}", wire.origin()));
                        }
                    }
                }
            }
            Ok(())
        };
        for_all(0..SEEDS, plan, property).unwrap_or_else(|failure| panic!("{plan:?}\n{failure}"));
    }
}
