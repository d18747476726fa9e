//! Versions of resources and what documents require of them.

use std::cmp::Ordering;
use std::fmt;

use semver::VersionReq;

/// The version of a resource: a semantic version, or a date as Azure uses them.
///
/// Invariants: every semantic version is greater than every date; of two versions that differ only in that one has a
/// prerelease part, that one is the smaller.
///
/// # Examples
/// ```
/// use stead_core::manifest::Version;
///
/// assert!(Version::parse("2.0.0-rc.1")? < Version::parse("2.0.0")?);
/// assert!(Version::parse("2024-11-01")? < Version::parse("0.1.0")?);
/// // A text that nearly is one is completed in the message.
/// assert_eq!(Version::parse("1.2").unwrap_err().suggestion.as_deref(), Some("1.2.0"));
/// assert_eq!(Version::parse_module("1.2.3.4").map(|version| version.to_string()).as_deref(), Some("1.2.3+4"));
/// # Ok::<(), stead_core::manifest::InvalidVersion>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Version {
    /// `YYYY-MM-DD` with an optional `-suffix`
    Date(String),
    /// `1.2.3-pre+build`
    Semantic(semver::Version),
}

/// Text that is not a version.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{text}' is an invalid semantic version: expected 'MAJOR.MINOR.PATCH' or a date 'YYYY-MM-DD'")]
pub struct InvalidVersion {
    /// The text.
    pub text: String,
    /// The value that was probably meant.
    pub suggestion: Option<String>,
}

impl Version {
    /// Reads a semantic version or a date.
    pub fn parse(text: &str) -> Result<Self, InvalidVersion> {
        if is_date(text) {
            return Ok(Self::Date(text.to_owned()));
        }
        let invalid = |_| InvalidVersion { text: text.to_owned(), suggestion: completed(text) };
        semver::Version::parse(text).map(Self::Semantic).map_err(invalid)
    }

    /// Reads a version of two or four numbers, as modules of PowerShell have it: what is missing is 0, and the fourth
    /// becomes build metadata. `None` for every other text.
    pub fn parse_module(text: &str) -> Option<Self> {
        let numbers = text.split('.').map(|part| part.parse().ok()).collect::<Option<Vec<u64>>>()?;
        let (major, minor, patch, fourth) = match *numbers {
            [major, minor] => (major, minor, 0, None),
            [major, minor, patch, fourth] => (major, minor, patch, Some(fourth)),
            _ => return None,
        };
        let build = fourth.filter(|number| *number > 0).map(|number| number.to_string()).unwrap_or_default();
        let build = semver::BuildMetadata::new(&build).ok()?;
        Some(Self::Semantic(semver::Version { build, ..semver::Version::new(major, minor, patch) }))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Date(text) => f.write_str(text),
            Self::Semantic(version) => version.fmt(f),
        }
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Semantic(a), Self::Semantic(b)) => a.cmp(b),
            (Self::Date(a), Self::Date(b)) => {
                let (day_a, suffix_a) = split_date(a);
                let (day_b, suffix_b) = split_date(b);
                day_a.cmp(day_b).then(suffix_a.is_empty().cmp(&suffix_b.is_empty())).then(suffix_a.cmp(suffix_b))
            }
            (Self::Semantic(_), Self::Date(_)) => Ordering::Greater,
            (Self::Date(_), Self::Semantic(_)) => Ordering::Less,
        }
    }
}

/// The bytes of `YYYY-MM-DD`.
const DAY: usize = 10;

fn split_date(text: &str) -> (&str, &str) {
    text.split_at_checked(DAY).unwrap_or((text, ""))
}

/// Returns whether text is `YYYY-MM-DD` or `YYYY-MM-DD-letters`, and the day exists.
fn is_date(text: &str) -> bool {
    let (day, suffix) = split_date(text);
    let letters = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphabetic());
    (suffix.is_empty() || suffix.strip_prefix('-').is_some_and(letters)) && is_day(day)
}

fn is_day(text: &str) -> bool {
    let [year, month, day] = *text.split('-').collect::<Vec<_>>() else { return false };
    if (year.len(), month.len(), day.len()) != (4, 2, 2) || !text.bytes().all(|b| b == b'-' || b.is_ascii_digit()) {
        return false;
    }
    let [Ok(year), Ok(month), Ok(day)] = [year, month, day].map(str::parse::<u16>) else { return false };
    year >= 1000 && (1..=days_of(year, month)).contains(&day)
}

/// Zero for a month that does not exist.
fn days_of(year: u16, month: u16) -> u16 {
    let leap = (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => 0,
    }
}

