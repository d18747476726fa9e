//! When a job of cron runs.

/// Returns whether a text is a schedule as cron reads it: five fields, or a word.
pub(super) fn is_schedule(text: &str) -> bool {
    const WORDS: [&str; 8] =
        ["@reboot", "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
    let fields: Vec<&str> = text.split([' ', '\t']).filter(|field| !field.is_empty()).collect();
    match fields.as_slice() {
        [word] => WORDS.contains(word),
        [minute, hour, day, month, weekday] => {
            let rows: [(&str, u32, u32, &[&str]); 5] = [
                (minute, 0, 59, &[]),
                (hour, 0, 23, &[]),
                (day, 1, 31, &[]),
                (month, 1, 12, &MONTHS),
                (weekday, 0, 7, &WEEKDAYS),
            ];
            rows.iter().all(|(field, low, high, names)| is_field(field, *low, *high, names))
        }
        _ => false,
    }
}

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Returns whether a field is a list of values and ranges, each with or without a step.
fn is_field(field: &str, low: u32, high: u32, names: &[&str]) -> bool {
    field.split(',').all(|item| {
        let (range, step) = item.split_once('/').map_or((item, None), |(range, step)| (range, Some(step)));
        let spans = range == "*" || range.contains('-');
        let step = step.is_none_or(|step| spans && number(step).is_some_and(|step| (1..=high).contains(&step)));
        step && is_range(range, low, high, names)
    })
}

fn is_range(range: &str, low: u32, high: u32, names: &[&str]) -> bool {
    let value = |text: &str| {
        let by_name = names.iter().zip(low..).find(|(name, _)| text.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        by_name.or_else(|| number(text)).filter(|value| (low..=high).contains(value))
    };
    match range.split_once('-') {
        _ if range == "*" => true,
        Some((first, last)) => value(first).zip(value(last)).is_some_and(|(first, last)| first <= last),
        None => value(range).is_some(),
    }
}

fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::is_schedule;

    #[test]
    fn what_cron_reads_is_a_schedule() {
        for text in ["* * * * *", "*/5 0-23/2 1,15 jan-mar Mon,5-7", "0\t4 31 12 7", "@daily", " 1 2 3 4 5 "] {
            assert!(is_schedule(text), "{text}");
        }
    }

    #[test]
    fn what_cron_refuses_is_none() {
        let all = [
            "",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 8",
            "5-1 * * * *",
            "*/0 * * * *",
            "1/5 * * * *",
            "x * * * *",
            "1, * * * *",
            "+1 * * * *",
            "@never",
        ];
        for text in all {
            assert!(!is_schedule(text), "{text}");
        }
    }
}
