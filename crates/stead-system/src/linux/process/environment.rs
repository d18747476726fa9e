//! The environment of this process that a program is given, and how programs are found.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::executable::TrustedEntries;
use super::found::FoundPrograms;
use super::os::Account;
use super::{Executable, RefusedProgram};
use crate::linux::fs::{OpenError, Trust, User, judge};

/// A variable that programs are given although nobody asks for it.
#[derive(Clone, Copy, Debug)]
pub struct InheritedVariable {
    /// Its name; a `*` at the end stands for anything.
    pub name: &'static str,
    /// Why.
    pub reason: &'static str,
}

const fn because(name: &'static str, reason: &'static str) -> InheritedVariable {
    InheritedVariable { name, reason }
}

/// The variables that programs are given. Everything else stays here: environments are where tokens are kept, and a
/// resource has no business with those of its caller. More are named by a setting, a document or the command line.
pub const INHERITED: &[InheritedVariable] = &[
    because("PATH", "programs call programs"),
    because("HOME", "package managers and shells keep their settings there"),
    because("USER", "asked for by shells and package managers"),
    because("LOGNAME", "asked for by shells and package managers"),
    because("SHELL", "started by tools that run commands"),
    because("LANG", "the language of messages"),
    because("LANGUAGE", "the language of messages"),
    because("LC_*", "the language of messages, and how text is read"),
    because("TZ", "the local time"),
    because("TMPDIR", "where temporary files may be large"),
    because("XDG_*", "where the settings and the runtime directory of a user are"),
    because("DBUS_SESSION_BUS_ADDRESS", "the services of a user are managed over it"),
    because("SSL_CERT_FILE", "which authorities are trusted"),
    because("SSL_CERT_DIR", "which authorities are trusted"),
    because("http_proxy", "downloads work behind a proxy"),
    because("HTTP_PROXY", "downloads work behind a proxy"),
    because("https_proxy", "downloads work behind a proxy"),
    because("HTTPS_PROXY", "downloads work behind a proxy"),
    because("all_proxy", "downloads work behind a proxy"),
    because("ALL_PROXY", "downloads work behind a proxy"),
    because("no_proxy", "which hosts are reached without it"),
    because("NO_PROXY", "which hosts are reached without it"),
    because("NO_COLOR", "asks for plain messages"),
    because("PSModulePath", "where PowerShell finds the modules that its adapters carry out"),
    because("DOTNET_ROOT", "where PowerShell finds its runtime"),
    because("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "whether PowerShell starts on machines without data of cultures"),
    because("DSC_*", "what the protocol hands to resources: DSC_CONFIG_ROOT, DSC_TRACE_LEVEL and such"),
];

/// The variables that a login sets.
const LOGIN: [&str; 4] = ["HOME", "USER", "LOGNAME", "SHELL"];

/// Those that name directories and files from which programs read settings, or which they run or load.
const NAME_FILES: [&str; 7] = ["HOME", "SHELL", "XDG_*", "DOTNET_*", "CORECLR_*", "COMPlus_*", "LD_*"];

/// Those of which every value is a path.
const PATHS: [&str; 6] = ["HOME", "SHELL", "TMPDIR", "DOTNET_ROOT*", "DOTNET_SHARED_STORE", "DOTNET_ADDITIONAL_DEPS"];

/// The endings of those in [`NAME_FILES`] of which every value is a path: `XDG_SESSION_TYPE` is none.
const PATHS_END: [&str; 4] = ["_HOME", "_DIR", "_DIRS", "_PATH"];

/// The environment that programs are started with.
///
/// Guarantees: it holds nothing but what [`INHERITED`], the settings, the document and the caller name. Where only root is trusted,
/// programs get a `PATH` without directories in which others could place programs: shells and `/usr/bin/env` look there.
#[derive(Clone)]
pub struct Environment {
    variables: Vec<(OsString, OsString)>,
    trust: Trust,
    trusted: TrustedEntries,
    found: FoundPrograms,
}

impl Default for Environment {
    fn default() -> Self {
        Self::of([], &[])
    }
}

impl Environment {
    /// Returns the environment of this process, reduced to the variables that [`INHERITED`] and `more` name.
    ///
    /// `DSC_RESTRICTED_PATH` takes the place of `PATH`, as the protocol has it. Where a user is not logged in, as in a
    /// service of the system, the variables that a login would set are those of the account.
    pub fn of_this_process(more: &[&str]) -> Self {
        let mut kept = Self::of(std::env::vars_os(), more).trusting(User::current().trust()).without_others();
        if LOGIN.iter().any(|name| kept.get(name).is_none())
            && let Some(account) = Account::of_this_process()
        {
            kept.log_in(&account);
        }
        kept
    }

    /// Sets what a login sets and is missing.
    fn log_in(&mut self, account: &Account) {
        for (name, value) in account.variables() {
            if self.get(name).is_none() && !value.is_empty() {
                self.set(name, value);
            }
        }
    }

    /// Without what would make root's programs read settings, or run programs, that others can change.
    fn without_others(mut self) -> Self {
        let trust = self.trust;
        self.variables.retain(|(name, value)| !is_of_others(name, value, trust));
        self
    }

    /// Returns this environment with another trust: whose programs are run.
    #[must_use]
    pub fn trusting(self, trust: Trust) -> Self {
        Self { trust, found: FoundPrograms::default(), ..self }
    }

    /// Whose programs are run.
    pub fn trust(&self) -> Trust {
        self.trust
    }

    /// Returns the variables that [`INHERITED`] and `more` name, for a user who trusts everybody.
    pub fn of(variables: impl IntoIterator<Item = (OsString, OsString)>, more: &[&str]) -> Self {
        let allowed = |name: &OsStr| {
            let mut patterns = INHERITED.iter().map(|each| each.name).chain(more.iter().copied());
            name.to_str().is_some_and(|name| patterns.any(|pattern| fits(name, pattern)))
        };
        let variables = variables.into_iter().filter(|(name, _)| allowed(name)).collect();
        let mut kept = Self {
            variables,
            trust: Trust::Everyone,
            trusted: TrustedEntries::default(),
            found: FoundPrograms::default(),
        };
        if let Some(restricted) = kept.get("DSC_RESTRICTED_PATH").map(OsStr::to_owned) {
            kept.set("PATH", restricted);
        }
        kept
    }

    /// Adds what of the environment of this process has one of these names; a `*` at the end stands for anything. What would
    /// make root's programs read settings of others is left out, whoever names it.
    pub fn add_of_this_process(&mut self, names: &[String]) {
        if names.is_empty() {
            return;
        }
        let is_named = |name: &OsStr| name.to_str().is_some_and(|name| names.iter().any(|each| fits(name, each)));
        for (name, value) in std::env::vars_os().filter(|(name, _)| is_named(name)) {
            if self.variables.iter().all(|(known, _)| *known != name) && !is_of_others(&name, &value, self.trust) {
                self.variables.push((name, value));
            }
        }
    }

    /// Returns whether this process has a variable that programs are not given.
    pub fn withholds(&self, name: &str) -> bool {
        self.get(name).is_none() && std::env::var_os(name).is_some()
    }

    /// Sets a variable, in place of one of the same name.
    pub fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.variables.retain(|(each, _)| each != name);
        self.variables.push((name.into(), value.into()));
        self.found = FoundPrograms::default();
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.iter().find(|(each, _)| each == name).map(|(_, value)| value.as_os_str())
    }

    /// Every variable and its value, as programs get them.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, Cow<'_, OsStr>)> {
        self.variables.iter().map(|(name, value)| match name.to_str() {
            Some("PATH") => (name.as_os_str(), self.trusted.path(value, self.trust)),
            _ => (name.as_os_str(), value.as_os_str().into()),
        })
    }

    /// Finds a program: beside `directory` first, then on `PATH`.
    ///
    /// A name with a slash is a path relative to `directory`. Empty and relative entries of `PATH` are passed over:
    /// what they mean depends on where somebody stands.
    pub fn find(&self, name: &str, directory: &Path) -> Option<PathBuf> {
        if name.is_empty() {
            return None;
        }
        let beside = Some(directory.join(name)).filter(|candidate| is_program(candidate));
        let found = beside.or_else(|| if name.contains('/') { None } else { self.find_on_path(name) })?;
        // A relative path would be looked for in the directory that the program is started in.
        std::path::absolute(found).ok()
    }

    /// Finds a program as [`Self::find`] does, and judges it. One that was found a moment ago is not looked for again, unless
    /// [`Self::forget_programs`] was called since. `None` when there is none.
    pub fn open(&self, name: &str, directory: &Path) -> Option<Result<Arc<Executable>, RefusedProgram>> {
        self.found.open(name, directory, self, Instant::now())
    }

    /// Makes [`Self::open`] look for every program again, also in clones. To be called when something changes: a program may be new, or
    /// in front of another.
    pub fn forget_programs(&self) {
        self.found.forget();
    }

    /// The program of that name in the first directory of `PATH` that has one; absolute.
    pub fn find_on_path(&self, name: &str) -> Option<PathBuf> {
        on_path(self.get("PATH")?, OsStr::new(name))
    }

    /// Like [`Self::find_on_path`], on the `PATH` that programs get.
    pub(super) fn find_trusted(&self, name: &OsStr) -> Option<PathBuf> {
        on_path(&self.trusted.path(self.get("PATH")?, self.trust), name)
    }
}

