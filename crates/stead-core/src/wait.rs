//! How long is waited before something pending is run again: the formulas, and how they are written.
//!
//! ```text
//! static: 3                                   always 3 s; the number alone means the same
//! random: {min: 4, max: 9}                    anything between 4 s and 9 s, evenly distributed
//! exponential: {wait: 2, multiplier: 10}      2 s, 20 s, 200 s, …: wait * multiplier ^ re-runs so far
//! cap: 300                                    at most 300 s
//! jitter: 0.2                                 up to a fifth longer, at random
//! ```
//!
//! Times are in seconds, with fractions. The formulas are those of Idem, which has neither `cap` nor `jitter`; the names of
//! its members (`wait_in_seconds`, `min_value`, `max_value`) are accepted.

use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value as Json;

/// How long is waited before something pending is run again.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use stead_core::wait::Wait;
///
/// let wait: Wait = "exponential:2,3,60".parse()?;
/// let after = |re_runs| wait.after(re_runs, || 0.5);
/// assert_eq!([after(0), after(1), after(9)], [2, 6, 60].map(Duration::from_secs));
/// // Half way between both, with a draw of 0.5.
/// assert_eq!("random:10,20".parse::<Wait>()?.after(0, || 0.5), Duration::from_secs(15));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Wait {
    /// How it follows from the number of re-runs.
    pub curve: Curve,
    /// The longest wait, its jitter included.
    pub cap: Duration,
    /// By what share a wait is lengthened at most, at random; between 0 and 1.
    pub jitter: f64,
}

/// How a wait follows from the number of re-runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Curve {
    /// Always as long.
    Static(Duration),
    /// Anything between two times, evenly distributed.
    Random {
        /// The shortest.
        min: Duration,
        /// The longest.
        max: Duration,
    },
    /// `wait` times `multiplier` to the power of the number of re-runs so far.
    Exponential {
        /// The first wait.
        wait: Duration,
        /// The factor by which each wait is multiplied for the next.
        multiplier: f64,
    },
}

impl Default for Wait {
    /// 3 seconds, as in Idem.
    fn default() -> Self {
        Self::fixed(Duration::from_secs(3))
    }
}

impl Wait {
    /// Without a cap and without jitter.
    pub fn of(curve: Curve) -> Self {
        Self { curve, cap: Duration::MAX, jitter: 0.0 }
    }

    /// Always as long.
    pub fn fixed(wait: Duration) -> Self {
        Self::of(Curve::Static(wait))
    }

    /// The wait before the next run, when there have been so many re-runs; `draw` gives numbers from 0 up to 1.
    pub fn after(self, re_runs: u32, mut draw: impl FnMut() -> f64) -> Duration {
        let seconds = match self.curve {
            Curve::Static(wait) => wait.as_secs_f64(),
            Curve::Random { min, max } => min.as_secs_f64() + max.saturating_sub(min).as_secs_f64() * draw(),
            Curve::Exponential { wait, multiplier } => {
                wait.as_secs_f64() * multiplier.max(0.0).powi(i32::try_from(re_runs).unwrap_or(i32::MAX))
            }
        };
        let longer = if self.jitter > 0.0 { self.jitter * draw() } else { 0.0 };
        Duration::try_from_secs_f64(seconds * (1.0 + longer)).map_or(self.cap, |wait| wait.min(self.cap))
    }

    /// Reads what documents and manifests say; an error is a clause that says what is wrong with it.
    pub fn from_json(json: Json) -> Result<Self, String> {
        let written = match json {
            Json::Number(seconds) => Written { r#static: seconds.as_f64().map(Fixed::Seconds), ..Written::default() },
            Json::Object(_) => serde_json::from_value(json).map_err(|error| error.to_string().replace('`', "'"))?,
            _ => return Err("expected a number of seconds or an object".to_owned()),
        };
        Self::try_from(written)
    }

    fn checked(self) -> Result<Self, String> {
        let is_positive = match self.curve {
            Curve::Static(wait) => !wait.is_zero(),
            Curve::Random { min, max } if min >= max => return Err("'min' must be below 'max'".to_owned()),
            // From 0, as Idem has it: the longest is above that.
            Curve::Random { .. } => true,
            Curve::Exponential { wait, multiplier } => !wait.is_zero() && multiplier > 0.0,
        };
        match () {
            () if !is_positive || self.cap.is_zero() => Err("times and multipliers must be above 0".to_owned()),
            () if !(0.0..=1.0).contains(&self.jitter) => Err("'jitter' must be between 0 and 1".to_owned()),
            () => Ok(self),
        }
    }
}

/// `SECONDS`, `static:SECONDS`, `random:MIN,MAX` or `exponential:WAIT,MULTIPLIER[,CAP]`.
impl FromStr for Wait {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (form, numbers) = text.split_once(':').unwrap_or(("static", text));
        let numbers: Option<Vec<f64>> = numbers.split(',').map(|number| number.trim().parse().ok()).collect();
        let written = match (form, numbers.as_deref()) {
            ("static", Some([wait])) => Written { r#static: Some(Fixed::Seconds(*wait)), ..Written::default() },
            ("random", Some([min, max])) => {
                Written { random: Some(Random { min: *min, max: *max }), ..Written::default() }
            }
            ("exponential", Some([wait, multiplier, cap @ ..])) if cap.len() < 2 => Written {
                exponential: Some(Exponential { wait: *wait, multiplier: *multiplier }),
                cap: cap.first().copied(),
                ..Written::default()
            },
            _ => return Err("expected SECONDS, random:MIN,MAX or exponential:WAIT,MULTIPLIER[,CAP]".to_owned()),
        };
        Self::try_from(written)
    }
}

/// A wait as it is written.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    r#static: Option<Fixed>,
    random: Option<Random>,
    exponential: Option<Exponential>,
    cap: Option<f64>,
    #[serde(default)]
    jitter: f64,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "'static' must be a number of seconds, or an object with 'wait' alone")]
