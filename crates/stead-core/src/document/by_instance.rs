//! Documents whose instances are taken apart one by one while the text is read, so that no tree of all of them is in memory.

use super::fields::Reader;
use super::read::{PLAN_OF_ALL, SAVED_PLAN, in_order};
use super::{Document, Instance, tools};
use crate::bundle;
use crate::diag::Diagnostic;
use crate::text::{self, Limits, Node, SourceId, Span, Takes};

/// Reads the document of a plain text; `None` of every other, and where there is something to say of an instance: then the
/// order in which parts are read counts, since there is a limit of findings.
pub(super) fn by_instance(source: SourceId, text: &str, limits: &Limits) -> Option<(Document, Vec<Diagnostic>)> {
    if [bundle::BEGIN, SAVED_PLAN, PLAN_OF_ALL].iter().any(|begin| text.starts_with(begin)) {
        return None;
    }
    let mut reader = Reader::new(Some(text), limits.findings);
    let mut instances = Vec::new();
    let mut take = |element: Node| {
        if instances.len() == instances.capacity() {
            let more = expected(text.len(), element.span, &instances);
            instances.reserve_exact(more);
        }
        instances.push(reader.instance(element)?);
        reader.findings.is_empty().then_some(())
    };
    let root = text::read_taking(source, text, limits, Takes::new("resources", &mut take))?;
    if tools::of_another(source, text, Some(&root)).is_some() {
        return None;
    }
    let mut document = reader.document(source, root);
    // A list that was not taken is in the tree.
    if !instances.is_empty() {
        document.resources = instances;
    }
    Some((document, in_order(reader.findings.into_vec(), source, text)))
}

/// How many more instances a text is likely to have, from this one on, by what those before it took.
fn expected(text: usize, next: Span, known: &[Instance]) -> usize {
    const FEW: usize = 16;
    let Some(first) = known.first() else { return FEW };
    let each = ((next.start - first.span.start) as usize / known.len()).max(1);
    let rest = text.saturating_sub(next.start as usize);
    // What is small at first may be large later.
    (rest / each + 1).min(4 * rest / size_of::<Instance>()).max(FEW)
}
