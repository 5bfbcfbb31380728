//! A request through filters that do nothing.

use std::sync::Arc;

use cepa::{AssistantMessage, Chain, Filter, prelude::*};
use divan::Bencher;

use crate::at_once;

#[divan::bench(args = [0, 5, 20])]
fn filters(bencher: Bencher<'_, '_>, count: usize) {
    let filters = (0..count)
        .map(|index| {
            let filter = Chat::around(format!("f{index}"), |request, next| async move { next.run(request).await });
            Arc::new(filter) as Arc<dyn Filter<Chat>>
        })
        .collect();
    let chain = Chain::<Chat>::new(filters, |_| async { Ok(ChatResponse::new(AssistantMessage::default())) });
    let chain = chain.expect("a chain");
    bencher.with_inputs(ChatRequest::default).bench_values(|request| at_once(chain.run(request)));
}
