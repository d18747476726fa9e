//! Instances that are run again before their time, because something changed that they read or manage.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use stead_core::event::{Event, EventKind};
use stead_core::id::NodeId;
use stead_core::report::Phase;
use stead_core::run::Run;

use super::Watch;

/// How long it takes at most until a change is noticed while calls are under way.
pub(super) const POLL: Duration = Duration::from_millis(10);

/// How long an instance is left alone after it was woken: a file that is written to changes many times.
const PAUSE: Duration = Duration::from_millis(50);

/// The knowledge about the instances that can be woken.
pub(super) struct Waking {
    watch: Option<Box<dyn Watch>>,
    /// Something of these changed, and they were not woken since.
    changed: BTreeSet<NodeId>,
    last: HashMap<NodeId, Instant>,
}

impl Waking {
    pub(super) fn new(watch: Option<Box<dyn Watch>>) -> Self {
        Self { watch, changed: BTreeSet::new(), last: HashMap::new() }
    }

    /// Watches what backs off from now on, and what has ended no longer.
    pub(super) fn note(&mut self, run: &Run, event: &Event) {
        let Some(watch) = &mut self.watch else { return };
        match &event.kind {
            EventKind::RetryScheduled { instance, .. } => {
                let is_new = run.backing_off(instance.node()).is_some_and(|instance| watch.watch(&instance));
                self.changed.extend(is_new.then_some(instance.node()));
            }
            EventKind::Settled { instance, .. } if watch.is_watching() => {
                watch.forget(instance.node());
                self.changed.remove(&instance.node());
                self.last.remove(&instance.node());
            }
            _ => {}
        }
    }

    /// Returns whether anything is watched.
    pub(super) fn is_watching(&self) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.is_watching())
    }

    /// Wakes those of which something changed, waiting at most so long for that.
    pub(super) fn woken(&mut self, run: &Run, longest: Duration) -> Vec<EventKind> {
        let Some(watch) = &mut self.watch else { return Vec::new() };
        let backs_off = |id: &&NodeId| matches!(run.report().record(**id).phase, Phase::BackingOff(_));
        let known = self.changed.iter().filter(backs_off);
        let longest = known.map(|id| rest(self.last.get(id))).fold(longest, Duration::min);
        self.changed.extend(watch.changed(longest));
        let (now, last) = (Instant::now(), &mut self.last);
        let due = self.changed.extract_if(.., |id| {
            let is_due = backs_off(&id) && rest(last.get(id)).is_zero();
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
