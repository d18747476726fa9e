//! Unit files of the administrator, for other resources as well.

use std::collections::BTreeSet;
use std::path::PathBuf;

use stead_core::call::{Failure, Presumed};
use stead_core::claims::Provision;
use stead_host::provider::Context;
use stead_system::services::Systemd;

use super::unit::{self, ADMINISTRATOR, Unit};
use crate::input::blocked;

/// The unit file of that name in the administrator's directory.
pub(crate) fn own_unit_file(cx: &Context, name: &str) -> Option<String> {
    let fragment = Unit::find(&cx.system_root, name).fragment?;
    fragment.is_own().then_some(fragment.text)
}

/// Where the administrator's unit file of that name is.
pub(crate) fn own_unit_path(name: &str) -> String {
    format!("/{ADMINISTRATOR}/{name}")
}

/// Where the unit file of that name is, relative to the root, if it is not the administrator's.
pub(crate) fn foreign_unit_file(cx: &Context, name: &str) -> Option<String> {
    let fragment = Unit::find(&cx.system_root, name).fragment?;
    (!fragment.is_own()).then_some(fragment.path)
}

/// The removals of the administrator's drop-ins of a unit, which can say otherwise than its file until then.
pub(crate) fn drop_in_removals(name: &str) -> Provision {
    Provision::Removals(PathBuf::from(format!("/{ADMINISTRATOR}/{name}.d")).into())
}

/// That no unit has this name yet.
pub(crate) fn without_unit(cx: &Context, name: &str, property: &str) -> Option<Presumed> {
    let message = || {
        format!(
            "there is no unit '{name}'. Add a Stead/Service with its 'unit', or a package that has it, to the document"
        )
    };
    let missing = || Presumed::of(blocked(property, message()), vec![cx.resolve(own_unit_path(name)).into()]);
    (!Unit::find(&cx.system_root, name).exists()).then(missing)
}

/// Returns whether a unit with this unit file is enabled, or can be.
pub(crate) fn can_be_enabled(cx: &Context, name: &str, text: &str) -> bool {
    !unit::Install::of(text, name).links.is_empty() || !Unit::find(&cx.system_root, name).links.is_empty()
}

/// The names of the timers whose unit files are in the administrator's directory.
pub(crate) fn own_timers(cx: &Context) -> BTreeSet<String> {
    let mut names = unit::configured(&cx.system_root, ".timer");
    names.retain(|name| own_unit_file(cx, name).is_some());
    names
}

/// Lets systemd, where it runs, read unit files and what it makes them of again.
pub(crate) fn read_units_again() -> Result<(), Failure> {
    if Systemd::is_running() { Systemd::default().reload() } else { Ok(()) }
}
