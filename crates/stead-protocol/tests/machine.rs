//! The machine's side against a controller of the test: whatever is lost, doubled or late, and wherever either of them begins again.
//! `STEAD_MACHINE_SEEDS` is how many worlds are tried.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;
use stead_core::value::Sensitive;
use stead_hosts::MachineName;
use stead_protocol::{
    Condition, EnrolRequest, LONGEST_BODY, Machine, MachineAction, MachineAnswer, MachineCall, MachineEvent,
    MachineIdentity, MachineMemory, Membership, Now, SentReport,
};
use stead_release::{MachineKeys, MachineSecret};
use stead_testkit::times;

fn machine(memory: MachineMemory, token: Option<&str>, now: Now) -> Machine {
    let name = MachineName::parse("web1").unwrap();
    let keys = Arc::new(MachineKeys::of(&MachineSecret::of(&[7; MachineSecret::LENGTH])));
    let token = token.map(|token| Sensitive::new(token.to_owned()));
    Machine::new(MachineIdentity { name, keys, token, labels: BTreeMap::new() }, memory, 3, now)
}

fn at(passed: u64) -> Now {
    Now { passed, clock: 0 }
}

fn answer(call: &MachineCall, status: u16, body: &serde_json::Value) -> MachineAnswer {
    let body = serde_json::to_vec(body).unwrap();
    MachineAnswer { number: call.number, status, epoch: Some(1), body, ..MachineAnswer::default() }
}

fn calls(actions: Vec<MachineAction>) -> Vec<MachineCall> {
    let sent = |action| if let MachineAction::Send(call) = action { Some(call) } else { None };
    actions.into_iter().filter_map(sent).collect()
}

fn only(actions: Vec<MachineAction>) -> MachineCall {
    let mut calls = calls(actions);
    assert_eq!(calls.len(), 1, "{calls:?}");
    calls.remove(0)
}

fn report(number: u64) -> SentReport {
    SentReport { number, signed: format!("report {number}") }
}

fn admitted(now: Now) -> Machine {
    machine(MachineMemory { joined: true, epoch: Some(1), ..MachineMemory::default() }, None, now)
}

fn is(health: &str, report: u64) -> MachineEvent {
    MachineEvent::Is(Condition { health: health.to_owned(), report, ..Condition::default() })
}

/// When it does something by itself the next time.
fn later(machine: &Machine) -> u64 {
    machine.next().unwrap()
}

#[test]
fn it_joins_by_a_token_and_asks_then() {
    let mut machine = machine(MachineMemory::default(), Some("hunter2"), at(0));
    let enrol = only(machine.handle(at(0), MachineEvent::Time));
    assert_eq!((enrol.method, &*enrol.path, enrol.waits), ("POST", "/v1/enrol", false));
    let request: EnrolRequest = serde_json::from_slice(&enrol.body).unwrap();
    assert_eq!(request.token.as_deref(), Some("hunter2"));
    let waiting = machine.handle(at(9), MachineEvent::Answered(answer(&enrol, 200, &json!({"standing": "waiting"}))));
    assert_eq!((calls(waiting), machine.membership()), (vec![], &Membership::Waiting));
    let now = at(later(&machine));
    assert!((15_000..60_000).contains(&now.passed), "{now:?}");
    let enrol = only(machine.handle(now, MachineEvent::Time));
    let is_admitted = MachineEvent::Answered(answer(&enrol, 200, &json!({"standing": "admitted"})));
    let actions = machine.handle(now, is_admitted);
    assert!(actions.contains(&MachineAction::ForgetToken), "{actions:?}");
    let asks = only(actions);
    assert_eq!((&*asks.path, asks.waits), ("/v1/desired?after=0", true));
    assert!(asks.headers.contains(&("prefer", "wait=50".to_owned())));
    assert!(machine.memory().joined);
}

#[test]
fn a_refusal_has_the_words_of_the_controller_and_is_asked_again_later_and_later() {
    let mut machine = machine(MachineMemory::default(), Some("used"), at(0));
    let (mut now, mut longest) = (at(0), 0);
    for _ in 0..12 {
        let enrol = only(machine.handle(now, MachineEvent::Time));
        let mut refused = answer(&enrol, 403, &json!(null));
        refused.body = b"the token is not one that machines may join with\n".to_vec();
        assert_eq!(calls(machine.handle(now, MachineEvent::Answered(refused))), []);
        let words = "the token is not one that machines may join with".to_owned();
        assert_eq!(machine.membership(), &Membership::Refused(words));
        let next = later(&machine);
        longest = longest.max(next - now.passed);
        assert!((1_000..=301_000).contains(&(next - now.passed)));
        now = at(next);
    }
    assert!(longest > 60_000, "{longest}");
}

