//! Lines that an edit removes.

use similar::DiffOp;
use stead_core::destruction::ItemKind;

use crate::part::lines::steps;

/// The lines of a text that another one has nothing in place of.
pub(crate) fn removed_lines(before: &str, after: &str) -> Vec<ItemKind> {
    let (old, new): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let gone = steps(&old, &new).into_iter().filter_map(|step| match step {
        DiffOp::Delete { old_index, old_len, .. } => Some(old_index..old_index + old_len),
        _ => None,
    });
    let line = |at: usize| old.get(at).map(|line| ItemKind::Line { number: at as u64 + 1, text: (*line).to_owned() });
    gone.flatten().filter_map(line).collect()
}
