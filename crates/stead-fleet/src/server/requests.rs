//! From a request to its answer: the route, who asks, and what a machine may ask.

use std::borrow::Cow;
use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Body;
use hyper::header::{CONNECTION, CONTENT_RANGE, ETAG, EXPECT, HeaderName, IF_NONE_MATCH, RANGE, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Request, Response, StatusCode};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use stead_hosts::MachineName;
use stead_release::{Digest, MachineRequest, PublicKey, Release, Signed, are_labels};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};

use super::machines::{Hearing, Machine};
use super::reply::{Reply, bad, bytes_of, json, later, said, with};
use super::{Controller, PATIENCE};
use crate::store::{Chain, Enrolment, FleetStore, Standing, StoreWrite, Unit, Written, labels_text};
use stead_protocol::{
    Action, Asker, DesiredAnswer, EnrolAnswer, EnrolRequest, LONGEST_ANSWERED_BUNDLE, LONGEST_BLOB, LONGEST_BODY,
    LONGEST_ENROLMENT, LONGEST_HEARTBEAT, LONGEST_WAIT, MOST_RELEASES, Proof, Route,
};

/// How long a body may take.
const BODY: Duration = Duration::from_secs(30);
/// The longest body that is read of a request that is refused before, and how long that may take.
const LONGEST_UNREAD: usize = 64 << 10;
const UNREAD: Duration = Duration::from_secs(1);
/// The longest part of a content that is answered at once.
const LONGEST_PART: u64 = 4 << 20;

/// An answer, or a refusal.
pub(super) type Answered = Result<Reply, Box<Reply>>;

/// A request with its body, as far as it is needed.
pub(super) struct Asked {
    pub(super) headers: HeaderMap,
    pub(super) method: String,
    /// The path, with what is behind `?`.
    pub(super) path: String,
    pub(super) parts: Vec<String>,
    pub(super) body: Bytes,
}

impl Asked {
    /// Takes the head of a request apart. Nothing of it is kept but the headers: the address shares the buffer that it was read into, as
    /// headers do, and would keep it for as long as the machine waits.
    fn of(head: Parts) -> Option<(&'static Route, Self)> {
        let (route, parts) = stead_protocol::found(head.method.as_str(), head.uri.path())?;
        let parts = parts.into_iter().map(str::to_owned).collect();
        let path = head.uri.path_and_query().map_or(String::new(), ToString::to_string);
        let (headers, method) = (head.headers, head.method.to_string());
        Some((route, Self { headers, method, path, parts, body: Bytes::new() }))
    }

    /// Who says that they ask: a machine by its name, as far as it is one.
    fn who(&self) -> String {
        let name = self.header(stead_protocol::REQUEST).and_then(|stated| stated.split(' ').next());
        name.and_then(|name| MachineName::parse(name).ok()).map_or_else(|| "-".to_owned(), |name| name.to_string())
    }

    fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    pub(super) fn part(&self, at: usize) -> &str {
        self.parts.get(at).map_or("", String::as_str)
    }

    /// The value of a name behind `?`, as it was written.
    pub(super) fn query(&self, name: &str) -> Option<&str> {
        let (_, query) = self.path.split_once('?')?;
        query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }

    /// The text of a name behind `?`, in which other characters were written as `%` and their bytes.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, Box<Reply>> {
        let decoded = self.query(name).map(|value| percent_decode_str(value).decode_utf8());
        decoded.transpose().map(|text| text.map(Cow::into_owned)).map_err(|_| Box::new(bad("that is not UTF-8")))
    }

    /// How long it is waited for something new.
    pub(super) fn wait(&self) -> Duration {
        let wait = self.header("prefer").and_then(|prefer| prefer.strip_prefix("wait=")?.parse().ok()).unwrap_or(0);
        Duration::from_secs(LONGEST_WAIT.min(wait))
    }

    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, Box<Reply>> {
        serde_json::from_slice(&self.body).map_err(|error| Box::new(bad(error.to_string())))
    }

    pub(super) fn name(&self, at: usize) -> Result<MachineName, Box<Reply>> {
        MachineName::parse(self.part(at)).map_err(|why| Box::new(bad(format!("that is not a name: {why}"))))
    }
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

