//! The side of the agent.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use stead_system::fs::{TrustedDirectory, User};
use stead_system::socket::{Connection, PrivateListener};
use stead_system::user;

use super::{MOST_BYTES, Refused, Request, Response, SOCKET};

/// Answers a request of a user.
pub(crate) type Answer = dyn Fn(Request, u32) -> Response + Send + Sync;

/// The socket. It is removed when this is dropped, unless another one took its place.
pub(crate) struct Listener(PrivateListener);

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
        PrivateListener::bind(directory, SOCKET).map(Self)
    }

    /// Returns whether callers find this socket at its path.
    pub(crate) fn is_in_place(&self) -> bool {
        self.0.is_in_place()
    }

    /// Makes [`serve`] return; callers no longer find the socket.
    pub(crate) fn end(&self) {
        self.0.end();
    }
}

/// Answers every permitted caller, each on its own thread. Returns when the socket is closed.
pub(crate) fn serve(listener: &Listener, answer: &Arc<Answer>) {
    let callers = Arc::new(Callers::default());
    loop {
        let stream = match listener.0.next_connection() {
            Ok(Some(stream)) => stream,
            Ok(None) => return,
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
    sending: BTreeMap<u64, Connection>,
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
    fn of(callers: &Arc<Callers>, stream: &Connection) -> io::Result<Self> {
        let mut all = callers.lock();
        all.last += 1;
        let number = all.last;
        all.sending.insert(number, stream.try_clone()?);
        if all.sending.len() > MOST_SENDING
            && let Some((_, first)) = all.sending.pop_first()
        {
            let _ = first.end();
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

    fn attend(mut self, mut stream: Connection, answer: &Answer) -> io::Result<()> {
        let caller = stream.user()?;
        stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
        let response = if caller == 0 || caller == user::own() {
            let deadline = Instant::now() + REQUEST_TIMEOUT;
            let mut line = String::new();
            BufReader::new(Until { stream: &stream, deadline }).take(MOST_BYTES).read_line(&mut line)?;
            match serde_json::from_str(&line) {
                _ if !self.has_sent() => refused("the agent is busy with other requests; try again"),
                Ok(request) => answer(request, caller),
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
    stream: &'s Connection,
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
