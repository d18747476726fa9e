//! The commands of operators: they ask a controller, wherever it is.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use stead_fleet::client::Client;
use stead_hosts::{Filter, MachineName};
use stead_protocol::{HoldRequest, MachineShown, StandingRequest, TokenAnswer, TokenRequest};
use stead_release::Digest;

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

#[derive(Subcommand)]
pub(crate) enum Asked {
    /// List machines: their names, standing, release, and when they were heard
    Machines {
        /// Which ones, as in 'role=web and standing=waiting'; 'name', 'standing' and 'channel' are labels as well
        #[arg(value_parser = filter)]
        filter: Option<Filter>,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        asking: Asking,
    },
    /// Admit a machine that waits
    Admit {
        /// Its name
        #[arg(value_parser = name)]
        machine: MachineName,
        #[command(flatten)]
        asking: Asking,
    },
    /// Refuse a machine, and its key, for ever
    Retire {
        /// Its name
        #[arg(value_parser = name)]
        machine: MachineName,
        #[command(flatten)]
        asking: Asking,
    },
    /// Leave a machine as it is for a while
    Hold {
        /// Its name
        #[arg(value_parser = name)]
        machine: MachineName,
        /// For how many seconds from now; 0 lets it go
        #[arg(long = "for", value_name = "SECONDS")]
        seconds: u64,
        /// Why
        #[arg(long, value_name = "TEXT")]
        why: String,
        #[command(flatten)]
        asking: Asking,
    },
    /// Make a token with which machines join, and print it once
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
    /// Check the chain of all acts of operators, and print its end
    Audit {
        /// The end that was printed before: it must still be in the chain
        #[arg(long, value_name = "DIGEST")]
        head: Option<Digest>,
        #[command(flatten)]
        asking: Asking,
    },
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
    fn client(&self) -> Result<Client, Box<dyn Error>> {
        Ok(Client::new(&self.url, &self.certificate, &self.token_file)?)
    }
}

/// Carries a command out, and prints its outcome.
pub(crate) fn ask(asked: Asked, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    match asked {
        Asked::Machines { filter, json, asking } => {
            let mut machines: Vec<MachineShown> = asking.client()?.get("/v1/machines")?;
            machines.retain(|machine| filter.as_ref().is_none_or(|filter| is_meant(filter, machine)));
            if json {
                writeln!(out, "{}", serde_json::to_string_pretty(&machines)?)?;
            } else {
                machines.iter().try_for_each(|machine| writeln!(out, "{}", line(machine)))?;
            }
        }
        Asked::Admit { machine, asking } => stand(&asking, &machine, "admitted", out)?,
        Asked::Retire { machine, asking } => stand(&asking, &machine, "retired", out)?,
        Asked::Hold { machine, seconds, why, asking } => {
            let said = asking.client()?.post(&format!("/v1/machines/{machine}/hold"), &HoldRequest { seconds, why })?;
            out.write_all(&said)?;
        }
        Asked::Token { uses, seconds, labels, asking } => {
            let labels = labels.into_iter().collect::<BTreeMap<_, _>>();
            let answer = asking.client()?.post("/v1/tokens", &TokenRequest { uses, seconds, labels })?;
            writeln!(out, "{}", serde_json::from_slice::<TokenAnswer>(&answer)?.token)?;
        }
        Asked::Publish { source, asking } => {
            asking.client()?.publish(&source)?.iter().try_for_each(|file| writeln!(out, "{file}"))?;
        }
        Asked::Audit { head, asking } => {
            let (count, head) = asking.client()?.verify_acts(head.as_ref())?;
            writeln!(out, "{count} acts, the last is {head}")?;
        }
    }
    Ok(())
}

fn stand(asking: &Asking, machine: &MachineName, standing: &str, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let message = StandingRequest { standing: standing.to_owned() };
    let said = asking.client()?.post(&format!("/v1/machines/{machine}/standing"), &message)?;
    Ok(out.write_all(&said)?)
}

/// Returns whether a filter means a machine, of which the state is a label as well.
fn is_meant(filter: &Filter, machine: &MachineShown) -> bool {
    filter.matches(&|label: &str| match label {
        "name" => Some(&*machine.name),
        "standing" => Some(&*machine.standing),
        "channel" => machine.desired.as_ref().map(|(channel, _)| &**channel),
        label => machine.labels.get(label).map(String::as_str),
    })
}

/// A machine in one line. What it said itself is shown as JSON alone.
fn line(machine: &MachineShown) -> String {
    let desired = machine.desired.as_ref().map_or("-".to_owned(), |(channel, number)| format!("{channel}/{number}"));
    let heard = machine.heard.and_then(|at| jiff::Timestamp::from_millisecond(i64::try_from(at).ok()?).ok());
    let heard = heard.map_or("never".to_owned(), |at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    let held = if machine.held.is_some() { " held" } else { "" };
    format!("{} {} {desired} {heard}{held}", machine.name, machine.standing)
}
