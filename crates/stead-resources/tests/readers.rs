//! Written values are read back: the resources write values of all kinds, and the programs that the files are for read
//! them. A value that a resource accepts must be read as stated.
//!
//! `STEAD_READERS=1000` tries so many values of each format, and says how many of them were accepted. A reader
//! that is not installed is skipped; Debian has them in the packages apt, cron, kmod, logrotate, openssh-client,
//! openssh-server, procps, python3, python3-yaml, sudo, systemd and util-linux. Those that read at fixed places need root, and get
//! mounts of their own.

#![expect(clippy::disallowed_methods, reason = "a test looks at its own files as it likes")]
#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value as Json, json};
use stead_core::call::Execution;
use stead_host::provider::Plain;
use support::{World, provider};

/// Texts with what formats give a meaning: signs of comments and of quoting, blanks at the ends, letters of all kinds; and
/// long ones, which readers with a buffer cut.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => select(vec!["a", "b c", "Z9", "\u{e4}", "/x", "1.0", "x=y", "true", "\u{20ac}", "\u{1f600}"]),
        3 => select(vec![" ", "\t", "\"", "'", "\\", "#", ";", "%", "%%", "=", ":", ",", "[", "]", "{", "}", "$", "!", "&", "*", "-", "@", "~", "|", "<", ">", "`", "\\\\", "\\n", "\\040", "%n", "${A}"]),
        1 => select(vec!["\0", "\u{1}", "\u{7f}", "\u{85}", "\u{a0}", "\u{2028}", "\u{feff}", "\n", "\r"]),
    ];
    let short = proptest::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat());
    let long =
        (select(vec!["x", "\u{e4}", "a b", "\\", "%"]), 30..3000_usize).prop_map(|(piece, count)| piece.repeat(count));
    prop_oneof![24 => short, 1 => long]
}

/// Random values, different ones in each run: `STEAD_READERS` many, else `usual`.
fn values<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>, usual: usize) -> Vec<T> {
    let mut runner = TestRunner::default();
    let count = stead_testkit::times("STEAD_READERS", usual);
    (0..count).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

/// A tree with a state in it that was set, if the resource accepts it.
fn written(given: &str, type_name: &str, desired: &Json) -> Option<World> {
    let world = World::build(given);
    is_set(&world, type_name, desired).then_some(world)
}

/// Sets a state, and returns whether the resource accepts it. What it refuses, it refuses by the name of a property.
fn is_set(world: &World, type_name: &str, desired: &Json) -> bool {
    let set = provider(type_name).set(&world.context_for(type_name), &Plain::new(desired.clone()), Execution::Actual);
    let Err(failure) = set else { return true };
    assert!(failure.property.is_some(), "{type_name} refuses {desired} without naming a property: {}", failure.message);
    false
}

fn has(test: &str, program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap().status.success();
    if !found {
        stead_testkit::skip(test, &format!("there is no {program}"));
    }
    found
}

fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).env("LC_ALL", "C.UTF-8").output().unwrap()
}

/// Runs a program that must succeed, and returns its output.
fn printed(program: &str, arguments: &[&str], about: &dyn std::fmt::Debug) -> String {
    let output = run(program, arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} refuses {about:?}: {said}{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stdout).unwrap()
}

/// Prints how many of some values were accepted. Where most are refused, hardly anything is tried.
fn accepted(format: &str, accepted: usize, tried: usize, percent: usize) {
    // Not by the macro, whose output is shown of failed tests only.
    let _ = writeln!(std::io::stderr(), "{format}: {accepted} of {tried} values were accepted and read as stated");
    // Of a few values chance may have all refused.
    let least = (tried * percent / 100).saturating_sub(10);
    assert!(accepted >= least, "{format}: only {accepted} of {tried} values are accepted");
}

/// Returns whether a shell can have mounts of its own. Reports the test as skipped if not.
fn has_namespace(test: &str) -> bool {
    let probe = Command::new("unshare").args(["--mount", "true"]).output();
    let works = rustix::process::geteuid().is_root() && probe.is_ok_and(|output| output.status.success());
    if !works {
        stead_testkit::skip(test, "mounts of one's own need root");
    }
    works
}

