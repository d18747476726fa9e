//! Steps over a store as lines of text: `STEP -> OUTCOME`, where the writes of a unit are joined by ` + `, and `again` writes the last
//! unit once more.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bytes::Bytes;
use stead_fleet::store::{
    Chain, Enrolment, FleetStore, Grant, Heartbeat, Invitation, MachineId, OperatorAct, Pointers, SignedStatement,
    Standing, StorePlace, StoreWrite, StoredEnvelope, Token, UnitOutcome, Written,
};
use stead_hosts::MachineName;
use stead_release::{Digest, PublicKey};

/// What steps need of those before them.
#[derive(Default)]
struct Known {
    machines: BTreeMap<String, MachineId>,
    /// The names of texts that steps used, so that outcomes can say them.
    texts: BTreeMap<Digest, String>,
    head: Option<Digest>,
    /// What was written last.
    last: Vec<StoreWrite>,
}

impl Known {
    /// The digest of a word.
    fn digest(&mut self, word: &str) -> Digest {
        let digest = Digest::of(word.as_bytes());
        self.texts.insert(digest.clone(), word.to_owned());
        digest
    }
}

/// Runs the steps as those of some controllers, each in its turn, and returns the same lines with their outcomes.
pub(crate) fn run(place: &StorePlace, controllers: usize, steps: &str) -> Result<String, String> {
    let open = || place.open().map_err(|error| error.to_string());
    let mut stores = (0..controllers).map(|_| open()).collect::<Result<Vec<_>, _>>()?;
    let (mut known, mut lines) = (Known::default(), String::new());
    for (at, line) in steps.lines().enumerate() {
        let store = &mut stores[at % controllers];
        let step = line.split(" -> ").next().unwrap_or_default();
        let outcome = match step.split_once(' ').unwrap_or((step, "")) {
            ("show", what) => show(store, &known, what)?,
            ("open", _) => {
                *store = open()?;
                "open".to_owned()
            }
            ("again", _) => commit(store, &mut known)?,
            _ => {
                known.last = unit(&mut known, step)?;
                commit(store, &mut known)?
            }
        };
        let _ = writeln!(lines, "{step} -> {outcome}");
    }
    Ok(lines)
}

fn unit(known: &mut Known, step: &str) -> Result<Vec<StoreWrite>, String> {
    step.split(" + ").map(|write| parsed(known, write).ok_or_else(|| format!("'{write}' is not a step"))).collect()
}

fn commit(store: &mut FleetStore, known: &mut Known) -> Result<String, String> {
    let unit = known.last.clone();
    let (outcomes, _) = store.commit(std::slice::from_ref(&unit)).map_err(|error| error.to_string())?;
    let outcome = outcomes.into_iter().next().ok_or("a unit has no outcome")?;
    for (written, write) in outcome.iter().flatten().zip(&unit) {
        match (written, write) {
            (Written::Machine(id, _), StoreWrite::Enrol(enrolment)) => {
                known.machines.insert(enrolment.name.to_string(), *id);
            }
            (Written::Act(_), StoreWrite::Act(act)) => known.head = Some(act.digest()),
            _ => {}
        }
    }
    Ok(shown(known, &outcome))
}

/// A public key for each word.
pub(crate) fn key(word: &str) -> PublicKey {
    use base64::Engine as _;
    let digest = Digest::of(word.as_bytes());
    let seed: Vec<u8> = digest.as_str().bytes().skip(7).take(32).collect();
    let blob = [&[0, 0, 0, 11][..], b"ssh-ed25519", &[0, 0, 0, 32], &seed].concat();
    let blob = base64::engine::general_purpose::STANDARD.encode(blob);
    PublicKey::parse(&format!("ssh-ed25519 {blob}")).unwrap()
}

fn parsed(known: &mut Known, write: &str) -> Option<StoreWrite> {
    of_machine(known, write).or_else(|| of_fleet(known, write))
}

