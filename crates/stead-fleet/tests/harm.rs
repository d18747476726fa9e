//! What harms a controller: kills at system calls, a disk that is full or cannot be written, requests of whoever means no good.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "../../stead-release/tests/support/mod.rs"]
mod keys;
#[path = "support/site.rs"]
mod site;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use site::{Answer, Operators, Simulated, bundle, try_ask};
use stead_fleet::store::StorePlace;
use stead_protocol::TokenRequest;
use stead_release::Digest;
use stead_testkit::{skip, times, until};

/// The calls before which a controller is killed: all by which it changes what is on a disk, and those by which it answers.
const CALLS: &str = "openat,pwrite64,write,fdatasync,fsync,ftruncate,unlink,rename,renameat2,sendto,writev,fcntl";

/// A controller that is killed when it is dropped.
struct Program {
    child: Child,
    url: String,
    agent: ureq::Agent,
}

impl Program {
    /// Starts the program, below others that watch it or limit what it has.
    fn start(state: &Path, below: &[String]) -> Option<Self> {
        let mut words = below.iter().map(String::as_str).chain([env!("CARGO_BIN_EXE_stead-fleet")]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words).args(["run", "--listen", "127.0.0.1:0", "--folder"]).arg(state).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let Some(port) = line.split("listening on 127.0.0.1:").nth(1).and_then(|rest| rest.split(',').next()) else {
            child.wait().unwrap();
            return None;
        };
        let url = format!("https://localhost:{port}");
        // What it logs is read, so that it can go on.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        let agent = site::agent(&std::fs::read(state.join("tls.pem")).unwrap());
        Some(Self { child, url, agent })
    }

    fn ask(&self, method: &str, path: &str, headers: &[(&str, String)], body: &[u8]) -> Option<Answer> {
        try_ask(&self.agent, &format!("{}{path}", self.url), method, headers, body).ok()
    }

    fn operator(&self, token: &str, method: &str, path: &str, body: &[u8]) -> Option<Answer> {
        self.ask(method, path, &[("authorization", format!("Bearer {token}"))], body)
    }