/// A shell with mounts of its own. Its arguments follow.
fn in_namespace(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-ec", script, "sh"]).env("LC_ALL", "C.UTF-8");
    command
}

fn output_of(command: &mut Command, about: &dyn std::fmt::Debug) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{about:?}: {said}{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stdout).unwrap()
}

fn path(world: &World, name: &str) -> String {
    world.root.path().join(name).display().to_string()
}

/// Has Python read files, each with what it was meant to be; one process reads all.
fn python(script: &str, files: &[(PathBuf, Json)]) {
    let list: Vec<Json> = files.iter().map(|(path, meant)| json!([path, meant])).collect();
    let folder = tempfile::tempdir().unwrap();
    let (at, program) = (folder.path().join("list.json"), folder.path().join("read.py"));
    fs::write(&at, json!(list).to_string()).unwrap();
    let same = "def same(a, b):\n    if type(a) != type(b): return False\n    if isinstance(a, dict): return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)\n    if isinstance(a, list): return len(a) == len(b) and all(map(same, a, b))\n    return a == b\n";
    let frame = format!(
        "import json, sys\n{same}{script}\nfor path, meant in json.load(open(sys.argv[1])):\n    try: found = read(path)\n    except Exception as e: sys.exit(f'{{path}} {{open(path, newline=\"\").read()!r}}: {{e}}')\n    if not same(found, meant): sys.exit(f'{{path}}: {{found!r}}, not {{meant!r}}')\n"
    );
    fs::write(&program, frame).unwrap();
    printed("python3", &[program.to_str().unwrap(), at.to_str().unwrap()], &"what was written");
}

fn has_python(test: &str, module: &str) -> bool {
    if !has(test, "python3") {
        return false;
    }
    let found = run("python3", &["-c", &format!("import {module}")]).status.success();
    if !found {
        stead_testkit::skip(test, &format!("python3 has no {module}"));
    }
    found
}

/// Values of all types, numbers with and without points among them.
fn value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        3 => text().prop_map(Json::from),
        1 => any::<bool>().prop_map(Json::from),
        1 => any::<i64>().prop_map(Json::from),
        1 => prop_oneof![any::<f64>(), (-9.0..9.0_f64).prop_map(f64::round)].prop_filter_map("a number", |number| serde_json::Number::from_f64(number).map(Json::Number)),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Json::Array),
            proptest::collection::btree_map(text(), inner, 0..3)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

/// Values of structured files: of what is accepted, how much Python reads as it was meant.
fn structured(type_name: &str, given: &str, script: &str) {
    let mut files = Vec::new();
    let mut worlds = Vec::new();
    let tried = values((text(), value()), 40);
    let count = tried.len();
    for (name, value) in tried {
        let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        let desired = json!({"path": "f", "pointer": pointer, "value": value, "create": true});
        let Some(world) = written(given, type_name, &desired) else { continue };
        let mut meant = json!({"kept": [1, "x"]});
        meant[name] = value;
        files.push((world.root.path().join("f"), meant));
        worlds.push(world);
    }
    python(script, &files);
    accepted(type_name, files.len(), count, 50);
}

#[test]
fn json_is_read_as_it_was_meant() {
    if has_python("json", "json") {
        let script = "def read(path): return json.load(open(path, encoding='utf-8'))";
        structured("Stead/Json", "file f 0644 \"{\\\"kept\\\": [1, \\\"x\\\"]}\\n\"", script);
    }
}

#[test]
fn toml_is_read_as_it_was_meant() {
    if has_python("toml", "tomllib") {
        let script = "import tomllib\ndef read(path): return tomllib.load(open(path, 'rb'))";
        structured("Stead/Toml", "file f 0644 \"kept = [1, \\\"x\\\"]\\n\"", script);
    }
}

#[test]
fn yaml_is_read_as_it_was_meant() {
    if has_python("yaml", "yaml") {
        let script = "import yaml\ndef read(path): return yaml.safe_load(open(path, encoding='utf-8'))";
        structured("Stead/Yaml", "file f 0644 \"kept: [1, x]\\n\"", script);
    }
}

