//! A machine that follows what operators sign.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value as Json;
use stead_testkit::until;

use crate::machine::Machine;

/// Two operators and their fleet, in the folder of a machine that follows it.
pub(crate) struct Shop {
    pub(crate) machine: Machine,
    pub(crate) root: String,
}

impl Shop {
    /// Operators with keys, a root statement, and an agent that runs.
    pub(crate) fn new() -> Self {
        let mut machine = Machine::new();
        for name in ["ann", "ben", "cid", "web1"] {
            let path = machine.path(name).display().to_string();
            let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &path]).status();
            assert!(made.unwrap().success());
        }
        fs::create_dir(machine.path("fleet")).unwrap();
        machine.start();
        machine.set("PendingRetrySecs=1", "SplaySecs=0");
        machine.set("RefreshFrequencyMins=0.02", "ConfigurationModeFrequencyMins=0.05");
        let shop = Self { machine, root: String::new() };
        let made = shop.stead("release root --name shop --signer ann.pub --signer ben.pub -o fleet/root");
        let (_, root) = made.trim().rsplit_once(' ').unwrap();
        Self { root: root.to_owned(), ..shop }
    }

    fn try_stead(&self, words: &str) -> std::process::Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stead"));
        command.args(words.split(' ')).current_dir(self.machine.path("")).env("HOME", self.machine.path(""));
        command.output().unwrap()
    }

    /// Runs the program in the folder, as an operator; it must succeed.
    pub(crate) fn stead(&self, words: &str) -> String {
        let output = self.try_stead(words);
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// One whose machine follows the folder and has its first release.
    pub(crate) fn having(content: &str) -> Self {
        let shop = Self::new();
        shop.publish(content, FOR_WEB);
        shop.enrol(BOTH);
        shop.follow(&shop.folder());
        shop.until_kept(content);
        shop
    }

    /// A release of a document that keeps the file `kept` at a content.
    pub(crate) fn publish(&self, content: &str, more: &str) -> String {
        let kept = self.machine.path("kept").display().to_string();
        let properties = serde_json::json!({ "path": kept, "content": format!("{content}\n") });
        let document = serde_json::json!({
            "directives": {"configurationMode": "ApplyAndAutoCorrect"},
            "resources": [{ "name": "kept", "type": "Stead/File", "properties": properties }],
        });
        self.machine.write("site.yaml", &document.to_string());
        self.stead("bundle site.yaml -o site.bundle");
        let made = self.stead(&format!("release make site.bundle --fleet fleet/root --channel web {more}"));
        made.trim().rsplit(' ').next().unwrap().to_owned()
    }

    pub(crate) fn enrol(&self, by: &str) {
        self.stead(&format!("release roster add web1 --fleet fleet/root --key web1.pub --label role=web {by}"));
    }

    pub(crate) fn follow(&self, source: &str) {
        self.machine.ok(&["follow", source, "--root", &self.root, "--name", "web1"]);
    }

    pub(crate) fn folder(&self) -> String {
        self.machine.path("fleet").display().to_string()
    }

    pub(crate) fn until_kept(&self, content: &str) {
        until(|| self.machine.read("kept").filter(|text| text.trim_end() == content));
        self.machine.wait(0);
    }

    /// What the status says of the source, once it is as wanted.
    pub(crate) fn until_source(&self, wanted: impl Fn(&Json) -> bool) -> Json {
        self.machine.signal(Signal::USR1);
        self.until_source_by_itself(wanted)
    }

    /// Likewise, but without asking for a look: there is one each 1.2 s.
    pub(crate) fn until_source_by_itself(&self, wanted: impl Fn(&Json) -> bool) -> Json {
        until(|| Some(self.machine.status()["Source"].clone()).filter(&wanted))
    }

    pub(crate) fn until_code(&self, code: &str) {
        let source = self.until_source(|source| source["Code"] == code);
        assert_eq!(self.machine.status_and_code().1, Some(4), "{source}");
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.machine.path("state/log.jsonl")).unwrap()
    }
}

pub(crate) const BOTH: &str = "--sign ann --sign ben";
pub(crate) const FOR_WEB: &str = "--where role=web --expires 90d --sign ann --sign ben";

