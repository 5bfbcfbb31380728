//! A batch of a thousand calls of a tool that does nothing: checked, journalled, run, told.

use cepa::{AssistantMessage, BoxFuture, Kernel, Origin, ToolCall, prelude::*, run_tools};
use divan::Bencher;
use micro::talks;

use crate::on_runtime;

const CALLS: usize = 1_000;

/// A model that is never called.
struct Silent(Origin);

impl ChatModel for Silent {
    fn origin(&self) -> &Origin {
        &self.0
    }

    fn chat(&self, _: ChatRequest) -> BoxFuture<'_, Result<ChatResponse, Error>> {
        Box::pin(async { Ok(ChatResponse::new(AssistantMessage::default())) })
    }
}

fn batch(bencher: Bencher<'_, '_>, flags: ToolFlags) {
    let tool = talks::idle_tool(0).expect("a tool").with_flags(flags);
    let model = Silent(Origin { provider: "none".into(), model: "silent".into() });
    let kernel = Kernel::builder(model).tool(tool).build().expect("a kernel");
    let call = |index| ToolCall::new(format!("c{index}"), "add", Args::decode(&format!(r#"{{"a":{index},"b":2}}"#)));
    let calls: Vec<ToolCall> = (0..CALLS).map(call).collect();
    bencher
        .with_inputs(|| (calls.clone(), ToolContext::new()))
        .bench_values(|(calls, context)| on_runtime(run_tools(&kernel, calls, &context, None)).expect("a batch"));
}

#[divan::bench]
fn one_after_another(bencher: Bencher<'_, '_>) {
    batch(bencher, ToolFlags::default());
}

#[divan::bench]
fn together(bencher: Bencher<'_, '_>) {
    batch(bencher, ToolFlags { concurrent: true, ..ToolFlags::default() });
}