/// A controller that ends lets all go at once: those that come back before it is there again come as soon as all the others, and later
/// ones later and later.
#[test]
fn a_controller_that_is_not_there_yet_is_asked_again_as_soon_as_one_that_ended() {
    let (mut machine, mut longest) = (admitted(at(0)), [0; 4]);
    let mut now = at(later(&machine));
    let mut asks = only(machine.handle(now, MachineEvent::Time));
    for _ in 0..100 {
        for longest in &mut longest {
            machine.handle(now, MachineEvent::Lost(asks.number, "refused".to_owned()));
            *longest = later(&machine).saturating_sub(now.passed).max(*longest);
            now = at(later(&machine));
            asks = only(machine.handle(now, MachineEvent::Time));
        }
        now = at(now.passed + 50_000);
        asks = only(machine.handle(now, MachineEvent::Answered(answer(&asks, 304, &json!(null)))));
    }
    for (longest, most) in longest.into_iter().zip([11_000, 11_000, 21_000, 41_000]) {
        assert!((most / 2..most).contains(&longest), "{longest} of {most}");
    }
}

#[test]
fn what_is_no_controller_and_one_that_wants_to_be_left_alone_are_asked_later() {
    let mut machine = admitted(at(0));
    let now = at(later(&machine));
    let asks = only(machine.handle(now, MachineEvent::Time));
    let page = MachineAnswer { epoch: None, ..answer(&asks, 403, &json!("a page of a proxy")) };
    assert_eq!(machine.handle(now, MachineEvent::Answered(page)), []);
    assert_eq!(machine.membership(), &Membership::Admitted, "a proxy does not decide that");
    assert_eq!(machine.unreached(), Some("what answers is not a controller, but says 403"));
    let now = at(later(&machine));
    let asks = only(machine.handle(now, MachineEvent::Time));
    let busy = MachineAnswer { retry_after: Some(100), ..answer(&asks, 503, &json!(null)) };
    machine.handle(now, MachineEvent::Answered(busy));
    assert!(later(&machine) >= now.passed + 101_000, "{} after {}", later(&machine), now.passed);
}

#[test]
fn a_lost_session_and_a_used_number_cost_one_request_more() {
    let mut machine = admitted(at(0));
    let now = at(later(&machine));
    let first = only(machine.handle(now, MachineEvent::Time));
    let proof =
        |call: &MachineCall| call.headers.iter().find(|(name, _)| *name == "stead-signature").unwrap().1.clone();
    assert!(!proof(&first).starts_with("session "));
    let session = Some("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".to_owned());
    let nothing = MachineAnswer { session, ..answer(&first, 304, &json!(null)) };
    let now = at(now.passed + 50_000);
    let asks = only(machine.handle(now, MachineEvent::Answered(nothing)));
    assert!(proof(&asks).starts_with("session "));
    let doubled = MachineAnswer { epoch: Some(9), ..answer(&first, 304, &json!(null)) };
    assert_eq!(machine.handle(now, MachineEvent::Answered(doubled)), []);
    assert_eq!(machine.memory().epoch, Some(1), "an answer counts once");
    let over = MachineEvent::Answered(answer(&asks, 401, &json!(null)));
    let again = only(machine.handle(now, over));
    assert!(!proof(&again).starts_with("session ") && again.number > asks.number);
    machine.handle(now, MachineEvent::Answered(answer(&again, 304, &json!(null))));
    let now = at(later(&machine));
    let asks = only(machine.handle(now, MachineEvent::Time));
    let used = MachineEvent::Answered(answer(&asks, 409, &json!(null)));
    let actions = machine.handle(now, used);
    let again =
        actions.iter().find_map(|action| if let MachineAction::Send(call) = action { Some(call) } else { None });
    assert!(again.unwrap().number > asks.number + 1000, "its numbers may be those of an older disk");
    assert!(matches!(actions.first(), Some(MachineAction::Keep(memory)) if memory.reserved > again.unwrap().number));
}

