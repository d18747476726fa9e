//! Where requests come from: each directory and path of modules has resources of its own.

use std::env;
use std::ffi::OsStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use stead_engine::{Host, Session};

use super::protocol::Caller;
use crate::process_env::HostOf;
use crate::rpc::Problem;

/// How many places are kept: a caller that goes through folders does not come back to most of them.
const KEPT: usize = 16;

/// How long what was found counts, for calls by name. A caller that installs a module and calls it at once finds it all the same:
/// what is not found is looked for again.
const FRESH: Duration = Duration::from_secs(1);

/// How new what is known of resources must be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// As it was when the place was first asked for.
    Once,
    /// A moment old at most.
    Lately,
    /// As it is now.
    Now,
}

/// The places that requests come from.
pub(super) struct Places {
    /// The place where this process was started.
    base: Arc<Session>,
    host_of: Arc<HostOf>,
    others: Mutex<Vec<Place>>,
}

struct Place {
    caller: Caller,
    host: Host,
    session: Arc<Session>,
    looked: Instant,
}

impl Places {
    pub(super) fn new(base: Session, host_of: Arc<HostOf>) -> Self {
        Self { base: Arc::new(base), host_of, others: Mutex::default() }
    }

    /// The place where this process was started.
    pub(super) fn base(&self) -> &Session {
        &self.base
    }

    /// The session for requests of a caller.
    pub(super) fn of(&self, caller: &Caller, look: Look) -> Result<Arc<Session>, Problem> {
        let caller = &as_here(caller);
        if *caller == Caller::default() && look == Look::Once {
            return Ok(Arc::clone(&self.base));
        }
        if let Some(relative) = caller.directory.as_ref().filter(|directory| !directory.is_absolute()) {
            let message = format!("'directory': '{}' is not an absolute path", relative.display());
            return Err(Problem::new(Problem::PARAMS, message));
        }
        let mut places = self.lock();
        let known = places.iter().position(|place| place.caller == *caller).map(|at| places.remove(at));
        let place = match known {
            Some(place) if look == Look::Once || look == Look::Lately && place.looked.elapsed() < FRESH => place,
            Some(place) => self.place(caller, place.host),
            None => self.place(caller, self.host(&places, caller)),
        };
        let session = Arc::clone(&place.session);
        // The one that was asked for last is last.
        places.push(place);
        let former = leave_one(&mut places);
        drop(places);
        former.iter().for_each(Host::end);
        Ok(session)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Place>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self, caller: &Caller, host: Host) -> Place {
        let root = caller.directory.as_deref().unwrap_or_else(|| self.base.root());
        let session = Arc::new(self.base.elsewhere(&host, root));
        Place { caller: caller.clone(), host, session, looked: Instant::now() }
    }

    /// The host for the modules of a caller: processes of PowerShell are kept for each path of modules.
    fn host(&self, places: &[Place], caller: &Caller) -> Host {
        let Some(path) = caller.module_path.as_deref() else { return self.base.host().clone() };
        let same = places.iter().find(|place| place.caller.module_path == caller.module_path);
        same.map_or_else(|| (self.host_of)(path), |place| place.host.clone())
    }
}

/// The caller, where it says nothing of a path of modules that is the one of this process: both share their processes.
fn as_here(caller: &Caller) -> Caller {
    let own = env::var_os("PSModulePath");
    let another = caller.module_path.as_deref().filter(|path| own.as_deref() != Some(OsStr::new(path)));
    Caller { directory: caller.directory.clone(), module_path: another.map(str::to_owned) }
}

/// Forgets the place that nobody has asked for the longest, where there are too many. Returns its host, if it is of no use any
/// more.
fn leave_one(places: &mut Vec<Place>) -> Option<Host> {
    if places.len() <= KEPT {
        return None;
    }
    let idle = places.iter().position(|place| Arc::strong_count(&place.session) == 1)?;
    let Place { caller, host, .. } = places.remove(idle);
    let is_needed = places.iter().any(|place| place.caller.module_path == caller.module_path);
    (!is_needed && caller.module_path.is_some()).then_some(host)
}
