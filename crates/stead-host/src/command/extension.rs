//! The programs of extensions: they find manifests, turn files into documents, and open secrets.

use std::ffi::OsString;
use std::path::Path;

use serde_json::Value as Json;
use stead_core::call::{Failure, FailureKind};
use stead_core::manifest::{DiscoverArgument, Extension, ImportArgument, SecretArgument};
use stead_core::value::Sensitive;

use super::input::Prepared;
use super::invoke::{CommandSettings, Invocation, Origin};
use super::output::Expected;
use super::secrets::Secrets;
use crate::provider::{Context, Plain};

/// Has an extension look for manifests: one object for each that it found.
///
/// `endings` are those of the files that are manifests, for an extension that searches by itself.
pub fn discover(
    extension: &Extension,
    endings: &[&str],
    settings: &CommandSettings,
    cx: &Context,
) -> Result<Vec<Json>, Failure> {
    let method = extension.discover.as_ref().ok_or_else(|| unsupported(extension, "discover"))?;
    let stated = method.arguments.iter().filter_map(|argument| match argument {
        DiscoverArgument::Literal(text) => Some(text.clone()),
        DiscoverArgument::Endings { .. } => None,
    });
    let arguments = method.arguments.iter().flat_map(|argument| match argument {
        DiscoverArgument::Literal(text) => vec![text.clone()],
        DiscoverArgument::Endings { name, quoted } => {
            let list = endings.join(",");
            vec![name.clone(), if *quoted { format!("\"{list}\"") } else { list }]
        }
    });
    let secrets = Secrets::default();
    let invocation = invocation(extension, "discover", &method.executable, settings, &secrets);
    let printed = invocation.run(cx, &prepared(arguments, stated))?;
    let found = printed.read(Expected::Lines)?;
    if found.iter().any(|each| !each.is_object()) {
        return Err(printed.unexpected("every line must be an object"));
    }
    Ok(found)
}

/// Has an extension turn a file into a document. Returns what it printed.
pub fn import(extension: &Extension, file: &Path, settings: &CommandSettings, cx: &Context) -> Result<String, Failure> {
    let method = extension.import.as_ref().ok_or_else(|| unsupported(extension, "import"))?;
    let file = file.display().to_string();
    let stated = method.arguments.iter().filter_map(|argument| match argument {
        ImportArgument::Literal(text) => Some(text.clone()),
        // The document of the user.
        ImportArgument::File(_) => None,
    });
    let arguments = method.arguments.iter().flat_map(|argument| match argument {
        ImportArgument::Literal(text) => vec![text.clone()],
        ImportArgument::File(name) if name.is_empty() => vec![file.clone()],
        ImportArgument::File(name) => vec![name.clone(), file.clone()],
    });
    let secrets = Secrets::default();
    let invocation = invocation(extension, "import", &method.executable, settings, &secrets);
    let printed = invocation.run(cx, &prepared(arguments, stated))?;
    match str::from_utf8(printed.bytes()) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(printed.unexpected(&format!("it is not UTF-8 (byte {})", error.valid_up_to()))),
    }
}

/// Has an extension open a secret: the line that it prints, or all of them as they are where there are several. `None`
/// when it does not know the secret.
///
/// Guarantees: nothing of its standard output is in a failure.
pub fn secret(
    extension: &Extension,
    name: &str,
    vault: Option<&str>,
    settings: &CommandSettings,
    cx: &Context,
) -> Result<Option<Sensitive<String>>, Failure> {
    let method = extension.secret.as_ref().ok_or_else(|| unsupported(extension, "secret"))?;
    let stated = method.arguments.iter().filter_map(|argument| match argument {
        SecretArgument::Literal(text) => Some(text.clone()),
        SecretArgument::Name(_) | SecretArgument::Vault(_) => None,
    });
    let arguments = method.arguments.iter().flat_map(|argument| match argument {
        SecretArgument::Literal(text) => vec![text.clone()],
        SecretArgument::Name(argument) => vec![argument.clone(), name.to_owned()],
        SecretArgument::Vault(argument) => {
            vault.into_iter().flat_map(|vault| [argument.clone(), vault.to_owned()]).collect()
        }
    });
    // Known to hold a secret, so that no output is quoted.
    let secrets = Secrets::of(&Plain::secret(Json::Null));
    let invocation = invocation(extension, "secret", &method.executable, settings, &secrets);
    let printed = invocation.run(cx, &prepared(arguments, stated))?;
    let text = str::from_utf8(printed.bytes()).map_err(|_| printed.unexpected("it is not UTF-8"))?;
    let secret = match text.trim().lines().count() {
        0 => return Ok(None),
        1 => text.trim(),
        // Keys and certificates are lines, each with its end, and some of their readers insist on the last one.
        _ => text,
    };
    Ok(Some(Sensitive::new(secret.to_owned())))
}

fn unsupported(extension: &Extension, operation: &str) -> Failure {
    let message = format!("extension '{}' does not support '{operation}'", extension.type_name);
    Failure::new(FailureKind::Unsupported, message)
}

/// `stated` are those of the arguments that the manifest states.
fn prepared(arguments: impl Iterator<Item = String>, stated: impl Iterator<Item = String>) -> Prepared {
    Prepared { arguments: arguments.map(OsString::from).collect(), stated: stated.collect(), ..Prepared::default() }
}

fn invocation<'a>(
    extension: &'a Extension,
    operation: &'static str,
    executable: &'a str,
    settings: &'a CommandSettings,
    secrets: &'a Secrets,
) -> Invocation<'a> {
    let origin = Origin { manifest_path: &extension.manifest_path, exit_codes: &extension.exit_codes, settings };
    Invocation { origin, of: extension.type_name.as_str(), operation, executable, secrets }
}
