//! `Stead/Symlink`: a symbolic link.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{OFlags, fstat, readlinkat};
use serde_json::{Map, Value as Json, json};
use stead_core::call::{Execution, Failure};
use stead_core::value::Value;
use stead_host::fs::{self, Kind, Names, Ownership, Patience, Place, Status};
use stead_host::provider::{Context, Cost, Plain, Provider, SetReply, State, TestReply};

use crate::file::{no_directory, presumed_place};
use crate::input::{Input, cannot, invalid, refused};
use crate::permissions::{Permissions, report_accounts};
use crate::{ALL_BUT_EXPORT, BuiltIn, Profile, reply};

const PROFILE: Profile = Profile {
    type_name: "Stead/Symlink",
    description: "A symbolic link.",
    tags: &["file", "link", "linux"],
    capabilities: ALL_BUT_EXPORT,
    schema: include_str!("schema.json"),
};

const PROPERTIES: &[&str] = &["path", "target", "owner", "group", "force", "_exist"];

/// `Stead/Symlink` as it is registered.
pub fn built_in() -> Option<BuiltIn> {
    PROFILE.built_in(Arc::new(Symlinks::default()))
}

/// Carries out `Stead/Symlink`.
#[derive(Default)]
pub struct Symlinks {
    names: Names,
}

impl Provider for Symlinks {
    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let desired = Desired::read(cx, input, &self.names, Purpose::Look)?;
        let current = desired.look()?;
        let mut state = desired.state(current.as_ref());
        if let Some(Current { status, target: Some(_) }) = &current {
            report_accounts(status, &self.names, &mut state);
        }
        Ok(Plain::new(state.into()))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired = Desired::read(cx, input, &self.names, Purpose::Compare)?;
        let current = desired.look()?;
        let differing = desired.differing(current.as_ref());
        let mut state = desired.state(current.as_ref());
        if let Some(Current { status, target: Some(_) }) = &current {
            desired.permissions.report(status, &self.names, &mut state);
        }
        Ok(reply::tested(state, &differing))
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired = Desired::read(cx, input, &self.names, Purpose::Compare)?;
        let current = desired.look()?;
        let differing = desired.differing(current.as_ref());
        let (mut what_if, mut presumed) = (Vec::new(), None);
        if !differing.is_empty() {
            desired.check_force(current.as_ref())?;
            match execution {
                Execution::WhatIf => {
                    what_if = desired.intentions(current.as_ref(), &differing);
                    presumed = desired
                        .permissions
                        .presumed()
                        .map_or_else(|| presumed_place(&desired.path), |presumed| Ok(Some(presumed)))?;
                }
                Execution::Actual => desired.bring_about(cx, current.as_ref(), &differing)?,
            }
        }
        Ok(SetReply { presumed, ..desired.reply(&differing, what_if) })
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        let desired = Desired { exist: false, ..Desired::read(cx, input, &self.names, Purpose::Look)? };
        let current = desired.look()?;
        let differing = desired.differing(current.as_ref());
        if execution == Execution::WhatIf {
            return Ok(desired.intentions(current.as_ref(), &differing));
        }
        if !differing.is_empty() {
            desired.bring_about(cx, current.as_ref(), &differing)?;
        }
        Ok(Vec::new())
    }

    fn cost(&self, _desired: &Value) -> Cost {
        Cost::Inline
    }

    fn touches(&self, input: &Plain) -> Option<Vec<PathBuf>> {
        reply::touches(input)
    }
}

/// What is where the link should be.
struct Current {
    status: Status,
    /// What it leads to, if it is a link. A target that is not UTF-8 is shown with replacement characters.
    target: Option<Vec<u8>>,
}

/// What a desired state is read for: only a comparison needs a target.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Look,
    Compare,
}

struct Desired<'a> {
    path_text: &'a str,
    path: PathBuf,
    exist: bool,
    target: Option<&'a str>,
    permissions: Permissions<'a>,
    force: bool,
}

impl<'a> Desired<'a> {
    fn read(cx: &Context, input: &'a Plain, names: &Names, purpose: Purpose) -> Result<Self, Failure> {
        let input = Input::read(input, PROPERTIES, &[])?;
        let (path_text, path) = input.required_file("path", cx)?;
        let exist = input.flag("_exist")?.unwrap_or(true);
        let target = input.text("target")?;
        if target.is_some_and(|target| target.is_empty() || target.contains('\0')) {
            return Err(invalid("target", "'target' has to be a path"));
        }
        if target.is_none() && exist && purpose == Purpose::Compare {
            return Err(invalid("target", "the property 'target' is missing"));
        }
        let force = input.flag("force")?.unwrap_or(false);
        Ok(Self { path_text, path, exist, target, permissions: Permissions::read(&input, names)?, force })
    }

