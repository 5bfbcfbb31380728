//! The promises of a memory.

use std::sync::Arc;

use cepa_agent::{ChatMemory, Loaded, Version};
use cepa_core::{Entry, ErrorKind, History, Message};

use super::{Check, Outcome, checks, ensure, fine, plain, refused, whole};
use crate::arbitrary::{Plan, Rng, history};

pub(super) const CHECKS: &[Check<dyn ChatMemory>] = checks! { dyn ChatMemory:
    "an unknown conversation is an empty one at 0/0" => unknown,
    "what comes back equals what went in, byte for byte, in order" => fidelity,
    "an entry without an id gets one that stays" => names,
    "a wrong expected version is a conflict and writes nothing" => versions,
    "the same append can be made again" => again,
    "an append leaves out entries that are there" => overlap,
    "a load tells what is new since the held version" => held,
    "clear removes all messages and raises the epoch" => clear,
    "conversations do not touch each other" => apart,
    "pages are pieces of the whole" => pages,
    "a list has each conversation once, the last changed first" => list,
    "appends at the same time are whole and none is lost" => at_once,
    "long conversations and messages are kept" => long,
};

type Memory = Arc<dyn ChatMemory>;

fn named(id: &str, text: &str) -> Arc<Entry> {
    Arc::new(Entry::with_id(id, 7, Message::user(text)))
}

/// A conversation of everything that there can be, each entry with an id and a time. The user begins, so that a view,
/// which begins with the user, can be checked too.
fn anything(seed: u64) -> Vec<Arc<Entry>> {
    let mut messages = vec![Message::user("first")];
    messages.extend(history(&mut Rng::new(seed), Plan::WILD));
    let entry = |(n, message)| Arc::new(Entry::with_id(format!("e{seed}-{n}"), 1_000 + n as i64, message));
    messages.into_iter().enumerate().map(entry).collect()
}

async fn unknown(memory: Memory) -> Outcome {
    let (version, entries) = whole(&*memory, "nobody").await?;
    ensure!(version == Version::default() && entries.is_empty(), "{version:?}, {} entries", entries.len());
    let page = fine("page", memory.page("nobody", 0, 10).await)?;
    ensure!(page.is_empty(), "a page of {} entries", page.len());
    let list = fine("list", memory.list(0, 10).await)?;
    ensure!(list.is_empty(), "a list of {list:?}");
    fine("clear", memory.clear("nobody").await)
}

// M7: full fidelity: every part, id, status and byte.
async fn fidelity(memory: Memory) -> Outcome {
    for seed in 0..40 {
        let id = format!("c{seed}");
        let entries = anything(seed);
        let (first, second) = entries.split_at(entries.len() / 2);
        let version = fine("append", memory.append(&id, Version::default(), first.to_vec()).await)?;
        let version = fine("append", memory.append(&id, version, second.to_vec()).await)?;
        let (loaded, back) = whole(&*memory, &id).await?;
        ensure!(version.seq == entries.len() as u64 && loaded == version, "{version:?} and {loaded:?}");
        for (wanted, found) in plain(&entries).iter().zip(plain(&back)) {
            ensure!(*wanted == found, "{wanted:?} came back as {found:?}");
        }
        ensure!(back.len() == entries.len(), "{} of {} entries", back.len(), entries.len());
        let (lossy, lost) = fine("load_lossy", memory.load_lossy(&id).await)?;
        ensure!(lossy.len() == entries.len() && lost.is_empty(), "load_lossy lost {lost:?}");
    }
    Ok(())
}

async fn names(memory: Memory) -> Outcome {
    let entries = (0..5).map(|n| Arc::new(Entry::new(Message::user(n.to_string())))).collect();
    let version = fine("append", memory.append("c", Version::default(), entries).await)?;
    // A name that the memory gives may be one that somebody uses already.
    let more = vec![named("m0-7", "mine"), Arc::new(Entry::new(Message::user("unnamed")))];
    fine("append", memory.append("c", version, more).await)?;
    let (_, first) = whole(&*memory, "c").await?;
    let (_, second) = whole(&*memory, "c").await?;
    ensure!(plain(&first) == plain(&second), "ids change between two loads");
    let mut ids: Vec<_> = first.iter().filter_map(|entry| entry.id.clone()).collect();
    ids.sort_unstable();
    ids.dedup();
    ensure!(ids.len() == 7, "{} different ids of 7 entries", ids.len());
    Ok(())
}

// M1: a wrong expected version is a typed conflict, never an interleaving.
async fn versions(memory: Memory) -> Outcome {
    let one = fine("append", memory.append("c", Version::default(), vec![named("a", "1")]).await)?;
    let two = fine("append", memory.append("c", one, vec![named("b", "2")]).await)?;
    ensure!((one.seq, two.seq, two.epoch) == (1, 2, one.epoch), "{one:?}, {two:?}");
    let wrong = [
        ("an old version", one),
        ("no version", Version::default()),
        ("a version to come", Version { seq: 3, ..two }),
        ("another epoch", Version { epoch: two.epoch + 1, ..two }),
    ];
    for (what, version) in wrong {
        refused(what, ErrorKind::Conflict, memory.append("c", version, vec![named("c", "3")]).await)?;
    }
    refused("a new conversation", ErrorKind::Conflict, memory.append("d", one, vec![named("c", "3")]).await)?;
    let (version, entries) = whole(&*memory, "c").await?;
    ensure!(version == two && entries.len() == 2, "a refused append left {version:?}, {} entries", entries.len());
    let (_, other) = whole(&*memory, "d").await?;
    ensure!(other.is_empty(), "a refused append began a conversation");
    Ok(())
}

