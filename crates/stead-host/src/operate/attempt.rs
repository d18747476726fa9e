//! One call under way: its input, and the methods of its resource.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use stead_core::call::{self, Call, Execution, Exported, Failure, FailureKind, Operation, Pending, Presumed};
use stead_core::destruction::Effects;
use stead_core::diff::{Case, Rules};
use stead_core::export::{ExportFilter, InvalidFilter};
use stead_core::manifest::{Implementation, ResourceKind, UndoWay};
use stead_core::planner::{Method, Reading, Reply, SetReply, invalid_restart_message};
use stead_core::schema::{Schema, SchemaMismatch};
use stead_core::value::{REDACTED, Seal, Value, pointer};

use super::former::settable;
use super::reseal::Resealer;
use crate::provider::{self, Context, MethodAnswer, Plain, Prediction, Provider, TraceLevel};
use crate::store::images::{Images, ImagesError, SetEntry, SetImages};

/// A call with everything that its methods need.
pub(super) struct Attempt<'a> {
    pub(super) call: &'a Call,
    pub(super) provider: &'a dyn Provider,
    pub(super) schema: Option<Arc<Schema>>,
    /// The desired state, sealed.
    pub(super) desired: Arc<Value>,
    /// The desired state as the resource gets it.
    pub(super) input: Plain,
    pub(super) resealer: Resealer<'a>,
    /// The context of the call; what is traced through it is scrubbed.
    pub(super) cx: Cow<'a, Context>,
}

/// A call of a method that is being made.
pub(super) struct Begun<'a> {
    pub(super) cx: Cow<'a, Context>,
    kept: Option<Arc<SetImages>>,
}

/// Returns whether a key of metadata belongs to the engine.
pub(super) fn is_reserved(name: &str) -> bool {
    name.starts_with("Microsoft.DSC")
}

