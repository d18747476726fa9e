//! What a machine reports, as a file that whoever has the roster can check.

use jiff::Timestamp;
use serde_json::Value;
use stead_hosts::MachineName;

use crate::key::PublicKey;
use crate::name::{Digest, Name};
use crate::refusal::ReleaseRefusal;
use crate::signed::{LONGEST_STATEMENT, Lines, Signable, Signed, StatementLines};
use crate::statements::{Numbered, Roster};

/// The longest text of a report, in bytes.
const LONGEST: usize = 4 << 20;

/// The report of a job, as the machine signs it.
#[derive(Clone, PartialEq, Debug)]
pub struct MachineReport {
    /// The digest of the root statement.
    pub fleet: Digest,
    /// The name of the machine in the roster.
    pub machine: MachineName,
    /// Its number among the reports of the machine: a later one has a greater one.
    pub number: u64,
    /// When the job ended, by the clock of the machine.
    pub ended: Timestamp,
    /// The release that the job was over, unless its document is not from one, or an older one.
    pub release: Option<(Name, Numbered)>,
    /// The report, an object.
    pub report: Value,
}

impl MachineReport {
    /// The name of its file: whatever is delivered twice is one report.
    pub fn file_name(&self) -> String {
        format!("{}-{}.report", self.machine, self.number)
    }

    /// Returns true if it is not longer than others read it.
    pub fn is_short(&self) -> bool {
        self.report.to_string().len() <= LONGEST
    }

    /// Reads a report of a machine of a fleet, signed by the key that the roster has for that name.
    pub fn read(bytes: &[u8], fleet: &Digest, roster: &Roster) -> Result<Signed<Self>, ReleaseRefusal> {
        let signed = Signed::<Self>::parse(bytes)?;
        let name = &signed.statement().machine;
        let machine = roster.machines.get(name).ok_or_else(|| ReleaseRefusal::NotInRoster(name.to_string()))?;
        signed.is_report_of(fleet, name, &machine.key)?;
        Ok(signed)
    }
}

impl Signed<MachineReport> {
    /// Checks that it is of a machine of a fleet, by its name and its key.
    pub fn is_report_of(&self, fleet: &Digest, name: &MachineName, key: &PublicKey) -> Result<(), ReleaseRefusal> {
        let MachineReport { fleet: stated, machine, .. } = self.statement();
        if stated != fleet {
            return Err(ReleaseRefusal::Fleet(stated.clone()));
        }
        if machine != name {
            return Err(ReleaseRefusal::OtherMachine(machine.to_string()));
        }
        self.is_by(key)
    }
}

impl Signable for MachineReport {
    const PURPOSE: &'static str = "stead-report";
    const WORD: &'static str = "report";
    const LONGEST: usize = LONGEST + LONGEST_STATEMENT;

    fn write(&self, lines: &mut Lines) {
        lines.put("fleet", &self.fleet);
        lines.put("machine", &self.machine);
        lines.put("number", self.number);
        lines.put("ended", self.ended);
        if let Some((channel, release)) = &self.release {
            lines.put("release", format_args!("{channel} {release}"));
        }
        lines.put("report", &self.report);
    }

    fn read(lines: &mut StatementLines<'_>) -> Option<Self> {
        let (fleet, machine) = (lines.value("fleet")?, lines.parsed("machine", |name| MachineName::parse(name).ok())?);
        let (number, ended) = (lines.value("number")?, lines.value("ended")?);
        let release = lines.parsed("release", |line| {
            let (channel, release) = line.split_once(' ')?;
            Some((channel.parse().ok()?, release.parse().ok()?))
        });
        let parse = |text: &str| serde_json::from_str(text).ok().filter(Value::is_object);
        let report = lines.parsed("report", |text| Some(text).filter(|text| text.len() <= LONGEST).and_then(parse))?;
        Some(Self { fleet, machine, number, ended, release, report })
    }
}
