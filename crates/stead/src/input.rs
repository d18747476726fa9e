//! Reading what the command line names: documents, parameters, standard input.

mod parameters;

use std::fs::File;
use std::io::{self, BufRead, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stead_core::bundle::{self, Bundle, BundleError, Reach};
use stead_core::diag::{Diagnostic, any_error, did_you_mean, nearest};
use stead_core::identity::DocumentIdentity;
use stead_core::text::{self, Limits, Node, Source};
use stead_core::value::{Sensitive, Value};
use stead_system::Cancel;
use stead_system::fs::{Trust, User, is_endless, open_followed};
use stead_system::terminal::{Hidden, TerminalInput, wait_for_input};

use crate::request::{Given, Origin};
use crate::terminal::complain_text;
pub(crate) use parameters::{
    BadParameters, Contribution, ParameterSources, Recipient, contributions, of_environment, parameters, single,
};

use stead_engine::{Memory, NotOpened, Prepared, Session, error_chain, folder_of};

/// A text and what messages call it.
pub(crate) struct Text {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// What messages call standard input.
const STANDARD_INPUT: &str = "<stdin>";

/// What cannot be read, in one sentence.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    /// The file is not there, or not to be read.
    #[error("cannot read {path}: {}{}", stead_system::fs::reason(source), advice(path, source.kind()))]
    File { path: PathBuf, source: io::Error },
    /// It may have no end, or nobody who writes it.
    #[error("cannot read {path}: not a regular file")]
    NotAFile { path: PathBuf },
    /// It is larger than a document may be.
    #[error("{path} has more than {limit} bytes")]
    TooLarge { path: PathBuf, limit: usize },
    /// It is of another format, and the extension for that failed.
    #[error("cannot read {path}: {message}")]
    Import { path: PathBuf, message: String },
    /// It is a bundle that is damaged, or not one that can be used here.
    #[error("cannot use {path}: {error}")]
    Bundle { path: PathBuf, error: BundleError },
    /// It is a bundle where a text should be.
    #[error("cannot read {path}: it is a bundle, which plan, apply, check, graph, lint and 'agent apply' take")]
    NotText { path: PathBuf },
    /// The files of a bundle cannot be unpacked.
    #[error("{message}")]
    Unpack { message: String },
    /// There is nothing in it.
    #[error("Empty input provided{}", file.as_deref().map(|file| format!(": {file} is empty")).unwrap_or_default())]
    Empty { file: Option<String> },
    /// There is nothing in what should be a document.
    #[error("Empty input provided{}; a document begins with 'resources:'", file.as_deref().map(|file| format!(": {file} is empty")).unwrap_or_default())]
    NoDocument { file: Option<String> },
    /// Whoever reads it first gets all of it.
    #[error("standard input can be read only once; use a file for the other input")]
    StandardInputTwice,
    /// A path where a document should be.
    #[error("Document provided is a file path, use '--file' instead")]
    Path,
    /// A path where parameters should be.
    #[error("The parameters are a file path, use '--parameters-file' instead")]
    ParametersPath,
}

/// Returns advice about a file that cannot be read: the one that was probably meant.
fn advice(path: &Path, kind: io::ErrorKind) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let text = path.to_string_lossy();
    match kind {
        io::ErrorKind::NotFound if text.contains("://") => Some(
            "; a URL is not read: write it to a file, or to standard input, as `curl -fsSL URL | stead plan -`"
                .to_owned(),
        ),
        io::ErrorKind::NotFound if text.split(',').nth(1).is_some() => {
            Some("; one file is named here, and machines by '--host NAME', once for each".to_owned())
        }
        io::ErrorKind::NotFound => {
            let names = file_names(folder);
            let meant = path.file_name().and_then(|name| nearest_file(name.to_str()?, &names));
            meant.map(|meant| format!("; {}", did_you_mean(&path.with_file_name(meant).display().to_string())))
        }
        io::ErrorKind::IsADirectory => {
            let names = file_names(path);
            let document = names.iter().find(|name| [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end)));
            let example = document.map(|name| format!(", such as {}", path.join(name).display()));
            Some(format!("; name a file in it{}", example.unwrap_or_default()))
        }
        _ => None,
    }
    .unwrap_or_default()
}

