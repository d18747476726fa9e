//! The side of the agent.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use stead_system::fs::{TrustedDirectory, User};

use super::{MOST_BYTES, Refused, Request, Response, SOCKET};

/// Answers a request of a user.
pub(crate) type Answer = dyn Fn(Request, u32) -> Response + Send + Sync;

/// The socket. It is removed when this is dropped, unless another one took its place.
pub(crate) struct Listener {
    socket: UnixListener,
    directory: TrustedDirectory,
    /// Its device and inode.
    identity: (u64, u64),
}

/// Limit of callers that have not sent their request yet; beyond it the oldest is disconnected.
const MOST_SENDING: usize = 64;

/// Limit of requests that are answered at once; further callers are turned away.
const MOST_ANSWERED: usize = 256;

/// How long a caller may take to send its request, all of it.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

impl Listener {
    /// Listens in a directory whose lock the caller holds, so that a socket that is there belongs to nobody.
    pub(crate) fn bind(directory: &Path) -> io::Result<Self> {
        let directory = TrustedDirectory::open(directory, User::current().trust()).map_err(io::Error::other)?;
        let path = directory.through_descriptor(SOCKET.as_ref());
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = UnixListener::bind(&path)?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        let identity = identity(&path).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(Self { socket, directory, identity })
    }

    fn path(&self) -> PathBuf {
        self.directory.through_descriptor(SOCKET.as_ref())
    }

    /// Returns whether callers find this socket at its path.
    pub(crate) fn is_in_place(&self) -> bool {
        identity(&self.path()) == Some(self.identity)
    }

    /// Makes [`serve`] return; callers no longer find the socket.
    pub(crate) fn end(&self) {
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        if self.is_in_place() {
            let _ = std::fs::remove_file(self.path());
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|found| (found.dev(), found.ino()))
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.end();
    }
}

/// Answers every permitted caller, each on its own thread. Returns when the socket is closed.
pub(crate) fn serve(listener: &Listener, answer: &Arc<Answer>) {
    let callers = Arc::new(Callers::default());
    for stream in listener.socket.incoming() {
        let stream = match stream {
            Ok(stream) => stream,
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return,
            // Out of descriptors: some come back when callers are answered.
            Err(_) => {
                thread::sleep(Duration::from_millis(50));
                continue;
            }
        };
        let Ok(caller) = Caller::of(&callers, &stream) else { continue };
        let answer = Arc::clone(answer);
        let spawned = thread::Builder::new().name("control".to_owned()).spawn(move || {
            // A caller that is gone needs no answer.
            let _ = caller.attend(stream, &*answer);
        });
        drop(spawned);
    }
}

/// The open connections. A connection that sends nothing does not block other callers.
#[derive(Default)]
struct Callers(Mutex<Connections>);

#[derive(Default)]
struct Connections {
    last: u64,
    /// Those that have not sent their requests, the first one first.
    sending: BTreeMap<u64, UnixStream>,
    answered: usize,
}

impl Callers {
    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A caller, until this is dropped.
struct Caller {
    callers: Arc<Callers>,
    number: u64,
    is_answered: bool,
}

impl Caller {
    fn of(callers: &Arc<Callers>, stream: &UnixStream) -> io::Result<Self> {
        let mut all = callers.lock();
        all.last += 1;
        let number = all.last;
        all.sending.insert(number, stream.try_clone()?);
        if all.sending.len() > MOST_SENDING
            && let Some((_, first)) = all.sending.pop_first()
        {
            let _ = first.shutdown(Shutdown::Both);
        }
        Ok(Self { callers: Arc::clone(callers), number, is_answered: false })
    }

    /// It has sent its request. Whether it is answered.
    fn has_sent(&mut self) -> bool {
        let mut all = self.callers.lock();
        all.sending.remove(&self.number);
        self.is_answered = all.answered < MOST_ANSWERED;
        all.answered += usize::from(self.is_answered);
        self.is_answered
    }

    fn attend(mut self, mut stream: UnixStream, answer: &Answer) -> io::Result<()> {
        let user = socket_peercred(&stream)?.uid;
        stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
        let response = if user.is_root() || user == geteuid() {
            let deadline = Instant::now() + REQUEST_TIMEOUT;
            let mut line = String::new();
            BufReader::new(Until { stream: &stream, deadline }).take(MOST_BYTES).read_line(&mut line)?;
            match serde_json::from_str(&line) {
                _ if !self.has_sent() => refused("the agent is busy with other requests; try again"),
                Ok(request) => answer(request, user.as_raw()),
                // The text may hold secrets; where it is wrong is enough.
                Err(error) => refused(format!("the request is not understood (column {})", error.column())),
            }
        } else {
            refused("only root and the user of the agent may ask")
        };
        let mut line = serde_json::to_vec(&response)?;
        line.push(b'\n');
        stream.write_all(&line)
    }
}

fn refused(message: impl Into<String>) -> Response {
    Response::Refused(Refused::new(message))
}

impl Drop for Caller {
    fn drop(&mut self) {
        let mut all = self.callers.lock();
        all.sending.remove(&self.number);
        all.answered -= usize::from(self.is_answered);
    }
}

/// Reads until an instant, however little comes at a time.
struct Until<'s> {
    stream: &'s UnixStream,
    deadline: Instant,
}

impl Read for Until<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        let mut stream = self.stream;
        stream.read(buffer)
    }
}
