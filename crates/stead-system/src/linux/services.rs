//! The services of the running system: systemd, over D-Bus.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde::de::DeserializeOwned;
use stead_core::call::{Failure, FailureKind};
use zbus::{Connection, DynamicType, Message, OwnedObjectPath, OwnedVariant, Type, Variant};

use super::fs::{FileKind, SystemRoot};
use crate::cancel::Cancel;

const SYSTEMD: &str = "org.freedesktop.systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const UNIT: &str = "org.freedesktop.systemd1.Unit";
const SERVICE: &str = "org.freedesktop.systemd1.Service";
const MANAGER_PATH: &str = "/org/freedesktop/systemd1";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// The result of what did not fail.
const SUCCESS: &str = "success";

/// systemd answers within milliseconds, but for a reload of thousands of units.
const ANSWER_WITHIN: Duration = Duration::from_secs(90);

/// The systemd of the running system. One connection serves all calls.
#[derive(Default)]
pub struct Systemd {
    connection: Mutex<Option<Connection>>,
}

/// The state of a unit when it was asked for.
pub struct UnitStatus {
    active: String,
    path: OwnedObjectPath,
}

impl UnitStatus {
    /// Returns whether it runs.
    pub fn is_running(&self) -> bool {
        matches!(self.active.as_str(), "active" | "reloading" | "refreshing")
    }

    /// Returns whether it neither runs nor is about to: what is restarted again and again is not stopped.
    pub fn is_stopped(&self) -> bool {
        matches!(self.active.as_str(), "inactive" | "failed")
    }
}

/// A condition of a unit: its name, whether one of several is enough, whether it is negated, its value, and whether it was met
/// (above 0), was not (below), or was not looked at.
type Condition = (String, bool, bool, String, i32);

/// The ID of one run of a unit (`InvocationID`).
pub type Invocation = Vec<u8>;

/// The state of a service after its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lasting {
    /// It still runs.
    Runs,
    /// It has nothing more to do.
    Done,
}

/// Something that systemd does with a unit when it is asked to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnitJob {
    /// To start it.
    Start,
    /// To stop it.
    Stop,
    /// To stop it, if it runs, and start it.
    Restart,
    /// To have it read its configuration again, or to restart it where it cannot.
    Reload,
}

impl UnitJob {
    /// The verb that messages use.
    pub fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
            Self::Reload => "reload",
        }
    }

    fn method(self) -> &'static str {
        match self {
            Self::Start => "StartUnit",
            Self::Stop => "StopUnit",
            Self::Restart => "RestartUnit",
            Self::Reload => "ReloadOrRestartUnit",
        }
    }
}

/// One unit as `ListUnits` and its relatives list it: name, description, three states, whom it follows, its object, and the
/// number, kind and object of its job.
type Listed = (String, String, String, String, String, String, OwnedObjectPath, u32, String, OwnedObjectPath);

impl Systemd {
    /// Returns whether systemd is the service manager of the running system.
    pub fn is_running() -> bool {
        SystemRoot::running().status("run/systemd/system").is_some_and(|found| found.kind == FileKind::Directory)
    }

    /// The state of a unit. One that systemd has not loaded is read by it for this.
    pub fn status(&self, unit: &str) -> Result<UnitStatus, Failure> {
        let listed: Vec<Listed> = self.manager("ListUnitsByNames", &(vec![unit],))?;
        let missing = || Failure::new(FailureKind::Blocked, format!("systemd does not know '{unit}'"));
        let (_, _, _, active, _, _, path, ..) = listed.into_iter().next().ok_or_else(missing)?;
        Ok(UnitStatus { active, path })
    }

    /// The names of the units that run and whose names fit the pattern.
    pub fn running(&self, pattern: &str) -> Result<Vec<String>, Failure> {
        let listed: Vec<Listed> = self.manager("ListUnitsByPatterns", &(vec!["active"], vec![pattern]))?;
        Ok(listed.into_iter().map(|(name, ..)| name).collect())
    }

