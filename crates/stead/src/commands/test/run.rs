//! One test: planned, applied, applied once more, and compared with what is expected.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use stead_core::diag::{Diagnostic, any_error};
use stead_core::event::{Mode, SkipReason};
use stead_core::graph::{self, Graph, Role};
use stead_core::id::NodeId;
use stead_core::parameters::Supplied;
use stead_core::run::{Exceptions, Run};
use stead_core::source::SourcePosition;
use stead_core::text::{Entry, Kind, Node, Sources};
use stead_core::value::Object;
use stead_core::visible::visible;
use stead_engine::{Prepared, RunOptions, Session, error_chain};
use stead_resources::{Reach, builtin_of, reach};
use stead_system::scratch::Scratch;

use super::super::ready::distinct;
use super::file::{Test, TestFile};
use super::judge::{self, Cover, Miss};
use super::root;
use crate::input::{self, BadParameters, ParameterSources, Recipient};

/// The result of a test.
#[derive(Default)]
pub(super) struct Outcome {
    /// Where it is not as expected.
    pub(super) failures: Vec<Shortcoming>,
    /// The parts that cannot happen in the root of a test, and did not.
    pub(super) not_run: Vec<String>,
    /// True if nothing of it could happen.
    pub(super) is_skipped: bool,
    pub(super) elapsed: Duration,
    /// The secrets in it.
    cover: Cover,
}

/// Something that is not as a test expects, and where that is said.
pub(super) struct Shortcoming {
    pub(super) place: Option<SourcePosition>,
    pub(super) text: String,
}

impl Outcome {
    /// Notes what is not as expected; the path of the root says nothing to a reader.
    fn note(&mut self, misses: impl IntoIterator<Item = Miss>, sources: &Sources, root: &Path) {
        let root = root.display().to_string();
        self.failures.extend(misses.into_iter().map(|miss| Shortcoming {
            place: sources.get(miss.span.source).map(|_| sources.place(miss.span)),
            text: self.cover.message(&miss.text.replace(&root, "")),
        }));
    }
}

/// Carries out a test in a root of its own, which is called `name`.
pub(super) fn run(file: &TestFile, test: &Test, session: &Session, scratch: &Scratch, name: &str) -> Outcome {
    let began = Instant::now();
    let mut outcome = Outcome::default();
    let root = scratch.path().join(name);
    let trial = Trial { file, test, session, root: &root };
    let done = root::make(scratch, &root, &test.given).map_err(|why| trial.miss(why));
    if let Err(miss) = done.and_then(|()| trial.carry_out(&mut outcome)) {
        outcome.note([miss], &file.sources, &root);
    }
    Outcome { elapsed: began.elapsed(), ..outcome }
}

/// Plans and applies the document of a test that expects nothing, in a root that is made for it.
///
/// # Errors
/// When it cannot be carried to its end.
pub(super) fn observe(file: &TestFile, test: &Test, session: &Session, root: &Path) -> Result<Runs, Outcome> {
    let mut outcome = Outcome::default();
    match (Trial { file, test, session, root }).runs(&mut outcome) {
        Ok(Some(runs)) if outcome.failures.is_empty() => return Ok(runs),
        Ok(_) => {}
        Err(miss) => outcome.note([miss], &file.sources, root),
    }
    Err(outcome)
}

/// A document that was planned and applied.
pub(super) struct Runs {
    pub(super) loaded: Loaded,
    pub(super) plan: Run,
    pub(super) apply: Run,
    text: input::Text,
}

struct Trial<'a> {
    file: &'a TestFile,
    test: &'a Test,
    /// One whose resources are looked for already.
    session: &'a Session,
    root: &'a Path,
}

/// A document with what of it cannot happen here.
pub(super) struct Loaded {
    pub(super) session: Session,
    pub(super) prepared: Prepared,
    /// The instances that are left out.
    pub(super) left_out: BTreeSet<NodeId>,
}

