//! Any sequence of calls has the same outcome in every store: in memory, in a file, beside a bare memory.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test that fails panics")]

mod common;

use std::sync::Arc;

use cepa_agent::{
    Bare, Commit, Decision, InMemory, Loaded, PauseState, TurnRow, TurnState, TurnStore, Version,
    store::{CallChange, CallKey, SharedEntry, TurnChange},
};
use cepa_core::{Entry, Error, Message};
use cepa_store::Sqlite;
use common::{call_row, pause, raw, result, turn_row};
use proptest::prelude::*;

const CONVERSATIONS: [&str; 2] = ["c", "d"];
/// The last one is ephemeral: its conversation is its own.
const TURNS: [&str; 4] = ["t0", "t1", "t2", "e"];
const HOLDERS: [&str; 2] = ["me", "you"];

fn conversation_of(turn: usize) -> &'static str {
    ["c", "c", "d", "e"][turn]
}

fn turn_of_pause(pause: usize) -> usize {
    pause / 3
}

fn key_of_pause(pause: usize) -> CallKey {
    CallKey { batch: 0, idx: u32::try_from(pause % 2).unwrap() }
}

#[derive(Clone, Debug)]
enum Op {
    /// Appends messages by number (9 and more: without an id), at the present version or another.
    Append {
        conversation: usize,
        at_head: bool,
        messages: Vec<usize>,
    },
    Clear {
        conversation: usize,
    },
    Lease {
        turn: usize,
        holder: usize,
        wait: i64,
    },
    Release {
        turn: usize,
        old: bool,
    },
    Begin {
        turn: usize,
        old: bool,
    },
    Commit {
        turn: usize,
        old: bool,
        steps: Vec<Step>,
    },
    Decide {
        pause: usize,
        decision: usize,
        late: bool,
    },
    Forget {
        turn: usize,
    },
}

#[derive(Clone, Debug)]
enum Step {
    Plan(u32),
    Start(u32, u32),
    Finish(u32, usize),
    Lose(u32),
    Pause(usize),
    Close(usize, bool),
    Message(usize),
    State(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..2_u32).prop_map(Step::Plan),
        3 => (0..2_u32, 1..4_u32).prop_map(|(idx, attempt)| Step::Start(idx, attempt)),
        3 => (0..2_u32, 0..4_usize).prop_map(|(idx, what)| Step::Finish(idx, what)),
        1 => (0..2_u32).prop_map(Step::Lose),
        3 => (0..12_usize).prop_map(Step::Pause),
        1 => (0..12_usize, any::<bool>()).prop_map(|(pause, expired)| Step::Close(pause, expired)),
        2 => (0..12_usize).prop_map(Step::Message),
        2 => (0..4_usize).prop_map(Step::State),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let messages = prop::collection::vec(0..12_usize, 0..4);
    let old = prop::bool::weighted(0.1);
    prop_oneof![
        4 => (0..2_usize, prop::bool::weighted(0.8), messages)
            .prop_map(|(conversation, at_head, messages)| Op::Append { conversation, at_head, messages }),
        1 => (0..2_usize).prop_map(|conversation| Op::Clear { conversation }),
        2 => (0..4_usize, 0..2_usize, 0..30_i64).prop_map(|(turn, holder, wait)| Op::Lease { turn, holder, wait }),
        1 => (0..4_usize, old).prop_map(|(turn, old)| Op::Release { turn, old }),
        4 => (0..4_usize, old).prop_map(|(turn, old)| Op::Begin { turn, old }),
        9 => (0..4_usize, old, prop::collection::vec(step(), 0..5))
            .prop_map(|(turn, old, steps)| Op::Commit { turn, old, steps }),
        4 => (0..12_usize, 0..4_usize, prop::bool::weighted(0.1))
            .prop_map(|(pause, decision, late)| Op::Decide { pause, decision, late }),
        1 => (0..4_usize).prop_map(|turn| Op::Forget { turn }),
    ]
}

