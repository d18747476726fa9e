//! Compatibility with DSC v3: runs the cases of this repository, and those recorded from dsc where they are at hand, and
//! compares the answers.
//!
//! ```text
//! cargo test -p stead --test compat                       every case, a table per suite
//! cargo test -p stead --test compat -- dsc_copy           cases whose suite or name contains this
//! cargo test -p stead --test compat -- --show dsc_copy 3  one case in full, by its place in its suite
//! STEAD_COMPAT_VERBOSE=1                                  why cases fail
//! ```
//!
//! A case agrees, or does so when `STEAD_COMPAT=strict` keeps a failed run from printing results, or deviates as
//! `docs/deviations.md` says it does, or fails. A listed deviation that agrees is an error of the list.
//! `corpus/compat/required.txt` says how much of what is recorded must agree; of the cases of this repository all do.

mod case;
mod compare;
mod deviations;
mod listing;
mod own;
mod processes;
mod sandbox;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use case::Case;
use deviations::{Deviations, Share};
use sandbox::Places;

/// Each run is a few short processes; more threads than this do not help a small machine.
const THREADS: usize = 2;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            drop(writeln!(io::stderr(), "compat: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<bool, Box<dyn Error>> {
    let root = stead_testkit::repository();
    let mut cases = own::read(&root.join("corpus/compat/cases"))?;
    let own: BTreeSet<String> = cases.iter().map(|case| case.suite.clone()).collect();
    let recorded = root.join("../shared/corpus/dsc/cases.jsonl");
    let has_recorded = recorded.exists();
    if has_recorded {
        cases.extend(case::read(&recorded)?);
    } else {
        stead_testkit::skip("compat, the recorded cases", &format!("there are none at {}", recorded.display()));
    }
    let harness = Harness::new(&root)?;
    check_comparison(&cases)?;
    let args: Vec<String> = env::args().skip(1).collect();
    if let [flag, suite, place] = args.as_slice()
        && flag == "--show"
    {
        return harness.show(&cases, suite, place.parse()?);
    }
    let filters: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let chosen: Vec<&Case> = cases.iter().filter(|case| is_chosen(case, &filters)).collect();
    let verdicts = harness.judge(&chosen);
    let tally = Tally::of(&chosen, &verdicts);
    let mut out = io::stdout().lock();
    report(&mut out, &chosen, &verdicts)?;
    tally.print(&mut out)?;
    if !filters.is_empty() {
        return Ok(tally.is_clean());
    }
    let idle: Vec<String> = harness.deviations.idle(&cases).collect();
    for entry in idle.iter().filter(|_| has_recorded) {
        writeln!(out, "docs/deviations.md lists a case that is not there: {entry}")?;
    }
    let mut required = all_of(own);
    if has_recorded {
        required.extend(deviations::required(&root.join("corpus/compat/required.txt"))?);
    }
    Ok(tally.reaches(&required, &mut out)? && (idle.is_empty() || !has_recorded))
}

/// Requires every case of some suites to agree.
fn all_of(suites: BTreeSet<String>) -> BTreeMap<String, Share> {
    suites.into_iter().map(|suite| (suite, Share { agree: 100, good: 100 })).collect()
}

/// A recorded answer agrees with itself, and not with itself corrupted, or the comparison is wrong.
fn check_comparison(cases: &[Case]) -> Result<(), String> {
    for case in cases {
        for run in &case.runs {
            if let Some(difference) = compare::difference(run, &run.answer) {
                return Err(format!("{} #{} differs from itself: {difference}", case.suite, case.place));
            }
            if let Some(what) = compare::corrupted(&run.answer)
                .find_map(|(what, answer)| compare::difference(run, &answer).is_none().then_some(what))
            {
                return Err(format!("{} #{} agrees with itself {what}", case.suite, case.place));
            }
        }
    }
    Ok(())
}

fn is_chosen(case: &Case, filters: &[&String]) -> bool {
    let matches = |filter: &&String| case.suite.contains(filter.as_str()) || case.name.contains(filter.as_str());
    filters.is_empty() || filters.iter().any(matches)
}

/// The outcome of a case.
enum Verdict {
    /// The answers are the recorded ones.
    Agrees,
    /// They are the recorded ones when the results of failed runs are not to be printed.
    Strict,
    /// They differ, as listed.
    Deviates,
    /// They differ, and nobody said that they should.
    Fails(String),
    /// They are the recorded ones, although they are listed to differ.
    Listed,
}

/// The programs and folders that are needed to judge cases.
struct Harness {
    program: PathBuf,
    corpus: PathBuf,
    deviations: Deviations,
}

impl Harness {
    fn new(root: &Path) -> Result<Self, Box<dyn Error>> {
        build_test_resources()?;
        Ok(Self {
            program: linked(),
            corpus: root.join("corpus/compat").canonicalize()?,
            deviations: Deviations::read(&root.join("docs/deviations.md"))?,
        })
    }

    /// One verdict for each case, in their order.
    fn judge(&self, cases: &[&Case]) -> Vec<Verdict> {
        let next = AtomicUsize::new(0);
        let verdicts = Mutex::new(BTreeMap::new());
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    while let Some((index, case)) = take(cases, &next) {
                        let verdict = self.verdict(case);
                        verdicts.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(index, verdict);
                    }
                });
            }
        });
        verdicts.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).into_values().collect()
    }

    fn verdict(&self, case: &Case) -> Verdict {
        let verdict = self.unlisted(case).unwrap_or_else(|error| Verdict::Fails(format!("cannot be run: {error}")));
        match verdict {
            Verdict::Agrees | Verdict::Strict if self.deviations.lists(case) => Verdict::Listed,
            Verdict::Fails(_) if self.deviations.lists(case) => Verdict::Deviates,
            other => other,
        }
    }

    /// The verdict before the list of deviations is looked at.
    fn unlisted(&self, case: &Case) -> Result<Verdict, Box<dyn Error>> {
        let work = tempfile::tempdir()?;
        let places = self.places(work.path())?;
        places.write(&case.files)?;
        let mut verdict = Verdict::Agrees;
        for run in &case.runs {
            let mut actual = sandbox::answer(&self.program, &places, run)?;
            if compare::keeps_results(&run.answer, &actual) {
                actual.stdout.clear();
                if let Some(difference) = compare::difference(run, &actual) {
                    return Ok(Verdict::Fails(difference));
                }
                actual = sandbox::answer_with(&self.program, &places, run, &[("STEAD_COMPAT", "strict")])?;
                verdict = Verdict::Strict;
            }
            if let Some(difference) = compare::difference(run, &actual) {
                return Ok(Verdict::Fails(difference));
            }
        }
        Ok(verdict)
    }

    fn places(&self, work: &Path) -> Result<Places, Box<dyn Error>> {
        Ok(Places {
            resources: self.corpus.join("resources"),
            examples: self.corpus.join("examples"),
            programs: self.program.parent().ok_or("the program is in no folder")?.to_owned(),
            work: work.canonicalize()?,
        })
    }

    /// Prints what one case asks, what was recorded, and what stead answers.
    fn show(&self, cases: &[Case], suite: &str, place: usize) -> Result<bool, Box<dyn Error>> {
        let case = cases.iter().find(|case| case.suite == suite && case.place == place).ok_or("no such case")?;
        let work = tempfile::tempdir()?;
        let places = self.places(work.path())?;
        places.write(&case.files)?;
        let mut out = io::stdout().lock();
        writeln!(out, "{} #{}: {} ({})", case.suite, case.place, case.name, case.number)?;
        for run in &case.runs {
            let actual = sandbox::answer(&self.program, &places, run)?;
            writeln!(out, "\n$ stead {}", run.args.join(" "))?;
            writeln!(out, "{}", run.stdin.as_deref().unwrap_or_default())?;
            for (title, answer) in [("recorded", &run.answer), ("actual", &actual)] {
                writeln!(out, "--- {title}: exit {:?}\n{}\n{}", answer.exit, answer.stdout, answer.stderr)?;
            }
            let difference = compare::difference(run, &actual);
            writeln!(out, "=> {}", difference.as_deref().unwrap_or("agrees"))?;
        }
        Ok(true)
    }
}

