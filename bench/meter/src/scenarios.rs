//! The scenarios, over any client.

use serde_json::{Value, json};

use crate::{
    Client, Result,
    cost::{Region, cpu_us, live_bytes, resident_bytes, sent_bytes},
    wal,
    work::Work,
};

const USER: &str = "hello there";

/// Runs the scenario that the work names.
pub async fn run<C: Client>(work: &Work) -> Result<()> {
    match work.scenario.as_str() {
        "turn10" => fresh::<C>(work, "loop-10").await,
        "par16" => fresh::<C>(work, "par-16").await,
        "at_once" => at_once::<C>(work).await,
        "long" => long::<C>(work).await,
        "longdb" => long_on_disk::<C>(work).await,
        "stream" => streamed::<C>(work).await,
        "idle" => idle::<C>(work).await,
        "many" => many::<C>(work).await,
        "cold" => cold::<C>(work).await,
        other => Err(format!("no scenario is called {other}").into()),
    }
}

/// A turn, with its answer looked at.
async fn turn<C: Client>(client: &C, talk: &mut C::Talk, text: &str) -> Result<()> {
    let answer = client.turn(talk, text).await?;
    if answer.starts_with("word0") { Ok(()) } else { Err(format!("the answer was {answer:?}").into()) }
}

/// Turns that are each the first of a conversation.
async fn first_turns<C: Client>(client: &C, name: &str, count: usize) -> Result<()> {
    for index in 0..count {
        let mut talk = client.open(&format!("{name}{index}")).await?;
        turn(client, &mut talk, USER).await?;
    }
    Ok(())
}

/// A turn in a fresh conversation, many times. Tells also what memory the client and its first turn took.
async fn fresh<C: Client>(work: &Work, model: &str) -> Result<()> {
    let before = resident_bytes()?;
    let client = C::new(work, model).await?;
    first_turns(&client, "first", 1).await?;
    let held = resident_bytes()?.saturating_sub(before);
    first_turns(&client, "warm", work.warm_up).await?;
    let region = Region::start(work)?;
    first_turns(&client, "fresh", work.turns).await?;
    region.end(work, work.turns, json!({"held_bytes": held}))
}

