//! Debian's packages: dpkg's database, and apt-get to change it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use stead_core::call::Failure;
use stead_host::provider::Context;
use stead_system::fs::{FileKind, SystemPath};

use super::dpkg;
use super::manager::{
    Available, Install, Installed, Lists, PackageManager, Plan, Remove, Settings, Transaction, Update, names_in,
};
use super::version::{Order, debian_order};
use crate::input::blocked;
use crate::known::Known;
use crate::program::{self, Ended, Invocation, SearchPath};

/// apt and dpkg.
#[derive(Default)]
pub(super) struct Apt {
    known: Known<Installed>,
}

/// Nothing is asked, and configuration files that were changed stay.
const UNATTENDED: [&str; 9] = [
    "-y",
    "-q",
    "-o",
    "Dpkg::Use-Pty=0",
    "-o",
    "Dpkg::Options::=--force-confdef",
    "-o",
    "Dpkg::Options::=--force-confold",
    "--no-auto-remove",
];

/// Without the caches and the log of a plan, which apt writes even when it is only asked.
const READ_ONLY: [&str; 6] =
    ["-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache=", "-o", "Dir::Log::Planner=/dev/null"];

impl PackageManager for Apt {
    fn order(&self) -> Order {
        debian_order
    }

    fn installed(&self, cx: &Context) -> Result<Arc<Installed>, Failure> {
        self.known.of(dpkg::files(cx), || dpkg::installed(cx))
    }

    fn available(&self, cx: &Context, names: &[&str], release: Option<&str>) -> Result<Vec<Available>, Failure> {
        let target = release.map(|release| format!("APT::Default-Release={release}"));
        let target = target.iter().flat_map(|option| ["-o", option.as_str()]);
        let arguments: Vec<&str> = READ_ONLY.into_iter().chain(target).chain(["policy", "--"]).collect();
        let printed = run(cx, "apt-cache", &[&arguments, names].concat())?;
        Ok(policies(&printed))
    }

    fn names(&self, cx: &Context, like: &str) -> Vec<String> {
        let first: String = like.chars().take(1).collect();
        let printed = run(cx, "apt-cache", &[&READ_ONLY[..], &["pkgnames", "--", &first]].concat()).unwrap_or_default();
        printed.lines().map(str::to_owned).collect()
    }

    fn providers(&self, cx: &Context, name: &str) -> Vec<String> {
        let printed = run(cx, "apt-cache", &[&READ_ONLY[..], &["showpkg", "--", name]].concat()).unwrap_or_default();
        providers(&printed)
    }

    fn lists(&self, cx: &Context) -> Lists {
        let lists = ["var/lib/apt/lists", "var/lib/apt/lists/partial", "var/lib/apt/periodic/update-success-stamp"];
        let lists = lists.into_iter().filter(|_| has_lists(cx)).map(str::to_owned);
        let repositories = ["etc/apt/sources.list", "etc/apt/sources.list.d", "etc/apt/keyrings"];
        Lists::of(&cx.system_root, lists, &repositories)
    }

    /// A repository that cannot be reached is a warning to apt, which keeps the lists that it had.
    fn update_lists(&self, cx: &Context) -> Result<Update, Failure> {
        let ended = run_to_end(cx, "apt-get", &["-q", "update"])?;
        Ok(missing_list(ended.errors()).map_or(Update::Complete, Update::Incomplete))
    }

    fn plan(&self, cx: &Context, transaction: &Transaction) -> Result<Plan, Failure> {
        if !transaction.moves_packages() {
            return Ok(Plan::default());
        }
        let options = READ_ONLY.iter().map(|&option| option.to_owned()).chain(["-s".to_owned()]);
        let arguments: Vec<String> = options.chain(arguments(transaction)).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Ok(simulated(&run(cx, "apt-get", &arguments)?))
    }

    fn carry_out(&self, cx: &Context, transaction: &Transaction) -> Result<(), Failure> {
        if dpkg::is_interrupted(cx) {
            let own = other_root(cx)?.map(dpkg_options).unwrap_or_default();
            let own: Vec<&str> = own.iter().map(String::as_str).collect();
            run(cx, "dpkg", &[&own, &["--force-confdef", "--force-confold", "--configure", "-a"][..]].concat())?;
        }
        if transaction.moves_packages() {
            let patience = cx.deadline.as_secs().saturating_sub(5).max(1);
            let lock = ["-o".to_owned(), format!("DPkg::Lock::Timeout={patience}")];
            let arguments: Vec<String> = lock.into_iter().chain(arguments(transaction)).collect();
            run(cx, "apt-get", &arguments.iter().map(String::as_str).collect::<Vec<_>>())?;
        }
        let marks = [("hold", true, &transaction.hold), ("unhold", false, &transaction.hold)];
        let others = [("auto", true, &transaction.automatic), ("manual", false, &transaction.automatic)];
        for (action, wanted, names) in marks.into_iter().chain(others) {
            let names: Vec<&str> =
                names.iter().filter(|(_, on)| *on == wanted).map(|(name, _)| name.as_str()).collect();
            if !names.is_empty() {
                run(cx, "apt-mark", &[&[action, "--"], &names[..]].concat())?;
            }
        }
        Ok(())
    }
}

