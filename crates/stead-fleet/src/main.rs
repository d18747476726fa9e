//! The program `stead-fleet`.

#![expect(clippy::doc_markdown, reason = "databases have such names")]

mod commands;
mod demo;
mod install;

use std::error::Error;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use stead_fleet::server::{Bound, Controller, ControllerLimits, TlsFiles};
use stead_fleet::store::{StorePlace, StoreWrite};
use stead_fleet::{new_token, tls};
use stead_hosts::MachineName;
use stead_release::Digest;
use stead_system::folder::Folder;
use stead_system::socket::Messages;
use stead_system::{Cancel, error_chain};
use tokio::signal::unix::{SignalKind, signal};

/// Ten thousand connections are many small values.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The threads that answer: one suffices for five thousand machines.
const THREADS: usize = 2;
/// The file of the store, and the one that is locked while a controller has it.
const STORE: &str = "fleet.db";
const LOCK: &str = "fleet.lock";
/// The file that says how often a controller began and ended on the store of the folder.
const BEGUN: &str = "fleet.begun";
/// The exit code for a command line that cannot be used, as that of 'stead'.
const UNUSABLE: u8 = 3;
/// How long is waited for a controller that ends.
const ENDING: Duration = Duration::from_secs(1);

/// The controller of a fleet: serves signed releases to machines, and keeps their reports
#[derive(Parser)]
#[command(name = "stead-fleet", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the controller in the foreground
    Run(Run),
    /// Install the controller as a service of systemd with an account of its own, and start it
    Install {
        /// Print the unit, and change nothing
        #[arg(long)]
        print: bool,
        #[command(flatten)]
        serving: Serving,
    },
    /// Back up a controller to a folder, also while it runs
    Backup {
        /// The folder, which has no store
        to: PathBuf,
        #[command(flatten)]
        kept: Kept,
    },
    /// Replace the secret from which session keys are derived; no machine is refused meanwhile
    Rotate {
        #[command(flatten)]
        kept: Kept,
    },
    /// Create the account of an operator, or replace its token, beside the store; the token is printed once
    Operator(OperatorArguments),
    /// Print the schema of the API, in the form of OpenAPI 3.1
    Api,
    /// Run a demonstration in a folder: a controller, three machines, a release, a drift and its repair; needs no root
    Demo(DemoArguments),
    #[command(flatten)]
    Asked(commands::Asked),
}

#[derive(Args)]
struct DemoArguments {
    /// The folder, which is made
    #[arg(long, value_name = "FOLDER", default_value = "stead-demo")]
    folder: PathBuf,
    /// End when all was shown, in place of going on until it is ended
    #[arg(long)]
    once: bool,
}

/// Where the controller keeps what it keeps.
#[derive(Args)]
struct Kept {
    /// The folder of the store and the certificate; only this user can enter it
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/stead-fleet")]
    folder: PathBuf,
    /// A PostgreSQL that several controllers share, as 'host=… dbname=…' or an address [default: a file in the folder]
    #[arg(long, value_name = "PLACE", env = "STEAD_FLEET_STORE", hide_env_values = true)]
    store: Option<StorePlace>,
}

#[derive(Args)]
struct Run {
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    serving: Serving,
}

