//! Documents about mounts, timers, rules of sudo and services, planned and applied in a whole Debian, which is booted for it.
//!
//! `STEAD_BOOTS=1 cargo test -p stead --test linux` makes the Debian once, in the target directory. Nothing of the machine
//! that runs the test is changed.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]
#![expect(clippy::print_stdout, reason = "it says what it measured, as tests do")]

#[expect(dead_code, reason = "the tests of the agent use more of it")]
#[path = "boots/debian.rs"]
mod debian;

use std::path::Path;

use debian::Debian;
use serde_json::{Value as Json, json};
use stead_testkit::until;

const TEST: &str = "a_linux_machine_is_as_its_documents_say";

#[test]
fn a_linux_machine_is_as_its_documents_say() {
    if !stead_testkit::is_root(TEST) {
        return;
    }
    let asked = stead_testkit::asked("STEAD_BOOTS");
    let mut machine = match Debian::of(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("boots"), asked.is_some()) {
        Ok(machine) => machine,
        Err(reason) => return stead_testkit::skip(TEST, &reason),
    };
    let former = [
        "/etc/fstab",
        "/etc/sudoers.d/ops",
        "/etc/demo.conf",
        "/srv/linux",
        "/srv/cache",
        "/srv/www",
        "/srv/shared",
        "/srv/disk",
        "/srv/images",
        "/var/lib/stead",
    ];
    for path in &former {
        machine.remove(path);
    }
    machine.install(Path::new(env!("CARGO_BIN_EXE_stead")), "/usr/local/bin/stead");
    machine.boot();
    until(|| machine.run(&["systemctl", "is-active", "dbus.socket"]).status.success().then_some(()));
    mounts(&machine);
    disks(&machine);
    swap_space(&machine);
    timers(&machine);
    if machine.root("/usr/sbin/visudo").is_file() {
        rules(&machine);
    } else {
        stead_testkit::skip(TEST, "the Debian was made without sudo");
    }
    notifications(&machine);
    many_services(&machine);
    machine.shut_down();
}

/// Plans a document, which changes nothing that `look` shows; applies it, which does what the plan says; and applies it again,
/// which changes nothing.
fn converge(machine: &Debian, document: &str, look: &[&str]) {
    machine.write("/srv/linux/main.yaml", document);
    let seen = |what: &str| (what.to_owned(), String::from_utf8(machine.run(look).stdout).unwrap());
    let before = seen("seen");
    let output = machine.run(&["stead", "plan", "/srv/linux/main.yaml", "-o", "json"]);
    assert_eq!(seen("seen"), before, "a plan changed something: {}", String::from_utf8_lossy(&output.stdout));
    let planned = what_is_done(&output.stdout);
    let applied = what_is_done(machine.ok(&["stead", "apply", "/srv/linux/main.yaml", "-o", "json"]).as_bytes());
    assert_eq!(planned, applied, "the plan is not what was done");
    let after = seen("after");
    let again = machine.ok(&["stead", "apply", "/srv/linux/main.yaml"]);
    assert!(again.contains("Applied: 0 changed"), "{applied:#}\n{again}");
    assert_eq!(seen("after"), after);
}

/// Returns the results of the instances of a run, without how long each of them took, and without the numbers of
/// lines: an instance before may have removed one above.
fn what_is_done(printed: &[u8]) -> Json {
    let mut run: Json = serde_json::from_slice(printed).unwrap();
    for instance in run["instances"].as_array_mut().unwrap() {
        instance.as_object_mut().unwrap().remove("duration");
        for item in instance["effects"]["destroys"]["items"].as_array_mut().into_iter().flatten() {
            if let Some(number) = item.pointer_mut("/kind/line/number") {
                number.take();
            }
        }
    }
    run["instances"].take()
}

const LIVE: [&str; 3] =
    ["sh", "-c", "grep /srv /proc/self/mountinfo; cat /etc/fstab; ls -R /etc/systemd/system /etc/sudoers.d /srv"];

