//! The time that stead takes for ten machines, beside Ansible and pyinfra: `STEAD_PEERS=3 cargo test --release -p stead --test boots
//! ten_machines -- --nocapture` measures each so often, with the `ansible-playbook` and `pyinfra` of `PATH`.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::site::{Reach, Site};

const TEST: &str = "ten_machines_take_little";

const MACHINES: usize = 10;

const DIRECTORIES: usize = 5;
const FILES: usize = 20;
const LINES: usize = 5;

/// How many times as long Ansible and pyinfra take at least.
const FASTER: [(&str, f64); 2] = [("Ansible", 10.0), ("pyinfra", 3.0)];

/// How many bytes a machine may be sent where there is nothing to do.
const BYTES: u64 = 20_000;

/// What a command took.
#[derive(Clone, Copy, Default)]
struct Taken {
    wall: Duration,
    here: Duration,
    there: Duration,
    /// For each machine.
    bytes: u64,
}

#[test]
fn ten_machines_take_little() {
    let Some(runs) = stead_testkit::asked("STEAD_PEERS") else {
        return stead_testkit::skip(TEST, "it measures as often as STEAD_PEERS says");
    };
    if !stead_testkit::is_root(TEST) {
        return;
    }
    let site = match Site::new(MACHINES, true, Reach::Direct) {
        Ok(site) => site,
        Err(reason) => return stead_testkit::skip(TEST, &reason),
    };
    contents(&site);
    let resources = DIRECTORIES + FILES + LINES;
    println!("{resources} resources on {MACHINES} machines: everything to do, nothing to do; medians of {runs}");
    println!("{:<8} {:>9} {:>9} {:>10} {:>9}", "", "wall s", "here s", "machines s", "KB each");
    let stead = [env!("CARGO_BIN_EXE_stead"), "apply", "ten.yaml", "--hosts", "hosts.yaml", "--at-once", "10"];
    let own = measured(&site, "stead", &stead, runs).unwrap();
    let forks = MACHINES.to_string();
    let ansible = ["ansible-playbook", "-i", "hosts.ini", "--forks", &forks, "ten.yml"];
    let pyinfra = ["pyinfra", "-y", "--parallel", &forks, "inventory.py", "deploy.py"];
    for ((name, least), command) in FASTER.into_iter().zip([&ansible[..], &pyinfra]) {
        let Some(other) = measured(&site, name, command, runs) else { continue };
        for (own, other) in own.iter().zip(other) {
            let times = other.wall.as_secs_f64() / own.wall.as_secs_f64();
            println!("{name:<8} {times:>8.1}x, at least {least}");
            assert!(times >= least, "{name}");
        }
    }
    assert!(own[1].bytes <= BYTES, "{} bytes for each machine that has nothing to do", own[1].bytes);
}

/// The first run and the second one, each the median of so many; `None` where there is no such program.
fn measured(site: &Site, name: &str, command: &[&str], runs: usize) -> Option<[Taken; 2]> {
    let path = std::env::var("PATH").unwrap_or_default();
    if !path.split(':').chain(["/"]).any(|folder| std::path::Path::new(folder).join(command[0]).exists()) {
        stead_testkit::skip(TEST, &format!("there is no {}", command[0]));
        return None;
    }
    let (mut firsts, mut seconds) = (Vec::new(), Vec::new());
    for _ in 0..runs.max(1) {
        clear(site);
        firsts.push(run(site, command));
        seconds.push(run(site, command));
        for machine in &site.machines {
            assert_eq!(machine.read("/home/deploy/f7").as_deref(), Some("text 7\n"), "{name}");
            assert_eq!(machine.read("/home/deploy/l3").as_deref(), Some("line 3\n"), "{name}");
            assert!(machine.root("/home/deploy/d4").is_dir(), "{name}");
        }
    }
    let both = [median(&firsts), median(&seconds)];
    for Taken { wall, here, there, bytes } in both {
        let [wall, here, there] = [wall, here, there].map(|time| time.as_secs_f64());
        println!("{name:<8} {wall:>9.2} {here:>9.2} {there:>10.2} {:>9}", bytes / 1000);
    }
    Some(both)
}

/// Takes away what the runs made, with the programs that they keep there.
fn clear(site: &Site) {
    for machine in &site.machines {
        machine.ok(&["sh", "-c", "cd /home/deploy && rm -rf d? f? f?? l? .cache .ansible /tmp/pyinfra* /tmp/tmp*"]);
    }
}

