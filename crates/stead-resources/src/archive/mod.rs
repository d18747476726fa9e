//! `Stead/Archive`: what is in an archive, unpacked into a directory.
//!
//! Nothing is remembered about what was unpacked: the tree is compared with what the archive lists, by names, sizes,
//! modes and digests.

use std::fs::File;
use std::path::{Component, Path};
use std::sync::{Arc, Mutex, PoisonError};

use stead_core::call::{Execution, Failure, Presumed};
use stead_core::claims::{Claims, Extent, Ties};
use stead_core::destruction::{Effect, Effects};
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Cost, Plain, Provider, SetReply, State, TestReply};
use stead_system::clock;
use stead_system::fs::{
    self, FileKind, FsError, Handle, How, Identity, Ownership, Patience, Place, Status, SystemPath,
};
use stead_system::user::{Names, NamesByRoot};

use crate::checksum::Checksum;
use crate::declared::Declared as _;
use crate::directory::Drift;
use crate::file::content::open_source;
use crate::input::{ChecksumText, PathText, ReadOnly, blocked, impossible, invalid, read, required};
use crate::permissions::Permissions;
use crate::text::AccountName;
use crate::{BuiltIn, pending, reply};

mod format;
mod listing;
mod reading;
mod tree;

use listing::{Listing, Selection};
use reading::Verified;
use tree::{Comparison, Tree, changed_meanwhile};

/// The content of an archive (tar, also compressed with gzip, xz or zstd, or zip), unpacked into a directory. Files that
/// differ from the archive are replaced, each at once; what the archive does not have stays, and directories that exist keep
/// their mode and owner. An archive with an absolute path, a path or link that leads out of the directory, a device, or a
/// control character in a name is refused as a whole. So is one that is truncated or damaged, or has more than 250000
/// entries, 64 GiB of content, or 200 times its own size (256 MiB are always allowed). Owners, times, set-user-id,
/// set-group-id and sticky bits are not taken from it. Files of a zip archive that was made on Windows get 0644, its
/// directories 0755.
#[resource(
    "Stead/Archive",
    about = "The content of an archive, unpacked into a directory.",
    tags("file", "archive", "linux")
)]
struct Properties<'a> {
    /// The directory that it is unpacked into. A relative path starts at the directory of the document, or at the system
    /// root that was given. It is created if its parent directory exists.
    #[property(key, place)]
    path: PathText<'a>,
    /// The archive, a file on this machine. Required. Its content tells the format, not its name. A relative path starts
    /// at the directory of the document, or at the system root if the document itself manages that path.
    #[property(key)]
    source: Option<PathText<'a>>,
    /// The digest that the archive must have: 'sha256:' or 'sha512:' and hexadecimal digits. Then nothing else is unpacked,
    /// even if the archive is changed meanwhile.
    #[property(option)]
    checksum: Option<ChecksumText<'a>>,
    /// How many names at the beginning of each path in the archive are dropped. Paths with no more names are not unpacked.
    #[property(option)]
    #[serde(default)]
    #[schemars(range(max = 255))]
    strip_components: u32,
    /// Patterns of the paths that are unpacked, as they are after 'stripComponents'; all without them. '*' stands for any
    /// characters but '/', '**' for any directories. A directory that matches stands for what is in it.
    #[property(option)]
    #[serde(default)]
    include: Vec<&'a str>,
    /// Patterns of the paths that are not unpacked, as those of 'include'.
    #[property(option)]
    #[serde(default)]
    exclude: Vec<&'a str>,
    /// A path of the archive, relative to 'path'. Where something is there, nothing else is compared or changed.
    #[property(option)]
    creates: Option<PathText<'a>>,
    /// The name or number of the user that files, links and new directories belong to; the user who runs stead without it.
    owner: Option<AccountName<'a>>,
    /// The name or number of the group that files, links and new directories belong to.
    group: Option<AccountName<'a>>,
    /// Whether the archive is unpacked. With false the files and links that it lists are removed, also if they were changed,
    /// and its directories where nothing else is in them; 'path' itself stays. The archive must exist for that, unless 'path'
    /// is absent or empty.
    exist: bool,
    /// In what the directory differs from the archive: at most 100 lines such as 'missing: a/b' and 'different: c'.
    drift: Option<ReadOnly<Vec<String>>>,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {
    fn check(&self) -> Result<(), Failure> {
        if self.source.is_none() {
            return Err(required(&[Properties::SOURCE]));
        }
        let is_name = |component: Component<'_>| matches!(component, Component::Normal(_));
        let is_below = |path| Path::new(path).components().all(is_name);
        match self.creates {
            Some(path) if !is_below(path.0) => {
                Err(invalid(Properties::CREATES, "'creates' must be a path relative to 'path'"))
            }
            _ => Ok(()),
        }
    }
}

