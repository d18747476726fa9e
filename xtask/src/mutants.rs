//! Deliberate defects: each must be found by the test that it names.
//!
//! A mutant is a file `xtask/mutants/NAME.txt` with the sections `file`, `from`, `to` and `test`: in the file, the text that
//! occurs once is replaced, and `cargo test` with these arguments must fail. `cargo xtask mutants [NAME..]` tries all of them
//! or some in a copy of the repository below `target/mutants`, one after the other; the copy is built once and then in parts.
//! The repository itself is only read.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use stead_testkit::Case;

use crate::repository::{Finding, Repository, files_below, has_extension, root};

const FOLDER: &str = "xtask/mutants/";
/// Long enough for a first build on a slow machine; what a defect keeps from ending is ended here.
const DEADLINE: &str = "30m";

/// A deliberate defect.
struct Mutant {
    /// The file that describes it.
    path: String,
    /// The file that is changed.
    file: String,
    from: String,
    to: String,
    /// The arguments of `cargo test`.
    test: Vec<String>,
}

impl Mutant {
    fn read(path: &str, text: &str) -> Self {
        let case = Case::parse(path, text);
        let line = |name: &str| case.section(name).trim().to_owned();
        let arguments = line("test").split_whitespace().map(str::to_owned).collect();
        // A part of a line can be meant, too.
        let part = |name: &str| case.section(name).trim_end_matches('\n').to_owned();
        Self { path: path.to_owned(), file: line("file"), from: part("from"), to: part("to"), test: arguments }
    }

    fn name(&self) -> &str {
        self.path.trim_start_matches(FOLDER).trim_end_matches(".txt")
    }

    /// The text of the file with the defect, if the mutant still applies.
    fn applied(&self, repository: &Repository) -> Result<String, Finding> {
        let text = repository.text(&self.file)?;
        let count = if self.from.is_empty() { 0 } else { text.matches(&self.from).count() };
        if count != 1 {
            return Err(Finding::of(&self.path, format!("its 'from' occurs {count} times in {}, not once", self.file)));
        }
        if self.test.is_empty() {
            return Err(Finding::of(&self.path, "does not name the test that finds it"));
        }
        Ok(text.replacen(&self.from, &self.to, 1))
    }
}

fn mutants(repository: &Repository) -> Vec<Mutant> {
    let files = repository.files.iter().filter(|(path, _)| path.starts_with(FOLDER) && has_extension(path, "txt"));
    files.map(|(path, text)| Mutant::read(path, text)).collect()
}

/// Mutants that do not apply any more.
pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    mutants(repository).iter().filter_map(|mutant| mutant.applied(repository).err()).collect()
}

/// Tries the mutants of these names, or all, and writes what becomes of each; those that no test finds are the findings.
pub(crate) fn run(repository: &Repository, names: &[String], out: &mut impl Write) -> Result<Vec<Finding>, String> {
    let mut chosen = mutants(repository);
    if let Some(name) = names.iter().find(|name| chosen.iter().all(|mutant| mutant.name() != *name)) {
        return Err(format!("there is no {FOLDER}{name}.txt"));
    }
    chosen.retain(|mutant| names.is_empty() || names.iter().any(|name| name == mutant.name()));
    let workspace = Workspace::copy(repository)?;
    let failing = workspace.failing(&chosen)?;
    let mut findings = Vec::new();
    for mutant in &chosen {
        let verdict = match mutant.applied(repository) {
            Err(finding) => {
                findings.push(finding);
                continue;
            }
            Ok(_) if failing.contains(mutant.test.as_slice()) => Verdict::FailsAnyway,
            Ok(text) => workspace.judge(mutant, &text)?,
        };
        // What is printed is progress; the findings are what counts.
        let _ = writeln!(out, "{}: {verdict}", mutant.name());
        if verdict != Verdict::Found {
            findings.push(Finding::of(&mutant.path, format!("{verdict}: cargo test {}", mutant.test.join(" "))));
        }
    }
    Ok(findings)
}

/// The fate of a mutant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Its test fails, or does not end.
    Found,
    /// Its test passes.
    Survives,
    /// It does not compile, so that its test says nothing.
    DoesNotCompile,
    /// Its test fails without it, too.
    FailsAnyway,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Found => "found",
            Self::Survives => "survives",
            Self::DoesNotCompile => "does not compile",
            Self::FailsAnyway => "its test fails without it, too",
        })
    }
}

/// A copy of the repository, with build results of its own.
struct Workspace(PathBuf);

impl Workspace {
    fn copy(repository: &Repository) -> Result<Self, String> {
        let workspace = Self(root().join("target/mutants/tree"));
        for (path, text) in &repository.files {
            workspace.write(path, text)?;
            let (from, to) = (root().join(path), workspace.0.join(path));
            let copied = fs::metadata(from).and_then(|metadata| fs::set_permissions(&to, metadata.permissions()));
            copied.map_err(|error| format!("cannot set the mode of {}: {error}", to.display()))?;
        }
        workspace.remove_others(repository)?;
        Ok(workspace)
    }

    /// Removes files that an earlier copy had and the repository has no more: cases are read by folder.
    fn remove_others(&self, repository: &Repository) -> Result<(), String> {
        let former = files_below(&self.0)?;
        let others = former.keys().filter(|path| !repository.files.contains_key(*path));
        for path in others.map(|path| self.0.join(path)) {
            fs::remove_file(&path).map_err(|error| format!("cannot remove {}: {error}", path.display()))?;
        }
        Ok(())
    }

    /// Leaves alone what is the same, so that it is not built again.
    fn write(&self, path: &str, text: &str) -> Result<(), String> {
        let path = self.0.join(path);
        if fs::read_to_string(&path).is_ok_and(|former| former == text) {
            return Ok(());
        }
        let folder = path.parent().unwrap_or(Path::new("/"));
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, text));
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))
    }

    /// The tests of mutants that fail without them: those find nothing.
    fn failing<'m>(&self, mutants: &'m [Mutant]) -> Result<BTreeSet<&'m [String]>, String> {
        let tests: BTreeSet<&[String]> = mutants.iter().map(|mutant| mutant.test.as_slice()).collect();
        let mut failing = BTreeSet::new();
        for test in tests {
            if !self.passes(test, &[])? {
                failing.insert(test);
            }
        }
        Ok(failing)
    }

    fn judge(&self, mutant: &Mutant, text: &str) -> Result<Verdict, String> {
        let original = fs::read_to_string(self.0.join(&mutant.file)).map_err(|error| error.to_string())?;
        self.write(&mutant.file, text)?;
        let compiles = self.passes(&mutant.test, &["--no-run"])?;
        let passes = compiles && self.passes(&mutant.test, &[])?;
        self.write(&mutant.file, &original)?;
        Ok(match (compiles, passes) {
            (false, _) => Verdict::DoesNotCompile,
            (true, true) => Verdict::Survives,
            (true, false) => Verdict::Found,
        })
    }

    /// Returns whether `cargo test` with these arguments ends well, and in time.
    fn passes(&self, test: &[String], more: &[&str]) -> Result<bool, String> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new("timeout");
        command.arg(DEADLINE).arg(cargo).args(["test", "--quiet", "--locked"]).args(more).args(test);
        command.env("CARGO_TARGET_DIR", root().join("target/mutants/build")).current_dir(&self.0);
        let ended = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        ended.map(|status| status.success()).map_err(|error| format!("cannot run timeout: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutant_still_applies() {
        let repository = Repository::read().expect("the repository is readable");
        assert!(!mutants(&repository).is_empty());
        assert_eq!(check(&repository), []);
    }
}
