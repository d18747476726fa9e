//! The repository as the checks see it: its text files and what cargo knows of its packages.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Something that a check does not accept.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) line: Option<usize>,
    pub(crate) message: String,
}

impl Finding {
    pub(crate) fn at(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: Some(line), message: message.into() }
    }

    pub(crate) fn of(path: &str, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: None, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.message),
            None => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

/// Every text file by its path from the root, with `/` between folders, and the answer of `cargo metadata`.
pub(crate) struct Repository {
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) metadata: Value,
}

impl Repository {
    /// Reads all of it. The folder is walked instead of asking git, so that a released archive is checked the same way.
    pub(crate) fn read() -> Result<Self, String> {
        let root = root();
        Ok(Self { files: files_below(&root)?, metadata: metadata(&root)? })
    }

    /// A file that must exist.
    pub(crate) fn text(&self, path: &str) -> Result<&str, Finding> {
        self.files.get(path).map(String::as_str).ok_or_else(|| Finding::of(path, "is missing"))
    }

    /// The packages of this workspace.
    pub(crate) fn members(&self) -> impl Iterator<Item = Package<'_>> {
        self.packages().filter(|package| package.source().is_none())
    }

    /// All packages that a build for Linux takes, tests included.
    pub(crate) fn packages(&self) -> impl Iterator<Item = Package<'_>> {
        array(&self.metadata, "packages").iter().map(Package)
    }

    /// The Rust files below the `src` folders of members, tests of their own left out.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        let roots: Vec<String> = self.members().map(|member| member.folder() + "/src/").collect();
        self.files.iter().filter_map(move |(path, text)| {
            let is_source = has_extension(path, "rs") && roots.iter().any(|root| path.starts_with(root));
            is_source.then_some((path.as_str(), text.as_str()))
        })
    }
}

/// A package of `cargo metadata`.
#[derive(Clone, Copy)]
pub(crate) struct Package<'a>(&'a Value);

impl<'a> Package<'a> {
    pub(crate) fn id(self) -> &'a str {
        string(self.0, "id")
    }

    pub(crate) fn name(self) -> &'a str {
        string(self.0, "name")
    }

    pub(crate) fn version(self) -> &'a str {
        string(self.0, "version")
    }

    /// The SPDX expression; empty when there is none.
    pub(crate) fn licence(self) -> &'a str {
        string(self.0, "license")
    }

    /// Where it comes from; nothing for a member of the workspace.
    pub(crate) fn source(self) -> Option<&'a str> {
        self.0.get("source").and_then(Value::as_str)
    }

    /// Names of the packages that its manifest asks for, without those that only its tests use.
    pub(crate) fn needs(self) -> impl Iterator<Item = &'a str> {
        let shipped = |need: &&Value| need.get("kind").and_then(Value::as_str) != Some("dev");
        array(self.0, "dependencies").iter().filter(shipped).map(|need| string(need, "name"))
    }

    /// Returns the needs of a crate, with those that only its tests use.
    pub(crate) fn needs_with_tests(self) -> impl Iterator<Item = &'a str> {
        array(self.0, "dependencies").iter().map(|need| string(need, "name"))
    }

    /// The folder of a member, from the root of the repository.
    pub(crate) fn folder(self) -> String {
        relative(&root(), self.directory())
    }

    /// Where its manifest is.
    pub(crate) fn directory(self) -> &'a Path {
        let manifest = Path::new(string(self.0, "manifest_path"));
        manifest.parent().unwrap_or(manifest)
    }
}

/// The elements of an array of an object; none when it is not there.
pub(crate) fn array<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The text of a member of an object; empty when it is not there.
pub(crate) fn string<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == extension)
}

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

fn relative(root: &Path, path: &Path) -> String {
    let parts = path.strip_prefix(root).unwrap_or(path).iter();
    parts.map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// The text files below a folder, by their paths from there; without what is built and what git keeps.
pub(crate) fn files_below(folder: &Path) -> Result<BTreeMap<String, String>, String> {
    let mut files = BTreeMap::new();
    collect(folder, folder, &mut files)?;
    Ok(files)
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) -> Result<(), String> {
    let unreadable = |error: std::io::Error| format!("cannot read {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let path = entry.path();
        if ["target", ".git"].iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        // Links are not followed: what they lead to is checked where it lies, or is not of this repository.
        let kind = entry.file_type().map_err(unreadable)?;
        if kind.is_dir() {
            collect(root, &path, files)?;
        } else if kind.is_file()
            && let Ok(text) = fs::read_to_string(&path)
        {
            files.insert(relative(root, &path), text);
        }
    }
    Ok(())
}

fn metadata(root: &Path) -> Result<Value, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // One platform, because others are downloaded only for this.
    let arguments =
        ["metadata", "--format-version=1", "--locked", "--filter-platform=x86_64-unknown-linux-gnu", "--quiet"];
    let output = Command::new(cargo).args(arguments).current_dir(root).output();
    let output = output.map_err(|error| format!("cannot run cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata gave no JSON: {error}"))
}