pub(crate) fn built_in() -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Archives::default()))
}

#[derive(Default)]
struct Archives {
    names: NamesByRoot,
    listings: Listings,
}

impl Provider for Archives {
    /// What the archive has lies below its path.
    fn has_state_elsewhere(&self, _cx: &Context, _input: &Plain) -> bool {
        true
    }

    fn validate(&self, cx: &Context, input: &Plain) -> Result<(), Failure> {
        let desired = Desired::read(cx, input, &self.names.of(&cx.system_root))?;
        desired.selection.check()
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let desired = Desired::read(cx, input, &self.names.of(&cx.system_root))?;
        self.look(cx, &desired).map(|look| Plain::new(desired.actual(&look)))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired = Desired::read(cx, input, &self.names.of(&cx.system_root))?;
        let look = self.look(cx, &desired)?;
        let differing = desired.differing(&look);
        let (actual, created) = (desired.actual(&look), look.top.is_none());
        Ok(reply::tested_as(actual, &differing, desired.reply(created, &differing, look.into_drift())))
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired = Desired::read(cx, input, &self.names.of(&cx.system_root))?;
        let look = match self.look(cx, &desired) {
            Err(failure) if execution == Execution::WhatIf && open_source(&desired.source).is_err() => {
                return desired.without_source(failure);
            }
            look => look?,
        };
        let differing = desired.differing(&look);
        let created = look.top.is_none();
        if differing.is_empty() {
            return Ok(desired.reply(created, &differing, None));
        }
        let presumed = desired.presumed(look.top.as_ref(), cx)?;
        let drift = match execution {
            Execution::WhatIf => look.into_drift(),
            Execution::Actual => Some(desired.carry_out(cx, look)?),
        };
        let presumed = presumed.filter(|_| execution == Execution::WhatIf);
        Ok(SetReply { presumed, ..desired.reply(created, &differing, drift) })
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        let desired = Desired { exist: false, ..Desired::read(cx, input, &self.names.of(&cx.system_root))? };
        let look = self.look(cx, &desired)?;
        if desired.differing(&look).is_empty() {
            return Ok(Vec::new());
        }
        if execution == Execution::Actual {
            desired.carry_out(cx, look)?;
            return Ok(Vec::new());
        }
        Ok(vec!["remove what the archive has".to_owned()])
    }

    fn cost(&self, _desired: &Value) -> Cost {
        Cost::Process
    }

    fn ties(&self, input: &Plain) -> Ties {
        reply::ties(input)
    }

    fn claims(&self, input: &Plain) -> Option<Claims> {
        let extent = if reply::is_removal(input) { Extent::Read } else { Extent::Tree { purge: false } };
        reply::claims(input, extent)
    }
}

