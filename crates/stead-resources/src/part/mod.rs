//! Resources that manage one part of a text file: a key, an entry, a block. They differ in how the part is found in a text
//! and how the text is edited; everything else is here.

use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use stead_core::call::{Execution, Exported, Failure, FailureKind, Presumed};
use stead_core::claims::{Claims, Extent, Provision, Ties};
use stead_core::destruction::{Effect, Effects, Item, ItemKind};
use stead_core::statements::Statement;
use stead_core::value::{Object, Value};
use stead_host::provider::{Context, Cost, Lint, Linter, Plain, Provider, SetReply, State, TestReply};
use stead_system::fs::Place;

use crate::declared::{Declared, States};
use crate::edit::{self, Edit, FileLocks, Files, Flaw, Missing, Text, removed_lines};
use crate::guard::{self, Guard, in_use};
use crate::input::{Properties, blocked, read, read_each};
use crate::reply;

pub(crate) mod lines;
mod live;
mod location;
mod overrides;

pub(crate) use live::{Live, Setting};
pub(crate) use location::Location;
pub(crate) use overrides::{Override, overridden, overridden_within, set_in};

/// A kind of part.
pub(crate) trait Part: Send + Sync + 'static {
    /// Packages of which one brings what reads the file, whatever the distribution calls it.
    const PACKAGES: &'static [&'static str] = &[];

    /// The folders whose files are read as well, so that one that another instance removes can say otherwise until then.
    const FOLDERS: &'static [&'static str] = &[];

    /// The properties that state one.
    type Stated<'a>: Stated<'a> + Declared;

    /// What messages call one, such as "key".
    const NOUN: &'static str;

    /// The file that has such parts, where an instance does not name another.
    const PATH: Option<&'static str> = None;

    /// Finds values that are valid and probably do something else than was meant.
    const LINTER: Option<fn(&Object) -> Vec<Lint>> = None;

    /// Whether one can be absent; otherwise it has no '_exist', and a file without it has it without a value.
    const HAS_EXIST: bool = true;

    /// True if the lines of a new part do not depend on the file that it is in.
    const HAS_LINES: bool = true;

    /// The words that tell the part from others of its file: by default the texts of its keys. `None` where two instances can be
    /// about the same part without contradicting each other.
    fn key(stated: &Value) -> Option<String> {
        let keys = <Self::Stated<'static> as Declared>::KEYS.iter().filter(|key| **key != "path");
        let keys: Vec<&str> = keys.map(|name| stated.get(name).and_then(Value::as_str).unwrap_or_default()).collect();
        (!keys.is_empty()).then(|| keys.join("\0"))
    }

    /// What an instance manages, as far as it is known before anything is looked up.
    fn claims(stated: &Value) -> Option<Claims> {
        let path = stated.get("path").and_then(Value::as_str).or(Self::PATH)?;
        Some(Claims::path(path, Extent::Part { line: None, key: Self::key(stated) }))
    }

    /// Returns what an instance states of a thing that has a name of its own, whatever file holds it; see [`Provider::states`].
    fn states(_input: &Plain) -> Vec<Statement> {
        Vec::new()
    }

    /// The name and the properties of every part of a text, for an export. Only asked where the manifest declares it.
    fn list(_text: &str) -> Result<Instances, Failure> {
        Err(Failure::new(FailureKind::Unsupported, "the resource does not list its instances"))
    }

    /// The same of every part of a system: of the file that the filter names, or else the one that is fixed.
    fn instances(_cx: &Context, filter: &Value, look: &Look<'_>) -> Result<Instances, Failure> {
        let path = filter.get("path").and_then(Value::as_str).or(Self::PATH);
        let path = path.ok_or_else(|| crate::input::required(&["path"]))?;
        let Some(text) = look(path)? else { return Ok(Vec::new()) };
        let mut instances = Self::list(&text.content)?;
        if Self::PATH != Some(path) {
            let path = || ("path".to_owned(), Value::from(path));
            for (_, properties) in &mut instances {
                properties.extend([path()]);
            }
        }
        Ok(instances)
    }
}