    fn machine(&self, machine: &Simulated, path: &str, body: &[u8]) -> Option<Answer> {
        self.ask("POST", path, &machine.headers("POST", path, "", body), body)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // One that was killed before is not there any more.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

/// A folder with a controller's state, and what operators and machines know.
struct World {
    _folder: tempfile::TempDir,
    state: PathBuf,
    ann: String,
    root: String,
    release: String,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(stead_testkit::memory_folder()).unwrap();
        let state = folder.path().join("state");
        let mut command = Command::new(env!("CARGO_BIN_EXE_stead-fleet"));
        let made = command.args(["operator", "ann", "--role", "approver", "--folder"]).arg(&state).output().unwrap();
        let ann = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        let mut operators = Operators::new();
        let (root, release) = (operators.root.to_text(), operators.release("all", "all", &bundle("b")));
        Self { _folder: folder, state, ann, root, release }
    }

    /// All that a controller acknowledges, until it ends: a token, machines that join, content, releases, a secret for sessions, reports.
    fn live(&self, program: &Program, seed: u8) -> Acknowledged {
        let mut done = Acknowledged::default();
        let _ = self.steps(program, seed, &mut done);
        done
    }

    fn steps(&self, program: &Program, seed: u8, done: &mut Acknowledged) -> Option<()> {
        let good = |answer: Answer| {
            assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
            answer
        };
        let wanted = serde_json::to_vec(&TokenRequest { uses: 1, seconds: 60, labels: [].into() }).unwrap();
        let token = good(program.operator(&self.ann, "POST", "/v1/tokens", &wanted)?).json()["token"].clone();
        done.acts += 1;
        let name = format!("m{seed}");
        let machine = Simulated::new(&name, seed);
        let body = json!({ "key": machine.key.public.to_string(), "token": token }).to_string().into_bytes();
        good(program.machine(&machine, "/v1/enrol", &body)?);
        done.machine = Some(name);
        let content = bundle("b");
        for (kind, text) in [("root", &self.root), ("release", &self.release)] {
            if kind == "release" {
                let path = format!("/v1/blobs/{}", content.name());
                good(program.operator(&self.ann, "PUT", &path, &content.encode())?);
            }
            good(program.operator(&self.ann, "POST", &format!("/v1/statements/{kind}"), text.as_bytes())?);
            done.statements.push(kind);
        }
        for number in 1..=3 {
            let body = machine.reports(number..number + 1, &json!({}));
            good(program.machine(&machine, "/v1/reports", &body)?);
            done.reports = number;
        }
        Some(())
    }

    /// The mistake in what is there, if there is one.
    fn checked(&self, done: &Acknowledged) -> Result<(), String> {
        let mut store = StorePlace::File(self.state.join("fleet.db")).open().map_err(|error| error.to_string())?;
        let changes = store.changes(0).map_err(|error| error.to_string())?;
        let acts = store.acts(0, 1000).map_err(|error| error.to_string())?;
        let mut parent = Digest::of(b"");
        for (at, act) in acts.iter().enumerate() {
            let is_next = act.number == at as u64 + 1 && act.parent == parent;
            let digest = Digest::of(format!("{}\n{}", act.parent, act.body).as_bytes());
            if !is_next || digest != act.digest {
                return Err(format!("act {} does not follow", act.number));
            }
            parent = digest;
        }
        if (acts.len() as u64) < done.acts {
            return Err(format!("{} acts were acknowledged, and {} are there", done.acts, acts.len()));
        }
        let statements = changes.heads.len();
        if statements < done.statements.len() {
            return Err(format!("{:?} were acknowledged, and {statements} are there", done.statements));
        }
        // An act and what it did are there together.
        let published = acts.iter().filter(|act| act.body.contains("publish ")).count();
        if published != statements {
            return Err(format!("{published} acts say that something was published, and {statements} are there"));
        }
        let Some(name) = &done.machine else { return Ok(()) };
        let mut found = changes.machines.iter().filter(|machine| machine.name.as_str() == name);
        let Some(machine) = found.next().filter(|_| found.next().is_none()) else {
            return Err(format!("{name} is not there just once"));
        };
        let reports = store.reports(machine.id, u64::MAX, 100).map_err(|error| error.to_string())?;
        let numbers: Vec<u64> = reports.iter().rev().map(|report| report.number).collect();
        let is_whole = numbers == (1..=numbers.len() as u64).collect::<Vec<_>>();
        let is_enough = numbers.len() as u64 >= done.reports;
        if is_whole && is_enough { Ok(()) } else { Err(format!("{} were acknowledged of {numbers:?}", done.reports)) }
    }
}

/// The reports that a controller acknowledged.
#[derive(Default, Debug)]
struct Acknowledged {
    acts: u64,
    machine: Option<String>,
    statements: Vec<&'static str>,
    reports: u64,
}

/// Each call of [`CALLS`] that is made in a life, by its name and which of them it is.
fn calls(world: &World) -> Vec<(String, usize)> {
    let log = world.state.with_file_name("calls");
    let below = ["strace", "-D", "-f", "-o", log.to_str().unwrap(), "-e", &format!("trace={CALLS}")];
    let below: Vec<String> = below.map(str::to_owned).into();
    let program = Program::start(&world.state, &below).unwrap();
    let done = world.live(&program, 1);
    assert_eq!((done.reports, done.statements.len()), (3, 2), "{done:?}");
    drop(program);
    let is_whole = |text: &String| text.contains("+++ killed by SIGKILL +++");
    counted(&until(|| std::fs::read_to_string(&log).ok().filter(is_whole)))
}

/// The calls of a log of strace, by their names and which of them each is.
fn counted(text: &str) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let names =
        text.lines().filter_map(|line| line.split_once(' ')?.1.trim_start().split_once('(').map(|(name, _)| name));
    names
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        .map(|name| {
            let count = counts.entry(name.to_owned()).or_default();
            *count += 1;
            (name.to_owned(), *count)
        })
        .collect()
}

