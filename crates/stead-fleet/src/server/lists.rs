//! Lists of operators: each by a filter, in pages.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Arc, PoisonError};

use hyper::StatusCode;
use stead_hosts::{Filter, MachineName};
use stead_protocol::{
    Action, CauseShown, ChannelShown, DriftShown, FleetStatus, ListPage, MOST_LINES, MachineState, ReportShown, Route,
    USUAL_LINES,
};
use tokio::time::{Instant, timeout_at};

use super::Controller;
use super::machines::Machine;
use super::outcomes::FailureCause;
use super::reply::{Reply, bad, bytes_of, json};
use super::requests::{Answered, Asked, refused};

/// How many names of machines a cause has.
const MOST_NAMES: usize = 20;
/// How many bytes of reports a page has, unless the first of them is longer.
const LONGEST_PAGE: usize = 8 << 20;

/// The part of a list that is asked for.
pub(super) struct Wanted {
    pub(super) filter: Option<Filter>,
    after: Option<String>,
    most: usize,
}

impl Wanted {
    pub(super) fn of(asked: &Asked) -> Result<Self, Box<Reply>> {
        let filter = asked.text("where")?.map(|text| Filter::parse(&text)).transpose();
        let filter = filter.map_err(|error| Box::new(bad(format!("the filter: {}; {}", error.message, error.help))))?;
        let most = match asked.query("most").map(str::parse) {
            None => USUAL_LINES,
            Some(Ok(most)) if (1..=MOST_LINES).contains(&most) => most,
            Some(_) => return Err(Box::new(bad(format!("a page has 1 to {MOST_LINES} lines")))),
        };
        Ok(Self { filter, after: asked.text("after")?, most })
    }
}

impl Controller {
    /// The answer to a question about machines, by what is known in memory.
    pub(super) fn listed(&self, route: &Route, asked: &Asked) -> Answered {
        let (at, wanted) = (self.now(), Wanted::of(asked)?);
        match route.action {
            Action::Machine => {
                let machine = self.named(asked)?;
                Ok(json(&machine.shown(at, self.started)))
            }
            Action::Status => Ok(json(&self.status(&wanted))),
            Action::Metrics => {
                let text = self.counters.text(&self.status(&wanted));
                Ok(bytes_of("text/plain; version=0.0.4; charset=utf-8", text.into()))
            }
            Action::Drift => Ok(json(&self.page(&wanted, |machine, _| {
                let outcome = machine.outcome().filter(|outcome| !outcome.drift.is_empty())?;
                let (machine, instances) = (machine.row().name.to_string(), outcome.drift.clone());
                Some(DriftShown { machine, report: outcome.number, instances })
            })?)),
            Action::Failures => Ok(json(&self.failures(&wanted)?)),
            _ => Ok(json(&self.page(&wanted, |machine, _| Some(machine.shown(at, self.started)))?)),
        }
    }

    /// A page of what is made of machines that are meant, in the order of their names.
    pub(super) fn page<T>(
        &self,
        wanted: &Wanted,
        of: impl Fn(&Machine, MachineState) -> Option<T>,
    ) -> Result<ListPage<T>, Box<Reply>> {
        let after = wanted.after.as_deref().map(MachineName::parse).transpose();
        let after = after.map_err(|why| Box::new(bad(format!("a page begins behind a name: {why}"))))?;
        let at = self.now();
        let machines = self.machines.read().unwrap_or_else(PoisonError::into_inner);
        let behind = machines.range((after.map_or(Unbounded, Excluded), Unbounded));
        let mut lines = behind.filter_map(|(name, machine)| {
            let state = machine.state(at, self.started);
            let is_meant = wanted.filter.as_ref().is_none_or(|filter| machine.is_meant(filter, state));
            Some((name, of(machine, state).filter(|_| is_meant)?))
        });
        let (mut items, mut last) = (Vec::new(), None);
        for (name, line) in lines.by_ref().take(wanted.most) {
            items.push(line);
            last = Some(name.to_string());
        }
        let next = if lines.next().is_some() { last } else { None };
        Ok(ListPage { items, next })
    }

    /// The machines that are meant, with their states.
    pub(super) fn meant(&self, wanted: &Wanted) -> Vec<(Arc<Machine>, MachineState)> {
        let at = self.now();
        self.each_machine(|machine| {
            let state = machine.state(at, self.started);
            let is_meant = wanted.filter.as_ref().is_none_or(|filter| machine.is_meant(filter, state));
            is_meant.then(|| (Arc::clone(machine), state))
        })
    }

