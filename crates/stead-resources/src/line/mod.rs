//! `Stead/Line`: one line of a text file.

use std::sync::Arc;

use stead_core::call::{Execution, Failure, Presumed};
use stead_core::claims::{Claims, Extent};
use stead_core::destruction::{Effect, Effects, Item, ItemKind};
use stead_core::statements::Statement;
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Cost, LineTest, Lint, Linter, Plain, Provider, SetReply, State, TestReply};
use stead_system::fs::{Place, SystemPath};

use crate::declared::Declared as _;
use crate::edit::{self, Edit, FileLocks, Files, Match, Missing, Outcome, Patterns, Position};
use crate::guard::{self, Guard, in_use};
use crate::input::{FilePath, blocked, read};
use crate::text::SingleLine;
use crate::{BuiltIn, pending, reply};

mod lines;

use lines::{Ambiguous, Lines, Step, Wanted};

type Text = edit::Text<Lines>;

/// One line of a text file. Many instances may share a file. The rest of the file stays as it is, with its line endings
/// and with or without a newline at its end; it is replaced at once and keeps its mode and owner.
#[resource(
    "Stead/Line",
    about = "A line of a text file.",
    tags("file", "line", "text", "linux"),
    exclusive(after, before),
    always_any(line, pattern)
)]
#[schemars(
    extend("anyOf" = [{ "required": ["line"] }, { "required": ["match"] }], "not" = { "required": ["after", "before"] })
)]
struct Properties<'a> {
    /// Where the file is. A relative path starts at the directory of the document, or at the system root that was given.
    #[property(place)]
    path: FilePath<'a>,
    /// The line, without its ending. Required unless '_exist' is false and 'match' is given.
    #[property(required)]
    line: Option<SingleLine<'a>>,
    /// A regular expression for the line that 'line' takes the place of when 'line' is not there. It is an error when
    /// several lines match that are not all equal to 'line'. With '_exist: false' every line that matches is removed.
    #[property(name = "match")]
    pattern: Option<&'a str>,
    /// Where a new line goes: after the last line that this regular expression matches, or at BOF (beginning of file) or EOF
    /// (end of file). At the end when no line matches.
    #[property(option)]
    after: Option<&'a str>,
    /// Where a new line goes: before the last line that this regular expression matches, or at BOF or EOF. At the end when
    /// no line matches.
    #[property(option)]
    before: Option<&'a str>,
    /// Whether 'after' and 'before' mean the first line that matches, in place of the last: such as the first section of a
    /// file, in front of which its general settings are.
    #[property(option)]
    first_match: bool,
    /// Whether the file is created, with mode 0644, when it is not there; with 0600 where the properties hold a secret.
    #[property(option)]
    create: bool,
    /// A command that must accept the whole file as it is to be before it is in place, such as 'nginx -t -c %s': words without a shell, with %s
    /// where the path of that goes, which is a file of the same name that only this user can read. If it ends with another
    /// exit code than 0, the file stays as it is. It is run where something is changed, not for a plan, and is a program of the
    /// running system.
    #[property(option, removal)]
    validate: Option<Guard<'a>>,
    /// Whether the line exists.
    exist: bool,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {}

/// `Stead/Line` as it is registered.
pub(crate) fn built_in(locks: &FileLocks) -> Option<BuiltIn> {
    Properties::built_in(Arc::new(LineProvider { files: Files::new(locks), patterns: Patterns::default() }))
}

/// Carries out `Stead/Line`.
struct LineProvider {
    files: Files<Lines>,
    patterns: Patterns,
}

