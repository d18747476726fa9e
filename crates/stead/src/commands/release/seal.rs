//! `release seal`: the secrets of a release, for each machine that it is for.

use std::path::Path;

use stead_core::diag::counted;
use stead_hosts::MachineName;
use stead_release::{
    Envelope, EnvelopeAddress, LONGEST_ENVELOPE, Release, ReleaseRefusal, ReleaseSecrets, RosterMachine, Signable as _,
    Signed,
};

use super::source::{self, AnyStatement, Source, Unusable};
use super::{Failed, wrong};
use crate::input;
use crate::terminal::{complain, print};

pub(super) fn seal(file: &Path, fleet: &Path, secrets: &Path) -> Result<(), Failed> {
    let source = Source::open(fleet)?;
    let AnyStatement::Release(release) = AnyStatement::read(file)? else {
        return Err(wrong(format!("'{}' is not a release", file.display()), "secrets are those of a release"));
    };
    source.takes(&release, file)?;
    let Release { link, channel, sealed, .. } = release.statement();
    let Some(sealed) = sealed else {
        let advice = "'stead release make --secrets FILE --secrets-out FILE' makes one that has";
        return Err(wrong("the release has no secrets", advice));
    };
    let bytes = input::read_bytes(secrets, LONGEST_ENVELOPE).map_err(Unusable::from)?;
    let read = ReleaseSecrets::read(&bytes).map_err(|bad| wrong(bad.to_string(), "seal that file"))?;
    if !read.are(sealed) {
        let refusal = ReleaseRefusal::OtherSecrets;
        return Err(Unusable::Refused { path: input::shown(secrets).into(), refusal }.into());
    }
    let mut count = 0;
    for (name, machine) in machines(&release, &source)? {
        let Some(key) = &machine.sealing else {
            complain(&format!(
                "note: '{name}' has no key that secrets are sealed to; 'stead agent identity' makes one"
            ));
            continue;
        };
        let address = EnvelopeAddress::new(&release, name.clone(), key.clone());
        let envelope = Envelope::seal(address, &read);
        let envelope =
            envelope.ok_or_else(|| wrong(format!("the key of '{name}' is not one"), "make it anew there"))?;
        source::write(&source.envelope(channel, link.number, &name), envelope.to_text().as_bytes())?;
        count += 1;
    }
    let folder = source.release(channel, link.number).with_extension("sealed");
    print(&format!("{}: sealed to {}\n", folder.display(), counted(count, "machine")));
    Ok(())
}

/// The machines of the roster that a release with secrets is for: by their labels, which operators signed.
fn machines(release: &Signed<Release>, source: &Source) -> Result<Vec<(MachineName, RosterMachine)>, Failed> {
    let Some(roster) = source.roster()? else { return Ok(Vec::new()) };
    let selector = &release.statement().selector;
    let machines = roster.statement().machines.iter();
    let is_selected =
        |machine: &RosterMachine| selector.selects(&|label| machine.labels.get(label).map(String::as_str));
    let selected = machines.filter(|(_, machine)| is_selected(machine));
    Ok(selected.map(|(name, machine)| (name.clone(), machine.clone())).collect())
}

/// Names the machines that a release is for and whose envelope is not there.
pub(super) fn note_waiting(release: &Signed<Release>, source: &Source) -> Result<(), Failed> {
    let Release { link, channel, sealed, .. } = release.statement();
    if sealed.is_none() {
        return Ok(());
    }
    let waiting = machines(release, source)?.into_iter().map(|(name, _)| name);
    let is_there = |name: &MachineName| source.envelope(channel, link.number, name).is_file();
    let waiting: Vec<String> = waiting.filter(|name| !is_there(name)).map(|name| name.to_string()).collect();
    if !waiting.is_empty() {
        complain(&format!("note: waiting for its secrets: {}", waiting.join(", ")));
    }
    Ok(())
}

/// Checks that an envelope is for a machine of the roster and a release of the source. Only the machine can look into it.
pub(super) fn verify(envelope: &Envelope, file: &Path, source: &Source) -> Result<(), Failed> {
    let refused = |refusal| Failed::Source(Unusable::Refused { path: file.to_path_buf(), refusal });
    let EnvelopeAddress { channel, release, machine, .. } = &envelope.address;
    let path = source.release(channel, release.number);
    let AnyStatement::Release(found) = AnyStatement::read(&path)? else {
        return Err(refused(ReleaseRefusal::OtherRelease(release.number)));
    };
    source.takes(&found, &path)?;
    let roster = source.roster()?;
    let member = roster.as_ref().and_then(|roster| roster.statement().machines.get(machine));
    let key = member.and_then(|member| member.sealing.clone());
    let key = key.ok_or_else(|| refused(ReleaseRefusal::NotInRoster(machine.to_string())))?;
    if !machines(&found, source)?.iter().any(|(name, _)| name == machine) {
        return Err(refused(ReleaseRefusal::NotSelected(found.statement().selector.to_string())));
    }
    envelope.address.is(&EnvelopeAddress::new(&found, machine.clone(), key)).map_err(refused)?;
    print(&format!("valid: {} {}\n", Envelope::WORD, Signed::new(envelope.clone()).digest()));
    Ok(())
}
