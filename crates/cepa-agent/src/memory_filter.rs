//! The memory filter: replaces what is new by the whole conversation, and stores what is new with the reply.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use cepa_core::{
    BoxFuture, Chat, ChatRequest, ChatResponse, Entry, Error, ErrorKind, Filter, FilterInfo, Message, Next, Role,
};

use crate::{
    clock::Clock,
    driver::Unstored,
    memory::{ChatMemory, Version, load_whole},
    store::{Commit, SharedEntry, TurnStore},
};

/// The memory filter's place: filters with a smaller order see only what is new, and can keep it from being stored;
/// those with a greater one see the whole conversation.
pub const MEMORY_ORDER: i32 = 100;

/// The memory filter's name.
pub(crate) const MEMORY_FILTER: &str = "memory";

/// Which model call of a turn a request is, as the driver tells the memory filter.
#[derive(Debug)]
pub(crate) struct TurnCall {
    /// The turn and its token, where the turn writes: what it says is stored only while it holds the conversation.
    pub(crate) fence: Option<(String, u64)>,
    pub(crate) reply_id: String,
    /// Whether the new messages open the turn: then they are stored together with the reply.
    pub(crate) opens: bool,
    /// Whether the new messages are in the conversation already.
    pub(crate) stored_delta: bool,
    /// Whether what was said is left to the turn, which stores it together with its own note of it.
    pub(crate) defers: bool,
    pub(crate) unstored: Mutex<Option<Unstored>>,
    /// How many replies were stored for this call: an outer filter may run the inside again.
    pub(crate) stored: AtomicU32,
    /// Set while a write is under way: the call must not be dropped then.
    pub(crate) storing: Arc<AtomicBool>,
}

impl TurnCall {
    /// What was left to the turn.
    pub(crate) fn take_unstored(&self) -> Option<Unstored> {
        self.unstored.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Holds the mark of a write under way.
struct Storing<'a>(Option<&'a AtomicBool>);

impl<'a> Storing<'a> {
    fn begin(call: Option<&'a TurnCall>) -> Self {
        let mark = call.map(|call| &*call.storing);
        if let Some(mark) = mark {
            mark.store(true, Ordering::Release);
        }
        Self(mark)
    }
}

impl Drop for Storing<'_> {
    fn drop(&mut self) {
        if let Some(mark) = self.0 {
            mark.store(false, Ordering::Release);
        }
    }
}

/// Keeps conversations by the id in the request's context; without one, requests pass through.
///
/// An agent mounts it by itself; a caller with a loop of his own mounts it on his kernel.
pub struct MemoryFilter<M: ?Sized> {
    memory: Arc<M>,
    /// The same store where it knows turns: appends of a turn go through its token.
    turns: Option<Arc<dyn TurnStore>>,
    clock: Clock,
}

impl MemoryFilter<dyn TurnStore> {
    pub(crate) fn of_turns(store: Arc<dyn TurnStore>, clock: Clock) -> Self {
        Self { memory: store.clone(), turns: Some(store), clock }
    }
}

impl<M: ChatMemory + ?Sized> MemoryFilter<M> {
    /// A filter over this memory.
    pub fn new(memory: Arc<M>) -> Self {
        Self { memory, turns: None, clock: Clock::system() }
    }

    async fn append(
        &self,
        call: Option<&TurnCall>,
        id: &str,
        expected: Version,
        entries: Vec<Arc<Entry>>,
    ) -> Result<(), Error> {
        match (call.and_then(|call| call.fence.as_ref()), &self.turns) {
            (Some((turn, token)), Some(store)) => {
                let messages = entries.into_iter().map(SharedEntry).collect();
                let commit =
                    Commit { messages, expected: Some(expected), at: self.clock.now_ms(), ..Commit::default() };
                store.commit(turn, *token, commit).await
            }
            _ => self.memory.append(id, expected, entries).await.map(drop),
        }
    }

