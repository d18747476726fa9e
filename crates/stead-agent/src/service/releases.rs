//! Releases that are followed: a look at their source, and what becomes of it.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value as Json, json};
use stead_core::bundle::{Bundle, Reach};
use stead_core::diag::codes::release::NOT_A_CHANNEL;
use stead_core::source::SourceId;
use stead_core::text::Limits;
use stead_core::value::Value;
use stead_engine::error_chain;
use stead_release::{
    Digest, FleetFollower, KnownRoster, MachineKeys, MachineReport, Name, Obstacle, Release, ReleaseRefusal,
    ReleaseSecrets, RosterHold, SealedParameters, Signed, SourceFile,
};
use stead_system::Cancel;
use stead_system::fs::User;

use super::controller::{self, Controller};
use super::controller_files::ControllerFiles;
use super::deliveries::{Origin, SHORTEST_PAUSE, Terms, Valid};
use super::jobs::random_part;
use super::machine_reports::machine_report;
use super::{Agent, Inner};
use crate::control::{Follow, Join, Offline, Refused, SignReports, SignedReport, SignedReports, Unfollow, Unfollowed};
use crate::follow::{Fetch, FetchError, SourceAddress};
use crate::keys::{KeysOrigin, KeysWanted, OwnKeys};
use crate::settings::Backoff;
use crate::source::SourceFailure;
use crate::state::{Followed, Following, StagedRelease};
use crate::store::Delivered;

/// The first and the longest wait for a source that cannot be asked.
const BACKOFF: Backoff = Backoff { base: Duration::from_secs(15), cap: Duration::from_mins(30) };

/// A source that does not want to be asked for longer is asked all the same.
const LONGEST_PAUSE: Duration = Duration::from_hours(24);

/// The folder for what readers keep.
const PLACE: &str = "following";

/// A reader of a source.
struct Reading {
    source: SourceAddress,
    cancel: Cancel,
    fetch: Box<dyn Fetch>,
    roster: KnownRoster,
    controller: Option<Arc<Controller>>,
}

/// What reads the source that is followed, and how it went.
#[derive(Default)]
pub(super) struct Reader {
    of: Option<Reading>,
    /// How often in a row it could not be asked.
    failures: u32,
}

/// Why nothing newer was staged.
enum Trouble {
    Offline(FetchError),
    /// The envelope of a release is not there yet.
    NotSealed(SourceFile),
    Held(RosterHold),
    Refused(SourceFailure),
}

impl From<FetchError> for Trouble {
    fn from(error: FetchError) -> Self {
        Self::Offline(error)
    }
}

impl From<Refused> for Trouble {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused.into())
    }
}

impl From<Obstacle<FetchError>> for Trouble {
    fn from(obstacle: Obstacle<FetchError>) -> Self {
        match obstacle {
            Obstacle::Unreachable(error) => error.into(),
            Obstacle::Missing(file) => FetchError::new(format!("it does not have '{file}'")).into(),
            Obstacle::NotSealed(file) => Self::NotSealed(file),
            Obstacle::Held(hold) => Self::Held(hold),
            Obstacle::Refused(file, refusal) => refused(&file, &refusal),
        }
    }
}

fn refused(file: &SourceFile, refusal: &ReleaseRefusal) -> Trouble {
    let refused = Refused::new(format!("{file}: {refusal}"));
    Trouble::Refused(SourceFailure { refused, code: Some(refusal.code().id) })
}

impl Reader {
    /// True if something else was followed meanwhile.
    fn is_left(&self) -> bool {
        self.of.as_ref().is_some_and(|reading| reading.cancel.is_cancelled())
    }

    /// What reads the source of what is followed, as long as that is so; `None` if it is not so any more.
    fn of(&mut self, followed: &Followed, agent: &Arc<Agent>) -> Result<Option<&mut Reading>, Refused> {
        let source = &followed.source;
        let known = self.of.take().filter(|known| known.source == *source && !known.cancel.is_cancelled());
        let known = if let Some(known) = known {
            known
        } else {
            self.failures = 0;
            Reading::begin(followed, agent)?
        };
        let mut inner = agent.lock();
        let known = self.of.insert(known);
        inner.following.reading = known.cancel.clone();
        inner.following.controller.clone_from(&known.controller);
        let is_followed = inner.state.follows(followed);
        if !is_followed {
            inner.following.leave();
        }
        Ok(is_followed.then_some(known))
    }
}