    /// When a unit last began to start, in microseconds since 1970; 0 when it never did.
    pub fn started_at(&self, status: &UnitStatus) -> Result<u64, Failure> {
        self.property(status, UNIT, "InactiveExitTimestamp", |value| u64::try_from(value).ok())
    }

    /// Returns whether a unit says how it reads its configuration again.
    pub fn can_reload(&self, status: &UnitStatus) -> Result<bool, Failure> {
        self.property(status, UNIT, "CanReload", |value| bool::try_from(value).ok())
    }

    /// When a unit that runs had started or reloaded last, in microseconds since 1970; 0 where its last reload failed, so that it
    /// has not read anything since an unknown time.
    pub fn loaded_at(&self, status: &UnitStatus) -> Result<u64, Failure> {
        if self.reload_result(status) != SUCCESS {
            return Ok(0);
        }
        self.property(status, UNIT, "StateChangeTimestamp", |value| u64::try_from(value).ok())
    }

    /// The result of the last reload of a unit. Those that have none to say have not failed.
    fn reload_result(&self, status: &UnitStatus) -> String {
        let result = self.property(status, SERVICE, "ReloadResult", |value| String::try_from(value).ok());
        result.unwrap_or_else(|_| SUCCESS.to_owned())
    }

    /// Returns whether this process is the main process of a service.
    pub fn is_main_process(&self, unit: &str) -> Result<bool, Failure> {
        if !unit.ends_with(".service") {
            return Ok(false);
        }
        let main = self.property(&self.status(unit)?, SERVICE, "MainPID", |value| u32::try_from(value).ok())?;
        Ok(main == std::process::id())
    }

    /// Lets systemd read the unit files again.
    pub fn reload(&self) -> Result<(), Failure> {
        self.call(MANAGER_PATH, MANAGER, "Reload", &()).map(|_| ())
    }

    /// Runs a job to its end. What systemd would start from an outdated unit file is read again before.
    pub fn run(&self, cancel: &Cancel, deadline: Duration, unit: &str, job: UnitJob) -> Result<(), Failure> {
        // systemd forgets a unit that has ended, with how it ended, as soon as nobody refers to it.
        let is_kept = self.try_call(MANAGER_PATH, MANAGER, "RefUnit", &(unit,)).is_ok();
        let done = self.run_loaded(cancel, deadline, unit, job);
        if is_kept {
            // Where the connection was closed in the meantime, so is the reference.
            let _ = self.try_call(MANAGER_PATH, MANAGER, "UnrefUnit", &(unit,));
        }
        done
    }

    fn run_loaded(&self, cancel: &Cancel, deadline: Duration, unit: &str, job: UnitJob) -> Result<(), Failure> {
        let status = self.status(unit)?;
        if self.property(&status, UNIT, "NeedDaemonReload", |value| bool::try_from(value).ok())? {
            self.reload()?;
        }
        let path: OwnedObjectPath = self.manager(job.method(), &(unit, "replace"))?;
        self.wait(cancel, deadline, unit, (job, &path))?;
        self.check(unit, job)
    }

