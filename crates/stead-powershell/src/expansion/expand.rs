//! A composite resource with the properties of an instance, as the instances that it consists of.
//!
//! Statements of a configuration are evaluated exactly as PowerShell does it, or refused with their place.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use stead_core::diag::Diagnostic;
use stead_core::diag::codes::powershell::module as codes;
use stead_core::document::{Document, Instance, InstanceDirectives, Parameter, Template};
use stead_core::expr;
use stead_core::graph::{Expansion, ExpansionFinding};
use stead_core::id::{ResourceId, TypeName};
use stead_core::text::{self, Kind, SourceId, Sources, Span, Spanned};
use stead_core::value::{self, DataType, Number, Object};
use stead_powershell_reader::class::File;
use stead_powershell_reader::composite::{DeclaredInstance, Statement, StatementKind, statements};
use stead_powershell_reader::manifest::{Context, Entry, Expression, ManifestFault, Value, evaluate, same, truth};
use stead_powershell_reader::resource::Resource;

use super::parameters::{Bound, Unbound};
use crate::convert::ValueRefusal;

/// A resource that a configuration can name by a keyword.
pub(crate) struct Target {
    pub(crate) type_name: TypeName,
    /// The version that it must have.
    pub(crate) version: Option<String>,
    /// The adapter that carries it out.
    pub(crate) adapter: Option<TypeName>,
    /// The names of its properties.
    pub(crate) properties: Vec<String>,
}

/// A statement `Import-DscResource`.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Import {
    /// The module; any where none is named.
    pub(crate) module: Option<String>,
    /// Its version, exactly.
    pub(crate) version: Option<String>,
    /// The resources; all where none is named.
    pub(crate) names: Vec<String>,
}

/// Finds the resources that keywords mean.
pub(crate) trait Keywords {
    /// Checks an import, and says why it fails.
    fn check(&self, import: &Import) -> Result<(), String>;

    /// The one resource of that name among what is imported, and what needs no import.
    fn resolve(&self, imports: &[Import], keyword: &str) -> Result<Target, String>;
}

/// How many statements an instance may come to.
const MOST_STEPS: usize = 100_000;
/// How much a variable may hold, in bytes: one that is doubled again and again would take all memory.
const LARGEST_VARIABLE: usize = 1 << 20;
/// How many levels of values a variable may hold: each statement may put what it held into another list or table.
const DEEPEST_VARIABLE: usize = 100;
/// How much the properties of all instances may hold, in bytes.
const LARGEST_EXPANSION: usize = 64 << 20;

