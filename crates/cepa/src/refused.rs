//! What must not compile, each beside what does. The words of the errors are tested where `#[tool]` is.

/// ```
/// use cepa::prelude::*;
/// /// Waits.
/// #[tool(timeout = "5s")]
/// async fn wait() {}
/// let _ = wait();
/// ```
/// ```compile_fail
/// use cepa::prelude::*;
/// /// Waits.
/// #[tool(timeout = "5")]
/// async fn wait() {}
/// let _ = wait();
/// ```
/// ```compile_fail
/// use cepa::prelude::*;
/// /// Waits.
/// #[tool(sensitve)]
/// async fn wait() {}
/// let _ = wait();
/// ```
/// ```compile_fail
/// use cepa::prelude::*;
/// #[tool]
/// async fn without_description() {}
/// let _ = without_description();
/// ```
struct Flags;

/// ```
/// use cepa::prelude::*;
/// /// Says it.
/// #[tool]
/// async fn say(word: Option<String>, #[param(default = "!")] mark: String) -> String {
///     word.unwrap_or_default() + &mark
/// }
/// let _ = say();
/// ```
/// ```compile_fail
/// use cepa::prelude::*;
/// /// Says it.
/// #[tool]
/// async fn say(word: Option<&str>) -> String {
///     word.unwrap_or_default().to_owned()
/// }
/// let _ = say();
/// ```
/// ```compile_fail
/// use cepa::prelude::*;
/// /// Says it.
/// #[tool]
/// async fn say(#[param(default = 5)] word: String) -> String {
///     word
/// }
/// let _ = say();
/// ```
/// A parameter of a type that cannot be read:
/// ```compile_fail
/// use cepa::prelude::*;
/// struct Opaque;
/// /// Says it.
/// #[tool]
/// async fn say(word: Opaque) -> String {
///     String::new()
/// }
/// let _ = say();
/// ```
struct Parameters;

/// ```
/// use cepa::prelude::*;
/// /// Fails.
/// #[tool]
/// async fn fail() -> Result<u8, std::fmt::Error> {
///     Err(std::fmt::Error)
/// }
/// let _ = fail();
/// ```
/// A result that cannot be written, a failure without words, a body that cannot move to another thread:
/// ```compile_fail
/// use cepa::prelude::*;
/// struct Opaque;
/// /// Fails.
/// #[tool]
/// async fn fail() -> Opaque {
///     Opaque
/// }
/// let _ = fail();
/// ```
/// ```compile_fail
/// use cepa::prelude::*;
/// struct Opaque;
/// /// Fails.
/// #[tool]
/// async fn fail() -> Result<u8, Opaque> {
///     Err(Opaque)
/// }
/// let _ = fail();
/// ```
/// ```compile_fail
/// use cepa::prelude::*;
/// /// Fails.
/// #[tool]
/// async fn fail() -> String {
///     let word = std::rc::Rc::new(String::new());
///     tokio::task::yield_now().await;
///     word.to_string()
/// }
/// let _ = fail();
/// ```
struct Results;

/// Registered is the tool, not the function that makes it; and the body is not callable.
/// ```compile_fail
/// use cepa::prelude::*;
/// /// Adds.
/// #[tool]
/// async fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
/// let _ = add(1, 2);
/// ```
struct Calls;