/// The semantic version that `1`, `1.2` or `v1.2.3` stands for.
fn completed(text: &str) -> Option<String> {
    let bare = text.strip_prefix(['v', 'V']).unwrap_or(text);
    let missing = ["", ".0", ".0.0"];
    missing.iter().map(|zeros| format!("{bare}{zeros}")).find(|text| semver::Version::parse(text).is_ok())
}

/// A requirement of a document on the version of a resource.
///
/// Comparators such as `>=1.2`, all of which must hold, in the syntax of Cargo, with restrictions that DSC puts on
/// it: each has an operator, `*` is the one wildcard and stands for a component behind the first, and there is no build
/// metadata. Or a date, which must be equal.
///
/// # Examples
/// ```
/// use stead_core::manifest::{Version, VersionRequirement};
///
/// let rule = VersionRequirement::parse(">=1.2, <2")?;
/// assert!(rule.matches(&Version::parse("1.9.0")?));
/// // A prerelease must be asked for.
/// assert!(!rule.matches(&Version::parse("1.9.0-rc.1")?));
/// assert!(VersionRequirement::parse(">=1.9.0-rc.1")?.matches(&Version::parse("1.9.0-rc.1")?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VersionRequirement {
    text: String,
    rule: Rule,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Rule {
    Semantic(VersionReq),
    Date(String),
}

/// Text that is not a requirement of a version.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{text}' is not a version requirement: {problem}")]
pub struct InvalidRequirement {
    /// The text.
    pub text: String,
    /// The mistake in it.
    pub problem: String,
    /// The advice about it.
    pub help: Option<String>,
}

impl VersionRequirement {
    /// Reads a requirement.
    pub fn parse(text: &str) -> Result<Self, InvalidRequirement> {
        let trimmed = text.trim();
        let rule = if is_date(trimmed) {
            Rule::Date(trimmed.to_owned())
        } else {
            let problem = |(problem, help)| InvalidRequirement { text: text.to_owned(), problem, help };
            Rule::Semantic(comparators(trimmed).map_err(problem)?)
        };
        Ok(Self { text: trimmed.to_owned(), rule })
    }

    /// Returns whether a version satisfies it. A prerelease does only when a comparator names a prerelease of that
    /// same version.
    pub fn matches(&self, version: &Version) -> bool {
        match (&self.rule, version) {
            (Rule::Semantic(rule), Version::Semantic(version)) => rule.matches(version),
            (Rule::Date(date), Version::Date(version)) => date == version,
            _ => false,
        }
    }