/// Names and properties of parts.
pub(crate) type Instances = Vec<(String, Object)>;

/// Reads a file of the system that is managed; `None` where there is none.
pub(crate) type Look<'l> = dyn Fn(&str) -> Result<Option<Arc<Text<String>>>, Failure> + 'l;

/// One part as an instance states it.
pub(crate) trait Stated<'a>: Properties<'a> + States {
    /// Returns whether the file belongs to the part, and is removed with it.
    fn owns_file(&self) -> bool {
        false
    }

    /// The numbers of the lines of a text, from 1, that go although the part is to exist: those of other parts.
    fn displaced(&self, _text: &str) -> Vec<usize> {
        Vec::new()
    }

    /// Returns whether the user chooses the position of a new part in a file, so that plans and results show it.
    fn has_position(&self) -> bool {
        false
    }

    /// The file that it is in.
    fn location(&self, cx: &Context) -> Result<Location<'a>, Failure>;

    /// The command that must accept the file as it is to be.
    fn guard(&self) -> Option<Guard<'a>> {
        None
    }

    /// The value of the running kernel that the part is kept for.
    fn live(&self, _cx: &Context) -> Option<Live> {
        None
    }

    /// The line of another file that is in force in place of this part, as it is to be.
    fn overridden(&self, _cx: &Context) -> Result<Option<Override>, Failure> {
        Ok(None)
    }

    /// The properties that tell which part it is; they are in every state.
    fn identity(&self) -> Object {
        self.identified()
    }

    /// What is asked for besides its identity, as [`Stated::find`] reports it once it is so.
    fn wanted(&self) -> Object {
        self.stated()
    }

    /// The other properties of the part in a text; `None` when the text has no such part.
    fn find(&self, text: &str) -> Result<Option<Object>, Failure>;

    /// The text with the part as it is asked for. Only called when something differs.
    fn put(&self, text: &str) -> Result<String, Failure>;

    /// The text without the part. Only called when it is there.
    fn remove(&self, text: &str) -> Result<String, Failure>;
}

/// Carries out the resource of one kind of part.
pub(crate) struct Parts<P> {
    files: Files<String>,
    kind: PhantomData<fn() -> P>,
}

impl<P: Part> Parts<P> {
    /// A provider whose edits keep out of the way of others that share the locks.
    pub(crate) fn new(locks: &FileLocks) -> Self {
        Self { files: Files::new(locks), kind: PhantomData }
    }
}

impl<P: Part> Provider for Parts<P> {
    fn linter(&self) -> Option<&dyn Linter> {
        const { &P::LINTER }.as_ref().map(|linter| linter as &dyn Linter)
    }

    /// That of a part without claims is in a file whose path is not known before.
    fn has_state_elsewhere(&self, cx: &Context, input: &Plain) -> bool {
        let live = || read::<P::Stated<'_>>(input).is_ok_and(|stated| stated.live(cx).is_some());
        P::claims(input.expose()).is_none() || live()
    }

