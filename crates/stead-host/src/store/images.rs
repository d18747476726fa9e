//! What a run changes, as it was before: one file for each recorded run, sealed record by record (decision 0059).
//!
//! ```text
//! stead-images 1 NAME      the form, and the name that the key is derived from
//! LENGTH RECORD …          a record: the length of its entry, the entry as JSON, the content of a file
//! ```
//!
//! Guarantees: what is about to be changed is written before it is changed. A record that is torn, as after a power failure, ends
//! the file; one that does not fit is damage. The last record of a run that came to its end says so.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use stead_core::id::TypeName;
use stead_core::manifest::UndoWay;
use stead_system::fs::{Image, ImageNode, Keeper, Loss, Mark, SystemPath, SystemRoot};
use zeroize::Zeroizing;

use super::StoreError;
use super::sealing::{Keys, SealingPurpose, Sequence, TAG};

const HEADER: &str = "stead-images 1 ";

/// How much content one run keeps.
pub const MOST: u64 = 64 << 20;

/// Something that a run did, with what it takes to take it back.
#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Entry {
    /// The run began.
    Began(Scene),
    /// Something is about to be changed: what was there. The content of a file is beside it.
    Kept {
        /// Where, from the root of the system, without links.
        #[serde(with = "stead_system::fs::path_bytes")]
        path: PathBuf,
        /// What was there.
        image: Image,
        /// True if it takes the place of what was kept of the path before: that was not changed by this run.
        again: bool,
    },
    /// What the set of an instance left at a path.
    Left {
        /// The instance.
        instance: String,
        /// Where.
        #[serde(with = "stead_system::fs::path_bytes")]
        path: PathBuf,
        /// What is there now; `None` where it cannot be read.
        mark: Option<Mark>,
        /// True if the properties of the instance may hold secrets.
        #[serde(default = "is_covered")]
        covered: bool,
    },
    /// A set is about to begin that is not taken back by its files alone.
    Set(SetEntry),
    /// The run came to its end: nothing is missing behind it.
    Ended,
}

/// Records of earlier versions do not say it.
fn is_covered() -> bool {
    true
}

/// What a run is about.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scene {
    /// The root of the system; none is the running one.
    #[serde(with = "stead_system::fs::path_bytes::option")]
    pub root: Option<PathBuf>,
    /// The document.
    pub origin: String,
    /// The folder that relative paths start from.
    #[serde(with = "stead_system::fs::path_bytes")]
    pub folder: PathBuf,
    /// What acts on changes: each instance, with those whose changes it acts on.
    pub handlers: Vec<(String, Vec<String>)>,
    /// The name of the run that it takes back, if it does.
    #[serde(default)]
    pub undoes: Option<String>,
}

impl Scene {
    fn root(&self) -> &Path {
        self.root.as_deref().unwrap_or(Path::new("/"))
    }

    /// Where a path without links from the root of the system is: one in which a link is by now leads nowhere.
    pub fn place(&self, path: &Path) -> SystemPath {
        below(&SystemRoot::below(&real(self.root())), path)
    }
}

/// A root without links.
fn real(root: &Path) -> PathBuf {
    std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned())
}

fn below(root: &SystemRoot, path: &Path) -> SystemPath {
    root.at("/").join(path.strip_prefix("/").unwrap_or(path))
}

/// A set of an instance.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetEntry {
    /// The instance.
    pub instance: String,
    /// Its type.
    pub type_name: TypeName,
    /// How it is taken back.
    pub undo: UndoWay,
    /// The properties that it was called with, where they are needed again.
    pub desired: Option<Json>,
    /// True if the properties may hold secrets.
    pub covered: bool,
    /// The state before it, where that can be set again.
    pub before: Option<Json>,
}

/// The fate of a run whose changes cannot be kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnFailure {
    /// It changes nothing more.
    Stop,
    /// It goes on, with a warning, and cannot be taken back.
    GoOn,
}

/// Whether a run goes on or back. What an undo puts back may change the states that it reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// It brings the machine into the state of a document.
    Forward,
    /// It takes another run back.
    Back,
}

impl Direction {
    /// That of a run, given the name of the one that it takes back.
    pub fn of<T>(undoes: Option<&T>) -> Self {
        if undoes.is_some() { Self::Back } else { Self::Forward }
    }
}

/// Keeps what a run changes. Clones share it.
#[derive(Clone)]
pub struct Images(Arc<Kept>);

struct Kept {
    root: SystemRoot,
    base: PathBuf,
    direction: Direction,
    log: Mutex<Log>,
}