/// What apt-get is called with for a transaction.
fn arguments(transaction: &Transaction) -> Vec<String> {
    let mut arguments: Vec<String> = UNATTENDED.map(str::to_owned).to_vec();
    let action = match (transaction.install.is_empty(), transaction.purge) {
        (false, _) => "install",
        (true, true) => "purge",
        (true, false) => "remove",
    };
    let held = transaction.changes_held.then_some("--allow-change-held-packages");
    let downgrade = transaction.allow_downgrade.then_some("--allow-downgrades");
    let recommends =
        transaction.recommends.map(|wanted| if wanted { "--install-recommends" } else { "--no-install-recommends" });
    arguments.extend([held, downgrade, recommends].into_iter().flatten().map(str::to_owned));
    arguments.extend(transaction.release.iter().flat_map(|release| ["-t".to_owned(), release.clone()]));
    arguments.extend([action.to_owned(), "--".to_owned()]);
    arguments.extend(transaction.install.iter().map(|(name, version)| match version {
        Some(version) => format!("{name}={version}"),
        None => name.clone(),
    }));
    arguments.extend(transaction.remove.iter().cloned());
    arguments
}

/// Why a list could not be obtained, by the warnings of an update that succeeded.
fn missing_list<'l>(mut lines: impl Iterator<Item = &'l str>) -> Option<String> {
    let is_about_lists =
        |line: &&str| line.contains("Failed to fetch ") || line.contains("index files failed to download");
    lines.find(is_about_lists).map(|line| line.trim_start_matches("W: ").to_owned())
}

/// Runs a program of apt to its end, and returns what it printed.
fn run(cx: &Context, name: &str, arguments: &[&str]) -> Result<String, Failure> {
    run_to_end(cx, name, arguments).map(|ended| ended.output)
}

fn run_to_end(cx: &Context, name: &str, arguments: &[&str]) -> Result<Ended, Failure> {
    let settings = other_root(cx)?.map(settings).transpose()?;
    let mut environment =
        vec![("DEBIAN_FRONTEND".to_owned(), "noninteractive".to_owned()), ("LC_ALL".to_owned(), "C.UTF-8".to_owned())];
    environment.extend(settings.as_ref().map(|settings| ("APT_CONFIG".to_owned(), settings.path())));
    let invocation = Invocation {
        program: name.to_owned(),
        arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
        environment,
        directory: SystemPath::here("/"),
        timeout: None,
        search: SearchPath::System,
    };
    let ended = program::run(cx, &invocation, name)?;
    if ended.code == 0 { Ok(ended) } else { Err(ended.failure(name)) }
}

/// Settings of apt for another root than that of this system.
///
/// Snippets of settings are not read: their hooks are commands for the system that they are in, and would be run in this one.
fn settings(root: &Path) -> Result<Settings, Failure> {
    let quoted = root.to_str().filter(|path| !path.contains(['"', '\\', '\n']));
    let quoted = quoted.ok_or_else(|| {
        blocked("", "apt cannot use a system root whose path contains quotes, backslashes or newlines")
    })?;
    let mut text = format!("Dir \"{quoted}\";\nDir::State::status \"{quoted}/{}\";\n", dpkg::STATUS);
    text += "Dir::Etc::main \"/dev/null\";\nDir::Etc::parts \"/dev/null\";\n";
    for option in dpkg_options(root) {
        let _ = writeln!(text, "DPkg::Options {{ \"{option}\"; }};");
    }
    Settings::of(&text)
}

/// The paths that apt and dpkg open below the root of another system, built from their own settings.
const OPENED: [&str; 20] = [
    "etc/apt",
    "etc/apt/apt.conf.d",
    "etc/apt/auth.conf.d",
    "etc/apt/keyrings",
    "etc/apt/preferences.d",
    "etc/apt/sources.list.d",
    "etc/apt/trusted.gpg.d",
    "usr/share/keyrings",
    "var/cache/apt",
    "var/cache/apt/archives",
    "var/cache/apt/archives/partial",
    "var/lib/apt",
    "var/lib/apt/lists/partial",
    "var/lib/apt/periodic",
    "var/lib/dpkg",
    "var/lib/dpkg/info",
    "var/lib/dpkg/triggers",
    "var/lib/dpkg/updates",
    "var/log",
    "var/log/apt",
];

/// The root of the system that is managed, if it is not the running one.
fn other_root(cx: &Context) -> Result<Option<&Path>, Failure> {
    let root = cx.system_root.for_program(&OPENED)?;
    if root.is_some() {
        check_lists(cx)?;
    }
    Ok(root)
}

/// Where apt keeps the lists of repositories.
const LISTS: &str = "var/lib/apt/lists";

