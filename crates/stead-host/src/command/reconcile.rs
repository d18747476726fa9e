//! Reconcilers and pending rules that are programs: found and trusted like manifests, asked in lines of JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use stead_core::call::Outcome;
use stead_core::run::policy::{Attempt, Pace, Policy, Verdict};
use stead_core::run::reconcile::{PendingRule, Reconciler};

use super::invoke::{CommandSettings, with_causes, with_words};
use super::secrets::Secrets;
use super::stderr::Listener;
use crate::catalog::Search;
use crate::provider::Context;
use stead_system::process::{
    Conversation, ConversationError, Executable, ProcessError, Program, RefusedProgram, is_program,
};

/// How long a program may take to answer, unless programs of resources have less time.
const LONGEST_ANSWER: Duration = Duration::from_secs(10);

/// The decision that a program makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecisionRole {
    /// The policy by which an instance is run again.
    Reconciler,
    /// The rule by which an instance is pending.
    PendingRule,
}

impl DecisionRole {
    /// Returns the prefix of the names of its programs.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Reconciler => "stead-reconciler-",
            Self::PendingRule => "stead-pending-",
        }
    }

    /// Returns the word for it in messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Reconciler => "reconciler",
            Self::PendingRule => "pending rule",
        }
    }
}

/// Why there is no program of a name.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// No program can have that name.
    #[error("'{0}' is not a valid name")]
    Name(String),
    /// None of the directories has it.
    #[error("there is no program '{0}'")]
    NotFound(String),
    /// It is there and must not be run.
    #[error("'{}' as root: {why}", path.display())]
    Refused {
        /// The program.
        path: PathBuf,
        /// The mistake in it.
        why: String,
        /// The advice about it.
        help: Option<String>,
    },
}