impl Linter for LineProvider {
    /// Finds a pattern that does not match the line that takes the place of what it matches.
    fn lint(&self, properties: &Object) -> Vec<Lint> {
        let text = |name: &str| properties.get(name).and_then(Value::as_str);
        let is_removal = properties.get(Properties::EXIST) == Some(&Value::Bool(false));
        let both = text(Properties::PATTERN).zip(text(Properties::LINE)).filter(|_| !is_removal);
        let regex = both.and_then(|(pattern, _)| self.patterns.compile(Properties::PATTERN, pattern).ok());
        let apart = regex.zip(both).filter(|(regex, (_, line))| !regex.is_match(line.as_bytes()));
        let lint = apart.map(|_| {
            let message =
                "'match' does not match 'line': once 'line' is changed here, it is added beside the former one";
            Lint::new(
                &[Properties::PATTERN],
                message,
                "write a pattern that matches the line before and after, such as '^#?Port '",
            )
        });
        lint.into_iter().collect()
    }
}

impl Provider for LineProvider {
    fn linter(&self) -> Option<&dyn Linter> {
        Some(self)
    }

    fn validate(&self, cx: &Context, input: &Plain) -> Result<(), Failure> {
        Desired::read(cx, input, &self.patterns).map(|_| ())
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let desired = Desired::read(cx, input, &self.patterns)?;
        let text = self.files.look(cx, &desired.path)?;
        // Which line is meant does not depend on whether it should be there.
        let wanted = Wanted { exist: true, position: Position::End, ..desired.wanted };
        let desired = Desired { wanted, ..desired };
        let step = desired.decide_or_first(text.as_deref());
        Ok(Plain::new(desired.state(text.as_deref(), &step)))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired = Desired::read(cx, input, &self.patterns)?;
        let text = self.files.look(cx, &desired.path)?;
        let step = desired.decide(text.as_deref())?;
        let is_refused = text.is_none() && matches!(desired.missing, Missing::Refuse);
        let set = (!is_refused).then(|| desired.reply(&step, desired.effects(&step, text.as_deref())));
        let state = desired.state(text.as_deref(), &step);
        Ok(reply::tested_as(state, differing(&step).as_slice(), set.unwrap_or_default()))
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired = Desired::read(cx, input, &self.patterns)?;
        if execution == Execution::Actual {
            return self.bring_about(cx, &desired).map(|(step, effects)| desired.reply(&step, effects));
        }
        let text = self.files.look(cx, &desired.path)?;
        let step = desired.decide(text.as_deref())?;
        let reply = desired.reply(&step, desired.effects(&step, text.as_deref()));
        if let Outcome::Write(content) = desired.outcome(&step, text.as_deref()) {
            Files::predict(cx, &desired.path, text.as_deref(), desired.missing, &content);
        }
        let what_if = desired.intentions(&step, text.is_some());
        Ok(SetReply { presumed: desired.presumed(&step, text.as_deref())?, what_if, ..reply })
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        let desired = Desired::read(cx, input, &self.patterns)?;
        let desired = Desired { wanted: Wanted { exist: false, ..desired.wanted }, ..desired };
        if execution == Execution::WhatIf {
            let text = self.files.look(cx, &desired.path)?;
            return Ok(desired.intentions(&desired.decide(text.as_deref())?, text.is_some()));
        }
        self.bring_about(cx, &desired).map(|_| Vec::new())
    }

    fn cost(&self, _desired: &Value) -> Cost {
        Cost::Inline
    }

    fn states(&self, _cx: &Context, input: &Plain) -> Vec<Statement> {
        let text = |name| reply::text(input, name);
        let (Some(path), line) = (text(Properties::PATH), text(Properties::LINE)) else { return Vec::new() };
        // What a line is that takes the place of others, and whether a line is there at all.
        match (text(Properties::PATTERN), line) {
            (Some(pattern), Some(line)) if !reply::is_removal(input) => {
                let thing = format!("the line of '{path}' that matches '{pattern}'");
                vec![Statement { thing, property: Properties::LINE, value: Value::from(line) }]
            }
            (None, Some(line)) => reply::states(&format!("the line '{line}' of '{path}'"), input, &[]),
            _ => Vec::new(),
        }
    }

    fn added_lines(&self, input: &Plain) -> Vec<String> {
        let line = reply::text(input, Properties::LINE).filter(|_| !reply::is_removal(input));
        line.map(str::to_owned).into_iter().collect()
    }

