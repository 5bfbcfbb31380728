//! Kind `stream`: one body, cut by the network in every way, must always mean the same.

use std::{collections::HashMap, time::Instant};

use cepa_core::RawJson;
use serde::{Deserialize, Serialize};

use crate::{
    line::{Fail, Line, Observed, observed},
    outcome::Outcome,
    wire::{Eof, Wire, model_of_stream},
};

#[derive(Deserialize)]
struct Input {
    sse: String,
    eof: Eof,
}

/// One of the distinct outcomes.
#[derive(Serialize)]
struct Seen {
    split: String,
    runs: usize,
    elapsed_ms: u64,
    outcome: RawJson,
}

/// Decodes the body in each way to cut it and reports the distinct outcomes.
pub(crate) fn run(line: &Line) -> Result<Observed, Fail> {
    let input: Input = line.input()?;
    let wire = Wire::of(&line.provider, &model_of_stream(&input.sse))?;
    let body = input.sse.as_bytes();
    let mut seen: Vec<Seen> = Vec::new();
    // By the outcome with each generated id replaced by its number.
    let mut places: HashMap<String, usize> = HashMap::new();
    for (split, pieces) in splits(body) {
        let start = Instant::now();
        let (result, deltas) = wire.stream(pieces.into_iter(), input.eof);
        let elapsed_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let ids: Vec<String> = match &result {
            Ok(response) => response.message.tool_calls.iter().map(|call| call.id.clone()).collect(),
            Err(_) => Vec::new(),
        };
        let outcome = RawJson::of(&Outcome::of(&wire, result, Some(deltas))?)?;
        let canonical = canonical(outcome.as_str(), &ids, &input.sse);
        match places.get(&canonical).and_then(|place| seen.get_mut(*place)) {
            Some(same) => {
                same.runs += 1;
                same.elapsed_ms = same.elapsed_ms.max(elapsed_ms);
            }
            None => {
                places.insert(canonical, seen.len());
                seen.push(Seen { split, runs: 1, elapsed_ms, outcome });
            }
        }
    }
    observed(&seen)
}

/// The body whole, in pieces of 1, 2, 3 and 7 bytes, and in two pieces at each place.
fn splits(body: &[u8]) -> impl Iterator<Item = (String, Vec<&[u8]>)> {
    let whole = std::iter::once(("whole".to_owned(), vec![body]));
    let by = [1, 2, 3, 7].into_iter().map(|size| (format!("by-{size}"), body.chunks(size).collect()));
    let cuts = (1..body.len()).map(|at| {
        let (head, tail) = body.split_at(at);
        (format!("cut-{at}"), vec![head, tail])
    });
    whole.chain(by).chain(cuts)
}

/// Replaces each generated id (one that the body does not contain) by its number of appearance.
fn canonical(outcome: &str, ids: &[String], sse: &str) -> String {
    let generated = ids.iter().filter(|id| !sse.contains(id.as_str())).enumerate();
    generated.fold(outcome.to_owned(), |text, (number, id)| text.replace(id.as_str(), &format!("generated {number}")))
}
