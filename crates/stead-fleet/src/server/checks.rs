//! Machines that are asked to check at once.

use stead_protocol::{CheckAnswer, CheckShown};

use super::Controller;
use super::lists::Wanted;
use super::reply::{bad, json};
use super::requests::{Answered, Asked};
use crate::store::{Standing, StoreWrite};
use stead_hosts::MachineName;

impl Controller {
    /// Asks the machines that a filter means, as far as they are admitted. The number of the request is its time.
    pub(super) async fn check(&self, by: &MachineName, asked: &Asked) -> Answered {
        let (wanted, number) = (Wanted::of(asked)?, self.now());
        let meant = self.meant(&wanted).into_iter().map(|(machine, _)| machine);
        let meant: Vec<_> = meant.filter(|machine| machine.row().standing == Standing::Admitted).collect();
        let answer = CheckAnswer { number, machines: meant.len() as u64 };
        if !meant.is_empty() {
            let of = wanted.filter.map_or("all".to_owned(), |filter| filter.to_string());
            let did = format!("check {} machines: {of}", meant.len());
            let machines = meant.iter().map(|machine| machine.id()).collect();
            self.act(by, &did, vec![StoreWrite::Check { machines, number }]).await?;
            self.seen(|_| meant.iter().all(|machine| machine.row().asked >= number)).await;
        }
        Ok(json(&answer))
    }

    /// The machines that were asked by a request or since, and which of them did.
    pub(super) fn checks(&self, asked: &Asked) -> Answered {
        let number: u64 = asked.part(0).parse().map_err(|_| Box::new(bad("that is not a number")))?;
        Ok(json(&self.page(&Wanted::of(asked)?, |machine, state| {
            let row = machine.row();
            let shown = || CheckShown { machine: row.name.to_string(), state, checked: machine.checked() >= number };
            (row.asked >= number).then(shown)
        })?))
    }
}
