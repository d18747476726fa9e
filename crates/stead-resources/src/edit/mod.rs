//! Files of which resources edit a part: one way to read, lock and replace them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use stead_core::call::{Failure, FailureKind, Presumed};
use stead_host::predicted_files::PredictedFile;
use stead_host::provider::{Context, Plain};
use stead_system::fs::{self, Former, How, Ownership, Place, Replacement, Status, SystemPath, format_mode};
use stead_system::lock::LockError;

use crate::input::blocked;
use crate::pending;

mod cache;
mod patterns;
mod removed;
mod steps;

pub(crate) use cache::{Cache, Content, FileLocks, Text};
pub(crate) use patterns::{Match, Patterns, Position, compile, glob};
pub(crate) use removed::{line_steps, removed_lines};
pub(crate) use steps::{FileEdit, Steps};

/// What is done when the file does not exist.
#[derive(Clone, Copy)]
pub(crate) enum Missing {
    /// The call is refused.
    Refuse,
    /// It is created so.
    Create { mode: u32, ownership: Ownership },
    /// Like `Create`; an existing file, too, gets mode and owner when it is written. Its reader rejects a file of another owner,
    /// or with other bits in its mode than the tolerated ones.
    Enforce { mode: u32, ownership: Ownership, tolerated: u32 },
}

impl Missing {
    /// Returns the properties for which the reader of an existing file rejects it, each with its found and its wanted value.
    pub(crate) fn flaws(self, file: &Status) -> Vec<Flaw> {
        let Self::Enforce { mode, ownership, tolerated } = self else { return Vec::new() };
        let mut flaws = Vec::new();
        if file.mode & 0o7777 & !tolerated != 0 {
            flaws.push(Flaw { property: "mode", found: format_mode(file.mode), wanted: format_mode(mode) });
        }
        if let Some(uid) = ownership.uid.filter(|uid| *uid != file.uid) {
            let shown = |uid: u32| if uid == 0 { "root".to_owned() } else { uid.to_string() };
            flaws.push(Flaw { property: "owner", found: shown(file.uid), wanted: shown(uid) });
        }
        flaws
    }

    /// Limits a created file to its owner (mode 0600) if the properties hold a secret.
    pub(crate) fn private_if_secret(self, input: &Plain) -> Self {
        match self {
            Self::Create { ownership, .. } if input.is_secret() => Self::Create { mode: 0o600, ownership },
            other => other,
        }
    }

    /// The file is created with mode 0644, or refused.
    pub(crate) fn create_if(create: bool) -> Self {
        if create { Self::Create { mode: 0o644, ownership: Ownership::default() } } else { Self::Refuse }
    }
}

/// A property of a file for which its reader ignores it.
pub(crate) struct Flaw {
    pub(crate) property: &'static str,
    pub(crate) found: String,
    pub(crate) wanted: String,
}

/// What becomes of a file.
pub(crate) enum Outcome {
    /// It stays as it is.
    Keep,
    /// It gets this content.
    Write(Vec<u8>),
    /// It is removed.
    Remove,
}

/// What an edit does to a file.
pub(crate) struct Edit<R> {
    pub(crate) outcome: Outcome,
    /// What the caller makes of it.
    pub(crate) result: R,
}

/// Files that are edited by parts.
///
/// Guarantees: edits of one file, by whatever paths to its directory and whatever resources that share the locks, happen
/// one after the other; none is lost. The file is replaced at once and keeps its owner, its mode and its attributes. One
/// that is changed by others meanwhile is read again.
pub(crate) struct Files<T> {
    cache: Cache<T>,
    locks: FileLocks,
}

impl<T: Content> Files<T> {
    /// Files with locks that other resources share.
    pub(crate) fn new(locks: &FileLocks) -> Self {
        Self { cache: Cache::default(), locks: locks.clone() }
    }

    /// The text at a path, in what-if as the changes in front of the instance leave it; `None` when nothing is there.
    pub(crate) fn look(&self, cx: &Context, path: &SystemPath) -> Result<Option<Arc<Text<T>>>, Failure> {
        match cx.forecast.as_ref().and_then(|forecast| forecast.look(path)) {
            Some(PredictedFile { content, status }) => Ok(Some(Arc::new(Text::of(path, status, content.to_vec())?))),
            None => self.cache.look(path),
        }
    }

    /// In what-if: has those behind the instance find this content in place of a text.
    pub(crate) fn predict(cx: &Context, path: &Path, text: Option<&Text<T>>, missing: Missing, content: &[u8]) {
        let Some(forecast) = cx.forecast.as_ref().filter(|forecast| forecast.is_shared(path)) else { return };
        let Some((mode, ownership)) = rights(text, missing) else { return };
        let content: Arc<[u8]> = [mark(text), content].concat().into();
        let status = Status::to_come(mode, ownership.uid, ownership.gid, content.len() as u64);
        forecast.leave(path, PredictedFile { content, status });
    }