/// The file that was probably meant by a name: of those that differ least before the first dot, the one with the same ending, or a document.
fn nearest_file<'n>(name: &str, names: &'n [String]) -> Option<&'n str> {
    let parts = |name: &'n str| name.split_once('.').unwrap_or((name, ""));
    let (stem, ending) = name.split_once('.').filter(|(stem, _)| !stem.is_empty())?;
    let has = |stem: &str| names.iter().any(|name| parts(name).0 == stem);
    let meant = if has(stem) { stem } else { nearest(stem, names.iter().map(|name| parts(name).0))? };
    let alike = || names.iter().map(String::as_str).filter(|name| parts(name).0 == meant);
    let is_document =
        |name: &&str| !name.contains(".test.") && [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end));
    alike().find(|name| parts(name).1 == ending).or_else(|| alike().find(is_document))
}

/// The names of the files in a folder, some of them where there are very many.
fn file_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(1000);
    let mut names: Vec<String> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// Reads a document, or the bundle of one, whose files the session then uses instead of those in the folder.
fn loaded(session: &mut Session, path: &Path) -> Result<Text, Unreadable> {
    let as_document = |error| match error {
        Unreadable::Empty { file } => Unreadable::NoDocument { file },
        other => other,
    };
    let bundle = match delivered(session, path).map_err(as_document)? {
        Delivered::Document(text) => return Ok(text),
        Delivered::Bundle(bundle) => Arc::new(bundle),
    };
    let (name, text) = bundle.document();
    let text = Text { name: name.to_owned(), text: text.to_string() };
    opened(session, &bundle, path)?;
    not_empty(text)
}

/// The document that a request names; the session then uses the files of the bundle that it came in.
pub(crate) fn requested(session: &mut Session, origin: &Origin) -> Result<Text, Unreadable> {
    match origin {
        Origin::Path(path) => loaded(session, path),
        Origin::Made(made) => {
            made.bundle.iter().try_for_each(|bundle| opened(session, bundle, &made.path))?;
            Ok(Text { name: made.name.clone(), text: made.text.clone() })
        }
    }
}

/// Has a session use the files of a bundle, which comes from this path.
pub(crate) fn opened(session: &mut Session, bundle: &Arc<Bundle>, path: &Path) -> Result<(), Unreadable> {
    session.open_bundle(bundle).map_err(|error| match error {
        NotOpened::Bundle(error) => Unreadable::Bundle { path: shown(path).into(), error },
        NotOpened::Unpack(error) => Unreadable::Unpack { message: error_chain(&error) },
    })
}

/// The input of a command: a document, or the bundle of one.
pub(crate) enum Delivered {
    Document(Text),
    Bundle(Bundle),
}

/// Reads a document, or the bundle of one, from a file or standard input.
pub(crate) fn delivered(session: &Session, path: &Path) -> Result<Delivered, Unreadable> {
    // What cannot be read is reported as a document that cannot.
    if path.is_file() && !is_standard(path) && !begins_with(path, bundle::BEGIN) {
        return document(session, path).map(Delivered::Document);
    }
    let bytes = read_document_or_bundle(path)?;
    if !bytes.starts_with(bundle::BEGIN.as_bytes()) {
        return text_of(path, shown(path), bytes).map(Delivered::Document);
    }
    let decoded = Bundle::decode(&bytes, Reach::Folder, None);
    decoded.map(Delivered::Bundle).map_err(|error| Unreadable::Bundle { path: shown(path).into(), error })
}

