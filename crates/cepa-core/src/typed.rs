//! Typed tools: arguments and their schema from one Rust type, results from any value.

use std::{any::Any, fmt, future::Future, marker::PhantomData};

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    Args, BoxFuture, Content, Error, Part, RawJson, Tool, ToolBody, ToolContext, ToolError, ToolFlags, ToolOutput,
    ToolSpec,
    schema::check,
    typed_schema::{schema_as_derived, schema_of},
};

impl ToolSpec {
    /// What the model is told of a tool whose arguments are a type.
    ///
    /// # Errors
    /// `invalid_tool` if the name is blank or the type is not read from a JSON object.
    pub fn typed<A: JsonSchema>(name: &str, description: &str) -> Result<Self, Error> {
        let spec = Self::unchecked::<A>(name, description);
        spec.check()?;
        Ok(spec)
    }

    fn unchecked<A: JsonSchema>(name: &str, description: &str) -> Self {
        let (name, description) = (name.to_owned(), description.to_owned());
        Self { name, description, schema: Some(schema_of::<A>()), flags: ToolFlags::default() }
    }
}

impl Tool {
    /// A tool whose arguments are a type and whose body is an async closure: for bodies that hold something, where
    /// `#[tool]` takes a function. Arguments are checked by reading them into the type; defaults that the schema
    /// shows are filled in before anybody decides on a call.
    ///
    /// ```
    /// use cepa_core::{Tool, ToolError};
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Search {
    ///     /// Words to look for.
    ///     query: String,
    ///     limit: Option<u8>,
    /// }
    /// let prefix = "found: ".to_owned();
    /// let search = Tool::typed("search", "Searches the notes.", move |args: Search, _context| {
    ///     let answer = format!("{prefix}{} {}", args.query, args.limit.unwrap_or(5));
    ///     async move { Ok::<_, ToolError>(answer) }
    /// })?;
    /// assert_eq!(search.prepare(&cepa_core::Args::decode("{}")), Err("`query` is required".to_owned()));
    /// # Ok::<(), cepa_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `invalid_tool` if the name is blank or the type is not read from a JSON object.
    pub fn typed<A, F, Fut, T, E>(name: &str, description: &str, body: F) -> Result<Self, Error>
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: IntoToolOutput + 'static,
        E: IntoToolError + 'static,
    {
        let spec = ToolSpec::typed::<A>(name, description)?;
        Ok(Self::with_typed_body(spec, move |args, context| {
            let running = body(args, context);
            async move { Returned(running.await).output() }
        }))
    }

    fn with_typed_body<A, F, Fut>(spec: ToolSpec, body: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        let defaults = spec.schema.as_ref().map(defaults_of).unwrap_or_default();
        Self::with_body(spec, TypedBody { defaults, body, args: PhantomData::<fn() -> A> })
    }
}

/// What `#[tool]` expands to; a type that is not read from an object is refused where the tool is registered.
pub fn tool<A, F, Fut>(name: &str, description: &str, flags: ToolFlags, body: F) -> Tool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    Tool::with_typed_body(ToolSpec::unchecked::<A>(name, description).with_flags(flags), body)
}

struct TypedBody<A, F> {
    /// Members that are filled in where they are missing, as JSON.
    defaults: Vec<(String, RawJson)>,
    body: F,
    args: PhantomData<fn() -> A>,
}

impl<A, F, Fut> ToolBody for TypedBody<A, F>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    fn run(&self, args: Args, context: ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        match read::<A>(&args) {
            Ok(args) => Box::pin((self.body)(args, context)),
            Err(text) => Box::pin(std::future::ready(Err(ToolError::semantic(text)))),
        }
    }

    fn check(&self, args: &Args) -> Option<Result<(), String>> {
        Some(read::<A>(args).map(drop))
    }

    fn normalise(&self, args: Args) -> Result<Args, String> {
        let filled = with_defaults(&args, &self.defaults);
        // A member that has a second name (`alias`) was not missing after all.
        Ok(filled.filter(|filled| filled.read::<A>().is_ok()).unwrap_or(args))
    }
}

/// Reads arguments into their type. If that fails, the schema finds words that name the place; else serde's words.
fn read<A: DeserializeOwned + JsonSchema>(args: &Args) -> Result<A, String> {
    args.read().map_err(|error: String| match check(&schema_as_derived::<A>().read().unwrap_or_default(), args) {
        Err(place) => place,
        Ok(()) => error.split(" at line ").next().unwrap_or(&error).to_owned(),
    })
}

