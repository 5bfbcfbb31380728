//! What happens around the work of a file tool: cancelled, dropped, panicked.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use cepa::{Args, CancellationToken, ToolContext};

use super::{super::testing::Sandbox, *};

#[derive(serde::Deserialize, JsonSchema)]
struct Nothing {}

/// A tool that is stuck, as on a dead network drive, and does not ask whether it is still wanted.
fn stuck(sandbox: &Sandbox, effect: Effect) -> Tool {
    let root = Arc::new(Root::open(&sandbox.work).unwrap());
    file_tool("stuck", "", effect, &root, |_, _: &Nothing, _| {
        std::thread::sleep(Duration::from_secs(1));
        Ok("done".to_owned())
    })
    .unwrap()
}

async fn cancelled_while_it_runs(tool: &Tool) -> (Result<String, String>, Duration) {
    let cancel = CancellationToken::new();
    let context = ToolContext::new().with_cancel(cancel.clone());
    let started = Instant::now();
    let (result, ()) = tokio::join!(tool.body().run(Args::decode("{}"), context), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.cancel();
    });
    let result = result.map(|output| output.content.text().into_owned()).map_err(|error| error.message);
    (result, started.elapsed())
}

#[tokio::test]
async fn a_cancelled_read_is_not_waited_for_and_a_write_is() {
    let sandbox = Sandbox::new();
    let (result, took) = cancelled_while_it_runs(&stuck(&sandbox, Effect::ReadOnly)).await;
    assert_eq!(result, Err("cancelled".to_owned()));
    assert!(took < Duration::from_millis(900), "{took:?}");
    // What was written is known only at its end.
    let (result, took) = cancelled_while_it_runs(&stuck(&sandbox, Effect::Sensitive)).await;
    assert_eq!(result, Ok("done".to_owned()));
    assert!(took >= Duration::from_secs(1), "{took:?}");
}

#[tokio::test]
async fn a_call_that_is_dropped_is_told_to_stop() {
    static STOPPED: AtomicBool = AtomicBool::new(false);
    let sandbox = Sandbox::new();
    let root = Arc::new(Root::open(&sandbox.work).unwrap());
    let tool = file_tool("waits", "", Effect::ReadOnly, &root, |_, _: &Nothing, stop| {
        let until = Instant::now() + Duration::from_secs(8);
        while !stop.is_set() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        STOPPED.store(stop.is_set(), Ordering::Relaxed);
        stop.check().map(|()| String::new())
    })
    .unwrap();
    let call = tool.body().run(Args::decode("{}"), ToolContext::new());
    tokio::time::timeout(Duration::from_millis(50), call).await.unwrap_err();
    let until = Instant::now() + Duration::from_secs(5);
    while !STOPPED.load(Ordering::Relaxed) {
        assert!(Instant::now() < until, "it goes on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
#[should_panic(expected = "a fault of ours")]
async fn a_panic_reaches_the_one_who_called() {
    let sandbox = Sandbox::new();
    let root = Arc::new(Root::open(&sandbox.work).unwrap());
    let tool = file_tool("panics", "", Effect::ReadOnly, &root, |_, _: &Nothing, _| panic!("a fault of ours")).unwrap();
    let _ = tool.body().run(Args::decode("{}"), ToolContext::new()).await;
}
