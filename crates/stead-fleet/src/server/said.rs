//! The condition of a machine, as its requests state it.

use serde::Deserialize as _;
use serde_json::Value;
use stead_protocol::{Life, MachineState};

/// How often a machine asks unless it says otherwise, in milliseconds: the longest that it waits, and a moment to ask again.
const USUAL_INTERVAL: u64 = 60_000;
/// The longest interval that counts, in milliseconds.
const LONGEST_INTERVAL: u64 = 86_400_000;
/// How much later than two intervals a machine is silent, in milliseconds.
const GRACE: u64 = 10_000;

/// The condition of a machine, as far as controllers understand it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Said {
    /// The channel, if it was stated, and the number of the release that it has.
    pub(super) applied: Option<(Option<String>, u64)>,
    /// How it is, by its counts.
    pub(super) state: Option<MachineState>,
    /// The life that it is in.
    pub(super) life: Life,
    /// The number of the last request to check that it did.
    pub(super) checked: u64,
    /// How often it asks, in milliseconds.
    interval: Option<u64>,
}

impl Said {
    /// Reads it. What is not understood is left alone: the machine may be of another version.
    pub(super) fn read(text: &str) -> Self {
        let Ok(said) = serde_json::from_str::<Value>(text) else { return Self::default() };
        let applied = said.get("applied").and_then(|applied| match applied {
            Value::Number(number) => Some((None, number.as_u64()?)),
            other => {
                let channel = other.get("channel").and_then(Value::as_str).map(str::to_owned);
                Some((channel, other.get("number")?.as_u64()?))
            }
        });
        let state = said.get("counts").filter(|counts| counts.is_object()).map(|counts| {
            let has = |status| counts.get(status).and_then(Value::as_u64).is_some_and(|count| count > 0);
            match () {
                () if has("failed") => MachineState::Failed,
                () if has("drifted") || has("unknown") => MachineState::Drifted,
                () if has("pending") => MachineState::Pending,
                () => MachineState::Converged,
            }
        });
        let health = match said.get("health").and_then(Value::as_str) {
            Some("failing") => Some(MachineState::Failed),
            Some("drifted") => Some(MachineState::Drifted),
            Some("held") => Some(MachineState::Pending),
            Some("converged") => Some(MachineState::Converged),
            _ => None,
        };
        let interval = said.get("interval").and_then(Value::as_u64).map(|seconds| seconds.saturating_mul(1000));
        let life = Life::deserialize(&said).unwrap_or_default();
        let checked = said.get("checked").and_then(Value::as_u64).unwrap_or_default();
        Self { applied, state: state.or(health), life, checked, interval }
    }

    /// How long it is after a machine was heard until it is silent, in milliseconds: two intervals and ten seconds.
    pub(super) fn patience(&self) -> u64 {
        2 * self.interval.unwrap_or(USUAL_INTERVAL).clamp(1, LONGEST_INTERVAL) + GRACE
    }
}

#[cfg(test)]
mod tests {
    use stead_protocol::Condition;

    use super::*;

    #[test]
    fn what_machines_say_is_understood_as_far_as_it_goes() {
        let said =
            Said::read(r#"{"applied":{"channel":"web","number":3},"counts":{"drifted":1},"interval":30,"new":[]}"#);
        assert_eq!(said.applied, Some((Some("web".to_owned()), 3)));
        assert_eq!((said.state, said.patience()), (Some(MachineState::Drifted), 70_000));
        let condition = Condition {
            health: "failing".into(),
            release: "web".parse().ok().map(|web| (web, 3)),
            ..Condition::default()
        };
        let said = Said::read(&serde_json::to_string(&condition).unwrap());
        assert_eq!(
            (said.applied, said.state),
            (Some((Some("web".to_owned()), 3)), Some(MachineState::Failed)),
            "as agents say it"
        );
        assert_eq!(Said::read(r#"{"applied":7}"#).applied, Some((None, 7)));
        for odd in ["", "7", "{\"applied\":\"web\",\"counts\":3,\"interval\":-1}", "[]"] {
            assert_eq!(Said::read(odd), Said::default(), "{odd}");
        }
        assert_eq!(Said::read(r#"{"interval":18446744073709551615}"#).patience(), 2 * LONGEST_INTERVAL + GRACE);
        assert_eq!(Said::default().patience(), 130_000);
    }
}