/// `STEAD_FLEET_KILLS=1000` kills at as many calls, which is about all of them.
#[test]
fn a_kill_before_any_system_call_loses_and_doubles_nothing_that_was_acknowledged() {
    let test = "a_kill_before_any_system_call_loses_and_doubles_nothing_that_was_acknowledged";
    if Command::new("strace").args(["-qq", "true"]).output().is_ok_and(|output| output.status.success()) {
        let calls = calls(&World::new());
        let wanted = times("STEAD_FLEET_KILLS", 30);
        let stride = (calls.len() / wanted).max(1);
        let (mut tried, mut reached, mut found) = (0, 0, Vec::new());
        for (name, count) in calls.iter().step_by(stride) {
            let world = World::new();
            let inject = format!("inject={name}:signal=KILL:when={count}");
            let words = ["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={name}"), "-e", &inject];
            let below: Vec<String> = words.map(str::to_owned).into();
            let done = match Program::start(&world.state, &below) {
                Some(program) => world.live(&program, 1),
                None => Acknowledged::default(),
            };
            (tried, reached) = (tried + 1, reached + usize::from(done.reports < 3));
            if let Err(why) = world.checked(&done) {
                found.push(format!("{name} {count}: {why}"));
            }
            // It goes on from there, and another machine is served.
            let program = Program::start(&world.state, &["env".to_owned()]).unwrap();
            let again = world.live(&program, 2);
            drop(program);
            if again.reports < 3 {
                found.push(format!("{name} {count}: it does not go on: {again:?}"));
            }
            if let Err(why) = world.checked(&again) {
                found.push(format!("{name} {count}, later: {why}"));
            }
        }
        println!(
            "{} calls, {tried} kills, of which {reached} came before the last answer: {} losses",
            calls.len(),
            found.len()
        );
        assert_eq!(found, Vec::<String>::new());
        assert!(reached > tried / 3, "{reached} of {tried}");
    } else {
        skip(test, "strace cannot trace here");
    }
}

/// The secret of sessions is replaced or is not, whenever that is killed, and the controller beside it refuses nobody.
#[test]
fn a_kill_before_any_system_call_of_rotate_leaves_sessions_whole() {
    let test = "a_kill_before_any_system_call_of_rotate_leaves_sessions_whole";
    if !Command::new("strace").args(["-qq", "true"]).output().is_ok_and(|output| output.status.success()) {
        return skip(test, "strace cannot trace here");
    }
    let world = World::new();
    let program = Program::start(&world.state, &["env".to_owned()]).unwrap();
    assert_eq!(world.live(&program, 1).reports, 3);
    let mut machine = Simulated::new("m1", 1);
    machine.number.store(1000, std::sync::atomic::Ordering::SeqCst);
    let asks = |machine: &Simulated| {
        let headers = machine.headers("GET", "/v1/desired", "", b"");
        program.ask("GET", "/v1/desired", &headers, b"").unwrap()
    };
    let log = world.state.with_file_name("rotate");
    let rotate = |options: &[&str]| {
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-o"]).arg(&log).args(options).arg(env!("CARGO_BIN_EXE_stead-fleet"));
        command.args(["rotate", "--folder"]).arg(&world.state).output().unwrap().status.success()
    };
    let secrets = || {
        let epochs = StorePlace::File(world.state.join("fleet.db")).open().unwrap().sessions(String::new).unwrap();
        epochs.into_iter().map(|epoch| epoch.secret.expose().clone()).collect::<Vec<_>>()
    };
    assert!(rotate(&["-e", &format!("trace={CALLS}")]));
    let calls = counted(&std::fs::read_to_string(&log).unwrap());
    let stride = (calls.len() / times("STEAD_FLEET_ROTATE_KILLS", 20)).max(1);
    let (mut tried, mut done) = (0, 0);
    for (name, count) in calls.iter().step_by(stride) {
        // By its key it is given the session that is used now.
        machine.session = None;
        let answer = asks(&machine);
        machine.session = stead_protocol::SessionSecret::parse(answer.header(stead_protocol::SESSION).unwrap());
        let before = secrets();
        rotate(&["-e", &format!("trace={name}"), "-e", &format!("inject={name}:signal=KILL:when={count}")]);
        let after = secrets();
        let is_new = after.split_last().is_some_and(|(_, kept)| !kept.is_empty() && before.ends_with(kept));
        assert!(after == before || is_new, "{name} {count}");
        (tried, done) = (tried + 1, done + usize::from(after != before));
        assert_eq!(asks(&machine).status, 304, "{name} {count}: its session counts");
    }
    println!("{} calls, {tried} kills, of which {done} came when all was done: sessions are whole", calls.len());
    assert!(done < tried, "{done} of {tried}");
}

