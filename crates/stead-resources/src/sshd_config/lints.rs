//! Keywords that sshd does not know: it refuses the whole file then, and where no sshd is at hand nobody does.

use stead_core::diag::did_you_mean;
use stead_core::value::{Object, Value};
use stead_host::provider::Lint;

use super::keyword::meant;
use super::{Properties, stated};

/// Names that other tools give to what holds a keyword, beside one that holds its value.
const KEYS: [&str; 5] = ["key", "keyword", "name", "option", "setting"];

/// Names that other tools give to all that a file holds.
const WHOLE: [&str; 7] = ["content", "contents", "text", "lines", "source", "template", "block"];

/// Finds misspelt keywords, and keywords that are written as values.
pub(super) fn lints(properties: &Object) -> Vec<Lint> {
    let own = |name: &str| stated::OWN.contains(&name);
    let blocks = properties.get(Properties::BLOCKS).and_then(Value::as_array).into_iter().flatten().enumerate();
    let nested = blocks.filter_map(|(at, block)| Some((at.to_string(), block.as_object()?)));
    let nested = nested.flat_map(|(at, block)| {
        block.keys().filter_map(move |name| misspelt(&[Properties::BLOCKS, &at, name], name)).collect::<Vec<_>>()
    });
    let outer = properties.iter().filter(|(name, _)| !own(name)).filter_map(|(name, value)| {
        let is_key = KEYS.contains(&&**name) && properties.get("value").is_some();
        let keyword = value.as_str().filter(|_| is_key);
        let whole = WHOLE.contains(&&**name).then(|| as_value(name));
        whole.or_else(|| keyword.map_or_else(|| misspelt(&[name], name), |_| Some(as_value(name))))
    });
    outer.chain(nested).collect()
}

fn misspelt(place: &[&str], keyword: &str) -> Option<Lint> {
    let message = format!("sshd_config(5) has no keyword '{keyword}'");
    meant(keyword).map(|meant| Lint::new(place, message, did_you_mean(meant)))
}

fn as_value(name: &str) -> Lint {
    let message = format!("'{name}' is taken for a keyword of sshd_config(5)");
    Lint::new(&[name], message, "write the keyword as the property, as in `PermitRootLogin: false`")
}
