//! Carrying out the calls of a run with the resources of a session.

mod lasting;
mod shown;
mod to_come;
mod way_back;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use stead_core::call::{Call, Failure, FailureKind, Operation, Outcome, Response, Wanted};
use stead_core::claims::Claims;
use stead_core::diff::exists;
use stead_core::event::Status;
use stead_core::expr::FactKey;
use stead_core::footprint::Footprint;
use stead_core::graph::Graph;
use stead_core::id::NodeId;
use stead_core::instance_path::InstancePath;
use stead_core::manifest::{Implementation, Manifest};
use stead_core::run::KnownInstance;
use stead_core::statements::Statement;
use stead_core::value::Value;
use stead_host::executor::{CallBatch, Calls, Watch};
use stead_host::facts::Machine;
use stead_host::operate::{Called, carry_out, carry_out_together};
use stead_host::provider::{Context, Cost, Plain, Provider, Review};
use stead_host::store::images::Images;
use stead_host::vault::MemoryVault;
use stead_resources::builtin_of;
use stead_system::Cancel;
use stead_system::fs::SystemPath;

use crate::contexts::Contexts;
use crate::late::LateSearch;
use crate::planned::Planned;
use crate::providers::{Made, Managed, Providers};
use crate::real_paths::RealPaths;
use crate::second_look::{Disturbance, SecondLook};
use crate::session::Session;
use crate::shared_files::FileForecasts;
use crate::uncertain::{WayOut, refused_as_uncertain};
use crate::watch::FileWatch;
use to_come::ToCome;
use way_back::WaysBack;

/// The desired state of an instance that was answered.
pub(crate) struct Answered {
    manifest: Arc<Manifest>,
    desired: Arc<Value>,
}

/// Everything that the calls of one run need.
pub(crate) struct SessionCalls {
    pub(crate) providers: Arc<Providers>,
    /// Those of them that there were before the run: each call asks for one on several threads, which then share nothing that
    /// is written to.
    pub(crate) made: Vec<Made>,
    pub(crate) machine: Arc<Machine>,
    pub(crate) vault: Arc<MemoryVault>,
    pub(crate) contexts: Arc<Contexts>,
    pub(crate) real_paths: RealPaths,
    /// Finds resources that the run installs.
    pub(crate) late: Arc<LateSearch>,
    /// Ends calls that change nothing.
    pub(crate) reads: Cancel,
    /// The plan that the run is to do, if there is one.
    pub(crate) planned: Planned,
    /// The files of the run that a later part of it can have undone.
    pub(crate) second_look: SecondLook<Answered>,
    /// The instances of adapters that have not been called.
    pub(crate) to_come: ToCome,
    /// The instances that what they read is put back for where they do not come up.
    pub(crate) ways_back: WaysBack,
    /// What the instances predict from files that they share.
    pub(crate) forecasts: FileForecasts,
    /// The instances that are not taken to be in their desired state, whatever they find.
    pub(crate) uncertain: BTreeMap<NodeId, WayOut>,
}

impl Session {
    /// Returns everything that the calls of a run over a graph need.
    pub(crate) fn calls(&self, graph: &Graph) -> SessionCalls {
        self.calls_keeping(graph, None)
    }

    /// Returns everything that the calls of a run over a graph need, which has what it changes kept.
    pub(crate) fn calls_keeping(&self, graph: &Graph, images: Option<Images>) -> SessionCalls {
        let ways_back = WaysBack::of(graph, &self.shared.providers);
        let images = if ways_back.is_empty() { images } else { Some(self.remembered(images)) };
        let usual = Context { images, ..self.context(Arc::<str>::default()) };
        SessionCalls {
            ways_back,
            planned: Planned::default(),
            second_look: SecondLook::default(),
            to_come: ToCome::of(graph),
            forecasts: FileForecasts::default(),
            uncertain: BTreeMap::new(),
            made: self.shared.providers.made(),
            providers: Arc::clone(&self.shared.providers),
            machine: Arc::clone(&self.machine),
            vault: Arc::clone(&self.vault),
            contexts: Arc::new(Contexts::new(usual, graph)),
            real_paths: RealPaths::below(self.system_root().unwrap_or(Path::new("/"))),
            late: Arc::clone(&self.late),
            reads: self.options.cancel.or(&self.options.end_reads),
        }
    }
}

