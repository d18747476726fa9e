//! The operator of a simulation, who repeats what was not answered, and what must be found in the store at the end.

#![allow(dead_code, reason = "not every test that has this needs all of it")]

use std::collections::{BTreeMap, VecDeque};

use stead_fleet::store::{FleetStore, MachineId, StoreWrite, Token};
use stead_hosts::MachineName;
use stead_protocol::{MachineAnswer, SentReport, StandingRequest};
use stead_release::{Digest, Name};

use crate::machine::Simulated;
use crate::site::{Operators, bundle};

/// Something that is asked of a controller.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) body: Vec<u8>,
}

pub(crate) struct Operator {
    signed: Operators,
    pub(crate) jobs: VecDeque<Job>,
    /// The statements signed so far, to be published anew if they are lost.
    published: Vec<Job>,
    is_under_way: bool,
    count: u64,
    releases: u64,
    /// False if there is never a release, so that nobody needs a roster.
    has_releases: bool,
    has_begun_again: bool,
}

impl Operator {
    /// Makes the account in the store, and a token for so many machines.
    pub(crate) fn new(store: &mut FleetStore, machines: usize, has_releases: bool) -> Self {
        let name = MachineName::parse("ann").unwrap();
        let account = StoreWrite::Operator { name, role: "approver".to_owned(), digest: Digest::of(b"operator") };
        let (digest, uses) = (Digest::of(b"token"), machines as u64);
        let token = Token { digest, uses, length: 24 * 3_600_000, labels: "{}".to_owned() };
        store.commit(&[vec![account, StoreWrite::Token(token)]]).unwrap().0.remove(0).unwrap();
        Self {
            signed: Operators::new(),
            jobs: VecDeque::new(),
            published: Vec::new(),
            is_under_way: false,
            count: 0,
            releases: 0,
            has_releases,
            has_begun_again: false,
        }
    }

    pub(crate) fn root(&self) -> Digest {
        self.signed.root.digest()
    }

    fn publishes(&mut self, kind: &str, text: String) -> Job {
        let job = Job { method: "POST", path: format!("/v1/statements/{kind}"), body: text.into_bytes() };
        self.published.push(job.clone());
        job
    }

    /// The root statement, the first release and the roster, by which machines know the channel.
    pub(crate) fn begin(&mut self, machines: &[Simulated]) -> Vec<Job> {
        let members: Vec<_> = machines.iter().map(|machine| (&machine.name, machine.keys.key(), "web")).collect();
        let root = self.signed.root.to_text();
        let mut jobs = vec![self.publishes("root", root)];
        if !self.has_releases {
            return jobs;
        }
        jobs.extend(self.release());
        let roster = self.signed.roster_at_the_newest(&members);
        jobs.push(self.publishes("roster", roster));
        jobs
    }

    /// The next release, and what is in it.
    fn release(&mut self) -> Vec<Job> {
        self.releases += 1;
        let bundle = bundle(&format!("bundle {}", self.releases));
        let content = Job { method: "PUT", path: format!("/v1/blobs/{}", bundle.name()), body: bundle.encode() };
        self.published.push(content.clone());
        let release = self.signed.release("web", "role=web", &bundle);
        vec![content, self.publishes("release", release)]
    }

    /// Signs the next release, and publishes it next.
    pub(crate) fn sign(&mut self) {
        let jobs = self.release();
        self.jobs.extend(jobs);
    }

    pub(crate) fn newest(&self) -> Option<(Name, u64)> {
        (self.releases > 0).then(|| ("web".parse().unwrap(), self.releases))
    }

    pub(crate) fn admit(&mut self, name: &MachineName) {
        let path = format!("/v1/machines/{name}/standing");
        if self.jobs.iter().all(|job| job.path != path) {
            let body = serde_json::to_vec(&StandingRequest { standing: "admitted".to_owned() }).unwrap();
            self.jobs.push_back(Job { method: "POST", path, body });
        }
    }

    /// The next step, if nothing is under way.
    pub(crate) fn next(&mut self) -> Option<(u64, Job)> {
        if self.is_under_way {
            return None;
        }
        let job = self.jobs.front()?.clone();
        (self.is_under_way, self.count) = (true, self.count + 1);
        Some((self.count, job))
    }

    pub(crate) fn answered(&mut self, answer: &MachineAnswer) {
        self.is_under_way = false;
        match answer.status {
            200 => drop(self.jobs.pop_front()),
            // It is away, or does not know yet what was restored.
            401 | 404 | 409 | 424 | 503 => {}
            status => panic!("an operator is answered {status}: {}", answer.words()),
        }
    }

    pub(crate) fn lost(&mut self) {
        self.is_under_way = false;
    }

    /// Everything is published once more.
    pub(crate) fn again(&mut self) {
        self.has_begun_again = true;
        let later: Vec<_> = self
            .jobs
            .drain(..)
            .filter(|job| !self.published.iter().any(|done| done.path == job.path && done.body == job.body))
            .collect();
        self.jobs.extend(self.published.iter().cloned().chain(later));
    }

    pub(crate) fn left(&self) -> Vec<String> {
        self.jobs.iter().map(|job| format!("{} is not done", job.path)).collect()
    }

    /// What is wrong in the store: reports that are lost, doubled or others, acts and statements that are not there once.
    pub(crate) fn compared(&self, store: &mut FleetStore, machines: &[Simulated]) -> Vec<String> {
        let mut wrong = Vec::new();
        let rows = store.changes(0).unwrap().machines;
        let ids: BTreeMap<MachineName, MachineId> = rows.into_iter().map(|row| (row.name, row.id)).collect();
        for machine in machines {
            let Some(id) = ids.get(&machine.name) else {
                wrong.push(format!("{} is not there", machine.name));
                continue;
            };
            let kept = store.reports(*id, u64::MAX, 100_000).unwrap();
            let kept: Vec<SentReport> =
                kept.iter().rev().map(|report| serde_json::from_slice(&report.body).unwrap()).collect();
            if kept != machine.reports() {
                let numbers: Vec<u64> = kept.iter().map(|report| report.number).collect();
                wrong.push(format!("of {} there are {numbers:?} of {}", machine.name, machine.reports().len()));
            }
        }
        let count = store.count_reports().unwrap();
        let made: u64 = machines.iter().map(|machine| machine.reports().len() as u64).sum();
        // A machine of the time that an older copy lacks may have reported before its controller noticed: that stays under a number which
        // no machine has, and is sent again under the new one.
        if count < made || count > made && !self.has_begun_again {
            wrong.push(format!("there are {count} reports, and {made} were made"));
        }
        let acts = store.acts(0, 100_000).unwrap();
        for (kind, count) in [("root", 1), ("roster", u64::from(self.has_releases)), ("channel/web", self.releases)] {
            let of_kind = acts.iter().filter(|act| act.body.contains(&format!("publish {kind} "))).count() as u64;
            if of_kind != count {
                wrong.push(format!("{of_kind} acts publish '{kind}', and {count} were done"));
            }
        }
        wrong
    }
}
