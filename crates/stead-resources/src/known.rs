//! What was read from files, for as long as none of them changes.

use std::sync::{Arc, Mutex, PoisonError};

use stead_system::clock;
use stead_system::fs::{Identity, SystemPath};

/// What was last read, and from which files.
pub(crate) struct Known<T>(Mutex<Option<(Stamp, Arc<T>)>>);

/// Files, and what tells one state of them from every other. What does not exist is none.
type Stamp = Vec<(SystemPath, Option<Identity>)>;

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Known<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// What is read from these files. While they do not change it is read once.
    pub(crate) fn of<E>(&self, files: Vec<SystemPath>, read: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        let with_identity = |path: SystemPath| {
            let identity = path.followed().map(|status| status.identity);
            (path, identity)
        };
        let stamp: Stamp = files.into_iter().map(with_identity).collect();
        let began = clock::now();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, content)) = last.as_ref()
            && *known == stamp
        {
            return Ok(Arc::clone(content));
        }
        let content = Arc::new(read()?);
        // A change after it was read could leave what is fresh as it is.
        let mut identities = stamp.iter().filter_map(|(_, identity)| identity.as_ref());
        let is_fresh = identities.any(|identity| identity.is_fresh(began));
        *last = (!is_fresh).then(|| (stamp, Arc::clone(&content)));
        Ok(content)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn what_was_read_right_after_a_change_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let (file, known, reads) = (folder.path().join("f"), Known::new(), Cell::new(0));
        let read = || {
            let Ok(content) = known.of(vec![SystemPath::here(&file)], || {
                reads.set(reads.get() + 1);
                Ok::<_, Infallible>(std::fs::read_to_string(&file).unwrap())
            });
            content
        };
        std::fs::write(&file, "a").unwrap();
        let written = std::time::Instant::now();
        read();
        let is_fresh = written.elapsed() < std::time::Duration::from_millis(40);
        // Until this is past, another change could have the same time.
        stead_testkit::until(|| (written.elapsed() > std::time::Duration::from_millis(60)).then_some(()));
        assert_eq!((read().as_str(), reads.get()), ("a", if is_fresh { 2 } else { 1 }));
        let before = reads.get();
        assert_eq!((read().as_str(), reads.get()), ("a", before));
        std::fs::write(&file, "bc").unwrap();
        assert_eq!((read().as_str(), reads.get()), ("bc", before + 1));
    }
}