/// A disk on which each sync takes a while: a report waits for it, and what is only read does not.
#[test]
fn a_slow_disk_keeps_nobody_waiting_who_does_not_write() {
    const SYNC: Duration = Duration::from_millis(500);
    let test = "a_slow_disk_keeps_nobody_waiting_who_does_not_write";
    if !Command::new("strace").args(["-qq", "true"]).output().is_ok_and(|output| output.status.success()) {
        return skip(test, "strace cannot trace here");
    }
    let world = World::new();
    let inject = format!("inject=fsync,fdatasync:delay_enter={}", SYNC.as_micros());
    let words = ["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync", "-e", &inject];
    let program = Program::start(&world.state, &words.map(str::to_owned)).unwrap();
    assert_eq!(world.live(&program, 1).reports, 3);
    let machines = 20;
    let machine = Simulated::new("m1", 1);
    machine.number.store(1000, std::sync::atomic::Ordering::SeqCst);
    let (began, program, machine) = (Instant::now(), &program, &machine);
    let read = std::thread::scope(|scope| {
        let send = |number: u64| {
            scope.spawn(move || {
                let body = machine.reports(number..number + 1, &json!({}));
                let headers = machine.headers("POST", "/v1/reports", "", &body);
                assert_eq!(program.ask("POST", "/v1/reports", &headers, &body).unwrap().status, 200);
                assert!(began.elapsed() >= SYNC, "acknowledged before it is on the disk");
            })
        };
        let senders: Vec<_> = (10..10 + machines).map(send).collect();
        let mut read = Vec::new();
        while !senders.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            let began = Instant::now();
            assert_eq!(program.operator(&world.ann, "GET", "/v1/machines", b"").unwrap().status, 200);
            read.push(began.elapsed());
        }
        read
    });
    let took = began.elapsed();
    let mut sorted = read.clone();
    sorted.sort();
    let middle = sorted[sorted.len() / 2];
    println!(
        "{machines} reports on a disk that syncs in {SYNC:?}: {took:?}; {} reads meanwhile, half within {middle:?}",
        read.len()
    );
    assert!(middle < SYNC / 2, "{middle:?}");
    // What comes in while a sync is under way goes with the next one: they are not synced one by one.
    assert!(took < SYNC * u32::try_from(machines).unwrap() / 2, "{took:?}");
}

