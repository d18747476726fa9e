//! Predicates for errors of the system that their kind does not tell apart.

use std::io;

use rustix::io::Errno;

/// The error of the system where nothing is.
pub fn not_found() -> io::Error {
    Errno::NOENT.into()
}

/// The error of the system for a user who may not read or write something.
pub fn access_denied() -> io::Error {
    Errno::ACCESS.into()
}

/// The error of the system for a user who may not do something.
pub fn not_permitted() -> io::Error {
    Errno::PERM.into()
}

/// Returns whether something cannot be opened at all, as a socket, although it can be examined.
pub fn is_not_openable(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NXIO.raw_os_error())
}
