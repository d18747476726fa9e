//! A language server: helps editors with documents while they are written.
//!
//! ```text
//! editor ──edit──▶ File ──Session::prepare──▶ diagnostics and quick fixes
//!        ──cursor─▶ Place ──▶ completion, hover, definition, references, rename
//!        ──save───▶ edits of `stead_core::text::format`
//! ```
//!
//! The findings of a document are those of `stead lint`; nothing is asked about the machine.

mod completion;
mod file;
mod formatting;
mod hover;
mod input;
mod names;
mod place;
mod position;
mod protocol;
mod server;

use std::path::PathBuf;

use lsp_server::ProtocolError;
use stead_engine::Host;

pub use server::serve_on;

/// Why the server ended, other than because the editor asked for it.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The editor does not keep to the protocol.
    #[error("the editor does not speak the Language Server Protocol: {0}")]
    Protocol(#[from] ProtocolError),
    /// Standard input or output failed.
    #[error("cannot talk to the editor: {0}")]
    Io(#[from] std::io::Error),
}

/// Serves on standard input and output until the editor ends the session.
///
/// Guarantees: nothing but the protocol is written to standard output.
pub fn serve(host: &Host, version: &str) -> Result<(), ServeError> {
    let (connection, threads) = input::stdio();
    let served = serve_on(&connection, host, version);
    drop(connection);
    // Why reading ended says more than that it did.
    threads.end()?;
    served
}

/// The path of a file by its address, if it has one.
fn path_of(uri: &str) -> Option<PathBuf> {
    let encoded = uri.strip_prefix("file://")?;
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        match byte {
            b'%' => bytes.push(u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?),
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok().map(PathBuf::from).filter(|path| path.is_absolute())
}
