//! `puppetize`: writes a module of Puppet for resources, or says which files of one are stale.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, fchmod};
use rustix::io::Errno;
use stead_core::id::TypeName;
use stead_core::manifest::{Implementation, Kind, Manifest, Version};
use stead_engine::{Refusal, ResourceCall, Session, error_chain};
use stead_host::fs::{Former, FsError, Ownership, Place, Replacement, Writes};
use stead_puppet::{
    Case, Files, Listing, ModuleOptions, ModuleVersion, ResourceToGenerate, Staleness, TYPE_FOLDERS, generate,
    stale_files,
};

use crate::args::Puppetize;
use crate::exit::Exit;
use crate::input;
use crate::interrupt;
use crate::output::{complain, print};
use crate::process_env::ProcessEnv;

/// The version of the support module that generated providers are written for.
const SUPPORT: semver::Version = semver::Version::new(0, 1, 0);

/// Writes a module, or with `--check` compares one with what would be written.
pub(crate) fn puppetize(arguments: &Puppetize, env: &ProcessEnv) -> Exit {
    let session = env.host.session(input::current_folder());
    interrupt::catch(&session);
    let exit = match files(arguments, &session).and_then(|files| written(arguments, &files)) {
        Ok(exit) | Err(exit) => exit,
    };
    interrupt::exit(&session.cancel, exit)
}

fn files(arguments: &Puppetize, session: &Session) -> Result<Files, Exit> {
    let resources = resources(arguments, session)?;
    let engine = semver::Version::parse(env!("CARGO_PKG_VERSION")).unwrap_or(SUPPORT);
    let version = ModuleVersion::Own(arguments.module_version.clone());
    let mut options = ModuleOptions::new(&arguments.module, version, engine, SUPPORT);
    if arguments.dsc_compat {
        options = options.dsc_compatible();
    }
    options.author.clone_from(&arguments.author);
    if let Some(prefix) = &arguments.prefix {
        options.prefix.clone_from(prefix);
    }
    let module = generate(&resources, &options).map_err(|error| refused(&error.to_string()))?;
    for warning in &module.warnings {
        complain(&format!("warning: {warning}"));
    }
    Ok(module.files)
}

fn refused(message: &str) -> Exit {
    complain(&format!("error: {message}"));
    Exit::Unusable
}

fn resources(arguments: &Puppetize, session: &Session) -> Result<Vec<ResourceToGenerate>, Exit> {
    let discovery = &session.discovery;
    let mut wanted: BTreeSet<TypeName> = BTreeSet::new();
    for text in &arguments.types {
        wanted.insert(TypeName::parse(text).map_err(|error| refused(&error.to_string()))?);
    }
    if let Some(name) = &arguments.adapter {
        let adapters = discovery.adapters();
        let found = adapters.iter().find(|adapter| adapter.type_name.as_str().eq_ignore_ascii_case(name));
        let adapter = found.ok_or_else(|| refused(&format!("there is no adapter '{name}' that lists resources")))?;
        wanted.extend(discovery.adapted_by(adapter).iter().map(|(type_name, _)| type_name.clone()));
    }
    if let Some(module) = &arguments.powershell_module {
        let listed = discovery.adapters().into_iter().flat_map(|adapter| {
            let listed = discovery.adapted_by(&adapter);
            listed.iter().map(|(type_name, _)| type_name.clone()).collect::<Vec<_>>()
        });
        let owner = |name: &TypeName| {
            name.as_str().split_once('/').is_some_and(|(owner, _)| owner.eq_ignore_ascii_case(module))
        };
        let found: BTreeSet<TypeName> = listed.filter(owner).collect();
        if found.is_empty() {
            return Err(refused(&format!("there is no PowerShell module '{module}' with resources")));
        }
        wanted.extend(found);
    }
    wanted.iter().map(|name| resource(session, name)).collect()
}

fn resource(session: &Session, name: &TypeName) -> Result<ResourceToGenerate, Exit> {
    let called = ResourceCall::find(session.beside(session.cancel.clone()), name.as_str(), None);
    let called = called.and_then(ResourceCall::not_an_adapter);
    let schema = called.and_then(|called| Ok((called.schema()?, called.keys(), called.manifest)));
    let (schema, keys, manifest) = schema.map_err(|refusal| match refusal {
        Refusal::NotFound(message) | Refusal::Failed(message) => refused(&message),
        Refusal::Input(_) => refused("the type cannot be read"),
    })?;
    if manifest.kind != Kind::Resource {
        return Err(refused(&format!("'{name}' is a group; only single resources can be Puppet types")));
    }
    let version = match &manifest.version {
        Version::Semantic(version) => version.clone(),
        Version::Date(_) => semver::Version::new(0, 0, 0),
    };
    Ok(ResourceToGenerate {
        description: manifest.description.clone(),
        keys,
        case: if is_powershell(&manifest) { Case::Insensitive } else { Case::Sensitive },
        listing: if manifest.capabilities.export { Listing::Supported } else { Listing::Unsupported },
        ..ResourceToGenerate::new(manifest.type_name.as_str(), version, schema)
    })
}

fn is_powershell(manifest: &Manifest) -> bool {
    matches!(&manifest.implementation, Implementation::Adapted { adapter, .. }
        if matches!(adapter.implementation, Implementation::BuiltIn))
}

fn written(arguments: &Puppetize, files: &Files) -> Result<Exit, Exit> {
    let folder = arguments.out.clone().unwrap_or_else(|| PathBuf::from(&arguments.module));
    let on_disk = on_disk(&folder, files).map_err(|error| refused(&error))?;
    let stale = stale_files(files, &on_disk);
    if arguments.check {
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
fn on_disk(folder: &Path, generated: &Files) -> Result<Files, String> {
    let mut files = Files::new();
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
        let directory = place(each, writes)?.make_directory()?;
        fchmod(&directory, Mode::from_raw_mode(0o755)).map_err(|errno| failed("change the mode of", each, errno))?;
    }
    let place = place(file, writes)?;
    let new = Replacement::begin(&place, Former::Any)?;
    new.write(content)?;
    new.finish(0o644, Ownership::default())?;
    print(&format!("{}\n", file.display()));
    Ok(())
}

fn place(path: &Path, writes: &Writes) -> Result<Place, FsError> {
    Place::find(path, writes)?.ok_or_else(|| failed("write", path, Errno::NOENT))
}

fn failed(doing: &'static str, path: &Path, errno: Errno) -> FsError {
    FsError::System { doing, path: path.to_owned(), source: errno.into() }
}

/// The files below a directory that is there, by their paths in it.
fn read(folder: &Path, within: &Path) -> Result<Files, String> {
    let mut files = Files::new();
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
