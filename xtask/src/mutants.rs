//! Deliberate defects: each must be found by the test that it names.
//!
//! A mutant is a file `xtask/mutants/NAME.txt` with the sections `file`, `from`, `to` and `test`: in the file, the text that
//! occurs once is replaced, and `cargo test` with these arguments must fail. `cargo xtask mutants [NAME]` tries all of them
//! or one in a copy of the repository below `target/mutants`, one after the other; the copy is built once and then in parts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use stead_testkit::Case;

use crate::repository::{Finding, Repository, has_extension, root};

const FOLDER: &str = "xtask/mutants/";

/// A deliberate defect.
struct Mutant {
    /// The file that describes it.
    path: String,
    /// The file that is changed.
    file: String,
    from: String,
    to: String,
    /// What `cargo test` is called with.
    test: Vec<String>,
}

impl Mutant {
    fn read(path: &str, text: &str) -> Self {
        let case = Case::parse(path, text);
        let line = |name: &str| case.section(name).trim().to_owned();
        let arguments = line("test").split_whitespace().map(str::to_owned).collect();
        let (from, to) = (case.section("from").to_owned(), case.section("to").to_owned());
        Self { path: path.to_owned(), file: line("file"), from, to, test: arguments }
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

/// Tries the mutant of that name, or all; those that no test finds are the findings.
pub(crate) fn run(repository: &Repository, name: Option<&str>) -> Result<(String, Vec<Finding>), String> {
    let workspace = Workspace::copy(repository)?;
    let (mut report, mut findings) = (String::new(), Vec::new());
    for mutant in mutants(repository).iter().filter(|mutant| name.is_none_or(|name| name == mutant.name())) {
        let text = mutant.applied(repository).map_err(|finding| finding.to_string())?;
        if workspace.survives(mutant, &text)? {
            findings.push(Finding::of(&mutant.path, format!("survives `cargo test {}`", mutant.test.join(" "))));
        } else {
            report += mutant.name();
            report += ": found\n";
        }
    }
    Ok((report, findings))
}

/// A copy of the repository, with build results of its own.
struct Workspace(PathBuf);

impl Workspace {
    fn copy(repository: &Repository) -> Result<Self, String> {
        let workspace = Self(root().join("target/mutants/tree"));
        for (path, text) in &repository.files {
            workspace.write(path, text)?;
        }
        Ok(workspace)
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

    /// Whether all goes well with the defect. One that does not compile is an error: it would seem to be found.
    fn survives(&self, mutant: &Mutant, text: &str) -> Result<bool, String> {
        let original = fs::read_to_string(self.0.join(&mutant.file)).map_err(|error| error.to_string())?;
        self.write(&mutant.file, text)?;
        let tried = match self.test(mutant, &["--no-run"]) {
            Ok(true) => self.test(mutant, &[]),
            Ok(false) => Err(format!("{} does not compile", mutant.name())),
            Err(error) => Err(error),
        };
        self.write(&mutant.file, &original)?;
        tried
    }

    fn test(&self, mutant: &Mutant, more: &[&str]) -> Result<bool, String> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["test", "--quiet", "--locked"]).args(more).args(&mutant.test).current_dir(&self.0);
        command.env("CARGO_TARGET_DIR", root().join("target/mutants/build"));
        let ended = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        ended.map(|status| status.success()).map_err(|error| format!("cannot run cargo: {error}"))
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
