//! What the settings, the environment and the command line decide for the whole process.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use stead_engine::{Host, HostOptions, PowerShellSearch};
use stead_host::catalog::{Search, SearchEnvironment};
use stead_host::settings::{
    self, Ignore, Layers, Settings, SettingsFiles, SettingsPlace, Stated, TraceLevel, UnusableFile,
};
use stead_powershell::adapter::PowerShellOptions;
use stead_powershell_reader::module::module_path;
use stead_system::fs::User;
use stead_system::process::Environment;

use crate::request::ProcessRequest;

/// Makes a host for the `PSModulePath` of somebody who asks.
pub(crate) type HostOf = dyn Fn(&str) -> Host + Send + Sync;

/// What an administrator, the environment and the command line decided.
pub(crate) struct ProcessEnv {
    /// When this process began.
    pub(crate) began: Instant,
    /// The settings that count.
    pub(crate) settings: Settings,
    /// Where resources and programs are looked for.
    pub(crate) search: Search,
    /// What all that this process does has in common.
    pub(crate) host: Host,
    /// A host for another `PSModulePath` than that of this process.
    pub(crate) host_of: Arc<HostOf>,
    /// Names of variables that programs get besides.
    pub(crate) environment: Arc<[String]>,
    /// How long one program may take, where that is stated.
    pub(crate) deadline: Option<Duration>,
    /// What is reported as soon as messages can be: settings that do not count, and why.
    pub(crate) warnings: Vec<String>,
    /// Why the policy cannot be used. Nothing may be done then.
    pub(crate) unusable_policy: Option<String>,
}

impl ProcessEnv {
    /// Reads the settings files and the environment of this process.
    pub(crate) fn of_this_process(asked: &ProcessRequest, began: Instant) -> Self {
        let program = env::current_exe().ok();
        let directory = program.as_deref().and_then(Path::parent);
        let mut warnings = Vec::new();
        let (layers, unusable) = layers(directory, asked, &mut warnings);
        let settings = settings::resolve(&layers, &stated(asked, &mut warnings));
        let is_policy = |file: &&UnusableFile| file.place == SettingsPlace::Policy;
        let ignored = unusable.iter().filter(|file| !is_policy(file));
        warnings.extend(ignored.map(|file| file.describe().replace('\n', "; ")));
        let search = search(&settings, directory, asked.as_dsc);
        let inherited: Arc<[String]> = settings.environment.iter().chain(&asked.environment).cloned().collect();
        let isolated = asked.isolated;
        let options = HostOptions {
            search: search.clone(),
            elevated: stead_system::user::is_root(),
            trace_level: settings.trace_level,
            environment: inherited.to_vec(),
            deadline: asked.deadline,
            powershell: Some(powershell(isolated, &inherited, None)),
            secrets: None,
            resources: Vec::new(),
        };
        let environment = Arc::clone(&inherited);
        let unusable_policy = unusable.iter().find(is_policy).map(UnusableFile::describe);
        let host = Host::new(options);
        let base = host.clone();
        let host_of = move |path: &str| base.with_powershell(powershell(isolated, &inherited, Some(path.to_owned())));
        let (host_of, deadline) = (Arc::new(host_of), asked.deadline);
        Self { began, settings, search, host, host_of, environment, deadline, warnings, unusable_policy }
    }
}

/// Finds PowerShell with the `PSModulePath` of this process, or with another one.
fn powershell(isolated: bool, inherited: &Arc<[String]>, module_path: Option<String>) -> Arc<PowerShellSearch> {
    let inherited = Arc::clone(inherited);
    Arc::new(move || find_powershell(isolated, &inherited, module_path.as_deref()))
}