/// Reads what can be read only once: how much it may be depends on what it begins with.
fn read_document_or_bundle(path: &Path) -> Result<Vec<u8>, Unreadable> {
    let mut input: Box<dyn Read> = if is_standard(path) { Box::new(io::stdin().lock()) } else { Box::new(open(path)?) };
    let mut begin = Vec::new();
    let failed = |source| Unreadable::File { path: path.to_path_buf(), source };
    input.by_ref().take(bundle::BEGIN.len() as u64).read_to_end(&mut begin).map_err(failed)?;
    let is_bundle = begin == bundle::BEGIN.as_bytes();
    let limit = if is_bundle { MOST_OF_BUNDLE } else { Limits::default().bytes };
    bytes_of(path, begin.as_slice().chain(input), 0, limit)
}

/// Returns whether a regular file begins with this text.
pub(crate) fn begins_with(path: &Path, text: &str) -> bool {
    let mut begin = Vec::new();
    let file = path.is_file().then(|| File::open(path).ok()).flatten();
    let read = file.map(|file| file.take(text.len() as u64).read_to_end(&mut begin));
    matches!(read, Some(Ok(_))) && begin == text.as_bytes()
}

/// Returns whether a path stands for standard input.
pub(crate) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns the name of a path in messages, also for standard input.
pub(crate) fn shown(path: &Path) -> String {
    if is_standard(path) { STANDARD_INPUT.to_owned() } else { path.display().to_string() }
}

/// The largest file of a bundle, in bytes: its contents and its manifest.
const MOST_OF_BUNDLE: usize = 80 << 20;

/// Reads a document: as [`read`] does, but what is of another format is read by the extension for that.
pub(crate) fn document(session: &Session, path: &Path) -> Result<Text, Unreadable> {
    // Programs of extensions run in a directory of their own.
    let file = std::path::absolute(path).ok().filter(|file| !is_standard(path) && file.is_file());
    match file.and_then(|file| session.extensions().import(&file)) {
        None => read(path),
        Some(Ok(text)) => not_empty(Text { name: path.display().to_string(), text }),
        Some(Err(failure)) => Err(Unreadable::Import { path: path.to_path_buf(), message: failure.message }),
    }
}

/// The folder that relative paths start from in what a path names.
pub(crate) fn folder(path: &Path) -> PathBuf {
    if is_standard(path) { current_folder() } else { folder_of(path) }
}

/// Returns the memory between runs of the document in a file, or from standard input for `-`.
pub(crate) fn memory(session: &Session, prepared: &Prepared, path: &Path) -> Memory {
    let real = |path: &Path| {
        let real = std::fs::canonicalize(path).or_else(|_| std::path::absolute(path));
        real.unwrap_or_else(|_| path.to_path_buf())
    };
    let unnamed = || match path {
        input if is_standard(input) => DocumentIdentity::of_input(&real(session.root())),
        _ => DocumentIdentity::of_file(&real(path)),
    };
    let stated = match session.opened_bundle() {
        Some(bundle) => bundle.identity().cloned(),
        None => prepared.stated_identity(),
    };
    session.memory(&stated.unwrap_or_else(unnamed))
}

/// Where this process is; the root if that is gone.
pub(crate) fn current_folder() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"))
}

/// Reads a file, or standard input for `-`.
pub(crate) fn read(path: &Path) -> Result<Text, Unreadable> {
    read_at_most(path, Limits::default().bytes)
}

/// The same, of a file that may have so many bytes.
fn read_at_most(path: &Path, limit: usize) -> Result<Text, Unreadable> {
    text_of(path, shown(path), read_bytes(path, limit)?)
}

/// Reads a file, or standard input for `-`, that has at most so many bytes.
pub(crate) fn read_bytes(path: &Path, limit: usize) -> Result<Vec<u8>, Unreadable> {
    if is_standard(path) {
        tracing::debug!("Reading input from standard input");
        return bytes_of(path, io::stdin().lock(), 0, limit);
    }
    tracing::debug!("Reading input from file {}", path.display());
    bytes_of_file(path, open(path)?, limit)
}

/// The text of a file that was opened; the path is for messages.
pub(crate) fn read_open(path: &Path, file: File, limit: usize) -> Result<Text, Unreadable> {
    text_of(path, path.display().to_string(), bytes_of_file(path, file, limit)?)
}

