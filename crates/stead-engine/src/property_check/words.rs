//! Words of other tools in the properties of built-in resources, where the type says what they mean.

use std::borrow::Cow;
use std::sync::LazyLock;

use stead_core::expr::Template;
use stead_core::text::Kind;
use stead_resources::builtins;

use super::{firewall, plain};

/// The meaning of a word at a type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    /// This property, with the same value.
    Property(&'static str),
    /// In words, what to do.
    Advice(Cow<'static, str>),
}

use Meaning::{Advice, Property};

/// A line of the table.
struct Row {
    /// The types, without their owner.
    types: &'static str,
    /// In small letters, without '_' and '-'.
    words: &'static str,
    /// With which values the words mean this; `None` for all.
    values: Option<&'static str>,
    meaning: Meaning,
}

static TABLE: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let mut types = "";
    let mut rows = Vec::new();
    for line in include_str!("words.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(section) => types = section,
            None => rows.extend(row(types, line)),
        }
    }
    rows
});

fn row(types: &'static str, line: &'static str) -> Option<Row> {
    let (left, meaning) = match line.split_once(" -> ") {
        Some((left, name)) => (left, Property(name)),
        None => line.split_once(": ").map(|(left, advice)| (left, Advice(advice.into())))?,
    };
    let (words, values) = left.split_once(" = ").map_or((left, None), |(words, values)| (words, Some(values)));
    Some(Row { types, words, values, meaning })
}

impl Row {
    fn is_about(&self, type_name: &str, word: &str, value: Option<&str>) -> bool {
        let has = |list: &str, wanted: &str| list.split_whitespace().any(|each| each == wanted);
        let is_of_type = type_name.strip_prefix("Stead/").is_some_and(|name| has(self.types, name));
        is_of_type && has(self.words, word) && self.values.is_none_or(|values| is_among(values, value))
    }
}

/// Returns whether a value is among those of a line.
fn is_among(values: &str, value: Option<&str>) -> bool {
    let Some(value) = value.map(str::to_lowercase) else { return false };
    values.split_whitespace().any(|each| match each.strip_suffix('*') {
        Some("?") => !value.is_empty(),
        Some("#") => value.starts_with(|first: char| first.is_ascii_digit()),
        Some(start) => value.starts_with(start),
        None => value == each,
    })
}

/// Returns what a word in the properties of a type means.
pub(super) fn meaning(
    type_name: &str,
    properties: &Template,
    (word, value): (&str, Option<&Template>),
) -> Option<Meaning> {
    let plain = plain(word);
    if type_name == "Stead/Cron" && FIELDS.iter().any(|words| words.contains(&&*plain)) {
        return Some(Advice(schedule(properties).into()));
    }
    let value = value.and_then(scalar);
    // A property of the resource itself is refused for its value, and only rows with values are about that.
    let is_own = has_property(type_name, word);
    let is_apt = |row: &&Row| !is_own || row.values.is_some_and(|values| values != "*");
    let row = TABLE.iter().filter(is_apt).find(|row| row.is_about(type_name, &plain, value.as_deref()))?;
    Some(match &row.meaning {
        Advice(advice) if advice.contains("{}") => {
            let shown = value.as_deref().filter(|value| is_shown(value)).unwrap_or("VALUE");
            Advice(advice.replace("{}", shown).into())
        }
        Advice(advice) if advice.contains(CHAIN) => Advice(advice.replace(CHAIN, &firewall::chain(properties)).into()),
        meaning => meaning.clone(),
    })
}

/// The placeholder of a chain of nft(8) in advice.
const CHAIN: &str = "{chain}";

/// Returns whether a built-in has a property that a document states.
fn has_property(type_name: &str, name: &str) -> bool {
    let built_in = builtins().iter().find(|each| each.manifest.type_name.as_str() == type_name);
    let property = built_in.and_then(|each| each.schema()["properties"].get(name));
    property.is_some_and(|property| property["readOnly"] != true)
}

/// A text, number or boolean as it is written.
fn scalar(value: &Template) -> Option<Cow<'_, str>> {
    match &value.kind {
        Kind::String(text) => Some(Cow::Borrowed(&**text)),
        Kind::Number(_) => Some(value.literal().to_redacted_json().to_string().into()),
        Kind::Bool(truth) => Some(truth.to_string().into()),
        _ => None,
    }
}

/// Returns whether advice may repeat a value: a word, or an address in which no password is.
fn is_shown(value: &str) -> bool {
    let is_part = |each: char| each.is_alphanumeric() || "_-.+/:".contains(each);
    !value.is_empty() && value.chars().all(is_part)
}

/// The words for each field of a schedule of cron, in their order.
const FIELDS: [&[&str]; 5] = [
    &["minute", "minutes"],
    &["hour", "hours"],
    &["day", "monthday", "daymonth", "dayofmonth"],
    &["month", "months"],
    &["weekday", "dayweek", "dayofweek"],
];

