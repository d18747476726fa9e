//! `Stead/Cron`: a job of cron.

use std::collections::BTreeMap;
use std::sync::Arc;

use stead_core::call::{Failure, Presumed};
use stead_core::claims::{Claims, Extent};
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Lint, TraceLevel};
use stead_system::fs::Ownership;

use crate::accounts::{Account, Databases, record_path};
use crate::declared::{Declared as _, States as _, ToValue as _};
use crate::edit::{FileLocks, Missing, files_in};
use crate::input::{ReadOnly, blocked, invalid, required};
use crate::part::{Instances, Location, Look, Part, Parts, Stated};
use crate::text::{CronCommand, CronValue, JobName, Schedule, Word, words};
use crate::{ALL, BuiltIn, reply};

mod lints;
mod table;

use lints::lints;
use table::{Flaw, Job, Table, is_name};

/// A job of cron: in a file of its own in /etc/cron.d, which is created with mode 0644 and removed with the job, or in the
/// crontab of a user, right below a comment with its name; only its variables may be between the two. Comments and other jobs
/// stay as they are. In a crontab, jobs that Puppet or Ansible named are found by these names.
#[resource(
    "Stead/Cron",
    about = "A job of cron, in a file of its own in /etc/cron.d or in the crontab of a user.",
    tags("cron", "schedule", "linux"),
    capabilities = ALL,
    state,
)]
struct Properties<'a> {
    /// The name of the job. In /etc/cron.d it is the name of the file: letters, digits, '-' and '_', since cron ignores files
    /// with other names.
    #[property(key)]
    name: JobName<'a>,
    /// system: the job is in a file in /etc/cron.d; user: it is in the crontab of the user, in /var/spool/cron/crontabs.
    #[property(identity)]
    #[serde(default)]
    #[schemars(extend("default" = "system"))]
    table: TableKind,
    /// When the job runs: minute, hour, day of the month, month and day of the week, or a word such as '@daily' or '@reboot'.
    /// Required unless '_exist' is false.
    #[property(required)]
    schedule: Option<Schedule<'a>>,
    /// The user that it runs as. Required unless '_exist' is false, and always for the crontab of a user.
    #[property(required, tells(table = "user"))]
    user: Option<Word<'a>>,
    /// The command line, as it is in the file: what is behind a '%' without a backslash is standard input, and of two
    /// backslashes in a row cron hands on one. Required unless '_exist' is false.
    #[property(required)]
    command: Option<CronCommand<'a>>,
    /// Environment variables of the job, such as MAILTO; others are removed. If not stated, those in the file stay as they
    /// are. In a crontab they are right in front of the job, and apply to the jobs below it, too.
    environment: Option<BTreeMap<&'a str, CronValue<'a>>>,
    /// The mode of the file, where it is one for which cron ignores it: others may write to it.
    #[property(shown)]
    mode: Option<ReadOnly<String>>,
    /// The owner of the file, where it is one for whom cron ignores it: root, or the user whose table it is, must own it.
    #[property(shown)]
    owner: Option<ReadOnly<String>>,
    /// Whether the job exists.
    exist: bool,
}

words! {
    /// Where a job is.
    #[derive(Default)]
    enum TableKind {
        /// In a file of its own.
        #[default]
        System = "system",
        /// In the crontab of its user.
        User = "user",
    }
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {
    fn check(&self) -> Result<(), Failure> {
        self.path()?;
        if self.environment.iter().flatten().any(|(name, _)| !is_name(name)) {
            return Err(invalid(Properties::ENVIRONMENT, "the names in 'environment' must be letters, digits and '_'"));
        }
        Ok(())
    }
}

/// `Stead/Cron` as it is registered.
pub(crate) fn built_in(locks: &FileLocks) -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Parts::<Cron>::new(locks)))
}

struct Cron;

