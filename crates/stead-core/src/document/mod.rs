//! Configuration documents as data: what was written, with places, before any of it is resolved.
//!
//! The keys and their meaning are those of DSC v3 configuration documents.

pub use crate::diag::codes::document as codes;
mod adapters;
mod advice;
mod apart;
mod by_instance;
mod compile;
mod fields;
mod foreign;
mod handlers;
mod ids;
mod loops;
mod other_types;
mod parts;
mod portable;
mod read;
mod reconcile;
mod tools;
mod topics;
mod winget;

pub use crate::expr::{Named, Template, UserFunction};
pub use crate::value::DataType;
pub(crate) use adapters::leave_out_modules;
pub use adapters::modules_of;
pub use advice::is_schema_of_documents;
pub use apart::keep_apart;
pub use by_instance::parse;
pub use foreign::{
    AT_DOCUMENTS, AT_INSTANCES, AT_PARAMETERS, ForeignWords, Meaning, When, foreign_meanings, property_meaning,
};
pub use loops::{LOOP_KEYS, items_of};
pub(crate) use other_types::without_collection;
pub use other_types::{OtherType, other_type, type_of_others};
pub use read::{INSTANCE_KEYS, SAVED_PLAN, of_tree, read};
pub use reconcile::Reconcile;
pub use topics::{Part, TOPICS, Topic, topic};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::export::ExportFilter;
use crate::expr::expressions;
use crate::id::{ResourceId, TypeName};
use crate::identity::DocumentIdentity;
use crate::text::{Node, SourceId, Span, Spanned};
use crate::value::Value;
use crate::wait::Wait;

/// A configuration document.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// The text it was read from.
    pub source: SourceId,
    /// `$schema`
    pub schema: Option<Spanned<String>>,
    /// `contentVersion`
    pub content_version: Option<Spanned<String>>,
    /// `directives`
    pub directives: Directives,
    /// `metadata`, as written
    pub metadata: Option<Node>,
    /// `parameters`, in the order written
    pub parameters: Vec<Parameter>,
    /// The names of parameters whose declarations cannot be read: they are there, and nothing else is known of them.
    pub unreadable: BTreeSet<String>,
    /// `variables`, in the order written; each may be or contain an expression
    pub variables: Vec<Named<Template>>,
    /// `functions`, flattened
    pub functions: Vec<UserFunction>,
    /// `outputs`, in the order written
    pub outputs: Vec<Output>,
    /// `resources`, in the order written
    pub resources: Vec<Instance>,
}

impl Document {
    /// A document with a single instance, which nobody wrote. Null stands for no properties.
    pub fn of_instance(id: &ResourceId, properties: Value) -> Self {
        let properties = Some(properties).filter(|properties| *properties != Value::Null);
        Self { resources: vec![Instance::unwritten(id, properties, Span::default())], ..Self::default() }
    }
}

impl Instance {
    /// An instance that nobody wrote, whose values are taken as they are; `span` is what messages about it point to.
    pub fn unwritten(id: &ResourceId, properties: Option<Value>, span: Span) -> Self {
        Self {
            span,
            type_name: Spanned::new(id.type_name.clone(), span),
            name: Template { span, ..Template::of_value(Value::from(&*id.name)) },
            condition: None,
            require_version: None,
            directives: None,
            depends_on: Vec::new(),
            copy: Box::default(),
            properties: properties.map(Template::of_value),
            metadata: None,
            may_compute: true,
        }
    }
}

impl Document {
    /// The identity that it states itself: `metadata: {name: NAME}`.
    pub fn identity(&self) -> Option<DocumentIdentity> {
        DocumentIdentity::of_stated_name(self.metadata.as_ref()?.get("name").and_then(Node::as_str)?)
    }

