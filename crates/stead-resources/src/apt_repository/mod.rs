//! `Stead/AptRepository`: a repository that apt takes packages from.

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use stead_core::call::{Execution, Exported, Failure, Presumed};
use stead_core::claims::{Claim, Claims, Extent, Provision, Ties};
use stead_core::destruction::{Effect, Effects, Item, ItemKind};
use stead_core::manifest::Capabilities;
use stead_core::value::{Object, REDACTED, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Cost, Lint, Linter, Plain, Provider, SetReply, State, TestReply};
use stead_system::fs::{self, Former, Ownership, Place, Replacement, Status, SystemPath, Writes};

use crate::accounts::path;
use crate::declared::Declared as _;
use crate::input::{blocked, impossible, read, read_each, required, transient};
use crate::text::{RepositoryName, SigningKey, SourceWord};
use crate::{ALL_BUT_EXPORT, BuiltIn, pending, removal, reply};

mod lints;
mod others;
mod stanza;

use others::Source;
use stanza::Stanza;

/// A repository that apt takes packages from: the file NAME.sources in /etc/apt/sources.list.d, and its key as NAME.asc in
/// /etc/apt/keyrings where the key itself is stated. Fields of the file that are not mentioned stay as they are. A
/// Stead/Package that is installed later updates the package lists first.
#[resource(
    "Stead/AptRepository",
    about = "A repository that apt takes packages from.",
    tags("apt", "linux", "package"),
    capabilities = Capabilities { export: true, ..ALL_BUT_EXPORT },
)]
struct Properties<'a> {
    /// The name of its file, without the ending.
    #[property(key)]
    name: RepositoryName<'a>,
    /// What is in it: packages (deb) or their sources (deb-src). A new repository has packages.
    types: Option<Vec<SourceType>>,
    /// Where it is. Credentials in an address are never shown, and the file can be read by root alone then. Required for a
    /// new repository.
    #[property(credentials)]
    uris: Option<Vec<SourceWord<'a>>>,
    /// Its suites, such as bookworm, or a directory that ends with '/'. Required for a new repository.
    suites: Option<Vec<SourceWord<'a>>>,
    /// The components of the suites, such as main.
    components: Option<Vec<SourceWord<'a>>>,
    /// The architectures that are taken from it. By default those of the system.
    architectures: Option<Vec<SourceWord<'a>>>,
    /// What it is signed by: the path of a keyring, which must be there, or an armored public key.
    signed_by: Option<SigningKey<'a>>,
    /// Whether apt uses it.
    enabled: Option<bool>,
    /// Whether apt accepts what is not signed (true), or refuses it whatever else is configured (false).
    trusted: Option<bool>,
    /// Whether the repository exists.
    exist: bool,
}

/// What a repository has.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
enum SourceType {
    /// Packages.
    Deb,
    /// Their sources.
    DebSrc,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {}

/// `Stead/AptRepository` as it is registered.
pub(crate) fn built_in() -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Repositories::default()))
}

/// Carries out `Stead/AptRepository`.
#[derive(Default)]
struct Repositories {
    others: others::Known,
}

impl Provider for Repositories {
    fn linter(&self) -> Option<&dyn Linter> {
        const LINTER: fn(&Object) -> Vec<Lint> = lints::lints;
        Some(&LINTER)
    }