/// Returns whether a variable names a place from which programs would read settings, or run or load something, and which others
/// than root can change although only root is trusted. A relative path is such a place: it depends on where a program stands.
fn is_of_others(name: &OsStr, value: &OsStr, trust: Trust) -> bool {
    let (Some(name), false) = (name.to_str(), trust == Trust::Everyone) else { return false };
    let names_files = NAME_FILES.iter().any(|each| fits(name, each));
    let is_path = PATHS.iter().any(|each| fits(name, each))
        || names_files && PATHS_END.iter().any(|ending| name.ends_with(ending));
    // The linker splits at more than colons.
    let is_end = |byte: &u8| *byte == b':' || name.starts_with("LD_") && matches!(byte, b' ' | b';');
    let is_others = value.as_bytes().split(is_end).map(|path| Path::new(OsStr::from_bytes(path))).any(|path| {
        let is_relative = !path.is_absolute() && (is_path || path.as_os_str().as_bytes().contains(&b'/'));
        (names_files || is_path) && is_relative
            || names_files && path.is_absolute() && matches!(judge(path, trust), Err(OpenError::Untrusted(_)))
    });
    if is_others {
        tracing::info!(
            "'{name}' leads to what others can change, or is relative: it is not handed on to programs of root"
        );
    }
    is_others
}

