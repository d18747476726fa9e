//! The time that stead takes for a server that is in its state, beside Puppet and Ansible: `STEAD_PEERS=5 cargo test
//! --release -p stead --test boots a_server_in_state -- --nocapture` measures each so often.

use std::fmt::Write as _;
use std::path::Path;

use crate::debian::Debian;

const TEST: &str = "a_server_in_state_takes_little";

const PACKAGES: usize = 200;
const SERVICES: usize = 50;
const USERS: usize = 50;

/// How many milliseconds of processor time an apply may take, and an export.
const LIMITS: (f64, f64) = (30.0, 100.0);

/// How many times less than any of the others it takes.
const LESS: f64 = 30.0;

/// The programs that are measured beside it, and enough else that as many packages are installed.
const INSTALLED: [&str; 6] = ["puppet-agent", "ansible-core", "python3-apt", "git", "vim-tiny", "bind9-dnsutils"];

/// The programs with the same content for each, and how it is applied.
const APPLIED: [(&str, &[&str]); 3] = [
    ("stead", &["stead", "apply", "/srv/server.yaml"]),
    ("Puppet", &["puppet", "apply", "/srv/site.pp"]),
    ("Ansible", &["ansible-playbook", "-i", "localhost,", "-c", "local", "/srv/play.yml"]),
];

const EXPORT: [&str; 6] = ["stead", "export", "Package", "User", "Group", "Service"];

#[test]
fn a_server_in_state_takes_little() {
    let Some(runs) = stead_testkit::asked("STEAD_PEERS") else {
        return stead_testkit::skip(TEST, "it measures as often as STEAD_PEERS says");
    };
    if !stead_testkit::is_root(TEST) {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers");
    let mut machine = match Debian::of(&folder, true) {
        Ok(machine) => machine,
        Err(reason) => return stead_testkit::skip(TEST, &reason),
    };
    if let Err(reason) = prepare(&machine) {
        return stead_testkit::skip(TEST, &reason);
    }
    machine.boot();
    machine.wait_until_started();
    set_up(&machine);
    let [own, others @ ..] = APPLIED.map(|(name, command)| (name, median(&machine, command, runs)));
    let exported = median(&machine, &EXPORT, runs);
    println!("{PACKAGES} packages, {SERVICES} services, {USERS} users in state, CPU ms, median of {runs}");
    println!("{:<24} {:>9.1}", own.0, own.1);
    for (name, taken) in others {
        println!("{name:<24} {taken:>9.1}   {:.0} times as much", taken / own.1);
    }
    println!("{:<24} {exported:>9.1}", "stead export");
    if cfg!(debug_assertions) {
        return println!("no limit is checked without --release");
    }
    assert!(own.1 <= LIMITS.0 && exported <= LIMITS.1, "at most {LIMITS:?}");
    assert!(others.iter().all(|(_, taken)| *taken >= own.1 * LESS), "{LESS} times less than any");
    machine.shut_down();
}

/// Installs what is measured, once.
fn prepare(machine: &Debian) -> Result<(), String> {
    if machine.root("/usr/bin/puppet").exists() && machine.root("/usr/bin/ansible-playbook").exists() {
        return Ok(());
    }
    machine.install_packages(&INSTALLED)
}

/// The content, in each language, and the machine in its state.
fn set_up(machine: &Debian) {
    machine.install(Path::new(env!("CARGO_BIN_EXE_stead")), "/usr/local/bin/stead");
    let installed = machine.ok(&["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}\n"]);
    let packages: Vec<&str> =
        installed.lines().filter_map(|line| line.strip_prefix("installed ")).take(PACKAGES).collect();
    assert_eq!(packages.len(), PACKAGES, "more packages must be installed");
    for number in 0..SERVICES {
        let unit = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n\n[Install]\nWantedBy=multi-user.target\n";
        machine.write(&format!("/etc/systemd/system/speed-{number}.service"), unit);
    }
    machine.write("/srv/server.yaml", &document(&packages));
    machine.write("/srv/site.pp", &manifest(&packages));
    machine.write("/srv/play.yml", &playbook(&packages));
    machine.ok(&["stead", "apply", "/srv/server.yaml"]);
    for (name, command) in APPLIED {
        let printed = machine.ok(command);
        assert!(
            !printed.contains("Stage[main]/") && !printed.contains("changed: ["),
            "{name} changes something: {printed}"
        );
    }
}

fn document(packages: &[&str]) -> String {
    let mut text = "resources:\n".to_owned();
    let mut add = |kind: &str, name: &str, more: &str| {
        writeln!(text, "- {{name: {name}, type: Stead/{kind}, properties: {{name: {name}{more}}}}}").unwrap();
    };
    for name in packages {
        add("Package", name, "");
    }
    (0..SERVICES).for_each(|number| add("Service", &format!("speed-{number}"), ", state: running, enabled: true"));
    for number in 0..USERS {
        add(
            "User",
            &format!("speed{number}"),
            &format!(", uid: {}, shell: /bin/bash, home: /home/speed{number}", 3000 + number),
        );
    }
    text
}

fn manifest(packages: &[&str]) -> String {
    let mut text = String::new();
    for name in packages {
        writeln!(text, "package {{ '{name}': ensure => installed }}").unwrap();
    }
    for number in 0..SERVICES {
        writeln!(text, "service {{ 'speed-{number}': ensure => running, enable => true }}").unwrap();
    }
    for number in 0..USERS {
        let rest = format!("uid => {}, shell => '/bin/bash', home => '/home/speed{number}'", 3000 + number);
        writeln!(text, "user {{ 'speed{number}': ensure => present, {rest} }}").unwrap();
    }
    text
}

/// The packages as one list, which is how Ansible is fastest.
fn playbook(packages: &[&str]) -> String {
    let names = packages.join(", ");
    let last = |count: usize| count - 1;
    format!(
        "- hosts: all\n  gather_facts: false\n  tasks:\n  - ansible.builtin.apt: {{name: [{names}]}}\n  \
         - ansible.builtin.service: {{name: 'speed-{{{{ item }}}}', state: started, enabled: true}}\n    \
         with_sequence: start=0 end={}\n  \
         - ansible.builtin.user: {{name: 'speed{{{{ item }}}}', uid: '{{{{ 3000 + item | int }}}}', shell: /bin/bash, \
         home: '/home/speed{{{{ item }}}}'}}\n    with_sequence: start=0 end={}\n",
        last(SERVICES),
        last(USERS)
    )
}

/// The median of so many runs.
fn median(machine: &Debian, command: &[&str], runs: usize) -> f64 {
    let mut taken: Vec<f64> = (0..runs.max(1)).map(|_| processor_time(machine, command)).collect();
    taken.sort_by(f64::total_cmp);
    taken[taken.len() / 2]
}

/// The milliseconds of processor time, user and system, of a command and all processes that it waited for.
fn processor_time(machine: &Debian, command: &[&str]) -> f64 {
    let script = r#"TIMEFORMAT='%3U %3S'; { time "$@" >/dev/null 2>&1; } 2>&1"#;
    let printed = machine.ok(&[&["bash", "-c", script, "bash"], command].concat());
    printed.split_whitespace().map(|seconds| seconds.parse::<f64>().unwrap() * 1000.0).sum()
}
