//! Settings of unit files that systemd ignores or takes otherwise than they look: it reports them to its journal alone, and where
//! no systemd runs nobody does.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use stead_core::diag::{did_you_mean, nearest};
use stead_core::value::{Object, Value};
use stead_host::provider::Lint;

use super::Properties;
use crate::text::{Setting, settings};

/// The settings of each section that systemd 252 knows, as `systemd --dump-configuration-items` lists them.
static KNOWN: LazyLock<BTreeMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let mut known: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut section = "";
    for line in include_str!("settings.txt").lines() {
        match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(name) => section = name,
            None => known.entry(section).or_default().extend(line.split(' ')),
        }
    }
    known
});

/// Settings that have one of a few words.
const WORDS: [(&str, &[&str]); 3] = [
    ("Restart", &["no", "on-success", "on-failure", "on-abnormal", "on-watchdog", "on-abort", "always"]),
    ("Type", &["simple", "exec", "forking", "oneshot", "dbus", "notify", "notify-reload", "idle"]),
    ("KillMode", &["control-group", "process", "mixed", "none"]),
];

/// Operators of a shell; ';' is one of systemd.
const OPERATORS: [&str; 9] = ["&&", "||", "|", ">", ">>", "<", "2>&1", "&", "2>/dev/null"];

/// Finds them in the unit file and the drop-ins of a service.
pub(super) fn lints(properties: &Object) -> Vec<Lint> {
    let unit = properties.get(Properties::UNIT).and_then(Value::as_str).map(|text| (vec![Properties::UNIT], text));
    let drop_ins = properties.get(Properties::DROP_INS).and_then(Value::as_object).into_iter().flatten();
    let drop_ins = drop_ins.filter_map(|(name, text)| Some((vec![Properties::DROP_INS, name], text.as_str()?)));
    let all = unit.into_iter().chain(drop_ins);
    all.flat_map(|(place, text)| in_text(&place, text)).collect()
}

fn in_text(place: &[&str], text: &str) -> Vec<Lint> {
    let lint = |setting: Setting<'_>| {
        let (message, help) = ignored(&setting)?;
        Some(Lint::new(place, format!("line {} of the unit: {message}", setting.line), help))
    };
    settings(text).into_iter().filter_map(lint).collect()
}

fn ignored(setting: &Setting<'_>) -> Option<(String, String)> {
    let Setting { section, key, value, .. } = setting;
    let known = KNOWN.get(section)?;
    if !known.contains(key) {
        return unknown(section, key, known);
    }
    if let Some((_, words)) = WORDS.iter().find(|(name, _)| *section == "Service" && name == key) {
        let is_word = value.is_empty() || value.contains('%') || words.contains(&value.as_str());
        let message = format!("systemd ignores this value of {key}=");
        return (!is_word).then(|| (message, format!("write one of {}", words.join(", "))));
    }
    let is_command = key.starts_with("Exec") && matches!(*section, "Service" | "Socket" | "Mount" | "Swap");
    let first = value.trim_start_matches(['-', '@', ':', '+', '!']).split_whitespace().next().unwrap_or_default();
    let program = first.rsplit('/').next().unwrap_or_default();
    let operator =
        value.split_whitespace().find(|word| OPERATORS.contains(word)).filter(|_| is_command && program != "expr");
    if let Some(operator) = operator {
        let message = format!("'{operator}' is an argument in {key}=: systemd starts no shell");
        return Some((message, format!("write {key}=/bin/sh -c '…', or a setting for each command")));
    }
    (is_command && first == "cd").then(|| {
        let message = format!("{key}= starts a program, and 'cd' is a command of the shell");
        (message, "write WorkingDirectory= with the directory".to_owned())
    })
}

/// The finding about a setting that systemd 252 does not know in this section. A later one knows more, so that only what is near to one
/// that it knows, or is one of another section, is reported.
fn unknown(section: &str, key: &str, known: &[&str]) -> Option<(String, String)> {
    if key.starts_with("X-") {
        return None;
    }
    if let Some((other, _)) = KNOWN.iter().find(|(_, known)| known.contains(&key)) {
        let others = KNOWN.iter().filter(|(_, known)| known.contains(&key)).count();
        let place = if others > 1 && KNOWN.get("Service").is_some_and(|known| known.contains(&key)) {
            "Service"
        } else {
            other
        };
        let message = format!("systemd ignores {key}= in the section [{section}]");
        return Some((message, format!("write it in the section [{place}]")));
    }
    let meant = nearest(key, known.iter().copied())?;
    Some((format!("systemd ignores {key}=, which it does not know"), did_you_mean(&format!("{meant}="))))
}