    /// The parameters that its expressions may read: those of defaults only where the default is used itself, which that of a
    /// supplied parameter is not.
    pub fn used_parameters(&self, is_supplied: impl Fn(&str) -> bool) -> UsedParameters {
        let defaulted = self.parameters.iter().filter(|parameter| !is_supplied(&parameter.name.value));
        let defaults: BTreeMap<&str, &Template> = defaulted
            .filter_map(|parameter| Some((parameter.name.value.as_str(), parameter.default.as_ref()?)))
            .collect();
        let mut used = UsedParameters::default();
        let mut waiting: Vec<&Template> = self.computing_values().collect();
        while let Some(template) = waiting.pop() {
            for name in parameters_in(template) {
                match name {
                    Some(name) if used.names.insert(name.clone()) => waiting.extend(defaults.get(name.as_str())),
                    None if !used.is_computed => {
                        used.is_computed = true;
                        waiting.extend(defaults.values());
                    }
                    _ => {}
                }
            }
        }
        used
    }

    /// Every value in it that may be or have an expression.
    pub fn all_values(&self) -> impl Iterator<Item = &Template> {
        let defaults = self.parameters.iter().filter_map(|parameter| parameter.default.as_ref());
        let outputs = self.functions.iter().map(|function| &function.output);
        defaults.chain(outputs).chain(self.values())
    }

    /// Like [`Self::all_values`], without those of parameters and functions.
    fn values(&self) -> impl Iterator<Item = &Template> {
        self.own_values().chain(self.resources.iter().flat_map(Instance::values))
    }

    /// Those of them that can have an expression.
    pub(crate) fn computing_values(&self) -> impl Iterator<Item = &Template> {
        self.own_values()
            .chain(self.resources.iter().filter(|instance| instance.may_compute).flat_map(Instance::values))
    }

    fn own_values(&self) -> impl Iterator<Item = &Template> {
        let variables = self.variables.iter().map(|variable| &variable.value);
        let outputs = self.outputs.iter().flat_map(|output| output.condition.iter().chain([&output.value]));
        variables.chain(outputs)
    }
}

/// The names of the parameters that a value reads; `None` for each that is computed.
pub(crate) fn parameters_in(template: &Template) -> impl Iterator<Item = Option<String>> {
    let calls = expressions(template).into_iter().flat_map(|placed| placed.expression.calls("parameters"));
    calls.filter_map(|call| call.arguments().next().map(|argument| argument.text().map(str::to_owned)))
}

/// The names of parameters that expressions read.
#[derive(Clone, Debug, Default)]
pub struct UsedParameters {
    names: BTreeSet<String>,
    /// True if a name is computed, so that it may be any.
    is_computed: bool,
}

impl UsedParameters {
    /// Returns whether that parameter may be read.
    pub fn holds(&self, name: &str) -> bool {
        self.is_computed || self.names.contains(name)
    }
}

impl Instance {
    /// Returns what its directives say, all absent where it has none.
    pub fn directives(&self) -> &InstanceDirectives {
        static NONE: InstanceDirectives = InstanceDirectives {
            require_adapter: None,
            security_context: None,
            configuration_mode: None,
            reconcile_wait: None,
            reconcile_pending: None,
            relations: Vec::new(),
            exclusive: None,
            export_filter: None,
        };
        self.directives.as_deref().unwrap_or(&NONE)
    }

    /// Every value in it that may be or have an expression.
    fn values(&self) -> impl Iterator<Item = &Template> {
        let relations = self.directives().relations.iter().flat_map(|(_, ids)| ids);
        let exclusive = self.directives().exclusive.iter().flat_map(Exclusive::names);
        let copy = self.copy.iter().map(|copy| copy.over.template());
        let condition = self.condition.iter().map(|condition| &**condition);
        [&self.name]
            .into_iter()
            .chain(condition)
            .chain(&self.depends_on)
            .chain(relations)
            .chain(exclusive)
            .chain(copy)
            .chain(&self.properties)
    }
}