/// A disk that is full: a file system of 4 MB.
#[test]
fn a_full_disk_acknowledges_nothing_and_is_left_behind() {
    let test = "a_full_disk_acknowledges_nothing_and_is_left_behind";
    let disk = tempfile::tempdir().unwrap();
    let mount = |words: &[&str]| {
        Command::new(words[0]).args(&words[1..]).arg(disk.path()).output().is_ok_and(|output| output.status.success())
    };
    if !stead_testkit::is_root(test) {
        return;
    }
    if !mount(&["mount", "-t", "tmpfs", "-o", "size=4m,mode=0755", "tmpfs"]) {
        return skip(test, "nothing can be mounted here");
    }
    let mut world = World::new();
    let state = disk.path().join("state");
    let copied = Command::new("cp").arg("-r").arg(&world.state).arg(&state).status().unwrap();
    assert!(copied.success());
    world.state = state;
    let outcome = std::panic::catch_unwind(|| full(&world, disk.path()));
    assert!(mount(&["umount"]));
    let (refused, there) = outcome.unwrap();
    println!("{refused} reports were refused by a full disk, and {there} are there");
}

/// How many reports were refused, and how many are there.
fn full(world: &World, disk: &Path) -> (usize, usize) {
    let program = Program::start(&world.state, &["env".to_owned()]).unwrap();
    let done = world.live(&program, 1);
    assert_eq!(done.reports, 3);
    let filler = disk.join("filler");
    let _ = std::fs::write(&filler, vec![0; 8 << 20]);
    let machine = Simulated::new("m1", 1);
    machine.number.store(1000, std::sync::atomic::Ordering::SeqCst);
    let (mut acknowledged, mut refused) = (vec![1, 2, 3], 0);
    let report = |number: u64| {
        let body = machine.reports(number..number + 1, &json!({ "filling": "x".repeat(20_000) }));
        program.machine(&machine, "/v1/reports", &body).unwrap()
    };
    for number in 4..60 {
        let answer = report(number);
        match answer.status {
            // What is written into the file makes room in the log again.
            200 => acknowledged.push(number),
            503 => {
                assert_eq!(answer.header("retry-after"), Some("5"));
                refused += 1;
            }
            other => panic!("{number}: {other}"),
        }
    }
    assert!(refused > 0, "the disk is full");
    // What is read needs no room, and is served.
    assert_eq!(program.operator(&world.ann, "GET", "/v1/machines", b"").unwrap().status, 200);
    std::fs::remove_file(&filler).unwrap();
    until(|| (report(60).status == 200).then_some(()));
    acknowledged.push(60);
    drop(program);
    let mut store = StorePlace::File(world.state.join("fleet.db")).open().unwrap();
    let machine = store.changes(0).unwrap().machines[0].id;
    let reports = store.reports(machine, u64::MAX, 100).unwrap();
    let there: Vec<u64> = reports.iter().rev().map(|report| report.number).collect();
    assert!(there.windows(2).all(|pair| pair[0] < pair[1]), "{there:?}");
    let lost: Vec<&u64> = acknowledged.iter().filter(|number| !there.contains(number)).collect();
    assert_eq!(lost, Vec::<&u64>::new(), "of {acknowledged:?}");
    (refused, acknowledged.len())
}

/// A store that cannot be written is refused with a sentence.
#[test]
fn a_disk_that_cannot_be_written_is_said() {
    let test = "a_disk_that_cannot_be_written_is_said";
    if !stead_testkit::is_root(test) {
        return;
    }
    let world = World::new();
    let words = [
        "unshare",
        "-m",
        "sh",
        "-c",
        "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" && exec \"$0\" run --listen 127.0.0.1:0 --folder \"$1\"",
    ];
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(env!("CARGO_BIN_EXE_stead-fleet")).arg(&world.state);
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    if said.contains("unshare") || said.contains("mount:") {
        return skip(test, &said);
    }
    assert_eq!(output.status.code(), Some(1));
    assert!(said.starts_with("error: ") && said.contains("read-only file system"), "{said}");
}

/// How long others may wait on a machine that does nothing else.
const SOON: Duration = Duration::from_millis(100);

