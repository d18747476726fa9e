//! A plan of all machines in a file: the saved plan of each, which each of them reads itself.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use stead_core::digest::sha256;
use stead_core::value::Value;
use stead_engine::{ReconcileOptions, VaultEntry};
use stead_hosts::{Address, Destination, Machine, MachineName, UserName};
use stead_system::Cancel;

use super::inventory;
use super::order::{Operation, PlanWork, Reconcile, Record};
use super::outcome::{Outcome, Saved, finish, groups};
use super::ssh::Answer;
use crate::commands::{Removals, is_attended, plan_file};
use crate::exit::Exit;
use crate::input;
use crate::request::{Elevation, FleetRequest, RecordingRequest, ShowRequest, View, Volume};
use crate::terminal::{Output, complain, complain_coloured, data_as, plain};

/// How such a file begins; neither a document nor the plan of one machine does.
const BEGIN: &str = "{\"steadPlanOfAll\":1,\"sha256\":\"";

/// The part behind the digest.
const PLAN: &str = "\",\"plan\":";

/// The plans of many machines, made together.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PlanOfAll {
    engine: String,
    /// How the account became root that made them.
    pub(super) elevation: Elevation,
    /// The parameters that the document declares. A machine gets no other parameter, whatever its plan says that it needs.
    parameters: BTreeSet<String>,
    /// The secrets that the document names, where they are found by whoever applies the plan.
    #[serde(default)]
    pub(super) secrets: Option<BTreeSet<VaultEntry>>,
    machines: Vec<Planned>,
    /// Where the machine of a name is among them.
    #[serde(skip)]
    places: BTreeMap<String, usize>,
}

/// The plan of one machine.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Planned {
    name: String,
    address: String,
    user: Option<String>,
    port: Option<u16>,
    /// The plan as it was shown.
    report: Json,
    /// The plan as the machine saved it, which only it may be able to read.
    plan: String,
    /// The parameters that the document declares and whose values the plan does not hold.
    #[serde(skip)]
    secrets: Vec<String>,
}

/// What is read of the plan of a machine.
#[derive(Deserialize)]
struct Needs {
    plan: Secrets,
}

#[derive(Deserialize)]
struct Secrets {
    #[serde(default)]
    secrets: Vec<String>,
}

/// Plans that were made before.
pub(super) struct PlansErrand {
    pub(super) plans: PlanOfAll,
    /// Secret parameters, as the command line has them.
    pub(super) stated: Vec<(String, String)>,
    pub(super) width: Option<NonZeroUsize>,
    pub(super) reconcile: ReconcileOptions,
    pub(super) recording: Option<RecordingRequest>,
    /// True if somebody at a terminal is asked before anything is removed.
    pub(super) asks: bool,
}

impl PlanOfAll {
    pub(super) fn new<'a>(
        elevation: Elevation,
        (parameters, secrets): (BTreeSet<String>, Option<BTreeSet<VaultEntry>>),
        planned: impl Iterator<Item = (&'a Machine, Saved)>,
    ) -> Self {
        let machine = |(machine, Saved { report, plan }): (&Machine, Saved)| {
            let Destination { address, user, port } = &machine.destination;
            Planned {
                name: machine.name.to_string(),
                address: address.to_string(),
                user: user.as_ref().map(ToString::to_string),
                port: *port,
                report,
                plan,
                secrets: Vec::new(),
            }
        };
        let engine = env!("CARGO_PKG_VERSION").to_owned();
        let (machines, places) = (planned.map(machine).collect(), BTreeMap::new());
        Self { engine, elevation, parameters, secrets, machines, places }
    }