impl Archives {
    /// Compares the directory with the archive.
    fn look(&self, cx: &Context, desired: &Desired<'_>) -> Result<Look, Failure> {
        let top = desired.open_top()?;
        if let (Some(creates), Some(_), true) = (desired.creates, &top, desired.exist)
            && Place::find(&desired.path.join(creates), &cx.writes)?
                .map(|place| place.status())
                .transpose()?
                .flatten()
                .is_some()
        {
            return Ok(Look { top, unpacked: None });
        }
        if !desired.exist && desired.is_nothing_in(top.as_ref())? {
            return Ok(Look { top, unpacked: None });
        }
        let (archive, status) = open_source(&desired.source).map_err(|failure| desired.unlisted(failure))?;
        let listing = self.listings.of(cx, desired, &archive, &status)?;
        if let Some(creates) = desired.creates.filter(|path| desired.exist && listing.get(Path::new(path)).is_none()) {
            return Err(impossible(Properties::CREATES, format!("the archive does not have '{creates}'")));
        }
        let tree = desired.tree(cx, &listing);
        let comparison = match &top {
            _ if desired.exist => tree.compare(top.as_ref(), Execution::WhatIf)?,
            Some(top) => Comparison::of_removal(tree.remove(top, Execution::WhatIf)?),
            None => Comparison::default(),
        };
        Ok(Look { top, unpacked: Some(Unpacked { archive, listing, comparison }) })
    }
}

/// What was found.
struct Look {
    /// The directory, if it exists.
    top: Option<Handle>,
    /// How it compares with the archive; `None` where nothing is to be compared, because of 'creates' or because nothing is
    /// there to be removed.
    unpacked: Option<Unpacked>,
}

struct Unpacked {
    archive: File,
    listing: Arc<Listing>,
    comparison: Comparison,
}

impl Look {
    /// What a set would change.
    fn into_drift(self) -> Option<Drift> {
        self.unpacked.map(|unpacked| unpacked.comparison.drift)
    }
}

struct Desired<'a> {
    path_text: &'a str,
    path: SystemPath,
    source_text: &'a str,
    source: SystemPath,
    checksum: Option<ChecksumText<'a>>,
    selection: Selection,
    creates: Option<&'a str>,
    permissions: Permissions<'a>,
    exist: bool,
}

impl<'a> Desired<'a> {
    fn read(cx: &Context, input: &'a Plain, names: &Names) -> Result<Self, Failure> {
        let stated: Properties<'a> = read(input)?;
        let source = stated.source.ok_or_else(|| required(&[Properties::SOURCE]))?;
        Ok(Self {
            path_text: stated.path.0,
            path: stated.path.resolve(cx),
            source_text: source.0,
            source: source.source(cx, Properties::SOURCE)?,
            checksum: stated.checksum,
            selection: Selection {
                strip: stated.strip_components as usize,
                include: stated.include.into_iter().map(str::to_owned).collect(),
                exclude: stated.exclude.into_iter().map(str::to_owned).collect(),
            },
            creates: stated.creates.map(|path| path.0),
            permissions: Permissions::find(cx, None, stated.owner, stated.group, names)?,
            exist: stated.exist,
        })
    }

