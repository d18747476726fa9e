//! Units, drop-ins and timers of systemd.

use std::fs;

use super::{accepted, has, path, printed, run, text, values, written};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

#[test]
fn systemd_reads_timers() {
    if !has("systemd", "systemd-analyze") {
        return;
    }
    let events = vec![
        "daily",
        "Mon..Fri *-*-* 04:00",
        "*:0/15",
        "Sat,Sun 12:05 UTC",
        "12-24",
        "*-*~1 23:59:59",
        "Thu,Fri 2027-*-1,5 11:12:13",
    ];
    let mut read = 0;
    let tried = values((select(events), text(), text(), text()), 30);
    let count = tried.len();
    for (event, description, user, argument) in tried {
        let desired = json!({
            "name": "n", "onCalendar": event, "description": description, "user": user, "workingDirectory": "/",
            "command": format!("/bin/true {argument}"),
        });
        let Some(world) = written("dir etc/systemd/system 0755", "Stead/Timer", &desired) else { continue };
        read += 1;
        let units = ["timer", "service"].map(|kind| path(&world, &format!("etc/systemd/system/n.{kind}")));
        let output = run("systemd-analyze", &["verify", "--man=no", "--recursive-errors=no", &units[0], &units[1]]);
        let said = String::from_utf8_lossy(&output.stderr);
        // That there is no such user is another matter.
        // What follows a backslash in a command line is taken as it is.
        let is_flaw = |line: &&str| {
            line.contains(&*world.root.path().display().to_string())
                && !line.contains("Ignoring unknown escape sequences")
        };
        let about_file: Vec<&str> = said.lines().filter(is_flaw).collect();
        assert!(about_file.is_empty(), "{desired}: {about_file:?} {:?}", fs::read_to_string(&units[1]));
        printed("systemd-analyze", &["calendar", event], &desired);
    }
    accepted("Stead/Timer", read, count, 5);
}

/// Texts of unit files with what their authors may have meant otherwise.
fn unit_text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        6 => select(vec!["[Unit]", "[Service]", "[Install]", "[X-Own]", "ExecStop=/bin/true", "Description=a", "WantedBy=multi-user.target", "# c", "; c", ""]),
        2 => select(vec!["[unit]", " [Unit] ", "[Unit", "[Unit]x", "[]", "WantedBy=x", "Alias=a@.service", "A", "=", "=a", "Description", "Description=\\", "\\", " # c", "\u{feff}[Unit]", "\t"]),
    ];
    let line = prop_oneof![4 => line.prop_map(str::to_owned), 1 => text().prop_map(|text| format!("Description={text}")), 1 => text()];
    proptest::collection::vec(line, 0..5).prop_map(|lines| lines.join("\n"))
}

/// The words of systemd about a service with its drop-ins that it ignores a part of, but for keys that it does not know.
fn ignored_of(service: &str) -> Vec<String> {
    let output = run("systemd-analyze", &["verify", "--man=no", "--recursive-errors=no", service]);
    let said = String::from_utf8_lossy(&output.stderr);
    let is_flaw =
        |line: &&str| line.starts_with(service) && !line.contains("Unknown key") && !line.contains("escape sequence");
    said.lines().filter(is_flaw).map(str::to_owned).collect()
}

#[test]
fn systemd_reads_units() {
    if !has("units", "systemd-analyze") {
        return;
    }
    let mut read = 0;
    let tried = values((unit_text(), unit_text()), 40);
    let count = tried.len();
    for (at, (unit, drop_in)) in tried.into_iter().enumerate() {
        let start = "[Service]\nExecStart=/bin/true\n";
        let (unit, drop_in) = if at % 2 == 0 { (unit, "[Unit]".to_owned()) } else { (String::new(), drop_in) };
        let desired =
            json!({"name": "n", "unit": format!("{start}{unit}\n"), "dropIns": {"d": format!("{drop_in}\n")}});
        let Some(world) = written("dir etc/systemd/system 0755", "Stead/Service", &desired) else { continue };
        read += 1;
        let ignored = ignored_of(&path(&world, "etc/systemd/system/n.service"));
        assert!(ignored.is_empty(), "{desired}: {ignored:?}");
    }
    accepted("Stead/Service", read, count, 15);
}

