//! The unit files of a timer and its service, and the properties that they say.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use stead_core::value::{Object, Value};
use stead_host::provider::Context;

use crate::input::UnitName;
use crate::service::{assignments, own_unit_file};

/// The properties with the settings that they become, of the timer and of its service.
const TIMER: [(&str, &str); 9] = [
    ("onCalendar", "OnCalendar"),
    ("onActiveSec", "OnActiveSec"),
    ("onBootSec", "OnBootSec"),
    ("onStartupSec", "OnStartupSec"),
    ("onUnitActiveSec", "OnUnitActiveSec"),
    ("onUnitInactiveSec", "OnUnitInactiveSec"),
    ("accuracySec", "AccuracySec"),
    ("randomizedDelaySec", "RandomizedDelaySec"),
    ("persistent", "Persistent"),
];
const SERVICE: [(&str, &str); 4] =
    [("user", "User"), ("group", "Group"), ("workingDirectory", "WorkingDirectory"), ("command", "ExecStart")];

/// What a timer is, by properties: what has no value is not among them.
pub(super) struct Settings(BTreeMap<&'static str, Value>);

impl Settings {
    pub(super) fn of<const N: usize>(stated: [(&'static str, Option<Value>); N]) -> Self {
        Self(stated.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
    }

    /// What the unit files of that name say; `None` where there are none. A unit that is stated is not one of them.
    pub(super) fn find(cx: &Context, stem: &str, unit_is_stated: bool) -> Option<Self> {
        let own = format!("{stem}.service");
        let timer = own_unit_file(cx, &format!("{stem}.timer"));
        let service = own_unit_file(cx, &own).filter(|_| !unit_is_stated);
        if timer.is_none() && service.is_none() {
            return None;
        }
        let text = timer.unwrap_or_default();
        let mut found = BTreeMap::new();
        found.extend(last(&text, "Unit", "Description").map(|value| ("description", Value::from(value))));
        let of_timer = TIMER.iter().filter_map(|(property, key)| Some((*property, value(&text, "Timer", key)?)));
        found.extend(of_timer);
        let unit = last(&text, "Timer", "Unit").unwrap_or_else(|| own.clone());
        match service.filter(|_| unit == own) {
            Some(service) => {
                let of_service =
                    SERVICE.iter().filter_map(|(name, key)| Some((*name, value(&service, "Service", key)?)));
                found.extend(of_service);
            }
            None => _ = found.insert("unit", Value::from(unit)),
        }
        Some(Self(found))
    }

    /// Whether they say when it runs.
    pub(super) fn has_time(&self) -> bool {
        let first = ["onCalendar", "onActiveSec", "onBootSec", "onStartupSec"];
        first.iter().any(|name| self.0.contains_key(name))
    }

    /// The names of those that others do not share.
    pub(super) fn differing(&self, found: &Self) -> Vec<&'static str> {
        let names =
            ["description"].into_iter().chain(TIMER.iter().chain(&SERVICE).map(|(name, _)| *name)).chain(["unit"]);
        names.filter(|name| list(name, self.0.get(name)) != list(name, found.0.get(name))).collect()
    }

    /// As a state has them: as they are stated, where they are so.
    pub(super) fn properties(&self, stated: &Self) -> Object {
        let shown = |(name, value): (&&'static str, &Value)| {
            let same = stated.0.get(name).filter(|stated| list(name, Some(stated)) == list(name, Some(value)));
            ((*name).to_owned(), same.unwrap_or(value).clone())
        };
        self.0.iter().map(shown).collect()
    }

    fn lines(&self, keys: &[(&str, &str)]) -> String {
        let mut lines = String::new();
        for (property, key) in keys {
            for value in list(property, self.0.get(property)) {
                let _ = writeln!(lines, "{key}={value}");
            }
        }
        lines
    }
}

/// The text of a unit file with these settings.
pub(super) fn render(settings: &Settings, stem: &str, name: &str) -> String {
    let description = settings.lines(&[("description", "Description")]);
    let front = if description.is_empty() { String::new() } else { format!("[Unit]\n{description}\n") };
    if name == format!("{stem}.service") {
        return format!("{front}[Service]\nType=oneshot\n{}", settings.lines(&SERVICE));
    }
    let unit = settings.lines(&[("unit", "Unit")]);
    let unit = if unit == format!("Unit={stem}.service\n") { String::new() } else { unit };
    format!("{front}[Timer]\n{}{unit}\n[Install]\nWantedBy=timers.target\n", settings.lines(&TIMER))
}

/// The values of a property, one for each line that it becomes.
fn list(property: &str, value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(unit)) if property == "unit" => vec![UnitName(unit).whole()],
        None => Vec::new(),
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::Bool(on)) => vec![on.to_string()],
        Some(other) => other.as_str().map(str::to_owned).into_iter().collect(),
    }
}

/// The values of a key, of which an empty one takes back those before it.
fn all(text: &str, section: &str, key: &str) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    for (_, value) in assignments(text, section).into_iter().filter(|(found, _)| *found == key) {
        if value.is_empty() { values.clear() } else { values.push(value) }
    }
    values
}

fn last(text: &str, section: &str, key: &str) -> Option<String> {
    all(text, section, key).pop()
}

fn value(text: &str, section: &str, key: &str) -> Option<Value> {
    let mut values = all(text, section, key);
    match key {
        "Persistent" => {
            let on = ["1", "yes", "y", "true", "t", "on"];
            values.pop().map(|value| Value::from(on.iter().any(|word| value.eq_ignore_ascii_case(word))))
        }
        "OnCalendar" | "ExecStart" if values.len() > 1 => {
            Some(Value::Array(values.iter().map(|value| Value::from(value.as_str())).collect()))
        }
        _ => values.pop().map(Value::from),
    }
}
