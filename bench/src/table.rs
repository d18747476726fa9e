//! The measurements, as a table.

use std::fmt;
use std::time::Duration;

use crate::meter::Sample;

/// The comparison of a figure with its limit.
#[derive(Debug)]
pub(crate) enum Verdict {
    Holds,
    Exceeded,
    NotMeasured(String),
}

/// A line of the table.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) floor: Option<Sample>,
    pub(crate) stead: Option<Sample>,
    /// How they compare.
    pub(crate) compared: String,
    pub(crate) limit: String,
    pub(crate) verdict: Verdict,
}

impl Row {
    /// A line that says why there is nothing to compare.
    pub(crate) fn not_measured(name: &str, floor: Option<Sample>, limit: &str, reason: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            floor,
            stead: None,
            compared: "-".to_owned(),
            limit: limit.to_owned(),
            verdict: Verdict::NotMeasured(reason.into()),
        }
    }
}

/// The names of the columns. Figures that runs do not agree on have a `~` in front of them.
pub(crate) fn header() -> String {
    format!(
        "{:<34} {:>26} {:>26} {:>12}  {:<22} {}\n{:<34} {:>10} {:>9} {:>5} {:>10} {:>9} {:>5}\n",
        "", "floor", "stead", "", "limit", "", "median of", "CPU ms", "wall ms", "MiB", "CPU ms", "wall ms", "MiB"
    )
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, floor, stead, compared, limit, verdict } = self;
        write!(f, "{name:<34} {} {} {compared:>12}  {limit:<22} ", figures(*floor), figures(*stead))?;
        match verdict {
            Verdict::Holds => f.write_str("holds\n"),
            Verdict::Exceeded => f.write_str("EXCEEDED\n"),
            Verdict::NotMeasured(reason) => writeln!(f, "not measured: {reason}"),
        }
    }
}

fn figures(sample: Option<Sample>) -> String {
    match sample {
        Some(Sample { cpu, wall, memory, unsteady }) => {
            let mark = if unsteady { '~' } else { ' ' };
            format!("{mark}{:>9.2} {:>9.2} {:>5}", milliseconds(cpu), milliseconds(wall), memory / 1024)
        }
        None => format!("{:>10} {:>9} {:>5}", "-", "-", "-"),
    }
}

/// A time as a number of milliseconds.
pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
