//! A controller and three machines, each a whole Debian: they join, are released to and repaired, and go on for a day without the controller.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;
use stead_testkit::until;

use crate::debian::Debian;
use crate::site::{Reach, Site, fleet_program};

const TEST: &str = "machines_join_a_controller_and_go_on_for_a_day_without_it";
const URL: &str = "https://10.77.0.11:7443";
/// How often a machine checks itself in a day: every quarter of an hour, which is a second here.
const DAY: usize = 96;
/// How long a machine leaves a controller alone at most that was away for so long, and what it takes to apply.
const LONGEST: Duration = Duration::from_mins(6);
const BOTH: &str = "--fleet fleet/root --sign ann --sign ben";

#[test]
fn machines_join_a_controller_and_go_on_for_a_day_without_it() {
    if !stead_testkit::is_root(TEST) {
        return;
    }
    let Some(program) = fleet_program(TEST) else { return };
    let site = match Site::new(4, stead_testkit::asked("STEAD_BOOTS").is_some(), Reach::WithGit) {
        Ok(site) => site,
        Err(reason) => return stead_testkit::skip(TEST, &reason),
    };
    let mut fleet = Fleet { site, program };
    let root = fleet.begins();
    fleet.joins(&root);
    fleet.release("one");
    fleet.enrol();
    fleet.all_have("one");
    fleet.drifts();
    fleet.site.machines[0].cut_power();
    fleet.a_day_passes();
    fleet.site.boot(0);
    fleet.goes_on();
}

/// The first machine is the controller, the others are its machines; operators work here.
struct Fleet {
    site: Site,
    program: PathBuf,
}

impl Fleet {
    fn machines(&self) -> &[Debian] {
        &self.site.machines[1..]
    }

    fn stead(&self, words: &str) -> String {
        let (printed, errors, code) = self.site.stead(words);
        assert_eq!(code, Some(0), "{words}: {printed}{errors}");
        printed
    }

    /// Asks the controller as an operator; `None` if it refuses or is not reached.
    fn try_ask(&self, words: &str) -> Option<String> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.site.network]).arg(&self.program).args(words.split(' '));
        let mut command = self.site.environment(command);
        command.env("STEAD_FLEET_URL", URL).env("STEAD_FLEET_TOKEN_FILE", "ann.token");
        let output = command.env("STEAD_FLEET_CERTIFICATE", "tls.pem").output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    fn ask(&self, words: &str) -> String {
        self.try_ask(words).unwrap_or_else(|| panic!("stead-fleet {words}"))
    }

    /// The controller is a service, and has an operator and a root. Returns the digest of that.
    fn begins(&self) -> String {
        let controller = &self.site.machines[0];
        controller.install(&self.program, "/usr/local/bin/stead-fleet");
        let printed = controller.ok(&["stead-fleet", "install", "--name", "10.77.0.11"]);
        let line = printed.lines().find_map(|line| line.strip_prefix("create an operator: ")).unwrap();
        let token = controller.ok(&["sh", "-c", &line.replace(" NAME ", " ann ")]);
        fs::write(self.site.path("ann.token"), token).unwrap();
        fs::copy(controller.root("/var/lib/stead-fleet/tls.pem"), self.site.path("tls.pem")).unwrap();
        for name in ["ann", "ben"] {
            let mut keygen = self.site.environment(Command::new("ssh-keygen"));
            assert!(keygen.args(["-q", "-t", "ed25519", "-N", "", "-f", name]).status().unwrap().success());
        }
        fs::create_dir(self.site.path("fleet")).unwrap();
        let made = self.stead("release root --name shop --signer ann.pub --signer ben.pub -o fleet/root");
        self.ask("publish fleet");
        made.trim().rsplit(' ').next().unwrap().to_owned()
    }

    fn joins(&self, root: &str) {
        let token = self.ask("token --uses 3");
        for (at, machine) in self.machines().iter().enumerate() {
            machine.install(Path::new(env!("CARGO_BIN_EXE_stead")), "/usr/local/bin/stead");
            machine.ok(&["stead", "agent", "install"]);
            machine.ok(&["stead", "agent", "settings", "set", "SplaySecs=0", "ConfigurationModeFrequencyMins=0.017"]);
            fs::copy(self.site.path("tls.pem"), machine.root("/srv/tls.pem")).unwrap();
            machine.write("/srv/token", &token);
            let join =
                ["stead", "agent", "join", URL, "--root", root, "--ca", "/srv/tls.pem", "--token-file", "/srv/token"];
            machine.ok(&[&join[..], &["--name", &format!("m{at}")]].concat());
        }
        until(|| (self.ask("machines state=pending").matches("pending").count() == 3).then_some(()));
    }

    /// A release of a document that keeps a file at a content.
    fn release(&self, content: &str) {
        let properties = json!({"path": "/srv/kept", "content": content});
        let document = json!({
            "directives": {"configurationMode": "ApplyAndAutoCorrect"},
            "resources": [{"name": "kept", "type": "Stead/File", "properties": properties}],
        });
        fs::write(self.site.path("site.yaml"), document.to_string()).unwrap();
        self.stead("bundle site.yaml -o site.bundle");
        self.stead(&format!("release make site.bundle --channel web --where role=web --expires 90d {BOTH}"));
        until(|| self.try_ask("publish fleet"));
    }

    fn enrol(&self) {
        for (at, machine) in self.machines().iter().enumerate() {
            fs::write(self.site.path("identity"), machine.ok(&["stead", "agent", "identity"])).unwrap();
            self.stead(&format!("release roster add m{at} --identity identity --label role=web {BOTH}"));
        }
        self.ask("publish fleet");
    }

    fn all_have(&self, content: &str) {
        for machine in self.machines() {
            until(|| machine.read("/srv/kept").filter(|kept| kept == content));
        }
    }

    fn drifts(&self) {
        for machine in self.machines() {
            machine.write("/srv/kept", "drifted");
        }
        self.all_have("one");
    }

    /// Each machine checks itself as often as in a day, and puts back what is changed, in the middle of it and at its end.
    fn a_day_passes(&self) {
        let ended = |machine: &Debian| {
            machine.read("/var/lib/stead/log.jsonl").map_or(0, |log| log.matches("jobEnded").count())
        };
        let (before, began): (Vec<_>, _) = (self.machines().iter().map(ended).collect(), Instant::now());
        for part in [DAY / 2, DAY] {
            for (machine, before) in self.machines().iter().zip(&before) {
                waited(LONGEST, || (ended(machine) >= before + part).then_some(()));
            }
            self.drifts();
        }
        for machine in self.machines() {
            let status = machine.agent(&["status"]).unwrap();
            assert!(status["Source"]["Releases"]["Offline"]["Since"].is_string(), "{status}");
            assert!(status["Source"]["Failure"].is_null(), "{status}");
        }
        println!("a day without the controller: {DAY} checks of each machine in {:?}", began.elapsed());
    }

    /// The controller is back: what is newer is applied.
    fn goes_on(&self) {
        let began = Instant::now();
        self.release("two");
        let status = "machines state=converged";
        waited(LONGEST, || (self.try_ask(status)?.matches("web/2").count() == 3).then_some(()));
        println!("the controller is back: all have the next release after {:?}", began.elapsed());
        self.all_have("two");
    }
}

/// Waits for what takes longer than most.
fn waited<T>(longest: Duration, mut found: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(began.elapsed() < longest, "it takes too long");
        std::thread::sleep(Duration::from_millis(100));
    }
}
