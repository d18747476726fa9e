//! A list at the top of a text, taken element by element while the text is read.

use super::Node;

/// Whoever takes the elements of the list that the root of a text has below a key.
///
/// The tree then has an empty list there, and what is large in most documents is in memory one element at a time.
pub(crate) struct Takes<'e> {
    key: &'static str,
    take: &'e mut dyn FnMut(Node) -> Option<()>,
    /// True behind the key, until its list begins.
    is_due: bool,
}

impl<'e> Takes<'e> {
    /// Has each element below a key given to `take`, which returns `None` where the text must be read as a whole.
    pub(crate) fn new(key: &'static str, take: &'e mut dyn FnMut(Node) -> Option<()>) -> Self {
        Self { key, take, is_due: false }
    }

    /// Notes that the value of this member of the root comes next.
    pub(super) fn note_member(&mut self, key: &str) {
        self.is_due = key == self.key;
    }

    /// Returns whether the list that begins as the value of a member of the root is the one that is taken.
    pub(super) fn begin(&mut self) -> bool {
        std::mem::take(&mut self.is_due)
    }

    pub(super) fn take(&mut self, element: Node) -> Option<()> {
        (self.take)(element)
    }
}
