//! Packages of Fedora, Red Hat and their relatives: rpm's database, and dnf to change it.

use std::sync::Arc;

use stead_core::call::{Failure, FailureKind};
use stead_host::provider::Context;
use stead_system::fs::{Place, SystemPath};

use super::Properties;
use super::locks;
use super::manager::{
    Available, Install, Installed, Lists, PackageManager, Plan, Remove, Settings, Transaction, Unsupported, Update,
    names_in,
};
use super::rpm;
use super::version::{Order, rpm_order};
use crate::accounts::path;
use crate::edit::{Edit, FileLocks, Files, Missing, Outcome};
use crate::known::Known;
use crate::pending;
use crate::program::{self, Ended, Invocation, SearchPath, SystemProgram};

/// dnf and rpm.
pub(super) struct Dnf {
    known: Known<Installed>,
    files: Files<String>,
}

/// The name under which version 4 is installed beside others, whose answers are written otherwise.
const DNF: SystemProgram = SystemProgram { name: "dnf-3", package: "dnf, version 4" };

const CACHE: &str = "var/cache/dnf";

/// What is in the lists that were read is what counts, however old they are.
const AS_LISTED: &str = "--setopt=*.metadata_expire=-1";

/// The paths that dnf and rpm open below the root of another system, built from their own settings.
const OPENED: [&str; 13] = [
    "etc/dnf",
    "etc/dnf/vars",
    "etc/pki/rpm-gpg",
    "etc/rpm",
    "etc/yum",
    "etc/yum.repos.d",
    "usr/lib/sysimage/rpm",
    "usr/share/dnf",
    CACHE,
    "var/lib/dnf",
    "var/lib/dnf/history",
    "var/lib/rpm",
    "var/log",
];

/// Locks hide the versions that they exclude.
const UNLOCKED: &str = "--disableplugin=versionlock";

impl Default for Dnf {
    fn default() -> Self {
        Self { known: Known::default(), files: Files::new(&FileLocks::default()) }
    }
}

impl PackageManager for Dnf {
    fn order(&self) -> Order {
        rpm_order
    }

    /// Epoch and release may be left out.
    fn names_version(&self, stated: &str, known: &str) -> bool {
        let bare = known.split_once(':').map_or(known, |(_, bare)| bare);
        let without_release = |version: &str| version.rsplit_once('-').is_some_and(|(version, _)| version == stated);
        [known, bare].iter().any(|version| *version == stated || without_release(version))
    }

