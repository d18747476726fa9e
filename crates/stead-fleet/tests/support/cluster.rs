//! A PostgreSQL of the tests: Debian's packages, in a folder of its own, on a socket.

#![allow(dead_code, reason = "not every test that has this needs all of it")]

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::Signal;
use stead_fleet::store::StorePlace;
use stead_testkit::{skip, until};

/// Why a test on PostgreSQL is skipped.
const MISSING: &str = "Debian's PostgreSQL is not installed, or its account is not there";
/// Where Debian has its programs, by versions.
const PROGRAMS: &str = "/usr/lib/postgresql";

/// A server that ends with this process, however that ends.
struct Cluster {
    programs: PathBuf,
    /// The account that runs it, if it is not that of the tests: PostgreSQL refuses root.
    account: Option<(u32, u32)>,
    folder: PathBuf,
    server: Option<Child>,
    /// The namespace of the network in which it listens, and its address there.
    host: Option<(String, Ipv4Addr)>,
}

/// A server and a standby that follows it, at hosts of their own.
pub(crate) struct Pair {
    primary: Cluster,
    standby: Cluster,
}

impl Pair {
    /// Begins both. `None` where PostgreSQL is not installed: then the test is reported as skipped.
    pub(crate) fn new(test: &str, hosts: [(String, Ipv4Addr); 2]) -> Option<Self> {
        let [primary_host, standby_host] = hosts;
        let Some(primary) = begun_at(Some(primary_host)) else {
            skip(test, MISSING);
            return None;
        };
        let mut standby = Cluster::prepare(Some(standby_host))?;
        primary.copy_to(&standby);
        standby.serve();
        Some(Self { primary, standby })
    }

    /// Whichever of both can be written to, as controllers connect to it.
    pub(crate) fn place(&self) -> StorePlace {
        let [primary, standby] = [&self.primary, &self.standby].map(Cluster::address);
        StorePlace::Server(format!(
            "host={primary},{standby} user=postgres dbname=postgres target_session_attrs=read-write connect_timeout=3"
        ))
    }

    /// Kills the server, promotes the standby, and says how many reports that has before anybody writes to it.
    pub(crate) fn fail_over(&mut self) -> u64 {
        let server = fs::read_to_string(self.primary.folder.join("data/postmaster.pid")).expect("the server runs");
        let id = server.lines().next().and_then(|line| line.parse().ok()).and_then(rustix::process::Pid::from_raw);
        let id = id.expect("a process");
        rustix::process::kill_process(id, Signal::KILL).expect("it is killed");
        let place = self.standby.place("postgres");
        let mut client = postgres::Client::connect(&place, postgres::NoTls).expect("the standby answers");
        let row = client.query_one("SELECT count(*) FROM reports", &[]).expect("reports are counted");
        self.standby.promote();
        u64::try_from(row.get::<_, i64>(0)).expect("a count")
    }
}

