//! What differs between this shell and the service of the agent, for the programs that they start.

use std::collections::BTreeSet;
use std::io;

use stead_system::process::Conditions;

use super::{Line, Verdict};

const UNIT: &str = "stead-agent.service";

/// The `PATH` and the umask that systemd gives to services where nothing else is set.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const DEFAULT_UMASK: &str = "0022";

/// A line for each difference, or one that says that there is none.
pub(super) fn lines() -> Vec<Line> {
    let compared = Conditions::of_this_process().and_then(|own| Ok((own, Conditions::of_service(UNIT)?)));
    match compared {
        Ok((own, Some(service))) => compare(&own, &service, "the agent"),
        Ok((own, None)) => compare(&own, &usual(&own), "a service"),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let text = "what the agent gives to programs is shown to root alone";
            vec![Line::new(Verdict::Note, "service", text).with_help("run it with sudo")]
        }
        Err(error) => vec![Line::new(Verdict::Note, "service", format!("cannot be compared with this shell: {error}"))],
    }
}

/// Returns the conditions of a service that nobody has configured. Its limits are not known: those of this process are used.
fn usual(own: &Conditions) -> Conditions {
    let of_account =
        ["HOME", "USER", "LOGNAME"].into_iter().filter_map(|name| Some((name, own.variables.get(name)?.as_str())));
    let variables = of_account.chain([("PATH", DEFAULT_PATH)]).map(|(name, value)| (name.to_owned(), value.to_owned()));
    Conditions { variables: variables.collect(), umask: DEFAULT_UMASK.to_owned(), limits: own.limits.clone() }
}

fn compare(own: &Conditions, service: &Conditions, whose: &str) -> Vec<Line> {
    let names: BTreeSet<&String> = own.variables.keys().chain(service.variables.keys()).collect();
    let variables = names.into_iter().filter_map(|name| {
        let pair = (own.variables.get(name), service.variables.get(name));
        (pair.0 != pair.1).then(|| (name.clone(), shown(name, pair.0), shown(name, pair.1)))
    });
    let umask = (own.umask != service.umask).then(|| ("umask".to_owned(), own.umask.clone(), service.umask.clone()));
    let limits = own.limits.iter().filter_map(|(name, limit)| {
        let other = service.limits.get(name).filter(|other| *other != limit)?;
        Some((name.clone(), limit.clone(), other.clone()))
    });
    let differing: Vec<_> = variables.chain(umask).chain(limits).collect();
    if differing.is_empty() {
        return vec![Line::new(Verdict::Ok, "service", format!("programs get from {whose} what they get here"))];
    }
    let last = differing.len() - 1;
    let line = |(at, (name, own, other)): (usize, (String, String, String))| {
        let line =
            Line::new(Verdict::Note, "service", format!("{name} is {own} here, and {other} for programs of {whose}"));
        let help = "try a document as the agent runs it with `systemd-run --pipe --wait stead plan FILE`; \
                    `systemctl edit stead-agent` takes Environment=, UMask= and limits";
        if at == last { line.with_help(help) } else { line }
    };
    differing.into_iter().enumerate().map(line).collect()
}

/// Addresses of proxies may hold passwords.
fn shown(name: &str, value: Option<&String>) -> String {
    match value {
        None => "not set".to_owned(),
        Some(_) if name.to_ascii_lowercase().ends_with("_proxy") => "set".to_owned(),
        Some(value) => format!("'{value}'"),
    }
}
