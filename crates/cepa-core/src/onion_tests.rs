//! The onion: order, short-circuits, repetition, errors; the same for every stage.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use proptest::prelude::*;

use crate::{
    BoxFuture, Chain, Chat, ChatRequest, ChatResponse, Error, ErrorKind, Filter, FilterInfo, Message, Next, Stage,
    StageResult, Tool, ToolOutput, ToolRequest, ToolResponse,
    toys::{self, Log},
};

/// A stage of our own: text in, text out.
enum Text {}

impl Stage for Text {
    type Request = String;
    type Response = String;
    type Error = Error;
}

/// What the tests need to know of a stage.
trait Probe: Stage<Error = Error> {
    fn request() -> Self::Request;
    fn response() -> Self::Response;
}

impl Probe for Text {
    fn request() -> String {
        "in".to_owned()
    }
    fn response() -> String {
        "out".to_owned()
    }
}

impl Probe for Chat {
    fn request() -> ChatRequest {
        ChatRequest::new(vec![Message::user("in")])
    }
    fn response() -> ChatResponse {
        toys::says("out").unwrap()
    }
}

impl Probe for Tool {
    fn request() -> ToolRequest {
        toys::request(&toys::echo("t"), "{}")
    }
    fn response() -> ToolResponse {
        ToolResponse { output: ToolOutput::new("out"), writes: crate::Writes::new() }
    }
}

fn shared<S: Stage>(filters: Vec<impl Filter<S>>) -> Vec<Arc<dyn Filter<S>>> {
    filters.into_iter().map(|filter| Arc::new(filter) as Arc<dyn Filter<S>>).collect()
}

/// A chain whose filters write down when they are entered and left.
fn traced<S: Probe>(orders: &[i32], log: &Log) -> Chain<S> {
    let filters = orders.iter().enumerate().map(|(index, order)| {
        let log = log.clone();
        let name = format!("{index}");
        let body = move |request, next: Next<S>| {
            let log = log.clone();
            async move {
                log.add(format!("+{index}"));
                let done = next.run(request).await;
                log.add(format!("-{index}"));
                done
            }
        };
        S::around(name, body).order(*order)
    });
    let end = log.clone();
    let terminal = move |_request| {
        end.add("end");
        async { Ok(S::response()) }
    };
    Chain::new(shared(filters.collect()), terminal).unwrap()
}

/// What a chain of these orders must write down: by order, ties by registration.
fn expected(orders: &[i32]) -> Vec<String> {
    let mut sorted: Vec<usize> = (0..orders.len()).collect();
    sorted.sort_by_key(|index| (orders[*index], *index));
    let entered = sorted.iter().map(|index| format!("+{index}"));
    let left = sorted.iter().rev().map(|index| format!("-{index}"));
    entered.chain(["end".to_owned()]).chain(left).collect()
}

async fn check_order<S: Probe>(orders: &[i32]) {
    let log = Log::default();
    let chain = traced::<S>(orders, &log);
    for _ in 0..2 {
        assert!(chain.run(S::request()).await.is_ok());
        assert_eq!(log.take(), expected(orders));
    }
}

#[tokio::test]
async fn filters_run_in_their_order_around_every_stage() {
    // F1, F2: the same executor, whatever the stage.
    let twenty: Vec<i32> = (0..20).map(|index| (index * 7) % 5 - 2).collect();
    for orders in [&[][..], &[0], &[0, 0, 0, 0, 0], &[5, -1, 0, 5, 100], &twenty] {
        check_order::<Text>(orders).await;
        check_order::<Chat>(orders).await;
        check_order::<Tool>(orders).await;
    }
}

proptest! {
    // F1: any orders; ties keep the order of registration.
    #[test]
    fn any_orders(orders in prop::collection::vec(prop_oneof![-2..3, any::<i32>()], 0..20)) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(check_order::<Text>(&orders));
    }
}

#[test]
fn a_filter_that_names_no_order_has_zero() {
    // F1
    assert_eq!(FilterInfo::order(&Text::before("a", Ok)), 0);
    assert_eq!(FilterInfo::order(&Counted::default()), 0);
    assert_eq!(FilterInfo::order(&Text::before("a", Ok).order(-7)), -7);
}

