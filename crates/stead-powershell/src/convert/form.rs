//! Texts that stand for values of other types, each in the one form that PowerShell reads as meant.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Returns whether it is a date of ISO 8601, with or without a time; the time with an offset, `Z` or neither.
///
/// Others are read by PowerShell as well: `01/02/2026` is in January, `1.5` a day of this year.
pub(super) fn is_date_time(text: &str) -> bool {
    let (date, time) = text.split_once('T').map_or((text, None), |(date, time)| (date, Some(time)));
    is_date(date) && time.is_none_or(is_time_with_offset)
}

/// Returns whether it is one with an offset. Without one it depends on the time zone of the machine when it is.
pub(super) fn is_instant(text: &str) -> bool {
    let offset = text.split_once('T').and_then(|(_, time)| split_offset(time));
    is_date_time(text) && offset.is_some_and(|(_, offset)| !offset.is_empty())
}

/// Returns whether it is `yyyy-MM-dd`.
pub(super) fn is_date(text: &str) -> bool {
    let number = |range: std::ops::Range<usize>| digits(text.get(range)?);
    let parsed = (|| {
        let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
        jiff::civil::Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
    })();
    text.len() == 10
        && text.get(4..5) == Some("-")
        && text.get(7..8) == Some("-")
        && parsed.is_some_and(|date| date.year() > 0)
}

fn is_time_with_offset(text: &str) -> bool {
    split_offset(text).is_some_and(|(time, offset)| {
        let is_offset = match offset.as_bytes() {
            [] | b"Z" => true,
            [b'+' | b'-', rest @ ..] => std::str::from_utf8(rest).is_ok_and(|rest| {
                let parts = rest.split_once(':').map(|(hours, minutes)| (two(hours), two(minutes)));
                matches!(parts, Some((Some(0..=13), Some(0..=59)) | (Some(14), Some(0))))
            }),
            _ => false,
        };
        is_offset && is_clock(time)
    })
}

fn split_offset(time: &str) -> Option<(&str, &str)> {
    time.split_at_checked(time.find(['Z', '+', '-']).unwrap_or(time.len()))
}

/// Returns whether it is `hh:mm:ss`, with at most seven digits of a fraction.
pub(super) fn is_clock(text: &str) -> bool {
    let (clock, fraction) = text.split_once('.').map_or((text, None), |(clock, fraction)| (clock, Some(fraction)));
    let mut parts = clock.split(':').map(two);
    let in_range = matches!(
        (parts.next(), parts.next(), parts.next(), parts.next()),
        (Some(Some(0..=23)), Some(Some(0..=59)), Some(Some(0..=59)), None)
    );
    in_range && fraction.is_none_or(|fraction| fraction.len() <= 7 && digits(fraction).is_some())
}

/// Returns whether it is `[-][d.]hh:mm:ss[.fffffff]`. `24:00:00` would be 24 days, and `1` one.
pub(super) fn is_time_span(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    match text.split_once('.') {
        Some((days, clock)) if !days.contains(':') => {
            digits(days).is_some_and(|days| days < 10_675_199) && is_clock(clock)
        }
        _ => is_clock(text),
    }
}

/// Returns whether it is a GUID in one of the forms `D`, `B` and `N`.
pub(super) fn is_guid(text: &str) -> bool {
    let bare = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let groups: Vec<usize> = bare.unwrap_or(text).split('-').map(str::len).collect();
    let is_form = groups == [8, 4, 4, 4, 12] || (bare.is_none() && groups == [32]);
    is_form && bare.unwrap_or(text).bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// Returns whether it is a version of two to four numbers.
pub(super) fn is_version(text: &str) -> bool {
    let parts: Vec<_> = text.split('.').map(digits).collect();
    let fits = |part: &Option<u64>| part.is_some_and(|part| part <= 0x7fff_ffff);
    (2..=4).contains(&parts.len()) && parts.iter().all(fits)
}

pub(super) fn is_semantic_version(text: &str) -> bool {
    let core = text.split(['-', '+']).next().unwrap_or_default();
    let fits = |part: &str| digits(part).is_some_and(|part| part <= 0x7fff_ffff);
    core.split('.').count() == 3
        && core.split('.').all(fits)
        && text.split_once('-').is_none_or(|(_, label)| !label.is_empty())
}

/// Returns whether it is an address of IP. `1` would be `0.0.0.1`.
pub(super) fn is_ip_address(text: &str) -> bool {
    text.parse::<Ipv4Addr>().is_ok() || text.parse::<Ipv6Addr>().is_ok()
}

/// Returns whether it is the name of a day of the week.
pub(super) fn is_day_of_week(text: &str) -> bool {
    let days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
    days.iter().any(|day| day.eq_ignore_ascii_case(text))
}

fn two(text: &str) -> Option<u64> {
    digits(text).filter(|_| text.len() == 2)
}

fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_one_form() {
        for text in ["2026-01-02", "2026-01-02T03:04:05", "2026-01-02T03:04:05.1234567Z", "2024-02-29T00:00:00+14:00"] {
            assert!(is_date_time(text), "{text}");
        }
        for text in [
            "2026-02-30",
            "01/02/2026",
            "1.5",
            "",
            "2026-01-02T",
            "2026-01-02T24:00:00",
            "2026-01-02T03:04:05.12345678Z",
        ] {
            assert!(!is_date_time(text), "{text}");
        }
        assert!(
            is_instant("2026-01-02T03:04:05-01:30") && !is_instant("2026-01-02T03:04:05") && !is_instant("2026-01-02")
        );
    }

    #[test]
    fn other_forms_are_as_strict() {
        assert!(
            is_time_span("00:01:30")
                && is_time_span("-1.02:03:04.5")
                && !is_time_span("24:00:00")
                && !is_time_span("1")
        );
        assert!(is_guid("{0F8FAD5B-D9CB-469F-A165-70867728950E}") && is_guid(&"0".repeat(32)) && !is_guid("{0}"));
        assert!(is_version("1.2") && !is_version("1") && !is_version("1.2.3.4.5") && !is_version("1.-2"));
        assert!(
            is_ip_address("::1")
                && !is_ip_address("1")
                && is_semantic_version("1.2.3-b+5")
                && !is_semantic_version("1.2")
        );
    }
}
