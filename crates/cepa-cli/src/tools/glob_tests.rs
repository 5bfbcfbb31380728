//! Patterns match what a person means by them, and nothing makes them fail at run time.

use proptest::prelude::*;

use super::*;

#[test]
fn patterns() {
    for (pattern, path, expected) in [
        ("*.rs", "main.rs", true),
        ("*.rs", "src/main.rs", true),
        ("*.rs", "main.rs.bak", false),
        ("*.rs", ".rs", true),
        ("src/*.rs", "src/main.rs", true),
        ("./src/*.rs", "src/main.rs", true),
        ("/src/*.rs", "src/main.rs", true),
        ("src/*.rs", "src/a/main.rs", false),
        ("src/*.rs", "x/src/main.rs", false),
        ("src/**/*.rs", "src/main.rs", true),
        ("src/**/*.rs", "src/a/b/main.rs", true),
        ("**/*.rs", "main.rs", true),
        ("**/test/**", "a/test/b/c", true),
        ("**/test/**", "a/tests/b", false),
        ("src/**", "src/a/b", true),
        ("src/**", "src", false),
        ("a**b/c", "axxb/c", true),
        ("*.{js,ts}", "a.ts", true),
        ("*.{js,ts}", "a.rs", false),
        ("{a,b{c,d}}x", "bdx", true),
        ("file?.txt", "file1.txt", true),
        ("file?.txt", "file.txt", false),
        ("[a-c]x", "bx", true),
        ("[!a-c]x", "bx", false),
        ("[!a-c]x", "zx", true),
        ("[]]x", "]x", true),
        ("[x", "[x", true),
        ("a.b", "axb", false),
        ("a+b(c)", "a+b(c)", true),
        ("\\*", "*", true),
        ("\\*", "a", false),
        ("{x", "{x", true),
        ("x}", "x}", true),
        ("文*", "文件", true),
    ] {
        assert_eq!(Glob::new(pattern).unwrap().matches(path.as_bytes()), expected, "{pattern} on {path}");
    }
}

#[test]
fn a_base_folder_may_be_in_the_pattern_or_not() {
    let base = Path::new("src");
    for pattern in ["src/**/*.rs", "a/*.rs", "*.rs", "**/a/*.rs"] {
        assert!(Glob::new(pattern).unwrap().matches_below(base, Path::new("src/a/b.rs")), "{pattern}");
    }
    assert!(!Glob::new("b/*.rs").unwrap().matches_below(base, Path::new("src/a/b.rs")));
}

proptest! {
    #[test]
    fn a_name_matches_itself_when_escaped(name in "[^/\0]{1,20}") {
        let escaped: String = name.chars().flat_map(|c| ['\\', c]).collect();
        prop_assert!(Glob::compile(&escaped, false).unwrap().matches(name.as_bytes()));
    }

    #[test]
    fn no_pattern_panics(pattern in "[*?{},!\\[\\]\\\\/a-c^&~-]{0,20}", path in "[a-c/]{0,10}") {
        if let Ok(glob) = Glob::new(&pattern) {
            glob.matches(path.as_bytes());
        }
    }
}
