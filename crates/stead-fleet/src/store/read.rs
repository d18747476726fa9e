//! What is read.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use stead_hosts::MachineName;
use stead_release::{Digest, Name, PublicKey};

use super::FleetStore;
use super::apply::int;
use super::engine::{Answer, FleetStoreError, Param, Row};
use super::schema;
use super::write::{Chain, MachineId, Standing};

/// A machine as the store has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MachineRow {
    /// Its number in the store.
    pub id: MachineId,
    /// What it is called. A retired one may have the name of another.
    pub name: MachineName,
    /// Its key.
    pub key: PublicKey,
    /// What it is to the fleet.
    pub standing: Standing,
    /// The labels that it asked for, which no operator has signed.
    pub labels: BTreeMap<String, String>,
    /// When it joined, or was admitted if that was later, in milliseconds: only from then on is it expected to ask.
    pub joined: u64,
    /// The release that it is pointed to.
    pub desired: Option<(Name, u64)>,
    /// Until when it stays as it is, and why.
    pub held: Option<(u64, String)>,
    /// How often secrets were sealed to it.
    pub sealed: u64,
    /// The number of the last request to check at once.
    pub asked: u64,
}

/// What changed behind a revision.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Changes {
    /// Which history this is, from 1 on: it grows when the database may have forgotten what it acknowledged, since it is a copy or
    /// was a standby. Machines then send their reports again.
    pub epoch: u64,
    /// The revision to ask from the next time.
    pub revision: u64,
    /// The machines that are not as they were.
    pub machines: Vec<MachineRow>,
    /// The newest statement of each chain, by its number and name.
    pub heads: BTreeMap<Chain, (u64, Digest)>,
}

/// A statement as it is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredStatement {
    /// Its number.
    pub number: u64,
    /// Its name.
    pub digest: Digest,
    /// The file.
    pub body: Bytes,
}

/// A report as it is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredReport {
    /// Its number.
    pub number: u64,
    /// When it came, by the clock of the database in milliseconds.
    pub received: u64,
    /// The report.
    pub body: Bytes,
}

/// An act as it is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredAct {
    /// Its number, from 1 on.
    pub number: u64,
    /// The name of the one before.
    pub parent: Digest,
    /// Its name.
    pub digest: Digest,
    /// What was done.
    pub body: String,
}

/// When a machine was heard last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LastHeard {
    /// The number of its last request.
    pub number: u64,
    /// When, by the clock of the controller that heard it in milliseconds.
    pub at: u64,
    /// What it said of itself, as JSON.
    pub said: String,
}

/// How many reports of a page are read at once, before it is known how long they are.
const READ_AT_ONCE: u64 = 32;
const MACHINE: &str =
    "SELECT id, name, key, state, labels, joined, channel, number, held_until, held_why, sealed, asked FROM machines";

impl FleetStore {
    /// What changed behind a revision; everything behind 0.
    pub fn changes(&mut self, since: u64) -> Answer<Changes> {
        // First the revision: what is committed in between is read now, and once more the next time.
        let revision = schema::number(self.engine(), "revision")?.unwrap_or_default();
        let epoch = schema::number(self.engine(), "epoch")?.unwrap_or_default();
        let changed = format!("{MACHINE} WHERE revision > $1 ORDER BY id");
        let machines = self.engine().rows(&changed, &[Param::Int(int(since))])?;
        let machines = machines.iter().map(machine).collect::<Answer<_>>()?;
        let newest = "SELECT chain, number, digest FROM statements s
            WHERE number = (SELECT max(n.number) FROM statements n WHERE n.chain = s.chain)";
        let heads = self.engine().rows(newest, &[])?;
        let head =
            |row: &Row| Ok((row.parsed(0, "statements")?, (row.count(1, "statements")?, row.parsed(2, "statements")?)));
        let heads = heads.iter().map(head).collect::<Answer<_>>()?;
        Ok(Changes { epoch: epoch.unsigned_abs(), revision: revision.unsigned_abs(), machines, heads })
    }

    /// The statements of a chain behind a number, in their order.
    pub fn statements(&mut self, chain: &Chain, after: u64, most: u64) -> Answer<Vec<StoredStatement>> {
        let query =
            "SELECT number, digest, body FROM statements WHERE chain = $1 AND number > $2 ORDER BY number LIMIT $3";
        let chain = chain.to_string();
        let values = [Param::Text(&chain), Param::Int(int(after)), Param::Int(int(most))];
        let rows = self.engine().rows(query, &values)?;
        let statement = |row: Row| {
            let (number, digest) = (row.count(0, "statements")?, row.parsed(1, "statements")?);
            Ok(StoredStatement { number, digest, body: row.bytes(2, "statements")?.into() })
        };
        rows.into_iter().map(statement).collect()
    }

