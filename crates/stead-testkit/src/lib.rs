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
//! the sections that it computes; they must equal those in the file. `STEAD_BLESS=1` rewrites the file instead.
//! A section that the harness neither reads nor computes is an error: it would only look like a part of the test.

mod web;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once, OnceLock};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT};

pub use web::{WebServer, web_answer};

/// The root of the repository.
pub fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().and_then(Path::parent).unwrap_or(here).to_path_buf()
}

/// The folder for temporary folders that lie in memory, where the system has one: a sync costs nothing there. Else the folder for all temporary ones.
pub fn memory_folder() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { std::env::temp_dir() }
}

/// Waits until something is found, for two minutes: longer than anything takes on a busy machine.
///
/// # Panics
/// When it is not found by then.
#[track_caller]
pub fn until<T>(mut found: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_mins(2), "it takes too long");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Lets the programs that this process starts from now on be interrupted, even if it was itself started to ignore that, as
/// shells start what runs in the background.
///
/// This process goes on ignoring it: it gets a handler that does nothing, and programs inherit no handler.
///
/// # Panics
/// When the system refuses a handler.
pub fn let_programs_be_interrupted() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
        for signal in [SIGHUP, SIGINT, SIGQUIT].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 1) {
            signal_hook::flag::register(signal, Arc::default()).expect("a signal has a handler");
        }
    });
}

/// How many times something is tried: what an environment variable asks for, or as often as is usual, times `STEAD_DOSE`.
///
/// # Panics
/// When a variable holds no number: a long run must not turn out to have been a short one.
pub fn times(variable: &str, usual: usize) -> usize {
    asked(variable).unwrap_or_else(|| usual * asked("STEAD_DOSE").unwrap_or(1))
}

/// How many cases a law is tried with: what its own variable asks for, or `PROPTEST_CASES`, which is for all laws, or as often as
/// [`times`] says.
///
/// # Panics
/// When a variable holds no number.
pub fn cases(variable: &str, usual: usize) -> u32 {
    let stated = asked(variable).or_else(|| asked(ALL_LAWS));
    u32::try_from(stated.unwrap_or_else(|| times(variable, usual))).unwrap_or(u32::MAX)
}

/// The variable that asks for a number of cases of each law whose own variable is not set.
pub const ALL_LAWS: &str = "PROPTEST_CASES";

/// The number that an environment variable asks for, if it is set.
///
/// # Panics
/// When it holds no number.
pub fn asked(variable: &str) -> Option<usize> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is '{text}', which is not a number")))
}

/// Reports on standard error that a test, or a part of it, is skipped because something that it needs is missing, and how
/// many were before in this program.
///
/// Guarantees: the line is seen when the test passes, too.
///
/// # Panics
/// When `STEAD_SKIPS` is `none`, which says that everything is there that tests need; and when it is `unpromised` and
/// ARCHITECTURE.md names the test for one of its promises.
pub fn skip(test: &str, reason: &str) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let reason = reason.trim_end();
    let refused = match std::env::var("STEAD_SKIPS").as_deref() {
        Ok("none") => true,
        Ok("unpromised") => is_promised(test),
        Ok(other) => panic!("STEAD_SKIPS is '{other}', which is neither 'none' nor 'unpromised'"),
        Err(_) => false,
    };
    assert!(!refused, "{test} is skipped: {reason}");
    let count = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
    // Not by the macro, whose output is shown of failed tests only. If standard error is closed, nobody wants to know.
    let _ = writeln!(std::io::stderr(), "SKIPPED {count}: {test}: {reason}");
}

/// Tells whether ARCHITECTURE.md has a promise that this test holds. Of a part of a test, as in `name, its end`, the test counts.
fn is_promised(test: &str) -> bool {
    let promises = fs::read_to_string(repository().join("ARCHITECTURE.md")).expect("the architecture is there");
    let name = test.split(',').next().unwrap_or(test);
    promises.contains(&format!("`{name}`"))
}

/// The PowerShell that tests run on: that of `STEAD_TEST_PWSH`, else the one that `../shared/tools/powershell/install`
/// unpacks, else the one in `PATH`. Where there is none, the test is reported as skipped.
///
/// # Panics
/// When one is there and cannot be unpacked: that is a failure, and no reason to skip anything.
pub fn powershell(test: &str) -> Option<PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(find_powershell);
    if found.is_none() {
        skip(test, "PowerShell is not there: neither STEAD_TEST_PWSH, nor ../shared/tools, nor 'pwsh' in PATH");
    }
    found.clone()
}

