//! Composite resources: configurations in a `.schema.psm1`.

use std::path::PathBuf;
use std::sync::Arc;

use stead_core::diag::codes::powershell::module as codes;
use stead_core::diag::{Code, Severity};

use crate::finding::Finding;
use crate::manifest::same;
use crate::resource::{Kind, Methods, Property, Resource, Rule};
use crate::script::{Attribute, Constant, Function, Parameter, Scope, Script, TypeForm};
use crate::text::{Place, Text};
use crate::types::Type;

/// The resources that a script declares as configurations: each by its name, with its parameters as properties. Errors of
/// the script itself, and a script without a configuration, are findings; the first of the former leaves nothing.
pub(crate) fn read(text: &Text, file: &Arc<PathBuf>) -> (Vec<Resource>, Vec<Finding>) {
    let script = Script::read(text);
    let finding = |code: Code, place: Place, message: String| Finding {
        code,
        severity: Severity::Error,
        message,
        help: None,
        file: file.clone(),
        place,
    };
    let problems: Vec<_> = script
        .problems
        .iter()
        .map(|problem| finding(problem.code, text.place(problem.at), problem.message.clone()))
        .collect();
    if !problems.is_empty() {
        return (Vec::new(), problems);
    }
    let declared = script.configurations.iter().filter(|configuration| configuration.scope == Scope::Top);
    let resources: Vec<_> = declared.map(|configuration| resource(configuration, text, file)).collect();
    if resources.is_empty() {
        return (
            resources,
            vec![finding(&codes::COMPOSITE, text.place(0), "no configuration stands in the file".to_owned())],
        );
    }
    (resources, Vec::new())
}

fn resource(configuration: &Function, text: &Text, file: &Arc<PathBuf>) -> Resource {
    Resource {
        name: configuration.name.clone(),
        class_name: None,
        kind: Kind::Composite,
        version: None,
        file: file.clone(),
        implementation: file.clone(),
        place: text.place(configuration.at),
        description: None,
        properties: configuration.parameters.iter().map(|parameter| property(parameter, text)).collect(),
        methods: Methods::default(),
    }
}

fn property(parameter: &Parameter, text: &Text) -> Property {
    Property {
        name: parameter.name.clone(),
        written: parameter.ty.as_ref().map(|ty| ty.text.clone()),
        ty: parameter.ty.as_ref().map_or(Type::Object, |ty| resolve(&ty.form)),
        key: false,
        mandatory: parameter.attributes.iter().any(is_mandatory),
        read_only: false,
        rules: parameter.attributes.iter().filter_map(rule).collect(),
        description: None,
        default: parameter.default.clone(),
        declared_in: None,
        place: text.place(parameter.at),
    }
}

/// Whether an attribute has that name, written with its namespace or without.
fn is(attribute: &Attribute, name: &str) -> bool {
    let written = attribute.name.rsplit('.').next().unwrap_or_default();
    same(written, name)
}

fn is_mandatory(attribute: &Attribute) -> bool {
    let truth = |value: &Option<Constant>| match value {
        Some(Constant::Boolean(value)) => *value,
        Some(Constant::Integer(value)) => *value != 0,
        _ => false,
    };
    let mut named = attribute.named.iter().filter(|(name, _)| same(name, "Mandatory"));
    is(attribute, "Parameter") && named.any(|(_, argument)| truth(&argument.value))
}

/// What an attribute asks of the values.
fn rule(attribute: &Attribute) -> Option<Rule> {
    let texts = || attribute.positional.iter().filter_map(|argument| constant(argument.value.as_ref()?));
    let count = |text: Option<String>| text.and_then(|text| text.parse().ok());
    let mut values = texts();
    if is(attribute, "ValidateSet") {
        return Some(Rule::OneOf(texts().collect()));
    }
    if is(attribute, "ValidateNotNullOrEmpty") {
        return Some(Rule::NotEmpty);
    }
    if is(attribute, "ValidateNotNull") {
        return Some(Rule::NotNull);
    }
    if is(attribute, "ValidatePattern") {
        return values.next().map(Rule::Pattern);
    }
    if is(attribute, "ValidateRange") {
        return Some(Rule::Range(values.next()?, values.next()?));
    }
    if is(attribute, "ValidateLength") {
        return Some(Rule::Length(count(values.next())?, count(values.next())?));
    }
    is(attribute, "ValidateCount").then(|| Some(Rule::Count(count(values.next())?, count(values.next())?))).flatten()
}

fn constant(constant: &Constant) -> Option<String> {
    match constant {
        Constant::Text(text) => Some(text.clone()),
        Constant::Integer(value) => Some(value.to_string()),
        Constant::Real(value) => Some(value.to_string()),
        Constant::Boolean(value) => Some(if *value { "True" } else { "False" }.to_owned()),
        _ => None,
    }
}

/// The types that parameters of configurations have: a configuration cannot declare any.
fn resolve(form: &TypeForm) -> Type {
    let name = match form {
        TypeForm::Array(element, 1) => return Type::Array(Box::new(resolve(element))),
        TypeForm::Generic(name, arguments) => {
            let nullable = same(name, "Nullable") || same(name, "System.Nullable");
            return match arguments.as_slice() {
                [one] if nullable => Type::Nullable(Box::new(resolve(one))),
                _ => Type::Other(name.clone()),
            };
        }
        TypeForm::Array(..) => return Type::Other("System.Array".to_owned()),
        TypeForm::Name(name) => name,
    };
    let lower = name.to_ascii_lowercase();
    let plain =
        lower.strip_prefix("system.management.automation.").or_else(|| lower.strip_prefix("system.")).unwrap_or(&lower);
    let integer = |bits, signed| Type::Integer { bits, signed };
    match plain {
        "object" => Type::Object,
        "string" => Type::String,
        "char" => Type::Char,
        "bool" | "boolean" => Type::Boolean,
        "switch" | "switchparameter" => Type::Switch,
        "sbyte" => integer(8, true),
        "byte" => integer(8, false),
        "short" | "int16" => integer(16, true),
        "ushort" | "uint16" => integer(16, false),
        "int" | "int32" => integer(32, true),
        "uint" | "uint32" => integer(32, false),
        "long" | "int64" => integer(64, true),
        "ulong" | "uint64" => integer(64, false),
        "float" | "single" => Type::Single,
        "double" => Type::Double,
        "decimal" => Type::Decimal,
        "datetime" => Type::DateTime,
        "datetimeoffset" => Type::DateTimeOffset,
        "timespan" => Type::TimeSpan,
        "guid" => Type::Guid,
        "uri" => Type::Uri,
        "version" => Type::Version,
        "hashtable" | "collections.hashtable" => Type::Hashtable,
        "pscredential" => Type::Credential,
        "securestring" | "security.securestring" => Type::SecureString,
        "psobject" | "pscustomobject" => Type::PsObject,
        "scriptblock" => Type::ScriptBlock,
        _ => Type::Other(name.clone()),
    }
}
