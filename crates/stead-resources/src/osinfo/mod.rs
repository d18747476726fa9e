//! `Microsoft/OSInfo`: what the operating system says of itself.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use stead_core::call::{Exported, Failure, FailureKind};
use stead_core::claims::Claims;
use stead_core::manifest::Capabilities;
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Cost, Plain, Provider, State, TestReply};

use crate::declared::Declared as _;
use crate::input::read;
use crate::{BuiltIn, NOTHING, with_version};

/// Far more than such a file.
const MAX_SIZE: u64 = 1 << 20;

/// Where distributions describe themselves; the first one that is there counts.
const OS_RELEASE: &[&str] = &["/etc/os-release", "/usr/lib/os-release"];

pub(crate) fn built_in() -> Option<BuiltIn> {
    let built_in = Properties::built_in(Arc::new(OsInfo))?;
    Some(with_version(built_in, semver::Version::new(0, 1, 0)))
}

/// What the operating system says of itself. It can be read and asserted, not set.
#[resource(
    "Microsoft/OSInfo",
    about = "Returns information about the operating system.",
    tags("linux", "macos", "os", "windows"),
    capabilities = Capabilities { get: true, test: true, export: true, ..NOTHING },
    title = "OsInfo",
)]
#[expect(dead_code, reason = "what is compared is the JSON itself")]
struct Properties<'a> {
    /// The family of the operating system.
    family: Option<Family>,
    /// The version of the distribution. A version of numbers has three of them: Debian 12 is '12.0.0'. A test takes '>= 12', '<= 12.5',
    /// '> 11' and '< 13' as well, which compare the numbers.
    version: Option<&'a str>,
    /// The edition, where the operating system has any.
    edition: Option<&'a str>,
    /// The name of the release, where it has one.
    codename: Option<&'a str>,
    /// How many bits an address has.
    bitness: Option<Bitness>,
    /// The processor, as 'uname -m' names it.
    architecture: Option<&'a str>,
    /// A name for the instance that an export finds.
    #[property(name = "_name")]
    #[schemars(extend("readOnly" = true))]
    name: Option<&'a str>,
    /// What a test found.
    #[property(name = "_inDesiredState")]
    #[schemars(extend("readOnly" = true))]
    in_desired_state: Option<bool>,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {}

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
enum Family {
    Linux,
    #[serde(rename = "macOS")]
    MacOs,
    Windows,
}

#[derive(Deserialize)]
#[serde(try_from = "i64")]
struct Bitness;

impl TryFrom<i64> for Bitness {
    type Error = &'static str;

    fn try_from(bits: i64) -> Result<Self, Self::Error> {
        if matches!(bits, 32 | 64) { Ok(Self) } else { Err("must be 32 or 64") }
    }
}

impl JsonSchema for Bitness {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Bitness".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "enum": [32, 64] })
    }
}

struct OsInfo;

impl Provider for OsInfo {
    fn validate(&self, _cx: &Context, input: &Plain) -> Result<(), Failure> {
        read::<Properties<'_>>(input).map(|_| ())
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        self.validate(cx, input)?;
        Ok(Plain::new(machine_state(cx)?))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        self.validate(cx, input)?;
        let mut actual = machine_state(cx)?;
        let differing = differing(input.expose(), &actual);
        actual.insert(Properties::IN_DESIRED_STATE.to_owned(), Value::Bool(differing.is_empty()));
        Ok(TestReply {
            actual: Some(Plain::new(actual)),
            in_desired_state: Some(differing.is_empty()),
            unknown: None,
            differing: Some(differing),
            predicted: None,
            pending: None,
        })
    }

    fn export(&self, cx: &Context, _input: &Plain) -> Result<Vec<Exported>, Failure> {
        let state = machine_state(cx)?;
        let words =
            [Properties::FAMILY, Properties::VERSION, Properties::ARCHITECTURE].map(|property| text(&state, property));
        let name = Some(words.join(" "));
        Ok(vec![Exported { type_name: None, name, properties: state.into(), depends_on: Vec::new(), metadata: None }])
    }

    fn cost(&self, _desired: &Value) -> Cost {
        Cost::Inline
    }

    fn claims(&self, _input: &Plain) -> Option<Claims> {
        Some(OS_RELEASE.iter().fold(Claims::default(), Claims::and_reads))
    }
}

/// The properties that are asked for and different. What a test reports itself is not compared.
fn differing(desired: &Value, actual: &Object) -> Vec<String> {
    let asked = desired.as_object().into_iter().flatten().filter(|(name, _)| !name.starts_with('_'));
    let is_so = |name: &str, value: &Value| match (name, value) {
        ("version", Value::String(wanted)) => meets(wanted, text(actual, name)),
        _ => same(value, actual.get(name)),
    };
    asked.filter(|(name, value)| !is_so(name, value)).map(|(name, _)| name.clone()).collect()
}

