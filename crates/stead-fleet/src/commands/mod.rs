//! The commands of operators: they ask a controller, wherever it is.

mod text;

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use serde_json::{Value, json};
use stead_fleet::client::{Client, ClientError, read};
use stead_hosts::{Filter, MachineName};
use stead_protocol::{
    ActShown, CauseShown, CheckShown, DriftShown, EventShown, FleetStatus, HoldRequest, InviteRequest, LONGEST_WAIT,
    ListPage, MachineShown, ReportShown, StandingRequest, TokenAnswer, TokenRequest,
};
use stead_release::Digest;
use stead_report::{json as line_of_json, pretty, yaml};

use crate::OperatorRole;

/// How long it is until it is asked again for the first time whether machines did what they were asked.
const SHORT: Duration = Duration::from_millis(100);
/// How long it is until a controller that is away is asked again.
const AGAIN: Duration = Duration::from_secs(2);

/// Where the controller is, and who asks.
#[derive(Args)]
pub(crate) struct Asking {
    /// The address of the controller
    #[arg(long, value_name = "URL", env = "STEAD_FLEET_URL")]
    url: String,
    /// The certificate of the controller, or of who vouches for it, in PEM
    #[arg(long, value_name = "FILE", env = "STEAD_FLEET_CERTIFICATE")]
    certificate: PathBuf,
    /// The file with the token of the operator
    #[arg(long, value_name = "FILE", env = "STEAD_FLEET_TOKEN_FILE")]
    token_file: PathBuf,
}

/// The form of what is printed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For users
    Text,
    /// One JSON value; of events one in each line
    Json,
    /// The same as YAML
    Yaml,
}

/// Where, who, and how it is printed.
#[derive(Args)]
pub(crate) struct Listing {
    /// Output format
    #[arg(short, long, visible_alias = "output-format", value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    asking: Asking,
}

/// The machines of a list.
#[derive(Args)]
pub(crate) struct Meant {
    /// Which ones, as in 'role=web and state=failed'; 'name', 'state', 'standing' and 'channel' are labels as well
    #[arg(value_parser = filter)]
    filter: Option<Filter>,
    #[command(flatten)]
    listing: Listing,
}

/// How far `apply` goes.
#[derive(Args)]
pub(crate) struct Agreement {
    /// Show what it changes, and change nothing
    #[arg(long, conflicts_with = "yes")]
    plan: bool,
    /// Apply it without asking
    #[arg(long)]
    yes: bool,
}

/// Machines by their names.
#[derive(Args)]
pub(crate) struct Named {
    /// Their names
    #[arg(value_parser = name, required = true)]
    machines: Vec<MachineName>,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Subcommand)]
