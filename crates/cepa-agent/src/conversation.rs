//! The handle of a conversation: what a caller does with an agent.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::Duration,
};

use cepa_core::{BoxFuture, CancellationToken, Error, ErrorKind, History, Message};

use crate::{
    agent::{Agent, WhilePaused, busy},
    hold::{Hold, cancelled_waiting},
    memory::load_whole,
    options::{Decisions, Input, TurnOptions, TurnRequest, TurnStart},
    pause::Pause,
    result::{TurnError, TurnResult},
    resume,
    run::{self, DropMark},
    store::Opened,
    stream::TurnStream,
    turn::Turn,
};

/// A conversation with an agent. Turns on one conversation wait for each other in the order they came.
#[derive(Clone, Debug)]
pub struct Conversation {
    pub(crate) agent: Agent,
    pub(crate) id: Option<String>,
    /// The turns without a conversation that began here and wait; clones of the handle share them.
    waiting: Arc<Mutex<HashSet<String>>>,
}

impl Conversation {
    pub(crate) fn new(agent: &Agent, id: Option<String>) -> Self {
        Self { agent: agent.clone(), id, waiting: Arc::default() }
    }

    /// A handle that shares the turns without a conversation of all others made so.
    pub(crate) fn own(agent: &Agent, id: Option<String>) -> Self {
        Self { agent: agent.clone(), id, waiting: agent.core.waiting.clone() }
    }

    /// The conversation's id; `None` where every turn is ephemeral.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// One turn: from this message to the answer, or a pause.
    ///
    /// # Errors
    /// A [`TurnError`] with what the turn did: the model's or the store's error, `busy` if another process works on
    /// the conversation.
    pub async fn chat(&self, input: impl Into<Input>) -> Result<TurnResult, TurnError> {
        self.chat_with(input, TurnOptions::new()).await
    }