    fn validate(&self, _cx: &Context, input: &Plain) -> Result<(), Failure> {
        read::<Properties<'_>>(input).map(|_| ())
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let desired: Properties<'_> = read_each(input)?;
        let found = Found::read(cx, desired.name.0)?;
        Ok(Plain::new(state(desired.name.0, found.stanza.as_ref())))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired: Properties<'_> = read(input)?;
        let found = Found::read(cx, desired.name.0)?;
        let differing = desired.differing(&found);
        if differing.is_empty()
            && let Some(contradicted) = desired.contradicted(&self.others, cx, &found)?
        {
            return Err(contradicted.failure);
        }
        let mut state = state(desired.name.0, found.stanza.as_ref());
        if let (Some(key), true) = (
            desired.signed_by,
            state.contains_key(Properties::SIGNED_BY) && !differing.contains(&Properties::SIGNED_BY),
        ) {
            state.insert(Properties::SIGNED_BY.to_owned(), Value::from(key.text()));
        }
        // What cannot be set as things are is still compared.
        let set = desired.change(cx, &found).map_or_else(|_| SetReply::default(), |change| desired.reply(change, None));
        Ok(reply::tested_as(state, &differing, set))
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired: Properties<'_> = read(input)?;
        let found = Found::read(cx, desired.name.0)?;
        let change = desired.change(cx, &found)?;
        let contradicted = desired.contradicted(&self.others, cx, &found)?;
        let presumed = match execution {
            Execution::WhatIf if !change.differing.is_empty() => {
                Presumed::all([contradicted, desired.without_key(cx, &change), change.presumed()?])
            }
            Execution::WhatIf => contradicted,
            Execution::Actual if let Some(contradicted) = contradicted => return Err(contradicted.failure),
            Execution::Actual if let Some(without) = desired.without_key(cx, &change) => return Err(without.failure),
            Execution::Actual => {
                change.carry_out(cx)?;
                None
            }
        };
        Ok(desired.reply(change, presumed))
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        let desired = Properties { exist: false, ..read_each(input)? };
        let change = desired.change(cx, &Found::read(cx, desired.name.0)?)?;
        if execution == Execution::WhatIf {
            return Ok(change.what_if);
        }
        change.carry_out(cx).map(|()| Vec::new())
    }

    fn export(&self, cx: &Context, _filter: &Plain) -> Result<Vec<Exported>, Failure> {
        let entries = cx.system_root.entries(SOURCES).unwrap_or_default().into_keys();
        let names: Vec<String> =
            entries.filter_map(|name| Some(name.to_str()?.strip_suffix(".sources")?.to_owned())).collect();
        // A file with several repositories is none of a single instance.
        let stanza = |name: &String| Some((name.clone(), Found::read(cx, name).ok()?.stanza?));
        let exported = |(name, stanza): (String, Stanza)| {
            let state = state(&name, Some(&stanza));
            Exported::named(name, state)
        };
        Ok(names.iter().filter_map(stanza).map(exported).collect())
    }

    fn ties(&self, _input: &Plain) -> Ties {
        Ties { provides: vec![Provision::PackageSource], uses: Vec::new() }
    }

    fn cost(&self, _desired: &Value) -> Cost {
        Cost::Inline
    }

    fn claims(&self, input: &Plain) -> Option<Claims> {
        let text = |name: &str| input.expose().get(name).and_then(Value::as_str);
        let extent = if reply::is_removal(input) { Extent::Absent } else { Extent::Whole };
        let claims = Claims::path(format!("/{SOURCES}/{}.sources", text(Properties::NAME)?), extent.clone());
        let key = format!("/{KEYRINGS}/{}.asc", text(Properties::NAME)?);
        Some(match text(Properties::SIGNED_BY) {
            Some(keyring) if keyring.starts_with('/') => claims.and_reads(keyring),
            signed_by => {
                let mut claims = claims;
                claims.0.extend(
                    (signed_by.is_some() || reply::is_removal(input))
                        .then(|| Claim::Path { path: Path::new(&key).into(), extent }),
                );
                claims
            }
        })
    }
}

const SOURCES: &str = "etc/apt/sources.list.d";
const KEYRINGS: &str = "etc/apt/keyrings";

/// The largest file that is read: a keyring of some hundred keys.
const MAX_SIZE: u64 = 1 << 20;

/// A file as it was read.
struct OnDisk {
    path: SystemPath,
    content: Option<(Status, Vec<u8>)>,
}

/// What is there of a repository.
struct Found {
    sources: OnDisk,
    key: OnDisk,
    stanza: Option<Stanza>,
}

