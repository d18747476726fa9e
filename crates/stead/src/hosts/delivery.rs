//! What is sent to each machine: its order, and the bundle that is the same for all.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::json;
use stead_core::bundle::Bundle;
use stead_core::diag::{did_you_mean, nearest};
use stead_core::identity::DocumentIdentity;
use stead_core::text::{self, Limits, Node, SourceId};
use stead_core::value::{Object, Value};
use stead_engine::VaultEntry;
use stead_host::redactor::Redactor;
use stead_hosts::Machine;

use super::order::{DocumentWork, Reconcile, Record, Work};
use super::plans::PlansErrand;
use super::ssh::Until;
use super::task::{DocumentErrand, Task};
use crate::commands;
use crate::exit::Exit;
use crate::input::{self, BadParameters, Delivered, ParameterSources, Recipient, Text};
use crate::process_env::ProcessEnv;
use crate::terminal::{complain, plain, show_findings};

/// The delivery to the machines.
pub(super) enum Parcel<'a> {
    Document(&'a DocumentErrand, Box<Delivery>),
    Plans(&'a PlansErrand),
    Words(&'a Work),
}

impl Parcel<'_> {
    /// The part of one machine.
    pub(super) fn work(&self, machine: &Machine, task: &Task) -> Option<Work> {
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
    pub(super) fn declared(&self) -> BTreeSet<String> {
        let Self::Document(_, delivery) = self else { return BTreeSet::new() };
        delivery.declared.keys().cloned().collect()
    }

    /// Warns of parameters of machines that the document declares under a similar name, for which they have no value. An inventory
    /// is for many documents: what is not similar is for another one.
    pub(super) fn warn_of_misspelt(&self, machines: &[Machine]) {
        let Self::Document(_, delivery) = self else { return };
        let mut seen = BTreeSet::new();
        for machine in machines {
            let has = |name: &str| machine.parameters.contains_key(name) || delivery.stated.contains_key(name);
            let missing: Vec<&str> = delivery.declared.keys().map(String::as_str).filter(|name| !has(name)).collect();
            let unknown = machine.parameters.keys().filter(|name| !delivery.declared.contains_key(*name));
            for name in unknown.filter(|name| seen.insert((*name).clone())) {
                let Some(meant) = nearest(name, missing.iter().copied()) else { continue };
                let (name, machine) = (plain(name), &machine.name);
                complain(&format!(
                    "warning: the document has no parameter '{name}', which the machine '{machine}' has"
                ));
                complain(&format!("help: {}", did_you_mean(meant)));
            }
        }
    }

    /// The secrets that its document names, and where that lies; `None` where machines find secrets themselves.
    pub(super) fn secrets(&self) -> Option<(PathBuf, &BTreeSet<VaultEntry>)> {
        match self {
            Self::Document(_, delivery) => Some((delivery.root.clone(), delivery.secrets.as_ref()?)),
            Self::Plans(errand) => Some((std::path::absolute(".").unwrap_or_default(), errand.plans.secrets.as_ref()?)),
            Self::Words(_) => None,
        }
    }

    pub(super) fn bundle(&self) -> Vec<u8> {
        match self {
            Self::Words(_) | Self::Plans(_) => Vec::new(),
            Self::Document(_, delivery) => delivery.bundle.encode(),
        }
    }

    /// The secrets that are in it for any of these machines.
    pub(super) fn redactor(&self, machines: &[Machine]) -> Redactor {
        let mut redactor = Redactor::of_session();
        if let Self::Plans(errand) = self {
            errand.plans.texts(machines, &errand.stated).for_each(|text| redactor.add(&text));
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
    pub(super) fn until(&self) -> Until {
        let recording = match self {
            Self::Document(errand, _) => errand.recording.as_ref(),
            Self::Plans(errand) => errand.recording.as_ref(),
            Self::Words(_) => None,
        };
        if recording.is_some_and(|recording| recording.detaches) { Until::Begun } else { Until::End }
    }
}

/// What is sent to each machine, and what it is worth knowing of it.
pub(super) struct Delivery {
    bundle: Bundle,
    identity: DocumentIdentity,
    /// The parameters that the document declares; true for those that are secret.
    declared: BTreeMap<String, bool>,
    /// Those of the command line.
    stated: Object,
    /// The folder that its relative paths start from here.
    root: PathBuf,
    /// The secrets that it names, where they are found here.
    secrets: Option<BTreeSet<VaultEntry>>,
}

impl Delivery {
    pub(super) fn of(errand: &DocumentErrand, env: &ProcessEnv) -> Result<Self, Exit> {
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
        let (declared, secrets) = (declared(&document.text), session.secrets_of_caller(&bundle));
        Ok(Self { declared, stated: stated.values, identity, bundle, root, secrets })
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
            asks: self.secrets.is_some(),
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
