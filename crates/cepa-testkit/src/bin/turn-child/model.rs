//! The model of every child: what it says depends only on the program and on what it reads.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use cepa_core::{ChatRequest, Error, ErrorKind, FinishReason, Message, Role};
use cepa_testkit::scripted::{Reply, ScriptedModel};

use crate::program::{Called, Program, Round};

/// When the model was first asked since this was last emptied.
pub(crate) type Asked = Arc<Mutex<Option<Instant>>>;

pub(crate) fn model(program: Program, pace: Duration, asked: Asked) -> ScriptedModel {
    ScriptedModel::choosing(move |_, request| reply(program, request).after(pace)).on_call(move |_, _| {
        asked.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
    })
}

fn reply(program: Program, request: &ChatRequest) -> Reply {
    let said: Vec<&Message> = request.messages.messages().collect();
    let opened = said.iter().rposition(|message| message.role() == Role::User).unwrap_or_default();
    let since = said.get(opened..).unwrap_or_default();
    let text = since.first().map(|message| message.text().into_owned()).unwrap_or_default();
    let round = since.iter().filter(|message| message.role() == Role::Assistant).count();
    let answer = Reply::text(format!("the answer to: {text}"));
    if !text.starts_with("go") {
        return answer;
    }
    let calls = |calls: Vec<Called>| {
        calls.into_iter().fold(Reply::text("Let me see."), |reply, call| {
            let Called { tool, n } = call;
            let args = match tool {
                "read_result" => format!(r#"{{"id":"{}"}}"#, cut_id(since)),
                _ => format!(r#"{{"n":{n},"for":"{text}"}}"#),
            };
            reply.call(format!("call_{n}"), tool, &args)
        })
    };
    match program.round(round) {
        Round::Calls(made) => calls(made),
        Round::Cut(made) => calls(made).finish(FinishReason::Length),
        Round::Answer => answer,
        Round::Failure => Reply::error(Error::new(ErrorKind::Server, "the model is down")),
    }
}

/// The id that the result names where it was cut.
fn cut_id(since: &[&Message]) -> String {
    let text = since.last().map(|message| message.text().into_owned()).unwrap_or_default();
    let id = text.split_once("id \"").and_then(|(_, rest)| rest.split_once('"'));
    id.map_or("none", |(id, _)| id).to_owned()
}
