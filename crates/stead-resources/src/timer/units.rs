//! The unit files of a timer and its service, and the properties that they say.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use stead_core::destruction::ItemKind;
use stead_core::value::{Object, Value};
use stead_host::provider::Context;

use super::Properties;
use crate::service::own_unit_file;
use crate::text::{assignments, whole_name};

/// The properties with the settings that they become, of the timer and of its service.
const TIMER: [(&str, &str); 9] = [
    (Properties::ON_CALENDAR, "OnCalendar"),
    (Properties::ON_ACTIVE_SEC, "OnActiveSec"),
    (Properties::ON_BOOT_SEC, "OnBootSec"),
    (Properties::ON_STARTUP_SEC, "OnStartupSec"),
    (Properties::ON_UNIT_ACTIVE_SEC, "OnUnitActiveSec"),
    (Properties::ON_UNIT_INACTIVE_SEC, "OnUnitInactiveSec"),
    (Properties::ACCURACY_SEC, "AccuracySec"),
    (Properties::RANDOMIZED_DELAY_SEC, "RandomizedDelaySec"),
    (Properties::PERSISTENT, "Persistent"),
];
const SERVICE: [(&str, &str); 4] = [
    (Properties::USER, "User"),
    (Properties::GROUP, "Group"),
    (Properties::WORKING_DIRECTORY, "WorkingDirectory"),
    (Properties::COMMAND, "ExecStart"),
];

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
        let service = service_of(cx, stem).filter(|_| !unit_is_stated);
        if timer.is_none() && service.is_none() {
            return None;
        }
        let text = timer.unwrap_or_default();
        let mut found = BTreeMap::new();
        found.extend(last(&text, "Unit", "Description").map(|value| (Properties::DESCRIPTION, Value::from(value))));
        let of_timer = TIMER.iter().filter_map(|(property, key)| Some((*property, value(&text, "Timer", key)?)));
        found.extend(of_timer);
        let unit = last(&text, "Timer", "Unit").unwrap_or_else(|| own.clone());
        match service.filter(|_| unit == own) {
            Some(service) => {
                let of_service =
                    SERVICE.iter().filter_map(|(name, key)| Some((*name, value(&service, "Service", key)?)));
                found.extend(of_service);
            }
            None => _ = found.insert(Properties::UNIT, Value::from(unit)),
        }
        Some(Self(found))
    }

    /// Returns whether the file of the timer, or that of its service, says something else.
    pub(super) fn differ_in(&self, found: &Self, in_timer: bool) -> bool {
        let of_service = |name: &str| SERVICE.iter().any(|(property, _)| *property == name);
        self.differing(found).into_iter().any(|name| of_service(name) != in_timer)
    }

    /// The names of those that others do not share.
    pub(super) fn differing(&self, found: &Self) -> Vec<&'static str> {
        let names = [Properties::DESCRIPTION]
            .into_iter()
            .chain(TIMER.iter().chain(&SERVICE).map(|(name, _)| *name))
            .chain([Properties::UNIT]);
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

    /// The settings of the timer's unit file that are stated.
    pub(super) fn timer_settings(&self) -> String {
        let unit = self.lines(&[(Properties::DESCRIPTION, "Description")]);
        format!("[Unit]\n{unit}[Timer]\n{}{}", self.lines(&TIMER), self.lines(&[(Properties::UNIT, "Unit")]))
    }

    /// The settings of its service that are stated.
    pub(super) fn service_settings(&self) -> String {
        format!("[Service]\n{}", self.lines(&SERVICE))
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

/// How a file begins that was written here.
const MARK: &str = "# Managed by stead";

/// Returns whether a unit file was written here.
pub(super) fn is_marked(text: &str) -> bool {
    text.starts_with(MARK)
}

/// The unit file of the service that belongs to a timer: one that stands by itself only if it was written here.
pub(super) fn service_of(cx: &Context, stem: &str) -> Option<String> {
    let has_timer = || own_unit_file(cx, &format!("{stem}.timer")).is_some();
    own_unit_file(cx, &format!("{stem}.service")).filter(|text| is_marked(text) || has_timer())
}

/// The text of a unit file with these settings.
pub(super) fn render(settings: &Settings, stem: &str, name: &str) -> String {
    let mark = format!("{MARK}: changes here are overwritten, those in {name}.d are kept.\n");
    let description = settings.lines(&[(Properties::DESCRIPTION, "Description")]);
    let front = if description.is_empty() { mark } else { format!("{mark}[Unit]\n{description}\n") };
    if name == format!("{stem}.service") {
        return format!("{front}[Service]\nType=oneshot\n{}", settings.lines(&SERVICE));
    }
    let unit = settings.lines(&[(Properties::UNIT, "Unit")]);
    let unit = if unit == format!("Unit={stem}.service\n") { String::new() } else { unit };
    format!("{front}[Timer]\n{}{unit}\n[Install]\nWantedBy=timers.target\n", settings.lines(&TIMER))
}

/// The lines of a unit file that another one does not have, besides the settings that the state shows.
pub(super) fn lost_lines(former: &str, new: &str, found: Option<&Settings>) -> Vec<ItemKind> {
    let is_started = found.is_some_and(|found| !found.0.contains_key(Properties::UNIT));
    let is_shown = |section: &str, key: &str| match section {
        _ if found.is_none() => false,
        "Service" if !is_started => false,
        "Timer" => key == "Unit" || TIMER.iter().any(|(_, each)| *each == key),
        "Service" => SERVICE.iter().any(|(_, each)| *each == key),
        _ => false,
    };
    let (mut section, mut continues, mut lost) = ("", None, Vec::new());
    for (number, line) in (1..).zip(former.lines()) {
        let text = line.trim();
        let name = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        section = name.filter(|_| continues.is_none()).unwrap_or(section);
        let key = text.split_once('=').map_or("", |(key, _)| key.trim());
        let shown = continues.unwrap_or_else(|| is_shown(section, key));
        continues = text.ends_with('\\').then_some(shown);
        if !text.is_empty() && !shown && new.lines().all(|each| each.trim() != text) {
            lost.push(ItemKind::Line { number, text: line.to_owned() });
        }
    }
    lost
}

/// The values of a property, one for each line that it becomes.
fn list(property: &str, value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(unit)) if property == Properties::UNIT => vec![whole_name(unit)],
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
