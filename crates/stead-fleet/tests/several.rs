//! Three controllers on one PostgreSQL, each at an address and with a clock of its own: cut off from the database, killed, and behind a
//! failover to a standby that lacks the last of what was acknowledged. What machines and the store have at the end is compared.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test may end with a panic wherever it is")]
#![expect(clippy::doc_markdown, reason = "databases have such names")]

#[path = "support/cluster.rs"]
mod cluster;
#[path = "../../stead-release/tests/support/mod.rs"]
mod keys;
#[path = "sim/machine.rs"]
mod machine;
#[path = "support/network.rs"]
mod network;
#[path = "sim/operators.rs"]
mod operators;
#[path = "sim/random.rs"]
mod random;
#[path = "support/site.rs"]
mod site;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cluster::Pair;
use machine::{Effect, Simulated};
use network::Network;
use operators::{Job, Operator};
use random::Random;
use site::try_ask;
use stead_fleet::store::StorePlace;
use stead_fleet::tls;
use stead_protocol::{MachineAnswer, MachineCall, MachineEvent};
use stead_system::folder::Folder;
use stead_testkit::{skip, until};
use ureq::Agent;

const MACHINES: usize = 8;
/// The hosts: three controllers, and the two databases.
const CONTROLLERS: [u8; 3] = [1, 2, 3];
const DATABASES: [u8; 2] = [11, 12];
/// How far the clocks of the controllers are from that of the databases.
const CLOCKS: [&str; 3] = ["+0", "-2h", "+3h"];

/// The state that all threads share.
struct Fleet {
    urls: Vec<String>,
    agent: Agent,
    began: Instant,
    /// Machines report nothing more.
    is_quiet: AtomicBool,
    ends: AtomicBool,
    /// The release that each machine has, with [`KNOWN`].
    states: Vec<AtomicU64>,
    wrong: Mutex<Vec<String>>,
}

