//! `Stead/Symlink`: a symbolic link.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use stead_core::call::{Execution, Failure, Presumed};
use stead_core::claims::{Claims, Extent, Ties};
use stead_core::destruction::{Effect, Effects};
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Cost, Plain, Prediction, Provider, SetReply, State, TestReply};
use stead_system::fs::{self, FileKind, How, Ownership, Place, Status, SystemPath};
use stead_system::user::{Names, NamesByRoot};

use crate::declared::Declared as _;
use crate::input::{FilePath, LinkTarget, blocked, read, read_each};
use crate::permissions::{Permissions, report_accounts};
use crate::text::AccountName;
use crate::{BuiltIn, pending, removal, reply};

/// A symbolic link. It is replaced at once; what it leads to is neither examined nor changed.
#[resource("Stead/Symlink", about = "A symbolic link.", tags("file", "link", "linux"))]
struct Properties<'a> {
    /// Where the link is. A relative path starts at the directory of the document, or at the system root that was given.
    #[property(key, place)]
    path: FilePath<'a>,
    /// What the link leads to, as it is to be written in the link. It need not exist. Required unless '_exist' is
    /// false.
    #[property(required)]
    target: Option<LinkTarget<'a>>,
    /// The name or number of the user that the link itself belongs to.
    owner: Option<AccountName<'a>>,
    /// The name or number of the group that the link itself belongs to.
    group: Option<AccountName<'a>>,
    /// Whether a file, or a directory with everything in it, is replaced when it is where the link should be.
    #[property(option)]
    force: bool,
    /// Whether the link exists.
    exist: bool,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {}

/// `Stead/Symlink` as it is registered.
pub fn built_in() -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Symlinks::default()))
}

/// Carries out `Stead/Symlink`.
#[derive(Default)]
pub struct Symlinks {
    names: NamesByRoot,
}

impl Provider for Symlinks {
    fn validate(&self, cx: &Context, input: &Plain) -> Result<(), Failure> {
        Desired::read(cx, &read(input)?, &self.names.of(&cx.system_root)).map(|_| ())
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let desired = Desired::read(cx, &read_each(input)?, &self.names.of(&cx.system_root))?;
        let current = desired.look()?;
        let mut state = desired.state(current.as_ref());
        if let Some(Current { status, target: Some(_) }) = &current {
            report_accounts(status, &self.names.of(&cx.system_root), &mut state);
        }
        Ok(Plain::new(state))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired = Desired::read(cx, &read(input)?, &self.names.of(&cx.system_root))?;
        let current = desired.look()?;
        let differing = desired.differing(current.as_ref());
        let mut state = desired.state(current.as_ref());
        if let Some(Current { status, target: Some(_) }) = &current {
            desired.permissions.report(status, &self.names.of(&cx.system_root), &mut state);
        }
        let mut tested = reply::tested(state, &differing);
        tested.predicted = desired.prediction(cx, current.as_ref(), &differing)?;
        Ok(tested)
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired = Desired::read(cx, &read(input)?, &self.names.of(&cx.system_root))?;
        let current = desired.look()?;
        let differing = desired.differing(current.as_ref());
        let (mut what_if, mut presumed) = (Vec::new(), None);
        let mut effects = Effects::default();
        if !differing.is_empty() {
            desired.check_force(current.as_ref())?;
            effects = desired.effects(cx, current.as_ref(), &differing)?;
            match execution {
                Execution::WhatIf => {
                    what_if = desired.intentions(current.as_ref(), &differing);
                    let is_directory = current.as_ref().is_some_and(|found| found.status.kind == FileKind::Directory);
                    let at = if is_directory { pending::not_removable } else { pending::at };
                    presumed = Presumed::all([desired.permissions.presumed(), at(&desired.path)?]);
                }
                Execution::Actual => desired.bring_about(cx, current.as_ref(), &differing)?,
            }
        }
        Ok(SetReply { presumed, effects, ..desired.reply(&differing, what_if) })
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        let desired =
            Desired { exist: false, ..Desired::read(cx, &read_each(input)?, &self.names.of(&cx.system_root))? };
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

    fn ties(&self, input: &Plain) -> Ties {
        reply::ties(input)
    }

    fn claims(&self, input: &Plain) -> Option<Claims> {
        let target = || reply::text(input, Properties::TARGET).map(|target| Path::new(target).into());
        reply::claims(input, if reply::is_removal(input) { Extent::Absent } else { Extent::Link { target: target() } })
    }
}

/// What is where the link should be.
struct Current {
    status: Status,
    /// What it leads to, if it is a link. A target that is not UTF-8 is shown with replacement characters.
    target: Option<Vec<u8>>,
}

struct Desired<'a> {
    path_text: &'a str,
    path: SystemPath,
    exist: bool,
    target: Option<&'a str>,
    permissions: Permissions<'a>,
    force: bool,
}

impl<'a> Desired<'a> {
    fn read(cx: &Context, stated: &Properties<'a>, names: &Names) -> Result<Self, Failure> {
        Ok(Self {
            path_text: stated.path.0.0,
            path: stated.path.0.resolve(cx),
            exist: stated.exist,
            target: stated.target.map(|target| target.0),
            permissions: Permissions::find(cx, None, stated.owner, stated.group, names)?,
            force: stated.force,
        })
    }

