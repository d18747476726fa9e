//! The recorded cases: what was asked, and what was answered.

use std::error::Error;
use std::fs;
use std::path::Path;

use serde_json::Value as Json;

/// One recorded case: a few runs that belong together.
pub(crate) struct Case {
    /// The suite that it is from.
    pub(crate) suite: String,
    /// Its place in the suite, counted from 1; what `--show` takes.
    pub(crate) place: usize,
    /// The subject.
    pub(crate) name: String,
    /// Tells cases of the same name apart.
    pub(crate) number: u64,
    /// Files in the current folder, by name.
    pub(crate) files: Vec<(String, String)>,
    /// The commands that were run, in order.
    pub(crate) runs: Vec<Run>,
}

/// One run of the program: what it was given and what it answered.
pub(crate) struct Run {
    pub(crate) args: Vec<String>,
    pub(crate) stdin: Option<String>,
    pub(crate) answer: Answer,
}

/// The answer of a program.
pub(crate) struct Answer {
    /// The exit code; `None` when a signal or the time limit ended it.
    pub(crate) exit: Option<i64>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Reads every case of a file of JSON lines.
pub(crate) fn read(file: &Path) -> Result<Vec<Case>, Box<dyn Error>> {
    let text = fs::read_to_string(file)?;
    let mut cases: Vec<Case> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let json: Json = serde_json::from_str(line)?;
        let mut case = parse(&json).ok_or_else(|| format!("line {} is not a case", index + 1))?;
        case.place = 1 + cases.iter().filter(|other| other.suite == case.suite).count();
        cases.push(case);
    }
    Ok(cases)
}

fn parse(json: &Json) -> Option<Case> {
    Some(Case {
        suite: string(json, "suite")?,
        place: 0,
        name: string(json, "name")?,
        number: json.get("case")?.as_u64()?,
        files: Vec::new(),
        runs: json.get("runs")?.as_array()?.iter().map(parse_run).collect::<Option<_>>()?,
    })
}

fn parse_run(json: &Json) -> Option<Run> {
    let args = json.get("args")?.as_array()?;
    Some(Run {
        args: args.iter().map(|arg| arg.as_str().map(str::to_owned)).collect::<Option<_>>()?,
        stdin: string(json, "stdin"),
        answer: Answer {
            exit: json.get("exit")?.as_i64(),
            stdout: string(json, "stdout")?,
            stderr: string(json, "stderr")?,
        },
    })
}

fn string(json: &Json, key: &str) -> Option<String> {
    json.get(key)?.as_str().map(str::to_owned)
}
