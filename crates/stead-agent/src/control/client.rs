//! The side of whoever asks.

use std::fs::{File, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize as _;
use serde_json::Value as Json;
use stead_system::fs::{OpenError, TrustedDirectory, User};
use stead_system::socket::Connection;
use stead_system::user;

use super::{Ask, Refused, Request, Response, SOCKET};
use crate::store::LOCK;

/// Where the agent of a machine keeps its state, if it is a service.
pub const SERVICE_STATE: &str = "/var/lib/stead";

/// How long an answer is waited for that takes no work.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why an agent gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Nobody listens there.
    #[error("no agent is running in '{}'; {}", .0.display(), way_out(.0, user::is_root(), Path::new(SERVICE_STATE)))]
    NotRunning(PathBuf),
    /// An agent runs, but its socket is gone.
    #[error("an agent is running in '{}' and cannot be reached: it has just been started, or its socket is gone. It makes \
        another one within a minute; else restart it", .0.display())]
    Unreachable(PathBuf),
    /// It does not answer.
    #[error("the agent in '{}' did not answer within {} s; 'journalctl -u stead-agent' may tell why", path.display(), after.as_secs())]
    NoAnswer {
        /// The directory of the agent.
        path: PathBuf,
        /// How long was waited.
        after: Duration,
    },
    /// Its answer has a form that this version does not know.
    #[error("the agent in '{}' is of another version: it did what was asked, but its answer cannot be read; restart it", path.display())]
    Form {
        /// The directory of the agent.
        path: PathBuf,
        /// Where it differs.
        #[source]
        source: serde_json::Error,
    },
    /// Its directory is not to be used.
    #[error("cannot use the directory of the agent")]
    Directory(#[source] OpenError),
    /// The connection failed.
    #[error("cannot talk to the agent in '{}'", path.display())]
    Connection {
        /// The directory of the agent.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

impl CallError {
    /// Returns whether no agent listens, which may be between two of its processes.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::NotRunning(_) | Self::Unreachable(_))
    }
}

/// Advice for a caller that found no agent: that of the machine, whose state is in `service`, answers only root.
fn way_out(directory: &Path, is_root: bool, service: &Path) -> String {
    if !is_root && directory != service && service.symlink_metadata().is_ok() {
        let place = service.display();
        format!("that of this machine keeps its state in '{place}' and answers root: try 'sudo stead agent'")
    } else {
        "'stead agent run' starts one".to_owned()
    }
}

impl Request {
    /// Returns how long its answer is waited for; `None` where resources are called for it, or documents read.
    fn patience(&self) -> Option<Duration> {
        match self {
            Self::Submit(_) | Self::Restore(_) | Self::Check(_) | Self::Get(_) => None,
            _ => Some(PATIENCE),
        }
    }
}

/// An answer to a question.
pub struct Answered<A> {
    /// The answer.
    pub answer: A,
    /// It with all that the agent sent, also what a newer one adds, as it is printed for programs.
    pub whole: Json,
}

/// Asks the agent whose directory this is, and waits for its answer: that, or why it was refused.
///
/// # Errors
/// When there is no agent, or its answer does not come or is not understood.
pub fn call<Q: Ask>(directory: &Path, question: Q) -> Result<Result<Answered<Q::Answer>, Refused>, CallError> {
    match send(directory, &question.into())? {
        Response::Refused(refused) => Ok(Err(refused)),
        Response::Done(whole) => match Q::Answer::deserialize(&whole) {
            Ok(answer) => Ok(Ok(Answered { answer, whole })),
            Err(source) => Err(CallError::Form { path: directory.to_owned(), source }),
        },
    }
}

fn send(directory: &Path, request: &Request) -> Result<Response, CallError> {
    let path = || directory.to_owned();
    let connection = |source: io::Error| CallError::Connection { path: path(), source };
    let absolute = std::path::absolute(directory).map_err(connection)?;
    let opened = TrustedDirectory::open(&absolute, User::current().trust()).map_err(|error| {
        if error.is_not_found() { CallError::NotRunning(path()) } else { CallError::Directory(error) }
    })?;
    ask(&opened, request).map_err(|source| match source.kind() {
        // It was there a moment ago, in some of these cases.
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused if is_locked(&opened) => {
            CallError::Unreachable(path())
        }
        io::ErrorKind::NotFound
        | io::ErrorKind::ConnectionRefused
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => CallError::NotRunning(path()),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => CallError::NoAnswer { path: path(), after: PATIENCE },
        _ => connection(source),
    })
}

/// The longest answer that is read, in bytes.
const MOST_ANSWERED: u64 = 64 << 20;

fn ask(directory: &TrustedDirectory, request: &Request) -> io::Result<Response> {
    let mut stream = Connection::connect(directory, SOCKET)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(request.patience())?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    if BufReader::new(stream).take(MOST_ANSWERED).read_line(&mut answer)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_str(&answer)?)
}

/// Returns whether an agent holds the lock of its directory.
fn is_locked(directory: &TrustedDirectory) -> bool {
    let file = File::open(directory.through_descriptor(LOCK.as_ref()));
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_users_are_sent_to_root_where_the_machine_has_an_agent() {
        let (service, none) = (Path::new("/"), Path::new("/nowhere/at/all"));
        let own = Path::new("/home/ann/.local/state/stead");
        assert!(way_out(own, false, service).contains("sudo stead agent"));
        for (directory, is_root, service) in [(own, true, service), (own, false, none), (service, false, service)] {
            assert_eq!(way_out(directory, is_root, service), "'stead agent run' starts one");
        }
    }
}