/// Fails where a list is a link out of the root of another system that apt has not made itself.
fn check_lists(cx: &Context) -> Result<(), Failure> {
    for (name, _) in cx.system_root.entries(LISTS)?.into_iter().filter(|(_, kind)| *kind == FileKind::Symlink) {
        let list = cx.system_root.at(Path::new(LISTS).join(&name));
        if !list.link_target().is_some_and(|target| is_list_of(&name, &target)) {
            list.check_for_program()?;
        }
    }
    Ok(())
}

/// Returns whether apt gives this name to the list that lies at a path: a repository on this machine (`file:`) is not
/// copied, and the name of a list is its address with `_` in place of `/`.
fn is_list_of(name: &OsStr, target: &Path) -> bool {
    target.is_absolute() && target.as_os_str().to_string_lossy().replace('/', "_") == name.to_string_lossy()
}

fn dpkg_options(root: &Path) -> Vec<String> {
    let root = root.display();
    vec![format!("--root={root}"), format!("--log={root}/var/log/dpkg.log")]
}

/// Returns whether the lists of any repository are there.
fn has_lists(cx: &Context) -> bool {
    names_in(&cx.system_root, LISTS).iter().any(|name| !["lock", "partial", "auxfiles"].contains(&name.as_str()))
}

/// Reads of what `apt-cache showpkg` prints which packages provide one.
fn providers(printed: &str) -> Vec<String> {
    let lines = printed.lines().skip_while(|line| !line.starts_with("Reverse Provides:")).skip(1);
    let names: BTreeSet<&str> =
        lines.filter_map(|line| line.split(' ').next()).filter(|name| !name.is_empty()).collect();
    names.into_iter().map(str::to_owned).collect()
}

/// Reads what `apt-cache policy` prints.
fn policies(printed: &str) -> Vec<Available> {
    let mut all: Vec<Available> = Vec::new();
    for line in printed.lines() {
        if let Some(name) = line.strip_suffix(':').filter(|name| !name.starts_with(' ')) {
            all.push(Available { name: name.to_owned(), ..Available::default() });
        }
        let Some(last) = all.last_mut() else { continue };
        if let Some(candidate) = line.strip_prefix("  Candidate: ").filter(|version| *version != "(none)") {
            last.candidate = Some(candidate.to_owned());
        }
        // "     2.0 500", or " *** 2.0 500" for what is installed; sources are deeper.
        let version = line.strip_prefix("     ").or_else(|| line.strip_prefix(" *** "));
        if let Some((version, _priority)) =
            version.filter(|text| !text.starts_with(' ')).and_then(|text| text.split_once(' '))
        {
            last.versions.push(version.to_owned());
        }
    }
    all
}

/// Reads what `apt-get --simulate` prints.
fn simulated(printed: &str) -> Plan {
    let mut plan = Plan::default();
    for line in printed.lines() {
        let mut words = line.split(' ');
        let (Some(action), Some(name)) = (words.next(), words.next()) else { continue };
        let former = || Some(line.split_once(" [")?.1.split_once(']')?.0.to_owned());
        match action {
            "Inst" => {
                let Some((before, behind)) = line.split_once(" (") else { continue };
                let version = behind.split([' ', ')']).next().unwrap_or_default().to_owned();
                let former = if before.contains(" [") { former() } else { None };
                plan.installs.push(Install { name: name.to_owned(), former, version });
            }
            "Remv" | "Purg" => {
                plan.removes.push(Remove { name: name.to_owned(), version: former().unwrap_or_default() });
            }
            _ => {}
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulation_is_read() {
        let plan = simulated(
            "Reading package lists...\nRemv bb [1.0] [aa:amd64 ]\nPurg old [3]\nInst libc6:i386 [2.36] (2.37-1 Debian:12/stable [i386]) []\n\
             Inst aa (2.0 localhost [all])\nConf aa (2.0 localhost [all])\n",
        );
        let install = |name: &str, former: Option<&str>, version: &str| Install {
            name: name.to_owned(),
            former: former.map(str::to_owned),
            version: version.to_owned(),
        };
        let remove = |name: &str, version: &str| Remove { name: name.to_owned(), version: version.to_owned() };
        assert_eq!(plan.installs, [install("libc6:i386", Some("2.36"), "2.37-1"), install("aa", None, "2.0")]);
        assert_eq!(plan.removes, [remove("bb", "1.0"), remove("old", "3")]);
    }

    #[test]
    fn policies_are_read() {
        let printed = "aa:\n  Installed: 1.0\n  Candidate: 2.0\n  Version table:\n     2.0 500\n        500 file:/r ./ Packages\n *** 1.0 100\n        \
                       100 /var/lib/dpkg/status\ncc:\n  Installed: (none)\n  Candidate: (none)\n  Version table:\n";
        let found: Vec<_> =
            policies(printed).into_iter().map(|each| (each.name, each.candidate, each.versions)).collect();
        let expected = [
            ("aa".to_owned(), Some("2.0".to_owned()), vec!["2.0".to_owned(), "1.0".to_owned()]),
            ("cc".to_owned(), None, Vec::new()),
        ];
        assert_eq!(found, expected);
    }
}
