//! `cargo xtask NAME`: the checks of the project that are not cargo's own.
//!
//! Every check is a test as well, so that `cargo test --workspace` is all that needs to run; the commands are for
//! looking at one of them alone.

mod artifacts;
mod book;
mod circles;
mod codes;
mod deps;
mod extension;
mod language;
mod links;
mod mutants;
mod notices;
mod package;
mod program;
mod record;
mod renamed;
mod repository;
mod roof;
mod tidy;

use std::io::Write as _;
use std::process::ExitCode;

use repository::{Finding, Repository};

const USAGE: &str = "usage: cargo xtask NAME

  tidy      direction of dependencies, the code map, links, words that do not belong here
  codes     diagnostic codes: each declared once, each with a case below corpus/
  circles   modules that import each other
  renamed   types of ours that share a name, or are imported under another
  deps      licences, duplicate versions and sources of dependencies, as deny.toml wants them
  language  words and phrases that have a better one, as xtask/words.txt lists them
  all       all of them
  book      the preprocessor of the book, which mdBook calls
  mutants   deliberate defects of xtask/mutants, or those that are named: each must make a test fail (takes long)
  package   packages for users: all, deb, rpm, tar, vsix or folder (without a format: its options)
  record-powershell  answers of PowerShell itself, which a player stands in for in tests (needs PowerShell)
";

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let mut out = std::io::stdout().lock();
    let done = Repository::read().and_then(|repository| match name.as_str() {
        "package" => artifacts::run(&repository, &words()).map(|text| (text, true)),
        "book" => book::run(&repository, &words()).map(|text| (text, true)),
        "record-powershell" => record::run(&repository::root()).map(|text| (text, true)),
        _ => run(&name, &repository).map(|(text, findings)| (report(&text, &findings), findings.is_empty())),
    });
    match done {
        Ok((text, is_fine)) => {
            let written = out.write_all(text.as_bytes()).is_ok();
            if is_fine && written { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(message) => {
            // Nothing is left to do when this fails too.
            let _ = writeln!(std::io::stderr(), "xtask: {message}");
            ExitCode::from(2)
        }
    }
}

/// Returns the arguments behind the name.
fn words() -> Vec<String> {
    std::env::args().skip(2).collect()
}

fn run(name: &str, repository: &Repository) -> Result<(String, Vec<Finding>), String> {
    match name {
        "tidy" => tidy::check(repository).map(|findings| (String::new(), findings)),
        "codes" => codes::check(repository).map(|findings| (String::new(), findings)),
        "circles" => circles::check(repository).map(|findings| (String::new(), findings)),
        "renamed" => Ok((String::new(), renamed::check(repository))),
        "deps" => deps::check(repository).map(|findings| (String::new(), findings)),
        "language" => language::check(repository).map(|findings| (String::new(), findings)),
        "all" => all(repository),
        "mutants" => {
            mutants::run(repository, &words(), &mut std::io::stderr()).map(|findings| (String::new(), findings))
        }
        _ => Err(USAGE.to_owned()),
    }
}

fn all(repository: &Repository) -> Result<(String, Vec<Finding>), String> {
    let mut findings = tidy::check(repository)?;
    findings.extend(codes::check(repository)?);
    findings.extend(circles::check(repository)?);
    findings.extend(renamed::check(repository));
    findings.extend(deps::check(repository)?);
    findings.extend(mutants::check(repository));
    Ok((String::new(), findings))
}

fn report(text: &str, findings: &[Finding]) -> String {
    let lines = findings.iter().map(|finding| format!("{finding}\n"));
    let closing = match findings.len() {
        0 => "nothing found\n".to_owned(),
        count => format!("{count} found\n"),
    };
    text.to_owned() + &lines.collect::<String>() + &closing
}
