//! `stead new test`: a file of tests, by what a run does.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json, json};
use stead_core::parameters::Supplied;
use stead_core::text::{Source, Sources, Span, Spanned};
use stead_core::value::REDACTED;
use stead_core::visible::visible;
use stead_engine::{Session, SessionOptions};
use stead_system::fs::{SystemRoot, format_mode};

use super::file::{Expected, Given, Test, TestFile, file_beside};
use super::judge::Cover;
use super::root::{self, came_with_it, is_of_machine};
use super::run::{self, Runs};
use super::{judge, scratch_for};
use crate::exit::Exit;
use crate::input::{self, BadParameters, ParameterSources, Unreadable, folder};
use crate::process_env::ProcessEnv;
use crate::request::NewTestRequest;
use crate::terminal::{complain, show_findings, yaml};

/// The largest file whose content is written into a test, in bytes.
const LARGEST: usize = 2000;

/// A test that expects what a run did.
pub(crate) struct Observed {
    /// Its file.
    pub(crate) file: PathBuf,
    /// The text of that.
    pub(crate) text: String,
    /// The instances that failed, and with which messages: the test expects that.
    pub(crate) failures: Vec<(String, String)>,
}

/// Applies a document to a root of its own, and makes a test that expects the outcome.
pub(crate) fn observed(request: &NewTestRequest, env: &ProcessEnv) -> Result<Observed, Exit> {
    let document = &request.document;
    let path = request.file.clone().unwrap_or_else(|| file_beside(document));
    let mut sources = Sources::default();
    let source = sources.add(Source::new(path.display().to_string(), ""));
    let span = Span::new(source, 0, 0);
    let mut session =
        env.host.session_with(folder(document), SessionOptions { private_root: true, ..SessionOptions::default() });
    let given = Given { parameters: parameters(&mut session, request)?, ..Given::default() };
    let name = Spanned { value: "a new machine".to_owned(), span };
    let test = Test { name, document: document.clone(), given, expected: Expected::default() };
    let file = TestFile { path: path.clone(), tests: Vec::new(), sources };
    let scratch = scratch_for(false)?;
    let below = scratch.path().join("root");
    let made = root::make(&scratch, &below, &test.given);
    made.map_err(|why| complain(&format!("error: {why}"))).map_err(|()| Exit::Failed)?;
    let runs = run::observe(&file, &test, &session, &below).map_err(|outcome| {
        for failure in outcome.failures {
            let is_finding = failure.text.starts_with("error[");
            complain(&format!("{}{}", if is_finding { "" } else { "error: " }, failure.text));
        }
        Exit::Unusable
    })?;
    let failures = failures(&runs, &below);
    let written = text(request, &path, (&runs, &failures), &below);
    Ok(Observed { file: path, text: written, failures })
}

fn parameters(session: &mut Session, request: &NewTestRequest) -> Result<Supplied, Exit> {
    let unreadable = |error: Unreadable| {
        complain(&format!("error: {error}"));
        Exit::Unusable
    };
    let document = input::document(session, &request.document).map_err(unreadable)?;
    let from = ParameterSources { single: &request.single, document: Some(&document), ..ParameterSources::default() };
    // Where they stand is not a place of a test.
    let supplied = input::parameters(session, &from).map(|supplied| Supplied::from(supplied.values));
    supplied.map_err(|error| match error {
        BadParameters::Unreadable(error) => unreadable(error),
        BadParameters::Findings(findings) => {
            show_findings(&findings, &session.sources);
            Exit::Unusable
        }
    })
}

/// The instances that failed, each with the first line of its message; of one with a secret in it, without.
fn failures(runs: &Runs, root: &Path) -> Vec<(String, String)> {
    let cover = Cover::of(&runs.loaded.session);
    let shown = |message: String| {
        let first = message.lines().next().unwrap_or_default().replace(&root.display().to_string(), "");
        let is_secret = cover.is_needed(&first) || first.contains(REDACTED);
        if is_secret { String::new() } else { first }
    };
    judge::failed(&runs.apply).into_iter().map(|(name, message)| (name, shown(message))).collect()
}

