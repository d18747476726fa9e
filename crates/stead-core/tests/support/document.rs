//! Documents as text.

use stead_core::document::{
    DataType, Document, Instance, Named, Output, Over, Parameter, SecurityContext, UserFunction,
};
use stead_core::text::{Leaf, Node, Spanned};

use super::tree::line;

/// A document, one part a line.
pub(crate) fn dump(document: &Document) -> String {
    let mut out = Vec::new();
    let mut text = |key: &str, value: &Option<Spanned<String>>| {
        out.extend(value.iter().map(|value| format!("{key} {}", value.value)));
    };
    text("schema", &document.schema);
    text("contentVersion", &document.content_version);
    text("version", &document.directives.version);
    out.extend(document.directives.discovery.iter().map(|discovery| format!("discovery {:?}", discovery.value)));
    out.extend(context(document.directives.security_context.as_ref()));
    out.extend(node("metadata", document.metadata.as_ref()));
    out.extend(document.parameters.iter().map(parameter));
    out.extend(document.variables.iter().map(|each| format!("variable {} = {}", each.name.value, line(&each.value))));
    out.extend(document.functions.iter().map(function));
    out.extend(document.resources.iter().flat_map(instance));
    out.extend(document.outputs.iter().map(output));
    out.iter().map(|line| format!("{line}\n")).collect::<Vec<_>>().concat()
}

fn node<L: Leaf>(key: &str, node: Option<&Node<L>>) -> Option<String> {
    node.map(|node| format!("{key} {}", line(node)))
}

fn context(context: Option<&Spanned<SecurityContext>>) -> Option<String> {
    context.map(|context| format!("securityContext {:?}", context.value))
}

fn parameter(parameter: &Parameter) -> String {
    let mut out = vec![format!("parameter {}: {}", parameter.name.value, parameter.data_type.value.as_str())];
    out.extend(node("=", parameter.default.as_ref()));
    let allowed = |allowed: &Spanned<Vec<Node>>| allowed.value.iter().map(line).collect::<Vec<_>>().join("|");
    out.extend(parameter.allowed.as_ref().map(|values| format!("allowed {}", allowed(values))));
    out.extend(parameter.min_value.as_ref().map(|bound| format!("minValue {}", bound.value)));
    out.extend(parameter.max_value.as_ref().map(|bound| format!("maxValue {}", bound.value)));
    out.extend(parameter.min_length.as_ref().map(|bound| format!("minLength {}", bound.value)));
    out.extend(parameter.max_length.as_ref().map(|bound| format!("maxLength {}", bound.value)));
    out.extend(parameter.description.as_ref().map(|text| format!("-- {text}")));
    out.join(" ")
}

fn function(function: &UserFunction) -> String {
    let parameters = function.parameters.iter().map(typed).collect::<Vec<_>>().join(", ");
    let output = (function.output_type.value.as_str(), line(&function.output));
    format!("function {}({parameters}): {} = {}", function.name.value, output.0, output.1)
}

fn typed(parameter: &Named<DataType>) -> String {
    format!("{}: {}", parameter.name.value, parameter.value.as_str())
}

fn output(output: &Output) -> String {
    let condition = node(" if", output.condition.as_ref()).unwrap_or_default();
    format!("output {}: {} = {}{condition}", output.name.value, output.data_type.value.as_str(), line(&output.value))
}

fn instance(instance: &Instance) -> Vec<String> {
    let mut out = vec![format!("instance {} {}", instance.type_name.value, line(&instance.name))];
    let mut add = |line: Option<String>| out.extend(line.map(|line| format!("  {line}")));
    add(node("condition", instance.condition.as_deref()));
    add(instance.require_version.as_ref().map(|version| format!("requireVersion {}", version.value)));
    add(instance.directives().require_adapter.as_ref().map(|adapter| format!("requireAdapter {}", adapter.value)));
    add(context(instance.directives().security_context.as_ref()));
    for needed in &instance.depends_on {
        add(node("dependsOn", Some(needed)));
    }
    for copy in &instance.copy {
        let each = match &copy.over {
            Over::Count(_) => String::new(),
            Over::Each { called, .. } => format!("{} in ", called.value),
        };
        add(Some(format!("copy {} {each}{}", copy.name.value, line(copy.over.template()))));
    }
    add(node("properties", instance.properties.as_ref()));
    add(node("metadata", instance.metadata.as_deref()));
    out
}
