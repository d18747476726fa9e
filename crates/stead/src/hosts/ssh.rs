//! The way to one machine: the `ssh` of this user, at its end a stead, and the conversation with that.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize as _;
use serde_json::Value as Json;
use stead_core::value::{Sensitive, Value};
use stead_engine::VaultEntry;
use stead_host::redactor::Redactor;
use stead_hosts::Destination;
use stead_system::Cancel;
use stead_system::process::{Environment, Executable, Exit, ProcessError, Program, Stream, Talk, TimeLimits};

use super::order::{Question, Reply};
use super::programs::{Programs, Sent};
use super::secrets::Secrets;
use crate::detached::{DETACHED, MARK};
use crate::process_env::ProcessEnv;

/// The most that a machine may say in all.
const MOST_OUTPUT: usize = 64 << 20;

/// The most that its shell may print before it begins.
const MOST_BEFORE: usize = 64 << 10;

/// The longest line of its standard error that is looked at.
const LONGEST_LINE: usize = 1 << 20;

/// How much of the last lines of its standard error is kept.
const MOST_LINES: usize = 20;

/// How long a run elsewhere may take to end once it was asked to: until the next safe point of what it is doing.
const GRACE: Duration = Duration::from_mins(5);

/// How long a shell there may take to begin.
const BEGINNING: Duration = Duration::from_mins(1);

/// How long the program may take to arrive.
const ARRIVAL: Duration = Duration::from_mins(30);

/// The prompt of sudo. It is not shown.
const PROMPT: &str = "stead-hosts asks:";

/// Where root looks for programs before there is a stead: in no folder of anybody else.
const PATH_OF_ROOT: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin";

/// The program `ssh` of this user.
pub(super) struct Ssh {
    executable: Executable,
    environment: Environment,
}

impl Ssh {
    /// Finds it. It asks agents, and reads the configuration of this user.
    pub(super) fn find(env: &ProcessEnv) -> Result<Self, String> {
        let mut environment = Environment::of_this_process(&["SSH_AUTH_SOCK", "SSH_AGENT_PID", "KRB5CCNAME"]);
        environment.add_of_this_process(&env.environment);
        // What goes on to a jump host does not get the options below, and would ask at the terminal of this process.
        environment.set("SSH_ASKPASS_REQUIRE", "force");
        environment.set("SSH_ASKPASS", "/bin/false");
        let found = Executable::find("ssh", Path::new("/nonexistent"), &environment);
        let found = found.ok_or_else(|| "there is no program 'ssh', which reaches other machines".to_owned())?;
        let executable = found.map_err(|refused| format!("the program 'ssh' {}", refused.reason()))?;
        Ok(Self { executable, environment })
    }

    /// Starts a conversation with what a shell does on a machine.
    fn talk(&self, destination: &Destination, command: String) -> Result<Talk, ProcessError> {
        Talk::start(&Program {
            executable: &self.executable,
            arguments: &arguments(destination, command),
            directory: Path::new("/"),
            environment: &self.environment,
            variables: &[],
            input: None,
        })
    }

    /// Tries whether a shell can be started on a machine; an error is the reason why not.
    pub(super) fn try_connection(&self, destination: &Destination, cancel: &Cancel) -> Result<(), String> {
        let redactor = Redactor::default();
        let mut ignore = |_| {};
        let mut heard = Heard::new(&redactor, &mut ignore);
        let command = format!("exec sh -c 'echo {MARK}here'");
        let mut talk = self.talk(destination, command).map_err(|error| error.to_string())?;
        match heard.mark_of(&mut talk, &[], BEGINNING, cancel).map_err(|error| error.to_string())? {
            Ok(_) => Ok(()),
            Err(Answer::Unreachable(why) | Answer::Broken(why)) => Err(why),
            Err(Answer::NotBegun | Answer::Begun(_) | Answer::Ran { .. }) => Err("it was not tried".to_owned()),
        }
    }
}

/// How an account becomes root.
pub(super) enum Sudo {
    /// It is not asked for anything.
    Silent,
    /// Whenever sudo asks.
    With(Sensitive<String>),
}

/// The work that a machine is known to do.
pub(super) enum Sign {
    /// It takes the program that is sent.
    Sends,
    /// It said this.
    Event(Json),
}

/// When a conversation is over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// At the end of the run.
    End,
    /// Once the run has begun.
    Begun,
}