impl OnDisk {
    fn read(path: SystemPath) -> Result<Self, Failure> {
        let content = fs::read(&path, MAX_SIZE)?.map(|content| (content.status, content.bytes));
        Ok(Self { path, content })
    }

    /// Returns whether others than its owner may read it.
    fn is_public(&self) -> bool {
        self.content.as_ref().is_some_and(|(status, _)| status.mode & 0o077 != 0)
    }

    fn mode(&self) -> Option<u32> {
        self.content.as_ref().map(|(status, _)| status.mode)
    }

    fn bytes(&self) -> Option<&[u8]> {
        self.content.as_ref().map(|(_, content)| content.as_slice())
    }
}

impl Found {
    fn read(cx: &Context, name: &str) -> Result<Self, Failure> {
        let sources = OnDisk::read(path(cx, &format!("{SOURCES}/{name}.sources")))?;
        let key = OnDisk::read(path(cx, &format!("{KEYRINGS}/{name}.asc")))?;
        let stanza = sources.bytes().map(|text| std::str::from_utf8(text).ok().and_then(Stanza::only));
        let several = || {
            let path = sources.path.display();
            blocked(
                Properties::NAME,
                format!(
                    "'{path}' does not describe exactly one repository. Choose another name, or split it into one file for each"
                ),
            )
        };
        let stanza = stanza.map(|stanza| stanza.ok_or_else(several)).transpose()?;
        Ok(Self { sources, key, stanza })
    }
}

/// The fields that are lists of words, by their properties.
const LISTS: [(&str, &str); 5] = [
    (Properties::TYPES, "Types"),
    (Properties::URIS, "URIs"),
    (Properties::SUITES, "Suites"),
    (Properties::COMPONENTS, "Components"),
    (Properties::ARCHITECTURES, "Architectures"),
];

fn state(name: &str, stanza: Option<&Stanza>) -> Object {
    let mut state = Object::with_capacity(8);
    state.insert(Properties::NAME.to_owned(), Value::from(name));
    state.insert(Properties::EXIST.to_owned(), Value::from(stanza.is_some()));
    let Some(stanza) = stanza else { return state };
    for (property, field) in LISTS {
        if let Some(text) = stanza.get(field) {
            let words = text.split_whitespace().map(without_credentials).map(Value::from).collect();
            state.insert(property.to_owned(), Value::Array(words));
        }
    }
    state.extend(stanza.get("Signed-By").map(|text| (Properties::SIGNED_BY.to_owned(), Value::from(text))));
    for (property, field) in [(Properties::ENABLED, "Enabled"), (Properties::TRUSTED, "Trusted")] {
        let is_on = stanza.get(field).map(is_yes).or((property == Properties::ENABLED).then_some(true));
        state.extend(is_on.map(|is_on| (property.to_owned(), Value::from(is_on))));
    }
    state
}

/// The words that apt takes for yes.
fn is_yes(text: &str) -> bool {
    ["yes", "true", "with", "on", "enable", "1"].iter().any(|yes| text.eq_ignore_ascii_case(yes))
}

/// An address without what is before the `@` of its host.
fn without_credentials(word: &str) -> String {
    match credentials(word) {
        Some((scheme, _, rest)) => format!("{scheme}://{REDACTED}@{rest}"),
        None => word.to_owned(),
    }
}

/// The scheme, the credentials and the rest of an address that has credentials.
fn credentials(word: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = word.split_once("://")?;
    let host = rest.split('/').next()?;
    let (credentials, _) = host.rsplit_once('@')?;
    Some((scheme, credentials, rest.get(credentials.len() + 1..)?))
}

fn has_credentials(words: &str) -> bool {
    words.split_whitespace().any(|word| credentials(word).is_some())
}

/// What becomes of a repository: its files, and what is said of that.
struct Change {
    differing: Vec<&'static str>,
    what_if: Vec<String>,
    effects: Effects,
    after: Option<Stanza>,
    steps: Vec<Step>,
}

/// One file that is written or removed.
struct Step {
    path: SystemPath,
    former: Option<Status>,
    /// `None` where it is removed.
    content: Option<(Vec<u8>, u32)>,
}