// M1: append is idempotent by message id.
async fn again(memory: Memory) -> Outcome {
    let entries = vec![named("a", "1"), named("b", "2")];
    let one = fine("append", memory.append("c", Version::default(), entries.clone()).await)?;
    let same = fine("the same append", memory.append("c", Version::default(), entries.clone()).await)?;
    ensure!(same == one, "the same append gave {same:?} after {one:?}");
    let two = fine("append", memory.append("c", one, vec![named("d", "3")]).await)?;
    let late = fine("the same append, later", memory.append("c", Version::default(), entries).await)?;
    ensure!(late == two, "the same append gave {late:?} after {two:?}");
    let (_, entries) = whole(&*memory, "c").await?;
    ensure!(entries.len() == 3, "{} entries of 3", entries.len());
    let nothing = fine("an append of nothing", memory.append("c", two, vec![]).await)?;
    ensure!(nothing == two, "an append of nothing gave {nothing:?}");
    Ok(())
}

async fn overlap(memory: Memory) -> Outcome {
    let one = fine("append", memory.append("c", Version::default(), vec![named("a", "1"), named("b", "2")]).await)?;
    let mixed = vec![named("b", "2"), named("c", "3"), named("c", "3")];
    refused(
        "new entries at an old version",
        ErrorKind::Conflict,
        memory.append("c", Version::default(), mixed.clone()).await,
    )?;
    let two = fine("append", memory.append("c", one, mixed).await)?;
    let (version, entries) = whole(&*memory, "c").await?;
    let ids: Vec<_> = entries.iter().filter_map(|entry| entry.id.as_deref()).collect();
    ensure!(ids == ["a", "b", "c"] && version == two && two.seq == 3, "{ids:?} at {version:?}");
    Ok(())
}

async fn held(memory: Memory) -> Outcome {
    let entries = anything(1);
    let (first, second) = entries.split_at(entries.len() / 2);
    let one = fine("append", memory.append("c", Version::default(), first.to_vec()).await)?;
    let two = fine("append", memory.append("c", one, second.to_vec()).await)?;
    match fine("load", memory.load("c", Some(two)).await)? {
        Loaded::Unchanged => {}
        other => return Err(format!("the newest version gave {other:?}")),
    }
    match fine("load", memory.load("c", Some(one)).await)? {
        Loaded::Added { version, entries } => {
            ensure!(version == two && plain(&entries) == plain(second), "{} added, at {version:?}", entries.len());
        }
        // What a view shows may begin elsewhere meanwhile.
        Loaded::Whole { version, .. } => ensure!(version == two, "whole at {version:?}"),
        Loaded::Unchanged => return Err("an old version gave Unchanged".to_owned()),
    }
    for void in [Version { seq: two.seq + 1, ..two }, Version { epoch: two.epoch + 1, seq: 0 }] {
        match fine("load", memory.load("c", Some(void)).await)? {
            Loaded::Whole { version, history } => {
                ensure!(version == two && history.len() == entries.len(), "{void:?} gave {} entries", history.len());
            }
            other => return Err(format!("{void:?}, which never was, gave {other:?}")),
        }
    }
    Ok(())
}

async fn clear(memory: Memory) -> Outcome {
    let mut last = fine("append", memory.append("c", Version::default(), vec![named("a", "1")]).await)?;
    for round in 0..3 {
        fine("clear", memory.clear("c").await)?;
        let (version, entries) = whole(&*memory, "c").await?;
        ensure!(entries.is_empty() && version.seq == 0, "{} entries at {version:?}", entries.len());
        ensure!(version.epoch > last.epoch, "epoch {} after {}", version.epoch, last.epoch);
        match fine("load", memory.load("c", Some(last)).await)? {
            Loaded::Whole { history, .. } => ensure!(history.is_empty(), "{} entries", history.len()),
            other => return Err(format!("what was held before gave {other:?}")),
        }
        refused(
            "an append to what was cleared",
            ErrorKind::Conflict,
            memory.append("c", last, vec![named("x", "x")]).await,
        )?;
        // An id of a message that was cleared can be used again.
        last = fine("append", memory.append("c", version, vec![named("a", "again")]).await)?;
        ensure!(last.seq == 1, "round {round}: {last:?}");
    }
    Ok(())
}