fn bytes_of_file(path: &Path, file: File, limit: usize) -> Result<Vec<u8>, Unreadable> {
    let expected = file.metadata().map_or(0, |metadata| metadata.len());
    bytes_of(path, file, expected, limit)
}

fn bytes_of(path: &Path, input: impl Read, expected: u64, limit: usize) -> Result<Vec<u8>, Unreadable> {
    // One byte more than allowed is enough to know that it is too much.
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    bytes.reserve_exact(usize::try_from(expected.min(most)).unwrap_or(0).saturating_add(1));
    let failed = |source| Unreadable::File { path: path.to_path_buf(), source };
    input.take(most).read_to_end(&mut bytes).map_err(failed)?;
    match bytes.len() > limit {
        true if limit < MOST_OF_BUNDLE && bytes.starts_with(bundle::BEGIN.as_bytes()) => Err(not_text(path)),
        true => Err(Unreadable::TooLarge { path: path.to_path_buf(), limit }),
        false => Ok(bytes),
    }
}

fn not_text(path: &Path) -> Unreadable {
    Unreadable::NotText { path: shown(path).into() }
}

fn text_of(path: &Path, name: String, bytes: Vec<u8>) -> Result<Text, Unreadable> {
    if bytes.starts_with(bundle::BEGIN.as_bytes()) {
        return Err(not_text(path));
    }
    let unreadable = |reason| {
        let source = io::Error::new(io::ErrorKind::InvalidData, reason);
        Unreadable::File { path: path.to_path_buf(), source }
    };
    if is_utf16(&bytes) {
        return Err(unreadable("it is UTF-16 text; save it as UTF-8".to_owned()));
    }
    let text = String::from_utf8(bytes).map_err(|error| unreadable(not_utf8(error.utf8_error())))?;
    not_empty(Text { name, text })
}

/// Returns whether a text begins as the UTF-16 that programs of Windows write, with a byte order mark or without.
fn is_utf16(bytes: &[u8]) -> bool {
    matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [1..=255, 0, 1..=255, 0, ..] | [0, 1..=255, 0, 1..=255, ..])
}

fn not_utf8(error: std::str::Utf8Error) -> String {
    format!("it is not UTF-8 text (byte {}); save it in that encoding", error.valid_up_to() + 1)
}

/// Returns whether somebody can answer on standard input.
pub(crate) fn is_terminal() -> bool {
    io::stdin().is_terminal()
}

/// Reads a line with its end, at most so many bytes of it; empty where nothing more comes. Memory that is not there is an error.
pub(crate) fn line(input: &mut impl BufRead, longest: usize) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    loop {
        let found = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            found => found?,
        };
        let found = found.get(..longest.saturating_sub(line.len())).unwrap_or(found);
        let end = found.iter().position(|byte| *byte == b'\n');
        let part = end.and_then(|end| found.get(..=end)).unwrap_or(found);
        line.try_reserve(part.len())?;
        line.extend_from_slice(part);
        let (taken, is_over) = (part.len(), end.is_some() || part.is_empty());
        input.consume(taken);
        if is_over {
            return Ok(line);
        }
    }
}

/// The longest password.
const LONGEST_PASSWORD: usize = 64 << 10;

/// The line that somebody types; `None` when the session is cancelled first, or nothing more comes.
pub(crate) fn answer(cancel: &Cancel) -> Option<String> {
    // A signal may come between the look at `cancel` and the wait for input.
    const CANCEL_POLL: Duration = Duration::from_millis(50);
    let stdin = io::stdin();
    let typed = loop {
        if cancel.is_cancelled() {
            break false;
        }
        match wait_for_input(&stdin, CANCEL_POLL) {
            TerminalInput::Nothing => {}
            found => break found == TerminalInput::Ready,
        }
    };
    let mut line = String::new();
    let read = typed && stdin.read_line(&mut line).is_ok_and(|bytes| bytes > 0);
    read.then_some(line)
}

/// Whose files this user trusts where their content counts, and not where they are.
pub(crate) fn trust_in_content() -> Trust {
    if User::current().trust() == Trust::Root { Trust::RootAnywhere } else { Trust::Everyone }
}

