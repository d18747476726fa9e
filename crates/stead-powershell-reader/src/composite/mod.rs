//! Composite resources: configurations in a `.schema.psm1`, as resources with properties, and the statements in them.

mod body;

use stead_core::diag::codes::powershell::module as codes;
use stead_core::diag::{Code, Severity};

pub use body::{DeclaredInstance, Statement, StatementKind, expression, statements};

use crate::class::{File, Modules, VisibleTypes, attributes};
use crate::finding::ModuleFinding;
use crate::manifest::same;
use crate::resource::{DefinitionKind, Methods, Resource};
use crate::script::{Attribute, Constant, Function, Parameter, Scope};
use crate::text::{LineColumn, Text};
use crate::types::Property;
use crate::types::Type;

/// The resources that a script declares as configurations: each by its name, with its parameters as properties. Errors of
/// the script itself, and a script without a configuration, are findings; the first of the former leaves nothing.
pub(crate) fn read(file: &File, modules: &dyn Modules) -> (Vec<Resource>, Vec<ModuleFinding>) {
    let (script, text) = (&file.script, &file.text);
    let finding = |code: Code, place: LineColumn, message: String| ModuleFinding {
        code,
        severity: Severity::Error,
        message,
        help: None,
        file: file.path.clone(),
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
    let types = VisibleTypes::new(file, modules);
    let resources: Vec<_> = declared.map(|configuration| resource(configuration, file, &types)).collect();
    if resources.is_empty() {
        return (
            resources,
            vec![finding(&codes::COMPOSITE, text.place(0), "the file declares no Configuration".to_owned())],
        );
    }
    (resources, Vec::new())
}

fn resource(configuration: &Function, file: &File, types: &VisibleTypes<'_>) -> Resource {
    Resource {
        name: configuration.name.clone(),
        class_name: None,
        kind: DefinitionKind::Composite,
        version: None,
        file: file.path.clone(),
        implementation: file.path.clone(),
        place: file.text.place(configuration.at),
        description: None,
        properties: configuration.parameters.iter().map(|parameter| property(parameter, &file.text, types)).collect(),
        methods: Methods::default(),
    }
}

fn property(parameter: &Parameter, text: &Text, types: &VisibleTypes<'_>) -> Property {
    Property {
        name: parameter.name.clone(),
        written: parameter.ty.as_ref().map(|ty| ty.text.clone()),
        ty: parameter.ty.as_ref().map_or(Type::Object, |ty| types.named(&ty.form)),
        key: false,
        mandatory: parameter.attributes.iter().any(is_mandatory),
        read_only: false,
        rules: attributes::rules(&parameter.attributes),
        description: None,
        default: parameter.default.clone(),
        declared_in: None,
        place: text.place(parameter.at),
    }
}

/// Returns whether an attribute says `Mandatory`.
fn is_mandatory(attribute: &Attribute) -> bool {
    let truth = |value: &Option<Constant>| match value {
        Some(Constant::Boolean(value)) => *value,
        Some(Constant::Integer(value)) => *value != 0,
        _ => false,
    };
    let mut named = attribute.named.iter().filter(|(name, _)| same(name, "Mandatory"));
    attributes::name(attribute) == "parameter" && named.any(|(_, argument)| truth(&argument.value))
}