#[test]
fn ini_is_read_as_it_was_meant() {
    if !has_python("ini", "configparser") {
        return;
    }
    let (mut files, mut worlds) = (Vec::new(), Vec::new());
    // A colon in a key is a sign behind one for this reader, and for no other.
    let tried = values((text(), text().prop_filter("no colon", |key| !key.contains(':')), text()), 60);
    let count = tried.len();
    for (section, key, value) in tried {
        let desired = json!({"path": "f", "section": section, "key": key, "value": value});
        let given = "file f 0644 \"[kept]\\nk = 1,\\n  2\\nother = x\\n\"";
        let Some(world) = written(given, "Stead/Ini", &desired) else { continue };
        let mut meant = json!({"kept": {"k": "1,\n2", "other": "x"}});
        let trimmed = value.trim();
        meant[section][key] = json!(trimmed);
        files.push((world.root.path().join("f"), meant));
        worlds.push(world);
    }
    let script = "import configparser\ndef read(path):\n    parser = configparser.RawConfigParser(default_section='no such section')\n    parser.optionxform = str\n    parser.read_file(open(path, encoding='utf-8', newline='\\n'))\n    return {s: dict(parser[s]) for s in parser.sections()}";
    python(script, &files);
    accepted("Stead/Ini", files.len(), count, 15);
}

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
    let given = format!("{}dir var/spool/cron/crontabs 0755\n", support::USERS);
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

#[test]
fn sudo_reads_rules() {
    if !has("sudo", "visudo") || !has("sudo", "cvtsudoers") {
        return;
    }
    let mut read = 0;
    let tried = values((text(), text()), 60);
    let count = tried.len();
    for (user, arguments) in tried {
        let command = format!("/bin/x {arguments}");
        let desired = json!({"name": "s", "rules": [{"users": [user], "commands": [command], "nopasswd": true}]});
        let Some(world) = written("dir etc/sudoers.d 0755", "Stead/Sudoers", &desired) else { continue };
        read += 1;
        let file = path(&world, "etc/sudoers.d/s");
        printed("visudo", &["-c", "-f", &file], &(&desired, fs::read_to_string(&file)));
        let rules: Json = serde_json::from_str(&printed("cvtsudoers", &["-f", "json", &file], &desired)).unwrap();
        let specs = rules["User_Specs"].as_array().unwrap();
        assert_eq!(specs.len(), 1, "{desired}: {rules}");
        let spec = &specs[0]["Cmnd_Specs"];
        let blanks = |text: String| text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        let commands = blanks(named(&spec[0]["Commands"]));
        let found = (named(&specs[0]["User_List"]), spec.as_array().unwrap().len(), commands);
        // Two exclamation marks exclude nothing.
        let user = user.replace("!!", "");
        let meant = (unescaped(&user, |_| true), 1, blanks(unescaped(&command, |letter| "\\,:=# \t".contains(letter))));
        assert_eq!(found, meant, "{desired}: {rules}");
    }
    accepted("Stead/Sudoers", read, count, 4);
}

#[test]
fn sudo_reads_lists() {
    if !has("sudo lists", "visudo") || !has("sudo lists", "cvtsudoers") {
        return;
    }
    let mut read = 0;
    let tried = values((text(), text(), text(), text()), 60);
    let count = tried.len();
    for (at, (group, host, user, other)) in tried.into_iter().enumerate() {
        // Four odd texts at once are hardly ever accepted.
        let odd = |place: usize, text: String| if at % 4 == place { text } else { format!("p{place}") };
        let [group, host, user, other] = [odd(0, group), odd(1, host), odd(2, user), odd(3, other)];
        let desired = json!({"name": "s", "rules": [{"groups": ["g", group], "hosts": [host], "runAs": [user], "runAsGroups": [other],
            "commands": ["/bin/x", "/bin/y"], "setenv": true}]});
        let Some(world) = written("dir etc/sudoers.d 0755", "Stead/Sudoers", &desired) else { continue };
        read += 1;
        let file = path(&world, "etc/sudoers.d/s");
        printed("visudo", &["-c", "-f", &file], &(&desired, fs::read_to_string(&file)));
        let rules: Json = serde_json::from_str(&printed("cvtsudoers", &["-f", "json", &file], &desired)).unwrap();
        let spec = &rules["User_Specs"][0];
        let commands = &spec["Cmnd_Specs"];
        assert_eq!(
            (rules["User_Specs"].as_array().unwrap().len(), commands.as_array().unwrap().len()),
            (1, 1),
            "{rules}"
        );
        let plain = |text: &str| unescaped(&text.replace("!!", ""), |_| true);
        let lists = [
            &spec["User_List"],
            &spec["Host_List"],
            &commands[0]["runasusers"],
            &commands[0]["runasgroups"],
            &commands[0]["Commands"],
        ];
        let mut found =
            lists.map(|list| list.as_array().unwrap().iter().map(|one| named(&json!([one]))).collect::<Vec<_>>());
        // Where groups are listed, the sign of a group is not stated; an alias has none.
        let [groups, _, _, run_as_groups, _] = &mut found;
        for name in groups.iter_mut().chain(run_as_groups) {
            *name = name.strip_prefix('%').unwrap_or(name).to_owned();
        }
        let meant = [
            vec!["g".to_owned(), plain(&group)],
            vec![plain(&host)],
            vec![plain(&user)],
            vec![plain(&other)],
            vec!["/bin/x".to_owned(), "/bin/y".to_owned()],
        ];
        assert_eq!(found, meant, "{desired}: {rules}");
    }
    accepted("Stead/Sudoers, lists", read, count, 15);
}