/// The same in many conversations at once.
async fn at_once<C: Client>(work: &Work) -> Result<()> {
    let client = C::new(work, "loop-10").await?;
    let round = async |name: &str, turns: usize| -> Result<()> {
        let tasks = (0..work.at_once).map(|task| {
            let (client, name) = (client.clone(), format!("{name}{task} "));
            tokio::spawn(async move { first_turns(&client, &name, turns).await })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await??;
        }
        Ok(())
    };
    round("warm", 1).await?;
    let each = work.turns.div_ceil(work.at_once);
    let region = Region::start(work)?;
    round("fresh", each).await?;
    region.end(work, each * work.at_once, json!({}))
}

/// One conversation that grows. Tells the cost of a turn in its first and last tenth, and at some lengths between.
async fn long<C: Client>(work: &Work) -> Result<()> {
    let client = C::new(work, "say-3").await?;
    first_turns(&client, "warm", work.warm_up).await?;
    let mut talk = client.open("long").await?;
    let region = Region::start(work)?;
    let growth = Growth::of(work, &client, &mut talk).await?;
    region.end(work, work.turns, growth.told())
}

/// What the user says.
fn said(conversation: usize, turn: usize) -> String {
    format!("hello there {conversation} {turn}")
}

/// The same, made so long.
fn said_at_length(turn: usize, bytes: usize) -> String {
    let mut text = said(0, turn);
    while text.len() < bytes {
        text.push_str(" and so on");
    }
    text
}

/// Bytes of the JSON of so many turns, as a hand-written loop sends it: what everybody's storage is compared with.
fn plain_bytes(conversation: usize, turns: usize) -> usize {
    let answer = r#"{"role":"assistant","content":"word0 word1 word2 "}"#.len();
    (0..turns).map(|turn| r#"{"role":"user","content":""}"#.len() + said(conversation, turn).len() + answer).sum()
}

/// Numbers of messages before a turn at which it is looked at more closely.
const LENGTHS: [usize; 10] = [10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000];

/// What the turns of one conversation cost.
struct Growth {
    /// CPU time in all, before the first turn and after each.
    marks: Vec<f64>,
    /// At a length: messages, bytes of the request, memory taken since the beginning.
    looks: Vec<(usize, u64, u64)>,
}

impl Growth {
    async fn of<C: Client>(work: &Work, client: &C, talk: &mut C::Talk) -> Result<Self> {
        let (mut all, mut marks, mut looks) = (0.0, vec![0.0], Vec::new());
        let before = resident_bytes()?;
        for index in 0..work.turns {
            let (text, messages) = (said_at_length(index, work.said), 2 * index);
            let sent = if LENGTHS.contains(&messages) { Some(sent_bytes(work)?) } else { None };
            let start = cpu_us();
            turn(client, talk, &text).await?;
            all += cpu_us() - start;
            marks.push(all);
            if let Some(sent) = sent {
                looks.push((messages, sent_bytes(work)? - sent, resident_bytes()?.saturating_sub(before)));
            }
        }
        Ok(Self { marks, looks })
    }

    fn told(&self) -> Value {
        let Self { marks, looks } = self;
        let turns = marks.len() - 1;
        let cost = |from: usize, to: usize| (marks[to] - marks[from]) / (to - from) as f64;
        let tenth = (turns / 10).max(1);
        let curve = looks.iter().map(|&(messages, sent, held)| {
            let turn = messages / 2;
            let around = (turn / 10).max(3);
            let us = cost(turn.saturating_sub(around), (turn + around).min(turns));
            json!({"messages": messages, "us": us, "sent_bytes": sent, "held_bytes": held})
        });
        let curve: Vec<Value> = curve.collect();
        json!({"first_us": cost(0, tenth), "last_us": cost(turns - tenth, turns), "curve": curve})
    }
}

/// The same on a database. Before it is measured, a few turns tell how often the client commits.
async fn long_on_disk<C: Client>(work: &Work) -> Result<()> {
    const PROBE: usize = 10;
    let (db, client) = (work.db()?, C::new(work, "say-3").await?);
    let mut probe = client.open("probe").await?;
    turn(&client, &mut probe, USER).await?;
    let before = wal::commits(db);
    for _ in 0..PROBE {
        turn(&client, &mut probe, USER).await?;
    }
    let commits =
        before.zip(wal::commits(db)).map(|(before, after)| after.saturating_sub(before) as f64 / PROBE as f64);
    first_turns(&client, "warm", work.warm_up).await?;
    let mut talk = client.open("long").await?;
    let region = Region::start(work)?;
    let mut more = Growth::of(work, &client, &mut talk).await?.told();
    more["commits"] = json!(commits);
    // What the probe said is in the file too.
    let (long, short) = (client.stored_bytes(&talk).await?, client.stored_bytes(&probe).await?);
    more["stored_bytes"] = json!(long.zip(short).map(|(long, short)| long + short));
    more["plain_bytes"] = (plain_bytes(0, work.turns) + (PROBE + 1) * plain_bytes(0, 1)).into();
    region.end(work, work.turns, more)
}

/// A long answer, streamed.
async fn streamed<C: Client>(work: &Work) -> Result<()> {
    let client = C::new(work, "say-2000").await?;
    let one = async |name: &str, index: usize| {
        let mut talk = client.open(&format!("{name}{index}")).await?;
        client.stream(&mut talk, USER).await
    };
    for index in 0..work.warm_up {
        one("warm", index).await?;
    }
    let region = Region::start(work)?;
    let mut chunks = 0;
    for index in 0..work.turns {
        chunks += one("fresh", index).await?;
    }
    region.end(work, work.turns, json!({"chunks": chunks}))
}

/// Conversations of twenty short messages that are kept and not used.
async fn idle<C: Client>(work: &Work) -> Result<()> {
    const TURNS: usize = 10;
    let client = C::new(work, "say-3").await?;
    first_turns(&client, "warm", work.warm_up).await?;
    let mut talks = Vec::with_capacity(work.turns);
    let region = Region::start(work)?;
    let (resident, live) = (resident_bytes()?, live_bytes());
    for conversation in 0..work.turns {
        let mut talk = client.open(&format!("idle{conversation}")).await?;
        for index in 0..TURNS {
            turn(&client, &mut talk, &said(conversation, index)).await?;
        }
        talks.push(talk);
    }
    let each = |bytes: f64| bytes / work.turns as f64;
    let plain: usize = (0..work.turns).map(|conversation| plain_bytes(conversation, TURNS)).sum();
    let mut more = json!({
        "conversations": work.turns,
        "plain_bytes": each(plain as f64),
        "resident_bytes": each(resident_bytes()?.saturating_sub(resident) as f64),
    });
    if live > 0 {
        more["allocated_bytes"] = json!(each(live_bytes().saturating_sub(live) as f64));
    }
    if let Some(talk) = talks.first() {
        more["stored_bytes"] = json!(client.stored_bytes(talk).await?);
    }
    region.end(work, work.turns * TURNS, more)
}

/// One more turn in some of many conversations that have had one.
async fn many<C: Client>(work: &Work) -> Result<()> {
    /// Turns to measure in all.
    const MEASURED: usize = 1_000;
    let (count, batches) = (work.turns, (MEASURED / work.turns).max(1));
    first_turns(&C::new(work, "say-3").await?, "warm", work.warm_up).await?;
    let region = Region::start(work)?;
    let (mut us, mut measured, mut held) = (0.0, 0, None);
    for _ in 0..batches {
        let client = C::new(work, "say-3").await?;
        let before = resident_bytes()?;
        let mut talks = Vec::with_capacity(count);
        for conversation in 0..count {
            let mut talk = client.open(&format!("many{conversation}")).await?;
            turn(&client, &mut talk, &said(conversation, 0)).await?;
            talks.push(talk);
        }
        held.get_or_insert(resident_bytes()?.saturating_sub(before));
        let start = cpu_us();
        for talk in talks.iter_mut().step_by((count / MEASURED).max(1)) {
            turn(&client, talk, USER).await?;
            measured += 1;
        }
        us += cpu_us() - start;
    }
    region.end(work, count * batches + measured, json!({"us": us / measured as f64, "held_bytes": held}))
}

/// From the start of the process to the end of a first turn; the whole process is measured from outside.
async fn cold<C: Client>(work: &Work) -> Result<()> {
    first_turns(&C::new(work, "say-3").await?, "cold", 1).await?;
    println!("{}", json!({"scenario": work.scenario, "turns": 1, "calls": 1}));
    Ok(())
}