impl SessionCalls {
    fn provider(&self, manifest: &Arc<Manifest>) -> Cow<'_, Arc<dyn Provider>> {
        let made = self.made.iter().find(|(known, _)| Arc::ptr_eq(known, manifest));
        made.map_or_else(|| Cow::Owned(self.providers.of(manifest)), |(_, provider)| Cow::Borrowed(provider))
    }

    /// Returns the claims of an instance of a resource with this desired state, with absolute paths.
    pub(crate) fn claims_of(&self, id: NodeId, manifest: &Arc<Manifest>, desired: &Plain) -> Option<Claims> {
        self.providers.claims_of(manifest, desired, self.contexts.of(id))
    }

    /// Returns the paths on the machine that an instance with this desired state reads from.
    pub(crate) fn read_by(&self, id: NodeId, manifest: &Arc<Manifest>, desired: &Plain) -> Vec<SystemPath> {
        let cx = self.contexts.of(id);
        let on_machine = |path: &String| !cx.is_bundled(Path::new(path));
        let paths = self.providers.of(manifest).reads(desired).into_iter().filter(on_machine);
        paths.filter_map(|path| cx.source(path).ok()).collect()
    }

    /// Returns what an instance with this desired state states of named things.
    pub(crate) fn states_of(&self, id: NodeId, manifest: &Arc<Manifest>, desired: &Plain) -> Vec<Statement> {
        self.providers.of(manifest).states(self.contexts.of(id), desired)
    }

    /// Returns the lines that an instance with this desired state adds to its file.
    pub(crate) fn added_lines(&self, manifest: &Arc<Manifest>, desired: &Plain) -> Vec<String> {
        self.providers.of(manifest).added_lines(desired)
    }

    /// Returns all that an instance with this desired state manages, creates, uses and states.
    pub(crate) fn managed_by(&self, id: NodeId, manifest: &Arc<Manifest>, desired: &Plain) -> Managed {
        self.providers.managed_by(manifest, desired, self.contexts.of(id))
    }
}

impl SessionCalls {
    /// Carries out a call with a resource that was just found, whose schema says what of the desired state is secret.
    fn carry_out_late(&self, call: &Call, manifest: &Arc<Manifest>) -> Response {
        let manifest = self.providers.marked(manifest, &self.contexts.usual);
        let mut desired = Arc::clone(&call.desired);
        if manifest.states_secrets(&desired) {
            desired = Arc::new(manifest.sealing_secrets(Arc::unwrap_or_clone(desired), &*self.vault));
        }
        let call = Call { manifest, desired: Arc::clone(&desired), ..call.clone() };
        Response { desired: Some(desired), ..self.carry_out(&call) }
    }
}

/// A call that is being carried out.
struct Begun<'a> {
    provider: Cow<'a, Arc<dyn Provider>>,
    cx: Context,
    /// Of one that can change anything.
    disturbance: Option<Disturbance<'a, Answered>>,
}

impl SessionCalls {
    /// Begins a call, unless it would do something else than was shown. What is returned is given to [`Self::end`] with the response.
    fn begin(&self, call: &Call) -> Result<Begun<'_>, Failure> {
        let found = call.tested.as_ref().and_then(|tested| tested.actual.as_object());
        let (id, changes) = (call.instance.node(), call.changes());
        let mut cx = self.contexts.lend(id);
        cx.name = Arc::clone(call.name());
        cx.found_absent = found.is_some_and(|found| !exists(found));
        cx.verdict_suffices = matches!(call.wanted, Wanted::Verdict | Wanted::Answer);
        cx.cancel = if changes { self.contexts.of(id).cancel.clone() } else { self.reads.clone() };
        cx.binding = self.planned.binding_of(id);
        cx.to_come = self.to_come.behind(call);
        cx.forecast = self.forecasts.of(id);
        cx.instance = self.contexts.named(&call.instance);
        if changes && let Some(stale) = self.stale(call) {
            return Err(stale);
        }
        let provider = self.provider(&call.manifest);
        if changes {
            // A folder that a program was found in is not held open meanwhile.
            self.providers.forget_programs();
        }
        if changes && let Some(unshown) = self.unshown(call, &**provider, &cx) {
            return Err(unshown);
        }
        let is_loose = || provider.claims(&Plain::covered(&call.desired)).is_none();
        let disturbance =
            (changes && is_loose()).then(|| self.second_look.disturb(&call.instance, |id, of| self.traces_of(id, &of)));
        Ok(Begun { provider, cx, disturbance })
    }

    /// Takes in the response to a call, and returns what is to be said of it.
    fn end(&self, call: &Call, Begun { cx, disturbance, .. }: Begun<'_>, mut response: Response) -> Response {
        self.contexts.take_back(call.instance.node(), cx);
        let changes = call.changes();
        if let Some(way_out) = self.uncertain.get(&call.instance.node())
            && let Some(failure) = refused_as_uncertain(call, &response.outcome, *way_out)
        {
            response = failure.into();
        }
        if changes && let Some(failure) = self.to_be_put_back(call, &response.outcome) {
            response.outcome = Outcome::Failed(Box::new(failure));
        }
        let was_loose = disturbance.is_some();
        // Whatever it changed, it changed before it was answered.
        drop(disturbance);
        if changes {
            self.providers.forget_programs();
        }
        self.note(call, &response.outcome, changes, was_loose);
        without_unknown_property(&call.manifest, response)
    }
}