/// The defaults of the members of an object schema.
fn defaults_of(schema: &RawJson) -> Vec<(String, RawJson)> {
    let schema: Value = schema.read().unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties
        .filter_map(|(name, property)| Some((name.clone(), RawJson::of(property.get("default")?).ok()?)))
        .collect()
}

/// The arguments with the defaults of missing members behind them; `None` if nothing is missing.
fn with_defaults(args: &Args, defaults: &[(String, RawJson)]) -> Option<Args> {
    let Args::Object(raw) = args else { return None };
    let given: crate::Extra = raw.read().ok()?;
    let mut missing = defaults.iter().filter(|(name, _)| !given.contains_key(name)).peekable();
    missing.peek()?;
    // Put into the text: what the model wrote stays as it is, digit by digit.
    let mut text = raw.as_str().trim_end().strip_suffix('}')?.trim_end().to_owned();
    let mut lead = if given.is_empty() { "" } else { ", " };
    for (name, value) in missing {
        text.push_str(&format!("{lead}{}: {value}", Value::from(name.as_str())));
        lead = ", ";
    }
    text.push('}');
    RawJson::parse(&text).ok().map(Args::Object)
}

/// What a tool may return: [`ToolOutput`], [`Content`], [`Part`], a list of parts, or anything that is
/// [`Serialize`] and owns its data (a text as it is, `()` as `done`, all else as JSON).
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    note = "return a `String`, a `ToolOutput`, a `Content`, or any type that is `Serialize` and owns its data"
)]
pub trait IntoToolOutput {
    /// The result for the model.
    ///
    /// # Errors
    /// A [`ToolError`] if the value is not JSON.
    fn into_tool_output(self) -> Result<ToolOutput, ToolError>;
}

impl IntoToolOutput for ToolOutput {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}

// No overlap with the impl above for as long as `ToolOutput` is not `Serialize`.
impl<T: Serialize + 'static> IntoToolOutput for T {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        let mut value = Some(self);
        if let Some(content) = take::<_, Content>(&mut value) {
            return Ok(ToolOutput::new(content));
        }
        if let Some(part) = take::<_, Part>(&mut value) {
            return Ok(ToolOutput::new(vec![part]));
        }
        if let Some(parts) = take::<_, Vec<Part>>(&mut value) {
            return Ok(ToolOutput::new(parts));
        }
        if take::<_, ()>(&mut value).is_some() {
            return Ok(ToolOutput::new("done"));
        }
        ToolOutput::of(&value)
    }
}

/// The value, if it is of this type.
fn take<T: 'static, Wanted: 'static>(value: &mut Option<T>) -> Option<Wanted> {
    (value as &mut dyn Any).downcast_mut::<Option<Wanted>>().and_then(Option::take)
}

/// What a tool may fail with: [`ToolError`], or anything with a text (a semantic failure; a cepa [`Error`] keeps its
/// class).
#[diagnostic::on_unimplemented(
    message = "a tool cannot fail with `{Self}`",
    note = "use `ToolError`, or an error type that is `Display` and owns its data"
)]
pub trait IntoToolError {
    /// The failure for the model.
    fn into_tool_error(self) -> ToolError;
}

impl IntoToolError for ToolError {
    fn into_tool_error(self) -> ToolError {
        self
    }
}

// No overlap with the impl above for as long as `ToolError` is not `Display`.
impl<E: fmt::Display + 'static> IntoToolError for E {
    fn into_tool_error(self) -> ToolError {
        ToolError::of(self)
    }
}

/// What a function under `#[tool]` returned. A `Result` has its own method; everything else has [`Plain`]'s.
#[derive(Debug)]
pub struct Returned<T>(pub T);

impl<T, E> Returned<Result<T, E>> {
    /// The result, or the failure.
    ///
    /// # Errors
    /// The function's own.
    pub fn output(self) -> Result<ToolOutput, ToolError>
    where
        T: IntoToolOutput,
        E: IntoToolError,
    {
        self.0.map_err(E::into_tool_error)?.into_tool_output()
    }
}

/// What a function that cannot fail returned.
// The bound is the method's, so that a type that does not fit is named in our words.
pub trait Plain {
    /// The value itself.
    type Value;

    /// The result.
    ///
    /// # Errors
    /// A [`ToolError`] if the value is not JSON.
    fn output(self) -> Result<ToolOutput, ToolError>
    where
        Self::Value: IntoToolOutput;
}

impl<T> Plain for Returned<T> {
    type Value = T;

    fn output(self) -> Result<ToolOutput, ToolError>
    where
        T: IntoToolOutput,
    {
        self.0.into_tool_output()
    }
}

#[cfg(test)]
#[path = "typed_tests.rs"]
mod tests;
