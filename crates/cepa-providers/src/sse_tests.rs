//! W6: the decoder against the standard, for any body and any cut.

use proptest::prelude::*;

use super::*;

fn event(name: Option<&str>, data: &str) -> SseEvent {
    SseEvent { event: name.map(str::to_owned), data: data.to_owned() }
}

/// Everything a body gives, when it comes in these pieces.
fn decode_pieces<'a>(limit: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<SseEvent>, Option<String>) {
    let mut decoder = SseDecoder::new().with_max_event_bytes(limit);
    let mut events = Vec::new();
    for piece in pieces {
        if let Err(error) = decoder.push(piece, &mut events) {
            assert_eq!(error.kind(), ErrorKind::Decode);
            return (events, Some(error.message().to_owned()));
        }
    }
    events.extend(decoder.finish());
    (events, None)
}

/// The events of a body for every cut in two, for single bytes and as a whole, which must all be the same.
fn decode(body: impl AsRef<[u8]>) -> Vec<SseEvent> {
    let body = body.as_ref();
    let whole = decode_pieces(DEFAULT_MAX_EVENT_BYTES, [body]);
    for at in 0..=body.len() {
        let (left, right) = body.split_at(at);
        assert_eq!(decode_pieces(DEFAULT_MAX_EVENT_BYTES, [left, right]), whole, "cut at {at}");
    }
    assert_eq!(decode_pieces(DEFAULT_MAX_EVENT_BYTES, body.chunks(1)), whole, "byte by byte");
    assert_eq!(whole.1, None);
    whole.0
}

// W6
#[test]
fn line_ends_are_lf_cr_and_crlf() {
    let expected = vec![event(None, "a"), event(None, "b")];
    assert_eq!(decode("data: a\n\ndata: b\n\n"), expected);
    assert_eq!(decode("data: a\r\rdata: b\r\r"), expected);
    assert_eq!(decode("data: a\r\n\r\ndata: b\r\n\r\n"), expected);
    assert_eq!(decode("data: a\r\n\rdata: b\n\r"), expected);
}

#[test]
fn a_bare_cr_ends_the_event_at_once() {
    let mut events = Vec::new();
    SseDecoder::new().push(b"data: a\r\r", &mut events).unwrap();
    assert_eq!(events, [event(None, "a")]);
}

// W6
#[test]
fn only_cr_and_lf_end_a_line() {
    assert_eq!(
        decode("data: a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}\n\n"),
        [event(None, "a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}")]
    );
}

// W6
#[test]
fn one_byte_order_mark_is_dropped_at_the_start_and_before_a_field() {
    assert_eq!(decode("\u{feff}data: a\n\ndata: b\n\n"), [event(None, "a"), event(None, "b")]);
    assert_eq!(decode("\u{feff}\ndata: a\n\n"), [event(None, "a")]);
    assert_eq!(decode("data: a\n\n\u{feff}data: b\n\n"), [event(None, "a"), event(None, "b")]);
    assert_eq!(decode("data: a\n\u{feff}event: x\n\n"), [event(Some("x"), "a")]);
    assert_eq!(decode("data: {}\n\n\u{feff}data: []"), [event(None, "{}"), event(None, "[]")]);
    assert_eq!(decode("data: a\n\n\u{feff}\u{feff}data: b\n\n"), [event(None, "a")]);
    assert_eq!(decode("\u{feff}\u{feff}data: a\n\n"), []);
    assert_eq!(decode("\u{feff}data: {}"), [event(None, "{}")]);
}

// W6
#[test]
fn comments_blank_lines_and_other_fields_give_nothing() {
    assert_eq!(decode(": hello\n\n:\n\n\n\nid: 1\nretry: 10\nfoo\nfoo: bar\n\n"), []);
    assert_eq!(decode("id: 1\ndata: a\nretry: 5\n: c\nDATA: x\n data: y\n\n"), [event(None, "a")]);
}

// W6
#[test]
fn data_lines_are_joined_and_lose_one_space() {
    assert_eq!(decode("data: a\ndata:b\ndata:  c\ndata\ndata:\ndata: d:e\n\n"), [event(None, "a\nb\n c\n\n\nd:e")]);
    assert_eq!(decode("data\n\ndata:\n\n"), [event(None, ""), event(None, "")]);
}

// W6
#[test]
fn the_name_holds_for_one_event() {
    assert_eq!(
        decode(
            "event: x\ndata: 1\n\ndata: 2\n\nevent: lost\n\ndata: 3\n\nevent: a\nevent: b\ndata: 4\n\nevent: c\nevent:\ndata: 5\n\n"
        ),
        [event(Some("x"), "1"), event(None, "2"), event(None, "3"), event(Some("b"), "4"), event(None, "5")],
    );
}

// W6
#[test]
fn split_utf8_survives_and_invalid_utf8_is_replaced() {
    assert_eq!(decode("data: 那个é😀\n\n"), [event(None, "那个é😀")]);
    assert_eq!(decode(b"data: a\xFFb\xE9\x82\ndata: c\n\n"), [event(None, "a\u{fffd}b\u{fffd}\nc")]);
}

// W6: the tolerance
#[test]
fn a_last_event_without_blank_line_counts_if_its_data_is_complete() {
    assert_eq!(decode("data: [DONE]"), [event(None, "[DONE]")]);
    assert_eq!(decode("event: x\ndata: {\"a\":1}"), [event(Some("x"), "{\"a\":1}")]);
    assert_eq!(decode("data: {\"a\":\ndata: 1}\n"), [event(None, "{\"a\":\n1}")]);
    assert_eq!(decode("data: {}\nevent: mess"), [event(None, "{}")]);
    for cut in [
        "data: {\"a\":1",
        "data: [DON",
        "data: 12",
        "data: true",
        "data:",
        "data",
        "da",
        "event: x",
        "data: {}\ndata: x",
    ] {
        assert_eq!(decode(cut), [], "{cut}");
    }
}

