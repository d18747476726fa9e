//! JSON pointers: texts such as `/owner/name` that lead from a value to a part of it.

use std::borrow::Cow;

/// The pointer to a member or an element of what another one leads to.
pub fn within(outer: &str, step: &str) -> String {
    format!("{outer}/{}", step.replace('~', "~0").replace('/', "~1"))
}

/// The names and numbers that a pointer leads through, the outermost first; none for the whole.
///
/// # Examples
/// ```
/// use stead_core::value::pointer::{steps, within};
///
/// let pointer = within(&within("", "files"), "/etc/motd");
/// assert_eq!(pointer, "/files/~1etc~1motd");
/// assert_eq!(steps(&pointer).collect::<Vec<_>>(), ["files", "/etc/motd"]);
/// ```
pub fn steps(pointer: &str) -> impl DoubleEndedIterator<Item = Cow<'_, str>> {
    let steps = pointer.strip_prefix('/').into_iter().flat_map(|steps| steps.split('/'));
    steps.map(|step| {
        if step.contains('~') { Cow::Owned(step.replace("~1", "/").replace("~0", "~")) } else { Cow::Borrowed(step) }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn steps_are_those_that_a_pointer_was_made_of(names in proptest::collection::vec("[a~/01]{0,4}", 0..5)) {
            let pointer = names.iter().fold(String::new(), |outer, name| within(&outer, name));
            prop_assert!(steps(&pointer).eq(names.iter().map(String::as_str)));
        }
    }
}
