//! The delay in an editor: an edit of a document that is open, until its mistakes are published.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::meter::Sample;

const URI: &str = "file:///srv/bench.stead.yaml";

/// A language server that has a document open.
pub(crate) struct Editor {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    version: u32,
}

impl Editor {
    /// Opens a document, and waits until it is checked.
    pub(crate) fn open(program: &Path, home: &Path, text: &str) -> io::Result<Self> {
        let mut server = Command::new(program)
            .arg("lsp")
            .env("HOME", home)
            .env("DSC_RESOURCE_PATH", home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let missing = || io::Error::other("a pipe is missing");
        let input = server.stdin.take().ok_or_else(missing)?;
        let output = BufReader::new(server.stdout.take().ok_or_else(missing)?);
        let mut editor = Self { server, input, output, version: 0 };
        editor.send(r#""id":1,"method":"initialize","params":{"capabilities":{}}"#)?;
        editor.wait_for(r#""id":1,"#)?;
        editor.send(r#""method":"initialized","params":{}"#)?;
        let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        editor.send(&format!(
            r#""method":"textDocument/didOpen","params":{{"textDocument":{{"uri":"{URI}","languageId":"yaml","version":0,"text":"{text}"}}}}"#
        ))?;
        editor.wait_for(r#""version":0}"#)?;
        Ok(editor)
    }

    /// Writes a letter into a line, and waits until the document is checked.
    pub(crate) fn edit(&mut self, line: usize, column: usize) -> io::Result<Sample> {
        self.version += 1;
        let (version, began, before) = (self.version, Instant::now(), self.processor_time()?);
        let position = format!(r#"{{"line":{line},"character":{column}}}"#);
        self.send(&format!(
            r#""method":"textDocument/didChange","params":{{"textDocument":{{"uri":"{URI}","version":{version}}},"contentChanges":[{{"range":{{"start":{position},"end":{position}}},"text":"x"}}]}}"#
        ))?;
        self.wait_for(&format!(r#""version":{version}}}"#))?;
        let wall = began.elapsed();
        let cpu = self.processor_time()?.saturating_sub(before);
        Ok(Sample { cpu, wall, memory: self.memory()?, unsteady: false })
    }

    fn send(&mut self, message: &str) -> io::Result<()> {
        let body = format!(r#"{{"jsonrpc":"2.0",{message}}}"#);
        write!(self.input, "Content-Length: {}\r\n\r\n{body}", body.len())?;
        self.input.flush()
    }

    /// Reads messages until one has a part.
    fn wait_for(&mut self, part: &str) -> io::Result<()> {
        while !self.message()?.contains(part) {}
        Ok(())
    }

    fn message(&mut self) -> io::Result<String> {
        let mut length = 0;
        loop {
            let mut header = String::new();
            if self.output.read_line(&mut header)? == 0 {
                return Err(io::Error::other("the language server ended"));
            }
            match header.trim_end().split_once(": ") {
                None => break,
                Some(("Content-Length", count)) => length = count.parse().map_err(io::Error::other)?,
                Some(_) => {}
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body)?;
        String::from_utf8(body).map_err(io::Error::other)
    }

    /// Returns the processor time of its threads, as the scheduler counts it.
    fn processor_time(&self) -> io::Result<Duration> {
        let mut nanoseconds = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.server.id()))? {
            let text = fs::read_to_string(task?.path().join("schedstat"))?;
            nanoseconds += text.split(' ').next().and_then(|word| word.parse::<u64>().ok()).unwrap_or_default();
        }
        Ok(Duration::from_nanos(nanoseconds))
    }

    /// The most that it has had, in KiB.
    fn memory(&self) -> io::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.server.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
        Ok(line.trim().trim_end_matches(" kB").parse().unwrap_or_default())
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