    fn unsupported(&self) -> &'static [Unsupported] {
        &[
            (Properties::AUTOMATIC, "dnf keeps it in a database of its own; use `dnf mark`"),
            (Properties::PURGE, "rpm keeps changed configuration files as .rpmsave"),
            (Properties::RELEASE, "enable the repository that has it"),
        ]
    }

    fn installed(&self, cx: &Context) -> Result<Arc<Installed>, Failure> {
        let files = rpm::files(cx).into_iter().chain([path(cx, &locks::list(cx)?)]).collect();
        self.known.of(files, || {
            let locked = locks::locked(cx)?;
            rpm::installed(cx, |name| locked.iter().any(|lock| lock.is_of(name)))
        })
    }

    fn available(&self, cx: &Context, names: &[&str], _release: Option<&str>) -> Result<Vec<Available>, Failure> {
        let format = "--queryformat=%{name}\\t%{epoch}\\t%{version}-%{release}\\t%{arch}";
        let query = ["-C", "-q", UNLOCKED, "repoquery", "--available", "--showduplicates", format, "--"];
        let arguments = query.map(str::to_owned).into_iter().chain(names.iter().map(|name| spec(name)));
        let installed = self.installed(cx)?;
        let found = rpm::packages(&succeeded(run(cx, arguments)?)?, |_| false);
        let of = |name: &&str| {
            let (bare, architecture) = name.split_once(':').map_or((*name, None), |(name, of)| (name, Some(of)));
            let is_own = |package: &&super::Package| {
                let is_right = architecture.map_or_else(
                    || installed.is_native(&package.architecture),
                    |architecture| *package.architecture == *architecture,
                );
                *package.name == *bare && is_right
            };
            let mut versions: Vec<String> = found.iter().filter(is_own).map(|each| each.version.to_string()).collect();
            versions.sort_by(|left, right| rpm_order(right, left));
            let candidate = Some(versions.first()?.clone());
            Some(Available { name: (*name).to_owned(), candidate, versions })
        };
        Ok(names.iter().filter_map(of).collect())
    }

    fn lists(&self, cx: &Context) -> Lists {
        let root = &cx.system_root;
        let folders = names_in(root, CACHE).into_iter().map(|repository| format!("{CACHE}/{repository}/repodata"));
        let in_folder = |folder: String| {
            names_in(root, &folder).into_iter().map(move |name| format!("{folder}/{name}")).collect::<Vec<_>>()
        };
        Lists::of(root, folders.flat_map(in_folder), &["etc/yum.repos.d", "etc/dnf/dnf.conf"])
    }

    /// A repository with `skip_if_unavailable` that cannot be reached is a warning to dnf, which goes on without its lists.
    fn update_lists(&self, cx: &Context) -> Result<Update, Failure> {
        let ended = run(cx, ["-q", "makecache", "--refresh"].map(str::to_owned))?;
        let missing = missing_list(ended.errors());
        succeeded(ended)?;
        Ok(missing.map_or(Update::Complete, Update::Incomplete))
    }

    fn plan(&self, cx: &Context, transaction: &Transaction) -> Result<Plan, Failure> {
        if transaction.hold.iter().any(|(_, on)| *on) && !locks::are_obeyed(cx) {
            let message =
                "dnf cannot hold packages without its plugin versionlock. Install python3-dnf-plugin-versionlock first";
            return Err(Failure::new(FailureKind::Start, message));
        }
        let installed = self.installed(cx)?;
        locks::edited(&locks::obeyed(cx)?, &transaction.hold, &installed)?;
        if !transaction.moves_packages() {
            return Ok(Plan::default());
        }
        let own = ["-C", "--assumeno"].map(str::to_owned);
        let ended = run(cx, own.into_iter().chain(arguments(transaction, &installed)))?;
        // It ends like one that failed: nobody agreed to it.
        let is_planned = ended.output.lines().any(|line| line == "Transaction Summary");
        let printed = if is_planned { ended.output } else { succeeded(ended)? };
        Ok(planned(&printed, &installed))
    }

    fn carry_out(&self, cx: &Context, transaction: &Transaction) -> Result<(), Failure> {
        if transaction.moves_packages() {
            let own = ["-y", AS_LISTED].map(str::to_owned);
            let installed = self.installed(cx)?;
            succeeded(run(cx, own.into_iter().chain(arguments(transaction, &installed)))?)?;
        }
        if transaction.hold.is_empty() || !locks::are_obeyed(cx) {
            return Ok(());
        }
        let (list, installed) = (path(cx, &locks::list(cx)?), self.installed(cx)?);
        let place = Place::find(&list, &cx.writes)?.ok_or_else(|| pending::no_directory(&list))?;
        self.files.edit(cx, &place, Missing::create_if(true), |text| {
            let former = text.map_or("", |text| text.content.as_str());
            let edited = locks::edited(former, &transaction.hold, &installed)?;
            let outcome = if edited == former { Outcome::Keep } else { Outcome::Write(edited.into_bytes()) };
            Ok(Edit { outcome, result: () })
        })
    }
}

/// Why a list could not be obtained, by the warnings of an update that succeeded.
fn missing_list<'l>(mut lines: impl Iterator<Item = &'l str>) -> Option<String> {
    let is_about_lists = |line: &&str| {
        line.contains("Failed to download metadata for repo") || line.starts_with("Ignoring repositories:")
    };
    lines.find(is_about_lists).map(|line| line.trim_start_matches("Error: ").to_owned())
}

/// What dnf is called with for a transaction.
fn arguments(transaction: &Transaction, installed: &Installed) -> Vec<String> {
    // What nobody requires any more stays.
    let mut arguments = vec!["--setopt=clean_requirements_on_remove=False".to_owned()];
    arguments.extend(transaction.changes_held.then(|| UNLOCKED.to_owned()));
    let recommends = |wanted| format!("--setopt=install_weak_deps={}", if wanted { "True" } else { "False" });
    arguments.extend(transaction.recommends.map(recommends));
    let action = if transaction.install.is_empty() { "remove" } else { "install" };
    arguments.extend([action.to_owned(), "--".to_owned()]);
    arguments.extend(transaction.install.iter().map(|(name, version)| match version {
        Some(version) => {
            let (name, architecture) =
                name.split_once(':').map_or((name.as_str(), None), |(name, of)| (name, Some(of)));
            let architecture = architecture.map(|name| format!(".{name}")).unwrap_or_default();
            format!("{name}-{version}{architecture}")
        }
        None => spec(name),
    }));
    // By its name alone, a package of another architecture would go as well.
    arguments.extend(transaction.remove.iter().map(|name| match installed.find(name) {
        Some(package) => format!("{}.{}", package.name, package.architecture),
        None => spec(name),
    }));
    arguments
}

/// A name, which may have an architecture behind a colon, as dnf takes it.
fn spec(name: &str) -> String {
    name.replacen(':', ".", 1)
}