fn mounts(machine: &Debian) {
    let document = |options: &str, bind: &str| {
        format!(
            "resources:
- name: fast
  type: Stead/Mount
  properties: {{path: /srv/cache, device: tmpfs, fstype: tmpfs, options: '{options}', state: mounted}}
- name: bound
  type: Stead/Mount
  properties: {{path: /srv/www, device: /srv/shared, fstype: none, options: '{bind}', state: mounted}}
- {{name: cache, type: Stead/Directory, properties: {{path: /srv/cache}}}}
- {{name: www, type: Stead/Directory, properties: {{path: /srv/www}}}}
- {{name: shared, type: Stead/Directory, properties: {{path: /srv/shared}}}}
"
        )
    };
    let options = |path: &str| {
        let output = machine.run(&["findmnt", "--noheadings", "--output", "FSTYPE,OPTIONS", path]);
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    converge(machine, &document("size=8m,nosuid", "bind,ro"), &LIVE);
    assert!(options("/srv/cache").contains("nosuid") && options("/srv/cache").contains("size=8192k"));
    assert!(options("/srv/www").contains("ro,"), "{}", options("/srv/www"));
    let fstab = machine.read("/etc/fstab").unwrap();
    assert_eq!(fstab.lines().count(), 2, "{fstab}");
    // systemd knows of the entries.
    assert_eq!(machine.ok(&["systemctl", "show", "--property=NeedDaemonReload", "--value", "srv-cache.mount"]), "no\n");

    machine.ok(&["touch", "/srv/cache/kept"]);
    converge(machine, &document("size=4m,noexec", "bind"), &LIVE);
    let now = options("/srv/cache");
    assert!(now.contains("noexec") && now.contains("size=4096k") && !now.contains("nosuid"), "{now}");
    assert!(options("/srv/www").contains("rw,"));
    machine.ok(&["test", "-e", "/srv/cache/kept"]);

    machine.ok(&["umount", "/srv/www"]);
    converge(machine, &document("size=4m,noexec", "bind"), &LIVE);
    let gone = document("size=4m,noexec", "bind").replace("state: mounted", "_exist: false");
    // What is in memory is gone then, and named before.
    machine.write("/srv/linux/main.yaml", &gone);
    let planned = machine.run(&["stead", "plan", "/srv/linux/main.yaml"]).stdout;
    assert!(String::from_utf8_lossy(&planned).contains("/srv/cache (1 entry)\n        - kept\n"), "{planned:?}");
    converge(machine, &gone, &LIVE);
    assert_eq!((options("/srv/cache"), machine.read("/etc/fstab")), (String::new(), Some(String::new())));
}

/// File systems on devices, which are images here.
fn disks(machine: &Debian) {
    if !Path::new("/dev/loop-control").exists() {
        return stead_testkit::skip(TEST, "there are no loop devices");
    }
    let nodes = "test -e /dev/loop-control || mknod /dev/loop-control c 10 237; \
                 for n in 0 1 2 3 4 5 6 7; do test -e /dev/loop$n || mknod /dev/loop$n b 7 $n; done";
    let images =
        "mkdir -p /srv/images /srv/linux; cd /srv/images; truncate -s 16M one two; mkfs.ext4 -q one; mkfs.ext4 -q two";
    machine.ok(&["sh", "-ec", &format!("{nodes}\n{images}")]);
    let document = |image: &str, options: &str| {
        format!(
            "resources:
- name: disk
  type: Stead/Mount
  properties: {{path: /srv/disk, device: /srv/images/{image}, fstype: ext4, options: '{options}', state: mounted}}
- {{name: point, type: Stead/Directory, properties: {{path: /srv/disk}}}}
"
        )
    };
    let found = || {
        let output = machine.run(&["findmnt", "--noheadings", "--output", "FSTYPE,OPTIONS", "/srv/disk"]);
        let backing = "cat /sys/block/$(basename $(findmnt -no SOURCE /srv/disk))/loop/backing_file";
        let image = machine.run(&["sh", "-c", backing]);
        [output, image].map(|output| String::from_utf8(output.stdout).unwrap().trim().to_owned())
    };
    converge(machine, &document("one", "loop,nodev"), &LIVE);
    let [options, image] = found();
    assert!(
        options.starts_with("ext4") && options.contains("nodev") && image.ends_with("images/one"),
        "{options} {image}"
    );
    machine.ok(&["touch", "/srv/disk/of-one"]);
    // Other options leave it mounted; another device needs it to be free.
    machine.ok(&["sh", "-c", "sleep 1000 </srv/disk/of-one >/dev/null 2>&1 & echo $! >/srv/linux/user"]);
    converge(machine, &document("one", "loop,noexec"), &LIVE);
    assert!(found()[0].contains("noexec"), "{:?}", found());
    let other = document("two", "loop");
    machine.write("/srv/linux/main.yaml", &other);
    let busy = machine.run(&["stead", "apply", "/srv/linux/main.yaml"]);
    let printed = String::from_utf8_lossy(&[busy.stdout, busy.stderr].concat()).into_owned();
    assert!(!busy.status.success() && printed.contains("busy"), "{printed}");
    assert!(found()[1].ends_with("images/one") && machine.read("/etc/fstab").unwrap().contains("images/one"));
    machine.ok(&["sh", "-c", "kill $(cat /srv/linux/user)"]);
    until(|| machine.run(&["sh", "-c", "! test -e /proc/$(cat /srv/linux/user)"]).status.success().then_some(()));
    converge(machine, &other, &LIVE);
    assert!(found()[1].ends_with("images/two"), "{:?}", found());
    machine.ok(&["test", "!", "-e", "/srv/disk/of-one"]);
    converge(machine, &other.replace("state: mounted", "_exist: false"), &LIVE);
    assert_eq!(found()[0], "");
}

/// The swap space of the box is the kernel's, which this machine shares.
struct Swap<'m>(&'m Debian);