/// What is the same for all machines.
pub(super) struct Way {
    pub(super) ssh: Ssh,
    pub(super) sudo: Option<Sudo>,
    pub(super) programs: Programs,
    /// Options of the stead there.
    pub(super) options: String,
    pub(super) bundle: Vec<u8>,
    pub(super) until: Until,
    /// What runs there may ask for, where secrets are found here.
    pub(super) secrets: Option<Secrets>,
    pub(super) redactor: Redactor,
    pub(super) cancel: Cancel,
}

/// The outcome of a conversation.
pub(super) enum Answer {
    /// There was none: the reason.
    Unreachable(String),
    /// The command was cancelled before anything was run there.
    NotBegun,
    /// It was broken off, or nothing could be run there: the reason.
    Broken(String),
    /// A run of this name began there, and goes on.
    Begun(String),
    /// A run ended there with this code, this report, where one can be read, the plan that it sent behind it, and these lines besides.
    Ran { code: i32, report: Option<Json>, saved: Option<String>, lines: Vec<String> },
}

impl Way {
    /// Has an order carried out, whose line may hold secrets. Calls `see` with what is known of it meanwhile.
    pub(super) fn ask(&self, destination: &Destination, order: &[u8], see: &mut dyn FnMut(Sign)) -> Answer {
        match self.conversation(destination, order, see) {
            Ok(answer) => answer,
            Err(error) => Answer::Broken(error.to_string()),
        }
    }

    fn conversation(
        &self,
        destination: &Destination,
        order: &[u8],
        see: &mut dyn FnMut(Sign),
    ) -> Result<Answer, ProcessError> {
        let mut talk = self.ssh.talk(destination, self.command())?;
        let mut heard = Heard::new(&self.redactor, see);
        heard.secrets = self.secrets.as_ref();
        let mut found = heard.mark_of(&mut talk, &[], BEGINNING, &self.cancel)?;
        if let (Ok(true), Some(Sudo::With(password))) = (found.as_ref().map(|found| found == ASKED), &self.sudo) {
            found = heard.mark_of(&mut talk, &[password.expose().as_bytes(), b"\n"], BEGINNING, &self.cancel)?;
            if found.as_ref().is_ok_and(|found| found == ASKED) {
                return Ok(Answer::Broken("sudo does not accept the password".to_owned()));
            }
        }
        if let Some(processor) = found.as_ref().ok().and_then(|found| found.strip_prefix("send ")) {
            let Some(program) = self.programs.get(processor) else { return Ok(Answer::Broken(UNEXPECTED.to_owned())) };
            (heard.see)(Sign::Sends);
            // Nothing follows it before it is in place: `head` of BusyBox reads more than it is asked for.
            found = heard.mark_of(&mut talk, &[&program.bytes], ARRIVAL, &self.cancel)?;
        }
        match found {
            Ok(found) if found == "found" || found == "kept" => {}
            Ok(other) => return Ok(Answer::Broken(refusal(&other))),
            Err(answer) => return Ok(answer),
        }
        if self.until == Until::Begun {
            return heard.begun(&mut talk, &[order, b"\n", &self.bundle], &self.cancel);
        }
        let mut ended = heard.listen(&mut talk, &[order, b"\n", &self.bundle], &self.cancel)?;
        while let Some(reply) = heard.reply() {
            ended = heard.listen(&mut talk, &[reply.expose()], &self.cancel)?;
        }
        Ok(heard.answer(ended))
    }

    /// The command for the shell of the account, whichever that is: a shell that is known, where that is asked for as root.
    fn command(&self) -> String {
        let script = self.script();
        match &self.sudo {
            None => format!("exec sh -c '{script}'"),
            Some(Sudo::Silent) => format!("exec sudo -n -H -- /bin/sh -c '{script}'"),
            // Without what sudo remembers, so that it remembers nothing of this either.
            Some(Sudo::With(_)) => format!("exec sudo -k -S -H -p '{PROMPT}' -- /bin/sh -c '{script}'"),
        }
    }

    /// Finds the programs of root. None is a file of the account: not the stead that is there, nor what its `PATH` leads to, which
    /// stead itself judges.
    fn beginning(&self) -> (String, &'static str) {
        if self.sudo.is_none() {
            return ("s=stead; ".to_owned(), "");
        }
        let own = "unset XDG_CACHE_HOME; cd /; s=$(command -v stead); [ -O \"$s\" ] || s=; ";
        (format!("o=$PATH; PATH={PATH_OF_ROOT}; {own}"), "PATH=$o; ")
    }