fn find_powershell() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("STEAD_TEST_PWSH") {
        return Some(PathBuf::from(named));
    }
    let install = repository().join("../shared/tools/powershell/install");
    if install.is_file() {
        let output = Command::new(&install).output().expect("what unpacks PowerShell can be run");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{}: {printed}{}", install.display(), String::from_utf8_lossy(&output.stderr));
        return printed.lines().last().map(PathBuf::from);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("pwsh")).find(|program| program.is_file())
}

/// Returns whether this is root; where it is not, the test is reported as skipped.
pub fn is_root(test: &str) -> bool {
    let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if !is_root {
        skip(test, "only root can do that");
    }
    is_root
}

/// Checks a table of a document of the repository: its rows are numbered from 1, and their last column names tests that
/// exist, as a file below `corpus/` or a function. Returns how many rows there are.
///
/// # Panics
/// When a row names no test, or one that is not there.
pub fn check_table(document: &str) -> usize {
    let text = fs::read_to_string(repository().join(document)).expect("the document is there");
    let (tests, mut rows) = (sources(), 0);
    for row in text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| |")) {
        rows += 1;
        assert!(row.starts_with(&format!("| {rows} |")), "{row}");
        let held_by = row.trim_end_matches(['|', ' ']).rsplit('|').next().unwrap_or_default();
        let named: Vec<&str> = held_by.split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "no test is named: {row}");
        for name in named {
            let exists = match name.strip_prefix("corpus/") {
                Some(_) => repository().join(name).is_file(),
                None => tests.contains(&format!("fn {name}()")),
            };
            assert!(exists, "{name} is not there: {row}");
        }
    }
    rows
}

/// Checks the list in a document of the repository that is indented below the line `above`; `STEAD_BLESS=1` writes it.
///
/// # Panics
/// When the line is not there, or the list is another one.
pub fn check_list(document: &str, above: &str, list: &[String]) {
    let path = repository().join(document);
    let text = fs::read_to_string(&path).expect("the document is there");
    let (before, rest) = text.split_once(above).unwrap_or_else(|| panic!("{document} has no line '{above}'"));
    let items: String = rest.split_inclusive('\n').skip(1).take_while(|line| line.starts_with("  - ")).collect();
    let list: String = list.iter().flat_map(|item| ["  - ", item, "\n"]).collect();
    if std::env::var_os("STEAD_BLESS").is_some() {
        let after = rest.strip_prefix('\n').and_then(|rest| rest.strip_prefix(&items)).unwrap_or_default();
        fs::write(path, format!("{before}{above}\n{list}{after}")).expect("the document is writable");
    } else {
        assert_eq!(items, list, "{document} below '{above}': STEAD_BLESS=1 writes it");
    }
}

/// Checks that a folder of the repository holds these files and no others; `STEAD_BLESS=1` writes them.
///
/// # Panics
/// When it does not.
pub fn check_folder(folder: &str, pages: &BTreeMap<String, String>) {
    let path = repository().join(folder);
    if std::env::var_os("STEAD_BLESS").is_some() {
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("the folder can be created");
        for (file, page) in pages {
            fs::write(path.join(file), page).expect("the file is writable");
        }
    }
    let files =
        fs::read_dir(&path).expect("the folder is there").map(|entry| entry.expect("it is readable").file_name());
    let found: BTreeSet<String> = files.map(|name| name.to_string_lossy().into_owned()).collect();
    assert_eq!(found, pages.keys().cloned().collect(), "{folder}: STEAD_BLESS=1 writes it");
    for (file, page) in pages {
        let text = fs::read_to_string(path.join(file)).expect("the file is readable");
        assert_eq!(text, *page, "{folder}/{file} is old: STEAD_BLESS=1 writes it anew");
    }
}

/// All that is written in Rust here, as one text.
fn sources() -> String {
    let mut folders = vec![repository().join("crates"), repository().join("xtask/src")];
    let mut text = String::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == "rs") {
                text += &fs::read_to_string(entry).unwrap_or_default();
            }
        }
    }
    text
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
    /// The names of the sections that were asked for.
    asked: RefCell<BTreeSet<String>>,
}