    /// Writes it into a file that only this user can read.
    pub(super) fn save(&self, path: &Path) -> Result<(), Exit> {
        let text = serde_json::to_string(self).unwrap_or_default();
        let digest = sha256(&text);
        plan_file::write(path, BEGIN, &format!("{BEGIN}{digest}{PLAN}{text}}}\n"))
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        const CHANGED: &str = "the plan was changed or damaged after it was made";
        let sealed = text.trim_end().strip_prefix(BEGIN).and_then(|behind| behind.split_once(PLAN)).ok_or(CHANGED)?;
        let plan = sealed.1.strip_suffix('}').filter(|plan| sha256(plan) == sealed.0).ok_or(CHANGED)?;
        let mut plan: Self = serde_json::from_str(plan).map_err(|_| "the plan cannot be read")?;
        plan.index();
        if plan.engine != env!("CARGO_PKG_VERSION") {
            return Err("the plan was made by another version of stead");
        }
        Ok(plan)
    }

    /// Finds what is asked for by machine: their number may be large.
    fn index(&mut self) {
        for (at, planned) in self.machines.iter_mut().enumerate() {
            let needs = serde_json::from_str(&planned.plan).map(|Needs { plan }| plan.secrets);
            planned.secrets = needs.unwrap_or_default();
            planned.secrets.retain(|name| self.parameters.contains(name));
            self.places.entry(planned.name.clone()).or_insert(at);
        }
    }

    fn of(&self, machine: &Machine) -> Option<&Planned> {
        self.machines.get(*self.places.get(machine.name.as_str())?)
    }

    /// The machines, where they are not those of an inventory: those that are named, or else all of them.
    pub(super) fn machines(&self, fleet: &FleetRequest) -> Result<Vec<Machine>, Exit> {
        let named = inventory::named(&fleet.names, fleet.user.as_ref())?;
        self.check(&named)?;
        let named: BTreeMap<&MachineName, &Destination> =
            named.iter().map(|each| (&each.name, &each.destination)).collect();
        let mut machines = self.all()?;
        machines.retain(|machine| named.is_empty() || named.contains_key(&machine.name));
        for machine in &mut machines {
            let user = named.get(&machine.name).map_or_else(|| fleet.user.clone(), |stated| stated.user.clone());
            machine.destination.user = user.or(machine.destination.user.take());
        }
        Ok(machines)
    }

    fn all(&self) -> Result<Vec<Machine>, Exit> {
        let machine = |planned: &Planned| {
            let user = planned.user.as_deref().map(UserName::parse).transpose().ok()?;
            let destination = Destination { address: Address::parse(&planned.address).ok()?, user, port: planned.port };
            Some(Machine::at(MachineName::parse(&planned.name).ok()?, destination))
        };
        let machines: Option<Vec<Machine>> = self.machines.iter().map(machine).collect();
        machines.ok_or_else(|| {
            complain("error: the plan has a name that no machine may have");
            Exit::Unusable
        })
    }

    /// Refuses machines of which there is no plan.
    pub(super) fn check(&self, machines: &[Machine]) -> Result<(), Exit> {
        match machines.iter().find(|machine| self.of(machine).is_none()) {
            None => Ok(()),
            Some(machine) => {
                complain(&format!("error: the plan has no machine '{}'", machine.name));
                complain("help: choose among its machines with '--where' or '--host', or make a new plan");
                Err(Exit::Unusable)
            }
        }
    }

    /// The secret parameters that are given anew, by variables and by the command line, which wins.
    pub(super) fn stated(&self, single: Vec<(String, String)>) -> Result<Vec<(String, String)>, Exit> {
        let known: BTreeSet<&String> = self.machines.iter().flat_map(|planned| &planned.secrets).collect();
        if let Some((name, _)) = single.iter().find(|(name, _)| !known.contains(name)) {
            complain(&format!("error: '{}' is not a secret parameter of the saved plan", plain(name)));
            complain("help: make a new plan with 'stead plan --out'");
            return Err(Exit::Unusable);
        }
        let variables = input::of_environment().into_iter().filter(|(name, _)| known.contains(name));
        Ok(variables.chain(single).collect())
    }

    /// The part of one machine: its plan, and the secrets that this needs.
    pub(super) fn work(&self, machine: &Machine, errand: &PlansErrand) -> Option<PlanWork> {
        let planned = self.of(machine)?;
        Some(PlanWork {
            plan: planned.plan.clone(),
            secrets: values(planned, machine, &errand.stated),
            width: errand.width,
            reconcile: Reconcile::from(&errand.reconcile),
            record: errand.recording.as_ref().map(Record::from),
            asks: self.secrets.is_some(),
        })
    }

