//! What holds of one step: what the caller was told, and what it left, follow from what was there before.

use cepa_agent::{Decision, TurnError, TurnResult, TurnStatus};
use cepa_core::{ErrorKind, Message};

use crate::{
    invariants::ensure,
    program::{Ending, Setup, Talk},
    rows::{Pause, Rows, Turn, is_in},
    world::{Asked, Deed, Outcome},
};

/// A clock that is this near to the end of a pause says nothing certain about it.
const NEAR: i64 = 10_000;

fn id_of(talk: Talk) -> Option<&'static str> {
    match talk {
        Talk::C => Some("c"),
        Talk::D => Some("d"),
        Talk::Nowhere => None,
    }
}

fn live<'a>(rows: &'a Rows, id: &str) -> Vec<&'a Turn> {
    let key = rows.conversation(id).map(|conversation| conversation.key);
    rows.turns.iter().filter(|turn| Some(turn.conversation) == key && turn.is_live()).collect()
}

fn kind(outcome: &Outcome) -> Option<ErrorKind> {
    match outcome {
        Outcome::Turn(Err(error)) | Outcome::Recovered(Err(error)) => Some(error.error.kind()),
        Outcome::Reset(Err(error)) | Outcome::Swept(Err(error)) => Some(error.kind()),
        Outcome::Turn(Ok(_))
        | Outcome::Recovered(Ok(_))
        | Outcome::Swept(Ok(_))
        | Outcome::Reset(Ok(()))
        | Outcome::Idle
        | Outcome::Gone => None,
    }
}

fn unchanged(before: &Rows, after: &Rows, why: &str) -> Result<(), String> {
    let (before, after) = (before.clone().without_tokens(), after.clone().without_tokens());
    ensure(before == after, || format!("{why}: but {before:#?}\nbecame {after:#?}"))
}

/// One step of one actor.
pub(crate) fn single(
    before: &Rows,
    after: &Rows,
    now: i64,
    deed: &Deed,
    outcome: &Outcome,
    ending: Ending,
    setup: &Setup,
) -> Result<(), String> {
    if let Outcome::Turn(Ok(result)) | Outcome::Recovered(Ok(Some(result))) = outcome {
        told(after, result)?;
    }
    if ending != Ending::Runs {
        return Ok(());
    }
    match deed {
        Deed::Chat(talk, _, text) => chat(before, after, *talk, text, outcome, setup),
        Deed::Decide(talk, asked) => decide(before, after, now, *talk, asked, outcome),
        Deed::Recover(talk) => {
            let Some(id) = id_of(*talk) else { return Ok(()) };
            let waits = |turn: &Turn| after.pauses.iter().any(|p| p.turn == turn.key && p.state == "pending");
            let stuck = matches!(outcome, Outcome::Recovered(Ok(_))) && live(after, id).iter().any(|turn| !waits(turn));
            ensure(!stuck, || format!("D2: recovered, and a turn is still to be driven: {:?}", live(after, id)))
        }
        Deed::Reset(talk) => {
            let (Some(id), Outcome::Reset(Ok(()))) = (id_of(*talk), outcome) else { return Ok(()) };
            let key = after.conversation(id).map(|conversation| conversation.key);
            let left = after.messages.iter().any(|message| Some(message.conversation) == key)
                || after.turns.iter().any(|turn| Some(turn.conversation) == key);
            ensure(!left, || "M1: something is left after a reset".to_owned())
        }
        Deed::Sweep | Deed::Nothing => Ok(()),
    }
}