impl Part for Cron {
    type Stated<'a> = Properties<'a>;
    const NOUN: &'static str = "job";
    const PACKAGES: &'static [&'static str] = &["cron", "cronie", "systemd-cron", "bcron"];
    const LINTER: Option<fn(&Object) -> Vec<Lint>> = Some(lints);

    fn claims(stated: &Value) -> Option<Claims> {
        let text = |name: &str| stated.get(name).and_then(Value::as_str);
        let name = text(Properties::NAME)?;
        if text(Properties::TABLE) != Some(TableKind::User.word()) {
            let is_removal = stated.get(Properties::EXIST) == Some(&Value::Bool(false));
            let extent = if is_removal { Extent::Absent } else { Extent::Whole };
            return Some(Claims::path(format!("{SYSTEM}/{name}"), extent));
        }
        let user = text(Properties::USER)?;
        let job = Extent::Part { line: None, key: Some(name.to_owned()) };
        Some(Claims::path(format!("{CRONTABS}/{user}"), job).and_reads(record_path("passwd", user)))
    }

    /// The jobs in files with one job each, and those with names in the crontabs of users.
    fn instances(cx: &Context, _filter: &Value, look: &Look<'_>) -> Result<Instances, Failure> {
        let mut found = Vec::new();
        for name in files_in(cx, SYSTEM)?.into_iter().filter(|name| is_file_name(name)) {
            let Some(text) = look(&format!("{SYSTEM}/{name}"))? else { continue };
            let table = Table::system(&text.content);
            match table.jobs() {
                [job] => found.push((name.clone(), listed(&name, TableKind::System, "", &table, job))),
                jobs => skipped(cx, jobs.len(), &format!("{SYSTEM}/{name}")),
            }
        }
        for user in files_in(cx, CRONTABS)? {
            let Some(text) = look(&format!("{CRONTABS}/{user}"))? else { continue };
            let table = Table::user(&text.content);
            let (named, unnamed): (Vec<_>, Vec<_>) = table.jobs().iter().partition(|job| job.name.is_some());
            skipped(cx, unnamed.len(), &format!("{CRONTABS}/{user}"));
            found.extend(named.into_iter().map(|job| {
                let name = job.name.unwrap_or_default();
                (format!("{user} {name}"), listed(name, TableKind::User, &user, &table, job))
            }));
        }
        Ok(found)
    }
}

const SYSTEM: &str = "/etc/cron.d";
const CRONTABS: &str = "/var/spool/cron/crontabs";

/// The group that crontab(1) of Debian belongs to, and that may look for crontabs.
const GROUP: &str = "crontab";

fn is_file_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Says which jobs an export leaves out: what has no name of its own cannot be found again.
fn skipped(cx: &Context, jobs: usize, path: &str) {
    if jobs > 0 {
        cx.say(TraceLevel::Warn, &format!("jobs without a name of their own in '{path}' are not exported: {jobs}"));
    }
}

fn listed(name: &str, kind: TableKind, user: &str, table: &Table<'_>, job: &Job<'_>) -> Object {
    let mut state = Object::from([(Properties::NAME.to_owned(), Value::from(name))]);
    if kind == TableKind::User {
        let of_user = [(Properties::TABLE, TableKind::User.word()), (Properties::USER, user)];
        state.extend(of_user.map(|(name, text)| (name.to_owned(), Value::from(text))));
    }
    state.extend(found(table, job));
    state
}

/// The properties of a job as it is in a table.
fn found(table: &Table<'_>, job: &Job<'_>) -> Object {
    let variables = table.variables(job).map(|(name, value)| (name.to_owned(), Value::from(value)));
    let found = [
        (Properties::SCHEDULE, Some(Value::from(job.schedule))),
        (Properties::USER, job.user.map(Value::from)),
        (Properties::COMMAND, Some(Value::from(job.command))),
        (Properties::ENVIRONMENT, Some(Value::Object(variables.collect()))),
    ];
    reply::stated(found)
}

impl<'a> Stated<'a> for Properties<'a> {
    fn owns_file(&self) -> bool {
        self.table == TableKind::System
    }

    fn location(&self, cx: &Context) -> Result<Location<'a>, Failure> {
        let shown = self.path()?;
        let path = cx.resolve(&shown);
        let (account, absent) = self.account(cx)?;
        // Cron ignores a table with another owner, or that others could have written, and looks for changes where the directory
        // was changed, which it is when the file is replaced.
        let missing = match self.table {
            TableKind::System => {
                // Who is not root has only files for another system.
                let ownership = Ownership { uid: stead_system::user::is_root().then_some(0), gid: None };
                Missing::Enforce { mode: 0o644, ownership, tolerated: 0o7755 }
            }
            TableKind::User => {
                let gid = Databases::read(cx)?.groups().find(GROUP).and_then(|group| group.number(2));
                let account = account.filter(|_| cx.gives_files_away());
                let ownership =
                    Ownership { uid: account.map(|account| account.uid), gid: gid.filter(|_| cx.gives_files_away()) };
                Missing::Enforce { mode: 0o600, ownership, tolerated: 0o600 }
            }
        };
        Ok(Location { shown: shown.into(), path, missing, directory: None, absent })
    }

    /// In a crontab, its user identifies a job as well.
    fn identity(&self) -> Object {
        let user = self.user.filter(|_| self.table == TableKind::User);
        let table = user.and_then(|_| self.table.to_value());
        reply::stated([(Self::NAME, self.name.to_value()), (Self::TABLE, table), (Self::USER, user.to_value())])
    }

    fn wanted(&self) -> Object {
        let mut wanted = self.stated();
        if self.table == TableKind::User {
            wanted.remove(Self::USER);
        }
        wanted
    }

    fn find(&self, text: &str) -> Result<Option<Object>, Failure> {
        let table = self.read_table(text);
        self.check_table(&table)?;
        let Some(job) = self.own_job(&table)? else { return Ok(None) };
        let mut found = found(&table, job);
        let same = |stated: &Schedule<'_>| stated.0.split_whitespace().eq(job.schedule.split_whitespace());
        if let Some(stated) = self.schedule.filter(same) {
            found.insert(Properties::SCHEDULE.to_owned(), Value::from(stated.0));
        }
        Ok(Some(found))
    }

    fn put(&self, text: &str) -> Result<String, Failure> {
        let table = self.read_table(text);
        let variables = self.environment.iter().flatten().map(|(name, value)| format!("{name}={}\n", value.quoted()));
        let variables: String = variables.collect();
        let user = self.user.filter(|_| self.table == TableKind::System).map(|user| user.0);
        let command = self.command.map(|command| command.0);
        let words: Vec<&str> = [self.schedule.map(|it| it.0), user, command].into_iter().flatten().collect();
        let job = format!("{variables}{}\n", words.join(" "));
        let replaces_variables = self.environment.is_some();
        Ok(match self.own_job(&table)? {
            Some(own) => table.with(own, &job, replaces_variables),
            None if self.table == TableKind::User => table.with_new(self.name.0, &job),
            None => table.with_only(&job, replaces_variables),
        })
    }

    fn remove(&self, text: &str) -> Result<String, Failure> {
        if self.table == TableKind::System {
            return Ok(String::new());
        }
        let table = self.read_table(text);
        Ok(self.own_job(&table)?.map_or_else(|| text.to_owned(), |own| table.without(own)))
    }
}

