//! A run that ends at any point, as by a kill, and what follows by the rules of the agent: the machine ends as if nothing had
//! happened, and nobody waits for a notification in vain. The agent itself is interrupted in `simulation.rs`.
//!
//! `STEAD_INTERRUPTIONS=20000 cargo test -p stead-agent --test interrupted_jobs -- --nocapture` interrupts so often.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::rc::Rc;

use stead_core::event::{Event, Mode, Status};
use stead_core::run::{Acting, Exceptions, Owed};
use stead_core::value::Object;
use stead_engine::{Host, HostOptions, Prepared, RunOptions, Session};
use stead_host::journal::{FileJournal, Journal, JournalError};
use tempfile::TempDir;

#[path = "../../stead-core/tests/support/random.rs"]
mod random;

use random::Numbers;

/// How often something is interrupted where nothing is asked for.
const INTERRUPTIONS: usize = 36;

/// How many documents there are at least.
const DOCUMENTS: usize = 6;

/// More than any of these documents needs.
const MOST_APPENDS: usize = 1000;

/// A document of files and of commands that act on their changes, and the machine before it is applied.
struct Scene {
    /// For each file, whether it is right already.
    files: Vec<bool>,
    /// For each command, the files that it acts on. The last file needs all commands.
    receivers: Vec<BTreeSet<usize>>,
}

/// The state in which the process that ends leaves the set that is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Within {
    /// All of it was done; only the answer is lost.
    Done,
    /// A command had begun and done nothing.
    Begun,
}

/// The event that follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Then {
    /// The job is resumed.
    Resumed,
    /// It is given up, as after a power failure; another one begins.
    Anew,
}

impl Scene {
    fn drawn(seed: u64) -> Self {
        let mut numbers = Numbers::of(41, seed);
        let files: Vec<bool> = (0..2 + numbers.below(4)).map(|_| numbers.below(3) == 0).collect();
        let mut some = |count: usize| (0..count).filter(|_| numbers.below(2) == 0).collect::<BTreeSet<usize>>();
        let receivers = (0..2).map(|_| some(files.len() - 1)).filter(|sources| !sources.is_empty()).collect();
        Self { files, receivers }
    }

    fn document(&self, folder: &Path) -> String {
        let mut text = String::from("resources:\n");
        for file in 0..self.files.len() {
            let _ =
                writeln!(text, "- {{name: f{file}, type: Stead/File, properties: {{path: /f{file}, content: right}}");
            if file + 1 == self.files.len() {
                let needs: Vec<String> =
                    (0..self.receivers.len()).map(|each| format!("Stead/Command:r{each}")).collect();
                let _ = writeln!(text, "  , dependsOn: [{}]", needs.join(", "));
            }
            text += "  }\n";
        }
        for (number, sources) in self.receivers.iter().enumerate() {
            let sources: Vec<String> = sources.iter().map(|file| format!("Stead/File:f{file}")).collect();
            let set = format!("cd '{0}' && ! rm begun 2>/dev/null && echo x >> r{number}", folder.display());
            let _ = writeln!(
                text,
                "- {{name: r{number}, type: Stead/Command, directives: {{onChanges: [{}]}}, properties: {{set: \"{set}\"}}}}",
                sources.join(", ")
            );
        }
        text
    }

    /// Returns whether a command has something to act on.
    fn is_notified(&self, receiver: usize) -> bool {
        self.receivers[receiver].iter().any(|file| !self.files[*file])
    }
}

/// A machine, and the host that works on it.
struct Machine<'a> {
    folder: TempDir,
    host: &'a Host,
    text: String,
    /// The notifications that are recorded as owed.
    owed: Rc<RefCell<Owed>>,
}

impl<'a> Machine<'a> {
    fn new(host: &'a Host, scene: &Scene) -> Self {
        let folder = TempDir::new_in(stead_testkit::memory_folder()).unwrap();
        for (file, is_right) in scene.files.iter().enumerate() {
            let content = if *is_right { "right" } else { "wrong" };
            fs::write(folder.path().join(format!("f{file}")), content).unwrap();
        }
        let text = scene.document(folder.path());
        Self { folder, host, text, owed: Rc::default() }
    }

    fn prepared(&self) -> (Session, Prepared) {
        let root = self.folder.path();
        let mut session = self.host.session(root).with(|options| options.system_root = Some(root.to_owned()));
        let prepared = session.prepare("main.yaml", &self.text, Object::new());
        let prepared = prepared.map_err(|unusable| format!("{:?}\n{}", unusable.findings, self.text)).unwrap();
        (session, prepared)
    }

