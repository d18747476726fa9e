//! Cases of `corpus/powershell/script`: scripts, and what they declare.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use stead_powershell_reader::class::{File, Modules, VisibleTypes, declared};
use stead_powershell_reader::resource::Resource;
use stead_powershell_reader::script::{Function, TypeDefinition};
use stead_powershell_reader::types::Property;
use stead_testkit::{Case, Computed, Suite};

fn main() -> ExitCode {
    stead_testkit::main(&[Suite { folder: "powershell/script", run }])
}

struct Files(BTreeMap<PathBuf, Arc<File>>);

impl Modules for Files {
    fn using(&self, _: &Path, name: &str) -> Option<Arc<File>> {
        self.0.get(Path::new(name.trim_start_matches("./"))).cloned()
    }
}

fn run(case: &Case) -> Result<Computed, String> {
    let files = case
        .files()
        .filter(|(name, _)| Path::new(name).extension().is_some_and(|extension| extension == "psm1"))
        .map(|(name, text)| {
            let path = PathBuf::from(name);
            // The line end before the next section belongs to the case.
            let text = text.strip_suffix('\n').unwrap_or(text);
            (path.clone(), Arc::new(File::read(Arc::new(path), text.as_bytes())))
        });
    let files = Files(files.collect());
    let main = files.0.get(Path::new("main.psm1")).ok_or("there is no main.psm1")?;
    let found = declared(main, &files);
    let mut text = String::new();
    for resource in &found.resources {
        text += &resource_text(resource);
    }
    let types = VisibleTypes::new(main, &files);
    for ty in &main.script.types {
        text += &type_text(&types, ty);
    }
    for (what, functions) in [("function", &main.script.functions), ("configuration", &main.script.configurations)] {
        text.extend(functions.iter().map(|function| function_text(what, function)));
    }
    let findings = found.findings.iter().map(|finding| {
        format!("{} {}:{} {}\n", finding.code.id, finding.place.line, finding.place.column, finding.message)
    });
    Ok(vec![("declared", text), ("findings", findings.collect())])
}

fn resource_text(resource: &Resource) -> String {
    let mut text = format!("resource {} {}:{}", resource.name, resource.place.line, resource.place.column);
    let methods = resource.methods;
    let methods = [
        (methods.delete, "delete"),
        (methods.export, "export"),
        (methods.what_if, "whatIf"),
        (methods.set_handles_exist, "setHandlesExist"),
    ];
    text.extend(methods.iter().filter(|(has, _)| *has).map(|(_, name)| format!(" {name}")));
    text += &resource.description.as_ref().map_or(String::new(), |text| format!(" # {text}"));
    text.push('\n');
    text.extend(resource.properties.iter().map(property_text));
    text
}

fn property_text(property: &Property) -> String {
    let ty = serde_json::to_value(&property.ty).unwrap_or_default();
    let ty = ty.as_str().map_or_else(|| ty.to_string(), str::to_owned);
    let mut text = format!("  {}: {ty}", property.name);
    let flags = [(property.key, "key"), (property.mandatory, "mandatory"), (property.read_only, "readOnly")];
    text.extend(flags.iter().filter(|(has, _)| *has).map(|(_, name)| format!(" {name}")));
    for rule in &property.rules {
        let _ = write!(text, " {}", serde_json::to_value(rule).unwrap_or_default());
    }
    text += &property.declared_in.as_ref().map_or(String::new(), |class| format!(" of {class}"));
    text += &property.description.as_ref().map_or(String::new(), |text| format!(" # {text}"));
    text + "\n"
}

fn type_text(types: &VisibleTypes<'_>, ty: &TypeDefinition) -> String {
    let members: Vec<_> = if ty.enumeration {
        types.enumeration(ty).members.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
    } else {
        ty.members.iter().map(|member| member.name.clone()).collect()
    };
    let kind = if ty.enumeration { "enum" } else { "class" };
    format!("{kind} {} ({:?}) {}\n", ty.name, ty.scope, members.join(" "))
}

fn function_text(what: &str, function: &Function) -> String {
    let parameters = function.parameters.iter().map(|parameter| {
        let ty = parameter.ty.as_ref().map_or(String::new(), |ty| format!("[{}] ", ty.text));
        let default = parameter.default.as_ref().map_or(String::new(), |default| format!(" = {default}"));
        format!("{ty}{}{default}", parameter.name)
    });
    format!("{what} {} ({:?}) {}\n", function.name, function.scope, parameters.collect::<Vec<_>>().join(", "))
}