    fn status(&self, wanted: &Wanted) -> FleetStatus {
        let mut machines: BTreeMap<String, u64> = MachineState::ALL.map(|state| (state.as_str().to_owned(), 0)).into();
        let newest = self.newest.read().unwrap_or_else(PoisonError::into_inner).clone();
        let named = self.channels.read().unwrap_or_else(PoisonError::into_inner).clone();
        let channel = |(name, number): (stead_release::Name, u64)| {
            let (channel, is_in_roster) = (name.to_string(), named.contains(&name));
            (channel.clone(), ChannelShown { channel, number, machines: 0, applied: 0, is_in_roster })
        };
        let mut channels: BTreeMap<String, ChannelShown> = newest.into_iter().map(channel).collect();
        for (machine, state) in self.meant(wanted) {
            *machines.entry(state.as_str().to_owned()).or_default() += 1;
            let Some((channel, _)) = machine.desired().filter(|_| state != MachineState::Retired) else { continue };
            if let Some(shown) = channels.get_mut(&channel.to_string()) {
                shown.machines += 1;
                shown.applied += u64::from(
                    machine.applied().is_some_and(|applied| applied == (shown.channel.clone(), shown.number)),
                );
            }
        }
        FleetStatus {
            machines,
            channels: channels.into_values().collect(),
            roster: self.roster.load(std::sync::atomic::Ordering::Relaxed),
            epoch: self.epoch(),
            started: self.started,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Failures, the most frequent first. Pages begin behind a count of lines.
    fn failures(&self, wanted: &Wanted) -> Result<ListPage<CauseShown>, Box<Reply>> {
        let skipped: usize = match wanted.after.as_deref().map(str::parse) {
            None => 0,
            Some(Ok(skipped)) => skipped,
            Some(Err(_)) => return Err(Box::new(bad("a page of failures begins behind a count"))),
        };
        let mut causes: BTreeMap<FailureCause, (u64, Vec<String>)> = BTreeMap::new();
        for (machine, state) in self.meant(wanted) {
            let Some(outcome) = machine.outcome().filter(|_| state != MachineState::Retired) else { continue };
            for cause in &outcome.failures {
                let (count, names) = causes.entry(cause.clone()).or_default();
                *count += 1;
                if names.len() < MOST_NAMES {
                    names.push(machine.row().name.to_string());
                }
            }
        }
        let mut causes: Vec<_> = causes.into_iter().collect();
        causes.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        let shown = |(cause, (machines, names)): (FailureCause, (u64, Vec<String>))| {
            let FailureCause { kind, code, message } = cause;
            CauseShown { kind, code, message, machines, names }
        };
        let (all, end) = (causes.len(), skipped.saturating_add(wanted.most));
        let items = causes.into_iter().skip(skipped).take(wanted.most).map(shown).collect();
        Ok(ListPage { items, next: (end < all).then(|| end.to_string()) })
    }

    /// The reports of a machine, the newest first. Pages begin below a number.
    pub(super) async fn reports_of(&self, asked: &Asked) -> Answered {
        let (id, wanted) = (self.named(asked)?.id(), Wanted::of(asked)?);
        let below = match wanted.after.as_deref().map(str::parse) {
            None => u64::MAX,
            Some(Ok(number)) => number,
            Some(Err(_)) => return Err(refused(StatusCode::BAD_REQUEST, "a page of reports begins below a number")),
        };
        let most = wanted.most as u64;
        let (reports, has_more) = self.read(move |store| store.page_of_reports(id, below, most, LONGEST_PAGE)).await?;
        let shown = |report: &crate::store::StoredReport| {
            let said = serde_json::from_slice(&report.body).unwrap_or_default();
            ReportShown { number: report.number, received: report.received, report: said }
        };
        let items: Vec<ReportShown> = reports.iter().map(shown).collect();
        let next = items.last().filter(|_| has_more).map(|last| last.number.to_string());
        Ok(json(&ListPage { items, next }))
    }

    /// Events behind a place; if there is none yet, it waits for the first, not for longer than it was asked to.
    pub(super) async fn events(&self, asked: &Asked) -> Answered {
        let (wanted, until) = (Wanted::of(asked)?, Instant::now() + asked.wait());
        let mut stop = self.stop.clone();
        loop {
            let looked = self.looked.notified();
            tokio::pin!(looked);
            looked.as_mut().enable();
            let page = self.events.behind(wanted.after.as_deref(), wanted.most);
            let is_over = !page.items.is_empty()
                || tokio::select! {
                    looked = timeout_at(until, looked) => looked.is_err(),
                    _ = stop.wait_for(|stop| *stop) => true,
                };
            if is_over {
                return Ok(json(&page));
            }
        }
    }
}
