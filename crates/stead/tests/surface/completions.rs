//! Completions, as bash, zsh and fish insert them when the tab key is pressed in a terminal.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tempfile::TempDir;

/// How long nothing may happen on the screen.
const LONGEST: Timespec = Timespec { tv_sec: 120, tv_nsec: 0 };

const DOCUMENT: &str = "
parameters:
  port: {type: int}
resources:
- name: web page
  type: Stead/File
  metadata: {tags: [www]}
  properties: {path: a, content: b}
- name: $(touch executed)
  type: Stead/File
  properties: {path: b, content: b}
- name: outer
  type: Microsoft.DSC/Group
  properties:
    resources:
    - {name: site, type: Stead/Directory, properties: {path: c}}
";

/// What is typed, and what a tab makes of it.
const CASES: &[(&str, &str)] = &[
    ("stead comp", "stead completer "),
    ("stead agent inst", "stead agent install "),
    ("stead dsc conf", "stead dsc config "),
    ("stead plan --system-r", "stead plan --system-root "),
    ("stead plan --output y", "stead plan --output yaml "),
    ("stead plan --output=y", "stead plan --output=yaml "),
    // Types, functions and codes.
    ("stead get Stead/Fi", "stead get Stead/File "),
    ("stead resource get -r Stead/Dow", "stead resource get -r Stead/Download "),
    ("stead invoke Stead/Dow", "stead invoke Stead/Download "),
    ("stead explain Stead/Dow", "stead explain Stead/Download "),
    ("stead explain stead.regexG", "stead explain stead.regexGroups "),
    ("stead explain W064", "stead explain W0644 "),
    // Properties of a type.
    ("stead set Stead/Line cre", "stead set Stead/Line create="),
    ("stead get file path=do", "stead get file path=doc.yaml "),
    ("stead invoke Stead/Line --property mat", "stead invoke Stead/Line --property match="),
    // Files and directories, also with letters that a shell would take for its own.
    ("stead plan do", "stead plan doc.yaml "),
    ("stead plan --output=yaml do", "stead plan --output=yaml doc.yaml "),
    ("stead plan fol", "stead plan folder/"),
    ("stead plan sp", r"stead plan sp\ a\;ce.yaml "),
    ("stead plan 'sp", "stead plan 'sp a;ce.yaml' "),
    // What the document has.
    ("stead plan doc.yaml --only si", "stead plan doc.yaml --only site "),
    ("stead plan doc.yaml --only=si", "stead plan doc.yaml --only=site "),
    ("stead plan doc.yaml --only ww", "stead plan doc.yaml --only www "),
    ("stead plan doc.yaml --skip site,ou", "stead plan doc.yaml --skip site,outer "),
    ("stead plan ~/doc.yaml --skip Stead/Di", "stead plan ~/doc.yaml --skip Stead/Directory "),
    ("stead graph -f doc.yaml --why we", r"stead graph -f doc.yaml --why web\ page "),
    (r"stead graph doc.yaml --why \$", r"stead graph doc.yaml --why \$\(touch\ executed\) "),
    ("stead apply doc.yaml --set po", "stead apply doc.yaml --set port="),
];

#[test]
fn bash_completes() {
    completes(
        "bash",
        &["--norc", "--noprofile", "-i"],
        r#"source <(stead completer bash); bind -x '"\C-o": printf "<<<%s>>>" "$READLINE_LINE"'; bind 'set bell-style none'; PS1=$(printf 'rea%s> ' dy)"#,
    );
}

const ZSH: &str = r#"show() { print -rn -- "<<<$BUFFER>>>" }; zle -N show; bindkey '^O' show; bindkey '^U' kill-whole-line; PS1=$(printf 'rea%s> ' dy)"#;

#[test]
fn zsh_completes() {
    completes(
        "zsh",
        &["-f", "-i"],
        &format!("autoload -Uz compinit; compinit -D -u; source <(stead completer zsh); {ZSH}"),
    );
}

