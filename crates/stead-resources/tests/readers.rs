//! Written values are read back: the resources write values of all kinds, and the programs that the files are for read
//! them. A value that a resource accepts must be read as stated.
//!
//! `STEAD_READERS=1000` tries so many values of each format. A reader that is not installed is skipped; Debian has
//! them in the packages apt, cron, kmod, openssh-client, python3, python3-yaml, sudo, systemd and util-linux.

#![expect(clippy::disallowed_methods, reason = "a test looks at its own files as it likes")]
#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value as Json, json};
use stead_core::call::Execution;
use stead_host::provider::Plain;
use support::{World, provider};

/// Texts with what formats give a meaning: signs of comments and of quoting, blanks at the ends, letters of all kinds.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => select(vec!["a", "b c", "Z9", "\u{e4}", "/x", "1.0", "x=y", "true", "\u{20ac}", "\u{1f600}"]),
        3 => select(vec![" ", "\t", "\"", "'", "\\", "#", ";", "%", "%%", "=", ":", ",", "[", "]", "{", "}", "$", "!", "&", "*", "-", "@", "~", "|", "<", ">", "`", "\\\\", "\\n", "\\040", "%n", "${A}"]),
        1 => select(vec!["\0", "\u{1}", "\u{7f}", "\u{85}", "\u{a0}", "\u{2028}", "\u{feff}", "\n", "\r"]),
    ];
    proptest::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
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
    let cx = world.context_for(type_name);
    provider(type_name).set(&cx, &Plain::new(desired.clone()), Execution::Actual).ok().map(|_| world)
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
    assert!(files.len() * 2 > count, "{} of {count} values are accepted", files.len());
    python(script, &files);
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
    for (section, key, value) in values((text(), text(), text()), 60) {
        // A colon in a key is a sign behind one for this reader, and for no other.
        if key.contains(':') {
            continue;
        }
        let desired = json!({"path": "f", "section": section, "key": key, "value": value});
        let given = "file f 0644 \"[kept]\\nk = 1,\\n  2\\nother = x\\n\"";
        let Some(world) = written(given, "Stead/Ini", &desired) else { continue };
        let mut meant = json!({"kept": {"k": "1,\n2", "other": "x"}});
        let trimmed = value.trim();
        meant[section][key] = json!(trimmed);
        files.push((world.root.path().join("f"), meant));
        worlds.push(world);
    }
    assert!(!files.is_empty());
    let script = "import configparser\ndef read(path):\n    parser = configparser.RawConfigParser(default_section='no such section')\n    parser.optionxform = str\n    parser.read_file(open(path, encoding='utf-8', newline='\\n'))\n    return {s: dict(parser[s]) for s in parser.sections()}";
    python(script, &files);
}

#[test]
fn cron_reads_tables() {
    if !has("cron", "crontab") {
        return;
    }
    let given = format!("{}dir var/spool/cron/crontabs 0755\n", support::USERS);
    let schedules = select(vec!["@daily", "*/5 4 * * mon-fri", "0 0 1,15 * 0-7/2", "59 23 31 dec Sun", "@reboot"]);
    let mut accepted = 0;
    for (schedule, command, variable) in values((schedules, text(), text()), 60) {
        let desired = json!({"name": "n", "table": "user", "user": "u", "schedule": schedule, "command": command, "environment": {"A": variable}});
        let Some(world) = written(&given, "Stead/Cron", &desired) else { continue };
        accepted += 1;
        let table = path(&world, "var/spool/cron/crontabs/u");
        printed("crontab", &["-n", &table], &(desired, fs::read_to_string(&table)));
    }
    assert!(accepted > 0);
}

#[test]
fn sudo_reads_rules() {
    if !has("sudo", "visudo") || !has("sudo", "cvtsudoers") {
        return;
    }
    let mut accepted = 0;
    for (user, arguments) in values((text(), text()), 60) {
        let command = format!("/bin/x {arguments}");
        let desired = json!({"name": "s", "rules": [{"users": [user], "commands": [command], "nopasswd": true}]});
        let Some(world) = written("dir etc/sudoers.d 0755", "Stead/Sudoers", &desired) else { continue };
        accepted += 1;
        let file = path(&world, "etc/sudoers.d/s");
        printed("visudo", &["-c", "-f", &file], &(&desired, fs::read_to_string(&file)));
        let rules: Json = serde_json::from_str(&printed("cvtsudoers", &["-f", "json", &file], &desired)).unwrap();
        let specs = rules["User_Specs"].as_array().unwrap();
        assert_eq!(specs.len(), 1, "{desired}: {rules}");
        assert_eq!(specs[0]["User_List"].as_array().unwrap().len(), 1, "{desired}: {rules}");
        let commands = &specs[0]["Cmnd_Specs"];
        assert_eq!(
            (commands.as_array().unwrap().len(), commands[0]["Commands"].as_array().unwrap().len()),
            (1, 1),
            "{desired}: {rules}"
        );
    }
    assert!(accepted > 0);
}

