//! Damaged conversations: what every provider gets of them.

use cepa_core::pairing::MISSING_RESULT;

use super::{
    story::{stored, story},
    wires::{Seen, all},
};

/// Each wire takes the story, with these results behind its calls (`-`: made up), also when it comes from a store.
fn is_healed(words: &str, results: &str) {
    let expected: Vec<&str> =
        results.split_whitespace().map(|word| if word == "-" { MISSING_RESULT } else { word }).collect();
    let messages = story(words);
    for wire in all() {
        let body = wire.sent(&messages);
        assert_eq!(Seen::of(&body).texts(), expected, "{} of `{words}`: {body}", wire.name);
        assert_eq!(wire.sent(&stored(&messages)), body, "{} of `{words}`", wire.name);
    }
}

#[test]
fn calls_and_results_are_paired_again() {
    for (words, results) in [
        // FR-001, FR-003, FR-004: a window cut between a call and its result, so that the result leads.
        ("r:a a u", ""),
        ("s r:a u", ""),
        // FR-002, FR-011: not one orphan but all of them, in front, behind and in between.
        ("r:a r:b r:c u c:d r:d r:e r:f a r:g u", "4"),
        // FR-007, FR-153: a conversation that an interrupt or a summary left without results goes on.
        ("u c:a,b u", "- -"),
        ("u c:a,b", "- -"),
        // FR-012, FR-158: the user interrupts and speaks: the calls are answered at once, once.
        ("u c:a u c:b r:b u", "- 1"),
        // FR-009: results without ids belong to the calls at their place.
        ("u c:_,_,_ r:_ r:_ r:_ a u", "1 2 3"),
        // FR-049, FR-059: two results of one call: the first one counts.
        ("u c:a r:a r:a a u", "1"),
        // FR-096, FR-157: an id that comes again in a later turn has its own result.
        ("u c:a r:a a u c:a r:a a u", "1 2"),
        ("u c:a a u c:a r:a u", "- 1"),
        // FR-108: results in call order, right behind their calls.
        ("u c:a,b,c r:c r:a r:b u", "2 3 1"),
        ("u c:a,b r:a u r:b a u", "1 2"),
        // FR-112: one of two calls was answered: so is the other.
        ("u c:a,b r:b a u", "- 1"),
        // FR-151: an error left the calls without results, and nobody noticed for a while.
        ("u c:a,b a u a u", "- -"),
        // FR-154, FR-159, FR-160: an interrupted turn that was resumed in another order.
        ("u c:a u r:a c:b r:b r:a u", "1 2"),
        // FR-156: whatever it is, one place heals it, and nothing else is touched.
        ("s u a u c:a r:a c:b r:b a u", "1 2"),
    ] {
        is_healed(words, results);
    }
}

// FR-008: a result without words is a result; nothing is made up in its place.
#[test]
fn an_empty_result_is_a_result() {
    for wire in all() {
        let body = wire.sent(&story("u c:a,b e:a r:b u"));
        assert_eq!(Seen::of(&body).texts(), ["", "1"], "{}: {body}", wire.name);
    }
}

// FR-094: a server that gives every call one id: all 374 results are still there, each behind its own call.
#[test]
fn a_constant_id_loses_no_result() {
    let words = "u".to_owned() + &" c:0 r:0".repeat(374) + " a u";
    let all_of_them: Vec<String> = (1..=374).map(|number| number.to_string()).collect();
    is_healed(&words, &all_of_them.join(" "));
}

// FR-006: a history that begins with the assistant (a summary, a cut) gets a legal beginning where one is asked for.
// FR-190: one that ends with results can be sent as it is: the model is due.
#[test]
fn beginnings_and_ends_are_legal() {
    for wire in all() {
        for words in ["a u", "a", "s a u", "c:a r:a a u", "a c:a r:a", "u c:a r:a", "u c:a,b r:a r:b"] {
            let seen = Seen::of(&wire.sent(&story(words)));
            let first = seen.roles.iter().find(|role| *role != "system").unwrap();
            if ["anthropic", "gemini", "mistral", "llama.cpp"].contains(&wire.name) {
                assert_eq!(first, "user", "{} of `{words}`", wire.name);
            }
            if words.ends_with(['a', 'b']) && !words.ends_with(" a") && words.len() > 1 {
                let last = seen.roles.last().unwrap();
                assert!(["tool", "user"].contains(&last.as_str()), "{} of `{words}`: {last}", wire.name);
            }
        }
    }
}

// FR-110: user and assistant take turns where a template wants it, and everything that was said is still there.
#[test]
fn roles_take_turns_where_they_must() {
    for words in
        ["u u", "u a a u", "u u a a u u", "a a", "u c:a r:a u u", "u c:a r:a s u", "s u s u", "u a c:a r:a a a u"]
    {
        for wire in all() {
            let body = wire.sent(&story(words));
            let said = body.to_string();
            assert_eq!(said.matches("go on").count(), words.matches('u').count(), "{} of `{words}`: {body}", wire.name);
            let wells = words.split(' ').filter(|word| *word == "a").count();
            assert_eq!(said.matches("well").count(), wells, "{} of `{words}`: {body}", wire.name);
            let strict = ["mistral", "llama.cpp", "anthropic", "gemini"].contains(&wire.name);
            let roles: Vec<String> =
                Seen::of(&body).roles.into_iter().filter(|role| !["system", "tool"].contains(&role.as_str())).collect();
            // Calls and the reply to their results are one turn of the assistant.
            let twice = roles.windows(2).any(|pair| pair[0] == pair[1] && pair[0] == "user");
            assert!(!(strict && twice), "{} of `{words}`: {roles:?}", wire.name);
        }
    }
}

// FR-111: one system message, at the start, where a template or an API takes no other; none of their words is lost.
#[test]
fn system_messages_stand_where_they_may() {
    for (name, inside) in [("llama.cpp", 1), ("ollama", 1), ("anthropic", 0), ("gemini", 0)] {
        let body = super::wires::Wire::named(name).sent(&story("s u a s u s u"));
        let seen = Seen::of(&body);
        assert_eq!(seen.roles.iter().filter(|role| *role == "system").count(), inside, "{name}: {body}");
        assert_eq!(body.to_string().matches("Be brief.").count(), 3, "{name}: {body}");
    }
}