/// The instances that an instance of a composite resource consists of. Its script is added to `sources`.
pub(crate) fn expand(
    resource: &Resource,
    file: &File,
    stated: &Object,
    keywords: &dyn Keywords,
    sources: &mut Sources,
) -> Result<Expansion, Vec<ExpansionFinding>> {
    let source = sources.add_once(&file.path.to_string_lossy(), file.text.as_str());
    let at = |ManifestFault { offset, message }: ManifestFault| {
        let width = file.text.as_str().get(offset..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        let [start, end] = [offset, offset + width].map(|offset| u32::try_from(offset).unwrap_or(u32::MAX));
        let message = format!("'{}' cannot be expanded: {message}", resource.name);
        vec![ExpansionFinding::from(Diagnostic::error(&codes::EXPANSION, Span::new(source, start, end), message))]
    };
    let fault = |message: &str| at(ManifestFault { offset: 0, message: message.to_owned() });
    if let Some(problem) = file.script.problems.first() {
        return Err(at(ManifestFault { offset: problem.at, message: problem.message.clone() }));
    }
    let found = file.script.configurations.iter().find(|configuration| same(&configuration.name, &resource.name));
    let Some(configuration) = found else { return Err(fault("the file no longer declares this Configuration")) };
    let text = file.text.as_str().get(configuration.body.clone()).unwrap_or_default();
    let start = configuration.body.start;
    let shifted = |fault: ManifestFault| ManifestFault { offset: fault.offset + start, ..fault };
    let statements = statements(text).map_err(|fault| at(shifted(fault)))?;
    let folder = file.path.parent().unwrap_or(Path::new("/"));
    let bound = Bound::new(resource, configuration, stated, folder).map_err(|unbound| match unbound {
        Unbound::Stated(refusals) => refusals.iter().map(refused).collect(),
        Unbound::Script(fault) => at(fault),
    })?;
    let folder = folder.to_string_lossy();
    let mut expander = Expander {
        bound,
        folder: &folder,
        keywords,
        imports: Vec::new(),
        targets: HashMap::new(),
        made: Vec::new(),
        ids: HashMap::new(),
        steps: 0,
        bytes: 0,
        source,
        start,
    };
    expander.document(&statements).map_err(|fault| at(shifted(fault)))
}

/// A property of the document that the resource does not accept.
fn refused(refusal: &ValueRefusal) -> ExpansionFinding {
    let finding = Diagnostic::error(refusal.code, Span::default(), refusal.to_string());
    ExpansionFinding { finding: Diagnostic { span: None, ..finding }, property: refusal.pointer.clone() }
}

struct Expander<'a> {
    bound: Bound<'a>,
    folder: &'a str,
    keywords: &'a dyn Keywords,
    imports: Vec<Import>,
    /// The resources that keywords name, by their text in lower case.
    targets: HashMap<String, Arc<Target>>,
    made: Vec<Made>,
    ids: Ids,
    steps: usize,
    /// The bytes that the properties of the instances so far hold.
    bytes: usize,
    source: SourceId,
    /// Where the body starts in the text.
    start: usize,
}

/// The instances by keyword and name, both in lower case.
type Ids = HashMap<(String, String), ResourceId>;

/// An instance, before what it depends on is known.
struct Made {
    needs: Vec<(String, usize)>,
    instance: Instance,
}

type Expand<T> = Result<T, ManifestFault>;

fn fail<T>(offset: usize, message: impl Into<String>) -> Expand<T> {
    Err(ManifestFault { offset, message: message.into() })
}

