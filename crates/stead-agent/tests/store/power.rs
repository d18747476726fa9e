//! The power fails after each thing that a process did: what was flushed is there, of the rest anything.
//!
//! Two models of what a disk has then. *Ordered*: names change in the order in which they were changed, and a flush of
//! anything forces all of them. *Weak*: any of the changes of names that no flush of their directory forced. In both, content
//! that was not flushed is there, is not there, or is torn.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use stead_agent::Store;
use stead_testkit::times;
use tempfile::TempDir;

use crate::recording::{Op, Reader};
use crate::script::number_of;
use crate::victim::{CHANGES, Victim, fast_directory, has_strace, store_in};

/// At most so many changes of names that were not forced are combined, and so many files that were not flushed; older ones
/// count as forced and flushed.
const COMBINED: usize = 7;
const TORN: usize = 2;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Model {
    Ordered,
    Weak,
}

/// The content of the disk: directories without content, and files.
type Tree = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// The operations of processes, one after the other.
struct Recording {
    seed: usize,
    home: PathBuf,
    ops: Vec<Op>,
}

impl Recording {
    /// Of a process that goes through the script, or of two of which the first is killed before a flush.
    fn new(seed: usize, killed_before: Option<usize>) -> Self {
        let home = fast_directory();
        let directory = store_in(&home);
        let victim = Victim { directory: &directory, seed, retries: false, reports: false, umask: 0o022 };
        let mut reader = Reader::new(home.path());
        let mut run = |more: &[&str]| {
            let more: Vec<String> = ["-xx"].iter().chain(more).map(|word| (*word).to_owned()).collect();
            let (log, heard) = victim.recorded(CHANGES, &more);
            reader.read(&log);
            heard
        };
        if let Some(flush) = killed_before {
            run(&["-e", &format!("inject=fsync:signal=KILL:when={flush}")]);
        }
        assert_eq!(run(&[]).failures, Vec::<String>::new());
        Self { seed, home: home.path().to_owned(), ops: reader.ops }
    }

    /// Returns the purpose of each flush.
    fn labels(&self) -> BTreeMap<usize, &'static str> {
        let mut labels = BTreeMap::new();
        let (mut has_begun, mut last) = (true, PathBuf::new());
        for (at, op) in self.ops.iter().enumerate() {
            match op {
                Op::Start => has_begun = false,
                Op::Link(_, name) | Op::Rename(_, name) | Op::Unlink(name) => last.clone_from(name),
                Op::FlushFile(file) => drop(labels.insert(at, content_label(self.name_of(*file)))),
                Op::FlushDirectory(path) if !path.starts_with(self.directory()) => drop(labels.insert(at, "ancestors")),
                Op::FlushDirectory(path) if *path == self.directory() && !has_begun => {
                    has_begun = true;
                    labels.insert(at, "start");
                }
                Op::FlushDirectory(_) => drop(labels.insert(at, name_label(&last))),
                _ => {}
            }
        }
        labels
    }

    fn directory(&self) -> PathBuf {
        self.home.join("lib/agent")
    }

    /// The last name that a file got.
    fn name_of(&self, file: usize) -> &Path {
        let mut name = Path::new("");
        for op in &self.ops {
            match op {
                Op::Link(linked, to) if *linked == file => name = to,
                Op::Rename(from, to) if from == name && !to.ends_with("state.former.json") => name = to,
                _ => {}
            }
        }
        name
    }

    /// Returns the recording without some flushes.
    fn without(&self, label: &str) -> Self {
        let labels = self.labels();
        let ops = self.ops.iter().enumerate().filter(|(at, _)| labels.get(at) != Some(&label));
        Self { seed: self.seed, home: self.home.clone(), ops: ops.map(|(_, op)| op.clone()).collect() }
    }
}

fn content_label(name: &Path) -> &'static str {
    if name.ends_with("key") {
        "content of the key"
    } else if name.ends_with("state.json") {
        "content of the record"
    } else {
        "content of a document"
    }
}

fn name_label(name: &Path) -> &'static str {
    if name.ends_with("key") {
        "name of the key"
    } else if name.ends_with("state.json") {
        "name of the record"
    } else {
        "name of a document"
    }
}

