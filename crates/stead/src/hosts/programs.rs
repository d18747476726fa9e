//! Programs that are sent to machines which have none: for each kind of processor one, out of a folder of them or the own one.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use stead_core::digest::sha256;
use stead_engine::error_chain;
use stead_hosts::ProgramHeader;
use stead_system::fs::{TrustedFile, reason};
use stead_system::places;

use crate::exit::Exit;
use crate::input;
use crate::request::ArtifactsRequest;
use crate::terminal::{Output, complain, data_as, print_coloured, table, width};

/// The most bytes that a program may have.
const MOST_BYTES: u64 = 1 << 30;

/// One program, whole.
pub(super) struct Sent {
    pub(super) bytes: Vec<u8>,
    /// SHA-256, in hexadecimal digits.
    pub(super) digest: String,
    /// True if it needs no libraries of the machine.
    pub(super) is_static: bool,
    source: Source,
}

/// Where a program is from.
enum Source {
    Own,
    File(PathBuf),
}

/// The programs by kind of processor, as `uname -m` names it.
pub(super) struct Programs(BTreeMap<&'static str, Sent>);

impl Programs {
    /// Those of a folder, or else of the folders where they are installed; and for this processor the own one, where they have none.
    pub(super) fn of(folder: Option<&Path>) -> Result<Self, Exit> {
        let mut programs = BTreeMap::new();
        for folder in folder.map_or_else(places::artifacts, |folder| vec![folder.to_owned()]) {
            add(&folder, &mut programs).map_err(|why| unusable(&why))?;
        }
        if let (Some(folder), true) = (folder, programs.is_empty()) {
            complain(&format!("error: there is no program of stead {VERSION} in '{}'", folder.display()));
            complain(&format!(
                "help: unpack archives of stead there, such as stead-{VERSION}-aarch64-linux-musl.tar.gz"
            ));
            return Err(Exit::Unusable);
        }
        if !programs.contains_key(std::env::consts::ARCH) {
            let bytes = fs::read("/proc/self/exe")
                .map_err(|error| unusable(&format!("cannot read the own program: {error}")))?;
            let is_static = ProgramHeader::read(&bytes).is_some_and(|header| header.is_static);
            programs.insert(std::env::consts::ARCH, Sent::new(bytes, is_static, Source::Own));
        }
        Ok(Self(programs))
    }

    /// The program for a kind of processor.
    pub(super) fn get(&self, processor: &str) -> Option<&Sent> {
        self.0.get(processor)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &Sent)> {
        self.0.iter().map(|(processor, sent)| (*processor, sent))
    }
}

impl Sent {
    fn new(bytes: Vec<u8>, is_static: bool, source: Source) -> Self {
        let digest = sha256(&bytes);
        Self { bytes, digest, is_static, source }
    }

    fn linked(&self) -> &'static str {
        if self.is_static { "statically" } else { "dynamically" }
    }

    fn shown_source(&self) -> String {
        match &self.source {
            Source::Own => "this program".to_owned(),
            Source::File(path) => path.display().to_string(),
        }
    }
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn unusable(why: &str) -> Exit {
    complain(&format!("error: {why}"));
    Exit::Unusable
}

/// Adds the programs of this version in a folder, as archives of stead are unpacked there. A static one is preferred, and
/// what an earlier folder has.
fn add(folder: &Path, programs: &mut BTreeMap<&'static str, Sent>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot read the folder '{}': {}", folder.display(), reason(&error));
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(failed)?,
    };
    let names =
        entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let is_of_version =
        |name: &str| name.strip_prefix("stead-").is_some_and(|name| name.starts_with(&format!("{VERSION}-")));
    let mut paths: Vec<PathBuf> =
        names.iter().filter(|name| name.to_str().is_some_and(is_of_version)).map(|name| folder.join(name)).collect();
    paths.sort();
    let mut found: BTreeMap<&'static str, Sent> = BTreeMap::new();
    for path in paths.iter().map(|path| if path.is_dir() { path.join("bin/stead") } else { path.clone() }) {
        let bytes = read(&path)?;
        // Beside programs there may be their archives.
        let Some(header) = ProgramHeader::read(&bytes) else { continue };
        let is_better = found.get(header.processor).is_none_or(|known| header.is_static && !known.is_static);
        if is_better {
            found.insert(header.processor, Sent::new(bytes, header.is_static, Source::File(path)));
        }
    }
    for (processor, sent) in found {
        programs.entry(processor).or_insert(sent);
    }
    Ok(())
}

/// Reads a program. What root sends, root runs elsewhere: nobody else could have written it.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let failed = |why: &dyn std::fmt::Display| format!("cannot use the program '{}': {why}", path.display());
    let file = TrustedFile::open(path, input::trust_in_content()).and_then(|file| file.read());
    let file = file.map_err(|error| failed(&error_chain(&error)))?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    Ok(bytes)
}

/// Lists the programs that are sent to machines.
pub(crate) fn artifacts(request: &ArtifactsRequest) -> Exit {
    let programs = match Programs::of(request.folder.as_deref()) {
        Ok(programs) => programs,
        Err(exit) => return exit,
    };
    if request.output == Output::Text {
        let row = |(processor, sent): (&str, &Sent)| {
            vec![processor.to_owned(), sent.linked().to_owned(), sent.digest.clone(), sent.shown_source()]
        };
        let rows: Vec<_> = programs.iter().map(row).collect();
        print_coloured(&table(&["Processor", "Linked", "SHA-256", "Source"], &rows, width(&std::io::stdout())));
        return Exit::Success;
    }
    let program = |(processor, sent): (&str, &Sent)| {
        let path = if let Source::File(path) = &sent.source { Some(path) } else { None };
        json!({ "processor": processor, "static": sent.is_static, "bytes": sent.bytes.len(), "sha256": sent.digest, "path": path })
    };
    let programs: Vec<_> = programs.iter().map(program).collect();
    data_as(&json!({ "version": 1, "programs": programs }), request.output);
    Exit::Success
}
