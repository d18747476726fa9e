//! The keys of this machine: made here, and kept beside the record of the agent.
//!
//! ```text
//! DIR/machine.key    64 random bytes, the digest of the id of the machine, and a checksum of both
//! ```
//!
//! They belong to one machine. Where the state directory is found on another one, which is a copy of the first, new ones are made.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use stead_host::facts::machine_id;
use stead_release::{MachineKeys, MachineSecret};
use stead_system::folder::{Folder, FolderError};
use stead_system::fs::SystemRoot;
use zeroize::Zeroizing;

const FILE: &str = "machine.key";
const LOCK: &str = "machine.lock";
/// How long another process may take to make keys.
const PATIENCE: Duration = Duration::from_secs(30);
const DIGEST: usize = 32;

/// The keys of this machine.
pub struct OwnKeys {
    /// The keys.
    pub keys: MachineKeys,
    /// How they came to be there.
    pub origin: KeysOrigin,
}

/// The keys that a caller wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeysWanted {
    /// Those that are there; the first time, new ones.
    Present,
    /// New ones, in place of those that are there.
    New,
}

/// The origin of keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeysOrigin {
    /// They were there.
    Kept,
    /// There were none before.
    First,
    /// A caller wanted new ones.
    Renewed,
    /// Those that were there are of another machine, of which this one is a copy.
    Copied,
    /// Those that were there are damaged, and set aside under this path.
    Damaged(Option<PathBuf>),
}

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// Their file, or its folder, cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Another process is making some.
    #[error("another process is making the keys of this machine in '{}'", .0.display())]
    Busy(PathBuf),
    /// Nobody can tell whose they are.
    #[error("'{}' has the keys of a machine with an id, and this one has none: /etc/machine-id cannot be read", .0.display())]
    NoId(PathBuf),
    /// The system has no random numbers.
    #[error("the system has no random numbers")]
    Random,
}

impl OwnKeys {
    /// The keys of the running system, in the state directory of its agent.
    ///
    /// Guarantees: they are on the disk before they are returned, readable to their user alone.
    pub fn open(directory: &Path, wanted: KeysWanted) -> Result<Self, KeysError> {
        Self::of_machine(directory, machine_id(&SystemRoot::running()).as_deref(), wanted)
    }

    /// The same for the machine of this id.
    pub fn of_machine(directory: &Path, id: Option<&str>, wanted: KeysWanted) -> Result<Self, KeysError> {
        let folder = Folder::create(directory)?;
        // Of two processes that made keys at once, one would print what is replaced.
        let lock = folder.lock(LOCK, PATIENCE)?;
        let _lock = lock.ok_or_else(|| KeysError::Busy(folder.path().to_owned()))?;
        let owner = id.map_or([0; DIGEST], |id| Sha256::digest(id).into());
        let origin = match folder.read(FILE)?.map(Zeroizing::new) {
            None => KeysOrigin::First,
            Some(_) if wanted == KeysWanted::New => KeysOrigin::Renewed,
            Some(file) => match checked(&file) {
                None => KeysOrigin::Damaged(folder.set_aside(FILE)?),
                Some((secret, of)) if *of == owner => {
                    let keys = MachineKeys::of(&MachineSecret::of(secret));
                    return Ok(Self { keys, origin: KeysOrigin::Kept });
                }
                Some(_) if id.is_none() => return Err(KeysError::NoId(folder.path().join(FILE))),
                Some(_) => KeysOrigin::Copied,
            },
        };
        let secret = MachineSecret::random().ok_or(KeysError::Random)?;
        let mut file = Zeroizing::new([secret.expose().as_slice(), &owner].concat());
        let checksum = Sha256::digest(&*file);
        file.reserve_exact(checksum.len());
        file.extend_from_slice(&checksum);
        folder.replace(FILE, &file)?;
        folder.flush_ancestors()?;
        Ok(Self { keys: MachineKeys::of(&secret), origin })
    }
}

/// The secret in a file, and the digest of the id of its machine.
fn checked(file: &[u8]) -> Option<(&[u8; MachineSecret::LENGTH], &[u8; DIGEST])> {
    let (stated, checksum) = file.split_at_checked(MachineSecret::LENGTH + DIGEST)?;
    (Sha256::digest(stated).as_slice() == checksum).then_some(())?;
    let (secret, owner) = stated.split_first_chunk()?;
    Some((secret, owner.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(directory: &Path, id: Option<&str>, wanted: KeysWanted) -> (String, KeysOrigin) {
        let OwnKeys { keys, origin } = OwnKeys::of_machine(directory, id, wanted).unwrap();
        (keys.identity().to_text(), origin)
    }

    #[test]
    fn keys_stay_until_new_ones_are_wanted_or_the_machine_is_another() {
        use KeysWanted::{New, Present};
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("state");
        let first = opened(&directory, Some("a"), Present);
        assert_eq!(first.1, KeysOrigin::First);
        assert_eq!(opened(&directory, Some("a"), Present), (first.0.clone(), KeysOrigin::Kept));
        assert!(matches!(OwnKeys::of_machine(&directory, None, Present), Err(KeysError::NoId(_))));
        let copied = opened(&directory, Some("b"), Present);
        assert_eq!(copied.1, KeysOrigin::Copied);
        let renewed = opened(&directory, Some("b"), New);
        assert_eq!(renewed.1, KeysOrigin::Renewed);
        assert!(first.0 != copied.0 && copied.0 != renewed.0);
        assert_eq!(opened(&directory, Some("b"), Present), (renewed.0, KeysOrigin::Kept));
    }

    /// The template of an image has no id yet.
    #[test]
    fn keys_of_a_machine_without_an_id_are_not_those_of_one_with_an_id() {
        let folder = tempfile::tempdir().unwrap();
        let first = opened(folder.path(), None, KeysWanted::Present);
        assert_eq!(opened(folder.path(), None, KeysWanted::Present), (first.0, KeysOrigin::Kept));
        assert_eq!(opened(folder.path(), Some("a"), KeysWanted::Present).1, KeysOrigin::Copied);
    }

    #[test]
    fn whatever_byte_of_the_file_is_changed_it_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        opened(folder.path(), Some("a"), KeysWanted::Present);
        let file = std::fs::read(folder.path().join(FILE)).unwrap();
        assert_eq!(checked(&file).map(|(_, owner)| *owner), Some(Sha256::digest("a").into()));
        for place in 0..file.len() {
            let mut changed = file.clone();
            changed[place] ^= 1;
            assert!(checked(&changed).is_none(), "byte {place}");
            assert!(checked(&file[..place]).is_none(), "{place} bytes");
        }
        std::fs::write(folder.path().join(FILE), &file[1..]).unwrap();
        let aside = folder.path().canonicalize().unwrap().join("machine.key.damaged");
        assert_eq!(opened(folder.path(), Some("a"), KeysWanted::Present).1, KeysOrigin::Damaged(Some(aside)));
    }
}
