//! A folder with releases.

use std::ffi::OsStr;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use stead_engine::error_chain;
use stead_release::SourceFile;
use stead_system::fs::{OpenError, Trust, TrustedDirectory, reason};

use super::{Fetch, FetchError, longest};

/// The files of a folder. Whoever can write to it can keep releases back, and nothing else: so it may be anybody's.
///
/// Guarantees: what is not a regular file is refused and never waited for.
pub(super) struct FolderFiles {
    path: PathBuf,
}

impl FolderFiles {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }
}

fn unreadable(path: &Path, why: &str) -> FetchError {
    FetchError::new(format!("cannot read '{}': {why}", path.display()))
}

/// `None` where there is nothing of that name.
fn if_there<T>(opened: Result<T, OpenError>, path: &Path) -> Result<Option<T>, FetchError> {
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(unreadable(path, &error_chain(&error))),
    }
}

impl Fetch for FolderFiles {
    fn begin(&mut self) -> Result<(), FetchError> {
        let opened = TrustedDirectory::open(&self.path, Trust::Everyone);
        opened.map(drop).map_err(|error| FetchError::new(error_chain(&error)))
    }

    fn file(&mut self, file: &SourceFile) -> Result<Option<Vec<u8>>, FetchError> {
        let path = self.path.join(file.to_string());
        let folder = path.parent().unwrap_or(&self.path);
        let Some(opened) = if_there(TrustedDirectory::open(folder, Trust::Everyone), &path)? else { return Ok(None) };
        let name = path.file_name().unwrap_or(OsStr::new(""));
        let Some((content, _)) = if_there(opened.readable(name), &path)? else { return Ok(None) };
        let (mut bytes, most) = (Vec::new(), longest(file));
        let read = content.take(most + 1).read_to_end(&mut bytes);
        read.map_err(|error| unreadable(&path, &reason(&error)))?;
        if bytes.len() as u64 > most { Err(unreadable(&path, "it is too large")) } else { Ok(Some(bytes)) }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_a_folder_has_is_read_and_nothing_is_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let mut files = FolderFiles::new(place.path().join("source"));
        assert!(files.begin().unwrap_err().reason.contains("source"), "there is no folder");
        fs::create_dir_all(place.path().join("source/web")).unwrap();
        assert_eq!(files.begin(), Ok(()));
        let release = |number| SourceFile::Release("web".parse().unwrap(), number);
        assert_eq!(files.file(&SourceFile::Root), Ok(None));
        assert_eq!(files.file(&SourceFile::Signers(1)), Ok(None));
        assert_eq!(files.file(&release(1)), Ok(None));
        fs::write(place.path().join("source/web/1.release"), "one").unwrap();
        assert_eq!(files.file(&release(1)), Ok(Some(b"one".to_vec())));
        // What never ends, what is a folder, and what leads nowhere.
        symlink("/dev/zero", place.path().join("source/root")).unwrap();
        fs::create_dir(place.path().join("source/roster")).unwrap();
        symlink("nowhere", place.path().join("source/web/2.release")).unwrap();
        assert!(files.file(&SourceFile::Root).is_err());
        assert!(files.file(&SourceFile::Roster).is_err());
        assert_eq!(files.file(&release(2)), Ok(None));
        // A sparse file that is larger than a statement may be.
        let large = fs::File::create(place.path().join("source/web/3.release")).unwrap();
        large.set_len(stead_release::LONGEST as u64 + 1).unwrap();
        assert!(files.file(&release(3)).unwrap_err().reason.ends_with("it is too large"));
    }
}