    /// Edits what is at a place: `decide` says what becomes of the text, and is asked again when that changed meanwhile.
    pub(crate) fn edit<R>(
        &self,
        cx: &Context,
        place: &Place,
        missing: Missing,
        mut decide: impl FnMut(Option<&Text<T>>) -> Result<Edit<R>, Failure>,
    ) -> Result<R, Failure> {
        let lock = self.locks.of(place)?;
        let _held = cache::hold(&lock);
        let _locked = place.lock(&cx.cancel, cx.deadline).map_err(|error| not_locked(place.path(), &error))?;
        fs::retry_changed(place.path(), || {
            let text = self.cache.look_at(place)?;
            let Edit { outcome, result } = decide(text.as_deref())?;
            let done = match outcome {
                Outcome::Keep => true,
                Outcome::Write(content) => self.replace(place, text.as_deref(), missing, content)?,
                Outcome::Remove => place.remove()?,
            };
            Ok(done.then_some(result))
        })
    }

    /// Returns false when somebody else changed the file meanwhile.
    fn replace(
        &self,
        place: &Place,
        text: Option<&Text<T>>,
        missing: Missing,
        content: Vec<u8>,
    ) -> Result<bool, Failure> {
        let (mode, ownership) = rights(text, missing).ok_or_else(|| no_file(place.path()))?;
        let former = text.map_or(Former::Absent, |text| Former::Unchanged(&text.status));
        let mut replacement = Replacement::begin(place, former)?;
        if let Some(former) = place.open(How::Read)? {
            replacement.keep_attributes(&former.into())?;
        }
        replacement.write(&[mark(text), content.as_slice()].concat())?;
        let Some(file) = replacement.finish(mode, ownership)? else { return Ok(false) };
        let status = fs::status_of(&file, place.path())?;
        // What was written was made of such content, so it is some as well.
        if let Ok(content) = T::of(content) {
            let has_mark = text.is_some_and(|text| text.has_mark);
            self.cache.remember(place.path(), Text { status, content, has_mark });
        }
        Ok(true)
    }
}

/// The mode and owner of a file that is written in place of a text; `None` where none is to be created.
fn rights<T>(text: Option<&Text<T>>, missing: Missing) -> Option<(u32, Ownership)> {
    match (text, missing) {
        (Some(text), Missing::Enforce { mode, ownership, .. }) => {
            let mode = if missing.flaws(&text.status).is_empty() { text.status.mode } else { mode };
            Some((mode, ownership.or(owner_of(&text.status))))
        }
        (Some(text), _) => Some((text.status.mode, owner_of(&text.status))),
        (None, Missing::Create { mode, ownership } | Missing::Enforce { mode, ownership, .. }) => {
            Some((mode, ownership))
        }
        (None, Missing::Refuse) => None,
    }
}

/// The byte order mark that a text keeps.
pub(crate) fn mark<T>(text: Option<&Text<T>>) -> &'static [u8] {
    if text.is_some_and(|text| text.has_mark) { cache::MARK } else { &[] }
}

/// The names of the files in a folder of the system that is managed, in order; none where there is no such folder.
pub(crate) fn files_in(cx: &Context, folder: &str) -> Result<Vec<String>, Failure> {
    let entries = entries_in(cx, folder)?;
    let files = entries.into_iter().filter(|(_, kind)| *kind == fs::FileKind::File);
    Ok(files.filter_map(|(name, _)| name.into_string().ok()).collect())
}

/// What is in a folder of the system that is managed, as that system finds it.
pub(crate) fn entries_in(cx: &Context, folder: &str) -> Result<BTreeMap<OsString, fs::FileKind>, Failure> {
    Ok(cx.system_root.entries(folder)?)
}

/// In what-if: what is not there yet without which the file at a path cannot be edited.
pub(crate) fn presumed<T>(
    path: &SystemPath,
    text: Option<&Text<T>>,
    missing: Missing,
) -> Result<Option<Presumed>, Failure> {
    // A file that is replaced is to belong to the owner of the former one.
    let ownership = match (text, missing) {
        (None, Missing::Refuse) => {
            return Ok(Some(Presumed::of(no_file(path), vec![path.to_path_buf()])));
        }
        (None, Missing::Create { ownership, .. }) | (_, Missing::Enforce { ownership, .. }) => ownership,
        (Some(text), _) => owner_of(&text.status),
    };
    Ok(pending::at(path)?.or_else(|| pending::not_owner(path, ownership)))
}

/// Where new lines come in a file: in front of the line of this index, and behind which one, if everybody can read the file.
/// What is in another one may be a secret.
pub(crate) fn place(at: usize, file: &Status, former: Option<&[u8]>) -> String {
    let former = former.filter(|_| file.mode & 0o004 != 0).map(String::from_utf8_lossy);
    let former = former.map(|former| format!(", behind '{former}'")).unwrap_or_default();
    format!("at line {}{former}", at + 1)
}

/// The failure that there is no file, and none is to be created.
pub(crate) fn no_file(path: &Path) -> Failure {
    let hint = "Add 'create: true', or add a Stead/File for it to the document";
    blocked("path", format!("there is no file '{}'. {hint}", path.display()))
}

fn owner_of(status: &Status) -> Ownership {
    Ownership { uid: Some(status.uid), gid: Some(status.gid) }
}

fn not_locked(path: &Path, error: &LockError) -> Failure {
    let kind = match error {
        LockError::Cancelled => FailureKind::Cancelled,
        LockError::Deadline { .. } => FailureKind::Deadline,
        _ => FailureKind::System,
    };
    Failure::new(kind, format!("cannot lock '{}': {error}", path.display()))
}