    fn removed_lines(&self, input: &Plain) -> Option<LineTest> {
        let pattern = reply::text(input, Properties::PATTERN).filter(|_| reply::is_removal(input))?;
        let pattern = self.patterns.compile(Properties::PATTERN, pattern).ok()?;
        Some(Box::new(move |line| pattern.is_match(line.as_bytes())))
    }

    fn claims(&self, input: &Plain) -> Option<Claims> {
        let stated = input.expose();
        let line =
            stated.get(Properties::LINE).and_then(Value::as_str).filter(|_| stated.get(Properties::PATTERN).is_none());
        reply::claims(input, Extent::Part { line: line.map(str::to_owned), key: None })
    }
}

impl LineProvider {
    fn bring_about(&self, cx: &Context, desired: &Desired<'_>) -> Result<(Step, Effects), Failure> {
        let Some(place) = Place::find(&desired.path, &cx.writes)? else {
            return match (desired.wanted.exist, desired.missing) {
                (false, _) => Ok((Step::Keep, Effects::default())),
                (true, Missing::Create { .. } | Missing::Enforce { .. }) => Err(pending::no_directory(&desired.path)),
                // A directory alone would not help.
                (true, Missing::Refuse) => Err(edit::no_file(&desired.path)),
            };
        };
        self.files.edit(cx, &place, desired.missing, |text| {
            let step = desired.decide(text)?;
            let effects = desired.effects(&step, text);
            let outcome = desired.outcome(&step, text);
            guard::guarded(desired.guard, cx, &desired.path, &outcome, text)?;
            Ok(Edit { outcome, result: (step, effects) })
        })
    }
}

struct Desired<'a> {
    path_text: &'a str,
    path: SystemPath,
    wanted: Wanted<'a>,
    line_text: Option<&'a str>,
    match_text: Option<&'a str>,
    missing: Missing,
    guard: Option<Guard<'a>>,
}

impl<'a> Desired<'a> {
    fn read(cx: &Context, input: &'a Plain, patterns: &Patterns) -> Result<Self, Failure> {
        let stated: Properties<'a> = read(input)?;
        let matching = stated.pattern.map(|pattern| patterns.compile(Properties::PATTERN, pattern)).transpose()?;
        let line_text = stated.line.map(|line| line.0);
        let wanted = Wanted {
            exist: stated.exist,
            line: line_text.map(str::as_bytes),
            matching,
            position: Position::of(stated.after, stated.before, Match::of(stated.first_match), |name, text| {
                patterns.compile(name, text)
            })?,
        };
        let (path_text, path) = (stated.path.0.0, stated.path.0.resolve(cx));
        Ok(Self {
            path_text,
            path,
            wanted,
            line_text,
            match_text: stated.pattern,
            guard: in_use(stated.validate, cx),
            missing: Missing::create_if(stated.create).private_if_secret(input),
        })
    }

    fn decide(&self, text: Option<&Text>) -> Result<Step, Failure> {
        match text {
            Some(text) => text.content.decide(&self.wanted).map_err(|Ambiguous(found)| {
                let numbers = numbers(&found);
                // Of another text it may match one.
                blocked(
                    Properties::PATTERN,
                    format!("'match' matches several lines: {numbers}. Let it match the one that is meant"),
                )
            }),
            None if self.wanted.exist => Ok(Step::Insert(0)),
            None => Ok(Step::Keep),
        }
    }

    /// What a step makes of the file.
    fn outcome(&self, step: &Step, text: Option<&Text>) -> Outcome {
        let line = self.wanted.line.unwrap_or_default();
        match (step, text) {
            (Step::Keep, _) => Outcome::Keep,
            (step, Some(text)) => Outcome::Write(text.content.after(step, line)),
            (step, None) => Outcome::Write(Lines::new(Vec::new()).after(step, line)),
        }
    }

