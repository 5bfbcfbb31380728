//! cepa is an agent framework: a small kernel with two primitives (call a model, run a tool) in onion filters, a tool
//! loop that can wait for a person, and conversations that are kept by id and stay valid for every provider.
//!
//! This crate is what you add to your `Cargo.toml`. Everything of `cepa-core` and `cepa-agent` is here by name; model
//! clients are in [`providers`], the SQLite store is [`Sqlite`]; [`prelude`] has what most programs begin with. In examples of
//! the inner crates, `cepa_core::`, `cepa_agent::` and `cepa_store::` stand for what is `cepa::` here (only `cepa_store::Options`
//! has another name, [`SqliteOptions`]), and `cepa_providers::` for `cepa::providers::`. `cargo doc -p cepa --open` shows all of
//! it as pages.
//!
//! # An agent
//!
//! A function becomes a tool by [`#[tool]`](macro@tool); an [`Agent`] is a model with tools and memory; a [`Conversation`] is
//! where you talk to it.
//!
//! ```no_run
//! use cepa::prelude::*;
//!
//! /// Tells the weather of a city.
//! #[tool(read_only)]
//! async fn get_weather(
//!     /// The city's name, in any language.
//!     city: String,
//! ) -> Result<String, ToolError> {
//!     Ok(format!("{city}: 22°C"))
//! }
//!
//! # #[cfg(feature = "http")]
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let model = OpenAi::builder("gpt-5.4-mini").build()?; // the key is in OPENAI_API_KEY
//!     let agent = Agent::builder(model).tool(get_weather()).memory(InMemory::new()).build()?;
//!     let result = agent.conversation("anna").chat("What is the weather in Oslo?").await?;
//!     println!("{}", result.text);
//!     Ok(())
//! }
//! # #[cfg(not(feature = "http"))]
//! # fn main() {}
//! ```
//!
//! # A decision by a person
//!
//! With pausing on, a tool that is `sensitive` waits until somebody decides. The turn ends as paused, and goes on whenever the
//! decision is made: with a durable store also in another process, days later. Pausing is turned on by
//! [`pausing(true)`](AgentBuilder::pausing), by a [gate](AgentBuilder::gate) that may pause, or by
//! [`on_pause`](AgentBuilder::on_pause); without one of them the tool **runs unasked** (an agent that has no gate at all
//! logs a warning when it is built).
//!
//! ```
//! use cepa::prelude::*;
//! # use cepa_testkit::scripted::{Reply, ScriptedModel};
//!
//! /// Deletes a file for ever.
//! #[tool(sensitive)]
//! async fn delete_file(path: String) -> Result<String, std::io::Error> {
//!     Ok(format!("deleted {path}"))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let delete = Reply::empty().call("c1", "delete_file", r#"{"path":"a.txt"}"#);
//! # let model = ScriptedModel::new([delete, Reply::text("It is gone.")]);
//! let agent = Agent::builder(model).tool(delete_file()).memory(InMemory::new()).pausing(true).build()?;
//! let conversation = agent.conversation("anna");
//!
//! let result = conversation.chat("delete a.txt").await?;
//! assert_eq!(result.status, TurnStatus::Paused);
//! println!("may I run {} with {}?", result.pending[0].tool, result.pending[0].args.as_str());
//!
//! let result = conversation.resume(Decisions::approved()).await?;
//! assert_eq!(result.text, "It is gone.");
//! # Ok(()) }
//! ```
//!
//! # Turns that people decide on
//!
//! | what | how |
//! |---|---|
//! | who was shown what, what was decided, what then ran | `agent.store().audit(…)`: [`TurnStore::audit`]; it keeps the arguments, and stays when the conversation is cleared |
//! | a decision only counts for so long | [`AgentBuilder::pauses_expire_after`] |
//! | what a new message does to calls that wait | [`AgentBuilder::while_paused`] |
//! | a tool has changed since the call was shown: refused, unless | [`TurnOptions::accept_changed_tools`] |
//! | the sweep: turns that a crash left, pauses that expired, decisions that nobody went on with | [`Agent::recover`], again and again in a server |
//! | another clock, for tests | [`AgentBuilder::clock`] with [`Clock::of`] |
//!
//! # Limits
//!
//! | what | how |
//! |---|---|
//! | how long a turn may be driven | [`AgentBuilder::turn_deadline`], [`TurnOptions::deadline`]; [`TurnResult::cancelled`] says [`CancelReason::Deadline`](turn::CancelReason::Deadline) |
//! | how many batches of calls it may make | [`AgentBuilder::max_batches`] |
//! | what of a long conversation the model is shown | [`Windowed`] around the store, with a [`Window`] of messages or tokens (`examples/window.rs`) |
//! | how long one model call may take | [`HttpSettings::total_timeout`](providers::http::HttpSettings::total_timeout) and its neighbours, by `.http(…)` of the model (`examples/patience.rs`) |
//! | how large and how deep a reply may be | [`Caps`](providers::wire::caps::Caps), of which `json_depth` is one, by `.caps(…)` |
//! | what all models of one key may ask | [`Limiter`](providers::limit::Limiter), by `.limiter(…)` |
//! | who answers when a model cannot | [`filters::Fallback`] |
//!
//! # Models
//!
//! | model | key | speaks |
//! |---|---|---|
//! | [`OpenAi::builder`](providers::openai::OpenAi::builder) | `OPENAI_API_KEY` | chat completions, also of the servers in [`providers::catalog`] |
//! | [`OpenAiResponses::builder`](providers::responses::OpenAiResponses::builder) | `OPENAI_API_KEY` | OpenAI's Responses |
//! | [`Anthropic::builder`](providers::anthropic::Anthropic::builder) | `ANTHROPIC_API_KEY` | Anthropic's Messages |
//! | [`Gemini::builder`](providers::gemini::Gemini::builder) | `GEMINI_API_KEY`, else `GOOGLE_API_KEY` | Gemini's `generateContent` |
//!
//! # A test without a key
//!
//! The package `cepa-testkit` beside this one, as a dependency for tests, has a model that says what you write down, and
//! remembers what it was asked; and faults, judges of request bodies, and suites for stores.
//!
//! ```
//! use cepa::prelude::*;
//! use cepa_testkit::scripted::{Reply, ScriptedModel};
//!
//! # /// Tells the weather of a city.
//! # #[tool(read_only)]
//! # fn get_weather(city: String) -> String { format!("{city}: 22°C") }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let call = Reply::empty().call("c1", "get_weather", r#"{"city": "Oslo"}"#);
//! let model = ScriptedModel::new([call, Reply::text("It is warm.")]);
//! let agent = Agent::builder(model.clone()).tool(get_weather()).build()?;
//!
//! let result = agent.chat("What is the weather in Oslo?").await?;
//! assert_eq!(result.text, "It is warm.");
//! assert_eq!(result.records[0].result, "Oslo: 22°C");
//! assert_eq!(model.requests().len(), 2);
//! # Ok(()) }
//! ```
//!
//! # A filter
//!
//! A filter is a piece of the onion around a stage: [`Chat`] (one model call), [`Tool`] (one tool call) or [`Turn`] (from a
//! message to its answer). It may rewrite what goes in and what comes out, answer in place of the inside, or run it again.
//!
//! ```
//! use cepa::prelude::*;
//!
//! let brief = Chat::before("brief", |mut request| {
//!     request.system_prompt = Some("Answer in one sentence.".into());
//!     Ok(request)
//! });
//! let once_more = Chat::around("once more", |request: ChatRequest, next| async move {
//!     match next.clone().run(request.clone()).await {
//!         Err(error) if error.is_retryable() => {
//!             request.events.emit(ChatEvent::Reset);
//!             next.run(request).await
//!         }
//!         done => done,
//!     }
//! });
//! let audit = Tool::before("audit", |request| {
//!     println!("{} {}", request.call.name, request.call.args.as_str());
//!     Ok(request)
//! });
//! # let _ = (brief, once_more, audit);
//! ```
//!
//! # Features
//!
//! | feature | what it brings | default |
//! |---|---|---|
//! | `http` | [`providers`]: clients of models that speak OpenAI's protocols, Anthropic's or Gemini's | yes |
//! | `sqlite` | [`Sqlite`]: conversations, turns and pauses that survive a restart | yes |
//! | `macros` | [`#[tool]`](macro@tool), [`Tool::typed`], [`schema_of`] | yes |

