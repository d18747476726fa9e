//! Names that Puppet accepts.

use std::collections::BTreeSet;

/// Attributes that the Resource API refuses in types, or takes for its own.
const RESERVED: &[&str] = &[
    "alias",
    "audit",
    "before",
    "consume",
    "ensure",
    "export",
    "loglevel",
    "name",
    "noop",
    "notify",
    "provider",
    "require",
    "rsapi_custom_insync_trigger",
    "schedule",
    "stage",
    "subscribe",
    "tag",
    "title",
];

/// A name in lower case in which everything that Puppet refuses is an underscore: `Microsoft.Windows/Registry` is
/// `microsoft_windows_registry`.
pub(crate) fn lower(name: &str) -> String {
    let mut lower = String::with_capacity(name.len());
    for character in name.chars().map(|character| character.to_ascii_lowercase()) {
        let is_kept = character.is_ascii_alphanumeric();
        if is_kept || !lower.ends_with('_') {
            lower.push(if is_kept { character } else { '_' });
        }
    }
    lower
}

/// A name that may begin a name of Puppet: it begins with a letter.
pub(crate) fn identifier(name: &str) -> String {
    let name = name.trim_matches('_');
    if name.starts_with(|first: char| first.is_ascii_lowercase()) { name.to_owned() } else { format!("a{name}") }
}

/// The name of an attribute of Puppet's kind: `contentBase64` is `content_base64`.
pub(crate) fn snake(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 4);
    let mut before = None;
    let mut rest = name.chars().peekable();
    while let Some(character) = rest.next() {
        let starts_word = character.is_ascii_uppercase()
            && before.is_some_and(|before: char| {
                let ends_acronym = before.is_ascii_uppercase() && rest.peek().is_some_and(char::is_ascii_lowercase);
                before.is_ascii_lowercase() || before.is_ascii_digit() || ends_acronym
            });
        if starts_word {
            words.push('_');
        }
        words.push(character);
        before = Some(character);
    }
    lower(&words)
}

/// Gives every name to one thing only.
#[derive(Default)]
pub(crate) struct AttributeNames {
    taken: BTreeSet<String>,
}

impl AttributeNames {
    /// Names of attributes, without those that Puppet has, and others.
    pub(crate) fn of_attributes<'a>(others: impl IntoIterator<Item = &'a str>) -> Self {
        Self { taken: RESERVED.iter().copied().chain(others).map(str::to_owned).collect() }
    }

    /// Gives a name that was reserved to what it is meant for.
    pub(crate) fn release(&mut self, name: &str) {
        self.taken.remove(name);
    }

    /// The name, or with as many underscores at its end as it takes to be a new one.
    pub(crate) fn take(&mut self, name: &str) -> String {
        let mut name = name.to_owned();
        while !self.taken.insert(name.clone()) {
            name.push('_');
        }
        name
    }
}