impl Trial<'_> {
    /// The error is what keeps it from the end.
    fn carry_out(&self, outcome: &mut Outcome) -> Result<(), Miss> {
        let expected = &self.test.expected;
        let Some(Runs { loaded, plan, apply, text }) = self.runs(outcome)? else { return Ok(()) };
        let sources = &loaded.session.sources;
        outcome.note(self.unknown_names(&loaded), sources, self.root);
        outcome.note(judge::plan(expected.plan.as_ref(), &plan, &loaded.left_out), sources, self.root);
        outcome.note(judge::came_true((&plan, &apply), expected, (&loaded.left_out, self.root)), sources, self.root);
        outcome.note(judge::outputs(expected, &apply), sources, self.root);
        let (_, again) = self.load(&text);
        let again = again.map_err(|_| self.miss("the document is refused once it was applied".to_owned()))?;
        let second = self.execute(&again, Mode::APPLY)?;
        outcome.note(judge::second((&apply, &second)), sources, self.root);
        outcome.note(judge::files(&expected.files, self.root, &outcome.cover), sources, self.root);
        self.check_resources(outcome)
    }

    /// Plans and applies the document; `None` where it is refused, as it is to be.
    fn runs(&self, outcome: &mut Outcome) -> Result<Option<Runs>, Miss> {
        let expected = self.test.expected.findings.as_ref();
        let text = input::document(self.session, &self.test.document).map_err(|error| self.miss(error.to_string()))?;
        let (found, loaded) = self.load(&text);
        let session = loaded.as_ref().map_or_else(|session| &**session, |loaded| &loaded.session);
        let sources = &session.sources;
        outcome.cover = Cover::of(session);
        outcome.note(judge::findings(expected, &found, sources), sources, self.root);
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(_) if expected.is_some() && !self.test.expected.needs_a_run() => return Ok(None),
            Err(_) => return Err(self.miss("the document has errors; nothing was run".to_owned())),
        };
        outcome.not_run = not_run(&loaded);
        let plan = self.execute(&loaded, Mode::PLAN)?;
        let apply = self.execute(&loaded, Mode::APPLY)?;
        outcome.cover = Cover::of(&loaded.session);
        let undecided = judge::undecided(&apply);
        outcome.is_skipped = loaded.is_not_run(&|id| undecided.contains_key(&id));
        outcome.not_run.extend(undecided.into_values());
        Ok(Some(Runs { loaded, plan, apply, text }))
    }

    /// A miss of the test as a whole.
    fn miss(&self, why: String) -> Miss {
        Miss { span: self.test.name.span, text: why }
    }

    fn session(&self) -> Session {
        let session = self.session.beside_unflushed(self.session.cancel().clone());
        session.with(|options| {
            options.system_root = Some(self.root.to_owned());
            options.labels = self.test.given.labels.clone();
        })
    }

    /// The document, and what was found about it; of one that is refused, the session that found it.
    fn load(&self, text: &input::Text) -> (Vec<Diagnostic>, Result<Loaded, Box<Session>>) {
        let mut session = self.session();
        // The first text, so that places of the test are places of it.
        session.sources = self.file.sources.clone();
        let supplied = match self.parameters(&mut session, text) {
            Ok(supplied) => supplied,
            Err(findings) => return (findings, Err(Box::new(session))),
        };
        let prepared = session.prepare(&text.name, text.text.clone(), supplied);
        let (findings, prepared) = match prepared {
            Ok(prepared) => {
                let refused = prepared.graph.refused(session.machine().elevated);
                let mismatches = session.check_properties(&prepared, Mode::PLAN);
                (prepared.warnings.iter().cloned().chain(refused).chain(mismatches).collect(), Some(prepared))
            }
            Err(unusable) => (session.with_properties(unusable, Mode::PLAN).findings, None),
        };
        let findings = distinct(&findings);
        let loaded = match prepared.filter(|_| !any_error(&findings)) {
            Some(prepared) => Ok(Loaded { left_out: self.left_out(&prepared.graph), session, prepared }),
            None => Err(Box::new(session)),
        };
        (findings, loaded)
    }

    /// Reads the parameters of the test, those of files first.
    fn parameters(&self, session: &mut Session, document: &input::Text) -> Result<Supplied, Vec<Diagnostic>> {
        let given = &self.test.given;
        let files: Vec<PathBuf> = given.parameter_files.iter().map(|file| file.value.clone()).collect();
        let from = ParameterSources {
            recipient: Recipient::ThisMachine,
            files: &files,
            document: Some(document),
            ..ParameterSources::default()
        };
        let read = input::contributions(session, &from).map_err(|error| match error {
            BadParameters::Findings(findings) => findings,
            BadParameters::Unreadable(error) => {
                let file = given.parameter_files.iter().find(|file| !file.value.is_file());
                let span = file.or(given.parameter_files.first()).map(|file| file.span).unwrap_or_default();
                vec![Diagnostic::error(&stead_core::diag::codes::test::FORM, span, error.to_string())]
            }
        })?;
        let mut all = Supplied::default();
        for contribution in read {
            all.extend(contribution.supplied);
        }
        all.extend(given.parameters.clone());
        Ok(all)
    }

    /// The instances that reach beyond the root, with what is in them.
    fn left_out(&self, graph: &Graph) -> BTreeSet<NodeId> {
        let mut left_out = BTreeSet::new();
        for (id, node) in graph.iter() {
            let name = graph.declaration(id).type_name.value.as_str();
            let may_run = self.test.given.run.iter().any(|stated| stated.value.eq_ignore_ascii_case(name));
            let reaches = is_beyond(node);
            let is_within = graph.container(id).is_some_and(|container| left_out.contains(&container));
            if is_within || (reaches && !may_run) {
                left_out.insert(id);
            }
        }
        left_out
    }

    fn execute(&self, loaded: &Loaded, mode: Mode) -> Result<Run, Miss> {
        let skipped = loaded.left_out.iter().map(|id| (*id, SkipReason::NotSelected));
        let exceptions = Exceptions { skipped: skipped.collect::<BTreeMap<_, _>>(), ..Exceptions::default() };
        let execution = RunOptions { exceptions, ..RunOptions::new(mode, NonZeroUsize::MIN) };
        loaded.session.run(&loaded.prepared, execution).map_err(|error| self.miss(error_chain(&error)))
    }

    /// The names in the test that the document does not have.
    fn unknown_names(&self, loaded: &Loaded) -> Vec<Miss> {
        let graph = &loaded.prepared.graph;
        let types = self.test.given.run.iter().filter_map(|stated| {
            let is_of = |id: NodeId| graph.declaration(id).type_name.value.as_str().eq_ignore_ascii_case(&stated.value);
            let of_type: Vec<_> = graph.iter().filter(|(id, _)| is_of(*id)).collect();
            let what = visible(&stated.value);
            let text = if of_type.is_empty() {
                format!("the document has no instance of '{what}'")
            } else if !of_type.iter().any(|(_, node)| is_beyond(node)) {
                format!("'{what}' does not reach beyond the root: 'run' changes nothing")
            } else if of_type.iter().all(|(id, _)| loaded.left_out.contains(id)) {
                format!("'{what}' is not run, since what it is nested in is not")
            } else {
                return None;
            };
            Some(Miss { span: stated.span, text })
        });
        types.chain(judge::unknown_names(&self.test.expected, &loaded.prepared.graph)).collect()
    }

    /// Looks whether the instances that the test states are in their desired state.
    fn check_resources(&self, outcome: &mut Outcome) -> Result<(), Miss> {
        let Some(resources) = &self.test.expected.resources else { return Ok(()) };
        let mut session = self.session();
        let Some((_, source)) = self.file.sources.iter().next() else { return Ok(()) };
        let read = (Some(document_of(resources)), Vec::new());
        let (found, prepared) = match session.prepare_read(&source.name, &source.text, read, Object::new()) {
            Ok(prepared) => (session.check_properties(&prepared, Mode::TEST), Some(prepared)),
            Err(unusable) => (session.with_properties(unusable, Mode::TEST).findings, None),
        };
        outcome.note(judge::findings(None, &found, &session.sources), &session.sources, self.root);
        let Some(prepared) = prepared.filter(|_| found.is_empty()) else { return Ok(()) };
        let left_out = self.left_out(&prepared.graph);
        let loaded = Loaded { session, prepared, left_out };
        outcome.not_run.extend(not_run(&loaded));
        let run = self.execute(&loaded, Mode::TEST)?;
        outcome.note(of_what_runs(&loaded.prepared.graph), &loaded.session.sources, self.root);
        outcome.note(judge::in_state(&run, &loaded.left_out), &loaded.session.sources, self.root);
        Ok(())
    }
}

