//! Starts a worker.
//!
//! PowerShell is given a loader as `-Command`, which runs the compiled worker: that connects to the socket and says which PowerShell
//! it is. `-Command -` would read it from standard input, which programs that a resource starts read as well; `-EncodedCommand`
//! makes PowerShell write its errors as XML.
//!
//! Scripts that run in the runspaces of modules are sent with the first call, and whose module that is: it is loaded while the request
//! is still being read. Until then nothing but PowerShell and the worker has run, so that its own modules and settings are judged in
//! time.

use std::ffi::OsString;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use stead_core::call::FailureKind;
use stead_system::fs::{Trust, Untrusted};
use stead_system::process::{
    ConversationError, Environment, Executable, Heard, Program, ProgramSession, RefusedProgram,
};
use stead_system::scratch::{Scratch, ScratchError};
use stead_system::socket::Listener;

use super::compiled::Files;
use super::own::{Earlier, MODULE_PATH, SETTINGS_FILE, own_modules, own_settings, shared_modules, trusted_modules};
use super::printed::Printed;
use super::protocol::{Hello, Line, Message, fields};
use super::{Call, Limits, Settings, Worker};

const LOADER: &str = include_str!("loader.ps1");
const SCRIPTS: [&str; 3] =
    [include_str!("scripts/load.ps1"), include_str!("scripts/script.ps1"), include_str!("scripts/calls.ps1")];

/// The variable that tells the worker where the socket is. It is gone before the first call.
const ENDPOINT: &str = "STEAD_POWERSHELL_ENDPOINT";

/// The variable that tells the worker which directories of modules may be used, with colons around each. PowerShell itself
/// adds directories to `PSModulePath` when it starts, so that this is what it is set to afterwards.
const MODULES: &str = "STEAD_POWERSHELL_MODULES";

/// The variable that tells the worker what `XDG_CONFIG_HOME` is to be afterwards, behind a `=`, where PowerShell itself gets another one.
const CONFIGURATION: &str = "STEAD_POWERSHELL_CONFIGURATION";

/// Keeps PowerShell from colours, from calling home and from sockets in the directory for temporary files, and .NET from profiling
/// code, and from optimizing before a second has passed without new code (3E8 is 1,000 ms: .NET reads hexadecimal): most workers end
/// before that pays.
const QUIET: [(&str, &str); 8] = [
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("POWERSHELL_TELEMETRY_OPTOUT", "1"),
    ("POWERSHELL_UPDATECHECK", "Off"),
    ("POWERSHELL_DIAGNOSTICS_OPTOUT", "1"),
    ("DOTNET_EnableDiagnostics", "0"),
    ("DOTNET_TieredPGO", "0"),
    ("DOTNET_TC_CallCountingDelayMs", "3E8"),
];

/// Returns whether workers are given a value of their own for a variable.
pub(super) fn is_set(name: &str) -> bool {
    name == "TMPDIR" || QUIET.iter().any(|(own, _)| *own == name)
}

/// Why there is no worker.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no folder for its socket and its temporary files.
    #[error("cannot create a folder for PowerShell in '{}'", folder.display())]
    Folder {
        /// Where.
        folder: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// It is not there, or not to be trusted.
    #[error("cannot run PowerShell: {0}")]
    Refused(#[source] RefusedProgram),
    /// Others than root could change its own modules or settings.
    #[error("cannot use the modules and settings of PowerShell itself")]
    Untrusted(#[source] Untrusted),
    /// Its own modules or settings cannot be read.
    #[error("cannot read '{}', which PowerShell itself reads: {reason}", path.display())]
    Unreadable {
        /// Where.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// It did not answer.
    #[error("cannot start the PowerShell '{}'", program.display())]
    Program {
        /// The executable.
        program: PathBuf,
        /// Why not.
        source: ConversationError,
        /// The end of its standard error.
        tail: String,
    },
    /// It does not speak the protocol.
    #[error("'{}' does not answer as PowerShell 7.2 or later does", .0.display())]
    Protocol(PathBuf),
}

impl StartError {
    /// The kind of failure that it is for callers.
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Program { source: ConversationError::Process(error), .. } => error.kind(),
            Self::Program { source: ConversationError::Silent(_), .. } => FailureKind::Deadline,
            Self::Folder { .. } => FailureKind::System,
            Self::Refused(refused) => refused.kind(),
            Self::Untrusted(_) | Self::Unreadable { .. } | Self::Program { .. } | Self::Protocol(_) => {
                FailureKind::Start
            }
        }
    }
}

/// The line that a process is sent before its first call: what that calls, and the scripts.
pub(super) fn scripts(call: &Call<'_>) -> String {
    let path = call.module.path.to_string_lossy();
    fields([super::kind(call), &path, call.resource].into_iter().chain(SCRIPTS)) + "\n"
}

/// Starts PowerShell and waits until it can be called. Where a launcher turned out to start one that is installed elsewhere,
/// the next start knows it.
pub(super) fn start(settings: &Settings, earlier: &Earlier, limits: &Limits<'_>) -> Result<Worker, StartError> {
    let trust = settings.environment.trust();
    let mut environment = settings.environment.clone();
    environment.add_of_this_process(limits.inherited);
    let executable = Executable::open(settings.executable.clone(), &environment).map_err(StartError::Refused)?;
    let start = Start { settings, executable: &executable, environment: &environment, earlier, limits };
    let real = std::fs::canonicalize(executable.path()).ok();
    let assumed = earlier.home.get().map(PathBuf::as_path).or_else(|| real.as_deref()?.parent());
    shared_modules(trust)?;
    let given = assumed.map(|home| own_settings(home, trust, earlier)).transpose()?;
    let (worker, hello) = start.greeted(given.as_ref())?;
    own_modules(&hello.home.join("Modules"), trust)?;
    let own = Some(own_settings(&hello.home, trust, earlier)?);
    if own == given {
        return Ok(worker);
    }
    drop(worker);
    earlier.home.get_or_init(|| hello.home);
    Ok(start.greeted(own.as_ref())?.0)
}

/// The start of one process.
struct Start<'a> {
    settings: &'a Settings,
    executable: &'a Executable,
    environment: &'a Environment,
    earlier: &'a Earlier,
    limits: &'a Limits<'a>,
}