/// `STEAD_FLEET_HOSTILE=10000` has as many connections say nothing.
#[test]
fn requests_of_whoever_means_no_good_keep_nobody_waiting() {
    let world = World::new();
    let program = Program::start(&world.state, &["env".to_owned()]).unwrap();
    let port: u16 = program.url.rsplit(':').next().unwrap().parse().unwrap();
    stead_system::process::allow_most_descriptors().unwrap();
    let silent: Vec<_> =
        (0..times("STEAD_FLEET_HOSTILE", 500)).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
    let ca = std::fs::read(world.state.join("tls.pem")).unwrap();
    let served = |what: &str| {
        until(|| {
            // By a connection of its own.
            let (agent, url, began) = (site::agent(&ca), format!("{}/v1/status", program.url), Instant::now());
            let answer = try_ask(&agent, &url, "GET", &[("authorization", format!("Bearer {}", world.ann))], b"");
            assert_eq!(answer.unwrap().status, 200, "{what}");
            // On a busy machine one of several: what is held up is held up each time.
            (began.elapsed() < SOON).then(|| println!("{what}: others are served within {:?}", began.elapsed()))
        });
    };
    served("connections that say nothing");
    // A head in pieces, one that has no end, bodies that are announced and do not come, and two lengths for one body.
    let long = format!("GET /v1/status HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "x".repeat(100_000));
    let mut open = Vec::new();
    for (what, words, wanted) in [
        ("a head that does not end", "GET /v1/status HTTP/1.1\r\nhost: a\r\n", None),
        ("a long head", &*long, Some("431")),
        ("a body that does not come", "POST /v1/enrol HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\n", None),
        (
            "a body of a stranger",
            "POST /v1/statements/root HTTP/1.1\r\nhost: a\r\ncontent-length: 60000000\r\n\r\n",
            Some("401"),
        ),
        (
            "a body that is too long",
            "POST /v1/enrol HTTP/1.1\r\nhost: a\r\ncontent-length: 60000000\r\n\r\n",
            Some("413"),
        ),
        (
            "two lengths",
            "POST /v1/enrol HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd",
            Some("400"),
        ),
        (
            "a length and chunks",
            "POST /v1/enrol HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /v1/status HTTP/1.1\r\nhost: a\r\n\r\n",
            Some("400"),
        ),
        ("another coding", "POST /v1/enrol HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip\r\n\r\n", Some("400")),
        ("what is not HTTP", "\0\u{1}\u{2}\r\n\r\n", Some("400")),
        ("a path with another one in it", "GET /v1/machines/../acts HTTP/1.1\r\nhost: a\r\n\r\n", Some("404")),
    ] {
        let mut stream = site::tls_to(&ca, port);
        stream.write_all(words.as_bytes()).unwrap();
        served(what);
        if let Some(wanted) = wanted {
            let mut answer = [0; 2048];
            let length = stream.read(&mut answer).unwrap_or_default();
            let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
            let status = answer.split(' ').nth(1).unwrap_or_default();
            assert_eq!(status, wanted, "{what}: {answer}");
            assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{what}: {answer}");
        }
        open.push(stream);
    }
    drop((silent, open));
}

/// Connections that come while nobody is accepted wait in the system, and are not dropped: whoever is dropped tries again after a second at the earliest.
#[test]
fn many_connections_at_once_wait_and_are_not_dropped() {
    let world = World::new();
    let program = Program::start(&world.state, &["env".to_owned()]).unwrap();
    let port: u16 = program.url.rsplit(':').next().unwrap().parse().unwrap();
    let allowed = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
    let many = allowed.trim().parse::<usize>().unwrap().min(1000);
    let signal = |signal| rustix::process::kill_process(rustix::process::Pid::from_child(&program.child), signal);
    signal(rustix::process::Signal::STOP).unwrap();
    let connect = |_| TcpStream::connect_timeout(&([127, 0, 0, 1], port).into(), Duration::from_secs(5));
    let waiting = (0..many).map(connect).collect::<Result<Vec<_>, _>>();
    signal(rustix::process::Signal::CONT).unwrap();
    assert_eq!(waiting.unwrap().len(), many);
    assert_eq!(program.operator(&world.ann, "GET", "/v1/status", b"").unwrap().status, 200);
}