/// The writes about one machine.
fn of_machine(known: &mut Known, write: &str) -> Option<StoreWrite> {
    let mut words = write.split(' ');
    let mut next = || words.next().filter(|word| !word.is_empty());
    let kind = next()?;
    Some(match kind {
        "enrol" => {
            let (name, key) = (MachineName::parse(next()?).ok()?, key(next()?));
            let token = next().map(|word| known.digest(word));
            StoreWrite::Enrol(Enrolment { name, key, token, labels: r#"{"asked":"1"}"#.to_owned(), most_waiting: 2 })
        }
        "standing" => StoreWrite::Standing(*known.machines.get(next()?)?, next()?.parse::<Standing>().ok()?),
        "hold" => {
            let machine = *known.machines.get(next()?)?;
            StoreWrite::Hold { machine, until: next()?.parse().ok()?, why: next()?.to_owned() }
        }
        "check" => {
            let number = next()?.parse().ok()?;
            let machines = words.map(|name| known.machines.get(name).copied()).collect::<Option<_>>()?;
            StoreWrite::Check { machines, number }
        }
        "point" => {
            let lease = Grant { name: "planner", epoch: next()?.parse().ok()? };
            let roster = next()?.strip_prefix("roster=")?.parse().ok()?;
            let (channel, number) = (next()?.parse().ok()?, next()?.parse().ok()?);
            let machines = words.map(|name| known.machines.get(name).copied()).collect::<Option<_>>()?;
            StoreWrite::Point(Pointers { lease, roster, channel, number, machines })
        }
        "reports" => {
            let machine = *known.machines.get(next()?)?;
            let report = |word: &str| {
                let (number, text) = word.split_once('=')?;
                Some((number.parse().ok()?, Bytes::copy_from_slice(text.as_bytes())))
            };
            StoreWrite::Reports { machine, reports: words.map(report).collect::<Option<_>>()? }
        }
        "heard" => {
            let machine = *known.machines.get(next()?)?;
            let (number, at) = (next()?.parse().ok()?, next()?.parse().ok()?);
            StoreWrite::Heard(vec![Heartbeat { machine, number, at, said: next()?.to_owned() }])
        }
        _ => return None,
    })
}

/// The other writes.
fn of_fleet(known: &mut Known, write: &str) -> Option<StoreWrite> {
    let mut words = write.split(' ');
    let mut next = || words.next().filter(|word| !word.is_empty());
    let kind = next()?;
    Some(match kind {
        "token" => {
            let (digest, uses, length) = (known.digest(next()?), next()?.parse().ok()?, next()?.parse().ok()?);
            StoreWrite::Token(Token { digest, uses, length, labels: r#"{"role":"web"}"#.to_owned() })
        }
        "operator" => {
            let (name, role) = (MachineName::parse(next()?).ok()?, next()?.to_owned());
            StoreWrite::Operator { name, role, digest: known.digest(next()?) }
        }
        "invite" => {
            let (name, role, digest) = (MachineName::parse(next()?).ok()?, next()?.to_owned(), known.digest(next()?));
            StoreWrite::Invite(Invitation { digest, name, role, length: next()?.parse().ok()? })
        }
        "accept" => StoreWrite::Accept { invitation: known.digest(next()?), token: known.digest(next()?) },
        "blob" => {
            let text = next()?;
            StoreWrite::Blob(known.digest(text), Bytes::copy_from_slice(text.as_bytes()))
        }
        "envelope" => {
            let (channel, number) = (next()?.parse().ok()?, next()?.parse().ok()?);
            let (machine, body) = (MachineName::parse(next()?).ok()?, Bytes::copy_from_slice(next()?.as_bytes()));
            StoreWrite::Envelope(StoredEnvelope { channel, number, machine, body })
        }
        "statement" => {
            let (chain, number): (Chain, u64) = (next()?.parse().ok()?, next()?.parse().ok()?);
            let text = next()?;
            let (digest, bundle) = (known.digest(text), next().map(|word| Digest::of(word.as_bytes())));
            StoreWrite::Statement(SignedStatement {
                chain,
                number,
                digest,
                bundle,
                body: Bytes::copy_from_slice(text.as_bytes()),
            })
        }
        "lease" => StoreWrite::Lease { name: "planner", owner: next()?.to_owned(), length: next()?.parse().ok()? },
        "act" => {
            let (body, behind) = (next()?.to_owned(), next());
            let head = known.head.clone().unwrap_or_else(OperatorAct::nothing);
            let parent = if behind == Some("nothing") { OperatorAct::nothing() } else { head };
            let act = OperatorAct { parent, body };
            known.texts.insert(act.digest(), act.body.clone());
            StoreWrite::Act(act)
        }
        "forget" => StoreWrite::Forget { before: next()?.parse().ok()?, most: next()?.parse().ok()? },
        "sweep" => StoreWrite::Sweep { before: next()?.parse().ok()? },
        _ => return None,
    })
}

fn shown(known: &Known, outcome: &UnitOutcome) -> String {
    let name = |id: &MachineId| {
        let named = known.machines.iter().find(|(_, each)| *each == id);
        named.map_or_else(|| "a machine".to_owned(), |(name, _)| name.clone())
    };
    let written = |written: &Written| match written {
        Written::New => "new".to_owned(),
        Written::Known => "known".to_owned(),
        Written::Machine(id, standing) => format!("{} {}", name(id), standing.as_str()),
        Written::Reports { new, forked } if forked.is_empty() => format!("{new} new"),
        Written::Reports { new, forked } => format!("{new} new, forked {forked:?}"),
        Written::Changed(count) => format!("{count} changed"),
        Written::Lease(Ok(grant)) => format!("granted {}", grant.epoch),
        Written::Lease(Err(other)) => format!("held by {other}"),
        Written::Act(number) => format!("act {number}"),
    };
    match outcome {
        Ok(all) => all.iter().map(written).collect::<Vec<_>>().join(" + "),
        Err(refusal) => {
            let text = format!("refused: {refusal}");
            known.texts.iter().fold(text, |text, (digest, word)| text.replace(digest.as_str(), word))
        }
    }
}

fn show(store: &mut FleetStore, known: &Known, what: &str) -> Result<String, String> {
    let failed = |error: stead_fleet::store::FleetStoreError| error.to_string();
    let word = |digest: &Digest| known.texts.get(digest).cloned().unwrap_or_else(|| digest.to_string());
    let (what, of) = what.split_once(' ').unwrap_or((what, ""));
    Ok(match what {
        "machines" => {
            let changes = store.changes(of.parse().unwrap_or_default()).map_err(failed)?;
            let shown = changes.machines.iter().map(|row| {
                let at = row.desired.as_ref().map(|(channel, number)| format!(" at {channel} {number}"));
                let held = row.held.as_ref().map(|(until, why)| format!(" held {until} {why}"));
                let labels = serde_json::to_string(&row.labels).unwrap();
                let asked = Some(row.asked).filter(|asked| *asked > 0).map(|asked| format!(" asked {asked}"));
                let more = at.unwrap_or_default() + &held.unwrap_or_default() + &asked.unwrap_or_default();
                format!("{} {}{more} {labels}", row.name, row.standing.as_str())
            });
            shown.collect::<Vec<_>>().join(", ")
        }
        "revision" => store.changes(0).map_err(failed)?.revision.to_string(),
        "heads" => {
            let heads = store.changes(0).map_err(failed)?.heads;
            let shown = heads.iter().map(|(chain, (number, digest))| format!("{chain} {number} {}", word(digest)));
            shown.collect::<Vec<_>>().join(", ")
        }
        "reports" => {
            let machine = known.machines.get(of).ok_or("there is no such machine")?;
            let reports = store.reports(*machine, u64::MAX, 10).map_err(failed)?;
            let shown = reports.iter().map(|each| format!("{}={}", each.number, String::from_utf8_lossy(&each.body)));
            shown.collect::<Vec<_>>().join(" ")
        }
        "statements" => {
            let (chain, after) = of.split_once(' ').ok_or("of which chain, behind what?")?;
            let chain: Chain = chain.parse().map_err(|()| "there is not such a chain")?;
            let found = store.statements(&chain, after.parse().unwrap(), 10).map_err(failed)?;
            let shown = found.iter().map(|each| format!("{} {}", each.number, String::from_utf8_lossy(&each.body)));
            shown.collect::<Vec<_>>().join(", ")
        }
        "blob" => {
            let digest = Digest::of(of.as_bytes());
            let (length, part) =
                (store.blob_length(&digest).map_err(failed)?, store.blob(&digest, 1..3).map_err(failed)?);
            match (length, part) {
                (Some(length), Some(part)) => format!("{length} bytes, of which 1 and 2 are {part:?}"),
                _ => "not there".to_owned(),
            }
        }
        "envelope" => {
            let [channel, number, machine] = *of.split(' ').collect::<Vec<_>>() else {
                return Err("of which?".to_owned());
            };
            let (channel, machine) = (channel.parse().unwrap(), MachineName::parse(machine).unwrap());
            let found = store.envelope(&channel, number.parse().unwrap(), &machine).map_err(failed)?;
            found.map_or("not there".to_owned(), |body| String::from_utf8_lossy(&body).into_owned())
        }
        _ => return shown_of_operators(store, what, of),
    })
}

fn shown_of_operators(store: &mut FleetStore, what: &str, of: &str) -> Result<String, String> {
    let failed = |error: stead_fleet::store::FleetStoreError| error.to_string();
    Ok(match what {
        "acts" => {
            let acts = store.acts(0, 100).map_err(failed)?;
            let follows = acts
                .iter()
                .all(|act| OperatorAct { parent: act.parent.clone(), body: act.body.clone() }.digest() == act.digest);
            let shown: Vec<&str> = acts.iter().map(|act| act.body.as_str()).collect();
            format!("{} (each is what it says: {follows})", shown.join(" "))
        }
        "heard" => {
            let heard = store.heard().map_err(failed)?;
            let shown = heard.values().map(|each| format!("{} {} {}", each.number, each.at, each.said));
            shown.collect::<Vec<_>>().join(", ")
        }
        "operator" => match store.operator(&Digest::of(of.as_bytes())).map_err(failed)? {
            Some((name, role)) => format!("{name} {role}"),
            None => "nobody".to_owned(),
        },
        other => return Err(format!("'{other}' cannot be shown")),
    })
}