struct Log {
    /// `None` where there is none, or it was given up.
    file: Option<Sealed>,
    /// What was kept, for this process; `None` where nobody asks for it, or it was given up.
    memory: Option<Vec<Read>>,
    on_failure: OnFailure,
    room: u64,
    paths: HashMap<PathBuf, Standing>,
    /// The states of instances at the beginning of the run, as far as they were read then.
    states: BTreeMap<String, Json>,
}

/// The file that what is kept is sealed into.
struct Sealed {
    file: File,
    /// The beginning of the file, until that is written.
    header: Option<String>,
    sequence: Sequence,
}

/// What is known of a path that was kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Kept, and not changed yet.
    Kept,
    /// Changed, and its content was kept, or there was none.
    Whole,
    /// Changed in its mode, owner or attributes: its content is still what it was.
    InPart,
}

impl Standing {
    /// A path of which this was kept just now.
    fn before(image: &Image) -> Self {
        if image.node == ImageNode::SameContent { Self::InPart } else { Self::Kept }
    }

    /// The path is changed.
    fn change(&mut self) {
        if *self == Self::Kept {
            *self = Self::Whole;
        }
    }
}

impl Images {
    /// Begins to keep what a run changes, in a new file.
    ///
    /// # Errors
    /// When the file cannot be written, and it must be.
    pub fn begin(file: File, keys: &Keys, scene: Scene, on_failure: OnFailure) -> Result<Self, ImagesError> {
        let images = Self::without_file(scene.root(), Direction::of(scene.undoes.as_ref()), on_failure);
        images.open(file, keys, scene)?;
        Ok(images)
    }

    /// The keeper of the changes of a run below a root, without a file so far.
    pub fn without_file(root: &Path, direction: Direction, on_failure: OnFailure) -> Self {
        let base = real(root);
        let root = SystemRoot::below(&base);
        let (paths, states) = (HashMap::new(), BTreeMap::new());
        let log = Log { file: None, memory: None, on_failure, room: MOST, paths, states };
        Self(Arc::new(Kept { root, base, direction, log: Mutex::new(log) }))
    }

    /// Gives it a new file, before the run changes anything.
    ///
    /// # Errors
    /// When the file cannot be written, and it must be.
    pub fn open(&self, file: File, keys: &Keys, scene: Scene) -> Result<(), ImagesError> {
        let name = Keys::unused_name()?;
        let sequence = keys.sequences(SealingPurpose::IMAGES, &name)?.into_iter().next().ok_or(StoreError::Seal)?;
        let header = Some(format!("{HEADER}{name}\n"));
        let mut log = self.0.log();
        log.file = Some(Sealed { file, header, sequence });
        log.write(&Entry::Began(scene), &[])
    }

    /// Takes in what an earlier part of the run kept, so that all of it is kept together. What somebody changed since is kept
    /// again when it is replaced.
    ///
    /// # Errors
    /// When the file cannot be written, and it must be.
    pub fn go_on(&self, earlier: &[Read]) -> Result<(), ImagesError> {
        let mut log = self.0.log();
        for (entry, content) in earlier {
            match entry {
                Entry::Began(_) | Entry::Ended => continue,
                Entry::Kept { path, image, .. } => {
                    log.room = log.room.saturating_sub(content.len() as u64);
                    log.paths.insert(path.clone(), Standing::before(image));
                }
                Entry::Left { path, mark, .. } => {
                    let is_as_left = mark.is_some() && below(&self.0.root, path).mark() == *mark;
                    if let Some(standing) = log.paths.get_mut(path).filter(|_| is_as_left) {
                        standing.change();
                    }
                }
                Entry::Set(_) => {}
            }
            log.write(entry, content)?;
        }
        Ok(())
    }

    /// Begins to keep what a run changes, for this process alone.
    pub fn in_memory(scene: Scene) -> Self {
        Self::without_file(scene.root(), Direction::Forward, OnFailure::GoOn).remembering(scene)
    }

    /// Keeps it for this process as well.
    #[must_use]
    pub fn remembering(self, scene: Scene) -> Self {
        self.0.log().memory = Some(vec![(Entry::Began(scene), KeptContent::default())]);
        self
    }

    /// Takes what was kept for this process; `None` where that is not all.
    pub fn take(&self) -> Option<Vec<Read>> {
        self.0.log().memory.take()
    }

    /// What was kept for this process so far, which goes on; `None` where that is not all.
    pub fn so_far(&self) -> Option<Vec<Read>> {
        self.0.log().memory.clone()
    }

    /// Returns whether the run takes another one back.
    pub fn takes_back(&self) -> bool {
        self.0.direction == Direction::Back
    }

    /// Takes in the states that instances have before the run.
    pub fn know(&self, states: BTreeMap<String, Json>) {
        self.0.log().states = states;
    }

    /// The state that an instance had before the run, where it was read then.
    pub fn state_before(&self, instance: &str) -> Option<Json> {
        self.0.log().states.get(instance).cloned()
    }

