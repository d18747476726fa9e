//! Settings as text: a file of the administrator in YAML or JSON, and single values.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Component, PathBuf};

use jiff::civil::Time;
use stead_core::diag::{Diagnostic, did_you_mean, nearest};
use stead_core::source::{SourceId, Span};
use stead_core::text::{Entry, Kind, Limits, Node, read};
use stead_host::facts::Labels;
use url::Url;

use super::table::{DAYS, FOREIGN, PURPOSES, SETTINGS, Setting, SettingForm, meant, names, word};
use super::{Backoff, Settings};
use crate::follow::SourceAddress;
use crate::window::{Purpose, Window};

/// Codes of findings about the settings of the agent.
pub mod codes {
    stead_core::codes! {
        /// E0641
        UNKNOWN = "E0641", "there is no such setting of the agent", "\
The name is not one of the settings of the agent; most often it is misspelled. Upper and lower case do not matter.
`stead agent settings get` lists all settings with their values.";

        /// E0642
        VALUE = "E0642", "a setting of the agent has a value that is not allowed", "\
The message says which values the setting takes. As long as a settings file has an error, the agent goes on with the last
settings that were valid.";

        /// E0643
        TWICE = "E0643", "a setting of the agent is given twice", "\
Upper and lower case do not matter in names of settings, so two names that differ in nothing else are the same setting.
Remove one of them.";

        /// W0644
        FOREIGN = "W0644", "a setting of the Local Configuration Manager has no effect here", "\
The DSC Local Configuration Manager has this setting, and the agent does not have what it is about; the message says why.
The value is ignored. Remove it, so that nobody relies on it.";
    }
}

/// A value that a setting does not take.
#[derive(Clone, PartialEq, Eq, Debug, Default, thiserror::Error)]
#[error("{message}")]
pub struct InvalidSetting {
    /// The mistake, in one sentence.
    pub message: String,
    /// The advice about it.
    pub help: Option<String>,
}

impl From<Diagnostic> for InvalidSetting {
    fn from(finding: Diagnostic) -> Self {
        Self { message: finding.message, help: finding.help }
    }
}

/// The mistake in a value, and where it is.
struct Wrong {
    span: Span,
    message: String,
    help: Option<String>,
}

impl Wrong {
    fn new(span: Span, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), help: None }
    }

    fn with_help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    fn finding(self) -> Diagnostic {
        Diagnostic { help: self.help, ..Diagnostic::error(&codes::VALUE, self.span, self.message) }
    }
}

/// The labels of an object, or the first mistake in them.
fn labels(node: &Node) -> Result<Labels, Wrong> {
    let (labels, wrong) = Labels::stated(node);
    let first = wrong.into_iter().next().map(|finding| Wrong {
        span: finding.span.unwrap_or(node.span),
        message: finding.message,
        help: finding.help,
    });
    first.map_or(Ok(labels), Err)
}

impl Settings {
    /// Reads a settings file. What it does not state has its default.
    ///
    /// Guarantees: what is not wrong is taken. The settings are meant to be used only if no finding is an error.
    pub fn read(source: SourceId, text: &str) -> (Self, Vec<Diagnostic>) {
        let mut settings = Self::default();
        if text.lines().map(str::trim_start).all(|line| line.is_empty() || line.starts_with('#')) {
            return (settings, Vec::new());
        }
        let (node, mut found) = read(source, text, &Limits::default());
        match node.as_ref().map(|node| (node, node.entries())) {
            Some((_, Some(entries))) => settings.take(entries, &mut found),
            Some((node, None)) => found.push(
                Diagnostic::error(&codes::VALUE, node.span, "the settings must be an object")
                    .with_help("write one setting a line, such as 'RebootNodeIfNeeded: true'"),
            ),
            None => {}
        }
        found.sort_by_key(|finding| finding.span.map(|span| span.start));
        (settings, found)
    }

    fn take(&mut self, entries: &[Entry], found: &mut Vec<Diagnostic>) {
        let mut given: BTreeMap<&str, Span> = BTreeMap::new();
        for entry in entries {
            let Some(setting) = Setting::find(&entry.key) else {
                found.push(unknown(&entry.key, entry.key_span));
                continue;
            };
            if let Some(first) = given.insert(setting.name, entry.key_span) {
                let message = format!("the setting {} is given twice", setting.name);
                let finding = Diagnostic::error(&codes::TWICE, entry.key_span, message);
                found.push(finding.with_label(first, "first given here").with_help("remove one of them"));
            } else if let Err(wrong) = self.set(setting, &entry.value) {
                found.push(wrong.finding());
            }
        }
        for (name, longest, message) in self.contradictions() {
            let span = given.get(name).or(given.get(longest)).copied().unwrap_or_default();
            found.push(Diagnostic::error(&codes::VALUE, span, message));
        }
    }

