//! Reading names out of test comments: `// L3: …` above or inside a test pins line L3, `// FR-012: …` that field report.

use std::collections::BTreeSet;

/// The letters of the contract's sections.
pub(crate) const SECTIONS: &str = "FMLHDWP";

/// A test that names a contract line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pin {
    pub(crate) line: String,
    pub(crate) test: String,
}

/// Whether the whole file is test code, by its place and name.
pub(crate) fn is_test_file(path: &str) -> bool {
    let mut parts: Vec<&str> = path.split('/').collect();
    let Some(stem) = parts.pop().and_then(|file| file.strip_suffix(".rs")) else { return false };
    stem == "tests" || stem.ends_with("_tests") || stem.ends_with("_test") || parts.contains(&"tests") || is_suite(path)
}

/// A conformance suite: its functions are tests although other crates' tests call them.
fn is_suite(path: &str) -> bool {
    path.starts_with("crates/cepa-testkit/src/") && path.contains("/conformance")
}

/// The line on which a file's inline test module begins, if it has one.
pub(crate) fn inline_tests(text: &str) -> Option<usize> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.windows(2).position(
        |pair| matches!(pair, ["#[cfg(test)]", module] if module.starts_with("mod ") && module.ends_with('{')),
    )
}

/// How the names that count are found in a comment: [`names`] or [`reports`].
pub(crate) type Names = fn(&str) -> Vec<String>;

/// All pins of one file.
pub(crate) fn pins(path: &str, text: &str, names: Names) -> BTreeSet<Pin> {
    let start = if is_test_file(path) { Some(0) } else { inline_tests(text) };
    let Some(start) = start else { return BTreeSet::new() };
    let mut reader = Reader {
        path,
        names,
        suite: is_suite(path),
        pins: BTreeSet::new(),
        ahead: Vec::new(),
        is_test: false,
        ignored: false,
        test: None,
    };
    text.lines().skip(start).for_each(|line| reader.line(line));
    reader.pins
}

/// Walks through test code line by line; knows in which test it is.
#[derive(Debug)]
struct Reader<'a> {
    path: &'a str,
    names: Names,
    suite: bool,
    pins: BTreeSet<Pin>,
    /// Names from the comments just read, which belong to the function that follows.
    ahead: Vec<String>,
    is_test: bool,
    ignored: bool,
    /// The test we are in, and how far its `fn` is indented.
    test: Option<(String, usize)>,
}

impl Reader<'_> {
    fn line(&mut self, line: &str) {
        let text = line.trim();
        let indent = line.len() - line.trim_start().len();
        if text.starts_with("//!") {
            return;
        }
        if let Some(comment) = text.strip_prefix("//") {
            match self.test.clone().filter(|(_, depth)| indent > *depth) {
                Some((test, _)) => (self.names)(comment).into_iter().for_each(|line| self.pin(line, &test)),
                None => self.ahead.extend((self.names)(comment)),
            }
        } else if text.starts_with("#[") {
            self.is_test |= text.contains("[test]") || text.contains("::test]") || text.contains("::test(");
            self.ignored |= text.starts_with("#[ignore");
        } else if let Some(name) = function(text) {
            self.test = None;
            let ahead = std::mem::take(&mut self.ahead);
            if (self.is_test || self.suite) && !self.ignored {
                let test = format!("{}::{name}", self.path);
                ahead.into_iter().for_each(|line| self.pin(line, &test));
                self.test = Some((test, indent));
            }
            (self.is_test, self.ignored) = (false, false);
        } else {
            self.ahead.clear();
            if !text.is_empty() && self.test.as_ref().is_some_and(|(_, depth)| indent <= *depth && text != "{") {
                self.test = None;
            }
        }
    }

    fn pin(&mut self, line: String, test: &str) {
        self.pins.insert(Pin { line, test: test.to_owned() });
    }
}

/// The name of the function that this line declares.
pub(crate) fn function(text: &str) -> Option<&str> {
    let mut rest = text;
    for word in ["pub", "(crate)", "const", "async"] {
        rest = rest.strip_prefix(word).unwrap_or(rest).trim_start();
    }
    let name = rest.strip_prefix("fn ")?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    name.get(..end)
}

/// Contract names in a text: a section's letter and digits, standing as a word of their own.
pub(crate) fn names(text: &str) -> Vec<String> {
    let is_name = |word: &&str| {
        let (letter, digits) = word.split_at_checked(1).unwrap_or_default();
        SECTIONS.contains(letter)
            && !letter.is_empty()
            && !digits.is_empty()
            && digits.bytes().all(|b| b.is_ascii_digit())
    };
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(is_name).map(str::to_owned).collect()
}

/// Field reports in a text: `FR-` and three digits, standing as a word of their own.
pub(crate) fn reports(text: &str) -> Vec<String> {
    let is_report = |word: &&str| {
        word.strip_prefix("FR-").is_some_and(|digits| digits.len() == 3 && digits.bytes().all(|b| b.is_ascii_digit()))
    };
    text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').filter(is_report).map(str::to_owned).collect()
}

/// Rules of judges in a text: two capitals, a dash and two digits, standing as a word of their own.
pub(crate) fn rules(text: &str) -> Vec<String> {
    let is_rule = |word: &&str| match word.as_bytes() {
        [first, second, b'-', digits @ ..] => {
            [first, second].iter().all(|b| b.is_ascii_uppercase())
                && digits.len() == 2
                && digits.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    };
    text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').filter(is_rule).map(str::to_owned).collect()
}

#[cfg(test)]
#[path = "pins_tests.rs"]
mod tests;