impl Attempt<'_> {
    pub(super) fn rules(&self) -> Rules<'_> {
        let case = if self.call.manifest.is_powershell() { Case::IgnoredInNames } else { Case::Exact };
        Rules { case, schema: self.schema.as_deref().map(Schema::json) }
    }

    /// Calls a method, and seals what it answers.
    pub(super) fn invoke(&self, method: Method) -> Result<Reply, Failure> {
        let begun = self.begin(method)?;
        let answer = self.provider.answer(method, &begun.cx, &self.input);
        self.end(begun);
        self.reply(method, answer?)
    }

    /// Checks a call of a method that is about to be made and, unless this is what-if, has what it changes kept. What is returned must
    /// be given to [`Self::end`] when the call is over.
    pub(super) fn begin(&self, method: Method) -> Result<Begun<'_>, Failure> {
        if !matches!(method, Method::Set(Execution::Actual) | Method::Delete(Execution::Actual)) {
            return Ok(Begun { cx: Cow::Borrowed(&self.cx), kept: None });
        }
        self.check_uncovered()?;
        let cx = Context { changes: true, ..Context::clone(&self.cx) };
        let Some(images) = &self.cx.images else { return Ok(Begun { cx: Cow::Owned(cx), kept: None }) };
        let failed = |error: ImagesError| Failure::new(FailureKind::System, error.chain());
        let set = images.set(self.set_entry(images)).map_err(failed)?;
        let writes = cx.writes.kept_by(Arc::<SetImages>::clone(&set));
        Ok(Begun { cx: Cow::Owned(Context { writes, ..cx }), kept: Some(set) })
    }

    /// The call is over.
    pub(super) fn end(&self, Begun { kept, .. }: Begun<'_>) {
        if let Some(Err(error)) = kept.map(|set| set.over()) {
            self.note(TraceLevel::Warn, &format!("this cannot be taken back: {}", error.chain()));
        }
    }

    /// Seals what a method answered.
    pub(super) fn reply(&self, method: Method, answer: MethodAnswer) -> Result<Reply, Failure> {
        match answer {
            MethodAnswer::State(state) => Ok(Reply::State(self.reading(state)?)),
            MethodAnswer::Test(reply) => self.tested(reply),
            MethodAnswer::Set(reply) => self.was_set(reply, method == Method::Set(Execution::Actual)),
            MethodAnswer::Deleted(words) => Ok(Reply::Deleted(self.texts(&words))),
        }
    }

    /// Refuses to set a placeholder in place of a secret: the properties come from an output or a recorded request.
    pub(super) fn check_uncovered(&self) -> Result<(), Failure> {
        let Some(found) = covered_at(self.input.expose()) else { return Ok(()) };
        let property = found.split('/').nth(1).unwrap_or_default();
        let message = format!("'{property}' is a redacted placeholder, not the secret; state the secret itself");
        Err(Failure { property: Some(found), ..Failure::new(FailureKind::Invalid, message) })
    }

    /// The set that is about to begin, with what it takes to take it back where that is more than files.
    fn set_entry(&self, images: &Images) -> SetEntry {
        let (undo, instance) = (self.call.manifest.undo, self.call.instance.to_string());
        let read = || Some(self.provider.get(&self.cx, &self.input).ok()?.to_json());
        let schema = || self.provider.schema(&self.cx).ok().flatten();
        let before = || Some(settable(images.state_before(&instance).or_else(read)?, schema().as_deref()));
        SetEntry {
            type_name: self.call.manifest.type_name.clone(),
            undo,
            covered: self.call.desired.has_sealed() || self.input.is_secret(),
            desired: if undo == UndoWay::Files { None } else { Some(self.input.to_json()) },
            before: if undo == UndoWay::State { before() } else { None },
            instance,
        }
    }

    fn tested(&self, reply: provider::TestReply) -> Result<Reply, Failure> {
        if let Some(pending) = reply.pending {
            return Ok(self.pending(pending));
        }
        let in_desired_state = reply.verdict();
        let actual = reply.actual.map(|actual| self.reading(actual)).transpose()?;
        let differing = reply.differing.map(|names| self.scrubbed_names(names));
        let unknown = reply.unknown.map(|why| self.resealer.text(&why).into());
        let predicted = reply.predicted.map(|predicted| self.prediction(predicted)).transpose()?.map(Box::new);
        Ok(Reply::Test { actual, in_desired_state, differing, unknown, predicted })
    }

    fn prediction(&self, predicted: Prediction) -> Result<call::Prediction, Failure> {
        let Prediction { after, effects, words, once } = predicted;
        let (after, effects) = (self.reading(after)?.state, self.scrubbed_effects(effects));
        Ok(call::Prediction { after, effects, words: self.texts(&words), once })
    }

    fn scrubbed_effects(&self, effects: Effects) -> Effects {
        effects.map_text(|text| self.resealer.text(text))
    }

    fn was_set(&self, reply: provider::SetReply, is_made: bool) -> Result<Reply, Failure> {
        if let Some(pending) = reply.pending {
            return Ok(self.pending(pending));
        }
        let after = match reply.after.map(|after| self.reading(after)).transpose() {
            // It was made whatever it reports, and its state can be asked for.
            Err(failure) if is_made => {
                self.note(TraceLevel::Warn, &format!("the set was made, but {}", self.scrubbed(failure).message));
                None
            }
            after => after?,
        };
        let before = reply.before.map(|before| self.reading(before)).transpose().unwrap_or_else(|failure| {
            self.note(TraceLevel::Warn, &format!("the state before it is unknown: {}", self.scrubbed(failure).message));
            None
        });
        let changed = reply.changed.map(|names| self.scrubbed_names(names));
        let presumed = reply.presumed.and_then(|presumed| self.scrubbed_presumption(presumed));
        let effects = self.scrubbed_effects(reply.effects);
        let unread = reply.unread.map(|failure| self.scrubbed(failure));
        let what_if = self.texts(&reply.what_if);
        let unknown = reply.unknown.map(|why| self.resealer.text(&why).into());
        Ok(Reply::Set(SetReply { before, after, unread, changed, what_if, unknown, presumed, effects }.into()))
    }

    /// The answer of a resource that is still working. Secrets are sealed in what it hands back: those that are known, and what it marks
    /// as such.
    fn pending(&self, Pending { message, data, after }: Pending) -> Reply {
        let data = data.map(|data| sealing_marked(self.resealer.state(data), self.resealer.seal));
        Reply::Pending(Pending { message: self.resealer.text(&message), data, after })
    }

    /// A path may hold secrets; one that is covered overlaps with no other.
    fn scrubbed_presumption(&self, presumed: Presumed) -> Option<Presumed> {
        let covered = |path: PathBuf| match path.to_str() {
            Some(text) => PathBuf::from(self.resealer.text(text)),
            None => path,
        };
        Presumed::all(presumed.apart().into_iter().map(|Presumed { failure, paths, .. }| {
            Some(Presumed::of(self.scrubbed(failure), paths.into_iter().map(covered).collect()))
        }))
    }

    fn texts(&self, texts: &[String]) -> Vec<String> {
        texts.iter().map(|text| self.resealer.text(text)).collect()
    }

    /// Lists the instances that fit the desired state, and seals them.
    pub(super) fn export(&self) -> Result<Reply, Failure> {
        if self.call.manifest.capabilities.export_filters {
            return self.sealed_all(self.provider.export(&self.cx, &self.input)?);
        }
        let invalid = |error: InvalidFilter| Failure::new(FailureKind::Invalid, error.to_string());
        let filter = ExportFilter::parse(self.resealer.plain()).map_err(invalid)?;
        if *self.desired != Value::Null {
            let of = &self.call.manifest.type_name;
            let message = format!(
                "Resource '{of}' does not support export filtering, the engine will filter the exported instances \
                 (experimental feature)"
            );
            self.note(TraceLevel::Info, &message);
        }
        let found = self.provider.export(&self.cx, &Plain::default())?;
        let kept = |found: Exported| Some(Exported { properties: filter.apply(&found.properties)?, ..found });
        self.sealed_all(found.into_iter().filter_map(kept).collect())
    }

    fn sealed_all(&self, found: Vec<Exported>) -> Result<Reply, Failure> {
        found.into_iter().map(|each| self.sealed(each)).collect::<Result<_, _>>().map(Reply::Exported)
    }

    /// Seals an exported instance: a value that came from the resource is in the clear, whatever its type says.
    fn sealed(&self, found: Exported) -> Result<Exported, Failure> {
        let Exported { type_name, name, properties, depends_on, metadata } = found;
        let reading = match type_name {
            None => self.reading(Plain::new(properties))?,
            // Of another type, which no schema is at hand for.
            Some(_) => Reading { state: Arc::new(self.resealer.state(properties)), metadata: None },
        };
        let metadata = metadata.map(|metadata| self.resealer.state(metadata));
        let metadata = metadata.and_then(|metadata| self.metadata(metadata)).or(reading.metadata);
        let name = name.map(|name| self.resealer.text(&name));
        Ok(Exported { type_name, name, properties: Arc::unwrap_or_clone(reading.state), depends_on, metadata })
    }

    /// The schema that the input must fit. For properties their schema; for a filter the one that the resource
    /// declares for it, else that of the properties if the resource filters by itself.
    fn input_schema(&self) -> Result<Option<Arc<Schema>>, Failure> {
        let capabilities = self.call.manifest.capabilities;
        let own = || self.schema.clone();
        if self.call.operation != Operation::Export || !capabilities.export {
            return Ok(own());
        }
        let declared = self.provider.export_schema(&self.cx)?;
        Ok(declared.or_else(|| own().filter(|_| capabilities.export_filters)))
    }

    /// Takes in a state that the resource reported.
    pub(super) fn reading(&self, state: Plain) -> Result<Reading, Failure> {
        self.check_output(&state)?;
        let mut state = self.sealing_secrets(self.resealer.shared(state.into_shared()));
        if let Some(message) = invalid_restart_message(&state) {
            self.note(TraceLevel::Warn, &message);
        }
        if state.get("_metadata").is_none() {
            return Ok(Reading { state, metadata: None });
        }
        let metadata = match Arc::make_mut(&mut state) {
            // As in dsc, the last property takes its place.
            Value::Object(members) => members.swap_remove("_metadata").and_then(|found| self.metadata(found)),
            _ => None,
        };
        Ok(Reading { state, metadata })
    }

    /// Seals the properties that are secret in the actual state as well.
    fn sealing_secrets(&self, state: Arc<Value>) -> Arc<Value> {
        let manifest = &self.call.manifest;
        if !manifest.states_secrets(&state) {
            return state;
        }
        Arc::new(manifest.sealing_secrets(Arc::unwrap_or_clone(state), self.resealer.seal))
    }

    /// The metadata that a resource may state.
    pub(super) fn metadata(&self, found: Value) -> Option<Value> {
        let Value::Object(mut members) = found else { return None };
        members.retain(|name, _| {
            let reserved = is_reserved(name);
            if reserved {
                self.note(
                    TraceLevel::Warn,
                    &format!("Resource returned '_metadata' property '{name}' which is ignored"),
                );
            }
            !reserved
        });
        (!members.is_empty()).then_some(Value::Object(members))
    }

    /// Refuses the next method once the run was cancelled.
    pub(super) fn check_cancelled(&self) -> Result<(), Failure> {
        if self.cx.cancel.is_cancelled() {
            return Err(Failure::new(FailureKind::Cancelled, "the run was cancelled"));
        }
        Ok(())
    }

    pub(super) fn note(&self, level: TraceLevel, text: &str) {
        self.cx.say(level, text);
    }

    pub(super) fn scrubbed(&self, failure: Failure) -> Failure {
        let scrubbed = |text: Option<String>| text.map(|text| self.resealer.text(&text));
        let (property, error_id) =
            (scrubbed(failure.property), failure.error_id.map(|id| self.resealer.text(&id).into()));
        let raised = failure.raised.map(|raised| Box::new(raised.with_texts(|text| self.resealer.text(text))));
        // The names in a reason may be made of secrets.
        Failure { message: self.resealer.text(&failure.message), property, error_id, raised, reason: None, ..failure }
    }

    pub(super) fn scrubbed_names(&self, names: Vec<String>) -> Vec<String> {
        let known = |name: &String| self.desired.as_object().is_some_and(|desired| desired.contains_key(name));
        names.into_iter().map(|name| if known(&name) { name } else { self.resealer.text(&name) }).collect()
    }

    /// Takes the form of the secrets that fits the resource, and checks that the whole does.
    pub(super) fn choose_input(&mut self, wrapped: Option<Plain>) -> Result<(), Failure> {
        if self.input.expose().is_null() {
            return Ok(());
        }
        let schema = self.input_schema()?;
        // A group gets what its document states for nested instances.
        match (wrapped.filter(|_| self.call.manifest.kind != ResourceKind::Group), &schema) {
            (Some(wrapped), None) if self.provider.wants_wrapped_secrets() => self.input = wrapped,
            (Some(wrapped), Some(schema)) if schema.validate(&wrapped.to_json()).is_empty() => self.input = wrapped,
            (_, None) => {}
            (wrapped, Some(schema)) => {
                let mixed = wrapped.and_then(|wrapped| mixed(schema, &self.input, &wrapped));
                self.input = mixed.unwrap_or_else(|| self.input.clone());
                let checked = failed(schema, &self.input, FailureKind::Invalid, "");
                return checked.map_err(|failure| self.scrubbed(failure));
            }
        }
        Ok(())
    }

    fn check_output(&self, state: &Plain) -> Result<(), Failure> {
        // What is adapted answers by its adapter, which may add to what the properties can be.
        let adapted = matches!(self.call.manifest.implementation, Implementation::Adapted { .. });
        match self.schema.as_deref().filter(|_| self.call.manifest.kind == ResourceKind::Resource && !adapted) {
            Some(schema) => failed(
                schema,
                state,
                FailureKind::Protocol,
                "the state that the resource reported does not fit its schema: ",
            ),
            None => Ok(()),
        }
    }
}

