//! When a job of cron runs.

/// The fields of a schedule: the bounds of each with the names of values, and the refusal of one that is beyond them.
const FIELDS: [(u32, u32, &[&str], &str); 5] = [
    (0, 59, &[], "has an invalid minute (first field): use 0 to 59, '*', a range such as 0-29, or a step such as */5"),
    (0, 23, &[], "has an invalid hour (second field): use 0 to 23, '*', a range such as 8-17, or a step such as */2"),
    (
        1,
        31,
        &[],
        "has an invalid day of the month (third field): use 1 to 31, '*', a range such as 1-7, or a step such as */2",
    ),
    (1, 12, &MONTHS, "has an invalid month (fourth field): use 1 to 12, jan to dec, '*', or a range such as 1-6"),
    (
        0,
        7,
        &WEEKDAYS,
        "has an invalid day of the week (fifth field): use 0 to 7, sun to sat, '*', or a range such as mon-fri",
    ),
];

/// Returns what is wrong with a text as a schedule, which cron reads as five fields, or a word.
pub(super) fn refusal(text: &str) -> Option<&'static str> {
    const WORDS: [&str; 8] =
        ["@reboot", "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
    let fields: Vec<&str> = text.split([' ', '\t']).filter(|field| !field.is_empty()).collect();
    match fields.as_slice() {
        [word] if WORDS.contains(word) => None,
        fields if fields.len() == FIELDS.len() => {
            let mut each = fields.iter().zip(FIELDS);
            each.find(|(field, (low, high, names, _))| !is_field(field, *low, *high, names)).map(|(_, row)| row.3)
        }
        _ => {
            Some("must be a schedule of cron: five fields such as \"*/5 4 * * mon-fri\", or a word such as \"@daily\"")
        }
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
    use super::refusal;

    #[test]
    fn what_cron_reads_is_a_schedule() {
        for text in ["* * * * *", "*/5 0-23/2 1,15 jan-mar Mon,5-7", "0\t4 31 12 7", "@daily", " 1 2 3 4 5 "] {
            assert_eq!(refusal(text), None, "{text}");
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
            assert!(refusal(text).is_some(), "{text}");
        }
    }
}