/// The names of the programs that are there for a role. Whether they are trusted is not looked at.
pub fn names(role: DecisionRole, search: &Search) -> BTreeSet<String> {
    let entries = search.directories.iter().filter_map(|directory| directory.read_dir().ok()).flatten().flatten();
    let programs = entries.filter(|entry| is_program(&entry.path()));
    let files = programs.filter_map(|entry| entry.file_name().into_string().ok());
    files.filter_map(|file| file.strip_prefix(role.prefix()).filter(|name| is_name(name)).map(str::to_owned)).collect()
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// A program that decides. It is started when it is first asked, and runs until the end of the run.
///
/// Guarantees: a question is answered within the deadline. A program that cannot be started, ends, is silent or gives an
/// answer that is not understood is reported once and not asked again. It is given nothing but what reports show as well.
pub struct DecisionProgram {
    role: DecisionRole,
    executable: Executable,
    settings: CommandSettings,
    context: Context,
    pace: OnceLock<Pace>,
    state: Mutex<State>,
}

enum State {
    Idle,
    Running(Conversation),
    Failed,
}

impl DecisionProgram {
    /// The program of that name, judged: the first one of the search counts, another in its place would be a surprise.
    ///
    /// `context` says where it works, how long it may take, what cancels it and where its messages go.
    pub fn find(
        role: DecisionRole,
        name: &str,
        search: &Search,
        settings: CommandSettings,
        context: Context,
    ) -> Result<Self, FindError> {
        if !is_name(name) {
            return Err(FindError::Name(name.to_owned()));
        }
        let file = format!("{}{name}", role.prefix());
        let path = search.directories.iter().map(|directory| directory.join(&file)).find(|path| is_program(path));
        let path = path.ok_or(FindError::NotFound(file))?;
        let executable =
            Executable::open(path.clone(), &settings.environment).map_err(|refused| not_trusted(path, &refused))?;
        let (pace, state) = (OnceLock::new(), Mutex::new(State::Idle));
        Ok(Self { role, executable, settings, context, pace, state })
    }

    /// Returns whether an instance is pending; `None` if it does not say.
    fn is_pending(&self, attempt: &Attempt<'_>, wait: Duration) -> Option<bool> {
        let answer: PendingAnswer = self.ask(&Question::new(attempt, wait))?;
        Some(answer.pending)
    }

    /// Returns the consequence of an attempt; `None` if it does not say.
    fn verdict(&self, attempt: &Attempt<'_>, wait: Duration) -> Option<Verdict> {
        let answer: VerdictAnswer = self.ask(&Question::new(attempt, wait))?;
        Some(answer.0)
    }

    /// How it paces, if it says so.
    fn pace(&self) -> Option<Pace> {
        if self.pace.get().is_none() {
            self.with(|_, _| Ok(()));
        }
        self.pace.get().copied()
    }

    /// Ends the program; it is started again when it is asked again.
    fn end(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Running(_) = *state
            && let State::Running(conversation) = std::mem::replace(&mut *state, State::Idle)
        {
            let secrets = Secrets::default();
            let forward = |level, text: &str| self.context.say(level, text);
            let mut listener = Listener::new(&forward, &secrets);
            conversation.end(self.settings.grace, &mut |bytes| listener.hear(bytes));
            listener.finish();
        }
    }

    fn ask<A: for<'de> Deserialize<'de>>(&self, question: &Question) -> Option<A> {
        let line = serde_json::to_string(question).ok()? + "\n";
        self.with(|conversation, listener| {
            let answer = self.line(conversation, line.as_bytes(), listener)?;
            serde_json::from_slice(&answer).map_err(AskError::Answer)
        })
    }

    /// Starts it unless it runs, and talks to it; what goes wrong is the end of it.
    fn with<A>(&self, talk: impl FnOnce(&mut Conversation, &mut Listener<'_>) -> Result<A, AskError>) -> Option<A> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let secrets = Secrets::default();
        let forward = |level, text: &str| self.context.say(level, text);
        let mut listener = Listener::new(&forward, &secrets);
        let conversation = match std::mem::replace(&mut *state, State::Failed) {
            State::Failed => return None,
            State::Running(conversation) => Ok(conversation),
            State::Idle => self.start(&mut listener),
        };
        let answered = conversation.and_then(|mut conversation| {
            let answer = talk(&mut conversation, &mut listener)?;
            Ok((conversation, answer))
        });
        match answered {
            Ok((conversation, answer)) => {
                *state = State::Running(conversation);
                Some(answer)
            }
            Err(error) => {
                self.report(&error, &listener.finish());
                None
            }
        }
    }

    fn start(&self, listener: &mut Listener<'_>) -> Result<Conversation, AskError> {
        let variables = [("DSC_CONFIG_ROOT".into(), self.context.program_root().into_os_string())];
        let path = self.executable.path();
        tracing::info!("Starting the {} '{}'", self.role.word(), path.display());
        let mut conversation = Conversation::start(&Program {
            executable: &self.executable,
            arguments: &[],
            directory: path.parent().unwrap_or(Path::new("/")),
            environment: &self.settings.environment,
            variables: &variables,
            input: None,
        })?;
        if self.role == DecisionRole::Reconciler {
            let line = self.line(&mut conversation, b"", listener)?;
            let greeting: Greeting = serde_json::from_slice(&line).map_err(AskError::Answer)?;
            // The first word counts: a pace does not change.
            self.pace.get_or_init(|| greeting.0);
        }
        Ok(conversation)
    }

    fn line(
        &self,
        conversation: &mut Conversation,
        question: &[u8],
        listener: &mut Listener<'_>,
    ) -> Result<Vec<u8>, AskError> {
        let deadline = self.context.deadline.min(LONGEST_ANSWER);
        Ok(conversation.ask(question, deadline, &self.context.cancel, &mut |bytes| listener.hear(bytes))?)
    }

    fn report(&self, error: &AskError, said: &str) {
        if matches!(error, AskError::Conversation(ConversationError::Process(ProcessError::Cancelled))) {
            return;
        }
        let instead = match self.role {
            DecisionRole::Reconciler => "using the default reconciler",
            DecisionRole::PendingRule => "using the default rule",
        };
        let (word, path) = (self.role.word(), self.executable.path().display());
        let why = with_causes(error).replace('`', "'");
        tracing::warn!(
            "{}",
            with_words(format!("the {word} '{path}' failed: {why}; {instead} for the rest of the run"), said)
        );
    }
}

fn not_trusted(path: PathBuf, refused: &RefusedProgram) -> FindError {
    FindError::Refused { path, why: with_causes(refused), help: refused.help() }
}

/// A pending rule that is a program. When it fails, another one decides.
pub struct ProgramRule {
    program: DecisionProgram,
    default: Arc<dyn PendingRule>,
}

impl ProgramRule {
    /// That program, and the rule that decides when it fails.
    pub fn new(program: DecisionProgram, default: Arc<dyn PendingRule>) -> Self {
        Self { program, default }
    }
}

impl PendingRule for ProgramRule {
    fn is_pending(&self, attempt: &Attempt<'_>, wait: Duration) -> bool {
        let answer = self.program.is_pending(attempt, wait);
        answer.unwrap_or_else(|| self.default.is_pending(attempt, wait))
    }

    fn end(&self) {
        self.program.end();
    }
}

/// The pending rules of a run: of an instance, of the run, of a type, and the one where none is named.
///
/// What is stated for an instance wins over what is stated for the run, and that over what the type names.
pub struct Rules {
    run: Option<Arc<dyn PendingRule>>,
    default: Arc<dyn PendingRule>,
    find: Box<FindRule>,
    /// Those that were asked for by their names; `None` where there is none of that name.
    found: Mutex<BTreeMap<String, Option<Arc<dyn PendingRule>>>>,
}

/// Finds the program of a rule by its name.
pub type FindRule = dyn Fn(&str) -> Result<DecisionProgram, FindError> + Send + Sync;

impl Rules {
    /// The rule that is named for the run, the one that decides where none is named, and how others are found.
    pub fn new(run: Option<Arc<dyn PendingRule>>, default: Arc<dyn PendingRule>, find: Box<FindRule>) -> Self {
        Self { run, default, find, found: Mutex::default() }
    }

    /// The rule that is named for an instance that was attempted.
    fn named(&self, attempt: &Attempt<'_>) -> Option<Arc<dyn PendingRule>> {
        match (attempt.stated_rule, &self.run, attempt.usual_rule) {
            (Some(name), ..) | (None, None, Some(name)) => Some(self.of_name(name)),
            (None, run, _) => run.clone(),
        }
    }

    fn of_name(&self, name: &str) -> Arc<dyn PendingRule> {
        if name == DEFAULT_RULE {
            return Arc::clone(&self.default);
        }
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let rule = found.entry(name.to_owned()).or_insert_with(|| match (self.find)(name) {
            Ok(program) => Some(Arc::new(ProgramRule::new(program, Arc::clone(&self.default)))),
            Err(error) => {
                tracing::warn!(
                    "the pending rule '{name}' is not used: {}; using the default rule",
                    with_causes(&error)
                );
                None
            }
        });
        rule.clone().unwrap_or_else(|| Arc::clone(&self.default))
    }
}

impl PendingRule for Rules {
    fn is_pending(&self, attempt: &Attempt<'_>, wait: Duration) -> bool {
        self.named(attempt).as_ref().unwrap_or(&self.default).is_pending(attempt, wait)
    }

    fn end(&self) {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.values().flatten().chain(&self.run).for_each(|rule| rule.end());
    }
}

/// The name of the rule that decides where no other is named.
pub const DEFAULT_RULE: &str = "default";

/// A reconciler that is a program. When it fails, the default one decides.
///
/// How often anything is run again at most is bounded as for others. A pending rule that was named is asked before it.
pub struct ProgramReconciler {
    program: DecisionProgram,
    default: Reconciler,
    rules: Arc<Rules>,
}

impl ProgramReconciler {
    /// That program, the reconciler that decides when it fails, and the rules that are named.
    pub fn new(program: DecisionProgram, default: Reconciler, rules: Arc<Rules>) -> Self {
        Self { program, default, rules }
    }
}

impl ProgramReconciler {
    /// The default one with the pace of the program.
    fn default(&self) -> Reconciler {
        Reconciler { pace: self.pace(), ..self.default.clone() }
    }
}

impl Policy for ProgramReconciler {
    fn after(&self, attempt: &Attempt<'_>) -> Verdict {
        let default = self.default();
        let wait = default.wait(attempt);
        let named = self.rules.named(attempt);
        let ends_by_rule = || named.as_ref().is_some_and(|rule| !rule.is_pending(attempt, wait));
        if default.is_exhausted(attempt) || ends_by_rule() {
            return Verdict::GiveUp;
        }
        self.program.verdict(attempt, wait).unwrap_or_else(|| {
            let is_pending = named.is_some() || default.rule.is_pending(attempt, wait);
            if is_pending { Verdict::RetryAfter(wait) } else { Verdict::GiveUp }
        })
    }

    fn pace(&self) -> Pace {
        self.program.pace().unwrap_or(self.default.pace)
    }

    fn is_exhausted(&self, attempt: &Attempt<'_>) -> bool {
        self.default().is_exhausted(attempt)
    }

    fn end(&self) {
        self.program.end();
        self.rules.end();
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error(transparent)]
    Conversation(#[from] ConversationError),
    #[error("its answer is not understood")]
    Answer(#[source] serde_json::Error),
}

/// The question to a program: an instance that is not in its desired state.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Question {
    version: u32,
    instance: String,
    #[serde(rename = "type")]
    type_name: String,
    result: &'static str,
    working: bool,
    reason: String,
    re_runs: u32,
    unchanged: u32,
    run_re_runs: u32,
    wait: f64,
    #[serde(flatten)]
    states: States,
}

/// The known states of an instance, without secrets.
#[derive(Default, Serialize)]
struct States {
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<Vec<String>>,
}

impl States {
    fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Changed(made) => Self {
                before: Some(made.before.to_redacted_json()),
                after: Some(made.after.to_redacted_json()),
                changed: made.changed.clone(),
            },
            Outcome::Tested(tested) => Self { before: Some(tested.actual.to_redacted_json()), ..Self::default() },
            _ => Self::default(),
        }
    }
}

fn result(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Pending(_) => "pending",
        Outcome::Failed(_) => "failed",
        Outcome::Changed(_) | Outcome::Deleted(_) => "changed",
        Outcome::Got(_) | Outcome::Tested(_) | Outcome::Exported(_) => "differs",
    }
}