pub(crate) enum Asked {
    /// Show how many machines are in which state, and how far each channel is
    Status(Meant),
    /// List machines: their states, releases, and when they were heard
    Machines(Meant),
    /// Show all that is known of a machine
    Show {
        /// Its name
        #[arg(value_parser = name)]
        machine: MachineName,
        #[command(flatten)]
        listing: Listing,
    },
    /// List labels that machines asked for and no operator has signed
    Labels(Meant),
    /// List instances that are not in their desired state
    Drift(Meant),
    /// List failures, grouped by cause
    Failures(Meant),
    /// List the reports of a machine, the newest first
    Reports {
        /// Its name
        #[arg(value_parser = name)]
        machine: MachineName,
        /// How many at most
        #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
        most: usize,
        #[command(flatten)]
        listing: Listing,
    },
    /// List recent events: changes of state, and acts of operators
    Events {
        /// Wait for more, until it is interrupted
        #[arg(long)]
        follow: bool,
        #[command(flatten)]
        listing: Listing,
    },
    /// Admit machines that wait, and those that shared a key with another one
    Admit(Named),
    /// Remove machines from the fleet, and refuse their keys from now on
    Retire(Named),
    /// Hold machines at their release for a while
    Hold {
        /// For how many seconds from now; 0 lets them go
        #[arg(long = "for", value_name = "SECONDS")]
        seconds: u64,
        /// Why
        #[arg(long, value_name = "TEXT")]
        why: String,
        #[command(flatten)]
        named: Named,
    },
    /// Make machines check their documents now, and show which did
    Check {
        /// Check now; 'stead fleet drift' lists what was found before
        #[arg(long, required = true)]
        now: bool,
        /// How many seconds to wait until all did
        #[arg(long, value_name = "SECONDS", default_value_t = 60)]
        wait: u64,
        #[command(flatten)]
        meant: Meant,
    },
    /// Create a link to take the account of an operator with, once; it is printed once
    Invite {
        /// The name of the account
        #[arg(value_parser = name)]
        name: MachineName,
        /// What it may do
        #[arg(long)]
        role: OperatorRole,
        /// For how many seconds the link is valid
        #[arg(long = "for", value_name = "SECONDS", default_value_t = 86_400)]
        seconds: u64,
        #[command(flatten)]
        asking: Asking,
    },
    /// Take an account by its link, and print the token of the account
    Accept {
        /// The file with the link, or '-' for standard input
        link: PathBuf,
        /// The certificate of the controller, or of who vouches for it, in PEM
        #[arg(long, value_name = "FILE", env = "STEAD_FLEET_CERTIFICATE")]
        certificate: PathBuf,
    },
    /// Create a token with which machines join; it is printed once
    Token {
        /// How many machines
        #[arg(long, value_name = "COUNT", default_value_t = 1)]
        uses: u64,
        /// For how many seconds
        #[arg(long = "for", value_name = "SECONDS", default_value_t = 3600)]
        seconds: u64,
        /// A label that they ask for; repeatable
        #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
        labels: Vec<(String, String)>,
        #[command(flatten)]
        asking: Asking,
    },
    /// Publish what is new in a source that 'stead release' made
    Publish {
        /// The folder
        source: PathBuf,
        #[command(flatten)]
        asking: Asking,
    },
    /// Apply what operators signed in a roster: channels, machines, labels and holds, as one act
    Apply {
        /// The roster, which 'stead release roster' made with '--acts'
        file: PathBuf,
        #[command(flatten)]
        agreement: Agreement,
        #[command(flatten)]
        listing: Listing,
    },
    /// List and verify the chain of acts of operators
    #[command(subcommand)]
    Audit(Audit),
}

#[derive(Subcommand)]
pub(crate) enum Audit {
    /// Check the chain from its beginning, and print its end
    Verify {
        /// The end that was printed before: it must still be in the chain
        #[arg(long, value_name = "DIGEST")]
        head: Option<Digest>,
        #[command(flatten)]
        asking: Asking,
    },
    /// List the acts
    List(Listing),
}

fn name(text: &str) -> Result<MachineName, String> {
    MachineName::parse(text).map_err(|why| why.to_string())
}

fn filter(text: &str) -> Result<Filter, String> {
    Filter::parse(text).map_err(|error| format!("{}; {}", error.message, error.help))
}

fn label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a label is NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl Asking {
    fn client(&self) -> Result<Client, ClientError> {
        Client::new(&self.url, &self.certificate, &self.token_file)
    }
}

impl Listing {
    /// Prints a list in its form.
    fn print<T: Serialize>(
        &self,
        out: &mut impl Write,
        name: &str,
        list: &[T],
        text: impl FnOnce(&[T]) -> String,
    ) -> Result<(), Box<dyn Error>> {
        match self.output {
            Output::Text => Ok(out.write_all(text::shown(&text(list)).as_bytes())?),
            _ => self.data(out, &json!({ "version": 1, name: list })),
        }
    }

    fn data(&self, out: &mut impl Write, value: &Value) -> Result<(), Box<dyn Error>> {
        let text = if self.output == Output::Json { pretty(value) + "\n" } else { yaml(value) };
        Ok(out.write_all(text.as_bytes())?)
    }

