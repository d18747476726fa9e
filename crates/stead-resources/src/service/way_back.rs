//! The way back of a service that does not come up.

use serde_json::Value as Json;
use stead_core::call::Failure;
use stead_host::provider::{Context, Plain, WayBack};
use stead_system::fs::SystemPath;
use stead_system::services::UnitJob;

use super::{Activity, Properties, Services, is_live};
use crate::input::read_each;

impl WayBack for Services {
    /// One that ended right after its start, of which systemd says that it succeeded, is down as well, and so is one that systemd
    /// started again since.
    fn is_down(&self, desired: &Plain, before: &Json) -> bool {
        let ran = before.get(Properties::STATE).and_then(Json::as_str) == Some(Activity::Running.word());
        let Some(stated) = read_each::<Properties<'_>>(desired).ok().filter(|stated| ran && stated.is_to_run()) else {
            return false;
        };
        let name = stated.name.whole();
        // Of services alone systemd says how they ended.
        let invocation = stated.lasting().and_then(|_| Some(self.started().get(&name)?.invocation.clone()));
        let has_ended = || invocation.is_some_and(|begun| self.systemd.has_lasted(&name, Some(&begun)).is_err());
        let runs = || self.systemd.status(&name).is_ok_and(|status| status.is_running());
        self.down().contains_key(&name) || !runs() || has_ended()
    }

    fn reads_at_start(&self, cx: &Context, desired: &Plain) -> Vec<SystemPath> {
        let Ok(stated) = read_each::<Properties<'_>>(desired) else { return Vec::new() };
        let at_start = stated.files_read_at_start(cx, &cx.system_root);
        at_start.into_iter().chain(stated.files_read_again(cx)).collect()
    }

    /// One that only did not reload still runs with what it had read before, and reads that again.
    fn bring_up(&self, cx: &Context, desired: &Plain) -> Result<(), Failure> {
        let stated: Properties<'_> = read_each(desired)?;
        let name = stated.name.whole();
        if !is_live(cx) {
            return Ok(());
        }
        let failed = self.down().get(&name).copied().unwrap_or(UnitJob::Restart);
        self.systemd.reload()?;
        self.systemd.forget_failures(&name)?;
        self.run(cx, &name, if failed == UnitJob::Reload { failed } else { UnitJob::Restart })?;
        let lasted = stated.lasting().map(|stable_for| self.systemd.keeps_running(&cx.cancel, &name, stable_for));
        // No review of this start is to come.
        self.started().remove(&name);
        lasted.unwrap_or(Ok(()))
    }
}