fn chat(before: &Rows, after: &Rows, talk: Talk, text: &str, outcome: &Outcome, setup: &Setup) -> Result<(), String> {
    let Some(id) = id_of(talk) else {
        let Outcome::Turn(result) = outcome else { return Ok(()) };
        let paused = result.as_ref().is_ok_and(TurnResult::is_paused);
        return if paused {
            Ok(())
        } else {
            // What somebody was asked stays in the audit trail, also of a turn that was cancelled as it began to wait.
            let but_the_trail = Rows { audit: before.audit.clone(), ..after.clone() };
            unchanged(before, &but_the_trail, "L12: a turn without a conversation leaves nothing")
        };
    };
    let said = |rows: &Rows| rows.messages.iter().any(|message| message.body.contains(&format!("\"{text}\"")));
    match outcome {
        Outcome::Turn(Ok(result)) => {
            let stays = result.status != TurnStatus::Cancelled;
            ensure(!stays || said(after), || format!("M2: {text:?} was answered and is not stored"))?;
            let over = result.is_paused() || live(after, id).is_empty();
            ensure(over, || format!("L15: the turn is over and one is live: {:?}", live(after, id)))
        }
        Outcome::Turn(Err(error)) if error.error.kind() == ErrorKind::Server => {
            if live(before, id).is_empty() && !said(after) {
                let (old, new) = (&before.messages, &after.messages);
                ensure(old == new, || format!("M3: the first call failed, and {old:?} became {new:?}"))?;
            }
            ensure(live(after, id).is_empty(), || "L3: it failed, and is live".to_owned())
        }
        Outcome::Turn(Err(error)) if matches!(error.error.kind(), ErrorKind::Busy | ErrorKind::Cancelled) => {
            let plain = live(before, id).iter().all(|turn| turn.state == "paused") && setup.expires.is_none();
            let settled = before.pauses.iter().filter(|pause| is_in(before, pause, Some(id)));
            let waits = settled.clone().any(|pause| pause.state == "pending");
            if plain && (waits || live(before, id).is_empty()) {
                return unchanged(before, after, "L15, H6: a message that was refused leaves nothing");
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn decide(before: &Rows, after: &Rows, now: i64, talk: Talk, asked: &Asked, outcome: &Outcome) -> Result<(), String> {
    let kind = kind(outcome);
    let expect = |expected: ErrorKind, contract: &str| {
        ensure(kind == Some(expected), || format!("{contract}: {expected} was due, it was {outcome:?}"))
    };
    let later = |id: &str| after.pauses.iter().find(|pause| pause.id == id);
    if asked.blanket {
        let open = asked.pauses.iter().filter(|id| later(id).is_some_and(|pause| pause.state == "pending"));
        let open: Vec<_> = open.collect();
        // Without a conversation a blanket decision is about the last turn.
        let all = matches!(outcome, Outcome::Turn(Ok(_))) && id_of(talk).is_some();
        return ensure(!all || open.is_empty(), || format!("H2: {open:?} still wait"));
    }
    let Some(id) = asked.pauses.first() else { return Ok(()) };
    let old = before.pauses.iter().find(|pause| pause.id == *id && is_in(before, pause, id_of(talk)));
    let Some(old) = old else {
        expect(ErrorKind::NotPaused, "H2")?;
        return unchanged(before, after, "H2: there is no such pause here");
    };
    if old.expires.is_some_and(|expires| (expires - now).abs() < NEAR) {
        return Ok(());
    }
    let late = old.expires.is_some_and(|expires| expires <= now);
    match (old.state.as_str(), &asked.decision) {
        ("pending", Decision::Edit { args }) if !late && args.contains("wrong") => {
            expect(ErrorKind::InvalidInput, "H2")?;
            unchanged(before, after, "H2: arguments that the tool does not take decide nothing")
        }
        ("pending", Decision::Edit { args }) if args.contains("wrong") => Ok(()),
        ("pending", _) if late => {
            expect(ErrorKind::Expired, "H5")?;
            let state = later(id).map(|pause| pause.state.as_str());
            ensure(state.is_none_or(|state| state == "expired"), || format!("H5: it is {state:?}"))
        }
        ("pending", decision) => {
            // It may be gone with a turn that left nothing.
            let Some(new) = later(id) else { return Ok(()) };
            let state = decision.state();
            ensure(new.state == state.as_str(), || format!("H2: {decision:?} made {new:?} of {old:?}, {outcome:?}"))
        }
        ("cancelled", _) => expect(ErrorKind::NotPaused, "H9"),
        ("expired", _) => expect(ErrorKind::Expired, "H5"),
        (_, decision) if is_same(old, decision) => {
            let already = kind == Some(ErrorKind::AlreadyDecided);
            ensure(!already, || "H4: the same decision again is refused".to_owned())
        }
        (_, _) => {
            expect(ErrorKind::AlreadyDecided, "H4")?;
            unchanged(before, after, "H4: the first decision stands")
        }
    }
}

fn is_same(pause: &Pause, decision: &Decision) -> bool {
    let stored: Option<Decision> = pause.decision.as_ref().map(|json| serde_json::from_str(json).unwrap());
    stored.as_ref() == Some(decision)
}

/// L3: a caller is told what is stored.
fn told(rows: &Rows, result: &TurnResult) -> Result<(), String> {
    let Some(turn) = rows.turn(&result.turn) else {
        return ensure(result.conversation.is_none() && !result.is_paused(), || {
            format!("D1: {} was told of and is not stored", result.turn)
        });
    };
    ensure(turn.state == result.status.as_str(), || format!("L3: {:?} was told of {turn:?}", result.status))?;
    let calls = rows.calls_of(turn);
    let stored: Vec<_> = calls.iter().filter(|call| call.state == "finished").collect();
    let stored: Vec<_> = stored
        .into_iter()
        .map(|call| (call.call_id.clone(), call.tool.clone(), call.args.clone(), call.status.clone(), call.text()))
        .collect();
    let records: Vec<_> = result
        .records
        .iter()
        .map(|record| {
            let status = Some(record.outcome.as_str().to_owned());
            let args = record.args.as_str().to_owned();
            (record.id.clone(), record.name.clone(), args, status, Some(record.result.clone()))
        })
        .collect();
    ensure(stored == records, || format!("L3: the records {records:#?} are not the rows {stored:#?}"))?;
    let data = turn.data();
    let usage = data.pointer("/usage/input").and_then(serde_json::Value::as_u64).unwrap_or_default();
    ensure(usage == result.usage.input, || format!("L3: {:?} was told of {data}", result.usage))?;
    let mut waiting: Vec<&Pause> =
        rows.pauses.iter().filter(|pause| pause.turn == turn.key && pause.state == "pending").collect();
    waiting.sort_by_key(|pause| (pause.batch, pause.idx));
    let waiting: Vec<&str> = waiting.iter().map(|pause| pause.id.as_str()).collect();
    let pending: Vec<&str> = result.pending.iter().map(|pause| pause.id.as_str()).collect();
    ensure(waiting == pending, || format!("H1: {pending:?} was told of, {waiting:?} wait"))?;
    if result.status == TurnStatus::Completed && !turn.ephemeral {
        let mut last = String::new();
        for message in rows.messages_of(turn.conversation).iter().filter(|m| m.turn.as_ref() == Some(&turn.id)) {
            let message: Message = serde_json::from_str(&message.body).unwrap();
            last = message.text().into_owned();
        }
        ensure(result.text.ends_with(&last), || format!("L3: {:?} was told, {last:?} is stored", result.text))?;
    }
    Ok(())
}

/// H4: of two decisions at once one counts.
pub(crate) fn both(deeds: [&Deed; 2], outcomes: [&Outcome; 2]) -> Result<(), String> {
    let [Deed::Decide(_, a), Deed::Decide(_, b)] = deeds else { return Ok(()) };
    if a.blanket || b.blanket || a.pauses != b.pauses || a.decision == b.decision {
        return Ok(());
    }
    let won = |outcome: &&Outcome| match outcome {
        Outcome::Turn(Ok(_)) => true,
        // It stands, and somebody else drives the turn, or the model is down.
        Outcome::Turn(Err(TurnError { error, .. })) => {
            matches!(error.kind(), ErrorKind::Busy | ErrorKind::Server | ErrorKind::Conflict)
        }
        _ => false,
    };
    let winners = outcomes.iter().filter(|outcome| won(outcome)).count();
    ensure(winners <= 1, || format!("H4: both won: {outcomes:?}"))
}

/// L15, D1: what a holder writes after another has taken over leaves nothing.
pub(crate) fn fenced([before, asleep, between, after]: [&Rows; 4], first: &Deed) -> Result<(), String> {
    let talk = match first {
        Deed::Chat(talk, ..) | Deed::Recover(talk) => *talk,
        Deed::Decide(..) | Deed::Reset(_) | Deed::Sweep | Deed::Nothing => return Ok(()),
    };
    let Some(id) = id_of(talk) else { return Ok(()) };
    let held = |rows: &Rows| rows.conversation(id).map(|c| (c.token, c.held_by.clone()));
    let token = |rows: &Rows| rows.conversation(id).map_or(0, |conversation| conversation.token);
    let held_it = held(asleep) != held(before);
    let taken_over = token(between) > token(asleep);
    let came_back = token(after) > token(between);
    if held_it && taken_over && !came_back {
        return unchanged(between, after, "L15: a holder who was overtaken wrote");
    }
    Ok(())
}