    /// What a shell does on a machine: finds a stead of this version, or one that was sent before, or takes the one that is sent.
    /// The folder for that is entered once and judged where it is then, so that nobody puts another in its place.
    ///
    /// It stands in single quotes in the shell of an account, whichever that is: there is no quote in it, no backslash, no
    /// exclamation mark and no line break.
    fn script(&self) -> String {
        let (version, options) = (env!("CARGO_PKG_VERSION"), &self.options);
        let known = |(processor, Sent { bytes, digest, .. }): (&str, &Sent)| {
            format!("\"Linux {processor}\") a={processor} n={} h={digest};; ", bytes.len())
        };
        let known: String = self.programs.iter().map(known).collect();
        let (beginning, end) = self.beginning();
        [
            format!("umask 077; {beginning}"),
            format!(
                "if [ \"$(\"$s\" --version 2>/dev/null </dev/null)\" = \"stead {version}\" ]; then echo {MARK}found; "
            ),
            format!("{end}exec \"$s\" remote{options}; fi; "),
            format!("m=\"$(uname -s) $(uname -m)\"; case $m in {known}*) echo \"{MARK}other $m\"; exit 0;; esac; "),
            "d=\"${XDG_CACHE_HOME:-$HOME/.cache}/stead-programs\"; mkdir -p \"$d\"; ".to_owned(),
            format!("if [ -L \"$d\" ]; then echo {MARK}folder; exit 0; fi; "),
            format!("if cd -P \"$d\" && [ -O . ] && chmod 700 .; then :; else echo {MARK}folder; exit 0; fi; "),
            "p=stead-$h; ".to_owned(),
            "is() { [ -f \"$1\" ] && [ -O \"$1\" ] && ".to_owned(),
            "[ \"$(wc -c <\"$1\")\" -eq $n ] && [ \"$(sha256sum <\"$1\" 2>/dev/null)\" = \"$h  -\" ]; }; ".to_owned(),
            // Machines can share the folder: what another one is about to have stays, and what a process left that was killed goes.
            "w=new-$(uname -n)@; t=$w$$; ".to_owned(),
            format!("if is \"$p\"; then echo {MARK}kept; else echo {MARK}send $a; "),
            "for f in stead-* \"$w\"*; do case $f in \"$p\") ;; stead-*) rm -f \"$f\";; ".to_owned(),
            "*) kill -0 \"${f##*@}\" 2>/dev/null || rm -f \"$f\";; esac; done; ".to_owned(),
            "head -c $n >\"$t\"; chmod 700 \"$t\"; ".to_owned(),
            format!("if is \"$t\"; then mv -f \"$t\" \"$p\"; echo {MARK}kept; else "),
            "rm -f \"$t\"; echo \"error: the program that was sent did not arrive whole\" >&2; exit 1; fi; fi; "
                .to_owned(),
            format!("{end}exec \"./$p\" remote{options}"),
        ]
        .concat()
    }
}

/// The mark in place of the question of sudo.
const ASKED: &str = "asked";

/// The reason where something else than a shell answers.
const UNEXPECTED: &str = "unexpected output before stead started";

fn begun_run(found: &str) -> Answer {
    match found.split_once(' ') {
        Some((DETACHED, run)) => Answer::Begun(run.to_owned()),
        _ => Answer::Broken(UNEXPECTED.to_owned()),
    }
}

/// Why nothing can be run there.
fn refusal(found: &str) -> String {
    match found.split_once(' ') {
        Some(("other", machine)) => {
            let version = env!("CARGO_PKG_VERSION");
            format!(
                "it has no stead {version}, and there is no program for it ({machine}); 'stead artifacts' lists those that there are"
            )
        }
        None if found == "folder" => {
            "cannot use the directory stead-programs in its cache directory: it must be a directory of this account, \
             and not a link"
                .to_owned()
        }
        _ => UNEXPECTED.to_owned(),
    }
}

/// The arguments of `ssh`. What is not stated here is as the user has configured it; a host key is never accepted, nor anything asked.
fn arguments(destination: &Destination, command: String) -> Vec<OsString> {
    let options = [
        "BatchMode=yes",
        "StrictHostKeyChecking=yes",
        "ClearAllForwardings=yes",
        "ControlMaster=no",
        "ConnectTimeout=30",
        "ServerAliveInterval=15",
        "LogLevel=ERROR",
        "RemoteCommand=none",
    ];
    let mut arguments: Vec<OsString> = vec!["-T".into()];
    arguments.extend(options.iter().flat_map(|option| ["-o".into(), OsString::from(option)]));
    arguments.extend(destination.user.iter().flat_map(|user| ["-l".into(), OsString::from(user.as_str())]));
    arguments.extend(destination.port.iter().flat_map(|port| ["-p".into(), OsString::from(port.to_string())]));
    arguments.extend(["--".into(), OsString::from(destination.address.as_str())]);
    arguments.push(command.into());
    arguments
}

