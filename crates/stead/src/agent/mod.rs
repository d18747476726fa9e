//! `agent`: the agent itself, and everything that is asked of one that runs.

mod identity;
mod install;
mod report;
mod text;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use stead_agent::control::{
    Acknowledge, AgentStatus, Answered, Ask, ChangeSettings, Check, Compare, Follow, Get, Goal, Inspected, Join,
    ListReports, LoadSettings, ReadHistory, ReadLog, ReadReport, ReadSettings, ReadStatus, Refused, Remove, Restore,
    SettingsNow, Staged, Stop, Submit, Unfollow, UseExisting, Wait, Waited,
};
use stead_agent::{BOOT_ID, CallError, Delivered, Health, Joining, Options, STOP_GRACE, Sink, call};
use stead_core::bundle::{Bundle, Reach};
use stead_core::value::{Sensitive, Value};
use stead_core::visible::visible_but;
use stead_engine::{Bundled, Session, error_chain};
use stead_host::facts::MachineIdentity;
use stead_hosts::MachineName;
use stead_release::Digest;
use stead_system::Cancel;
use stead_system::fs::SystemRoot;
use stead_system::places;

use crate::commands::{Metrics, refuse_bundle};
use crate::exit::Exit;
use crate::input::{self, BadParameters, ParameterSources, Text};
use crate::interrupt;
use crate::process_env::ProcessEnv;
use crate::request::{AgentQuestion, AgentRequest, AgentTask, DeliveryRequest, JoinRequest, Patience};
use crate::terminal::{Output, complain, complain_text, data_as, flush, print, print_coloured, show_findings};

/// The variable with the token of a machine that joins.
const JOIN_TOKEN: &str = "STEAD_JOIN_TOKEN";

/// Runs an agent, or asks one.
pub(crate) fn run(request: AgentRequest, env: &ProcessEnv) -> Exit {
    let Some(directory) = request.state.or_else(places::store) else {
        complain("error: there is no home folder to keep the state of the agent in; '--state FOLDER' names another");
        return Exit::Unusable;
    };
    let client = Client { directory, output: request.output };
    match request.task {
        AgentTask::Run { boot_id, stop_grace, metrics } => match metrics.as_ref().map(Metrics::begin).transpose() {
            Ok(metrics) => serve(client.directory, boot_id, stop_grace, metrics, env),
            Err(exit) => exit,
        },
        AgentTask::Identity(wanted) => identity::identity(&client.directory, wanted, client.output),
        AgentTask::Install => install::install(&client.directory),
        AgentTask::PrintUnit => install::print_unit(&client.directory),
        AgentTask::ApplyStaged { waits } => client
            .then(UseExisting {}, |_| waits.map_or(Exit::Success, |patience| client.wait_for(&Goal::Rest, patience))),
        AgentTask::Deliver(delivery) => client.deliver(&delivery, env),
        AgentTask::Restore { generation, force, unfollow, waits } => {
            client.then(Restore { generation, force, unfollow }, |answered| {
                complain_text(&answered.answer.warnings);
                client.show(answered, text::staged);
                client.waited(waits, &answered.answer)
            })
        }
        AgentTask::Follow { source, root, name } => client.follow(&source, &root, name),
        AgentTask::Join(join) => client.join(join),
        AgentTask::WaitForRest(patience) => client.wait_for(&Goal::Rest, patience),
        AgentTask::WaitForJob(patience) => client.wait_for_job(patience),
        AgentTask::LoadSettings(file) => client.load(&file),
        AgentTask::WriteReports { folder, after } => client.write_reports(&folder, after),
        AgentTask::Status => client.then(ReadStatus {}, |answered| {
            client.show(answered, text::status);
            health(&answered.answer)
        }),
        AgentTask::Check => client.then(Check {}, |answered| client.looked(answered)),
        AgentTask::Get => client.then(Get {}, |answered| client.looked(answered)),
        AgentTask::Look(question) => client.look(question),
    }
}

fn serve(
    directory: PathBuf,
    boot_id: Option<PathBuf>,
    stop_grace: Option<Duration>,
    metrics: Option<Metrics>,
    env: &ProcessEnv,
) -> Exit {
    let (stop, look) = (Cancel::default(), Arc::default());
    interrupt::catch_for_agent(&stop, &look, stead_agent::is_service());
    let stop_grace = stop_grace.unwrap_or(STOP_GRACE);
    let directory = std::path::absolute(&directory).unwrap_or(directory);
    let boot_id = boot_id.unwrap_or_else(|| PathBuf::from(BOOT_ID));
    match stead_agent::run(Options {
        directory,
        boot_id,
        host: env.host.clone(),
        stop,
        look,
        stop_grace,
        sinks: metrics.map(|metrics| Arc::new(metrics) as Arc<dyn Sink>).into_iter().collect(),
        source: None,
    }) {
        Ok(()) => Exit::Success,
        Err(error) => {
            complain(&format!("error: {}", error_chain(&error)));
            Exit::Failed
        }
    }
}