    fn validate(&self, _cx: &Context, input: &Plain) -> Result<(), Failure> {
        read::<P::Stated<'_>>(input).map(|_| ())
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let stated: P::Stated<'_> = read_each(input)?;
        let text = self.look(cx, &stated.location(cx)?)?;
        let found = find::<P>(&stated, text.as_deref())?;
        let outliving = if found.is_none() { Live::outliving(stated.live(cx).as_ref())? } else { None };
        let mut state = state::<P>(&stated, found);
        state.extend(outliving);
        Ok(Plain::new(state))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired = Desired::<P>::read(cx, input)?;
        let text = self.look(cx, &desired.location)?;
        let outcome = desired.compare(text.as_deref(), desired.live()?)?;
        let effects = desired.effects(&outcome, text.as_deref(), desired.location.lacks_directory(cx)?);
        let differing = names(&outcome.differing);
        // What is refused creates nothing.
        let is_refused = text.is_none() && matches!(desired.location.missing, Missing::Refuse);
        let set = SetReply { effects, ..reply::set(desired.after(&outcome), &differing, Vec::new()) };
        let set = if is_refused { SetReply::default() } else { set };
        let found = outcome.found.map(|mut found| {
            found.retain(|name, _| !desired.exist || differing.contains(&name) || desired.wanted.contains_key(name));
            found
        });
        if let Some(failure) = desired.overridden(cx)? {
            return Err(failure);
        }
        let mut state = state::<P>(&desired.stated, found);
        if state.get("_exist") == Some(&Value::Bool(false)) {
            state.extend(Live::outliving(desired.live.as_ref())?);
        }
        Ok(reply::tested_as(state, &differing, set))
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired = Desired::<P>::read(cx, input)?;
        if let Some(failure) = desired.overridden(cx)? {
            return Err(failure);
        }
        if execution == Execution::Actual {
            return self.bring_about(cx, &desired);
        }
        let text = self.look(cx, &desired.location)?;
        let outcome = desired.compare(text.as_deref(), desired.live()?)?;
        let effects = desired.effects(&outcome, text.as_deref(), desired.location.lacks_directory(cx)?);
        let what_if = desired.intentions(cx, &outcome, effects.effect, text.is_some());
        let presumed = desired.presumed(cx, &outcome, text.as_deref())?;
        desired.predict_file(cx, &outcome, text.as_deref());
        Ok(SetReply { presumed, effects, ..reply::set(desired.after(&outcome), &names(&outcome.differing), what_if) })
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        // The running kernel keeps its value.
        let desired = Desired { live: None, ..Desired::<P>::of(cx, read_each(input)?, false)? };
        if execution == Execution::WhatIf {
            let text = self.look(cx, &desired.location)?;
            let outcome = desired.compare(text.as_deref(), None)?;
            let effect = desired.effects(&outcome, text.as_deref(), false).effect;
            return Ok(desired.intentions(cx, &outcome, effect, true));
        }
        self.bring_about(cx, &desired).map(|_| Vec::new())
    }

    fn export(&self, cx: &Context, input: &Plain) -> Result<Vec<Exported>, Failure> {
        let look = |path: &str| self.files.look(cx, &cx.resolve(path));
        let found = P::instances(cx, input.expose(), &look)?;
        Ok(found.into_iter().map(|(name, properties)| Exported::named(name, properties)).collect())
    }

    fn ties(&self, input: &Plain) -> Ties {
        let mut ties = reply::ties(input).and_packages(P::PACKAGES.iter().copied());
        let folders = P::FOLDERS.iter().filter(|_| !reply::is_removal(input));
        ties.uses.extend(folders.map(|folder| Provision::Removals(Path::new(folder).into())));
        ties
    }

    fn cost(&self, _desired: &Value) -> Cost {
        Cost::Inline
    }

    fn claims(&self, input: &Plain) -> Option<Claims> {
        P::claims(input.expose())
    }

    fn states(&self, _cx: &Context, input: &Plain) -> Vec<Statement> {
        P::states(input)
    }

    fn added_lines(&self, input: &Plain) -> Vec<String> {
        let stated: Option<P::Stated<'_>> = read(input).ok().filter(|stated: &P::Stated<'_>| stated.exists());
        let text = stated.filter(|_| P::HAS_LINES).and_then(|stated| stated.put("").ok());
        text.iter().flat_map(|text| text.lines()).filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }
}

impl<P: Part> Parts<P> {
    fn look(&self, cx: &Context, location: &Location<'_>) -> Result<Option<Arc<Text<String>>>, Failure> {
        if location.absent.is_some() { Ok(None) } else { self.files.look(cx, &location.path) }
    }