impl Reading {
    fn begin(followed: &Followed, agent: &Arc<Agent>) -> Result<Self, Refused> {
        let (source, cancel, place) = (&followed.source, Cancel::default(), agent.directory.join(PLACE));
        let (fetch, controller) = if let Some(fetch) = source.reader(&place, &cancel.or(&agent.inspections)) {
            (fetch, None)
        } else {
            let controller = Controller::start(agent, followed)?;
            let files = ControllerFiles::new(Arc::clone(agent), Arc::clone(&controller), place.join("controller"));
            (Box::new(files) as Box<dyn Fetch>, Some(controller))
        };
        Ok(Self { source: source.clone(), cancel, fetch, roster: KnownRoster::default(), controller })
    }
}

impl Agent {
    /// Begins to follow a source of releases.
    pub(super) fn follow_source(&self, question: Follow) -> Result<Followed, Refused> {
        let Follow { source, root, machine, joining } = question;
        let source = SourceAddress::try_from(source).map_err(|error| Refused::new(error.to_string()))?;
        let root = root.parse::<Digest>().map_err(|error| Refused::new(error.to_string()))?;
        let is_controller = matches!(source, SourceAddress::Controller(_));
        let Join { joining, token } = joining.unwrap_or_default();
        let followed = Followed { source, root, machine, joining: is_controller.then_some(joining) };
        let mut inner = self.lock();
        if self.source.is_some() {
            return Err(Refused::new("this agent follows what the program gives it that it is part of"));
        }
        if inner.state.settings.source_folder.is_some() {
            let message = "the setting SourceFolder names a folder that is followed; empty it first";
            return Err(Refused::new(message));
        }
        if is_controller {
            // It is asked anew, with what was given this time.
            inner.following.leave();
            controller::prepare(self, &followed, token.as_ref())?;
        }
        self.changed(&mut inner, |state| {
            state.follow(followed.clone());
            Ok(())
        })?;
        // Also what was followed before is looked at now: that is why it was said again.
        inner.following.look = true;
        self.changed.notify_all();
        self.log.write("following", json!(followed));
        Ok(followed)
    }

    /// Follows no source of releases any more.
    pub(super) fn unfollow(&self, _: Unfollow, user: u32) -> Result<Unfollowed, Refused> {
        let mut inner = self.lock();
        let former = self.changed(&mut inner, |state| Ok(state.unfollow()))?;
        let former = former.ok_or_else(|| Refused::new("no source of releases is followed"))?;
        self.log.write("unfollowed", json!({ "source": former.source, "root": former.root, "user": user }));
        Ok(Unfollowed { source: former.source.into() })
    }

    /// Refuses what a user of the machine wants where operators of a fleet decide.
    pub(super) fn check_local(&self, inner: &Inner, user: u32, way: &str) -> Result<(), Refused> {
        let Some(Following { followed, .. }) = &inner.state.following else { return Ok(()) };
        let message = format!("this machine follows '{}', whose operators decide what it has; {way}", followed.source);
        self.log.write("localRefused", json!({ "user": user, "failure": message }));
        Err(Refused::new(message))
    }

    /// Looks at a source of releases, and notes how that went. Returns how long it is not asked again.
    pub(super) fn look_at_releases(
        self: &Arc<Self>,
        following: &Following,
        reader: &mut Reader,
        every: Duration,
    ) -> Duration {
        let mut fleet = None;
        let looked = match reader.of(&following.followed, self) {
            Ok(None) => return Duration::ZERO,
            Ok(Some(Reading { fetch, .. })) if !fetch.is_ready() => return every,
            Ok(Some(Reading { fetch, roster, .. })) => {
                let looked = self.look(following, (&mut **fetch, roster), &mut fleet);
                // Until it is looked at again, everything is done of a machine that is held.
                fetch.ended(matches!(looked, Ok(()) | Err(Trouble::Held(_))));
                looked
            }
            Err(refused) => Err(refused.into()),
        };
        let mut inner = self.lock();
        if !inner.state.follows(&following.followed) || reader.is_left() {
            return Duration::ZERO;
        }
        let now = Timestamp::now();
        let (mut failure, mut offline, mut waiting, mut hold) = (None, None, None, None);
        match looked {
            Ok(()) => {}
            Err(Trouble::Refused(refused)) => failure = Some(refused),
            Err(Trouble::Offline(error)) => offline = Some(error),
            Err(Trouble::NotSealed(file)) => waiting = Some(file.to_string()),
            Err(Trouble::Held(stated)) => hold = Some(stated),
        }
        self.note_waiting(&mut inner, &following.followed, waiting);
        let ends = hold.as_ref().and_then(|hold| Duration::try_from(hold.until().duration_since(now)).ok());
        self.note_hold(&mut inner, &following.followed, hold);
        let until = offline.as_ref().and_then(|error| error.until);
        // A controller is asked by its own rules.
        let is_failure = offline.is_some() && inner.following.controller.is_none();
        reader.failures = if is_failure { reader.failures.saturating_add(1) } else { 0 };
        self.note_offline(&mut inner, &following.followed, offline.map(|error| error.reason), now);
        self.note_failure(&mut inner, &following.followed.source.to_string(), failure);
        inner.following.view.fleet = fleet.or(inner.following.view.fleet.take());
        match reader.failures {
            0 => or_when_a_hold_ends(until_slot(&following.followed, every, now), ends),
            failures => wait_for_source(failures, until, now, random_part()),
        }
    }

