//! Versions of packages: their order, and what an instance requires of them.

use std::cmp::Ordering;

use crate::text::{Text, text_type};

/// The order of versions of one package manager.
pub(crate) type Order = fn(&str, &str) -> Ordering;

/// What an instance requires of a version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Requirement<'a> {
    /// The newest one that the package lists have.
    Latest,
    /// This one.
    Exact(&'a str),
    /// All of these comparisons hold.
    Range(Vec<(Relation, &'a str)>),
}

/// A requirement on the version of a package, as it is written.
#[derive(Clone)]
pub(super) struct PackageVersion<'a> {
    pub(super) text: &'a str,
    pub(super) requirement: Requirement<'a>,
}
text_type!(PackageVersion, {
    "type": "string",
    "pattern": "^(([A-Za-z0-9][A-Za-z0-9.+:~_^-]*)|((>=|<=|>|<|=) ?[A-Za-z0-9][A-Za-z0-9.+:~_^-]*(, ?(>=|<=|>|<|=) ?[A-Za-z0-9][A-Za-z0-9.+:~_^-]*)*))$"
});

impl<'a> Text<'a> for PackageVersion<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let requirement = Requirement::parse(text);
        let requirement = requirement.ok_or("must be a version, latest, or comparisons such as \">= 1.2, < 2\"")?;
        Ok(Self { text, requirement })
    }
}

/// How a version compares with a stated one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Relation {
    Equal,
    AtLeast,
    AtMost,
    Above,
    Below,
}

/// The longer ones first.
const RELATIONS: [(&str, Relation); 5] = [
    (">=", Relation::AtLeast),
    ("<=", Relation::AtMost),
    (">", Relation::Above),
    ("<", Relation::Below),
    ("=", Relation::Equal),
];

impl<'a> Requirement<'a> {
    /// Reads `latest`, a version, or comparisons such as `>= 1.2, < 2`; `None` when it is none of these.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        if text == "latest" {
            return Some(Self::Latest);
        }
        if !text.starts_with(['<', '>', '=']) {
            return is_version(text).then_some(Self::Exact(text));
        }
        let comparison = |part: &'a str| {
            let part = part.strip_prefix(' ').unwrap_or(part);
            let (sign, relation) = RELATIONS.into_iter().find(|(sign, _)| part.starts_with(sign))?;
            let version = part.strip_prefix(sign)?;
            let version = version.strip_prefix(' ').unwrap_or(version);
            is_version(version).then_some((relation, version))
        };
        text.split(',').map(comparison).collect::<Option<_>>().map(Self::Range)
    }

    /// Returns whether a version is one that is required. The latest one is `candidate`.
    pub(crate) fn accepts(&self, version: &str, candidate: Option<&str>, order: Order) -> bool {
        match self {
            Self::Latest => candidate.is_none_or(|candidate| order(version, candidate).is_ge()),
            Self::Exact(exact) => order(version, exact).is_eq(),
            Self::Range(comparisons) => comparisons.iter().all(|(relation, stated)| {
                let found = order(version, stated);
                match relation {
                    Relation::Equal => found.is_eq(),
                    Relation::AtLeast => found.is_ge(),
                    Relation::AtMost => found.is_le(),
                    Relation::Above => found.is_gt(),
                    Relation::Below => found.is_lt(),
                }
            }),
        }
    }
}

fn is_version(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b".+:~_^-".contains(&byte);
    text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.bytes().all(is_part)
}

/// The order of rpm: epoch, version and release, of which the last two are compared part by part. Where one of them has no
/// release, as users often state it, it makes no difference.
pub(crate) fn rpm_order(left: &str, right: &str) -> Ordering {
    let (left, right) = (split(left), split(right));
    let releases = || {
        if left.2.is_empty() || right.2.is_empty() { Ordering::Equal } else { rpm_part(left.2, right.2) }
    };
    left.0.cmp(&right.0).then_with(|| rpm_part(left.1, right.1)).then_with(releases)
}

