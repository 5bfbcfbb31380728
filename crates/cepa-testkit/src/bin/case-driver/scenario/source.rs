//! Where the replies of a scenario come from: a script, or the library's own client in front of a local server.

use std::sync::Arc;

use cepa_core::{BoxFuture, ChatModel};
use cepa_testkit::scripted::ScriptedModel;

use super::input::Input;
use crate::{
    client::{self},
    line::Fail,
    scenario::{model, record::Record},
    server::Server,
    wire::{model_of, model_of_stream},
};

/// One of the two sources.
pub(crate) enum Source {
    Script(ScriptedModel),
    Http(Box<Http>),
}

/// A server, and how its client is made.
pub(crate) struct Http {
    pub(crate) server: Server,
    provider: String,
    pub(crate) name: String,
    input: Input,
}

impl Source {
    /// The source that the input names.
    pub(crate) async fn of(input: &Input, provider: &str, record: &Arc<Record>) -> Result<Self, Fail> {
        if let Some(replies) = &input.http {
            let first = replies.first();
            let name = first
                .map(|reply| if reply.is_stream() { model_of_stream(reply.text()) } else { model_of(reply.text()) });
            let server = Server::start(replies.clone()).await.map_err(|error| error.to_string())?;
            let name = name.unwrap_or_else(|| "m".to_owned());
            return Ok(Self::Http(Box::new(Http {
                server,
                provider: provider.to_owned(),
                name,
                input: input.clone(),
            })));
        }
        let script = input.model.as_ref().ok_or_else(|| "there is neither `model` nor `http`".to_owned())?;
        Ok(Self::Script(model::scripted(script, &input.model_by_prompt, record)?))
    }

    /// The model, made anew where it is an object of the library.
    pub(crate) fn model(&self) -> Result<Arc<dyn ChatModel>, Fail> {
        match self {
            Self::Script(model) => Ok(Arc::new(model.clone())),
            Self::Http(http) => {
                let Http { server, provider, name, input } = &**http;
                Ok(client::model(provider, name, &server.url(), input.retry.as_ref(), &input.client)?)
            }
        }
    }

    /// Waits until the last byte of an HTTP reply was sent.
    pub(crate) fn when_sent(&self, reply: usize) -> Option<BoxFuture<'static, ()>> {
        match self {
            Self::Script(_) => None,
            Self::Http(http) => Some(Box::pin(http.server.when_sent(reply))),
        }
    }
}
