//! Talking to other processes of this machine.

use std::fs::Permissions;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::sockopt::socket_peercred;

use super::fs::TrustedDirectory;

/// A connection with another process.
#[derive(Debug)]
pub struct Connection(UnixStream);

impl Connection {
    /// Connects with whoever listens under a name in a directory.
    pub fn connect(directory: &TrustedDirectory, name: &str) -> io::Result<Self> {
        UnixStream::connect(directory.through_descriptor(name.as_ref())).map(Self)
    }

    /// Returns this connection for another thread.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// The user of the process at the other end, as the system says.
    pub fn user(&self) -> io::Result<u32> {
        Ok(socket_peercred(&self.0)?.uid.as_raw())
    }

    /// The process at the other end, as the system says; `None` where it does not.
    pub(super) fn process(&self) -> Option<i32> {
        socket_peercred(&self.0).ok().map(|peer| peer.pid.as_raw_nonzero().get())
    }

    /// How long a read may take; `None` for as long as it takes.
    pub fn set_read_timeout(&self, longest: Option<Duration>) -> io::Result<()> {
        self.0.set_read_timeout(longest)
    }

    /// How long a write may take; `None` for as long as it takes.
    pub fn set_write_timeout(&self, longest: Option<Duration>) -> io::Result<()> {
        self.0.set_write_timeout(longest)
    }

    /// Sets whether reading and writing answer at once that they would have to wait.
    pub(super) fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.0.set_nonblocking(nonblocking)
    }

    /// Ends the connection for both sides and all clones.
    pub fn end(&self) -> io::Result<()> {
        self.0.shutdown(Shutdown::Both)
    }
}

impl Read for &Connection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(buffer)
    }
}

impl Read for Connection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Takes connections. Nothing is removed when this is dropped.
#[derive(Debug)]
pub struct Listener(UnixListener);

impl Listener {
    /// Listens at a path, where nothing is, in a directory that only this user can enter.
    pub fn bind(path: &Path) -> io::Result<Self> {
        UnixListener::bind(path).map(Self)
    }

    /// Takes the next connection.
    pub fn next_connection(&self) -> io::Result<Connection> {
        self.0.accept().map(|(stream, _)| Connection(stream))
    }

    pub(super) fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.0.set_nonblocking(nonblocking)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Takes connections under a name that only this user can use. The name is taken away when this is dropped, unless something else
/// has it by then.
pub struct PrivateListener {
    listener: Listener,
    directory: TrustedDirectory,
    name: String,
    /// Its device and inode.
    identity: (u64, u64),
}

impl PrivateListener {
    /// Listens under a name in a directory, in place of what has that: the caller knows that it belongs to nobody.
    pub fn bind(directory: TrustedDirectory, name: &str) -> io::Result<Self> {
        let path = directory.through_descriptor(name.as_ref());
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = Listener::bind(&path)?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        let identity = identity(&path).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(Self { listener, directory, name: name.to_owned(), identity })
    }

    fn path(&self) -> PathBuf {
        self.directory.through_descriptor(self.name.as_ref())
    }

    /// Returns whether callers find this one under its name.
    pub fn is_in_place(&self) -> bool {
        identity(&self.path()) == Some(self.identity)
    }

    /// Takes the next connection; `None` once [`Self::end`] was called.
    pub fn next_connection(&self) -> io::Result<Option<Connection>> {
        match self.listener.next_connection() {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(None),
            accepted => accepted.map(Some),
        }
    }

    /// Takes no more connections; callers no longer find it.
    pub fn end(&self) {
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        if self.is_in_place() {
            let _ = std::fs::remove_file(self.path());
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|found| (found.dev(), found.ino()))
}

impl Drop for PrivateListener {
    fn drop(&mut self) {
        self.end();
    }
}

/// Where the system takes messages one by one.
#[derive(Debug)]
pub struct Messages(UnixDatagram);

impl Messages {
    /// The journal of the system.
    pub fn to_journal() -> io::Result<Self> {
        Self::to(Path::new("/run/systemd/journal/socket"))
    }

    /// Reports a change of this service to the service manager, if that started it and waits for messages of it.
    pub fn notify_service_manager(text: &str) {
        let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
        if let Err(error) = Self::to(Path::new(&path)).and_then(|manager| manager.send(text.as_bytes())) {
            tracing::debug!("cannot notify systemd: {error}");
        }
    }

    fn to(path: &Path) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(path)?;
        Ok(Self(socket))
    }

    /// Sends a message.
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        self.0.send(message).map(drop)
    }
}
