//! Notifications and restarts of other tools, as a document states them for its own instances.

use super::foreign::{Change, change};
use super::{Document, Instance};
use crate::id::TypeName;
use crate::text::{Entry, Kind, Leaf, Node};

const SERVICE: &str = "Stead/Service";

/// An instance as far as others name it.
#[derive(Debug)]
pub(super) struct Neighbour {
    type_name: TypeName,
    name: String,
    /// Its properties `path` and `name`.
    path: Option<String>,
    thing: Option<String>,
}

impl Neighbour {
    pub(super) fn of(entries: &[Entry]) -> Option<Self> {
        let get = |key: &str| entries.iter().find(|entry| &*entry.key == key).map(|entry| &entry.value);
        let property = |key: &str| get("properties")?.get(key);
        Self::new(get("type")?.as_str()?, get("name")?.as_str()?, (property("path"), property("name")))
    }

    /// An instance of a document; `None` where its name is computed.
    fn of_instance(instance: &Instance) -> Option<Self> {
        let property = |key: &str| instance.properties.as_ref()?.get(key);
        let of = (property("path"), property("name"));
        Self::new(instance.type_name.value.as_str(), instance.name.as_str()?, of)
    }

    fn new<L: Leaf>(type_name: &str, name: &str, (path, thing): (Option<&Node<L>>, Option<&Node<L>>)) -> Option<Self> {
        let plain = |node: Option<&Node<L>>| node?.as_str().filter(|text| is_plain(text)).map(str::to_owned);
        let type_name = TypeName::parse(type_name).ok()?;
        Some(Self { type_name, name: plain_name(name)?, path: plain(path), thing: plain(thing) })
    }

    fn id(&self) -> String {
        format!("\"[resourceId('{}', '{}')]\"", self.type_name, self.name)
    }

    fn is_service(&self) -> bool {
        self.type_name.as_str().eq_ignore_ascii_case(SERVICE)
    }

    fn is_called(&self, text: &str) -> bool {
        self.name == text || [&self.path, &self.thing].into_iter().flatten().any(|own| own == text)
    }
}

impl Document {
    /// Returns what to write for a word of another tool for what happens after a change, among the properties of the instance with this
    /// list of properties.
    pub fn change_advice<L: Leaf>(&self, key: &str, value: Option<&Node<L>>, own: &Instance) -> Option<String> {
        let all: Vec<Neighbour> = self.resources.iter().filter_map(Neighbour::of_instance).collect();
        advice(key, value, &Neighbour::of_instance(own)?, &all)
    }
}

/// Returns what to write for a word of another tool for what happens after a change of the instance that has it, or of the ones that it
/// names; `None` for every other word, and where nothing is known that a general answer does not say.
pub(super) fn advice<L: Leaf>(
    key: &str,
    value: Option<&Node<L>>,
    own: &Neighbour,
    all: &[Neighbour],
) -> Option<String> {
    let stated = texts(value);
    let others: Vec<&Neighbour> = stated.iter().filter_map(|text| called(text, all)).collect();
    let is_reload = key.to_lowercase().contains("reload")
        || stated.iter().any(|text| text.to_lowercase().contains("reload"))
        || others.iter().any(|other| other.name.to_lowercase().contains("reload"));
    let words = if is_reload { ("reloadedAfter", "reloaded") } else { ("restartedAfter", "restarted") };
    match change(key)? {
        Change::Restarts if own.is_service() => None,
        Change::Notifies | Change::Restarts => Some(after_this(own, others.first().copied(), words)),
        Change::After => after_those(own, &others, words),
    }
}

/// The answer to a word for an instance that runs after a change of this one.
fn after_this(own: &Neighbour, handler: Option<&Neighbour>, (after, each): (&str, &str)) -> String {
    let directive = format!("`directives: {{onChanges: [{}]}}`", own.id());
    let flag = format!("`{each}: true` in its properties");
    match (handler, own.path.as_deref()) {
        (Some(handler), Some(path)) if handler.is_service() => format!(
            "write `{after}: [{path}]` in the properties of '{}'; or, where it is to be left alone otherwise, {directive} there, and {flag}",
            handler.name
        ),
        (Some(handler), None) if handler.is_service() => {
            format!("write {directive} at '{}', and {flag}", handler.name)
        }
        (Some(handler), _) => {
            format!("write {directive} at '{}': it runs only after this one has changed", handler.name)
        }
        (None, path) => {
            let file = path.map(|path| {
                format!("; or, for a service that is always looked at, `{after}: [{path}]` in its properties")
            });
            format!(
                "write {directive} at the instance that is to run only after this one has changed, with {flag} if it is a \
                 {SERVICE}{}",
                file.unwrap_or_default()
            )
        }
    }
}

/// An instance that is to run after a change of others.
fn after_those(own: &Neighbour, causes: &[&Neighbour], (after, each): (&str, &str)) -> Option<String> {
    if causes.is_empty() {
        return None;
    }
    let ids: Vec<String> = causes.iter().map(|cause| cause.id()).collect();
    let directive = format!("`directives: {{onChanges: [{}]}}`", ids.join(", "));
    let paths: Option<Vec<&str>> = causes.iter().map(|cause| cause.path.as_deref()).collect();
    Some(match paths {
        Some(paths) if own.is_service() => format!(
            "write `{after}: [{}]` inside 'properties'; or, where it is to be left alone otherwise, {directive} here, and \
             `{each}: true` inside 'properties'",
            paths.join(", ")
        ),
        None if own.is_service() => format!("write {directive}, and `{each}: true` inside 'properties'"),
        _ => format!("write {directive}: it is left alone unless one of these has changed"),
    })
}

/// The names in a value: of one text, of a list, or of members such as `file: NAME`.
fn texts<L: Leaf>(value: Option<&Node<L>>) -> Vec<&str> {
    let items = value.map(|value| value.items().unwrap_or(std::slice::from_ref(value))).unwrap_or_default();
    let mut found = Vec::new();
    for item in items {
        match &item.kind {
            Kind::Object(entries) => found.extend(entries.iter().filter_map(|entry| entry.value.as_str())),
            _ => found.extend(item.as_str()),
        }
    }
    found
}

/// The instance that a text names: by its name, its path or the name of what it manages, as `Service[NAME]`, as an expression, or as
/// `restart NAME`.
fn called<'n>(text: &str, all: &'n [Neighbour]) -> Option<&'n Neighbour> {
    let inner =
        |text: &str| text.rsplit_once('[')?.1.strip_suffix(']').map(|name| name.trim_matches(['\'', '"']).to_owned());
    let quoted = || text.strip_prefix("[resourceId(")?.rsplit('\'').nth(1).map(str::to_owned);
    let verb = || text.split_once(' ').map(|(_, name)| name.trim().to_owned());
    let tries = [Some(text.to_owned()), quoted(), inner(text), verb()];
    tries.into_iter().flatten().find_map(|text| all.iter().find(|each| each.is_called(&text)))
}

fn plain_name(text: &str) -> Option<String> {
    is_plain(text).then(|| text.to_owned())
}

/// Returns whether a text can be repeated as it is in a line of YAML within quotes.
fn is_plain(text: &str) -> bool {
    const LONGEST: usize = 120;
    !text.is_empty()
        && text.len() <= LONGEST
        && !text.contains(['\'', '"', '`', '\\', '[', ']', '{', '}', ',', '#', ':'])
        && !text.chars().any(char::is_control)
}