    /// Waits until a job is gone. The unit says what became of it; a signal could be missed.
    fn wait(
        &self,
        cancel: &Cancel,
        deadline: Duration,
        unit: &str,
        (job, path): (UnitJob, &OwnedObjectPath),
    ) -> Result<(), Failure> {
        const LONGEST_PAUSE: Duration = Duration::from_millis(50);
        let until = Instant::now().checked_add(deadline);
        let mut pause = Duration::from_millis(1);
        while self.is_queued(path)? {
            if cancel.is_cancelled() {
                return Err(Failure::new(FailureKind::Cancelled, "the run was cancelled"));
            }
            if until.is_some_and(|until| Instant::now() > until) {
                let message = format!("systemd did not {} '{unit}' in time; see `systemctl status {unit}`", job.word());
                return Err(Failure::new(FailureKind::Deadline, message));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Ok(())
    }

    fn is_queued(&self, job: &OwnedObjectPath) -> Result<bool, Failure> {
        match self.try_call(job.as_str(), PROPERTIES, "Get", &("org.freedesktop.systemd1.Job", "State")) {
            Ok(_) => Ok(true),
            Err(zbus::Error::FDO(error)) if matches!(*error, zbus::fdo::Error::UnknownObject(_)) => Ok(false),
            Err(error) => Err(failed(&error)),
        }
    }

    /// The present run of a unit.
    pub fn invocation(&self, unit: &str) -> Result<Invocation, Failure> {
        self.property(&self.status(unit)?, UNIT, "InvocationID", |value| Invocation::try_from(value).ok())
    }

    /// Returns whether a service that was started is still running or has done its work.
    ///
    /// # Errors
    /// When it has ended otherwise, or systemd started it again, as opposed to a user.
    pub fn has_lasted(&self, unit: &str, started: Option<&Invocation>) -> Result<Lasting, Failure> {
        let status = self.status(unit)?;
        let restarts = self.property(&status, SERVICE, "NRestarts", |value| u32::try_from(value).ok())?;
        let text = |name| self.property(&status, SERVICE, name, |value| String::try_from(value).ok());
        let (result, kind) = (text("Result")?, text("Type")?);
        let is_same = match started {
            Some(started) => restarts == 0 || self.invocation(unit)? == *started,
            None => true,
        };
        match kind.as_str() {
            // It has done its work when it is inactive again, or is only said to be active.
            "oneshot" if status.is_running() || status.active == "inactive" && result == "success" => {
                return Ok(Lasting::Done);
            }
            _ if status.is_running() && is_same => return Ok(Lasting::Runs),
            _ => {}
        }
        let active = &status.active;
        let again = if restarts > 0 { format!("systemd started it again {restarts} times; ") } else { String::new() };
        let why = format!("{again}it is {active}, with result {result}; see `journalctl --unit {unit}`");
        Err(Failure::new(FailureKind::System, format!("'{unit}' was started and did not keep running: {why}")))
    }

    /// Returns whether a running service runs on: one that systemd had to start again is watched until it has run for so long.
    pub fn runs_on(&self, cancel: &Cancel, unit: &str, stable_for: Duration) -> Result<bool, Failure> {
        let status = self.status(unit)?;
        if self.property(&status, SERVICE, "NRestarts", |value| u32::try_from(value).ok())? == 0 {
            return Ok(true);
        }
        let began = UNIX_EPOCH + Duration::from_micros(self.started_at(&status)?);
        let age = SystemTime::now().duration_since(began).unwrap_or_default();
        Ok(self.keeps_running(cancel, unit, stable_for.saturating_sub(age)).is_ok())
    }

    /// Waits until a service has kept running for so long, or has done its work.
    ///
    /// # Errors
    /// When it has ended otherwise, or systemd started it again.
    pub fn keeps_running(&self, cancel: &Cancel, unit: &str, stable_for: Duration) -> Result<(), Failure> {
        const PAUSE: Duration = Duration::from_millis(100);
        let invocation = self.invocation(unit)?;
        let until = Instant::now().checked_add(stable_for);
        while self.has_lasted(unit, Some(&invocation))? == Lasting::Runs
            && until.is_some_and(|until| Instant::now() < until)
            && !cancel.is_cancelled()
        {
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Lets a unit be started that failed so often that systemd starts it no more.
    pub fn forget_failures(&self, unit: &str) -> Result<(), Failure> {
        self.call(MANAGER_PATH, MANAGER, "ResetFailedUnit", &(unit,)).map(|_| ())
    }

    /// Fails when a unit is not in the desired state after a job.
    fn check(&self, unit: &str, job: UnitJob) -> Result<(), Failure> {
        let status = self.status(unit)?;
        let finished = self.property(&status, SERVICE, "Result", |value| String::try_from(value).ok());
        let result = match job {
            UnitJob::Reload => self.reload_result(&status),
            _ => finished.unwrap_or_else(|_| "unknown".to_owned()),
        };
        // A service of type oneshot has done its work when it is inactive again.
        let has_ended = status.active == "inactive" && result == SUCCESS;
        let is_reached = match job {
            UnitJob::Stop => status.is_stopped(),
            UnitJob::Start | UnitJob::Restart if has_ended => return self.check_conditions(unit, &status),
            UnitJob::Start | UnitJob::Restart => status.is_running(),
            UnitJob::Reload => status.is_running() && result == SUCCESS,
        };
        if is_reached {
            return Ok(());
        }
        let active = status.active;
        let why = format!("it is {active}, with result {result}; see `journalctl --unit {unit}`");
        Err(Failure::new(FailureKind::System, format!("cannot {} '{unit}': {why}", job.word())))
    }

    /// Fails when systemd did not start a unit because of what the unit says of the machine: such a start is not an error to it.
    fn check_conditions(&self, unit: &str, status: &UnitStatus) -> Result<(), Failure> {
        if self.property(status, UNIT, "ConditionResult", |value| bool::try_from(value).ok())? {
            return Ok(());
        }
        let conditions = self.property(status, UNIT, "Conditions", |value| Vec::<Condition>::try_from(value).ok())?;
        let unmet = conditions.into_iter().filter(|(.., verdict)| *verdict < 0).map(|(name, one_of, not, value, _)| {
            let signs = [("|", one_of), ("!", not)].into_iter().filter_map(|(sign, is_set)| is_set.then_some(sign));
            format!("{name}={}{value}", signs.collect::<String>())
        });
        let unmet = unmet.collect::<Vec<_>>().join(", ");
        let message = format!("systemd does not start '{unit}' on this machine: {unmet} in its unit file is not met");
        Err(Failure::new(FailureKind::Blocked, message))
    }

    fn property<T>(
        &self,
        status: &UnitStatus,
        interface: &str,
        name: &str,
        read: impl FnOnce(Variant<'_>) -> Option<T>,
    ) -> Result<T, Failure> {
        let reply = self.call(status.path.as_str(), PROPERTIES, "Get", &(interface, name))?;
        let value: OwnedVariant = reply.body().deserialize().map_err(|error| failed(&error))?;
        let unexpected = || Failure::new(FailureKind::Protocol, format!("systemd reported no property {name}"));
        read(value.into()).ok_or_else(unexpected)
    }

    fn manager<R>(&self, method: &'static str, body: &(impl Serialize + DynamicType)) -> Result<R, Failure>
    where
        R: DeserializeOwned + Type,
    {
        let reply = self.call(MANAGER_PATH, MANAGER, method, body)?;
        reply.body().deserialize_ignore_signature().map_err(|error| failed(&error))
    }

    fn call(
        &self,
        path: &str,
        interface: &'static str,
        method: &'static str,
        body: &(impl Serialize + DynamicType),
    ) -> Result<Message, Failure> {
        self.try_call(path, interface, method, body).map_err(|error| failed(&error))
    }

    /// Calls a method, over another connection when the former one is closed.
    fn try_call(
        &self,
        path: &str,
        interface: &'static str,
        method: &'static str,
        body: &(impl Serialize + DynamicType),
    ) -> zbus::Result<Message> {
        let send = |connection: Connection| {
            zbus::block_on(
                async move { connection.call_method(Some(SYSTEMD), path, Some(interface), method, body).await },
            )
        };
        match send(self.connection()?) {
            Err(zbus::Error::InputOutput(_)) => {
                self.connection.lock().unwrap_or_else(PoisonError::into_inner).take();
                send(self.connection()?)
            }
            answered => answered,
        }
    }

    fn connection(&self) -> zbus::Result<Connection> {
        let mut held = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = &*held {
            return Ok(connection.clone());
        }
        let builder = zbus::connection::Builder::system().method_timeout(ANSWER_WITHIN);
        let connection = zbus::block_on(builder.build())?;
        Ok(held.insert(connection).clone())
    }
}

fn failed(error: &zbus::Error) -> Failure {
    let message = match error {
        zbus::Error::MethodError(name, text, _) => {
            format!("systemd refused: {}", text.as_deref().unwrap_or(name.as_str()))
        }
        zbus::Error::FDO(error) => format!("systemd refused: {error}"),
        error => format!("cannot reach systemd over D-Bus: {error}"),
    };
    Failure::new(FailureKind::System, message)
}