    fn bring_about(&self, cx: &Context, desired: &Desired<'_, P>) -> Result<SetReply, Failure> {
        let Location { path, missing, absent, .. } = &desired.location;
        let live = desired.live()?;
        // First: the kernel may refuse what the file would take. What the file would not take is known before that.
        if let (Some(_), Some(value)) = (&live, &desired.live) {
            let text = self.look(cx, &desired.location)?;
            let outcome = desired.compare(text.as_deref(), live.clone())?;
            if let Some(presumed) = desired.presumed(cx, &outcome, text.as_deref())? {
                return Err(presumed.failure);
            }
            value.put()?;
        }
        let place = if absent.is_some() { None } else { Place::find(path, &cx.writes)? };
        let (place, made) = match place {
            None if !desired.exist => {
                let outcome = desired.compare(None, live)?;
                return Ok(reply::set(desired.after(&outcome), &names(&outcome.differing), Vec::new()));
            }
            None => (desired.location.make_directory(cx)?, true),
            Some(place) => (place, false),
        };
        self.files.edit(cx, &place, *missing, |text| {
            let outcome = desired.compare(text, live.clone())?;
            let effects = desired.effects(&outcome, text, made);
            let done = reply::set(desired.after(&outcome), &names(&outcome.differing), Vec::new());
            let result = SetReply { effects, ..done };
            let outcome = match outcome.edited {
                None => edit::Outcome::Keep,
                Some(_) if desired.removes_file() => edit::Outcome::Remove,
                Some(edited) => edit::Outcome::Write(edited.into_bytes()),
            };
            guard::guarded(in_use(desired.stated.guard(), cx), cx, path, &outcome, text)?;
            Ok(Edit { outcome, result })
        })
    }
}

struct Desired<'a, P: Part> {
    stated: P::Stated<'a>,
    location: Location<'a>,
    live: Option<Live>,
    wanted: Object,
    exist: bool,
}

/// What a text has of a part, and what becomes of it.
struct Outcome {
    found: Option<Object>,
    differing: Vec<String>,
    /// The text afterwards; `None` where it stays as it is.
    edited: Option<String>,
    /// Why the reader of the file ignores it.
    flaws: Vec<Flaw>,
}

impl<'a, P: Part> Desired<'a, P> {
    fn read(cx: &Context, input: &'a Plain) -> Result<Self, Failure> {
        let stated: P::Stated<'a> = read(input)?;
        let exist = stated.exists();
        let mut desired = Self::of(cx, stated, exist)?;
        // A table of the system is for everybody.
        if P::PATH.is_none() {
            desired.location.missing = desired.location.missing.private_if_secret(input);
        }
        Ok(desired)
    }

    fn of(cx: &Context, stated: P::Stated<'a>, exist: bool) -> Result<Self, Failure> {
        Ok(Self {
            location: stated.location(cx)?,
            live: stated.live(cx).filter(|live| exist || live.outlives_its_line()),
            wanted: stated.wanted(),
            stated,
            exist,
        })
    }

    /// Why the part would not be in force, wherever it is.
    fn overridden(&self, cx: &Context) -> Result<Option<Failure>, Failure> {
        let found = if self.exist { self.stated.overridden(cx)? } else { None };
        Ok(found.map(|found| found.failure()))
    }

    /// The value that the running kernel has instead of the one that is asked for.
    fn live(&self) -> Result<Option<String>, Failure> {
        let differing = self.live.as_ref().map_or(Ok(None), Live::differing)?;
        // A parameter that the kernel does not have is nothing that outlives a line.
        Ok(differing.filter(|current| self.exist || !current.is_empty()))
    }

    fn compare(&self, text: Option<&Text<String>>, live: Option<String>) -> Result<Outcome, Failure> {
        let content = text.map_or("", |text| text.content.as_str());
        let mut found = find::<P>(&self.stated, text)?;
        let mut differing = self.differing(found.as_ref());
        let edited = (!differing.is_empty()).then(|| self.edited(content)).transpose()?;
        let mut edited = edited;
        let flaws =
            text.filter(|_| self.exist).map(|text| self.location.missing.flaws(&text.status)).unwrap_or_default();
        if let (Some(found), false) = (&mut found, flaws.is_empty()) {
            edited = edited.or_else(|| Some(content.to_owned()));
            differing.extend(flaws.iter().map(|flaw| flaw.property.to_owned()));
            found.extend(flaws.iter().map(|flaw| (flaw.property.to_owned(), Value::from(flaw.found.as_str()))));
        }
        let live = live.filter(|_| found.is_some() || !self.exist);
        if let (Some(current), Some(Live { property, .. })) = (live, &self.live) {
            if let Some(found) = &mut found {
                let current = Some(current).filter(|current| !current.is_empty());
                found.remove(property);
                found.extend(current.map(|current| ((*property).to_owned(), Value::from(current))));
            }
            if !differing.iter().any(|name| name == property) {
                differing.push((*property).to_owned());
            }
        }
        Ok(Outcome { found, differing, edited, flaws })
    }

