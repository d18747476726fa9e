//! In what two deliveries differ besides the text of the document: parameters and files.

use std::collections::BTreeSet;

use serde_json::Value as Json;
use stead_core::bundle::{Bundle, Entry};
use stead_core::digest::sha256;
use stead_core::document;
use stead_core::text::{Limits, SourceId};
use stead_core::value::{Value, redacting_wrapped};

use crate::control::{Changed, ChangedFile, ChangedParameter, ComparedContent, ComparedFile, ValuePair};
use crate::store::Delivered;

/// The largest file whose text is shown, in bytes. Of larger ones, and of those not readable by everybody, only the
/// digest is shown.
const SHOWN: usize = 256 << 10;

/// A delivery, opened.
pub(super) struct Opened<'d> {
    pub(super) delivered: &'d Delivered,
    pub(super) bundle: Option<&'d Bundle>,
}

impl Opened<'_> {
    /// The text of the document.
    pub(super) fn text(&self) -> &str {
        self.bundle.map_or(&self.delivered.text, |bundle| bundle.document().1)
    }

    /// The names of the parameters whose values are not shown.
    fn secrets(&self) -> BTreeSet<String> {
        let (document, _) = document::parse(SourceId::default(), self.text(), &Limits::default());
        let secure = document.parameters.into_iter().filter(|parameter| parameter.data_type.value.is_secure());
        secure.map(|parameter| parameter.name.value).collect()
    }
}

/// The parameters that differ between two deliveries. Of a secret one only whether it changed is shown.
pub(super) fn parameters(from: &Opened<'_>, to: &Opened<'_>) -> Vec<ChangedParameter> {
    let secrets: BTreeSet<String> = from.secrets().into_iter().chain(to.secrets()).collect();
    let (before, after) = (&from.delivered.parameters, &to.delivered.parameters);
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let compared = names.into_iter().filter_map(|name| {
        let (before, after) = (before.get(name), after.get(name));
        let (secret, change) = (secrets.contains(name), change(before, after));
        let shown =
            |value: Option<&Json>| value.map(|value| redacting_wrapped(Value::from(value.clone())).to_redacted_json());
        let values = (!secret).then(|| ValuePair { from: shown(before), to: shown(after) });
        let change = if secret { change.unwrap_or(Changed::Unchanged) } else { change? };
        Some(ChangedParameter { name: name.clone(), secret, change, values })
    });
    compared.collect()
}

/// The files that one of two deliveries has and the other not, or with other content.
pub(super) fn files(from: &Opened<'_>, to: &Opened<'_>) -> Vec<ChangedFile> {
    let entries = |side: &Opened<'_>| side.bundle.map(|bundle| bundle.entries().clone()).unwrap_or_default();
    let (before, after) = (entries(from), entries(to));
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let compared = paths.into_iter().filter_map(|path| {
        let (before, after) = (before.get(path), after.get(path));
        let change = change(before, after)?;
        Some(ChangedFile { path: path.clone(), change, from: before.map(shown), to: after.map(shown) })
    });
    compared.collect()
}

fn change<T: PartialEq>(before: Option<&T>, after: Option<&T>) -> Option<Changed> {
    match (before, after) {
        (None, Some(_)) => Some(Changed::Added),
        (Some(_), None) => Some(Changed::Removed),
        (before, after) => (before != after).then_some(Changed::Changed),
    }
}

fn shown(entry: &Entry) -> ComparedFile {
    let mode = |mode: u32| format!("{mode:04o}");
    match entry {
        Entry::Folder { mode: bits } => ComparedFile { mode: mode(*bits), content: None },
        Entry::File { mode: bits, content } => {
            let is_public = bits & 0o004 != 0 && content.len() <= SHOWN;
            let text = std::str::from_utf8(content).ok().filter(|_| is_public).map(str::to_owned);
            ComparedFile { mode: mode(*bits), content: Some(ComparedContent { sha256: sha256(content), text }) }
        }
    }
}