/// A new database, or none where PostgreSQL is not installed; then the part of the test is reported as skipped.
pub(crate) fn database(test: &str) -> Option<StorePlace> {
    static CLUSTER: OnceLock<Option<Cluster>> = OnceLock::new();
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let Some(cluster) = CLUSTER.get_or_init(begun) else {
        skip(&format!("{test}, on PostgreSQL"), MISSING);
        return None;
    };
    let name = format!("fleet{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let mut client =
        postgres::Client::connect(&cluster.place("postgres"), postgres::NoTls).expect("the server answers");
    client.batch_execute(&format!("CREATE DATABASE {name}")).expect("a database is made");
    Some(StorePlace::Server(cluster.place(&name)))
}

/// A server in which something was written, and a standby of it that was promoted. While the standby follows, `work` can stall it.
pub(crate) fn failover(
    test: &str,
    work: impl FnOnce(&StorePlace, &dyn Fn(Signal)),
) -> Option<(StorePlace, StorePlace)> {
    static BOTH: OnceLock<(Cluster, Cluster)> = OnceLock::new();
    let Some(primary) = begun() else {
        skip(test, MISSING);
        return None;
    };
    let place = StorePlace::Server(primary.place("postgres"));
    let mut standby = Cluster::prepare(None)?;
    primary.copy_to(&standby);
    standby.serve();
    work(&place, &|signal| standby.signal_receiver(signal));
    standby.promote();
    let promoted = StorePlace::Server(standby.place("postgres"));
    BOTH.set((primary, standby)).ok().expect("there is one test of this");
    Some((place, promoted))
}

fn begun() -> Option<Cluster> {
    begun_at(None)
}

fn begun_at(host: Option<(String, Ipv4Addr)>) -> Option<Cluster> {
    let mut cluster = Cluster::prepare(host)?;
    let mut initdb = cluster.program("initdb");
    initdb.args(["-U", "postgres", "-A", "trust", "-N", "--locale=C", "-E", "UTF8", "-D"]);
    assert!(initdb.arg(cluster.folder.join("data")).status().expect("initdb runs").success(), "initdb fails");
    if cluster.host.is_some() {
        let rules = "local all all trust\nhost all all all trust\nhost replication all all trust\n";
        fs::write(cluster.folder.join("data/pg_hba.conf"), rules).expect("who may connect is written");
    }
    cluster.serve();
    Some(cluster)
}

impl Cluster {
    fn prepare(host: Option<(String, Ipv4Addr)>) -> Option<Self> {
        let mut versions: Vec<PathBuf> = fs::read_dir(PROGRAMS).ok()?.flatten().map(|entry| entry.path()).collect();
        versions.sort();
        let programs = versions.pop()?.join("bin");
        let account = if rustix::process::getuid().is_root() { Some(account()?) } else { None };
        // Not in a temporary folder with a long path, which no socket could be in.
        let folder = tempfile::Builder::new().prefix("stead-pg-").tempdir_in("/tmp").ok()?.keep();
        if let Some((user, group)) = account {
            std::os::unix::fs::chown(&folder, Some(user), Some(group)).ok()?;
        }
        Some(Self { programs, account, folder, server: None, host })
    }

    fn place(&self, database: &str) -> String {
        format!("host={} user=postgres dbname={database}", self.folder.display())
    }

    /// Where it listens: an address, or the folder of its socket.
    fn address(&self) -> String {
        self.host.as_ref().map_or_else(|| self.folder.display().to_string(), |(_, address)| address.to_string())
    }

    /// Makes another one a standby of this.
    fn copy_to(&self, standby: &Self) {
        let mut copy = standby.program("pg_basebackup");
        copy.args(["-h", &self.address(), "-U", "postgres", "-X", "stream", "-R", "-c", "fast", "-D"]);
        assert!(copy.arg(standby.folder.join("data")).status().expect("it runs").success(), "no standby can be made");
    }

    /// Sends a signal to what receives the log of the primary.
    fn signal_receiver(&self, signal: Signal) {
        let id = until(|| {
            let mut client = postgres::Client::connect(&self.place("postgres"), postgres::NoTls).ok()?;
            let row =
                client.query_opt("SELECT pid FROM pg_stat_wal_receiver WHERE status = 'streaming'", &[]).ok()??;
            rustix::process::Pid::from_raw(row.get::<_, i32>(0))
        });
        rustix::process::kill_process(id, signal).expect("it is there");
    }

    fn promote(&self) {
        let mut promote = self.program("pg_ctl");
        promote.args(["promote", "-w", "-D"]).arg(self.folder.join("data"));
        assert!(promote.status().expect("it runs").success(), "the standby cannot be promoted");
    }

    fn program(&self, name: &str) -> Command {
        let program = self.programs.join(name);
        let mut command = match (&self.host, self.account) {
            (Some((space, _)), Some((user, group))) => {
                // Entering a network is for root, and what runs there is not.
                let mut command = Command::new("ip");
                command.args([
                    "netns",
                    "exec",
                    space,
                    "setpriv",
                    &format!("--reuid={user}"),
                    &format!("--regid={group}"),
                ]);
                command.arg("--clear-groups").arg(program);
                command
            }
            _ => Command::new(program),
        };
        if let (None, Some((user, group))) = (&self.host, self.account) {
            command.uid(user).gid(group);
        }
        command.current_dir(&self.folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn serve(&mut self) {
        // A shell reads from this process: whatever ends it, the server ends and the folder goes.
        let ends = r#""$@" & read -r _; kill -INT $!; wait; rm -rf "$FOLDER""#;
        let mut shell = self.program("/bin/sh");
        shell
            .args(["-c", ends, "sh"])
            .arg(self.programs.join("postgres"))
            .env("FOLDER", &self.folder)
            .stdin(Stdio::piped());
        shell.arg("-D").arg(self.folder.join("data")).arg("-k").arg(&self.folder);
        let listens = self.host.as_ref().map_or(String::new(), |(_, address)| address.to_string());
        shell.args(["-c", &format!("listen_addresses={listens}"), "-c", "max_connections=200"]);
        self.server = Some(shell.spawn().expect("the server starts"));
        until(|| postgres::Client::connect(&self.place("postgres"), postgres::NoTls).ok());
    }
}

fn account() -> Option<(u32, u32)> {
    let accounts = fs::read_to_string("/etc/passwd").ok()?;
    let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    let found = accounts.lines().map(fields).find(|fields| fields.first().is_some_and(|name| name == "postgres"))?;
    Some((found.get(2)?.parse().ok()?, found.get(3)?.parse().ok()?))
}