/// Lines behind a key that systemd does not know, and a section of others, is still read.
#[test]
fn systemd_reads_on_behind_unknown_keys() {
    if !has("unknown keys", "systemd-analyze") {
        return;
    }
    let mut read = 0;
    let tried = values((text(), text()), 40);
    let count = tried.len();
    // A backslash at the end has the next line belong to the value, whatever it is; a carriage return is of the end.
    let goes_on = |text: &str| text.trim_end_matches('\r').ends_with('\\');
    for (value, of_others) in tried.into_iter().filter(|(one, other)| !goes_on(one) && !goes_on(other)) {
        let unit = format!(
            "[Service]\nExecStart=/bin/true\nNoSuch={value}\nMarker=1\n[X-Own]\nAny={of_others}\n[Unit]\nAnother=1\n"
        );
        let given = "dir etc/systemd/system 0755";
        let Some(world) = written(given, "Stead/Service", &json!({"name": "n", "unit": unit})) else { continue };
        read += 1;
        let service = path(&world, "etc/systemd/system/n.service");
        let output = run("systemd-analyze", &["verify", "--man=no", "--recursive-errors=no", &service]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("'Marker'") && said.contains("'Another'"), "{unit:?}: {said}");
    }
    accepted("Stead/Service, unknown keys", read, count, 25);
}

#[test]
fn systemd_reads_drop_ins_of_every_name() {
    if !has("drop-ins", "systemd-analyze") {
        return;
    }
    let mut read = 0;
    let tried = values(text(), 40);
    let count = tried.len();
    for name in tried {
        let desired = json!({"name": "n", "dropIns": {&*name: "[Unit]\nNoSuchKey=1\n"}});
        let given = "file etc/systemd/system/n.service 0644 \"[Service]\\nExecStart=/bin/true\\n\"";
        let Some(world) = written(given, "Stead/Service", &desired) else { continue };
        read += 1;
        let service = path(&world, "etc/systemd/system/n.service");
        let output = run("systemd-analyze", &["verify", "--man=no", "--recursive-errors=no", &service]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("Unknown key"), "{name:?} is not read: {said}");
    }
    accepted("Stead/Service, names of drop-ins", read, count, 25);
}

#[test]
fn systemd_reads_spans_of_time() {
    if !has("spans", "systemd-analyze") {
        return;
    }
    let part = select(vec![
        "1", "15", "0", "2h", "1 min", "3 weeks", "5M", "1.5", "-1", "s", "us", "1y 2d", "infinity", " ", "x", "90sec",
        "4hr", "1msec", "2months", "0s",
    ]);
    let mut read = 0;
    let tried = values(proptest::collection::vec(part, 1..4), 60);
    let count = tried.len();
    for parts in tried {
        let span = parts.join(" ");
        let desired = json!({"name": "n", "onBootSec": span, "command": "/bin/true"});
        if written("dir etc/systemd/system 0755", "Stead/Timer", &desired).is_some() {
            read += 1;
            printed("systemd-analyze", &["timespan", &span], &desired);
        }
    }
    accepted("spans of time", read, count, 15);
}

#[test]
fn systemd_and_the_timer_agree_on_calendar_events() {
    if !has("systemd", "systemd-analyze") {
        return;
    }
    let part = select(vec![
        "Mon",
        "fri",
        "Sat..Sun",
        "Sun..Mon",
        "daily",
        "*-*-*",
        "*-13-1",
        "2027-2-3",
        "1-1",
        "*~2",
        "12:00",
        "*:0/7",
        "24:00",
        "1:2:3.5",
        "UTC",
        "Europe/Berlin",
        "x",
        "1..3:0",
        "3..1:0",
        "*",
        "0/0:0",
        "@12",
        "Mon,",
    ]);
    for parts in values(proptest::collection::vec(part, 1..4), 60) {
        let event = parts.join(" ");
        let desired = json!({"name": "n", "onCalendar": event, "command": "/bin/true"});
        let is_accepted = written("dir etc/systemd/system 0755", "Stead/Timer", &desired).is_some();
        let reads = run("systemd-analyze", &["calendar", "--iterations=0", &event]).status.success();
        assert_eq!(is_accepted, reads, "{event}");
    }
}
