//! Reports as the fleet of a machine gets them.

use serde_json::Value as Json;
use stead_hosts::MachineName;
use stead_release::{MachineReport, Numbered};

use crate::control::{ReleaseStatus, SourceStatus};
use crate::reports::Stored;

/// A report as it is signed; `None` if its job followed no fleet.
pub(super) fn machine_report(stored: Stored) -> Option<MachineReport> {
    let Stored { number, at, report, .. } = stored;
    let source: SourceStatus = serde_json::from_value(report.get("source")?.clone()).ok()?;
    let ReleaseStatus { root, machine, staged, .. } = source.releases?;
    let generation = report.pointer("/job/generation").and_then(Json::as_u64);
    let staged = staged.filter(|staged| Some(staged.generation) == generation);
    let release = staged.map(|staged| (staged.channel, Numbered { number: staged.number, digest: staged.digest }));
    let (fleet, machine) = (root.parse().ok()?, MachineName::parse(&machine).ok()?);
    Some(MachineReport { fleet, machine, number, ended: at, release, report })
}