/// What a machine said. None of it is trusted: it is bounded, and secrets are covered in it once more.
struct Heard<'a> {
    /// With the secrets that it was given besides.
    redactor: Cow<'a, Redactor>,
    secrets: Option<&'a Secrets>,
    given: BTreeSet<VaultEntry>,
    /// The secret that it asked for and was not answered yet.
    asked: Option<VaultEntry>,
    see: &'a mut dyn FnMut(Sign),
    /// How many bytes it said in all.
    bytes: usize,
    output: Vec<u8>,
    /// The bytes of standard error that are not a whole line yet.
    rest: Vec<u8>,
    /// The last lines of standard error besides events.
    lines: Vec<String>,
}

impl<'a> Heard<'a> {
    fn new(redactor: &'a Redactor, see: &'a mut dyn FnMut(Sign)) -> Self {
        let (redactor, given) = (Cow::Borrowed(redactor), BTreeSet::new());
        let (output, rest, lines) = (Vec::new(), Vec::new(), Vec::new());
        Self { redactor, secrets: None, given, asked: None, see, bytes: 0, output, rest, lines }
    }

    /// Sends bytes, and listens until a run asks for a secret (`None`) or has ended, or until no more of it is borne.
    fn listen(&mut self, talk: &mut Talk, messages: &[&[u8]], cancel: &Cancel) -> Result<Option<Exit>, ProcessError> {
        let patience = TimeLimits { deadline: None, grace: GRACE };
        talk.exchange(messages, patience, cancel, &mut |stream, bytes| {
            self.take(stream, bytes);
            self.is_bearable() && self.asked.is_none()
        })
    }

    /// The line that answers what it asked for.
    fn reply(&mut self) -> Option<Sensitive<Vec<u8>>> {
        let asked = self.asked.take().filter(|_| self.is_bearable())?;
        let reply = match self.secrets?.reply(&asked) {
            Ok(secret) => {
                if self.given.insert(asked) {
                    self.redactor.to_mut().add(&Value::from(secret.expose().as_str()));
                }
                Reply::Secret(secret.expose().clone())
            }
            Err(why) => Reply::Refused(why),
        };
        let mut line = serde_json::to_vec(&reply).unwrap_or_default();
        line.push(b'\n');
        if let Reply::Secret(plaintext) = reply {
            drop(Sensitive::new(plaintext));
        }
        Some(Sensitive::new(line))
    }

    /// Waits for what a script says next, or for the answer where it says nothing. Nothing runs there yet that would need an end.
    fn mark_of(
        &mut self,
        talk: &mut Talk,
        messages: &[&[u8]],
        deadline: Duration,
        cancel: &Cancel,
    ) -> Result<Result<String, Answer>, ProcessError> {
        let mut found = None;
        let patience = TimeLimits { deadline: Some(deadline), grace: Duration::ZERO };
        let ended = talk.exchange(messages, patience, cancel, &mut |stream, bytes| {
            self.take(stream, bytes);
            found = self.take_mark().or_else(|| self.take_prompt());
            found.is_none() && self.bytes <= MOST_BEFORE
        });
        match ended {
            Ok(ended) => Ok(found.ok_or_else(|| self.unreachable(ended))),
            Err(ProcessError::Cancelled) => Ok(Err(Answer::NotBegun)),
            Err(ProcessError::Deadline { .. }) => {
                Ok(Err(Answer::Unreachable(format!("it did not answer within {} s", deadline.as_secs()))))
            }
            Err(error) => Err(error),
        }
    }

    /// Waits until a run has begun that goes on by itself, or for the answer where none begins.
    fn begun(&mut self, talk: &mut Talk, messages: &[&[u8]], cancel: &Cancel) -> Result<Answer, ProcessError> {
        let mut run = None;
        let patience = TimeLimits { deadline: Some(ARRIVAL), grace: GRACE };
        let ended = talk.exchange(messages, patience, cancel, &mut |stream, bytes| {
            self.take(stream, bytes);
            run = self.take_mark();
            run.is_none() && self.bytes <= LONGEST_LINE
        })?;
        Ok(match run {
            Some(found) => begun_run(&found),
            None if ended.is_none() => Answer::Broken(UNEXPECTED.to_owned()),
            None => self.answer(ended),
        })
    }

