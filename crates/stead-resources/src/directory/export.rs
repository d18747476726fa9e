//! A whole tree as instances.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use stead_core::call::{Exported, Failure};
use stead_core::id::{ResourceId, TypeName};
use stead_core::value::{Object, Value};
use stead_host::provider::{Context, Plain, TraceLevel};
use stead_system::fs::{self, FileKind, FsError, Handle, How, Patience, Place, Writes};
use stead_system::user::Names;

use super::Properties;
use crate::declared::Declared as _;
use crate::file::content::read_all;
use crate::input::{PathText, blocked, cannot, invalid, read_each};
use crate::permissions::{report_accounts, report_all};

/// A file of more would make a document that nobody can work with.
const MAX_SIZE: u64 = 64 * 1024 * 1024;

/// Which directory is exported, and how.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Filter<'a> {
    #[serde(borrow)]
    path: PathText<'a>,
    /// What the paths of the instances are relative to; by default they begin with `path` as it is written.
    #[serde(borrow)]
    relative_to: Option<PathText<'a>>,
    #[serde(default)]
    purge: bool,
}

/// Every directory, file and link below a path, each directory before what is in it.
///
/// What cannot be part of a document is left out with a warning: FIFOs, sockets and devices, what is mounted, what may
/// not be read, names that are not UTF-8, and huge files.
pub(super) fn tree(cx: &Context, input: &Plain, names: &Names) -> Result<Vec<Exported>, Failure> {
    let filter: Filter<'_> = read_each(input)?;
    let (text, path) = (filter.path.0, filter.path.resolve(cx));
    let base = filter.relative_to.map(|base| base.resolve(cx));
    let outside = || invalid(Properties::PATH, "'path' must be below 'relativeTo'");
    let shown = match &base {
        Some(base) => path.strip_prefix(&**base).map_err(|_| outside())?.to_owned(),
        None => PathBuf::from(text),
    };
    let shown = if shown.as_os_str().is_empty() { PathBuf::from(".") } else { shown };
    let missing = || blocked(Properties::PATH, format!("there is no directory '{}'", path.display()));
    let directory = fs::open(&path, How::Directory)?.ok_or_else(missing)?;
    let (patience, purge) = (cx.patience(), filter.purge);
    let mut export = Export { cx, names, patience, found: Vec::new(), containing: Vec::new(), purge };
    export.directory(&directory, &path, &shown)?;
    Ok(export.found)
}

/// What is in a directory, if that is known.
type Entries = Result<BTreeMap<OsString, FileKind>, FsError>;

struct Export<'a> {
    cx: &'a Context,
    names: &'a Names,
    patience: Patience,
    found: Vec<Exported>,
    /// The directories that are being listed, outermost first: what is in them needs them.
    containing: Vec<ResourceId>,
    /// Whether directories state their entries, so that others are removed.
    purge: bool,
}