/// Asks the agent of a directory, and shows what it answers.
struct Client {
    directory: PathBuf,
    output: Output,
}

impl Client {
    /// Asks, and goes on with the answer. What is refused is reported.
    fn then<Q: Ask>(&self, question: Q, go_on: impl FnOnce(&Answered<Q::Answer>) -> Exit) -> Exit {
        match self.answered(call(&self.directory, question)) {
            Ok(answered) => go_on(&answered),
            Err(exit) => exit,
        }
    }

    /// The answer; what was refused is reported.
    fn answered<A>(&self, called: Result<Result<Answered<A>, Refused>, CallError>) -> Result<Answered<A>, Exit> {
        match called {
            Ok(Ok(answered)) => Ok(answered),
            Ok(Err(Refused { message, findings })) => {
                complain_text(&findings);
                let prefix = if findings.is_empty() { "error: " } else { "" };
                complain(&format!("{prefix}{message}"));
                if self.output != Output::Text {
                    data_as(&serde_json::json!({ "version": 1, "error": message }), self.output);
                }
                Err(Exit::Unusable)
            }
            Err(error) => {
                complain(&format!("error: {}", error_chain(&error)));
                Err(Exit::Failed)
            }
        }
    }

    /// Prints an answer at once: the caller may continue to wait.
    fn show<A: DeserializeOwned>(&self, answered: &Answered<A>, as_text: fn(&A) -> String) {
        match self.output {
            Output::Text => print_coloured(&visible_text(answered, as_text)),
            output => data_as(&answered.whole, output),
        }
        flush();
    }

    /// Prints settings: for programs, their values alone.
    fn show_settings(&self, answered: &Answered<SettingsNow>) {
        match self.output {
            Output::Text => print_coloured(&visible_text(answered, text::settings)),
            output => data_as(&Json::Object(answered.answer.values.clone()), output),
        }
        flush();
    }

    /// Asks, and shows the answer.
    fn look(&self, question: AgentQuestion) -> Exit {
        match question {
            AgentQuestion::Unfollow => self.only_show(Unfollow {}, text::unfollowed),
            AgentQuestion::Acknowledge => self.only_show(Acknowledge {}, text::acknowledged),
            AgentQuestion::Stop { force } => self.only_show(Stop { force }, text::stopped),
            AgentQuestion::History => self.only_show(ReadHistory {}, text::history),
            AgentQuestion::Diff { from, to } => self.only_show(Compare { from, to }, text::diff),
            AgentQuestion::Remove { stage, force } => self.only_show(Remove { stage, force }, text::removed),
            AgentQuestion::Report(job) => self.only_show(ReadReport { job }, |answer| text::report(&answer.read)),
            AgentQuestion::Reports { most, after } => self.only_show(ListReports { most, after }, text::reports),
            AgentQuestion::Logs { most } => self.only_show(ReadLog { most }, text::lines),
            AgentQuestion::Settings => self.settings(ReadSettings {}),
            AgentQuestion::ChangeSettings(changes) => self.settings(ChangeSettings { changes }),
        }
    }

    fn only_show<Q: Ask>(&self, question: Q, as_text: fn(&Q::Answer) -> String) -> Exit {
        self.then(question, |answered| {
            self.show(answered, as_text);
            Exit::Success
        })
    }

    fn settings(&self, question: impl Ask<Answer = SettingsNow>) -> Exit {
        self.then(question, |answered| {
            self.show_settings(answered);
            Exit::Success
        })
    }

    /// The name of this machine in the roster; the name of the host, if none is given.
    fn machine(name: Option<MachineName>) -> Result<String, Exit> {
        let host = || MachineIdentity::of(&SystemRoot::running()).name;
        name.map(|name| name.as_str().to_owned()).or_else(host).ok_or_else(|| {
            complain("error: this machine has no host name; '--name NAME' says which machine of the roster it is");
            Exit::Unusable
        })
    }