#[test]
fn a_source_that_is_followed_again_is_looked_at_now() {
    let shop = Shop::new();
    shop.machine.set("RefreshFrequencyMins=1000", "SplaySecs=0");
    shop.publish("one", FOR_WEB);
    shop.enrol(BOTH);
    for content in ["one", "two", "three"] {
        if content != "one" {
            shop.publish(content, FOR_WEB);
        }
        shop.follow(&shop.folder());
        shop.until_kept(content);
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one story, in the order in which it happens")]
fn a_machine_has_what_operators_signed_and_nothing_else() {
    let mut shop = Shop::new();
    let first = shop.publish("one", FOR_WEB);
    shop.enrol(BOTH);
    shop.follow(&shop.folder());
    shop.until_kept("one");
    let source = shop.until_source(|source| source["Releases"]["Fleet"] == "shop");
    assert_eq!(source["Taken"], Json::from(first));
    assert_eq!(source["Releases"]["Staged"]["channel"], "web");
    let text = shop.machine.ok(&["status"]);
    assert!(text.contains("Release      web 1 (generation 1), until "), "{text}");
    // What a user of the machine wants does not count, and is noted.
    let bundle = shop.machine.path("site.bundle").display().to_string();
    for words in [vec!["apply", &bundle], vec!["publish", &bundle], vec!["restore", "1"]] {
        let refused = shop.machine.run(&words);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(said.contains("whose operators decide what it has; '--unfollow' ends that"), "{words:?} {said}");
        assert_eq!(refused.status.code(), Some(3));
    }
    assert!(!shop.machine.run(&["remove", "--stage", "current"]).status.success());
    assert!(!shop.machine.run(&["settings", "set", "SourceFolder=/srv"]).status.success());
    assert_eq!(shop.log().matches("localRefused").count(), 4);
    // Drift is repaired, also while the source is out of reach: that is a state, and no failure.
    fs::rename(shop.machine.path("fleet"), shop.machine.path("away")).unwrap();
    let source = shop.until_source(|source| source["Releases"]["Offline"]["Reason"].is_string());
    assert_eq!(source["Failure"], Json::Null, "{source}");
    shop.machine.write("kept", "drifted\n");
    shop.until_kept("one");
    assert_eq!(shop.machine.status_and_code().1, Some(0), "{:?}", shop.machine.status());
    fs::rename(shop.machine.path("away"), shop.machine.path("fleet")).unwrap();
    shop.until_source(|source| source["Releases"]["Offline"].is_null());
    assert!(shop.log().contains("sourceOffline") && shop.log().contains("sourceReached"));
    // One operator alone publishes nothing; it is refused with its code in status, log and the next report.
    shop.publish("two", "--where role=web --expires 90d --sign ann");
    shop.until_code("E1404");
    shop.machine.write("kept", "drifted\n");
    shop.until_kept("one");
    let reports = shop.machine.json(&["report"]);
    assert_eq!(reports["reports"][0]["report"]["source"]["Code"], "E1404", "{reports}");
    assert!(shop.log().contains(r#""code":"E1404""#));
    shop.stead("release sign fleet/web/2.release --sign ben");
    shop.until_kept("two");
    shop.until_source(|source| source["Failure"].is_null());
    // Killed and started again, it has what it took, and knows what it has seen.
    shop.machine.kill();
    shop.machine.start();
    let second = fs::read(shop.machine.path("fleet/web/2.release")).unwrap();
    fs::copy(shop.machine.path("fleet/web/1.release"), shop.machine.path("fleet/web/2.release")).unwrap();
    shop.until_code("E1412");
    fs::write(shop.machine.path("fleet/web/2.release"), second).unwrap();
    shop.until_source(|source| source["Failure"].is_null());
    assert_eq!(shop.machine.json(&["history"])["generations"].as_array().unwrap().len(), 2, "nothing is staged twice");
    // Signers change: who was one signs nothing more.
    shop.stead("release signers --signer ann.pub --signer cid.pub --fleet fleet/root --sign ann --sign ben");
    shop.until_code("E1407");
    shop.enrol("--sign ann --sign cid");
    shop.publish("three", "--where role=web --expires 90d --sign ann --sign cid");
    shop.until_kept("three");
    shop.until_source(|source| source["Failure"].is_null());
    // A bundle that is not the one that was signed.
    let release = shop.publish("four", "--where role=db --expires 90d --sign ann --sign cid");
    shop.until_code("E1415");
    assert_ne!(shop.machine.status()["Source"]["Taken"], Json::from(release));
    let blobs: Vec<_> =
        fs::read_dir(shop.machine.path("fleet/blobs")).unwrap().map(|each| each.unwrap().path()).collect();
    shop.publish("five", "--where role=web --expires 90d --sign ann --sign cid");
    let is_new = |path: &Path| !blobs.iter().any(|known| known == path);
    let mut all = fs::read_dir(shop.machine.path("fleet/blobs")).unwrap().map(|each| each.unwrap().path());
    let fifth = all.find(|path| is_new(path)).unwrap();
    shop.until_kept("five");
    fs::write(&fifth, "something else").unwrap();
    // At the end nothing is followed, and what is staged stays.
    shop.machine.ok(&["apply", &bundle, "--unfollow", "--wait"]);
    until(|| shop.machine.status()["Source"].is_null().then_some(()));
    assert!(!shop.machine.run(&["unfollow"]).status.success());
    // From the beginning on, for a machine that knows nothing of the fleet any more.
    shop.follow(&shop.folder());
    shop.until_code("E1419");
    shop.machine.ok(&["unfollow"]);
    assert_eq!(shop.machine.read("kept").as_deref(), Some("five\n"));
    shop.machine.stop();
}

/// The hold is signed, so that nobody who only serves the source can end it.
#[test]
fn a_machine_that_the_roster_holds_stays_until_another_one_lets_it_go() {
    let mut shop = Shop::having("one");
    shop.stead(&format!("release roster hold web1 --for 3d --why sale --fleet fleet/root {BOTH}"));
    shop.until_source(|source| source["Releases"]["HeldBecause"] == "sale");
    shop.publish("two", FOR_WEB);
    // It looks at once.
    shop.follow(&shop.folder());
    shop.machine.write("kept", "drifted\n");
    shop.until_kept("one");
    let source = shop.until_source(|source| source["Releases"]["HeldUntil"].is_string());
    assert_eq!(
        (&source["Failure"], &source["Releases"]["Staged"]["number"]),
        (&Json::Null, &Json::from(1)),
        "{source}"
    );
    let text = shop.machine.ok(&["status"]);
    assert!(text.contains("Held         by the roster until ") && text.contains(": sale\n"), "{text}");
    assert_eq!(shop.machine.status_and_code().1, Some(0), "{source}");
    shop.stead(&format!("release roster unhold web1 --fleet fleet/root {BOTH}"));
    shop.until_kept("two");
    shop.until_source(|source| source["Releases"]["HeldUntil"].is_null());
    assert_eq!(shop.log().matches("heldByRoster").count(), 1);
    shop.machine.stop();
}

impl Shop {
    fn git(&self, words: &[&str]) {
        let names = ["-c", "user.name=ann", "-c", "user.email=ann@example.org"];
        let mut command = Command::new("git");
        command.args(names).args(words).current_dir(self.machine.path("fleet")).env("HOME", self.machine.path(""));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Makes the folder a repository, with `shared.git` that it is pushed to.
    pub(crate) fn repository(&self) {
        let shared = self.machine.path("shared.git").display().to_string();
        self.git(&["init", "--quiet", "--bare", &shared]);
        self.git(&["init", "--quiet"]);
        self.push();
    }

    pub(crate) fn push(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "next"]);
        self.git(&["push", "--quiet", "../shared.git", "HEAD:main"]);
    }
}

#[test]
fn a_push_to_a_repository_is_a_deployment() {
    let mut shop = Shop::new();
    let shared = shop.machine.path("shared.git").display().to_string();
    shop.publish("one", FOR_WEB);
    shop.enrol(BOTH);
    shop.repository();
    shop.follow(&format!("git+file://{shared}#main"));
    shop.until_kept("one");
    // Half a release is nothing; drift is repaired meanwhile.
    shop.publish("two", "--where role=web --expires 90d --sign ann");
    shop.push();
    shop.until_code("E1404");
    shop.machine.write("kept", "drifted\n");
    shop.until_kept("one");
    shop.stead("release sign fleet/web/2.release --sign ben");
    shop.push();
    shop.until_kept("two");
    // The signers change, and the repository is out of reach for a while.
    shop.stead("release signers --signer ann.pub --signer cid.pub --fleet fleet/root --sign ann --sign ben");
    shop.enrol("--sign ann --sign cid");
    shop.publish("three", "--where role=web --expires 90d --sign ann --sign cid");
    fs::rename(&shared, format!("{shared}.away")).unwrap();
    shop.until_source(|source| {
        source["Releases"]["Offline"]["Reason"].as_str().is_some_and(|why| why.contains("git fetch"))
    });
    fs::rename(format!("{shared}.away"), &shared).unwrap();
    shop.push();
    shop.until_kept("three");
    // Whoever can push, and takes back what was pushed, has nothing staged.
    shop.git(&["push", "--quiet", "--force", "../shared.git", "HEAD~2:main"]);
    shop.until_code("E1411");
    assert_eq!(shop.machine.read("kept").as_deref(), Some("three\n"));
    shop.machine.stop();
}

/// A server that never answers holds a machine for as long as a fetch may take, unless operators have it follow something else.
#[test]
fn who_follows_something_else_waits_for_no_source_that_hangs() {
    let shop = Shop::new();
    shop.publish("one", FOR_WEB);
    shop.enrol(BOTH);
    for folder in ["hangs", "hangs/objects", "hangs/refs"] {
        fs::create_dir(shop.machine.path(folder)).unwrap();
    }
    let made = Command::new("mkfifo").arg(shop.machine.path("hangs/HEAD")).status();
    assert!(made.unwrap().success());
    let hangs = format!("git+file://{}#main", shop.machine.path("hangs").display());
    for leave in [false, true] {
        shop.follow(&hangs);
        until(|| shop.machine.path("state/following/git/config").exists().then_some(()));
        if leave {
            shop.machine.ok(&["unfollow"]);
        }
        shop.follow(&shop.folder());
        let source = shop.until_source(|source| source["Releases"]["Fleet"] == "shop");
        assert!(source["Releases"]["Offline"].is_null(), "{source}");
        shop.until_kept("one");
    }
    assert!(!shop.log().contains("sourceOffline"), "{}", shop.log());
}