impl Properties<'_> {
    /// The account that the job runs as, or why there is none yet. An image may have no accounts.
    fn account(&self, cx: &Context) -> Result<(Option<Account>, Option<Presumed>), Failure> {
        let has_accounts = cx.manages_running_system() || cx.system_root.at("etc/passwd").status().is_some();
        // Every system that has accounts has root.
        let is_looked_up = |user: &Word<'_>| self.table == TableKind::User || has_accounts && user.0 != "root";
        let Some(user) = self.user.filter(is_looked_up) else {
            return Ok((None, None));
        };
        match Account::find(cx, user.0, Properties::USER)? {
            Ok(account) => Ok((Some(account), None)),
            // From the table of a user who is gone a job can still be removed.
            Err(_) if !self.exist => Ok((None, None)),
            Err(presumed) => Ok((None, Some(presumed))),
        }
    }

    /// Where the table is. Fails where the name cannot be that of a file, or the user is missing.
    fn path(&self) -> Result<String, Failure> {
        match (self.table, self.user) {
            (TableKind::System, _) if !is_file_name(self.name.0) => {
                Err(invalid(Properties::NAME, "'name' must be letters, digits, '-' and '_' for a job in /etc/cron.d"))
            }
            (TableKind::System, _) => Ok(format!("{SYSTEM}/{}", self.name.0)),
            (TableKind::User, Some(user)) if user.0.contains('/') || user.0.starts_with('.') => {
                Err(invalid(Properties::USER, "'user' must be the name of a user"))
            }
            (TableKind::User, Some(user)) => Ok(format!("{CRONTABS}/{}", user.0)),
            (TableKind::User, None) => Err(required(&[Properties::USER])),
        }
    }

    fn read_table<'t>(&self, text: &'t str) -> Table<'t> {
        if self.table == TableKind::User { Table::user(text) } else { Table::system(text) }
    }

    /// Fails if cron ignores the table of a job that is to exist, because of a line that a set leaves alone.
    fn check_table(&self, table: &Table<'_>) -> Result<(), Failure> {
        let stays = |flaw: &&(usize, Flaw)| self.exist && (flaw.1 != Flaw::Variable || self.environment.is_none());
        let Some((number, flaw)) = table.flaws().iter().find(stays) else { return Ok(()) };
        let why = match flaw {
            Flaw::Variable => "sets a variable to an empty value; write NAME=\"\"",
            Flaw::NoJob => "is neither a job nor a variable, a comment or blank",
        };
        Err(blocked("", format!("cron ignores the whole table '{}': its line {number} {why}", self.path()?)))
    }

    /// The job in a table. Fails when a file of its own has several.
    fn own_job<'j, 't>(&self, table: &'j Table<'t>) -> Result<Option<&'j Job<'t>>, Failure> {
        match (self.table, table.jobs()) {
            (TableKind::User, jobs) => Ok(jobs.iter().find(|job| job.name == Some(self.name.0))),
            (TableKind::System, [_, _, ..]) => {
                let hint = "Choose another name, or leave one job in it";
                Err(blocked(Properties::NAME, format!("'{}' has several jobs. {hint}", self.path()?)))
            }
            (TableKind::System, jobs) => Ok(jobs.first()),
        }
    }
}