#[test]
fn an_event_past_the_limit_is_an_error_and_what_came_before_is_kept() {
    let body = b"data: a\n\ndata: 0123456789\ndata: 0123456789\n\ndata: b\n\n";
    for size in 1..body.len() {
        let (events, error) = decode_pieces(20, body.chunks(size));
        assert_eq!(events, [event(None, "a")], "pieces of {size}");
        assert!(error.as_deref().is_some_and(|text| text.contains("20 bytes")), "{error:?}");
    }
    let mut decoder = SseDecoder::new().with_max_event_bytes(4);
    let mut events = Vec::new();
    assert!(decoder.push(b": a comment is not kept forever", &mut events).is_err());
    assert!(decoder.push(b"\n\ndata: a\n\n", &mut events).is_err(), "it stays failed");
    assert_eq!(decoder.finish(), None);
    assert_eq!(events, []);
}

#[test]
fn an_event_that_comes_in_one_piece_is_not_copied() {
    let body: &[u8] = b"event: x\ndata: {\"a\":1}\n\ndata: b\ndata: c\n\n";
    let (mut decoder, mut rest) = (SseDecoder::new(), body);
    let lent = decoder.next_event(&mut rest).unwrap().unwrap();
    assert_eq!(lent, LentEvent { event: Some("x"), data: "{\"a\":1}" });
    assert!(body.as_ptr_range().contains(&lent.data.as_ptr()));
    assert_eq!(decoder.next_event(&mut rest).unwrap(), Some(LentEvent { event: None, data: "b\nc" }));
    assert_eq!(decoder.next_event(&mut rest).unwrap(), None);
    // What was handed out is gone, also for the end.
    assert_eq!(decoder.finish(), None);
}

/// The standard, read line by line over the whole decoded body.
fn reference(body: &[u8]) -> Vec<SseEvent> {
    let text = String::from_utf8_lossy(body);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<&str> = text.split('\n').collect();
    // Our one difference, but for the first line, which may have lost a mark already.
    for line in lines.iter_mut().skip(1) {
        let rest = line.strip_prefix('\u{feff}');
        *line = rest.filter(|rest| matches!(rest.split(':').next(), Some("data" | "event"))).unwrap_or(line);
    }
    let unfinished = lines.pop().unwrap_or_default();
    let (mut events, mut data, mut name) = (Vec::new(), Vec::new(), String::new());
    for line in lines {
        if line.is_empty() {
            let name = std::mem::take(&mut name);
            if !data.is_empty() {
                events.push(event(Some(name.as_str()).filter(|name| !name.is_empty()), &data.join("\n")));
            }
            data.clear();
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => data.push(value.to_owned()),
            "event" => value.clone_into(&mut name),
            _ => {}
        }
    }
    if let Some(value) = unfinished.strip_prefix("data:") {
        data.push(value.strip_prefix(' ').unwrap_or(value).to_owned());
    }
    let data = data.join("\n");
    let json = serde_json::from_str::<serde_json::Value>(data.trim());
    if data.trim() == "[DONE]" || json.is_ok_and(|json| json.is_object() || json.is_array()) {
        events.push(event(Some(name.as_str()).filter(|name| !name.is_empty()), &data));
    }
    events
}

/// Bodies dense in what matters: fields, line ends, marks, cut characters, and any bytes at all.
fn bodies() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        8 => prop::sample::select(vec![
            "data", "data:", "data: ", "event: ", "event:x", "id: 1", ":", ": c", "\n", "\r", "\r\n", "\n\n", "\r\n\r\n", "\r\r",
            "{\"a\":", "1}", "[DONE]", "{}", " ", "\u{feff}", "é", "😀", "\u{2028}", "\u{85}", "text",
        ])
        .prop_map(|token| token.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.concat())
}

/// Cuts a body into pieces of these sizes, over and over.
fn pieces<'a>(body: &'a [u8], sizes: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = body;
    let mut sizes = sizes.iter().cycle();
    std::iter::from_fn(move || {
        let size = (*sizes.next()?).min(rest.len());
        let (piece, tail) = rest.split_at(size);
        rest = tail;
        (!piece.is_empty()).then_some(piece)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    // W6
    #[test]
    fn any_body_decodes_as_the_standard_says(body in bodies()) {
        prop_assert_eq!(decode_pieces(DEFAULT_MAX_EVENT_BYTES, [body.as_slice()]), (reference(&body), None));
    }

    // W6
    #[test]
    fn any_cut_gives_the_same_events(body in bodies(), sizes in prop::collection::vec(1_usize..9, 1..6)) {
        let whole = decode_pieces(DEFAULT_MAX_EVENT_BYTES, [body.as_slice()]);
        prop_assert_eq!(decode_pieces(DEFAULT_MAX_EVENT_BYTES, pieces(&body, &sizes)), whole);
    }

    // W6
    #[test]
    fn any_cut_meets_the_size_limit_at_the_same_event(
        body in bodies(), limit in 0_usize..40, sizes in prop::collection::vec(1_usize..9, 1..6),
    ) {
        let whole = decode_pieces(limit, [body.as_slice()]);
        prop_assert_eq!(decode_pieces(limit, pieces(&body, &sizes)), whole);
    }
}
