//! The conditions that a process hands to the programs that it starts, besides their arguments.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::account::Account;
use crate::linux::process::INHERITED;

/// The variables, the mask for new files and the limits under which a process starts programs.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Conditions {
    /// Those of the variables that programs are given which decide what they do; the account's where a variable is not set.
    pub variables: BTreeMap<String, String>,
    /// The mask for new files, in octal.
    pub umask: String,
    /// The soft limits, by what the kernel calls them.
    pub limits: BTreeMap<String, String>,
}

/// Variables of a session, which differ between any two and decide nothing.
const OF_SESSIONS: [&str; 5] = ["XDG_*", "DSC_*", "DBUS_SESSION_BUS_ADDRESS", "NO_COLOR", "SHELL"];

impl Conditions {
    /// Those of this process.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn of_this_process() -> io::Result<Self> {
        Self::read(Path::new("/proc/self"))
    }

    /// Those of the main process of a system service; `None` where it does not run.
    ///
    /// # Errors
    /// When the kernel does not say, such as to another user than root.
    pub fn of_service(unit: &str) -> io::Result<Option<Self>> {
        let group = Path::new("/sys/fs/cgroup/system.slice").join(unit).join("cgroup.procs");
        let Ok(processes) = fs::read_to_string(group) else { return Ok(None) };
        let Some(first) = processes.lines().next() else { return Ok(None) };
        Self::read(&Path::new("/proc").join(first)).map(Some)
    }

    fn read(process: &Path) -> io::Result<Self> {
        let read = |name: &str| -> io::Result<String> {
            let file: PathBuf = process.join(name);
            Ok(String::from_utf8_lossy(&fs::read(file)?).into_owned())
        };
        let umask = read("status")?.lines().find_map(|line| Some(line.strip_prefix("Umask:")?.trim().to_owned()));
        Ok(Self {
            variables: variables(&read("environ")?),
            umask: umask.unwrap_or_default(),
            limits: read("limits")?.lines().skip(1).filter_map(limit).collect(),
        })
    }
}

fn variables(environment: &str) -> BTreeMap<String, String> {
    let account = Account::of_this_process();
    let of_account = account.iter().flat_map(Account::variables);
    let of_account = of_account.map(|(name, value)| (name.to_owned(), value.to_string_lossy().into_owned()));
    let own = environment.split('\0').filter_map(|variable| variable.split_once('='));
    let all = of_account.chain(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
    all.filter(|(name, _)| is_given(name)).collect()
}

fn is_given(name: &str) -> bool {
    let fits = |pattern: &str| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    };
    INHERITED.iter().any(|inherited| fits(inherited.name)) && !OF_SESSIONS.iter().any(|pattern| fits(pattern))
}

/// A line such as `Max open files            1024                 524288               files`.
fn limit(line: &str) -> Option<(String, String)> {
    const NAME: usize = 26;
    let (name, rest) = line.split_at_checked(NAME)?;
    Some((name.trim().to_lowercase(), rest.split_whitespace().next()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_for_programs_is_read() {
        let own = Conditions::of_this_process().unwrap();
        assert!(own.limits.contains_key("max open files") && own.umask.starts_with('0'), "{own:?}");
        let read = variables("PATH=/bin\0TOKEN=secret\0XDG_RUNTIME_DIR=/run\0LC_ALL=C\0");
        assert_eq!(
            (read.get("PATH").map(String::as_str), read.get("LC_ALL").map(String::as_str)),
            (Some("/bin"), Some("C"))
        );
        assert!(!read.contains_key("TOKEN") && !read.contains_key("XDG_RUNTIME_DIR"));
        assert_eq!(Conditions::of_service("stead-that-is-not-there.service").unwrap(), None);
    }
}
