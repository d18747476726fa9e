//! The database of rpm, which comes in several formats: the program reads it, once for all instances.

use stead_core::call::Failure;
use stead_host::provider::Context;
use stead_system::fs::SystemPath;

use super::manager::{Installed, Package, Presence, native};
use super::version::rpm_order;
use crate::accounts::path;
use crate::input::blocked;
use crate::program::SystemProgram;

const RPM: SystemProgram = SystemProgram { name: "rpm", package: "rpm" };

/// Where the database is, and the files of its formats.
const FOLDERS: [&str; 2] = ["usr/lib/sysimage/rpm", "var/lib/rpm"];
const FILES: [&str; 3] = ["rpmdb.sqlite", "Packages.db", "Packages"];

/// The log of that database, which changes before it does while another process has it open.
const LOG: &str = "rpmdb.sqlite-wal";

/// Returns whether a system has such a database.
pub(super) fn exists(cx: &Context) -> bool {
    folder(cx).is_some()
}

fn folder(cx: &Context) -> Option<&'static str> {
    FOLDERS
        .into_iter()
        .find(|folder| FILES.iter().any(|file| path(cx, &format!("{folder}/{file}")).followed().is_some()))
}

/// Refuses another root whose database is not where the rpm of this system, which dnf uses, would look for it.
pub(super) fn check_place(cx: &Context) -> Result<(), Failure> {
    let expected = RPM.run(cx, &["--eval", "%{_dbpath}"])?;
    let Some(folder) = folder(cx) else { return Ok(()) };
    let place = |path: &str| Some(cx.system_root.status(path)?.identity.inode());
    if place(&expected) == place(folder) {
        return Ok(());
    }
    let message =
        format!("rpm on this system uses the database in '{expected}', but the system root has it in '/{folder}'");
    Err(blocked("", format!("{message}. Set the macro %_dbpath")))
}

/// The files of which one has changed when the database has.
pub(super) fn files(cx: &Context) -> Vec<SystemPath> {
    let files =
        FOLDERS.iter().flat_map(|folder| FILES.iter().chain([&LOG]).map(move |file| format!("{folder}/{file}")));
    files.map(|file| path(cx, &file)).collect()
}

/// What is installed.
pub(super) fn installed(cx: &Context, is_held: impl Fn(&str) -> bool) -> Result<Installed, Failure> {
    let root = cx.system_root.for_program(&FOLDERS)?.map(|root| format!("--root={}", root.display()));
    let query = ["-qa", "--qf", "%{NAME}\\t%{EPOCHNUM}\\t%{VERSION}-%{RELEASE}\\t%{ARCH}\\n"];
    let place = folder(cx).map(|folder| format!("--dbpath=/{folder}"));
    let arguments: Vec<&str> = root.as_deref().into_iter().chain(place.as_deref()).chain(query).collect();
    let mut packages = packages(&RPM.run(cx, &arguments)?, is_held);
    // Of a package that is installed in several versions, such as a kernel, the newest counts.
    packages.sort_by(|left, right| key(left).cmp(&key(right)).then_with(|| rpm_order(&right.version, &left.version)));
    packages.dedup_by(|older, newest| key(older) == key(newest));
    let native = native("rpm", &packages);
    Ok(Installed::new(packages, native))
}

fn key(package: &Package) -> (&str, &str) {
    (&package.name, &package.architecture)
}

/// Packages from lines of name, epoch, version and architecture.
pub(super) fn packages(printed: &str, is_held: impl Fn(&str) -> bool) -> Vec<Package> {
    let package = |line: &str| {
        let mut fields = line.split('\t');
        let (name, epoch, version, architecture) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let version = if epoch == "0" { version.to_owned() } else { format!("{epoch}:{version}") };
        // Keys are in the database, too.
        (architecture != "(none)").then(|| Package {
            name: name.into(),
            architecture: architecture.into(),
            version: version.into(),
            presence: Presence::Installed,
            hold: is_held(name),
            automatic: None,
        })
    };
    printed.lines().filter_map(package).collect()
}
