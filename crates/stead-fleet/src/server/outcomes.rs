//! Reports as controllers read them.

use serde_json::Value;
use stead_protocol::{InstanceShown, MachineState, SentReport};

/// How many instances of a report are read at most, and how many characters of a message.
const MOST_INSTANCES: usize = 100;
const LONGEST_MESSAGE: usize = 300;

/// The part of a report by which machines are listed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Outcome {
    /// The number of the report.
    pub(super) number: u64,
    /// The state that it stands for.
    pub(super) state: MachineState,
    /// Instances that differ from the document.
    pub(super) drift: Vec<InstanceShown>,
    /// Causes of failures.
    pub(super) failures: Vec<FailureCause>,
}

/// The cause of a failure, without what differs from machine to machine: equal causes are one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct FailureCause {
    pub(super) kind: String,
    pub(super) code: Option<String>,
    pub(super) message: String,
}

impl Outcome {
    /// Reads a report: that of a run or a job, alone or as the member `report` of what a machine sends. `None` if it is not one.
    pub(super) fn read(number: u64, body: &[u8]) -> Option<Self> {
        let report = SentReport::within(&serde_json::from_slice(body).ok()?);
        let totals = report.get("totals");
        let result = report.get("result").and_then(Value::as_str);
        if totals.is_none() && result.is_none() {
            return None;
        }
        let has = |status| totals.and_then(|totals| totals.get(status)?.as_u64()).is_some_and(|count| count > 0);
        let state = match result {
            Some("failed") => MachineState::Failed,
            _ if has("failed") => MachineState::Failed,
            _ if has("drifted") || has("unknown") => MachineState::Drifted,
            Some("aborted") => MachineState::Pending,
            _ if has("pending") => MachineState::Pending,
            _ => MachineState::Converged,
        };
        let instances = report.get("instances").and_then(Value::as_array).into_iter().flatten();
        let with =
            |status: &'static str| move |each: &&Value| each.get("status").and_then(Value::as_str) == Some(status);
        let is_off = |each: &&Value| with("drifted")(each) || with("unknown")(each);
        let drift = instances.clone().filter(is_off).take(MOST_INSTANCES).map(drifted).collect();
        let failed = instances.filter(with("failed")).take(MOST_INSTANCES).map(FailureCause::of);
        let findings = report.get("errors").and_then(Value::as_array).into_iter().flatten();
        let mut failures: Vec<_> = failed.chain(findings.take(MOST_INSTANCES).map(FailureCause::of)).collect();
        failures.sort();
        failures.dedup();
        Some(Self { number, state, drift, failures })
    }

    /// What is known behind a report that says nothing of the machine.
    pub(super) fn nothing(number: u64, former: Option<&Self>) -> Self {
        let nothing = Self { number, state: MachineState::Unknown, drift: Vec::new(), failures: Vec::new() };
        former.map_or(nothing, |former| Self { number, ..former.clone() })
    }
}

impl FailureCause {
    /// The cause of an instance that failed, or of a finding.
    fn of(each: &Value) -> Self {
        let text = |name: &str| each.get(name).and_then(Value::as_str).unwrap_or_default();
        let code = each.get("code").and_then(Value::as_str).map(|code| limited(code).to_owned());
        Self {
            kind: limited(text("type")).to_owned(),
            code,
            message: without_names(limited(text("message")), text("name")),
        }
    }
}

fn drifted(each: &Value) -> InstanceShown {
    let text = |name: &str| limited(each.get(name).and_then(Value::as_str).unwrap_or_default()).to_owned();
    let strings = |name: &str, of: &dyn Fn(&Value) -> Option<String>| {
        let all = each.get(name).and_then(Value::as_array).into_iter().flatten();
        all.filter_map(of).take(MOST_INSTANCES).collect::<Vec<String>>()
    };
    let words = strings("drift", &|word| word.as_str().map(|word| limited(word).to_owned()));
    let paths = || strings("changes", &|change| change.get("path")?.as_str().map(|path| limited(path).to_owned()));
    // What cannot be known has a reason in place of what differs.
    let why = || Some(text("message")).filter(|why| !why.is_empty()).into_iter().collect();
    let drift = [words, paths()].into_iter().find(|known| !known.is_empty()).unwrap_or_else(why);
    InstanceShown { name: text("name"), kind: text("type"), drift }
}

fn limited(text: &str) -> &str {
    text.char_indices().nth(LONGEST_MESSAGE).map_or(text, |(end, _)| text.get(..end).unwrap_or(text))
}