    fn reply(&self, step: &Step, effects: Effects) -> SetReply {
        SetReply { effects, ..reply::set(self.after(), differing(step).as_slice(), Vec::new()) }
    }

    /// What a step does to the line, and to which lines besides. One line that is replaced is in the state before.
    fn effects(&self, step: &Step, text: Option<&Text>) -> Effects {
        let mut effects = match step {
            Step::Keep => return Effects::default(),
            Step::Insert(at) => {
                let former =
                    |text: &Text| edit::place(*at, &text.status, at.checked_sub(1).map(|at| text.content.text(at)));
                Effects { place: text.map(former), ..Effects::of(Effect::Create) }
            }
            Step::Replace(_) => Effects::of(Effect::Change),
            Step::Remove(_) => Effects::of(Effect::Remove),
        };
        if let (Step::Remove(doomed), Some(text)) = (step, text) {
            for index in doomed {
                let line = String::from_utf8_lossy(text.content.text(*index)).into_owned();
                let kind = ItemKind::Line { number: *index as u64 + 1, text: line };
                effects.destroys.push(Item { path: self.path_text.to_owned(), kind });
            }
        }
        if text.is_none() {
            effects
                .creates
                .push(Item { path: self.path_text.to_owned(), kind: ItemKind::File { size: self.new_size() } });
        }
        effects
    }

    /// The size of a file that is created for the line.
    fn new_size(&self) -> u64 {
        self.line_text.map_or(0, |line| line.len() as u64 + 1)
    }

    /// What is not there yet without which the step cannot be taken.
    fn presumed(&self, step: &Step, text: Option<&Text>) -> Result<Option<Presumed>, Failure> {
        if *step == Step::Keep {
            return Ok(None);
        }
        Ok(Presumed::all([edit::presumed(&self.path, text, self.missing)?, self.guard.and_then(Guard::presumed)]))
    }

    fn intentions(&self, step: &Step, file_exists: bool) -> Vec<String> {
        let Some(done) = intention(step, file_exists) else { return Vec::new() };
        [done].into_iter().chain(self.guard.map(|guard| guard.intention(self.path_text))).collect()
    }

    /// The same for a mere look, to which the first of several lines is as good as any.
    fn decide_or_first(&self, text: Option<&Text>) -> Step {
        match text.map(|text| text.content.decide(&self.wanted)) {
            Some(Ok(step)) => step,
            Some(Err(Ambiguous(found))) => found.first().map_or(Step::Keep, |first| Step::Replace(*first)),
            None => Step::Insert(0),
        }
    }

    fn state(&self, text: Option<&Text>, step: &Step) -> Object {
        let found = |index: usize| text.map(|text| String::from_utf8_lossy(text.content.text(index)).into_owned());
        let desired = || self.line_text.map(str::to_owned);
        let (exist, line) = match step {
            Step::Keep => (self.wanted.exist, desired()),
            Step::Insert(_) => (false, desired()),
            Step::Replace(index) => (true, found(*index)),
            Step::Remove(doomed) => (true, doomed.first().and_then(|index| found(*index))),
        };
        self.described(exist, line)
    }

    fn after(&self) -> Object {
        self.described(self.wanted.exist, self.line_text.map(str::to_owned))
    }

    fn described(&self, exist: bool, line: Option<String>) -> Object {
        let mut state = Object::new();
        state.insert(Properties::PATH.into(), Value::from(self.path_text));
        for (name, text) in [(Properties::LINE, line), (Properties::PATTERN, self.match_text.map(str::to_owned))] {
            if let Some(text) = text {
                state.insert(name.into(), Value::from(text));
            }
        }
        state.insert(Properties::EXIST.into(), Value::from(exist));
        state
    }
}

fn differing(step: &Step) -> Option<&'static str> {
    match step {
        Step::Keep => None,
        Step::Insert(_) | Step::Remove(_) => Some(Properties::EXIST),
        Step::Replace(_) => Some(Properties::LINE),
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
