//! Things that a document does not have any more are removed if its runs made it, and nobody else has it: random documents of two
//! identities on two systems, with others at work between the runs, and kills at any step of them, which lose nothing of that.
//!
//! `STEAD_REMOVED_CASES` is how many sequences of runs are tried, `STEAD_RESTORED_CASES` how many sequences of deliveries of which some
//! restore a former one.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "../../stead-core/tests/support/random.rs"]
mod random;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use random::Numbers;
use stead_core::event::{Event, Mode};
use stead_core::identity::DocumentIdentity;
use stead_core::value::Object;
use stead_engine::{Delivery, Host, HostOptions, Prepared, RunOptions, Session};
use stead_host::journal::{Journal, JournalError};
use tempfile::TempDir;

/// The first are files, the others lines of one file.
const THINGS: usize = 7;
const FILES: usize = 4;

type Set = BTreeSet<usize>;

/// A journal of a process that is killed after so many appends.
struct Killed(usize);

impl Journal for Killed {
    fn append(&mut self, _: &[Event]) -> Result<(), JournalError> {
        let left = self.0.checked_sub(1);
        let gone = || JournalError { path: "journal".into(), source: io::Error::from(io::ErrorKind::BrokenPipe) };
        left.map(|left| self.0 = left).ok_or_else(gone)
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Policy {
    Report,
    Remove,
    Keep,
}

#[derive(Debug)]
struct Apply {
    document: usize,
    system: usize,
    things: Set,
    policy: Policy,
    /// How the instances are named, or that the files are items of a loop, or are named through a link.
    naming: usize,
    killed: Option<usize>,
    delivery: Delivery,
}

impl Apply {
    fn text(&self) -> String {
        let policy = match self.policy {
            Policy::Report => "report",
            Policy::Remove => "remove",
            Policy::Keep => "keep",
        };
        let mut text = format!("directives: {{removed: {policy}}}\nresources:\n");
        if self.things.is_empty() {
            text.push_str("- {name: none, type: Microsoft.DSC.Debug/Echo, properties: {output: none}}\n");
        }
        let files: Vec<String> = self.things.range(..FILES).map(usize::to_string).collect();
        if self.naming == 2 && !files.is_empty() {
            let each = files.join(", ");
            _ = writeln!(
                text,
                "- name: f\n  type: Stead/File\n  copy: {{name: f, each: [{each}], as: it}}\n  properties: {{path: \"[format('/f{{0}}', it())]\", content: x}}"
            );
        }
        for thing in &self.things {
            let (name, naming) = (thing, self.naming);
            if *thing >= FILES {
                _ = writeln!(
                    text,
                    "- {{name: n{naming}-{name}, type: Stead/Line, properties: {{path: /lines, line: l{name}, create: true}}}}"
                );
            } else if naming != 2 {
                let folder = if naming == 3 { "/link" } else { "" };
                _ = writeln!(
                    text,
                    "- {{name: n{naming}-{name}, type: Stead/File, properties: {{path: {folder}/f{name}, content: x}}}}"
                );
            }
        }
        text
    }
}

/// Conditions that follow from the acts so far.
#[derive(Default)]
struct Ghost {
    /// Made by runs of the document, and by nobody else since they removed it.
    made: Set,
    /// Those that its record has for sure.
    recorded: Set,
    /// All that it ever had.
    ever: Set,
    /// All that its last run had.
    last: Set,
}

struct World {
    folder: TempDir,
    host: Host,
    ghosts: BTreeMap<(usize, usize), Ghost>,
    /// The files that stead removed last, by system.
    removed: [Set; 2],
}

impl World {
    fn new() -> Self {
        // Thousands of runs would wait for the disk.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }.unwrap();
        for system in 0..2 {
            let root = folder.path().join(system.to_string());
            fs::create_dir(&root).unwrap();
            std::os::unix::fs::symlink(".", root.join("link")).unwrap();
        }
        let ghosts = (0..2).flat_map(|document| (0..2).map(move |system| ((document, system), Ghost::default())));
        let host = Host::new(HostOptions::default());
        Self { ghosts: ghosts.collect(), folder, host, removed: [Set::new(), Set::new()] }
    }

    fn system(&self, system: usize) -> PathBuf {
        self.folder.path().join(system.to_string())
    }

    fn present(&self, system: usize) -> Set {
        let root = self.system(system);
        let lines = fs::read_to_string(root.join("lines")).unwrap_or_default();
        let is_there = |thing: &usize| match *thing {
            file if file < FILES => root.join(format!("f{file}")).exists(),
            line => lines.lines().any(|other| other == format!("l{line}")),
        };
        (0..THINGS).filter(is_there).collect()
    }

    /// Somebody else makes a thing, or removes it.
    fn meddle(&mut self, system: usize, thing: usize, makes: bool) {
        let is_there = self.present(system).contains(&thing);
        if is_there == makes {
            return;
        }
        let (root, lines) = (self.system(system), self.system(system).join("lines"));
        let text = fs::read_to_string(&lines).unwrap_or_default();
        match (thing < FILES, makes) {
            (true, true) => fs::write(root.join(format!("f{thing}")), "mine").unwrap(),
            (true, false) => fs::remove_file(root.join(format!("f{thing}"))).unwrap(),
            (false, true) => fs::write(lines, format!("{text}l{thing}\n")).unwrap(),
            (false, false) => fs::write(lines, text.replace(&format!("l{thing}\n"), "")).unwrap(),
        }
        if makes && self.removed[system].remove(&thing) {
            for document in 0..2 {
                self.ghosts.get_mut(&(document, system)).unwrap().made.remove(&thing);
            }
        }
    }

    /// The warnings about a document before it runs.
    fn warnings(&self, apply: &Apply) -> String {
        let (_, prepared) = self.prepared(apply);
        prepared.warnings.iter().map(|warning| warning.message.clone()).collect::<Vec<_>>().join("\n")
    }

    fn prepared(&self, apply: &Apply) -> (Session, Prepared) {
        let root = self.system(apply.system);
        let session = self.host.session(&root);
        let mut session = session.with(|options| options.system_root = Some(root.clone()));
        let prepared = session.prepare("main.yaml", apply.text(), Object::new());
        let mut prepared = prepared.unwrap_or_else(|unusable| panic!("{unusable}"));
        let document = DocumentIdentity::of_file(Path::new(&format!("/{}.yaml", apply.document)));
        prepared.memory = Some(session.memory_of_things(&self.folder.path().join("store"), &document, apply.delivery));
        session.account_for_removed(&mut prepared, Mode::APPLY);
        (session, prepared)
    }

    fn run(&self, apply: &Apply) -> bool {
        self.run_saying(apply).0
    }

    /// Returns whether it came to its end, and which things of newer deliveries it says that it cannot take back yet.
    fn run_saying(&self, apply: &Apply) -> (bool, Set) {
        let (session, prepared) = self.prepared(apply);
        let number = |name: &str| name.rsplit_once('\'')?.0.chars().last()?.to_digit(10);
        let number = |name: &str| usize::try_from(number(name).unwrap_or_else(|| panic!("{name}"))).unwrap();
        let named = prepared.not_restored_yet().map(|(what, _)| number(what)).collect();
        let execution = RunOptions::new(Mode::APPLY, NonZeroUsize::MIN);
        let execution = match apply.killed {
            Some(after) => RunOptions { journal: Box::new(Killed(after)), ..execution },
            None => execution,
        };
        (session.run(&prepared, execution).is_ok(), named)
    }

    fn apply(&mut self, apply: &Apply) {
        let (before, elsewhere) = (self.present(apply.system), self.present(1 - apply.system));
        let is_whole = self.run(apply);
        assert!(is_whole || apply.killed.is_some());
        let after = self.present(apply.system);
        assert_eq!(self.present(1 - apply.system), elsewhere, "another system");
        let other = &self.ghosts[&(1 - apply.document, apply.system)];
        let (of_other, ever_of_other) = (other.last.clone(), other.ever.clone());
        let own = self.ghosts.get_mut(&(apply.document, apply.system)).unwrap();
        for gone in &before - &after {
            assert_eq!(apply.policy, Policy::Remove, "{gone}");
            assert!(!apply.things.contains(&gone), "{gone} is in the document");
            assert!(own.made.contains(&gone), "{gone} was made by somebody else");
            assert!(!of_other.contains(&gone), "{gone} is in the other document");
        }
        assert!((&after - &before).is_subset(&apply.things), "it makes what the document has");
        let left: Set = &own.recorded - &apply.things;
        if is_whole && apply.policy == Policy::Remove {
            let must_go = &left - &ever_of_other;
            assert!(must_go.is_disjoint(&after), "{must_go:?} stays");
            assert!(apply.things.is_subset(&after));
        }
        own.made.extend(&after - &before);
        own.ever.extend(&apply.things);
        let is_over = |thing: &usize| {
            let is_forgotten = apply.policy == Policy::Keep || ever_of_other.contains(thing) || !after.contains(thing);
            !apply.things.contains(thing) && (!is_whole || is_forgotten)
        };
        own.recorded.retain(|thing| !is_over(thing));
        // What was made before a kill is recorded as well.
        own.recorded.extend(&after - &before);
        if is_whole {
            own.last.clone_from(&apply.things);
            let forgotten = |thing: &usize| apply.policy == Policy::Keep || !after.contains(thing);
            own.made.retain(|thing| apply.things.contains(thing) || !forgotten(thing));
        }
        self.removed[apply.system].extend(&before - &after);
    }
}

#[test]
fn what_is_removed_was_made_by_the_document_and_is_nobody_elses() {
    for case in 1..=stead_testkit::times("STEAD_REMOVED_CASES", 60) {
        let mut random = Numbers::of(58, u64::try_from(case).unwrap());
        let mut world = World::new();
        for _ in 0..8 {
            let system = random.below(4) / 3;
            if random.below(3) == 0 {
                let (thing, makes) = (random.below(THINGS), random.below(2) == 0);
                world.meddle(system, thing, makes);
                continue;
            }
            let policy = [Policy::Remove, Policy::Remove, Policy::Report, Policy::Keep][random.below(4)];
            let killed = (random.below(5) == 0).then(|| random.below(12));
            let (document, things, naming) =
                (random.below(4) / 3, (0..THINGS).filter(|_| random.below(2) == 0).collect(), random.below(4));
            let apply = Apply { document, system, things, policy, naming, killed, delivery: Delivery::default() };
            let before = std::panic::AssertUnwindSafe(|| world.apply(&apply));
            if let Err(panic) = std::panic::catch_unwind(before) {
                eprintln!("case {case}: {apply:?}");
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// A run that removes two files is killed at each step. What somebody puts in the place of one meanwhile is never removed, and what
/// is left is not taken for anybody else's.
#[test]
fn a_kill_at_any_step_removes_nothing_of_others() {
    let apply = |things: &[usize], killed| {
        let things = things.iter().copied().collect();
        let delivery = Delivery::default();
        Apply { document: 0, system: 0, things, policy: Policy::Remove, naming: 0, killed, delivery }
    };
    let mut ended = false;
    for step in 0.. {
        let mut world = World::new();
        world.apply(&apply(&[0, 1, 2], None));
        ended = world.run(&apply(&[2], Some(step)));
        let gone = &Set::from([0, 1]) - &world.present(0);
        for thing in &gone {
            world.meddle(0, *thing, true);
        }
        assert!(world.run(&apply(&[2], None)));
        assert!(gone.is_subset(&world.present(0)), "killed after {step} steps: {gone:?} were of somebody else");
        if ended {
            break;
        }
    }
    assert!(ended);
}

/// A run of a document that is as it was does not read what was left behind, and names it all the same.
#[test]
fn what_is_left_behind_is_read_once_for_each_document() {
    let world = World::new();
    let store = world.folder.path().join("store");
    let apply = |things: &[usize], policy| {
        let things = things.iter().copied().collect();
        Apply { document: 0, system: 0, things, policy, naming: 0, killed: None, delivery: Delivery::default() }
    };
    let parts = || {
        let all = fs::read_dir(store.join("kept")).unwrap().map(|entry| entry.unwrap().path());
        let mut all: Vec<(PathBuf, Vec<u8>)> = all.map(|path| (path.clone(), fs::read(&path).unwrap())).collect();
        all.retain(|(path, _)| {
            path.to_string_lossy().contains(".managed.") || path.to_string_lossy().contains(".left.")
        });
        all
    };
    assert!(world.run(&apply(&[0, 1, 2, 5], Policy::Report)));
    let few = apply(&[0, 5], Policy::Report);
    for _ in 0..2 {
        assert!(world.run(&few));
    }
    let known = parts();
    assert_eq!(known.len(), 2, "what the document has, and what was left behind");
    let damage = || known.iter().for_each(|(path, _)| fs::write(path, "{}").unwrap());
    damage();
    let named = world.warnings(&few);
    assert!(named.contains("'n0-1' (Stead/File), 'n0-2' (Stead/File)"), "{named}");
    assert!(world.run(&few));
    assert!(parts().iter().all(|(_, content)| content == b"{}"), "nothing was read or written");
    for (path, content) in &known {
        fs::write(path, content).unwrap();
    }
    // One of those that are looked at is gone, and a record of another document is there.
    fs::remove_file(world.system(0).join("f1")).unwrap();
    assert!(!world.warnings(&few).contains("n0-1"));
    assert!(world.run(&few));
    assert!(world.run(&Apply { document: 1, ..apply(&[2], Policy::Report) }));
    let moved = world.warnings(&few);
    assert!(moved.contains("another document manages it: 'n0-2'"), "{moved}");
    // What it no longer has is still removed.
    assert!(world.run(&apply(&[0], Policy::Report)));
    assert!(world.run(&apply(&[0], Policy::Report)));
    assert_eq!(world.present(0), Set::from([0, 2, 5]));
    assert!(world.run(&apply(&[0], Policy::Remove)));
    assert_eq!(world.present(0), Set::from([0, 2]));
}

/// A machine to which documents are delivered, of two identities and in no order, and what is known to be there of which delivery.
#[derive(Default)]
struct Deliveries {
    /// The document and the things of each, and the former one that it restores.
    all: Vec<(usize, Set, Policy, Option<u64>)>,
    /// The delivery whose run made a thing, and the document whose record has it, until a run of that finds it gone. As between any
    /// runs, what somebody removed and made again meanwhile is not noticed.
    made: BTreeMap<usize, (u64, usize)>,
    /// Those that nobody takes back: a delivery left them behind and said to keep them, or they were named, or a run that removes may
    /// have begun to remove them when it was killed.
    kept: Set,
}

impl Deliveries {
    /// The next delivery: one of before once more, or a new one.
    fn next(&self, random: &mut Numbers) -> Apply {
        let number = self.all.len() as u64 + 1;
        let again = (number > 2 && random.below(3) == 0).then(|| random.below(self.all.len() - 1));
        let (document, things, policy, restores) = if let Some(former) = again {
            let (document, things, policy, restores) = self.all[former].clone();
            (document, things, policy, restores.or(Some(former as u64 + 1)))
        } else {
            let policy = [Policy::Report, Policy::Report, Policy::Remove, Policy::Keep][random.below(4)];
            (random.below(2), (0..THINGS).filter(|_| random.below(2) == 0).collect(), policy, None)
        };
        let delivery = Delivery { number, restores };
        Apply { document, system: 0, things, policy, naming: random.below(4), killed: None, delivery }
    }

    /// Those that a delivery must take back.
    fn due(&self, apply: &Apply, present: &Set) -> Set {
        let is_due = |thing: &usize, (made, _): &(u64, usize)| {
            is_newer(apply, *made) && !apply.things.contains(thing) && !self.kept.contains(thing)
        };
        let due = self.made.iter().filter(|(thing, made)| apply.policy != Policy::Keep && is_due(thing, made));
        due.map(|(thing, _)| *thing).filter(|thing| present.contains(thing)).collect()
    }

    /// Runs a delivery, killed now and then, until it comes to its end. Returns how many things it had to take back, and how many of them
    /// it named instead.
    fn run(&mut self, world: &mut World, mut apply: Apply, random: &mut Numbers) -> [usize; 2] {
        let Delivery { number, restores } = apply.delivery;
        for (made, document) in self.made.values_mut() {
            if is_newer(&apply, *made) {
                *document = apply.document;
            }
        }
        let due = self.due(&apply, &world.present(0));
        let mut tries = random.below(3);
        let was_killed = tries > 0;
        let (after, named) = loop {
            apply.killed = (tries > 0).then(|| random.below(14));
            tries = tries.saturating_sub(1);
            let before = world.present(0);
            let (is_whole, named) = world.run_saying(&apply);
            let after = world.present(0);
            for thing in &before - &after {
                let made = self.made.remove(&thing);
                assert!(!apply.things.contains(&thing), "{thing} is in the document: {apply:?}");
                let is_newer = made.is_some_and(|(made, _)| is_newer(&apply, made)) && apply.policy != Policy::Keep;
                assert!(
                    is_newer || made.is_some() && apply.policy == Policy::Remove,
                    "{thing} was not to go: {apply:?}"
                );
            }
            self.kept = &self.kept - &(&after - &before);
            self.made.extend((&after - &before).into_iter().map(|thing| (thing, (number, apply.document))));
            if is_whole {
                break (after, named);
            }
            assert!(apply.killed.is_some());
        };
        let stay = &due & &after;
        assert!(stay.is_subset(&named), "of {due:?} stay {stay:?}, and {named:?} are named: {apply:?}");
        assert!(stay.is_empty() || was_killed, "{stay:?} stay, and nothing was in the way: {apply:?}");
        self.made.retain(|thing, made| after.contains(thing) || made.1 != apply.document);
        let left = self.made.keys().filter(|thing| !apply.things.contains(thing));
        if apply.policy == Policy::Keep || was_killed && apply.policy == Policy::Remove {
            self.kept.extend(left);
        }
        self.kept.extend(&stay);
        self.all.push((apply.document, apply.things, apply.policy, restores));
        [due.len(), stay.len()]
    }
}

/// Returns whether a delivery of this number is newer than the one that is restored.
fn is_newer(apply: &Apply, made: u64) -> bool {
    let Delivery { number, restores } = apply.delivery;
    restores.is_some_and(|former| former < made && made < number)
}

/// What only newer deliveries made goes with a restore, of whatever document; what a run had begun to remove when it was killed is named
/// instead. Nothing else goes.
#[test]
fn a_restored_delivery_has_nothing_that_newer_ones_made() {
    let (mut due, mut named) = (0, 0);
    let cases = stead_testkit::times("STEAD_RESTORED_CASES", 20);
    for case in 1..=cases {
        let mut random = Numbers::of(34, u64::try_from(case).unwrap());
        let (mut world, mut deliveries) = (World::new(), Deliveries::default());
        for _ in 0..8 {
            if random.below(3) == 0 {
                let (thing, makes) = (random.below(THINGS), random.below(2) == 0);
                world.meddle(0, thing, makes);
                continue;
            }
            let apply = deliveries.next(&mut random);
            let step = std::panic::AssertUnwindSafe(|| deliveries.run(&mut world, apply, &mut random));
            let [of_run, named_by_run] = std::panic::catch_unwind(step).unwrap_or_else(|panic| {
                eprintln!("case {case}: after {:?}", deliveries.all);
                std::panic::resume_unwind(panic)
            });
            (due, named) = (due + of_run, named + named_by_run);
        }
    }
    println!("of {due} things of newer deliveries {} went in {cases} sequences, the others were named", due - named);
    assert!(due > named, "restores take something back");
}
