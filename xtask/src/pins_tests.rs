//! Which comments pin a contract line.

use super::{function, is_test_file, names, pins, reports, rules};

fn of(path: &str, text: &str) -> Vec<(String, String)> {
    let short = |test: String| test.rsplit("::").next().unwrap().to_owned();
    pins(path, text, names).into_iter().map(|pin| (pin.line, short(pin.test))).collect()
}

#[test]
fn a_comment_above_or_inside_a_test_pins() {
    let text = "// L3: a record
#[test]
fn above() {}

/// M2, M6.
#[tokio::test(flavor = \"current_thread\")]
async fn documented() {
    let x = 1;
    // W2: here too
    if x == 1 {
        // F9
    }
}
";
    let found = of("crates/x/src/a_tests.rs", text);
    let expected =
        [("F9", "documented"), ("L3", "above"), ("M2", "documented"), ("M6", "documented"), ("W2", "documented")];
    assert_eq!(found, expected.map(|(line, test)| (line.to_owned(), test.to_owned())));
}

#[test]
fn other_comments_do_not_pin() {
    let text = "//! L1
// L2: about the helper
fn helper() {
    // L3
}

// L4: a section, set off by a blank line

#[test]
fn real() {}
// L5: nothing follows

/// L6
#[test]
#[ignore = \"slow\"]
fn ignored() {
    // L7
}
const X: &str = \"L8\";
// L9
const Y: u8 = 1;
#[test]
fn real_too() {}
";
    assert_eq!(of("crates/x/tests/a.rs", text), []);
}

#[test]
fn library_comments_do_not_pin_but_inline_test_modules_do() {
    let library = "/// L1\n#[test]\nfn f() {}\n";
    assert_eq!(of("crates/x/src/a.rs", library), []);
    let inline = format!("{library}\n#[cfg(test)]\nmod tests {{\n    // L2\n    #[test]\n    fn g() {{}}\n}}\n");
    assert_eq!(of("crates/x/src/a.rs", &inline), [("L2".to_owned(), "g".to_owned())]);
    let named = format!("#[cfg(test)]\nmod tests;\n{library}");
    assert_eq!(of("crates/x/src/a.rs", &named), []);
}

#[test]
fn property_tests_and_suites_count() {
    let property = "proptest! {\n    // M5\n    #[test]\n    fn any_window(n in 0..9) {\n    }\n}\n";
    assert_eq!(of("crates/x/src/a_tests.rs", property), [("M5".to_owned(), "any_window".to_owned())]);
    let suite = "/// M1\npub async fn appends(store: &Store) {\n}\n";
    assert_eq!(of("crates/cepa-testkit/src/conformance/memory.rs", suite).len(), 1);
    assert_eq!(of("crates/cepa-testkit/src/scripted.rs", suite), []);
}

#[test]
fn a_name_is_a_word_of_its_own() {
    assert_eq!(names(" W2: and (L13), M6/F1-F3"), ["W2", "L13", "M6", "F1", "F3"]);
    assert_eq!(names("HTTP/2 XL3 L3x L L_3 X1 l3 H"), Vec::<String>::new());
}

#[test]
fn field_reports_are_names_too() {
    assert_eq!(reports(" FR-012: and (FR-104), FR-1 FR-0123 XFR-012 fr-012 FR-012-x"), ["FR-012", "FR-104"]);
    let text = "// FR-001: above, not L3\n#[test]\nfn a() {\n    // FR-002: a row\n}\n";
    let found: Vec<String> = pins("crates/x/tests/a.rs", text, reports).into_iter().map(|pin| pin.line).collect();
    assert_eq!(found, ["FR-001", "FR-002"]);
    assert_eq!(of("crates/x/tests/a.rs", text), [("L3".to_owned(), "a".to_owned())]);
}

#[test]
fn functions_and_files() {
    assert_eq!(function("pub(crate) async fn a_b<T>(x: T) {"), Some("a_b"));
    assert_eq!(function("fnord()"), None);
    for path in ["a/tests/x.rs", "a/src/tests.rs", "a/src/b_tests.rs", "a/src/tests/helper.rs"] {
        assert!(is_test_file(path), "{path}");
    }
    for path in ["a/src/x.rs", "a/src/contests.rs", "a/tests/x.json"] {
        assert!(!is_test_file(path), "{path}");
    }
}

#[test]
fn rules_of_judges_are_names_too() {
    assert_eq!(rules("OC-01, not SC-1, AN-100 or FR-012; xOC-02 and (GE-36)"), ["OC-01", "GE-36"]);
}