    fn note_waiting(&self, inner: &mut Inner, followed: &Followed, file: Option<String>) {
        let view = &mut inner.following.view;
        if file.is_some() && file != view.waiting {
            self.log.write("waitingForSecrets", json!({ "source": followed.source, "file": file }));
        }
        view.waiting = file;
    }

    fn note_hold(&self, inner: &mut Inner, followed: &Followed, hold: Option<RosterHold>) {
        let view = &mut inner.following.view;
        if let Some(hold) = hold.as_ref().filter(|hold| view.hold.as_ref() != Some(hold)) {
            let (until, why) = (hold.until(), hold.why());
            self.log.write("heldByRoster", json!({ "source": followed.source, "until": until, "why": why }));
        }
        view.hold = hold;
    }

    fn note_offline(&self, inner: &mut Inner, followed: &Followed, reason: Option<String>, now: Timestamp) {
        let view = &mut inner.following.view;
        match (&view.offline, &reason) {
            (None, Some(reason)) => {
                self.log.write("sourceOffline", json!({ "source": followed.source, "failure": reason }));
            }
            (Some(_), None) => self.log.write("sourceReached", json!({ "source": followed.source })),
            _ => {}
        }
        let since = view.offline.as_ref().map_or(now, |offline| offline.since);
        view.offline = reason.map(|reason| Offline { since, reason });
    }

    fn look(
        &self,
        following: &Following,
        (fetch, roster): (&mut dyn Fetch, &KnownRoster),
        fleet: &mut Option<Name>,
    ) -> Result<(), Trouble> {
        fetch.begin()?;
        let session = self.job_host.host.session(std::path::Path::new("/"));
        let Following { followed, memory, .. } = following;
        let keys = self.own_keys()?;
        let follower = FleetFollower {
            root: &followed.root,
            machine: &followed.machine,
            keys: Some(&keys),
            roster,
            fact: |path: &str| session.machine().facts().ok().and_then(|facts| fact_at(facts, path)),
            now: Timestamp::now(),
        };
        let decision = follower.decide(memory, |file| fetch.file(file));
        *fleet = decision.fleet;
        let is_unknown = |channel: &Name| !decision.memory.channels.contains_key(channel);
        // Of a roster that could not be read, the obstacle says why.
        let unknown = fetch.channel().filter(|channel| decision.memory.roster.is_some() && is_unknown(channel));
        let taken = {
            let mut inner = self.lock();
            if !inner.state.follows(followed) {
                return Ok(());
            }
            // What was seen is remembered before anything follows from it.
            if decision.memory != *memory {
                self.changed(&mut inner, |state| {
                    state.remember(decision.memory);
                    Ok(())
                })?;
            }
            inner.state.taken.clone()
        };
        if let Some(release) = decision.release.filter(|release| taken.as_deref() != Some(release.digest().as_str())) {
            let secrets = follower.secrets(&release, |file| fetch.file(file))?;
            self.stage_release(followed, &release, secrets.as_ref(), fetch)?;
        }
        // A source that cannot be reached says more than the roster that is known.
        let is_away = matches!(&decision.obstacle, Some(Obstacle::Unreachable(_) | Obstacle::Missing(_)));
        if let Some(channel) = unknown.filter(|_| !is_away) {
            let why =
                format!("the roster does not name the channel '{channel}', of which a release is for this machine");
            return Err(Trouble::Refused(SourceFailure { refused: Refused::new(why), code: Some(NOT_A_CHANNEL.id) }));
        }
        decision.obstacle.map_or(Ok(()), |obstacle| Err(obstacle.into()))
    }

