//! What a machine asks of its controller, as it signs it.

use stead_hosts::MachineName;

use crate::name::Digest;
use crate::signed::{Lines, Signable, StatementLines};

/// A request of a machine. It holds for one request: each has a higher number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MachineRequest {
    /// The machine.
    pub machine: MachineName,
    /// The method of HTTP.
    pub method: String,
    /// The path, with what is behind `?`.
    pub path: String,
    /// Its number.
    pub number: u64,
    /// The digest of its content.
    pub content: Digest,
}

impl Signable for MachineRequest {
    const PURPOSE: &'static str = "stead-request";
    const WORD: &'static str = "request";

    fn write(&self, lines: &mut Lines) {
        lines.put("machine", &self.machine);
        lines.put("method", &self.method);
        lines.put("path", &self.path);
        lines.put("number", self.number);
        lines.put("content", &self.content);
    }

    fn read(lines: &mut StatementLines<'_>) -> Option<Self> {
        let machine = lines.parsed("machine", |name| MachineName::parse(name).ok())?;
        let is_word = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        let mut word = |name| lines.parsed(name, |text| Some(text).filter(is_word).map(str::to_owned));
        let (method, path) = (word("method")?, word("path")?);
        Some(Self { machine, method, path, number: lines.value("number")?, content: lines.value("content")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signed::Signed;

    #[test]
    fn a_request_is_read_as_it_was_written_and_no_line_can_be_added() {
        let machine = MachineName::parse("web1").unwrap();
        let (method, content) = ("GET".to_owned(), Digest::of(b""));
        let of = |path: &str| MachineRequest {
            machine: machine.clone(),
            method: method.clone(),
            path: path.to_owned(),
            number: 7,
            content: content.clone(),
        };
        let read = |request: MachineRequest| Signed::<MachineRequest>::parse(Signed::new(request).bytes());
        assert_eq!(
            read(of("/v1/desired?after=3")).map(|signed| signed.statement().clone()),
            Ok(of("/v1/desired?after=3"))
        );
        for path in ["", "/a b", "/a\nnumber 9", "/\u{e4}"] {
            assert!(read(of(path)).is_err(), "{path:?}");
        }
    }
}
