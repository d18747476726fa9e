//! Corrections of values that are refused.

use stead_core::expr::Template;
use stead_core::schema::Type;
use stead_core::text::Kind;

/// A text that may be accepted in place of another one.
pub(super) struct Correction {
    pub(super) text: String,
    /// Advice, without the text where that may hold a password.
    pub(super) help: String,
}

/// The texts that may have been meant by one that is refused, of which the first one that is accepted is.
pub(super) fn of(property: &str, text: &str) -> Vec<Correction> {
    let mut found = Vec::new();
    let mut write = |text: String| found.push(Correction { help: format!("write \"{text}\""), text });
    match text.len() {
        64 => write(format!("sha256:{text}")),
        128 => write(format!("sha512:{text}")),
        _ => {}
    }
    if let Some(rest) = text.strip_prefix('%').filter(|rest| is_word(rest)) {
        write(rest.to_owned());
    }
    if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).filter(|inner| is_word(inner)) {
        write(inner.to_owned());
    }
    if property == "pointer" && text.chars().all(|each| each.is_ascii_alphanumeric() || "_-.$[]".contains(each)) {
        let steps = text.split(['.', '[', ']']).filter(|step| !matches!(*step, "" | "$"));
        write(steps.fold(String::new(), |pointer, step| pointer + "/" + step));
    }
    if property == "name" && text.contains('_') && is_word(text) {
        write(text.replace('_', "-"));
    }
    if property == "mode" {
        symbolic(text).into_iter().for_each(&mut write);
    }
    if property == "name" {
        text.strip_suffix(".ko").map(str::to_owned).into_iter().for_each(&mut write);
    }
    if property == "match" && text.starts_with('*') {
        write(format!(".{text}"));
    }
    if property == "onCalendar" {
        calendar(text).into_iter().for_each(&mut write);
    }
    if property == "options" && text.contains(' ') {
        let parts = text.split([',', ' ']).filter(|part| !part.is_empty());
        found.push(Correction {
            text: parts.collect::<Vec<_>>().join(","),
            help: "leave the spaces out, with one comma between two".to_owned(),
        });
    }
    found
}

/// The octal digits of `rw-r--r--`, and of `u=rw,g=r,o=r`.
fn symbolic(text: &str) -> Option<String> {
    let letters = |letters: &str| {
        letters.chars().try_fold(0, |bits, letter| {
            Some(
                bits | match letter {
                    'r' => 4,
                    'w' => 2,
                    'x' => 1,
                    '-' => 0,
                    _ => return None,
                },
            )
        })
    };
    let digits: Vec<u32> = if text.contains('=') {
        let of = |who: char| {
            text.split(',').find_map(|part| part.split_once('=').filter(|(whom, _)| whom.contains(who) || *whom == "a"))
        };
        ['u', 'g', 'o']
            .into_iter()
            .map(|who| of(who).map_or(Some(0), |(_, bits)| letters(bits)))
            .collect::<Option<_>>()?
    } else {
        let text = text.strip_prefix(['-', 'd']).filter(|rest| rest.len() == 9).unwrap_or(text);
        let parts = [text.get(..3)?, text.get(3..6)?, text.get(6..).filter(|last| last.len() == 3)?];
        parts.into_iter().map(letters).collect::<Option<_>>()?
    };
    Some(digits.iter().fold("0".to_owned(), |text, digit| format!("{text}{digit}")))
}

/// The calendar event of systemd for a schedule of cron at one time of the day.
fn calendar(text: &str) -> Option<String> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [minute, hour, "*", "*", weekday] = *fields else { return None };
    let (minute, hour) = (minute.parse::<u8>().ok()?, hour.parse::<u8>().ok());
    let hour = hour.map_or("*".to_owned(), |hour| format!("{hour:02}"));
    let names = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let day = match weekday {
        "*" => String::new(),
        number => format!("{} ", names.get(number.parse::<usize>().ok()?)?),
    };
    Some(format!("{day}*-*-* {hour}:{minute:02}"))
}