    /// Waits that are shorter at most than at first: the names of both settings, and a message.
    fn contradictions(&self) -> impl Iterator<Item = (&'static str, &'static str, String)> + use<> {
        let pairs = [
            ("PendingRetrySecs", "PendingRetryMaxSecs", self.pending_backoff),
            ("ResourceRetrySecs", "ResourceRetryMaxSecs", self.resource_backoff),
        ];
        pairs.into_iter().filter(|(_, _, Backoff { base, cap })| base > cap).map(|(base, cap, backoff)| {
            let (first, longest) = (backoff.base.as_secs_f64(), backoff.cap.as_secs_f64());
            (base, cap, format!("{base} ({first}) must not be greater than {cap} ({longest})"))
        })
    }

    /// Returns the settings with another value of one of them, which is written as in a settings file.
    pub fn with(&self, name: &str, value: &str) -> Result<Self, InvalidSetting> {
        let setting = Setting::find(name).ok_or_else(|| InvalidSetting::from(unknown(name, Span::default())))?;
        let node = match read(SourceId::default(), value, &Limits::default()) {
            _ if value.trim().is_empty() => Node { span: Span::default(), kind: Kind::Null },
            (Some(node), found) if found.is_empty() => node,
            (_, found) => return Err(found.into_iter().next().map(InvalidSetting::from).unwrap_or_default()),
        };
        let mut settings = self.clone();
        settings.set(setting, &node).map_err(|wrong| InvalidSetting::from(wrong.finding()))?;
        match settings.contradictions().next() {
            Some((_, _, message)) => Err(InvalidSetting { message, help: None }),
            None => Ok(settings),
        }
    }

    /// All settings as a settings file.
    ///
    /// Guarantees: reading it gives these settings, if they are in whole milliseconds and allowed.
    pub fn to_yaml(&self) -> String {
        SETTINGS.iter().fold(String::new(), |mut text, setting| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{}: {}", setting.name, setting.value(self));
            text
        })
    }

    /// Formats the settings as a JSON object.
    pub fn to_json(&self) -> serde_json::Map<String, serde_json::Value> {
        SETTINGS.iter().map(|setting| (setting.name.to_owned(), setting.json(self))).collect()
    }

    fn set(&mut self, setting: &Setting, node: &Node) -> Result<(), Wrong> {
        let refused = || Wrong::new(node.span, format!("{} must be {}", setting.name, setting.values()));
        match (&setting.form, &node.kind) {
            (SettingForm::Truth(of), Kind::Bool(truth)) => *of(self) = *truth,
            (SettingForm::Count(range, of), Kind::Number(number)) => {
                let count = number.as_u64().and_then(|count| u32::try_from(count).ok());
                *of(self) = count.filter(|count| range.contains(count)).ok_or_else(refused)?;
            }
            (SettingForm::Time(unit, range, of), Kind::Number(number)) => {
                let time = number.as_f64().and_then(|count| unit.time(count));
                *of(self) = time.filter(|time| range.contains(time)).ok_or_else(refused)?;
            }
            (SettingForm::Word(words), Kind::String(text)) => {
                if !(words.set)(self, text) {
                    let near = nearest(text, (words.all)());
                    let help = near.map(did_you_mean);
                    return Err(Wrong { help, ..refused() });
                }
            }
            (SettingForm::Command(of), Kind::Array(items)) => {
                let words = items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
                let is_program = |words: &Vec<String>| words.first().is_some_and(|program| !program.is_empty());
                *of(self) = words.filter(is_program).ok_or_else(refused)?;
            }
            (SettingForm::Windows(of), Kind::Array(items)) => {
                *of(self) = items.iter().map(window).collect::<Result<_, _>>()?;
            }
            (SettingForm::Labels(of), Kind::Object(_)) => *of(self) = labels(node)?,
            (SettingForm::Folder(of), Kind::Null) => *of(self) = None,
            (SettingForm::Folder(of), Kind::String(text)) => {
                let path = PathBuf::from(&**text);
                let is_plain = path.is_absolute() && !path.components().any(|part| part == Component::ParentDir);
                *of(self) = if text.is_empty() {
                    None
                } else {
                    Some(path).filter(|_| is_plain).map(Some).ok_or_else(refused)?
                };
            }
            (SettingForm::Web(of), Kind::Null) => *of(self) = None,
            (SettingForm::Web(of), Kind::String(text)) => {
                let address = || web_address(text).map(Some).ok_or_else(refused);
                *of(self) = if text.is_empty() { None } else { address()? };
            }
            (SettingForm::Count(..) | SettingForm::Time(..), Kind::String(text)) if text.parse::<f64>().is_ok() => {
                return Err(refused().with_help("remove the quotes"));
            }
            (SettingForm::Truth(_), Kind::String(text)) if text.parse::<bool>().is_ok() => {
                return Err(refused().with_help("remove the quotes"));
            }
            _ => return Err(refused()),
        }
        Ok(())
    }
}

