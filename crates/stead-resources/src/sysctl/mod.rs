//! `Stead/Sysctl`: a parameter of the kernel.

use std::sync::Arc;

use stead_core::call::Failure;
use stead_core::statements::Statement;
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Plain};

use crate::declared::Declared as _;
use crate::edit::{FileLocks, Missing};
use crate::input::{FilePath, PathText};
use crate::part::lines::{InForce, entry, lines, put_entry, without_entry};
use crate::part::{Live, Location, Override, Part, Parts, Setting, Stated, overridden};
use crate::text::{SingleLine, SysctlName, is_blank};
use crate::{ALL, BuiltIn, is_wanted, reply};

/// A parameter of the kernel: a line in a file of /etc/sysctl.d, and the value that the running kernel has, which is changed
/// first. Of several lines the last one counts, and is changed. It fails where a file that is read later sets another value, naming
/// it: such a line would count after a restart. When a line is removed, the running kernel keeps its value, unless 'value' is
/// stated together with '_exist: false', which is then set.
#[resource(
    "Stead/Sysctl",
    about = "A parameter of the kernel, now and after a restart.",
    tags("sysctl", "kernel", "linux"),
    undo = State,
    apart,
    capabilities = ALL,
    state,
)]
struct Properties<'a> {
    /// The file with the line.
    #[property(identity)]
    #[serde(default = "file")]
    #[schemars(extend("default" = FILE))]
    path: FilePath<'a>,
    /// The name of the parameter with dots, such as 'vm.swappiness'; a slash stands for a dot within a part.
    #[property(key)]
    name: SysctlName<'a>,
    /// The value. Required unless '_exist' is false.
    #[property(required)]
    value: Option<SingleLine<'a>>,
    /// Whether the running kernel gets the value, too. Ignored where another root than '/' is managed.
    #[property(option)]
    #[serde(default = "is_wanted")]
    live: bool,
    /// Whether the line exists.
    exist: bool,
}

const FILE: &str = "/etc/sysctl.d/90-stead.conf";

/// Where they are read from, by sysctl.d(5).
const DIRECTORIES: [&str; 5] =
    ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"];

fn file() -> FilePath<'static> {
    FilePath(PathText(FILE))
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {}

/// `Stead/Sysctl` as it is registered.
pub(crate) fn built_in(locks: &FileLocks) -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Parts::<Sysctl>::new(locks)))
}

struct Sysctl;

impl Part for Sysctl {
    type Stated<'a> = Properties<'a>;
    const NOUN: &'static str = "parameter";
    const PATH: Option<&'static str> = Some(FILE);
    const FOLDERS: &'static [&'static str] = &DIRECTORIES;

    fn states(input: &Plain) -> Vec<Statement> {
        let name = reply::text(input, Properties::NAME).map(dotted).unwrap_or_default();
        let mut states = reply::states(&format!("the kernel parameter '{name}'"), input, &[Properties::VALUE]);
        for state in states.iter_mut().filter(|state| state.property == Properties::VALUE) {
            let words: Vec<&str> = state.value.as_str().unwrap_or_default().split_whitespace().collect();
            state.value = Value::from(words.join(" "));
        }
        states
    }

    fn list(text: &str) -> Result<Vec<(String, Object)>, Failure> {
        let all = lines(text);
        let in_force = |at: usize, name: &str| {
            let mut later = all.iter().skip(at + 1).filter_map(|line| setting(line.text));
            !later.any(|(other, _)| same_name(other, name))
        };
        let entries = all.iter().enumerate().filter_map(|(at, line)| Some((at, setting(line.text)?)));
        let instance = |(_, (name, value)): (usize, (&str, &str))| {
            let properties = [(Properties::NAME, name), (Properties::VALUE, value)]
                .map(|(name, text)| (name.to_owned(), Value::from(text)));
            (name.to_owned(), properties.into())
        };
        Ok(entries.filter(|(at, (name, _))| in_force(*at, name)).map(instance).collect())
    }
}

