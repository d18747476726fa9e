//! `Stead/Cron`: a job of cron.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use stead_core::call::Failure;
use stead_core::value::{Object, Value};
use stead_host::provider::Context;

use crate::edit::{FileLocks, Missing};
use crate::input::{CronName, Schedule, SingleLine, Word, invalid, refused, required};
use crate::part::lines::{inserted, lines};
use crate::part::{Location, Part, Parts, Stated};
use crate::{ALL_BUT_EXPORT, BuiltIn, Profile, is_wanted, schema};

mod schedule;

pub(crate) use schedule::is_schedule;

const PROFILE: Profile = Profile {
    type_name: "Stead/Cron",
    description: "A job of cron, in a file of its own in /etc/cron.d.",
    tags: &["cron", "schedule", "linux"],
    capabilities: ALL_BUT_EXPORT,
    schema: schema::of::<Properties<'_>>,
};

/// A job of cron, in a file of its own in /etc/cron.d, which is created with mode 0644. Comments in the file stay as they are. A
/// file with several jobs is refused; when the job is removed, so is the file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Stead/Cron")]
struct Properties<'a> {
    /// The name of the file: letters, digits, '-' and '_'. Cron ignores files with other names.
    #[serde(borrow)]
    name: CronName<'a>,
    /// When the job runs: minute, hour, day of the month, month and day of the week, or a word such as '@daily'. Required
    /// unless '_exist' is false.
    #[serde(borrow)]
    schedule: Option<Schedule<'a>>,
    /// The user who runs it. Required unless '_exist' is false.
    #[serde(borrow)]
    user: Option<Word<'a>>,
    /// The command line, as it is in the file: what is behind a '%' without a backslash is standard input. Required unless
    /// '_exist' is false.
    #[serde(borrow)]
    command: Option<SingleLine<'a>>,
    /// The variables that the job gets, such as MAILTO. Others are removed. Without it those in the file stay as they are.
    #[serde(borrow)]
    environment: Option<BTreeMap<&'a str, SingleLine<'a>>>,
    /// Whether the job is there.
    #[serde(rename = "_exist", default = "is_wanted")]
    exist: bool,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {
    fn check(&self) -> Result<(), Failure> {
        let stated =
            [("schedule", self.schedule.is_some()), ("user", self.user.is_some()), ("command", self.command.is_some())];
        if self.environment.iter().flatten().any(|(name, _)| !is_variable(name)) {
            return Err(invalid("environment", "the names in 'environment' must be letters, digits and '_'"));
        }
        if self.command.is_some_and(|command| command.0.trim().is_empty()) {
            return Err(invalid("command", "'command' must not be empty"));
        }
        let missing = stated.into_iter().find(|(_, is_stated)| self.exist && !is_stated);
        missing.map_or(Ok(()), |(name, _)| Err(required(&[name])))
    }
}

/// `Stead/Cron` as it is registered.
pub(crate) fn built_in(locks: &FileLocks) -> Option<BuiltIn> {
    let built_in = PROFILE.built_in(Arc::new(Parts::<Cron>::new(locks)))?;
    Some(BuiltIn { keys: &["name"], ..built_in })
}

struct Cron;

impl Part for Cron {
    type Stated<'a> = Properties<'a>;
    const NOUN: &'static str = "job";
    const OWNS_FILE: bool = true;

    fn claimed(stated: &Value) -> Option<String> {
        stated.get("name").and_then(Value::as_str).map(path_of)
    }
}

fn path_of(name: &str) -> String {
    format!("/etc/cron.d/{name}")
}

