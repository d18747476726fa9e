//! What is read and asked here before the first connection.

use std::path::{Path, PathBuf};

use stead_core::value::Value;
use stead_hosts::Machine;
use stead_system::Cancel;

use super::delivery::Parcel;
use super::programs::Programs;
use super::secrets::Secrets;
use super::ssh::{Ssh, Sudo, Until, Way};
use super::task::{Errand, Task};
use crate::exit::Exit;
use crate::input::{self, Unreadable};
use crate::process_env::ProcessEnv;
use crate::request::Elevation;
use crate::terminal::complain;

/// The way to the machines, and what goes along it.
pub(super) fn way(
    parcel: &Parcel<'_>,
    env: &ProcessEnv,
    machines: &[Machine],
    task: &Task,
    cancel: Cancel,
) -> Result<Way, Exit> {
    let failed = |why: String| {
        complain(&format!("error: {why}"));
        Exit::Failed
    };
    let secrets =
        parcel.secrets().map(|named| Secrets::of(named, parcel.until() == Until::Begun, env, &cancel)).transpose()?;
    let mut redactor = parcel.redactor(machines);
    let ssh = Ssh::find(env).map_err(failed)?;
    let sudo = sudo(task, &cancel)?;
    if let Some(Sudo::With(password)) = &sudo {
        redactor.add(&Value::from(password.expose().as_str()));
    }
    let programs = Programs::of(task.fleet.artifacts.as_deref())?;
    let options = task.fleet.deadline.map(|limit| format!(" --deadline {}", limit.as_secs())).unwrap_or_default();
    let (bundle, until) = (parcel.bundle(), parcel.until());
    Ok(Way { ssh, sudo, programs, options, bundle, until, secrets, redactor, cancel })
}

/// Whoever reads standard input first gets all of it.
pub(super) fn check_standard_input(task: &Task) -> Result<(), Exit> {
    let asks = task.fleet.elevation == Elevation::SudoWithPassword;
    let mut read: Vec<&Path> = task.fleet.inventory.as_deref().into_iter().collect();
    if let Errand::Document(errand) = &task.errand {
        read.push(errand.document.path());
        read.extend(errand.document.supplied.files.iter().map(PathBuf::as_path));
    }
    let readers = read.into_iter().filter(|path| input::is_standard(path)).count();
    if readers + usize::from(asks) <= 1 {
        return Ok(());
    }
    if asks {
        complain("error: '--ask-sudo-password' reads standard input, which is read for '-' as well");
        complain("help: use files");
    } else {
        complain(&format!("error: {}", Unreadable::StandardInputTwice));
    }
    Err(Exit::Unusable)
}

/// How accounts become root; asks for the password once.
fn sudo(task: &Task, cancel: &Cancel) -> Result<Option<Sudo>, Exit> {
    match task.fleet.elevation {
        Elevation::None => return Ok(None),
        Elevation::Sudo => return Ok(Some(Sudo::Silent)),
        Elevation::SudoWithPassword => {}
    }
    match input::password("Password of sudo: ", cancel) {
        Some(password) => Ok(Some(Sudo::With(password))),
        None if cancel.is_cancelled() => Err(Exit::Cancelled),
        None => {
            complain("error: no password was given");
            Err(Exit::Unusable)
        }
    }
}
