//! Rosters: what operators state is shown, agreed to, and applied as one act.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "../../stead-release/tests/support/mod.rs"]
mod keys;
#[path = "support/site.rs"]
mod site;
#[path = "../../stead/tests/support/terminal.rs"]
mod terminal;

use std::process::{Command, Stdio};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use site::{Operators, Simulated, Site, bundle, joined, operator, printed};
use stead_fleet::store::{StorePlace, StoredAct};
use stead_release::{Digest, RosterHold};
use stead_testkit::until;
use terminal::AtTerminal;

/// Operators who state channels, machines and holds in a roster, and two machines.
struct Stating {
    folder: tempfile::TempDir,
    place: StorePlace,
    ann: String,
    site: Site,
    operators: Operators,
    machines: Vec<Simulated>,
}

impl Stating {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = StorePlace::File(folder.path().join("fleet.db"));
        let ann = operator(&place, "ann", "approver");
        let site = Site::start(folder.path(), &place);
        let machines = joined(&site, &ann, &["m1", "m2"]);
        let mut this = Self { folder, place, ann, site, operators: Operators::new(), machines };
        Operators::store(&this.site, &this.ann, &bundle("b"));
        Operators::publish(&this.site, &this.ann, "root", &this.operators.root.to_text());
        this.release();
        let hold = RosterHold::new(Timestamp::now() + Duration::from_hours(1), "Ben measures".to_owned());
        this.operators.holds.insert(this.machines[0].name.clone(), hold.unwrap());
        this
    }

    fn release(&mut self) {
        let release = self.operators.release("web", "role=x", &bundle("b"));
        assert_eq!(Operators::publish(&self.site, &self.ann, "release", &release).status, 200);
    }

    /// The next roster, of which the signers saw an act last.
    fn roster(&mut self, seen: Option<Digest>) -> String {
        self.operators.acts = seen;
        let members = self.machines.iter().map(|machine| (&machine.name, &machine.key.public, "x"));
        self.operators.roster_at_the_newest(&members.collect::<Vec<_>>())
    }

    fn command(&self, words: &[&str]) -> Command {
        let folder = self.folder.path().join("state");
        std::fs::write(folder.join("token"), &self.ann).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_stead-fleet"));
        command.stdin(Stdio::null()).args(words).args(["--url", &self.site.url, "--certificate"]);
        command.arg(folder.join("tls.pem")).arg("--token-file").arg(folder.join("token"));
        command
    }

    fn run(&self, words: &[&str]) -> (bool, String) {
        printed(&mut self.command(words))
    }

    fn applying(&self, roster: &str, words: &[&str]) -> Command {
        let path = self.folder.path().join("roster");
        std::fs::write(&path, roster).unwrap();
        self.command(&[&["apply", path.to_str().unwrap()], words].concat())
    }

    fn apply(&self, roster: &str, words: &[&str]) -> (bool, String) {
        printed(&mut self.applying(roster, words))
    }

    fn acts(&self) -> Vec<StoredAct> {
        self.place.open().unwrap().acts(0, 100).unwrap()
    }

    fn head(&self) -> Option<Digest> {
        self.acts().last().map(|act| act.digest.clone())
    }

    /// The release that a machine is to have.
    fn desired(&mut self, at: usize) -> Option<u64> {
        let answer = self.machines[at].desired(&self.site, 0, None, 0);
        (answer.status == 200).then(|| answer.json()["number"].as_u64().unwrap())
    }
}

/// Channels, machines, labels and holds are what the roster says that operators applied, and that is the act behind those that they saw.
#[test]
fn what_operators_state_is_applied_as_one_act_and_once() {
    let mut all = Stating::new();
    let roster = all.roster(None);
    let (is_good, said) = all.apply(&roster, &["--yes"]);
    assert!(!is_good && said.contains(&format!("'--acts {}'", all.head().unwrap())), "{said}");
    let seen = all.head();
    let roster = all.roster(seen.clone());
    // It is shown, and nothing is done that nobody agreed to.
    let before = all.acts().len();
    for words in [&["--plan"][..], &[]] {
        let (is_good, said) = all.apply(&roster, words);
        assert_eq!(is_good, !words.is_empty(), "{said}");
        let rows: Vec<Vec<_>> = said.lines().skip(2).map(|line| line.split_whitespace().take(2).collect()).collect();
        let wanted = ["channel web", "machine m1", "machine m2", "labels m1", "labels m2", "hold m1"];
        assert_eq!(rows.iter().take(6).map(|row| row.join(" ")).collect::<Vec<_>>(), wanted, "{said}");
    }
    assert_eq!(all.acts().len(), before);
    assert!(all.apply(&roster, &["--yes"]).0);
    let acts = all.acts();
    assert_eq!((acts.len(), Some(&acts[before].parent)), (before + 1, seen.as_ref()), "one act, behind those");
    // Again, and when others acted since, nothing is done.
    assert_eq!(all.apply(&roster, &["--yes"]), (true, "nothing changes\n".to_owned()));
    let roster = all.roster(seen);
    let published = Operators::publish(&all.site, &all.ann, "roster", &roster);
    assert_eq!(published.status, 409, "whichever way it comes");
    for said in [all.apply(&roster, &["--yes"]).1, String::from_utf8(published.body).unwrap()] {
        assert!(said.contains("there were other acts since"), "{said}");
    }
    assert_eq!(all.acts().len(), before + 1);
}

