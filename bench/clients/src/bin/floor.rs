//! The floor: a loop written by hand on reqwest with typed serde structs, without any framework.

use clients::{ADD_SCHEMA, MODEL, SYSTEM, USER, base_url, measure};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[derive(Serialize, Deserialize, Clone)]
struct Function {
    name: String,
    arguments: String,
}

#[derive(Serialize, Deserialize, Clone)]
struct Call {
    id: String,
    r#type: String,
    function: Function,
}

#[derive(Serialize, Deserialize, Clone, Default)]
struct Message {
    role: String,
    content: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    messages: &'a [Message],
    tools: &'a RawValue,
}

#[derive(Deserialize)]
struct Reply {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
}

#[derive(Deserialize)]
struct Add {
    a: i64,
    b: i64,
}

fn message(role: &str, content: &str) -> Message {
    Message { role: role.into(), content: Some(content.into()), ..Message::default() }
}

async fn turn(http: &reqwest::Client, url: &str, tools: &RawValue) -> Result<String, Box<dyn std::error::Error>> {
    let mut messages = vec![message("system", SYSTEM), message("user", USER)];
    loop {
        let body = serde_json::to_vec(&Request { model: MODEL, messages: &messages, tools })?;
        let request = http.post(url).header("content-type", "application/json").header("authorization", "Bearer x");
        let response = request.body(body).send().await?.error_for_status()?;
        let reply: Reply = serde_json::from_slice(&response.bytes().await?)?;
        let reply = reply.choices.into_iter().next().ok_or("no choice")?.message;
        messages.push(reply.clone());
        if reply.tool_calls.is_empty() {
            return Ok(reply.content.unwrap_or_default());
        }
        for call in reply.tool_calls {
            let Add { a, b } = serde_json::from_str(&call.function.arguments)?;
            messages.push(Message { tool_call_id: Some(call.id), ..message("tool", &(a + b).to_string()) });
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (http, url) = (reqwest::Client::new(), format!("{}/chat/completions", base_url()?));
    let tools = format!(
        r#"[{{"type":"function","function":{{"name":"add","description":"Adds two integers.","parameters":{ADD_SCHEMA}}}}}]"#
    );
    let tools = RawValue::from_string(tools)?;
    measure("floor", || turn(&http, &url, &tools)).await
}