    /// One turn with options.
    ///
    /// # Errors
    /// As [`Conversation::chat`].
    pub async fn chat_with(&self, input: impl Into<Input>, options: TurnOptions) -> Result<TurnResult, TurnError> {
        let Input(messages) = input.into();
        if messages.is_empty() {
            let nothing = Error::new(ErrorKind::InvalidInput, "there is nothing to say: give at least one message");
            return Err(nothing.into());
        }
        let Some(id) = &self.id else { return self.begin_ephemeral(messages, options).await };
        loop {
            let (held, begun) = if self.begins_at_once() {
                self.open(id, &messages, &options).await?
            } else {
                (Hold::enter(&self.agent, id, &options.cancel).await?, None)
            };
            if begun.is_some() {
                let options = TurnOptions { begun, ..options };
                return self.drive(held, TurnStart::Message(messages), options).await;
            }
            match self.make_room(id, &held, &options.cancel).await {
                Ok(Room::Free) => return self.drive(held, TurnStart::Message(messages), options).await,
                Ok(Room::Waits) => held.leave().await,
                Err(error) => {
                    held.leave().await;
                    return Err(error);
                }
            }
            // Waiting for a person holds nothing.
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(200)) => {}
                () = options.cancel.cancelled() => return Err(cancelled_waiting("decisions").into()),
            }
        }
    }

    /// Whether a turn can begin together with taking the conversation: nothing stands around it that could change it.
    fn begins_at_once(&self) -> bool {
        self.agent.core.has_memory && self.agent.chain.filters().is_empty()
    }

    /// Takes the conversation, and begins a turn in it unless another one is live there.
    async fn open(
        &self,
        id: &str,
        messages: &[Message],
        options: &TurnOptions,
    ) -> Result<(Hold, Option<Box<Turn>>), Error> {
        let core = &self.agent.core;
        let take = || async {
            let turn = run::new_turn(core, messages.to_vec(), self.id.clone(), options, core.now_ms());
            let dropped = DropMark::new(core, turn.id());
            let opened = core.keeper.open(turn.row(core.now_ms())).await;
            dropped.done();
            opened.map(|Opened { lease, begun }| (lease, begun.then(|| Box::new(turn))))
        };
        Hold::take(&self.agent, id, take, &options.cancel).await
    }

    async fn begin_ephemeral(&self, messages: Vec<Message>, options: TurnOptions) -> Result<TurnResult, TurnError> {
        let result = self.turn(None, TurnStart::Message(messages), options).await;
        if let Ok(paused) = result.as_ref()
            && paused.is_paused()
        {
            self.waiting().insert(paused.turn.clone());
        }
        result
    }

    fn waiting(&self) -> MutexGuard<'_, HashSet<String>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drives a turn and gives the conversation back. A decision that somebody made meanwhile, and could not go on with
    /// because the conversation was held here, is taken up.
    pub(crate) async fn drive(
        &self,
        held: Hold,
        start: TurnStart,
        options: TurnOptions,
    ) -> Result<TurnResult, TurnError> {
        let core = &self.agent.core;
        let key = held.conversation.clone();
        let later = options.clone();
        // What stands around the turn may still work on it when it is over.
        let released = self.agent.chain.filters().is_empty().then(Arc::default);
        let options = TurnOptions { released: released.clone(), ..options };
        let mut result = self.turn(Some(&held), start, options).await;
        held.leave_unless(released.is_some_and(|released| released.load(Ordering::Acquire))).await;
        let options = TurnOptions { begun: None, ..later };
        loop {
            let Ok(paused) = &result else { return result };
            if !paused.is_paused() {
                self.waiting().remove(&paused.turn);
                return result;
            }
            let live = core.store.live_turns(Some(&key)).await?;
            let settled = live.iter().any(|live| live.id == paused.turn && !live.paused);
            if !settled {
                return result;
            }
            // Who decided may be going on with it by now.
            let Some(held) = Hold::try_enter(&self.agent, &key).await? else { return result };
            let start = TurnStart::Resume { turn: paused.turn.clone() };
            result = self.turn(Some(&held), start, options.clone()).await;
            held.leave().await;
        }
    }

    /// One turn as a stream of events.
    pub fn chat_stream(&self, input: impl Into<Input>) -> TurnStream {
        self.chat_stream_with(input, TurnOptions::new())
    }

    /// One turn with options, as a stream of events.
    pub fn chat_stream_with(&self, input: impl Into<Input>, options: TurnOptions) -> TurnStream {
        let (options, stream) = TurnStream::attach(options);
        let (this, input) = (self.clone(), input.into());
        stream.with_turn(Box::pin(async move { this.chat_with(input, options).await }))
    }

    /// Decides about calls that wait; the turn goes on when all are decided.
    ///
    /// # Errors
    /// `not_paused` if nothing waits; `already_decided`, `expired` for such a pause; `invalid_input` for edited
    /// arguments that the tool does not take; `invalid_tool` if the tool has changed since, or is gone (the pause
    /// stays); `busy` if another process works on the conversation (the decision stands and is taken up).
    ///
    /// How to go on: after `expired` the next message of the conversation, [`Conversation::recover`] or
    /// [`Agent::recover`] tells the model that the call did not run. After `invalid_tool` for a changed tool, look at
    /// the call again and decide with [`TurnOptions::accept_changed_tools`], or reject it or reply.
    pub async fn resume(&self, decisions: Decisions) -> Result<TurnResult, TurnError> {
        self.resume_with_options(decisions, TurnOptions::new()).await
    }

    /// Decides with options.
    ///
    /// # Errors
    /// As [`Conversation::resume`].
    pub async fn resume_with_options(
        &self,
        decisions: Decisions,
        options: TurnOptions,
    ) -> Result<TurnResult, TurnError> {
        let Some(id) = self.id.clone() else { return resume::ephemeral(self, decisions, options).await };
        resume::decide_and_go_on(self, &id, decisions, options).await
    }

    /// Decides, and streams how the turn goes on.
    pub fn resume_stream(&self, decisions: Decisions, options: TurnOptions) -> TurnStream {
        let (options, stream) = TurnStream::attach(options);
        let this = self.clone();
        stream.with_turn(Box::pin(async move { this.resume_with_options(decisions, options).await }))
    }

    /// The calls that wait for a person, oldest first. One that nobody decided in time waits no longer; the next touch
    /// of the conversation, or [`Agent::recover`], tells the model so.
    ///
    /// # Errors
    /// `store` if the store cannot be read.
    pub async fn pending(&self) -> Result<Vec<Pause>, Error> {
        let core = &self.agent.core;
        let mut pending = core.store.pending(self.id.as_deref()).await?;
        if self.id.is_none() {
            let own = self.waiting();
            pending.retain(|pause| own.contains(&pause.turn));
        }
        let now = core.now_ms();
        pending.retain(|pause| !pause.is_expired(now));
        Ok(pending)
    }

    /// Whether calls wait for a person.
    ///
    /// # Errors
    /// `store` if the store cannot be read.
    pub async fn is_paused(&self) -> Result<bool, Error> {
        Ok(!self.pending().await?.is_empty())
    }

    /// The messages of the conversation, as the memory shows them.
    ///
    /// # Errors
    /// `corrupt` or `store` if it cannot be read.
    pub async fn history(&self) -> Result<History, Error> {
        match &self.id {
            Some(id) if self.agent.core.has_memory => Ok(load_whole(&*self.agent.core.store, id).await?.1),
            Some(_) | None => Ok(History::new()),
        }
    }

    /// Clears the conversation and everything that waits in it.
    ///
    /// # Errors
    /// `store` if it cannot be written; `busy` if another process works on it.
    pub async fn reset(&self) -> Result<(), Error> {
        match &self.id {
            Some(id) => {
                let held = Hold::enter(&self.agent, id, &CancellationToken::new()).await?;
                let cleared = self.agent.core.store.clear(id).await;
                held.leave().await;
                cleared
            }
            None => {
                let own: Vec<String> = self.waiting().drain().collect();
                for turn in own {
                    self.agent.core.store.forget(&turn).await?;
                }
                Ok(())
            }
        }
    }

    /// Drives the turn that a crash left behind in this conversation, or whose pauses have expired, if there is one.
    ///
    /// # Errors
    /// As [`Conversation::chat`].
    pub async fn recover(&self) -> Result<Option<TurnResult>, TurnError> {
        let Some(id) = &self.id else { return Ok(None) };
        let held = Hold::enter(&self.agent, id, &CancellationToken::new()).await?;
        let recovered = self.drive_live(id, &held).await;
        held.leave().await;
        recovered
    }

    /// As [`Conversation::recover`], unless somebody works on the conversation now: then it is left alone, without a
    /// wait. A process that died keeps it until its lease has run out, as one that lives does.
    ///
    /// # Errors
    /// As [`Conversation::chat`].
    pub async fn recover_if_free(&self) -> Result<Option<TurnResult>, TurnError> {
        let Some(id) = &self.id else { return Ok(None) };
        let Some(held) = Hold::try_enter(&self.agent, id).await? else { return Ok(None) };
        let recovered = self.drive_live(id, &held).await;
        held.leave().await;
        recovered
    }

    async fn drive_live(&self, id: &str, held: &Hold) -> Result<Option<TurnResult>, TurnError> {
        let core = &self.agent.core;
        let mut last = None;
        for live in core.store.live_turns(Some(id)).await? {
            // What its caller dropped is given up, by whoever touches it first.
            if run::was_dropped(core, &live.id) {
                run::cancel_stored(core, &live.id, held.token, true).await?;
                continue;
            }
            if !live.paused || resume::expire(core, &live.id).await? {
                let start = TurnStart::Resume { turn: live.id };
                last = Some(self.turn(Some(held), start, TurnOptions::new()).await?);
            }
        }
        Ok(last)
    }

    /// Sends a turn through the turn filters. It writes under the token of whoever holds the conversation.
    pub(crate) fn turn(
        &self,
        held: Option<&Hold>,
        start: TurnStart,
        mut options: TurnOptions,
    ) -> BoxFuture<'static, Result<TurnResult, TurnError>> {
        options.token = held.map(|held| held.token);
        self.agent.chain.run(TurnRequest { start, conversation: self.id.clone(), options })
    }

    /// Ends or drives what is not over in the conversation, so that a new turn can begin.
    async fn make_room(&self, id: &str, held: &Hold, cancel: &CancellationToken) -> Result<Room, TurnError> {
        let core = &self.agent.core;
        // What is finished on the way is part of the wait that the caller can cancel.
        let options = || TurnOptions::new().cancel(cancel.clone());
        for live in core.store.live_turns(Some(id)).await? {
            let given_up = run::was_dropped(core, &live.id);
            if !given_up && !live.paused {
                // A crash left it behind: it is brought to its end before anything new. If that fails, it is over too.
                let result = self.turn(Some(held), TurnStart::Resume { turn: live.id.clone() }, options()).await;
                match result {
                    Ok(result) if !result.is_paused() => continue,
                    Ok(_) => {}
                    Err(error) if run::is_over(core, &live.id).await? => {
                        tracing::warn!(%error, turn = live.id, "an interrupted turn could not be finished");
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            }
            if !given_up && resume::expire(core, &live.id).await? {
                // What waited has expired meanwhile: the turn goes on with that.
                let result = self.turn(Some(held), TurnStart::Resume { turn: live.id.clone() }, options()).await?;
                if !result.is_paused() {
                    continue;
                }
            }
            match core.while_paused {
                WhilePaused::Queue if !given_up => return Ok(Room::Waits),
                WhilePaused::Refuse if !given_up => {
                    let text = "calls wait for a decision: decide them first, or cancel them".to_owned();
                    return Err(busy(text).into());
                }
                WhilePaused::Cancel | WhilePaused::Queue | WhilePaused::Refuse => {
                    run::cancel_stored(core, &live.id, held.token, given_up).await?;
                }
            }
        }
        Ok(Room::Free)
    }
}

enum Room {
    /// A turn can begin.
    Free,
    /// Calls wait, and the new message waits for them.
    Waits,
}