/// `rpmvercmp`: what is neither a letter nor a digit only separates, but a tilde comes before the end, and a caret behind it
/// and before everything else.
fn rpm_part(left: &str, right: &str) -> Ordering {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'~' | b'^');
    let (mut left, mut right) = (left.as_bytes(), right.as_bytes());
    loop {
        left = left.get(left.iter().take_while(|byte| !is_part(byte)).count()..).unwrap_or_default();
        right = right.get(right.iter().take_while(|byte| !is_part(byte)).count()..).unwrap_or_default();
        let order = match (left.first(), right.first()) {
            (Some(b'~'), Some(b'~')) | (Some(b'^'), Some(b'^')) => {
                (left, right) = (left.get(1..).unwrap_or_default(), right.get(1..).unwrap_or_default());
                continue;
            }
            (Some(b'~'), _) => return Ordering::Less,
            (_, Some(b'~')) => return Ordering::Greater,
            (None, None) => return Ordering::Equal,
            (Some(b'^'), other) => return if other.is_none() { Ordering::Greater } else { Ordering::Less },
            (other, Some(b'^')) => return if other.is_none() { Ordering::Less } else { Ordering::Greater },
            (None, _) => return Ordering::Less,
            (_, None) => return Ordering::Greater,
            (Some(one), Some(other)) if one.is_ascii_digit() != other.is_ascii_digit() => {
                return one.is_ascii_digit().cmp(&other.is_ascii_digit());
            }
            (Some(one), _) if one.is_ascii_digit() => {
                number(&mut left, u8::is_ascii_digit).cmp(&number(&mut right, u8::is_ascii_digit))
            }
            _ => letters(&mut left).cmp(letters(&mut right)),
        };
        if order.is_ne() {
            return order;
        }
    }
}

/// Takes the letters at the begin.
fn letters<'v>(rest: &mut &'v [u8]) -> &'v [u8] {
    let end = rest.iter().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (letters, behind) = rest.split_at(end);
    *rest = behind;
    letters
}

/// The order of deb-version(7): epoch, upstream version and revision, in which `~` sorts before the end.
pub(crate) fn debian_order(left: &str, right: &str) -> Ordering {
    let (left, right) = (split(left), split(right));
    left.0.cmp(&right.0).then_with(|| debian_part(left.1, right.1)).then_with(|| debian_part(left.2, right.2))
}

/// The epoch, the version and the revision.
fn split(version: &str) -> (u64, &str, &str) {
    let (epoch, rest) = version.split_once(':').unwrap_or(("0", version));
    let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
    (epoch.parse().unwrap_or_default(), upstream, revision)
}

