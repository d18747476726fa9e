//! Users and groups that come from a server, asked for by the program that the machine's own C library comes with.
//!
//! A program that is linked statically has no modules of that library, and reads `/etc/passwd` and `/etc/group` alone.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::{Entry, Key, Subject};
use crate::cancel::Cancel;
use crate::fs::User;
use crate::process::{self, Environment, Executable, Exit, Limits, Program};

/// Asks `getent`; `None` where it knows nobody by that key, and where there is no such program.
pub(super) fn ask(subject: Subject, key: Key<'_>) -> io::Result<Option<Entry>> {
    /// What the program answers for a key that is not there.
    const UNKNOWN: Exit = Exit::Code(2);
    let key = match key {
        // It would be taken for a number.
        Key::Name(name) if name.bytes().all(|byte| byte.is_ascii_digit()) => return Ok(None),
        Key::Name(name) => name.to_owned(),
        Key::Id(id) => id.to_string(),
    };
    if key.contains(['\0', '\n', ':']) {
        return Ok(None);
    }
    let path = ("PATH".into(), "/usr/bin:/bin".into());
    let environment = Environment::of([path], &[]).trusting(User::current().trust());
    let root = Path::new("/");
    let Some(executable) = Executable::find("getent", Path::new("/nonexistent"), &environment) else { return Ok(None) };
    let executable = executable.map_err(|refused| io::Error::other(refused.reason()))?;
    let database = match subject {
        Subject::User => "passwd",
        Subject::Group => "group",
    };
    let arguments: [OsString; 3] = [database.into(), "--".into(), key.into()];
    let (environment, variables, input) = (&environment, &[][..], None);
    let program =
        Program { executable: &executable, arguments: &arguments, directory: root, environment, variables, input };
    // A server that is away lets it wait; a resource that cannot learn whose a file is says so and is tried again.
    let limits = Limits { deadline: Duration::from_secs(30), output: 1 << 20, changes: false, ..Limits::default() };
    let finished = process::run(&program, &limits, &Cancel::default(), &mut |_| {}).map_err(io::Error::other)?;
    match finished.exit {
        Exit::Code(0) => Ok(entry(&String::from_utf8_lossy(&finished.stdout))),
        UNKNOWN => Ok(None),
        other => Err(io::Error::other(format!("getent ended with {other}"))),
    }
}

/// Reads a line of a database.
fn entry(line: &str) -> Option<Entry> {
    let fields: Vec<&str> = line.trim_end_matches('\n').split(':').collect();
    let number = |at: usize| fields.get(at)?.parse().ok();
    let home = fields.get(5).copied().unwrap_or_default().into();
    let name = fields.first().filter(|name| !name.is_empty())?;
    let id = number(2)?;
    Some(Entry { name: (*name).to_owned(), id, gid: number(3).unwrap_or(id), home })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::running_libc;

    #[test]
    fn the_program_of_the_machine_knows_whom_its_library_knows() {
        if !process::is_program(Path::new("/usr/bin/getent")) {
            return stead_testkit::skip("the_program_of_the_machine_knows_whom_its_library_knows", "no getent");
        }
        for (subject, key) in [
            (Subject::User, Key::Name("root")),
            (Subject::User, Key::Name("daemon")),
            (Subject::Group, Key::Name("daemon")),
            (Subject::User, Key::Id(1)),
            (Subject::Group, Key::Id(1)),
        ] {
            let known = running_libc(subject, key).unwrap();
            assert!(known.is_some(), "{key:?}");
            assert_eq!(ask(subject, key).unwrap(), known, "{key:?}");
        }
        for name in ["no-such-user", "-s", "--help", "0", "", "root\n", "root:x:0", "root\0"] {
            assert_eq!(ask(Subject::User, Key::Name(name)).unwrap(), None, "{name:?}");
        }
        assert_eq!(ask(Subject::Group, Key::Id(u32::MAX - 7)).unwrap(), None);
    }

    #[test]
    fn a_line_that_is_no_entry_is_nobody() {
        for line in ["", ":x:1:1::/:", "ann", "ann:x:many:1::/:", "ann:x:-1:1::/:"] {
            assert_eq!(entry(line), None, "{line}");
        }
        let ann = Entry { name: "ann".to_owned(), id: 7, gid: 8, home: "/srv/ann".into() };
        assert_eq!(entry("ann:x:7:8:Ann:/srv/ann:/bin/sh\n"), Some(ann));
        assert_eq!(entry("staff:x:9:ann,bob\n").map(|group| (group.name, group.id)), Some(("staff".to_owned(), 9)));
    }
}