/// Finds what a power failure may leave, and checks it.
struct Replay<'a> {
    recording: &'a Recording,
    checked: BTreeSet<Vec<u8>>,
    home: TempDir,
    failures: Vec<String>,
}

impl<'a> Replay<'a> {
    fn new(recording: &'a Recording) -> Self {
        Self { recording, checked: BTreeSet::new(), home: fast_directory(), failures: Vec::new() }
    }

    /// After each op, in both models, up to the first failure. Returns how many states it checked.
    fn run(mut self) -> (usize, Vec<String>) {
        for model in [Model::Ordered, Model::Weak] {
            for end in 0..=self.recording.ops.len() {
                self.after(end, model);
                if !self.failures.is_empty() {
                    return (self.checked.len(), self.failures);
                }
            }
        }
        (self.checked.len(), self.failures)
    }

    fn after(&mut self, end: usize, model: Model) {
        let ops = &self.recording.ops[..end];
        let said =
            ops.iter().rev().find_map(|op| if let Op::Said(done) = op { Some(*done) } else { None }).unwrap_or(0);
        let torn: BTreeSet<usize> = (0..end).filter_map(|at| unflushed(ops, at)).collect();
        let torn: Vec<usize> = torn.into_iter().rev().take(TORN).collect();
        for names in subsets(&pending_names(ops, model), model) {
            for contents in 0..3_usize.pow(u32::try_from(torn.len()).unwrap()) {
                let digit = |at: usize| contents / 3_usize.pow(u32::try_from(at).unwrap()) % 3;
                let torn = torn.iter().enumerate().map(|(at, file)| (*file, digit(at))).collect();
                let tree = tree_of(&self.recording.home, ops, &names, &torn);
                if self.checked.insert(digest(&tree, said))
                    && let Err(error) = self.check(&tree, said)
                {
                    self.failures.push(format!("{model:?}, after {end} ({:?}): {error}", ops.last()));
                }
            }
        }
    }

    fn check(&self, tree: &Tree, said: usize) -> Result<(), String> {
        let _ = fs::remove_dir_all(self.home.path().join("lib"));
        for (path, content) in tree {
            let path = self.home.path().join(path.strip_prefix(&self.recording.home).unwrap());
            match content {
                Some(content) => fs::write(path, content).unwrap(),
                None => fs::create_dir(path).unwrap(),
            }
        }
        let opened = Store::open_with(&store_in(&self.home), None).map_err(|error| error.to_string())?;
        let (store, state, repairs) = opened;
        if !repairs.is_empty() {
            return Err(format!("{repairs:?}"));
        }
        let number = number_of(&store, &state, self.recording.seed)?;
        let is_right = (said..=said + 1).contains(&number);
        if is_right { Ok(()) } else { Err(format!("{said} steps were done, and {number} are there")) }
    }
}

/// The file that an op wrote to, if nothing flushed that since.
fn unflushed(ops: &[Op], at: usize) -> Option<usize> {
    let Op::Write(file, _) = &ops[at] else { return None };
    (!ops[at..].contains(&Op::FlushFile(*file))).then_some(*file)
}

/// The directory in which an op changes a name.
fn directory_of(op: &Op) -> Option<&Path> {
    match op {
        Op::Mkdir(path) | Op::Link(_, path) | Op::Rename(_, path) | Op::Unlink(path) => path.parent(),
        _ => None,
    }
}

/// The changes of names that nothing forced.
fn pending_names(ops: &[Op], model: Model) -> Vec<usize> {
    let forced = |at: usize, directory: &Path| {
        ops[at..].iter().any(|op| match op {
            Op::FlushDirectory(flushed) => model == Model::Ordered || flushed == directory,
            Op::FlushFile(_) => model == Model::Ordered,
            _ => false,
        })
    };
    let names = ops.iter().enumerate().filter_map(|(at, op)| directory_of(op).map(|directory| (at, directory)));
    let pending: Vec<usize> = names.filter(|(at, directory)| !forced(*at, directory)).map(|(at, _)| at).collect();
    pending[pending.len().saturating_sub(COMBINED)..].to_vec()
}