    fn join(&self, join: JoinRequest) -> Exit {
        let JoinRequest { url, root, name, labels, token, certificates } = join;
        let read = |file: &Path| {
            input::read(file).map_err(|error| {
                complain(&format!("error: {error}"));
                Exit::Unusable
            })
        };
        let asked = || {
            let token = match &token {
                Some(file) => Some(read(file)?.text.trim().to_owned()),
                None => std::env::var(JOIN_TOKEN).ok().filter(|token| !token.is_empty()),
            };
            let certificates = certificates.as_deref().map(read).transpose()?.map(|text| text.text);
            let joining = Joining { labels: labels.into_iter().collect(), certificates };
            let joining = Some(Join { joining, token: token.map(Sensitive::new) });
            let (source, root) = (format!("fleet+{url}"), root.to_string());
            Ok(Follow { source, root, machine: Self::machine(name)?, joining })
        };
        match asked() {
            Ok(question) => self.only_show(question, text::followed),
            Err(exit) => exit,
        }
    }

    fn follow(&self, source: &Path, root: &Digest, name: Option<MachineName>) -> Exit {
        let machine = match Self::machine(name) {
            Ok(machine) => machine,
            Err(exit) => return exit,
        };
        let is_address = source.to_str().is_some_and(|source| source.contains("://"));
        let absolute = if is_address { None } else { std::path::absolute(source).ok() };
        let source = absolute.unwrap_or_else(|| source.to_path_buf()).display().to_string();
        self.only_show(Follow { source, root: root.to_string(), machine, joining: None }, text::followed)
    }

    fn load(&self, file: &Path) -> Exit {
        let text = match input::read(file) {
            Ok(text) => text,
            Err(error) => {
                complain(&format!("error: {error}"));
                return Exit::Unusable;
            }
        };
        self.then(LoadSettings { name: text.name, text: text.text }, |answered| {
            complain_text(answered.answer.warnings.as_deref().unwrap_or_default());
            self.show_settings(answered);
            Exit::Success
        })
    }

    fn deliver(&self, request: &DeliveryRequest, env: &ProcessEnv) -> Exit {
        let delivered = match delivered(request, env) {
            Ok(delivered) => delivered,
            Err(exit) => return exit,
        };
        self.then(
            Submit { delivered, force: request.force, publish: request.publish, unfollow: request.unfollow },
            |answered| {
                complain_text(&answered.answer.warnings);
                self.show(answered, text::staged);
                self.waited(request.waits, &answered.answer)
            },
        )
    }

    /// Waits for the document that an answer names, if that is wanted.
    fn waited(&self, patience: Option<Patience>, staged: &Staged) -> Exit {
        let goal = Goal::Generation { number: staged.generation };
        patience.map_or(Exit::Success, |patience| self.wait_for(&goal, patience))
    }

    fn wait_for_job(&self, patience: Patience) -> Exit {
        self.then(asking(Goal::Rest, 0, None, patience), |answered| {
            self.wait_for(&Goal::Job { after: answered.answer.jobs }, patience)
        })
    }

    /// Asks repeatedly until the goal is reached, and prints events meanwhile: the agent answers each request soon.
    fn wait_for(&self, goal: &Goal, patience: Patience) -> Exit {
        const TURN: Duration = Duration::from_secs(5);
        let (began, mut seen) = (Instant::now(), None);
        // A document was delivered to it a moment ago.
        let mut known = matches!(goal, Goal::Generation { .. });
        let mut away = Away::default();
        loop {
            let left = patience.timeout.map_or(TURN, |timeout| timeout.saturating_sub(began.elapsed()).min(TURN));
            let milliseconds = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
            let called = call(&self.directory, asking(goal.clone(), milliseconds, seen, patience));
            if known && called.as_ref().is_err_and(CallError::is_gone) && away.is_in_time() {
                // Its document may have restarted it. Another process numbers its events anew.
                seen = Some(0);
                continue;
            }
            (known, away) = (true, Away::default());
            let answered = match self.answered(called) {
                Ok(answered) => answered,
                Err(exit) => return exit,
            };
            if self.output == Output::Text {
                print(&text::happened(&answered.answer));
                flush();
            }
            let Waited { done, converged, seen: now_seen, .. } = answered.answer;
            seen = Some(now_seen);
            let is_over = patience.timeout.is_some_and(|timeout| began.elapsed() >= timeout);
            let exit = match (done, converged) {
                (true, true) => Exit::Success,
                (true, false) => Exit::Failed,
                _ if is_over => Exit::Drifted,
                _ => continue,
            };
            self.show(&answered, text::waited);
            return exit;
        }
    }