/// Runs a command as all of them are run: here, with the network of the machines.
fn run(site: &Site, command: &[&str]) -> Taken {
    let state = || -> (Duration, u64) {
        let machines = site.machines.iter();
        machines
            .map(|each| (each.processor_time(), each.bytes_sent_to(&site.network)))
            .fold((Duration::ZERO, 0), |(time, bytes), (more_time, more_bytes)| (time + more_time, bytes + more_bytes))
    };
    let before = state();
    let script = "TIMEFORMAT='%3R %3U %3S'; { time \"$@\" >output 2>&1; } 2>&1 && exit $?";
    let mut timed = Command::new("ip");
    timed.args(["netns", "exec", &site.network, "bash", "-c", script, "bash"]).args(command);
    let mut timed = site.environment(timed);
    let path = format!("{}:{}", site.path("direct").display(), std::env::var("PATH").unwrap_or_default());
    timed.env("PATH", path);
    timed.envs([("ANSIBLE_PIPELINING", "True"), ("ANSIBLE_PYTHON_INTERPRETER", "/usr/bin/python3")]);
    let output = timed.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = fs::read_to_string(site.path("output")).unwrap_or_default();
    assert!(output.status.success(), "{command:?}: {printed}{said}");
    let seconds: Vec<f64> = printed.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let after = state();
    Taken {
        wall: Duration::from_secs_f64(seconds[0]),
        here: Duration::from_secs_f64(seconds[1] + seconds[2]),
        there: after.0.saturating_sub(before.0),
        bytes: (after.1 - before.1) / site.machines.len() as u64,
    }
}

/// The median of each figure.
fn median(runs: &[Taken]) -> Taken {
    let middle = |mut times: Vec<Duration>| {
        times.sort();
        times[times.len() / 2]
    };
    let mut bytes: Vec<u64> = runs.iter().map(|run| run.bytes).collect();
    bytes.sort_unstable();
    Taken {
        wall: middle(runs.iter().map(|run| run.wall).collect()),
        here: middle(runs.iter().map(|run| run.here).collect()),
        there: middle(runs.iter().map(|run| run.there).collect()),
        bytes: bytes[bytes.len() / 2],
    }
}

/// The same content in the language of each, and the machines.
fn contents(site: &Site) {
    machines(site);
    let (mut document, mut play, mut deploy) = (
        "resources:\n".to_owned(),
        "- hosts: all\n  gather_facts: false\n  tasks:\n".to_owned(),
        "from io import StringIO\nfrom pyinfra.operations import files\n".to_owned(),
    );
    let mut add = |kind: &str, properties: &str, task: &str, operation: &str| {
        writeln!(
            document,
            "- {{name: {}, type: Stead/{kind}, properties: {{{properties}}}}}",
            properties.split([' ', ',']).nth(1).unwrap()
        )
        .unwrap();
        writeln!(play, "  - ansible.builtin.{task}").unwrap();
        writeln!(deploy, "files.{operation}").unwrap();
    };
    for at in 0..DIRECTORIES {
        let path = format!("/home/deploy/d{at}");
        let task = format!("file: {{path: {path}, state: directory}}");
        add("Directory", &format!("path: {path}"), &task, &format!("directory('{path}')"));
    }
    for at in 0..FILES {
        let path = format!("/home/deploy/f{at}");
        let task = format!("copy: {{dest: {path}, content: \"text {at}\\n\"}}");
        let operation = format!("put(StringIO('text {at}\\n'), '{path}')");
        add("File", &format!("path: {path}, content: \"text {at}\\n\""), &task, &operation);
    }
    for at in 0..LINES {
        let path = format!("/home/deploy/l{at}");
        let task = format!("lineinfile: {{path: {path}, line: line {at}, create: true}}");
        add(
            "Line",
            &format!("path: {path}, line: line {at}, create: true"),
            &task,
            &format!("line('{path}', 'line {at}')"),
        );
    }
    for (name, text) in [("ten.yaml", document), ("ten.yml", play), ("deploy.py", deploy)] {
        fs::write(site.path(name), text).unwrap();
    }
}

/// The inventories of the others, and an `ssh` that is in the network of the machines already.
fn machines(site: &Site) {
    let write = |name: &str, text: &str| fs::write(site.path(name), text).unwrap();
    let (key, known, conf) = (site.path("key"), site.path("known"), site.path("ssh.conf"));
    let (mut ini, mut inventory) = (String::new(), "hosts = [\n".to_owned());
    for at in 0..site.machines.len() {
        let address = site.address(at);
        writeln!(
            ini,
            "m{at} ansible_host={address} ansible_user=deploy ansible_ssh_common_args='-F {}'",
            conf.display()
        )
        .unwrap();
        writeln!(
            inventory,
            "('{address}', {{'ssh_user': 'deploy', 'ssh_key': '{}', 'ssh_known_hosts_file': '{}', 'ssh_strict_host_key_checking': 'yes'}}),",
            key.display(),
            known.display()
        )
        .unwrap();
    }
    write("hosts.ini", &ini);
    write("inventory.py", &format!("{inventory}]\n"));
    fs::create_dir(site.path("direct")).unwrap();
    fs::copy(site.path("bin/ssh"), site.path("direct/ssh")).unwrap();
    write("direct/ssh", &format!("#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n", conf.display()));
}
