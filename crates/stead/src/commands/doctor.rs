//! `stead doctor`: whether stead finds what it needs on this machine, and what to do about what it does not find.

mod service;

use std::path::Path;

use anstyle::AnsiColor;
use serde_json::{Value as Json, json};
use stead_core::diag::counted;
use stead_core::visible::visible;
use stead_engine::{DSC_VERSION, problem_text};
use stead_system::fs::{OpenError, TrustedDirectory, User};

use crate::exit::Exit;
use crate::input;
use crate::process_env::ProcessEnv;
use crate::terminal::{Output, data_as, painted, print, print_coloured};

/// How much one thing matters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Ok,
    /// It limits what can be managed.
    Note,
    /// It keeps something from working that is set up.
    Problem,
}

/// One thing that was looked at.
struct Line {
    verdict: Verdict,
    subject: &'static str,
    text: String,
    help: Option<String>,
}

impl Line {
    fn new(verdict: Verdict, subject: &'static str, text: impl Into<String>) -> Self {
        Self { verdict, subject, text: text.into(), help: None }
    }

    fn with_help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

/// Programs that built-in resources call, and what cannot be done without them.
const PROGRAMS: [(&str, &str, &str); 7] = [
    ("apt-get", "Stead/Package cannot install or remove packages", "requires Debian or a derivative"),
    ("git", "Stead/Git cannot clone or fetch", "install the package 'git'"),
    ("visudo", "Stead/Sudoers places rules with 'validate: false' only", "install the package 'sudo'"),
    ("locale-gen", "Stead/Locale cannot generate locales", "install the package 'locales'"),
    ("modprobe", "Stead/KernelModule cannot load modules", "install the package 'kmod'"),
    ("nft", "Stead/Nftables cannot load tables", "install the package 'nftables'"),
    ("pwsh", "resources of PowerShell modules cannot be called", "install PowerShell"),
];

/// Looks at everything, prints a line for each, and says what helps.
pub(crate) fn doctor(output: Output, env: &ProcessEnv) -> Exit {
    let mut lines = vec![Line::new(
        Verdict::Ok,
        "program",
        format!("stead {}, compatible with dsc {DSC_VERSION}", env!("CARGO_PKG_VERSION")),
    )];
    lines.push(rights());
    lines.extend(settings(env));
    lines.extend(directories(env));
    lines.extend(resources(env));
    lines.extend(modules(env));
    lines.push(index(env));
    lines.push(systemd());
    lines.extend(service::lines());
    lines.extend(PROGRAMS.iter().map(|(name, missing, help)| program(env, name, missing, help)));
    let problems = lines.iter().filter(|line| line.verdict == Verdict::Problem).count();
    match output {
        Output::Text => {
            print_coloured(&lines.iter().map(shown).collect::<Vec<_>>().concat());
            let found = if problems == 0 { "no problems".to_owned() } else { counted(problems, "problem") };
            print(&format!("{found} found\n"));
        }
        output => data_as(&json!({ "version": 1, "checks": lines.iter().map(data).collect::<Vec<Json>>() }), output),
    }
    if problems == 0 { Exit::Success } else { Exit::Drifted }
}

fn word(verdict: Verdict) -> (&'static str, AnsiColor) {
    match verdict {
        Verdict::Ok => ("ok", AnsiColor::Green),
        Verdict::Note => ("note", AnsiColor::Cyan),
        Verdict::Problem => ("problem", AnsiColor::Red),
    }
}

fn shown(line: &Line) -> String {
    let (word, color) = word(line.verdict);
    let help = line.help.as_ref().map(|help| format!("{:22}help: {}\n", "", visible(help))).unwrap_or_default();
    format!(
        "{}  {:<11}  {}\n{help}",
        painted(color, &format!("{word:<7}")),
        line.subject,
        visible(&line.text.replace('\n', "; "))
    )
}

fn data(line: &Line) -> Json {
    json!({ "check": line.subject, "verdict": word(line.verdict).0, "message": line.text, "help": line.help })
}

fn rights() -> Line {
    if stead_system::user::is_root() {
        return Line::new(Verdict::Ok, "rights", "runs as root");
    }
    let text = "does not run as root: what belongs to the system can be tested, but not set";
    Line::new(Verdict::Note, "rights", text).with_help("run it with sudo")
}

fn settings(env: &ProcessEnv) -> Vec<Line> {
    let mut lines: Vec<Line> =
        env.warnings.iter().map(|warning| Line::new(Verdict::Problem, "settings", warning)).collect();
    lines.extend(env.unusable_policy.iter().map(|why| {
        let help = "every command but this one and 'explain' refuses to run until it is fixed";
        Line::new(Verdict::Problem, "policy", why).with_help(help)
    }));
    if lines.is_empty() {
        lines.push(Line::new(Verdict::Ok, "settings", "valid"));
    }
    lines
}

/// The directories in which resources are looked for, if they are there.
fn directories(env: &ProcessEnv) -> Vec<Line> {
    let trust = User::current().trust();
    let judged = env.search.directories.iter().filter_map(|path| match TrustedDirectory::open(path, trust) {
        Err(error) if error.is_not_found() => None,
        Err(OpenError::Untrusted(untrusted)) => {
            let text = format!("'{}' is ignored: {untrusted}", path.display());
            Some(Line::new(Verdict::Problem, "directory", text).with_help(untrusted.help()))
        }
        Err(error) => Some(Line::new(Verdict::Problem, "directory", stead_engine::error_chain(&error))),
        Ok(_) => Some(Line::new(Verdict::Ok, "directory", format!("'{}' is searched for resources", path.display()))),
    });
    let relative = env.search.relative.iter().filter_map(|path| stead_host::catalog::CatalogProblem::relative(path));
    let relative = relative.map(|problem| {
        let line = Line::new(Verdict::Problem, "directory", problem.to_string());
        problem.help().into_iter().fold(line, Line::with_help)
    });
    judged.chain(relative).collect()
}

fn resources(env: &ProcessEnv) -> Vec<Line> {
    let session = env.host.session(input::current_folder());
    let all = session.discovery().discovered().catalog.iter().count();
    let problems = session.discovery().problems();
    let found = Line::new(Verdict::Ok, "resources", format!("{all} found"));
    let notable = problems.iter().filter(|problem| problem.is_notable());
    std::iter::once(found)
        .chain(notable.map(|problem| Line::new(Verdict::Problem, "resources", problem_text(problem))))
        .collect()
}

/// The folders that PowerShell modules are looked for in.
fn modules(env: &ProcessEnv) -> Vec<Line> {
    let folders = env.host.module_folders();
    let line = |(folder, why): (String, String)| {
        let verdict = if why.starts_with(" (left out") { Verdict::Note } else { Verdict::Ok };
        Line::new(verdict, "modules", format!("of PowerShell are looked for in {folder}{why}"))
    };
    let mut lines: Vec<Line> = folders.into_iter().map(line).collect();
    let help = "PSModulePath adds folders; for the agent it is set by Environment= in `systemctl edit stead-agent`";
    let last = lines.pop().map(|last| last.with_help(help));
    lines.into_iter().chain(last).collect()
}

/// Where the index of manifests is kept.
fn index(env: &ProcessEnv) -> Line {
    if let Some(folder) = &env.search.cache {
        return Line::new(Verdict::Ok, "index", format!("kept in '{}'", folder.display()));
    }
    let text = "not kept: manifests are read on every run";
    Line::new(Verdict::Note, "index", text).with_help("set HOME or XDG_CACHE_HOME")
}

fn systemd() -> Line {
    if Path::new("/run/systemd/system").is_dir() {
        return Line::new(Verdict::Ok, "systemd", "running");
    }
    let text = "not running: Stead/Service and Stead/Timer cannot change what runs";
    Line::new(Verdict::Note, "systemd", text).with_help("run the agent with 'stead agent run' under another supervisor")
}

fn program(env: &ProcessEnv, name: &'static str, missing: &str, help: &str) -> Line {
    let found = env.search.programs.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
    match found {
        Some(path) => Line::new(Verdict::Ok, name, path.display().to_string()),
        None => Line::new(Verdict::Note, name, format!("not found: {missing}")).with_help(help),
    }
}
