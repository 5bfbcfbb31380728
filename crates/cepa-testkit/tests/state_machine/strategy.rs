//! Which programs are tried, and how often what.

use proptest::{collection::vec, prelude::*, strategy::Union};

use crate::program::*;

/// Programs of up to this many steps.
pub(crate) fn programs(processes: BoxedStrategy<bool>) -> impl Strategy<Value = Program> {
    let setup = (
        prop_oneof![5 => Just(true), 1 => Just(false)],
        any::<bool>(),
        prop_oneof![3 => Just(Waiting::Cancel), 1 => Just(Waiting::Queue), 1 => Just(Waiting::Refuse)],
        prop_oneof![2 => Just(None), 1 => Just(Some(100))],
        prop_oneof![3 => Just(None), 1 => (1..8u8).prop_map(Some)],
        1..5u8,
        any::<bool>(),
        processes,
    );
    let setup =
        setup.prop_map(|(pausing, run_others, while_paused, expires, window, max_batches, finishes, processes)| {
            Setup { pausing, run_others, while_paused, expires, window, max_batches, finishes, processes }
        });
    (setup, vec(step(), 3..12)).prop_map(|(setup, steps)| Program { setup, steps })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        24 => (who(), op(), ending()).prop_map(|(who, op, ending)| Step::Do(who, op, ending)),
        2 => (op(), op()).prop_map(|(a, b)| Step::Both(a, b)),
        2 => (op(), 0..12u8, op()).prop_map(|(a, write, b)| Step::Asleep(a, write, b)),
        2 => who().prop_map(Step::Restart),
        4 => prop_oneof![3 => Just(31), 2 => Just(101), 1 => Just(5), 1 => Just(-40)].prop_map(Step::Jump),
    ]
}

fn who() -> impl Strategy<Value = Who> {
    prop_oneof![3 => Just(Who::A), 1 => Just(Who::B)]
}

fn talk() -> impl Strategy<Value = Talk> {
    prop_oneof![8 => Just(Talk::C), 1 => Just(Talk::D), 2 => Just(Talk::Nowhere)]
}

fn op() -> impl Strategy<Value = Op> {
    let how = prop_oneof![Just(How::Whole), Just(How::Streamed)];
    prop_oneof![
        12 => (talk(), how, replies()).prop_map(|(talk, how, replies)| Op::Chat(talk, how, replies)),
        10 => (talk(), pick(), what(), replies())
            .prop_map(|(talk, pick, what, replies)| Op::Decide(talk, pick, what, replies)),
        2 => (talk(), replies()).prop_map(|(talk, replies)| Op::Recover(talk, replies)),
        1 => replies().prop_map(Op::Sweep),
        1 => talk().prop_map(Op::Reset),
    ]
}

fn ending() -> impl Strategy<Value = Ending> {
    let write = prop_oneof![Just(Write::Lost), Just(Write::Done)];
    prop_oneof![
        8 => Just(Ending::Runs),
        1 => (0..30u8).prop_map(Ending::Cancelled),
        1 => (0..40u8).prop_map(Ending::Dropped),
        2 => (0..18u8, write).prop_map(|(n, write)| Ending::Dies(n, write)),
        1 => (0..14u8).prop_map(Ending::WriteFails),
    ]
}

fn pick() -> impl Strategy<Value = Pick> {
    prop_oneof![
        10 => (0..4u8).prop_map(Pick::Waiting),
        3 => (0..4u8).prop_map(Pick::Old),
        1 => (0..4u8).prop_map(Pick::Foreign),
        1 => Just(Pick::MadeUp),
        3 => Just(Pick::All),
    ]
}

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        6 => Just(What::Approve),
        3 => (1000..2000u16).prop_map(What::Edit),
        1 => Just(What::EditWrong),
        2 => Just(What::Reject),
        1 => Just(What::RejectWhy),
        2 => Just(What::Answer),
        3 => Just(What::Same),
    ]
}

fn replies() -> impl Strategy<Value = List<Reply>> {
    vec(reply(), 0..4).prop_map(List)
}

fn reply() -> impl Strategy<Value = Reply> {
    let words = prop_oneof![Just(Words::Some), Just(Words::None)];
    prop_oneof![
        16 => (words, vec(call(), 1..5)).prop_map(|(words, calls)| Reply::Calls(words, List(calls))),
        2 => Just(Reply::Says),
        1 => Just(Reply::Empty),
        1 => vec(call(), 1..4).prop_map(|calls| Reply::Cut(List(calls))),
        1 => Just(Reply::PauseTurn),
        1 => Just(Reply::Down),
        1 => Just(Reply::Stuck),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    let given = prop_oneof![
        8 => Just(Given::Number),
        2 => Just(Given::Spaced),
        1 => Just(Given::Blank),
        1 => Just(Given::WrongType),
        1 => Just(Given::Broken),
    ];
    let id = prop_oneof![4 => Just(Id::Fresh), 1 => Just(Id::Again), 1 => Just(Id::Odd)];
    (name(), given, id).prop_map(|(name, given, id)| Call(name, given, id))
}

fn name() -> impl Strategy<Value = Name> {
    let weighted = [
        (6, Name::Plain),
        (3, Name::Idempotent),
        (3, Name::ReadOnly),
        (3, Name::Concurrent),
        (8, Name::Sensitive),
        (2, Name::SensitivePut),
        (1, Name::Stumbles),
        (1, Name::Slips),
        (1, Name::Flaky),
        (2, Name::Broke),
        (1, Name::Direct),
        (2, Name::Long),
        (1, Name::Hangs),
        (1, Name::Panics),
        (1, Name::Unheard),
    ];
    Union::new_weighted(weighted.into_iter().map(|(weight, name)| (weight, Just(name))).collect())
}