impl Loaded {
    /// Returns whether nothing of it can happen, for all that depends on what is left out.
    fn is_not_run(&self, is_undecided: &dyn Fn(NodeId) -> bool) -> bool {
        let graph = &self.prepared.graph;
        let mut instances = graph.iter().filter(|(_, node)| node.role == Role::Instance).peekable();
        instances.peek().is_some() && instances.all(|(id, _)| self.left_out.contains(&id) || is_undecided(id))
    }
}

/// A document that has these instances and nothing else.
fn document_of(resources: &Node) -> Node {
    let entry = Entry { key: "resources".into(), key_span: resources.span, value: resources.clone() };
    Node { span: resources.span, kind: Kind::Object([entry].into()) }
}

/// The properties that are compared only where a system runs, by type.
const OF_WHAT_RUNS: [(&str, &str); 3] =
    [("Stead/KernelModule", "loaded"), ("Stead/Mount", "state"), ("Stead/Service", "state")];

/// The stated properties that nobody compares in the root of a test.
fn of_what_runs(graph: &Graph) -> Vec<Miss> {
    let stated = graph.iter().filter_map(|(id, node)| {
        let own = builtin_of(&node.manifest)?;
        let (_, property) = OF_WHAT_RUNS.into_iter().find(|(name, _)| *name == own.manifest.type_name.as_str())?;
        let declaration = graph.declaration(id);
        declaration.properties.as_ref()?.get(property)?;
        let text = format!("'{property}' of {} was not compared: nothing runs in the root of a test", graph.label(id));
        Some(Miss { span: declaration.name.span, text })
    });
    stated.collect()
}