impl Properties<'_> {
    /// The fields that are stated.
    fn fields(&self) -> Vec<(&'static str, &'static str, String)> {
        let words = |words: &[SourceWord<'_>]| words.iter().map(|word| word.0).collect::<Vec<_>>().join(" ");
        let types = self.types.as_ref().map(|types| {
            let word = |each: &SourceType| if *each == SourceType::Deb { "deb" } else { "deb-src" };
            types.iter().map(word).collect::<Vec<_>>().join(" ")
        });
        let lists = [&self.uris, &self.suites, &self.components, &self.architectures];
        let texts = std::iter::once(types).chain(lists.map(|list| list.as_deref().map(words)));
        let key = self.signed_by.map(|key| match key {
            SigningKey::Path(path) => path.to_owned(),
            SigningKey::Armored(_) => format!("/{KEYRINGS}/{}.asc", self.name.0),
        });
        let yes = |on: bool| if on { "yes" } else { "no" }.to_owned();
        let others = [
            (Properties::SIGNED_BY, "Signed-By", key),
            (Properties::ENABLED, "Enabled", self.enabled.map(yes)),
            (Properties::TRUSTED, "Trusted", self.trusted.map(yes)),
        ];
        let lists = LISTS.into_iter().zip(texts).map(|((property, field), text)| (property, field, text));
        lists.chain(others).filter_map(|(property, field, text)| Some((property, field, text?))).collect()
    }

    fn differing(&self, found: &Found) -> Vec<&'static str> {
        let Some(stanza) = found.stanza.as_ref().filter(|_| self.exist) else {
            return if found.stanza.is_some() == self.exist { Vec::new() } else { vec![Properties::EXIST] };
        };
        let fields = self.fields().into_iter();
        let differs = |property: &str, field: &str, wanted: &str| {
            let text = stanza.get(field);
            match property {
                Properties::ENABLED => is_yes(text.unwrap_or("yes")) != is_yes(wanted),
                Properties::TRUSTED => text.is_none_or(|text| is_yes(text) != is_yes(wanted)),
                Properties::SIGNED_BY => text != Some(wanted) || self.key_differs(found),
                // Credentials are for root alone.
                Properties::URIS if has_credentials(wanted) && found.sources.is_public() => true,
                _ => !text.unwrap_or_default().split_whitespace().eq(wanted.split_whitespace()),
            }
        };
        fields.filter_map(|(property, field, wanted)| differs(property, field, &wanted).then_some(property)).collect()
    }

    fn key(&self) -> Option<Vec<u8>> {
        match self.signed_by {
            Some(SigningKey::Armored(text)) => Some(format!("{}\n", text.trim_end()).into_bytes()),
            _ => None,
        }
    }

    fn key_differs(&self, found: &Found) -> bool {
        self.key().is_some_and(|key| found.key.bytes() != Some(key.as_slice()))
    }

    /// What a set does, decided without changing anything.
    fn change(&self, cx: &Context, found: &Found) -> Result<Change, Failure> {
        let differing = self.differing(found);
        if differing.is_empty() {
            let (what_if, effects, steps) = (Vec::new(), Effects::default(), Vec::new());
            return Ok(Change { differing, what_if, effects, after: found.stanza.clone(), steps });
        }
        if self.exist { self.write(found, differing) } else { self.remove(cx, found, differing) }
    }

    /// The desired stanza.
    fn stanza(&self, found: &Found) -> Stanza {
        let mut stanza = found.stanza.clone().unwrap_or_else(|| Stanza::of("Types", "deb"));
        for (_, field, text) in self.fields() {
            stanza.set(field, &text);
        }
        stanza
    }

    /// Returns the failure that apt would refuse all sources, because another one of the same repository states
    /// another key or trust.
    fn contradicted(&self, others: &others::Known, cx: &Context, found: &Found) -> Result<Option<Presumed>, Failure> {
        if !self.exist {
            return Ok(None);
        }
        let file = format!("/{SOURCES}/{}.sources", self.name.0);
        let own = others::of_stanzas(&file, &self.stanza(found).text());
        let is_first = |other: &Source| other.file == "/etc/apt/sources.list" || other.file < file;
        let all = others.all(cx)?;
        for other in all.iter().flat_map(|of_file| of_file.iter()).filter(|other| other.file != file) {
            let contradicted =
                |own: &Source| if is_first(other) { other.contradicted(own) } else { own.contradicted(other) };
            if let Some(property) = own.iter().find_map(contradicted) {
                let hint = "Remove that source, or let both say the same";
                let Source { file, line, .. } = other;
                let what = format!("'{file}', line {line}, lists the same repository with a different '{property}'");
                let failure = blocked(property, format!("{what}; apt would refuse all sources. {hint}"));
                return Ok(Some(Presumed::of(failure, vec![cx.resolve(file).into()])));
            }
        }
        Ok(None)
    }

    /// That the keyring must be there before a change that has apt read the repository: without it apt refuses what that says.
    fn without_key(&self, cx: &Context, change: &Change) -> Option<Presumed> {
        let is_read = |stanza: &Stanza| is_yes(stanza.get("Enabled").unwrap_or("yes"));
        let is_needed = !change.differing.is_empty() && change.after.as_ref().is_some_and(is_read);
        let Some(SigningKey::Path(text)) = self.signed_by.filter(|_| is_needed) else { return None };
        let path = cx.resolve(text);
        let failure = || {
            let hint = "Add a Stead/Download or a Stead/File for it to the document, or state the key itself";
            blocked(Properties::SIGNED_BY, format!("there is no key '{text}'. {hint}"))
        };
        path.followed().is_none().then(|| Presumed::of(failure(), vec![path.into()]))
    }

    fn write(&self, found: &Found, differing: Vec<&'static str>) -> Result<Change, Failure> {
        let stanza = self.stanza(found);
        check(&stanza)?;
        let is_new = found.stanza.is_none();
        let mut effects = Effects::of(if is_new { Effect::Create } else { Effect::Change });
        let word = if is_new { "create".to_owned() } else { format!("set its {} in", differing.join(", ")) };
        let mut what_if = vec![format!("{word} '/{SOURCES}/{}.sources'", self.name.0)];
        let mut steps = Vec::new();
        if let Some(key) = self.key().filter(|_| self.key_differs(found)) {
            let path = format!("/{KEYRINGS}/{}.asc", self.name.0);
            what_if.push(format!("write its key to '{path}'"));
            if found.key.content.is_none() {
                effects.creates.push(Item { path, kind: ItemKind::File { size: key.len() as u64 } });
            }
            steps.push(Step::write(&found.key, key, 0o644));
        }
        let is_secret = has_credentials(stanza.get("URIs").unwrap_or_default());
        let mode = if is_secret { 0o600 } else { found.sources.mode().unwrap_or(0o644) };
        steps.push(Step::write(&found.sources, stanza.text().into_bytes(), mode));
        Ok(Change { differing, what_if, effects, after: Some(stanza), steps })
    }

    fn remove(&self, cx: &Context, found: &Found, differing: Vec<&'static str>) -> Result<Change, Failure> {
        let mut effects = Effects::of(Effect::Remove);
        let (mut what_if, mut steps) = (Vec::new(), Vec::new());
        let shown = [format!("/{SOURCES}/{}.sources", self.name.0), format!("/{KEYRINGS}/{}.asc", self.name.0)];
        // The key first: as long as the repository is there, a run that was interrupted is not in the desired state.
        for (file, shown) in [&found.sources, &found.key].into_iter().zip(shown).rev() {
            let (Some((status, _)), Some(place)) = (&file.content, Place::find(&file.path, &cx.writes)?) else {
                continue;
            };
            what_if.push(format!("remove '{shown}'"));
            effects.destroys.extend(removal::item(&place, shown, &cx.patience())?);
            steps.push(Step { path: file.path.clone(), former: Some(*status), content: None });
        }
        Ok(Change { differing, what_if, effects, after: None, steps })
    }

    /// The answer to a set that comes to this, without credentials.
    fn reply(&self, change: Change, presumed: Option<Presumed>) -> SetReply {
        let after = self.with_key(state(self.name.0, change.after.as_ref()));
        SetReply { presumed, effects: change.effects, ..reply::set(after, &change.differing, change.what_if) }
    }

    /// The key as it is stated, in place of where it is.
    fn with_key(&self, mut state: Object) -> Object {
        if let (Some(key), true) = (self.signed_by, state.contains_key(Properties::SIGNED_BY)) {
            state.insert(Properties::SIGNED_BY.to_owned(), Value::from(key.text()));
        }
        state
    }
}

