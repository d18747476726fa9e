//! What machines, operators and controllers say to each other, version 1: HTTP/1.1 over TLS 1.3, in JSON. Nothing here has an effect.
//!
//! [`Machine`] is the machine's side. Whoever drives it, an agent or a simulator, has the clock, the connections and the disk:
//!
//! ```text
//!          MachineEvent, Now ──▶ Machine::handle ──▶ MachineActions, carried out in their order
//!                  ▲                                   Keep         is on the disk before the next one
//!                  │                                   Send         ──▶ Answered or Lost, whichever comes, once
//!                  │                                   Look         ──▶ Looked
//!                  └───────────────────────────────────ReadReports  ──▶ Reports
//! ```
//!
//! - [`Machine::next`] is when [`MachineEvent::Time`] is due, by [`Now::passed`]; it may come earlier or later.
//! - A look reads the files of the releases by requests that [`Machine::ask`] signs, each sent by whoever looks; its answer is handed to
//!   the machine as well, since it can have a session key. [`SourceFile`](stead_release::SourceFile)s have their paths by [`source_path`];
//!   [`KnownFiles`] says which of them need not be asked for.
//! - A machine that begins again is made anew of the last [`MachineMemory`] that was kept. Nothing else survives.
//! - [`MachineEvent::Is`] comes at the beginning and whenever its condition changed, a new report included.
//! - Everything random comes from the seed: the same events at the same times have the same actions.

mod exchange;
mod files;
mod machine;
mod message;
mod outgoing;
mod pace;
mod route;
mod session;
mod shown;

pub use exchange::{Condition, Heartbeat, Life, MachineAnswer, MachineCall, SentReport, hold_header};
pub use files::{KnownFile, KnownFiles};
pub use machine::{Machine, MachineAction, MachineEvent, MachineIdentity, MachineMemory, Membership, Now};
pub use outgoing::LeftOut;

pub use message::{
    AcceptAnswer, AcceptRequest, ActShown, ChangeShown, CheckAnswer, DesiredAnswer, EnrolAnswer, EnrolRequest,
    HoldRequest, InviteAnswer, InviteRequest, LONGEST_HEARTBEAT, PlanAnswer, PublishAnswer, ReportsAnswer,
    StandingRequest, TokenAnswer, TokenRequest,
};
pub use route::{Action, Asker, ROUTES, Route, found, source_path};
pub use session::{Proof, SessionSecret, Sessions};
pub use shown::{
    CauseShown, ChannelShown, CheckShown, DriftShown, EventShown, FleetStatus, InstanceShown, ListPage, MOST_LINES,
    MachineShown, MachineState, ReportShown, USUAL_LINES,
};

/// The header in which a machine says which request it signed, and how.
pub const SIGNATURE: &str = "stead-signature";
/// The header in which it says its name and the number of the request.
pub const REQUEST: &str = "stead-request";
/// The header in which it says how it is.
pub const HEARTBEAT: &str = "stead-heartbeat";
/// The header in which it is given a key for its session.
pub const SESSION: &str = "stead-session";
/// The header that says until when a machine is held, in milliseconds, and why.
pub const HOLD: &str = "stead-hold";
/// The header that says which life of the machine was heard last: another one than its own shows two machines with one key.
pub const LIFE: &str = "stead-life";
/// The header that asks a machine to check at once, with the number of the request: the machine says it when it did.
pub const CHECK: &str = "stead-check";
/// The header that says which history of the store answers: another one has a machine send its reports again.
pub const EPOCH: &str = "stead-epoch";

/// The longest a machine waits for something newer, in seconds: proxies and firewalls end what is silent for a minute.
pub const LONGEST_WAIT: u64 = 50;
/// The longest request to join or to take an account, in bytes: anybody may send one.
pub const LONGEST_ENROLMENT: usize = 16 << 10;
/// The longest body of a machine, in bytes.
pub const LONGEST_BODY: usize = 1 << 20;
/// The longest content that operators store, in bytes.
pub const LONGEST_BLOB: usize = 64 << 20;
/// The longest bundle that comes with an answer, in bytes. A longer one is asked for by its name, part by part.
pub const LONGEST_ANSWERED_BUNDLE: usize = 64 << 10;
/// How many releases an answer has: a machine that is further behind asks again.
pub const MOST_RELEASES: u64 = 32;
/// How many reports are in a batch.
pub const MOST_REPORTS: usize = 256;
