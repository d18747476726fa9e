//! Lists as users read them.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;

use stead_core::visible::visible;
use stead_protocol::{
    ActShown, CauseShown, ChangeShown, CheckShown, DriftShown, EventShown, FleetStatus, MachineShown, MachineState,
    PlanAnswer, ReportShown, SentReport,
};
use stead_report::table;
use stead_system::terminal::width;

/// Text as it is written on standard output: without colours where it is not a terminal.
pub(super) fn shown(text: &str) -> String {
    if std::io::stdout().is_terminal() {
        return text.to_owned();
    }
    anstream::adapter::strip_str(text).to_string()
}

fn listed(headings: &[&str], rows: &[Vec<String>], nothing: &str) -> String {
    if rows.is_empty() {
        return format!("{nothing}\n");
    }
    table(headings, rows, width(&std::io::stdout()))
}

pub(super) fn status(status: &FleetStatus) -> String {
    let count = |state: MachineState| status.machines.get(state.as_str()).copied().unwrap_or_default();
    let rows: Vec<_> = MachineState::ALL.map(|state| vec![state.as_str().to_owned(), count(state).to_string()]).into();
    let channels = status.channels.iter().map(|shown| {
        vec![shown.channel.clone(), shown.number.to_string(), shown.machines.to_string(), shown.applied.to_string()]
    });
    let channels = listed(&["Channel", "Release", "Machines", "Applied"], &channels.collect::<Vec<_>>(), "no channel");
    let unknown = status.channels.iter().filter(|shown| !shown.is_in_roster && shown.machines > 0);
    let unknown = unknown.map(|shown| {
        let channel = visible(&shown.channel);
        format!("note: the roster does not name '{channel}', so its machines do not know it (E1442): make a roster and publish it\n")
    });
    let (by_state, unknown) =
        (table(&["State", "Machines"], &rows, width(&std::io::stdout())), unknown.collect::<String>());
    format!("{by_state}\n{channels}{unknown}")
}

pub(super) fn machines(machines: &[MachineShown]) -> String {
    let row = |machine: &MachineShown| {
        let release = |release: &Option<(String, u64)>| {
            release.as_ref().map_or("-".to_owned(), |(channel, number)| format!("{channel}/{number}"))
        };
        let (has, wants) = (release(&machine.applied), release(&machine.desired));
        let release = if has == wants { has } else { format!("{has} > {wants}") };
        let heard = machine.heard.map_or("never".to_owned(), time);
        let refuses = machine.said.as_ref().and_then(|said| said.get("refuses")?.as_str());
        let refuses = refuses.map_or(String::new(), |code| format!(" ({})", visible(code)));
        let state = machine.state.as_str().to_owned() + &refuses;
        vec![machine.name.clone(), state, release, heard, labels_of(&machine.labels)]
    };
    let rows: Vec<_> = machines.iter().map(row).collect();
    listed(&["Name", "State", "Release", "Heard", "Labels"], &rows, "no machine matches")
}

/// The labels that were asked for, and how operators sign them.
pub(super) fn labels(machines: &[MachineShown]) -> String {
    let row = |machine: &MachineShown| {
        let roster = if machine.is_in_roster { labels_of(&machine.labels) } else { "not in the roster".to_owned() };
        vec![machine.name.clone(), roster, labels_of(&machine.asked)]
    };
    let rows: Vec<_> = machines.iter().map(row).collect();
    listed(&["Name", "Signed", "Asked for"], &rows, "no machine asks for labels that it does not have")
}

pub(super) fn drift(drift: &[DriftShown]) -> String {
    let rows = drift.iter().flat_map(|of_machine| {
        of_machine.instances.iter().map(|instance| {
            let (name, kind) = (instance.name.clone(), instance.kind.clone());
            vec![of_machine.machine.clone(), kind, name, instance.drift.join("; ")]
        })
    });
    listed(&["Machine", "Type", "Name", "Drift"], &rows.collect::<Vec<_>>(), "nothing drifted")
}

pub(super) fn failures(causes: &[CauseShown]) -> String {
    let row = |cause: &CauseShown| {
        let more = if cause.machines > cause.names.len() as u64 { " …" } else { "" };
        let code = cause.code.clone().unwrap_or_default();
        let names = cause.names.join(" ") + more;
        vec![cause.machines.to_string(), cause.kind.clone(), code, cause.message.clone(), names]
    };
    let rows: Vec<_> = causes.iter().map(row).collect();
    listed(&["Machines", "Type", "Code", "Message", "Names"], &rows, "nothing failed")
}

pub(super) fn checks(checks: &[CheckShown]) -> String {
    let row = |check: &CheckShown| {
        let checked = if check.checked { "yes" } else { "no" };
        vec![check.machine.clone(), check.state.as_str().to_owned(), checked.to_owned()]
    };
    let rows: Vec<_> = checks.iter().map(row).collect();
    listed(&["Name", "State", "Checked"], &rows, "no machine matches")
}

pub(super) fn plan(plan: &PlanAnswer) -> String {
    let row = |change: &ChangeShown| {
        let [from, to] = [&change.from, &change.to].map(|stated| stated.clone().unwrap_or_default());
        vec![change.kind.clone(), change.name.clone(), from, to]
    };
    let rows: Vec<_> = plan.changes.iter().map(row).collect();
    let nothing = if plan.is_new {
        "a new roster that states the same channels, machines, labels and holds"
    } else {
        "nothing changes"
    };
    listed(&["Kind", "Name", "From", "To"], &rows, nothing)
}

pub(super) fn reports(reports: &[ReportShown]) -> String {
    let row = |shown: &ReportShown| {
        let report = SentReport::within(&shown.report);
        let totals = report.get("totals").and_then(serde_json::Value::as_object).into_iter().flatten();
        let counts = totals.filter(|(_, count)| count.as_u64().is_some_and(|count| count > 0));
        let counts: Vec<_> = counts.map(|(status, count)| format!("{count} {status}")).collect();
        let result = report.get("result").and_then(serde_json::Value::as_str).unwrap_or_default();
        vec![shown.number.to_string(), time(shown.received), result.to_owned(), counts.join(", ")]
    };
    let rows: Vec<_> = reports.iter().map(row).collect();
    listed(&["Number", "Received", "Result", "Instances"], &rows, "no report is kept")
}

pub(super) fn acts(acts: &[ActShown]) -> String {
    let row = |act: &ActShown| {
        let body: serde_json::Value = serde_json::from_str(&act.act).unwrap_or_default();
        let text = |name: &str| body.get(name).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
        let at = body.get("at").and_then(serde_json::Value::as_u64).unwrap_or_default();
        vec![act.number.to_string(), time(at), text("by"), text("did")]
    };
    let rows: Vec<_> = acts.iter().map(row).collect();
    listed(&["Number", "Time", "By", "Act"], &rows, "no acts")
}

/// An event in a line.
pub(super) fn event(event: &EventShown) -> String {
    match event {
        EventShown::State { at, machine, from, to } => {
            let from = from.map_or(String::new(), |from| format!("{} > ", from.as_str()));
            format!("{} {} {from}{}\n", time(*at), visible(machine), to.as_str())
        }
        EventShown::Act { at, by, did, .. } => format!("{} {}: {}\n", time(*at), visible(by), visible(did)),
        EventShown::Missed => "events before this one are not known any more\n".to_owned(),
    }
}

fn labels_of(labels: &BTreeMap<String, String>) -> String {
    labels.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// A time that is stated in milliseconds.
fn time(at: u64) -> String {
    let at = i64::try_from(at).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    at.map_or("-".to_owned(), |at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}
