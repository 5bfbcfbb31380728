//! cepa is an agent framework: a small kernel with two primitives (call a model, run a tool) in onion filters, a tool
//! loop that can wait for a person, and conversations that are kept by id and stay valid for every provider.
//!
//! This crate is what you add to your `Cargo.toml`. Everything of `cepa-core` and `cepa-agent` is here by name; model
//! clients are in [`providers`], the SQLite store is [`Sqlite`]; [`prelude`] has what most programs begin with.
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
//! A tool that is `sensitive` waits until somebody decides. The turn ends as paused, and goes on whenever the decision is
//! made: with a durable store also in another process, days later.
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