    fn tree<'t>(&'t self, cx: &'t Context, listing: &'t Listing) -> Tree<'t> {
        // In what-if the owner may not exist yet; then everything differs.
        let ownership = self.permissions.ownership().unwrap_or_default();
        Tree { cx, listing, ownership, stated: self.path_text, path: &self.path }
    }

    fn open_top(&self) -> Result<Option<Handle>, Failure> {
        match fs::open(&self.path, How::Directory) {
            Err(FsError::WrongKind { found, .. }) => Err(not_a_directory(found)),
            Err(FsError::System { source, .. }) if source.kind() == std::io::ErrorKind::NotADirectory => {
                Err(not_a_directory(FileKind::File))
            }
            opened => Ok(opened?),
        }
    }

    fn differing(&self, look: &Look) -> Vec<&'static str> {
        let Some(Unpacked { comparison, .. }) = &look.unpacked else { return Vec::new() };
        match (self.exist, comparison.has_any) {
            (false, true) => vec![Properties::EXIST],
            (false, false) => Vec::new(),
            (true, _) if look.top.is_none() => vec![Properties::EXIST],
            (true, _) => comparison.drift.properties(),
        }
    }

    fn actual(&self, look: &Look) -> Object {
        let (unpacked, drift) = match &look.unpacked {
            None => (self.exist, None),
            Some(Unpacked { comparison, .. }) => (comparison.has_any, Some(&comparison.drift)),
        };
        let exists = look.top.is_some() && (unpacked || self.exist);
        let mut state = reply::state(self.path_text, exists);
        match drift.filter(|drift| !drift.properties().is_empty()) {
            _ if !exists => {}
            Some(drift) => _ = state.insert(Properties::DRIFT.to_owned(), Value::from(drift.lines())),
            None => self.echo(&mut state),
        }
        state
    }

    fn echo(&self, state: &mut Object) {
        state.insert(Properties::SOURCE.to_owned(), Value::from(self.source_text));
        self.permissions.echo(state);
    }

    /// The answer to a set that changes this.
    fn reply(&self, created: bool, differing: &[&str], drift: Option<Drift>) -> SetReply {
        let mut after = reply::state(self.path_text, self.exist);
        if self.exist {
            self.echo(&mut after);
        }
        if differing.is_empty() {
            return reply::set(after, differing, Vec::new());
        }
        let effect = match (self.exist, created) {
            (false, _) => Effect::Remove,
            (true, true) => Effect::Create,
            (true, false) => Effect::Change,
        };
        let summary = drift.as_ref().map(|drift| format!(" ({})", drift.summary())).unwrap_or_default();
        let verb = if self.exist { "unpack" } else { "remove the content of" };
        let what_if = vec![format!("{verb} '{}'{summary}", self.source_text)];
        let effects = drift.map(Drift::into_effects).unwrap_or_default();
        SetReply { effects: Effects { effect: Some(effect), ..effects }, ..reply::set(after, differing, what_if) }
    }

    /// In what-if: the archive may come from an instance before.
    fn without_source(&self, failure: Failure) -> Result<SetReply, Failure> {
        if !self.exist {
            return Err(failure);
        }
        let created = self.open_top()?.is_none();
        let missing = Some(Presumed::of(failure, vec![self.source.to_path_buf()]));
        let presumed = Presumed::all([missing, self.permissions.presumed()]);
        let differing = if created { Properties::EXIST } else { Properties::SOURCE };
        Ok(SetReply { presumed, ..self.reply(created, &[differing], None) })
    }

    /// What does not exist yet and is required to reach it.
    fn presumed(&self, top: Option<&Handle>, cx: &Context) -> Result<Option<Presumed>, Failure> {
        if let Some(missing) = self.permissions.presumed().filter(|_| self.exist) {
            return Ok(Some(missing));
        }
        let refused = match top {
            None => pending::at(&self.path)?,
            Some(top) => {
                let within = self.path.join("entry").into();
                pending::not_writable(&Place::within(top, "entry".as_ref(), within, &cx.writes)?)
            }
        };
        let ownership = self.permissions.ownership()?;
        Ok(refused.or_else(|| pending::not_owner(&self.path, ownership)))
    }

    fn carry_out(&self, cx: &Context, look: Look) -> Result<Drift, Failure> {
        let Some(Unpacked { archive, listing, .. }) = look.unpacked else { return Ok(Drift::default()) };
        let tree = Tree { ownership: self.permissions.ownership()?, ..self.tree(cx, &listing) };
        let top = match look.top {
            Some(top) => top,
            None if !self.exist => return Ok(Drift::default()),
            None => self.make_top(cx, tree.ownership)?,
        };
        if !self.exist {
            return tree.remove(&top, Execution::Actual);
        }
        let mut comparison = tree.compare(Some(&top), Execution::Actual)?;
        tree.write_files(&archive, &top, &mut comparison)?;
        Ok(comparison.drift)
    }

    fn make_top(&self, cx: &Context, ownership: Ownership) -> Result<Handle, Failure> {
        let place = Place::find(&self.path, &cx.writes)?.ok_or_else(|| pending::no_directory(&self.path))?;
        Ok(place.make_directory_with(TOP_MODE, ownership)?)
    }

    fn read_listing(&self, mut archive: &File, patience: &Patience) -> Result<Listing, Failure> {
        let Some(ChecksumText { checksum, .. }) = &self.checksum else {
            return Listing::read(&mut archive, &self.selection, patience);
        };
        match Verified::of(archive, checksum, patience)? {
            Some(mut verified) => Listing::read(&mut verified, &self.selection, patience),
            None => {
                Err(impossible(Properties::CHECKSUM, format!("'{}' does not have that digest", self.source.display())))
            }
        }
    }

    /// Returns whether nothing can be removed, whatever the archive lists.
    fn is_nothing_in(&self, top: Option<&Handle>) -> Result<bool, Failure> {
        let Some(top) = top else { return Ok(true) };
        Ok(fs::entries_up_to(top, &self.path, 1)?.0.is_empty())
    }

    /// The failure that the archive cannot be opened, which is what lists what is to be removed.
    fn unlisted(&self, failure: Failure) -> Failure {
        if self.exist {
            return failure;
        }
        let hint = "Without it, remove all of 'path' with Stead/Directory and '_exist: false'";
        Failure { message: format!("{}. Only the archive lists what to remove. {hint}", failure.message), ..failure }
    }
}