    /// All lines of a list, page by page.
    fn all<T: serde::de::DeserializeOwned>(&self, path: &str, filter: Option<&Filter>) -> Result<Vec<T>, ClientError> {
        self.asking.client()?.pages(path, filter, usize::MAX)
    }
}

/// Carries a command out, and prints its outcome.
pub(crate) fn ask(asked: Asked, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    match asked {
        Asked::Status(Meant { filter, listing }) => {
            let status: FleetStatus = listing.asking.client()?.one("/v1/status", filter.as_ref())?;
            match listing.output {
                Output::Text => out.write_all(text::shown(&text::status(&status)).as_bytes())?,
                _ => listing.data(out, &json!({ "version": 1, "status": status }))?,
            }
        }
        Asked::Machines(Meant { filter, listing }) => {
            let machines = listing.all::<MachineShown>("/v1/machines", filter.as_ref())?;
            listing.print(out, "machines", &machines, text::machines)?;
        }
        Asked::Show { machine, listing } => {
            let machine: MachineShown = listing.asking.client()?.one(&format!("/v1/machines/{machine}"), None)?;
            listing.data(out, &json!({ "version": 1, "machine": machine }))?;
        }
        Asked::Labels(Meant { filter, listing }) => {
            let mut machines = listing.all::<MachineShown>("/v1/machines", filter.as_ref())?;
            machines
                .retain(|machine| machine.asked.iter().any(|(name, value)| machine.labels.get(name) != Some(value)));
            listing.print(out, "machines", &machines, text::labels)?;
        }
        Asked::Drift(Meant { filter, listing }) => {
            let drift = listing.all::<DriftShown>("/v1/drift", filter.as_ref())?;
            listing.print(out, "drift", &drift, text::drift)?;
        }
        Asked::Failures(Meant { filter, listing }) => {
            let causes = listing.all::<CauseShown>("/v1/failures", filter.as_ref())?;
            listing.print(out, "failures", &causes, text::failures)?;
        }
        Asked::Reports { machine, most, listing } => {
            let path = format!("/v1/machines/{machine}/reports");
            let reports: Vec<ReportShown> = listing.asking.client()?.pages(&path, None, most)?;
            listing.print(out, "reports", &reports, text::reports)?;
        }
        Asked::Events { follow, listing } => events(follow, &listing, out)?,
        other => act(other, out)?,
    }
    Ok(())
}

/// Carries out a command that changes something, or checks what was changed.
fn act(asked: Asked, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    match asked {
        Asked::Admit(named) => stand(&named, "admitted", out)?,
        Asked::Retire(named) => stand(&named, "retired", out)?,
        Asked::Hold { seconds, why, named } => {
            let client = named.asking.client()?;
            for machine in &named.machines {
                let wanted = HoldRequest { seconds, why: why.clone() };
                out.write_all(&client.post(&format!("/v1/machines/{machine}/hold"), &wanted)?)?;
            }
        }
        Asked::Invite { name, role, seconds, asking } => {
            let request = InviteRequest { name: name.to_string(), role: role.word(), seconds };
            writeln!(out, "{}", asking.client()?.invite(&request)?.expose())?;
        }
        Asked::Accept { link, certificate } => {
            let file = if link.as_os_str() == "-" { "/dev/stdin".into() } else { link };
            writeln!(out, "{}", Client::take_account(&file, &certificate)?.expose())?;
        }
        Asked::Check { wait, meant, .. } => check(Duration::from_secs(wait), &meant, out)?,
        Asked::Token { uses, seconds, labels, asking } => {
            let labels = labels.into_iter().collect::<BTreeMap<_, _>>();
            let answer = asking.client()?.post("/v1/tokens", &TokenRequest { uses, seconds, labels })?;
            writeln!(out, "{}", serde_json::from_slice::<TokenAnswer>(&answer)?.token)?;
        }
        Asked::Publish { source, asking } => {
            asking.client()?.publish(&source)?.iter().try_for_each(|file| writeln!(out, "{file}"))?;
        }
        Asked::Apply { file, agreement, listing } => apply(&file, &agreement, &listing, out)?,
        Asked::Audit(Audit::Verify { head, asking }) => {
            let (count, head) = asking.client()?.verify_acts(head.as_ref())?;
            writeln!(out, "{count} acts, the last is {head}")?;
        }
        Asked::Audit(Audit::List(listing)) => {
            let acts: Vec<ActShown> = listing.asking.client()?.acts()?;
            listing.print(out, "acts", &acts, text::acts)?;
        }
        // The others only list.
        _ => {}
    }
    Ok(())
}

