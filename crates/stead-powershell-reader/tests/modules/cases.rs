//! The cases of this repository: modules and schemas as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stead_powershell_reader::finding::ModuleFinding;
use stead_powershell_reader::module::{Entry, Files, Module, Modules, Names, Stamped};
use stead_powershell_reader::{mof, schema};
use stead_system::fs::OpenError;
use stead_testkit::{Case, Computed, Suite, check_all};

#[test]
fn modules_are_what_their_cases_say() {
    check_all(&Suite { folder: "powershell/module", run: modules });
}

#[test]
fn manifests_are_what_their_cases_say() {
    check_all(&Suite { folder: "powershell/manifest", run: modules });
}

#[test]
fn schemas_are_what_their_cases_say() {
    check_all(&Suite { folder: "powershell/mof", run: schemas });
}

/// Files by path.
struct Memory<'a>(BTreeMap<PathBuf, &'a str>);

fn missing(path: &Path) -> OpenError {
    OpenError::System { path: path.to_owned(), source: io::ErrorKind::NotFound.into() }
}

impl Files for Memory<'_> {
    fn list(&self, directory: &Path) -> Result<Stamped<Arc<Names>>, OpenError> {
        let below = self.0.keys().filter_map(|path| path.strip_prefix(directory).ok());
        let names: Names = below
            .filter_map(|rest| {
                let mut parts = rest.components();
                let name = parts.next()?.as_os_str().to_str()?.to_owned();
                Some((name, if parts.next().is_some() { Entry::Directory } else { Entry::File }))
            })
            .collect();
        if names.is_empty() { Err(missing(directory)) } else { Ok((Arc::new(names), None)) }
    }

    fn read(&self, file: &Path) -> Result<Stamped<Vec<u8>>, OpenError> {
        match self.0.get(file) {
            Some(&"(unreadable)\n") => {
                Err(OpenError::System { path: file.to_owned(), source: io::ErrorKind::PermissionDenied.into() })
            }
            Some(text) => Ok((text.as_bytes().to_vec(), None)),
            None => Err(missing(file)),
        }
    }
}

fn modules(case: &Case) -> Result<Computed, String> {
    let root = Path::new("/modules");
    let files = Memory(case.files().map(|(name, text)| (root.join(name), text)).collect());
    let environment = |name: &str| (name == "EDITION").then(|| "from the environment".to_owned());
    let (read, _) = Modules { files: &files, environment: &environment, directories: &[root.to_owned()] }.read();
    let mut shown = String::new();
    for module in &read {
        show(&mut shown, module, root).map_err(|error| error.to_string())?;
    }
    let findings = read.iter().flat_map(|module| &module.findings);
    Ok(vec![("modules", shown), ("findings", findings.map(|finding| line(finding, root)).collect())])
}

fn show(shown: &mut String, module: &Module, root: &Path) -> Result<(), std::fmt::Error> {
    let below = |path: &Path| path.strip_prefix(root).unwrap_or(path).display().to_string();
    writeln!(shown, "{} {}: {}", module.name, module.version, below(&module.file))?;
    if let Some(description) = module.manifest.as_ref().and_then(|manifest| manifest.description.as_ref()) {
        writeln!(shown, "  description: {description:?}")?;
    }
    for script in &module.scripts {
        writeln!(shown, "  {:?}: {}", script.role, below(&script.file))?;
    }
    for resource in &module.resources {
        let exported = if module.exports(resource) { "" } else { ", not exported" };
        let (kind, file) = (resource.kind, below(&resource.implementation));
        writeln!(shown, "  {kind:?} {}: {file}{exported}", resource.name)?;
    }
    Ok(())
}

fn line(finding: &ModuleFinding, root: &Path) -> String {
    let ModuleFinding { code, severity, message, file, place, .. } = finding;
    let file = file.strip_prefix(root).unwrap_or(file).display();
    let message = message.replace("/modules/", "");
    let mut text = format!("{file}:{}:{}: {}[{}]: {message}\n", place.line, place.column, severity.as_str(), code.id);
    if let Some(help) = &finding.help {
        let _ = writeln!(text, "  help: {help}");
    }
    text
}

fn schemas(case: &Case) -> Result<Computed, String> {
    let (name, text) = case.files().next().ok_or("no schema")?;
    let schema = mof::read(text.as_bytes(), &Arc::new(PathBuf::from(name)));
    let findings = schema.findings.iter().map(|finding| line(finding, Path::new(""))).collect();
    let json = schema.resources.iter().map(|resource| {
        let version = resource.version.as_deref().unwrap_or("-");
        format!("{} {version}\n{:#}\n", resource.name, schema::json_schema(resource))
    });
    Ok(vec![("schema", json.collect()), ("findings", findings)])
}
