//! Written values are read back: the resources write values of all kinds, and the programs that the files are for read
//! them. A value that a resource accepts must be read as stated.
//!
//! `STEAD_READERS=1000` tries so many values of each format, and says how many of them were accepted. A reader
//! that is not installed is skipped; Debian has them in the packages apt, cron, kmod, logrotate, openssh-client,
//! openssh-server, procps, python3, python3-yaml, sudo, systemd and util-linux. Those that read at fixed places need root, and get
//! mounts of their own.

#![expect(clippy::disallowed_methods, reason = "a test looks at its own files as it likes")]
#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "readers/cron.rs"]
mod cron;
#[path = "readers/formats.rs"]
mod formats;
#[path = "readers/sshd.rs"]
mod sshd;
#[path = "readers/sudo.rs"]
mod sudo;
mod support;
#[path = "readers/systemd.rs"]
mod systemd;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
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

/// Values of a strategy: the same `usual` ones in each run, and random ones if `STEAD_READERS` or `STEAD_DOSE` asks for another number.
fn values<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>, usual: usize) -> Vec<T> {
    let count = stead_testkit::times("STEAD_READERS", usual);
    let mut runner = if count == usual { TestRunner::deterministic() } else { TestRunner::default() };
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

/// Sources of others in both forms that apt reads, about the same repository or another one.
fn other_source() -> impl Strategy<Value = (&'static str, String)> {
    let uri = select(vec!["http://r.test/a", "http://r.test/a/", "http://r.test/b"]);
    let key = select(vec!["", "/k.gpg", "/other.gpg"]);
    let suite = select(vec!["stable", "other", "./", "stable/"]);
    let form = select(vec!["line", "line with blanks", "sources only", "off", "stanza", "stanza off", "second stanza"]);
    (form, uri, key, suite).prop_map(|(form, uri, key, suite)| {
        let component = if suite.ends_with('/') { "" } else { "main" };
        let option = if key.is_empty() { String::new() } else { format!("[signed-by={key}] ") };
        let signed = if key.is_empty() { String::new() } else { format!("signed-by: {key}\n") };
        let stanza =
            |types: &str| format!("Types: {types}\nURIs: {uri}\nSuites: {suite}\nComponents: {component}\n{signed}");
        match form {
            "line" => ("o.list", format!("deb {option}{uri} {suite} {component}\n")),
            "line with blanks" => ("o.list", format!("# a\n\n  deb\t{option}  {uri}  {suite}\t{component} # b\n")),
            "sources only" => ("o.list", format!("deb-src {option}{uri} {suite} {component}\n")),
            "off" => ("o.list", format!("#deb {option}{uri} {suite} {component}\n")),
            "stanza" => ("o.sources", stanza("deb")),
            "stanza off" => ("o.sources", format!("{}Enabled: no\n", stanza("deb deb-src"))),
            _ => ("o.sources", format!("# a\n{}\n\n# b\n{}", stanza("deb").replace("r.test", "s.test"), stanza("deb"))),
        }
    })
}

#[test]
fn apt_reads_sources_beside_those_of_others() {
    if !has("apt", "apt-get") {
        return;
    }
    let mut read = 0;
    let tried = values((other_source(), select(vec!["", "/k.gpg"])), 60);
    let count = tried.len();
    for ((file, text), key) in tried {
        let mut desired =
            json!({"name": "n", "uris": ["http://r.test/a"], "suites": ["stable"], "components": ["main"]});
        if !key.is_empty() {
            desired["signedBy"] = json!(key);
        }
        let given = format!("file k.gpg 0644 \"x\"\nfile etc/apt/sources.list.d/{file} 0644 {}", json!(text));
        let Some(world) = written(&given, "Stead/AptRepository", &desired) else { continue };
        read += 1;
        let parts = format!("Dir::Etc::sourceparts={}", path(&world, "etc/apt/sources.list.d"));
        let arguments = ["-o", &parts, "-o", "Dir::Etc::sourcelist=/dev/null", "update", "--print-uris"];
        let shown = printed("apt-get", &arguments, &(&desired, &text));
        assert!(shown.contains("'http://r.test/a/dists/stable/main/binary-"), "{desired} {text:?}: {shown}");
    }
    accepted("Stead/AptRepository beside others", read, count, 40);
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
    // It begins with the limits of the first process, which is its own here: not everywhere may root raise them.
    let apart = "exec unshare --pid --fork --kill-child --mount-proc";
    let script = format!("{mounts}; {apart} su nobody -s /bin/sh -c '{command}'");
    output_of(in_namespace(&script).arg(world.root.path()), about)
}

#[test]
fn sessions_have_the_limits() {
    if !has("limits", "su") || !has_namespace("limits") {
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
