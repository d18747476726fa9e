//! Messages of an editor, within limits: no memory is reserved for a length that is only announced.

use std::io::{self, BufRead, Read, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crossbeam_channel::{Sender, bounded};
use lsp_server::{Connection, Message};
use stead_core::text::json_values;

/// The longest message: a document of the greatest length, in which every fourth character is escaped.
const LONGEST: u64 = 32 << 20;

/// How many values a message may hold.
const MAX_VALUES: usize = 500_000;

/// The longest line of a header.
const LONGEST_LINE: u64 = 8 << 10;

/// The threads that read and write for the server.
pub(crate) struct Threads {
    /// Why nothing more is read, unless the input has ended.
    unread: Arc<Mutex<Option<io::Error>>>,
    writer: JoinHandle<io::Result<()>>,
}

impl Threads {
    /// Waits until everything is written. The reader is left alone: it may wait for input that nobody sends any more.
    pub(crate) fn end(self) -> io::Result<()> {
        let written = self.writer.join().unwrap_or(Ok(()));
        let unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner).take();
        unread.map_or(written, Err)
    }
}

/// A connection over standard input and output.
pub(crate) fn stdio() -> (Connection, Threads) {
    let (to_server, receiver) = bounded(0);
    let (sender, from_server) = bounded::<Message>(0);
    let unread = Arc::<Mutex<Option<io::Error>>>::default();
    let noted = Arc::clone(&unread);
    std::thread::spawn(move || {
        let read = read_all(&mut io::stdin().lock(), &to_server);
        // Before the server learns that nothing more comes.
        *noted.lock().unwrap_or_else(PoisonError::into_inner) = read.err();
        drop(to_server);
    });
    let writer = std::thread::spawn(move || {
        let mut out = io::stdout();
        from_server.into_iter().try_for_each(|message| message.write(&mut out.lock()))?;
        out.flush()
    });
    (Connection { sender, receiver }, Threads { unread, writer })
}

/// Hands messages on until they end, or the one that ends the session.
fn read_all(input: &mut impl BufRead, to: &Sender<Message>) -> io::Result<()> {
    while let Some(message) = read(input)? {
        let is_last = matches!(&message, Message::Notification(said) if said.method == "exit");
        if to.send(message).is_err() || is_last {
            break;
        }
    }
    Ok(())
}

/// Reads one message; `None` at the end of the input.
fn read(input: &mut impl BufRead) -> io::Result<Option<Message>> {
    let Some(length) = read_header(input)? else { return Ok(None) };
    if length > LONGEST {
        return Err(invalid(format!("a message of {length} bytes is too long; at most {LONGEST} are read")));
    }
    let mut bytes = Vec::new();
    input.take(length).read_to_end(&mut bytes)?;
    if (bytes.len() as u64) < length {
        return Ok(None);
    }
    if json_values(&bytes) > MAX_VALUES {
        return Err(invalid(format!("a message has more than {MAX_VALUES} values")));
    }
    serde_json::from_slice(&bytes).map(Some).map_err(|error| invalid(format!("malformed message: {error}")))
}

/// The length that a header announces; `None` at the end of the input.
fn read_header(input: &mut impl BufRead) -> io::Result<Option<u64>> {
    let mut length = None;
    loop {
        let mut line = Vec::new();
        if input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let line = line.strip_suffix(b"\r\n").and_then(|line| std::str::from_utf8(line).ok());
        let line = line.ok_or_else(|| invalid("malformed header".to_owned()))?;
        if line.is_empty() {
            return length.map(Some).ok_or_else(|| invalid("a header without Content-Length".to_owned()));
        }
        let (name, value) = line.split_once(':').ok_or_else(|| invalid("malformed header".to_owned()))?;
        if name.eq_ignore_ascii_case("Content-Length") {
            let number = value.trim().parse().map_err(|_| invalid("malformed Content-Length".to_owned()))?;
            length = Some(number);
        }
    }
}

fn invalid(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