    /// Appends facts that must not wait for a reply. Somebody else's append in between is no conflict for them.
    async fn append_facts(
        &self,
        call: Option<&TurnCall>,
        id: &str,
        mut version: Version,
        facts: &[Arc<Entry>],
    ) -> Result<(), Error> {
        const ATTEMPTS: u8 = 4;
        for attempt in 1.. {
            match self.append(call, id, version, facts.to_vec()).await {
                Err(error) if error.kind() == ErrorKind::Conflict && attempt < ATTEMPTS => {
                    version = load_whole(&*self.memory, id).await?.0;
                }
                done => return done,
            }
        }
        Ok(())
    }

    async fn handle(&self, mut request: ChatRequest, next: Next<Chat>) -> Result<ChatResponse, Error> {
        let Some(id) = request.context.conversation_id().map(str::to_owned) else {
            return next.run(request).await;
        };
        let call = request.context.extension::<TurnCall>();
        let delta: Vec<Arc<Entry>> = request.messages.iter().cloned().collect();
        let stored_delta = call.as_ref().is_some_and(|call| call.stored_delta);
        let opens = call
            .as_ref()
            .map_or_else(|| delta.iter().any(|entry| entry.message.role() != Role::Tool), |call| call.opens);
        let (mut version, mut history) = load_whole(&*self.memory, &id).await?;
        let is_there = stored_delta && delta.last().is_some_and(|entry| history.has_lately(entry));
        if !opens && !delta.is_empty() && !is_there {
            let storing = Storing::begin(call.as_deref());
            self.append_facts(call.as_deref(), &id, version, &delta).await?;
            drop(storing);
            (version, history) = load_whole(&*self.memory, &id).await?;
        }
        let mut new = Vec::new();
        if opens {
            // A turn that is driven again after a crash may find its opening stored already.
            new = delta.into_iter().filter(|entry| !history.has_lately(entry)).collect();
            history.extend(new.iter().cloned());
        }
        request.messages = history;
        let response = next.run(request).await?;
        if let Some(call) = call.as_deref().filter(|call| call.defers) {
            new.push(Arc::new(reply_entry(Some(call), &response, self.clock.now_ms())));
            let messages = new.into_iter().map(SharedEntry).collect();
            let unstored = Unstored { expected: version, messages };
            *call.unstored.lock().unwrap_or_else(PoisonError::into_inner) = Some(unstored);
            return Ok(response);
        }
        let _storing = Storing::begin(call.as_deref());
        new.push(Arc::new(reply_entry(call.as_deref(), &response, self.clock.now_ms())));
        self.append(call.as_deref(), &id, version, new).await?;
        Ok(response)
    }
}

fn reply_entry(call: Option<&TurnCall>, response: &ChatResponse, at: i64) -> Entry {
    let mut reply = response.message.clone();
    reply.finish_reason = reply.finish_reason.or(Some(response.finish_reason));
    reply.usage = reply.usage.or(response.usage);
    let message = Message::Assistant(reply);
    let Some(call) = call else { return Entry { created: at, ..Entry::new(message) } };
    let id = match call.stored.fetch_add(1, Ordering::Relaxed) {
        0 => call.reply_id.clone(),
        again => format!("{}.{again}", call.reply_id),
    };
    Entry::with_id(id, at, message)
}

impl<M: ChatMemory + ?Sized> FilterInfo for MemoryFilter<M> {
    fn name(&self) -> &str {
        MEMORY_FILTER
    }
    fn order(&self) -> i32 {
        MEMORY_ORDER
    }
}

impl<M: ChatMemory + ?Sized> Filter<Chat> for MemoryFilter<M> {
    fn around(&self, request: ChatRequest, next: Next<Chat>) -> BoxFuture<'_, Result<ChatResponse, Error>> {
        Box::pin(self.handle(request, next))
    }
}

impl<M: ?Sized> std::fmt::Debug for MemoryFilter<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MemoryFilter")
    }
}
