//! `cargo xtask bench micro`: what single parts of cepa cost.

mod chain;
mod history;
mod sse;
mod store;
mod tools;
mod wire;

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

/// Each gets at most so long, unless the command line says otherwise.
const ENOUGH: Duration = Duration::from_secs(1);

fn main() {
    divan::Divan::default().max_time(ENOUGH).config_with_args().main();
}

/// The value of a future that waits for nothing: no runtime, so that none is measured.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("this was not to wait"),
    }
}

/// The value of a future that may wait.
fn on_runtime<T>(future: impl Future<Output = T>) -> T {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    }
    RUNTIME.with(|runtime| runtime.block_on(future))
}
