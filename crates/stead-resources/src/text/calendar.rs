//! Calendar events of systemd.time(7).

use std::ops::RangeInclusive;

/// Words that stand for an event.
const WORDS: [&str; 11] = [
    "minutely",
    "hourly",
    "daily",
    "monthly",
    "weekly",
    "yearly",
    "annually",
    "quarterly",
    "semiannually",
    "semi-annually",
    "bi-annually",
];

/// Returns whether systemd reads a text as a calendar event: a word, or days of the week, a date, a time and a time
/// zone, any of which may be missing, but not all.
pub(super) fn is_calendar_event(text: &str) -> bool {
    let mut parts: Vec<&str> = text.split(' ').filter(|part| !part.is_empty()).collect();
    if parts.len() > 1 && parts.last().is_some_and(|last| is_zone(last)) {
        parts.pop();
    }
    if let [word] | [_, word] = parts.as_slice()
        && (is_instant(word) || is_word(word) && parts.len() == 1)
        && (parts.len() == 1 || parts.first().is_some_and(|days| is_weekdays(days)))
    {
        return true;
    }
    let mut rest = parts.as_slice();
    for is_part in [is_weekdays, is_date, is_time] {
        if let [first, others @ ..] = rest
            && is_part(first)
        {
            rest = others;
        }
    }
    !parts.is_empty() && rest.is_empty()
}

fn is_word(text: &str) -> bool {
    WORDS.iter().any(|word| word.eq_ignore_ascii_case(text))
}

/// Returns whether a text is an instant, `@` and seconds since 1970, with nothing added to it.
fn is_instant(text: &str) -> bool {
    text.strip_prefix('@')
        .is_some_and(|seconds| !seconds.is_empty() && seconds.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns whether a text may be the name of a time zone: with its area, or one of the old ones in capital letters,
/// such as UTC.
fn is_zone(text: &str) -> bool {
    let is_name = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+-".contains(&byte))
    };
    let is_short = text.len() > 1 && !text.bytes().any(|byte| byte.is_ascii_lowercase() || byte == b'/');
    let begins = text.starts_with(|first: char| first.is_ascii_uppercase());
    begins && !is_weekdays(text) && (is_short || text.contains('/')) && text.split('/').all(is_name)
}

fn is_weekdays(text: &str) -> bool {
    let days = text.strip_suffix(',').unwrap_or(text);
    days.split(',').all(|days| {
        let ends = days.split_once("..").or_else(|| days.split_once('-'));
        match ends {
            Some((first, last)) => weekday(first).zip(weekday(last)).is_some_and(|(first, last)| first <= last),
            None => weekday(days).is_some(),
        }
    })
}

fn weekday(text: &str) -> Option<usize> {
    const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let text = text.to_ascii_lowercase();
    DAYS.iter().position(|day| *day == text || day.get(..3) == Some(&text))
}

fn is_date(text: &str) -> bool {
    let Some((front, day)) = text.rsplit_once(['-', '~']) else { return false };
    // Days from the end of the month are behind '~'.
    let (year, month) = front.rsplit_once('-').map_or((None, front), |(year, month)| (Some(year), month));
    is_list(day, 1..=31) && is_list(month, 1..=12) && year.is_none_or(|year| is_list(year, 1970..=2199))
}

fn is_time(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    let (hours, minutes, seconds) = match parts.as_slice() {
        [hours, minutes] => (hours, minutes, None),
        [hours, minutes, seconds] => (hours, minutes, Some(seconds)),
        _ => return false,
    };
    is_list(hours, 0..=23) && is_list(minutes, 0..=59) && seconds.is_none_or(|seconds| is_list(seconds, 0..=59))
}

/// Returns whether a text is a list of values and ranges within these bounds, each with or without a repetition, or
/// '*'.
fn is_list(text: &str, bounds: RangeInclusive<u32>) -> bool {
    text.split(',').all(|item| {
        let (range, step) = item.split_once('/').map_or((item, None), |(range, step)| (range, Some(step)));
        let value = |text: &str| number(text, *bounds.end() == 59).filter(|value| bounds.contains(value));
        let in_bounds = match range.split_once("..") {
            _ if range == "*" => true,
            Some((first, last)) => value(first).zip(value(last)).is_some_and(|(first, last)| first <= last),
            None => value(range).is_some(),
        };
        in_bounds && step.is_none_or(|step| number(step, *bounds.end() == 59).is_some_and(|step| step > 0))
    })
}

/// A number; with a fraction, which seconds may have, what is in front of it.
fn number(text: &str, with_fraction: bool) -> Option<u32> {
    let (whole, fraction) = text.split_once('.').filter(|_| with_fraction).unwrap_or((text, "0"));
    let digits = |text: &str| (1..=6).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(whole) && digits(fraction)).then(|| whole.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::is_calendar_event;

    #[test]
    fn what_systemd_reads_is_an_event() {
        let all = [
            "daily",
            "Weekly",
            "hourly UTC",
            "Mon..Fri *-*-* 04:00",
            "Sat,Sun 12:05",
            "*-*-* *:0/10:00",
            "2027-12-31",
            "*-*~1 23:59:59",
            "Mon *-05~07/1",
            "12:00",
            "*:0/15",
            "Thu,Fri 2026-*-1,5 11:12:13",
            "*-*-01 06,18:00 UTC",
            "Mon,Wed..Fri,",
            "@1700000000",
            "Mon @12",
            "*-*-* 00:00:00.5",
            "12-24",
            "*-*-* 02:30 Europe/Berlin",
            "monday 3:00",
        ];
        for text in all {
            assert!(is_calendar_event(text), "{text}");
        }
    }

    #[test]
    fn what_systemd_refuses_is_none() {
        let all = [
            "",
            "every day",
            "24:00",
            "*-13-01",
            "*-*-32",
            "12:60",
            "Mon..",
            "Fri..Mon",
            "5..1:00",
            "daily daily",
            "04:00 Mon",
            "*-*-* 04:00 04:00",
            "12",
            "UTC",
            "*:*/0",
            "a:b",
            "1-2-3-4",
            "daily 04:00",
            "@12 04:00",
        ];
        for text in all {
            assert!(!is_calendar_event(text), "{text}");
        }
    }
}