impl<'a> Stated<'a> for Properties<'a> {
    fn exist(&self) -> bool {
        self.exist
    }

    fn location(&self, cx: &Context) -> Result<Location<'a>, Failure> {
        let shown = path_of(self.name.0);
        let (path, missing) = (cx.resolve(&shown), Missing::create_if(true));
        Ok(Location { shown: shown.into(), path, missing, directory: None, absent: None })
    }

    fn identity(&self) -> Object {
        [("name".to_owned(), Value::from(self.name.0))].into()
    }

    fn wanted(&self) -> Object {
        let environment = self.environment.as_ref().map(|variables| {
            let variable = |(name, value): (&&str, &SingleLine<'_>)| ((*name).to_owned(), Value::from(value.0.trim()));
            Value::Object(variables.iter().map(variable).collect())
        });
        let stated = [
            ("schedule", self.schedule.map(|schedule| Value::from(schedule.0))),
            ("user", self.user.map(|user| Value::from(user.0))),
            ("command", self.command.map(|command| Value::from(command.0.trim()))),
            ("environment", environment),
        ];
        stated.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    fn find(&self, text: &str) -> Result<Option<Object>, Failure> {
        let Some(job) = self.only_job(text)? else { return Ok(None) };
        let schedule = self.schedule.map(|schedule| schedule.0);
        let same = |stated: &&str| stated.split_whitespace().eq(job.schedule.split_whitespace());
        let variables = text.lines().filter_map(variable).map(|(name, value)| (name.to_owned(), Value::from(value)));
        let found = [
            ("schedule", Value::from(schedule.filter(same).unwrap_or(job.schedule))),
            ("user", Value::from(job.user)),
            ("command", Value::from(job.command)),
            ("environment", Value::Object(variables.collect())),
        ];
        Ok(Some(found.map(|(name, value)| (name.to_owned(), value)).into()))
    }

    fn put(&self, text: &str) -> Result<String, Failure> {
        let variables = self.environment.iter().flatten().map(|(name, value)| format!("{name}={}\n", value.0.trim()));
        let words = [self.schedule.map_or("", |it| it.0), self.user.map_or("", |it| it.0)];
        let job = format!(
            "{}{} {}\n",
            variables.collect::<String>(),
            words.join(" "),
            self.command.map_or("", |it| it.0.trim())
        );
        let goes = |line: &str| self.environment.is_some() && variable(line).is_some();
        let kept = lines(text).into_iter().filter(|line| !goes(line.text));
        let line = |line: crate::part::lines::Line<'_>| match Job::of(line.text) {
            Some(_) => job.clone(),
            None => text.get(line.range).unwrap_or_default().to_owned(),
        };
        let edited: String = kept.map(line).collect();
        Ok(if self.only_job(text)?.is_some() { edited } else { inserted(&edited, edited.len(), &job) })
    }

    fn remove(&self, _text: &str) -> Result<String, Failure> {
        Ok(String::new())
    }
}

impl Properties<'_> {
    /// The job in a text. Fails when there are several.
    fn only_job<'t>(&self, text: &'t str) -> Result<Option<Job<'t>>, Failure> {
        let mut jobs = text.lines().filter_map(Job::of);
        match (jobs.next(), jobs.next()) {
            (Some(_), Some(_)) => {
                let path = path_of(self.name.0);
                Err(refused("name", format!("'{path}' has several jobs. Choose another name, or leave one job in it")))
            }
            (job, _) => Ok(job),
        }
    }
}

/// A line with a job.
struct Job<'t> {
    schedule: &'t str,
    user: &'t str,
    command: &'t str,
}

impl<'t> Job<'t> {
    fn of(line: &'t str) -> Option<Self> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || variable(line).is_some() {
            return None;
        }
        let columns = if line.starts_with('@') { 1 } else { 5 };
        let mut rest = line;
        for _ in 0..columns {
            rest = behind_word(rest)?;
        }
        let schedule = line.get(..line.len() - rest.len())?.trim_end();
        let command = behind_word(rest)?;
        Some(Self { schedule, user: rest.get(..rest.len() - command.len())?.trim_end(), command })
    }
}

/// What is behind the first word; `None` where nothing is.
fn behind_word(text: &str) -> Option<&str> {
    text.split_once(char::is_whitespace).map(|(_, rest)| rest.trim_start()).filter(|rest| !rest.is_empty())
}

/// The name and the value of a variable that a line sets.
fn variable(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let quoted = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    is_variable(name).then(|| (name, quoted('"').or_else(|| quoted('\'')).unwrap_or(value)))
}

fn is_variable(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|each| each.is_ascii_alphanumeric() || each == '_')
}
