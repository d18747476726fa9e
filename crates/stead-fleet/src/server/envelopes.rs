//! Secrets of releases, sealed to machines: each is served to its machine alone.

use hyper::StatusCode;
use stead_hosts::MachineName;
use stead_release::{Envelope, EnvelopeAddress, Name, Release, ReleaseRefusal, Roster, Signed};

use super::Controller;
use super::machines::Machine;
use super::operators::shown_refusal;
use super::reply::{Reply, bad, bytes_of, json};
use super::requests::{Answered, Asked, refused};
use crate::store::{Chain, FleetStore, FleetStoreError, StoreWrite, StoredEnvelope, Written};
use stead_protocol::PublishAnswer;

impl Controller {
    /// The secrets of a release for the machine that asks. The path names no machine, so that none asks for those of another.
    pub(super) async fn envelope(&self, machine: &Machine, asked: &Asked) -> Answered {
        let not_found = || refused(StatusCode::NOT_FOUND, "not found");
        let (channel, number) = release(asked).ok_or_else(not_found)?;
        let name = machine.row().name.clone();
        let found = self.read(move |store| store.envelope(&channel, number, &name)).await?;
        Ok(bytes_of("text/plain; charset=utf-8", found.ok_or_else(not_found)?))
    }

    /// Takes in secrets that were sealed to a machine of the roster, if it could open them.
    pub(super) async fn store_envelope(&self, asked: &Asked) -> Answered {
        let (channel, number) = release(asked).ok_or_else(|| Box::new(bad("that is not a release")))?;
        let machine = asked.name(2)?;
        let envelope = Envelope::parse(&asked.body).map_err(|why| Box::new(bad(why.to_string())))?;
        let stored = StoredEnvelope { channel, number, machine, body: asked.body.clone() };
        let wanted = stored.clone();
        let outcome = self.read(move |store| checked(store, &wanted, &envelope)).await?;
        outcome?;
        let digest = stead_release::Digest::of(&stored.body).to_string();
        let written = self.write(vec![StoreWrite::Envelope(stored)]).await?;
        Ok(json(&PublishAnswer { digest, is_new: written == [Written::New] }))
    }
}

fn release(asked: &Asked) -> Option<(Name, u64)> {
    Some((asked.part(0).parse().ok()?, asked.part(1).parse().ok().filter(|number| *number > 0)?))
}

/// Checks that an envelope is for a release that is published, and for a machine of the roster with its key there.
fn checked(
    store: &mut FleetStore,
    wanted: &StoredEnvelope,
    envelope: &Envelope,
) -> Result<Result<(), Box<Reply>>, FleetStoreError> {
    let StoredEnvelope { channel, number, machine, .. } = wanted;
    let chain = Chain::Channel(channel.clone());
    let release = store.statements(&chain, number - 1, 1)?.pop().filter(|found| found.number == *number);
    let roster = store.statements(&Chain::Roster, 0, 1)?.pop();
    let unknown = |what| Ok(Err(refused(StatusCode::CONFLICT, what)));
    let Some(release) = release.and_then(|found| Signed::<Release>::parse(&found.body).ok()) else {
        return unknown("there is not such a release: publish it first");
    };
    if release.statement().sealed.is_none() {
        return unknown("the release has no secrets");
    }
    let Some(key) = roster.and_then(|found| sealing_key(&found.body, machine)) else {
        return unknown("the roster has no key of that machine to seal to: publish the roster first");
    };
    let address = EnvelopeAddress::new(&release, machine.clone(), key);
    Ok(envelope.address.is(&address).map_err(|refusal: ReleaseRefusal| shown_refusal(&refusal)))
}

fn sealing_key(roster: &[u8], machine: &MachineName) -> Option<stead_release::SealingKey> {
    Signed::<Roster>::parse(roster).ok()?.statement().machines.get(machine)?.sealing.clone()
}