impl Fleet {
    fn new(network: &Network, agent: Agent) -> Self {
        Self {
            urls: CONTROLLERS.iter().map(|host| format!("https://{}:7443", network.address(*host))).collect(),
            agent,
            began: Instant::now(),
            is_quiet: AtomicBool::new(false),
            ends: AtomicBool::new(false),
            states: (0..MACHINES).map(|_| AtomicU64::new(0)).collect(),
            wrong: Mutex::default(),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap()
    }

    fn ask(&self, controller: u64, call: &MachineCall) -> Result<MachineAnswer, String> {
        let url = format!("{}{}", self.urls[usize::try_from(controller).unwrap()], call.path);
        let answer = try_ask(&self.agent, &url, call.method, &call.headers, &call.body);
        let answer = answer.map_err(|error| error.to_string())?;
        let header = |name: &str| answer.header(name);
        Ok(MachineAnswer::of(call.number, answer.status, header, answer.body.clone()))
    }

    /// Lets a machine live until all is over.
    fn live(self: &Arc<Self>, at: usize, mut machine: Simulated) -> Simulated {
        let mut random = Random::new(at as u64);
        let (sender, inbox) = channel();
        let begun = SystemTime::now() - self.began.elapsed();
        machine.skew = i64::try_from(begun.duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
        let (mut effects, mut apply, mut report) = (machine.begin(self.now(), &mut random), u64::MAX, 0);
        let mut staged = 0;
        while !self.ends.load(Ordering::SeqCst) {
            for effect in effects.drain(..) {
                match effect {
                    Effect::Send(call) => {
                        let (fleet, sender, controller) =
                            (Arc::clone(self), sender.clone(), random.below(CONTROLLERS.len() as u64));
                        std::thread::spawn(move || {
                            let number = call.number;
                            let event = match fleet.ask(controller, &call) {
                                Ok(answer) => MachineEvent::Answered(answer),
                                Err(why) => MachineEvent::Lost(number, why),
                            };
                            // The machine may be gone.
                            let _ = sender.send(event);
                        });
                    }
                    Effect::Apply(_) => apply = self.now() + 50,
                    Effect::Staged(_, number) if number > staged => staged = number,
                    Effect::Staged(_, number) => {
                        self.wrong.lock().unwrap().push(format!("m{at} goes from {staged} to {number}"));
                    }
                }
            }
            let next = machine.next().unwrap_or(u64::MAX).min(apply).min(report).min(self.now() + 200);
            let event = inbox.recv_timeout(Duration::from_millis(next.saturating_sub(self.now())));
            let now = self.now();
            effects = match event {
                Ok(event) => machine.handle(now, event),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if now >= apply => {
                    apply = u64::MAX;
                    machine.apply(now)
                }
                Err(RecvTimeoutError::Timeout) if now >= report && !self.is_quiet.load(Ordering::SeqCst) => {
                    report = now + random.between(100, 500);
                    machine.report(now)
                }
                Err(RecvTimeoutError::Timeout) => machine.handle(now, MachineEvent::Time),
            };
            if self.is_quiet.load(Ordering::SeqCst) {
                report = u64::MAX;
            }
            let applied = machine.applied().map_or(0, |(_, number)| *number);
            let is_known = machine.acknowledged() == machine.reports().len() as u64;
            self.states[at].store(applied | if is_known { KNOWN } else { 0 }, Ordering::SeqCst);
        }
        machine
    }

    fn all(&self, is_so: impl Fn(u64) -> bool) -> Option<()> {
        self.states.iter().all(|state| is_so(state.load(Ordering::SeqCst))).then_some(())
    }
}

/// The bit of a machine that knows that all of its reports are kept.
const KNOWN: u64 = 1 << 63;

/// The controllers as processes at their hosts.
struct Controllers<'n> {
    network: &'n Network,
    place: StorePlace,
    folder: PathBuf,
    running: Vec<Option<Child>>,
    /// What gives each a clock of its own, where that is there.
    clocks: Option<String>,
}

impl Controllers<'_> {
    fn begin(&mut self, at: usize) {
        let (host, StorePlace::Server(words)) = (CONTROLLERS[at], &self.place) else { panic!("a server") };
        let tls = self.folder.join("tls");
        let mut program = self.network.program(host, env!("CARGO_BIN_EXE_stead-fleet"));
        if let Some(library) = &self.clocks {
            program.env("LD_PRELOAD", library).env("FAKETIME", CLOCKS[at]).env("DONT_FAKE_MONOTONIC", "1");
        }
        program.args(["run", "--listen", &format!("{}:7443", self.network.address(host)), "--store", words]);
        program.arg("--folder").arg(self.folder.join(host.to_string()));
        program.arg("--certificate").arg(tls.join("tls.pem")).arg("--key").arg(tls.join("tls.key"));
        self.running[at] = Some(program.stderr(Stdio::null()).spawn().unwrap());
    }