fn text(request: &NewTestRequest, path: &Path, (runs, failures): (&Runs, &[(String, String)]), root: &Path) -> String {
    let cover = Cover::of(&runs.loaded.session);
    let plan: Map<String, Json> =
        judge::shown(&runs.plan).into_iter().map(|(name, planned)| (name, planned.word().into())).collect();
    let failures: Map<String, Json> =
        failures.iter().map(|(name, message)| (name.clone(), Json::from(message.as_str()))).collect();
    let mut files = Vec::new();
    collect(root, Path::new("/"), &mut files);
    let named = files.into_iter().map(|path| (path.display().to_string(), path));
    let named = named.filter(|(name, _)| !cover.is_needed(name));
    let files: Map<String, Json> = named.filter_map(|(name, path)| Some((name, file(root, &path, &cover)?))).collect();
    let mut expected = Map::new();
    for (name, members) in [("plan", plan), ("failures", failures), ("files", files)] {
        if !members.is_empty() {
            expected.insert(name.to_owned(), members.into());
        }
    }
    let mut test = Map::from_iter([("name".to_owned(), Json::from("a new machine"))]);
    let values = runs.loaded.prepared.graph.scopes.first().map(|scope| &scope.parameters);
    let stated = request.single.iter().filter_map(|(name, _)| Some((name, values?.get(name)?)));
    let (secret, open): (Vec<_>, Vec<_>) = stated.partition(|(_, value)| value.has_sealed());
    let parameters: Map<String, Json> =
        open.into_iter().map(|(name, value)| (name.clone(), value.to_redacted_json())).collect();
    if !parameters.is_empty() {
        test.insert("given".to_owned(), json!({ "parameters": parameters }));
    }
    test.insert("expect".to_owned(), expected.into());
    let mut file = Map::new();
    if path != file_beside(&request.document) {
        file.insert("document".to_owned(), named_from(path, &request.document).display().to_string().into());
    }
    file.insert("tests".to_owned(), json!([test]));
    let notes = secret.iter().map(|(name, _)| {
        format!("# The parameter '{}' is a secret: give it a value for tests in 'given'.\n", visible(name))
    });
    let head = "# Recorded by 'stead new test'. Keep what must stay true, and delete the rest.\n";
    format!("{head}{}{}", notes.collect::<String>(), yaml(&Json::from(file)))
}

/// The document as a file of tests names it: from its own folder, where it is there or on standard output.
fn named_from(file: &Path, document: &Path) -> PathBuf {
    let is_beside = input::is_standard(file) || folder(file) == folder(document);
    match document.file_name().filter(|_| is_beside) {
        Some(name) => name.into(),
        None => std::path::absolute(document).unwrap_or_else(|_| document.to_owned()),
    }
}

/// The files and links below a folder of the root, by their paths in it.
fn collect(root: &Path, folder: &Path, found: &mut Vec<PathBuf>) {
    let below = root.join(folder.strip_prefix("/").unwrap_or(folder));
    let entries = std::fs::read_dir(below).into_iter().flatten().filter_map(Result::ok);
    let mut entries: Vec<_> = entries
        .map(|entry| (folder.join(entry.file_name()), entry.file_type().is_ok_and(|kind| kind.is_dir())))
        .collect();
    entries.sort();
    for (path, is_folder) in entries {
        if is_folder { collect(root, &path, found) } else { found.push(path) }
    }
}

/// Returns the expectation of a path; `None` of a file that was there before. Of what is long, binary, or holds a secret, it is the mode.
fn file(root: &Path, path: &Path, cover: &Cover) -> Option<Json> {
    let below = root.join(path.strip_prefix("/").unwrap_or(path));
    let status = SystemRoot::below(root).at(path).status()?;
    if let Ok(target) = std::fs::read_link(&below) {
        let shown = target.display().to_string();
        let is_secret = cover.is_needed(&shown);
        let expected = || if is_secret { json!({ "kind": "link" }) } else { json!({ "target": shown }) };
        return (!is_of_machine(path, &target)).then(expected);
    }
    let content = std::fs::read(&below).ok()?;
    if came_with_it(path, &content) {
        return None;
    }
    let mode = format_mode(status.mode & 0o7777);
    match String::from_utf8(content) {
        Ok(text) if text.len() <= LARGEST && !cover.is_needed(&text) => Some(json!({ "content": text, "mode": mode })),
        _ => Some(json!({ "mode": mode })),
    }
}
