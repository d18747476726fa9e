//! Reports that machines send.

use bytes::Bytes;
use serde_json::value::RawValue;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use stead_hosts::MachineName;
use stead_protocol::{MOST_REPORTS, ReportsAnswer, SentReport};
use stead_release::{Digest, PublicKey, ReleaseRefusal};

use super::Controller;
use super::machines::Machine;
use super::reply::{bad, json, later};
use super::requests::{Answered, Asked};
use crate::store::{StoreWrite, Written};

/// The longest batch that is checked by the thread that answers, in bytes: others would wait for a longer one.
const SHORT: usize = 8 << 10;

/// Who reports say they are of.
struct Reporter {
    /// The fleet, once it has a root statement.
    fleet: Option<Digest>,
    name: MachineName,
    key: PublicKey,
}

/// The reason why a report is refused.
#[derive(Debug, thiserror::Error)]
enum ReportRefusal {
    #[error("{0}")]
    Form(#[from] serde_json::Error),
    #[error("a batch has at most {MOST_REPORTS} reports")]
    Many,
    #[error("error[{}]: report {number}: {refusal}", refusal.code().id)]
    Signed { number: u64, refusal: ReleaseRefusal },
    #[error("report {number} is signed as {signed}")]
    Number { number: u64, signed: u64 },
}

impl Reporter {
    /// The reports of a body with their numbers, if the machine itself has signed each.
    fn read(&self, body: &Bytes) -> Result<Vec<(u64, Bytes)>, ReportRefusal> {
        let items: Vec<&RawValue> = serde_json::from_slice(body)?;
        if items.len() > MOST_REPORTS {
            return Err(ReportRefusal::Many);
        }
        let report = |item: &RawValue| {
            let sent: SentReport = serde_json::from_str(item.get())?;
            self.check(&sent)?;
            Ok((sent.number, body.slice_ref(item.get().as_bytes())))
        };
        items.into_iter().map(report).collect()
    }

    fn check(&self, sent: &SentReport) -> Result<(), ReportRefusal> {
        let refused = |refusal| ReportRefusal::Signed { number: sent.number, refusal };
        let signed = sent.parse().map_err(|why| refused(why.into()))?;
        let fleet = self.fleet.as_ref().unwrap_or(&signed.statement().fleet);
        signed.is_report_of(fleet, &self.name, &self.key).map_err(refused)?;
        match signed.statement().number {
            number if number == sent.number => Ok(()),
            signed => Err(ReportRefusal::Number { number: sent.number, signed }),
        }
    }
}

impl Controller {
    /// Keeps reports. One that the machine has not signed itself is refused with all that came with it, and shown.
    pub(super) async fn reports(&self, machine: &Machine, asked: &Asked) -> Answered {
        let reporter = {
            let (row, fleet) = (machine.row(), self.root.read().unwrap_or_else(PoisonError::into_inner).clone());
            Reporter { fleet, name: row.name.clone(), key: row.key.clone() }
        };
        let body = asked.body.clone();
        let read = if body.len() <= SHORT {
            reporter.read(&body)
        } else {
            self.read(move |_| Ok(reporter.read(&body))).await?
        };
        let reports = read.map_err(|why| {
            machine.refuse(self.now(), why.to_string());
            Box::new(bad(why.to_string()))
        })?;
        let newest = reports.iter().map(|(number, _)| *number).max().unwrap_or_default();
        match self.write(vec![StoreWrite::Reports { machine: machine.id(), reports }]).await?.pop() {
            Some(Written::Reports { new, forked }) => {
                machine.has_reported(newest);
                self.counters.reports.fetch_add(new, Ordering::Relaxed);
                if let Some(number) = forked.last() {
                    machine.fork(*number);
                }
                Ok(json(&ReportsAnswer { new, forked }))
            }
            _ => Err(Box::new(later("the store has no answer"))),
        }
    }
}
