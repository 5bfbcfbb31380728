//! The oddities of servers, each by itself: pieces in, calls out.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// The calls that these chunks of pieces make, as (id, name, arguments).
fn calls(chunks: &[Value]) -> Vec<(String, String, String)> {
    let sink = EventSink::none();
    let mut calls = Calls::default();
    for chunk in chunks {
        calls.pieces(serde_json::from_str(&chunk.to_string()).unwrap(), &sink).unwrap();
    }
    calls.finish(&sink).into_iter().map(|call| (call.id, call.name, call.args.as_str().to_owned())).collect()
}

fn names_and_args(chunks: &[Value]) -> Vec<(String, String)> {
    calls(chunks).into_iter().map(|(_, name, args)| (name, args)).collect()
}

fn pair(name: &str, args: &str) -> (String, String) {
    (name.to_owned(), args.to_owned())
}

#[test]
fn one_index_and_no_ids_with_whole_calls_are_several_calls() {
    // Gemini's and older Ollama's way: each call whole, all under one number, ids empty.
    let call = |args: &str| json!([{"index": 0, "id": "", "function": {"name": "f", "arguments": args}}]);
    assert_eq!(
        names_and_args(&[call("{\"a\":1}"), call("{\"a\":2}")]),
        [pair("f", "{\"a\":1}"), pair("f", "{\"a\":2}")]
    );
}

#[test]
fn whole_calls_under_one_constant_id_are_several_calls() {
    let call = |args: &str| json!([{"index": 0, "id": "call_0", "function": {"name": "f", "arguments": args}}]);
    let calls = calls(&[call("{\"a\":1}"), call("{\"a\":2}")]);
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0].0, "call_0");
    assert_ne!(calls[1].0, "call_0");
}

#[test]
fn a_call_that_is_said_again_behind_its_pieces_is_one_call() {
    let wanted = [("a".to_owned(), "f".to_owned(), "{\"x\": 1}".to_owned())];
    let piece = |index: &Value, id: Value, name: Value, args: Value| {
        let mut piece = json!({"id": id, "function": {"name": name, "arguments": args}});
        if !index.is_null() {
            piece["index"] = index.clone();
        }
        json!([piece])
    };
    // As it was, with other spaces, encoded twice, as an object; with the name and without.
    let again = [json!("{\"x\": 1}"), json!("{\"x\":1}"), json!("\"{\\\"x\\\":1}\""), json!({"x": 1})];
    for (index, args) in [json!(0), json!(null)].iter().flat_map(|index| again.iter().map(move |args| (index, args))) {
        for (name, count) in [(json!("f"), 1), (json!(null), 2)] {
            let mut chunks = vec![
                piece(index, json!("a"), json!("f"), json!("{\"x\"")),
                piece(index, if index.is_null() { json!("a") } else { json!(null) }, json!(null), json!(": 1}")),
            ];
            chunks.extend(std::iter::repeat_n(piece(index, json!("a"), name.clone(), args.clone()), count));
            assert_eq!(calls(&chunks), wanted, "{chunks:?}");
        }
        // The number is in one of them only.
        let mixed = [
            piece(index, json!("a"), json!("f"), json!("{\"x\": 1}")),
            piece(&if index.is_null() { json!(0) } else { json!(null) }, json!("a"), json!("f"), args.clone()),
        ];
        assert_eq!(calls(&mixed), wanted, "{mixed:?}");
    }
    // Other arguments are another call, or the rest of this one.
    let other = [
        piece(&json!(0), json!("a"), json!("f"), json!("{\"x\": 1}")),
        piece(&json!(0), json!("a"), json!("f"), json!("{\"x\": 2}")),
    ];
    assert_eq!(calls(&other).len(), 2);
    // So is another name, number or id.
    for (index, id, name) in [(0, "a", "g"), (1, "a", "f"), (0, "b", "f")] {
        let other = [
            piece(&json!(0), json!("a"), json!("f"), json!("{\"x\": 1}")),
            piece(&json!(index), json!(id), json!(name), json!("{\"x\": 1}")),
        ];
        assert_eq!(calls(&other).len(), 2, "{other:?}");
    }
}

#[test]
fn what_a_call_carries_beside_it_is_kept_when_it_is_said_again() {
    let sink = EventSink::none();
    let mut calls = Calls::default();
    for extra in [json!(null), json!({"google": {"thought_signature": "s"}})] {
        let function = json!({"name": "f", "arguments": "{}"});
        let piece = json!([{"index": 0, "id": "a", "function": function, "extra_content": extra}]);
        calls.pieces(serde_json::from_str(&piece.to_string()).unwrap(), &sink).unwrap();
    }
    let calls = calls.finish(&sink);
    assert_eq!((calls.len(), calls[0].extra["extra_content"].as_str()), (1, r#"{"google":{"thought_signature":"s"}}"#));
}

#[test]
fn arguments_under_another_number_without_id_and_name_go_to_the_call_at_hand() {
    let chunks = [
        json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":"}}]),
        json!([{"index": 1, "function": {"arguments": "1}"}}]),
    ];
    assert_eq!(names_and_args(&chunks), [pair("f", "{\"x\":1}")]);
}