fn debian_part(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (left.as_bytes(), right.as_bytes());
    while !left.is_empty() || !right.is_empty() {
        while starts_with_text(left) || starts_with_text(right) {
            let order = weight(left.first()).cmp(&weight(right.first()));
            if order.is_ne() {
                return order;
            }
            (left, right) = (left.get(1..).unwrap_or_default(), right.get(1..).unwrap_or_default());
        }
        let order = number(&mut left, u8::is_ascii_digit).cmp(&number(&mut right, u8::is_ascii_digit));
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

fn starts_with_text(rest: &[u8]) -> bool {
    rest.first().is_some_and(|byte| !byte.is_ascii_digit())
}

/// A tilde is before the end, the end and digits before letters, and letters before everything else.
fn weight(byte: Option<&u8>) -> i32 {
    match byte {
        Some(b'~') => -1,
        None => 0,
        Some(byte) if byte.is_ascii_digit() => 0,
        Some(byte) if byte.is_ascii_alphabetic() => i32::from(*byte),
        Some(byte) => i32::from(*byte) + 256,
    }
}

/// Takes the digits at the begin, as what compares like their number, however many they are.
fn number<'v>(rest: &mut &'v [u8], is_part: fn(&u8) -> bool) -> (usize, &'v [u8]) {
    let end = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
    let (digits, behind) = rest.split_at(end);
    *rest = behind;
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    let significant = digits.get(zeros..).unwrap_or_default();
    (significant.len(), significant)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::process::{Command, Output};
    use std::sync::Mutex;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requirements_are_read() {
        let parse = |text| Requirement::parse(text);
        assert_eq!(parse("latest"), Some(Requirement::Latest));
        assert_eq!(parse("1:2.0-3"), Some(Requirement::Exact("1:2.0-3")));
        let range = vec![(Relation::AtLeast, "1.2"), (Relation::Below, "2")];
        assert_eq!(parse(">= 1.2, <2"), Some(Requirement::Range(range)));
        for text in ["", "-1", ">= ", ">= 1,", "1.0, 2", "1 2", "=> 1", "1.*"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_order_of_debian_is_known() {
        let ascending =
            ["1.0~~", "1.0~rc1", "1.0", "1.0-0.1", "1.0-1~bpo1", "1.0-1", "1.0-1+b1", "1.0a", "1.0+x", "1.10", "1:0"];
        for pair in ascending.windows(2) {
            let [lower, higher] = pair else { continue };
            assert!(debian_order(lower, higher).is_lt(), "{lower} {higher}");
            assert!(debian_order(higher, lower).is_gt(), "{higher} {lower}");
        }
        assert!(debian_order("0:1.00", "1.0").is_eq());
        assert!(debian_order("1.0-0", "1.0").is_eq());
    }

    #[test]
    fn the_order_of_rpm_is_known() {
        let ascending =
            ["1.0~rc1-1", "1.0-1", "1.0^git1-1", "1.0a-1", "1.0.1-1", "1.1-1.el9", "1.1-2", "1.10-1", "1:0-1"];
        for pair in ascending.windows(2) {
            let [lower, higher] = pair else { continue };
            assert!(rpm_order(lower, higher).is_lt() && rpm_order(higher, lower).is_gt(), "{lower} {higher}");
        }
        for (one, other) in [("1.0", "1.0-3"), ("0:1.0-1", "1.0-1"), ("1.0", "1_0"), ("1.01", "1.1")] {
            assert!(rpm_order(one, other).is_eq(), "{one} {other}");
        }
    }

    /// What a program answers; the test is reported as skipped once where there is none.
    fn answer_of(program: &str, args: &[&str], test: &'static str) -> Option<Output> {
        static MISSING: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
        let answer = Command::new(program).args(args).output().ok();
        if answer.is_none() && MISSING.lock().unwrap().insert(test) {
            stead_testkit::skip(test, &format!("{program} is not there"));
        }
        answer
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: stead_testkit::cases(stead_testkit::ALL_LAWS, 300), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_order_is_that_of_rpm(left in "([0-3]:)?[0-9a-c^~._]{1,8}(-[0-9a~^.]{1,3})?", right in "([0-3]:)?[0-9a-c^~._]{1,8}(-[0-9a~^.]{1,3})?") {
            // Its own comparison takes one part, without the epoch and the release.
            let part = |version: &str| split(version).1.to_owned();
            let (left, right) = (part(&left), part(&right));
            let script = format!("%{{lua: print(rpm.vercmp('{left}', '{right}'))}}");
            let Some(output) = answer_of("rpm", &["--eval", &script], "the_order_is_that_of_rpm") else { return Ok(()) };
            let expected: i32 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or(9);
            prop_assert_eq!(rpm_order(&left, &right) as i32, expected, "{} {}", left, right);
        }

        #[test]
        fn the_order_is_that_of_dpkg(left in "([0-3]:)?[0-9][0-9a~+.]{0,5}(-[0-9a~+.]{1,3})?", right in "([0-3]:)?[0-9][0-9a~+.]{0,5}(-[0-9a~+.]{1,3})?") {
            let holds = |relation: &str| {
                let args = ["--compare-versions", &left, relation, &right];
                answer_of("dpkg", &args, "the_order_is_that_of_dpkg").map(|output| output.status.success())
            };
            let Some(is_less) = holds("lt") else { return Ok(()) };
            let order = debian_order(&left, &right);
            prop_assert_eq!(order.is_lt(), is_less);
            prop_assert_eq!(Some(order.is_eq()), holds("eq"));
        }
    }
}