/// A text without the backslashes in front of certain letters.
fn unescaped(text: &str, is_certain: fn(char) -> bool) -> String {
    let (mut plain, mut letters) = (String::new(), text.chars().peekable());
    while let Some(letter) = letters.next() {
        let next = letters.next_if(|next| letter == '\\' && is_certain(*next));
        plain.push(next.unwrap_or(letter));
    }
    plain
}

/// The only member of a list of sudo's, as rules have it.
fn named(list: &Json) -> String {
    let only = list.as_array().filter(|all| all.len() == 1).and_then(|all| all[0].as_object());
    let named = only.and_then(|only| only.iter().find(|(kind, _)| *kind != "negated"));
    let (kind, name) = named.unwrap_or_else(|| panic!("{list}"));
    let excluded = if only.is_some_and(|only| only.contains_key("negated")) { "!" } else { "" };
    let sign = match kind.as_str() {
        "usergroup" => "%",
        "userid" => "#",
        "netgroup" => "+",
        "nonunixgroup" => "%:",
        _ => "",
    };
    format!("{excluded}{sign}{}", name.as_str().map_or_else(|| name.to_string(), str::to_owned))
}

#[test]
fn mount_reads_entries() {
    if !has("mount", "findmnt") {
        return;
    }
    let mut read = 0;
    let tried = values((text(), text(), text()), 60);
    let count = tried.len();
    for (name, device, option) in tried {
        let options = format!("ro,x-note={option}");
        let desired = json!({"path": format!("/srv/{name}"), "device": format!("/dev/{device}"), "fstype": "ext4", "options": options});
        let Some(world) = written("file etc/fstab 0644 \"# c\\n\"", "Stead/Mount", &desired) else { continue };
        read += 1;
        let table = path(&world, "etc/fstab");
        let shown = printed(
            "findmnt",
            &["--tab-file", &table, "--json", "--notruncate", "-o", "TARGET,SOURCE,OPTIONS"],
            &desired,
        );
        let found: Json = serde_json::from_str(&shown).unwrap();
        let meant = json!([{"target": desired["path"], "source": desired["device"], "options": desired["options"]}]);
        assert_eq!(found["filesystems"], meant, "{:?}", fs::read_to_string(&table));
    }
    accepted("Stead/Mount", read, count, 5);
}

#[test]
fn apt_reads_sources() {
    if !has("apt", "apt-get") {
        return;
    }
    let mut read = 0;
    let tried = values((text(), text()), 30);
    let count = tried.len();
    for (word, component) in tried {
        let desired = json!({"name": "n", "uris": [format!("http://r.test/{word}")], "suites": ["stable"], "components": [component], "trusted": true});
        let Some(world) = written("dir etc/apt/sources.list.d 0755", "Stead/AptRepository", &desired) else { continue };
        read += 1;
        let parts = format!("Dir::Etc::sourceparts={}", path(&world, "etc/apt/sources.list.d"));
        let arguments = ["-o", &parts, "-o", "Dir::Etc::sourcelist=/dev/null", "update", "--print-uris"];
        let shown = printed("apt-get", &arguments, &desired);
        let uri = desired["uris"][0].as_str().unwrap().trim_end_matches('/');
        let meant = format!("'{uri}/dists/stable/{component}/binary-");
        assert!(shown.lines().any(|line| line.starts_with(&meant)), "{desired}: {shown}");
    }
    accepted("Stead/AptRepository", read, count, 5);
}

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