    /// How long a content is, if it is there.
    pub fn blob_length(&mut self, digest: &Digest) -> Answer<Option<u64>> {
        let query = "SELECT CAST(length(body) AS BIGINT) FROM blobs WHERE digest = $1";
        let rows = self.engine().rows(query, &[Param::Text(digest.as_str())])?;
        rows.first().map(|row| row.count(0, "blobs")).transpose()
    }

    /// A part of a content, if it is there.
    pub fn blob(&mut self, digest: &Digest, part: Range<u64>) -> Answer<Option<Bytes>> {
        let query = "SELECT substr(body, CAST($2 AS INTEGER), CAST($3 AS INTEGER)) FROM blobs WHERE digest = $1";
        let length = Param::Int(int(part.end.saturating_sub(part.start)));
        let rows =
            self.engine().rows(query, &[Param::Text(digest.as_str()), Param::Int(int(part.start) + 1), length])?;
        rows.into_iter().next().map(|row| row.bytes(0, "blobs").map(Bytes::from)).transpose()
    }

    /// The secrets of a release that are sealed to a machine, if they are there.
    pub fn envelope(&mut self, channel: &Name, number: u64, machine: &MachineName) -> Answer<Option<Bytes>> {
        let query = "SELECT body FROM envelopes WHERE channel = $1 AND number = $2 AND machine = $3";
        let channel = channel.to_string();
        let place = [Param::Text(&channel), Param::Int(int(number)), Param::Text(machine.as_str())];
        let rows = self.engine().rows(query, &place)?;
        rows.into_iter().next().map(|row| row.bytes(0, "envelopes").map(Bytes::from)).transpose()
    }

    /// Reports of a machine below a number, the newest first.
    pub fn reports(&mut self, machine: MachineId, below: u64, most: u64) -> Answer<Vec<StoredReport>> {
        let query = "SELECT number, received, CAST(form AS BIGINT), packed FROM reports
            WHERE machine = $1 AND number < $2 ORDER BY number DESC LIMIT $3";
        let values = [Param::Int(machine.0), Param::Int(int(below)), Param::Int(int(most))];
        let rows = self.engine.rows(query, &values)?;
        // A row that needs the name of the fleet was written behind it.
        self.learn_fleet()?;
        let report = |row: Row| {
            let (number, received) = (row.count(0, "reports")?, row.count(1, "reports")?);
            let form = row.int(2, "reports")?;
            let body = self.packing.unpack(form, row.bytes(3, "reports")?)?.into();
            Ok(StoredReport { number, received, body })
        };
        rows.into_iter().map(report).collect()
    }

    /// Takes in the name of the fleet once it has one, since rows of reports are packed with it.
    pub(super) fn learn_fleet(&mut self) -> Answer<()> {
        if self.packing.knows_fleet() {
            return Ok(());
        }
        let root = "SELECT digest FROM statements WHERE chain = $1 AND number = 1";
        let rows = self.engine.rows(root, &[Param::Text(&Chain::Root.to_string())])?;
        rows.first().map_or(Ok(()), |row| self.packing.learn_fleet(row.text(0, "statements")?))
    }

    /// Reports of a machine below a number, the newest first, and whether there are more: the first of them and what follows it within so
    /// many bytes. A machine can have sent many that are long, of which a row is short.
    pub fn page_of_reports(
        &mut self,
        machine: MachineId,
        below: u64,
        most: u64,
        bytes: usize,
    ) -> Answer<(Vec<StoredReport>, bool)> {
        let (mut page, mut below, mut left) = (Vec::new(), below, bytes);
        loop {
            let read = self.reports(machine, below, READ_AT_ONCE)?;
            let is_end = (read.len() as u64) < READ_AT_ONCE;
            for report in read {
                let is_first = page.is_empty();
                if page.len() as u64 >= most || report.body.len() > left && !is_first {
                    return Ok((page, true));
                }
                left = left.saturating_sub(report.body.len());
                below = report.number;
                page.push(report);
            }
            if is_end {
                return Ok((page, false));
            }
        }
    }

    /// How many reports are kept.
    pub fn count_reports(&mut self) -> Answer<u64> {
        let rows = self.engine().rows("SELECT count(*) FROM reports", &[])?;
        rows.first().ok_or(FleetStoreError::Row("reports"))?.count(0, "reports")
    }

    /// Acts behind a number, in their order.
    pub fn acts(&mut self, after: u64, most: u64) -> Answer<Vec<StoredAct>> {
        let query = "SELECT number, parent, digest, body FROM acts WHERE number > $1 ORDER BY number LIMIT $2";
        let act = |row: &Row| {
            let (number, parent) = (row.count(0, "acts")?, row.parsed(1, "acts")?);
            Ok(StoredAct { number, parent, digest: row.parsed(2, "acts")?, body: row.text(3, "acts")?.to_owned() })
        };
        self.engine().rows(query, &[Param::Int(int(after)), Param::Int(int(most))])?.iter().map(act).collect()
    }

