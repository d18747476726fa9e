//! `Stead/Host`: an entry of the table of host names.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use stead_core::call::Failure;
use stead_core::claims::Extent;
use stead_core::statements::Statement;
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Plain};

use crate::declared::Declared as _;
use crate::edit::{FileLocks, Missing};
use crate::input::{FilePath, PathText, impossible};
use crate::part::lines::{InForce, entry, lines, put_entry, without_entry};
use crate::part::{Location, Part, Parts, Stated};
use crate::text::{Address, SingleLine, Word};
use crate::{ALL, BuiltIn, reply};

/// An entry of the table of host names. A name may have one entry with an IPv4 address and one with an IPv6 address. Where a
/// name has several of one kind the first one counts, and is changed.
#[resource(
    "Stead/Host",
    about = "A host name with its address, in /etc/hosts.",
    tags("host", "network", "linux"),
    capabilities = ALL,
    state,
)]
struct Properties<'a> {
    /// Where the table is.
    #[property(identity)]
    #[serde(default = "hosts")]
    #[schemars(extend("default" = HOSTS))]
    path: FilePath<'a>,
    /// The host name: the first one behind the address.
    #[property(key)]
    name: Word<'a>,
    /// The address. Required unless '_exist' is false; without it the entries of both kinds are removed.
    #[property(required)]
    ip: Option<Address<'a>>,
    /// Other names of the host, in this order. Without it they stay as they are.
    aliases: Option<Vec<Word<'a>>>,
    /// The comment behind the entry; none if empty. Without it the comment stays as it is.
    comment: Option<SingleLine<'a>>,
    /// Whether the entry exists.
    exist: bool,
}

const HOSTS: &str = "/etc/hosts";

fn hosts() -> FilePath<'static> {
    FilePath(PathText(HOSTS))
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {}

/// `Stead/Host` as it is registered.
pub(crate) fn built_in(locks: &FileLocks) -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Parts::<Host>::new(locks)))
}

fn family(ip: IpAddr) -> &'static str {
    if ip.is_ipv4() { "IPv4" } else { "IPv6" }
}

struct Host;

impl Part for Host {
    type Stated<'a> = Properties<'a>;
    const NOUN: &'static str = "entry";
    const PATH: Option<&'static str> = Some(HOSTS);

    /// A name may have an address of each family; whoever states none has both.
    fn key(stated: &Value) -> Option<String> {
        let text = |name: &str| stated.get(name).and_then(Value::as_str);
        let name = text(Properties::NAME)?.to_lowercase();
        let ip: Option<IpAddr> = text(Properties::IP).and_then(|ip| ip.parse().ok());
        Some(ip.map_or_else(|| name.clone(), |ip| format!("{name}{}{}", Extent::WITHIN, family(ip))))
    }

    fn states(input: &Plain) -> Vec<Statement> {
        let name = reply::text(input, Properties::NAME).unwrap_or_default().to_lowercase();
        // A host may have an address of each family.
        let Some(ip) = reply::text(input, Properties::IP).and_then(|ip| ip.parse::<IpAddr>().ok()) else {
            return Vec::new();
        };
        let thing = format!("the {} address of the host '{name}'", family(ip));
        let mut states = reply::states(&thing, input, &[Properties::ALIASES, Properties::COMMENT]);
        let value = Value::from(ip.to_string());
        states.extend((!reply::is_removal(input)).then_some(Statement { thing, property: Properties::IP, value }));
        states
    }

    fn list(text: &str) -> Result<Vec<(String, Object)>, Failure> {
        let mut seen = BTreeSet::new();
        let mut in_force = |entry: &Entry<'_>| seen.insert((entry.name.to_owned(), entry.ip.contains(':')));
        let entries = lines(text).into_iter().filter_map(|line| Entry::of(line.text));
        let instance = |entry: Entry<'_>| {
            let mut properties = Object::from([(Properties::NAME.to_owned(), Value::from(entry.name))]);
            properties.extend(entry.properties());
            (format!("{} {}", entry.name, entry.ip), properties)
        };
        Ok(entries.filter(|entry| in_force(entry)).map(instance).collect())
    }
}