#[test]
fn a_cut_name_is_joined_and_a_repeated_one_is_not() {
    let piece = |name: &str| json!([{"index": 0, "id": "a", "function": {"name": name, "arguments": ""}}]);
    assert_eq!(names_and_args(&[piece("get_"), piece("weather")]), [pair("get_weather", "{}")]);
    assert_eq!(names_and_args(&[piece("get"), piece("get")]), [pair("get", "{}")]);
    // A whole other name is no tool's name, whichever of the two was meant.
    assert_eq!(names_and_args(&[piece("read"), piece("danger")]), [pair("readdanger", "{}")]);
    // Once the arguments have begun, the name is settled.
    let late = json!([{"index": 0, "function": {"name": "other", "arguments": "}"}}]);
    let begun = json!([{"index": 0, "id": "a", "function": {"name": "get", "arguments": "{"}}]);
    assert_eq!(names_and_args(&[begun, late]), [pair("get", "{}")]);
}

#[test]
fn two_calls_in_one_list_are_two_even_with_one_id() {
    let call = json!({"id": "x", "function": {"name": "f", "arguments": "{}"}});
    let calls = calls(&[json!([call, call])]);
    assert_eq!(calls.len(), 2);
    assert_ne!(calls[0].0, calls[1].0);
}

#[test]
fn two_pieces_of_one_index_in_one_list_are_one_call() {
    let pieces = json!([
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\""}},
        {"index": 0, "function": {"arguments": ":1}"}}
    ]);
    assert_eq!(names_and_args(&[pieces]), [pair("f", "{\"x\":1}")]);
}

#[test]
fn pieces_without_index_are_told_apart_by_their_ids() {
    let piece = |id: &str, args: &str| json!([{"id": id, "function": {"arguments": args}}]);
    let begin = |id: &str| json!([{"id": id, "function": {"name": id, "arguments": ""}}]);
    let chunks = [begin("a"), begin("b"), piece("a", "{\"x\":"), piece("b", "{}"), piece("a", "1}")];
    assert_eq!(names_and_args(&chunks), [pair("a", "{\"x\":1}"), pair("b", "{}")]);
}

#[test]
fn an_id_that_comes_later_is_still_the_calls_own() {
    let chunks = [
        json!([{"index": 0, "function": {"name": "f"}}]),
        json!([{"index": 0, "id": "late", "function": {"arguments": "{}"}}]),
    ];
    assert_eq!(calls(&chunks), [("late".to_owned(), "f".to_owned(), "{}".to_owned())]);
}

#[test]
fn nothing_makes_no_call_and_stray_arguments_are_not_lost() {
    assert!(
        calls(&[json!([null, {}, {"index": 0, "function": {"arguments": ""}}, {"index": 1, "id": null}])]).is_empty()
    );
    assert_eq!(names_and_args(&[json!([{"function": {"arguments": "{\"a\":1}"}}])]), [pair("", "{\"a\":1}")]);
}

#[test]
fn the_older_form_is_one_call() {
    let sink = EventSink::none();
    let mut calls = Calls::default();
    for part in [json!({"name": "f"}), json!({"arguments": "{\"a\""}), json!({"arguments": ":1}"})] {
        calls.function_call(serde_json::from_str(&part.to_string()).unwrap(), &sink).unwrap();
    }
    let calls = calls.finish(&sink);
    assert_eq!((calls.len(), &*calls[0].name, calls[0].args.as_str()), (1, "f", "{\"a\":1}"));
}

#[test]
fn a_flood_of_calls_is_an_error() {
    let sink = EventSink::none();
    let mut calls = Calls::default();
    let part = || serde_json::from_str::<CallPart<'_>>(r#"{"function":{"name":"f"}}"#).ok();
    let parts = std::iter::repeat_with(part).take(MAX_CALLS + 1).collect();
    assert_eq!(calls.pieces(parts, &sink).unwrap_err().kind(), ErrorKind::Decode);
}

#[test]
fn a_server_cannot_keep_us_looking() {
    // Each piece might begin another call; only reading all that came before tells.
    let first = json!([{"function": {"name": "f", "arguments": format!("{{\"a\":\"{}", "x".repeat(1 << 20))}}]);
    let more = json!([{"function": {"name": "f", "arguments": "{}"}}]);
    let chunks: Vec<Value> = std::iter::once(first).chain(std::iter::repeat_n(more, 5_000)).collect();
    let start = std::time::Instant::now();
    let calls = calls(&chunks);
    assert_eq!((calls.len(), calls[0].2.len()), (1, 6 + (1 << 20) + 10_000));
    assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", start.elapsed());
}

proptest! {
    // Calls that a server sends by the book arrive whole, however their arguments are cut and mixed.
    #[test]
    fn interleaved_calls_come_out_whole(
        values in prop::collection::vec("[ -~é😀]{0,12}", 1..4),
        cuts in prop::collection::vec((0..4_usize, 1..5_usize), 0..40),
    ) {
        let wanted: Vec<String> = values.iter().map(|value| json!({"v": value}).to_string()).collect();
        let mut left: Vec<Vec<char>> = wanted.iter().map(|text| text.chars().rev().collect()).collect();
        let mut chunks: Vec<Value> = (0..wanted.len())
            .map(|i| json!([{"index": i, "id": format!("c{i}"), "function": {"name": format!("f{i}"), "arguments": ""}}]))
            .collect();
        let rest: Vec<_> = (0..wanted.len()).map(|at| (at, usize::MAX)).collect();
        for (at, count) in cuts.into_iter().chain(rest) {
            let at = at % wanted.len();
            let piece: String = (0..count).map_while(|_| left[at].pop()).collect();
            if !piece.is_empty() {
                chunks.push(json!([{"index": at, "function": {"arguments": piece}}]));
            }
        }
        let got: Vec<String> = calls(&chunks).into_iter().map(|(_, _, args)| args).collect();
        prop_assert_eq!(got, wanted);
    }
}