/// Advice about words in a text where a list is wanted, and about a list where a text with commas is.
pub(super) fn listed(
    property: &str,
    wanted: &[Type],
    value: &Template,
    accepts: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let is_item = |item: &&str| is_word(item) && !item.contains(' ');
    match &value.kind {
        Kind::String(text) if wanted.contains(&Type::Array) => {
            let items: Vec<&str> = text.split([',', ' ']).filter(|item| !item.is_empty()).collect();
            let is_plain = !items.is_empty() && items.iter().all(is_item);
            is_plain.then(|| format!("write it as a list: `{property}: [{}]`", items.join(", ")))
        }
        Kind::Array(items) if property == "options" && wanted.contains(&Type::String) => {
            let items: Vec<&str> =
                items.iter().map(|item| item.as_str().filter(|item| is_item(item))).collect::<Option<_>>()?;
            let joined = items.join(",");
            (items.len() > 1 && accepts(&joined)).then(|| format!("write them with commas: `{property}: {joined}`"))
        }
        _ => None,
    }
}

/// Advice about a line of a crontab in place of its schedule. The command may hold a password, and is not repeated.
pub(super) fn line_of_cron(property: &str, text: &str, accepts: &dyn Fn(&str) -> bool) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let schedule = words.get(..5).filter(|_| property == "schedule" && words.len() > 5)?.join(" ");
    accepts(&schedule)
        .then(|| format!("write `schedule: '{schedule}'`; what stands behind it is the 'user' and the 'command'"))
}

/// Advice about a text that names several things, or one of another kind.
pub(super) fn several(property: &str, text: &str, has: &dyn Fn(&str) -> bool) -> Option<String> {
    let is_package = property == "name" && has("version") && has("hold");
    let words: Vec<&str> = text.split([',', ' ']).filter(|word| !word.is_empty()).collect();
    let are_words = words.len() > 1 && words.iter().all(|word| is_word(word));
    match text {
        _ if are_words && property == "name" && has("aliases") => {
            let others = words.get(1..).unwrap_or_default().join(", ");
            Some(format!("write `name: {}` and `aliases: [{others}]`", words.first().unwrap_or(&"")))
        }
        _ if are_words && is_package => Some(format!("write `names: [{}]`", words.join(", "))),
        _ if are_words && matches!(property, "suites" | "components" | "groups" | "members") => {
            Some(format!("write each as an item of the list: `{property}: [{}]`", words.join(", ")))
        }
        _ if !is_package => None,
        _ if text.contains('*') => Some("list the packages in 'names'".to_owned()),
        _ if text.rsplit_once('.').is_some_and(|(_, end)| matches!(end, "deb" | "rpm")) => Some(
            "add the repository that has the package, with Stead/AptRepository where that is one of apt".to_owned(),
        ),
        _ => None,
    }
}

/// Advice about a text that holds the values of two properties.
pub(super) fn apart(
    property: &str,
    text: &str,
    has: &dyn Fn(&str) -> bool,
    accepts: &dyn Fn(&str) -> bool,
) -> Option<String> {
    const PAIRS: [(&str, char, &str); 6] = [
        ("owner", ':', "group"),
        ("owner", '.', "group"),
        ("name", '=', "version"),
        ("name", '@', "version"),
        ("name", '=', "value"),
        ("key", '=', "value"),
    ];
    PAIRS.into_iter().find_map(|(first, between, second)| {
        let (one, other) = text.split_once(between)?;
        let is_both = property == first && has(second) && is_word(one) && is_word(other) && accepts(one);
        is_both.then(|| format!("write `{first}: {one}` and `{second}: {other}`"))
    })
}

/// Returns whether a text is a word that no password would be part of.
fn is_word(text: &str) -> bool {
    let is_part = |each: char| each.is_alphanumeric() || matches!(each, '_' | '-' | '.' | '+' | ' ' | '/');
    !text.is_empty() && text.chars().all(is_part)
}