    fn look(&self) -> Result<Option<Current>, Failure> {
        let Some(fd) = fs::open(&self.path, How::Look)? else { return Ok(None) };
        let status = fs::status_of(&fd, &self.path)?;
        let target = match status.kind {
            FileKind::Symlink => Some(fs::link_target_of(&fd, &self.path)?.into_os_string().into_encoded_bytes()),
            _ => None,
        };
        Ok(Some(Current { status, target }))
    }

    fn differing(&self, current: Option<&Current>) -> Vec<&'static str> {
        match current {
            Some(Current { status, target: Some(target) }) if self.exist => {
                let differs = self.target.is_some_and(|desired| desired.as_bytes() != target);
                differs.then_some(Properties::TARGET).into_iter().chain(self.permissions.differing(status)).collect()
            }
            // A file in its place is not the link: neither is there a link, nor is there one to remove.
            Some(Current { target: None, .. }) | None if self.exist => vec![Properties::EXIST],
            Some(Current { target: Some(_), .. }) => vec![Properties::EXIST],
            Some(Current { target: None, .. }) | None => Vec::new(),
        }
    }

    fn state(&self, current: Option<&Current>) -> Object {
        let target = current.and_then(|current| current.target.as_ref());
        let mut state = reply::state(self.path_text, target.is_some());
        if let Some(target) = target {
            state.insert(Properties::TARGET.into(), Value::from(String::from_utf8_lossy(target).into_owned()));
        }
        state
    }

    fn check_force(&self, current: Option<&Current>) -> Result<(), Failure> {
        match current {
            Some(Current { status, target: None }) if !self.force => {
                let hint = "Add 'force: true' to replace it, with everything in it";
                let word = status.kind.word();
                Err(blocked(Properties::PATH, format!("there is a {word} where the link should be. {hint}")))
            }
            _ => Ok(()),
        }
    }

    /// What a set does to the link, or to what is in its place.
    fn effects(&self, cx: &Context, current: Option<&Current>, differing: &[&str]) -> Result<Effects, Failure> {
        let mut effects = Effects::of(match current {
            _ if !self.exist => Effect::Remove,
            None => Effect::Create,
            Some(Current { target: None, .. }) => Effect::Replace,
            Some(_) => Effect::Change,
        });
        let goes = !self.exist || differing.contains(&Properties::EXIST);
        if let (true, Some(place)) = (goes, Place::find(&self.path, &cx.writes)?) {
            let lost = removal::item(&place, self.path_text.to_owned(), &cx.patience())?;
            effects.destroys.extend(lost);
        }
        Ok(effects)
    }

    /// What a set would come to; `None` where it does nothing or fails.
    fn prediction(
        &self,
        cx: &Context,
        current: Option<&Current>,
        differing: &[&str],
    ) -> Result<Option<Prediction>, Failure> {
        if differing.is_empty() || self.check_force(current).is_err() || Place::find(&self.path, &cx.writes).is_err() {
            return Ok(None);
        }
        let (after, effects) = (Plain::new(self.after()), self.effects(cx, current, differing)?);
        Ok(Some(Prediction { after, effects, ..Prediction::default() }))
    }

    fn intentions(&self, current: Option<&Current>, differing: &[&str]) -> Vec<String> {
        let target = self.target.unwrap_or_default();
        let mut intentions = Vec::new();
        if differing.contains(&Properties::EXIST) {
            match current {
                _ if !self.exist => intentions.push("remove the link".to_owned()),
                Some(current) => {
                    let word = current.status.kind.word();
                    intentions.push(format!("replace the {word} by a link to '{target}'"));
                }
                None => intentions.push(format!("create the link to '{target}'")),
            }
        } else if differing.contains(&Properties::TARGET) {
            intentions.push(format!("let it lead to '{target}'"));
        }
        intentions.extend(self.permissions.intentions(differing));
        intentions
    }

    fn bring_about(&self, cx: &Context, current: Option<&Current>, differing: &[&str]) -> Result<(), Failure> {
        let Some(place) = Place::find(&self.path, &cx.writes)? else { return Err(pending::no_directory(&self.path)) };
        let ownership = self.ownership(current)?;
        match (self.exist, current) {
            (false, _) => {
                // It was a link a moment ago; a directory in its place is refused by the system.
                place.remove()?;
            }
            (true, Some(current)) if current.status.kind == FileKind::Directory => {
                fs::remove_tree(&place, &cx.patience())?;
                place.replace_by_link(OsStr::new(self.target.unwrap_or_default()), ownership)?;
            }
            (true, Some(_)) if !differing.contains(&Properties::TARGET) && !differing.contains(&Properties::EXIST) => {
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

    /// The state once it is as desired.
    fn after(&self) -> Object {
        let mut after = reply::state(self.path_text, self.exist);
        if let (true, Some(target)) = (self.exist, self.target) {
            after.insert(Properties::TARGET.into(), Value::from(target));
            self.permissions.echo(&mut after);
        }
        after
    }

    fn reply(&self, differing: &[&str], what_if: Vec<String>) -> SetReply {
        reply::set(self.after(), differing, what_if)
    }
}