/// A value with what is below `secureString` and `secureObject` sealed.
fn sealing_marked(value: Value, seal: &dyn Seal) -> Value {
    let sealing = |value| sealing_marked(value, seal);
    match value {
        Value::Object(mut members) if members.len() == 1 => {
            let marked = ["secureString", "secureObject"].iter().find_map(|mark| members.swap_remove(mark));
            match marked {
                Some(secret) if !secret.has_sealed() => Value::secret(seal.seal(secret)),
                Some(secret) => secret,
                None => Value::Object(members.into_iter().map(|(name, value)| (name, sealing(value))).collect()),
            }
        }
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(name, value)| (name, sealing(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sealing).collect()),
        other => other,
    }
}

/// Placeholders for secrets in outputs: that of this program, and that in requests recorded by the modules for Puppet.
const COVERS: [&str; 2] = [REDACTED, "[redacted]"];

/// Where a value is nothing but a placeholder, or has one as its user and password.
fn covered_at(value: &Value) -> Option<String> {
    let is_covered = |text: &str| {
        let begins =
            |text: &str| COVERS.iter().any(|cover| text.strip_prefix(cover).is_some_and(|rest| rest.starts_with('@')));
        COVERS.contains(&text.trim()) || text.split_once("://").is_some_and(|(_, rest)| begins(rest))
    };
    match value {
        Value::String(text) => is_covered(text).then(String::new),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(at, item)| Some(format!("/{at}{}", covered_at(item)?)))
        }
        Value::Object(members) => {
            members.iter().find_map(|(name, value)| Some(pointer::within("", name) + &covered_at(value)?))
        }
        _ => None,
    }
}

/// The secrets as they are, but those whose places have another schema in their wrapping; `None` where that does not fit either.
fn mixed(schema: &Schema, bare: &Plain, wrapped: &Plain) -> Option<Plain> {
    let (mut mixed, wrapped) = (bare.to_json(), wrapped.to_json());
    for SchemaMismatch { pointer, .. } in schema.validate(&mixed) {
        mixed.pointer_mut(&pointer)?.clone_from(wrapped.pointer(&pointer)?);
    }
    schema.validate(&mixed).is_empty().then(|| Plain::secret(mixed))
}

fn failed(schema: &Schema, value: &Plain, kind: FailureKind, prefix: &str) -> Result<(), Failure> {
    let mismatches = schema.validate(&value.to_json());
    let Some(first) = mismatches.first() else { return Ok(()) };
    let message = format!("{prefix}{}", mismatches.iter().map(SchemaMismatch::line).collect::<Vec<_>>().join("; "));
    let property = Some(first.pointer.clone()).filter(|pointer| !pointer.is_empty());
    Err(Failure { property, ..Failure::new(kind, message) })
}