    fn take(&mut self, stream: Stream, bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(bytes.len());
        match stream {
            Stream::Stdout => self.output.extend_from_slice(bytes),
            Stream::Stderr => {
                self.rest.extend_from_slice(bytes);
                self.take_lines();
            }
        }
    }

    fn is_bearable(&self) -> bool {
        self.bytes <= MOST_OUTPUT && self.rest.len() <= LONGEST_LINE
    }

    fn take_lines(&mut self) {
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return };
        let rest = self.rest.split_off(end + 1);
        let whole = std::mem::replace(&mut self.rest, rest);
        for line in whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.line(line);
        }
    }

    fn line(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        // What JSON writes in another way is a secret only once it is read.
        let json = text.starts_with(['{', '[', '"']).then(|| serde_json::from_str::<Json>(text).ok()).flatten();
        if let (Some(_), Some(json)) = (self.secrets, &json)
            && let Ok(Question { secret }) = Question::deserialize(json)
        {
            // A run asks for one after the other.
            self.asked.get_or_insert(secret);
            return;
        }
        let line = match json.map(|json| self.redactor.covered(json)) {
            Some(event) if event["event"].is_string() => return (self.see)(Sign::Event(event)),
            Some(other) => other.to_string(),
            None => self.redactor.scrub(text).into_owned(),
        };
        self.lines.push(line);
        if self.lines.len() > MOST_LINES {
            self.lines.remove(0);
        }
    }

    /// What the script found, once it has said so, and forgets all up to there: some shells print something when they start.
    fn take_mark(&mut self) -> Option<String> {
        let mut start = 0;
        while let Some(rest) = self.output.get(start..)
            && let Some(end) = rest.iter().position(|byte| *byte == b'\n')
        {
            let line = rest.get(..end).and_then(|line| line.strip_prefix(MARK.as_bytes()));
            let found = line.map(|found| String::from_utf8_lossy(found).into_owned());
            start += end + 1;
            if found.is_some() {
                self.output.drain(..start);
                return found;
            }
        }
        None
    }

    /// The prompt of sudo does not end a line: it waits behind it.
    fn take_prompt(&mut self) -> Option<String> {
        let is_asked = self.rest.ends_with(PROMPT.as_bytes());
        is_asked.then(|| {
            self.rest.clear();
            ASKED.to_owned()
        })
    }

    fn last_line(&mut self, otherwise: &str) -> String {
        let rest = std::mem::take(&mut self.rest);
        if !rest.is_empty() && rest.len() <= LONGEST_LINE {
            self.line(&rest);
        }
        self.lines.pop().unwrap_or_else(|| otherwise.to_owned())
    }

    fn unreachable(&mut self, ended: Option<Exit>) -> Answer {
        match ended {
            None => Answer::Broken(UNEXPECTED.to_owned()),
            // What `ssh` itself ends with when there is no connection.
            Some(exit @ Exit::Code(255)) => Answer::Unreachable(self.last_line(&format!("ssh ended with {exit}"))),
            Some(exit) => Answer::Broken(self.last_line(&format!("nothing was run there: ssh ended with {exit}"))),
        }
    }

    fn answer(&mut self, ended: Option<Exit>) -> Answer {
        let Some(ended) = ended else {
            let is_long = self.rest.len() > LONGEST_LINE;
            return Answer::Broken(
                if is_long { "it sent a line of more than 1 MiB" } else { "it sent more than 64 MiB" }.to_owned(),
            );
        };
        let mut sent = serde_json::Deserializer::from_slice(&self.output).into_iter::<Json>();
        let mut next = || sent.next()?.ok().map(|sent| self.redactor.covered(sent));
        let (report, plan) = (next(), next());
        let saved = plan.and_then(|plan| plan["plan"].as_str().map(str::to_owned));
        match ended {
            Exit::Code(code @ 0..=6) => Answer::Ran { code, report, saved, lines: std::mem::take(&mut self.lines) },
            Exit::Code(126 | 127) => Answer::Broken("stead cannot be started there".to_owned()),
            other => Answer::Broken(self.last_line(&format!("the connection broke ({other})"))),
        }
    }
}
