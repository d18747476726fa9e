//! A program of the system that is called by its name.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use super::{Environment, Executable, Exit, Limits, Program, run};
use crate::cancel::Cancel;

/// Runs a program with arguments, found in the PATH of this process. An error is a sentence.
pub fn run_command(command: &[String]) -> Result<(), String> {
    let (program, arguments) = command.split_first().ok_or("the command is empty")?;
    let environment = Environment::of_this_process(&[]);
    let found = Executable::find(program, Path::new("/"), &environment);
    let executable = found.ok_or_else(|| format!("there is no program '{program}'"))?;
    let executable = executable.map_err(|refused| format!("the program '{program}' {}", refused.reason()))?;
    let path = executable.path();
    let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
    let program = Program {
        executable: &executable,
        arguments: &arguments,
        directory: Path::new("/"),
        environment: &environment,
        variables: &[],
        input: None,
    };
    let limits = Limits { deadline: Duration::from_mins(1), ..Limits::default() };
    let finished = run(&program, &limits, &Cancel::default(), &mut |_| {}).map_err(|error| error.to_string())?;
    match finished.exit {
        Exit::Code(0) => Ok(()),
        Exit::Code(code) => Err(format!("'{}' ended with exit code {code}", path.display())),
        Exit::Signal(signal) => Err(format!("'{}' was ended by signal {signal}", path.display())),
    }
}
