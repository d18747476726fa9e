//! The names and versions of the running kernel, and the name of the machine that it keeps.

use std::io;

use rustix::system::{Uname, sethostname, uname};

fn text(of: impl Fn(&Uname) -> &std::ffi::CStr) -> String {
    of(&uname()).to_string_lossy().into_owned()
}

/// Its name, such as `Linux`.
pub fn name() -> String {
    text(Uname::sysname)
}

/// Its release, such as `6.1.0-13-amd64`.
pub fn release() -> String {
    text(Uname::release)
}

/// The hardware that it runs on, such as `x86_64`.
pub fn hardware() -> String {
    text(Uname::machine)
}

/// The name of the machine.
pub fn host_name() -> String {
    text(Uname::nodename)
}

/// Gives the running machine another name, until it is started again.
pub fn set_host_name(name: &str) -> io::Result<()> {
    Ok(sethostname(name.as_bytes())?)
}