/// The machine that a roster holds stays, and no single operator lets it go.
#[test]
fn what_a_roster_holds_goes_on_when_another_one_says_so() {
    let mut all = Stating::new();
    let seen = all.head();
    let roster = all.roster(seen);
    assert!(all.apply(&roster, &["--yes"]).0);
    all.release();
    until(|| (all.desired(1) == Some(2)).then_some(()));
    assert_ne!(all.desired(0), Some(2));
    let (_, said) = all.run(&["hold", "m1", "--for", "0", "--why", "x"]);
    assert!(said.contains("the roster holds it still"), "{said}");
    let shown = all.site.operator(&all.ann, "GET", "/v1/machines/m1", b"").json();
    assert_eq!((&shown["state"], &shown["held"][1]), (&json!("held"), &json!("Ben measures")), "{shown}");
    all.operators.holds.clear();
    let seen = all.head();
    let roster = all.roster(seen);
    let (is_good, said) = all.apply(&roster, &["--yes"]);
    assert!(is_good && said.contains("hold"), "{said}");
    until(|| (all.desired(0) == Some(2)).then_some(()));
}

/// A roster that is made anew, so that it names the newest act, is one to apply even where it states what was stated.
#[test]
fn a_new_roster_that_states_the_same_says_so() {
    let mut all = Stating::new();
    for (said, data) in
        [("Kind ", true), ("a new roster that states the same channels, machines, labels and holds\n", false)]
    {
        let seen = all.head();
        let roster = all.roster(seen);
        let (_, json) = all.apply(&roster, &["--plan", "-o", "json"]);
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&json["isNew"], json["changes"] != json!([])), (&json!(true), data), "{json}");
        let (is_good, text) = all.apply(&roster, &["--yes"]);
        assert!(is_good && text.starts_with(said) && text.ends_with("applied\n"), "{text}");
        let (_, json) = all.apply(&roster, &["--plan", "-o", "json"]);
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&json["isNew"], &json["changes"]), (&json!(false), &json!([])));
    }
}

/// At a terminal it is asked, behind what it changes; without one nobody can answer.
#[test]
fn what_is_stated_counts_when_somebody_agrees() {
    let mut all = Stating::new();
    let seen = all.head();
    let roster = all.roster(seen);
    let before = all.acts().len();
    for (answer, is_agreed) in
        [("\n", false), ("n\n", false), ("yes please\n", false), ("\u{4}", false), (" Yes \n", true)]
    {
        let mut terminal = AtTerminal::run(all.applying(&roster, &[]));
        let shown = terminal.until("Apply? [y/N] ");
        assert!(shown.contains("hold     m1") && !shown.contains("applied"), "{shown}");
        let (screen, code) = terminal.types(answer).ends();
        let said = if is_agreed { "applied" } else { "error: nothing was applied" };
        assert_eq!((screen.contains(said), code), (true, Some(i32::from(!is_agreed))), "{answer:?}: {screen}");
        assert_eq!(all.acts().len(), before + usize::from(is_agreed), "{answer:?}");
    }
    // What is in force is not asked about.
    let (screen, code) = AtTerminal::run(all.applying(&roster, &[])).ends();
    assert_eq!((screen.trim(), code), ("nothing changes", Some(0)));
    let seen = all.head();
    let roster = all.roster(seen);
    let (is_good, said) = all.apply(&roster, &[]);
    assert!(!is_good && said.ends_with("error: nothing was applied: without a terminal, pass '--yes'\n"), "{said}");
}
