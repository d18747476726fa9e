//! How units become rows.

use std::collections::BTreeMap;

use stead_hosts::MachineName;
use stead_release::Digest;

use super::FleetStore;
use super::engine::{Answer, Column, Engine, FleetStoreError, Insertion, Param, Scope};
use super::packing::Packing;
use super::schema;
use super::write::{
    Chain, Enrolment, Grant, Heartbeat, Invitation, MachineId, OperatorAct, Pointers, SignedStatement, Standing,
    StoreWrite, StoredEnvelope, Token, Unit, WriteRefusal, Written, labels_text,
};

/// The outcome of a unit.
pub type UnitOutcome = Result<Vec<Written>, WriteRefusal>;

/// How many bits the numbers of machines have within a history.
const NUMBERS_OF_A_HISTORY: u32 = 32;
/// How many releases of a channel keep their content for machines that were away.
const KEPT_RELEASES: i64 = 10;
/// How many contents are removed in one commit: each may be large.
const MOST_SWEPT: i64 = 4;
/// By how much a clock may be put back, in milliseconds, before leases of the time before end early.
const LEASE_SLACK: i64 = 1_000;

/// A transaction under way.
pub(super) struct Transaction<'e> {
    engine: &'e mut dyn Engine,
    packing: &'e mut Packing,
    /// The time, by the clock of the database.
    now: i64,
    /// The revision of what this transaction changes, if it changes anything that controllers decide by.
    revision: Option<i64>,
}

/// Writes units, each whole or not at all, and returns whether other controllers must hear of it. When it returns, they are durable; acts
/// that a standby does not have yet are said.
pub(super) fn commit(store: &mut FleetStore, units: &[Unit]) -> Answer<(Vec<UnitOutcome>, bool)> {
    let scope = units.iter().flatten().map(scope).max().unwrap_or(Scope::Appends);
    store.engine().begin(scope)?;
    match written(store, units) {
        Ok((mut outcomes, hints)) => {
            match store.engine().commit() {
                Err(FleetStoreError::Behind) => {
                    let acts =
                        units.iter().zip(&mut outcomes).filter(|(unit, outcome)| is_act(unit) && outcome.is_ok());
                    acts.for_each(|(_, outcome)| *outcome = Err(WriteRefusal::Behind));
                }
                committed => committed?,
            }
            Ok((outcomes, hints))
        }
        Err(error) => {
            // What failed is said: that the transaction cannot even be given up follows from it.
            let _ = store.engine().roll_back();
            Err(error)
        }
    }
}

fn scope(write: &StoreWrite) -> Scope {
    match write {
        StoreWrite::Reports { .. }
        | StoreWrite::Fork { .. }
        | StoreWrite::Heard(_)
        | StoreWrite::Blob(..)
        | StoreWrite::Forget { .. } => Scope::Appends,
        StoreWrite::Act(_) => Scope::Acts,
        _ => Scope::Decides,
    }
}

fn written(store: &mut FleetStore, units: &[Unit]) -> Answer<(Vec<UnitOutcome>, bool)> {
    let now = int(store.now()?);
    if units.iter().flatten().any(|write| matches!(write, StoreWrite::Reports { .. })) {
        store.learn_fleet()?;
    }
    let FleetStore { engine, packing, .. } = store;
    let mut transaction = Transaction { engine: &mut **engine, packing, now, revision: None };
    // Reports are what comes often: those of all units are one statement.
    let mut reports = transaction.reports(units)?.into_iter();
    let mut outcomes = Vec::with_capacity(units.len());
    for unit in units {
        let outcome = if is_reports(unit) { reports.next().map(|written| Ok(vec![written])) } else { None };
        outcomes.push(match outcome {
            Some(outcome) => outcome,
            None => transaction.unit(unit)?,
        });
    }
    let hints = transaction.revision.is_some();
    if hints {
        store.engine().hint()?;
    }
    Ok((outcomes, hints))
}

fn is_act(unit: &Unit) -> bool {
    unit.iter().any(|write| matches!(write, StoreWrite::Act(_)))
}