impl Expander<'_> {
    fn document(&mut self, statements: &[Statement]) -> Expand<Expansion> {
        // PowerShell imports while it parses, wherever the statement stands.
        for statement in statements {
            if let StatementKind::Import(arguments) = &statement.kind {
                self.import(arguments, statement.at.start)?;
            }
        }
        self.run(statements, true)?;
        let mut resources = Vec::with_capacity(self.made.len());
        for made in std::mem::take(&mut self.made) {
            let needs = made.needs.iter().map(|(need, at)| self.need(need, *at)).collect::<Expand<_>>()?;
            resources.push(Instance { depends_on: needs, ..made.instance });
        }
        let secrets = self.bound.opaque.iter().filter(|(_, value)| value.has_sealed());
        let parameters: Object = secrets.map(|(name, value)| (name.clone(), (*value).clone())).collect();
        let declared = parameters.iter().map(|(name, value)| parameter(name, value)).collect();
        let document = Document { source: self.source, parameters: declared, resources, ..Document::default() };
        Ok(Expansion { document, parameters })
    }

    fn span(&self, at: &Range<usize>) -> Span {
        let offset = |offset: usize| u32::try_from(self.start + offset).unwrap_or(u32::MAX);
        Span::new(self.source, offset(at.start), offset(at.end))
    }

    /// Computes with the present variables. What is wrong is wrong with the whole of the place.
    fn with<T>(&self, at: usize, compute: impl FnOnce(&Context<'_>) -> Result<T, String>) -> Expand<T> {
        let variables = Some(&self.bound.variables);
        let context = Context { folder: self.folder, environment: &|_| None, variables };
        compute(&context).map_err(|message| ManifestFault { offset: at, message })
    }

    fn value(&self, expression: &Expression, at: usize) -> Expand<Value> {
        self.with(at, |context| evaluate(expression, context))
    }

    fn run(&mut self, statements: &[Statement], top: bool) -> Expand<()> {
        statements.iter().try_for_each(|statement| self.statement(statement, top))
    }

    fn statement(&mut self, statement: &Statement, top: bool) -> Expand<()> {
        let at = statement.at.start;
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return fail(at, format!("more than {MOST_STEPS} statements are evaluated"));
        }
        match &statement.kind {
            StatementKind::Import(_) if top => Ok(()),
            StatementKind::Import(_) => fail(at, "'Import-DscResource' is only evaluated outside of blocks"),
            StatementKind::Assign(name, value) => {
                let value = self.value(value, at)?;
                self.assign(name, value, at)
            }
            StatementKind::If(branches) => self.branch(branches, at),
            StatementKind::ForEach(name, values, body) => {
                let values = self.value(values, at)?;
                if matches!(values, Value::Opaque { .. }) {
                    return fail(at, "cannot loop over a secret");
                }
                for value in values.elements() {
                    self.assign(name, value, at)?;
                    self.run(body, false)?;
                }
                Ok(())
            }
            StatementKind::Instance(declaration) => self.instance(declaration, &statement.at),
        }
    }

    fn assign(&mut self, name: &str, value: Value, at: usize) -> Expand<()> {
        if value.weight() > LARGEST_VARIABLE {
            return fail(at, format!("'${name}' would hold more than {LARGEST_VARIABLE} bytes"));
        }
        if value.depth() > DEEPEST_VARIABLE {
            return fail(at, format!("'${name}' would hold more than {DEEPEST_VARIABLE} levels of values"));
        }
        let value = self.bound.assigned(name, value).map_err(|message| ManifestFault { offset: at, message })?;
        self.bound.variables.insert(name.to_lowercase(), value);
        Ok(())
    }

    fn branch(&mut self, branches: &[(Option<Expression>, Vec<Statement>)], at: usize) -> Expand<()> {
        for (condition, statements) in branches {
            let chosen = match condition {
                Some(condition) => self.with(at, |context| truth(condition, context))?,
                None => true,
            };
            if chosen {
                return self.run(statements, false);
            }
        }
        Ok(())
    }

    fn import(&mut self, arguments: &[(Option<String>, Expression)], at: usize) -> Expand<()> {
        let (mut names, mut modules, mut version) = (Vec::new(), Vec::new(), None);
        for (parameter, value) in arguments {
            let value = self.value(value, at)?;
            match parameter.as_deref() {
                None | Some("name") if names.is_empty() => names = texts(value, at)?,
                Some("modulename") => modules = value.elements(),
                Some("moduleversion") => version = Some(value.to_text()),
                _ => return fail(at, "this form of 'Import-DscResource' is not evaluated"),
            }
        }
        if modules.is_empty() {
            modules.push(Value::Null);
        }
        for module in modules {
            let import = import_of(&module, version.clone(), names.clone()).ok_or_else(|| ManifestFault {
                offset: at,
                message: "'-ModuleName' needs names, or tables with 'ModuleName' and 'ModuleVersion'".to_owned(),
            })?;
            self.keywords.check(&import).map_err(|message| ManifestFault { offset: at, message })?;
            self.imports.push(import);
        }
        Ok(())
    }

    fn weigh(&mut self, bytes: usize, place: usize) -> Expand<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > LARGEST_EXPANSION {
            return fail(place, format!("the instances would hold more than {LARGEST_EXPANSION} bytes"));
        }
        Ok(())
    }

    fn instance(&mut self, declaration: &DeclaredInstance, at: &Range<usize>) -> Expand<()> {
        let target = self.target(&declaration.keyword, at.start)?;
        let name = self.text(&declaration.name, declaration.name_at.start, "the name of an instance")?;
        self.weigh(name.len(), at.start)?;
        let id = ResourceId { type_name: target.type_name.clone(), name: name.as_str().into() };
        let key = (declaration.keyword.to_lowercase(), name.to_lowercase());
        if self.ids.insert(key, id).is_some() {
            return fail(at.start, format!("'[{}]{name}' is declared twice", declaration.keyword));
        }
        let (mut members, mut needs) = (Vec::new(), Vec::new());
        for entry in &declaration.properties {
            let place = entry.value_at.start;
            let Expression::Constant(Value::Text(property)) = &entry.key else {
                return fail(entry.key_at.start, "the name of a property must be written out");
            };
            if same(property, "PsDscRunAsCredential") {
                return fail(
                    entry.key_at.start,
                    "'PsDscRunAsCredential' is not supported: everything runs as one user",
                );
            }
            let value = self.value(&entry.value, place)?;
            self.weigh(value.weight(), place)?;
            if same(property, "DependsOn") {
                needs.extend(texts(value, place)?.into_iter().map(|need| (need, place)));
            } else if value != Value::Null {
                let declared = target.properties.iter().find(|known| same(known, property));
                members.push(self.member(declared.unwrap_or(property), value, entry)?);
            }
        }
        let instance = self.declared(declaration, at, (&target, &name), members);
        self.made.push(Made { needs, instance });
        Ok(())
    }

    /// Returns the resource that a keyword names; all imports are known.
    fn target(&mut self, keyword: &str, at: usize) -> Expand<Arc<Target>> {
        let key = keyword.to_lowercase();
        if let Some(known) = self.targets.get(&key) {
            return Ok(Arc::clone(known));
        }
        let found = self.keywords.resolve(&self.imports, keyword);
        let target = Arc::new(found.map_err(|message| ManifestFault { offset: at, message })?);
        self.targets.insert(key, Arc::clone(&target));
        Ok(target)
    }

    fn declared(
        &self,
        declaration: &DeclaredInstance,
        at: &Range<usize>,
        (target, name): (&Target, &str),
        members: Vec<text::Entry<Box<expr::Expression>>>,
    ) -> Instance {
        let (span, name_span) = (self.span(at), self.span(&declaration.name_at));
        let keyword = at.start..at.start + declaration.keyword.len();
        let keyword = self.span(&keyword);
        let adapter = target.adapter.clone().map(|adapter| Spanned::new(adapter, keyword));
        let directives = InstanceDirectives { require_adapter: adapter, ..InstanceDirectives::default() };
        Instance {
            span,
            type_name: Spanned::new(target.type_name.clone(), keyword),
            name: Template { span: name_span, kind: Kind::String(name.into()) },
            condition: None,
            require_version: target.version.clone().map(|version| Box::new(Spanned::new(version, keyword))),
            directives: Some(Box::new(directives)),
            depends_on: Vec::new(),
            copy: Box::default(),
            properties: Some(Template { span, kind: Kind::Object(members.into()) }),
            metadata: None,
            may_compute: true,
        }
    }

    fn member(&self, name: &str, value: Value, entry: &Entry) -> Expand<text::Entry<Box<expr::Expression>>> {
        let span = self.span(&entry.value_at);
        let value =
            self.template(value, span).map_err(|message| ManifestFault { offset: entry.value_at.start, message })?;
        Ok(text::Entry { key: name.into(), key_span: self.span(&entry.key_at), value })
    }

    fn text(&self, expression: &Expression, at: usize, what: &str) -> Expand<String> {
        match self.value(expression, at)? {
            value @ (Value::Text(_) | Value::Integer { .. }) => Ok(value.to_text()),
            _ => fail(at, format!("{what} must be a string")),
        }
    }

    fn template(&self, value: Value, span: Span) -> Result<Template, String> {
        let none = || Err("a value of this type cannot be used as a property".to_owned());
        let kind = match value {
            Value::Null => Kind::Null,
            Value::Boolean(truth) => Kind::Bool(truth),
            Value::Integer { value, .. } => match (i64::try_from(value), u64::try_from(value)) {
                (Ok(value), _) => Kind::Number(value.into()),
                (_, Ok(value)) => Kind::Number(value.into()),
                _ => return none(),
            },
            value @ (Value::Decimal(..) | Value::Double(_)) => {
                match value.to_text().parse().ok().and_then(Number::from_f64) {
                    Some(number) => Kind::Number(number),
                    None => return none(),
                }
            }
            Value::Text(text) => Kind::String(text.into()),
            Value::Character(character) => Kind::String(character.to_string().into()),
            Value::List(values) => {
                let items = values.into_iter().map(|value| self.template(value, span));
                Kind::Array(items.collect::<Result<_, _>>()?)
            }
            Value::Table(entries) => {
                let member = |(key, value): (Value, Value)| {
                    let value = self.template(value, span)?;
                    Ok(text::Entry { key: key.to_text().into(), key_span: span, value })
                };
                Kind::Object(entries.into_iter().map(member).collect::<Result<_, String>>()?)
            }
            Value::Opaque { name, .. } => return self.passed_on(&name, span),
            Value::Big(_) | Value::Date(_) | Value::Type(_) => return none(),
        };
        Ok(Template { span, kind })
    }

    /// The value of a parameter that is not looked into.
    fn passed_on(&self, name: &str, span: Span) -> Result<Template, String> {
        let name = name.to_lowercase();
        match self.bound.opaque.get(&name) {
            Some(value) if !value.has_sealed() => Ok(placed(Template::of_value((*value).clone()), span)),
            _ => {
                let reference = expr::Expression::parse(&format!("[parameters('{}')]", name.replace('\'', "''")));
                let reference = reference.map_err(|fault| fault.message)?;
                Ok(Template { span, kind: Kind::Compiled(Box::new(reference)) })
            }
        }
    }

    /// Returns the need that `[Keyword]Name` states.
    fn need(&self, need: &str, at: usize) -> Expand<Template> {
        let parts = need.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let Some((keyword, name)) = parts else {
            return fail(at, format!("'{need}' is not of the form '[Resource]Name'"));
        };
        let Some(id) = self.ids.get(&(keyword.to_lowercase(), name.to_lowercase())) else {
            return fail(at, format!("'{need}' is not declared in this composite resource"));
        };
        let span = self.span(&(at..at));
        Ok(Template { span, kind: Kind::String(id.to_string().into()) })
    }
}

