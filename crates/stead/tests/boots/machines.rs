//! Machines with a real SSH server and a network of their own: `STEAD_MACHINES=10 cargo test -p stead --test boots machines_over_ssh`
//! makes a Debian once, and boots ten copies of it. All but the first are reached through the first alone.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value as Json;
use tempfile::TempDir;

use crate::debian::Debian;

const TEST: &str = "machines_over_ssh";

/// How many machines there are where nothing is asked for.
const MACHINES: usize = 2;

const PASSWORD: &str = "correct-horse-battery";

/// Accounts: `deploy` becomes root without a password, `ada` with one.
const ACCOUNTS: &str = "set -e
for name in deploy ada; do
  useradd -m -s /bin/bash $name
  mkdir -p -m 700 /home/$name/.ssh
  cp /srv/key.pub /home/$name/.ssh/authorized_keys
  chown -R $name /home/$name/.ssh
done
echo 'deploy ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/deploy
echo 'ada ALL=(ALL) ALL' >/etc/sudoers.d/ada
chmod 440 /etc/sudoers.d/deploy /etc/sudoers.d/ada
echo ada:PASSWORD | chpasswd
echo \"127.0.1.1 $(uname -n)\" >>/etc/hosts
";

const SITE: &str = "parameters: {text: {type: string, defaultValue: hello}}
resources:
- {name: motd, type: Stead/File, properties: {path: motd, content: \"[parameters('text')]\"}}
- {name: page, type: Stead/File, properties: {path: page, source: page.html}}
";

#[test]
fn machines_over_ssh() {
    if !stead_testkit::is_root(TEST) {
        return;
    }
    let asked = stead_testkit::asked("STEAD_MACHINES");
    let makes = asked.is_some() || stead_testkit::asked("STEAD_BOOTS").is_some();
    let mut site = match Site::new(asked.unwrap_or(MACHINES).max(MACHINES), makes) {
        Ok(site) => site,
        Err(reason) => return stead_testkit::skip(TEST, &reason),
    };
    is_planned_and_applied(&site);
    drift_is_found_and_repaired(&site);
    root_is_reached_with_and_without_a_password(&site);
    nobody_is_asked_for_the_key_of_a_jump_host(&site);
    a_machine_that_is_off_halts_the_rest(&mut site);
}

/// Nothing of stead is on any of them before, nor what others need.
fn is_planned_and_applied(site: &Site) {
    let all = site.names();
    for machine in &site.machines {
        for program in ["stead", "curl", "wget", "python3"] {
            assert!(!machine.run(&["which", program]).status.success(), "{program}");
        }
    }
    let reached = site.stead("hosts --check -o json");
    let reached: Json = serde_json::from_str(&reached.0).unwrap();
    assert!(reached["machines"].as_array().unwrap().iter().all(|each| each["reached"] == true), "{reached}");
    let count = site.machines.len();
    let (plan, errors, code) = site.stead("plan site.yaml --hosts hosts.yaml --brief");
    let expected = format!(
        "{all}:\n  + Stead/File 'motd'  to be created\n  + Stead/File 'page'  to be created\nPlan for {count} machines: {count} to change in "
    );
    assert!(code == Some(2) && plan.starts_with(&expected), "{plan}{errors}");
    assert_eq!(site.machines[0].read("/home/deploy/motd"), None);
    let (applied, errors, code) = site.stead("apply site.yaml --hosts hosts.yaml --brief");
    assert!(code == Some(0) && applied.contains(&format!(": {count} changed in ")), "{applied}{errors}");
    let (again, errors, code) = site.stead("apply site.yaml --hosts hosts.yaml");
    let expected = format!("Applied on {count} machines: {count} unchanged in ");
    assert!(code == Some(0) && again.starts_with(&expected), "{again}{errors}");
}

fn drift_is_found_and_repaired(site: &Site) {
    let last = site.machines.last().unwrap();
    let name = site.names().rsplit(", ").next().unwrap().to_owned();
    last.write("/home/deploy/motd", "drift");
    let (check, errors, code) = site.stead("check site.yaml --hosts hosts.yaml --brief");
    let expected = format!("{name}:\n  ~ Stead/File 'motd'  drifted\n");
    assert!(code == Some(2) && check.starts_with(&expected), "{check}{errors}");
    let (applied, errors, code) = site.stead("apply site.yaml --hosts hosts.yaml --where drifts");
    assert_eq!((code, last.read("/home/deploy/motd").as_deref()), (Some(0), Some("hello")), "{applied}{errors}");
}

fn root_is_reached_with_and_without_a_password(site: &Site) {
    let last = site.machines.last().unwrap();
    let (applied, errors, code) = site.stead("apply site.yaml --hosts hosts.yaml --sudo");
    assert_eq!((code, last.read("/root/motd").as_deref()), (Some(0), Some("hello")), "{applied}{errors}");
    let owner = last.ok(&["stat", "-c", "%U", "/root/motd", "/root/.cache/stead-programs"]);
    assert_eq!(owner, "root\nroot\n");
    let (refused, _, code) = site.stead("apply site.yaml --hosts hosts.yaml --user ada --sudo --set text=ada");
    assert!(code == Some(1) && refused.contains("sudo: a password is required"), "{refused}");
    let with = "apply site.yaml --hosts hosts.yaml --user ada --ask-sudo-password --set text=ada";
    let (refused, errors, code) = site.stead_with(with, "battery-horse\n");
    assert!(code == Some(1) && refused.contains("failed: sudo does not accept the password"), "{refused}{errors}");
    assert_eq!(last.read("/root/motd").as_deref(), Some("hello"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_stead"));
    command.args(with.split(' ')).arg("--yes");
    let mut terminal = crate::terminal::AtTerminal::run(site.environment(command));
    let asked = terminal.until("Password of sudo: ");
    let (applied, code) = terminal.types(&format!("{PASSWORD}\n")).ends();
    assert_eq!((code, last.read("/root/motd").as_deref()), (Some(0), Some("ada")), "{applied}");
    for text in [asked, applied, last.run_text(&["journalctl", "--no-pager"])] {
        assert!(!text.contains(PASSWORD), "{text}");
    }
}

/// `ssh` calls itself for a jump host, without the options that it was called with.
fn nobody_is_asked_for_the_key_of_a_jump_host(site: &Site) {
    let known = fs::read_to_string(site.path("known")).unwrap();
    let others: String =
        known.lines().filter(|line| !line.starts_with("10.77.")).flat_map(|line| [line, "\n"]).collect();
    fs::write(site.path("known"), &others).unwrap();
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait", env!("CARGO_BIN_EXE_stead"), "check", "site.yaml", "--hosts", "hosts.yaml"]);
    let (screen, code) = crate::terminal::AtTerminal::run(site.environment(command)).ends();
    assert!(code == Some(1) && !screen.contains("continue connecting"), "{screen}");
    assert!(screen.contains("unreachable: Host key verification failed."), "{screen}");
    assert_eq!(fs::read_to_string(site.path("known")).unwrap(), others);
    fs::write(site.path("known"), &known).unwrap();
}

fn a_machine_that_is_off_halts_the_rest(site: &mut Site) {
    site.machines.last_mut().unwrap().cut_power();
    let halted = "apply site.yaml --hosts backwards.yaml --at-once 1 --halt-after 1 --brief";
    let (applied, errors, code) = site.stead(halted);
    let rest = site.machines.len() - 1;
    let expected = format!(": 1 unreachable · {rest} not begun in ");
    assert!(code == Some(1) && applied.contains(&expected), "{applied}{errors}");
    let at = site.machines.len() - 1;
    site.boot(at);
    let (applied, errors, code) = site.stead(halted);
    assert!(code == Some(0) && applied.contains(" unchanged in "), "{applied}{errors}");
}

/// Machines that are on, the network between them, and a folder with what `ssh` and stead get here.
struct Site {
    machines: Vec<Debian>,
    network: String,
    folder: TempDir,
}

impl Site {
    fn new(count: usize, makes: bool) -> Result<Self, String> {
        let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join("machines");
        let fresh = Debian::of(&base.join("fresh"), makes)?;
        if !fresh.root("/usr/sbin/sshd").exists() {
            fresh.install_packages(&["openssh-server"])?;
        }
        let network = format!("stead-{}", std::process::id());
        let mut site = Self { machines: Vec::new(), network, folder: tempfile::tempdir().unwrap() };
        site.fresh_network(&fresh)?;
        site.files(count, &fresh);
        for at in 0..count {
            site.machines.push(fresh.copy(&base.join(format!("{}-{at}", std::process::id()))));
            fs::copy(site.path("key.pub"), site.machines[at].root("/srv/key.pub")).unwrap();
            site.boot(at);
            site.machines[at].wait_until_started();
            site.machines[at].ok(&["sh", "-c", &ACCOUNTS.replace("PASSWORD", PASSWORD)]);
        }
        Ok(site)
    }

    fn fresh_network(&self, machine: &Debian) -> Result<(), String> {
        let made = machine.network(&self.network);
        if made.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&made.stderr).into_owned()) }
    }

    /// The first machine is in the network of this process and in that of the others.
    fn boot(&mut self, at: usize) {
        let addresses = if at == 0 { vec!["10.77.0.11".to_owned(), "10.78.0.1".to_owned()] } else { vec![inner(at)] };
        let machine = &mut self.machines[at];
        machine.boot();
        machine.attach(&self.network, &addresses);
        stead_testkit::until(|| machine.run(&["systemctl", "is-active", "ssh"]).status.success().then_some(()));
    }

    fn files(&self, count: usize, fresh: &Debian) {
        let write = |name: &str, text: String| fs::write(self.path(name), text).unwrap();
        let key = self.path("key");
        let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).status().unwrap();
        assert!(made.success());
        let host = fresh.read("/etc/ssh/ssh_host_ed25519_key.pub").unwrap();
        write("known", format!("10.77.0.* {host}10.78.0.* {host}"));
        let shared = format!(
            "Host *\nIdentityFile {}\nIdentitiesOnly yes\nUserKnownHostsFile {}\nGlobalKnownHostsFile none\n",
            key.display(),
            self.path("known").display()
        );
        write("ssh.conf", format!("Host 10.78.0.*\nProxyJump deploy@10.77.0.11\n{shared}"));
        let ssh =
            format!("exec ip netns exec {} /usr/bin/ssh -F {} \"$@\"", self.network, self.path("ssh.conf").display());
        fs::create_dir(self.path("bin")).unwrap();
        write("bin/ssh", format!("#!/bin/sh\n{ssh}\n"));
        fs::set_permissions(self.path("bin/ssh"), PermissionsExt::from_mode(0o755)).unwrap();
        let line = |at: usize| {
            let address = if at == 0 { "10.77.0.11".to_owned() } else { inner(at) };
            let labels = if at + 1 == count { ", labels: {drifts: yes}" } else { "" };
            format!("  m{at}: {{address: {address}{labels}}}\n")
        };
        write("hosts.yaml", format!("user: deploy\nmachines:\n{}", (0..count).map(line).collect::<String>()));
        write("backwards.yaml", format!("user: deploy\nmachines:\n{}", (0..count).rev().map(line).collect::<String>()));
        write("site.yaml", SITE.to_owned());
        write("page.html", "<p>\n".to_owned());
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn names(&self) -> String {
        let names: Vec<String> = (0..self.machines.len()).map(|at| format!("m{at}")).collect();
        names.join(", ")
    }

    fn environment(&self, mut command: Command) -> Command {
        command.current_dir(self.folder.path()).env_clear().env("NO_COLOR", "1").env("HOME", self.path("home"));
        command.env("PATH", format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", self.path("bin").display()));
        command.env("STEAD_STATE", self.path("state"));
        command
    }

    /// The output and the errors of stead, and its exit code.
    fn stead(&self, words: &str) -> (String, String, Option<i32>) {
        self.stead_with(words, "")
    }

    fn stead_with(&self, words: &str, input: &str) -> (String, String, Option<i32>) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stead"));
        command.args(words.split(' ')).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.environment(command).spawn().unwrap();
        // What is not asked for is not read.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap(), status.code())
    }
}

fn inner(at: usize) -> String {
    format!("10.78.0.{}", 11 + at)
}

impl Drop for Site {
    fn drop(&mut self) {
        for machine in &mut self.machines {
            machine.cut_power();
            machine.delete();
        }
        let _ = Command::new("ip").args(["netns", "delete", &self.network]).status();
    }
}