fn is_reports(unit: &Unit) -> bool {
    matches!(unit.as_slice(), [StoreWrite::Reports { .. }])
}

/// A write as far as it went: a refusal is not an error of the database.
type Step = Answer<Result<Written, WriteRefusal>>;

impl Transaction<'_> {
    fn unit(&mut self, unit: &Unit) -> Answer<UnitOutcome> {
        self.engine.batch("SAVEPOINT unit")?;
        let (mut outcomes, before) = (Vec::with_capacity(unit.len()), self.revision);
        for write in unit {
            match self.write(write)? {
                Ok(written) => outcomes.push(written),
                Err(refusal) => {
                    self.engine.batch("ROLLBACK TO SAVEPOINT unit")?;
                    self.revision = before;
                    return Ok(Err(refusal));
                }
            }
        }
        self.engine.batch("RELEASE SAVEPOINT unit")?;
        Ok(Ok(outcomes))
    }

    fn write(&mut self, write: &StoreWrite) -> Step {
        match write {
            StoreWrite::Enrol(enrolment) => self.enrol(enrolment),
            StoreWrite::Standing(machine, standing) => self.standing(*machine, *standing),
            StoreWrite::Hold { machine, until, why } => self.hold(*machine, *until, why),
            StoreWrite::Check { machines, number } => self.check(machines, int(*number)),
            StoreWrite::Token(token) => self.token(token),
            StoreWrite::Operator { name, role, digest } => self.operator(name, role, digest),
            StoreWrite::Invite(invitation) => self.invite(invitation),
            StoreWrite::Accept { invitation, token } => self.take_account(invitation, token),
            StoreWrite::Blob(digest, body) => self.blob(digest, body),
            StoreWrite::Statement(statement) => self.statement(statement),
            StoreWrite::Envelope(envelope) => self.envelope(envelope),
            StoreWrite::Point(pointers) => self.point(pointers),
            StoreWrite::Reports { .. } => Ok(Ok(self.reports(&[vec![write.clone()]])?.pop().unwrap_or(Written::Known))),
            StoreWrite::Fork { machine, number } => {
                self.fork(machine.0, int(*number)).map(|()| Ok(Written::Changed(1)))
            }
            StoreWrite::Heard(heard) => self.heard(heard),
            StoreWrite::Act(act) => self.act(act),
            StoreWrite::Lease { name, owner, length } => self.lease(name, owner, *length),
            StoreWrite::Forget { before, most } => self.forget(*before, *most),
            StoreWrite::Sweep { before } => self.sweep(*before),
        }
    }

    /// The revision of this transaction: all that is changed in it has the same.
    fn revision(&mut self) -> Answer<i64> {
        if let Some(revision) = self.revision {
            return Ok(revision);
        }
        let revision = schema::number(self.engine, "revision")?.unwrap_or_default() + 1;
        schema::state(self.engine, "revision", &revision.to_string())?;
        self.revision = Some(revision);
        Ok(revision)
    }

    fn enrol(&mut self, enrolment: &Enrolment) -> Step {
        let Enrolment { name, key, token, labels, most_waiting } = enrolment;
        let key = key.to_string();
        let known = "SELECT id, name, state FROM machines WHERE key = $1";
        if let Some(row) = self.engine.rows(known, &[Param::Text(&key)])?.first() {
            let (id, called, standing) =
                (MachineId(row.int(0, "machines")?), row.text(1, "machines")?, row.parsed(2, "machines")?);
            return match (MachineName::parse(called), token) {
                _ if standing == Standing::Retired => Ok(Err(WriteRefusal::Retired)),
                (Ok(called), _) if called != *name => Ok(Err(WriteRefusal::Key(called))),
                (_, Some(token)) if standing == Standing::Waiting => self.admitted(id, token, labels),
                _ => Ok(Ok(Written::Machine(id, standing))),
            };
        }
        let named = "SELECT id, state FROM machines WHERE name = $1 AND state <> 'retired'";
        let mut stranger = None;
        for row in self.engine.rows(named, &[Param::Text(name.as_str())])? {
            // Whoever waits has shown nothing, and anybody who reaches a controller can wait under any name.
            let gives_way = token.is_some() && row.parsed::<Standing>(1, "machines")? == Standing::Waiting;
            if !gives_way {
                return Ok(Err(WriteRefusal::Name(name.clone())));
            }
            stranger = Some(MachineId(row.int(0, "machines")?));
        }
        let (standing, labels) = match token {
            None if self.count("SELECT count(*) FROM machines WHERE state = 'waiting'", &[])? >= int(*most_waiting) => {
                return Ok(Err(WriteRefusal::Full(*most_waiting)));
            }
            None => (Standing::Waiting, labels.clone()),
            Some(token) => match self.use_token(token)? {
                None => return Ok(Err(WriteRefusal::Token)),
                Some(given) => (Standing::Admitted, both_labels(labels, &given)),
            },
        };
        if let Some(stranger) = stranger
            && let Err(refusal) = self.standing(stranger, Standing::Retired)?
        {
            return Ok(Err(refusal));
        }
        // Controllers may still know machines that another history has not: none of its machines has a number of theirs.
        let histories = schema::number(self.engine, "epoch")?.unwrap_or_default() - 1;
        let next = self.count("SELECT coalesce(max(id), 0) + 1 FROM machines", &[])?;
        let id = next.max((histories << NUMBERS_OF_A_HISTORY) + 1);
        let insert = "INSERT INTO machines(id, name, key, state, labels, joined, channel, number, held_until, held_why, revision)
            VALUES($1, $2, $3, $4, $5, $6, '', 0, 0, '', $7)";
        let (revision, now) = (self.revision()?, self.now);
        let (name, state) = (Param::Text(name.as_str()), Param::Text(standing.as_str()));
        let (id_, now, revision) = (Param::Int(id), Param::Int(now), Param::Int(revision));
        self.engine.execute(insert, &[id_, name, Param::Text(&key), state, Param::Text(&labels), now, revision])?;
        Ok(Ok(Written::Machine(MachineId(id), standing)))
    }

    /// Admits a machine that waits, and came back with a token.
    fn admitted(&mut self, machine: MachineId, token: &Digest, asked: &str) -> Step {
        let Some(given) = self.use_token(token)? else { return Ok(Err(WriteRefusal::Token)) };
        let admit = "UPDATE machines SET state = $2, labels = $3, revision = $4, joined = $5 WHERE id = $1";
        let (standing, labels) = (Standing::Admitted, both_labels(asked, &given));
        let (state, revision) = (Param::Text(standing.as_str()), Param::Int(self.revision()?));
        let (labels, now) = (Param::Text(&labels), Param::Int(self.now));
        let admitted = self.one(machine, admit, &[Param::Int(machine.0), state, labels, revision, now])?;
        Ok(admitted.map(|_| Written::Machine(machine, standing)))
    }

    /// Takes one use of a token, and returns the labels that it gives.
    fn use_token(&mut self, token: &Digest) -> Answer<Option<String>> {
        let take = "UPDATE tokens SET uses = uses - 1 WHERE digest = $1 AND uses > 0 AND expires > $2 RETURNING labels";
        let rows = self.engine.rows(take, &[Param::Text(token.as_str()), Param::Int(self.now)])?;
        rows.first().map(|row| row.text(0, "tokens").map(str::to_owned)).transpose()
    }

    fn standing(&mut self, machine: MachineId, standing: Standing) -> Step {
        let retired = "SELECT count(*) FROM machines WHERE id = $1 AND state = 'retired'";
        if standing != Standing::Retired && self.count(retired, &[Param::Int(machine.0)])? > 0 {
            return Ok(Err(WriteRefusal::Retired));
        }
        // Whoever decides on a machine has seen that there were two.
        self.engine.execute("DELETE FROM forks WHERE machine = $1", &[Param::Int(machine.0)])?;
        let change =
            "UPDATE machines SET joined = CASE WHEN state = $2 THEN joined ELSE $4 END, state = $2, revision = $3
            WHERE id = $1";
        let (state, now, revision) =
            (Param::Text(standing.as_str()), Param::Int(self.now), Param::Int(self.revision()?));
        self.one(machine, change, &[Param::Int(machine.0), state, revision, now])
    }

    fn hold(&mut self, machine: MachineId, until: u64, why: &str) -> Step {
        let change = "UPDATE machines SET held_until = $2, held_why = $3, revision = $4 WHERE id = $1";
        let values = [Param::Int(machine.0), Param::Int(int(until)), Param::Text(why), Param::Int(self.revision()?)];
        self.one(machine, change, &values)
    }

    /// Changes a machine, which must be there.
    fn one(&mut self, machine: MachineId, change: &str, values: &[Param<'_>]) -> Step {
        let changed = self.engine.execute(change, values)?;
        Ok(if changed == 1 { Ok(Written::Changed(1)) } else { Err(WriteRefusal::Machine(machine)) })
    }

    fn token(&mut self, token: &Token) -> Step {
        let Token { digest, uses, length, labels } = token;
        let insert = "INSERT INTO tokens(digest, uses, expires, labels) VALUES($1, $2, $3, $4) ON CONFLICT DO NOTHING";
        let expires = Param::Int(self.now.saturating_add(int(*length)));
        let values = [Param::Text(digest.as_str()), Param::Int(int(*uses)), expires, Param::Text(labels)];
        self.insert(insert, &values)
    }

    fn operator(&mut self, name: &MachineName, role: &str, digest: &Digest) -> Step {
        let insert = "INSERT INTO operators(name, role, digest) VALUES($1, $2, $3)
            ON CONFLICT(name) DO UPDATE SET role = excluded.role, digest = excluded.digest";
        let values = [Param::Text(name.as_str()), Param::Text(role), Param::Text(digest.as_str())];
        self.revision()?;
        self.insert(insert, &values)
    }

    fn invite(&mut self, invitation: &Invitation) -> Step {
        let Invitation { digest, name, role, length } = invitation;
        let (digest, name) = (Param::Text(digest.as_str()), Param::Text(name.as_str()));
        let former = "DELETE FROM invitations WHERE name = $1 AND token = '' AND digest <> $2";
        self.engine.execute(former, &[name, digest])?;
        let insert = "INSERT INTO invitations(digest, name, role, expires, token) VALUES($1, $2, $3, $4, '')
            ON CONFLICT DO NOTHING";
        let expires = Param::Int(self.now.saturating_add(int(*length)));
        self.insert(insert, &[digest, name, Param::Text(role), expires])
    }

    /// Makes the account of a link. Used again with the same token it does nothing: the account may have another one since.
    fn take_account(&mut self, invitation: &Digest, token: &Digest) -> Step {
        let offered = "SELECT name, role, token FROM invitations WHERE digest = $1 AND expires > $2";
        let digest = Param::Text(invitation.as_str());
        let rows = self.engine.rows(offered, &[digest, Param::Int(self.now)])?;
        let Some(row) = rows.first() else { return Ok(Err(WriteRefusal::Invitation)) };
        match row.text(2, "invitations")? {
            "" => {}
            used if used == token.as_str() => return Ok(Ok(Written::Known)),
            _ => return Ok(Err(WriteRefusal::Invitation)),
        }
        let (name, role) = (row.name(0, "invitations")?, row.text(1, "invitations")?);
        let used = "UPDATE invitations SET token = $2 WHERE digest = $1";
        self.engine.execute(used, &[digest, Param::Text(token.as_str())])?;
        self.operator(&name, role, token)
    }

    fn blob(&mut self, digest: &Digest, body: &[u8]) -> Step {
        let insert = "INSERT INTO blobs(digest, body, stored) VALUES($1, $2, $3) ON CONFLICT DO NOTHING";
        let (digest, now) = (Param::Text(digest.as_str()), Param::Int(self.now));
        if self.engine.execute(insert, &[digest, Param::Bytes(body), now])? > 0 {
            return Ok(Ok(Written::New));
        }
        // Whoever stores it once more publishes it next.
        self.engine.execute("UPDATE blobs SET stored = $2 WHERE digest = $1", &[digest, now])?;
        Ok(Ok(Written::Known))
    }

    /// Keeps the secrets of a release for a machine, in the place of former ones, and wakes the machine.
    fn envelope(&mut self, envelope: &StoredEnvelope) -> Step {
        let StoredEnvelope { channel, number, machine, body } = envelope;
        let channel = channel.to_string();
        let there = "SELECT body FROM envelopes WHERE channel = $1 AND number = $2 AND machine = $3";
        let place = [Param::Text(&channel), Param::Int(int(*number)), Param::Text(machine.as_str())];
        let there = self.engine.rows(there, &place)?;
        if there.into_iter().next().map(|row| row.bytes(0, "envelopes")).transpose()?.as_deref() == Some(&body[..]) {
            return Ok(Ok(Written::Known));
        }
        let revision = Param::Int(self.revision()?);
        let wake = "UPDATE machines SET sealed = sealed + 1, revision = $2 WHERE name = $1 AND state <> 'retired'";
        self.engine.execute(wake, &[Param::Text(machine.as_str()), revision])?;
        let keep = "INSERT INTO envelopes(channel, number, machine, body) VALUES($1, $2, $3, $4)
            ON CONFLICT(channel, number, machine) DO UPDATE SET body = excluded.body";
        self.engine.execute(keep, &[&place[..], &[Param::Bytes(body)]].concat())?;
        Ok(Ok(Written::New))
    }

    fn insert(&mut self, insert: &str, values: &[Param<'_>]) -> Step {
        Ok(Ok(if self.engine.execute(insert, values)? > 0 { Written::New } else { Written::Known }))
    }

    /// The number of the last statement of a chain, 0 if there is none.
    fn last(&mut self, chain: &Chain) -> Answer<i64> {
        let last = "SELECT coalesce(max(number), 0) FROM statements WHERE chain = $1";
        self.count(last, &[Param::Text(&chain.to_string())])
    }

    fn statement(&mut self, statement: &SignedStatement) -> Step {
        let SignedStatement { chain, number, digest, bundle, body } = statement;
        let (name, number) = (chain.to_string(), int(*number));
        let there = "SELECT digest FROM statements WHERE chain = $1 AND number = $2";
        let there = self.engine.rows(there, &[Param::Text(&name), Param::Int(number)])?;
        if let Some(row) = there.first() {
            let is_same = row.text(0, "statements")? == digest.as_str();
            return Ok(if is_same { Ok(Written::Known) } else { Err(WriteRefusal::Forked(statement.number)) });
        }
        let last = self.last(chain)?;
        // Of rosters the newest counts alone, and one may have been made without this controller.
        let follows = if *chain == Chain::Roster { number > last } else { number == last + 1 };
        if !follows {
            return Ok(Err(WriteRefusal::Gap { found: statement.number, last: last.unsigned_abs() }));
        }
        if let Some(bundle) = bundle
            && self.count("SELECT count(*) FROM blobs WHERE digest = $1", &[Param::Text(bundle.as_str())])? == 0
        {
            return Ok(Err(WriteRefusal::Blob(bundle.clone())));
        }
        self.revision()?;
        let insert = "INSERT INTO statements(chain, number, digest, bundle, body) VALUES($1, $2, $3, $4, $5)";
        let bundle = bundle.as_ref().map_or("", Digest::as_str);
        let values = [Param::Text(&name), Param::Int(number), Param::Text(digest.as_str()), Param::Text(bundle)];
        self.engine.execute(insert, &[&values[..], &[Param::Bytes(body)]].concat())?;
        if *chain == Chain::Roster {
            let older = "DELETE FROM statements WHERE chain = $1 AND number < $2";
            self.engine.execute(older, &[Param::Text(&name), Param::Int(number)])?;
        }
        Ok(Ok(Written::New))
    }

    fn check(&mut self, machines: &[MachineId], number: i64) -> Step {
        if machines.is_empty() {
            return Ok(Ok(Written::Changed(0)));
        }
        let ask = format!(
            "UPDATE machines SET asked = $1, revision = $2 WHERE state = 'admitted' AND asked < $1 AND id IN ({})",
            listed(machines)
        );
        let values = [Param::Int(number), Param::Int(self.revision()?)];
        self.engine.execute(&ask, &values).map(|asked| Ok(Written::Changed(asked)))
    }

    fn point(&mut self, pointers: &Pointers) -> Step {
        let Pointers { lease, roster, channel, number, machines } = pointers;
        let held = "SELECT count(*) FROM leases WHERE name = $1 AND epoch = $2 AND until > $3";
        if self.count(held, &[Param::Text(lease.name), Param::Int(int(lease.epoch)), Param::Int(self.now)])? == 0 {
            return Ok(Err(WriteRefusal::Lease(lease.name)));
        }
        let in_force = self.last(&Chain::Roster)?;
        if in_force != int(*roster) {
            return Ok(Err(WriteRefusal::Roster(in_force.unsigned_abs())));
        }
        let (chain, name, stated) = (Chain::Channel(channel.clone()).to_string(), channel, *number);
        let (channel, number) = (channel.to_string(), int(*number));
        let there = "SELECT count(*) FROM statements WHERE chain = $1 AND number = $2";
        if self.count(there, &[Param::Text(&chain), Param::Int(number)])? == 0 {
            return Ok(Err(WriteRefusal::Release(name.clone(), stated)));
        }
        let among = listed(machines);
        if among.is_empty() {
            return Ok(Ok(Written::Changed(0)));
        }
        let newer = format!("SELECT count(*) FROM machines WHERE channel = $1 AND number > $2 AND id IN ({among})");
        let newer = self.count(&newer, &[Param::Text(&channel), Param::Int(number)])?;
        if newer > 0 {
            return Ok(Err(WriteRefusal::Backwards(newer.unsigned_abs())));
        }
        let point = format!(
            "UPDATE machines SET channel = $1, number = $2, revision = $3 WHERE state = 'admitted' AND held_until <= $4
                AND (channel <> $1 OR number <> $2) AND id IN ({among})"
        );
        let (revision, now) = (Param::Int(self.revision()?), Param::Int(self.now));
        let changed = self.engine.execute(&point, &[Param::Text(&channel), Param::Int(number), revision, now])?;
        Ok(Ok(Written::Changed(changed)))
    }

    /// Inserts the reports of all units that are nothing else, and returns the outcome of each of those units.
    fn reports(&mut self, units: &[Unit]) -> Answer<Vec<Written>> {
        let units = units.iter().filter(|unit| is_reports(unit)).flatten();
        let batches = units.filter_map(|write| match write {
            StoreWrite::Reports { machine, reports } => Some((machine.0, reports)),
            _ => None,
        });
        let batches: Vec<_> = batches.collect();
        let each = batches.iter().flat_map(|(machine, reports)| reports.iter().map(|report| (*machine, report)));
        let packed = each.enumerate().map(|(at, (machine, (number, body)))| {
            self.packing.pack(body).map(|packed| (machine, int(*number), packed, at))
        });
        let mut rows = packed.collect::<Answer<Vec<_>>>()?;
        if rows.is_empty() {
            return Ok(vec![Written::Reports { new: 0, forked: Vec::new() }; batches.len()]);
        }
        // Two controllers that insert the same rows in one order do not wait for each other in a circle.
        rows.sort_by_key(|(machine, number, ..)| (*machine, *number));
        let columns = vec![
            ("machine", Column::Int(rows.iter().map(|row| row.0).collect())),
            ("number", Column::Int(rows.iter().map(|row| row.1).collect())),
            ("received", Column::Int(vec![self.now; rows.len()])),
            ("packed", Column::Bytes(rows.iter().map(|row| &*row.2.body).collect())),
            ("form", Column::Int(rows.iter().map(|row| row.2.form).collect())),
        ];
        let insertion = Insertion { table: "reports", columns, conflict: "ON CONFLICT DO NOTHING", key: 2 };
        let written = self.engine.insert(&insertion)?;
        let mut is_new = vec![false; rows.len()];
        for ((.., at), written) in rows.iter().zip(written) {
            is_new.get_mut(*at).into_iter().for_each(|is_new| *is_new = written);
        }
        let (mut outcomes, mut is_new) = (Vec::with_capacity(batches.len()), is_new.into_iter());
        for (machine, reports) in batches {
            let (mut count, mut forked) = (0, Vec::new());
            for (number, body) in reports {
                if is_new.next() == Some(true) {
                    count += 1;
                } else if self.stored(machine, int(*number))? != Some(body.to_vec()) {
                    forked.push(*number);
                }
            }
            if let Some(number) = forked.last() {
                self.fork(machine, int(*number))?;
            }
            outcomes.push(Written::Reports { new: count, forked });
        }
        Ok(outcomes)
    }

    /// Keeps that two machines have the key of this one.
    fn fork(&mut self, machine: i64, number: i64) -> Answer<()> {
        let fork = "INSERT INTO forks(machine, number, seen) VALUES($1, $2, $3) ON CONFLICT(machine)
            DO UPDATE SET number = excluded.number, seen = excluded.seen";
        self.engine.execute(fork, &[Param::Int(machine), Param::Int(number), Param::Int(self.now)]).map(drop)
    }

    fn stored(&mut self, machine: i64, number: i64) -> Answer<Option<Vec<u8>>> {
        let body = "SELECT CAST(form AS BIGINT), packed FROM reports WHERE machine = $1 AND number = $2";
        let rows = self.engine.rows(body, &[Param::Int(machine), Param::Int(number)])?;
        let Some(row) = rows.into_iter().next() else { return Ok(None) };
        self.packing.unpack(row.int(0, "reports")?, row.bytes(1, "reports")?).map(Some)
    }

    fn heard(&mut self, heard: &[Heartbeat]) -> Step {
        let mut rows: Vec<&Heartbeat> = heard.iter().collect();
        rows.sort_unstable_by_key(|heard| heard.machine);
        let columns = vec![
            ("machine", Column::Int(rows.iter().map(|row| row.machine.0).collect())),
            ("number", Column::Int(rows.iter().map(|row| int(row.number)).collect())),
            ("at", Column::Int(rows.iter().map(|row| int(row.at)).collect())),
            ("said", Column::Text(rows.iter().map(|row| &*row.said).collect())),
        ];
        // What another controller heard later stays.
        let conflict =
            "ON CONFLICT(machine) DO UPDATE SET number = excluded.number, at = excluded.at, said = excluded.said
            WHERE heard.number < excluded.number";
        let insertion = Insertion { table: "heard", columns, conflict, key: 1 };
        let written = self.engine.insert(&insertion)?;
        Ok(Ok(Written::Changed(written.into_iter().filter(|written| *written).count() as u64)))
    }

    fn act(&mut self, act: &OperatorAct) -> Step {
        let digest = act.digest();
        let known = "SELECT number FROM acts WHERE digest = $1";
        if let Some(row) = self.engine.rows(known, &[Param::Text(digest.as_str())])?.first() {
            return Ok(Ok(Written::Act(row.count(0, "acts")?)));
        }
        let last = self.engine.rows("SELECT number, digest FROM acts ORDER BY number DESC LIMIT 1", &[])?;
        let (number, head) = match last.first() {
            Some(row) => (row.int(0, "acts")?, row.parsed(1, "acts")?),
            None => (0, OperatorAct::nothing()),
        };
        if head != act.parent {
            return Ok(Err(WriteRefusal::Head(head)));
        }
        let insert = "INSERT INTO acts(number, parent, digest, body) VALUES($1, $2, $3, $4)";
        let texts = [act.parent.as_str(), digest.as_str(), &act.body].map(Param::Text);
        self.engine.execute(insert, &[&[Param::Int(number + 1)], &texts[..]].concat())?;
        Ok(Ok(Written::Act(number.unsigned_abs() + 1)))
    }

    fn lease(&mut self, name: &'static str, owner: &str, length: u64) -> Step {
        let there = self.engine.rows("SELECT owner, epoch, until FROM leases WHERE name = $1", &[Param::Text(name)])?;
        let mut epoch = 1;
        if let Some(row) = there.first() {
            let (other, former, until) = (row.text(0, "leases")?, row.int(1, "leases")?, row.int(2, "leases")?);
            // One of another that holds for longer than any is of a clock that was put back since.
            let longest = self.now.saturating_add(int(length)).saturating_add(LEASE_SLACK);
            let is_over = until <= self.now || other != owner && until > longest;
            if !is_over && other != owner {
                return Ok(Ok(Written::Lease(Err(other.to_owned()))));
            }
            // Whoever let it run out has it anew: what was written meanwhile may have been by another.
            epoch = if is_over { former + 1 } else { former };
        }
        let take = "INSERT INTO leases(name, owner, epoch, until) VALUES($1, $2, $3, $4) ON CONFLICT(name)
            DO UPDATE SET owner = excluded.owner, epoch = excluded.epoch, until = excluded.until";
        let until = Param::Int(self.now.saturating_add(int(length)));
        self.engine.execute(take, &[Param::Text(name), Param::Text(owner), Param::Int(epoch), until])?;
        Ok(Ok(Written::Lease(Ok(Grant { name, epoch: epoch.unsigned_abs() }))))
    }

    fn forget(&mut self, before: u64, most: u64) -> Step {
        let forget = "DELETE FROM reports WHERE (machine, number) IN
            (SELECT machine, number FROM reports WHERE received < $1 ORDER BY received LIMIT $2)";
        let gone = self.engine.execute(forget, &[Param::Int(int(before)), Param::Int(int(most))])?;
        Ok(Ok(Written::Changed(gone)))
    }

    fn sweep(&mut self, before: u64) -> Step {
        let sweep = "DELETE FROM blobs WHERE digest IN (
            SELECT digest FROM blobs WHERE stored < $1 AND digest NOT IN (
                SELECT s.bundle FROM statements s
                WHERE s.number > (SELECT max(n.number) - $2 FROM statements n WHERE n.chain = s.chain)
                   OR EXISTS (SELECT 1 FROM machines m WHERE m.state <> 'retired'
                       AND s.chain = 'channel/' || m.channel AND s.number = m.number))
            ORDER BY stored LIMIT $3)";
        let values = [Param::Int(int(before)), Param::Int(KEPT_RELEASES), Param::Int(MOST_SWEPT)];
        let gone = self.engine.execute(sweep, &values)?;
        for table in ["tokens", "invitations"] {
            let over = format!("DELETE FROM {table} WHERE expires < $1");
            self.engine.execute(&over, &[Param::Int(int(before))])?;
        }
        let envelopes = "DELETE FROM envelopes WHERE number <= (
            SELECT max(s.number) - $1 FROM statements s WHERE s.chain = 'channel/' || envelopes.channel)
            AND NOT EXISTS (SELECT 1 FROM machines m WHERE m.state <> 'retired' AND m.name = envelopes.machine
                AND m.channel = envelopes.channel AND m.number = envelopes.number)";
        self.engine.execute(envelopes, &[Param::Int(KEPT_RELEASES)])?;
        Ok(Ok(Written::Changed(gone)))
    }

    fn count(&mut self, statement: &str, values: &[Param<'_>]) -> Answer<i64> {
        self.engine.rows(statement, values)?.first().ok_or(FleetStoreError::Row("a count"))?.int(0, "a count")
    }
}

/// The numbers of machines, as statements list them: only numbers get into the text.
fn listed(machines: &[MachineId]) -> String {
    machines.iter().map(|machine| machine.0.to_string()).collect::<Vec<_>>().join(", ")
}

/// The labels that a machine asks for, and those of its token, which come first.
fn both_labels(asked: &str, given: &str) -> String {
    let labels = |text: &str| serde_json::from_str::<BTreeMap<String, String>>(text).unwrap_or_default();
    let mut both = labels(asked);
    both.extend(labels(given));
    labels_text(&both)
}

/// A number as databases have them. None that is counted here comes near the end of them.
pub(super) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
