//! Cases of `corpus/cli`: commands, what they print, and their exit codes.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

use stead_testkit::{Case, Computed, Suite, main as run_suites};

const PROGRAM: &str = env!("CARGO_BIN_EXE_stead");

fn main() -> ExitCode {
    run_suites(&[Suite { folder: "cli", run: session }, Suite { folder: "mistakes", run: mistakes }])
}

/// Applies the corrections of each document: a text that could not be read can be read further then, and any other has fewer mistakes.
fn fixes(case: &Case) -> Result<(), String> {
    let (folder, aside) = (temporary()?, temporary()?);
    let documents: Vec<&str> = case
        .files()
        .map(|(name, _)| name)
        .filter(|name| Path::new(name).extension().is_some_and(|end| end == "yaml"))
        .collect();
    let found = |shown: &str| -> (usize, usize) {
        let all: Vec<&str> =
            shown.lines().filter(|line| line.starts_with("error[") || line.starts_with("warning[")).collect();
        (all.iter().filter(|line| line.starts_with("error[E01")).count(), all.len())
    };
    for name in documents {
        write_files(case, folder.path())?;
        let lint = |option: &str| run(&format!("$ stead lint{option} '{name}'"), folder.path(), aside.path(), None);
        let before = found(&lint("")?);
        if !lint(" --fix")?.contains(": fixed ") {
            continue;
        }
        let after = lint("")?;
        // A missing file is not a mistake of the text, and is seen only once that can be read.
        let (unread, all) = found(&after.replace("error[E0510]", ""));
        if unread >= before.0 && all >= before.1 {
            return Err(format!("the corrections of {name} leave as many mistakes as there were:\n{after}"));
        }
    }
    Ok(())
}

/// A session in which every error has a code, a place and a help, except for those that the case lists.
fn mistakes(case: &Case) -> Result<Computed, String> {
    let mut computed = session(case)?;
    fixes(case)?;
    let shown = computed.first().map(|(_, text)| text.as_str()).unwrap_or_default();
    let incomplete: String = errors(shown).filter_map(|lines| incomplete(&lines)).collect();
    if case.has("incomplete") {
        computed.push(("incomplete", incomplete));
    } else if !incomplete.is_empty() {
        return Err(format!("errors that lack something:\n{incomplete}"));
    }
    Ok(computed)
}

/// The lines of each error.
fn errors(shown: &str) -> impl Iterator<Item = Vec<&str>> {
    let begins = |line: &str| ["$ ", "(exit", "warning", "error"].iter().any(|start| line.starts_with(start));
    let mut blocks: Vec<Vec<&str>> = Vec::new();
    for line in shown.lines() {
        match blocks.last_mut() {
            Some(block) if !begins(line) => block.push(line),
            _ => blocks.push(vec![line]),
        }
    }
    blocks.into_iter().filter(|block| block.first().is_some_and(|line| line.starts_with("error")))
}

fn incomplete(lines: &[&str]) -> Option<String> {
    let first = lines.first()?;
    let wanted: [(&str, &[&str]); 3] =
        [("code", &["error["]), ("place", &["--> "]), ("help", &["= help: ", "help: ", "tip: "])];
    let is_there =
        |marks: &[&str]| lines.iter().any(|line| marks.iter().any(|mark| line.trim_start().starts_with(mark)));
    let lacking: Vec<&str> = wanted.iter().filter(|(_, marks)| !is_there(marks)).map(|(name, _)| *name).collect();
    (!lacking.is_empty()).then(|| format!("{}: {first}\n", lacking.join(", ")))
}

fn session(case: &Case) -> Result<Computed, String> {
    // What commands keep for themselves does not lie among the files of the case: an index is written when it pays.
    let (folder, aside) = (temporary()?, temporary()?);
    write_files(case, folder.path())?;
    if case.has("root") {
        if !stead_testkit::is_root(&case.name) {
            return Ok(vec![("session", case.section("session").to_owned())]);
        }
        // Others must get there, and to the program, which may lie in somebody's home.
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o711)).map_err(|error| error.to_string())?;
        fs::set_permissions(aside.path(), PermissionsExt::from_mode(0o711)).map_err(|error| error.to_string())?;
        fs::copy(PROGRAM, aside.path().join("stead")).map_err(|error| error.to_string())?;
    }
    if let Some(missing) = missing_program(case) {
        stead_testkit::skip(&case.name, &format!("there is no program '{missing}'"));
        return Ok(vec![("session", case.section("session").to_owned())]);
    }
    // The folder of PowerShell is searched only where a case needs it: others show what is done without.
    let powershell = if names(case, "pwsh") { powershell(case) } else { None };
    let commands = case.section("session").lines().filter(|line| line.starts_with("$ "));
    let shown = commands
        .map(|line| run(line, folder.path(), aside.path(), powershell.as_deref()))
        .collect::<Result<String, String>>()?;
    Ok(vec![("session", shown)])
}

