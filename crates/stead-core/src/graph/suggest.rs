//! The type that was meant by a word that is none.

use super::codes::UNKNOWN_TYPE;
use super::{FoundResource, Resources};
use crate::diag::{Diagnostic, Meant};
use crate::document::{OtherType, codes, other_type, without_collection};
use crate::expr::codes::ARGUMENT_VALUE;
use crate::id::TypeName;
use crate::text::Sources;

/// Adds to findings about types that there are not the type that was probably meant.
pub fn suggest_types(findings: &mut [Diagnostic], resources: &dyn Resources, sources: &Sources) {
    let is_type = |finding: &&mut Diagnostic| {
        let is_argument = *finding.code == ARGUMENT_VALUE && finding.message.contains("is not a resource type");
        let is_unknown =
            *finding.code == UNKNOWN_TYPE && !finding.help.as_ref().is_some_and(|help| help.starts_with("did"));
        (*finding.code == codes::TYPE_NAME || is_argument || is_unknown) && finding.fix.is_none()
    };
    for finding in findings.iter_mut().filter(is_type) {
        let Some(written) = finding.span.and_then(|span| sources.text(span)) else { continue };
        let word = written.trim_matches(['"', '\'']);
        match other_type(word) {
            Some(OtherType::Advice(advice)) => *finding = finding.clone().with_help(advice),
            Some(OtherType::Type(meant)) => {
                *finding = finding.clone().with_meant(word, &Meant::only(meant), Some(written));
            }
            None if *finding.code == UNKNOWN_TYPE => {}
            None => {
                if let Some(meant) = type_meant(word, resources) {
                    *finding = finding.clone().with_meant(word, &meant, Some(written));
                }
            }
        }
    }
}

/// Returns the type that was meant by a word that is none: `File`, `Stead.File` and `Stead::File` are `Stead/File`, and one that is
/// only near may be something else.
fn type_meant(word: &str, resources: &dyn Resources) -> Option<Meant> {
    let separated = without_collection(word).replace("::", "/").replace('\\', "/");
    let whole = match separated.rsplit_once('.') {
        _ if separated.contains('/') => separated,
        Some((owner, name)) => format!("{owner}/{name}"),
        None => format!("Stead/{separated}"),
    };
    match resources.find(&TypeName::parse(&whole).ok()?, None, None) {
        FoundResource::Resource(manifest) => Some(Meant::only(manifest.type_name.as_str())),
        FoundResource::Nothing(why) => why.meant.map(|meant| Meant::perhaps(meant.as_str())),
    }
}