/// Returns whether an instance may do something outside of the root. What programs do, nobody knows.
fn is_beyond(node: &graph::Node) -> bool {
    builtin_of(&node.manifest)
        .is_none_or(|own| matches!(reach(&own.manifest.type_name), Reach::Beyond | Reach::Outside))
}

/// The properties that give files away.
const OWNERS: [&str; 2] = ["owner", "group"];

/// The parts of a document that cannot happen in the root of a test.
fn not_run(loaded: &Loaded) -> Vec<String> {
    let is_root = stead_system::user::is_root();
    let graph = &loaded.prepared.graph;
    let nodes = graph.iter().filter_map(|(id, node)| {
        let label = graph.label(id);
        if loaded.left_out.contains(&id) {
            let is_within = graph.container(id).is_some_and(|container| loaded.left_out.contains(&container));
            return (!is_within).then_some(label);
        }
        let own = builtin_of(&node.manifest)?;
        let type_name = &own.manifest.type_name;
        let states = |property: &str| {
            graph.declaration(id).properties.as_ref().is_some_and(|stated| stated.get(property).is_some())
        };
        match reach(type_name) {
            Reach::Files => Some(format!("{label}, only its files")),
            _ if type_name.as_str() == "Stead/SshdConfig" => Some(format!("what sshd says of {label}")),
            _ if type_name.as_str() == "Stead/Sudoers" => Some(format!("what visudo says of {label}")),
            _ if own.has("/validate") && states("validate") => Some(format!("the command in 'validate' of {label}")),
            _ if !is_root && OWNERS.into_iter().any(states) => {
                Some(format!("the owner of {label}, which only root can give"))
            }
            _ => None,
        }
    });
    nodes.collect()
}
