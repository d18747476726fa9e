//! The kinds of statements: a root, lists of signers, rosters and releases.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stead_hosts::{Filter, FilterError, MachineName};

use crate::key::PublicKey;
use crate::machine::SealingKey;
use crate::name::{BadFleetName, Digest, Name};
use crate::secrets::SealedParameters;
use crate::signed::{LONGEST, Lines, MOST_SIGNATURES, Signable, StatementLines};

/// The longest text of the parameters of a release, in bytes.
pub const LONGEST_PARAMETERS: usize = 256 << 10;
/// The greatest number of a statement: whoever reads JSON has it exactly, and one more is still a number.
const GREATEST_NUMBER: u64 = (1 << 53) - 1;
/// The longest reason of a hold, in bytes.
const LONGEST_REASON: usize = 1000;
/// How many labels a machine of a roster may have.
const MOST_LABELS: usize = 64;
/// The longest name or value of a label, in characters.
const LONGEST_LABEL: usize = 255;

/// Who may sign, and how many of them must.
///
/// Guarantees: 1 to 32 signers, of whom at least one must sign, and at least two where there are two.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signers {
    threshold: u32,
    keys: BTreeSet<PublicKey>,
}

/// The reason why keys and a threshold are not a list of signers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadSigners {
    /// There are none, or too many.
    #[error("a list has 1 to {MOST_SIGNATURES} signers")]
    Count,
    /// The threshold is not one of the list.
    #[error("the threshold must be 1 for one signer, and 2 up to the number of signers for more")]
    Threshold,
}

impl Signers {
    /// A list of signers of whom `threshold` must sign.
    pub fn new(keys: BTreeSet<PublicKey>, threshold: u32) -> Result<Self, BadSigners> {
        if keys.is_empty() || keys.len() > MOST_SIGNATURES {
            return Err(BadSigners::Count);
        }
        let is_within = threshold as usize <= keys.len() && threshold >= if keys.len() == 1 { 1 } else { 2 };
        if is_within { Ok(Self { threshold, keys }) } else { Err(BadSigners::Threshold) }
    }

    /// How many of them must sign.
    pub fn threshold(&self) -> usize {
        self.threshold as usize
    }

    /// Their keys.
    pub fn keys(&self) -> &BTreeSet<PublicKey> {
        &self.keys
    }

    fn write(&self, lines: &mut Lines) {
        lines.put("threshold", self.threshold);
        self.keys.iter().for_each(|key| lines.put("signer", key));
    }

    fn read(lines: &mut StatementLines<'_>) -> Option<Self> {
        let threshold = lines.value("threshold")?;
        let mut keys = BTreeSet::new();
        while keys.len() <= MOST_SIGNATURES
            && let Some(key) = lines.parsed("signer", |key| PublicKey::parse(key).ok())
        {
            keys.insert(key);
        }
        Self::new(keys, threshold).ok()
    }
}

/// The beginning of a fleet: its name and its first signers. A machine that joins is given its digest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Root {
    /// The name of the fleet among operators.
    pub name: Name,
    /// Who signs until another list is signed.
    pub signers: Signers,
}

impl Signable for Root {
    const PURPOSE: &'static str = "stead-root";
    const WORD: &'static str = "root statement";

    fn write(&self, lines: &mut Lines) {
        lines.put("name", &self.name);
        self.signers.write(lines);
    }

    fn read(lines: &mut StatementLines<'_>) -> Option<Self> {
        Some(Self { name: lines.value("name")?, signers: Signers::read(lines)? })
    }
}

/// The place of a statement in the fleet, and in a chain of statements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChainLink {
    /// The digest of the root statement.
    pub fleet: Digest,
    /// One more than the number of the parent; the first of a chain has 1.
    pub number: u64,
    /// The digest of the statement before; that of the root statement for the first.
    pub parent: Digest,
    /// The digest of the statement whose list of signers signs this one: the root statement, or a later list.
    pub signers: Digest,
    /// When it was made, by the clock of the operator who made it.
    pub made: Timestamp,
}

impl ChainLink {
    fn write(&self, lines: &mut Lines) {
        lines.put("fleet", &self.fleet);
        lines.put("number", self.number);
        lines.put("parent", &self.parent);
        lines.put("signers", &self.signers);
        lines.put("made", self.made);
    }

    fn read(lines: &mut StatementLines<'_>) -> Option<Self> {
        let is_one = |number: &u64| (1..=GREATEST_NUMBER).contains(number);
        let (fleet, number) = (lines.value("fleet")?, lines.parsed("number", |text| text.parse().ok().filter(is_one))?);
        let (parent, signers, made) = (lines.value("parent")?, lines.value("signers")?, lines.value("made")?);
        Some(Self { fleet, number, parent, signers, made })
    }
}