enum Fixed {
    Seconds(f64),
    Object(Seconds),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Seconds {
    #[serde(alias = "wait_in_seconds")]
    wait: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Random {
    #[serde(alias = "min_value")]
    min: f64,
    #[serde(alias = "max_value")]
    max: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exponential {
    #[serde(alias = "wait_in_seconds")]
    wait: f64,
    multiplier: f64,
}

impl TryFrom<Written> for Wait {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let curve = match (written.r#static, written.random, written.exponential) {
            (Some(Fixed::Seconds(wait) | Fixed::Object(Seconds { wait })), None, None) => Curve::Static(time(wait)?),
            (None, Some(Random { min, max }), None) => Curve::Random { min: time(min)?, max: time(max)? },
            (None, None, Some(Exponential { wait, multiplier })) => {
                Curve::Exponential { wait: time(wait)?, multiplier }
            }
            _ => return Err("expected one of 'static', 'random' and 'exponential'".to_owned()),
        };
        let cap = written.cap.map_or(Ok(Duration::MAX), time)?;
        Self { curve, cap, jitter: written.jitter }.checked()
    }
}

fn time(seconds: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("{seconds} is not a time in seconds"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn waits(text: &str) -> Vec<f64> {
        let wait: Wait = text.parse().unwrap();
        (0..4).map(|re_runs| wait.after(re_runs, || 0.5).as_secs_f64()).collect()
    }

    #[test]
    fn waits_follow_their_formulas() {
        assert_eq!(waits("0.25"), [0.25; 4]);
        assert_eq!(waits("static:3"), [3.0; 4]);
        assert_eq!(waits("random:4,9"), [6.5; 4]);
        assert_eq!(waits("exponential:2,10"), [2.0, 20.0, 200.0, 2000.0]);
        assert_eq!(waits("exponential:2,10,100"), [2.0, 20.0, 100.0, 100.0]);
        let wait = Wait { jitter: 0.2, cap: Duration::from_millis(3_250), ..Wait::default() };
        assert_eq!([0.0, 0.25, 1.0].map(|draw| wait.after(0, || draw).as_millis()), [3_000, 3_150, 3_250]);
    }

    #[test]
    fn a_wait_that_overflows_is_the_longest() {
        let wait = Wait::of(Curve::Exponential { wait: Duration::from_secs(1), multiplier: 10.0 });
        assert_eq!(wait.after(u32::MAX, || 0.0), Duration::MAX);
    }

    #[test]
    fn what_idem_takes_is_taken() {
        let same = |json, text: &str| {
            let taken = Wait::from_json(json).unwrap_or_else(|wrong| panic!("{text}: {wrong}"));
            assert_eq!(text.parse(), Ok(taken));
        };
        same(json!({"static": {"wait_in_seconds": 8}}), "8");
        same(json!({"random": {"min_value": 0, "max_value": 2}}), "random:0,2");
        same(json!({"random": {"min_value": 4, "max_value": 9}}), "random:4,9");
        same(json!({"exponential": {"wait_in_seconds": 2, "multiplier": 10}, "cap": 300}), "exponential:2,10,300");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refused = ["0", "-1", "x", "random:4", "random:9,4", "exponential:1,0", "fibonacci:3", "1,2", "inf", "nan"];
        for text in refused {
            assert!(text.parse::<Wait>().is_err(), "{text}");
        }
        for json in [json!({"static": {"wait": 1, "wiat": 9}}), json!({"static": {"wait": 1, "cap": 5}})] {
            assert!(Wait::from_json(json.clone()).is_err(), "{json}");
        }
    }
}
