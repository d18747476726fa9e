//! `puppetize`: writes a module of Puppet for resources, or says which files of one are stale.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use stead_core::diag::{did_you_mean, nearest};
use stead_core::id::TypeName;
use stead_core::manifest::{Catalog, Manifest, ResourceKind, Version};
use stead_engine::{CallRefusal, ResourceCall, Session, error_chain};
use stead_puppet::{
    GeneratedFiles, LetterCase, ListingWay, ResourceToGenerate, Staleness, TYPE_FOLDERS, generate, stale_files,
};
use stead_system::fs::{FsError, Ownership, Writes};

use super::files::{self, place};
use crate::exit::Exit;
use crate::input;
use crate::interrupt;
use crate::process_env::ProcessEnv;
use crate::request::PuppetizeRequest;
use crate::terminal::{complain, print};

/// Writes a module, or with `--check` compares one with what would be written.
pub(crate) fn puppetize(request: &PuppetizeRequest, env: &ProcessEnv) -> Exit {
    let session = env.host.session(input::current_folder());
    interrupt::catch(&session);
    let exit = match files(request, &session).and_then(|files| written(request, &files)) {
        Ok(exit) | Err(exit) => exit,
    };
    interrupt::exit(session.cancel(), exit)
}

fn files(request: &PuppetizeRequest, session: &Session) -> Result<GeneratedFiles, Exit> {
    let resources = resources(request, session)?;
    let module = generate(&resources, &request.options).map_err(|error| refused(&error.to_string()))?;
    for warning in &module.warnings {
        complain(&format!("warning: {warning}"));
    }
    Ok(module.files)
}

fn refused(message: &str) -> Exit {
    complain(&format!("error: {message}"));
    Exit::Unusable
}

/// There is no such thing; one with a similar name is suggested, or else where to look.
fn missing<'a>(message: &str, name: &str, known: impl IntoIterator<Item = &'a str>, elsewhere: &str) -> Exit {
    let exit = refused(message);
    let help = nearest(name, known).map_or_else(|| elsewhere.to_owned(), did_you_mean);
    complain(&format!("help: {help}"));
    exit
}

fn resources(request: &PuppetizeRequest, session: &Session) -> Result<Vec<ResourceToGenerate>, Exit> {
    let discovery = &session.discovery();
    let mut wanted: BTreeSet<TypeName> = BTreeSet::new();
    for text in &request.types {
        wanted.insert(TypeName::parse(text).map_err(|error| refused(&error.to_string()))?);
    }
    if let Some(name) = &request.adapter {
        let adapters = discovery.adapters();
        let found = adapters.iter().find(|adapter| adapter.type_name.as_str().eq_ignore_ascii_case(name));
        let adapter = found.ok_or_else(|| {
            let known = adapters.iter().map(|adapter| adapter.type_name.as_str());
            missing(&format!("adapter not found: {name}"), name, known, "'stead resource list' lists adapters, too")
        })?;
        wanted.extend(single(discovery.adapted_by(adapter).iter(), |_| true));
    }
    if let Some(module) = &request.powershell_module {
        let listed: Vec<_> = discovery.adapters().iter().map(|adapter| discovery.adapted_by(adapter)).collect();
        let found = single(listed.iter().flat_map(Catalog::iter), |name| owner(name).eq_ignore_ascii_case(module));
        if found.is_empty() {
            let known = listed.iter().flat_map(Catalog::iter).map(|(name, _)| owner(name));
            let message = format!("no resources found in a PowerShell module '{module}'");
            let elsewhere = "modules are looked for in the directories of PSModulePath; 'stead -l info resource list \
                 --adapter Microsoft.Adapter/PowerShell' reports what is wrong with them";
            return Err(missing(&message, module, known, elsewhere));
        }
        wanted.extend(found);
    }
    wanted.iter().map(|name| resource(session, name)).collect()
}

/// What is in front of the slash: of a resource of PowerShell its module.
fn owner(name: &TypeName) -> &str {
    name.as_str().split_once('/').map_or("", |(owner, _)| owner)
}

/// The wanted ones of resources. Those whose instances consist of others are left out, with a warning.
fn single<'c>(
    listed: impl Iterator<Item = (&'c TypeName, &'c [Arc<Manifest>])>,
    is_wanted: impl Fn(&TypeName) -> bool,
) -> BTreeSet<TypeName> {
    let is_composite = |versions: &[Arc<Manifest>]| versions.first().is_some_and(|manifest| manifest.is_composite());
    let wanted =
        listed.filter(|(name, _)| is_wanted(name)).map(|(name, versions)| (name.clone(), is_composite(versions)));
    let (composite, single): (BTreeSet<_>, BTreeSet<_>) = wanted.partition(|(_, is_composite)| *is_composite);
    for (name, _) in composite {
        complain(&format!("warning: '{name}' is skipped: {COMPOSITE}"));
    }
    single.into_iter().map(|(name, _)| name).collect()
}