/// The mode of the directory itself where it is created.
const TOP_MODE: u32 = 0o755;

fn not_a_directory(found: FileKind) -> Failure {
    blocked(Properties::PATH, format!("there is a {} where the directory should be. Remove it first", found.word()))
}

/// The listings of the archives that were read last, so that a set after a test does not read them again.
#[derive(Default)]
struct Listings(Mutex<Vec<Known>>);

/// A listing, and what it was made of.
struct Known {
    identity: Identity,
    selection: Selection,
    /// The digest that the archive had while it was read, where one was stated.
    checksum: Option<Checksum>,
    listing: Arc<Listing>,
}

impl Listings {
    /// How many are kept: each may take megabytes.
    const KEPT: usize = 4;

    fn of(
        &self,
        cx: &Context,
        desired: &Desired<'_>,
        archive: &File,
        status: &Status,
    ) -> Result<Arc<Listing>, Failure> {
        let (identity, selection) = (status.identity, &desired.selection);
        let checksum = desired.checksum.as_ref().map(|stated| &stated.checksum);
        let is_same = |known: &Known| {
            known.identity == identity && known.selection == *selection && known.checksum.as_ref() == checksum
        };
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept().iter().find(|known| is_same(known)) {
            return Ok(Arc::clone(&known.listing));
        }
        let listing = Arc::new(desired.read_listing(archive, &cx.patience())?);
        let now = fs::status_of(archive, &desired.source)?;
        if now.identity != identity {
            return Err(changed_meanwhile());
        }
        if !identity.is_fresh(clock::now()) {
            let mut kept = kept();
            kept.truncate(Self::KEPT - 1);
            let (selection, checksum) = (selection.clone(), checksum.cloned());
            kept.insert(0, Known { identity, selection, checksum, listing: Arc::clone(&listing) });
        }
        Ok(listing)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_archive_that_changes_while_it_is_read_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a.tar");
        let archive = |name: &str, content: &[u8]| {
            let (mut builder, mut header) = (tar::Builder::new(Vec::new()), tar::Header::new_gnu());
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            builder.append_data(&mut header, name, content).unwrap();
            std::fs::write(&path, builder.into_inner().unwrap()).unwrap();
        };
        let (cx, names, listings) = (Context::new(root.path()), Names::default(), Listings::default());
        let input = Plain::new(json!({"path": "d", "source": "a.tar"}));
        let desired = Desired::read(&cx, &input, &names).unwrap();
        archive("one", b"");
        let (file, status) = open_source(&SystemPath::here(&path)).unwrap();
        assert!(listings.of(&cx, &desired, &file, &status).is_ok());
        archive("two", &[0; 513]);
        let failure = listings.of(&cx, &desired, &file, &status).err().unwrap();
        assert_eq!(failure.message, changed_meanwhile().message);
    }
}
