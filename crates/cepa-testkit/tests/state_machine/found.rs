//! Programs that broke the contract once, each with what it showed.

use crate::{
    holds,
    program::{Ending::*, Given::*, How::*, Id::*, Name::*, Op::*, Reply::*, Step::*, Talk::*, Who::*, Words::Some, *},
};

const SETUP: Setup = Setup {
    pausing: true,
    run_others: true,
    while_paused: Waiting::Cancel,
    expires: None,
    window: None,
    max_batches: 3,
    finishes: false,
    processes: false,
};

// D2: an ephemeral turn that begins to wait was stored in two steps; between them stood a turn without its calls, which
// recovery drove from its beginning: what had run ran again.
#[test]
fn an_ephemeral_turn_is_stored_with_its_calls_or_not_at_all() {
    let calls = [Call(Stumbles, Number, Fresh), Call(Sensitive, Number, Fresh)];
    for write in 0..4 {
        let chat = Chat(Nowhere, Whole, list(&[Calls(Some, list(&calls))]));
        holds(Program { setup: SETUP, steps: vec![Do(A, chat.clone(), WriteFails(write))] });
        for how in [Write::Lost, Write::Done] {
            holds(Program { setup: SETUP, steps: vec![Do(A, chat.clone(), Dies(write, how))] });
        }
    }
}

// L12: the last step of an ephemeral turn and its removal were two transactions; a crash between them left it for ever.
#[test]
fn an_ephemeral_turn_that_is_over_leaves_nothing() {
    let chat = Chat(Nowhere, Whole, list(&[Calls(Words::None, list(&[Call(Sensitive, Number, Fresh)]))]));
    for write in 0..12 {
        let decide = Decide(Nowhere, Pick::Waiting(0), What::Approve, list(&[]));
        holds(Program {
            setup: SETUP,
            steps: vec![Do(A, chat.clone(), Runs), Do(A, decide, Dies(write, Write::Done))],
        });
    }
}

// L15: a holder who was stopped between entering a conversation and beginning his turn took it anew when he went on, as
// another had left it meanwhile, and began beside the other's turn, which waited for a person.
#[test]
fn who_was_overtaken_begins_nothing() {
    let pays = list(&[Calls(Some, list(&[Call(Sensitive, Number, Fresh)]))]);
    for first in [Chat(C, Whole, list(&[])), Recover(C, list(&[]))] {
        for write in 0..5 {
            let asleep = Asleep(first.clone(), write, Chat(C, Whole, pays.clone()));
            holds(Program { setup: SETUP, steps: vec![asleep, Do(A, Chat(C, Whole, list(&[])), Runs)] });
        }
    }
}
