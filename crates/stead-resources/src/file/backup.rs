//! Former content that is kept.

use std::ffi::{OsStr, OsString};

use stead_core::call::Failure;
use stead_system::fs::{Former, Ownership, Place, Replacement, Status};

use super::{Current, Desired, FileContent, content};
use crate::input::{Backup, cannot};

impl<C: FileContent> Desired<'_, C> {
    /// Keeps what is there under the name of a backup, if one is asked for.
    pub(super) fn keep(&self, place: &Place, current: &Current) -> Result<(), Failure> {
        let Some(name) = self.backup_name(place.name(), current)? else { return Ok(()) };
        if place.keep_as(&name)? {
            return Ok(());
        }
        let copy = place.sibling(&name)?;
        let mut replacement = Replacement::begin(&copy, Former::Any)?;
        replacement.keep_attributes(&current.file)?;
        content::copy(&current.file, &replacement)?;
        let Status { mode, uid, gid, .. } = current.status;
        replacement.finish(mode, Ownership { uid: Some(uid), gid: Some(gid) })?;
        Ok(())
    }

    /// The name of the backup beside the file; `None` where none is asked for.
    pub(super) fn backup_name(&self, name: &OsStr, current: &Current) -> Result<Option<OsString>, Failure> {
        let mut backup = name.to_owned();
        match self.backup {
            Backup::No => return Ok(None),
            Backup::Suffix(suffix) => backup.push(suffix),
            Backup::ByDigest => {
                let digest = content::sha256(&current.file).map_err(|error| cannot("read", &self.path, error))?;
                backup.push(format!(".backup-{:.12}", digest.unwrap_or_default()));
            }
        }
        Ok(Some(backup))
    }
}