    /// The keys of this machine, which are made the first time.
    pub(super) fn own_keys(&self) -> Result<MachineKeys, Refused> {
        let own = OwnKeys::open(&self.directory, KeysWanted::Present);
        let OwnKeys { keys, origin } = own.map_err(|error| Refused::new(error_chain(&error)))?;
        if origin != KeysOrigin::Kept {
            self.log.write("keysMade", json!({ "key": keys.key().fingerprint(), "why": format!("{origin:?}") }));
        }
        Ok(keys)
    }

    /// The reports of jobs that followed a fleet, signed by this machine. The same report is signed alike each time.
    pub(super) fn sign_reports(&self, SignReports { after, most }: SignReports) -> Result<SignedReports, Refused> {
        let found = self.reports.after(after, most).map_err(|error| Refused::new(error_chain(&error)))?;
        let keys = self.own_keys()?;
        let next = found.iter().map(|stored| stored.number.saturating_add(1)).max().unwrap_or(after);
        let reports = found.into_iter().filter_map(machine_report).filter(|report| {
            let is_short = report.is_short();
            if !is_short {
                self.log.write("reportLost", json!({ "number": report.number, "failure": "it is too large" }));
            }
            is_short
        });
        let signed = |report: MachineReport| SignedReport {
            number: report.number,
            name: report.file_name(),
            text: keys.sign(report).to_text(),
        };
        Ok(SignedReports { reports: reports.map(signed).collect(), next })
    }

    /// Stages a release that was checked.
    fn stage_release(
        &self,
        followed: &Followed,
        release: &Signed<Release>,
        secrets: Option<&ReleaseSecrets>,
        fetch: &mut dyn Fetch,
    ) -> Result<(), Trouble> {
        let Release { link, channel, expires, bundle: name, parameters, sealed, .. } = release.statement();
        let mut parameters = parameters.clone();
        parameters.extend(secrets.map(ReleaseSecrets::expose_parameters).unwrap_or_default());
        let file = SourceFile::Blob(name.clone());
        let bytes = fetch.file(&file)?.ok_or_else(|| Trouble::from(Obstacle::Missing(file.clone())))?;
        let bundle = Bundle::decode(&bytes, Reach::Machine, Some(name.as_str()))
            .map_err(|_| refused(&file, &ReleaseRefusal::Bundle))?;
        let (document, text) = bundle.document();
        if let Some(open) = sealed.as_ref().and_then(|sealed| not_secret(text, sealed)) {
            return Err(refused(&file, &ReleaseRefusal::NotSecret(open)));
        }
        let document = document.to_owned();
        let delivered = Delivered::of_bundle(document, &bundle, parameters, PathBuf::from("/"));
        let user = User::current().id;
        let valid = self.validate(delivered, user)?;
        let digest = release.digest();
        let staged = StagedRelease {
            generation: 0,
            channel: channel.clone(),
            number: link.number,
            digest: digest.clone(),
            expires: *expires,
        };
        let terms = Terms { origin: Some(Origin::Releases(followed, &staged)), ..Terms::of(user) };
        self.stage(Valid { digest: Some(digest.into()), ..valid }, terms)?;
        Ok(())
    }
}

/// The first parameter whose value is sealed and that a document does not declare as a secret: nothing would cover its value.
fn not_secret(document: &str, sealed: &SealedParameters) -> Option<String> {
    let (document, _) = stead_core::document::parse(SourceId::default(), document, &Limits::default());
    let is_secret =
        |name: &str| document.parameters.iter().any(|each| each.name.value == name && each.data_type.value.is_secure());
    sealed.names().iter().find(|name| !is_secret(name)).cloned()
}

/// A fact by its path, as a text that filters compare.
fn fact_at(facts: &Value, path: &str) -> Option<String> {
    let found = path.split('.').try_fold(facts, |at, name| match at {
        Value::Object(members) => members.get(name),
        _ => None,
    });
    match found?.to_redacted_json() {
        Json::String(text) => Some(text),
        Json::Null | Json::Array(_) | Json::Object(_) => None,
        other => Some(other.to_string()),
    }
}

