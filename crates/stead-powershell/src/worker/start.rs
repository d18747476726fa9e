//! Starts a worker.
//!
//! PowerShell is given a loader as `-Command`, which connects to the socket and reads the script from it. So nothing is
//! written to a file and nothing runs through the limit of a command line. `-Command -` would read it from standard input,
//! which programs that a resource starts read as well; `-EncodedCommand` makes PowerShell write its errors as XML.

use std::ffi::OsString;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use stead_core::call::FailureKind;
use stead_system::fs::{OpenError, Trust, TrustedDirectory, Untrusted, User, make_private_directory};
use stead_system::process::{ConversationError, Executable, Heard, Program, Refused, Session};
use stead_system::socket::Listener;

use super::printed::Printed;
use super::protocol::{Line, Message, VERSION};
use super::{Limits, Settings, Worker};

const LOADER: &str = include_str!("loader.ps1");
const SCRIPT: &str = include_str!("worker.ps1");

/// The variable that tells the loader where the socket is. It is gone before the first call.
const ENDPOINT: &str = "STEAD_POWERSHELL_ENDPOINT";

/// The variable that tells the loader which directories of modules may be used, with colons around each. PowerShell itself
/// adds directories to `PSModulePath` when it starts, so that this is what it is set to afterwards.
const MODULES: &str = "STEAD_POWERSHELL_MODULES";

/// Keeps PowerShell from colours, from calling home, and from sockets in the directory for temporary files.
const QUIET: [(&str, &str); 6] = [
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("POWERSHELL_TELEMETRY_OPTOUT", "1"),
    ("POWERSHELL_UPDATECHECK", "Off"),
    ("POWERSHELL_DIAGNOSTICS_OPTOUT", "1"),
    ("DOTNET_EnableDiagnostics", "0"),
];

/// The longest path of a socket.
const LONGEST_PATH: usize = 107;

/// Why there is no worker.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no directory for its socket.
    #[error("cannot create a socket for PowerShell in '{}'", folder.display())]
    Socket {
        /// Where.
        folder: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// It is not there, or not to be trusted.
    #[error("cannot run PowerShell: {0}")]
    Refused(#[source] Refused),
    /// Others than root could change its own modules.
    #[error("cannot use the modules of PowerShell itself")]
    Untrusted(#[source] Untrusted),
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
            Self::Socket { .. } => FailureKind::System,
            Self::Refused(refused) => refused.kind(),
            Self::Untrusted(_) | Self::Program { .. } | Self::Protocol(_) => FailureKind::Start,
        }
    }
}

/// Starts PowerShell and waits until it can be called.
pub(super) fn start(settings: &Settings, limits: &Limits<'_>) -> Result<Worker, StartError> {
    let mut environment = settings.environment.clone();
    environment.add_of_this_process(limits.inherited);
    let executable = Executable::open(settings.executable.clone(), &environment).map_err(StartError::Refused)?;
    let path = executable.path();
    let socket = Socket::create()?;
    let arguments = ["-NoLogo", "-NoProfile", "-NonInteractive", "-Command", LOADER].map(OsString::from);
    let mut variables: Vec<(OsString, OsString)> =
        QUIET.iter().map(|(name, value)| (name.into(), value.into())).collect();
    variables.push((ENDPOINT.into(), socket.path().into()));
    variables.extend(trusted_modules(settings).map(|value| (MODULES.into(), value)));
    let program = Program {
        executable: &executable,
        arguments: &arguments,
        directory: Path::new("/"),
        environment: &environment,
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
    let script = STANDARD.encode(SCRIPT) + "\n";
    let session =
        Session::start(&program, &socket.listener, limits.output, limits.deadline.left(), limits.cancel, &mut hear);
    let greeted = session.and_then(|mut session| {
        session.exchange(script.as_bytes(), limits.deadline.left(), limits.cancel, &mut hear)?;
        Ok(session)
    });
    match (greeted, hello) {
        (Ok(session), Some(Message::Hello(hello))) if hello.protocol == VERSION => {
            own_modules(&hello.home, settings.environment.trust())?;
            Ok(Worker::new(session, limits.inherited))
        }
        (Ok(_), _) => Err(StartError::Protocol(path.to_owned())),
        (Err(source), _) => Err(StartError::Program { program: path.to_owned(), source, tail: printed.tail() }),
    }
}

/// The modules that PowerShell brings along are always in its path. Nothing of them was loaded yet.
fn own_modules(home: &Path, trust: Trust) -> Result<(), StartError> {
    match TrustedDirectory::open(&home.join("Modules"), trust) {
        Err(OpenError::Untrusted(untrusted)) => Err(StartError::Untrusted(untrusted)),
        _ => Ok(()),
    }
}

/// The directories of modules that nobody but root can change; `None` where whoever runs may use all.
fn trusted_modules(settings: &Settings) -> Option<OsString> {
    (settings.environment.trust() == Trust::Root).then(|| {
        let is_trusted = |folder: &&PathBuf| TrustedDirectory::open(folder, Trust::Root).is_ok();
        // Never empty: an empty variable is none to PowerShell.
        let mut joined = OsString::from(":");
        for folder in settings.module_path.iter().filter(is_trusted) {
            joined.push(folder);
            joined.push(":");
        }
        joined
    })
}

/// A socket in a directory that nobody else can enter. Both are gone when this is dropped; a connection stays.
struct Socket {
    listener: Listener,
    folder: PathBuf,
}

impl Socket {
    fn create() -> Result<Self, StartError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let unique = || format!("stead-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        // Whoever owns the directory above could exchange what is in it.
        let is_root = User::current().trust() == Trust::Root && Path::new("/run").is_dir();
        let temporary = if is_root { PathBuf::from("/run") } else { std::env::temp_dir() };
        let is_short = temporary.as_os_str().len() + "/stead-4294967295-1000000/s".len() <= LONGEST_PATH;
        let parent = if is_short { temporary } else { PathBuf::from("/tmp") };
        let failed = |source| StartError::Socket { folder: parent.clone(), source };
        let create = || {
            let folder = parent.join(unique());
            make_private_directory(&folder).map(|()| folder)
        };
        // What is there already is somebody else's.
        let is_taken = |created: &io::Result<PathBuf>| {
            created.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists)
        };
        let created = std::iter::repeat_with(create).take(16).find(|created| !is_taken(created));
        let folder = created.unwrap_or_else(|| Err(io::ErrorKind::AlreadyExists.into())).map_err(failed)?;
        match Listener::bind(&folder.join("s")) {
            Ok(listener) => Ok(Self { listener, folder }),
            Err(error) => {
                drop(std::fs::remove_dir(&folder));
                Err(failed(error))
            }
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.join("s")
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        drop(std::fs::remove_file(self.path()));
        drop(std::fs::remove_dir(&self.folder));
    }
}
