//! A list of texts that grows with a conversation: a request adds to it, and what it was at the end of a closed part of the
//! history is shared with all requests that go on from there.

use std::sync::Arc;

/// Texts in order. Cloning it shares them.
#[derive(Clone, Default)]
pub(super) struct Texts(Option<Arc<Link>>);

struct Link {
    text: Arc<str>,
    before: Option<Arc<Link>>,
}

impl Drop for Link {
    fn drop(&mut self) {
        // One after another: a long chain dropped recursively would overflow the stack.
        let mut next = self.before.take();
        while let Some(mut link) = next.and_then(Arc::into_inner) {
            next = link.before.take();
        }
    }
}

impl Texts {
    /// Adds a text at the end.
    pub(super) fn push(&mut self, text: impl Into<Arc<str>>) {
        self.0 = Some(Arc::new(Link { text: text.into(), before: self.0.take() }));
    }

    /// All of them, from the first to the last.
    pub(super) fn all(&self) -> Vec<&Arc<str>> {
        let links = std::iter::successors(self.0.as_deref(), |link| link.before.as_deref());
        let mut texts: Vec<&Arc<str>> = links.map(|link| &link.text).collect();
        texts.reverse();
        texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_shared_stays_as_it_was() {
        let mut texts = Texts::default();
        texts.push("a");
        let (before, mut other) = (texts.clone(), texts.clone());
        texts.push("b");
        other.push("c");
        let all = |texts: &Texts| texts.all().into_iter().map(|text| text.to_string()).collect::<Vec<_>>().concat();
        assert_eq!([&before, &texts, &other, &Texts::default()].map(all), ["a", "ab", "ac", ""]);
    }

    #[test]
    fn a_long_list_is_dropped_on_a_small_stack() {
        let mut texts = Texts::default();
        (0..100_000).for_each(|_| texts.push("a"));
        std::thread::Builder::new().stack_size(64 * 1024).spawn(move || drop(texts)).unwrap().join().unwrap();
    }
}
