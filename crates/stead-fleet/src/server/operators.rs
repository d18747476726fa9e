//! What operators ask.

use hyper::StatusCode;
use hyper::header::AUTHORIZATION;
use serde_json::json as value;
use stead_core::bundle::{Bundle, Reach};
use stead_hosts::MachineName;
use stead_release::{
    Digest, Fleet, Floor, Name, Numbered, Release, ReleaseRefusal, Root, Roster, Signable, Signed, Succession, Walk,
    are_labels,
};

use super::Controller;
use super::changes::changes;
use super::machines::Machine;
use super::reply::{OtherActs, Reply, bad, json, later, said};
use super::requests::{Answered, Asked, refused};
use crate::new_token;
use crate::store::{
    Chain, FleetStore, FleetStoreError, OperatorAct, SignedStatement, StoreWrite, StoredStatement, Token, Unit,
    WriteRefusal, Written, labels_text,
};
use stead_protocol::{
    ActShown, Action, Asker, HoldRequest, PlanAnswer, PublishAnswer, Route, StandingRequest, TokenAnswer, TokenRequest,
};

/// How often an act is tried again behind those of others.
const TRIES: usize = 20;
/// How many lines an answer has at most.
const MOST_LINES: u64 = 1000;

impl Controller {
    /// The operator who asks, if the role is enough.
    pub(super) async fn operator(&self, route: &Route, asked: &Asked) -> Result<MachineName, Box<Reply>> {
        let stated = asked.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let unknown = || refused(StatusCode::UNAUTHORIZED, "an operator proves who it is with a token");
        let token = Digest::of(stated.ok_or_else(unknown)?.as_bytes());
        let found = self.read(move |store| store.operator(&token)).await?;
        let (name, role) = found.ok_or_else(unknown)?;
        let is_enough = Asker::of_role(&role).is_some_and(|role| role >= route.asker);
        if is_enough { Ok(name) } else { Err(refused(StatusCode::FORBIDDEN, "the role of the account is not enough")) }
    }

    pub(super) async fn of_operator(&self, route: &Route, asked: &Asked) -> Answered {
        let by = self.operator(route, asked).await?;
        match route.action {
            Action::Machines
            | Action::Machine
            | Action::Status
            | Action::Drift
            | Action::Failures
            | Action::Metrics => self.listed(route, asked),
            Action::ReportsOf => self.reports_of(asked).await,
            Action::Events => self.events(asked).await,
            Action::Acts => self.acts(asked).await,
            Action::Standing => self.stand(&by, asked).await,
            Action::Hold => self.hold(&by, asked).await,
            Action::Invite => self.invite(&by, asked).await,
            Action::Check => self.check(&by, asked).await,
            Action::Checks => self.checks(asked),
            Action::Token => self.token(&by, asked).await,
            Action::StoreBlob => self.store_blob(asked).await,
            Action::StoreEnvelope => self.store_envelope(asked).await,
            Action::Plan => self.plan(asked).await,
            Action::Publish => self.publish(&by, asked).await,
            _ => Err(refused(StatusCode::FORBIDDEN, "that is not for operators")),
        }
    }

    async fn acts(&self, asked: &Asked) -> Answered {
        let after = asked.query("after").and_then(|number| number.parse().ok()).unwrap_or_default();
        let acts = self.read(move |store| store.acts(after, MOST_LINES)).await?;
        let line = |act: &crate::store::StoredAct| ActShown {
            number: act.number,
            parent: act.parent.to_string(),
            digest: act.digest.to_string(),
            act: act.body.clone(),
        };
        Ok(json(&acts.iter().map(line).collect::<Vec<_>>()))
    }

