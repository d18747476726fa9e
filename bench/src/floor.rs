//! The floor: what must be done and nothing else.
//!
//! A list of files has a line each: the mode in octal, the path and the content, with tabs between them. The content of
//! the file is that text and a line end.

use std::fs;
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{Mode, OFlags};

/// The message that is sent to each program that [`spawn`] starts.
const MESSAGE: &[u8] = b"{\"output\":\"hello\"}";

struct Wanted<'a> {
    mode: Mode,
    path: &'a str,
    content: String,
}

/// Compares every file with what is wanted. The exit code says whether all are in the desired state.
pub(crate) fn check(list: &str) -> io::Result<ExitCode> {
    let text = fs::read_to_string(list)?;
    let mut buffer = Vec::new();
    let mut same = true;
    for line in text.lines() {
        same &= is_as_wanted(&parse(line)?, &mut buffer)?;
    }
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Writes every file anew, each by way of a temporary one beside it.
pub(crate) fn write(list: &str) -> io::Result<ExitCode> {
    let text = fs::read_to_string(list)?;
    for line in text.lines() {
        replace(&parse(line)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads every file of a list, a path each line.
pub(crate) fn read(list: &str) -> io::Result<ExitCode> {
    let text = fs::read_to_string(list)?;
    for path in text.lines() {
        fs::read(path)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks for the times of every path of a list.
pub(crate) fn stat(list: &str) -> io::Result<ExitCode> {
    let text = fs::read_to_string(list)?;
    for path in text.lines() {
        rustix::fs::stat(path)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts a program as often as said, some at a time, sends each a message and reads what it says.
pub(crate) fn spawn(program: &str, count: &str, width: &str) -> io::Result<ExitCode> {
    let number = |text: &str| text.parse::<usize>().map_err(io::Error::other);
    let (count, width) = (number(count)?, number(width)?);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..width).map(|_| scope.spawn(|| converse_until(program, &next, count))).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| io::Error::other("a worker died"))?)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Sends a program the lines of a file, each once the one before is answered by a line.
pub(crate) fn talk(program: &str, script: &str, word: &str, requests: &str) -> io::Result<ExitCode> {
    let requests = fs::read_to_string(requests)?;
    let mut child = Command::new(program).args([script, word]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let pipes = (child.stdin.take(), child.stdout.take());
    let (Some(mut stdin), Some(stdout)) = pipes else { return Err(io::Error::other("there are no pipes")) };
    let mut answers = io::BufReader::new(stdout);
    let mut answer = Vec::new();
    for request in requests.split_inclusive('\n') {
        stdin.write_all(request.as_bytes())?;
        answer.clear();
        if answers.read_until(b'\n', &mut answer)? == 0 {
            return Err(io::Error::other("the program ended"));
        }
    }
    drop(stdin);
    child.wait()?;
    Ok(ExitCode::SUCCESS)
}

fn parse(line: &str) -> io::Result<Wanted<'_>> {
    let malformed = || io::Error::other(format!("not a mode, a path and a content: {line}"));
    let mut parts = line.splitn(3, '\t');
    let mut part = || parts.next().ok_or_else(malformed);
    let (mode, path, content) = (part()?, part()?, part()?);
    let mode = u32::from_str_radix(mode, 8).map_err(|_| malformed())?;
    Ok(Wanted { mode: Mode::from_raw_mode(mode), path, content: format!("{content}\n") })
}

fn is_as_wanted(wanted: &Wanted<'_>, buffer: &mut Vec<u8>) -> io::Result<bool> {
    let file = match rustix::fs::open(wanted.path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(file) => file,
        Err(rustix::io::Errno::NOENT) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    let status = rustix::fs::fstat(&file)?;
    if Mode::from_raw_mode(status.st_mode) != wanted.mode || u64::try_from(status.st_size) != Ok(length(wanted)) {
        return Ok(false);
    }
    // One byte more than wanted shows a file that grows meanwhile.
    buffer.resize(wanted.content.len() + 1, 0);
    let read = rustix::io::read(&file, buffer.as_mut_slice())?;
    Ok(buffer.get(..read) == Some(wanted.content.as_bytes()))
}

fn length(wanted: &Wanted<'_>) -> u64 {
    wanted.content.len() as u64
}

fn replace(wanted: &Wanted<'_>) -> io::Result<()> {
    let temporary = format!("{}.new", wanted.path);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut file = fs::File::from(rustix::fs::open(&temporary, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(wanted.content.as_bytes())?;
    rustix::fs::fchmod(&file, wanted.mode)?;
    drop(file);
    rustix::fs::rename(&temporary, wanted.path)?;
    Ok(())
}

fn converse_until(program: &str, next: &AtomicUsize, count: usize) -> io::Result<()> {
    while next.fetch_add(1, Ordering::Relaxed) < count {
        converse(program)?;
    }
    Ok(())
}

fn converse(program: &str) -> io::Result<()> {
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(MESSAGE)?;
    }
    let mut answer = Vec::new();
    if let Some(mut output) = child.stdout.take() {
        output.read_to_end(&mut answer)?;
    }
    let status = child.wait()?;
    if status.success() && !answer.is_empty() {
        return Ok(());
    }
    Err(io::Error::other(format!("{program} gave {} bytes, {status}", answer.len())))
}