/// An address that needs no secret, as one of releases.
fn web_address(text: &str) -> Option<String> {
    let is_one = matches!(SourceAddress::try_from(text.to_owned()), Ok(SourceAddress::Web(_)));
    Url::parse(text).ok().filter(|_| is_one).map(String::from)
}

fn unknown(name: &str, span: Span) -> Diagnostic {
    if let Some((foreign, why)) = FOREIGN.iter().find(|(foreign, _)| foreign.eq_ignore_ascii_case(name)) {
        return Diagnostic::warning(&codes::FOREIGN, span, format!("the setting {foreign} has no effect: {why}"));
    }
    let help = match meant(name) {
        Some(meant) => did_you_mean(meant),
        None => "'stead agent settings get' lists all settings".to_owned(),
    };
    Diagnostic::error(&codes::UNKNOWN, span, format!("unknown setting '{name}'")).with_help(help)
}

const KEYS: [&str; 4] = ["Days", "From", "To", "For"];

fn window(node: &Node) -> Result<Window, Wrong> {
    let form = "such as {Days: [Sat, Sun], From: \"22:00\", To: \"04:00\", For: Any}";
    let entries = node.entries().ok_or_else(|| Wrong::new(node.span, format!("a window must be an object {form}")))?;
    let (mut days, mut from, mut to, mut purpose) = (Vec::new(), None, None, Purpose::Any);
    for Entry { key, key_span, value } in entries {
        match KEYS.iter().find(|known| known.eq_ignore_ascii_case(key)) {
            Some(&"Days") => days = weekdays(value)?,
            Some(&"From") => from = Some(time_of_day(value)?),
            Some(&"To") => to = Some(time_of_day(value)?),
            Some(_) => purpose = purpose_of(value)?,
            None => {
                let wrong = Wrong::new(*key_span, format!("a window has no '{key}'"));
                return Err(wrong.with_help(format!("a window has {}", KEYS.join(", "))));
            }
        }
    }
    match (from, to) {
        (Some(from), Some(to)) => Ok(Window { days, from, to, purpose }),
        _ => Err(Wrong::new(node.span, "a window requires From and To").with_help(form)),
    }
}

fn purpose_of(node: &Node) -> Result<Purpose, Wrong> {
    let purpose = node.as_str().and_then(|text| word(&PURPOSES, text));
    purpose.ok_or_else(|| Wrong::new(node.span, format!("For must be one of {}", names(&PURPOSES).join(", "))))
}

/// Days in the order of the week, Monday being 1.
fn weekdays(node: &Node) -> Result<Vec<i8>, Wrong> {
    let wrong = |span| Wrong::new(span, "Days must be an array of days: Mon, Tue, Wed, Thu, Fri, Sat, Sun");
    let items = node.items().ok_or_else(|| wrong(node.span))?;
    let mut days = items.iter().map(|item| item.as_str().and_then(weekday).ok_or_else(|| wrong(item.span)));
    let mut days = days.by_ref().collect::<Result<Vec<_>, _>>()?;
    days.sort_unstable();
    days.dedup();
    Ok(days)
}

/// A day by the first letters of its name, at least three of them.
fn weekday(text: &str) -> Option<i8> {
    let is_meant =
        |day: &str| text.len() >= 3 && day.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text));
    (1..).zip(DAYS).find(|(_, day)| is_meant(day)).map(|(number, _)| number)
}

fn time_of_day(node: &Node) -> Result<Time, Wrong> {
    let time = node.as_str().and_then(|text| {
        let (hour, minute) = text.split_once(':')?;
        let number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?;
        Time::new(number(hour)?, number(minute).filter(|_| minute.len() == 2)?, 0, 0).ok()
    });
    time.ok_or_else(|| Wrong::new(node.span, "a time of day must be from \"00:00\" to \"23:59\", in quotes"))
}