    /// What a test or a get of the staged documents found.
    fn looked(&self, answered: &Answered<Inspected>) -> Exit {
        self.show(answered, text::looked);
        let all = || answered.answer.documents.iter().map(|document| document.report.read.totals);
        if all().any(|totals| totals.failed > 0) {
            Exit::Failed
        } else if all().any(|totals| totals.drifted > 0 || totals.unknown > 0) {
            Exit::Drifted
        } else {
            Exit::Success
        }
    }
}

/// How long an agent has been away that answered before.
#[derive(Default)]
struct Away(Option<Instant>);

impl Away {
    /// Longer than systemd takes to start an agent that has ended.
    const LONGEST: Duration = Duration::from_secs(10);

    /// Waits a moment. Returns whether it is still worth to ask again.
    fn is_in_time(&mut self) -> bool {
        std::thread::sleep(Duration::from_millis(100));
        self.0.get_or_insert_with(Instant::now).elapsed() < Self::LONGEST
    }
}

fn asking(goal: Goal, milliseconds: u64, seen: Option<u64>, patience: Patience) -> Wait {
    Wait { goal, milliseconds, seen, patient: patience.until_converged }
}

/// An answer as text, in which nothing that a terminal would obey can be taken for a colour of this program.
fn visible_text<A: DeserializeOwned>(answered: &Answered<A>, as_text: fn(&A) -> String) -> String {
    // Only texts are other than they were, so that it has the form that it had.
    A::deserialize(visible_strings(&answered.whole)).map(|answer| as_text(&answer)).unwrap_or_default()
}

fn visible_strings(answer: &Json) -> Json {
    match answer {
        Json::String(text) => visible_but(text, &['\n', '\t']).into(),
        Json::Array(items) => items.iter().map(visible_strings).collect(),
        Json::Object(members) => members.iter().map(|(name, value)| (name.clone(), visible_strings(value))).collect(),
        other => other.clone(),
    }
}

/// The exit code for the health of the machine, for monitoring.
fn health(answer: &AgentStatus) -> Exit {
    match answer.status.health {
        Health::Converged => Exit::Success,
        Health::Drifted => Exit::Drifted,
        Health::Failing => Exit::Failing,
        Health::Held => Exit::Held,
    }
}

/// Reads the document and its parameters here, where relative paths and standard input are those of whoever asks.
fn delivered(request: &DeliveryRequest, env: &ProcessEnv) -> Result<Delivered, Exit> {
    let path = &request.file;
    let root = request.supplied.root.clone().unwrap_or_else(|| input::folder(path));
    let root = std::path::absolute(&root).unwrap_or(root);
    let mut session = env.host.session(&root);
    let unreadable = |error: input::Unreadable| {
        complain(&format!("error: {error}"));
        Exit::Unusable
    };
    let (text, bundle) = match input::delivered(&session, path).map_err(unreadable)? {
        input::Delivered::Document(text) => (text, None),
        input::Delivered::Bundle(bundle) => {
            let text = bundle.document().1.to_string();
            (Text { name: input::shown(path), text }, Some(bundle))
        }
    };
    let takes_input = input::is_standard(path);
    let from = ParameterSources { takes_input, ..ParameterSources::of(&request.supplied, &text) };
    let supplied = input::parameters(&mut session, &from).map_err(|bad| match bad {
        BadParameters::Unreadable(error) => unreadable(error),
        BadParameters::Findings(findings) => {
            show_findings(&findings, &session.sources);
            Exit::Unusable
        }
    })?;
    // What was supplied is not sealed yet: nothing of it is left out.
    let parameters = match Value::Object(supplied.values).to_redacted_json() {
        Json::Object(parameters) => parameters,
        _ => serde_json::Map::new(),
    };
    let bundle = match bundle {
        Some(bundle) => bundle,
        None => bundled(&text, env.host.session(&root))?,
    };
    Ok(Delivered::of_bundle(text.name, &bundle, parameters, root))
}

/// The bundle of a document with every file that it reads on this machine, so that it does not change until it is
/// delivered again.
fn bundled(text: &Text, mut session: Session) -> Result<Bundle, Exit> {
    let bundled = session.bundle(&text.name, &text.text, Reach::Machine);
    let Bundled { bundle, on_machine } = bundled.map_err(|why| refuse_bundle(&why, &session.sources))?;
    for path in on_machine {
        complain(&format!("note: '{path}' is not delivered: it is read on the machine whenever it is used"));
    }
    Ok(bundle)
}
