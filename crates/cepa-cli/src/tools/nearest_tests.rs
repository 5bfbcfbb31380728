//! The place that is shown is the one that was meant.

use super::*;

fn near(text: &str, wanted: &str) -> Option<(usize, bool)> {
    nearest(text.as_bytes(), wanted).map(|near| (near.line, near.only_white_space))
}

#[test]
fn places() {
    let text = "alpha beta\n\tgamma(delta)\n\tgamma(epsilon)\nomega\n";
    assert_eq!(near(text, "gamma(delta)\ngamma(epsilon)"), Some((2, true)));
    assert_eq!(near(text, "\n\ngamma(delta)\n  gamma(epsilon)\n"), Some((2, true)));
    assert_eq!(near(text, "gamma(epsilom)"), Some((3, false)));
    assert_eq!(near(text, "gama(epsilon)\nomega"), Some((3, false)));
    assert_eq!(near(text, "zzzz yyyy"), None);
    assert_eq!(near(text, "\n  \n"), None);
    assert_eq!(near("", "x"), None);
}

#[test]
fn large_inputs_take_no_time() {
    let text: String = (0..40_000).map(|n| format!("let value_{n} = compute({n});\n")).collect();
    let wanted: String = (20_000..20_100).map(|n| format!("let valeu_{n} = compute({n});\n")).collect();
    let started = std::time::Instant::now();
    let near = nearest(text.as_bytes(), &wanted).unwrap();
    assert_eq!((near.line, near.only_white_space), (20_001, false));
    assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
    let one = "x".repeat(5_000_000);
    assert!(nearest(one.as_bytes(), &one[1..]).unwrap().text.len() < MAX_SHOWN + 10);
}
