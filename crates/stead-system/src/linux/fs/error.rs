//! What the system says, where its kind does not tell.

use std::io;

use rustix::io::Errno;

/// What the system says where nothing is.
pub fn not_found() -> io::Error {
    Errno::NOENT.into()
}

/// What the system says to a user who may not read or write something.
pub fn access_denied() -> io::Error {
    Errno::ACCESS.into()
}

/// What the system says to a user who may not do something.
pub fn not_permitted() -> io::Error {
    Errno::PERM.into()
}

/// Returns whether something cannot be opened at all, as a socket, although it can be examined.
pub fn is_not_openable(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NXIO.raw_os_error())
}
