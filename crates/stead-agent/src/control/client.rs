//! The side of whoever asks.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use stead_host::fs::{OpenError, TrustedDirectory, User};

use super::{Request, Response, SOCKET};

/// Why an agent gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Nobody listens there.
    #[error("no agent is running in '{}'; 'stead agent run' starts one", .0.display())]
    NotRunning(PathBuf),
    /// Its directory is not to be used.
    #[error("cannot use the directory of the agent")]
    Directory(#[source] OpenError),
    /// The connection failed.
    #[error("cannot talk to the agent in '{}'", path.display())]
    Connection {
        /// The directory of the agent.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Asks the agent whose directory this is, and waits for its answer.
pub fn call(directory: &Path, request: &Request) -> Result<Response, CallError> {
    let failed = |source: io::Error| match source.kind() {
        // It was there a moment ago, in some of these cases.
        io::ErrorKind::NotFound
        | io::ErrorKind::ConnectionRefused
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => CallError::NotRunning(directory.to_owned()),
        _ => CallError::Connection { path: directory.to_owned(), source },
    };
    let absolute = std::path::absolute(directory).map_err(failed)?;
    let opened = TrustedDirectory::open(&absolute, User::current().trust()).map_err(|error| {
        if error.is_not_found() { CallError::NotRunning(directory.to_owned()) } else { CallError::Directory(error) }
    })?;
    let mut stream = UnixStream::connect(opened.through_descriptor(SOCKET.as_ref())).map_err(failed)?;
    let mut line = serde_json::to_vec(request).map_err(|error| failed(error.into()))?;
    line.push(b'\n');
    stream.write_all(&line).map_err(failed)?;
    let mut answer = String::new();
    if BufReader::new(stream).read_line(&mut answer).map_err(failed)? == 0 {
        return Err(failed(io::ErrorKind::UnexpectedEof.into()));
    }
    serde_json::from_str(&answer).map_err(|error| failed(error.into()))
}