    fn look(&self) -> Result<Option<Current>, Failure> {
        let Some(fd) = fs::open(&self.path, OFlags::PATH)? else { return Ok(None) };
        let failed = |errno: rustix::io::Errno| cannot("examine", &self.path, errno);
        let status = fstat(&fd).map(Status::from).map_err(failed)?;
        let target = match status.kind {
            Kind::Symlink => Some(readlinkat(&fd, "", Vec::new()).map_err(failed)?.into_bytes()),
            _ => None,
        };
        Ok(Some(Current { status, target }))
    }

    fn differing(&self, current: Option<&Current>) -> Vec<&'static str> {
        match current {
            Some(Current { status, target: Some(target) }) if self.exist => {
                let differs = self.target.is_some_and(|desired| desired.as_bytes() != target);
                differs.then_some("target").into_iter().chain(self.permissions.differing(status)).collect()
            }
            // A file in its place is not the link: neither is there a link, nor is there one to remove.
            Some(Current { target: None, .. }) | None if self.exist => vec!["_exist"],
            Some(Current { target: Some(_), .. }) => vec!["_exist"],
            Some(Current { target: None, .. }) | None => Vec::new(),
        }
    }

    fn state(&self, current: Option<&Current>) -> Map<String, Json> {
        let target = current.and_then(|current| current.target.as_ref());
        let mut state = reply::state(self.path_text, target.is_some());
        if let Some(target) = target {
            state.insert("target".into(), json!(String::from_utf8_lossy(target)));
        }
        state
    }

    fn check_force(&self, current: Option<&Current>) -> Result<(), Failure> {
        match current {
            Some(Current { status, target: None }) if !self.force => {
                let hint = "Add 'force: true' to replace it, with everything in it";
                let word = status.kind.word();
                Err(refused("path", format!("there is a {word} where the link should be. {hint}")))
            }
            _ => Ok(()),
        }
    }

    fn intentions(&self, current: Option<&Current>, differing: &[&str]) -> Vec<String> {
        let target = self.target.unwrap_or_default();
        let mut intentions = Vec::new();
        if differing.contains(&"_exist") {
            match current {
                _ if !self.exist => intentions.push("remove the link".to_owned()),
                Some(current) => {
                    let word = current.status.kind.word();
                    intentions.push(format!("replace the {word} by a link to '{target}'"));
                }
                None => intentions.push(format!("create the link to '{target}'")),
            }
        } else if differing.contains(&"target") {
            intentions.push(format!("let it lead to '{target}'"));
        }
        intentions.extend(self.permissions.intentions(differing));
        intentions
    }

    fn bring_about(&self, cx: &Context, current: Option<&Current>, differing: &[&str]) -> Result<(), Failure> {
        let Some(place) = Place::find(&self.path, &cx.writes)? else { return Err(no_directory(&self.path)) };
        let ownership = self.ownership(current)?;
        match (self.exist, current) {
            (false, _) => {
                // It was a link a moment ago; a directory in its place is refused by the system.
                place.remove()?;
            }
            (true, Some(current)) if current.status.kind == Kind::Directory => {
                fs::remove_tree(&place, &Patience::of(cx))?;
                place.replace_by_link(OsStr::new(self.target.unwrap_or_default()), ownership)?;
            }
            (true, Some(_)) if !differing.contains(&"target") && !differing.contains(&"_exist") => {
                place.own(ownership)?;
            }
            (true, _) => place.replace_by_link(OsStr::new(self.target.unwrap_or_default()), ownership)?,
        }
        Ok(())
    }

    /// The owner of the link: the one asked for, else that of the link that is there.
    fn ownership(&self, current: Option<&Current>) -> Result<Ownership, Failure> {
        let asked = self.permissions.ownership()?;
        let link = current.filter(|current| current.target.is_some()).map(|current| current.status);
        let Some(Status { uid, gid, .. }) = link else { return Ok(asked) };
        Ok(Ownership { uid: asked.uid.or(Some(uid)), gid: asked.gid.or(Some(gid)) })
    }

    fn reply(&self, differing: &[&str], what_if: Vec<String>) -> SetReply {
        let mut after = reply::state(self.path_text, self.exist);
        if let (true, Some(target)) = (self.exist, self.target) {
            after.insert("target".into(), json!(target));
            self.permissions.echo(&mut after);
        }
        reply::set(after, differing, what_if)
    }
}
