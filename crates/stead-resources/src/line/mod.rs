//! `Stead/Line`: one line of a text file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use regex::bytes::Regex;
use rustix::fs::fstat;
use serde_json::{Map, Value as Json, json};
use stead_core::call::{Execution, Failure, FailureKind, Presumed};
use stead_core::value::Value;
use stead_host::fs::{self, Former, Ownership, Place, Replacement, Status};
use stead_host::lock::LockError;
use stead_host::provider::{Context, Cost, Plain, Provider, SetReply, State, TestReply};

use crate::file::{no_directory, presumed_place};
use crate::input::{Input, cannot, invalid, refused};
use crate::{ALL_BUT_EXPORT, BuiltIn, Profile, reply};

mod cache;
mod lines;

use cache::{Files, Patterns, Text};
use lines::{Ambiguous, Position, Step, Wanted};

const PROFILE: Profile = Profile {
    type_name: "Stead/Line",
    description: "A line of a text file.",
    tags: &["file", "line", "text", "linux"],
    capabilities: ALL_BUT_EXPORT,
    schema: include_str!("schema.json"),
};

const PROPERTIES: &[&str] = &["path", "line", "match", "after", "before", "create", "_exist"];

/// The mode of a file that is created for its first line.
const DEFAULT_MODE: u32 = 0o644;

/// `Stead/Line` as it is registered.
pub fn built_in() -> Option<BuiltIn> {
    PROFILE.built_in(Arc::new(LineProvider::default()))
}

/// Carries out `Stead/Line`.
///
/// Guarantees: calls for one file, by whatever paths to its directory, happen one after the other; none is lost.
#[derive(Default)]
pub struct LineProvider {
    files: Files,
    patterns: Patterns,
}

impl Provider for LineProvider {
    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let desired = Desired::read(cx, input, &self.patterns)?;
        let text = self.files.look(&desired.path)?;
        // Which line is meant does not depend on whether it should be there.
        let wanted = Wanted { exist: true, position: Position::End, ..desired.wanted };
        let desired = Desired { wanted, ..desired };
        let step = desired.decide_or_first(text.as_deref());
        Ok(Plain::new(desired.state(text.as_deref(), &step).into()))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired = Desired::read(cx, input, &self.patterns)?;
        let text = self.files.look(&desired.path)?;
        let step = desired.decide(text.as_deref())?;
        let differing = differing(&step);
        Ok(reply::tested(desired.state(text.as_deref(), &step), differing.as_slice()))
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired = Desired::read(cx, input, &self.patterns)?;
        let mut presumed = None;
        let (step, what_if) = match execution {
            Execution::WhatIf => {
                let text = self.files.look(&desired.path)?;
                let step = desired.decide(text.as_deref())?;
                let what_if = intention(&step, text.is_some());
                presumed = desired.presumed(&step, text.as_deref())?;
                (step, what_if.into_iter().collect())
            }
            Execution::Actual => (self.bring_about(cx, &desired)?, Vec::new()),
        };
        let reply = reply::set(desired.after(), differing(&step).as_slice(), what_if);
        Ok(SetReply { presumed, ..reply })
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        let desired = Desired::read(cx, input, &self.patterns)?;
        let desired = Desired { wanted: Wanted { exist: false, ..desired.wanted }, ..desired };
        if execution == Execution::WhatIf {
            let text = self.files.look(&desired.path)?;
            return Ok(intention(&desired.decide(text.as_deref())?, text.is_some()).into_iter().collect());
        }
        self.bring_about(cx, &desired).map(|_| Vec::new())
    }

    fn cost(&self, _desired: &Value) -> Cost {
        Cost::Inline
    }

    fn touches(&self, input: &Plain) -> Option<Vec<PathBuf>> {
        reply::touches(input)
    }
}

