//! `utcNow`: an instant in the custom and standard format strings of .NET, in the invariant culture.

use jiff::Timestamp;
use jiff::civil::{DateTime, Weekday};
use jiff::tz::TimeZone;

use super::super::builtin::Wrong;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The pattern when none is given: what DSC v3 writes.
const DEFAULT: &str = "yyyy-MM-ddTHH:mm:ss.ffffffZ";

/// An instant, given as RFC 3339 text, in a format.
pub(in super::super) fn format(now: &str, pattern: Option<&str>) -> Result<String, Wrong> {
    let instant: Timestamp = now.parse().map_err(|_| Wrong::value(0, format!("'{now}' is not an instant")))?;
    let time = TimeZone::UTC.to_datetime(instant);
    let pattern = pattern.unwrap_or(DEFAULT);
    custom(time, standard(pattern).unwrap_or(pattern))
}

/// The custom pattern that a standard one, of a single letter, stands for.
fn standard(pattern: &str) -> Option<&'static str> {
    Some(match pattern {
        "d" => "MM/dd/yyyy",
        "D" => "dddd, dd MMMM yyyy",
        "f" => "dddd, dd MMMM yyyy HH:mm",
        "F" | "U" => "dddd, dd MMMM yyyy HH:mm:ss",
        "g" => "MM/dd/yyyy HH:mm",
        "G" => "MM/dd/yyyy HH:mm:ss",
        "m" | "M" => "MMMM dd",
        "o" | "O" => "yyyy-MM-ddTHH:mm:ss.fffffffZ",
        "r" | "R" => "ddd, dd MMM yyyy HH:mm:ss 'GMT'",
        "s" => "yyyy-MM-ddTHH:mm:ss",
        "t" => "HH:mm",
        "T" => "HH:mm:ss",
        "u" => "yyyy-MM-dd HH:mm:ssZ",
        "y" | "Y" => "yyyy MMMM",
        _ => return None,
    })
}

fn custom(time: DateTime, pattern: &str) -> Result<String, Wrong> {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let run = rest.chars().take_while(|c| *c == first).count();
        let length = match first {
            '\'' | '"' => quoted(rest, first, &mut out)?,
            '\\' => {
                let escaped = rest.chars().nth(1).ok_or_else(|| unfinished("a '\\' at the end"))?;
                out.push(escaped);
                1 + escaped.len_utf8()
            }
            '%' => 1,
            'F' => {
                fraction(time, run, &mut out)?;
                run
            }
            _ => {
                let text = specifier(time, first, run)?;
                let length = if text.is_some() { run } else { first.len_utf8() };
                out.push_str(&text.unwrap_or_else(|| first.to_string()));
                length
            }
        };
        rest = rest.get(length..).unwrap_or("");
    }
    Ok(out)
}

fn unfinished(what: &str) -> Wrong {
    Wrong::value(0, format!("Invalid format string: {what}"))
}

fn quoted(rest: &str, quote: char, out: &mut String) -> Result<usize, Wrong> {
    let inner = rest.get(1..).unwrap_or("");
    let end = inner.find(quote).ok_or_else(|| unfinished("a quote is not closed"))?;
    out.push_str(inner.get(..end).unwrap_or(""));
    Ok(end + 2)
}

/// Trailing zeros are left out, and with all digits the point in front of them.
fn fraction(time: DateTime, digits: usize, out: &mut String) -> Result<(), Wrong> {
    let all = fixed_fraction(time, digits)?;
    let shown = all.trim_end_matches('0');
    if shown.is_empty() && out.ends_with('.') {
        out.pop();
    }
    out.push_str(shown);
    Ok(())
}

fn fixed_fraction(time: DateTime, digits: usize) -> Result<String, Wrong> {
    let nanoseconds = format!("{:09}", time.subsec_nanosecond());
    let shown = nanoseconds.get(..digits).filter(|_| digits <= 7);
    shown.map(str::to_owned).ok_or_else(|| unfinished("a second has at most seven digits behind the point"))
}

/// Returns the text for a run of one letter; `None` when the letter stands for itself.
fn specifier(time: DateTime, letter: char, run: usize) -> Result<Option<String>, Wrong> {
    let two = |number: i8| if run == 1 { number.to_string() } else { format!("{number:02}") };
    let hour12 = (time.hour() + 11) % 12 + 1;
    Ok(Some(match letter {
        'd' if run <= 2 => two(time.day()),
        'd' => named(weekday(time.weekday()), run),
        'f' => fixed_fraction(time, run)?,
        'g' => "A.D.".to_owned(),
        'h' => two(hour12),
        'H' => two(time.hour()),
        'K' => "Z".repeat(run),
        'm' => two(time.minute()),
        'M' if run <= 2 => two(time.month()),
        'M' => named(usize::try_from(time.month() - 1).ok().and_then(|at| MONTHS.get(at)).copied().unwrap_or(""), run),
        's' => two(time.second()),
        't' => {
            let half = if time.hour() < 12 { "AM" } else { "PM" };
            half.get(..run.min(2)).unwrap_or(half).to_owned()
        }
        'y' if run == 1 => (time.year() % 100).to_string(),
        'y' if run == 2 => format!("{:02}", time.year() % 100),
        'y' => format!("{:0run$}", time.year()),
        'z' if run == 1 => "+0".to_owned(),
        'z' if run == 2 => "+00".to_owned(),
        'z' => "+00:00".to_owned(),
        _ => return Ok(None),
    }))
}

/// Three letters of a name, or all of it.
fn named(name: &str, run: usize) -> String {
    if run == 3 { name.get(..3).unwrap_or(name).to_owned() } else { name.to_owned() }
}

fn weekday(day: Weekday) -> &'static str {
    match day {
        Weekday::Monday => "Monday",
        Weekday::Tuesday => "Tuesday",
        Weekday::Wednesday => "Wednesday",
        Weekday::Thursday => "Thursday",
        Weekday::Friday => "Friday",
        Weekday::Saturday => "Saturday",
        Weekday::Sunday => "Sunday",
    }
}
