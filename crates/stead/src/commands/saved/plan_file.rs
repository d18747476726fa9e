//! Files with plans: written for this user alone, and read by how they begin.

use std::fs::File;
use std::path::Path;

use stead_engine::error_chain;
use stead_system::fs::{OpenError, TrustedFile, Writes};

use super::super::files;
use crate::exit::Exit;
use crate::input;
use crate::terminal::complain;

/// How many bytes a saved plan may have: several times what a document may.
const MOST_BYTES: usize = 256 * 1024 * 1024;

/// Writes a text that begins so into a file that only this user can read, and that is new or begins so as well.
pub(crate) fn write(path: &Path, begin: &str, text: &str) -> Result<(), Exit> {
    if !files::may_become(path, begin) {
        complain(&format!("error: the plan was not saved: '{}' exists and is not a saved plan", path.display()));
        complain("help: choose another file name, or remove the file first");
        return Err(Exit::Failed);
    }
    if text.len() > MOST_BYTES {
        complain(&format!("error: the plan was not saved because it has more than {MOST_BYTES} bytes"));
        return Err(Exit::Failed);
    }
    let written = std::path::absolute(path).map_err(|error| stead_system::fs::reason(&error)).and_then(|absolute| {
        files::write(&absolute, text.as_bytes(), 0o600, &Writes::default()).map_err(|error| error_chain(&error))
    });
    written.map_err(|reason| {
        complain(&format!("error: the plan was not saved: {reason}"));
        Exit::Failed
    })
}

/// The text of a file that begins so; `None` where it holds something else, such as a document. Root reads only what nobody else
/// could have written.
pub(crate) fn own(path: &Path, begin: &str) -> Option<Result<String, Exit>> {
    read(path, begin, open_own)
}

/// The same for whoever only looks at it.
pub(crate) fn any(path: &Path, begin: &str) -> Option<Result<String, Exit>> {
    read(path, begin, |path| input::open(path).map_err(|error| unusable(&error)))
}

fn read(path: &Path, begin: &str, open: impl FnOnce(&Path) -> Result<File, Exit>) -> Option<Result<String, Exit>> {
    if input::is_standard(path) || !input::begins_with(path, begin) {
        return None;
    }
    let text = |file| input::read_open(path, file, MOST_BYTES).map_err(|error| unusable(&error));
    Some(open(path).and_then(text).map(|text| text.text))
}

fn unusable(error: &dyn std::fmt::Display) -> Exit {
    complain(&format!("error: {error}"));
    Exit::Unusable
}

/// Opens a plan that nobody could have written but the user who runs this, where that is root.
fn open_own(path: &Path) -> Result<File, Exit> {
    TrustedFile::open(path, input::trust_in_content()).and_then(|file| file.read()).map_err(|error| match error {
        OpenError::Untrusted(untrusted) => {
            complain(&format!("error: {}: the plan is not applied as root: {untrusted}", path.display()));
            complain("help: make a new plan as root, with 'stead plan --out', in a folder that only root can write");
            Exit::Unusable
        }
        error @ OpenError::System { .. } => unusable(&error_chain(&error)),
    })
}
