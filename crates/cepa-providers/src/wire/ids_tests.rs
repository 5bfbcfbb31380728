//! Ids stay unique, of the alphabet, and the same in every later request.

use std::collections::HashSet;

use cepa_core::Args;
use proptest::prelude::*;

use super::*;

fn calls(ids: &[&str]) -> Vec<ToolCall> {
    ids.iter().map(|id| ToolCall::new(*id, "t", Args::empty())).collect()
}

fn sent(rule: IdRule, ids: &[&str]) -> Vec<String> {
    let calls = calls(ids);
    WireIds::new(rule).calls(&calls).iter().map(ToString::to_string).collect()
}

#[test]
fn good_ids_are_not_touched() {
    let ids = ["call_1", "functions.get_weather:0", "toolu_01A"];
    assert_eq!(sent(IdRule::VISIBLE_40, &ids), ids);
    assert_eq!(sent(IdRule::ALNUM_9, &["a1b2c3d4e"]), ["a1b2c3d4e"]);
}

#[test]
fn each_rule_refuses_what_its_provider_refuses() {
    let vllm = "chatcmpl-tool-0123456789abcdef0123456789abcdef";
    assert!(IdRule::VISIBLE.accepts(vllm));
    assert!(!IdRule::VISIBLE_40.accepts(vllm));
    for bad in ["", " ", "a b", "é", "a\n"] {
        assert!(!IdRule::VISIBLE.accepts(bad), "{bad:?}");
    }
    assert!(!IdRule::WORD.accepts("functions.get_weather:0"));
    assert!(!IdRule::ALNUM_9.accepts("call_1234"));
}

#[test]
fn a_replacement_never_takes_an_id_that_came_before_and_yields_to_none_that_comes_after() {
    // The id that "x x" will get is taken by an honest call first.
    let taken = sent(IdRule::WORD, &["x x"]).remove(0);
    let ids = sent(IdRule::WORD, &[&taken, "x x", &taken]);
    assert_eq!(ids[0], taken);
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 3);
}

#[test]
fn an_id_that_comes_very_often_gets_one_replacement_after_the_other() {
    let all = sent(IdRule::VISIBLE, &["a"; 200]);
    let wanted: Vec<String> = (0..199).map(|nth| IdRule::VISIBLE.replacement("a", nth)).collect();
    assert_eq!(all[0], "a");
    assert_eq!(all[1..], wanted);
}

#[test]
fn results_are_paired_by_position_and_strays_get_nothing() {
    let calls = calls(&["a", "a"]);
    let mut ids = WireIds::new(IdRule::VISIBLE);
    let sent = ids.calls(&calls);
    assert_eq!([ids.result("a"), ids.result("a")], [Some(sent[0].clone()), Some(sent[1].clone())]);
    assert_eq!(ids.result("a"), None);
}

#[test]
fn a_reply_keeps_the_ids_that_are_good_and_gets_fresh_ones_for_the_rest() {
    let mut ids = ReplyIds::new();
    let settled: Vec<String> =
        [Some("a"), None, Some(""), Some("  "), Some("a")].into_iter().map(|id| ids.settle(id)).collect();
    assert_eq!(settled[0], "a");
    assert_eq!(settled.iter().collect::<HashSet<_>>().len(), 5);
    assert!(settled.iter().all(|id| IdRule::WORD.accepts(id)), "{settled:?}");
}

fn any_rule() -> impl Strategy<Value = IdRule> {
    prop::sample::select(vec![IdRule::VISIBLE, IdRule::VISIBLE_40, IdRule::WORD, IdRule::ALNUM_9])
}

proptest! {
    // W2: what a call gets depends on the calls before it only.
    #[test]
    fn ids_are_unique_legal_and_stable(rule in any_rule(), ids in prop::collection::vec("(c[0-9]|[ -~]{0,3}|.{0,60}|[a-z0-9]{9})", 0..12)) {
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let all = sent(rule, &ids);
        prop_assert!(all.iter().all(|id| rule.accepts(id)));
        prop_assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
        for cut in 0..ids.len() {
            prop_assert_eq!(&sent(rule, &ids[..cut])[..], &all[..cut]);
        }
    }
}
