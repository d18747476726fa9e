//! Modules of the running kernel.

#![expect(clippy::disallowed_methods, reason = "it asks the running kernel, and is not called for another system")]

use std::path::{Path, PathBuf};

use stead_core::call::{Failure, Presumed};
use stead_host::provider::Context;
use stead_system::fs::SystemRoot;
use stead_system::kernel;
use stead_system::user;

use super::Properties;
use super::files::same_module;
use crate::input::{impossible, transient};
use crate::program::SystemProgram;

const MODPROBE: SystemProgram = SystemProgram { name: "modprobe", package: "kmod" };

/// More than the list of all modules of a kernel.
const MAX_SIZE: u64 = 16 << 20;

/// Returns whether the running kernel has the module, be it loaded or built in.
pub(super) fn is_loaded(name: &str) -> bool {
    folder(name).is_dir() || is_built_in(name)
}

fn folder(name: &str) -> PathBuf {
    Path::new("/sys/module").join(name.replace('-', "_"))
}

/// Returns whether the kernel has the module in itself, so that it cannot be unloaded.
fn is_built_in(name: &str) -> bool {
    let is_module = folder(name).join("initstate").exists();
    !is_module && (folder(name).is_dir() || listed("modules.builtin", name))
}

/// Returns whether a list of the running kernel, with a path and an ending in each line, has the module.
fn listed(list: &str, name: &str) -> bool {
    let path = Path::new("/lib/modules").join(kernel::release()).join(list);
    let Ok(Some(content)) = SystemRoot::running().read(&path, MAX_SIZE) else { return false };
    let text = String::from_utf8_lossy(&content.bytes);
    let stem = |line: &str| {
        let path = line.split(':').next().unwrap_or(line);
        path.rsplit('/').next().and_then(|file| file.split(".ko").next()).map(str::to_owned)
    };
    text.lines().any(|line| stem(line).is_some_and(|stem| same_module(&stem, name)))
}

/// What keeps the module from being loaded or unloaded as things are.
pub(super) fn presumed(name: &str, load: bool) -> Option<Presumed> {
    let failure = |message: String| Some(Presumed::of(impossible(Properties::LOADED, message), Vec::new()));
    if !user::is_root() {
        return failure(format!("only root can {} a module of the kernel", if load { "load" } else { "unload" }));
    }
    if load && !listed("modules.dep", name) {
        return failure(format!(
            "the running kernel has no module '{name}'; `modinfo {name}` finds it once its package is installed"
        ));
    }
    if !load && is_built_in(name) {
        return failure(format!("the module '{name}' is built into the kernel, and cannot be unloaded"));
    }
    let users = std::fs::read_to_string(folder(name).join("refcnt")).unwrap_or_default();
    if !load && users.trim().parse::<i64>().is_ok_and(|users| users > 0) {
        let failure = transient(Properties::LOADED, format!("the module '{name}' is in use"));
        return Some(Presumed::of(failure, Vec::new()));
    }
    MODPROBE.presumed()
}

/// Loads or unloads the module.
pub(super) fn set(cx: &Context, name: &str, load: bool) -> Result<(), Failure> {
    if let Some(presumed) = presumed(name, load) {
        return Err(presumed.failure);
    }
    let arguments: &[&str] = if load { &["--", name] } else { &["-r", "--", name] };
    MODPROBE.run(cx, arguments).map(|_| ())
}

/// The names of the modules that are loaded.
pub(super) fn all() -> Vec<String> {
    let entries = std::fs::read_dir("/sys/module").into_iter().flatten().flatten();
    let is_loaded = |entry: &std::fs::DirEntry| entry.path().join("initstate").exists();
    let mut names: Vec<_> =
        entries.filter(is_loaded).filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}
