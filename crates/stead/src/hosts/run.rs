//! A command on many machines: what is sent to each, when each begins, and the outcome of all.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use serde_json::json;
use stead_core::bundle::Bundle;
use stead_core::diag::counted;
use stead_core::identity::DocumentIdentity;
use stead_core::text::{self, Limits, Node, SourceId};
use stead_core::value::{Object, Value};
use stead_engine::ReconcileOptions;
use stead_host::redactor::Redactor;
use stead_hosts::{Ended, Machine, Rollout};
use stead_system::Cancel;

use super::inventory;
use super::order::{DocumentWork, Operation, Order, PROTOCOL, Reconcile, Record, Work};
use super::outcome::{Outcome, finish, listed};
use super::plans::{self, PlanOfAll, PlansErrand};
use super::screen::Screen;
use super::ssh::{Answer, Own, Sign, Ssh, Sudo, Until, Way};
use crate::commands;
use crate::exit::Exit;
use crate::input::{self, BadParameters, Delivered, ParameterSources, Recipient, Text, Unreadable};
use crate::interrupt;
use crate::process_env::ProcessEnv;
use crate::request::{DocumentRequest, Elevation, FleetRequest, RecordingRequest, View};
use crate::terminal::{complain, show_findings};

/// What is done, and on which machines.
pub(super) struct Task {
    pub(super) operation: Operation,
    pub(super) errand: Errand,
    pub(super) view: View,
    pub(super) fleet: FleetRequest,
    /// The file that the plans are saved in.
    pub(super) out: Option<PathBuf>,
}

/// The order for each machine.
pub(super) enum Errand {
    Document(Box<DocumentErrand>),
    /// The plan that each made before.
    Plans(Box<PlansErrand>),
    /// One order for all.
    Words(Work),
}

impl Errand {
    /// A document of which nothing is changed.
    pub(super) fn looking(document: DocumentRequest) -> Self {
        let (reconcile, recording) = (ReconcileOptions::none(), None);
        Self::Document(Box::new(DocumentErrand { document, reconcile, recording }))
    }
}

/// Something with a document.
pub(super) struct DocumentErrand {
    pub(super) document: DocumentRequest,
    pub(super) reconcile: ReconcileOptions,
    pub(super) recording: Option<RecordingRequest>,
}

/// Carries it out.
pub(super) fn on_many(task: &Task, env: &ProcessEnv) -> Result<Exit, Exit> {
    let cancel = Cancel::default();
    interrupt::catch_with(&cancel);
    check_standard_input(task)?;
    let machines = machines(task, env, &cancel)?;
    let parcel = match &task.errand {
        Errand::Document(errand) => Parcel::Document(errand, Delivery::of(errand, env)?),
        Errand::Plans(errand) => Parcel::Plans(errand),
        Errand::Words(work) => Parcel::Words(work),
    };
    let way = way(&parcel, env, &machines, task, cancel)?;
    let mut outcomes = rolled_out(task, &machines, &parcel, &way);
    let declared = parcel.declared();
    let saved = task.out.as_ref().map_or(Ok(()), |path| save(path, (task, declared), &machines, &mut outcomes));
    let exit = finish(outcomes, task.operation, task.view, Some(env.began.elapsed()));
    saved?;
    Ok(interrupt::exit(&way.cancel, exit))
}

/// The machines of the inventory, or else those of the plan that is done.
fn machines(task: &Task, env: &ProcessEnv, cancel: &Cancel) -> Result<Vec<Machine>, Exit> {
    let Errand::Plans(errand) = &task.errand else { return inventory::of_fleet(&task.fleet, env, cancel) };
    if task.fleet.inventory.is_none() {
        return errand.plans.machines(&task.fleet);
    }
    let machines = inventory::of_fleet(&task.fleet, env, cancel)?;
    errand.plans.check(&machines).map(|()| machines)
}

