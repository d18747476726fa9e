//! What a file states, and whose signatures it has.

use serde_json::{Value as Json, json};
use stead_core::visible::visible_but;
use stead_release::{
    ChainLink, Digest, EnvelopeAddress, MachineReport, Numbered, PublicIdentity, Release, Roster, Signable, Signature,
    Signed, Signers, Succession,
};

use super::source::AnyStatement;
use crate::terminal::{Output, data_as, print};

/// Shows a file, without checking anything.
pub(super) fn show(any: &AnyStatement, output: Output) {
    match output {
        Output::Text => {
            let unsigned;
            let (bytes, signatures) = match any {
                AnyStatement::Envelope(envelope) => {
                    unsigned = envelope.to_text();
                    (unsigned.as_bytes(), [].as_slice())
                }
                AnyStatement::Root(signed) => (signed.bytes(), signed.signatures()),
                AnyStatement::Signers(signed) => (signed.bytes(), signed.signatures()),
                AnyStatement::Roster(signed) => (signed.bytes(), signed.signatures()),
                AnyStatement::Release(signed) => (signed.bytes(), signed.signatures()),
                AnyStatement::Identity(signed) => (signed.bytes(), signed.signatures()),
                AnyStatement::Report(signed) => (signed.bytes(), signed.signatures()),
            };
            print(&visible_but(&String::from_utf8_lossy(bytes), &['\n']));
            for signature in signatures {
                let holds = if signature.is_of(bytes) { "" } else { " which does not match" };
                print(&format!("signature {}{holds}\n", signature.key().fingerprint()));
            }
        }
        output => data_as(&data(any), output),
    }
}

/// Says that a machine would take it.
pub(super) fn agreed<S: Signable>(signed: &Signed<S>) {
    print(&format!("valid: {} {}\n", S::WORD, signed.digest()));
    for signature in signed.signatures() {
        print(&format!("signed by {}\n", signature.key().fingerprint()));
    }
}

fn data(any: &AnyStatement) -> Json {
    match any {
        AnyStatement::Root(signed) => {
            let root = signed.statement();
            described(signed, &json!({ "name": root.name.to_string(), "signers": of_signers(&root.signers) }))
        }
        AnyStatement::Signers(signed) => {
            let Succession { link, last, roster, signers } = signed.statement();
            let last: serde_json::Map<_, _> =
                last.iter().map(|(name, last)| (name.to_string(), numbered(last))).collect();
            let roster = roster.as_ref().map(numbered);
            let signers = of_signers(signers);
            described(signed, &json!({ "link": of_link(link), "last": last, "roster": roster, "signers": signers }))
        }
        AnyStatement::Roster(signed) => {
            let Roster { link, acts, machines, floors } = signed.statement();
            let machine = |(name, member): (&stead_hosts::MachineName, &stead_release::RosterMachine)| {
                let mut shown =
                    json!({ "name": name.as_str(), "key": member.key.to_string(), "labels": member.labels });
                if let Some(key) = &member.sealing {
                    shown["sealing"] = key.to_string().into();
                }
                if let Some(hold) = &member.hold {
                    shown["hold"] = json!({ "until": hold.until().to_string(), "why": hold.why() });
                }
                shown
            };
            let machines: Vec<Json> = machines.iter().map(machine).collect();
            let floors: serde_json::Map<_, _> =
                floors.iter().map(|(name, floor)| (name.to_string(), numbered(floor))).collect();
            let acts = acts.as_ref().map(Digest::as_str);
            described(signed, &json!({ "link": of_link(link), "acts": acts, "machines": machines, "floors": floors }))
        }
        AnyStatement::Report(signed) => described(signed, &of_report(signed.statement())),
        AnyStatement::Envelope(envelope) => {
            described(&Signed::new((**envelope).clone()), &of_address(&envelope.address))
        }
        AnyStatement::Identity(signed) => {
            let PublicIdentity { key, sealing } = signed.statement();
            described(signed, &json!({ "key": key.to_string(), "sealing": sealing.to_string() }))
        }
        AnyStatement::Release(signed) => {
            let Release { link, channel, expires, selector, bundle, parameters, sealed } = signed.statement();
            let mut members = json!({
                "link": of_link(link),
                "channel": channel.to_string(),
                "expires": expires.to_string(),
                "where": selector.to_string(),
                "bundle": bundle.as_str(),
                "parameters": parameters,
            });
            if let Some(sealed) = sealed {
                members["sealed"] = json!({ "commitment": sealed.commitment().as_str(), "names": sealed.names() });
            }
            described(signed, &members)
        }
    }
}

fn described<S: Signable>(signed: &Signed<S>, statement: &Json) -> Json {
    let signature = |signature: &Signature| {
        json!({
            "key": signature.key().to_string(),
            "fingerprint": signature.key().fingerprint(),
            "matches": signature.is_of(signed.bytes()) && signature.namespace() == S::PURPOSE,
        })
    };
    json!({
        "version": 1,
        "kind": S::PURPOSE,
        "digest": signed.digest().as_str(),
        "statement": statement,
        "signatures": signed.signatures().iter().map(signature).collect::<Vec<_>>(),
    })
}

fn of_link(link: &ChainLink) -> Json {
    json!({
        "fleet": link.fleet.as_str(),
        "number": link.number,
        "parent": link.parent.as_str(),
        "signers": link.signers.as_str(),
        "made": link.made.to_string(),
    })
}

fn of_signers(signers: &Signers) -> Json {
    json!({
        "threshold": signers.threshold(),
        "keys": signers.keys().iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn numbered(release: &Numbered) -> Json {
    json!({ "number": release.number, "digest": release.digest.as_str() })
}

fn of_report(report: &MachineReport) -> Json {
    let MachineReport { fleet, machine, number, ended, release, report } = report;
    let release = release.as_ref().map(|(channel, release)| {
        json!({ "channel": channel.to_string(), "number": release.number, "digest": release.digest.as_str() })
    });
    json!({
        "fleet": fleet.as_str(),
        "machine": machine.as_str(),
        "number": number,
        "ended": ended.to_string(),
        "release": release,
        "report": report,
    })
}

fn of_address(address: &EnvelopeAddress) -> Json {
    let EnvelopeAddress { fleet, channel, release, machine, key } = address;
    json!({
        "fleet": fleet.as_str(),
        "channel": channel.to_string(),
        "release": numbered(release),
        "machine": machine.as_str(),
        "key": key.to_string(),
    })
}
