//! A folder with a bundle.

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde_json::Map;
use stead_core::bundle::{Bundle, BundleError, Reach};
use stead_system::fs::{OpenError, Trust, TrustedDirectory, User};

use super::{Newer, Source};
use crate::follow::LARGEST_BUNDLE;
use crate::store::Delivered;

/// A folder that is followed: the one file in it whose name ends in `.bundle` is what it delivers, with the defaults of the
/// parameters. Names that begin with a dot are passed over, so that a file can be copied under one and renamed.
///
/// Guarantees: to root, a folder or a file that anybody else could change is refused. Of a bundle that was taken nothing but its
/// first line is read again. What is not whole is not delivered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Folder {
    path: PathBuf,
    trust: Trust,
}

/// Why a folder delivers nothing.
#[derive(Debug, thiserror::Error)]
pub enum UnusableFolder {
    /// It or its bundle cannot be opened, or others could change it.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It cannot be read.
    #[error("cannot read '{}'", path.display())]
    Read {
        /// The folder or the file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It does not say which bundle is meant.
    #[error("'{}' and '{}' are both bundles; a folder that is followed has one", first.display(), second.display())]
    Several {
        /// The first.
        first: PathBuf,
        /// The second.
        second: PathBuf,
    },
    /// The file is not a bundle, or not a whole one.
    #[error("cannot use '{}'", path.display())]
    Bundle {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: BundleError,
    },
}

/// The first line of a bundle is shorter.
const BEGINNING: u64 = 256;

impl Folder {
    /// The folder at a path, looked at as the user that this process runs as.
    pub fn new(path: PathBuf) -> Self {
        Self { path, trust: User::current().trust() }
    }

    /// The name of the one bundle in it; `None` while there is none.
    fn bundle(&self, opened: &TrustedDirectory) -> Result<Option<OsString>, UnusableFolder> {
        let names = opened.names().map_err(|source| UnusableFolder::Read { path: self.path.clone(), source })?;
        let mut bundles = names.into_iter().filter(|name| is_bundle(name));
        match (bundles.next(), bundles.next()) {
            (Some(first), Some(second)) => {
                Err(UnusableFolder::Several { first: self.path.join(first), second: self.path.join(second) })
            }
            (found, _) => Ok(found),
        }
    }

    fn look(&self, than: Option<&str>) -> Result<Newer, UnusableFolder> {
        let opened = TrustedDirectory::open(&self.path, self.trust)?;
        let Some(name) = self.bundle(&opened)? else { return Ok(Newer::Nothing) };
        let path = self.path.join(&name);
        let unreadable = |source| UnusableFolder::Read { path: path.clone(), source };
        let unusable = |source| UnusableFolder::Bundle { path: path.clone(), source };
        let (mut file, _) = opened.readable(&name)?;
        let mut bytes = Vec::new();
        file.by_ref().take(BEGINNING).read_to_end(&mut bytes).map_err(unreadable)?;
        if than == Some(Bundle::stated_name(&bytes).map_err(unusable)?) {
            return Ok(Newer::Nothing);
        }
        file.take(LARGEST_BUNDLE).read_to_end(&mut bytes).map_err(unreadable)?;
        let bundle = Bundle::decode(&bytes, Reach::Machine, None).map_err(unusable)?;
        let name = bundle.document().0.to_owned();
        let delivered = Delivered::of_bundle(name, &bundle, Map::new(), self.path.clone());
        Ok(Newer::Delivery { digest: Some(bundle.name().to_owned()), delivered: Box::new(delivered) })
    }
}

fn is_bundle(name: &OsStr) -> bool {
    let is_hidden = name.as_encoded_bytes().starts_with(b".");
    !is_hidden && Path::new(name).extension().is_some_and(|extension| extension == "bundle")
}

impl fmt::Display for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

impl Source for Folder {
    fn newer(&self, than: Option<&str>) -> Result<Newer, Box<dyn Error>> {
        Ok(self.look(than)?)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::sync::Arc;

    use super::*;

    fn bundle(text: &str) -> Bundle {
        Bundle::new(None, ("site.yaml".to_owned(), Arc::from(text)), BTreeMap::new()).unwrap()
    }

    fn digest(answer: Result<Newer, UnusableFolder>) -> Option<String> {
        match answer.unwrap() {
            Newer::Delivery { digest, .. } => digest,
            Newer::Nothing | Newer::NotNow { .. } => None,
        }
    }

    #[test]
    fn what_is_newer_has_another_digest() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder { path: place.path().to_owned(), trust: Trust::Everyone };
        let look = |than: Option<&str>| digest(folder.look(than));
        assert_eq!(look(None), None, "an empty folder delivers nothing");
        let (one, two) = (bundle("resources: []"), bundle("resources: [] # two"));
        fs::write(place.path().join(".site.bundle"), one.encode()).unwrap();
        assert_eq!(look(None), None, "one that is being copied is passed over");
        fs::write(place.path().join("site.bundle"), one.encode()).unwrap();
        assert_eq!((look(None).as_deref(), look(Some(one.name()))), (Some(one.name()), None));
        fs::write(place.path().join("site.bundle"), two.encode()).unwrap();
        assert_eq!((look(Some(one.name())).as_deref(), look(Some(two.name()))), (Some(two.name()), None));
    }

    #[test]
    fn what_is_not_one_whole_bundle_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder { path: place.path().to_owned(), trust: Trust::Everyone };
        let whole = bundle("resources: []").encode();
        for length in 0..whole.len() {
            fs::write(place.path().join("site.bundle"), &whole[..length]).unwrap();
            assert!(matches!(folder.look(None), Err(UnusableFolder::Bundle { .. })), "{length} bytes");
        }
        fs::write(place.path().join("site.bundle"), &whole).unwrap();
        fs::write(place.path().join("other.bundle"), &whole).unwrap();
        assert!(matches!(folder.look(None), Err(UnusableFolder::Several { .. })));
        let gone = Folder { path: place.path().join("none"), trust: Trust::Everyone };
        assert!(matches!(gone.look(None), Err(UnusableFolder::Open(_))));
    }
}