fn take<'a>(cases: &[&'a Case], next: &AtomicUsize) -> Option<(usize, &'a Case)> {
    let index = next.fetch_add(1, Ordering::SeqCst);
    cases.get(index).map(|case| (index, *case))
}

/// The program behind the test resources is of another package, which cargo does not build for this test.
fn build_test_resources() -> Result<(), Box<dyn Error>> {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package", "stead-test-resources"]);
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    if build.status()?.success() { Ok(()) } else { Err("the test resources cannot be built".into()) }
}

/// How the cases of a suite went.
#[derive(Default)]
struct Counts {
    agree: usize,
    strict: usize,
    deviate: usize,
    fail: usize,
    /// Listed, but they agree.
    listed: usize,
}

impl Counts {
    fn add(&mut self, verdict: &Verdict) {
        *match verdict {
            Verdict::Agrees => &mut self.agree,
            Verdict::Strict => &mut self.strict,
            Verdict::Deviates => &mut self.deviate,
            Verdict::Fails(_) => &mut self.fail,
            Verdict::Listed => &mut self.listed,
        } += 1;
    }

    /// How many of a hundred cases agree, and how many are as intended; rounded down.
    fn percent(&self) -> Share {
        let agree = self.agree + self.strict;
        let cases = agree + self.deviate + self.fail + self.listed;
        let of_all = |some: usize| (some * 100).checked_div(cases).unwrap_or(100);
        Share { agree: of_all(agree), good: of_all(agree + self.deviate) }
    }
}