    /// It as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for VersionRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A mistake, and the advice about it.
type Problem = (String, Option<String>);

fn comparators(text: &str) -> Result<VersionReq, Problem> {
    if text.is_empty() {
        return Err(("it is empty".into(), Some("leave it out to take the newest version".into())));
    }
    text.split(',').map(str::trim).try_for_each(restrictions)?;
    VersionReq::parse(text).map_err(|error| (error.to_string(), None))
}

/// The operators, longer ones first.
const OPERATORS: [&str; 7] = [">=", "<=", ">", "<", "=", "^", "~"];

/// Checks what DSC forbids although Cargo allows it, with messages that say what to write instead.
fn restrictions(comparator: &str) -> Result<(), Problem> {
    if comparator.is_empty() {
        return Err(("there is nothing beside a comma".into(), Some("write '>=1.0, <2.0'".into())));
    }
    let operator = OPERATORS.iter().find(|operator| comparator.starts_with(**operator));
    let version = comparator.get(operator.map_or(0, |operator| operator.len())..).unwrap_or_default().trim_start();
    if matches!(version, "*" | "x" | "X") {
        let help = "leave the requirement out to take the newest version";
        return Err((format!("'{comparator}' has no major version"), Some(help.into())));
    }
    if operator.is_none() {
        return Err(without_operator(comparator));
    }
    if version.contains('+') {
        let bare = comparator.split('+').next().unwrap_or_default();
        let help = format!("versions are compared without it: write '{bare}'");
        return Err((format!("'{comparator}' has build metadata"), Some(help)));
    }
    let numbers = version.split('-').next().unwrap_or_default();
    if numbers.split('.').any(|component| matches!(component, "x" | "X")) {
        let help = format!("write '{}'", comparator.replace(['x', 'X'], "*"));
        return Err((format!("'{comparator}' has a wildcard other than '*'"), Some(help)));
    }
    Ok(())
}

fn without_operator(comparator: &str) -> Problem {
    let starts_like_version = comparator.starts_with(|first: char| first.is_ascii_digit());
    let help = starts_like_version.then(|| {
        let bare = comparator.trim_end_matches(".*");
        format!("write '={comparator}' for exactly that, '^{bare}' for that and compatible newer ones")
    });
    (format!("'{comparator}' has no operator (one of {})", OPERATORS.join(" ")), help)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn versions_are_ordered_with_dates_first_and_prereleases_before_their_release() {
        let order = [
            "2023-12-31",
            "2024-01-01-alpha",
            "2024-01-01-preview",
            "2024-01-01",
            "2024-01-02-alpha",
            "0.0.1",
            "1.0.0-rc.1",
            "1.0.0",
            "1.0.1",
            "1.10.0",
        ];
        for pair in order.windows(2) {
            assert!(version(pair[0]) < version(pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn dates_exist_in_the_calendar() {
        for good in ["2024-02-29", "2000-02-29", "1999-12-31", "2024-06-30-preview"] {
            assert_eq!(version(good), Version::Date(good.into()));
        }
        let bad = ["2023-02-29", "1900-02-29", "2024-13-01", "2024-00-01", "2024-04-31", "0999-01-01", "2024-1-1"];
        for bad in bad.into_iter().chain(["2024-01-01-", "2024-01-01-a1", "2024-01-01x", "+024-01-01"]) {
            assert!(!matches!(Version::parse(bad), Ok(Version::Date(_))), "{bad}");
        }
    }

    #[test]
    fn what_is_no_version_is_completed() {
        let suggestion = |text| Version::parse(text).unwrap_err().suggestion;
        assert_eq!(suggestion("1.2").as_deref(), Some("1.2.0"));
        assert_eq!(suggestion("v1.2.3").as_deref(), Some("1.2.3"));
        assert_eq!(suggestion("1").as_deref(), Some("1.0.0"));
        assert_eq!(suggestion("one"), None);
        assert_eq!(suggestion("1.2.3.4"), None);
    }

    #[test]
    fn versions_of_modules_have_two_to_four_numbers() {
        let read = |text| Version::parse_module(text).map(|version| version.to_string());
        assert_eq!(read("1.1").as_deref(), Some("1.1.0"));
        assert_eq!(read("2.12.0.0").as_deref(), Some("2.12.0"));
        assert_eq!(read("2.12.0.7").as_deref(), Some("2.12.0+7"));
        assert_eq!(["1", "1.2.3", "1.2.3.4.5", "1.x"].map(read), [None, None, None, None]);
    }

    #[test]
    fn requirements_are_restricted_and_say_why() {
        let message = |text: &str| {
            let error = VersionRequirement::parse(text).unwrap_err();
            (error.to_string(), error.help.unwrap_or_default())
        };
        let expected = [
            ("1.1.2", "has no operator", "'=1.1.2'"),
            (">=1, 1.1", "'1.1' has no operator", "'^1.1'"),
            ("1.*", "has no operator", "'^1'"),
            ("*", "has no major version", "newest"),
            ("=*", "has no major version", "newest"),
            ("=1.x", "wildcard other than '*'", "'=1.*'"),
            ("=1.2.3+b", "build metadata", "'=1.2.3'"),
            ("", "empty", "newest"),
            (">=1,", "beside a comma", ">=1.0"),
            (">>1", "is not a version requirement", ""),
            ("=1.2.3.4", "is not a version requirement", ""),
            ("hello", "has no operator", ""),
        ];
        for (text, problem, help) in expected {
            let (said, advice) = message(text);
            assert!(said.contains(problem) && advice.contains(help), "{text}: {said} / {advice}");
        }
    }

    #[test]
    fn requirements_match_what_cargo_would() {
        let cases = [
            ("=1", "1.9.9", true),
            ("= 1.*", "1.2.3", true),
            ("=1.2.*", "1.3.0", false),
            ("~1.1", "1.1.9", true),
            ("~1.1", "1.2.0", false),
            ("^1.1", "1.9.0", true),
            ("^1.1", "2.0.0", false),
            (">1, <=2.0.0", "2.0.0", true),
            (">=1.0.0", "2.1.0-preview.2", false),
            (">=2.1.0-preview.1", "2.1.0-preview.2", true),
            ("=1.2.3-x.y", "1.2.3-x.y", true),
            (">=1.0.0", "2024-01-01", false),
            ("2024-01-01", "2024-01-01", true),
            ("2024-01-01", "2024-01-01-preview", false),
            ("2024-01-01", "1.0.0", false),
        ];
        for (requirement, candidate, expected) in cases {
            let parsed = VersionRequirement::parse(requirement).unwrap();
            assert_eq!(parsed.matches(&version(candidate)), expected, "{requirement} {candidate}");
        }
    }
}
