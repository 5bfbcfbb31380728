//! Shows that each rule of a judge refuses what it is for: alone, under its number, and beside a neighbour that breaks none.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Rule, Violation, list};

/// What is done to a body.
pub(super) type Change = fn(&mut Value);
/// A judge, with the settings that it is asked with.
pub(super) type Judge = fn(&Value) -> Vec<Violation>;

/// The trials of one judge: bodies that differ from a good one in one thing. `cargo xtask contracts` finds the number of each
/// rule in the tests that try it.
pub(super) struct Trials {
    good: Value,
    judge: Judge,
    tried: BTreeSet<&'static str>,
    /// What did not go as it should, all of it.
    wrong: Vec<String>,
}

impl Trials {
    pub(super) fn new(good: Value, judge: Judge) -> Self {
        let violations = judge(&good);
        assert!(violations.is_empty(), "the good body is refused:\n{}", list(&violations));
        Self { good, judge, tried: BTreeSet::new(), wrong: Vec::new() }
    }

    /// The good body, damaged, breaks this rule and no other.
    pub(super) fn refuse(&mut self, id: &'static str, bad: Change) {
        self.beside(id, |_| {}, bad);
    }

    /// Another good body passes, and damaged it breaks this rule and no other.
    pub(super) fn beside(&mut self, id: &'static str, good: Change, bad: Change) {
        self.under(self.judge, id, good, bad);
    }

    /// The same with a judge of other settings.
    pub(super) fn under(&mut self, judge: Judge, id: &'static str, good: Change, bad: Change) {
        let mut body = self.good.clone();
        good(&mut body);
        let violations = judge(&body);
        if !violations.is_empty() {
            self.wrong.push(format!("the neighbour of {id} is refused:\n{}\n{body}", list(&violations)));
        }
        bad(&mut body);
        let violations = judge(&body);
        if violations.is_empty() || violations.iter().any(|violation| violation.id != id) {
            self.wrong.push(format!("{id} alone should refuse this:\n{}\n{body}", list(&violations)));
        }
        self.tried.insert(id);
    }

    /// Every trial went as it should, and every rule has been tried.
    pub(super) fn complete(self, all: &[&Rule]) {
        assert!(self.wrong.is_empty(), "{}", self.wrong.join("\n\n"));
        let all: BTreeSet<&str> = all.iter().map(|rule| rule.id).collect();
        assert_eq!(self.tried, all);
    }
}

/// Takes a member or an element away.
pub(super) fn remove(body: &mut Value, at: &str) {
    let (parent, name) = at.rsplit_once('/').expect("a path");
    match body.pointer_mut(parent).expect("the place is there") {
        Value::Object(members) => drop(members.remove(name).expect("the member is there")),
        Value::Array(items) => drop(items.remove(name.parse().expect("a number"))),
        other => panic!("{other} has no members"),
    }
}

/// Puts an element into a list, at its end or in front of the place that the path names.
pub(super) fn insert(body: &mut Value, at: &str, value: Value) {
    let (parent, name) = at.rsplit_once('/').expect("a path");
    let items = body.pointer_mut(parent).and_then(Value::as_array_mut).expect("a list is there");
    let place = if name == "-" { items.len() } else { name.parse().expect("a number") };
    items.insert(place, value);
}

/// Lets two neighbours in a list change places.
pub(super) fn swap(body: &mut Value, at: &str) {
    let (parent, name) = at.rsplit_once('/').expect("a path");
    let items = body.pointer_mut(parent).and_then(Value::as_array_mut).expect("a list is there");
    let place: usize = name.parse().expect("a number");
    items.swap(place, place + 1);
}