/// A response whose failure names no property that the built-in resource does not have.
fn without_unknown_property(manifest: &Manifest, mut response: Response) -> Response {
    let check = |failure: &mut Failure| {
        if failure.property.is_some()
            && let Some(built_in) = builtin_of(manifest)
        {
            failure.property.take_if(|property| !built_in.has(property));
        }
    };
    match &mut response.outcome {
        Outcome::Failed(failure) => check(failure),
        Outcome::Changed(changed) => {
            let mut next = changed.presumed.as_mut();
            while let Some(reason) = next {
                check(&mut reason.failure);
                next = reason.besides.as_deref_mut();
            }
        }
        _ => {}
    }
    response
}

impl Calls for SessionCalls {
    fn carry_out(&self, call: &Call) -> Response {
        if let Implementation::Late(late) = &call.manifest.implementation {
            return match self.late.find(&call.manifest.type_name, late) {
                Ok(manifest) => self.carry_out_late(call, &manifest),
                Err(failure) => failure.into(),
            };
        }
        match self.begin(call) {
            Ok(begun) => {
                let response = carry_out(call, &**begun.provider, &*self.vault, &begun.cx);
                self.end(call, begun, response)
            }
            Err(failure) => failure.into(),
        }
    }

    fn batch(&self, call: &Call) -> Option<CallBatch> {
        let resources = call.manifest.batch()?;
        let container = call.instance.container().cloned();
        Some(CallBatch { resources, container, operation: call.operation, execution: call.execution })
    }

    fn carry_out_together(&self, calls: &[Arc<Call>]) -> Vec<Response> {
        let begun: Vec<Result<Begun<'_>, Failure>> = calls.iter().map(|call| self.begin(call)).collect();
        let called = calls.iter().zip(&begun).filter_map(|(call, begun)| {
            let Begun { provider, cx, .. } = begun.as_ref().ok()?;
            Some(Called { call, provider: &***provider, cx })
        });
        let mut responses = carry_out_together(&called.collect::<Vec<_>>(), &*self.vault).into_iter();
        let missing = || Failure::new(FailureKind::System, "internal error: the call has no response").into();
        let ended = |(call, begun): (&Arc<Call>, Result<Begun<'_>, Failure>)| match begun {
            Ok(begun) => self.end(call, begun, responses.next().unwrap_or_else(missing)),
            Err(failure) => failure.into(),
        };
        calls.iter().zip(begun).map(ended).collect()
    }

    fn disturbed(&self) -> BTreeMap<NodeId, Vec<InstancePath>> {
        self.second_look.disturbed()
    }

    fn review(&self, instance: &KnownInstance, after: &[InstancePath]) -> Review {
        if let Some(undone) = self.undone(instance, after) {
            return Review::Failed(undone);
        }
        let cx = Context {
            name: Arc::clone(instance.instance.name()),
            ..self.contexts.of(instance.instance.node()).clone()
        };
        self.providers.of(&instance.manifest).review(&cx, &Plain::covered(&instance.desired))
    }

    fn take_back(&self, failed: &[(KnownInstance, String)]) -> Vec<(InstancePath, Failure)> {
        self.put_back_for(failed)
    }

    fn review_cost(&self, instance: &KnownInstance) -> Cost {
        self.providers.of(&instance.manifest).test_cost(&instance.desired)
    }

    fn footprint(&self, call: &Call, response: &Response) -> Option<Footprint> {
        // Paths are not secret: where one is all the same, its placeholder overlaps with nothing.
        let id = call.instance.node();
        let claims = self.claims_of(id, &call.manifest, &Plain::covered(&call.desired))?;
        let footprint = Footprint::new(claims, &response.outcome, |path| self.contexts.of(id).resolve(path).into());
        let footprint = footprint.with_other_paths(|path| self.real_paths.of(path));
        let forecasts = &self.forecasts;
        Some(footprint.predicted_from(|path| forecasts.is_seen_by(id, path), |path| forecasts.is_left_by(id, path)))
    }

    fn settled(&self, id: NodeId, status: &Status) {
        if *status != Status::Changed {
            self.forecasts.withdraw(id);
        }
    }

    fn cost(&self, call: &Call) -> Cost {
        let provider = self.provider(&call.manifest);
        if call.operation == Operation::Test { provider.test_cost(&call.desired) } else { provider.cost(&call.desired) }
    }

    fn fact(&self, key: &FactKey) -> Result<Value, String> {
        self.machine.fact(key)
    }

    fn watch(&self) -> Option<Box<dyn Watch>> {
        Some(Box::new(FileWatch::new(Arc::clone(&self.providers), Arc::clone(&self.contexts))))
    }

    fn flush(&self) -> std::io::Result<()> {
        self.contexts.usual.writes.flush().map_err(std::io::Error::other)
    }
}