impl Drop for Swap<'_> {
    fn drop(&mut self) {
        let _ = std::process::Command::new("swapoff").arg(self.0.root("/srv/images/swap")).output();
    }
}

fn swap_space(machine: &Debian) {
    let image = "mkdir -p /srv/images; cd /srv/images; dd if=/dev/zero of=swap bs=1M count=2 status=none; chmod 600 swap; mkswap swap";
    machine.ok(&["sh", "-ec", image]);
    let _swap = Swap(machine);
    let swap = |rest: &str| {
        format!(
            "resources:\n- {{name: swap, type: Stead/Mount, properties: {{path: none, device: /srv/images/swap, fstype: swap, \
             {rest}}}}}\n"
        )
    };
    let is_used = || machine.ok(&["cat", "/proc/swaps"]).contains("images/swap");
    converge(machine, &swap("state: mounted"), &LIVE);
    assert!(is_used());
    converge(machine, &swap("state: unmounted"), &LIVE);
    assert!(!is_used() && machine.read("/etc/fstab").unwrap().contains("images/swap"));
    converge(machine, &swap("state: mounted"), &LIVE);
    converge(machine, &swap("_exist: false"), &LIVE);
    assert_eq!((is_used(), machine.read("/etc/fstab").as_deref()), (false, Some("")));
}