fn message(n: usize) -> Arc<Entry> {
    let message = Message::user(n.to_string());
    Arc::new(if n < 9 { Entry::with_id(format!("n{n}"), 5, message) } else { Entry::new(message) })
}

fn row(turn: usize) -> TurnRow {
    TurnRow { ephemeral: TURNS[turn] == "e", ..turn_row(TURNS[turn], conversation_of(turn)) }
}

fn commit(turn: usize, steps: &[Step], at: i64) -> Commit {
    let mut commit = Commit { at, ..Commit::default() };
    let key = |idx| CallKey { batch: 0, idx };
    for step in steps {
        match *step {
            Step::Plan(idx) => commit.calls.push(CallChange::Planned(call_row(key(idx)))),
            Step::Start(idx, attempt) => {
                let executed_args = (attempt == 2).then(|| raw(r#"{"amount": 2.0}"#));
                commit.calls.push(CallChange::Started { key: key(idx), attempt, executed_args, at });
            }
            Step::Finish(idx, what) => {
                let mut result = result(&format!("\"{what}\""));
                result.full = (what == 1).then(|| raw("\"full\""));
                result.failure = (what >= 2).then(|| "environment".to_owned());
                commit.calls.push(CallChange::Finished { key: key(idx), result, at });
            }
            Step::Lose(idx) => commit.calls.push(CallChange::Unknown { key: key(idx), at }),
            Step::Pause(n) => {
                // Mostly this turn's own pauses; sometimes an id that another turn has.
                let mut pause = pause(&format!("p{n}"), TURNS[turn], key_of_pause(n));
                pause.conversation = conversation_of(turn).into();
                pause.created = at;
                pause.expires = Some(1_000_000);
                if turn_of_pause(n) == turn || n == 0 {
                    commit.pauses.push(pause);
                }
            }
            Step::Close(n, expired) => {
                let state = if expired { PauseState::Expired } else { PauseState::Cancelled };
                commit.closed_pauses.push((format!("p{n}"), state));
            }
            // An ephemeral turn has no messages in the store.
            Step::Message(n) if TURNS[turn] != "e" => commit.messages.push(SharedEntry(message(n))),
            Step::Message(_) => {}
            Step::State(n) => {
                let states = [TurnState::Running, TurnState::Paused, TurnState::Completed, TurnState::Failed];
                let carried = (n == 1).then(|| cepa_core::History::from(vec![cepa_core::Message::user("1")]));
                commit.turn = Some(TurnChange { state: states[n], data: raw(&n.to_string()).into(), carried });
            }
        }
    }
    commit
}

/// What a call came to, in one text.
fn told<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => error.kind().to_string(),
    }
}

async fn head(store: &dyn TurnStore, conversation: &str) -> (Version, Vec<String>) {
    match store.load(conversation, None).await.unwrap() {
        Loaded::Whole { version, history } => {
            let entry = |entry: &Arc<Entry>| format!("{:?} {} {:?}", entry.id, entry.created, entry.message);
            (version, history.iter().map(entry).collect())
        }
        other => panic!("{other:?}"),
    }
}

