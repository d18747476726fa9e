//! `Stead/Limits`: a limit of the resources that users and groups may take.

mod lints;

use std::sync::Arc;

use stead_core::call::Failure;
use stead_core::statements::Statement;
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Lint, Plain};

use crate::declared::Declared as _;
use crate::edit::{FileLocks, Missing};
use crate::input::{FilePath, PathText};
use crate::part::lines::{InForce, entry, lines, put_entry, without_entry};
use crate::part::{Location, Override, Part, Parts, Stated, overridden, overridden_within, set_in};
use crate::text::{LimitValue, Word, words};
use crate::{ALL, BuiltIn, reply};

/// A limit that PAM sets when a session begins: a line in a file in /etc/security/limits.d. If a file has several lines for the
/// same domain, type and item, the last one is in force, and is the one that is changed. It fails where a file that is read
/// later sets another limit, naming it.
#[resource(
    "Stead/Limits",
    about = "A resource limit of a user or a group, set by PAM.",
    tags("limits", "security", "linux"),
    capabilities = ALL,
    state,
)]
struct Properties<'a> {
    /// The file.
    #[property(identity)]
    #[serde(default = "limits")]
    #[schemars(extend("default" = LIMITS))]
    path: FilePath<'a>,
    /// Whom it limits: a user, a group as '@group', or '*' for everybody.
    #[property(key)]
    domain: Word<'a>,
    /// soft: users may raise it up to the hard limit; hard: they may not; '-': both limits are set.
    #[property(key, name = "type")]
    kind: Kind,
    /// The limited resource, such as nofile, the number of open files.
    #[property(key)]
    item: Item,
    /// The limit: a number, or 'unlimited'. Required unless '_exist' is false.
    #[property(required)]
    value: Option<LimitValue<'a>>,
    /// Whether the limit exists.
    exist: bool,
}

const LIMITS: &str = "/etc/security/limits.d/90-stead.conf";

const FOLDER: &str = "/etc/security/limits.d";

const MAIN: &str = "/etc/security/limits.conf";

/// A name in front of all that there are.
const AT_FIRST: &str = "/etc/security/limits.d/ ";

fn limits() -> FilePath<'static> {
    FilePath(PathText(LIMITS))
}

words! {
    /// What the second column says.
    enum Kind {
        Soft = "soft",
        Hard = "hard",
        Both = "-",
    }
}

impl Kind {
    /// The kinds of limit that a line is about.
    fn each(self) -> impl Iterator<Item = Self> {
        [Self::Soft, Self::Hard].into_iter().filter(move |kind| matches!(self, Self::Both) || *kind == self)
    }
}

words! {
    /// What can be limited.
    enum Item {
        Core = "core",
        Data = "data",
        FileSize = "fsize",
        Memlock = "memlock",
        Nofile = "nofile",
        Rss = "rss",
        Stack = "stack",
        Cpu = "cpu",
        Nproc = "nproc",
        As = "as",
        Maxlogins = "maxlogins",
        Maxsyslogins = "maxsyslogins",
        Nonewprivs = "nonewprivs",
        Priority = "priority",
        Locks = "locks",
        Sigpending = "sigpending",
        Msgqueue = "msgqueue",
        Nice = "nice",
        Rtprio = "rtprio",
    }
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {}

/// `Stead/Limits` as it is registered.
pub(crate) fn built_in(locks: &FileLocks) -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Parts::<Limits>::new(locks)))
}

struct Limits;

impl Part for Limits {
    type Stated<'a> = Properties<'a>;
    const NOUN: &'static str = "limit";
    const LINTER: Option<fn(&Object) -> Vec<Lint>> = Some(lints::lints);
    const PATH: Option<&'static str> = Some(LIMITS);
    const FOLDERS: &'static [&'static str] = &[FOLDER];

    fn states(input: &Plain) -> Vec<Statement> {
        let text = |name| reply::text(input, name).unwrap_or_default();
        let kinds = [Kind::Soft, Kind::Hard, Kind::Both].into_iter().find(|kind| kind.word() == text(Properties::KIND));
        let thing = |kind: Kind| {
            format!("the {} limit '{}' of '{}'", kind.word(), text(Properties::ITEM), text(Properties::DOMAIN))
        };
        let kinds = kinds.into_iter().flat_map(Kind::each);
        let mut states: Vec<_> =
            kinds.flat_map(|kind| reply::states(&thing(kind), input, &[Properties::VALUE])).collect();
        for state in states.iter_mut().filter(|state| state.property == Properties::VALUE) {
            if let Some(number) = state.value.as_str().and_then(number) {
                state.value = Value::from(number);
            }
        }
        states
    }

    fn list(text: &str) -> Result<Vec<(String, Object)>, Failure> {
        let all: Vec<_> = lines(text).into_iter().filter_map(|line| fields(line.text)).collect();
        let in_force = |at: usize, limit: &[&str; 4]| !all.iter().skip(at + 1).any(|later| later[..3] == limit[..3]);
        let instance = |[domain, kind, item, value]: [&str; 4]| {
            let stated = [
                (Properties::DOMAIN, domain),
                (Properties::KIND, kind),
                (Properties::ITEM, item),
                (Properties::VALUE, value),
            ];
            let properties = stated.map(|(name, text)| (name.to_owned(), Value::from(text)));
            (format!("{domain} {kind} {item}"), properties.into())
        };
        let entries = all.iter().enumerate().filter(|(at, limit)| in_force(*at, limit));
        Ok(entries.map(|(_, limit)| instance(*limit)).collect())
    }
}

