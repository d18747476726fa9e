//! Which line of what a program wrote to its standard error says why it failed.

/// The line that says best why a program failed: the first that names an error or a failure, else the last that is neither a
/// notice nor a trace, else the last. `None` of no lines.
pub(crate) fn headline<'l>(lines: impl Iterator<Item = &'l str>) -> Option<&'l str> {
    let ranked: Vec<(Rank, &str)> = without_usage(lines).map(|line| (Rank::of(line), line)).collect();
    let best = ranked.iter().map(|(rank, _)| *rank).max()?;
    let mut found = ranked.iter().filter(|(rank, _)| *rank == best).map(|(_, line)| line.trim());
    if best >= Rank::Failure { found.next() } else { found.next_back() }
}

/// Returns whether a line names an error: worth keeping when much follows it.
pub(crate) fn names_error(line: &str) -> bool {
    Rank::of(line) >= Rank::Failure
}

/// What a line is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// A hint, a warning, what a shell traces, a piece of another line.
    Notice,
    /// That something failed, and not why.
    Ending,
    /// Anything.
    Text,
    /// Words for failures.
    Failure,
    /// An error that is called so.
    Error,
}

const NOTICES: [&str; 15] = [
    "+ ",
    "^",
    "~",
    "and the repository exists",
    "debug",
    "for more information",
    "hint:",
    "info:",
    "n: ",
    "note:",
    "please ",
    "see ",
    "try ",
    "w: ",
    "warn",
];

const ENDINGS: [&str; 11] = [
    "a complete log of this run",
    "could not read from remote repository",
    "error code",
    "error is not recoverable",
    "errors were encountered while processing",
    "exit code",
    "exit status",
    "exited with",
    "process exited",
    "subprocess returned error",
    "test failed",
];

const ERRORS: [&str; 8] =
    ["[crit]", "[emerg]", "[error]", "error: ", "exception: ", "fatal: ", "panic: ", "panicked at"];

const FAILURES: [&str; 36] = [
    "already exists",
    "already in use",
    "bad ",
    "badly",
    "can't",
    "cannot",
    "conflict",
    "corrupt",
    "could not",
    "couldn't",
    "denied",
    "does not",
    "error",
    "exceeded",
    "expected",
    "fail",
    "forbidden",
    "invalid",
    "is unknown",
    "killed",
    "locked",
    "missing",
    "must be",
    "no rule to make",
    "no such",
    "no space",
    "not a ",
    "not found",
    "not permitted",
    "out of memory",
    "refused",
    "segmentation fault",
    "timed out",
    "unable",
    "unknown",
    "unrecognized",
];

impl Rank {
    fn of(line: &str) -> Self {
        let lower = line.trim_start().to_lowercase();
        // 'make: *** [a.o] Error 1' says no more than the exit code.
        let is_of_make = lower.contains("] error ") && lower.contains("***");
        let is_piece = line.starts_with([' ', '\t']);
        if is_piece
            || is_usage(&lower)
            || NOTICES.iter().any(|start| lower.starts_with(start))
            || lower.contains("[warn]")
        {
            Self::Notice
        } else if is_of_make || ENDINGS.iter().any(|ending| lower.contains(ending)) {
            Self::Ending
        } else if lower.starts_with("e: ") || ERRORS.iter().any(|word| lower.contains(word)) {
            Self::Error
        } else if FAILURES.iter().any(|word| lower.contains(word)) {
            Self::Failure
        } else {
            Self::Text
        }
    }
}

/// The lines in front of the options that a program lists when it is called wrongly; all if there are none in front.
fn without_usage<'l>(lines: impl Iterator<Item = &'l str>) -> impl Iterator<Item = &'l str> {
    lines.enumerate().take_while(move |(at, line)| *at == 0 || !is_usage(&line.to_lowercase())).map(|(_, line)| line)
}

fn is_usage(lower: &str) -> bool {
    lower.trim_start().starts_with("usage:")
}