#[test]
fn fish_completes() {
    completes(
        "fish",
        &["--no-config", "-i"],
        r#"stead completer fish | source; bind \co 'printf "<<<%s>>>" (commandline)'; bind \cu 'commandline ""'; function fish_prompt; printf 'rea%s> ' dy; end"#,
    );
}

/// A file of a directory of completions is loaded at the first tab, which it already answers.
#[test]
fn zsh_completes_at_the_first_tab() {
    let folder = tempfile::tempdir().unwrap();
    let script = Command::new(env!("CARGO_BIN_EXE_stead")).args(["completer", "zsh"]).output().unwrap();
    fs::write(folder.path().join("_stead"), script.stdout).unwrap();
    let folder = folder.path().display();
    completes("zsh", &["-f", "-i"], &format!("fpath=({folder} $fpath); autoload -Uz compinit; compinit -D -u; {ZSH}"));
}

/// In a shell that is prepared by these commands, and has the prompt `ready>` then, Ctrl-O prints the line.
fn completes(shell: &str, options: &[&str], prepare: &str) {
    let Ok(mut at) = Terminal::open(shell, options) else {
        return stead_testkit::skip(&format!("{shell}_completes"), &format!("there is no {shell}"));
    };
    at.types(&format!("{prepare}\n"));
    at.until("ready>");
    for (typed, expected) in CASES {
        at.types(&format!("{typed}\t\x0f\x15"));
        at.until("<<<");
        let shown = at.until(">>>");
        assert_eq!(shown.trim_end_matches(">>>"), *expected, "{shell}: {typed}");
    }
    assert!(!at.folder.path().join("executed").exists(), "{shell} executed a name");
}

/// A shell in a terminal, in a folder with a document.
struct Terminal {
    folder: TempDir,
    shell: Child,
    screen: File,
}

impl Terminal {
    fn open(shell: &str, options: &[&str]) -> std::io::Result<Self> {
        let folder = tempfile::tempdir().unwrap();
        for name in ["doc.yaml", "sp a;ce.yaml"] {
            fs::write(folder.path().join(name), DOCUMENT).unwrap();
        }
        fs::create_dir(folder.path().join("folder")).unwrap();
        Command::new(shell).args(["-c", ":"]).status()?;
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&screen).unwrap();
        unlockpt(&screen).unwrap();
        let name = ptsname(&screen, Vec::new()).unwrap();
        let no_control = OFlags::NOCTTY.bits().cast_signed();
        let open = OpenOptions::new().read(true).write(true).custom_flags(no_control).open(name.to_str().unwrap());
        let terminal = open.unwrap();
        let beside = Path::new(env!("CARGO_BIN_EXE_stead")).parent().unwrap();
        let path = format!("{}:{}", beside.display(), std::env::var("PATH").unwrap());
        let shell = Command::new("setsid")
            .args(["--ctty", "--wait", shell])
            .args(options)
            .current_dir(folder.path())
            .env_clear()
            .envs([("PATH", path.as_str()), ("TERM", "xterm"), ("LANG", "C.UTF-8")])
            .env("HOME", folder.path())
            .stdin(terminal.try_clone().unwrap())
            .stdout(terminal.try_clone().unwrap())
            .stderr(terminal)
            .spawn()?;
        Ok(Self { folder, shell, screen: File::from(screen) })
    }

    fn types(&mut self, text: &str) {
        self.screen.write_all(text.as_bytes()).unwrap();
    }

    /// Reads the screen until a text is on it.
    fn until(&mut self, text: &str) -> String {
        let (mut seen, mut byte) = (Vec::new(), [0]);
        while !String::from_utf8_lossy(&seen).ends_with(text) {
            let mut readable = [PollFd::new(&self.screen, PollFlags::IN)];
            let is_there =
                poll(&mut readable, Some(&LONGEST)).unwrap() == 1 && self.screen.read_exact(&mut byte).is_ok();
            assert!(is_there, "no '{text}' in {}", String::from_utf8_lossy(&seen));
            seen.extend(byte);
        }
        String::from_utf8_lossy(&seen).into_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The end of its terminal is the end of the shell.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}