impl LineProvider {
    fn bring_about(&self, cx: &Context, desired: &Desired<'_>) -> Result<Step, Failure> {
        let Some(place) = Place::find(&desired.path, &cx.writes)? else {
            return if desired.wanted.exist { Err(no_directory(&desired.path)) } else { Ok(Step::Keep) };
        };
        let lock = self.files.lock(&place)?;
        let _held = cache::hold(&lock);
        let _locked = place.lock(&cx.cancel, cx.deadline).map_err(|error| not_locked(&desired.path, &error))?;
        fs::retry_changed(&desired.path, || self.attempt(&place, desired))
    }

    /// Takes the step that is needed; `None` when somebody else changed the file meanwhile.
    fn attempt(&self, place: &Place, desired: &Desired<'_>) -> Result<Option<Step>, Failure> {
        let text = self.files.look_at(place)?;
        let step = desired.decide(text.as_deref())?;
        if step == Step::Keep {
            return Ok(Some(step));
        }
        if text.is_none() && !desired.create {
            return Err(desired.no_file());
        }
        let content = match &text {
            Some(text) => text.lines.after(&step, desired.wanted.line.unwrap_or_default()),
            None => lines::Lines::new(Vec::new()).after(&step, desired.wanted.line.unwrap_or_default()),
        };
        let (mode, ownership) = text.as_deref().map_or((DEFAULT_MODE, Ownership::default()), |text| {
            let Status { mode, uid, gid, .. } = text.status;
            (mode, Ownership { uid: Some(uid), gid: Some(gid) })
        });
        let former = text.as_deref().map_or(Former::Absent, |text| Former::Unchanged(&text.status));
        let mut replacement = Replacement::begin(place, former)?;
        if let Some(former) = place.open(cache::LOOK)? {
            replacement.keep_attributes(&former.into())?;
        }
        replacement.write(&content)?;
        let Some(file) = replacement.finish(mode, ownership)? else { return Ok(None) };
        let status = fstat(&file).map(Status::from).map_err(|errno| cannot("examine", &desired.path, errno))?;
        self.files.remember(&desired.path, Text::new(status, content));
        Ok(Some(step))
    }
}

fn not_locked(path: &Path, error: &LockError) -> Failure {
    let kind = match error {
        LockError::Cancelled => FailureKind::Cancelled,
        LockError::Deadline { .. } => FailureKind::Deadline,
        _ => FailureKind::System,
    };
    Failure::new(kind, format!("cannot lock '{}': {error}", path.display()))
}

struct Desired<'a> {
    path_text: &'a str,
    path: PathBuf,
    wanted: Wanted<'a>,
    line_text: Option<&'a str>,
    match_text: Option<&'a str>,
    create: bool,
}

impl<'a> Desired<'a> {
    fn read(cx: &Context, input: &'a Plain, patterns: &Patterns) -> Result<Self, Failure> {
        let input = Input::read(input, PROPERTIES, &[])?;
        let (path_text, path) = input.required_file("path", cx)?;
        let exist = input.flag("_exist")?.unwrap_or(true);
        let line_text = input.text("line")?;
        let match_text = input.text("match")?;
        if line_text.is_some_and(|line| line.contains(['\n', '\r'])) {
            return Err(invalid("line", "'line' has to be one line. Use an instance for each line"));
        }
        if line_text.is_none() && (exist || match_text.is_none()) {
            return Err(invalid("line", "the property 'line' is missing"));
        }
        let matching = match_text.map(|pattern| patterns.compile("match", pattern)).transpose()?;
        let position = read_position(&input, patterns)?;
        let wanted = Wanted { exist, line: line_text.map(str::as_bytes), matching, position };
        Ok(Self { path_text, path, wanted, line_text, match_text, create: input.flag("create")?.unwrap_or(false) })
    }

    fn decide(&self, text: Option<&Text>) -> Result<Step, Failure> {
        match text {
            Some(text) => text.lines.decide(&self.wanted).map_err(|Ambiguous(found)| {
                let numbers = numbers(&found);
                invalid(
                    "match",
                    format!("'match' matches several lines: {numbers}. Let it match the one that is meant"),
                )
            }),
            None if self.wanted.exist => Ok(Step::Insert(0)),
            None => Ok(Step::Keep),
        }
    }