/// Returns whether a version is the one that is wanted, or in such an order to it: `>=`, `<=`, `>`, `<` compare numbers, `=` and none
/// the text.
fn meets(wanted: &str, version: &str) -> bool {
    type Holds = fn(Ordering) -> bool;
    const ORDERS: [(&str, Holds); 4] =
        [(">=", Ordering::is_ge), ("<=", Ordering::is_le), (">", Ordering::is_gt), ("<", Ordering::is_lt)];
    let wanted = wanted.trim();
    match ORDERS.iter().find_map(|(sign, holds)| Some((wanted.strip_prefix(sign)?, holds))) {
        Some((than, holds)) => order(version, than.trim()).is_some_and(holds),
        None => wanted.strip_prefix('=').unwrap_or(wanted).trim() == version,
    }
}

/// The order of two versions by their numbers, of which a missing one is 0; `None` where something else is in them.
fn order(one: &str, other: &str) -> Option<Ordering> {
    let numbers = |text: &str| -> Option<Vec<u64>> {
        let mut numbers = text.split('.').map(|part| part.parse().ok()).collect::<Option<Vec<u64>>>()?;
        while numbers.last() == Some(&0) {
            numbers.pop();
        }
        Some(numbers)
    };
    Some(numbers(one)?.cmp(&numbers(other)?))
}

fn same(desired: &Value, actual: Option<&Value>) -> bool {
    match (desired, actual) {
        // 64 and 64.0 are one number.
        (Value::Number(left), Some(Value::Number(right))) => left.as_f64() == right.as_f64(),
        (left, right) => Some(left) == right,
    }
}

fn text<'a>(state: &'a Object, property: &str) -> &'a str {
    state.get(property).and_then(Value::as_str).unwrap_or_default()
}

fn machine_state(cx: &Context) -> Result<Object, Failure> {
    let release = OS_RELEASE.iter().find_map(|path| cx.system_root.text(path, MAX_SIZE)).unwrap_or_default();
    let machine = stead_system::kernel::hardware();
    let family = match std::env::consts::OS {
        "linux" => "Linux",
        "macos" => "macOS",
        other => {
            let message = format!("the operating system '{other}' is not known to the resource");
            return Err(Failure::new(FailureKind::Unsupported, message));
        }
    };
    Ok(describe(family, &release, &machine))
}

/// The state, from what the machine says: the text of `os-release` and the processor as `uname -m` names it.
///
/// Guarantees: total; what is not said is left out, except for the version, which is then `Unknown`.
pub fn describe(family: &str, os_release: &str, machine: &str) -> Object {
    let release = variables(os_release);
    let version = release.get("VERSION_ID").map_or_else(|| "Unknown".to_owned(), |version| three_numbers(version));
    let mut state = Object::new();
    let mut put = |name: &str, value: Value| state.insert(name.to_owned(), value);
    put(Properties::FAMILY, Value::from(family));
    put(Properties::VERSION, Value::from(version));
    if let Some(edition) = release.get("VARIANT") {
        put(Properties::EDITION, Value::from(edition.as_str()));
    }
    if let Some(codename) = release.get("VERSION_CODENAME").filter(|codename| !codename.is_empty()) {
        put(Properties::CODENAME, Value::from(codename.as_str()));
    }
    put(Properties::BITNESS, Value::from(bitness(machine)));
    put(Properties::ARCHITECTURE, Value::from(machine));
    state
}

/// `12` as `12.0.0`; what is not one to three numbers stays as it is.
fn three_numbers(version: &str) -> String {
    let numbers: Option<Vec<u64>> = version.split('.').map(|part| part.parse().ok()).collect();
    match numbers.as_deref() {
        Some([major]) => format!("{major}.0.0"),
        Some([major, minor]) => format!("{major}.{minor}.0"),
        Some([major, minor, patch]) => format!("{major}.{minor}.{patch}"),
        _ => version.to_owned(),
    }
}

/// The machine decides, and not this program, which may have been built for less.
fn bitness(machine: &str) -> u32 {
    if machine.contains("64") || machine == "s390x" || machine == "alpha" { 64 } else { usize::BITS.min(32) }
}

/// The assignments of a text in the form of `os-release`, which is a part of what a shell understands.
fn variables(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let assignments = lines.filter_map(|line| line.split_once('='));
    assignments.map(|(name, value)| (name.trim().to_owned(), unquoted(value.trim()))).collect()
}

/// The text without the quotes around it and the backslashes in it.
fn unquoted(text: &str) -> String {
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    if let Some(literal) = inside('\'') {
        return literal.to_owned();
    }
    let mut plain = String::new();
    let mut characters = inside('"').unwrap_or(text).chars();
    while let Some(character) = characters.next() {
        plain.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    plain
}