/// Runs dnf to its end.
///
/// Below another root its plugins do not run and its settings are not read: both are of the system that they are in, and
/// would act on this one. What is not signed is installed there only from a repository that says so itself.
fn run(cx: &Context, arguments: impl IntoIterator<Item = String>) -> Result<Ended, Failure> {
    let (mut own, mut settings) = (Vec::new(), None);
    if let Some(root) = cx.system_root.for_program(&OPENED)? {
        rpm::check_place(cx)?;
        let handed = settings.insert(Settings::of("[main]\ngpgcheck=True\n")?);
        own.push(format!("--installroot={}", root.display()));
        own.extend([format!("--config={}", handed.path()), "--noplugins".to_owned()]);
    }
    let invocation = Invocation {
        program: DNF.find().map_err(|presumed| presumed.failure)?.to_string_lossy().into_owned(),
        arguments: own.into_iter().chain(arguments).collect(),
        environment: vec![("LC_ALL".to_owned(), "C.UTF-8".to_owned())],
        directory: SystemPath::here("/"),
        timeout: None,
        search: SearchPath::System,
    };
    program::run(cx, &invocation, "dnf")
}

fn succeeded(ended: Ended) -> Result<String, Failure> {
    if ended.code == 0 { Ok(ended.output) } else { Err(ended.failure("dnf")) }
}

/// Reads the table of a transaction.
fn planned(printed: &str, installed: &Installed) -> Plan {
    let (mut plan, mut section, mut row) = (Plan::default(), "", Vec::new());
    for line in printed.lines() {
        if !line.starts_with(' ') {
            (section, row) = (line, Vec::new());
            continue;
        }
        let mut words = line.split_whitespace();
        if line.starts_with("     replacing ") {
            let replaced = words.nth(1).and_then(|name| name.rsplit_once('.')).zip(words.next());
            plan.removes.extend(replaced.map(|((name, architecture), version)| Remove {
                name: installed.name_of(name, architecture),
                version: version.to_owned(),
            }));
            continue;
        }
        // A row begins behind one space. After what is too wide for its column it is continued on the next line.
        if !line.starts_with("  ") {
            row.clear();
        }
        row.extend(words);
        let [name, architecture, version, _repository, ..] = row.as_slice() else { continue };
        let (name, version) = (installed.name_of(name, architecture), (*version).to_owned());
        if section.starts_with("Removing") {
            plan.removes.push(Remove { name, version });
        } else if ["Installing", "Upgrading", "Downgrading", "Reinstalling"]
            .iter()
            .any(|word| section.starts_with(word))
        {
            // A kernel is installed beside those that are there.
            let replaced = (!section.starts_with("Installing")).then(|| installed.find(&name)).flatten();
            let former = replaced.map(|package| package.version.to_string());
            plan.installs.push(Install { name, former, version });
        }
        row = Vec::new();
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removal_is_of_one_architecture() {
        let known = rpm::packages("rpm\t0\t1-1\tx86_64\nlib\t0\t1-1\tx86_64\nlib\t0\t1-1\ti686\n", |_| false);
        let installed = Installed::new(known, "x86_64".to_owned());
        for (stated, spec) in [("lib", "lib.x86_64"), ("lib:i686", "lib.i686")] {
            let transaction = Transaction { remove: vec![stated.to_owned()], ..Transaction::default() };
            let arguments = arguments(&transaction, &installed);
            assert!(arguments.ends_with(&["remove", "--", spec].map(str::to_owned)), "{arguments:?}");
        }
    }

    #[test]
    fn a_transaction_is_read() {
        let known = rpm::packages("web\t0\t1.0-1\tx86_64\nlib\t0\t1.0-1\tx86_64\nold\t1\t3-1\tnoarch\n", |_| false);
        let installed = Installed::new(known, "x86_64".to_owned());
        let printed = "Dependencies resolved.\n====\n Package  Arch  Version  Repo  Size\n====\nUpgrading:\n web  x86_64  1.1-1  local  5.9 k\n\
                       \x20    replacing  old.noarch 1:3-1\nInstalling dependencies:\n a-long-name\n    i686  2:4-1  local  12  \n \
                       new  noarch  1-1  rhel-9-for-x86_64-appstream-rpms\n          4.7 M\n lib  x86_64  2.0-1  local  4  \nRemoving dependent packages:\n \
                       lib  x86_64  1.0-1  @local  4  \n\nTransaction Summary\n====\nInstall  1 Package\n\nTotal size: 6.7 k\n";
        let plan = planned(printed, &installed);
        let install = |name: &str, former: Option<&str>, version: &str| Install {
            name: name.to_owned(),
            former: former.map(str::to_owned),
            version: version.to_owned(),
        };
        let remove = |name: &str, version: &str| Remove { name: name.to_owned(), version: version.to_owned() };
        assert_eq!(
            plan.installs,
            [
                install("web", Some("1.0-1"), "1.1-1"),
                install("a-long-name:i686", None, "2:4-1"),
                install("new", None, "1-1"),
                install("lib", None, "2.0-1")
            ]
        );
        assert_eq!(plan.removes, [remove("old", "1:3-1"), remove("lib", "1.0-1")]);
    }
}
