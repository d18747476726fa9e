//! A Git repository with releases.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use stead_engine::error_chain;
use stead_release::SourceFile;
use stead_resources::isolation;
use stead_system::Cancel;
use stead_system::folder::{Folder, FolderError};
use stead_system::process::{Environment, Executable, Exit, Limits, Program, run};

use super::{Fetch, FetchError, longest};

/// How long a fetch may take, and a call that needs no network.
const NETWORK: Duration = Duration::from_mins(30);
const LOCAL: Duration = Duration::from_mins(5);

/// How many bytes anything but a file may be.
const SHORT: usize = 64 << 10;

/// How many bytes of statements are kept of a commit: those of a fleet of ten thousand machines.
const MOST_KEPT: usize = 8 << 20;

/// Where the commit is that was fetched last.
const FETCHED: &str = "refs/stead/followed";

/// Settings of a fetch: its result is one pack, which can be counted, and of a large file no more is in memory than a part.
const FETCHING: [&str; 4] = ["-c", "fetch.unpackLimit=1", "-c", "core.bigFileThreshold=1m"];

/// After so many packs, objects that nothing leads to are removed.
const MOST_PACKS: usize = 64;

/// The files of a branch or a tag, which git fetches into a repository of the agent's own.
///
/// Guarantees: nothing is checked out, so that no name, link, attribute or submodule of the repository has a meaning here, and
/// nothing of it runs. A look reads one commit, whatever is pushed meanwhile.
pub(super) struct GitFiles {
    address: String,
    reference: String,
    /// The agent's own repository, without a working tree.
    place: PathBuf,
    cancel: Cancel,
    /// The commit of this look, and the statements of it that were read.
    commit: String,
    known: BTreeMap<SourceFile, Option<Vec<u8>>>,
}

impl GitFiles {
    pub(super) fn new(address: String, reference: String, place: PathBuf, cancel: Cancel) -> Self {
        Self { address, reference, place, cancel, commit: String::new(), known: BTreeMap::new() }
    }

    /// What a call of git prints, and how it ended.
    fn call(
        &self,
        arguments: &[&str],
        deadline: Duration,
        output: usize,
    ) -> Result<(Exit, Vec<u8>, String), FetchError> {
        let environment = Environment::of_this_process(&[]);
        let found = Executable::find("git", Path::new("/"), &environment);
        let executable = found.ok_or_else(|| FetchError::new("there is no program 'git'"))?;
        let executable = executable.map_err(|refused| FetchError::new(format!("'git' {}", refused.reason())))?;
        let scheme = self.address.split("://").next().unwrap_or_default();
        let mut variables: Vec<(OsString, OsString)> =
            isolation::variables().into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        variables.push(("GIT_ALLOW_PROTOCOL".into(), scheme.into()));
        let mut place = OsString::from("--git-dir=");
        place.push(&self.place);
        let settings = isolation::settings().map(OsString::from);
        let arguments: Vec<OsString> = settings.chain([place]).chain(arguments.iter().map(OsString::from)).collect();
        let (directory, input) = (Path::new("/"), None);
        let program = Program {
            executable: &executable,
            arguments: &arguments,
            directory,
            environment: &environment,
            variables: &variables,
            input,
        };
        // What is left of a call that was ended, the next look removes.
        let limits = Limits { deadline, output, changes: false, ..Limits::default() };
        let mut said = Vec::new();
        let mut hear = |bytes: &[u8]| {
            if said.len() < SHORT {
                said.extend_from_slice(bytes);
            }
        };
        let finished = run(&program, &limits, &self.cancel, &mut hear);
        let finished = finished.map_err(|error| FetchError::new(format!("git: {}", error_chain(&error))))?;
        Ok((finished.exit, finished.stdout, String::from_utf8_lossy(&said).into_owned()))
    }

