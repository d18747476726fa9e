//! How many workers there are, and what is left of those that were ended, on PowerShell itself.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value as Json;
use stead_powershell::convert::Wire;
use stead_powershell::worker::{Call, Deadline, Failed, Limits, Method, Module, Pool, Records, Settings};
use stead_powershell_reader::resource::DefinitionKind;
use stead_system::Cancel;
use stead_system::process::Environment;
use tempfile::TempDir;

/// Says which process it is after so many milliseconds.
const WAIT: &str = "[DscResource()] class Wait { [DscProperty(Key)] [int] $For\n[DscProperty()] [int] $Process\n\
                    [Wait] Get() { Start-Sleep -Milliseconds $this.For; $this.Process = [Environment]::ProcessId; return $this }\n\
                    [bool] Test() { return $true }\n[void] Set() { } }\n";

struct Waiting {
    pool: Pool,
    module: PathBuf,
    _folder: TempDir,
}

impl Waiting {
    fn new(test: &str, width: usize) -> Option<Self> {
        let executable = stead_testkit::powershell(test)?;
        let folder = tempfile::tempdir().unwrap();
        let module = folder.path().join("Wait.psm1");
        fs::write(&module, WAIT).unwrap();
        let pool = Pool::new(Settings::new(executable, Environment::of_this_process(&[]), width));
        Some(Self { pool, module, _folder: folder })
    }

    /// The process that waited so long.
    fn call(&self, milliseconds: u32, deadline: Duration, to_come: usize) -> Result<u64, Failed> {
        let properties = [("For".to_owned(), Wire::Integer(milliseconds.to_string()))];
        let call = Call {
            kind: DefinitionKind::Class,
            module: Module { path: &self.module, stamp: "1" },
            resource: "Wait",
            method: Method::Get,
            properties: &properties,
            records: Records::None,
            progress: None,
            directory: Path::new("/"),
            root: Path::new("/"),
        };
        let cancel = Cancel::default();
        let limits =
            Limits { deadline: Deadline::after(deadline), output: 1 << 20, cancel: &cancel, inherited: &[], to_come };
        let reply = self.pool.call(&call, &limits, &mut |_| {})?;
        let state: Json = serde_json::from_str(reply.state().unwrap().unwrap().get()).unwrap();
        Ok(state["Process"].as_u64().unwrap())
    }

    /// The processes of calls by two threads, until there were so many calls or two processes.
    fn processes(&self, calls: usize, milliseconds: u32) -> BTreeSet<u64> {
        let seen = Mutex::new((0, BTreeSet::new()));
        let goes_on = || {
            let (count, processes) = &*seen.lock().unwrap();
            *count < calls && processes.len() < 2
        };
        let work = || {
            while goes_on() {
                let to_come = calls.saturating_sub(seen.lock().unwrap().0 + 1);
                let process = self.call(milliseconds, Duration::from_mins(2), to_come).unwrap();
                let mut seen = seen.lock().unwrap();
                seen.0 += 1;
                seen.1.insert(process);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(work);
            work();
        });
        seen.into_inner().unwrap().1
    }
}

/// Short calls are over before another process could be there; long ones are not kept waiting.
#[test]
fn a_second_worker_is_started_when_it_is_worth_its_start() {
    let test = "a_second_worker_is_started_when_it_is_worth_its_start";
    let Some(waiting) = Waiting::new(test, 2) else { return };
    assert_eq!(waiting.processes(500, 0).len(), 1);
    let Some(waiting) = Waiting::new(test, 2) else { return };
    assert_eq!(waiting.processes(200, 400).len(), 2);
}

/// The children of this process that have ended and were not waited for.
fn defunct() -> Vec<String> {
    let own = std::process::id().to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("stat"));
    let stats = processes.filter_map(|stat| fs::read_to_string(Path::new(&stat)).ok());
    let is_defunct = |stat: &String| {
        let fields = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect::<Vec<_>>());
        fields.is_some_and(|fields| fields.first() == Some(&"Z") && fields.get(1) == Some(&own.as_str()))
    };
    stats.filter(is_defunct).collect()
}

#[test]
fn workers_that_were_killed_are_waited_for() {
    let Some(waiting) = Waiting::new("workers_that_were_killed_are_waited_for", 1) else { return };
    for _ in 0..stead_testkit::times("STEAD_KILLS", 4) {
        waiting.call(0, Duration::from_mins(2), 0).unwrap();
        let failed = waiting.call(60_000, Duration::from_millis(300), 0).unwrap_err();
        assert!(matches!(failed, Failed::Deadline(_)), "{failed}");
        assert_eq!(defunct(), [""; 0]);
    }
}
