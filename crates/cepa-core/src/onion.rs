//! The onion: filters around a stage, one machinery for every stage.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use crate::{Error, ErrorKind};

/// A boxed future that can be sent to another thread.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a stage's inside returns.
pub type StageResult<S> = Result<<S as Stage>::Response, <S as Stage>::Error>;

/// What is wrapped: [`Chat`](crate::Chat) (one model call), [`Tool`](crate::Tool) (one tool call) or a whole turn.
///
/// The constructors live here, so that closures need no annotations:
///
/// ```
/// use cepa_core::{Chat, Stage};
/// let twice = Chat::around("retry", |request, next| async move {
///     match next.clone().run(request.clone()).await {
///         Err(error) if error.is_retryable() => next.run(request).await,
///         done => done,
///     }
/// });
/// let polite = Chat::before("polite", |mut request| {
///     request.system_prompt = Some("Be polite.".into());
///     Ok(request)
/// })
/// .order(5);
/// # let _ = (twice, polite);
/// ```
pub trait Stage: Sized + 'static {
    /// What goes in.
    type Request: Send + 'static;
    /// What comes out.
    type Response: Send + 'static;
    /// What goes wrong.
    type Error: From<Error> + Send + 'static;

    /// A filter that decides whether, when and how often the inside runs.
    fn around<F, Fut>(name: impl Into<Arc<str>>, body: F) -> FnFilter<Self>
    where
        F: Fn(Self::Request, Next<Self>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = StageResult<Self>> + Send + 'static,
    {
        FnFilter { name: name.into(), order: 0, body: Arc::new(move |request, next| Box::pin(body(request, next))) }
    }

    /// A filter that rewrites requests on their way in.
    fn before<F>(name: impl Into<Arc<str>>, rewrite: F) -> FnFilter<Self>
    where
        F: Fn(Self::Request) -> Result<Self::Request, Self::Error> + Send + Sync + 'static,
    {
        let body = move |request, next: Next<Self>| match rewrite(request) {
            Ok(request) => next.run(request),
            Err(error) => Box::pin(std::future::ready(Err(error))) as BoxFuture<'static, _>,
        };
        FnFilter { name: name.into(), order: 0, body: Arc::new(body) }
    }

    /// A filter that rewrites successful responses on their way out.
    fn after<F>(name: impl Into<Arc<str>>, rewrite: F) -> FnFilter<Self>
    where
        F: Fn(Self::Response) -> StageResult<Self> + Send + Sync + 'static,
    {
        let rewrite = Arc::new(rewrite);
        Self::around(name, move |request, next| {
            let rewrite = rewrite.clone();
            async move { rewrite(next.run(request).await?) }
        })
    }
}

/// A filter's name and place.
pub trait FilterInfo {
    /// The name, unique in its chain.
    fn name(&self) -> &str;
    /// The place: the smallest is outermost, ties keep the order of registration.
    fn order(&self) -> i32 {
        0
    }
}

/// A piece of the onion around a stage. Not calling `next` short-circuits; calling a clone of it runs the inside again.
pub trait Filter<S: Stage>: FilterInfo + Send + Sync + 'static {
    /// Handles one request.
    fn around(&self, request: S::Request, next: Next<S>) -> BoxFuture<'_, StageResult<S>>;
}

type Body<S> = dyn Fn(<S as Stage>::Request, Next<S>) -> BoxFuture<'static, StageResult<S>> + Send + Sync;
type Terminal<S> = dyn Fn(<S as Stage>::Request) -> BoxFuture<'static, StageResult<S>> + Send + Sync;

/// A filter made of a closure; see [`Stage`].
pub struct FnFilter<S: Stage> {
    name: Arc<str>,
    order: i32,
    body: Arc<Body<S>>,
}

impl<S: Stage> FnFilter<S> {
    /// Sets the place; see [`FilterInfo::order`].
    pub fn order(mut self, order: i32) -> Self {
        self.order = order;
        self
    }
}

impl<S: Stage> FilterInfo for FnFilter<S> {
    fn name(&self) -> &str {
        &self.name
    }
    fn order(&self) -> i32 {
        self.order
    }
}

impl<S: Stage> Filter<S> for FnFilter<S> {
    fn around(&self, request: S::Request, next: Next<S>) -> BoxFuture<'_, StageResult<S>> {
        (self.body)(request, next)
    }
}

impl<S: Stage> fmt::Debug for FnFilter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnFilter").field("name", &self.name).field("order", &self.order).finish_non_exhaustive()
    }
}

/// The filters of a stage in their order, around its terminal: sorted and linked once.
pub struct Chain<S: Stage> {
    filters: Arc<[Arc<dyn Filter<S>>]>,
    terminal: Arc<Terminal<S>>,
}

impl<S: Stage> Clone for Chain<S> {
    fn clone(&self) -> Self {
        Self { filters: self.filters.clone(), terminal: self.terminal.clone() }
    }
}

impl<S: Stage> Chain<S> {
    /// Sorts the filters around the terminal.
    ///
    /// # Errors
    /// `invalid_config` if two filters have one name.
    pub fn new<F, Fut>(mut filters: Vec<Arc<dyn Filter<S>>>, terminal: F) -> Result<Self, Error>
    where
        F: Fn(S::Request) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = StageResult<S>> + Send + 'static,
    {
        filters.sort_by_key(|filter| filter.order());
        let mut names = std::collections::HashSet::new();
        if let Some(twice) = filters.iter().find(|filter| !names.insert(filter.name())) {
            let message = format!("two filters are named `{}`: give each filter of a chain its own name", twice.name());
            return Err(Error::new(ErrorKind::InvalidConfig, message));
        }
        Ok(Self { filters: filters.into(), terminal: Arc::new(move |request| Box::pin(terminal(request))) })
    }

    /// Sends a request through the onion.
    pub fn run(&self, request: S::Request) -> BoxFuture<'static, StageResult<S>> {
        Next { chain: self.clone(), at: 0 }.run(request)
    }

    /// The filters, outermost first.
    pub fn filters(&self) -> &[Arc<dyn Filter<S>>] {
        &self.filters
    }
}

/// The inside, as seen by one filter: owned, so that a closure needs no lifetimes; cloned to run it again.
pub struct Next<S: Stage> {
    chain: Chain<S>,
    at: usize,
}

impl<S: Stage> Clone for Next<S> {
    fn clone(&self) -> Self {
        Self { chain: self.chain.clone(), at: self.at }
    }
}

impl<S: Stage> Next<S> {
    /// Runs everything further inside.
    pub fn run(mut self, request: S::Request) -> BoxFuture<'static, StageResult<S>> {
        let Some(filter) = self.chain.filters.get(self.at).cloned() else {
            return (self.chain.terminal)(request);
        };
        self.at += 1;
        Box::pin(async move { filter.around(request, self).await })
    }
}

impl<S: Stage> fmt::Debug for Chain<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.filters.iter().map(|filter| filter.name())).finish()
    }
}

impl<S: Stage> fmt::Debug for Next<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("chain", &self.chain).field("at", &self.at).finish()
    }
}

#[cfg(test)]
#[path = "onion_tests.rs"]
mod tests;