/// How a controller serves.
#[derive(Args)]
struct Serving {
    /// The address and the port
    #[arg(long, value_name = "ADDRESS", default_value = "[::]:7443")]
    listen: SocketAddr,
    /// The certificate, in PEM [default: one that is made in the folder]
    #[arg(long, value_name = "FILE", requires = "key")]
    certificate: Option<PathBuf>,
    /// Its key, in PEM
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
    /// A name or an address that the certificate is made for; repeatable
    #[arg(long = "name", value_name = "NAME", default_value = "localhost")]
    names: Vec<String>,
    /// How many machines may wait for an operator
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    most_waiting: u64,
    /// For how many days reports are kept
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    keep_reports: u32,
    /// The form of the log on standard error: a line for each act and each refusal
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogFormat {
    /// Lines
    Text,
    /// JSON lines
    Json,
}

#[derive(Args)]
struct OperatorArguments {
    /// The name
    #[arg(value_parser = |text: &str| MachineName::parse(text).map_err(|why| why.to_string()))]
    name: MachineName,
    /// What it may do
    #[arg(long)]
    role: OperatorRole,
    #[command(flatten)]
    kept: Kept,
}

#[derive(Clone, Copy, ValueEnum)]
enum OperatorRole {
    /// Look
    Viewer,
    /// Admit, hold and retire machines, and make tokens for them
    Operator,
    /// Publish as well
    Approver,
}

fn main() -> ExitCode {
    let command = match Arguments::try_parse() {
        Ok(arguments) => arguments.command,
        Err(error) => {
            // Nobody reads where it cannot be printed.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(UNUSABLE) } else { ExitCode::SUCCESS };
        }
    };
    let outcome = match command {
        Command::Run(run) => serve(run),
        Command::Install { print, serving } => install::install(&serving, print, &mut std::io::stdout()),
        Command::Backup { to, kept } => back_up(&to, &kept),
        Command::Rotate { kept } => rotate(&kept),
        Command::Operator(operator) => make(&operator),
        Command::Api => print_api(),
        Command::Demo(shown) => {
            let end = Cancel::default();
            stead_system::interrupt::catch(&end, i32::from(UNUSABLE));
            demo::demo(&shown.folder, &mut std::io::stdout(), &end, shown.once)
        }
        Command::Asked(asked) => commands::ask(asked, &mut std::io::stdout()),
    };
    let Err(error) = outcome else { return ExitCode::SUCCESS };
    // Nobody reads where standard error is closed.
    let _ = std::io::stderr().write_all(format!("error: {}\n", error_chain(&*error)).as_bytes());
    ExitCode::FAILURE
}

impl OperatorRole {
    /// The word for it.
    fn word(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

impl Kept {
    fn open(&self) -> Result<(Folder, StorePlace), Box<dyn Error>> {
        let folder = Folder::create(&self.folder)?;
        if let Some(place) = &self.store {
            return Ok((folder, place.clone()));
        }
        // What it holds is only for this user, as are the files that the database puts beside it.
        folder.open(STORE)?;
        let place = StorePlace::File(folder.path().join(STORE));
        Ok((folder, place))
    }
}

fn serve(Run { kept, serving }: Run) -> Result<(), Box<dyn Error>> {
    let (folder, place) = kept.open()?;
    let is_alone = matches!(place, StorePlace::File(_));
    let lock = if is_alone { folder.lock(LOCK, ENDING)? } else { None };
    if is_alone && lock.is_none() {
        return Err(format!("another controller has '{place}': several share a PostgreSQL, with '--store'").into());
    }
    if is_alone {
        count(&folder, &place)?;
    }
    stead_system::process::allow_most_descriptors()?;
    let files = match (serving.certificate, serving.key) {
        (Some(certificate), Some(key)) => TlsFiles { certificate, key },
        _ => tls::own(&folder, &serving.names)?,
    };
    log(serving.log_format);
    let reports = Duration::from_hours(24 * u64::from(serving.keep_reports));
    let (controller, stop) =
        Controller::start(&place, ControllerLimits { most_waiting: serving.most_waiting, reports })?;
    // Each line in one piece, beside those of other threads and programs.
    let said = |text: String| std::io::stderr().write_all((text + "\n").as_bytes());
    if !controller.hears_others() {
        said(
            "note: what other controllers write is seen every two seconds: hints do not arrive, as behind a pooler"
                .to_owned(),
        )?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build()?;
    runtime.block_on(async {
        let bound = Bound::new(serving.listen, &files)?;
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        said(format!(
            "listening on {}, with the store {place} and the certificate {}",
            bound.address()?,
            files.certificate.display()
        ))?;
        Messages::notify_service_manager("READY=1");
        let end = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        bound.serve(controller, stop, end).await;
        Ok::<_, Box<dyn Error>>(())
    })?;
    if is_alone { count(&folder, &place) } else { Ok(()) }
}

/// Counts that a controller begins or ends: a file of the store from before that is another history when it comes back.
fn count(folder: &Folder, place: &StorePlace) -> Result<(), Box<dyn Error>> {
    let known = folder.read(BEGUN)?.and_then(|known| String::from_utf8(known).ok()?.trim().parse().ok());
    let count = place.open()?.begins_or_ends(known.unwrap_or_default())?;
    Ok(folder.replace(BEGUN, count.to_string().as_bytes())?)
}

/// Until each controller has read a new secret for sessions, in milliseconds.
const READ_BY_ALL: u64 = 15_000;

fn rotate(kept: &Kept) -> Result<(), Box<dyn Error>> {
    let (_folder, place) = kept.open()?;
    place.open()?.rotate_sessions(|| new_token().expose().clone(), READ_BY_ALL)?;
    Ok(())
}

/// Copies the store and the certificate. The copy is another history of the store: machines send their reports again to whoever runs it.
fn back_up(to: &Path, kept: &Kept) -> Result<(), Box<dyn Error>> {
    let (folder, place) = kept.open()?;
    let copy = Folder::create(to)?;
    if copy.identity(STORE)?.is_some() {
        return Err(format!("'{}' has a store already: name another folder", to.display()).into());
    }
    copy.open(STORE)?;
    if let Err(error) = place.open()?.copy_into(&copy.path().join(STORE)) {
        copy.remove(STORE)?;
        return Err(error.into());
    }
    for name in tls::FILES {
        if let Some(content) = folder.read(name)? {
            copy.replace(name, &content)?;
        }
    }
    copy.flush()?;
    Ok(())
}

fn print_api() -> Result<(), Box<dyn Error>> {
    Ok(writeln!(std::io::stdout(), "{}", stead_report::pretty(&stead_fleet::api::api()))?)
}

/// Has standard error be the log. Where nobody reads it any more, the controller goes on.
fn log(format: LogFormat) {
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false).with_ansi(false);
    let log = log.log_internal_errors(false);
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}

fn make(operator: &OperatorArguments) -> Result<(), Box<dyn Error>> {
    let (_folder, place) = operator.kept.open()?;
    let token = new_token();
    let digest = Digest::of(token.expose().as_bytes());
    let write = StoreWrite::Operator { name: operator.name.clone(), role: operator.role.word(), digest };
    let (outcomes, _) = place.open()?.commit(&[vec![write]])?;
    outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
    writeln!(std::io::stdout(), "{}", token.expose())?;
    Ok(())
}
