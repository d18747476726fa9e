//! Where a part is.

use std::borrow::Cow;

use stead_core::call::{Failure, Presumed};
use stead_host::provider::Context;
use stead_system::fs::{Place, SystemPath};

use crate::edit::{self, Missing};
use crate::pending;

/// The file that a part is in.
pub(crate) struct Location<'a> {
    /// As the instance states it, for states and lists.
    pub(crate) shown: Cow<'a, str>,
    pub(crate) path: SystemPath,
    pub(crate) missing: Missing,
    /// The mode of its directory, which is then created with the owner of a new file.
    pub(crate) directory: Option<u32>,
    /// Why there is no such place yet.
    pub(crate) absent: Option<Presumed>,
}

impl<'a> Location<'a> {
    /// The file that an instance names.
    pub(crate) fn stated(cx: &Context, path: &'a str, missing: Missing) -> Self {
        Self { shown: path.into(), path: cx.resolve(path), missing, directory: None, absent: None }
    }
}

impl Location<'_> {
    /// Returns whether the directory of the file is to be created with it, and is not there.
    pub(super) fn lacks_directory(&self, cx: &Context) -> Result<bool, Failure> {
        let may_lack = self.directory.is_some() && self.absent.is_none();
        Ok(may_lack && Place::find(&self.path, &cx.writes)?.is_none())
    }

    /// Creates the directory of the file, or says why it is not created.
    pub(super) fn make_directory(&self, cx: &Context) -> Result<Place, Failure> {
        if let Some(absent) = &self.absent {
            return Err(absent.failure.clone());
        }
        let (mode, ownership) = match (self.directory, self.missing) {
            (Some(mode), Missing::Create { ownership, .. } | Missing::Enforce { ownership, .. }) => (mode, ownership),
            (None, Missing::Create { .. } | Missing::Enforce { .. }) => return Err(pending::no_directory(&self.path)),
            // A directory alone would not help.
            (_, Missing::Refuse) => return Err(edit::no_file(&self.path)),
        };
        let parent = self.path.parent().unwrap_or_else(|| self.path.clone());
        let above = Place::find(&parent, &cx.writes)?.ok_or_else(|| pending::no_directory(&parent))?;
        let directory = above.make_directory_with(mode, ownership)?;
        let name = self.path.file_name().unwrap_or_default();
        Ok(Place::within(&directory, name, self.path.to_path_buf(), &cx.writes)?)
    }
}
