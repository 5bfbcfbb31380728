//! Healing a conversation, and looking at it through a window.

use cepa::{Version, load_whole, pairing, prelude::*};
use divan::Bencher;
use micro::talks;

use crate::at_once;

/// One that is in order, looked at for the first time.
#[divan::bench(args = [10, 100, 1_000, 10_000])]
fn heal_sound(bencher: Bencher<'_, '_>, messages: usize) {
    bencher.with_inputs(|| talks::history(messages)).bench_refs(|history| pairing::heal(history));
}

/// One that lacks results.
#[divan::bench(args = [10, 100, 1_000, 10_000])]
fn heal_broken(bencher: Bencher<'_, '_>, messages: usize) {
    bencher.with_inputs(|| talks::broken(messages)).bench_refs(|history| pairing::heal(history));
}

/// The latter half, by messages.
#[divan::bench(args = [10, 100, 1_000, 10_000])]
fn window(bencher: Bencher<'_, '_>, messages: usize) {
    let memory = InMemory::new();
    at_once(memory.append("c", Version::default(), talks::entries(messages))).expect("appended");
    let limit = Window::messages(messages as u64 / 2).expect("a window");
    let windowed = Windowed::new(memory, limit);
    bencher.bench(|| at_once(load_whole(&windowed, "c")).expect("loaded"));
}