/// Advice about a schedule that is written with a property for each field.
fn schedule(properties: &Template) -> String {
    let field = |words: &&[&str]| {
        let mut entries = properties.entries().unwrap_or_default().iter();
        let stated = entries.find(|entry| words.contains(&&*plain(&entry.key))).and_then(|entry| scalar(&entry.value));
        let is_part = |each: char| each.is_ascii_alphanumeric() || "*/,-".contains(each);
        stated.filter(|text| !text.is_empty() && text.chars().all(is_part)).unwrap_or("*".into())
    };
    let fields: Vec<Cow<'_, str>> = FIELDS.iter().map(field).collect();
    format!("write `schedule: '{}'`: minute, hour, day of the month, month, day of the week", fields.join(" "))
}

/// Returns the form of a value that is written otherwise in another tool.
pub(super) fn form(type_name: &str, property: &str, value: &Template) -> Option<String> {
    let items = match &value.kind {
        Kind::Array(items) => items,
        _ => std::slice::from_ref(value),
    };
    match (type_name, property, &value.kind) {
        ("Stead/Sudoers", "rules", Kind::Object(_)) => Some("write it behind a dash, as an item of a list".to_owned()),
        ("Stead/Sudoers", "rules", Kind::String(_)) => Some(
            "write `{groups: [ops], commands: [ALL], nopasswd: true}`; lines of sudoers(5) are written in 'content', in place of 'rules'".to_owned(),
        ),
        (_, "environment" | "headers" | "variables", Kind::Array(_) | Kind::String(_)) => {
            // The values may be secrets.
            let name = items.first().and_then(Template::as_str).and_then(|text| text.split(['=', ':']).next());
            let name = name.filter(|name| !name.is_empty() && name.len() < 32 && is_shown(name) && !name.contains(['.', '/']));
            let name = name.filter(|_| type_name.starts_with("Stead/"))?;
            Some(format!("write `{property}: {{{name}: VALUE}}`"))
        }
        ("Stead/KernelModule", "options", Kind::Array(_)) => {
            let words: Option<Vec<&str>> = items.iter().map(|item| item.as_str().filter(|word| !word.contains(' '))).collect();
            Some(format!("write `options: {}`", words?.join(" ")))
        }
        ("Stead/Service", "name", Kind::Array(_)) => {
            Some("each service is an instance of its own, or a loop: `copy: {name: services, each: [...], as: item}`".to_owned())
        }
        ("Stead/Command", _, Kind::Bool(truth)) => Some(format!("write it in quotes: `{property}: \"{truth}\"`")),
        _ => None,
    }
}

/// A longer rule is not repeated.
const LONGEST_RULE: usize = 120;

/// Advice about a whole line of a file in place of the one part of it that a property takes.
pub(super) fn line(type_name: &str, property: &str, text: &str) -> Option<String> {
    if (type_name, property) == ("Stead/Nftables", "content") && text.len() <= LONGEST_RULE {
        let rule = text.trim().trim_end_matches(';');
        let is_rule = !rule.is_empty() && !rule.contains(['\n', '`', '#', '\'']);
        return is_rule.then(|| format!("write `content: '{}'`", firewall::in_chain(rule)));
    }
    let mut words = text.split_whitespace();
    let kind = words.find(|word| word.starts_with("ssh-") || word.starts_with("ecdsa-") || word.starts_with("sk-"))?;
    let key = words.next().filter(|_| type_name == "Stead/SshKey" && property == "key" && is_shown(kind))?;
    let start: String = key.chars().take(12).filter(char::is_ascii_alphanumeric).collect();
    let comment = match words.next() {
        Some(_) => ", and what stands behind it as 'comment'",
        None => "",
    };
    Some(format!("write `type: {kind}` and `key: {start}...`, the word behind it{comment}"))
}

#[cfg(test)]
mod tests {
    use stead_resources::BuiltIn;

    use super::*;

    fn of_type(name: &str) -> &'static BuiltIn {
        let whole = format!("Stead/{name}");
        builtins().iter().find(|each| each.manifest.type_name.as_str() == whole).unwrap_or_else(|| panic!("{whole}"))
    }

    #[test]
    fn each_line_has_a_meaning() {
        let is_line = |line: &&str| !line.is_empty() && !line.starts_with(['#', '[']);
        let lines: Vec<&str> = include_str!("words.txt").lines().filter(is_line).collect();
        for line in &lines {
            assert!(row("File", line).is_some(), "{line}");
        }
        assert_eq!(lines.len(), TABLE.len());
    }

    #[test]
    fn words_lead_to_properties_and_are_none() {
        for row in TABLE.iter() {
            for name in row.types.split_whitespace() {
                let schema = of_type(name).schema();
                let property = |name: &str| schema["properties"].get(name);
                let is_stated = |name: &str| property(name).is_some_and(|each| each["readOnly"] != true);
                if let Property(meant) = &row.meaning {
                    assert!(is_stated(meant), "{name}: {meant}");
                }
                for word in row.words.split_whitespace() {
                    assert!(word.chars().all(|each| each.is_ascii_lowercase() || each.is_ascii_digit()), "{word}");
                }
            }
        }
    }
}