impl<'a> Stated<'a> for Properties<'a> {
    fn location(&self, cx: &Context) -> Result<Location<'a>, Failure> {
        Ok(Location::stated(cx, self.path.0.0, Missing::create_if(true)))
    }

    fn wanted(&self) -> Object {
        let aliases = self.aliases.as_ref().map(|aliases| aliases.iter().map(|alias| alias.0).collect::<Vec<_>>());
        let stated = [
            (Properties::IP, self.ip.map(|ip| Value::from(ip.text))),
            (Properties::ALIASES, aliases.map(Value::from)),
            (Properties::COMMENT, self.comment.map(|comment| Value::from(comment.0.trim()))),
        ];
        reply::stated(stated)
    }

    fn find(&self, text: &str) -> Result<Option<Object>, Failure> {
        self.check_first(text)?;
        let line = entry(text, InForce::First, |line| self.is_own(line));
        let Some(found) = line.and_then(|line| Entry::of(line.text)) else { return Ok(None) };
        let mut properties = found.properties();
        if let Some(ip) = self.ip.filter(|ip| found.ip.parse() == Ok(ip.address)) {
            properties.insert(Properties::IP.to_owned(), Value::from(ip.text));
        }
        Ok(Some(properties))
    }

    fn put(&self, text: &str) -> Result<String, Failure> {
        let line = entry(text, InForce::First, |line| self.is_own(line));
        let former = line.as_ref().and_then(|line| Entry::of(line.text));
        let gap = former.as_ref().map_or("\t", |former| former.gap);
        let kept = || former.as_ref().map(|former| former.aliases.clone()).unwrap_or_default();
        let aliases = self.aliases.as_ref().map_or_else(kept, |aliases| aliases.iter().map(|alias| alias.0).collect());
        let comment =
            self.comment.map_or(former.as_ref().map_or("", |former| former.comment), |comment| comment.0.trim());
        let mut words = vec![self.name.0];
        words.extend(aliases);
        if !comment.is_empty() {
            words.extend(["#", comment]);
        }
        let new = [self.ip.map_or("", |ip| ip.text), gap, &words.join(" ")].concat();
        Ok(put_entry(text, InForce::First, |line| self.is_own(line), &new))
    }

    fn remove(&self, text: &str) -> Result<String, Failure> {
        Ok(without_entry(text, |line| self.is_own(line)))
    }
}

impl Properties<'_> {
    fn is_own(&self, line: &str) -> bool {
        let same_kind = |ip: &str| match (self.ip, ip.parse::<IpAddr>()) {
            (Some(own), Ok(address)) => own.address.is_ipv4() == address.is_ipv4(),
            (None, _) => true,
            (_, Err(_)) => false,
        };
        Entry::of(line).is_some_and(|entry| entry.name.eq_ignore_ascii_case(self.name.0) && same_kind(entry.ip))
    }

    /// Refuses a name that an earlier line has as an alias of another address: the earlier line counts.
    fn check_first(&self, text: &str) -> Result<(), Failure> {
        let Some(ip) = self.ip.filter(|_| self.exist) else { return Ok(()) };
        let before = lines(text).into_iter().take_while(|line| !self.is_own(line.text));
        let aliases = || self.aliases.iter().flatten().map(|alias| (Properties::ALIASES, alias.0));
        for entry in before.filter_map(|line| Entry::of(line.text)) {
            let is_other = entry
                .ip
                .parse::<IpAddr>()
                .is_ok_and(|address| address.is_ipv4() == ip.address.is_ipv4() && address != ip.address);
            let names = |name: &str| entry.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name));
            let is_taken = |(property, name): &(&str, &str)| {
                names(name) || *property == Properties::ALIASES && entry.name.eq_ignore_ascii_case(name)
            };
            let mut stated = std::iter::once((Properties::NAME, self.name.0)).chain(aliases());
            if let Some((property, name)) = stated.find(is_taken).filter(|_| is_other) {
                let of = format!("'{name}' is already a name of '{}' ({}) on an earlier line", entry.name, entry.ip);
                let hint = format!("remove it there or manage '{}'", entry.name);
                return Err(impossible(property, format!("{of}, which wins; {hint}")));
            }
        }
        Ok(())
    }
}

/// A line of the table.
struct Entry<'t> {
    ip: &'t str,
    /// What is between address and name.
    gap: &'t str,
    name: &'t str,
    aliases: Vec<&'t str>,
    comment: &'t str,
}

impl<'t> Entry<'t> {
    fn of(line: &'t str) -> Option<Self> {
        let (fields, comment) = line.split_once('#').unwrap_or((line, ""));
        let mut words = fields.split_whitespace();
        let (ip, name) = (words.next()?, words.next()?);
        let behind = fields.trim_start().get(ip.len()..)?;
        let gap = behind.get(..behind.len() - behind.trim_start().len())?;
        Some(Self { ip, gap, name, aliases: words.collect(), comment: comment.trim() })
    }

    fn properties(&self) -> Object {
        let mut properties = Object::from([
            (Properties::IP.to_owned(), Value::from(self.ip)),
            (Properties::ALIASES.to_owned(), Value::from(self.aliases.clone())),
        ]);
        properties.insert(Properties::COMMENT.to_owned(), Value::from(self.comment));
        properties
    }
}
