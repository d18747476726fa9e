//! How the lines of a text become those of another one, and which of them are removed.

use similar::DiffOp;
use similar::algorithms::{Capture, Compact, Replace, myers};
use stead_core::destruction::ItemKind;

/// The lines of a text that another one has nothing in place of.
pub(crate) fn removed_lines(before: &str, after: &str) -> Vec<ItemKind> {
    let (old, new): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let gone = line_steps(&old, &new).into_iter().filter_map(|step| match step {
        DiffOp::Delete { old_index, old_len, .. } => Some(old_index..old_index + old_len),
        _ => None,
    });
    let line = |at: usize| old.get(at).map(|line| ItemKind::Line { number: at as u64 + 1, text: (*line).to_owned() });
    gone.flatten().filter_map(line).collect()
}

/// The steps that make some lines others.
pub(crate) fn line_steps(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    // `capture_diff_slices` has code for every algorithm, which is a twentieth of what this crate is compiled to.
    let mut hook = Compact::new(Replace::new(Capture::new()), old, new);
    let Ok(()) = myers::diff(&mut hook, old, 0..old.len(), new, 0..new.len());
    hook.into_inner().into_inner().into_ops()
}
