//! Directories above what is created that do not exist either, where they are to be created with it.

use std::io::ErrorKind;
use std::path::Path;

use stead_core::call::{Failure, Presumed};
use stead_core::destruction::{Effects, Entries, Item, ItemKind, Listing};
use stead_system::fs::{self, FsError, Ownership, Place, SystemPath, Writes};

use crate::input::blocked;
use crate::pending;

/// The mode of such a directory, whatever the umask is.
const MODE: u32 = 0o755;

/// The directories that are missing, the outermost first.
#[derive(Debug, Default)]
pub(crate) struct Parents(Vec<(SystemPath, String)>);

impl Parents {
    /// Those above a path, as far as they are wanted; with it the path as the instance states it.
    pub(crate) fn above(path: &SystemPath, stated: &str, is_wanted: bool) -> Result<Self, Failure> {
        let mut missing = Vec::new();
        let mut shown = Path::new(stated).ancestors().skip(1);
        for directory in path.ancestors().skip(1).take_while(|_| is_wanted) {
            if fs::open_directory(&directory)?.is_some() {
                break;
            }
            let place = Place::find(&directory, &Writes::unrecorded())?;
            if place.is_some_and(|place| place.status().is_ok_and(|status| status.is_some())) {
                let hint = "Remove it, or create its target first";
                return Err(blocked("path", format!("'{}' is a dangling link. {hint}", directory.display())));
            }
            let shown = shown.next().filter(|shown| !shown.as_os_str().is_empty()).unwrap_or(&directory);
            let shown = shown.display().to_string();
            missing.push((directory, shown));
        }
        missing.reverse();
        Ok(Self(missing))
    }

    /// What keeps the outermost from being created.
    pub(crate) fn presumed(&self) -> Result<Option<Presumed>, Failure> {
        self.0.first().map_or(Ok(None), |(outermost, _)| pending::at(outermost))
    }

    /// Creates them; what another instance creates meanwhile is taken as it is.
    pub(crate) fn create(&self, writes: &Writes) -> Result<(), Failure> {
        for (path, _) in &self.0 {
            let place = Place::find(path, writes)?.ok_or_else(|| pending::no_directory(path))?;
            match place.make_directory_with(MODE, Ownership::default()) {
                Err(FsError::System { source, .. }) if source.kind() == ErrorKind::AlreadyExists => {}
                made => drop(made?),
            }
        }
        Ok(())
    }

    /// Effects with their creation before everything else.
    pub(crate) fn before(&self, effects: Effects) -> Effects {
        if self.0.is_empty() {
            return effects;
        }
        let directory = |(_, shown): &(SystemPath, String)| Item {
            path: shown.clone(),
            kind: ItemKind::Directory(Entries::default()),
        };
        let mut creates: Listing = Listing::default();
        creates.extend(self.0.iter().map(directory));
        creates.append(effects.creates);
        Effects { creates, ..effects }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