/// A statement of a chain, by its number and digest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Numbered {
    /// Its number.
    pub number: u64,
    /// Its digest.
    pub digest: Digest,
}

impl fmt::Display for Numbered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.number, self.digest)
    }
}

impl FromStr for Numbered {
    type Err = BadFleetName;

    fn from_str(text: &str) -> Result<Self, BadFleetName> {
        let (number, digest) = text.split_once(' ').ok_or(BadFleetName::Numbered)?;
        let number = number.parse().ok().filter(|number| *number <= GREATEST_NUMBER);
        Ok(Self { number: number.ok_or(BadFleetName::Numbered)?, digest: digest.parse()? })
    }
}

fn write_channels(lines: &mut Lines, word: &str, channels: &BTreeMap<Name, Numbered>) {
    for (channel, release) in channels {
        lines.put(word, format_args!("{channel} {release}"));
    }
}

fn read_channels(lines: &mut StatementLines<'_>, word: &str) -> BTreeMap<Name, Numbered> {
    let parse = |line: &str| {
        let (channel, release) = line.split_once(' ')?;
        Some((channel.parse().ok()?, release.parse().ok()?))
    };
    std::iter::from_fn(|| lines.parsed(word, parse)).collect()
}

/// Another list of signers, signed by the former one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Succession {
    /// Its place in the chain of lists, where the parent and the signers are the former list.
    pub link: ChainLink,
    /// The last release of each channel that the former lists sign: what comes behind it is signed by the new list.
    pub last: BTreeMap<Name, Numbered>,
    /// The last roster that the former lists sign, if there was one: the next one is made of it.
    pub roster: Option<Numbered>,
    /// Who signs from here on.
    pub signers: Signers,
}

impl Signable for Succession {
    const PURPOSE: &'static str = "stead-signers";
    const WORD: &'static str = "list of signers";

    fn write(&self, lines: &mut Lines) {
        self.link.write(lines);
        write_channels(lines, "last", &self.last);
        self.roster.iter().for_each(|roster| lines.put("roster", roster));
        self.signers.write(lines);
    }

    fn read(lines: &mut StatementLines<'_>) -> Option<Self> {
        let link = ChainLink::read(lines).filter(|link| link.signers == link.parent)?;
        let (last, roster) = (read_channels(lines, "last"), lines.value("roster"));
        Some(Self { link, last, roster, signers: Signers::read(lines)? })
    }
}

/// A machine as operators know it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RosterMachine {
    /// The key that the machine made for itself, and signs with.
    pub key: PublicKey,
    /// The key that secrets are sealed to, if it made one.
    pub sealing: Option<SealingKey>,
    /// Labels that select releases, by their names.
    pub labels: BTreeMap<String, String>,
    /// Until when it stays at the release that it has, if operators hold it.
    pub hold: Option<RosterHold>,
}

/// A machine stays at its release for a while.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RosterHold {
    until: Timestamp,
    why: String,
}

impl RosterHold {
    /// A hold until a time. `None` if the reason is not one line of up to 1,000 bytes.
    pub fn new(until: Timestamp, why: String) -> Option<Self> {
        let is_line = !why.is_empty() && why.len() <= LONGEST_REASON && !why.chars().any(char::is_control);
        is_line.then_some(Self { until, why })
    }

    /// Until when.
    pub fn until(&self) -> Timestamp {
        self.until
    }

    /// Why.
    pub fn why(&self) -> &str {
        &self.why
    }
}

impl fmt::Display for RosterHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.until, self.why)
    }
}

/// The machines of a fleet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Roster {
    /// Its place in the chain of rosters.
    pub link: ChainLink,
    /// The last act of operators that its signers saw, if it is to be the next act.
    pub acts: Option<Digest>,
    /// The machines by their names. No two have a key in common.
    pub machines: BTreeMap<MachineName, RosterMachine>,
    /// For each channel, the release that machines begin with: none takes an older one.
    pub floors: BTreeMap<Name, Numbered>,
}

impl Signable for Roster {
    const PURPOSE: &'static str = "stead-roster";
    const WORD: &'static str = "roster";
    const LONGEST: usize = LONGEST;

    fn write(&self, lines: &mut Lines) {
        self.link.write(lines);
        self.acts.iter().for_each(|act| lines.put("acts", act));
        write_channels(lines, "floor", &self.floors);
        for (name, member) in &self.machines {
            lines.put("machine", format_args!("{name} {}", member.key));
            member.sealing.iter().for_each(|key| lines.put("sealing", key));
            member.labels.iter().for_each(|(label, value)| lines.put("label", format_args!("{label} {value}")));
            member.hold.iter().for_each(|hold| lines.put("hold", hold));
        }
    }

