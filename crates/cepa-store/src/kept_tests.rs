//! A difference and its base are the text again.

use proptest::prelude::*;

use super::{Base, Data, difference};

/// As `data_sql` reads it.
fn read(base: &str, data: Data<'_>) -> String {
    let Some(Base { first, last, .. }) = data.base else { return data.text.to_owned() };
    let all: Vec<char> = base.chars().collect();
    let (first, last) = (usize::try_from(first).unwrap(), usize::try_from(last).unwrap());
    let ends = |part: &[char]| part.iter().collect::<String>();
    [&ends(&all[..first]), data.text, &ends(&all[all.len() - last..])].concat()
}

proptest! {
    // M7: whatever two texts have in common, characters of several bytes that begin or end alike included.
    #[test]
    fn a_difference_gives_the_text_back(base in "[aäâ語誌😀😁]{0,12}", text in "[aäâ語誌😀😁]{0,12}") {
        if let Some(data) = difference(1, &base, &text) {
            prop_assert_eq!(read(&base, data), text);
        }
    }
}

#[test]
fn only_what_is_much_alike_is_kept_as_a_difference() {
    let base = r#"{"prompt":"You are helpful.","tokens":12}"#;
    let text = base.replace("12", "3456");
    let data = difference(7, base, &text).unwrap();
    assert_eq!(data, Data { text: "3456", base: Some(Base { key: 7, first: 38, last: 1 }) });
    let same = difference(7, base, base).unwrap();
    assert_eq!((same.text, read(base, same).as_str()), ("", base));
    assert_eq!(difference(7, base, r#"{"another":"text, of about the same length"}"#), None);
    assert_eq!(difference(7, base, ""), None);
    assert_eq!(difference(7, "", base), None);
}