    async fn stand(&self, by: &MachineName, asked: &Asked) -> Answered {
        let wanted: StandingRequest = asked.json()?;
        let standing = wanted.standing.parse().map_err(|()| Box::new(bad("it is waiting, admitted or retired")))?;
        let machine = self.named(asked)?;
        let (id, name) = (machine.id(), machine.row().name.clone());
        let did = format!("{} {name}", wanted.standing);
        self.act(by, &did, vec![StoreWrite::Standing(id, standing)]).await?;
        machine.fork(0);
        self.seen(|_| machine.row().standing == standing).await;
        Ok(said(StatusCode::OK, did))
    }

    async fn hold(&self, by: &MachineName, asked: &Asked) -> Answered {
        let wanted: HoldRequest = asked.json()?;
        if wanted.why.len() > 1000 || wanted.why.chars().any(char::is_control) {
            return Err(Box::new(bad("a reason has one line")));
        }
        let machine = self.named(asked)?;
        let (id, name) = (machine.id(), machine.row().name.clone());
        let until =
            if wanted.seconds == 0 { 0 } else { self.now().saturating_add(wanted.seconds.saturating_mul(1000)) };
        let did = format!("hold {name} for {} s: {}", wanted.seconds, wanted.why);
        self.act(by, &did, vec![StoreWrite::Hold { machine: id, until, why: wanted.why }]).await?;
        self.seen(|_| machine.row().held.as_ref().map_or(0, |(until, _)| *until) == until).await;
        let is_held = until == 0 && machine.held(self.now()).is_some();
        Ok(said(StatusCode::OK, if is_held { format!("{did}; the roster holds it still") } else { did }))
    }

    async fn token(&self, by: &MachineName, asked: &Asked) -> Answered {
        let TokenRequest { uses, seconds, labels } = asked.json()?;
        if !are_labels(&labels) || uses == 0 || seconds == 0 {
            return Err(Box::new(bad("a token has uses, a time and labels")));
        }
        let token = new_token();
        let token = token.expose().clone();
        let digest = Digest::of(token.as_bytes());
        let did = format!("token for {uses} machines and {seconds} s: {digest}");
        let length = seconds.saturating_mul(1000);
        self.act(by, &did, vec![StoreWrite::Token(Token { digest, uses, length, labels: labels_text(&labels) })])
            .await?;
        Ok(json(&TokenAnswer { token }))
    }

    /// Keeps a bundle by its name, which is that of its manifest and stands for all that is in it.
    async fn store_blob(&self, asked: &Asked) -> Answered {
        let digest: Digest = asked.part(0).parse().map_err(|_| Box::new(bad("that is not a name of a bundle")))?;
        let (body, wanted) = (asked.body.clone(), digest.clone());
        // It may be large: a thread that answers would keep others waiting meanwhile.
        let decoded = self.read(move |_| Ok(Bundle::decode(&body, Reach::Machine, Some(wanted.as_str()))));
        decoded.await?.map_err(|why| Box::new(bad(why.to_string())))?;
        let written = self.write(vec![StoreWrite::Blob(digest.clone(), asked.body.clone())]).await?;
        Ok(json(&PublishAnswer { digest: digest.to_string(), is_new: written == [Written::New] }))
    }

    /// Takes in what operators signed. It is checked as a machine checks it: what no machine would take is not kept either.
    async fn publish(&self, by: &MachineName, asked: &Asked) -> Answered {
        let (kind, body) = (asked.part(0).to_owned(), asked.body.clone());
        let read = move |store: &mut FleetStore| match checked(store, &kind, &body)? {
            Ok(statement) => Ok(Ok((is_known(store, &statement)?, statement))),
            Err(refused) => Ok(Err(refused)),
        };
        let (is_known, statement) = self.read(read).await??;
        if is_known {
            // Nothing is done: a source that is published again and again would fill the chain of acts.
            return Ok(json(&PublishAnswer { digest: statement.digest.to_string(), is_new: false }));
        }
        let did = format!("publish {} {} {}", statement.chain, statement.number, statement.digest);
        let digest = statement.digest.to_string();
        // What says which acts its signers saw is the next act, or none.
        let seen = roster(&statement).and_then(|roster| roster.acts);
        let written = self.act_behind(by, &did, vec![StoreWrite::Statement(statement)], seen).await?;
        Ok(json(&PublishAnswer { digest, is_new: written.contains(&Written::New) }))
    }