/// The counts of each suite, and of all together as `total`.
struct Tally(BTreeMap<String, Counts>);

impl Tally {
    fn of(cases: &[&Case], verdicts: &[Verdict]) -> Self {
        let mut suites: BTreeMap<String, Counts> = BTreeMap::new();
        for (case, verdict) in cases.iter().zip(verdicts) {
            suites.entry(case.suite.clone()).or_default().add(verdict);
            suites.entry("total".to_owned()).or_default().add(verdict);
        }
        Self(suites)
    }

    fn is_clean(&self) -> bool {
        self.0.values().all(|counts| counts.fail == 0 && counts.listed == 0)
    }

    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let [agree, strict, deviate, fail] = ["agree", "strict", "deviate", "fail"];
        writeln!(out, "{:32} {agree:>6} {strict:>6} {deviate:>8} {fail:>5} {agree:>6} % {:>5} %", "suite", "good")?;
        let (total, suites): (Vec<_>, Vec<_>) = self.0.iter().partition(|(suite, _)| *suite == "total");
        for (suite, counts) in suites.into_iter().chain(total) {
            let Counts { agree, strict, deviate, fail, listed } = counts;
            let (fail, share) = (fail + listed, counts.percent());
            write!(out, "{suite:32} {agree:>6} {strict:>6} {deviate:>8} {fail:>5}")?;
            writeln!(out, " {:>6} % {:>5} %", share.agree, share.good)?;
        }
        Ok(())
    }

    /// Returns whether every suite is as good as required, and no deviation is listed that is none.
    fn reaches(&self, required: &BTreeMap<String, Share>, out: &mut impl Write) -> io::Result<bool> {
        let mut reached = self.0.values().all(|counts| counts.listed == 0);
        for (suite, required) in required {
            let actual = self.0.get(suite).map(Counts::percent).unwrap_or_default();
            let numbers = [(actual.agree, required.agree, "agree"), (actual.good, required.good, "are as intended")];
            for (actual, required, what) in numbers.into_iter().filter(|(actual, required, _)| actual < required) {
                writeln!(out, "{suite}: {actual} % {what}; {required} % are required")?;
                reached = false;
            }
        }
        Ok(reached)
    }
}

/// Prints what needs looking at: deviations that are none, and in verbose mode every failure.
fn report(out: &mut impl Write, cases: &[&Case], verdicts: &[Verdict]) -> io::Result<()> {
    let verbose = env::var_os("STEAD_COMPAT_VERBOSE").is_some();
    for (case, verdict) in cases.iter().zip(verdicts) {
        let title = format!("{} #{}: {} ({})", case.suite, case.place, case.name, case.number);
        match verdict {
            Verdict::Listed => writeln!(out, "{title}\n    listed but agrees")?,
            Verdict::Fails(difference) if verbose => {
                let args = case.runs.iter().map(|run| run.args.join(" ")).collect::<Vec<_>>().join("\n    $ ");
                writeln!(out, "{title}\n    $ {args}\n    {difference}")?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// The program under the name that scripts call it by. It stays: the next run makes the same.
fn linked() -> PathBuf {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_stead"));
    let link = program.with_file_name("dsc");
    // Another run of the tests may have been faster.
    let _ = std::os::unix::fs::symlink("stead", &link);
    if link.exists() { link } else { program }
}