pub(super) fn refused(status: StatusCode, why: &str) -> Box<Reply> {
    Box::new(said(status, why))
}

impl Controller {
    /// The answer to a request, wherever it came from.
    pub async fn answer<B>(self: Arc<Self>, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin,
    {
        let reply = match routed(&self, request).await {
            Ok(reply) => reply,
            Err(reply) => *reply,
        };
        self.counters.answered(reply.status().as_u16());
        with(reply, HeaderName::from_static(stead_protocol::EPOCH), &self.epoch().to_string())
    }
}

/// A refusal before a body was read. One that is short is read first: clients read no answer before they have sent it. Behind any other one
/// the connection ends, which the answer says: into that no client must send another request.
async fn unread<B>(reply: Box<Reply>, body: B, waits: bool) -> Box<Reply>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin,
{
    // A client that waits to be asked for it sends nothing when it is refused.
    let is_short = !waits && body.size_hint().lower() <= LONGEST_UNREAD as u64;
    if body.is_end_stream() || is_short && Box::pin(reads_to_end(body)).await {
        return reply;
    }
    Box::new(with(*reply, CONNECTION, "close"))
}

/// Reads a body, and returns whether that was all of it.
async fn reads_to_end<B>(body: B) -> bool
where
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>>,
{
    let mut body = pin!(Limited::new(body, LONGEST_UNREAD));
    let all = async {
        while let Some(frame) = body.frame().await {
            if frame.is_err() {
                return false;
            }
        }
        true
    };
    timeout(UNREAD, all).await.unwrap_or(false)
}

/// Answers a request. Futures that a waiting machine does not need are boxed: ten thousand may wait.
async fn routed<B>(controller: &Arc<Controller>, request: Request<B>) -> Answered
where
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin,
{
    let (route, machine, asked) = match Box::pin(receive(controller, request)).await? {
        Received::FromMachine(route, machine, asked) => (route, machine, asked),
        Received::Answered(reply) => return Ok(reply),
    };
    match controller.answered(route, &machine, asked).await {
        Err(reply) => {
            let who = machine.row().name.to_string();
            Err(Box::pin(controller.logged(route, &who, reply)).await)
        }
        answered => answered,
    }
}

/// A request whose head and body have been read.
enum Received {
    /// From a known machine, and not answered yet.
    FromMachine(&'static Route, Arc<Machine>, Box<Asked>),
    /// From anybody else, and answered.
    Answered(Reply),
}

/// Reads a request, and answers it unless it is from a machine.
async fn receive<B>(controller: &Arc<Controller>, request: Request<B>) -> Result<Received, Box<Reply>>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin,
{
    let (head, mut body) = request.into_parts();
    let waits = head.headers.contains_key(EXPECT);
    let Some((route, mut asked)) = Asked::of(head) else {
        return Err(unread(refused(StatusCode::NOT_FOUND, "not found"), body, waits).await);
    };
    // Whoever is not known at all is refused before anything of a body is read.
    let machine = match controller.known(route, &asked).await {
        Ok(machine) => machine,
        Err(reply) => return Err(unread(controller.logged(route, &asked.who(), reply).await, body, waits).await),
    };
    asked.body = match taken(route, &mut body).await {
        Ok(body) => body,
        Err(reply) => return Err(unread(controller.logged(route, &asked.who(), reply).await, body, waits).await),
    };
    if let Some(machine) = machine {
        return Ok(Received::FromMachine(route, machine, Box::new(asked)));
    }
    let answered = match route.action {
        Action::Enrol => controller.enrol(&asked).await,
        Action::Accept => controller.take_account(&asked).await,
        _ => Box::pin(controller.of_operator(route, &asked)).await,
    };
    match answered {
        Err(reply) => Err(controller.logged(route, &asked.who(), reply).await),
        Ok(reply) => Ok(Received::Answered(reply)),
    }
}

/// The body of a request, as far as it is not too long and does not take too long.
async fn taken<B>(route: &Route, body: &mut B) -> Result<Bytes, Box<Reply>>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin,
{
    let limit = match route.action {
        Action::Enrol | Action::Accept => LONGEST_ENROLMENT,
        Action::StoreBlob | Action::Publish | Action::Plan => LONGEST_BLOB,
        _ => LONGEST_BODY,
    };
    // One that says beforehand that it is too long is not waited for.
    if body.size_hint().lower() > limit as u64 {
        return Err(refused(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"));
    }
    match Box::pin(timeout(BODY, Limited::new(body, limit).collect())).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(_)) => Err(refused(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large, or broken off")),
        Err(_) => Err(refused(StatusCode::REQUEST_TIMEOUT, "the body takes too long")),
    }
}

impl Controller {
    /// The answer to a machine.
    async fn answered(&self, route: &Route, machine: &Machine, asked: Box<Asked>) -> Answered {
        let (is_by_key, life) = Box::pin(self.proved(machine, &asked)).await?;
        admitted(machine)?;
        let reply = match route.action {
            Action::Desired => self.desired(machine, asked, life).await?,
            _ => Box::pin(self.of_machine(route, machine, asked)).await?,
        };
        let reply = asked_to_check(with_life(held(reply, machine, self.now()), machine), machine, self.now());
        Ok(self.with_session(reply, machine, is_by_key))
    }

    /// Logs a refusal, and returns it. That the store is away is logged where it is found out.
    async fn logged(&self, route: &Route, who: &str, reply: Box<Reply>) -> Box<Reply> {
        if reply.status().is_client_error() {
            let why = reply.body().clone().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            self.refusals.log(self.now(), route, who, reply.status().as_u16(), &why);
        }
        reply
    }
}

impl Controller {
    /// The machine that asks, if the route is one of machines; or nobody, if it may go on without one.
    async fn known(&self, route: &Route, asked: &Asked) -> Result<Option<Arc<Machine>>, Box<Reply>> {
        match route.asker {
            Asker::Anybody => Ok(None),
            Asker::Machine => {
                let name = asked.header(stead_protocol::REQUEST).and_then(|stated| stated.split(' ').next());
                let name = name.and_then(|name| MachineName::parse(name).ok());
                let machine = name.and_then(|name| self.machine(&name));
                machine.map(Some).ok_or_else(|| refused(StatusCode::UNAUTHORIZED, "the machine is not known"))
            }
            Asker::Viewer | Asker::Operator | Asker::Approver => self.operator(route, asked).await.map(|_| None),
        }
    }

    /// Checks that a machine made this request, once. Returns whether its key says so, and not only its session, and its life.
    async fn proved(&self, machine: &Machine, asked: &Asked) -> Result<(bool, u64), Box<Reply>> {
        let unproved = |why| refused(StatusCode::UNAUTHORIZED, why);
        let key = machine.row().key.clone();
        let request = stated(asked).ok_or_else(|| unproved("the request is not signed"))?;
        let proof = asked.header(stead_protocol::SIGNATURE).and_then(Proof::parse);
        let (is_by_it, is_by_key) = match proof.ok_or_else(|| unproved("the request is not signed"))? {
            Proof::Key(text) => (Proof::is_by(&text, &request, &key), true),
            Proof::Session(tag) => (self.sessions.is_by(&tag, &request, &key, self.now()), false),
        };
        if !is_by_it {
            return Err(unproved("the signature is not one of this request, or the session is over"));
        }
        let Hearing { is_new, are_two, life } =
            machine.hear(request.number, asked.header(stead_protocol::HEARTBEAT), self.now());
        if are_two {
            Box::pin(self.found_two(machine, request.number)).await?;
        }
        if is_new {
            Ok((is_by_key, life.life))
        } else {
            Err(refused(StatusCode::CONFLICT, "the number of the request was used before"))
        }
    }

    /// Keeps that two machines have one key.
    async fn found_two(&self, machine: &Machine, number: u64) -> Result<(), Box<Reply>> {
        tracing::warn!(machine = machine.row().name.as_str(), number, "two machines have its key");
        self.write(vec![StoreWrite::Fork { machine: machine.id(), number }]).await?;
        machine.fork(number);
        Ok(())
    }

    fn with_session(&self, reply: Reply, machine: &Machine, is_by_key: bool) -> Reply {
        if !is_by_key {
            return reply;
        }
        match self.sessions.header(&machine.row().key, self.now()) {
            Some(session) => with(reply, HeaderName::from_static(stead_protocol::SESSION), &session),
            None => reply,
        }
    }

    /// Has a unit written, and waits until it is on the disk.
    pub(super) async fn write(&self, unit: Unit) -> Result<Vec<Written>, Box<Reply>> {
        let (done, outcome) = oneshot::channel();
        self.access.write(unit, Box::new(move |outcome| drop(done.send(outcome))));
        let outcome = timeout(PATIENCE, outcome)
            .await
            .map_err(|_| Box::new(later("not known yet whether it is stored: the database does not answer")))?;
        Ok(outcome.map_err(|_| Box::new(later("the controller ends")))???)
    }

    async fn enrol(&self, asked: &Asked) -> Answered {
        let enrol: EnrolRequest = asked.json()?;
        let key = PublicKey::parse(&enrol.key).map_err(|why| Box::new(bad(why.to_string())))?;
        let request = stated(asked).ok_or_else(|| refused(StatusCode::UNAUTHORIZED, "the request is not signed"))?;
        match asked.header(stead_protocol::SIGNATURE).and_then(Proof::parse) {
            Some(Proof::Key(text)) if Proof::is_by(&text, &request, &key) => {}
            _ => return Err(refused(StatusCode::UNAUTHORIZED, "the request is not signed by the key that it names")),
        }
        if !are_labels(&enrol.labels) {
            return Err(Box::new(bad("these are not labels")));
        }
        let token = enrol.token.map(|token| Digest::of(token.as_bytes()));
        let (name, labels, most_waiting) = (request.machine, labels_text(&enrol.labels), self.limits.most_waiting);
        let enrolment = Enrolment { name: name.clone(), key, token, labels, most_waiting };
        match self.write(vec![StoreWrite::Enrol(enrolment)]).await?.pop() {
            Some(Written::Machine(id, standing)) => {
                let is_seen = |machine: Arc<Machine>| machine.id() == id && machine.row().standing == standing;
                self.seen(|this| this.machine(&name).is_some_and(is_seen)).await;
                Ok(json(&EnrolAnswer { standing: standing.as_str().to_owned() }))
            }
            _ => Err(Box::new(later("the store has no answer"))),
        }
    }

    async fn of_machine(&self, route: &Route, machine: &Machine, asked: Box<Asked>) -> Answered {
        match route.action {
            Action::Reports => self.reports(machine, &asked).await,
            Action::Root => self.statement(Chain::Root, 1).await,
            Action::Roster => self.statement(Chain::Roster, self.roster.load(Ordering::Relaxed)).await,
            Action::Signers => self.statement(Chain::Signers, asked.part(0).parse().unwrap_or_default()).await,
            Action::Release => {
                let channel = asked.part(0).parse().map_err(|_| refused(StatusCode::NOT_FOUND, "not found"))?;
                self.statement(Chain::Channel(channel), asked.part(1).parse().unwrap_or_default()).await
            }
            Action::Envelope => self.envelope(machine, &asked).await,
            Action::Blob => self.blob(&asked).await,
            _ => Err(refused(StatusCode::FORBIDDEN, "that is not for machines")),
        }
    }

    /// Answers when there is something newer than what the machine has, or when its time is over.
    async fn desired(&self, machine: &Machine, asked: Box<Asked>, life: u64) -> Answered {
        let after: u64 = asked.query("after").and_then(|number| number.parse().ok()).unwrap_or_default();
        let until = Instant::now() + asked.wait();
        let has = asked.header(IF_NONE_MATCH.as_str()).map(str::to_owned);
        // Kept headers keep the buffer that they were read into, for as long as the machine waits.
        drop(asked);
        let mut stop = self.stop.clone();
        let _waits = machine.waits().ok_or_else(many)?;
        loop {
            let changed = machine.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            // It may have been retired while it waited.
            admitted(machine)?;
            if let Some((channel, number, sealed)) = machine.newer() {
                let load = |number: &std::sync::atomic::AtomicU64| number.load(Ordering::Relaxed);
                let (signers, roster) = (load(&self.signers), load(&self.roster));
                let tag = format!("\"{channel}-{number}-{signers}-{roster}-{sealed}-{}\"", self.epoch());
                if has.as_deref() != Some(&*tag) {
                    let made = Box::pin(self.desired_answer(&channel, after, (number, signers, roster)));
                    let answer = Box::pin(self.cache.get_or(format!("{tag} {after}"), made)).await?;
                    return Ok(with(bytes_of("application/json", answer), ETAG, &tag));
                }
            }
            // Two machines learn of each other, until it is known that there are two.
            let is_second = life != 0 && machine.life() != life && !machine.is_forked();
            let is_over = is_second
                || machine.take_check_request(self.now())
                || tokio::select! {
                    biased;
                    over = timeout_at(until, changed) => over.is_err(),
                    _ = stop.wait_for(|stop| *stop) => true,
                };
            if is_over {
                let mut reply = Reply::default();
                *reply.status_mut() = StatusCode::NOT_MODIFIED;
                return Ok(reply);
            }
        }
    }

    /// A release of a channel with those behind the one that a machine has, as many as an answer has.
    async fn desired_answer(
        &self,
        channel: &stead_release::Name,
        after: u64,
        (number, signers, roster): (u64, u64, u64),
    ) -> Result<Bytes, Box<Reply>> {
        let (chain, count) = (Chain::Channel(channel.clone()), number.saturating_sub(after).min(MOST_RELEASES));
        let found = self.read(move |store| store.statements(&chain, after, count)).await?;
        let bundle = match found.last().filter(|release| release.number == number) {
            Some(release) => self.answered_bundle(&release.body).await,
            None => None,
        };
        let releases = found.iter().map(|release| String::from_utf8_lossy(&release.body).into_owned()).collect();
        let answer = DesiredAnswer { channel: channel.to_string(), number, releases, bundle, signers, roster };
        serde_json::to_vec(&answer).map(Bytes::from).map_err(|error| Box::new(later(error)))
    }

    /// The bundle of a release, if it is short enough to come with the answer, and text as the answer is. Whoever does not get it asks for it.
    async fn answered_bundle(&self, release: &[u8]) -> Option<String> {
        let bundle = Signed::<Release>::parse(release).ok()?.statement().bundle.clone();
        let content = self.cache.get_or(bundle.to_string(), self.short_blob(&bundle)).await.ok()?;
        let content = Some(content).filter(|content| content.len() <= LONGEST_ANSWERED_BUNDLE)?;
        String::from_utf8(content.into()).ok()
    }

    async fn statement(&self, chain: Chain, number: u64) -> Answered {
        let before = number.checked_sub(1).ok_or_else(|| refused(StatusCode::NOT_FOUND, "not found"))?;
        let mut found = self.read(move |store| store.statements(&chain, before, 1)).await?;
        match found.pop().filter(|found| found.number == number) {
            Some(found) => Ok(bytes_of("text/plain; charset=utf-8", found.body)),
            None => Err(refused(StatusCode::NOT_FOUND, "not found")),
        }
    }

    /// A content by its name, or a part of it as `Range` says.
    async fn blob(&self, asked: &Asked) -> Answered {
        let not_found = || refused(StatusCode::NOT_FOUND, "not found");
        let digest: Digest = asked.part(0).parse().map_err(|_| not_found())?;
        let range = asked.header(RANGE.as_str()).map(str::to_owned);
        if range.is_none()
            && let Ok(kept) = self.cache.get_or(digest.to_string(), self.short_blob(&digest)).await
        {
            return Ok(bytes_of("application/octet-stream", kept));
        }
        let named = digest.clone();
        let length = self.read(move |store| store.blob_length(&named)).await?.ok_or_else(not_found)?;
        let part = match range.as_deref() {
            None => 0..length.min(LONGEST_PART),
            Some(range) => part(range, length).ok_or_else(|| {
                let reply = said(StatusCode::RANGE_NOT_SATISFIABLE, "there is not such a part");
                Box::new(with(reply, CONTENT_RANGE, &format!("bytes */{length}")))
            })?,
        };
        let wanted = part.clone();
        let bytes = self.read(move |store| store.blob(&digest, wanted)).await?.ok_or_else(not_found)?;
        // The rest of what is large is asked for: no answer keeps more than this in memory.
        let mut reply = bytes_of("application/octet-stream", bytes);
        *reply.status_mut() = StatusCode::PARTIAL_CONTENT;
        Ok(with(reply, CONTENT_RANGE, &format!("bytes {}-{}/{length}", part.start, part.end - 1)))
    }

    /// A whole content, unless it is so large that it is answered in parts.
    async fn short_blob(&self, digest: &Digest) -> Result<Bytes, ()> {
        let digest = digest.clone();
        let read = move |store: &mut FleetStore| match store.blob_length(&digest)? {
            Some(length) if length <= LONGEST_PART => store.blob(&digest, 0..length),
            _ => Ok(None),
        };
        self.read(read).await.ok().flatten().ok_or(())
    }
}

/// Refuses whatever a machine asks that is not admitted.
fn admitted(machine: &Machine) -> Result<(), Box<Reply>> {
    let standing = machine.row().standing;
    match standing {
        Standing::Admitted => Ok(()),
        Standing::Waiting => Err(refused(StatusCode::FORBIDDEN, "the machine waits for an operator")),
        Standing::Retired => Err(refused(StatusCode::FORBIDDEN, "the machine was retired")),
    }
}

/// The answer to a machine of which too many requests wait: some of them end within that time.
fn many() -> Box<Reply> {
    let reply = said(StatusCode::TOO_MANY_REQUESTS, "too many requests of this machine are waiting");
    Box::new(with(reply, RETRY_AFTER, "10"))
}

/// The answer to a machine, which says whether it is held: it stays as it is, and shows why.
fn held(reply: Reply, machine: &Machine, now: u64) -> Reply {
    match machine.held(now) {
        Some((until, why)) => {
            with(reply, HeaderName::from_static(stead_protocol::HOLD), &stead_protocol::hold_header(until, &why))
        }
        None => reply,
    }
}

/// The answer to a machine, which says which life of it was heard last.
fn with_life(reply: Reply, machine: &Machine) -> Reply {
    match machine.life() {
        0 => reply,
        life => with(reply, HeaderName::from_static(stead_protocol::LIFE), &life.to_string()),
    }
}

/// The answer to a machine, which asks it to check if it has not.
fn asked_to_check(reply: Reply, machine: &Machine, now: u64) -> Reply {
    match machine.unchecked(now) {
        Some(number) => with(reply, HeaderName::from_static(stead_protocol::CHECK), &number.to_string()),
        None => reply,
    }
}

/// The request as its machine must have signed it.
fn stated(asked: &Asked) -> Option<MachineRequest> {
    let (name, number) = asked.header(stead_protocol::REQUEST)?.split_once(' ')?;
    let machine = MachineName::parse(name).ok()?;
    let said = asked.header(stead_protocol::HEARTBEAT).unwrap_or_default();
    // What was said is signed with the body: both are the content.
    let content = Digest::of(&[said.as_bytes(), &asked.body].concat());
    let (method, path) = (asked.method.clone(), asked.path.clone());
    let request = MachineRequest { machine, method, path, number: number.parse().ok()?, content };
    (said.len() <= LONGEST_HEARTBEAT && (said.is_empty() || is_json(said))).then_some(request)
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// The part of a content that `Range` asks for, as far as it is there.
fn part(range: &str, length: u64) -> Option<std::ops::Range<u64>> {
    let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
    let from: u64 = from.parse().ok()?;
    let to = if to.is_empty() { length } else { to.parse::<u64>().ok()?.checked_add(1)?.min(length) };
    (from < to).then(|| from..to.min(from + LONGEST_PART))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_within_the_content() {
        assert_eq!(part("bytes=2-", 10), Some(2..10));
        assert_eq!(part("bytes=2-4", 10), Some(2..5));
        assert_eq!(part("bytes=2-400", 10), Some(2..10));
        assert_eq!(part("bytes=0-", 9 << 20), Some(0..LONGEST_PART));
        for range in ["bytes=10-", "bytes=4-2", "bytes=-4", "bytes=a-b", "0-4", "bytes=0-18446744073709551615,1-2"] {
            assert_eq!(part(range, 10), None, "{range}");
        }
    }
}
