//! One instance: what is wrong with its properties, with places and hints.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::json;
use stead_core::call::{Failure, INVALID, code};
use stead_core::diag::{Diagnostic, Meant};
use stead_core::document::{Instance, Meaning, property_meaning};
use stead_core::expr::Template;
use stead_core::graph::{ScopeId, is_written_out, stated_at};
use stead_core::manifest::{BatchKey, Manifest};
use stead_core::schema::{Reason, Schema, SchemaMismatch};
use stead_core::text::{Kind, Span};
use stead_core::value::{Object, Value, pointer};
use stead_host::provider::{Context, Plain, Provider};

use super::hints::Fault;
use super::outline::{LazyOutline, Outline, SHORT, advice};
use super::{Extent, Pass, words};

/// An instance that is checked.
pub(super) struct Checked<'a> {
    pub(super) pass: &'a Pass<'a>,
    pub(super) instance: &'a Instance,
    pub(super) scope: ScopeId,
    pub(super) manifest: &'a Arc<Manifest>,
    pub(super) properties: Cow<'a, Template>,
    pub(super) provider: Arc<dyn Provider>,
    pub(super) cx: Context,
}

/// The description of a property in the schema: how it is used.
type Advice<'d> = &'d dyn Fn(&str) -> Option<String>;

impl Checked<'_> {
    /// Those that its program is asked about together with it.
    pub(super) fn batch(&self) -> Option<(BatchKey, ScopeId)> {
        Some((self.manifest.batch()?, self.scope))
    }

    /// Returns the mistakes that a built-in finds: it names one property at a time, which is then left out.
    pub(super) fn by_built_in(&self, outline: &LazyOutline) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        let mut meant = Vec::new();
        let mut is_complete = is_written_out(&self.properties);
        let is_free = |name: &str| outline.free.iter().any(|free| free == name);
        let mut rest = members(&self.properties, |name, text| text.len() <= SHORT || !is_free(name));
        loop {
            let input = Plain::new(rest);
            let Err(failure) = self.provider.validate(&self.cx, &input) else { return found };
            let Value::Object(left) = input.into_exposed() else { return found };
            rest = left;
            let name = failure.property.as_deref().map(property_of);
            let stated = name.as_deref().and_then(|name| self.properties.get(name));
            let Some((name, value)) = name.as_deref().zip(stated) else {
                // Something is missing; where something else was left out, that may be why.
                let is_required = |name: &str| outline.required.iter().any(|required| required == name);
                let is_certain = is_complete || name.as_deref().is_some_and(is_required);
                let is_wanted = self.pass.extent == Extent::Whole && !is_missing_any(&failure, &meant);
                found.extend((is_certain && is_wanted).then(|| self.refused(&failure, outline)));
                return found;
            };
            if rest.remove(name).is_none() {
                return found;
            }
            if is_written_out(value) || self.is_unknown_name(&failure) {
                meant.extend(failure.reason.as_deref().and_then(Reason::meant).into_iter().flat_map(Meant::into_words));
                meant.extend(self.renamed(name, outline));
                found.push(self.refused(&failure, outline));
            }
            is_complete = false;
        }
    }

    /// Returns the mistakes that the schema of a program shows.
    pub(super) fn by_schema(&self, schema: &Schema) -> Vec<Diagnostic> {
        let mismatches = schema.validate(&self.properties.literal().to_redacted_json());
        let certain = mismatches.into_iter().filter(|mismatch| is_certain(&self.properties, mismatch));
        let advice = |name: &str| advice(schema.property(name)?);
        let finding = |mismatch: SchemaMismatch| {
            let span = self.place(&mismatch.pointer);
            let finding = Diagnostic::error(&INVALID, span, mismatch.to_string());
            let accepts = |text: &str| {
                let others = schema.validate(&json!({ &*property_of(&mismatch.pointer): text }));
                others.iter().all(|other| other.pointer != mismatch.pointer)
            };
            self.hinted(finding, &mismatch.pointer, Some(&mismatch.reason), &advice, &accepts)
        };
        certain.map(finding).collect()
    }

    /// Returns the mistake that a program finds itself.
    pub(super) fn by_program(&self, failure: Failure) -> Diagnostic {
        let span = self.place(failure.property.as_deref().unwrap_or_default());
        Diagnostic::error(code(&failure.kind), span, failure.message)
    }

    /// Returns the mistake that a built-in finds, with advice.
    fn refused(&self, failure: &Failure, outline: &Outline) -> Diagnostic {
        let pointer = failure.property.as_deref().unwrap_or_default();
        let message = match failure.reason.as_deref() {
            // The word that was meant is a hint here.
            Some(reason @ Reason::Unknown { .. }) => reason.to_string(),
            _ => failure.message.clone(),
        };
        let finding = Diagnostic::error(code(&failure.kind), self.place(pointer), message);
        let about = match failure.reason.as_deref() {
            Some(Reason::Missing(_)) => pointer.rsplit_once('/').map_or("", |(outer, _)| outer),
            _ => pointer,
        };
        let accepts = |text: &str| self.accepts(about, text);
        self.hinted(finding, about, failure.reason.as_deref(), &|name| outline.advice(name), &accepts)
    }

    /// The properties that a word of another tool stands for: none of them is missing where the word is named.
    fn renamed(&self, word: &str, outline: &Outline) -> Vec<String> {
        // The path itself, where its name belongs.
        if word.starts_with('/') && outline.names.iter().any(|name| name == "path") {
            return vec!["path".to_owned()];
        }
        let value = self.properties.get(word);
        if let Some(meaning) = words::meaning(self.manifest.type_name.as_str(), &self.properties, (word, value)) {
            return match meaning {
                words::Meaning::Property(name) => vec![name.to_owned()],
                words::Meaning::Advice(advice) => {
                    let is_in =
                        |name: &&String| ["`", "'"].iter().any(|quote| advice.contains(&format!("{quote}{name}")));
                    outline.names.iter().filter(is_in).cloned().collect()
                }
            };
        }
        match property_meaning(word, value, &outline.names) {
            Some(Meaning::Property(name)) => vec![name.to_owned()],
            Some(Meaning::Inside(form, _)) => form.split(':').next().map(str::to_owned).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Returns whether the built-in takes a text in place of a value, as far as the property that it is in alone tells.
    fn accepts(&self, pointer: &str, text: &str) -> bool {
        let name = property_of(pointer).into_owned();
        let mut value = self.properties.get(&name).map(Template::literal).unwrap_or_default();
        let place = pointer::steps(pointer).skip(1).try_fold(&mut value, |outer, step| match outer {
            Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?),
            Value::Object(members) => members.get_mut(&step),
            _ => None,
        });
        if let Some(place) = place {
            *place = Value::from(text);
        }
        let only = Object::from([(name, value)]);
        let refusal = self.provider.validate(&self.cx, &Plain::new(only)).err();
        refusal.is_none_or(|failure| failure.property.as_deref() != Some(pointer))
    }

    fn hinted(
        &self,
        finding: Diagnostic,
        pointer: &str,
        reason: Option<&Reason>,
        advice: Advice<'_>,
        accepts: &dyn Fn(&str) -> bool,
    ) -> Diagnostic {
        let property = &*property_of(pointer);
        let value = stated_at(&self.properties, pointer).map(|(value, _)| value);
        let type_name = self.manifest.type_name.as_str();
        let document = &self.pass.prepared.graph.scope(self.scope).document;
        let change = |word: &str| document.change_advice(word, self.properties.get(word), self.instance);
        let properties = &*self.properties;
        let fault = Fault { type_name, reason, change: &change, properties, property, value, advice, accepts };
        self.pass.with_hint(finding, &fault)
    }

    /// Returns whether the resource has no property of a name that the text states: whatever its value is.
    fn is_unknown_name(&self, failure: &Failure) -> bool {
        let pointer = failure.property.as_deref().unwrap_or_default();
        matches!(failure.reason.as_deref(), Some(Reason::Unknown { .. }))
            && stated_at(&self.properties, pointer).is_some_and(|(_, place)| place.is_some())
    }

    /// Where a pointer leads; the name of the instance for the whole, and for what is in no text.
    fn place(&self, pointer: &str) -> Span {
        stated_at(&self.properties, pointer).and_then(|(_, span)| span).unwrap_or(self.instance.name.span)
    }
}

