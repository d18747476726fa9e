//! Machines with SSH servers, the network between them, and what `ssh` and stead need to reach them.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::debian::Debian;

pub(crate) const PASSWORD: &str = "correct-horse-battery";

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

/// How machines are reached from here.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// All but the first by a jump over that. Nothing that others need is on them.
    ThroughTheFirst,
    /// Each by itself. There is a Python, which others need.
    Direct,
    /// Each by itself. There is a git.
    WithGit,
}

/// Machines that are on, the network between them, and a folder with what `ssh` and stead get here.
pub(crate) struct Site {
    pub(crate) machines: Vec<Debian>,
    pub(crate) network: String,
    reach: Reach,
    folder: TempDir,
}

impl Site {
    pub(crate) fn new(count: usize, makes: bool, reach: Reach) -> Result<Self, String> {
        let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join("machines");
        let (name, packages): (_, &[&str]) = match reach {
            Reach::ThroughTheFirst => ("fresh", &["openssh-server"]),
            Reach::Direct => ("fresh-python", &["openssh-server", "python3"]),
            Reach::WithGit => ("fresh-git", &["openssh-server", "git"]),
        };
        let fresh = Debian::of(&base.join(name), makes)?;
        if !fresh.root("/usr/sbin/sshd").exists() {
            fresh.install_packages(packages)?;
        }
        let network = format!("stead-{}", std::process::id());
        let mut site = Self { machines: Vec::new(), reach, network, folder: tempfile::tempdir().unwrap() };
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
    pub(crate) fn boot(&mut self, at: usize) {
        let mut addresses = vec![self.address(at)];
        if at == 0 {
            addresses.push("10.78.0.1".to_owned());
        }
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
        // Each by its address: pyinfra knows no patterns.
        write("known", (0..count).map(|at| format!("{} {host}", self.address(at))).collect::<Vec<_>>().concat());
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
            let address = self.address(at);
            let labels = if at + 1 == count { ", labels: {drifts: yes}" } else { "" };
            format!("  m{at}: {{address: {address}{labels}}}\n")
        };
        write("hosts.yaml", format!("user: deploy\nmachines:\n{}", (0..count).map(line).collect::<String>()));
        write("backwards.yaml", format!("user: deploy\nmachines:\n{}", (0..count).rev().map(line).collect::<String>()));
        write("site.yaml", SITE.to_owned());
        write("page.html", "<p>\n".to_owned());
    }

    pub(crate) fn address(&self, at: usize) -> String {
        let network = if at > 0 && self.reach == Reach::ThroughTheFirst { 78 } else { 77 };
        format!("10.{network}.0.{}", 11 + at)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn names(&self) -> String {
        let names: Vec<String> = (0..self.machines.len()).map(|at| format!("m{at}")).collect();
        names.join(", ")
    }

    pub(crate) fn environment(&self, mut command: Command) -> Command {
        command.current_dir(self.folder.path()).env_clear().env("NO_COLOR", "1").env("HOME", self.path("home"));
        command.env("PATH", format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", self.path("bin").display()));
        command.env("STEAD_STATE", self.path("state"));
        command
    }

    /// The output and the errors of stead, and its exit code.
    pub(crate) fn stead(&self, words: &str) -> (String, String, Option<i32>) {
        self.stead_with(words, "")
    }

    pub(crate) fn stead_with(&self, words: &str, input: &str) -> (String, String, Option<i32>) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stead"));
        command.args(words.split(' ')).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.environment(command).spawn().unwrap();
        // What is not asked for is not read.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap(), status.code())
    }
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

/// The program of the controller, which is built beside that of the agent; `None` where the test is skipped.
pub(crate) fn fleet_program(test: &str) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_stead")).with_file_name("stead-fleet");
    if !program.exists() {
        stead_testkit::skip(test, "'stead-fleet' was not built beside 'stead'");
        return None;
    }
    Some(program)
}