/// Saves the plans of those machines that made one.
fn save(
    path: &Path,
    (task, declared): (&Task, BTreeSet<String>),
    machines: &[Machine],
    outcomes: &mut [(String, Outcome)],
) -> Result<(), Exit> {
    let (mut planned, mut missing) = (Vec::new(), Vec::new());
    for (machine, (_, outcome)) in machines.iter().zip(outcomes) {
        match outcome.saved.take() {
            Some(saved) => planned.push((machine, saved)),
            None => missing.push(machine.name.as_str()),
        }
    }
    if planned.is_empty() {
        complain("error: the plan was not saved: no machine made one");
        return Err(Exit::Failed);
    }
    PlanOfAll::new(task.fleet.elevation, declared, planned.into_iter()).save(path)?;
    if !missing.is_empty() {
        let (count, names) = (counted(missing.len(), "machine"), listed(&missing, task.view));
        complain(&format!("warning: the saved plan is without {count}, which made none: {names}"));
    }
    Ok(())
}

/// The delivery to the machines.
enum Parcel<'a> {
    Document(&'a DocumentErrand, Delivery),
    Plans(&'a PlansErrand),
    Words(&'a Work),
}

impl Parcel<'_> {
    /// The part of one machine.
    fn work(&self, machine: &Machine, task: &Task) -> Option<Work> {
        match self {
            Self::Words(work) => Some((*work).clone()),
            Self::Plans(errand) => errand.plans.work(machine, errand).map(Box::new).map(Work::Plan),
            Self::Document(errand, delivery) => {
                let work = delivery.work(errand, machine, task);
                Some(Work::Document(Box::new(work)))
            }
        }
    }

    /// The names of the parameters that a document declares.
    fn declared(&self) -> BTreeSet<String> {
        let Self::Document(_, delivery) = self else { return BTreeSet::new() };
        delivery.declared.keys().cloned().collect()
    }

    fn bundle(&self) -> Vec<u8> {
        match self {
            Self::Words(_) | Self::Plans(_) => Vec::new(),
            Self::Document(_, delivery) => delivery.bundle.encode(),
        }
    }

    /// The secrets that are in it for any of these machines.
    fn redactor(&self, machines: &[Machine]) -> Redactor {
        let mut redactor = Redactor::of_session();
        if let Self::Plans(errand) = self {
            let works = machines.iter().filter_map(|machine| errand.plans.work(machine, errand));
            works.for_each(|work| plans::texts(&work).for_each(|text| redactor.add(&text)));
        }
        if let Self::Document(_, delivery) = self {
            for machine in machines {
                let parameters = delivery.parameters(machine);
                let is_secret = |name: &str| delivery.declared.get(name).copied().unwrap_or_default();
                parameters.iter().filter(|(name, _)| is_secret(name)).for_each(|(_, value)| redactor.add(value));
            }
        }
        redactor
    }

    /// Returns whether runs go on without this process.
    fn until(&self) -> Until {
        let recording = match self {
            Self::Document(errand, _) => errand.recording.as_ref(),
            Self::Plans(errand) => errand.recording.as_ref(),
            Self::Words(_) => None,
        };
        if recording.is_some_and(|recording| recording.detaches) { Until::Begun } else { Until::End }
    }
}

/// What is sent to each machine, and what it is worth knowing of it.
struct Delivery {
    bundle: Bundle,
    identity: DocumentIdentity,
    /// The parameters that the document declares; true for those that are secret.
    declared: BTreeMap<String, bool>,
    /// Those of the command line.
    stated: Object,
}

impl Delivery {
    fn of(errand: &DocumentErrand, env: &ProcessEnv) -> Result<Self, Exit> {
        let request = &errand.document;
        let path = request.path();
        let root = request.supplied.root.clone().unwrap_or_else(|| input::folder(path));
        let root = std::path::absolute(&root).unwrap_or(root);
        let mut session = env.host.session(root.clone());
        let unusable = |error: &dyn std::fmt::Display| {
            complain(&format!("error: {error}"));
            Exit::Unusable
        };
        let bundle = match input::delivered(&session, path).map_err(|error| unusable(&error))? {
            Delivered::Bundle(bundle) => bundle,
            Delivered::Document(text) => commands::bundle_of(env.host.session(root.clone()), &text)?.bundle,
        };
        let (name, text) = bundle.document();
        let name = if input::is_standard(path) { input::shown(path) } else { name.to_owned() };
        let document = Text { name, text: text.to_string() };
        let from = ParameterSources {
            recipient: Recipient::OtherMachines,
            ..ParameterSources::of(&request.supplied, &document)
        };
        let stated = input::parameters(&mut session, &from).map_err(|error| match error {
            BadParameters::Unreadable(error) => unusable(&error),
            BadParameters::Findings(findings) => {
                show_findings(&findings, &session.sources);
                Exit::Unusable
            }
        })?;
        let identity = bundle.identity().cloned().unwrap_or_else(|| identity_of(path, &root));
        Ok(Self { declared: declared(&document.text), stated: stated.values, identity, bundle })
    }

    fn work(&self, errand: &DocumentErrand, machine: &Machine, task: &Task) -> DocumentWork {
        let DocumentErrand { document, reconcile, recording } = errand;
        let parameters: Value = self.parameters(machine).into();
        DocumentWork {
            operation: task.operation,
            saves: task.out.is_some(),
            identity: self.identity.clone(),
            parameters: json!({ "parameters": parameters.to_redacted_json() }),
            only: document.parts.only.clone(),
            skip: document.parts.skip.clone(),
            width: document.width.0,
            system_root: document.system_root.clone(),
            reconcile: Reconcile::from(reconcile),
            record: recording.as_ref().map(Record::from),
        }
    }

    /// The values of a machine. An inventory is for many documents: what this one does not declare is left out.
    fn parameters(&self, machine: &Machine) -> Object {
        let of_machine = machine.parameters.iter().filter(|(name, _)| self.declared.contains_key(*name));
        of_machine.chain(self.stated.iter()).map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

/// The name of a document that states none: where it lies here, so that it is the same one on each machine whenever it is sent.
fn identity_of(path: &Path, root: &Path) -> DocumentIdentity {
    if input::is_standard(path) {
        return DocumentIdentity::of_input(root);
    }
    DocumentIdentity::of_file(&std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf()))
}

fn declared(document: &str) -> BTreeMap<String, bool> {
    let (tree, _) = text::read(SourceId::default(), document, &Limits::default());
    let entries = tree.as_ref().and_then(|tree| tree.get("parameters")?.entries()).unwrap_or_default();
    let is_secret = |node: &Node| {
        let name = node.get("type").and_then(Node::as_str).unwrap_or_default().to_ascii_lowercase();
        name.starts_with("secure")
    };
    entries.iter().map(|entry| (entry.key.to_string(), is_secret(&entry.value))).collect()
}

fn way(parcel: &Parcel<'_>, env: &ProcessEnv, machines: &[Machine], task: &Task, cancel: Cancel) -> Result<Way, Exit> {
    let failed = |why: String| {
        complain(&format!("error: {why}"));
        Exit::Failed
    };
    let mut redactor = parcel.redactor(machines);
    let ssh = Ssh::find(env).map_err(failed)?;
    let sudo = sudo(task, &cancel)?;
    if let Some(Sudo::With(password)) = &sudo {
        redactor.add(&Value::from(password.expose().as_str()));
    }
    let own = own().map_err(|error| failed(format!("cannot read the own program: {error}")))?;
    let options = task.fleet.deadline.map(|limit| format!(" --deadline {}", limit.as_secs())).unwrap_or_default();
    Ok(Way { ssh, sudo, own, options, bundle: parcel.bundle(), until: parcel.until(), redactor, cancel })
}

/// Whoever reads standard input first gets all of it.
fn check_standard_input(task: &Task) -> Result<(), Exit> {
    let asks = task.fleet.elevation == Elevation::SudoWithPassword;
    let mut read: Vec<&Path> = task.fleet.inventory.as_deref().into_iter().collect();
    if let Errand::Document(errand) = &task.errand {
        read.push(errand.document.path());
        read.extend(errand.document.supplied.files.iter().map(PathBuf::as_path));
    }
    let readers = read.into_iter().filter(|path| input::is_standard(path)).count();
    if readers + usize::from(asks) <= 1 {
        return Ok(());
    }
    if asks {
        complain("error: '--ask-sudo-password' reads standard input, which is read for '-' as well");
        complain("help: use files");
    } else {
        complain(&format!("error: {}", Unreadable::StandardInputTwice));
    }
    Err(Exit::Unusable)
}

/// How accounts become root; asks for the password once.
fn sudo(task: &Task, cancel: &Cancel) -> Result<Option<Sudo>, Exit> {
    match task.fleet.elevation {
        Elevation::None => return Ok(None),
        Elevation::Sudo => return Ok(Some(Sudo::Silent)),
        Elevation::SudoWithPassword => {}
    }
    match input::password("Password of sudo: ", cancel) {
        Some(password) => Ok(Some(Sudo::With(password))),
        None if cancel.is_cancelled() => Err(Exit::Cancelled),
        None => {
            complain("error: no password was given");
            Err(Exit::Unusable)
        }
    }
}

fn own() -> std::io::Result<Own> {
    let bytes: Arc<[u8]> = std::fs::read("/proc/self/exe")?.into();
    let digest = stead_core::digest::sha256(&bytes);
    Ok(Own { bytes, digest })
}

/// How much news waits at most: a thread with more of it waits, and so does its machine.
const MOST_NEWS: usize = 256;

/// How often what is shown is refreshed where nothing happens.
const TICK: Duration = Duration::from_secs(1);

/// What a thread says of its machine.
enum News {
    Sign(usize, Sign),
    Ended(usize, Outcome),
}

fn rolled_out(task: &Task, machines: &[Machine], parcel: &Parcel<'_>, way: &Way) -> Vec<(String, Outcome)> {
    let (sender, news) = sync_channel(MOST_NEWS);
    let mut rollout = Rollout::new(machines.len(), task.fleet.rule);
    let mut outcomes: BTreeMap<usize, Outcome> = BTreeMap::new();
    let mut screen = Screen::new(machines, task.view);
    std::thread::scope(|scope| {
        while !rollout.is_over() {
            if way.cancel.is_cancelled() {
                rollout.stop();
            }
            while let Some((at, machine)) = rollout.begin().and_then(|at| Some((at, machines.get(at)?))) {
                let sender = sender.clone();
                screen.begin(at);
                scope.spawn(move || ask(at, machine, (task, parcel, way), &sender));
            }
            if rollout.is_over() {
                break;
            }
            match news.recv_timeout(TICK) {
                Ok(News::Sign(at, sign)) => screen.take(at, sign),
                Ok(News::Ended(at, outcome)) => {
                    let ended = if outcome.verdict.is_failure() { Ended::Badly } else { Ended::Well };
                    rollout.end(at, ended);
                    outcomes.insert(at, outcome);
                    screen.end(at);
                }
                Err(_) => screen.refresh(),
            }
        }
    });
    drop(screen);
    let outcome = |(at, machine): (usize, &Machine)| {
        let name = machine.name.to_string();
        let outcome = outcomes.remove(&at);
        let outcome = outcome.unwrap_or_else(|| Outcome::not_begun(&name, task.operation, task.view));
        (name, outcome)
    };
    machines.iter().enumerate().map(outcome).collect()
}

fn ask(at: usize, machine: &Machine, (task, parcel, way): (&Task, &Parcel<'_>, &Way), news: &SyncSender<News>) {
    let mut see = |sign| drop(news.send(News::Sign(at, sign)));
    // Whoever waits for all of them waits for this one as well.
    let answer = catch_unwind(AssertUnwindSafe(|| {
        let Some(work) = parcel.work(machine, task) else { return Answer::NotBegun };
        let order = Order { protocol: PROTOCOL, bundle: way.bundle.len(), work };
        let order = serde_json::to_vec(&order).unwrap_or_default();
        match way.ask(&machine.destination, &order, &mut see) {
            Answer::Ran { code: 0 | 2, report: Some(_), saved: None, .. } if task.out.is_some() => {
                Answer::Broken("it sent no plan that can be read".to_owned())
            }
            answer => answer,
        }
    }));
    let answer = answer.unwrap_or_else(|_| Answer::Broken("it ended because of a mistake in stead".to_owned()));
    let outcome = Outcome::of(machine.name.as_str(), task.operation, task.view, answer);
    let _ = news.send(News::Ended(at, outcome));
}