/// Fails for what apt would not read.
fn check(stanza: &Stanza) -> Result<(), Failure> {
    for (property, field) in [(Properties::URIS, "URIs"), (Properties::SUITES, "Suites")] {
        if stanza.get(field).is_none_or(|text| text.trim().is_empty()) {
            return Err(required(&[property]));
        }
    }
    let has_components = stanza.get("Components").is_some_and(|text| !text.trim().is_empty());
    let mut suites = stanza.get("Suites").unwrap_or_default().split_whitespace();
    match suites.all(|suite| suite.ends_with('/')) {
        true if has_components => Err(impossible(
            Properties::COMPONENTS,
            "a suite that ends with '/' is a directory, which has no components",
        )),
        false if !has_components => Err(required(&[Properties::COMPONENTS])),
        _ => Ok(()),
    }
}

impl Step {
    fn write(file: &OnDisk, content: Vec<u8>, mode: u32) -> Self {
        Self {
            path: file.path.clone(),
            former: file.content.as_ref().map(|(status, _)| *status),
            content: Some((content, mode)),
        }
    }

    fn carry_out(&self, cx: &Context) -> Result<(), Failure> {
        let is_key = self.path.parent().is_some_and(|parent| parent.ends_with(KEYRINGS));
        if is_key && self.content.is_some() {
            make_directory(cx, &self.path.parent().unwrap_or_else(|| self.path.clone()))?;
        }
        let Some(place) = Place::find(&self.path, &cx.writes)? else { return Err(pending::no_directory(&self.path)) };
        let Some((content, mode)) = &self.content else { return Ok(place.remove().map(|_| ())?) };
        let former = self.former.as_ref().map_or(Former::Absent, Former::Unchanged);
        let replacement = Replacement::begin(&place, former)?;
        replacement.write(content)?;
        let ownership = self.former.map(|status| Ownership { uid: Some(status.uid), gid: Some(status.gid) });
        let done = replacement.finish(*mode, ownership.unwrap_or_default())?;
        done.map(|_| ())
            .ok_or_else(|| transient(Properties::NAME, format!("'{}' was changed meanwhile", self.path.display())))
    }
}

/// The directory of keys, which older systems do not have.
fn make_directory(cx: &Context, directory: &SystemPath) -> Result<(), Failure> {
    let Some(place) = Place::find(directory, &cx.writes)? else { return Err(pending::no_directory(directory)) };
    if place.status()?.is_none() {
        place.make_directory_with(0o755, Ownership::default())?;
    }
    Ok(())
}

impl Change {
    fn presumed(&self) -> Result<Option<Presumed>, Failure> {
        for step in &self.steps {
            let missing = Place::find(&step.path, &Writes::unrecorded())?.is_none();
            let is_key = step.path.parent().is_some_and(|parent| parent.ends_with(KEYRINGS));
            // The directory of keys is made.
            let directory = step.path.parent().filter(|_| missing && is_key);
            if let Some(presumed) = pending::at(directory.as_ref().unwrap_or(&step.path))? {
                return Ok(Some(presumed));
            }
        }
        Ok(None)
    }

    fn carry_out(&self, cx: &Context) -> Result<(), Failure> {
        self.steps.iter().try_for_each(|step| step.carry_out(cx))
    }
}