/// Which of them did not reach the disk.
fn subsets(pending: &[usize], model: Model) -> Vec<BTreeSet<usize>> {
    match model {
        Model::Ordered => (0..=pending.len()).map(|kept| pending[kept..].iter().copied().collect()).collect(),
        Model::Weak => (0..1_usize << pending.len())
            .map(|lost| pending.iter().enumerate().filter(|(bit, _)| lost >> bit & 1 == 1).map(|(_, at)| *at).collect())
            .collect(),
    }
}

fn tree_of(home: &Path, ops: &[Op], lost: &BTreeSet<usize>, torn: &BTreeMap<usize, usize>) -> Tree {
    let mut contents = BTreeMap::<usize, Vec<u8>>::new();
    let mut names = BTreeMap::<&Path, Option<usize>>::new();
    for (at, op) in ops.iter().enumerate() {
        match op {
            Op::Write(file, bytes) => contents.entry(*file).or_default().extend(bytes),
            _ if lost.contains(&at) => {}
            Op::Mkdir(path) => drop(names.insert(path, None)),
            Op::Link(file, path) => drop(names.insert(path, Some(*file))),
            Op::Rename(from, to) => {
                if let Some(file) = names.remove(from.as_path()) {
                    names.insert(to, file);
                }
            }
            Op::Unlink(path) => drop(names.remove(path.as_path())),
            _ => {}
        }
    }
    for (file, how) in torn {
        let content = contents.entry(*file).or_default();
        content.truncate(content.len() * how / 2);
    }
    let content = |file: usize| contents.get(&file).cloned().unwrap_or_default();
    // What is in a directory that is not there cannot be reached.
    let reached =
        |path: &Path| path.ancestors().skip(1).take_while(|each| *each != home).all(|each| names.contains_key(each));
    let entries = names.iter().filter(|(path, _)| reached(path));
    entries.map(|(path, file)| (path.to_path_buf(), file.map(content))).collect()
}

fn digest(tree: &Tree, said: usize) -> Vec<u8> {
    let mut digest = Sha256::new();
    digest.update(said.to_le_bytes());
    for (path, content) in tree {
        digest.update(path.as_os_str().as_encoded_bytes());
        digest.update(content.as_ref().map_or(0, |content| content.len() + 1).to_le_bytes());
        digest.update(content.as_deref().unwrap_or_default());
    }
    digest.finalize().to_vec()
}

/// Recordings of a process that is not killed, of one that is killed between the new name of its record and the flush of
/// that, and of others that are killed before one flush after the other.
fn recordings(wanted: usize) -> Vec<Recording> {
    let whole = Recording::new(0, None);
    let flushes: Vec<&str> = whole.labels().into_values().collect();
    let is_of_record = |(_, label): &(usize, &&str)| **label == "name of the record";
    let (visible, _) = flushes.iter().enumerate().filter(is_of_record).nth(1).unwrap();
    let visible = Recording::new(0, Some(visible + 1));
    let more = (2..wanted).map(|each| Recording::new(each % 5, Some(1 + each * 7 % flushes.len())));
    [whole, visible].into_iter().chain(more).collect()
}

#[test]
fn a_power_failure_loses_nothing_that_was_done() {
    if !has_strace("a_power_failure_loses_nothing_that_was_done") {
        return;
    }
    let mut states = 0;
    for recording in recordings(times("STEAD_AGENT_POWER", 2)) {
        let (checked, failures) = Replay::new(&recording).run();
        assert_eq!(failures, Vec::<String>::new());
        states += checked;
    }
    println!("{states} states after a power failure: nothing was lost");
}

#[test]
fn each_flush_is_needed() {
    if !has_strace("each_flush_is_needed") {
        return;
    }
    let recordings = recordings(2);
    let labels: BTreeSet<&str> = recordings.iter().flat_map(|each| each.labels().into_values()).collect();
    assert_eq!(labels.len(), 8, "{labels:?}");
    let is_caught = |label| recordings.iter().any(|each| !Replay::new(&each.without(label)).run().1.is_empty());
    let missed: Vec<&str> = labels.into_iter().filter(|label| !is_caught(label)).collect();
    assert_eq!(missed, Vec::<&str>::new(), "nothing is lost without these flushes");
}