fn on_path(path: &OsStr, name: &OsStr) -> Option<PathBuf> {
    let entries = std::env::split_paths(path).filter(|entry| entry.is_absolute());
    entries.map(|entry| entry.join(name)).find(|candidate| is_program(candidate))
}

fn fits(name: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

/// Returns whether there is a file that this process may run.
pub fn is_program(path: &Path) -> bool {
    use rustix::fs::{Access, access};
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)], more: &[&str]) -> Vec<(String, String)> {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        let kept = Environment::of(variables, more);
        kept.iter().map(|(name, value)| (name.display().to_string(), value.display().to_string())).collect()
    }

    #[test]
    fn only_named_variables_are_inherited() {
        let all = [("LC_ALL", "C"), ("AWS_SECRET_ACCESS_KEY", "x"), ("KUBECONFIG", "/k"), ("PATHS", "x")];
        assert_eq!(environment(&all, &[]), [("LC_ALL".into(), "C".into())]);
        assert_eq!(environment(&all, &["KUBECONFIG", "AWS_*"]).len(), 3);
    }

    #[test]
    fn proxies_are_inherited_in_both_cases() {
        let names = ["http_proxy", "https_proxy", "no_proxy", "all_proxy"];
        let both = names.iter().flat_map(|name| [(*name).to_owned(), name.to_uppercase()]);
        let all: Vec<(String, String)> = both.map(|name| (name, "x".to_owned())).collect();
        let all: Vec<(&str, &str)> = all.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(environment(&all, &[]).len(), 8);
    }

    #[test]
    fn what_a_login_sets_is_that_of_the_account() {
        let accounts = b"other:x:7:7::/:/bin/sh\nbroken\nroot:x:0:0:root:/root:/bin/bash\ntoor:x:0:0::/:\n";
        let account = Account::find(accounts, 0).unwrap();
        let mut environment = Environment::default();
        environment.set("USER", "somebody");
        environment.log_in(&account);
        let found = ["HOME", "USER", "LOGNAME", "SHELL"].map(|name| environment.get(name).unwrap().to_str().unwrap());
        assert_eq!(found, ["/root", "somebody", "root", "/bin/bash"]);
        assert_eq!(Account::find(accounts, 8), None);
    }

    #[test]
    fn the_home_of_somebody_else_is_not_roots() {
        if !stead_testkit::is_root("the_home_of_somebody_else_is_not_roots") {
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let names = || {
            let variables =
                ["HOME", "XDG_CONFIG_HOME", "SHELL", "TMPDIR"].map(|name| (name.into(), home.path().into()));
            let kept = Environment::of(variables, &[]).trusting(Trust::Root).without_others();
            kept.iter().map(|(name, _)| name.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names().len(), 4);
        std::os::unix::fs::chown(home.path(), Some(12345), None).unwrap();
        assert_eq!(names(), ["TMPDIR"], "a login sets the others");
    }

    #[test]
    fn relative_places_are_not_roots() {
        let kept = |name: &str, value: &str| {
            let kept = Environment::of([(name.into(), value.into())], &["*"]).trusting(Trust::Root).without_others();
            kept.get(name).is_some()
        };
        for name in
            ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_DIRS", "DOTNET_ROOT", "DOTNET_ROOT_X64", "TMPDIR", "LD_LIBRARY_PATH"]
        {
            for value in ["eve", "./eve", "", "/usr:eve"] {
                assert!(!kept(name, value), "{name}={value}");
            }
            assert!(kept(name, "/usr/lib"), "{name}");
        }
        for (name, value) in
            [("XDG_SESSION_TYPE", "tty"), ("DOTNET_gcServer", "1"), ("LD_PRELOAD", "libm.so"), ("EVE", "./eve")]
        {
            assert!(kept(name, value), "{name}={value}");
        }
    }

    #[test]
    fn what_a_runtime_loads_is_judged() {
        if !stead_testkit::is_root("what_a_runtime_loads_is_judged") {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let code = place.path().join("code");
        std::fs::write(&code, "").unwrap();
        let path = code.display();
        let values = [
            ("DOTNET_STARTUP_HOOKS", format!("/usr/lib/none.dll:{path}")),
            ("CORECLR_PROFILER_PATH", path.to_string()),
            ("COMPlus_DbgMiniDumpName", path.to_string()),
            ("LD_PRELOAD", format!("libm.so {path}")),
            ("LD_AUDIT", "eve/code".to_owned()),
        ];
        let is_kept = |(name, value): &(&str, String)| {
            let kept = Environment::of([(name.into(), value.into())], &["*"]).trusting(Trust::Root).without_others();
            kept.get(name).is_some()
        };
        assert!(values[..4].iter().all(is_kept) && !is_kept(&values[4]));
        std::os::unix::fs::chown(&code, Some(12345), None).unwrap();
        assert!(!values.iter().any(is_kept));
    }

    #[test]
    fn what_others_could_create_is_theirs() {
        if !stead_testkit::is_root("what_others_could_create_is_theirs") {
            return;
        }
        let (private, shared) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::set_permissions(shared.path(), std::os::unix::fs::PermissionsExt::from_mode(0o1777)).unwrap();
        std::os::unix::fs::symlink(shared.path().join("none"), private.path().join("link")).unwrap();
        let is_kept = |path: PathBuf| {
            let kept = Environment::of([("HOME".into(), path.into())], &[]).trusting(Trust::Root).without_others();
            kept.get("HOME").is_some()
        };
        assert!(is_kept(private.path().join("none/below")), "nobody else can");
        assert!(!is_kept(shared.path().to_owned()) && !is_kept(shared.path().join("none/below")));
        assert!(!is_kept(private.path().join("link")), "where it leads counts");
    }

    #[test]
    fn a_restricted_path_replaces_the_path() {
        let kept = environment(&[("PATH", "/a"), ("DSC_RESTRICTED_PATH", "/b")], &[]);
        assert!(kept.contains(&("PATH".into(), "/b".into())));
    }

    #[test]
    fn relative_entries_of_the_path_are_passed_over() {
        let mut environment = Environment::default();
        environment.set("PATH", ":.:bin:/bin");
        assert_eq!(environment.find("sh", Path::new("/")), Some("/bin/sh".into()));
        assert_eq!(environment.find("bin/sh", Path::new("/")), Some("/bin/sh".into()));
        assert_eq!(environment.find("no-such-program", Path::new("/")), None);
        assert_eq!(environment.find("etc", Path::new("/")), None, "a directory is not a program");
        assert_eq!(environment.find("", Path::new("/")), None);
    }
}