async fn apart(memory: Memory) -> Outcome {
    let ids = [
        "é",
        "e\u{301}",
        "É",
        "e",
        "e ",
        " e",
        "é'\"%_;--",
        "e%",
        "e_",
        "\u{0}",
        "a\u{0}b",
        "a",
        "0",
        "1e0",
        "💬",
        "C",
        "c",
    ];
    for id in ids {
        fine(id, memory.append(id, Version::default(), vec![named("same id", id)]).await)?;
    }
    for id in ids {
        let (_, entries) = whole(&*memory, id).await?;
        let texts: Vec<_> = entries.iter().map(|entry| entry.message.text().into_owned()).collect();
        ensure!(texts == [id], "{id:?} holds {texts:?}");
    }
    fine("clear", memory.clear("e").await)?;
    for id in ids.into_iter().filter(|id| *id != "e") {
        let (_, entries) = whole(&*memory, id).await?;
        ensure!(entries.len() == 1, "{id:?} was cleared with another");
    }
    Ok(())
}

async fn pages(memory: Memory) -> Outcome {
    let entries: Vec<_> = (0..25).map(|n| named(&format!("e{n}"), &n.to_string())).collect();
    fine("append", memory.append("c", Version::default(), entries.clone()).await)?;
    let mut found = Vec::new();
    while found.len() < 25 {
        let page = fine("page", memory.page("c", found.len() as u64, 10).await)?;
        ensure!(page.len() == 10.min(25 - found.len()), "a page of {} after {}", page.len(), found.len());
        found.extend(page);
    }
    ensure!(plain(&found) == plain(&entries), "the pages are not the whole");
    for (after, limit) in [(25, 10), (1000, 10), (0, 0)] {
        let page = fine("page", memory.page("c", after, limit).await)?;
        ensure!(page.is_empty(), "{} entries after {after}, at most {limit}", page.len());
    }
    let all = fine("page", memory.page("c", 0, usize::MAX).await)?;
    ensure!(all.len() == 25, "{} entries of 25", all.len());
    Ok(())
}

async fn list(memory: Memory) -> Outcome {
    for n in 0..5 {
        fine("append", memory.append(&format!("c{n}"), Version::default(), vec![named("a", "1")]).await)?;
        // Times are in milliseconds.
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    let (version, _) = whole(&*memory, "c1").await?;
    fine("append", memory.append("c1", version, vec![named("b", "2")]).await)?;
    let all = fine("list", memory.list(0, usize::MAX).await)?;
    let ids: Vec<&str> = all.iter().map(|info| info.id.as_str()).collect();
    ensure!(ids == ["c1", "c4", "c3", "c2", "c0"], "{ids:?}");
    let counts: Vec<u64> = all.iter().map(|info| info.messages).collect();
    ensure!(counts == [2, 1, 1, 1, 1], "{counts:?} messages");
    ensure!(all.iter().all(|info| info.created > 0 && info.created <= info.updated), "times {all:?}");
    let some = fine("list", memory.list(1, 2).await)?;
    ensure!(some.iter().map(|info| info.id.as_str()).eq(["c4", "c3"]), "{some:?}");
    let none = fine("list", memory.list(5, 2).await)?;
    ensure!(none.is_empty(), "{none:?}");
    Ok(())
}

// M1: never an interleaving.
async fn at_once(memory: Memory) -> Outcome {
    const WRITERS: usize = 6;
    const ROUNDS: usize = 8;
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let memory = memory.clone();
        writers.push(tokio::spawn(async move {
            for round in 0..ROUNDS {
                let entries: Vec<_> =
                    (0..3).map(|n| named(&format!("{writer}-{round}-{n}"), &format!("{writer}-{round}"))).collect();
                loop {
                    let (version, _) = whole(&*memory, "c").await?;
                    match memory.append("c", version, entries.clone()).await {
                        Err(error) if error.kind() == ErrorKind::Conflict => tokio::task::yield_now().await,
                        done => {
                            fine("append", done)?;
                            break;
                        }
                    }
                }
            }
            Ok::<(), String>(())
        }));
    }
    for writer in writers {
        writer.await.map_err(|error| error.to_string())??;
    }
    let (version, entries) = whole(&*memory, "c").await?;
    ensure!(version.seq == (WRITERS * ROUNDS * 3) as u64, "{version:?}");
    for batch in entries.chunks(3) {
        let texts: Vec<_> = batch.iter().map(|entry| entry.message.text().into_owned()).collect();
        ensure!(texts.windows(2).all(|pair| pair.first() == pair.last()), "interleaved: {texts:?}");
    }
    Ok(())
}

async fn long(memory: Memory) -> Outcome {
    let many: Vec<_> = (0..2_000).map(|n| named(&format!("e{n}"), &n.to_string())).collect();
    let version = fine("append", memory.append("c", Version::default(), many).await)?;
    let huge = "晴\u{0}\n".repeat(1_000_000);
    fine("append", memory.append("c", version, vec![named("huge", &huge)]).await)?;
    let (_, entries) = whole(&*memory, "c").await?;
    let history: History = entries.into_iter().collect();
    ensure!(history.len() == 2_001, "{} entries", history.len());
    ensure!(history.last().is_some_and(|entry| entry.message.text() == huge), "the huge message is another");
    Ok(())
}