    /// The secrets that go to machines, as texts.
    pub(super) fn texts(&self, machines: &[Machine], stated: &[(String, String)]) -> impl Iterator<Item = Value> {
        let planned = machines.iter().filter_map(|machine| Some((self.of(machine)?, machine)));
        planned.flat_map(|(planned, machine)| values(planned, machine, stated).into_values()).map(|text| {
            match serde_json::from_str::<Json>(&text) {
                Ok(Json::String(text)) => Value::from(text),
                _ => Value::from(text),
            }
        })
    }

    /// Where the plans of these machines remove something, or may do so, shows them to whoever sits at a terminal, and asks.
    pub(super) fn consent(&self, machines: &[Machine], view: View, cancel: &Cancel) -> Result<(), Exit> {
        if !is_attended() {
            return Ok(());
        }
        let planned: Vec<&Planned> = machines.iter().filter_map(|machine| self.of(machine)).collect();
        let of_one = |planned: &&Planned| Removals::of(planned.report["instances"].as_array().into_iter().flatten());
        let removals = Removals::on_all(planned.iter().map(of_one));
        if removals.are_none() {
            return Ok(());
        }
        groups(&planned.into_iter().map(|each| outcome(each, view)).collect::<Vec<_>>(), view, complain_coloured);
        removals.ask(cancel)
    }
}

/// The values that the plan of a machine needs, as the command line has them.
fn values(planned: &Planned, machine: &Machine, stated: &[(String, String)]) -> BTreeMap<String, String> {
    let value = |name: &String| {
        let stated = stated.iter().rfind(|(given, _)| given == name).map(|(_, text)| text.clone());
        let own = || machine.parameters.get(name).map(|value| value.to_redacted_json().to_string());
        Some((name.clone(), stated.or_else(own)?))
    };
    planned.secrets.iter().filter_map(value).collect()
}

/// The plan of all that is to be applied, where the file is one. Root applies only what nobody else could have written.
pub(super) fn to_apply(path: &Path) -> Option<Result<PlanOfAll, Exit>> {
    Some(plan_file::own(path, BEGIN)?.and_then(|text| parsed(path, &text)))
}

fn parsed(path: &Path, text: &str) -> Result<PlanOfAll, Exit> {
    PlanOfAll::parse(text).map_err(|why| {
        complain(&format!("error: {}: {why}", path.display()));
        complain("help: make a new plan with 'stead plan --out'");
        Exit::Unusable
    })
}

/// Shows a plan of all, where the file is one.
pub(super) fn show(request: &ShowRequest) -> Option<Exit> {
    let text = plan_file::any(&request.file, BEGIN)?;
    Some(text.and_then(|text| parsed(&request.file, &text)).map_or_else(|exit| exit, |plan| shown(plan, request)))
}

fn shown(plan: PlanOfAll, request: &ShowRequest) -> Exit {
    if request.output != Output::Text {
        let machine = |each: Planned| json!({ "name": each.name, "address": each.address, "report": each.report });
        let machines: Vec<Json> = plan.machines.into_iter().map(machine).collect();
        data_as(&json!({ "version": 1, "machines": machines }), request.output);
        return Exit::Success;
    }
    let (output, volume, detail) = (Output::Text, Volume::Usual, request.detail);
    let view = View { output, volume, detail, events: false, timings: false };
    finish(
        plan.machines.iter().map(|planned| outcome(planned, view)).collect(),
        Operation::Plan,
        view,
        None::<Duration>,
    );
    Exit::Success
}

/// A plan as it was shown.
fn outcome(Planned { name, report, .. }: &Planned, view: View) -> (String, Outcome) {
    let code = if report["changes"] == true { 2 } else { 0 };
    let answer = Answer::Ran { code, report: Some(report.clone()), saved: None, lines: Vec::new() };
    (plain(name).into_owned(), Outcome::of(name, Operation::Plan, view, answer))
}