#[test]
fn reports_that_are_refused_keep_no_other_from_arriving() {
    let mut machine = admitted(at(0));
    let mut actions = machine.handle(at(3_000), is("converged", 8));
    let (mut taken, mut left_out, mut now, mut refused) = (BTreeSet::new(), Vec::new(), at(3_000), 0);
    for _ in 0..100 {
        for action in std::mem::take(&mut actions) {
            match action {
                MachineAction::ReadReports(after, most) => {
                    let reports: Vec<SentReport> = (after + 1..9).take(most).map(report).collect();
                    let last = reports.last().map_or(after, |report| report.number);
                    actions.extend(machine.handle(now, MachineEvent::Reports(reports, last)));
                }
                MachineAction::Send(call) if call.path == "/v1/reports" => {
                    let batch: Vec<SentReport> = serde_json::from_slice(&call.body).unwrap();
                    let is_refused = batch.iter().any(|report| matches!(report.number, 5 | 6));
                    if is_refused {
                        refused += 1;
                    } else {
                        taken.extend(batch.iter().map(|report| report.number));
                    }
                    let status = if is_refused { 400 } else { 200 };
                    let answered = answer(&call, status, &json!({"new": 1, "forked": []}));
                    actions.extend(machine.handle(now, MachineEvent::Answered(answered)));
                }
                MachineAction::LeftOut(number, _) => left_out.push(number),
                _ => {}
            }
        }
        now = at(now.passed + 1_000);
        actions.extend(machine.handle(now, MachineEvent::Time));
    }
    assert_eq!((taken, left_out), ([1, 2, 3, 4, 7, 8].into(), vec![5, 6]));
    assert_eq!(refused, 11, "the next one is found by one more request");
    let long = SentReport { number: 9, signed: "x".repeat(LONGEST_BODY) };
    actions = machine.handle(now, is("converged", 9));
    assert!(actions.iter().any(|action| matches!(action, MachineAction::ReadReports(8, _))), "{actions:?}");
    let actions = machine.handle(now, MachineEvent::Reports(vec![long], 9));
    assert!(actions.contains(&MachineAction::LeftOut(9, "it is too long".to_owned())), "{actions:?}");
    assert_eq!(machine.memory().acknowledged, 9);
}

/// Of reports of a third of the longest request each two go together, and none is left out or sent twice.
#[test]
fn reports_that_have_no_room_in_a_request_go_with_the_next() {
    let mut machine = admitted(at(0));
    let mut actions = machine.handle(at(3_000), is("converged", 7));
    let (mut batches, mut now) = (Vec::new(), at(3_000));
    for _ in 0..20 {
        for action in std::mem::take(&mut actions) {
            match action {
                MachineAction::ReadReports(after, most) => {
                    let long = |number| SentReport { number, signed: "x".repeat(LONGEST_BODY / 3) };
                    let reports: Vec<SentReport> = (after + 1..=7).take(most).map(long).collect();
                    let last = reports.last().map_or(after, |report| report.number);
                    actions.extend(machine.handle(now, MachineEvent::Reports(reports, last)));
                }
                MachineAction::Send(call) if call.path == "/v1/reports" => {
                    assert!(call.body.len() <= LONGEST_BODY, "{} bytes", call.body.len());
                    let batch: Vec<SentReport> = serde_json::from_slice(&call.body).unwrap();
                    batches.push(batch.iter().map(|report| report.number).collect::<Vec<_>>());
                    let answered = answer(&call, 200, &json!({"new": batch.len(), "forked": []}));
                    actions.extend(machine.handle(now, MachineEvent::Answered(answered)));
                }
                _ => {}
            }
        }
        now = at(now.passed + 1_000);
        actions.extend(machine.handle(now, MachineEvent::Time));
    }
    assert_eq!(batches, [vec![1, 2], vec![3, 4], vec![5, 6], vec![7]]);
}

/// What happens to reports while the time passes: which of them are never taken, and until when nothing is.
fn reported(poison: &[u64], away_until: u64, how: impl Fn(&MachineCall) -> MachineEvent) -> (BTreeSet<u64>, Machine) {
    let (mut machine, mut taken) = (admitted(at(0)), BTreeSet::new());
    let (mut actions, mut now) = (machine.handle(at(0), is("converged", 20)), at(0));
    while now.passed < 7_200_000 {
        for action in std::mem::take(&mut actions) {
            match action {
                MachineAction::ReadReports(after, most) => {
                    // Every third one is not worth sending.
                    let range: Vec<u64> = (after + 1..=20).take(most).collect();
                    let last = range.last().copied().unwrap_or(after);
                    let reports = range.into_iter().filter(|number| number % 3 > 0).map(report).collect();
                    actions.extend(machine.handle(now, MachineEvent::Reports(reports, last)));
                }
                MachineAction::Send(call) if call.path == "/v1/reports" => {
                    let batch: Vec<SentReport> = serde_json::from_slice(&call.body).unwrap();
                    let is_taken =
                        now.passed >= away_until && batch.iter().all(|report| !poison.contains(&report.number));
                    let event = if is_taken {
                        taken.extend(batch.iter().map(|report| report.number));
                        MachineEvent::Answered(answer(&call, 200, &json!({"new": 1, "forked": []})))
                    } else {
                        how(&call)
                    };
                    actions.extend(machine.handle(now, event));
                }
                _ => {}
            }
        }
        if !actions.is_empty() {
            continue;
        }
        let Some(next) = machine.next() else { break };
        now = at(next.max(now.passed + 1));
        actions.extend(machine.handle(now, MachineEvent::Time));
    }
    (taken, machine)
}