    /// What is not there yet without which the step cannot be taken.
    fn presumed(&self, step: &Step, text: Option<&Text>) -> Result<Option<Presumed>, Failure> {
        match presumed_place(&self.path)? {
            _ if *step == Step::Keep => Ok(None),
            None if text.is_none() && !self.create => {
                Ok(Some(Presumed { failure: self.no_file(), path: Some(self.path.clone()) }))
            }
            presumed => Ok(presumed),
        }
    }

    fn no_file(&self) -> Failure {
        let hint = "Add 'create: true', or create it with a Stead/File that this instance depends on";
        refused("path", format!("there is no file '{}'. {hint}", self.path.display()))
    }

    /// The same for a mere look, to which the first of several lines is as good as any.
    fn decide_or_first(&self, text: Option<&Text>) -> Step {
        match text.map(|text| text.lines.decide(&self.wanted)) {
            Some(Ok(step)) => step,
            Some(Err(Ambiguous(found))) => found.first().map_or(Step::Keep, |first| Step::Replace(*first)),
            None => Step::Insert(0),
        }
    }

    fn state(&self, text: Option<&Text>, step: &Step) -> Map<String, Json> {
        let found = |index: usize| text.map(|text| String::from_utf8_lossy(text.lines.text(index)).into_owned());
        let desired = || self.line_text.map(str::to_owned);
        let (exist, line) = match step {
            Step::Keep => (self.wanted.exist, desired()),
            Step::Insert(_) => (false, None),
            Step::Replace(index) => (true, found(*index)),
            Step::Remove(doomed) => (true, doomed.first().and_then(|index| found(*index))),
        };
        self.described(exist, line)
    }

    fn after(&self) -> Map<String, Json> {
        self.described(self.wanted.exist, self.line_text.filter(|_| self.wanted.exist).map(str::to_owned))
    }

    fn described(&self, exist: bool, line: Option<String>) -> Map<String, Json> {
        let mut state = Map::new();
        state.insert("path".into(), json!(self.path_text));
        for (name, text) in [("line", line), ("match", self.match_text.map(str::to_owned))] {
            if let Some(text) = text {
                state.insert(name.into(), json!(text));
            }
        }
        state.insert("_exist".into(), json!(exist));
        state
    }
}

fn differing(step: &Step) -> Option<&'static str> {
    match step {
        Step::Keep => None,
        Step::Insert(_) | Step::Remove(_) => Some("_exist"),
        Step::Replace(_) => Some("line"),
    }
}

fn intention(step: &Step, file_exists: bool) -> Option<String> {
    match step {
        Step::Keep => None,
        Step::Insert(_) if !file_exists => Some("create the file with the line".to_owned()),
        Step::Insert(at) => Some(format!("add the line as line {}", at + 1)),
        Step::Replace(at) => Some(format!("replace line {}", at + 1)),
        Step::Remove(doomed) => {
            Some(format!("remove line{} {}", if doomed.len() > 1 { "s" } else { "" }, numbers(doomed)))
        }
    }
}

fn numbers(indices: &[usize]) -> String {
    indices.iter().map(|index| (index + 1).to_string()).collect::<Vec<_>>().join(", ")
}

fn read_position(input: &Input<'_>, patterns: &Patterns) -> Result<Position, Failure> {
    let position = |name, text, make: fn(Regex) -> Position| match text {
        "BOF" => Ok(Position::Begin),
        "EOF" => Ok(Position::End),
        pattern => patterns.compile(name, pattern).map(make),
    };
    match (input.text("after")?, input.text("before")?) {
        (Some(_), Some(_)) => Err(invalid("before", "'before' and 'after' exclude each other")),
        (Some(text), None) => position("after", text, Position::After),
        (None, Some(text)) => position("before", text, Position::Before),
        (None, None) => Ok(Position::End),
    }
}