/// A filter of a type of its own, which counts how often it is asked for its name.
#[derive(Default)]
struct Counted {
    suffix: String,
    asked: Arc<AtomicUsize>,
}

impl FilterInfo for Counted {
    fn name(&self) -> &str {
        self.asked.fetch_add(1, Relaxed);
        "counted"
    }
}

impl Filter<Text> for Counted {
    fn around(&self, request: String, next: Next<Text>) -> BoxFuture<'_, StageResult<Text>> {
        Box::pin(async move { next.run(request).await.map(|text| text + &self.suffix) })
    }
}

fn echo_chain<S: Stage<Request = String, Response = String, Error = Error>>(
    filters: Vec<Arc<dyn Filter<S>>>,
) -> Chain<S> {
    Chain::new(filters, |request: String| async move { Ok(format!("[{request}]")) }).unwrap()
}

#[tokio::test]
async fn sorting_happens_when_the_chain_is_built() {
    // F5: nothing is asked of a filter per call but to do its work.
    let asked = Arc::new(AtomicUsize::new(0));
    let chain = echo_chain(vec![Arc::new(Counted { suffix: "!".to_owned(), asked: asked.clone() })]);
    let at_build = asked.load(Relaxed);
    for _ in 0..10 {
        assert_eq!(chain.run("x".to_owned()).await.unwrap(), "[x]!");
    }
    assert_eq!(asked.load(Relaxed), at_build);
}

#[test]
fn two_filters_of_one_name_are_refused() {
    // F5
    let filters = shared(vec![Text::before("a", Ok), Text::before("b", Ok).order(9), Text::before("a", Ok).order(5)]);
    let error = Chain::new(filters, |request| async { Ok(request) }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidConfig);
    assert_eq!(error.message(), "two filters are named `a`: give each filter of a chain its own name");
}

fn rewrite() -> impl Filter<Text> {
    Text::before("rewrite", |request| Ok(request.to_uppercase()))
}

fn retry(times: usize) -> impl Filter<Text> {
    Text::around("retry", move |request: String, next| async move {
        let mut done = next.clone().run(request.clone()).await;
        for _ in 1..times {
            match done {
                Err(error) if error.is_retryable() => done = next.clone().run(request.clone()).await,
                _ => break,
            }
        }
        done
    })
}

fn cache(answer: &'static str) -> impl Filter<Text> {
    Text::around("cache", move |_request, _next| async move { Ok(answer.to_owned()) })
}

/// A chain whose inside fails so many times before it answers; and how often it ran.
fn failing(times: usize, filters: Vec<Arc<dyn Filter<Text>>>) -> (Chain<Text>, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = runs.clone();
    let terminal = move |request: String| {
        let run = counter.fetch_add(1, Relaxed);
        async move { if run < times { Err(Error::new(ErrorKind::Overloaded, "busy")) } else { Ok(format!("[{request}]")) } }
    };
    (Chain::new(filters, terminal).unwrap(), runs)
}

#[tokio::test]
async fn next_is_called_never_once_or_twice() {
    // F3: all three are legal.
    let (chain, runs) = failing(0, vec![Arc::new(cache("cached"))]);
    assert_eq!((chain.run("x".to_owned()).await.unwrap().as_str(), runs.load(Relaxed)), ("cached", 0));

    let (chain, runs) = failing(0, vec![Arc::new(rewrite())]);
    assert_eq!((chain.run("x".to_owned()).await.unwrap().as_str(), runs.load(Relaxed)), ("[X]", 1));

    let twice = Text::around("twice", |request: String, next| async move {
        let first = next.clone().run(request.clone()).await?;
        Ok(first + &next.run(request + "'").await?)
    });
    let (chain, runs) = failing(0, vec![Arc::new(twice), Arc::new(rewrite())]);
    assert_eq!((chain.run("x".to_owned()).await.unwrap().as_str(), runs.load(Relaxed)), ("[X][X']", 2));
}