/// Whatever stands between it and the controller, and whatever that says: what is never taken holds up nothing that is behind it, and
/// what could not be taken while nothing was is not given up.
#[test]
fn a_report_that_never_arrives_holds_up_no_other_and_an_outage_loses_none() {
    let sent = || (1..=20).filter(|number| number % 3 > 0);
    let lost = |call: &MachineCall| MachineEvent::Lost(call.number, "reset\u{7}".to_owned());
    let fails = |call: &MachineCall| MachineEvent::Answered(answer(call, 500, &json!(null)));
    let proxy = |call: &MachineCall| {
        MachineEvent::Answered(MachineAnswer { epoch: None, ..answer(call, 403, &json!("not by us")) })
    };
    for poison in [&[][..], &[5], &[20], &[1, 2, 4, 19, 20], &[7, 8]] {
        for away_until in [0, 1_800_000] {
            for how in [&lost as &dyn Fn(&MachineCall) -> MachineEvent, &fails, &proxy] {
                let (taken, machine) = reported(poison, away_until, how);
                let wanted: BTreeSet<u64> = sent().filter(|number| !poison.contains(number)).collect();
                assert_eq!(taken, wanted, "{poison:?} {away_until}");
                let left_out = machine.memory().left_out.clone();
                // One behind which there are no others may be taken later.
                let behind = poison.iter().filter(|number| wanted.iter().any(|taken| taken > *number)).count() as u64;
                assert_eq!(left_out.as_ref().map_or(0, |left| left.count), behind, "{poison:?} {away_until}");
                assert!(left_out.is_none_or(|left| poison.contains(&left.number) && !left.why.contains('\u{7}')));
            }
        }
    }
}

#[test]
fn what_it_says_of_itself_goes_beside_the_request_that_waits() {
    let mut machine = admitted(at(0));
    let asks = calls(machine.handle(at(3_000), is("converged", 0)));
    assert!(asks.iter().any(|call| call.waits) && asks.len() == 1, "{asks:?}");
    let beside = only(machine.handle(at(4_000), is("failing", 0)));
    assert_eq!((&*beside.path, &*beside.body), ("/v1/reports", &b"[]"[..]));
    assert!(beside.headers.iter().any(|(name, said)| *name == "stead-heartbeat" && said.contains("failing")));
    assert_eq!(machine.handle(at(4_500), MachineEvent::Time), [], "it was said");
}

/// A controller names the life that it heard last: another one than its own is said with the next request, which is not waited for.
#[test]
fn a_machine_that_learns_of_another_one_with_its_key_says_so_at_once() {
    let mut machine = admitted(at(0));
    let said = |call: &MachineCall| -> serde_json::Value {
        let said = call.headers.iter().find(|(name, _)| *name == "stead-heartbeat");
        serde_json::from_str(&said.unwrap().1).unwrap()
    };
    let named = |call: &MachineCall, life| {
        MachineEvent::Answered(MachineAnswer { life: Some(life), ..answer(call, 304, &json!(null)) })
    };
    let first = only(machine.handle(at(3_000), is("converged", 0)));
    let life = said(&first)["life"].as_u64().unwrap();
    assert!(life > 0 && said(&first).get("beside").is_none(), "{first:?}");
    let second = only(machine.handle(at(4_000), named(&first, life + 1)));
    assert_eq!((&said(&second)["life"], &said(&second)["beside"]), (&json!(life), &json!(life + 1)));
    machine.handle(at(5_000), named(&second, life));
    let third = only(machine.handle(at(60_000), MachineEvent::Time));
    assert!(said(&third).get("beside").is_none(), "{third:?}");
}