    /// The digest of the last act; of nothing if there is none.
    pub fn head(&mut self) -> Answer<Digest> {
        let rows = self.engine().rows("SELECT digest FROM acts ORDER BY number DESC LIMIT 1", &[])?;
        rows.first().map_or_else(|| Ok(super::OperatorAct::nothing()), |row| row.parsed(0, "acts"))
    }

    /// When each machine was heard last.
    pub fn heard(&mut self) -> Answer<BTreeMap<MachineId, LastHeard>> {
        self.heard_since(0)
    }

    /// When each machine was heard last, of those that were heard since a time.
    pub fn heard_since(&mut self, since: u64) -> Answer<BTreeMap<MachineId, LastHeard>> {
        let query = "SELECT machine, number, at, said FROM heard WHERE at >= $1";
        let rows = self.engine().rows(query, &[Param::Int(int(since))])?;
        let heard = |row: &Row| {
            let (number, at) = (row.count(1, "heard")?, row.count(2, "heard")?);
            Ok((MachineId(row.int(0, "heard")?), LastHeard { number, at, said: row.text(3, "heard")?.to_owned() }))
        };
        rows.iter().map(heard).collect()
    }

    /// The number of the newest report of each machine that reported since a time, by the clock of the database in milliseconds.
    pub fn reported(&mut self, since: u64) -> Answer<Vec<(MachineId, u64)>> {
        // Of all machines the last key of each is found faster than all keys are read.
        let rows = if since == 0 {
            let newest =
                "SELECT id, coalesce((SELECT max(r.number) FROM reports r WHERE r.machine = m.id), 0) FROM machines m";
            self.engine().rows(newest, &[])?
        } else {
            let newest = "SELECT machine, max(number) FROM reports WHERE received >= $1 GROUP BY machine";
            self.engine().rows(newest, &[Param::Int(int(since))])?
        };
        rows.iter().map(|row| Ok((MachineId(row.int(0, "reports")?), row.count(1, "reports")?))).collect()
    }

    /// The machines that share a key with another one, and the number of the report or request that showed it.
    pub fn forks(&mut self) -> Answer<Vec<(MachineId, u64)>> {
        let rows = self.engine().rows("SELECT machine, number FROM forks", &[])?;
        rows.iter().map(|row| Ok((MachineId(row.int(0, "forks")?), row.count(1, "forks")?))).collect()
    }

    /// The name and the role of the account that a link offers, by the digest of its secret.
    pub fn invitation(&mut self, digest: &Digest) -> Answer<Option<(MachineName, String)>> {
        let query = "SELECT name, role FROM invitations WHERE digest = $1";
        let rows = self.engine().rows(query, &[Param::Text(digest.as_str())])?;
        let account = |row: &Row| Ok((row.name(0, "invitations")?, row.text(1, "invitations")?.to_owned()));
        rows.first().map(account).transpose()
    }

    /// The number of the last act; 0 if there is none.
    pub fn count_acts(&mut self) -> Answer<u64> {
        let rows = self.engine().rows("SELECT coalesce(max(number), 0) FROM acts", &[])?;
        rows.first().ok_or(FleetStoreError::Row("acts"))?.count(0, "acts")
    }

    /// The operator whose token has a digest, and the role.
    pub fn operator(&mut self, digest: &Digest) -> Answer<Option<(MachineName, String)>> {
        let rows = self
            .engine()
            .rows("SELECT name, role FROM operators WHERE digest = $1", &[Param::Text(digest.as_str())])?;
        let operator = |row: &Row| Ok((row.name(0, "operators")?, row.text(1, "operators")?.to_owned()));
        rows.first().map(operator).transpose()
    }
}

fn machine(row: &Row) -> Answer<MachineRow> {
    const TABLE: &str = "machines";
    let number = row.count(7, TABLE)?;
    let held = row.count(8, TABLE)?;
    Ok(MachineRow {
        id: MachineId(row.int(0, TABLE)?),
        name: row.name(1, TABLE)?,
        key: PublicKey::parse(row.text(2, TABLE)?).map_err(|_| FleetStoreError::Row(TABLE))?,
        standing: row.parsed(3, TABLE)?,
        labels: serde_json::from_str(row.text(4, TABLE)?).map_err(|_| FleetStoreError::Row(TABLE))?,
        joined: row.count(5, TABLE)?,
        desired: if number > 0 { Some((row.parsed(6, TABLE)?, number)) } else { None },
        held: if held > 0 { Some((held, row.text(9, TABLE)?.to_owned())) } else { None },
        sealed: row.count(10, TABLE)?,
        asked: row.count(11, TABLE)?,
    })
}