fn write_files(case: &Case, folder: &Path) -> Result<(), String> {
    for (name, text) in case.files() {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(|error| error.to_string())?;
        fs::write(path, text).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// The first of the programs that a case needs and that is not there.
fn missing_program(case: &Case) -> Option<&str> {
    let is_missing = |name: &&str| match *name {
        "pwsh" => powershell(case).is_none(),
        name => !["/usr/bin", "/bin", "/usr/sbin", "/sbin"].iter().any(|folder| Path::new(folder).join(name).exists()),
    };
    programs(case).find(is_missing)
}

fn programs(case: &Case) -> impl Iterator<Item = &str> {
    let programs = if case.has("programs") { case.section("programs") } else { "" };
    programs.split_whitespace()
}

fn names(case: &Case, program: &str) -> bool {
    programs(case).any(|name| name == program)
}

/// The folder of the PowerShell that tests run on.
fn powershell(case: &Case) -> Option<PathBuf> {
    stead_testkit::powershell(&case.name)?.parent().map(Path::to_owned)
}

fn temporary() -> Result<tempfile::TempDir, String> {
    tempfile::tempdir().map_err(|error| error.to_string())
}

fn run(line: &str, folder: &Path, aside: &Path, powershell: Option<&Path>) -> Result<String, String> {
    let directory = Path::new(PROGRAM).parent().ok_or("the program has no folder")?;
    let folders = [Some(aside), Some(directory), Some(Path::new("/usr/bin")), Some(Path::new("/bin")), powershell];
    let path = env::join_paths(folders.into_iter().flatten()).map_err(|error| error.to_string())?;
    let output = Command::new("/bin/sh")
        .args(["-c", &format!("{{ {} ; }} 2>&1", line.trim_start_matches("$ "))])
        .current_dir(folder)
        .env_clear()
        .envs([("NO_COLOR", "1"), ("LANG", "C.UTF-8"), ("POWERSHELL_TELEMETRY_OPTOUT", "1")])
        .env("PATH", path)
        .env("HOME", aside.join("home"))
        .env("STEAD_STATE", aside.join("state"))
        .env("STEAD_RECONCILE", "none")
        .env("EXAMPLES", stead_testkit::repository().join("examples"))
        .env("DSC_RESOURCE_PATH", folder)
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).replace(&folder.display().to_string(), "$HERE");
    let exit = match output.status.code() {
        Some(0) => String::new(),
        code => format!("(exit {})\n", code.unwrap_or(-1)),
    };
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    Ok(format!("{line}\n{}{end}{exit}", without_times(&text)))
}

/// How long a run took and when it was differ from run to run.
fn without_times(text: &str) -> String {
    let untimed = |line: &str| line.split(' ').map(without_time).collect::<Vec<_>>().join(" ");
    let text: String = text.lines().map(|line| untimed(line) + "\n").collect();
    let line = |line: &str| match line.rsplit_once(" in ") {
        Some((head, tail)) if tail.ends_with(" ms") || tail.ends_with(" s") => format!("{head} in N ms\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// A word, with a name in place of a time, of a duration in JSON and of a recorded run.
fn without_time(word: &str) -> String {
    const MARKS: &[char] = &['"', ',', ':', '\''];
    let bare = word.trim_matches(MARKS);
    let (letter, is_utc) = (|at: usize| bare.as_bytes().get(at).copied(), bare.contains('Z'));
    let name = match () {
        () if bare.len() > 20 && bare.ends_with('Z') && letter(10) == Some(b'T') => "$TIME",
        () if bare.len() == 20 && is_utc && letter(8) == Some(b'T') && letter(16) == Some(b'-') => "$RUN",
        () if bare.starts_with("PT") && bare.ends_with('S') && bare != "PT0S" => "$DURATION",
        () => return word.to_owned(),
    };
    word.replace(bare, name)
}