fn timers(machine: &Debian) {
    let document = |properties: &str| {
        format!("resources:\n- {{name: beat, type: Stead/Timer, properties: {{name: beat, {properties}}}}}\n")
    };
    let show = |unit: &str, property: &str| {
        machine.ok(&["systemctl", "show", &format!("--property={property}"), "--value", unit]).trim().to_owned()
    };
    let hourly = "onCalendar: hourly, persistent: true, user: nobody, command: '/usr/bin/touch /tmp/beat'";
    converge(machine, &document(hourly), &LIVE);
    assert_eq!(machine.ok(&["systemctl", "is-active", "beat.timer"]), "active\n");
    assert_eq!(machine.ok(&["systemctl", "is-enabled", "beat.timer"]), "enabled\n");
    assert!(show("beat.timer", "TimersCalendar").contains("*-*-* *:00:00"), "{}", show("beat.timer", "TimersCalendar"));
    assert_eq!(show("beat.timer", "Persistent"), "yes");
    // One that comes up at once.
    converge(machine, &document("onActiveSec: 1ms, accuracySec: 1ms, command: '/usr/bin/touch /tmp/beaten'"), &LIVE);
    until(|| machine.run(&["test", "-e", "/tmp/beaten"]).status.success().then_some(()));
    converge(
        machine,
        &document("onCalendar: [daily, weekly], unit: systemd-tmpfiles-clean, enabled: false, state: stopped"),
        &LIVE,
    );
    assert_eq!(show("beat.timer", "Unit"), "systemd-tmpfiles-clean.service");
    assert_eq!(show("beat.timer", "ActiveState"), "inactive");
    converge(machine, &document("_exist: false"), &LIVE);
    assert_eq!(show("beat.timer", "LoadState"), "not-found");
    assert_eq!(show("beat.service", "LoadState"), "not-found");
}

fn rules(machine: &Debian) {
    let document = |properties: &str| {
        format!("resources:\n- {{name: ops, type: Stead/Sudoers, properties: {{name: ops, {properties}}}}}\n")
    };
    let rule = "rules: [{users: [nobody], runAs: [root], nopasswd: true, commands: [/usr/bin/id -u]}]";
    converge(machine, &document(rule), &LIVE);
    assert_eq!(machine.ok(&["stat", "--format=%a %U %G", "/etc/sudoers.d/ops"]), "440 root root\n");
    let checked = machine.ok(&["visudo", "-c"]);
    assert!(checked.contains("/etc/sudoers.d/ops: parsed OK"), "{checked}");
    let sudo = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "sudo", "-n", "id", "-u"];
    assert_eq!(machine.ok(&sudo), "0\n");

    let bad = document("content: \"nobody ALL=(root NOPASSWD: ALL\\n\"");
    machine.write("/srv/linux/main.yaml", &bad);
    let before = machine.read("/etc/sudoers.d/ops");
    for command in ["plan", "apply"] {
        let output = machine.run(&["stead", command, "/srv/linux/main.yaml"]);
        let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(printed.contains("visudo refuses the rules") && printed.contains("/etc/sudoers.d/ops:1:"), "{printed}");
        assert!(command == "plan" || !output.status.success(), "{printed}");
        assert_eq!(machine.read("/etc/sudoers.d/ops"), before);
    }
    converge(machine, &document("_exist: false"), &LIVE);
    assert!(!machine.run(&sudo).status.success());
}

