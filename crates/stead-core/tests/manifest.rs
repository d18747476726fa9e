//! Cases of `corpus/manifest`: what is found in manifest files, and what they mean to the engine.

use std::fmt::{Debug, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use stead_core::diag::Diagnostic;
use stead_core::manifest::{
    self, AdaptedManifest, CommandResource, Declaration, Declared, Extension, Implementation, Manifest, ManifestForm,
    ProgramCall, SchemaSource,
};
use stead_core::text::{Limits, Source, SourceId, Sources, read};
use stead_testkit::{Case, Computed, Suite};

fn main() -> ExitCode {
    stead_testkit::main(&[Suite { folder: "manifest", run }])
}

/// The one section that has the name of a manifest is read as that manifest.
fn run(case: &Case) -> Result<Computed, String> {
    let file = case.files().find_map(|(name, text)| Some((name, text, ManifestForm::of(name)?)));
    let (name, text, form) = file.ok_or("there is no section with the name of a manifest")?;
    let mut sources = Sources::default();
    sources.add(Source::new(name, text));
    let (node, mut findings) = read(SourceId::default(), text, &Limits::default());
    let mut declared = Vec::new();
    if let Some(node) = node {
        let (manifests, more) = manifest::parse(form, &node, &Path::new("/manifests").join(name));
        declared = manifests;
        findings.extend(more);
        let unplaced = manifest::unplaced(&manifest::plain(&node));
        let (again, _) = manifest::parse(form, &unplaced, &Path::new("/manifests").join(name));
        if again.len() != declared.len() {
            return Err("the same manifest without places is read differently".to_owned());
        }
    }
    let diagnostics = findings.iter().map(|finding| shown(finding, &sources)).collect();
    let mut computed = vec![("diagnostics", diagnostics), ("manifest", declared.iter().map(meaning).collect())];
    if case.has("listing") {
        computed.push(("listing", declared.iter().map(listed).collect()));
    }
    Ok(computed)
}

fn shown(finding: &Diagnostic, sources: &Sources) -> String {
    let labels = finding.labels.iter().map(|(span, text)| format!("  {}: {text}\n", sources.place(*span)));
    let help = finding.help.iter().map(|help| format!("  help: {help}\n"));
    format!("{}\n{}", finding.brief(sources), labels.chain(help).collect::<String>())
}

/// As `resource list` and `extension list` print it.
fn listed(declared: &Declared) -> String {
    let listing = match &declared.declaration {
        Declaration::Resource(manifest) => manifest::listing(manifest),
        Declaration::Extension(extension) => manifest::extension_listing(extension),
        Declaration::Adapted(found) => {
            let name = found.implementation.require_adapter.clone();
            let adapter = Manifest::new(name, found.version.clone(), Implementation::Command(Arc::default()));
            manifest::listing(&(**found).clone().into_manifest(Arc::new(adapter)))
        }
    };
    format!("{listing:#}\n")
}

fn meaning(declared: &Declared) -> String {
    let mut out = String::new();
    match &declared.declaration {
        Declaration::Resource(manifest) => resource(&mut out, manifest),
        Declaration::Adapted(adapted) => self::adapted(&mut out, adapted),
        Declaration::Extension(extension) => self::extension(&mut out, extension),
    }
    let condition = declared.condition.as_ref().map(|condition| serde_json::Value::from(&*condition.text));
    line(&mut out, "condition", condition.as_ref());
    out
}

fn resource(out: &mut String, manifest: &Manifest) {
    let _ = writeln!(out, "resource {} {} {:?}", manifest.type_name, manifest.version, manifest.kind);
    line(out, "description", manifest.description.as_ref());
    line(out, "deprecated", manifest.deprecation.as_ref());
    line(out, "tags", Some(&manifest.tags).filter(|tags| !tags.is_empty()));
    let able = manifest::listing(manifest)["capabilities"].to_string();
    let _ = writeln!(
        out,
        "  capabilities: {able}{}{}",
        if manifest.capabilities.implements_pretest { " pretests" } else { "" },
        if manifest.capabilities.export_filters { " filters" } else { "" }
    );
    let security = manifest.security;
    let contexts = [security.get, security.set, security.test, security.delete, security.export];
    line(out, "security", Some(contexts).filter(|each| each.iter().any(Option::is_some)).as_ref());
    if let Implementation::Command(command) = &manifest.implementation {
        operations(out, command);
    }
}

fn operations(out: &mut String, command: &CommandResource) {
    let methods: [(&str, &Option<ProgramCall>); 8] = [
        ("get", &command.get),
        ("set", &command.set),
        ("whatIf", &command.what_if),
        ("test", &command.test),
        ("delete", &command.delete),
        ("export", &command.export),
        ("validate", &command.validate),
        ("resolve", &command.resolve),
    ];
    for (name, method) in methods {
        let Some(method) = method else { continue };
        let _ = write!(out, "  {name}: {} {:?} {:?}", method.executable, method.arguments, method.input);
        let _ = writeln!(out, " {:?} {:?}", method.returns, method.what_if_returns);
    }
    line(out, "schema", command.schema.as_ref().map(schema).as_ref());
    line(out, "export schema", command.export_schema.as_ref().map(schema).as_ref());
    line(out, "adapter", command.adapter.as_ref());
    line(out, "claims", Some(&command.claims).filter(|claims| !claims.is_empty()));
    line(out, "exit codes", Some(&command.exit_codes).filter(|codes| !codes.is_empty()));
}

fn schema(source: &SchemaSource) -> String {
    match source {
        SchemaSource::Embedded(json) => json.to_string(),
        SchemaSource::Command { executable, arguments } => format!("{executable} {arguments:?}"),
    }
}

fn adapted(out: &mut String, adapted: &AdaptedManifest) {
    let resource = &adapted.implementation;
    let _ = writeln!(
        out,
        "adapted {} {} {:?} by {}",
        adapted.type_name, adapted.version, adapted.kind, resource.require_adapter
    );
    line(out, "description", adapted.description.as_ref());
    line(out, "deprecated", adapted.deprecation.as_ref());
    line(out, "author", adapted.author.as_ref());
    line(out, "capabilities", Some(&adapted.capabilities));
    line(out, "path", resource.path.as_ref());
    line(out, "content", resource.content.as_ref().map(ToString::to_string).as_ref());
    line(out, "schema", resource.schema.as_ref().map(ToString::to_string).as_ref());
}

fn extension(out: &mut String, extension: &Extension) {
    let _ = writeln!(out, "extension {} {}", extension.type_name, extension.version);
    line(out, "description", extension.description.as_ref());
    line(out, "deprecated", extension.deprecation.as_ref());
    line(out, "tags", Some(&extension.tags).filter(|tags| !tags.is_empty()));
    line(out, "discover", extension.discover.as_ref());
    if let Some(import) = &extension.import {
        let _ = writeln!(out, "  import: {:?} {} {:?}", import.file_extensions, import.executable, import.arguments);
        line(out, "output", import.output.as_ref().map(|output| serde_json::Value::from(&*output.text)).as_ref());
    }
    line(out, "secret", extension.secret.as_ref());
    line(out, "exit codes", Some(&extension.exit_codes).filter(|codes| !codes.is_empty()));
}

fn line<T: Debug>(out: &mut String, name: &str, value: Option<&T>) {
    if let Some(value) = value {
        let _ = writeln!(out, "  {name}: {value:?}");
    }
}