/// Where PowerShell is; `None` where there is neither the program nor a path of modules.
fn find_powershell(isolated: bool, inherited: &[String], path: Option<&str>) -> Option<PowerShellOptions> {
    let mut environment = Environment::of_this_process(&["PSModulePath", "XDG_DATA_HOME", "XDG_CONFIG_HOME"]);
    if let Some(path) = path {
        environment.set("PSModulePath", path);
    }
    let executable = environment.find_on_path("pwsh");
    let searched = path.map(OsString::from).or_else(|| env::var_os("PSModulePath"));
    if executable.is_none() && searched.is_none_or(|path| path.is_empty()) {
        return None;
    }
    environment.add_of_this_process(inherited);
    // A service of the system has none itself: what each of its processes would compile is kept for the account.
    let home = environment.get("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let variable = |name: &str| match path {
        Some(path) if name == "PSModulePath" => Some(path.to_owned()),
        _ => env::var(name).ok(),
    };
    Some(PowerShellOptions {
        module_path: module_path(&variable, executable.as_deref()),
        executable,
        cache: cache_directory().or_else(|| home.map(|home| cache_below(&home))),
        environment,
        user: User::current(),
        width: available_parallelism().map_or(1, usize::from),
        isolated,
    })
}

fn layers(directory: Option<&Path>, asked: &ProcessRequest, warnings: &mut Vec<String>) -> (Layers, Vec<UnusableFile>) {
    let ignore = ignore(asked);
    if ignore == Ignore::Settings {
        let why =
            "environment variable 'DSC_IGNORE_SETTINGS_FILE' being set or '--ignore-settings-file' flag being used";
        warnings.push(format!("Ignoring settings file due to {why}"));
    }
    let mut files = SettingsFiles::beside(directory.unwrap_or(Path::new("/")), ignore);
    if asked.as_dsc && ignore == Ignore::Nothing {
        files.workspace = env::current_dir().ok().map(|directory| directory.join("dsc.settings.json"));
        files.user = configuration_directory().map(|directory| directory.join("dsc/dsc.settings.json"));
    }
    Layers::load(&files, User::current())
}

/// Where a user has settings.
fn configuration_directory() -> Option<PathBuf> {
    let below_home = || Some(PathBuf::from(env::var_os("HOME")?).join(".config"));
    let stated = env::var_os("XDG_CONFIG_HOME").filter(|stated| !stated.is_empty()).map(PathBuf::from);
    stated.or_else(below_home).filter(|directory| directory.is_absolute())
}

fn ignore(asked: &ProcessRequest) -> Ignore {
    let ignored = asked.ignores_settings || env::var_os("DSC_IGNORE_SETTINGS_FILE").is_some();
    if ignored { Ignore::Settings } else { Ignore::Nothing }
}

fn stated(asked: &ProcessRequest, warnings: &mut Vec<String>) -> Stated {
    let environment = env::var("DSC_TRACE_LEVEL").ok();
    let environment_level = environment.as_deref().and_then(TraceLevel::parse);
    if let (Some(text), None) = (&environment, environment_level) {
        let words: Vec<_> = TraceLevel::ALL.iter().map(|(word, _)| *word).collect();
        warnings.push(format!("DSC_TRACE_LEVEL is '{text}', but must be one of {}; ignored", words.join(", ")));
    }
    Stated { argument_level: asked.trace_level, argument_format: asked.trace_format, environment_level }
}

/// Where resources are looked for; for the commands of dsc a restriction is one of what this program is itself, too.
fn search(settings: &Settings, program_directory: Option<&Path>, as_dsc: bool) -> Search {
    let [path, resource_path, restricted_path] = ["PATH", "DSC_RESOURCE_PATH", "DSC_RESTRICTED_PATH"].map(env::var_os);
    let current = env::current_dir().ok();
    let environment = SearchEnvironment {
        path: path.as_deref(),
        resource_path: resource_path.as_deref(),
        restricted_path: restricted_path.as_deref(),
        program_directory,
        current_directory: current.as_deref(),
    };
    let mut search = Search::new(&environment, &settings.resource_path, User::current());
    search.is_alone = as_dsc && restricted_path.is_some() && settings.resource_path.allow_env_override;
    match cache_directory() {
        Some(cache) => search.with_cache(cache),
        None => search,
    }
}

/// Where indexes are kept.
fn cache_directory() -> Option<PathBuf> {
    let stated = env::var_os("XDG_CACHE_HOME").map(|cache| PathBuf::from(cache).join("stead"));
    let cache = stated.or_else(|| Some(cache_below(Path::new(&env::var_os("HOME")?))))?;
    cache.is_absolute().then_some(cache)
}

fn cache_below(home: &Path) -> PathBuf {
    home.join(".cache/stead")
}