/// The service, and what it reads at its start.
const SERVICE: &str = "parameters: {text: {type: string}}
resources:
- {name: conf, type: Stead/File, properties: {path: /etc/demo.conf, content: \"[parameters('text')]\"}}
";

fn notifications(machine: &Debian) {
    let process = || machine.ok(&["systemctl", "show", "--property=MainPID", "--value", "demo"]);
    let apply = |document: &str, text: &str| {
        machine.write("/srv/linux/main.yaml", document);
        machine.run(&["stead", "apply", "/srv/linux/main.yaml", "--set", &format!("text={text}")])
    };
    let unit = "\"[[Service]\\nExecStart=/bin/sleep 1000\\n\"";
    let asked = format!(
        "{SERVICE}- {{name: demo, type: Stead/Service, properties: {{name: demo, unit: {unit}, state: running}}}}
- name: restart
  type: Stead/Service
  properties: {{name: demo, restarted: true}}
  dependsOn: [\"[resourceId('Stead/Service', 'demo')]\"]
  directives: {{onChanges: ['Stead/File:conf']}}
"
    );
    let succeeds = |document: &str, text: &str| {
        let output = apply(document, text);
        let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{printed}");
    };
    succeeds(&asked, "one");
    let first = process();
    succeeds(&asked, "one");
    assert_eq!(process(), first, "nothing changed");
    succeeds(&asked, "two");
    let second = process();
    assert_ne!(second, first, "the file changed");

    // A run that ends between the file and the restart.
    let end = "touch /srv/linux/ended; for p in /proc/[0-9]*; do read name <$p/comm; [ $name != stead ] || kill -9 ${p#/proc/}; done";
    let owed = format!(
        "{SERVICE}- name: end
  type: Stead/Command
  properties: {{creates: /srv/linux/ended, set: '{end}'}}
  dependsOn: [\"[resourceId('Stead/File', 'conf')]\"]
- name: demo
  type: Stead/Service
  properties: {{name: demo, state: running, restartedAfter: [/etc/demo.conf]}}
  dependsOn: [\"[resourceId('Stead/Command', 'end')]\"]
"
    );
    assert!(!apply(&owed, "three").status.success(), "the run was not ended");
    assert_eq!((process(), machine.read("/etc/demo.conf").as_deref()), (second.clone(), Some("three")));
    succeeds(&owed, "three");
    let third = process();
    assert_ne!(third, second, "the restart was forgotten");
    succeeds(&owed, "three");
    assert_eq!(process(), third, "it was restarted again");
    machine.ok(&["systemctl", "stop", "demo"]);
    machine.remove("/etc/systemd/system/demo.service");
}

/// Fifty services that are started in one run are judged together behind the last start, and the one that ended has failed.
fn many_services(machine: &Debian) {
    const STABLE_FOR: u32 = 6;
    let name = |number: usize| format!("many-{number}");
    let service = |number: usize| {
        let command = if number == 17 { "/bin/sh -c 'sleep 2; exit 1'" } else { "/bin/sleep 1000" };
        let unit = format!("[[Service]\nExecStart={command}\n");
        let properties = json!({"name": name(number), "unit": unit, "state": "running", "stableFor": STABLE_FOR});
        json!({"name": name(number), "type": "Stead/Service", "properties": properties})
    };
    let all: Vec<usize> = (0..50).collect();
    let document = json!({ "resources": all.iter().copied().map(service).collect::<Vec<_>>() });
    machine.write("/srv/linux/main.yaml", &document.to_string());
    let apply = "stead apply /srv/linux/main.yaml -R none -o json >/srv/linux/run.json; cat /proc/uptime";
    let uptime = machine.ok(&["sh", "-c", apply]);
    let ended: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
    let run: Json = serde_json::from_str(&machine.read("/srv/linux/run.json").unwrap()).unwrap();
    let are =
        |status: &str| run["instances"].as_array().unwrap().iter().filter(|each| each["status"] == status).count();
    assert_eq!((are("changed"), are("failed")), (49, 1), "{run:#}");

    let units: Vec<String> = all.iter().copied().map(name).collect();
    let show = ["systemctl", "show", "--property=ExecMainStartTimestampMonotonic", "--value"];
    let shown = machine.ok(&show.into_iter().chain(units.iter().map(String::as_str)).collect::<Vec<_>>());
    let started = shown.lines().filter_map(|line| line.parse::<f64>().ok()).fold(0.0, f64::max) / 1e6;
    let waits = (ended - started) / f64::from(STABLE_FOR);
    println!("fifty services: the run ended {waits:.2} times stableFor behind the last start");
    assert!((0.99..2.0).contains(&waits), "one wait for all of them, not {waits:.2}");

    machine.run(&[&["systemctl", "stop"], &units.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat());
    for unit in &units {
        machine.remove(&format!("/etc/systemd/system/{unit}.service"));
    }
}
