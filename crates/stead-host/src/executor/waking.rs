//! Instances that are run again before their time, because something changed that they read or manage.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use stead_core::event::EventKind;
use stead_core::id::NodeId;
use stead_core::report::Phase;
use stead_core::run::Run;

use super::Watch;

/// How long it takes at most until a change is noticed while calls are under way.
pub(super) const POLL: Duration = Duration::from_millis(10);

/// How long an instance is left alone after it was woken: a file that is written to changes many times.
const PAUSE: Duration = Duration::from_millis(50);

/// What is known of the instances that can be woken.
pub(super) struct Waking {
    watch: Option<Box<dyn Watch>>,
    /// Whether more backs off than when what is watched was last looked up.
    is_stale: bool,
    /// Something of these changed, and they were not woken since.
    changed: BTreeSet<NodeId>,
    last: HashMap<NodeId, Instant>,
}

impl Waking {
    pub(super) fn new(watch: Option<Box<dyn Watch>>) -> Self {
        Self { watch, is_stale: false, changed: BTreeSet::new(), last: HashMap::new() }
    }

    /// Notes that an instance backs off.
    pub(super) fn backs_off(&mut self) {
        self.is_stale = true;
    }

    /// Whether anything that backs off is watched.
    pub(super) fn watches(&mut self, run: &Run) -> bool {
        let Some(watch) = &mut self.watch else { return false };
        if std::mem::take(&mut self.is_stale) {
            self.changed.extend(watch.watch(&run.wakeable()));
        }
        watch.is_watching()
    }

    /// Wakes those of which something changed, waiting at most so long for that.
    pub(super) fn woken(&mut self, run: &Run, longest: Duration) -> Vec<EventKind> {
        let Some(watch) = &mut self.watch else { return Vec::new() };
        let backs_off = |id: &&NodeId| matches!(run.report().record(**id).phase, Phase::BackingOff(_));
        let known = self.changed.iter().filter(backs_off);
        let longest = known.map(|id| rest(self.last.get(id))).fold(longest, Duration::min);
        self.changed.extend(watch.changed(longest));
        let (now, last) = (Instant::now(), &mut self.last);
        self.changed.retain(|id| run.report().status(*id).is_none());
        let due = self.changed.extract_if(.., |id| {
            let is_due = backs_off(&&*id) && rest(last.get(id)).is_zero();
            if is_due {
                last.insert(*id, now);
            }
            is_due
        });
        due.map(|id| EventKind::Woken { instance: run.graph().node(id).path.clone() }).collect()
    }
}

/// How long an instance is left alone yet.
fn rest(last: Option<&Instant>) -> Duration {
    last.map_or(Duration::ZERO, |last| PAUSE.saturating_sub(last.elapsed()))
}