/// What systemd says of a service with its drop-ins that it ignores a part of, but for keys that it does not know.
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

#[test]
fn ssh_reads_keys() {
    if !has("ssh", "ssh-keygen") {
        return;
    }
    let key = "AAAAC3NzaC1lZDI1NTE5AAAAIAthY2Vib29rLW9mLWEta2V5LXRoYXQtaXMtbm8ta2V5";
    let mut read = 0;
    let tried = values((text(), text()), 60);
    let count = tried.len();
    for (comment, environment) in tried {
        let options = format!("no-pty,environment=\"A={environment}\"");
        let desired = json!({"user": "u", "type": "ssh-ed25519", "key": key, "comment": comment, "options": options});
        let Some(world) = written(&format!("{}dir home/u 0755\n", support::USERS), "Stead/SshKey", &desired) else {
            continue;
        };
        read += 1;
        let shown = printed("ssh-keygen", &["-l", "-f", &path(&world, "home/u/.ssh/authorized_keys")], &desired);
        let lines: Vec<&str> = shown.lines().collect();
        let [line] = lines.as_slice() else { panic!("{desired}: {shown}") };
        // Where there is no comment the program shows something else, and it has its own signs for some letters.
        let is_plain = comment.is_ascii() && !comment.trim().is_empty() && !comment.contains(['\\', '#']);
        let end = if is_plain { &format!(" {} (ED25519)", comment.trim()) } else { " (ED25519)" };
        assert!(line.ends_with(end), "{desired}: {shown}");
    }
    accepted("Stead/SshKey", read, count, 15);
}

#[test]
fn modprobe_reads_options() {
    if !has("modprobe", "modprobe") {
        return;
    }
    let mut read = 0;
    let tried = values(text(), 60);
    let count = tried.len();
    for value in tried {
        let desired = json!({"name": "loop", "options": format!("a={value}")});
        let Some(world) =
            written("dir etc/modprobe.d 0755\ndir etc/modules-load.d 0755", "Stead/KernelModule", &desired)
        else {
            continue;
        };
        read += 1;
        let shown = printed("modprobe", &["-C", &path(&world, "etc/modprobe.d"), "--showconfig"], &desired);
        let found = shown
            .lines()
            .filter(|line| line.starts_with("options loop"))
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        let meant = desired["options"].as_str().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(found.collect::<Vec<_>>(), [format!("options loop {meant}")], "{desired}");
    }
    accepted("Stead/KernelModule", read, count, 15);
}

#[test]
fn modprobe_reads_names() {
    if !has("names of modules", "modprobe") {
        return;
    }
    let mut read = 0;
    let tried = values(prop_oneof![1 => "[A-Za-z0-9][A-Za-z0-9_-]{0,70}", 1 => text()], 60);
    let count = tried.len();
    for name in tried {
        let given = "dir etc/modprobe.d 0755\ndir etc/modules-load.d 0755";
        let desired = json!({"name": name, "blacklisted": true, "boot": true});
        let Some(world) = written(given, "Stead/KernelModule", &desired) else { continue };
        read += 1;
        let shown = printed("modprobe", &["-C", &path(&world, "etc/modprobe.d"), "--showconfig"], &desired);
        let found: Vec<&str> = shown.lines().filter_map(|line| line.strip_prefix("blacklist ")).collect();
        assert_eq!(found, [name.replace('-', "_")], "{desired}");
        let files =
            fs::read_dir(world.root.path().join("etc/modules-load.d")).unwrap().map(|file| file.unwrap().path());
        let lines: Vec<String> = files.map(|file| fs::read_to_string(file).unwrap()).collect();
        assert_eq!(lines, [format!("{name}\n")], "{desired}");
    }
    accepted("Stead/KernelModule, names", read, count, 30);
}