    fn read(lines: &mut StatementLines<'_>) -> Option<Self> {
        let (link, acts) = (ChainLink::read(lines)?, lines.value("acts"));
        let floors = read_channels(lines, "floor");
        let (mut machines, mut keys, mut sealing_keys) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        let mut machine = |line: &str| {
            let (name, key) = line.split_once(' ')?;
            let key = PublicKey::parse(key).ok().filter(|key| keys.insert(key.clone()))?;
            Some((MachineName::parse(name).ok()?, key))
        };
        while let Some((name, key)) = lines.parsed("machine", &mut machine) {
            let sealing: Option<SealingKey> = lines.value("sealing");
            let is_own = sealing.as_ref().is_none_or(|key| sealing_keys.insert(key.clone()));
            let mut labels = BTreeMap::new();
            while labels.len() <= MOST_LABELS
                && let Some((label, value)) = lines.parsed("label", |line| line.split_once(' '))
            {
                labels.insert(label.to_owned(), value.to_owned());
            }
            let labels = Some(labels).filter(|labels| is_own && are_labels(labels))?;
            let hold = lines.parsed("hold", |line| {
                let (until, why) = line.split_once(' ')?;
                RosterHold::new(until.parse().ok()?, why.to_owned())
            });
            machines.insert(name, RosterMachine { key, sealing, labels, hold });
        }
        Some(Self { link, acts, machines, floors })
    }
}

/// Returns true if these can be the labels of a machine: names as filters have them, values of one line.
pub fn are_labels(labels: &BTreeMap<String, String>) -> bool {
    let is_name = |name: &str| name != "all" && matches!(Filter::parse(name), Ok(Filter::Has(read)) if read == name);
    let is_value = |value: &str| value.chars().count() <= LONGEST_LABEL && !value.chars().any(char::is_control);
    labels.len() <= MOST_LABELS
        && labels.iter().all(|(name, value)| name.len() <= LONGEST_LABEL && is_name(name) && is_value(value))
}

/// Which machines a release is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Selector {
    /// Every machine of the fleet, which is said as `all`.
    All,
    /// Those that a filter selects.
    Where(Filter),
}

impl Selector {
    /// Calls `see` with the name of each label that it is about.
    pub fn labels<'s>(&'s self, see: &mut impl FnMut(&'s str)) {
        if let Self::Where(filter) = self {
            filter.labels(see);
        }
    }

    /// Returns whether a machine is meant; `label` gives its labels.
    pub fn selects<'l>(&self, label: &impl Fn(&str) -> Option<&'l str>) -> bool {
        match self {
            Self::All => true,
            Self::Where(filter) => filter.matches(label),
        }
    }
}

impl FromStr for Selector {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        if text == "all" { Ok(Self::All) } else { Filter::parse(text).map(Self::Where) }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Where(filter) => write!(f, "{filter}"),
        }
    }
}

/// A bundle that is made public for a channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Release {
    /// Its place in the chain of its channel.
    pub link: ChainLink,
    /// The channel.
    pub channel: Name,
    /// When it is no longer staged. What was staged before is kept.
    pub expires: Timestamp,
    /// Which machines it is for.
    pub selector: Selector,
    /// The name of the bundle.
    pub bundle: Digest,
    /// The parameters of its document that are not secret. They are in plain text.
    pub parameters: Map<String, Value>,
    /// The parameters that are secret, if there are any.
    pub sealed: Option<SealedParameters>,
}

impl Signable for Release {
    const PURPOSE: &'static str = "stead-release";
    const WORD: &'static str = "release";

    fn write(&self, lines: &mut Lines) {
        self.link.write(lines);
        lines.put("channel", &self.channel);
        lines.put("expires", self.expires);
        lines.put("where", &self.selector);
        lines.put("bundle", &self.bundle);
        lines.put("parameters", Value::Object(self.parameters.clone()));
        self.sealed.iter().for_each(|sealed| lines.put("sealed", sealed));
    }

    fn read(lines: &mut StatementLines<'_>) -> Option<Self> {
        let link = ChainLink::read(lines)?;
        let channel = lines.value("channel")?;
        let expires = lines.parsed("expires", |text| text.parse().ok().filter(|expires| *expires > link.made))?;
        let (selector, bundle) = (lines.value("where")?, lines.value("bundle")?);
        // The values of a long text would take many times its length, and nothing is signed yet.
        let is_short = |text: &&str| text.len() <= LONGEST_PARAMETERS;
        let parse = |text| Some(text).filter(is_short).and_then(|text| serde_json::from_str(text).ok());
        let parameters = lines.parsed("parameters", parse)?;
        let sealed = lines.value("sealed");
        Some(Self { link, channel, expires, selector, bundle, parameters, sealed })
    }
}