#[test]
fn it_checks_once_for_each_request_and_says_when_it_did() {
    let mut machine = admitted(at(0));
    let asks = |call: &MachineCall, number: Option<u64>| {
        MachineEvent::Answered(MachineAnswer { check: number, ..answer(call, 304, &json!(null)) })
    };
    let checks = |actions: &[MachineAction]| {
        let of = |action: &MachineAction| if let MachineAction::Check(number) = action { Some(*number) } else { None };
        actions.iter().filter_map(of).collect::<Vec<_>>()
    };
    let first = only(machine.handle(at(3_000), is("converged", 0)));
    let actions = machine.handle(at(4_000), asks(&first, Some(70)));
    assert_eq!(checks(&actions), [70]);
    let second = only(actions);
    assert!(second.waits, "it asks again at once");
    let actions = machine.handle(at(60_000), asks(&second, Some(70)));
    assert_eq!(checks(&actions), [0; 0], "the same request");
    let third = only(actions);
    let done = Condition { health: "converged".to_owned(), checked: 70, ..Condition::default() };
    let says = only(machine.handle(at(120_000), MachineEvent::Is(done)));
    assert_eq!(
        (says.method, &*says.path, &*says.body),
        ("POST", "/v1/reports", &b"[]"[..]),
        "beside the one that waits"
    );
    assert!(says.headers.iter().any(|(name, said)| *name == "stead-heartbeat" && said.contains(r#""checked":70"#)));
    let actions = machine.handle(at(130_000), asks(&third, Some(70)));
    assert_eq!(checks(&actions), [0; 0], "it was done");
    let other = machine.handle(at(180_000), asks(&only(actions), Some(60)));
    assert_eq!(checks(&other), [60], "another history of the store has other numbers");
}

#[test]
fn it_looks_at_what_is_newer_and_again_while_that_does_not_end_well() {
    let mut machine = admitted(at(0));
    let asks = only(machine.handle(at(3_000), MachineEvent::Time));
    let body = json!({"channel": "web", "number": 2, "releases": [], "signers": 0, "roster": 1});
    let newer = |call: &MachineCall, tag: &str| MachineAnswer { tag: Some(tag.to_owned()), ..answer(call, 200, &body) };
    let actions = machine.handle(at(3_100), MachineEvent::Answered(newer(&asks, "\"a\"")));
    assert!(matches!(&actions[..], [MachineAction::Look(desired)] if desired.number == 2), "{actions:?}");
    let asks = only(machine.handle(at(later(&machine)), MachineEvent::Time));
    assert!(asks.headers.contains(&("if-none-match", "\"a\"".to_owned())));
    assert_eq!(machine.handle(at(5_000), MachineEvent::Looked(false)), []);
    let again = machine.handle(at(later(&machine)), MachineEvent::Time);
    assert!(matches!(&again[..], [MachineAction::Look(_)]), "{again:?}");
    // Something newer that comes meanwhile is looked at soon, however that ends.
    let actions = machine.handle(at(30_000), MachineEvent::Answered(newer(&asks, "\"b\"")));
    assert!(!actions.iter().any(|action| matches!(action, MachineAction::Look(_))), "one at a time: {actions:?}");
    machine.handle(at(30_100), MachineEvent::Looked(false));
    let soon = machine.handle(at(31_200), MachineEvent::Time);
    assert!(soon.iter().any(|action| matches!(action, MachineAction::Look(_))), "{soon:?}");
}

/// A controller, in histories that end.
#[derive(Default)]
struct Controller {
    epoch: u64,
    reports: BTreeMap<u64, BTreeSet<u64>>,
    numbers: BTreeSet<u64>,
}

impl Controller {
    fn answer(&mut self, call: &MachineCall) -> MachineAnswer {
        let base = MachineAnswer { number: call.number, epoch: Some(self.epoch), ..MachineAnswer::default() };
        if !self.numbers.insert(call.number) {
            return MachineAnswer { status: 409, ..base };
        }
        match &*call.path {
            "/v1/enrol" => MachineAnswer { status: 200, body: br#"{"standing":"admitted"}"#.to_vec(), ..base },
            "/v1/reports" => {
                let batch: Vec<SentReport> = serde_json::from_slice(&call.body).unwrap();
                let reports = self.reports.entry(self.epoch).or_default();
                reports.extend(batch.iter().map(|report| report.number));
                MachineAnswer { status: 200, body: br#"{"new":0,"forked":[]}"#.to_vec(), ..base }
            }
            _ => MachineAnswer { status: 304, ..base },
        }
    }
}

/// Numbers of the test.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A machine, its controller, and everything that can happen to what they say.
struct World {
    machine: Machine,
    kept: MachineMemory,
    controller: Controller,
    /// The answers on their way to the machine.
    flying: Vec<MachineAnswer>,
    sent: BTreeSet<u64>,
    waiting: BTreeSet<u64>,
    /// How many reports there are.
    reports: u64,
    now: u64,
    dice: Dice,
}

impl World {
    fn take(&mut self, actions: Vec<MachineAction>, has_faults: bool) {
        for action in actions {
            match action {
                MachineAction::Keep(memory) => self.kept = memory,
                MachineAction::ReadReports(after, most) => {
                    let reports: Vec<SentReport> = (after + 1..=self.reports).take(most).map(report).collect();
                    let last = reports.last().map_or(after, |report| report.number);
                    self.event(MachineEvent::Reports(reports, last), has_faults);
                }
                MachineAction::Send(call) => {
                    assert!(self.sent.insert(call.number), "the number {} twice", call.number);
                    if call.waits {
                        assert!(self.waiting.is_empty(), "two that wait");
                        self.waiting.insert(call.number);
                    }
                    match if has_faults { self.dice.below(6) } else { 9 } {
                        0 => self.event(MachineEvent::Lost(call.number, "lost".to_owned()), has_faults),
                        1 => {
                            // It arrived, and its answer does not.
                            let _ = self.controller.answer(&call);
                            self.event(MachineEvent::Lost(call.number, "lost".to_owned()), has_faults);
                        }
                        2 => {
                            let answer = self.controller.answer(&call);
                            self.flying.extend([answer.clone(), answer]);
                        }
                        _ => {
                            let answer = self.controller.answer(&call);
                            self.flying.push(answer);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn event(&mut self, event: MachineEvent, has_faults: bool) {
        match &event {
            MachineEvent::Lost(number, _) => drop(self.waiting.remove(number)),
            MachineEvent::Answered(answer) => drop(self.waiting.remove(&answer.number)),
            _ => {}
        }
        let actions = self.machine.handle(at(self.now), event);
        self.take(actions, has_faults);
        let memory = self.machine.memory();
        let stored = memory.epoch.and_then(|epoch| self.controller.reports.get(&epoch));
        let stored = |number| stored.is_some_and(|stored| stored.contains(&number));
        assert!((1..=memory.acknowledged).all(stored), "acknowledged and not stored: {memory:?}");
    }

    fn turn(&mut self, has_faults: bool) {
        self.now += self.dice.below(20_000);
        match if has_faults { self.dice.below(12) } else { 9 } {
            0 => {
                // The machine begins again: what was on its way finds nobody.
                (self.flying, self.waiting) = (Vec::new(), BTreeSet::new());
                self.machine = machine(self.kept.clone(), None, at(self.now));
            }
            1 => self.controller.epoch += 1,
            2..=4 => self.reports += self.dice.below(4),
            _ => {}
        }
        self.event(is("converged", self.reports), has_faults);
        while !self.flying.is_empty() && (!has_faults || self.dice.below(3) > 0) {
            let limit = self.flying.len() as u64;
            let which = usize::try_from(self.dice.below(limit)).unwrap();
            let answer = self.flying.swap_remove(which);
            self.event(MachineEvent::Answered(answer), has_faults);
        }
    }
}

/// Whatever happened, once it ends each report that is kept is in the history that answers, and no number was used twice.
#[test]
fn whatever_is_lost_doubled_or_late_all_reports_arrive() {
    for seed in 0..times("STEAD_MACHINE_SEEDS", 60) {
        let first = machine(MachineMemory::default(), None, at(0));
        let mut world = World {
            machine: first,
            kept: MachineMemory::default(),
            controller: Controller::default(),
            flying: Vec::new(),
            sent: BTreeSet::new(),
            waiting: BTreeSet::new(),
            reports: 0,
            now: 0,
            dice: Dice(seed as u64),
        };
        for _ in 0..150 {
            world.turn(true);
        }
        world.reports += 1;
        for _ in 0..200 {
            world.turn(false);
        }
        let stored = world.controller.reports.get(&world.controller.epoch).cloned().unwrap_or_default();
        let missing: Vec<u64> = (1..=world.reports).filter(|number| !stored.contains(number)).collect();
        assert!(missing.is_empty(), "seed {seed}: {missing:?} of {}", world.reports);
        assert_eq!(world.machine.memory().acknowledged, world.reports, "seed {seed}");
    }
}