    /// Keeps nothing more of a run, which goes on and cannot be taken back. That is reported once.
    pub fn give_up(&self, why: &str) {
        self.0.log().give_up(why);
    }

    /// Says that the run came to its end.
    pub fn end(&self) {
        // All is kept: where this cannot be written the undo names that.
        let _ = self.0.log().written(&Entry::Ended, &[]);
    }

    /// Says that the set of an instance is about to begin. What it changes is kept by what is returned; of one that is taken back by
    /// its files nothing else is.
    ///
    /// # Errors
    /// When the file cannot be written, and it must be: then nothing may be changed.
    pub fn set(&self, entry: SetEntry) -> Result<Arc<SetImages>, ImagesError> {
        let (instance, covered) = (entry.instance.clone(), entry.covered);
        if entry.undo != UndoWay::Files {
            self.0.log().write(&Entry::Set(entry), &[])?;
        }
        Ok(Arc::new(SetImages { kept: Arc::clone(&self.0), instance, covered, touched: Mutex::default() }))
    }
}

impl Kept {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A path without links as one from the root of the system.
    fn within(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.base).map_or_else(|_| path.to_owned(), |within| Path::new("/").join(within))
    }
}

impl Log {
    fn write(&mut self, entry: &Entry, content: &[u8]) -> Result<(), ImagesError> {
        match (self.written(entry, content), self.on_failure) {
            (Err(error), OnFailure::GoOn) => {
                self.give_up(&error.chain());
                Ok(())
            }
            (Err(error), OnFailure::Stop) => {
                // A part of a record may be in it, behind which no other is found.
                self.file = None;
                Err(error)
            }
            (written, _) => written,
        }
    }

    /// Leaves an empty file: a part of what the run changed would be taken for all of it.
    fn give_up(&mut self, why: &str) {
        (self.memory, self.room) = (None, 0);
        let Some(Sealed { file, .. }) = self.file.take() else { return };
        tracing::warn!("this run cannot be taken back: {why}");
        if let Err(error) = file.set_len(0) {
            tracing::warn!("cannot remove what was kept of this run: {error}");
        }
    }

    fn written(&mut self, entry: &Entry, content: &[u8]) -> Result<(), ImagesError> {
        if let Some(memory) = &mut self.memory {
            memory.push((entry.clone(), Zeroizing::new(content.to_vec())));
        }
        let Some(Sealed { file, header, sequence }) = &mut self.file else {
            let failed_before = || io::Error::other("an earlier write failed");
            return if self.on_failure == OnFailure::GoOn { Ok(()) } else { Err(failed_before().into()) };
        };
        let entry = serde_json::to_vec(entry).map_err(StoreError::Encode)?;
        let length = |bytes: usize| u32::try_from(bytes).map_err(|_| StoreError::Seal);
        // As long as it will be: a text that is moved while it grows leaves copies.
        let mut record = Zeroizing::new(Vec::with_capacity(entry.len() + content.len() + 4 + TAG));
        record.extend(length(entry.len())?.to_be_bytes());
        record.extend(entry);
        record.extend(content);
        sequence.seal(&mut record)?;
        let header = header.take().unwrap_or_default();
        let framed = [header.as_bytes(), length(record.len())?.to_be_bytes().as_slice(), &record].concat();
        Ok(file.write_all(&framed)?)
    }
}

/// Keeps what one set changes.
pub struct SetImages {
    kept: Arc<Kept>,
    instance: String,
    covered: bool,
    touched: Mutex<BTreeSet<PathBuf>>,
}

