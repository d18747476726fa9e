//! The side of the agent.

use std::fs::Permissions;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use stead_host::fs::{TrustedDirectory, User};

use super::{MOST_BYTES, Request, Response, SOCKET};

/// Answers a request of a user.
pub(crate) type Answer = dyn Fn(Request, u32) -> Response + Send + Sync;

/// The socket. It is removed when this is dropped.
pub(crate) struct Listener {
    socket: UnixListener,
    directory: TrustedDirectory,
}

/// So many callers are answered at once; further ones wait.
const MOST_CALLERS: usize = 64;

/// How long a caller may take to send its request.
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
        Ok(Self { socket, directory })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.directory.through_descriptor(SOCKET.as_ref()));
    }
}

/// Answers everybody who may ask, each on a thread of its own. Returns when the socket fails for good.
pub(crate) fn serve(listener: &Listener, answer: &Arc<Answer>) {
    let callers = Arc::new(AtomicUsize::new(0));
    for stream in listener.socket.incoming() {
        let Ok(stream) = stream else {
            // Out of descriptors: some come back when callers are answered.
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        while callers.load(Ordering::Acquire) >= MOST_CALLERS {
            thread::sleep(Duration::from_millis(10));
        }
        callers.fetch_add(1, Ordering::AcqRel);
        let (answer, counted) = (Arc::clone(answer), Counted(Arc::clone(&callers)));
        let spawned = thread::Builder::new().name("control".to_owned()).spawn(move || {
            let _counted = counted;
            // A caller that is gone needs no answer.
            let _ = attend(stream, &*answer);
        });
        drop(spawned);
    }
}

/// A caller that is attended to, until this is dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn attend(mut stream: UnixStream, answer: &Answer) -> io::Result<()> {
    let caller = socket_peercred(&stream)?.uid;
    let response = if caller.is_root() || caller == geteuid() {
        stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
        stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
        let mut line = String::new();
        BufReader::new(&stream).take(MOST_BYTES).read_line(&mut line)?;
        match serde_json::from_str(&line) {
            Ok(request) => answer(request, caller.as_raw()),
            // The text may hold secrets; where it is wrong is enough.
            Err(error) => Response::refused(format!("the request is not understood (column {})", error.column())),
        }
    } else {
        Response::refused("only root and the user of the agent may ask")
    };
    let mut line = serde_json::to_vec(&response)?;
    line.push(b'\n');
    stream.write_all(&line)
}
