//! Tests as data: a case is a text file of named sections, a harness is one function from sections to sections.
//!
//! ```text
//! Free text: what the case shows.
//! -- main.yaml --
//! resources: []
//! -- diagnostics --
//! ```
//!
//! Every file below `corpus/FOLDER` is a test of its own, named after its path. A harness gets the case and returns
//! the sections that it computes; they have to equal those in the file. `STEAD_BLESS=1` rewrites the file instead.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

/// The root of the repository.
pub fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().and_then(Path::parent).unwrap_or(here).to_path_buf()
}

/// How many times something is tried: what an environment variable asks for, or as often as is usual.
///
/// # Panics
/// When the variable holds no number: a long run must not turn out to have been a short one.
pub fn times(variable: &str, usual: usize) -> usize {
    asked(variable).unwrap_or(usual)
}

/// The number that an environment variable asks for, if it is set.
///
/// # Panics
/// When it holds no number.
pub fn asked(variable: &str) -> Option<usize> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is '{text}', which is no number")))
}

/// A case: its description and its sections in order.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// The file without its ending, relative to the folder of the harness.
    pub name: String,
    /// The text in front of the first section.
    pub description: String,
    /// Name and text of each section.
    pub sections: Vec<(String, String)>,
}

impl Case {
    /// Reads the text of a case.
    pub fn parse(name: &str, text: &str) -> Self {
        let mut case = Self { name: name.to_owned(), ..Self::default() };
        for line in text.split_inclusive('\n') {
            let header = line.trim_end().strip_prefix("-- ").and_then(|rest| rest.strip_suffix(" --"));
            match (header, case.sections.last_mut()) {
                (Some(section), _) => case.sections.push((section.to_owned(), String::new())),
                (None, Some((_, body))) => body.push_str(line),
                (None, None) => case.description.push_str(line),
            }
        }
        case
    }

    /// The text of a section; empty when it is not there.
    pub fn section(&self, name: &str) -> &str {
        self.sections.iter().find(|(each, _)| each == name).map_or("", |(_, text)| text)
    }

    /// Whether there is such a section.
    pub fn has(&self, name: &str) -> bool {
        self.sections.iter().any(|(each, _)| each == name)
    }

    fn replace(&mut self, name: &str, text: &str) {
        match self.sections.iter_mut().find(|(each, _)| each == name) {
            Some((_, old)) => text.clone_into(old),
            None => self.sections.push((name.to_owned(), text.to_owned())),
        }
    }

    fn to_text(&self) -> String {
        let sections = self.sections.iter().map(|(name, text)| format!("-- {name} --\n{text}"));
        self.description.clone() + &sections.collect::<String>()
    }
}

/// What a harness computed: sections that the case has to contain.
pub type Computed = Vec<(&'static str, String)>;

/// One folder of cases and what is done with each.
pub struct Suite {
    /// The folder below `corpus/`.
    pub folder: &'static str,
    /// Computes the expected sections of a case, or says why it cannot.
    pub run: fn(&Case) -> Result<Computed, String>,
}

/// The `main` of a test binary: runs every case of every suite. A folder without a case is a failure.
pub fn main(suites: &[Suite]) -> ExitCode {
    let arguments = Arguments::from_args();
    let trials = suites.iter().flat_map(trials).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Runs every case of a suite within one test, for what only a test inside of a program can reach.
///
/// # Panics
/// When a case does not hold, with what is wrong with each.
pub fn check_all(suite: &Suite) {
    let arguments = Arguments { quiet: true, ..Arguments::default() };
    assert!(
        !libtest_mimic::run(&arguments, trials(suite)).has_failed(),
        "cases of corpus/{} do not hold",
        suite.folder
    );
}

fn trials(suite: &Suite) -> Vec<Trial> {
    let root = repository().join("corpus").join(suite.folder);
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    let run = suite.run;
    let mut trials: Vec<Trial> = files
        .into_iter()
        .map(|file| {
            let relative = file.strip_prefix(&root).unwrap_or(&file).with_extension("");
            let name = format!("{}::{}", suite.folder, relative.display());
            Trial::test(name.clone(), move || check(&file, &name, run))
        })
        .collect();
    if trials.is_empty() {
        let message = format!("{} holds no case", root.display());
        trials.push(Trial::test(format!("{}::has_cases", suite.folder), || Err(Failed::from(message))));
    }
    trials
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            files.push(path);
        }
    }
}

fn check(file: &Path, name: &str, run: fn(&Case) -> Result<Computed, String>) -> Result<(), Failed> {
    let text = fs::read_to_string(file)?;
    let mut case = Case::parse(name, &text);
    let computed = run(&case)?;
    if std::env::var_os("STEAD_BLESS").is_some() {
        for (section, text) in &computed {
            case.replace(section, text);
        }
        fs::write(file, case.to_text())?;
        return Ok(());
    }
    for (section, text) in computed {
        if case.section(section) != text {
            let expected = case.section(section);
            return Err(format!("section '{section}'\n--- expected\n{expected}\n--- computed\n{text}").into());
        }
    }
    Ok(())
}
