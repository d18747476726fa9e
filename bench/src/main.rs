//! Measures stead against the floor: a program that does only what must be done.
//!
//! ```text
//! cargo build --release && cargo run --release -p stead-bench -- all
//! ```
//!
//! Both run in turn, several times, and medians are compared. What counts is the processor time of the whole process
//! tree: other work on the machine disturbs it least. The floor and the meter are this same program under other names of
//! its first argument, so that there is nothing else to build; it has few dependencies because its own start is part of
//! the floor.

mod cases;
mod editor;
mod floor;
mod meter;
mod module;
mod table;
mod work;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use cases::Bench;
use table::Verdict;

const USAGE: &str = "usage: stead-bench CASE... [--runs N] [--stead PATH] [--static PATH]

  all      every case below
  start    the program alone
  files    1,000 and 10,000 files, in their state and all to be created; hidden drift
  left     a document that has left 10,000 files behind
  lines    100 lines of one file
  echo     1,000 instances of a resource that is a program
  resident 1,000 instances of a resource in Python that stays, and with a process for each call
  scale    documents of 1,000 to 100,000 instances
  idem     what Idem was measured with, applied with --reconcile basic
  powershell   1,000 modules, read and one of them by the index; Tests of a class beside one PowerShell that does the same
  module   calls of the PowerShell module, one session for each run
  editor   an edit of a document of 10,000 instances, until its findings are published

Each is run N times, or 5; PATH is the program, or `stead` beside this one. With --static the start of a static program is
compared with that of the program as well. Files are made in $TMPDIR, or /tmp. Figures with
a ~ come from runs that differ by more than a factor of two: on a disk that others use, TMPDIR=/dev/shm is steadier.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["floor-check", list] => floor::check(list),
        ["floor-write", list] => floor::write(list),
        ["floor-spawn", program, count, width] => floor::spawn(program, count, width),
        ["floor-talk", program, script, word, requests] => floor::talk(program, script, word, requests),
        ["floor-read", list] => floor::read(list),
        ["floor-stat", list] => floor::stat(list),
        ["floor-nothing"] => Ok(ExitCode::SUCCESS),
        ["meter", output, program, rest @ ..] => meter::meter(output, program, rest),
        _ => bench(&words),
    };
    done.unwrap_or_else(|error| {
        // Nothing is left to do when this fails too.
        let _ = writeln!(io::stderr(), "stead-bench: {error}");
        ExitCode::from(2)
    })
}

fn bench(words: &[&str]) -> io::Result<ExitCode> {
    let Some(Options { names, runs, stead, linked_statically }) = options(words) else {
        io::stderr().write_all(USAGE.as_bytes())?;
        return Ok(ExitCode::from(2));
    };
    let bench = Bench::new(stead, linked_statically, runs)?;
    let mut out = io::stdout().lock();
    out.write_all(table::header().as_bytes())?;
    let mut worst = ExitCode::SUCCESS;
    for (name, case) in cases::CASES {
        if !names.contains(name) && !names.contains(&"all") {
            continue;
        }
        for row in case(&bench)? {
            out.write_all(row.to_string().as_bytes())?;
            out.flush()?;
            if !matches!(row.verdict, Verdict::Holds) {
                worst = ExitCode::FAILURE;
            }
        }
    }
    Ok(worst)
}

/// The arguments.
struct Options<'a> {
    /// The names of the cases.
    names: Vec<&'a str>,
    /// How often each is run.
    runs: usize,
    /// The program.
    stead: PathBuf,
    /// The same program, linked statically.
    linked_statically: Option<PathBuf>,
}

fn options<'a>(words: &[&'a str]) -> Option<Options<'a>> {
    let stead = std::env::current_exe().ok()?.with_file_name("stead");
    let mut options = Options { names: Vec::new(), runs: 5, stead, linked_statically: None };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--runs" => options.runs = words.next()?.parse().ok().filter(|runs| *runs > 0)?,
            "--stead" => options.stead = PathBuf::from(words.next()?),
            "--static" => options.linked_statically = Some(PathBuf::from(words.next()?)),
            name if name == "all" || cases::CASES.iter().any(|(known, _)| *known == name) => options.names.push(name),
            _ => return None,
        }
    }
    (!options.names.is_empty()).then_some(options)
}