    fn differing(&self, found: Option<&Object>) -> Vec<String> {
        match found {
            Some(found) if self.exist => {
                let differs = |name: &&String| found.get(name) != self.wanted.get(name);
                self.wanted.keys().filter(differs).cloned().collect()
            }
            found if self.exist == found.is_some() => Vec::new(),
            _ => vec!["_exist".to_owned()],
        }
    }

    /// The text afterwards, once it was read again: what was not understood is never written.
    fn edited(&self, content: &str) -> Result<String, Failure> {
        let edited = if self.exist { self.stated.put(content)? } else { self.stated.remove(content)? };
        let found = self.stated.find(&edited);
        if found.is_ok_and(|found| self.differing(found.as_ref()).is_empty()) {
            return Ok(edited);
        }
        let path = self.location.path.display();
        Err(blocked("path", format!("the {} in '{path}' is written in a form that cannot be edited", P::NOUN)))
    }

    /// The state after a set. Of what is differing, the wanted text of the file is not all.
    fn after(&self, outcome: &Outcome) -> Object {
        let fixed = outcome.flaws.iter().map(|flaw| (flaw.property.to_owned(), Value::from(flaw.wanted.as_str())));
        let mut after =
            state::<P>(&self.stated, self.exist.then(|| self.wanted.clone().into_iter().chain(fixed).collect()));
        let live = self.live.as_ref().filter(|_| !self.exist);
        after.extend(live.map(|live| (live.property.to_owned(), Value::from(live.value.as_str()))));
        after
    }

    /// Returns whether the file goes with the part.
    fn removes_file(&self) -> bool {
        self.stated.owns_file() && !self.exist
    }

    /// Has those behind it find the file as it will be.
    fn predict_file(&self, cx: &Context, outcome: &Outcome, text: Option<&Text<String>>) {
        if let Some(edited) = outcome.edited.as_ref().filter(|_| !self.removes_file()) {
            Files::predict(cx, &self.location.path, text, self.location.missing, edited.as_bytes());
        }
    }

    fn effects(&self, outcome: &Outcome, text: Option<&Text<String>>, makes_directory: bool) -> Effects {
        if outcome.differing.is_empty() {
            return Effects::default();
        }
        let mut effects = Effects::of(match (self.exist, &outcome.found) {
            (false, Some(_)) => Effect::Remove,
            (true, None) => Effect::Create,
            // Without a line it is the running kernel that changes.
            (false, None) | (true, Some(_)) => Effect::Change,
        });
        let path = || self.location.shown.clone().into_owned();
        if let (true, Some((directory, _))) = (makes_directory, self.location.shown.rsplit_once('/')) {
            let kind = crate::removal::empty_directory();
            effects.creates.push(Item { path: directory.to_owned(), kind });
        }
        let Some(edited) = outcome.edited.as_ref().filter(|_| self.location.absent.is_none()) else { return effects };
        match text {
            None => effects.creates.push(Item { path: path(), kind: ItemKind::File { size: edited.len() as u64 } }),
            Some(text) if self.removes_file() => {
                effects.destroys.push(Item { path: path(), kind: ItemKind::File { size: text.status.size } });
            }
            Some(text) if !self.exist => {
                let lines = removed_lines(&text.content, edited);
                effects.destroys.extend(lines.into_iter().map(|kind| Item { path: path(), kind }));
            }
            Some(text) => {
                let is_new = effects.effect == Some(Effect::Create) && self.stated.has_position();
                effects.place = is_new.then(|| place_of(text, edited));
                let displaced = self.stated.displaced(&text.content);
                let line = |(at, line): (usize, &str)| {
                    let kind = ItemKind::Line { number: at as u64 + 1, text: line.to_owned() };
                    displaced.contains(&(at + 1)).then(|| Item { path: path(), kind })
                };
                effects.destroys.extend(text.content.lines().enumerate().filter_map(line));
            }
        }
        effects
    }