/// `directives` of a document.
#[derive(Clone, Debug, Default)]
pub struct Directives {
    /// `resourceDiscovery`
    pub discovery: Option<Spanned<DiscoveryTime>>,
    /// `securityContext`
    pub security_context: Option<Spanned<SecurityContext>>,
    /// `configurationMode`: what an agent does with the document
    pub configuration_mode: Option<Spanned<ConfigurationMode>>,
    /// `version`: what the program's version must satisfy
    pub version: Option<Spanned<String>>,
    /// `reconcile`: how what is pending is run again. DSC v3 does not have it
    pub reconcile: Reconcile,
    /// `environment`: variables of the environment that programs are given besides those that all are; a `*` at the end
    /// stands for anything. DSC v3 does not have it
    pub environment: Vec<Spanned<String>>,
    /// `files`: patterns of the files that it reads by computed paths, or that its programs read. DSC v3 does not have it
    pub files: Vec<Spanned<String>>,
    /// `implicitOrder`: whether what an instance lies in or uses is created before it. DSC v3 does not have it
    pub implicit_order: Option<Spanned<bool>>,
    /// `removed`: what becomes of what former runs created and the document does not have any more. DSC v3 does not have it
    pub removed: Option<Spanned<Removed>>,
    /// `secretsFrom`: who finds secrets where a document is carried out on another machine. DSC v3 does not have it
    pub secrets_from: Option<Spanned<SecretsFrom>>,
}

/// Where the secrets of a document are found that is carried out on another machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SecretsFrom {
    /// Where the command was called.
    #[default]
    Caller,
    /// On that machine.
    Machine,
}

/// The fate of the things that former runs of a document created, and it does not have any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Removed {
    /// It is named, and stays.
    #[default]
    Report,
    /// It is removed.
    Remove,
    /// It stays, and nothing is said.
    Keep,
}

/// The way an agent treats a document, or one instance of it. The names and what they mean are those of the DSC Local
/// Configuration Manager.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub enum ConfigurationMode {
    /// It is applied until it has converged once, and then left alone.
    ApplyOnly,
    /// Applied once and then tested: drift is reported.
    #[default]
    ApplyAndMonitor,
    /// Applied once and then tested: drift is corrected.
    ApplyAndAutoCorrect,
    /// It is only ever tested.
    MonitorOnly,
}

impl ConfigurationMode {
    /// Every mode with its name.
    pub const ALL: [(&'static str, Self); 4] = [
        ("ApplyOnly", Self::ApplyOnly),
        ("ApplyAndMonitor", Self::ApplyAndMonitor),
        ("ApplyAndAutoCorrect", Self::ApplyAndAutoCorrect),
        ("MonitorOnly", Self::MonitorOnly),
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, each)| *each == self).map_or("", |(word, _)| word)
    }
}

/// When resources are looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiscoveryTime {
    /// Once, before anything runs.
    PreDeployment,
    /// Again before an instance whose type is not known yet.
    DuringDeployment,
}

/// With what rights something must run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SecurityContext {
    /// Any.
    Current,
    /// As administrator or root.
    Elevated,
    /// Not as administrator or root.
    Restricted,
}

impl SecurityContext {
    /// Returns why something that requires this context cannot run; `None` when it can.
    pub fn refusal(self, elevated: bool) -> Option<&'static str> {
        match (self, elevated) {
            (Self::Elevated, false) => Some("Elevated security context required: run it as root"),
            (Self::Restricted, true) => Some("Restricted security context required: do not run it as root"),
            _ => None,
        }
    }
}

/// One of `parameters`.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: Spanned<String>,
    /// `type`
    pub data_type: Spanned<DataType>,
    /// `defaultValue`, a value or an expression
    pub default: Option<Template>,
    /// `allowedValues`
    pub allowed: Option<Spanned<Vec<Node>>>,
    /// `minValue`
    pub min_value: Option<Spanned<i64>>,
    /// `maxValue`
    pub max_value: Option<Spanned<i64>>,
    /// `minLength`: in bytes for strings, in elements for arrays
    pub min_length: Option<Spanned<u64>>,
    /// `maxLength`
    pub max_length: Option<Spanned<u64>>,
    /// `description`
    pub description: Option<String>,
}

/// One of `outputs`.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its name.
    pub name: Spanned<String>,
    /// `type`
    pub data_type: Spanned<DataType>,
    /// `condition`
    pub condition: Option<Template>,
    /// `value`
    pub value: Template,
}