    /// The same, which must succeed.
    fn must(&self, arguments: &[&str], deadline: Duration, output: usize) -> Result<Vec<u8>, FetchError> {
        let (exit, printed, said) = self.call(arguments, deadline, output)?;
        if exit == Exit::Code(0) {
            return Ok(printed);
        }
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it says nothing").trim().to_owned();
        let command = arguments.iter().find(|argument| **argument != "-c" && !argument.contains('=')).unwrap_or(&"");
        Err(FetchError::new(format!("git {command} of '{}' ended with {exit}: {last}", self.address)))
    }

    fn text(&self, arguments: &[&str]) -> Result<String, FetchError> {
        let printed = self.must(arguments, LOCAL, SHORT)?;
        Ok(String::from_utf8_lossy(&printed).trim_end_matches(['\n', '\0']).to_owned())
    }

    /// Removes what nothing leads to any more, where it has become much.
    fn tidy(&self) -> Result<(), FetchError> {
        let packs = std::fs::read_dir(self.place.join("objects/pack")).map_or(0, Iterator::count);
        if packs < 2 * MOST_PACKS {
            return Ok(());
        }
        self.must(&["gc", "--quiet", "--prune=now"], NETWORK, SHORT).map(drop)
    }

    /// Removes what calls left behind that were killed, or whose server ended early: locks, which would keep all others away, and
    /// parts of packs. The repository is that of one agent, which waits for each call.
    fn clear(&self) -> Result<(), FolderError> {
        let is_left = |name: &OsString| {
            let name = name.as_encoded_bytes();
            name.ends_with(b".lock") || name.starts_with(b"tmp_")
        };
        let mut rest = vec![Folder::create(&self.place)?];
        while let Some(folder) = rest.pop() {
            for name in folder.names()? {
                match Folder::existing(&folder.path().join(&name)) {
                    Ok(inner) => rest.extend(inner),
                    Err(FolderError::Directory { source, .. }) if source.is_not_a_directory() => {
                        if is_left(&name) {
                            folder.remove_unflushed(name)?;
                        }
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn read(&self, file: &SourceFile) -> Result<Option<Vec<u8>>, FetchError> {
        let path = file.to_string();
        let entry = self.text(&["ls-tree", "-z", "--full-tree", &self.commit, "--", &path])?;
        let Some((entry, _)) = entry.split_once('\t') else { return Ok(None) };
        let object = match *entry.split(' ').collect::<Vec<_>>() {
            [mode, "blob", object] if mode.starts_with("100") => object,
            _ => return Err(FetchError::new(format!("'{path}' is not a file of the commit"))),
        };
        let size = self.text(&["cat-file", "-s", object])?.parse::<u64>().unwrap_or(u64::MAX);
        if size > longest(file) {
            return Err(FetchError::new(format!("'{path}' is too large")));
        }
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        self.must(&["cat-file", "blob", object], LOCAL, size.saturating_add(1)).map(Some)
    }
}

impl Fetch for GitFiles {
    fn begin(&mut self) -> Result<(), FetchError> {
        self.clear().map_err(|error| FetchError::new(error_chain(&error)))?;
        self.must(&["init", "--quiet", "--bare", "--template="], LOCAL, SHORT)?;
        let to = format!("+{}:{FETCHED}", self.reference);
        let options = ["--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--depth=1"];
        self.must(&[&FETCHING[..], &["fetch"], &options[..], &["--", &self.address, &to]].concat(), NETWORK, SHORT)?;
        let commit = self.text(&["rev-parse", "--verify", &format!("{FETCHED}^{{commit}}")])?;
        if commit != self.commit {
            (self.commit, self.known) = (commit, BTreeMap::new());
            self.tidy()?;
        }
        Ok(())
    }

    fn file(&mut self, file: &SourceFile) -> Result<Option<Vec<u8>>, FetchError> {
        if let Some(known) = self.known.get(file) {
            return Ok(known.clone());
        }
        let content = self.read(file)?;
        let kept: usize = self.known.values().flatten().map(Vec::len).sum();
        if kept + content.as_ref().map_or(0, Vec::len) <= MOST_KEPT {
            self.known.insert(file.clone(), content.clone());
        }
        Ok(content)
    }
}