pub mod prelude;
#[cfg(doctest)]
mod refused;
/// The programs of the README compile.
#[cfg(all(doctest, feature = "http", feature = "sqlite", feature = "macros"))]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

#[doc(inline)]
pub use cepa_agent::*;
#[doc(inline)]
pub use cepa_core::*;
/// Turns a function into a tool.
///
/// ```
/// use cepa::prelude::*;
///
/// /// Books a table.
/// #[tool(sensitive, idempotent, timeout = "10s", tags = ["restaurant"])]
/// async fn book_table(
///     /// The restaurant's name.
///     restaurant: &str,
///     #[param(description = "How many people come.", default = 2)] people: u8,
///     /// The names that are written on the table.
///     names: Option<Vec<String>>,
///     context: &ToolContext,
/// ) -> Result<String, ToolError> {
///     if people > 20 {
///         return Err(ToolError::semantic("at most 20 people can come"));
///     }
///     context.set("last_restaurant", restaurant)?;
///     let names = names.unwrap_or_default().join(", ");
///     Ok(format!("A table for {people} at {restaurant} is booked. {names}"))
/// }
///
/// let tool = book_table();
/// assert_eq!((tool.name(), tool.flags().sensitive), ("book_table", true));
/// assert_eq!(
///     tool.prepare(&Args::decode(r#"{"restaurant":"Noma"}"#)).unwrap().as_str(),
///     r#"{"restaurant":"Noma", "people": 2}"#,
/// );
/// ```
///
/// All arguments as one struct:
///
/// ```
/// use cepa::{prelude::*, schemars};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Search {
///     /// Words that must appear.
///     query: String,
///     #[serde(default)]
///     newest_first: bool,
/// }
///
/// /// Searches the notes.
/// #[tool(read_only)]
/// fn search(#[args] search: Search) -> Vec<String> {
///     vec![format!("{} {}", search.query, search.newest_first)]
/// }
/// # let _ = search();
/// ```
#[cfg(feature = "macros")]
pub use cepa_macros::tool;
#[cfg(feature = "http")]
#[doc(no_inline)]
pub use cepa_providers as providers;
#[cfg(feature = "sqlite")]
pub use cepa_store::{Options as SqliteOptions, Sqlite, Synchronous};