#[test]
fn databases_of_groups_are_sound() {
    if !has("groups", "grpck") {
        return;
    }
    let mut read = 0;
    let tried = values(text(), 60);
    let count = tried.len();
    for name in tried {
        let desired = json!({"name": name, "gid": 4000});
        let Some(world) =
            written("file etc/passwd 0644 \"\"\nfile etc/group 0644 \"root:x:0:\\n\"\n", "Stead/Group", &desired)
        else {
            continue;
        };
        read += 1;
        let file = world.root.path().join("etc/group");
        // No reader takes the line for a comment, or for several.
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text, format!("root:x:0:\n{name}::4000:\n"));
        assert!(!name.starts_with('#'), "{name}");
        let output = run("grpck", &["-r", "-q", file.to_str().unwrap(), Path::new("/dev/null").to_str().unwrap()]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("invalid group file entry"), "{name:?}: {said}");
    }
    accepted("Stead/Group", read, count, 10);
}

#[test]
fn sessions_find_users() {
    if !has("users", "getent") || !has("users", "pwck") || !has_namespace("users") {
        return;
    }
    let world = World::build(
        "file etc/passwd 0644 \"root:x:0:0::/root:/bin/sh\\n\"\nfile etc/group 0644 \"root:x:0:\\ng:x:50:\\n\"\nfile etc/shadow 0600 \"root:*:1::::::\\n\"\nfile bin/sh 0755\n",
    );
    let (mut meant, mut names) = (Vec::new(), BTreeSet::from(["root".to_owned()]));
    let name = prop_oneof![3 => "[a-z_][a-z0-9_-]{0,31}", 1 => text()];
    let tried = values((name, text(), text(), text()), 60);
    let count = tried.len();
    for (number, (name, comment, home, hash)) in tried.into_iter().enumerate() {
        let uid = 10_000 + number;
        let desired = json!({"name": name, "uid": uid, "group": "root", "groups": ["g"], "comment": comment, "home": format!("/{home}"), "shell": "/bin/sh",
            "createHome": false, "passwordHash": format!("$6${hash}")});
        if !names.contains(&name) && is_set(&world, "Stead/User", &desired) {
            names.insert(name.clone());
            meant.push((name, uid, comment, home, hash));
        }
    }
    let [passwd, shadow] = ["passwd", "shadow"].map(|table| world.root.path().join("etc").join(table));
    let mounts =
        "for i in passwd group shadow; do mount --bind \"$1/etc/$i\" \"/etc/$i\"; done; exec getent -s files \"$2\"";
    let read = |table: &str| {
        let shown = output_of(in_namespace(mounts).arg(world.root.path()).arg(table), &meant);
        shown.lines().map(|line| line.split(':').map(str::to_owned).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let users = meant.iter().map(|(name, uid, comment, home, _)| {
        vec![
            name.clone(),
            "x".to_owned(),
            uid.to_string(),
            "0".to_owned(),
            comment.clone(),
            format!("/{home}"),
            "/bin/sh".to_owned(),
        ]
    });
    assert_eq!(read("passwd")[1..], users.collect::<Vec<_>>());
    let hashes: Vec<_> =
        read("shadow").into_iter().skip(1).map(|fields| (fields[0].clone(), fields[1].clone())).collect();
    let stated: Vec<_> = meant.iter().map(|(name, .., hash)| (name.clone(), format!("$6${hash}"))).collect();
    assert_eq!(hashes, stated);
    let members: Vec<String> = read("group")[1][3].split(',').map(str::to_owned).collect();
    assert_eq!(members, meant.iter().map(|(name, ..)| name.clone()).collect::<Vec<_>>());
    let output = run("pwck", &["-r", "-q", passwd.to_str().unwrap(), shadow.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("invalid") && !said.contains("delete line"), "{said}");
    accepted("Stead/User", meant.len(), count, 10);
}

#[test]
fn the_kernel_takes_the_name() {
    if !has("hostname", "hostname") || !has_namespace("hostname") {
        return;
    }
    let mut read = 0;
    let tried = values(prop_oneof![2 => "[A-Za-z0-9][A-Za-z0-9.-]{0,70}", 1 => text()], 20);
    let count = tried.len();
    for name in tried {
        let Some(world) = written("file etc/hostname 0644 \"old\\n\"", "Stead/Hostname", &json!({"name": name})) else {
            continue;
        };
        read += 1;
        let script = "exec unshare --uts sh -ec 'hostname -F \"$1\"; hostname' sh \"$1\"";
        assert_eq!(
            output_of(in_namespace(script).arg(world.root.path().join("etc/hostname")), &name),
            format!("{name}\n")
        );
    }
    accepted("Stead/Hostname", read, count, 15);
}

#[test]
fn sysctl_reads_parameters() {
    if !has("sysctl", "sysctl") {
        return;
    }
    let mut read = 0;
    let tried = values(text(), 60);
    let count = tried.len();
    for value in tried {
        let desired = json!({"name": "vm.swappiness", "value": value});
        let Some(world) = written("dir etc/sysctl.d 0755", "Stead/Sysctl", &desired) else { continue };
        read += 1;
        let file = path(&world, "etc/sysctl.d/90-stead.conf");
        let shown = printed("sysctl", &["--dry-run", "-p", &file], &desired);
        let meant = format!("vm.swappiness = {}", value.trim_matches([' ', '\t']));
        assert_eq!(shown.trim_end_matches('\n'), meant, "{:?}", fs::read_to_string(&file));
    }
    accepted("Stead/Sysctl", read, count, 40);
}

#[test]
fn resolvers_read_hosts() {
    if !has("hosts", "getent") || !has_namespace("hosts") {
        return;
    }
    let world = World::build("file etc/hosts 0644 \"127.0.0.1 localhost\\n\"");
    let (mut meant, mut names) = (BTreeMap::new(), BTreeSet::from(["localhost".to_owned()]));
    let tried = values((text(), text(), text()), 60);
    let count = tried.len();
    for (number, (name, alias, comment)) in tried.into_iter().enumerate() {
        let ip = format!("10.0.{}.{}", number / 250, number % 250 + 1);
        let desired = json!({"name": name, "ip": ip, "aliases": [alias], "comment": comment});
        // One that is there already would be moved to this address.
        let is_new = [&name, &alias].iter().all(|name| !names.contains(&name.to_lowercase()));
        if is_new && is_set(&world, "Stead/Host", &desired) {
            names.extend([name.to_lowercase(), alias.to_lowercase()]);
            meant.insert(ip, vec![name, alias]);
        }
    }
    let script = "test -e /etc/hosts || touch /etc/hosts; mount --bind \"$1\" /etc/hosts; exec getent -s files hosts";
    let shown = output_of(in_namespace(script).arg(world.root.path().join("etc/hosts")), &meant);
    let entries = shown.lines().map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    let found: BTreeMap<_, _> =
        entries.filter_map(|words| Some((words.first()?.clone(), words[1..].to_vec()))).collect();
    let found: BTreeMap<_, _> = found.into_iter().filter(|(ip, _)| ip.starts_with("10.")).collect();
    assert_eq!(found, meant);
    accepted("Stead/Host", meant.len(), count, 2);
}

/// The session of a user in which files of a system were read, by a shell with mounts of its own; `$1` is the root with the files.
fn session(mounts: &str, command: &str, world: &World, about: &dyn std::fmt::Debug) -> String {
    let script = format!("{mounts}; exec su nobody -s /bin/sh -c '{command}'");
    output_of(in_namespace(&script).arg(world.root.path()), about)
}

#[test]
fn sessions_have_the_limits() {
    if !has("limits", "su") || !has_namespace("limits") {
        return;
    }
    // A session begins with the limits of the first process.
    let raised = "n=$(ulimit -H -n); test \"$n\" = unlimited || ulimit -H -n $((n + 1))";
    if !run("sh", &["-c", raised]).status.success() {
        stead_testkit::skip("limits", "root may not raise limits here");
        return;
    }
    let limit = prop_oneof![3 => (64..900_u32).prop_map(|limit| limit.to_string()), 1 => text()];
    let mut read = 0;
    let tried = values((select(vec!["soft", "hard", "-"]), limit), 10);
    let count = tried.len();
    for (kind, value) in tried {
        let desired = json!({"domain": "nobody", "type": kind, "item": "nofile", "value": value});
        let given = format!("{}dir etc/security/limits.d 0755", support::USERS);
        let Some(world) = written(&given, "Stead/Limits", &desired) else { continue };
        read += 1;
        let mounts = "mount --bind \"$1/etc/security/limits.d\" /etc/security/limits.d";
        let shown = session(mounts, "ulimit -S -n; ulimit -H -n", &world, &desired);
        let (soft, hard) = shown.trim().split_once('\n').unwrap();
        let is_read = match kind {
            "soft" => soft == value,
            // A soft limit is lowered with it.
            "hard" => hard == value,
            _ => soft == value && hard == value,
        };
        assert!(is_read, "{desired}: {shown}");
    }
    accepted("Stead/Limits", read, count, 50);
}

#[test]
fn sessions_have_the_locale() {
    if !has("locale", "su") || !has_namespace("locale") {
        return;
    }
    let names = select(vec!["C.UTF-8", "POSIX", "de_DE.UTF-8", "en_US", "ca_ES.UTF-8@valencia", "sr_RS@latin"]);
    let mut read = 0;
    let tried = values(prop_oneof![3 => names.prop_map(str::to_owned), 1 => text()], 10);
    let count = tried.len();
    for name in tried {
        let desired = json!({"variables": {"LANG": name, "LC_TIME": name}});
        let given =
            "dir etc/default 0755\nfile etc/locale.gen 0644 \"\"\nfile etc/default/locale 0644 \"# c\\nLC_PAPER=C\\n\"";
        let Some(world) = written(given, "Stead/Locale", &desired) else { continue };
        read += 1;
        let file = ["etc/default/locale", "etc/locale.conf"].map(|name| world.root.path().join(name));
        let file = file.into_iter().find(|file| file.exists()).unwrap();
        let shown = printed(
            "sh",
            &["-c", "unset LANG LC_TIME; . \"$1\"; echo \"$LANG $LC_TIME\"", "sh", file.to_str().unwrap()],
            &desired,
        );
        assert_eq!(shown, format!("{name} {name}\n"), "{:?}", fs::read_to_string(&file));
        if fs::read_to_string("/etc/pam.d/su").is_ok_and(|su| su.contains("envfile=/etc/default/locale")) {
            let mounts = format!(
                "touch /etc/default/locale; mount --bind '{}' /etc/default/locale; unset LC_ALL LANG LC_TIME",
                file.display()
            );
            let shown = session(&mounts, "echo \"$LANG $LC_TIME\"", &world, &desired);
            assert_eq!(shown, format!("{name} {name}\n"));
        }
    }
    accepted("Stead/Locale", read, count, 40);
}

/// Names of blocks are in comments of the file, whatever it is.
#[test]
fn blocks_are_read_without_their_marks() {
    let (sshd, logrotate) = (has("sshd", "sshd") && has_namespace("sshd"), has("logrotate", "logrotate"));
    let keys = tempfile::tempdir().unwrap();
    let key = keys.path().join("key");
    if sshd {
        printed("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", key.to_str().unwrap()], &"a key");
    }
    let mut read = 0;
    let tried = values(text(), 20);
    let count = tried.len();
    for name in tried {
        let block = |content: &str| {
            let desired = json!({"path": "f", "name": name, "content": content});
            written("file f 0644 \"# kept\\n\"", "Stead/Block", &desired)
        };
        let (Some(server), Some(logs)) =
            (block("Port 2222\nBanner /x"), block("/no-such-*.log {\n  rotate 7\n  missingok\n}"))
        else {
            continue;
        };
        read += 1;
        if sshd {
            let script = "mkdir -p /run/sshd; exec \"$(command -v sshd)\" -T -f \"$1\" -h \"$2\"";
            let shown = output_of(in_namespace(script).arg(server.root.path().join("f")).arg(&key), &name);
            assert!(shown.lines().any(|line| line == "port 2222") && shown.lines().any(|line| line == "banner /x"));
        }
        if logrotate {
            let output = run("logrotate", &["-d", "-s", "/dev/null", &path(&logs, "f")]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(
                output.status.success() && said.contains("/no-such-*.log") && said.contains("(7 rotations)"),
                "{name}: {said}"
            );
        }
    }
    accepted("Stead/Block", read, count, 30);
}
