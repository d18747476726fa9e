//! The account that this process runs as.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// Where the accounts of the system are.
const ACCOUNTS: &str = "/etc/passwd";

/// The entry of a user in the accounts of the system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Account {
    name: OsString,
    home: OsString,
    shell: OsString,
}

impl Account {
    /// That of the user of this process; `None` where it is not among the accounts of the system.
    pub(crate) fn of_this_process() -> Option<Self> {
        Self::find(&std::fs::read(ACCOUNTS).ok()?, rustix::process::geteuid().as_raw())
    }

    /// The variables that a login sets, and their values.
    pub(crate) fn variables(&self) -> [(&'static str, &OsString); 4] {
        [("HOME", &self.home), ("USER", &self.name), ("LOGNAME", &self.name), ("SHELL", &self.shell)]
    }

    /// The first account of a user in a text such as that of `/etc/passwd`.
    pub(crate) fn find(accounts: &[u8], user: u32) -> Option<Self> {
        let text = |field: &[u8]| OsString::from_vec(field.to_vec());
        accounts.split(|byte| *byte == b'\n').find_map(|line| {
            let fields: Vec<&[u8]> = line.split(|byte| *byte == b':').collect();
            let [name, _, number, _, _, home, shell] = fields.as_slice() else { return None };
            let number: u32 = std::str::from_utf8(number).ok()?.parse().ok()?;
            (number == user).then(|| Self { name: text(name), home: text(home), shell: text(shell) })
        })
    }
}