fn stand(named: &Named, standing: &str, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let client = named.asking.client()?;
    for machine in &named.machines {
        let wanted = StandingRequest { standing: standing.to_owned() };
        out.write_all(&client.post(&format!("/v1/machines/{machine}/standing"), &wanted)?)?;
    }
    Ok(())
}

/// Shows what a roster changes, asks, and applies it.
fn apply(file: &Path, agreement: &Agreement, listing: &Listing, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    // Read once: what is applied is what was shown.
    let (client, roster) = (listing.asking.client()?, read(file)?);
    let plan = client.plan(&roster)?;
    match listing.output {
        Output::Text => out.write_all(text::shown(&text::plan(&plan)).as_bytes())?,
        _ => listing.data(out, &json!({ "version": 1, "isNew": plan.is_new, "changes": plan.changes }))?,
    }
    if !plan.is_new || agreement.plan {
        return Ok(());
    }
    out.flush()?;
    if !agreement.yes {
        ask_whether_to_apply()?;
    }
    client.apply(&roster)?;
    Ok(writeln!(std::io::stderr(), "applied")?)
}

/// Asks whoever sits at the terminal; an error unless the answer is yes.
fn ask_whether_to_apply() -> Result<(), Box<dyn Error>> {
    if !std::io::stdin().is_terminal() {
        return Err("nothing was applied: without a terminal, pass '--yes'".into());
    }
    write!(std::io::stderr(), "Apply? [y/N] ")?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    let answer = answer.trim().to_ascii_lowercase();
    if answer == "y" || answer == "yes" { Ok(()) } else { Err("nothing was applied".into()) }
}

/// Asks machines to check, waits until they did, and prints which did.
fn check(wait: Duration, meant: &Meant, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let (client, began) = (meant.listing.asking.client()?, Instant::now());
    let asked = client.check(meant.filter.as_ref())?;
    let mut pause = SHORT;
    let (checks, missing) = loop {
        let checks: Vec<CheckShown> = client.pages(&format!("/v1/checks/{}", asked.number), None, usize::MAX)?;
        let missing = checks.iter().filter(|check| !check.checked).count();
        if missing == 0 || began.elapsed() >= wait {
            break (checks, missing);
        }
        thread::sleep(pause.min(wait.saturating_sub(began.elapsed())));
        pause = AGAIN.min(pause * 2);
    };
    meant.listing.print(out, "checks", &checks, text::checks)?;
    if missing > 0 {
        return Err(
            format!("{missing} of {} machines have not checked within {} s", checks.len(), wait.as_secs()).into()
        );
    }
    Ok(())
}

/// Prints events, each in a line, as they come.
fn events(follow: bool, listing: &Listing, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let client = listing.asking.client()?;
    let mut place: Option<String> = None;
    loop {
        let waits = if follow && place.is_some() { LONGEST_WAIT } else { 0 };
        let page: ListPage<EventShown> = match client.behind("/v1/events", place.as_deref(), waits) {
            Ok(page) => page,
            Err(ClientError::Unreached(_)) if follow && place.is_some() => {
                thread::sleep(AGAIN);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        for event in &page.items {
            match listing.output {
                Output::Text => out.write_all(text::shown(&text::event(event)).as_bytes())?,
                Output::Json => writeln!(out, "{}", line_of_json(event))?,
                Output::Yaml => write!(out, "---\n{}", yaml(event))?,
            }
        }
        out.flush()?;
        let is_all = page.next == place || page.items.is_empty();
        place = page.next;
        if is_all && !follow {
            return Ok(());
        }
    }
}