    /// The command that must accept the file, if it is written.
    fn guard(&self, cx: &Context, outcome: &Outcome) -> Option<Guard<'a>> {
        let is_written = outcome.edited.is_some() && !self.removes_file();
        in_use(self.stated.guard(), cx).filter(|_| is_written)
    }

    fn intentions(&self, cx: &Context, outcome: &Outcome, effect: Option<Effect>, file_exists: bool) -> Vec<String> {
        let Some(effect) = effect else { return Vec::new() };
        [intention::<P>(effect, file_exists)]
            .into_iter()
            .chain(self.guard(cx, outcome).map(|guard| guard.intention(&self.location.shown)))
            .collect()
    }

    fn presumed(
        &self,
        cx: &Context,
        outcome: &Outcome,
        text: Option<&Text<String>>,
    ) -> Result<Option<Presumed>, Failure> {
        let Location { path, missing, directory, absent, .. } = &self.location;
        let live = self.live.as_ref().filter(|_| !outcome.differing.is_empty());
        if let Some(presumed) = live.and_then(|live| live.differing().ok().flatten().and_then(|_| live.presumed())) {
            return Ok(Some(presumed));
        }
        let place = match (absent, path.parent()) {
            _ if outcome.edited.is_none() => return Ok(None),
            (Some(absent), _) => Some(absent.clone()),
            (None, Some(above)) if directory.is_some() && self.location.lacks_directory(cx)? => {
                edit::presumed::<String>(&above, None, *missing)?
            }
            _ => edit::presumed(path, text, *missing)?,
        };
        let guard = self.guard(cx, outcome);
        let content = || Some([edit::mark(text), outcome.edited.as_ref()?.as_bytes()].concat());
        let refused = guard.zip(content()).and_then(|(guard, content)| guard.refused(cx, path, &content));
        Ok(Presumed::all([place, guard.and_then(Guard::presumed), refused]))
    }
}

/// The properties of a part in a file, if it is there.
fn find<P: Part>(stated: &P::Stated<'_>, text: Option<&Text<String>>) -> Result<Option<Object>, Failure> {
    match text {
        Some(text) => stated.find(&text.content),
        None if P::HAS_EXIST => Ok(None),
        None => stated.find(""),
    }
}

/// A state: which part it is, what there is of it, and whether it exists.
fn state<P: Part>(stated: &P::Stated<'_>, found: Option<Object>) -> Object {
    let (mut state, exist) = (stated.identity(), found.is_some());
    state.extend(found.into_iter().flatten());
    if P::HAS_EXIST {
        state.insert("_exist".to_owned(), Value::from(exist));
    }
    state
}

/// Where another text has lines that a text has not.
fn place_of(text: &Text<String>, edited: &str) -> String {
    let (old, new): (Vec<_>, Vec<_>) = (text.content.lines().collect(), edited.lines().collect());
    let at = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let former = at.checked_sub(1).and_then(|at| old.get(at)).map(|line| line.as_bytes());
    edit::place(at, &text.status, former)
}

fn intention<P: Part>(effect: Effect, file_exists: bool) -> String {
    match effect {
        Effect::Create if !file_exists => format!("create the file with the {}", P::NOUN),
        Effect::Create => format!("add the {}", P::NOUN),
        Effect::Remove => format!("remove the {}", P::NOUN),
        Effect::Change | Effect::Replace => format!("change the {}", P::NOUN),
    }
}

fn names(differing: &[String]) -> Vec<&str> {
    differing.iter().map(String::as_str).collect()
}
