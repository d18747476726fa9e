//! Where stead keeps things on this system.

use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// The folder that the variable `STEAD_STATE` names, as an absolute path; `None` where it is not set.
pub fn stated_directory() -> Option<PathBuf> {
    let stated = std::env::var_os("STEAD_STATE").filter(|path| !path.is_empty())?;
    std::path::absolute(stated).ok()
}

/// The folder of the store of this user: the one that `STEAD_STATE` names, or else `/var/lib/stead` for root and
/// `stead` in the state directory of others. `None` for a user without a home.
pub fn store() -> Option<PathBuf> {
    if let Some(stated) = stated_directory() {
        return Some(stated);
    }
    if geteuid().is_root() {
        // Never below HOME, which may be that of another user.
        return Some(PathBuf::from("/var/lib/stead"));
    }
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")))?;
    Some(state.join("stead"))
}

/// The folders of programs that are sent to other machines: that of this user, and those where packages and administrators install.
pub fn artifacts() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    // Never below HOME, which may be that of another user.
    let own = if geteuid().is_root() {
        None
    } else {
        variable("XDG_DATA_HOME").or_else(|| Some(variable("HOME")?.join(".local/share")))
    };
    let of_system = ["/usr/local/share", "/usr/share"].map(PathBuf::from);
    own.into_iter().chain(of_system).map(|data| data.join("stead/artifacts")).collect()
}

/// Where locks are kept: the first of these directories that exists or can be created.
#[derive(Clone, Debug)]
pub struct Locks {
    pub(super) candidates: Vec<PathBuf>,
    /// The store that they lie in, of which everything that is missing is created first.
    pub(super) store: Option<PathBuf>,
}

impl Locks {
    /// Those of this user: below `/run`, or else in the state directory, for root; below the runtime directory, or else
    /// the cache directory, for others. Where `STEAD_STATE` names a store, they are kept in that: runs with different
    /// stores are kept apart on purpose.
    pub fn of_this_user() -> Self {
        if let Some(store) = stated_directory() {
            return Self { candidates: vec![store.join("locks")], store: Some(store) };
        }
        if geteuid().is_root() {
            // Never below HOME, which may be that of another user.
            return Self { candidates: vec!["/run/stead".into(), "/var/lib/stead".into()], store: None };
        }
        let variable = |name, below: &str| std::env::var_os(name).map(|value| Path::new(&value).join(below));
        let candidates = [variable("XDG_RUNTIME_DIR", "stead"), variable("HOME", ".cache/stead")];
        let candidates = candidates.into_iter().flatten().filter(|path| path.is_absolute()).collect();
        Self { candidates, store: None }
    }

    /// In this directory, which is created with the one that it lies in if it is not there.
    pub fn in_directory(path: &Path) -> Self {
        Self { candidates: vec![path.to_owned()], store: None }
    }
}
