//! Documents whose instances are taken apart one by one while the text is read, so that no tree of all of them is in memory.

use super::fields::Reader;
use super::read::{PLAN_OF_ALL, SAVED_PLAN, in_order, of_tree};
use super::{Document, Instance, tools};
use crate::bundle;
use crate::diag::Diagnostic;
use crate::text::{self, Limits, Node, SourceId, Span, Takes};

/// Reads the text of a document, YAML or JSON.
///
/// Guarantees: it never fails and says everything that is wrong, in the order of the text. A document that comes with
/// an error holds what could be understood, and must not be run.
///
/// # Examples
/// ```
/// use stead_core::diag::any_error;
/// use stead_core::document::parse;
/// use stead_core::text::{Limits, SourceId};
///
/// let text = "
/// parameters: {port: {type: int, defaultValue: 80}}
/// resources:
/// - {name: motd, type: Stead/File, properties: {path: /etc/motd, content: \"[string(parameters('port'))]\"}}
/// - {name: motd, tpye: Stead/File}
/// ";
/// // Nothing fails: what is wrong is reported, and the rest is there.
/// let (document, findings) = parse(SourceId::default(), text, &Limits::default());
/// assert!(any_error(&findings));
/// assert_eq!(document.parameters[0].name.value, "port");
/// assert_eq!(document.resources[0].type_name.value.as_str(), "Stead/File");
/// ```
pub fn parse(source: SourceId, text: &str, limits: &Limits) -> (Document, Vec<Diagnostic>) {
    by_instance(source, text, limits).unwrap_or_else(|| of_tree(source, text, text::read(source, text, limits), limits))
}

/// Reads the document of a plain text; `None` of every other, and where there is something to say of an instance: then the
/// order in which parts are read counts, since there is a limit of findings.
fn by_instance(source: SourceId, text: &str, limits: &Limits) -> Option<(Document, Vec<Diagnostic>)> {
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