impl<'a> Stated<'a> for Properties<'a> {
    fn location(&self, cx: &Context) -> Result<Location<'a>, Failure> {
        Ok(Location::stated(cx, self.path.0.0, Missing::create_if(true)))
    }

    fn live(&self, cx: &Context) -> Option<Live> {
        let value = self.value.filter(|_| self.live && cx.manages_running_system())?;
        let path = format!("/proc/sys/{}", swapped(&dotted(self.name.0))).into();
        Some(Live {
            property: Properties::VALUE,
            setting: Setting::Parameter(path),
            value: value.0.trim_matches(is_blank).to_owned(),
        })
    }

    fn overridden(&self, cx: &Context) -> Result<Option<Override>, Failure> {
        let wanted = self.value.map_or("", |value| value.0);
        let found = overridden(cx, self.path.0.0, &DIRECTORIES, |line| {
            setting(line).filter(|_| self.is_own(line)).map(|(_, value)| value.to_owned())
        })?;
        let meant = |value: &'_ str| {
            value.split_whitespace().map(|word| number(word).ok_or(word.to_owned())).collect::<Vec<_>>()
        };
        let is_wanted = |value: &str| meant(value) == meant(wanted);
        Ok(found.filter(|found| !found.value().is_some_and(is_wanted)))
    }

    fn find(&self, text: &str) -> Result<Option<Object>, Failure> {
        let line = entry(text, InForce::Last, |line| self.is_own(line));
        let Some((_, value)) = line.and_then(|line| setting(line.text)) else { return Ok(None) };
        let stated = self.value.map(|stated| stated.0);
        let same = |stated: &&str| stated.split_whitespace().eq(value.split_whitespace());
        Ok(Some([(Properties::VALUE.to_owned(), Value::from(stated.filter(same).unwrap_or(value)))].into()))
    }

    fn put(&self, text: &str) -> Result<String, Failure> {
        let line = entry(text, InForce::Last, |line| self.is_own(line));
        // A minus sign keeps a value that the kernel refuses from being an error.
        let minus = if line.is_some_and(|line| line.text.trim_start().starts_with('-')) { "-" } else { "" };
        let new = format!("{minus}{} = {}", self.name.0, self.value.map_or("", |value| value.0.trim_matches(is_blank)));
        Ok(put_entry(text, InForce::Last, |line| self.is_own(line), &new))
    }

    fn remove(&self, text: &str) -> Result<String, Failure> {
        Ok(without_entry(text, |line| self.is_own(line)))
    }
}

impl Properties<'_> {
    fn is_own(&self, line: &str) -> bool {
        setting(line).is_some_and(|(name, _)| same_name(name, self.name.0))
    }
}

/// A number as the kernel reads it: hexadecimal behind `0x`, octal behind another zero.
fn number(word: &str) -> Option<i128> {
    let (sign, digits) = word.strip_prefix('-').map_or((1, word), |digits| (-1, digits));
    let (digits, base) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (digits, if digits.starts_with('0') { 8 } else { 10 }),
    };
    let is_plain = digits.starts_with(|first: char| first.is_ascii_hexdigit());
    i128::from_str_radix(digits, base).ok().filter(|_| is_plain).map(|number| sign * number)
}

/// The name and the value that a line sets.
fn setting(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_matches(is_blank);
    let (name, value) = line.split_once('=').filter(|_| !line.starts_with(['#', ';']))?;
    // With a minus sign in front, a value that the kernel refuses at its start is not an error.
    Some((name.trim_matches(is_blank).trim_start_matches('-'), value.trim_matches(is_blank)))
}

/// Returns whether two names are those of one parameter.
fn same_name(one: &str, other: &str) -> bool {
    dotted(one) == dotted(other)
}

/// A name with dots between its parts: the first sign between parts says which one the name has.
fn dotted(name: &str) -> String {
    let slashes = name.chars().find(|each| matches!(each, '.' | '/')) == Some('/');
    if slashes { swapped(name) } else { name.to_owned() }
}

/// A name in the other form: within a part, such as the name of a network device, the two signs stand for each other.
fn swapped(name: &str) -> String {
    let swap = |each: char| match each {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    name.chars().map(swap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_be_written_in_two_ways() {
        assert!(same_name("net/ipv4/conf/eth0.1/forwarding", "net.ipv4.conf.eth0/1.forwarding"));
        assert_eq!(swapped(&dotted("net/ipv4/conf/eth0.1/forwarding")), "net/ipv4/conf/eth0.1/forwarding");
        assert!(!same_name("net.ipv4.ip_forward", "net.ipv6.ip_forward"));
    }
}
