//! The generator reaches what it promises, and keeps what it promises.

use cepa_core::{History, pairing};

use super::*;

#[test]
fn valid_plans_give_valid_histories_and_damage_gives_damaged_ones() {
    let broken = |plan| {
        (0..500).filter(|seed| pairing::validate(&History::from(history(&mut Rng::new(*seed), plan))).is_err()).count()
    };
    assert_eq!(broken(Plan::PLAIN), 0);
    assert_eq!(broken(Plan::VALID), 0);
    assert!(broken(Plan::WILD) > 150, "only {} of 500 are damaged", broken(Plan::WILD));
}

#[test]
fn the_wild_plan_reaches_everything() {
    let all: String = (0..500)
        .flat_map(|seed| history(&mut Rng::new(seed), Plan::WILD))
        .map(|message| serde_json::to_string(&message).unwrap())
        .collect();
    let reached = [
        "\"role\":\"system\"",
        "\"type\":\"image\"",
        "\"type\":\"document\"",
        "\"type\":\"audio\"",
        "hologram",
        "\"raw_args\"",
        "\"replay\"",
        "\"id\":\"\"",
        "orphan",
        "\"status\":\"unknown\"",
        "\"content\":null",
        "Welcome!",
        "\"content\":\"\"",
        "private musing",
        "12345678901234567890",
        "files.read",
    ];
    for word in reached {
        assert!(all.contains(word), "{word} is never made");
    }
}

#[test]
fn a_failure_is_shown_with_its_seed_and_as_short_as_can_be() {
    let few_tools = |messages: &[Message], _: &mut Rng| {
        let tools = messages.iter().filter(|message| matches!(message, Message::Tool(_))).count();
        if tools < 2 { Ok(()) } else { Err(format!("{tools} results")) }
    };
    let failure = for_all(0..100, Plan::PLAIN, few_tools).unwrap_err();
    assert!(failure.starts_with("seed "), "{failure}");
    assert!(failure.contains(": 2 results"), "{failure}");
    assert_eq!(failure.lines().count(), 4, "{failure}");
    assert_eq!(for_all(0..100, Plan::PLAIN, |_, _| Ok(())), Ok(()));
}
