//! A long or marked-up text as a short line.

/// At most this many characters, with an ellipsis for the rest.
pub(super) fn cut(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default().trim_end()),
    }
}

/// The beginning of any body as one line: space collapsed, control characters dropped, HTML reduced to its text.
pub(crate) fn line(body: &str, max_chars: usize) -> String {
    let body = body.trim_start_matches('\u{feff}').trim_start();
    if body.starts_with('<') {
        return cut(&one_line(&entities(&without_tags(body))), max_chars);
    }
    cut(&one_line(body), max_chars)
}

fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// The text between the tags, without scripts and styles. No parser: what it gives is for a person to read.
fn without_tags(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        text.push(' ');
        let hidden = ["script", "style", "!--"].iter().zip(["</script", "</style", "-->"]);
        rest = match hidden.into_iter().find(|(name, _)| starts_with_ignoring_case(tag, name)) {
            Some((_, end)) => match find_ignoring_case(tag, end) {
                Some(at) => after_tag(tag.get(at..).unwrap_or_default()),
                None => "",
            },
            None => after_tag(tag),
        };
    }
    text.push_str(rest);
    text
}

fn after_tag(tag: &str) -> &str {
    tag.split_once('>').map_or("", |(_, rest)| rest)
}

fn starts_with_ignoring_case(text: &str, start: &str) -> bool {
    text.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start))
}

fn find_ignoring_case(text: &str, part: &str) -> Option<usize> {
    text.char_indices()
        .map(|(at, _)| at)
        .find(|at| text.get(*at..).is_some_and(|tail| starts_with_ignoring_case(tail, part)))
}

fn entities(text: &str) -> String {
    // `&amp;` last, so that `&amp;lt;` stays `&lt;`.
    [("&nbsp;", " "), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")]
        .iter()
        .fold(text.to_owned(), |text, (entity, character)| text.replace(entity, character))
}