    fn execution(journal: impl Journal + 'static, exceptions: Exceptions) -> RunOptions<'static> {
        let execution = RunOptions::new(Mode::APPLY, NonZeroUsize::new(2).unwrap());
        RunOptions { journal: Box::new(journal), exceptions, ..execution }
    }

    /// Applies until the process would have ended before an append. Returns whether it came to its end before that.
    fn interrupted(&self, appends: usize, within: Within) -> bool {
        if within == Within::Begun {
            fs::write(self.folder.path().join("begun"), "").unwrap();
        }
        let path = self.folder.path().join("journal");
        let (session, prepared) = self.prepared();
        let (journal, owed) = (FileJournal::create(&path).unwrap(), Rc::clone(&self.owed));
        let journal = Ending { journal, left: appends, acting: Acting::of(&prepared.graph), owed };
        let ended = session.run(&prepared, Self::execution(journal, Exceptions::default()));
        let _ = fs::remove_file(self.folder.path().join("begun"));
        ended.is_ok()
    }

    /// Has the agent go on: it resumes the job, or begins another one with what the interrupted one owes. Failed
    /// instances are tried again by a further job.
    fn goes_on(&self, then: Then) {
        let (session, prepared) = self.prepared();
        let (journal, events) = FileJournal::resume(&self.folder.path().join("journal")).unwrap();
        if then == Then::Anew {
            return self.begins();
        }
        let exceptions = Exceptions { owed: prepared.graph.known(&self.owed.borrow()), ..Exceptions::default() };
        let run = session.resume(&prepared, &events, Self::execution(journal, exceptions)).unwrap();
        let failed = run.graph().iter().any(|(id, _)| run.report().status(id) == Some(&Status::Failed));
        assert!(run.is_finished());
        *self.owed.borrow_mut() = run.owed().iter().map(ToString::to_string).collect();
        if failed {
            self.begins();
        }
    }

    /// Another job, which delivers what is owed.
    fn begins(&self) {
        let (session, prepared) = self.prepared();
        let owed = prepared.graph.known(&self.owed.borrow());
        let journal = FileJournal::create(&self.folder.path().join("second")).unwrap();
        let execution = Self::execution(journal, Exceptions { owed, ..Exceptions::default() });
        assert!(session.run(&prepared, execution).unwrap().is_finished());
    }

    /// Everything that the document manages.
    fn state(&self, scene: &Scene) -> BTreeMap<String, String> {
        let names = (0..scene.files.len()).map(|file| format!("f{file}"));
        names.map(|name| (name.clone(), fs::read_to_string(self.folder.path().join(name)).unwrap())).collect()
    }

    fn notified(&self, receiver: usize) -> usize {
        fs::read_to_string(self.folder.path().join(format!("r{receiver}"))).map_or(0, |text| text.lines().count())
    }
}

/// A journal that is written to no more after so many appends: all that a process that has ended leaves.
struct Ending {
    journal: FileJournal,
    left: usize,
    acting: Acting,
    owed: Rc<RefCell<Owed>>,
}

impl Journal for Ending {
    fn append(&mut self, events: &[Event]) -> Result<(), JournalError> {
        let Some(left) = self.left.checked_sub(1) else {
            return Err(JournalError { path: "ended".into(), source: io::Error::other("the process has ended") });
        };
        self.left = left;
        self.owed.borrow_mut().extend(self.acting.on(events));
        self.journal.append(events)
    }

    fn is_durable(&self) -> bool {
        true
    }
}

#[test]
fn a_job_that_ends_at_any_point_loses_no_work_and_no_notification() {
    let wanted = stead_testkit::times("STEAD_INTERRUPTIONS", INTERRUPTIONS);
    let host = Host::new(HostOptions::default());
    let (mut done, mut documents, mut twice) = (0, 0, 0);
    while done < wanted {
        let scene = Scene::drawn(documents);
        let points = points(&host, &scene);
        // A dose is spread over several documents.
        let stride = (DOCUMENTS * points.len() / wanted).max(1);
        for (appends, within, then) in points.into_iter().step_by(stride).take(wanted - done) {
            let context = format!("document {documents}, {appends} appends, {within:?}, {then:?}");
            let machine = Machine::new(&host, &scene);
            machine.interrupted(appends, within);
            machine.goes_on(then);
            done += 1;
            let expected: BTreeMap<String, String> =
                (0..scene.files.len()).map(|file| (format!("f{file}"), "right".to_owned())).collect();
            assert_eq!(machine.state(&scene), expected, "{context}");
            for receiver in (0..scene.receivers.len()).filter(|receiver| scene.is_notified(*receiver)) {
                let times = machine.notified(receiver);
                assert!(times > 0, "{context}: r{receiver} was never notified");
                twice += usize::from(times > 1);
            }
        }
        documents += 1;
        if documents % 20 == 0 {
            println!("{done} interruptions of {documents} documents so far, {twice} delivered twice");
        }
    }
    println!(
        "{done} interruptions of {documents} documents: no difference, no notification lost, {twice} delivered twice"
    );
}

/// Where a document can be interrupted: before each append, with each outcome of what is under way, and what follows.
fn points(host: &Host, scene: &Scene) -> Vec<(usize, Within, Then)> {
    let appends =
        (0..MOST_APPENDS).take_while(|appends| !Machine::new(host, scene).interrupted(*appends, Within::Done)).count();
    let kinds = [Within::Done, Within::Begun]
        .into_iter()
        .flat_map(|within| [Then::Resumed, Then::Anew].map(|then| (within, then)));
    let kinds: Vec<_> = kinds.collect();
    (0..appends).flat_map(|appends| kinds.iter().map(move |(within, then)| (appends, *within, *then))).collect()
}