/// Does one call; `tokens` are those that leases gave, by turn.
async fn run(store: &dyn TurnStore, op: &Op, now: i64, tokens: &mut [u64; 4]) -> String {
    let token = |tokens: &[u64; 4], turn: usize, old: bool| tokens[turn].saturating_sub(u64::from(old));
    match op {
        Op::Append { conversation, at_head, messages } => {
            let id = CONVERSATIONS[*conversation];
            let (mut version, _) = head(store, id).await;
            version.seq += u64::from(!at_head);
            told(store.append(id, version, messages.iter().map(|n| message(*n)).collect()).await)
        }
        Op::Clear { conversation } => told(store.clear(CONVERSATIONS[*conversation]).await),
        Op::Lease { turn, holder, wait } => {
            let lease = store.lease(conversation_of(*turn), HOLDERS[*holder], now, now + wait).await;
            if let Ok(lease) = &lease {
                for other in (0..4).filter(|other| conversation_of(*other) == conversation_of(*turn)) {
                    tokens[other] = lease.token;
                }
            }
            told(lease)
        }
        Op::Release { turn, old } => told(store.release(conversation_of(*turn), token(tokens, *turn, *old)).await),
        Op::Begin { turn, old } => told(store.begin(row(*turn), token(tokens, *turn, *old)).await),
        Op::Commit { turn, old, steps } => {
            told(store.commit(TURNS[*turn], token(tokens, *turn, *old), commit(*turn, steps, now)).await)
        }
        Op::Decide { pause, decision, late } => {
            let decisions = [
                Decision::Approve,
                Decision::Edit { args: "{}".into() },
                Decision::Reject { reason: None },
                Decision::Reply { content: "no".into() },
            ];
            let at = if *late { 1_000_000 } else { now };
            told(store.decide(&format!("p{pause}"), decisions[*decision].clone(), "ann", at).await)
        }
        Op::Forget { turn } => {
            let forgotten = store.forget(TURNS[*turn]).await;
            if forgotten.is_ok() && TURNS[*turn] == "e" {
                tokens[*turn] = 0;
            }
            told(forgotten)
        }
    }
}

/// All that can be seen of a store.
async fn seen(store: &dyn TurnStore) -> String {
    let mut seen = String::new();
    for conversation in ["c", "d", "e"] {
        seen += &format!("{conversation}: {:#?}\n", head(store, conversation).await);
        seen += &format!("{:?}\n", store.live_turns(Some(conversation)).await);
        seen += &format!("{:#?}\n", store.pending(Some(conversation)).await);
        let page = store.page(conversation, 1, 2).await.unwrap();
        seen += &format!("{:?}\n", page.iter().map(|entry| entry.id.clone()).collect::<Vec<_>>());
    }
    for turn in TURNS {
        seen += &format!("{turn}: {:#?}\n", store.turn(turn).await);
        for idx in 0..2 {
            seen += &format!("{:?}\n", store.full_result(&format!("{turn}/t0.{idx}")).await);
        }
    }
    for pause in 0..12 {
        seen += &format!("{:?}\n", store.pause(&format!("p{pause}")).await);
    }
    seen += &format!("{:?}\n{:#?}\n", store.live_turns(None).await, store.pending(None).await);
    let mut list = store.list(0, 10).await.unwrap();
    list.sort_by(|a, b| a.id.cmp(&b.id));
    seen + &format!("{:?}", list.iter().map(|info| (&info.id, info.messages)).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    // M1, D1, H4: the contract of stores is one, whatever keeps the rows.
    #[test]
    fn every_store_answers_alike(ops in prop::collection::vec(op(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let stores: [Arc<dyn TurnStore>; 3] = [
                Arc::new(InMemory::new()),
                Arc::new(Sqlite::open(":memory:").unwrap()),
                Arc::new(Bare::new(InMemory::new().hot_bytes(0))),
            ];
            let mut tokens = [[0; 4]; 3];
            for (n, op) in ops.iter().enumerate() {
                let now = 100 + 10 * i64::try_from(n).unwrap();
                let mut outcomes = Vec::new();
                for (store, tokens) in stores.iter().zip(&mut tokens) {
                    outcomes.push(run(&**store, op, now, tokens).await);
                }
                prop_assert_eq!(&outcomes[0], &outcomes[1], "{}: {:?}", n, op);
                prop_assert_eq!(&outcomes[0], &outcomes[2], "{}: {:?}", n, op);
            }
            let first = seen(&*stores[0]).await;
            prop_assert_eq!(&first, &seen(&*stores[1]).await);
            prop_assert_eq!(&first, &seen(&*stores[2]).await);
            Ok(())
        })?;
    }
}