impl Case {
    /// A case of one section.
    pub fn of(section: &str, text: &str) -> Self {
        Self { sections: vec![(section.to_owned(), text.to_owned())], ..Self::default() }
    }

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
        self.asked.borrow_mut().insert(name.to_owned());
        self.sections.iter().find(|(each, _)| each == name).map_or("", |(_, text)| text)
    }

    /// Returns whether there is such a section.
    pub fn has(&self, name: &str) -> bool {
        self.asked.borrow_mut().insert(name.to_owned());
        self.sections.iter().any(|(each, _)| each == name)
    }

    /// The sections that are files, which have a `.` in their names. None leads out of the folder that a harness writes it to.
    ///
    /// # Panics
    /// When the name of one does.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        let files = self.sections.iter().filter(|(name, _)| name.contains('.'));
        files.map(|(name, text)| {
            let is_within =
                Path::new(name).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
            assert!(is_within, "the section '{name}' leads out of the folder of its case");
            self.asked.borrow_mut().insert(name.clone());
            (name.as_str(), text.as_str())
        })
    }

    /// A section that occurs twice, or that is neither asked for nor computed.
    fn unknown_section(&self, computed: &Computed) -> Option<String> {
        let mut names = BTreeSet::new();
        let asked = self.asked.borrow();
        let is_known = |name: &str| asked.contains(name) || computed.iter().any(|(each, _)| *each == name);
        self.sections.iter().find_map(|(name, _)| match () {
            () if !names.insert(name) => Some(format!("section '{name}' occurs twice")),
            () if !is_known(name) => Some(format!("section '{name}' is not known to the harness")),
            () => None,
        })
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

/// The result of a harness: sections that the case must contain.
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
    let_programs_be_interrupted();
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
    if let Some(unknown) = case.unknown_section(&computed) {
        return Err(unknown.into());
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const CASE: &str = "What it shows.\n-- main.yaml --\na\n-- tree --\nb\n-- tre --\nc\n";

    fn unknown(text: &str, asked: &[&str], computed: &Computed) -> Option<String> {
        let case = Case::parse("case", text);
        for name in asked {
            case.section(name);
        }
        case.unknown_section(computed)
    }

    /// A night asks for more cases of some laws than of all.
    #[test]
    fn the_own_variable_of_a_law_counts_before_that_of_all() {
        const OWN: &str = "STEAD_TEST_CASES";
        if std::env::var_os(OWN).is_some() {
            assert_eq!((cases(OWN, 1), cases("STEAD_TEST_CASES_OF_ANOTHER", 1)), (10_000, 2560));
            return;
        }
        let own = std::thread::current().name().unwrap().to_owned();
        let again = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &own])
            .envs([(OWN, "10000"), (ALL_LAWS, "2560")])
            .output()
            .unwrap();
        assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stdout));
    }

    /// Started as a shell starts what runs in the background, a program that it starts can be interrupted all the same.
    #[test]
    fn programs_can_be_interrupted_also_in_the_background() {
        const IN_BACKGROUND: &str = "STEAD_TEST_IN_BACKGROUND";
        if std::env::var_os(IN_BACKGROUND).is_some() {
            let interrupts_itself = |signal| {
                let script = format!("kill -{signal} $$; echo ignored");
                std::process::Command::new("sh").args(["-c", &script]).output().unwrap().stdout
            };
            assert_eq!(interrupts_itself("INT"), b"ignored\n", "this test would show nothing");
            let_programs_be_interrupted();
            assert_eq!((interrupts_itself("INT"), interrupts_itself("QUIT")), (Vec::new(), Vec::new()));
            return;
        }
        let own = std::thread::current().name().unwrap().to_owned();
        let script = r#"trap "" INT QUIT; exec "$0" --exact "$1" --nocapture"#;
        let again = std::process::Command::new("sh")
            .args(["-c", script])
            .arg(std::env::current_exe().unwrap())
            .arg(own)
            .env(IN_BACKGROUND, "1")
            .output()
            .unwrap();
        let shown = String::from_utf8_lossy(&again.stdout);
        assert!(
            again.status.success() && shown.contains("1 passed"),
            "{shown}{}",
            String::from_utf8_lossy(&again.stderr)
        );
    }

    #[test]
    fn a_section_that_no_harness_knows_is_found() {
        let computed = vec![("tree", String::new())];
        assert_eq!(
            unknown(CASE, &["main.yaml"], &computed).as_deref(),
            Some("section 'tre' is not known to the harness")
        );
        assert_eq!(unknown(CASE, &["main.yaml", "tre"], &computed), None);
    }

    #[test]
    fn a_section_that_is_there_twice_is_found() {
        let twice = CASE.replace("-- tre --", "-- tree --");
        let computed = vec![("tree", String::new())];
        assert_eq!(unknown(&twice, &["main.yaml"], &computed).as_deref(), Some("section 'tree' occurs twice"));
    }

    #[test]
    fn files_are_known_once_they_are_listed() {
        let case = Case::parse("case", "-- a.yaml --\n-- session --\n");
        assert_eq!(case.files().map(|(name, _)| name).collect::<Vec<_>>(), ["a.yaml"]);
        assert_eq!(case.unknown_section(&Vec::new()).as_deref(), Some("section 'session' is not known to the harness"));
    }
}
