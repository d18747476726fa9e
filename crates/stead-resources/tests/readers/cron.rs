//! Tables and jobs of cron.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{accepted, has, has_namespace, in_namespace, is_set, path, printed, text, values, written};
use crate::support::World;
use proptest::sample::select;
use serde_json::json;

/// Returns what cron makes of a command: the text for the shell, and its standard input.
fn parts_of_job(command: &str) -> (String, String) {
    let (mut parts, mut escaped) = (vec![String::new()], false);
    for letter in command.chars() {
        let is_command = parts.len() == 1;
        let Some(part) = parts.last_mut() else { continue };
        if letter == '%' && !escaped {
            parts.push(String::new());
        } else {
            // A backslash in front of another one goes only where the command is.
            if escaped && (letter == '%' || letter == '\\' && is_command) {
                part.pop();
            }
            part.push(letter);
        }
        escaped = letter == '\\' && !escaped;
    }
    let input = parts.split_off(1);
    let end = if input.last().is_some_and(|last| !last.is_empty()) { "\n" } else { "" };
    (parts.concat(), input.join("\n") + end)
}

/// Runs cron until `count` jobs have run, or none has for 20 s. Returns what each was given, by its number: the command, a
/// variable and the standard input.
fn run_by_cron(root: &Path, results: &Path, count: usize) -> BTreeMap<usize, Vec<String>> {
    let script =
        "mount --bind \"$1/etc/cron.d\" /etc/cron.d; mount -t tmpfs tmpfs /run; mount -t tmpfs tmpfs /var/spool/cron
        mkdir -p /var/spool/cron/crontabs; test ! -e /etc/crontab || mount --bind /dev/null /etc/crontab; exec cron -f";
    let mut cron = in_namespace(script).arg(root).spawn().unwrap();
    let names = || fs::read_dir(results).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let done = || names().filter(|name| !name.contains('.')).count();
    let (mut seen, mut since) = (0, Instant::now());
    while seen < count && since.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
        if done() > seen {
            (seen, since) = (done(), Instant::now());
        }
    }
    cron.kill().unwrap();
    cron.wait().unwrap();
    let read = |name: String| {
        let text = fs::read_to_string(results.join(&name)).unwrap();
        Some((name.parse().ok()?, text.splitn(3, '\0').map(str::to_owned).collect()))
    };
    names().filter_map(read).collect()
}

#[test]
fn cron_runs_what_was_meant() {
    if !has("cron", "cron") || !has_namespace("cron") {
        return;
    }
    let world = World::build("dir etc/cron.d 0755");
    let results = world.root.path().join("results");
    fs::create_dir(&results).unwrap();
    let shell = world.root.path().join("shell");
    fs::write(
        &shell,
        "#!/bin/sh\n{ printf '%s\\0' \"$2\" \"$A\"; cat; } >\"$OUT.part\" && mv \"$OUT.part\" \"$OUT\"\n",
    )
    .unwrap();
    fs::set_permissions(&shell, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut meant = BTreeMap::new();
    let tried = values((text(), text()), 60);
    let count = tried.len();
    for (number, (command, variable)) in tried.into_iter().enumerate() {
        let environment = json!({"A": variable, "SHELL": shell, "OUT": results.join(number.to_string())});
        let desired = json!({"name": format!("n{number}"), "user": "root", "schedule": "@reboot", "command": command, "environment": environment});
        if is_set(&world, "Stead/Cron", &desired) {
            let (line, input) = parts_of_job(command.trim_matches([' ', '\t']));
            meant.insert(number, vec![line, variable, input]);
        }
    }
    let found = run_by_cron(world.root.path(), &results, meant.len());
    let wrong: Vec<_> = meant.iter().filter(|(number, job)| found.get(number) != Some(job)).collect();
    let read: Vec<_> = wrong.iter().map(|(number, _)| found.get(number)).collect();
    assert!(wrong.is_empty(), "meant: {wrong:?}\nread: {read:?}");
    accepted("Stead/Cron", meant.len(), count, 25);
}

#[test]
fn cron_reads_tables() {
    if !has("cron", "crontab") {
        return;
    }
    let given = format!("{}dir var/spool/cron/crontabs 0755\n", crate::support::USERS);
    let schedules = select(vec!["@daily", "*/5 4 * * mon-fri", "0 0 1,15 * 0-7/2", "59 23 31 dec Sun", "@reboot"]);
    let mut read = 0;
    let tried = values((schedules, text(), text()), 60);
    let count = tried.len();
    for (schedule, command, variable) in tried {
        let desired = json!({"name": "n", "table": "user", "user": "u", "schedule": schedule, "command": command, "environment": {"A": variable}});
        let Some(world) = written(&given, "Stead/Cron", &desired) else { continue };
        read += 1;
        let table = path(&world, "var/spool/cron/crontabs/u");
        printed("crontab", &["-n", &table], &(desired, fs::read_to_string(&table)));
    }
    accepted("Stead/Cron of a user", read, count, 25);
}
