//! The cases of this repository: sessions below `corpus/compat/cases`, one folder a suite, one file a case.
//!
//! A case has files (every section whose name has a dot), which lie in the current folder, and `session`: each line that
//! starts with `$ dsc` is a run, with arguments in single quotes where they hold spaces; `<` names a file for standard
//! input. Behind it stands its standard output, then its messages on lines that start with `2>`, then its exit code
//! unless that is 0. `${CONTEXT}` stands for the rights of whoever runs the test.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use stead_testkit::Case as Text;

use crate::case::{Answer, Case, Run};

/// Reads every case, in the order of their paths.
pub(crate) fn read(folder: &Path) -> Result<Vec<Case>, Box<dyn Error>> {
    let mut cases: Vec<Case> = Vec::new();
    for suite in entries(folder)?.into_iter().filter(|path| path.is_dir()) {
        for (at, file) in entries(&suite)?.into_iter().enumerate() {
            let text = Text::parse(&stem(&file), &fs::read_to_string(&file)?);
            cases.push(case(&stem(&suite), at, &text).map_err(|why| format!("{}: {why}", file.display()))?);
        }
    }
    Ok(cases)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()?;
    paths.sort();
    Ok(paths)
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn case(suite: &str, at: usize, text: &Text) -> Result<Case, String> {
    let files: Vec<_> = text.sections.iter().filter(|(name, _)| name.contains('.')).cloned().collect();
    let mut runs: Vec<Run> = Vec::new();
    for line in text.section("session").lines() {
        match (line.strip_prefix("$ dsc "), runs.last_mut()) {
            (Some(command), _) => runs.push(run(command, &files)?),
            (None, Some(run)) => answered(&mut run.answer, line)?,
            (None, None) => return Err(format!("before the first run: {line}")),
        }
    }
    let name = text.description.trim().to_owned();
    Ok(Case { suite: suite.to_owned(), place: at + 1, name, number: 0, files, runs })
}

fn run(command: &str, files: &[(String, String)]) -> Result<Run, String> {
    let mut args = words(command);
    let mut stdin = None;
    if let Some(at) = args.iter().position(|arg| arg == "<") {
        let named = args.drain(at..).nth(1).unwrap_or_default();
        let file = files.iter().find(|(name, _)| *name == named);
        stdin = Some(file.ok_or_else(|| format!("there is no file '{named}'"))?.1.clone());
    }
    Ok(Run { args, stdin, answer: Answer { exit: Some(0), stdout: String::new(), stderr: String::new() } })
}

/// The words of a command; what stands in single quotes is part of one.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for (at, part) in command.split('\'').enumerate() {
        let is_quoted = at % 2 == 1;
        let mut pieces = if is_quoted { vec![part] } else { part.split(' ').collect() }.into_iter();
        if let (Some(word), Some(first)) = (words.last_mut(), pieces.next()) {
            word.push_str(first);
        }
        words.extend(pieces.map(str::to_owned));
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Takes in a line of what is expected.
fn answered(answer: &mut Answer, line: &str) -> Result<(), String> {
    if let Some(message) = line.strip_prefix("2>") {
        answer.stderr.extend(["${TIME}", message, "\n"]);
    } else if let Some(code) = line.strip_prefix("(exit ").and_then(|rest| rest.strip_suffix(')')) {
        answer.exit = Some(code.parse().map_err(|_| format!("not an exit code: {line}"))?);
    } else {
        // With the rights of whoever runs this.
        let context = if rustix::process::geteuid().is_root() { "elevated" } else { "restricted" };
        answer.stdout.extend([&line.replace("${CONTEXT}", context), "\n"]);
    }
    Ok(())
}
