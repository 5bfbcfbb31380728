//! Ready filters: mount them on a kernel or an agent like any other.
//!
//! ```
//! use std::time::Duration;
//! use cepa_agent::filters::{Approval, Errors, Logging, Timeout};
//! # async fn assemble(model: impl cepa_core::ChatModel) -> Result<(), cepa_core::Error> {
//! let kernel = cepa_core::Kernel::builder(model)
//!     .chat_filter(Logging::new())
//!     .chat_filter(Timeout::after(Duration::from_secs(120)).order(10))
//!     .tool_filter(Logging::new())
//!     .tool_filter(Errors::new().order(10))
//!     .tool_filter(Approval::terminal().only(|tool| tool.flags().sensitive).order(20))
//!     .build()?;
//! # Ok(()) }
//! ```

mod approval;
mod errors;
mod fallback;
mod logging;
mod timeout;

pub use approval::{Answer, Approval};
pub use errors::Errors;
pub use fallback::{FALLBACK_ORDER, Fallback};
pub use logging::Logging;
pub use timeout::Timeout;

/// The name and place of a ready filter, which its user can change.
#[derive(Clone, Debug)]
struct Place {
    name: std::sync::Arc<str>,
    order: i32,
}

impl Place {
    fn named(name: &str) -> Self {
        Self { name: name.into(), order: 0 }
    }
}

/// `named`, `order` and [`cepa_core::FilterInfo`] for a filter with a field `place`.
macro_rules! has_place {
    ($filter:ty) => {
        impl $filter {
            /// Gives it another name: two of one kind in one chain need two.
            pub fn named(mut self, name: &str) -> Self {
                self.place.name = name.into();
                self
            }

            /// Sets its place: the smallest is outermost.
            pub fn order(mut self, order: i32) -> Self {
                self.place.order = order;
                self
            }
        }

        impl cepa_core::FilterInfo for $filter {
            fn name(&self) -> &str {
                &self.place.name
            }
            fn order(&self) -> i32 {
                self.place.order
            }
        }
    };
}
use has_place;