/// The first line of a message with `…` in place of what differs from machine to machine: what is quoted, numbers, paths and the name of
/// the instance.
fn without_names(message: &str, name: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let (mut words, mut rest) = (String::new(), line);
    // What is quoted may have spaces in it. An apostrophe within a word quotes nothing.
    while let Some(at) = rest.char_indices().position(|(at, quote)| {
        let is_apart =
            rest.get(..at).and_then(|before| before.chars().next_back()).is_none_or(|last| !last.is_alphanumeric());
        matches!(quote, '\'' | '"' | '`') && is_apart
    }) {
        let Some((start, quote)) = rest.char_indices().nth(at) else { break };
        let (before, quoted) = rest.split_at(start);
        let Some((_, behind)) = quoted.get(1..).and_then(|quoted| quoted.split_once(quote)) else { break };
        words += before;
        words.push('…');
        rest = behind;
    }
    words += rest;
    let word = |word: &str| {
        let is_name = !name.is_empty() && word.trim_matches(|c: char| !c.is_alphanumeric()) == name;
        let differs = is_name || word.contains('/') || word.chars().any(|c| c.is_ascii_digit());
        if !differs {
            return word.to_owned();
        }
        let end = word.trim_end_matches([':', ',', ';', '.', ')']);
        format!("…{}", word.get(end.len()..).unwrap_or_default())
    };
    words.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_of_one_cause_are_the_same() {
        let same = [
            (
                ["cannot lock '/var/lib/dpkg/lock': held by process 812", "cannot lock '/x y': held by process 4"],
                "cannot lock …: held by process …",
            ),
            (["curl exited with 7: it's /tmp/a", "curl exited with 22: it's /b"], "curl exited with …: it's …"),
            (["web1: no room\nmore", "web1: no room"], "…: no room"),
            (["an 'open quote", "an 'open quote"], "an 'open quote"),
        ];
        for (messages, shown) in same {
            for message in messages {
                assert_eq!(without_names(message, "web1"), shown, "{message}");
            }
        }
        assert_ne!(without_names("no room", ""), without_names("no network", ""));
        for odd in ["", "'", "''", "a'", "\u{1f980}'\u{1f980}' b", "`\"'"] {
            let _ = without_names(odd, "\u{1f980}");
        }
    }

    #[test]
    fn a_report_is_read_as_runs_and_jobs_write_it() {
        let report = json!({ "version": 1, "totals": { "failed": 1, "drifted": 1 }, "instances": [
            { "name": "a", "type": "Stead/File", "status": "failed", "code": "E0901", "message": "cannot write '/a'" },
            { "name": "b", "type": "Stead/File", "status": "failed", "code": "E0901", "message": "cannot write '/b'" },
            { "name": "c", "type": "Stead/Line", "status": "drifted", "changes": [{ "path": "/content" }] },
            { "name": "d", "type": "Stead/Line", "status": "unchanged" },
            { "name": "e", "type": "Test/Bell", "status": "unknown", "message": "nobody hears it" },
        ] });
        for body in [report.to_string(), json!({ "number": 3, "report": report }).to_string()] {
            let outcome = Outcome::read(3, body.as_bytes()).unwrap();
            let cause = FailureCause {
                kind: "Stead/File".into(),
                code: Some("E0901".into()),
                message: "cannot write …".into(),
            };
            assert_eq!((outcome.state, outcome.failures), (MachineState::Failed, vec![cause]));
            let shown = |name: &str, kind: &str, drift: &str| InstanceShown {
                name: name.into(),
                kind: kind.into(),
                drift: vec![drift.into()],
            };
            assert_eq!(
                outcome.drift,
                [shown("c", "Stead/Line", "/content"), shown("e", "Test/Bell", "nobody hears it")]
            );
        }
        let state = |report: Value| Outcome::read(1, report.to_string().as_bytes()).map(|outcome| outcome.state);
        assert_eq!(state(json!({ "result": "failed", "errors": [{ "message": "no" }] })), Some(MachineState::Failed));
        assert_eq!(state(json!({ "result": "converged", "totals": { "drifted": 1 } })), Some(MachineState::Drifted));
        assert_eq!(state(json!({ "result": "notInState", "totals": { "unknown": 1 } })), Some(MachineState::Drifted));
        assert_eq!(state(json!({ "result": "converged", "totals": {} })), Some(MachineState::Converged));
        assert_eq!(state(json!({ "result": "aborted" })), Some(MachineState::Pending));
        assert_eq!(state(json!({ "number": 4 })), None);
        assert_eq!(Outcome::read(1, b"{"), None);
    }
}