/// One of `resources`: a resource instance as declared. There may be hundreds of thousands: what few of them have is boxed.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The whole declaration.
    pub span: Span,
    /// `type`
    pub type_name: Spanned<TypeName>,
    /// `name`, text or an expression
    pub name: Template,
    /// `condition`
    pub condition: Option<Box<Template>>,
    /// `requireVersion` or `apiVersion`
    pub require_version: Option<Box<Spanned<String>>>,
    /// `directives`; see [`Self::directives`]
    pub directives: Option<Box<InstanceDirectives>>,
    /// `dependsOn`, each text or an expression
    pub depends_on: Vec<Template>,
    /// `copy`: loops, the outer one first; mostly none
    pub copy: Box<[Copy]>,
    /// `properties`; an object
    pub properties: Option<Template>,
    /// `metadata`, as written
    pub metadata: Option<Box<Node>>,
    /// False where no text in it is an expression, or can have been meant as one.
    pub may_compute: bool,
}

/// `directives` of an instance.
#[derive(Clone, Debug, Default)]
pub struct InstanceDirectives {
    /// `requireAdapter`
    pub require_adapter: Option<Spanned<TypeName>>,
    /// `securityContext`
    pub security_context: Option<Spanned<SecurityContext>>,
    /// `configurationMode`: what an agent does with it, if that is not what it does with the document
    pub configuration_mode: Option<Spanned<ConfigurationMode>>,
    /// `reconcileWait`: how long is waited before it is run again, if that is not what its resource says
    pub reconcile_wait: Option<Spanned<Wait>>,
    /// `reconcilePending`: the rule that says whether it is pending, if that is not the one of the run
    pub reconcile_pending: Option<Spanned<String>>,
    /// `requireAny`, `onChanges`, `onFailure` and `before`: ids of instances, each text or an expression.
    pub relations: Vec<(Relation, Vec<Template>)>,
    /// `exclusive`
    pub exclusive: Option<Exclusive>,
    /// `exportFilter`; its values are never computed
    pub export_filter: Option<Arc<ExportFilter>>,
}

/// Which calls are never under way at the same time as those of an instance.
#[derive(Clone, Debug)]
pub enum Exclusive {
    /// `true`: all others.
    All,
    /// Those of instances that state one of these names as well; each text or an expression.
    Names(Vec<Template>),
}

impl Exclusive {
    /// The names, none for all.
    pub fn names(&self) -> &[Template] {
        match self {
            Self::All => &[],
            Self::Names(names) => names,
        }
    }
}

/// How an instance can stand to others, besides `dependsOn`. DSC v3 has none of these directives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    /// It begins once one of them has succeeded, and is skipped if none can.
    RequireAny,
    /// It is for when one of them has changed.
    OnChanges,
    /// It is for when one of them has failed.
    OnFailure,
    /// They begin after it, whatever becomes of it.
    Before,
}

impl Relation {
    /// Every relation with the name of its directive.
    pub const ALL: [(&'static str, Self); 4] = [
        ("requireAny", Self::RequireAny),
        ("onChanges", Self::OnChanges),
        ("onFailure", Self::OnFailure),
        ("before", Self::Before),
    ];

    /// The name of its directive.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, each)| *each == self).map_or("", |(word, _)| word)
    }
}

/// `copy`: an instance that stands for many.
#[derive(Clone, Debug)]
pub struct Copy {
    /// The name of the loop.
    pub name: Spanned<String>,
    /// What there is an instance for.
    pub over: Over,
}

/// What a loop goes over.
#[derive(Clone, Debug)]
pub enum Over {
    /// `count`: so many rounds, a number or an expression.
    Count(Template),
    /// `each`: the elements of a list, or the members of an object. DSC v3 does not have it.
    Each {
        /// The list or object, or an expression for one.
        items: Template,
        /// `as`: what expressions call the item, as a function without arguments.
        called: Spanned<Arc<str>>,
    },
}

impl Over {
    /// What `as` is where it is not stated.
    pub const ITEM: &str = "item";

    /// The count, or what the items are of.
    pub fn template(&self) -> &Template {
        match self {
            Self::Count(template) | Self::Each { items: template, .. } => template,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_refused_where_they_are_the_other_ones() {
        for elevated in [true, false] {
            assert_eq!(SecurityContext::Current.refusal(elevated), None);
            assert_eq!(SecurityContext::Elevated.refusal(elevated).is_none(), elevated);
            assert_eq!(SecurityContext::Restricted.refusal(elevated).is_none(), !elevated);
        }
    }
}
