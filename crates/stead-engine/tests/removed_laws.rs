//! Things that a document does not have any more are removed if its runs made it, and nobody else has it: random documents of two
//! identities on two systems, with others at work between the runs, and kills at any step of them, which lose nothing of that.
//!
//! `STEAD_REMOVED_CASES` is how many sequences of runs are tried.

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
use stead_engine::{Host, HostOptions, Prepared, RunOptions, Session};
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
        let folder = TempDir::new().unwrap();
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
        prepared.memory = Some(session.memory_of_things(&self.folder.path().join("store"), &document));
        session.account_for_removed(&mut prepared, Mode::APPLY);
        (session, prepared)
    }

    fn run(&self, apply: &Apply) -> bool {
        let (session, prepared) = self.prepared(apply);
        let execution = RunOptions::new(Mode::APPLY, NonZeroUsize::MIN);
        let execution = match apply.killed {
            Some(after) => RunOptions { journal: Box::new(Killed(after)), ..execution },
            None => execution,
        };
        session.run(&prepared, execution).is_ok()
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
            let apply = Apply { document, system, things, policy, naming, killed };
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
        Apply { document: 0, system: 0, things, policy: Policy::Remove, naming: 0, killed }
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
        Apply { document: 0, system: 0, things, policy, naming: 0, killed: None }
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