    /// What a roster that operators signed would change. It must say that its signers saw the last act.
    async fn plan(&self, asked: &Asked) -> Answered {
        let body = asked.body.clone();
        let read = move |store: &mut FleetStore| {
            let statement = match checked(store, "roster", &body)? {
                Ok(statement) => statement,
                Err(refused) => return Ok(Err(refused)),
            };
            if is_known(store, &statement)? {
                return Ok(Ok(PlanAnswer { is_new: false, changes: Vec::new() }));
            }
            let (head, former) = (store.head()?, store.statements(&Chain::Roster, 0, MOST_LINES)?.pop());
            let former = former.and_then(|former| Signed::<Roster>::parse(&former.body).ok());
            let Some(roster) = roster(&statement) else { return Err(FleetStoreError::Row("statements")) };
            Ok(match &roster.acts {
                Some(seen) if *seen == head => {
                    let changes = changes(former.as_ref().map(Signed::statement), &roster);
                    Ok(PlanAnswer { is_new: true, changes })
                }
                Some(_) => Err(WriteRefusal::Head(head).into()),
                None => {
                    let why =
                        format!("the roster does not say which acts its signers saw: make it with '--acts {head}'");
                    Err(refused(StatusCode::CONFLICT, &why))
                }
            })
        };
        Ok(json(&self.read(read).await??))
    }

    /// Writes something together with the act that it is.
    pub(super) async fn act(&self, by: &MachineName, did: &str, unit: Unit) -> Result<Vec<Written>, Box<Reply>> {
        self.act_behind(by, did, unit, None).await
    }

    /// Writes something together with the act that it is, behind the one that its signers saw or else behind the last.
    async fn act_behind(
        &self,
        by: &MachineName,
        did: &str,
        unit: Unit,
        seen: Option<Digest>,
    ) -> Result<Vec<Written>, Box<Reply>> {
        let body = value!({ "at": self.now(), "by": by.as_str(), "did": did }).to_string();
        for _ in 0..TRIES {
            let parent = match &seen {
                Some(seen) => seen.clone(),
                None => self.read(FleetStore::head).await?,
            };
            let mut unit = unit.clone();
            unit.push(StoreWrite::Act(OperatorAct { parent, body: body.clone() }));
            match self.write(unit).await {
                Err(reply) if seen.is_none() && reply.extensions().get::<OtherActs>().is_some() => {}
                Ok(written) => {
                    tracing::info!(by = by.as_str(), did, "act");
                    return Ok(written);
                }
                refused => return refused,
            }
        }
        Err(Box::new(later("others act all the time")))
    }

    pub(super) fn named(&self, asked: &Asked) -> Result<std::sync::Arc<Machine>, Box<Reply>> {
        self.machine(&asked.name(0)?).ok_or_else(|| refused(StatusCode::NOT_FOUND, "there is no such machine"))
    }
}

/// The roster that a statement is, if it is one.
fn roster(statement: &SignedStatement) -> Option<Roster> {
    let signed = (statement.chain == Chain::Roster).then(|| Signed::<Roster>::parse(&statement.body).ok())??;
    Some(signed.statement().clone())
}

fn is_known(store: &mut FleetStore, statement: &SignedStatement) -> Result<bool, FleetStoreError> {
    let SignedStatement { chain, number, digest, .. } = statement;
    let there = store.statements(chain, number - 1, 1)?;
    Ok(there.iter().any(|there| (there.number, &there.digest) == (*number, digest)))
}

