//! `Microsoft/Process`: the processes that run.
//!
//! An instance stands for the process with its `pid`, or for the one of its `name` and `cmdline` with the lowest
//! number. A `pid` of 0 is none. Nothing is started or stopped.

#![expect(clippy::disallowed_methods, reason = "it asks the running kernel, and is not called for another system")]

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use stead_core::call::{Exported, Failure, FailureKind};
use stead_core::export::ExportFilter;
use stead_core::manifest::Capabilities;
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Cost, Plain, Provider, State};

use crate::declared::Declared as _;
use crate::input::{read, read_each, transient};
use crate::{BuiltIn, NOTHING, with_version};

pub(crate) fn built_in() -> Option<BuiltIn> {
    let built_in = Properties::built_in(Arc::new(Processes))?;
    Some(with_version(built_in, semver::Version::new(0, 1, 0)))
}

/// A process that runs. It can be read and asserted; to start and to stop programs is the business of services.
#[resource(
    "Microsoft/Process",
    about = "Returns information about running processes.",
    tags("process"),
    capabilities = Capabilities { get: true, export: true, export_filters: true, ..NOTHING },
    title = "Process",
)]
struct Properties<'a> {
    /// Its number; 0 stands for any.
    pid: Option<u64>,
    /// Its name as the kernel has it: at most 15 bytes of the file name of its program.
    name: Option<&'a str>,
    /// What it was started with, its words separated by spaces. Empty for what the kernel runs itself.
    cmdline: Option<&'a str>,
    /// Whether there is one.
    exist: bool,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {
    fn check(&self) -> Result<(), Failure> {
        let named = self.pid.is_some_and(|pid| pid != NO_PID) || self.name.is_some() || self.cmdline.is_some();
        let message = "'pid', 'name' or 'cmdline' is required. An export lists all processes";
        if named { Ok(()) } else { Err(Failure::new(FailureKind::Invalid, message)) }
    }
}

struct Processes;

impl Provider for Processes {
    fn validate(&self, _cx: &Context, input: &Plain) -> Result<(), Failure> {
        read::<Properties<'_>>(input).map(|_| ())
    }

    fn get(&self, _cx: &Context, input: &Plain) -> Result<State, Failure> {
        let wanted = Wanted::of(&read(input)?);
        let found = list(Path::new("/proc"))?.into_iter().find(|process| wanted.fits(process));
        Ok(Plain::new(found.map_or_else(|| wanted.missing(), |process| process.state())))
    }

    fn export(&self, _cx: &Context, input: &Plain) -> Result<Vec<Exported>, Failure> {
        read_each::<Properties<'_>>(input)?;
        let filter = filter(input.expose())?;
        let instance = |process: Process| {
            let properties = filter.apply(&process.state().into())?;
            Some(Exported { type_name: None, name: None, properties, depends_on: Vec::new(), metadata: None })
        };
        Ok(list(Path::new("/proc"))?.into_iter().filter_map(instance).collect())
    }

    fn cost(&self, _desired: &Value) -> Cost {
        // One file or two of each process.
        Cost::Process
    }
}

/// A process that runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its name as the kernel has it.
    pub name: String,
    /// What it was started with.
    pub cmdline: String,
}

impl Process {
    fn state(&self) -> Object {
        let Self { pid, name, cmdline } = self;
        let text = |name: &str, value: &String| (name.to_owned(), Value::from(value.as_str()));
        Object::from([
            (Properties::PID.to_owned(), Value::from(*pid)),
            text(Properties::NAME, name),
            text(Properties::CMDLINE, cmdline),
        ])
    }
}

/// Lists the processes of a file system like `/proc`, by their numbers. Processes that end meanwhile are left out.
pub fn list(proc: &Path) -> Result<Vec<Process>, Failure> {
    let unreadable =
        |error: io::Error| transient("", format!("cannot list the processes in {}: {error}", proc.display()));
    let mut found: Vec<Process> = fs::read_dir(proc)
        .map_err(unreadable)?
        .filter_map(Result::ok)
        .filter_map(|entry| process(entry.file_name().to_str()?.parse().ok()?, &entry.path()))
        .collect();
    found.sort_by_key(|process| process.pid);
    Ok(found)
}

fn process(pid: u32, folder: &Path) -> Option<Process> {
    let name = fs::read(folder.join("comm")).ok()?;
    let words = fs::read(folder.join("cmdline")).unwrap_or_default();
    let words: Vec<u8> = words.into_iter().map(|byte| if byte == 0 { b' ' } else { byte }).collect();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    Some(Process { pid, name: text(&name), cmdline: text(&words) })
}

/// The number that no process has, and that stands for none being given.
const NO_PID: u64 = 0;

/// Which processes are wanted.
fn filter(input: &Value) -> Result<ExportFilter, Failure> {
    let mut pattern = input.clone();
    if let Value::Object(members) = &mut pattern {
        members.retain(|name, value| name != Properties::PID || *value != Value::from(NO_PID));
    }
    ExportFilter::parse(&pattern).map_err(|error| Failure::new(FailureKind::Invalid, error.to_string()))
}

/// What the process is known by.
struct Wanted<'a> {
    pid: Option<u64>,
    name: Option<&'a str>,
    cmdline: Option<&'a str>,
}

impl<'a> Wanted<'a> {
    fn of(stated: &Properties<'a>) -> Self {
        Self { pid: stated.pid.filter(|pid| *pid != NO_PID), name: stated.name, cmdline: stated.cmdline }
    }

    fn fits(&self, process: &Process) -> bool {
        self.pid.is_none_or(|pid| pid == u64::from(process.pid))
            && self.name.is_none_or(|name| name == process.name)
            && self.cmdline.is_none_or(|cmdline| cmdline == process.cmdline)
    }

    /// The state of a process that is not there.
    fn missing(&self) -> Object {
        let known = [(Properties::NAME, self.name), (Properties::CMDLINE, self.cmdline)];
        let known = known.into_iter().filter_map(|(name, text)| Some((name.to_owned(), Value::from(text?))));
        let pid = self.pid.map(|pid| (Properties::PID.to_owned(), Value::from(pid)));
        let absent = (Properties::EXIST.to_owned(), Value::from(false));
        std::iter::once(absent).chain(pid).chain(known).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_found_by_its_number() {
        let own = std::process::id();
        let found = list(Path::new("/proc")).unwrap();
        assert!(found.is_sorted_by_key(|process| process.pid));
        let found = found.into_iter().find(|process| process.pid == own).unwrap();
        assert_eq!(found.cmdline.split(' ').next(), std::env::args().next().as_deref());
        assert!(!found.name.is_empty());
    }
}
