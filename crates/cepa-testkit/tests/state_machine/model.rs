//! The model: says what the program says it says, and remembers that it did.

use std::time::Duration;

use cepa_core::{
    BoxFuture, ChatEvent, ChatModel, ChatRequest, ChatResponse, Error, ErrorKind, FinishReason, Message, Origin, Usage,
};
use cepa_testkit::scripted::{self, ScriptedModel};

use crate::{
    facts::Fact,
    judges,
    program::{Call, Given, Id, Name, Reply, Who, Words},
    scene::Scene,
};

pub(crate) struct Model {
    who: Who,
    scene: Scene,
    inner: ScriptedModel,
}

impl Model {
    pub(crate) fn new(who: Who, scene: &Scene) -> Self {
        let said = scene.clone();
        let inner = ScriptedModel::choosing(move |_, request| {
            judge(&said, request);
            make(&said, said.next_reply(who))
        });
        Self { who, scene: scene.clone(), inner }
    }
}

/// M6: what leaves is legal, whatever happened before.
fn judge(scene: &Scene, request: &ChatRequest) {
    if let Err(why) = judges::paired(&request.messages) {
        scene.facts().add(Fact::Wrong(format!("M6: a request leaves that is not paired: {why}")));
    }
}

impl ChatModel for Model {
    fn origin(&self) -> &Origin {
        self.inner.origin()
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatResponse, Error>> {
        Box::pin(async move {
            self.scene.moment(self.who).await;
            let response = self.inner.chat(request).await?;
            if let Some(usage) = response.usage {
                let message = serde_json::to_string(&Message::Assistant(response.message.clone())).unwrap();
                self.scene.facts().add(Fact::Replied { mark: usage.input, message });
            }
            self.scene.moment(self.who).await;
            Ok(response)
        })
    }
}

fn make(scene: &Scene, reply: Reply) -> scripted::Reply {
    let mark = scene.facts().number();
    let text = format!("reply {mark}");
    let made = match reply {
        Reply::Says => scripted::Reply::text(text),
        Reply::Empty => scripted::Reply::empty(),
        Reply::Calls(words, calls) => with_calls(scene, words, &text, &calls.0),
        Reply::Cut(calls) => with_calls(scene, Words::Some, &text, &calls.0).finish(FinishReason::Length),
        Reply::PauseTurn => scripted::Reply::text(text).finish(FinishReason::PauseTurn),
        Reply::Down => return scripted::Reply::error(Error::new(ErrorKind::Server, "the model is down")),
        Reply::Stuck => {
            scene.facts().add(Fact::Began { text: text.clone() });
            return scripted::Reply::silence().streaming([ChatEvent::Text(text)]);
        }
    };
    made.usage(Usage { input: mark, output: 1, ..Usage::default() }).after(Duration::from_millis(2))
}

fn with_calls(scene: &Scene, words: Words, text: &str, calls: &[Call]) -> scripted::Reply {
    let mut reply = match words {
        Words::Some => scripted::Reply::text(text),
        Words::None => scripted::Reply::empty(),
    };
    for (place, Call(name, given, id)) in calls.iter().enumerate() {
        let number = scene.facts().number();
        let args = match given {
            Given::Number => format!(r#"{{"n":{number}}}"#),
            Given::Spaced => format!(r#"{{ "n": {number}, "more": [1.50] }}"#),
            Given::Blank => " ".to_owned(),
            Given::WrongType => r#"{"n":"x"}"#.to_owned(),
            Given::Broken => format!(r#"{{"n":{number}"#),
        };
        let id = match id {
            Id::Fresh => format!("call_{number}"),
            Id::Again => "call_0".to_owned(),
            Id::Odd => format!("an id/with: {place}"),
        };
        reply = reply.call(id, word(*name), &args);
    }
    reply
}

/// The name of a tool.
pub(crate) const fn word(name: Name) -> &'static str {
    match name {
        Name::Plain => "plain",
        Name::Idempotent => "idempotent",
        Name::ReadOnly => "read_only",
        Name::Concurrent => "concurrent",
        Name::Sensitive => "sensitive",
        Name::SensitivePut => "sensitive_put",
        Name::Stumbles => "stumbles",
        Name::Slips => "slips",
        Name::Flaky => "flaky",
        Name::Broke => "broke",
        Name::Direct => "direct",
        Name::Long => "long",
        Name::Hangs => "hangs",
        Name::Panics => "panics",
        Name::Unheard => "unheard",
    }
}
