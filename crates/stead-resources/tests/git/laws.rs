//! Laws of whatever happens to a working tree and to the repository that it comes from.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// A change by others or by sets.
#[derive(Clone, Debug)]
enum Step {
    /// The remote repository has another commit on a branch, with a text in a file.
    Pushed(&'static str, &'static str, &'static str),
    /// Somebody writes a file in the working tree.
    Written(&'static str, &'static str),
    /// Somebody ignores files of that name.
    Ignored(&'static str),
    /// Somebody commits what is in the working tree.
    Committed,
    /// Somebody checks out a branch of their own.
    Branched,
    Set {
        revision: &'static str,
        update: bool,
        force: bool,
    },
    Removed,
}

const BRANCHES: [&str; 3] = ["main", "dev", "dev/x"];
const FILES: [&str; 5] = ["f", "u", "d", "d/x", "e/y"];
const TEXTS: [&str; 3] = ["one", "two", "three"];

fn step() -> impl Strategy<Value = Step> {
    let set = (select(vec!["main", "dev", "v1", "COMMIT"]), any::<bool>(), any::<bool>());
    prop_oneof![
        2 => (select(&BRANCHES[..2]), select(&FILES[..]), select(&TEXTS[..])).prop_map(|(a, b, c)| Step::Pushed(a, b, c)),
        3 => (select(&FILES[..]), select(&TEXTS[..])).prop_map(|(name, text)| Step::Written(name, text)),
        1 => select(&FILES[..]).prop_map(Step::Ignored),
        1 => Just(Step::Committed),
        1 => Just(Step::Branched),
        1 => Just(Step::Removed),
        5 => set.prop_map(|(revision, update, force)| Step::Set { revision, update, force }),
    ]
}

/// Writes a file where that is possible without removing anything.
fn write(path: &Path, text: &str) {
    if fs::create_dir_all(path.parent().unwrap()).is_ok() {
        let _ = fs::write(path, text);
    }
}

impl Origin {
    fn push(&self, branch: &str, name: &str, text: &str) {
        let known = self.git(&["branch", "--list", branch]);
        let switch: &[&str] = if known.is_empty() { &["checkout", "--quiet", "-B"] } else { &["checkout", "--quiet"] };
        self.git(&[switch, &[branch]].concat());
        let path = self.path("srv/r").join(name);
        for above in path.ancestors().take_while(|above| *above != self.path("srv/r")) {
            let _ = fs::remove_file(above);
        }
        let _ = fs::remove_dir_all(&path);
        write(&path, text);
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", text]);
    }

    fn in_tree(&self, arguments: &[&str]) -> Option<String> {
        self.path("w/.git").exists().then(|| git_in(&self.path("w"), arguments))
    }

    /// The files of the working tree that differ from what is checked out, and their content.
    fn own_files(&self) -> BTreeMap<String, Vec<u8>> {
        let Some(others) = self.in_tree(&["ls-files", "-z", "--others"]) else { return BTreeMap::new() };
        let changed = self.in_tree(&["diff", "-z", "--name-only", "--no-renames", "HEAD"]).unwrap_or_default();
        let names: BTreeSet<&str> =
            others.split('\0').chain(changed.split('\0')).filter(|name| !name.is_empty()).collect();
        let content = |name: &str| Some((name.to_owned(), fs::read(self.path("w").join(name)).ok()?));
        names.into_iter().filter_map(content).collect()
    }

    /// All commits that are in the working tree, but for those of the remote repository.
    fn own_commits(&self) -> BTreeSet<String> {
        let theirs: BTreeSet<String> = self.git(&["rev-list", "--all"]).lines().map(str::to_owned).collect();
        let all = self.in_tree(&["rev-list", "--all", "HEAD"]).unwrap_or_default();
        all.lines().filter(|commit| !theirs.contains(*commit)).map(str::to_owned).collect()
    }

    fn carry_out(&self, step: &Step) -> Result<(), TestCaseError> {
        let tree = self.path("w");
        match step {
            Step::Pushed(branch, name, text) => self.push(branch, name, text),
            Step::Set { revision, update, force } => {
                let commit = self.git(&["rev-parse", "main"]);
                let revision = if *revision == "COMMIT" { &commit } else { *revision };
                let stated = with(with(desired(revision), "update", *update), "force", *force);
                return self.check_set(&stated, *force);
            }
            _ if !tree.join(".git").exists() => {}
            Step::Written(name, text) => write(&tree.join(name), text),
            Step::Ignored(name) => write(&tree.join(".git/info/exclude"), name),
            Step::Committed => {
                git_in(&tree, &["add", "--all"]);
                git_in(&tree, &["commit", "--quiet", "--allow-empty", "-m", "own"]);
            }
            Step::Removed => return self.check_removal(),
            Step::Branched => _ = git_in(&tree, &["checkout", "--quiet", "-B", "own"]),
        }
        Ok(())
    }

    /// Without force a removal takes no changes of tracked files and no commits away; the what-if shows everything else.
    fn check_removal(&self) -> Result<(), TestCaseError> {
        let changed = self.in_tree(&["diff", "--name-only", "HEAD"]).unwrap_or_default();
        let commits = self.own_commits();
        if self.set(&json!({"path": "w", "_exist": false})).is_ok() {
            prop_assert!(changed.is_empty() && commits.is_empty(), "lost {changed} and {commits:?}");
        }
        Ok(())
    }

    /// A set does what the what-if says, so that nothing is left to do, and takes away only what it says, or nothing.
    fn check_set(&self, stated: &Json, force: bool) -> Result<(), TestCaseError> {
        let (git, input) = (provider("Stead/Git"), Plain::new(stated.clone()));
        let (files, commits) = (self.own_files(), self.own_commits());
        let planned = git.set(&self.context(), &input, Execution::WhatIf);
        let set = self.set(stated);
        let lost = |name: &str| fs::read(self.path("w").join(name)).ok().as_ref() != files.get(name);
        let lost: Vec<&String> = files.keys().filter(|name| lost(name)).collect();
        let left = self.own_commits();
        let discarded: Vec<&String> = commits.difference(&left).collect();
        if !force || set.is_err() {
            prop_assert!(lost.is_empty() && discarded.is_empty(), "lost {lost:?} and {discarded:?}");
        }
        if set.is_err() {
            return Ok(());
        }
        let planned = planned.map_err(|failure| TestCaseError::fail(failure.message))?;
        let destroyed: Vec<&str> = planned.effects.destroys.items().iter().map(|item| item.path.as_str()).collect();
        for name in lost {
            prop_assert!(destroyed.contains(&format!("w/{name}").as_str()), "'{name}' is not in {destroyed:?}");
        }
        let words = planned.what_if.concat();
        prop_assert!(discarded.is_empty() || words.contains("discard the commit"), "{discarded:?}: {words}");
        let again = git.set(&self.context(), &input, Execution::WhatIf).map_err(|failure| failure.message);
        prop_assert_eq!(again.map(|again| (again.changed, again.what_if)), Ok((Some(Vec::new()), Vec::new())));
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: stead_testkit::cases("STEAD_STATES", 12),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn nothing_is_lost_that_no_what_if_shows(steps in prop::collection::vec(step(), 1..16)) {
        let Some(origin) = Origin::new("nothing_is_lost_that_no_what_if_shows") else { return Ok(()) };
        origin.push("dev", "e/y", "one");
        for step in &steps {
            origin.carry_out(step)?;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: stead_testkit::cases(stead_testkit::ALL_LAWS, 96), failure_persistence: None, ..ProptestConfig::default() })]

    /// A name is accepted when git does; but for those that could be taken for something else.
    #[test]
    fn names_are_those_of_git(parts in prop::collection::vec(select(NAME_PARTS), 1..5)) {
        let name = parts.concat();
        let Ok(checked) = Command::new("git").args(["check-ref-format", &format!("refs/heads/{name}")]).status() else {
            return Ok(());
        };
        let is_taken = name.starts_with('-') || name.starts_with("refs/") || name.split('/').any(|part| part == "@");
        let cx = World::build("").context_for("Stead/Git");
        let accepted = provider("Stead/Git").validate(&cx, &Plain::new(desired(&name))).is_ok();
        prop_assert_eq!(accepted, checked.success() && !is_taken, "{}", name);
    }
}

const NAME_PARTS: &[&str] = &[
    "a", "b/", "/", ".", "..", "@", "{", "-", "+", "^", "~", ":", "?", "*", "[", "\\", " ", "\u{7f}", "\n", ".lock",
    "refs/", "ü", "#", "=", "%", "'",
];