    fn kill(&mut self, at: usize) {
        if let Some(mut child) = self.running[at].take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

impl Drop for Controllers<'_> {
    fn drop(&mut self) {
        (0..self.running.len()).for_each(|at| self.kill(at));
    }
}

/// Has everything done that an operator must do, whoever answers.
fn operate(fleet: &Fleet, operator: &mut Operator, random: &mut Random) {
    until(|| {
        let Some((number, Job { method, path, body })) = operator.next() else { return Some(()) };
        let headers = vec![("authorization", "Bearer operator".to_owned())];
        let call = MachineCall { number, waits: false, method, path, headers, body };
        match fleet.ask(random.below(CONTROLLERS.len() as u64), &call) {
            Ok(answer) => operator.answered(&answer),
            Err(_) => operator.lost(),
        }
        None
    });
}

fn count(place: &StorePlace) -> u64 {
    until(|| place.open().ok()?.count_reports().ok())
}

/// The certificate of all controllers, in a folder.
fn certificate(network: &Network, folder: &Path) -> Agent {
    let private = Folder::create(&folder.join("tls")).unwrap();
    let names = CONTROLLERS.map(|host| network.address(host).to_string());
    let files = tls::own(&private, &names).unwrap();
    site::agent(&std::fs::read(files.certificate).unwrap())
}

/// The library that gives a program another clock: it is tried here, or why there is none.
fn faketime() -> Result<String, String> {
    let run = |words: &[&str]| {
        let output = Command::new("faketime").args(words).output();
        let output = output.map_err(|error| format!("Debian's faketime cannot be run: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if output.status.success() && !text.is_empty() { Ok(text) } else { Err("faketime gives no clock".to_owned()) }
    };
    let library = run(&["-f", "+0", "printenv", "LD_PRELOAD"])?;
    let year = run(&["-f", "@2001-02-03 04:05:06", "date", "+%Y"])?;
    if year == "2001" { Ok(library) } else { Err(format!("faketime changes nothing: it is {year}")) }
}

#[test]
fn controllers_apart_lose_double_and_turn_back_nothing_at_a_failover() {
    let test = "controllers_apart_lose_double_and_turn_back_nothing_at_a_failover";
    let Some(network) = Network::new(test, 12) else { return };
    let hosts = DATABASES.map(|host| (network.space(host), network.address(host)));
    let Some(mut pair) = Pair::new(test, hosts) else { return };
    let (place, folder) = (pair.place(), tempfile::tempdir().unwrap());
    let agent = certificate(&network, folder.path());
    let mut operator = Operator::new(&mut place.open().unwrap(), MACHINES, true);
    let machines: Vec<_> = (0..MACHINES).map(|number| Simulated::new(number, &operator.root())).collect();
    let jobs = operator.begin(&machines);
    operator.jobs.extend(jobs);
    let running = CONTROLLERS.map(|_| None).into();
    let clocks = faketime();
    if let Err(reason) = &clocks {
        skip(&format!("{test}, with clocks apart"), reason);
    }
    let clocks = clocks.ok();
    let mut controllers = Controllers { network: &network, place, folder: folder.path().to_owned(), running, clocks };
    (0..CONTROLLERS.len()).for_each(|at| controllers.begin(at));
    let fleet = Arc::new(Fleet::new(&network, agent));
    let live = |(at, machine)| {
        let fleet = Arc::clone(&fleet);
        std::thread::spawn(move || fleet.live(at, machine))
    };
    let threads: Vec<_> = machines.into_iter().enumerate().map(live).collect();
    let mut random = Random::new(7);
    let mut publish = |operator: &mut Operator| operate(&fleet, operator, &mut random);
    let all_have = |number: u64| until(|| fleet.all(|applied| applied & !KNOWN >= number));
    publish(&mut operator);
    all_have(1);
    // One is cut off from the database, and another one is killed.
    network.part(CONTROLLERS[0], DATABASES[0], true);
    operator.sign();
    publish(&mut operator);
    network.part(CONTROLLERS[0], DATABASES[0], false);
    controllers.kill(1);
    operator.sign();
    publish(&mut operator);
    controllers.begin(1);
    all_have(3);
    // The standby hears no more, while reports and a release are acknowledged; then it is all that there is.
    network.part(DATABASES[1], DATABASES[0], true);
    let before = count(&controllers.place);
    operator.sign();
    publish(&mut operator);
    let kept = until(|| Some(count(&controllers.place)).filter(|count| *count > before + 20));
    let found = pair.fail_over();
    assert!(found < kept, "the standby lacks nothing, so that nothing is shown: {found} of {kept}");
    operator.again();
    operator.sign();
    publish(&mut operator);
    all_have(5);
    fleet.is_quiet.store(true, Ordering::SeqCst);
    until(|| fleet.all(|applied| applied == 5 | KNOWN));
    fleet.ends.store(true, Ordering::SeqCst);
    let machines: Vec<Simulated> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let wrong = operator.compared(&mut controllers.place.open().unwrap(), &machines);
    let reports: usize = machines.iter().map(|machine| machine.reports().len()).sum();
    println!(
        "{MACHINES} machines, {reports} reports: {} of {kept} were lost with the primary and sent again",
        kept - found
    );
    assert!(wrong.is_empty() && fleet.wrong.lock().unwrap().is_empty(), "{wrong:#?} {:#?}", fleet.wrong);
}