/// Returns the same value, all of it at one place.
fn placed(template: Template, span: Span) -> Template {
    let kind = match template.kind {
        Kind::Array(items) => Kind::Array(items.into_iter().map(|item| placed(item, span)).collect()),
        Kind::Object(members) => {
            let member =
                |member: text::Entry<_>| text::Entry { key_span: span, value: placed(member.value, span), ..member };
            Kind::Object(members.into_iter().map(member).collect())
        }
        other => other,
    };
    Template { span, kind }
}

fn texts(value: Value, at: usize) -> Expand<Vec<String>> {
    let text = |value: Value| match value {
        Value::Text(text) => Ok(text),
        _ => fail(at, "expected a string or a list of strings"),
    };
    value.elements().into_iter().map(text).collect()
}

fn import_of(module: &Value, version: Option<String>, names: Vec<String>) -> Option<Import> {
    let (module, version) = match module {
        Value::Null => (None, version),
        Value::Text(name) => (Some(name.clone()), version),
        Value::Table(_) => {
            let stated = module.get("ModuleVersion").or_else(|| module.get("RequiredVersion"));
            (Some(module.get("ModuleName")?.as_text()?.to_owned()), stated.map(Value::to_text).or(version))
        }
        _ => return None,
    };
    Some(Import { module, version, names })
}

fn parameter(name: &str, value: &value::Value) -> Parameter {
    let data_type = match value {
        value::Value::Object(_) => DataType::Object,
        value::Value::Array(_) => DataType::Array,
        _ => DataType::SecureString,
    };
    let here = Span::default();
    Parameter {
        name: Spanned::new(name.to_owned(), here),
        data_type: Spanned::new(data_type, here),
        default: None,
        allowed: None,
        min_value: None,
        max_value: None,
        min_length: None,
        max_length: None,
        description: None,
    }
}