#[tokio::test]
async fn running_the_inside_again_runs_all_of_it() {
    // F3: what is further inside runs each time, what is outside does not.
    let log = Log::default();
    let note = |name: &'static str, log: &Log| {
        let log = log.clone();
        Text::before(name, move |request| {
            log.add(name);
            Ok(request)
        })
    };
    let filters: Vec<Arc<dyn Filter<Text>>> =
        vec![Arc::new(note("outside", &log)), Arc::new(retry(3)), Arc::new(note("inside", &log))];
    let (chain, runs) = failing(2, filters);
    assert_eq!(chain.run("x".to_owned()).await.unwrap(), "[x]");
    assert_eq!(
        (runs.load(Relaxed), log.take()),
        (3, ["outside", "inside", "inside", "inside"].map(String::from).into())
    );
}

#[tokio::test]
async fn an_error_travels_outward_and_can_be_caught() {
    // F3
    let (chain, runs) = failing(9, vec![Arc::new(retry(3)), Arc::new(rewrite())]);
    let error = chain.run("x".to_owned()).await.unwrap_err();
    assert_eq!((error.kind(), error.message(), runs.load(Relaxed)), (ErrorKind::Overloaded, "busy", 3));

    let catch = Text::around("catch", |request, next| async move {
        next.run(request).await.or_else(|error| Ok(format!("sorry: {}", error.message())))
    });
    let (chain, _) = failing(9, vec![Arc::new(catch), Arc::new(rewrite())]);
    assert_eq!(chain.run("x".to_owned()).await.unwrap(), "sorry: busy");
}

#[tokio::test]
async fn before_and_after() {
    // F4: a refusal of `before` keeps the inside from running.
    let refuse = Text::before("refuse", |_| Err(Error::new(ErrorKind::InvalidInput, "no")));
    let (chain, runs) = failing(0, vec![Arc::new(refuse)]);
    assert_eq!((chain.run("x".to_owned()).await.unwrap_err().message(), runs.load(Relaxed)), ("no", 0));

    // F4: `after` sees no error, and can make one of a success.
    let seen = Log::default();
    let log = seen.clone();
    let after = move |name: &'static str| {
        let log = log.clone();
        Text::after(name, move |response| {
            log.add(name);
            Ok(response + "!")
        })
    };
    let (chain, _) = failing(1, vec![Arc::new(after("a"))]);
    assert!(chain.run("x".to_owned()).await.is_err());
    assert_eq!(seen.take(), Vec::<String>::new());
    assert_eq!(chain.run("x".to_owned()).await.unwrap(), "[x]!");
    assert_eq!(seen.take(), ["a"]);
    let strict = Text::after("strict", |_| Err(Error::new(ErrorKind::Decode, "not this")));
    let (chain, _) = failing(0, vec![Arc::new(strict)]);
    assert_eq!(chain.run("x".to_owned()).await.unwrap_err().message(), "not this");

    // F4: an outer `after` runs on what an inner filter answered instead; an inner one does not.
    let (chain, runs) = failing(0, vec![Arc::new(after("outer")), Arc::new(cache("cached")), Arc::new(after("inner"))]);
    assert_eq!((chain.run("x".to_owned()).await.unwrap().as_str(), runs.load(Relaxed)), ("cached!", 0));
    assert_eq!(seen.take(), ["outer"]);
}

#[tokio::test]
async fn one_chain_serves_many_requests_at_once() {
    let (chain, runs) = failing(0, vec![Arc::new(rewrite()), Arc::new(retry(2))]);
    let tasks: Vec<_> = (0..50).map(|index| tokio::spawn(chain.run(format!("x{index}")))).collect();
    for (index, task) in tasks.into_iter().enumerate() {
        assert_eq!(task.await.unwrap().unwrap(), format!("[X{index}]"));
    }
    assert_eq!(runs.load(Relaxed), 50);
}

#[test]
fn a_chain_shows_its_filters_outermost_first() {
    let filters = shared(vec![Text::before("b", Ok).order(1), Text::before("a", Ok)]);
    let chain = Chain::new(filters, |request| async { Ok(request) }).unwrap();
    assert_eq!(format!("{chain:?}"), r#"["a", "b"]"#);
    assert_eq!(chain.filters().iter().map(|filter| filter.name()).collect::<Vec<_>>(), ["a", "b"]);
}