impl Start<'_> {
    /// A process with these settings for all users, and what it said first.
    fn greeted(&self, settings: Option<&Json>) -> Result<(Worker, Hello), StartError> {
        let (limits, path) = (self.limits, self.executable.path());
        let own = Scratch::for_program()
            .map_err(|ScratchError { above, source }| StartError::Folder { folder: above, source })?;
        let failed = |source| StartError::Folder { folder: own.path().to_owned(), source };
        let listener = Listener::bind(&own.path().join("s")).map_err(failed)?;
        let arguments = arguments(&own, settings).map_err(failed)?;
        let files = Files::write(&own, self.settings.compiled.as_ref()).map_err(failed)?;
        let mut variables = self.variables(&own).map_err(failed)?;
        variables.push(files.variable());
        let program = Program {
            executable: self.executable,
            arguments: &arguments,
            directory: Path::new("/"),
            environment: self.environment,
            variables: &variables,
            input: None,
        };
        let (mut printed, mut hello) = (Printed::default(), None);
        let mut hear = |heard: Heard<'_>| match heard {
            Heard::Printed(stream, bytes) => {
                printed.take(stream, bytes, &mut |_| {});
                ControlFlow::Continue(())
            }
            Heard::Line(line) => {
                hello = serde_json::from_slice::<Line>(line).ok().and_then(Line::message);
                ControlFlow::Break(())
            }
        };
        let session =
            ProgramSession::start(&program, &listener, limits.output, limits.deadline.left(), limits.cancel, &mut hear);
        let greeted = session.and_then(|mut session| {
            session.listen(limits.deadline.left(), limits.cancel, &mut hear)?;
            Ok(session)
        });
        match (greeted, hello) {
            (Ok(session), Some(Message::Hello(hello))) if hello.is_understood() => {
                files.keep(&hello.version);
                Ok((Worker::new(session, own), hello))
            }
            (Ok(_), _) => Err(StartError::Protocol(path.to_owned())),
            (Err(source), _) => Err(StartError::Program { program: path.to_owned(), source, tail: printed.tail() }),
        }
    }

    /// The variables that a worker is given besides those of all programs, whatever those say.
    ///
    /// Its temporary files are in a folder of its own. For root, so are the settings that PowerShell reads as those of the user:
    /// they could have it load modules, and write down what calls return. Those in their place name an empty directory of
    /// modules, which each runspace that a resource opens would else have in the home of the user.
    fn variables(&self, own: &Scratch) -> io::Result<Vec<(OsString, OsString)>> {
        let [temporary, configuration] = ["tmp", "config"].map(|name| own.path().join(name));
        own.create_folder(&temporary)?;
        let mut variables: Vec<(OsString, OsString)> =
            QUIET.iter().map(|(name, value)| (name.into(), value.into())).collect();
        variables.push((ENDPOINT.into(), own.path().join("s").into()));
        variables.push(("TMPDIR".into(), temporary.into()));
        if self.settings.environment.trust() != Trust::Everyone {
            let [modules, folder] = [own.path().join("modules"), configuration.join("powershell")];
            for folder in [&modules, &configuration, &folder] {
                own.create_folder(folder)?;
            }
            let settings = json!({ MODULE_PATH: modules.to_string_lossy() }).to_string();
            own.create_file(&folder.join(SETTINGS_FILE), settings.as_bytes(), 0o600)?;
            let mut stated = OsString::from("=");
            stated.push(self.environment.get("XDG_CONFIG_HOME").unwrap_or_default());
            variables.push((CONFIGURATION.into(), stated));
            variables.push(("XDG_CONFIG_HOME".into(), configuration.into()));
        }
        variables.extend(trusted_modules(self.settings, self.earlier).map(|value| (MODULES.into(), value)));
        Ok(variables)
    }
}

/// The arguments of PowerShell, of which some are in files in its folder.
fn arguments(own: &Scratch, settings: Option<&Json>) -> io::Result<Vec<OsString>> {
    let mut arguments: Vec<OsString> = ["-NoLogo", "-NoProfile", "-NonInteractive"].map(OsString::from).into();
    if let Some(settings) = settings {
        let file = own.path().join(SETTINGS_FILE);
        own.create_file(&file, settings.to_string().as_bytes(), 0o600)?;
        arguments.extend(["-SettingsFile".into(), file.into()]);
    }
    arguments.extend(["-Command", LOADER].map(OsString::from));
    Ok(arguments)
}