#[test]
fn mount_reads_entries() {
    if !has("mount", "findmnt") {
        return;
    }
    let mut accepted = 0;
    for (name, device, option) in values((text(), text(), text()), 60) {
        let options = format!("ro,x-note={option}");
        let desired = json!({"path": format!("/srv/{name}"), "device": format!("/dev/{device}"), "fstype": "ext4", "options": options});
        let Some(world) = written("file etc/fstab 0644 \"# c\\n\"", "Stead/Mount", &desired) else { continue };
        accepted += 1;
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
    assert!(accepted > 0);
}

#[test]
fn apt_reads_sources() {
    if !has("apt", "apt-get") {
        return;
    }
    let mut accepted = 0;
    for (word, component) in values((text(), text()), 30) {
        let desired = json!({"name": "n", "uris": [format!("http://r.test/{word}")], "suites": ["stable"], "components": [component], "trusted": true});
        let Some(world) = written("dir etc/apt/sources.list.d 0755", "Stead/AptRepository", &desired) else { continue };
        accepted += 1;
        let parts = format!("Dir::Etc::sourceparts={}", path(&world, "etc/apt/sources.list.d"));
        let arguments = ["-o", &parts, "-o", "Dir::Etc::sourcelist=/dev/null", "update", "--print-uris"];
        let shown = printed("apt-get", &arguments, &desired);
        let uri = desired["uris"][0].as_str().unwrap().trim_end_matches('/');
        let meant = format!("'{uri}/dists/stable/{component}/binary-");
        assert!(shown.lines().any(|line| line.starts_with(&meant)), "{desired}: {shown}");
    }
    assert!(accepted > 0);
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
    let mut accepted = 0;
    for (event, description, user, argument) in values((select(events), text(), text(), text()), 30) {
        let desired = json!({
            "name": "n", "onCalendar": event, "description": description, "user": user, "workingDirectory": "/",
            "command": format!("/bin/true {argument}"),
        });
        let Some(world) = written("dir etc/systemd/system 0755", "Stead/Timer", &desired) else { continue };
        accepted += 1;
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
    assert!(accepted > 0);
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
    let mut accepted = 0;
    for (comment, environment) in values((text(), text()), 60) {
        let options = format!("no-pty,environment=\"A={environment}\"");
        let desired = json!({"user": "u", "type": "ssh-ed25519", "key": key, "comment": comment, "options": options});
        let Some(world) = written(&format!("{}dir home/u 0755\n", support::USERS), "Stead/SshKey", &desired) else {
            continue;
        };
        accepted += 1;
        let shown = printed("ssh-keygen", &["-l", "-f", &path(&world, "home/u/.ssh/authorized_keys")], &desired);
        assert_eq!(shown.lines().filter(|line| line.contains("ED25519")).count(), 1, "{desired}: {shown}");
    }
    assert!(accepted > 0);
}

#[test]
fn modprobe_reads_options() {
    if !has("modprobe", "modprobe") {
        return;
    }
    let mut accepted = 0;
    for value in values(text(), 60) {
        let desired = json!({"name": "loop", "options": format!("a={value}")});
        let Some(world) =
            written("dir etc/modprobe.d 0755\ndir etc/modules-load.d 0755", "Stead/KernelModule", &desired)
        else {
            continue;
        };
        accepted += 1;
        let shown = printed("modprobe", &["-C", &path(&world, "etc/modprobe.d"), "--showconfig"], &desired);
        let found = shown
            .lines()
            .filter(|line| line.starts_with("options loop"))
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        let meant = desired["options"].as_str().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(found.collect::<Vec<_>>(), [format!("options loop {meant}")], "{desired}");
    }
    assert!(accepted > 0);
}

#[test]
fn databases_of_groups_are_sound() {
    if !has("groups", "grpck") {
        return;
    }
    for name in values(text(), 60) {
        let desired = json!({"name": name, "gid": 4000});
        let Some(world) =
            written("file etc/passwd 0644 \"\"\nfile etc/group 0644 \"root:x:0:\\n\"\n", "Stead/Group", &desired)
        else {
            continue;
        };
        let file = world.root.path().join("etc/group");
        // No reader takes the line for a comment, or for several.
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text, format!("root:x:0:\n{name}::4000:\n"));
        assert!(!name.starts_with('#'), "{name}");
        let output = run("grpck", &["-r", "-q", file.to_str().unwrap(), Path::new("/dev/null").to_str().unwrap()]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("invalid group file entry"), "{name:?}: {said}");
    }
}