impl Export<'_> {
    fn directory(&mut self, directory: &Handle, path: &Path, shown: &Path) -> Result<(), Failure> {
        let status = fs::status_of(directory, path)?;
        let listed = fs::entries(directory, path);
        let names_in = listed
            .as_ref()
            .ok()
            .filter(|_| self.purge)
            .map(|entries| entries.keys().filter_map(|name| name.to_str().map(Value::from)).collect::<Vec<_>>());
        self.add(None, shown, |names, state| {
            report_all(&status, names, state);
            if let Some(entries) = names_in {
                state.insert(Properties::ENTRIES.into(), entries.into());
                state.insert(Properties::PURGE.into(), true.into());
            }
        });
        let name = shown.to_string_lossy().into_owned();
        let depth = self.containing.len();
        self.containing.extend(
            TypeName::parse(super::Properties::PROFILE.type_name)
                .map(|type_name| ResourceId { type_name, name: name.into() }),
        );
        let done = self.below(directory, listed, path, shown);
        self.containing.truncate(depth);
        done
    }

    fn below(&mut self, directory: &Handle, listed: Entries, path: &Path, shown: &Path) -> Result<(), Failure> {
        let entries = match listed {
            Ok(entries) => entries,
            Err(error) => return self.skip(error),
        };
        for (name, kind) in entries {
            self.patience.check()?;
            if name.to_str().is_none() {
                self.warn(&path.join(&name), "its name is not UTF-8");
                continue;
            }
            // "." is what the base itself is called; below it plain names read better.
            let below = if shown == Path::new(".") { PathBuf::from(&name) } else { shown.join(&name) };
            self.entry(directory, &name, kind, &path.join(&name), &below)?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        parent: &Handle,
        name: &OsStr,
        kind: FileKind,
        path: &Path,
        shown: &Path,
    ) -> Result<(), Failure> {
        match kind {
            FileKind::Directory => match fs::open_below(parent, name, path) {
                Ok(Some(directory)) => self.directory(&directory, path, shown),
                Ok(None) => Ok(()),
                Err(error) => self.skip(error),
            },
            FileKind::File => self.file(parent, name, path, shown),
            FileKind::Symlink => self.link(parent, name, path, shown),
            FileKind::Special => {
                self.warn(path, &format!("it is a {}", FileKind::Special.word()));
                Ok(())
            }
        }
    }

    fn file(&mut self, parent: &Handle, name: &OsStr, path: &Path, shown: &Path) -> Result<(), Failure> {
        let place = Place::within(parent, name, path.to_owned(), &Writes::unrecorded())?;
        let file = match place.open(How::Read) {
            Ok(Some(fd)) => File::from(fd),
            Ok(None) => return Ok(()),
            Err(error) => return self.skip(error),
        };
        let status = fs::status_of(&file, path)?;
        if status.kind != FileKind::File || status.size > MAX_SIZE {
            self.warn(path, "it is not a file or too large for a document");
            return Ok(());
        }
        let bytes = read_all(&file).map_err(|error| cannot("read", path, error))?;
        self.add(Some("Stead/File"), shown, |names, state| {
            match String::from_utf8(bytes) {
                Ok(text) => state.insert("content".into(), Value::String(text)),
                Err(error) => state.insert("contentBase64".into(), Value::from(STANDARD.encode(error.as_bytes()))),
            };
            report_all(&status, names, state);
        });
        Ok(())
    }

    fn link(&mut self, parent: &Handle, name: &OsStr, path: &Path, shown: &Path) -> Result<(), Failure> {
        let place = Place::within(parent, name, path.to_owned(), &Writes::unrecorded())?;
        let Some(status) = place.status()?.filter(|status| status.kind == FileKind::Symlink) else { return Ok(()) };
        let Ok(target) = String::from_utf8(place.read_link()?) else {
            self.warn(path, "its target is not UTF-8");
            return Ok(());
        };
        self.add(Some("Stead/Symlink"), shown, |names, state| {
            state.insert("target".into(), Value::from(target));
            report_accounts(&status, names, state);
        });
        Ok(())
    }

    fn add(&mut self, type_name: Option<&str>, shown: &Path, fill: impl FnOnce(&Names, &mut Object)) {
        let shown = shown.to_string_lossy().into_owned();
        let mut state = Object::from([(Properties::PATH.to_owned(), Value::from(shown.as_str()))]);
        fill(self.names, &mut state);
        self.found.push(Exported {
            type_name: type_name.and_then(|name| TypeName::parse(name).ok()),
            name: Some(shown),
            properties: state.into(),
            depends_on: self.containing.last().cloned().into_iter().collect(),
            metadata: None,
        });
    }

    /// What cannot be opened is left out, and the rest is still exported.
    fn skip(&self, error: FsError) -> Result<(), Failure> {
        match error {
            FsError::Cancelled | FsError::Deadline(_) => Err(error.into()),
            error => {
                self.cx.say(TraceLevel::Warn, &format!("left out: {}", Failure::from(error).message));
                Ok(())
            }
        }
    }

    fn warn(&self, path: &Path, why: &str) {
        self.cx.say(TraceLevel::Warn, &format!("'{}' is left out: {why}", path.display()));
    }
}