/// Reads a line that is typed without being shown, or else the first line of standard input; `None` where there is nothing.
pub(crate) fn password(question: &str, cancel: &Cancel) -> Option<Sensitive<String>> {
    if !is_terminal() {
        let line = line(&mut io::stdin().lock(), LONGEST_PASSWORD).ok()?;
        return without_end(&Sensitive::new(String::from_utf8(line).ok()?));
    }
    let hidden = Hidden::begin(io::stdin()).ok()?;
    complain_text(question);
    let line = answer(cancel).map(Sensitive::new);
    drop(hidden);
    complain_text("\n");
    without_end(&line?)
}

fn without_end(line: &Sensitive<String>) -> Option<Sensitive<String>> {
    let text = line.expose().trim_end_matches(['\n', '\r']);
    (!text.is_empty()).then(|| Sensitive::new(text.to_owned()))
}

/// Opens a file without waiting for anybody. Of pipes, only those that this process was started with are read: a shell
/// makes them for `<(...)`, and somebody writes them.
pub(crate) fn open(path: &Path) -> Result<File, Unreadable> {
    let failed = |source| Unreadable::File { path: path.to_path_buf(), source };
    let inherited = ["/dev/fd", "/proc/self/fd"].iter().any(|folder| path.parent() == Some(Path::new(folder)))
        || path == Path::new("/dev/stdin");
    if inherited {
        return File::open(path).map_err(failed);
    }
    let file = open_followed(path).map_err(failed)?;
    // Reading a directory fails with a reason that says so.
    if is_endless(&file.metadata().map_err(failed)?) && path != Path::new("/dev/null") {
        Err(Unreadable::NotAFile { path: path.to_path_buf() })
    } else {
        Ok(file)
    }
}

/// Reads a text that is given to a command, of a format of others as well where it is in a file.
pub(crate) fn given(session: &Session, given: &Given) -> Result<Text, Unreadable> {
    match given {
        Given::Inline(text) => inline(text),
        Given::File(path) => document(session, path),
    }
}

/// What stands on the command line itself.
pub(crate) fn inline(text: &str) -> Result<Text, Unreadable> {
    tracing::debug!("Reading input from command line parameter");
    if !text.is_empty() && !text.contains('\n') && text.len() < 4096 && Path::new(text).exists() {
        return Err(Unreadable::Path);
    }
    not_empty(Text { name: "<input>".to_owned(), text: text.to_owned() })
}

fn inline_parameters(text: &str) -> Result<Text, Unreadable> {
    match inline(text) {
        Ok(text) => Ok(Text { name: "<parameters>".to_owned(), ..text }),
        Err(Unreadable::Path) => Err(Unreadable::ParametersPath),
        Err(other) => Err(other),
    }
}

fn not_empty(text: Text) -> Result<Text, Unreadable> {
    if text.text.trim_matches(['\u{feff}', ' ', '\t', '\r', '\n']).is_empty() {
        // What stands in angle brackets is not the name of a file.
        Err(Unreadable::Empty { file: Some(text.name).filter(|name| !name.starts_with('<')) })
    } else {
        Ok(text)
    }
}

/// Reads JSON or YAML that is not a document.
pub(crate) fn value(session: &mut Session, from: &Text) -> Result<Value, Vec<Diagnostic>> {
    tree(session, from).map(|node| node.literal())
}

/// It may hold secrets: findings show nothing of it.
pub(crate) fn tree(session: &mut Session, from: &Text) -> Result<Node, Vec<Diagnostic>> {
    let source = Source::new(from.name.clone(), &from.text).private();
    let text = Arc::clone(&source.text);
    let (node, mut findings) = text::read(session.sources.add(source), &text, &Limits::default());
    findings = findings.into_iter().map(|finding| finding.without_words_of(&text)).collect();
    let is_usable = !any_error(&findings);
    for finding in findings.iter().filter(|_| is_usable) {
        tracing::warn!("{}", finding.brief(&session.sources));
    }
    node.filter(|_| is_usable).ok_or(findings)
}
