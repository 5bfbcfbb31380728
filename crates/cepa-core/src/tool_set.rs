//! A set of tools: shared, in order, names unique.

use std::{collections::HashMap, fmt, sync::Arc};

use crate::{EncodedSlot, Error, ErrorKind, Tool};

/// Tools in the order of registration. Cloning is O(1); a wire encodes the specs once per set.
#[derive(Clone, Default)]
pub struct ToolSet(Arc<Inside>);

#[derive(Default)]
struct Inside {
    tools: Vec<Tool>,
    places: HashMap<String, usize>,
    encoded: EncodedSlot,
}

impl ToolSet {
    /// A set of these tools.
    ///
    /// # Errors
    /// `invalid_tool` if two tools have one name, or a tool's schema does not describe an object.
    pub fn new(tools: impl IntoIterator<Item = Tool>) -> Result<Self, Error> {
        let mut inside = Inside::default();
        for tool in tools {
            tool.spec().check()?;
            let place = inside.tools.len();
            if inside.places.insert(tool.name().to_owned(), place).is_some() {
                let message = format!("two tools are named `{}`: rename one of them", tool.name());
                return Err(Error::new(ErrorKind::InvalidTool, message));
            }
            inside.tools.push(tool);
        }
        Ok(Self(Arc::new(inside)))
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.0.tools.get(*self.0.places.get(name)?)
    }

    /// The tools in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Tool> {
        self.0.tools.iter()
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.0.tools.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.tools.is_empty()
    }

    /// This set and one more tool.
    ///
    /// # Errors
    /// `invalid_tool` if there is a tool of that name.
    pub fn with(&self, tool: Tool) -> Result<Self, Error> {
        Self::new(self.iter().cloned().chain([tool]))
    }

    /// The tools for which `keep` holds; the same set if it holds for all.
    pub fn filter(&self, keep: impl Fn(&Tool) -> bool) -> Self {
        if self.iter().all(&keep) {
            return self.clone();
        }
        let mut inside = Inside::default();
        for tool in self.iter().filter(|tool| keep(tool)) {
            inside.places.insert(tool.name().to_owned(), inside.tools.len());
            inside.tools.push(tool.clone());
        }
        Self(Arc::new(inside))
    }

    /// Where a wire keeps the encoded specs.
    pub fn encoded(&self) -> &EncodedSlot {
        &self.0.encoded
    }
}

impl<'a> IntoIterator for &'a ToolSet {
    type Item = &'a Tool;
    type IntoIter = std::slice::Iter<'a, Tool>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(Tool::name)).finish()
    }
}
