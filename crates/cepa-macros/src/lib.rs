//! `#[tool]`: a function becomes a tool that a model may call.

mod docs;
mod expand;
mod flags;
mod parameter;
mod settings;

use proc_macro::TokenStream;

/// Turns a function into a tool. `async fn add(…)` becomes `fn add() -> Tool`: register it with `.tool(add())`.
///
/// ```
/// use cepa_macros::tool;
/// /// Adds two numbers.
/// #[tool(crate = cepa_core, read_only)]
/// async fn add(a: i64, #[param(description = "the second one", default = 1)] b: i64) -> i64 {
///     a + b
/// }
/// let tool: cepa_core::Tool = add();
/// assert_eq!((tool.name(), tool.flags().read_only), ("add", true));
/// ```
///
/// # What the model is told
/// The function's name, its doc comment, and a JSON Schema made of the parameters: every type that is
/// `Deserialize + JsonSchema`, and references to them (`&str`, `&[Point]`). `Option<T>` may be left out. A parameter's doc
/// comment describes it; `#[param(…)]` takes
///
/// | setting | meaning |
/// |---|---|
/// | `description = "…"` | instead of the doc comment |
/// | `default = expression` | the value if the model leaves it out; shown in the schema |
/// | `name = "…"` | the name for the model |
///
/// `#[args] options: Options` takes all arguments as one struct of yours instead (`Deserialize + JsonSchema`; its
/// own serde and schemars attributes hold). A parameter of type `ToolContext` or `&ToolContext` gets the call's context and
/// is not told to the model.
///
/// # Flags
/// | flag | meaning |
/// |---|---|
/// | `sensitive` | a person must decide before it runs, where pausing is on (below) |
/// | `read_only` | it changes nothing |
/// | `concurrent` | it may run beside others |
/// | `idempotent` | running it twice with one idempotency key is running it once |
/// | `return_direct` | its result is the answer |
/// | `timeout = "5s"` | how long the body may take: `ms`, `s`, `m` or `h` |
/// | `tags = ["a", "b"]` | words by which tools are selected |
/// | `name = "…"` | instead of the function's name |
/// | `description = "…"` | instead of the doc comment |
/// | `crate = path` | where cepa is, if not at `::cepa` |
///
/// `sensitive` alone asks nobody: pausing is turned on at the agent, by `.pausing(true)`, by a gate that may pause, or by
/// `on_pause`. Without one of them the tool runs unasked (an agent that has no gate at all logs a warning when it is built).
///
/// # What it returns
/// A text (told to the model as it is), a `ToolOutput`, a `Content`, any `Serialize` type (as JSON), nothing (`done`), or a
/// `Result` of one of them. Any error with a text is told to the model; `ToolError` says whose fault it is. A panic is an
/// error like any other.
///
/// Arguments are checked before anybody decides on a call. A parameter that is missing, of a wrong type, or that the
/// tool does not have is an error that names it, and the body does not run.
///
/// The original function is no longer callable: keep what you want to call elsewhere in a function of its own. A plain
/// `fn` works too; it holds up its thread while it runs.
#[proc_macro_attribute]
pub fn tool(flags: TokenStream, function: TokenStream) -> TokenStream {
    expand::tool(flags.into(), function.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