/// How long it is until the machine is at its place in the interval. Each machine has one of its own, so that not all ask at once.
fn until_slot(followed: &Followed, every: Duration, now: Timestamp) -> Duration {
    let mut hasher = DefaultHasher::new();
    (&followed.machine, followed.root.as_str()).hash(&mut hasher);
    let every = u64::try_from(every.as_millis()).unwrap_or(u64::MAX).max(1);
    let now = u64::try_from(now.as_millisecond()).unwrap_or_default();
    let into = (now % every + every - hasher.finish() % every) % every;
    Duration::from_millis(every - into).max(SHORTEST_PAUSE)
}

/// How long it is until the next look of a machine that may be held: it goes on when the hold ends, by its own clock.
fn or_when_a_hold_ends(slot: Duration, ends: Option<Duration>) -> Duration {
    ends.map_or(slot, |ends| slot.min(ends.max(SHORTEST_PAUSE)))
}

/// How long a source that could not be asked is left alone: a random part of a wait that grows, behind the time that it named.
pub(super) fn wait_for_source(failures: u32, until: Option<Timestamp>, now: Timestamp, part: f64) -> Duration {
    let asked = until.and_then(|until| Duration::try_from(until.duration_since(now)).ok()).unwrap_or_default();
    (asked + BACKOFF.after(failures).mul_f64(part)).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_left_alone_behind_the_time_that_it_names_and_a_day_at_most() {
        let now = Timestamp::UNIX_EPOCH;
        let wait = |until: Option<i64>, part| {
            let until = until.map(|seconds| Timestamp::from_second(seconds).unwrap());
            wait_for_source(1, until, now, part)
        };
        let backoff = BACKOFF.after(1);
        assert_eq!(wait(None, 0.0), SHORTEST_PAUSE);
        assert_eq!(wait(None, 1.0), backoff);
        assert_eq!(wait(Some(120), 0.0), Duration::from_mins(2));
        assert_eq!(wait(Some(120), 0.5), Duration::from_mins(2) + backoff / 2, "not all at that moment");
        assert_eq!(wait(Some(-120), 1.0), backoff, "it is over");
        assert_eq!(wait(Some(Timestamp::MAX.as_second()), 1.0), LONGEST_PAUSE);
        let longest = |failures| wait_for_source(failures, None, now, 1.0).as_secs();
        assert_eq!([1, 2, 3, 7, 8, 9, u32::MAX].map(longest), [15, 30, 60, 960, 1800, 1800, 1800]);
    }

    #[test]
    fn a_machine_looks_again_when_its_hold_ends() {
        let [soon, slot, late] = [10, 600, 90_000].map(Duration::from_secs);
        assert_eq!([None, Some(soon), Some(late)].map(|ends| or_when_a_hold_ends(slot, ends)), [slot, soon, slot]);
        assert_eq!(or_when_a_hold_ends(slot, Some(Duration::ZERO)), SHORTEST_PAUSE);
    }

    #[test]
    fn each_machine_looks_once_in_each_interval_at_a_place_of_its_own() {
        let every = Duration::from_mins(15);
        let followed = |machine: String| Followed {
            source: SourceAddress::Folder(PathBuf::from("/srv")),
            root: Digest::of(b"root"),
            machine,
            joining: None,
        };
        let place = |machine: &Followed, seconds: i64| {
            let now = Timestamp::from_second(seconds).unwrap();
            let next = until_slot(machine, every, now);
            assert!(next >= SHORTEST_PAUSE && next <= every, "{next:?}");
            (now + next).as_millisecond() % i64::try_from(every.as_millis()).unwrap()
        };
        let mut minutes = [0; 15];
        for number in 0..1500 {
            let machine = followed(format!("web{number}"));
            let places = [1_800_000_000, 1_800_000_007, 1_800_012_345].map(|seconds| place(&machine, seconds));
            // Where the place is less than a second away it looks that second.
            let apart = places.iter().max().unwrap() - places.iter().min().unwrap();
            assert!(apart < 1000, "{places:?}");
            minutes[usize::try_from(places[0] / 60_000).unwrap() % 15] += 1;
        }
        assert!(minutes.iter().all(|machines| (50..200).contains(machines)), "{minutes:?}");
    }
}
