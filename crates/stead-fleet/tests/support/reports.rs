//! Real reports of agents, as other machines of other fleets send them at other times: `corpus/fleet/reports`.

#![allow(dead_code, reason = "not every test that has this needs all of it")]

use std::path::Path;

use jiff::Timestamp;
use regex::{Captures, Regex};
use stead_hosts::MachineName;
use stead_release::{Digest, MachineReport, Numbered, Signed};

use crate::random::Random;

/// The parts that differ from report to report in all of them: digests, numbers of machines and boots, times, jobs and durations.
const DIFFERS: &str = concat!(
    r"sha256-[0-9a-f]{64}",
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z",
    r"|\d{8}T\d{6}\.\d{3}Z-[0-9a-f]{8}",
    r"|PT[0-9HM]*\d+\.\d+S",
);

/// Reports of a folder: those of `trained` made the dictionary of the store, and those of `others` did not.
pub(crate) struct RealReports {
    reports: Vec<MachineReport>,
    differs: Regex,
}

impl RealReports {
    pub(crate) fn read(folder: &str) -> Self {
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/fleet/reports").join(folder);
        let mut files: Vec<_> = std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let report = |file| Signed::<MachineReport>::parse(&std::fs::read(file).unwrap()).unwrap().statement().clone();
        Self { reports: files.into_iter().map(report).collect(), differs: Regex::new(DIFFERS).unwrap() }
    }

    pub(crate) fn len(&self) -> usize {
        self.reports.len()
    }

    /// One of them, of another machine and at another time. Releases are those of the day.
    pub(crate) fn of(
        &self,
        which: usize,
        fleet: &Digest,
        machine: &MachineName,
        at: Timestamp,
        random: &mut Random,
    ) -> MachineReport {
        let first = &self.reports[which % self.reports.len()];
        let day = at.as_second() / 86_400;
        let digest = |text: &str| {
            let is_fleet = text == first.fleet.as_str();
            if is_fleet { fleet.clone() } else { Digest::of(format!("{fleet} {day} {text}").as_bytes()) }
        };
        let renewed = |found: &Captures<'_>| {
            let text = &found[0];
            if text.starts_with("sha256-") {
                digest(text).to_string()
            } else if text.starts_with("PT") {
                renewed_digits(text, text.find('.').unwrap(), random)
            } else if text.contains('T') && text.ends_with('Z') {
                let fraction = text.find('.').map_or("Z", |dot| &text[dot..]);
                let second = at.strftime("%Y-%m-%dT%H:%M:%S").to_string();
                renewed_digits(&format!("{second}{fraction}"), second.len(), random)
            } else if text.contains('T') {
                format!("{}.{:03}Z-{:08x}", at.strftime("%Y%m%dT%H%M%S"), random.below(1000), random.next() >> 32)
            } else {
                let hex = Digest::of(format!("{machine} {text}").as_bytes()).to_string();
                let hex = hex.trim_start_matches("sha256-");
                format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..32])
            }
        };
        let text = first.report.to_string();
        let text = self.differs.replace_all(&text, renewed);
        let text = text.replace(&format!("\"{}\"", first.machine), &format!("\"{machine}\""));
        let release = first.release.as_ref().map(|(channel, release)| {
            (channel.clone(), Numbered { number: release.number, digest: digest(release.digest.as_str()) })
        });
        MachineReport {
            fleet: fleet.clone(),
            machine: machine.clone(),
            number: u64::try_from(at.as_millisecond()).unwrap(),
            ended: at,
            release,
            report: serde_json::from_str(&text).unwrap(),
        }
    }
}

/// The text with other digits behind a place.
fn renewed_digits(text: &str, from: usize, random: &mut Random) -> String {
    let (start, end) = text.split_at(from);
    let digit =
        |c: char| if c.is_ascii_digit() { char::from(b'0' + u8::try_from(random.below(10)).unwrap()) } else { c };
    format!("{start}{}", end.chars().map(digit).collect::<String>())
}