/// Returns whether the missing property was written under another name.
fn is_missing_any(failure: &Failure, meant: &[String]) -> bool {
    match failure.reason.as_deref() {
        Some(Reason::Missing(names)) => names.iter().any(|name| meant.contains(name)),
        _ => false,
    }
}

/// The members of an object, expressions as text; a text for which `is_needed` is false is left empty. It is given the
/// name of the member as well. An empty object for anything else.
fn members(properties: &Template, is_needed: impl Fn(&str, &str) -> bool) -> Object {
    let member = |name: &str, value: &Template| match &value.kind {
        Kind::String(text) if !is_needed(name, text) => Value::from(""),
        _ => value.literal(),
    };
    let entries = properties.entries().into_iter().flatten();
    entries.map(|entry| (entry.key.as_ref().to_owned(), member(&entry.key, &entry.value))).collect()
}

/// The name of the property that a pointer leads to or into.
fn property_of(pointer: &str) -> Cow<'_, str> {
    pointer::steps(pointer).next().unwrap_or_default()
}

/// Returns whether a mismatch stays one whatever is still to be computed or opened.
fn is_certain(properties: &Template, mismatch: &SchemaMismatch) -> bool {
    let mut value = properties;
    let is_unknown_name = matches!(mismatch.reason, Reason::Unknown { .. });
    let mut steps = pointer::steps(&mismatch.pointer).peekable();
    while let Some(step) = steps.next() {
        if is_open(value) {
            return false;
        }
        let inner = match &value.kind {
            Kind::Array(items) => step.parse().ok().and_then(|step: usize| items.get(step)),
            _ => value.get(&step),
        };
        let Some(inner) = inner else { return true };
        // A name is in the text, whatever its value is.
        if is_unknown_name && steps.peek().is_none() {
            return true;
        }
        value = inner;
    }
    !is_open(value) && (mismatch.is_shallow || is_written_out(value))
}

fn is_open(value: &Template) -> bool {
    let wraps = |name: &str| value.get(name).is_some();
    matches!(value.kind, Kind::Compiled(_)) || wraps("secureString") || wraps("secureObject")
}