impl<'a> Stated<'a> for Properties<'a> {
    fn location(&self, cx: &Context) -> Result<Location<'a>, Failure> {
        Ok(Location::stated(cx, self.path.0.0, Missing::create_if(true)))
    }

    fn overridden(&self, cx: &Context) -> Result<Option<Override>, Failure> {
        // The files of the folder are read after the one that has no folder.
        let own = if self.path.0.0 == MAIN { AT_FIRST } else { self.path.0.0 };
        let own_line = |line: &str| self.is_own(line);
        for kind in self.kind.each() {
            // A line for both kinds counts for each of them.
            let value_of = |line: &str| {
                let [domain, other, item, value] = fields(line)?;
                let is_same = domain == self.domain.0 && item == self.item.word();
                (is_same && [kind.word(), Kind::Both.word()].contains(&other)).then(|| value.to_owned())
            };
            let found = match overridden(cx, own, &[FOLDER], value_of)? {
                Some(found) => Some(found),
                None => overridden_within(cx, self.path.0.0, own_line, value_of)?,
            };
            let is_wanted = |value: &str| self.value.is_none_or(|wanted| is_same_value(wanted.0, value));
            if let Some(found) = found.filter(|found| !found.value().is_some_and(is_wanted)) {
                return Ok(Some(found));
            }
        }
        self.capped(cx)
    }

    fn find(&self, text: &str) -> Result<Option<Object>, Failure> {
        let line = entry(text, InForce::Last, |line| self.is_own(line));
        let value = line.and_then(|line| fields(line.text)).map(|[.., value]| value);
        let same = |value: &&str| self.value.is_some_and(|wanted| is_same_value(wanted.0, value));
        let value = if value.as_ref().is_some_and(same) { self.value.map(|value| value.0) } else { value };
        Ok(value.map(|value| [(Properties::VALUE.to_owned(), Value::from(value))].into()))
    }

    fn put(&self, text: &str) -> Result<String, Failure> {
        let value = self.value.map_or("", |value| value.0);
        let line = entry(text, InForce::Last, |line| self.is_own(line));
        let new = match line.and_then(|line| Some((line.text, fields(line.text)?))) {
            // In the columns of the file, with its comment.
            Some((old, [.., former])) => {
                let at = old.split('#').next().unwrap_or_default().rfind(former).unwrap_or_default();
                crate::part::lines::replaced(old, &(at..at + former.len()), value)
            }
            None => [self.domain.0, self.kind.word(), self.item.word(), value].join("\t"),
        };
        Ok(put_entry(text, InForce::Last, |line| self.is_own(line), &new))
    }

    fn remove(&self, text: &str) -> Result<String, Failure> {
        Ok(without_entry(text, |line| self.is_own(line)))
    }
}

impl Properties<'_> {
    /// The hard limit of the same domain that is in force and below the soft one that is stated, wherever it stands: PAM lowers
    /// that with it.
    fn capped(&self, cx: &Context) -> Result<Option<Override>, Failure> {
        let wanted = self.value.and_then(|value| number(value.0)).filter(|_| self.kind == Kind::Soft);
        let Some(wanted) = wanted else { return Ok(None) };
        let hard = |line: &str| {
            let [domain, kind, item, value] = fields(line)?;
            let is_hard = domain == self.domain.0 && item == self.item.word() && kind != Kind::Soft.word();
            is_hard.then(|| value.to_owned())
        };
        let found = match overridden(cx, AT_FIRST, &[FOLDER], hard)? {
            Some(found) => Some(found),
            None => set_in(cx, MAIN, hard)?,
        };
        let is_below = |hard: i64| hard != UNLIMITED && (wanted == UNLIMITED || hard < wanted);
        Ok(found.filter(|found| found.value().and_then(number).is_some_and(is_below)).map(Override::into_cap))
    }

    fn is_own(&self, line: &str) -> bool {
        fields(line).is_some_and(|[domain, kind, item, _]| {
            domain == self.domain.0 && kind == self.kind.word() && item == self.item.word()
        })
    }
}

/// Returns whether PAM takes two values for the same: it has three words for no limit, and reads numbers as decimal ones.
fn is_same_value(one: &str, other: &str) -> bool {
    one == other || number(one).is_some_and(|one| Some(one) == number(other))
}

/// No limit, as a number.
const UNLIMITED: i64 = -1;

/// A value as PAM reads it; `None` where that is not a number.
fn number(value: &str) -> Option<i64> {
    match value {
        "unlimited" | "infinity" | "-1" => Some(UNLIMITED),
        number => number.parse().ok(),
    }
}

/// The columns of a line; `None` where it sets no limit.
fn fields(line: &str) -> Option<[&str; 4]> {
    let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
    let fields = [words.next()?, words.next()?, words.next()?, words.next()?];
    words.next().is_none().then_some(fields)
}