/// A statement as it is kept, or why it is refused.
fn checked(
    store: &mut FleetStore,
    kind: &str,
    body: &[u8],
) -> Result<Result<SignedStatement, Box<Reply>>, FleetStoreError> {
    if kind == "root" {
        return Ok(Signed::<Root>::parse(body)
            .map(|signed| kept(Chain::Root, 1, &signed, None))
            .map_err(|why| shown_refusal(&why.into())));
    }
    let Some(root) = store.statements(&Chain::Root, 0, 1)?.pop() else {
        return Ok(Err(refused(StatusCode::CONFLICT, "there is not a root statement yet: publish it first")));
    };
    let lists = store.statements(&Chain::Signers, 0, MOST_LINES)?;
    let roster = store.statements(&Chain::Roster, 0, MOST_LINES)?.pop();
    let outcome = fleet(&root, &lists).and_then(|mut fleet| match kind {
        "signers" => {
            let known = Signed::<Succession>::parse(body)?;
            if lists.iter().all(|list| list.digest != known.digest()) {
                fleet.follow(body)?;
            }
            Ok(Some(kept(Chain::Signers, known.statement().link.number, &known, None)))
        }
        "roster" => {
            let known = roster.map(|roster| Numbered { number: roster.number, digest: roster.digest });
            let signed = fleet.roster(body, known.as_ref())?;
            Ok(Some(kept(Chain::Roster, signed.statement().link.number, &signed, None)))
        }
        _ => Ok(None),
    });
    match outcome {
        Ok(Some(statement)) => Ok(Ok(statement)),
        Ok(None) if kind == "release" => release(store, &root, &lists, body),
        Ok(None) => Ok(Err(refused(StatusCode::NOT_FOUND, "not found"))),
        Err(refusal) => Ok(Err(shown_refusal(&refusal))),
    }
}

fn release(
    store: &mut FleetStore,
    root: &StoredStatement,
    lists: &[StoredStatement],
    body: &[u8],
) -> Result<Result<SignedStatement, Box<Reply>>, FleetStoreError> {
    let signed = match Signed::<Release>::parse(body) {
        Ok(signed) => signed,
        Err(why) => return Ok(Err(shown_refusal(&why.into()))),
    };
    let Release { link, channel, bundle, .. } = signed.statement();
    let chain = Chain::Channel(channel.clone());
    let before = link.number - 1;
    let former = match before.checked_sub(1) {
        Some(above) => store.statements(&chain, above, 1)?.pop().filter(|former| former.number == before),
        None => None,
    };
    let outcome = fleet(root, lists).and_then(|fleet| stepped(&fleet, channel, former.as_ref(), body));
    Ok(outcome.map(|()| kept(chain, link.number, &signed, Some(bundle.clone()))).map_err(|why| shown_refusal(&why)))
}

/// Checks that a machine at the release before would go on to this one.
fn stepped(fleet: &Fleet, channel: &Name, former: Option<&StoredStatement>, body: &[u8]) -> Result<(), ReleaseRefusal> {
    let mut floor = Floor::first(fleet);
    if let Some(former) = former {
        floor.release = Numbered { number: former.number, digest: former.digest.clone() };
    }
    Walk::new(fleet, channel, floor).step(body)
}

fn fleet(root: &StoredStatement, lists: &[StoredStatement]) -> Result<Fleet, ReleaseRefusal> {
    let mut fleet = Fleet::of_root(&root.body, &root.digest)?;
    lists.iter().try_for_each(|list| fleet.follow(&list.body))?;
    Ok(fleet)
}

fn kept<S: Signable>(chain: Chain, number: u64, signed: &Signed<S>, bundle: Option<Digest>) -> SignedStatement {
    SignedStatement { chain, number, digest: signed.digest(), bundle, body: signed.to_text().into() }
}

pub(super) fn shown_refusal(refusal: &ReleaseRefusal) -> Box<Reply> {
    Box::new(said(StatusCode::CONFLICT, format!("error[{}]: {refusal}", refusal.code().id)))
}