impl SetImages {
    /// Records what the set left where it changed something.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn over(&self) -> Result<(), ImagesError> {
        let touched = std::mem::take(&mut *self.touched());
        for path in touched {
            // One after the other: what is recorded last of a path is what is there then.
            let mut log = self.kept.log();
            let mark = below(&self.kept.root, &path).mark();
            let left = Entry::Left { instance: self.instance.clone(), path, mark, covered: self.covered };
            log.write(&left, &[])?;
        }
        Ok(())
    }

    fn touched(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keeper for SetImages {
    fn room(&self) -> u64 {
        self.kept.log().room
    }

    fn keep(&self, path: &Path, image: &Image, content: &[u8]) -> io::Result<()> {
        let path = self.kept.within(path);
        let mut log = self.kept.log();
        let again = match log.paths.get(&path) {
            Some(Standing::Whole) => {
                self.touched().insert(path);
                return Ok(());
            }
            Some(Standing::InPart) if image.node == ImageNode::SameContent => return Ok(()),
            Some(Standing::Kept) => true,
            None | Some(Standing::InPart) => false,
        };
        if let (ImageNode::Lost(loss), OnFailure::Stop) = (&image.node, log.on_failure) {
            let why = match loss {
                Loss::TooLarge => format!("does not fit: a run keeps {} MiB of former content in all", MOST >> 20),
                Loss::Special => "is neither a file, a directory nor a link".to_owned(),
                Loss::Unreadable => "cannot be read".to_owned(),
            };
            return Err(io::Error::other(format!("it {why}; omit '--record' to change it without a way back")));
        }
        log.room = log.room.saturating_sub(content.len() as u64);
        let entry = Entry::Kept { path: path.clone(), image: image.clone(), again };
        log.write(&entry, content).map_err(|error| match error {
            ImagesError::System(error) => error,
            other => io::Error::other(other),
        })?;
        log.paths.insert(path.clone(), Standing::before(image));
        drop(log);
        self.touched().insert(path);
        Ok(())
    }

    fn cannot(&self, error: io::Error) -> io::Result<()> {
        let mut log = self.kept.log();
        if log.on_failure == OnFailure::Stop {
            return Err(error);
        }
        log.give_up(&error.to_string());
        Ok(())
    }

    fn changed(&self, path: &Path) {
        let path = self.kept.within(path);
        if let Some(standing) = self.kept.log().paths.get_mut(&path) {
            standing.change();
        }
    }
}

/// The content of a file, which is wiped.
pub type KeptContent = Zeroizing<Vec<u8>>;

/// An entry of a file, with the content that is beside it.
pub type Read = (Entry, KeptContent);

/// Reads the entries of a file.
///
/// # Errors
/// When it is not such a file, was altered, or was sealed with another key.
pub fn read(bytes: &[u8], keys: &Keys) -> Result<Vec<Read>, ImagesError> {
    let Some((first, mut sequence, records)) = first(bytes, keys)? else { return Ok(Vec::new()) };
    let rest = records.map(|record| opened(&mut sequence, record).ok_or(ImagesError::Damaged));
    [Ok(first)].into_iter().chain(rest).collect()
}

/// The scene of what was kept of a run, without the rest of it; `None` where it was cut before that.
///
/// # Errors
/// As those of [`read`], as far as the scene is concerned.
pub fn scene(bytes: &[u8], keys: &Keys) -> Result<Option<Scene>, ImagesError> {
    Ok(match first(bytes, keys)? {
        Some(((Entry::Began(scene), _), ..)) => Some(scene),
        _ => None,
    })
}

/// The first entry, with what the others are opened by.
fn first<'b>(bytes: &'b [u8], keys: &Keys) -> Result<Option<(Read, Sequence, Records<'b>)>, ImagesError> {
    let end = bytes.iter().position(|byte| *byte == b'\n').ok_or(ImagesError::Damaged)?;
    let (header, rest) = bytes.split_at(end + 1);
    let header = std::str::from_utf8(header).map_err(|_| ImagesError::Damaged)?;
    let name = header.strip_prefix(HEADER).ok_or(ImagesError::Damaged)?.trim_end();
    let mut records = Records(rest);
    let Some(first) = records.next() else { return Ok(None) };
    let mut sequences = keys.sequences(SealingPurpose::IMAGES, name)?.into_iter();
    let found = sequences.find_map(|mut sequence| opened(&mut sequence, first).map(|read| (read, sequence)));
    let (read, sequence) = found.ok_or(ImagesError::Damaged)?;
    Ok(Some((read, sequence, records)))
}

fn opened(sequence: &mut Sequence, sealed: &[u8]) -> Option<Read> {
    let mut record = Zeroizing::new(sealed.to_vec());
    let text = sequence.open(&mut record)?;
    let (length, rest) = text.split_first_chunk()?;
    let (entry, content) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    Some((serde_json::from_slice(entry).ok()?, Zeroizing::new(content.to_vec())))
}

/// The sealed records that are complete.
struct Records<'b>(&'b [u8]);

impl<'b> Iterator for Records<'b> {
    type Item = &'b [u8];

    fn next(&mut self) -> Option<&'b [u8]> {
        let (length, rest) = self.0.split_first_chunk()?;
        let (record, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
        self.0 = rest;
        Some(record)
    }
}

/// Why what a run changes cannot be kept, or what was kept cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ImagesError {
    /// The file cannot be written or read.
    #[error("cannot keep what the run changes")]
    System(#[from] io::Error),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something other than this program changed it, or it was sealed with another key.
    #[error("it is damaged, or the key that it was sealed with is lost")]
    Damaged,
}

impl ImagesError {
    /// What failed, and why.
    pub(crate) fn chain(&self) -> String {
        use std::error::Error as _;
        self.source().map_or_else(|| self.to_string(), |source| format!("{self}: {source}"))
    }
}
