//! `stead test`: documents are tested as code is, each test in a root of its own.

mod file;
mod judge;
mod print;
mod root;
mod run;
mod write;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use stead_engine::{Cancel, Session, SessionOptions, folder_of};
use stead_system::scratch::Scratch;

use crate::exit::Exit;
use crate::input;
use crate::interrupt;
use crate::process_env::ProcessEnv;
use crate::request::TestRequest;
use crate::terminal::{complain, show_findings};
use file::{Root, Test, TestFile};
use run::Outcome;
pub(super) use write::{Observed, observed};

/// Runs the tests of files and folders.
pub(crate) fn test(request: &TestRequest, env: &ProcessEnv) -> Exit {
    tested(request, env).unwrap_or_else(|exit| exit)
}

/// All results, in the order of the files.
struct Results<'a> {
    tests: Vec<(&'a TestFile, &'a Test, Outcome)>,
    elapsed: Duration,
}

fn tested(request: &TestRequest, env: &ProcessEnv) -> Result<Exit, Exit> {
    let began = Instant::now();
    let files = read(&paths(request)?)?;
    let is_wanted = |test: &&Test| request.filter.as_ref().is_none_or(|part| test.name.value.contains(part));
    let all: Vec<(&TestFile, &Test)> =
        files.iter().flat_map(|file| file.tests.iter().filter(is_wanted).map(move |test| (file, test))).collect();
    if all.is_empty() {
        return Err(refused("no test has such a name", "without --filter all tests run"));
    }
    let cancel = Cancel::default();
    interrupt::catch_with(&cancel);
    let sessions = sessions(&all, env, &cancel);
    let scratch = scratch(&all)?;
    let outcomes = side_by_side(&all, &sessions, &scratch, request, env);
    scratch.remove();
    let tests = all.into_iter().zip(outcomes).map(|((file, test), outcome)| (file, test, outcome)).collect();
    let results = Results { tests, elapsed: began.elapsed() };
    print::print(&results, request.form);
    if cancel.is_cancelled() {
        return Err(Exit::Cancelled);
    }
    let failed = results.tests.iter().any(|(_, _, outcome)| !outcome.failures.is_empty());
    Ok(if failed { Exit::Failed } else { Exit::Success })
}

fn refused(message: &str, help: &str) -> Exit {
    complain(&format!("error: {message}"));
    complain(&format!("help: {help}"));
    Exit::Unusable
}

/// The files of tests that are named, and those in the folders that are.
fn paths(request: &TestRequest) -> Result<Vec<PathBuf>, Exit> {
    let mut found = Vec::new();
    for path in &request.paths {
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        let mut below = Vec::new();
        collect(path, 0, &mut below).map_err(|error| {
            complain(&format!("error: cannot look through {}: {error}", path.display()));
            Exit::Failed
        })?;
        below.sort();
        // What is looked for here is named from here.
        found.extend(below.into_iter().map(|path| path.strip_prefix(".").map(Path::to_owned).unwrap_or(path)));
    }
    if found.is_empty() {
        let folders = request.paths.iter().map(|path| format!("'{}'", path.display())).collect::<Vec<_>>().join(", ");
        return Err(refused(
            &format!("no test files found in {folders}"),
            "their names end in .test.yaml; 'stead new test DOCUMENT' writes one",
        ));
    }
    Ok(found)
}

/// How deep folders of tests may be.
const DEEPEST: usize = 32;

/// Links to folders are not followed, and what is hidden is left out.
fn collect(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        let kind = entry.file_type()?;
        if kind.is_dir() && !is_hidden && depth < DEEPEST {
            collect(&entry.path(), depth + 1, found)?;
        } else if !kind.is_dir() && file::has_tests(&entry.path()) {
            found.push(entry.path());
        }
    }
    Ok(())
}

fn read(paths: &[PathBuf]) -> Result<Vec<TestFile>, Exit> {
    let mut files = Vec::new();
    let mut is_wrong = false;
    for path in paths {
        let text = input::read(path).map_err(|error| {
            complain(&format!("error: {error}"));
            Exit::Unusable
        })?;
        match file::read(path, text.text) {
            Ok(read) => files.push(read),
            Err((findings, sources)) => {
                show_findings(&findings, &sources);
                is_wrong = true;
            }
        }
    }
    if is_wrong { Err(Exit::Unusable) } else { Ok(files) }
}

/// A session for the documents of each folder: resources are looked for once.
fn sessions(all: &[(&TestFile, &Test)], env: &ProcessEnv, cancel: &Cancel) -> BTreeMap<PathBuf, Session> {
    let folders = all.iter().map(|(_, test)| folder_of(&test.document));
    let options = SessionOptions { cancel: cancel.clone(), private_root: true, ..SessionOptions::default() };
    folders.map(|folder| (folder.clone(), env.host.session_with(folder, options.clone()))).collect()
}

/// Where the roots are: in memory, unless they are copies of folders, which may be large.
fn scratch(all: &[(&TestFile, &Test)]) -> Result<Scratch, Exit> {
    let copies = all.iter().any(|(_, test)| matches!(test.given.root, Root::Copy(_)));
    scratch_for(copies)
}

fn scratch_for(copies: bool) -> Result<Scratch, Exit> {
    let made = if copies { Scratch::for_program() } else { Scratch::new(false) };
    made.map_err(|error| {
        complain(&format!("error: cannot create a folder in {}: {}", error.above.display(), error.source));
        Exit::Failed
    })
}

/// Carries out all tests, as many at once as asked for. The outcomes are in their order.
fn side_by_side(
    all: &[(&TestFile, &Test)],
    sessions: &BTreeMap<PathBuf, Session>,
    scratch: &Scratch,
    request: &TestRequest,
    env: &ProcessEnv,
) -> Vec<Outcome> {
    let width = request.width.0.unwrap_or_else(|| env.host.width()).get().min(all.len());
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..width {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some((file, test)) = all.get(at) else { return };
                    let Some(session) = sessions.get(&folder_of(&test.document)) else { return };
                    let outcome = run::run(file, test, session, scratch, &format!("root-{at}"));
                    if sender.send((at, outcome)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
    });
    let mut outcomes: Vec<(usize, Outcome)> = receiver.into_iter().collect();
    outcomes.sort_by_key(|(at, _)| *at);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}
