//! genai: its client under a loop written by hand. It has no agent, no memory and no store; the caller keeps the request.

use futures::StreamExt;
use genai::{
    ModelIden, ServiceTarget,
    adapter::AdapterKind,
    chat::{ChatMessage, ChatRequest, ChatStreamEvent, Tool, ToolResponse},
    resolver::{AuthData, Endpoint, ServiceTargetResolver},
};
use meter::{ADD_SCHEMA, Client, Result, SYSTEM, Work, tool_name};
use serde::Deserialize;

#[derive(Deserialize)]
struct Numbers {
    a: i64,
    b: i64,
}

/// A client with what a request begins with.
#[derive(Clone)]
pub struct GenAi {
    client: genai::Client,
    model: String,
    tools: Vec<Tool>,
}

impl Client for GenAi {
    type Talk = ChatRequest;

    async fn new(work: &Work, model: &str) -> Result<Self> {
        if work.db.is_some() {
            return Err("genai has no store".into());
        }
        let base = format!("{}/", work.base_url());
        let target = move |asked: ServiceTarget| -> std::result::Result<ServiceTarget, genai::resolver::Error> {
            let model = ModelIden::new(AdapterKind::OpenAI, asked.model.model_name);
            Ok(ServiceTarget { endpoint: Endpoint::from_owned(base.clone()), auth: AuthData::from_single("x"), model })
        };
        let resolver = ServiceTargetResolver::from_resolver_fn(target);
        let client = genai::Client::builder().with_service_target_resolver(resolver).build()?;
        let schema: serde_json::Value = serde_json::from_str(ADD_SCHEMA)?;
        let tool =
            |index| Tool::new(tool_name(index)).with_description("Adds two integers.").with_schema(schema.clone());
        Ok(Self { client, model: model.to_owned(), tools: (0..work.tools).map(tool).collect() })
    }

    async fn open(&self, _: &str) -> Result<ChatRequest> {
        Ok(ChatRequest::default().with_system(SYSTEM).with_tools(self.tools.clone()))
    }

    async fn turn(&self, talk: &mut ChatRequest, text: &str) -> Result<String> {
        let mut request = std::mem::take(talk).append_message(ChatMessage::user(text));
        loop {
            // `exec_chat` takes the request by value.
            let reply = self.client.exec_chat(&self.model, request.clone(), None).await?;
            let text = reply.first_text().map(str::to_owned);
            let calls = reply.into_tool_calls();
            if calls.is_empty() {
                let text = text.unwrap_or_default();
                *talk = request.append_message(ChatMessage::assistant(text.clone()));
                return Ok(text);
            }
            let mut results = Vec::with_capacity(calls.len());
            for call in &calls {
                let Numbers { a, b } = serde_json::from_value(call.fn_arguments.clone())?;
                results.push(ToolResponse::new(call.call_id.clone(), (a + b).to_string()));
            }
            request = request.append_message(calls);
            for result in results {
                request = request.append_message(result);
            }
        }
    }

    async fn stream(&self, talk: &mut ChatRequest, text: &str) -> Result<usize> {
        *talk = std::mem::take(talk).append_message(ChatMessage::user(text));
        let mut stream = self.client.exec_chat_stream(&self.model, talk.clone(), None).await?.stream;
        let (mut chunks, mut answer) = (0, String::new());
        while let Some(event) = stream.next().await {
            if let ChatStreamEvent::Chunk(chunk) = event? {
                chunks += usize::from(!chunk.content.is_empty());
                answer.push_str(&chunk.content);
            }
        }
        *talk = std::mem::take(talk).append_message(ChatMessage::assistant(answer));
        Ok(chunks)
    }
}