impl Question {
    fn new(attempt: &Attempt<'_>, wait: Duration) -> Self {
        Self {
            version: VERSION,
            instance: attempt.instance.to_string(),
            type_name: attempt.instance.type_name().to_string(),
            result: result(&attempt.response.outcome),
            states: States::of(&attempt.response.outcome),
            working: attempt.is_working(),
            reason: attempt.reason(),
            re_runs: attempt.retries,
            unchanged: attempt.repeats,
            run_re_runs: attempt.re_runs,
            wait: wait.as_secs_f64(),
        }
    }
}

/// The version of questions and answers; members are only added to it.
const VERSION: u32 = 1;

#[derive(Deserialize)]
struct PendingAnswer {
    pending: bool,
}

#[derive(Deserialize)]
#[serde(try_from = "WrittenVerdict")]
struct VerdictAnswer(Verdict);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenVerdict {
    run_again_after: Option<f64>,
    #[serde(default)]
    give_up: bool,
}

impl TryFrom<WrittenVerdict> for VerdictAnswer {
    type Error = String;

    fn try_from(written: WrittenVerdict) -> Result<Self, String> {
        match (written.run_again_after, written.give_up) {
            (Some(seconds), false) => {
                let wait = Duration::try_from_secs_f64(seconds);
                Ok(Self(Verdict::RetryAfter(wait.map_err(|_| format!("{seconds} is not a time in seconds"))?)))
            }
            (None, true) => Ok(Self(Verdict::GiveUp)),
            _ => Err("expected 'runAgainAfter' with a time in seconds, or 'giveUp' with true".to_owned()),
        }
    }
}

/// The first message of a reconciler.
#[derive(Deserialize)]
#[serde(try_from = "WrittenGreeting")]
struct Greeting(Pace);

#[derive(Deserialize)]
struct WrittenGreeting {
    version: u32,
    pace: WrittenPace,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum WrittenPace {
    Each,
    Together,
}

impl TryFrom<WrittenGreeting> for Greeting {
    type Error = String;

    fn try_from(written: WrittenGreeting) -> Result<Self, String> {
        match (written.version, written.pace) {
            (VERSION, WrittenPace::Each) => Ok(Self(Pace::Each)),
            (VERSION, WrittenPace::Together) => Ok(Self(Pace::Together)),
            (other, _) => Err(format!("version {other} is not supported, only {VERSION}")),
        }
    }
}