/// Why a composite resource has no type in Puppet.
const COMPOSITE: &str = "a composite resource consists of other resources; generate types for those";

fn resource(session: &Session, name: &TypeName) -> Result<ResourceToGenerate, Exit> {
    let called = ResourceCall::find(session.beside(session.cancel().clone()), name.as_str(), None);
    let called = called.and_then(ResourceCall::not_an_adapter);
    let schema = called.and_then(|called| Ok((called.schema()?, called.keys(), called.manifest)));
    let (schema, keys, manifest) = schema.map_err(|refusal| match refusal {
        CallRefusal::NotFound(message) | CallRefusal::Failed(message) => refused(&message),
        CallRefusal::Input(findings) => {
            refused(&findings.into_iter().map(|finding| finding.message).collect::<Vec<_>>().join("; "))
        }
    })?;
    if manifest.is_composite() {
        return Err(refused(&format!("'{name}' cannot be a Puppet type: {COMPOSITE}")));
    }
    if manifest.kind != ResourceKind::Resource {
        return Err(refused(&format!(
            "'{name}' cannot be a Puppet type: it contains other resources; generate types for those"
        )));
    }
    let version = match &manifest.version {
        Version::Semantic(version) => version.clone(),
        Version::Date(_) => semver::Version::new(0, 0, 0),
    };
    Ok(ResourceToGenerate {
        description: manifest.description.clone(),
        keys,
        case: if manifest.is_powershell() { LetterCase::Insensitive } else { LetterCase::Sensitive },
        listing: if manifest.capabilities.export { ListingWay::Supported } else { ListingWay::Unsupported },
        ..ResourceToGenerate::new(manifest.type_name.as_str(), version, schema)
    })
}

fn written(request: &PuppetizeRequest, files: &GeneratedFiles) -> Result<Exit, Exit> {
    let folder = &request.folder;
    let on_disk = on_disk(folder, files).map_err(|error| refused(&error))?;
    let stale = stale_files(files, &on_disk);
    if request.only_checks {
        for file in &stale {
            let reason = match file.reason {
                Staleness::Missing => "is missing",
                Staleness::Different => "differs",
                Staleness::Obsolete => "is obsolete",
            };
            print(&format!("{} {reason}\n", file.path));
        }
        return Ok(if stale.is_empty() { Exit::Success } else { Exit::Drifted });
    }
    let writes = Writes::default();
    for stale in &stale {
        let file = folder.join(&stale.path);
        match files.get(&stale.path) {
            Some(content) => write(&file, content, &writes).map_err(|error| refused(&error_chain(&error)))?,
            None => remove(&file, &writes).map_err(|error| refused(&error_chain(&error)))?,
        }
    }
    writes.flush().map_err(|error| refused(&error_chain(&error)))?;
    Ok(Exit::Success)
}

/// What is on the disk of a module: the files that would be written, and all where those of types are.
fn on_disk(folder: &Path, generated: &GeneratedFiles) -> Result<GeneratedFiles, String> {
    let mut files = GeneratedFiles::new();
    for type_folder in TYPE_FOLDERS {
        files.extend(read(folder, Path::new(type_folder))?);
    }
    for name in generated.keys() {
        let path = folder.join(name);
        match fs::read(&path) {
            Ok(content) => drop(files.insert(name.clone(), content)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
        }
    }
    Ok(files)
}

/// Removes a file, and the directory that it was in if nothing else is there.
fn remove(file: &Path, writes: &Writes) -> Result<(), FsError> {
    place(file, writes)?.remove()?;
    print(&format!("removed {}\n", file.display()));
    let folder = file.parent().unwrap_or(Path::new(""));
    if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none()) {
        place(folder, writes)?.remove_directory()?;
    }
    Ok(())
}

/// Writes a file, and creates the directories above it that are missing. No link that another user made leads it elsewhere.
fn write(file: &Path, content: &[u8], writes: &Writes) -> Result<(), FsError> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let missing = folder.ancestors().take_while(|each| !each.as_os_str().is_empty() && !each.is_dir());
    for each in missing.collect::<Vec<_>>().into_iter().rev() {
        place(each, writes)?.make_directory_with(0o755, Ownership::default())?;
    }
    files::write(file, content, 0o644, writes)?;
    print(&format!("{}\n", file.display()));
    Ok(())
}

/// The files below a directory that is there, by their paths in it.
fn read(folder: &Path, within: &Path) -> Result<GeneratedFiles, String> {
    let mut files = GeneratedFiles::new();
    let directory = folder.join(within);
    let failed = |error| format!("cannot read {}: {error}", directory.display());
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(files),
        Err(error) => return Err(failed(error)),
    };
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let path = within.join(entry.file_name());
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            files.extend(read(folder, &path)?);
        } else if let Some(name) = path.to_str().filter(|_| kind.is_file()) {
            files.insert(name.to_owned(), fs::read(entry.path()).map_err(failed)?);
        }
    }
    Ok(files)
}
