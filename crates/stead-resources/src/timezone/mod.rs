//! `Stead/Timezone`: the time zone of the machine.

use std::sync::Arc;

use stead_core::call::{Execution, Exported, Failure, Presumed};
use stead_core::claims::{Claims, Extent, Ties};
use stead_core::destruction::{Effect, Effects, Item, ItemKind};
use stead_core::diag::nearest;
use stead_core::manifest::Capabilities;
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Cost, Plain, Provider, SetReply, State, TestReply};
use stead_system::fs::{self, FileKind, Ownership, Place};

use crate::declared::Declared as _;
use crate::edit::{FileEdit, FileLocks, Files, Missing, Steps};
use crate::input::{blocked, read, read_each};
use crate::part::lines::{InForce, put_entry};
use crate::text::ZoneName;
use crate::{ALL, BuiltIn, pending, reply};

/// The time zone of the machine: the symbolic link /etc/localtime and, where the system has it, the file /etc/timezone.
/// Without the link the time zone is UTC. A copy of a time zone in place of the link is replaced.
#[resource(
    "Stead/Timezone",
    about = "The time zone of the machine.",
    tags("linux", "time", "timezone"),
    capabilities = Capabilities { set_handles_exist: false, delete: false, delete_what_if: false, ..ALL },
)]
struct Properties<'a> {
    /// The name of the time zone below /usr/share/zoneinfo, such as Europe/Berlin.
    name: ZoneName<'a>,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {}

/// `Stead/Timezone` as it is registered.
pub(crate) fn built_in(locks: &FileLocks) -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Timezones { files: Files::new(locks) }))
}

const LINK: &str = "/etc/localtime";
const NOTE: &str = "/etc/timezone";
const ZONES: &str = "/usr/share/zoneinfo";

/// What a machine without the link has.
const DEFAULT: &str = "UTC";

/// Far more than any description of a time zone, and enough for the list of all.
const MAX_SIZE: u64 = 4 << 20;

/// Carries out `Stead/Timezone`.
struct Timezones {
    files: Files<String>,
}

impl Provider for Timezones {
    fn ties(&self, _input: &Plain) -> Ties {
        Ties::default().and_packages(["tzdata"])
    }

    fn validate(&self, _cx: &Context, input: &Plain) -> Result<(), Failure> {
        read::<Properties<'_>>(input).map(|_| ())
    }

    fn get(&self, cx: &Context, _input: &Plain) -> Result<State, Failure> {
        Ok(Plain::new(state(self.look(cx)?.name(None))))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let wanted = read::<Properties<'_>>(input)?.name.0;
        let found = self.look(cx)?;
        let change = self.change(cx, wanted, &found)?;
        let set = reply::set(state(Some(wanted)), &change.differing(), Vec::new());
        let set = SetReply { effects: change.effects(&found, wanted), ..set };
        Ok(reply::tested_as(state(found.name(Some(wanted))), &change.differing(), set))
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let wanted = read::<Properties<'_>>(input)?.name.0;
        let found = self.look(cx)?;
        let change = self.change(cx, wanted, &found)?;
        let effects = change.effects(&found, wanted);
        let (mut what_if, mut presumed) = (Vec::new(), None);
        match execution {
            _ if change.is_empty() => {}
            Execution::WhatIf => {
                what_if.push(format!("set the time zone to {wanted}"));
                presumed = change.presumed(cx, wanted)?;
            }
            Execution::Actual => self.carry_out(cx, wanted, &change)?,
        }
        let reply = reply::set(state(Some(wanted)), &change.differing(), what_if);
        Ok(SetReply { presumed, effects, ..reply })
    }

    fn export(&self, cx: &Context, _filter: &Plain) -> Result<Vec<Exported>, Failure> {
        let found = self.look(cx)?;
        Ok(found.name(None).map(|name| Exported::named("timezone", state(Some(name)))).into_iter().collect())
    }

    fn cost(&self, _desired: &Value) -> Cost {
        Cost::Inline
    }

    fn claims(&self, input: &Plain) -> Option<Claims> {
        let name = read_each::<Properties<'_>>(input).ok()?.name.0;
        let managed = [
            (LINK.to_owned(), Extent::Link { target: None }),
            (NOTE.to_owned(), Extent::Part { line: None, key: Some(String::new()) }),
        ];
        Some(managed.into_iter().chain([(zone_path(name), Extent::Read)]).collect())
    }
}

fn state(name: Option<&str>) -> Object {
    name.map(|name| (Properties::NAME.to_owned(), Value::from(name))).into_iter().collect()
}

fn zone_path(name: &str) -> String {
    format!("{ZONES}/{name}")
}

/// What tells the time zone.
struct Found {
    at_link: AtLink,
    /// The name in /etc/timezone, where there is such a file.
    noted: Option<String>,
}

/// What is at /etc/localtime.
enum AtLink {
    Nothing,
    /// A link to the time zone of this name.
    Zone(String),
    /// A link to something else.
    Elsewhere,
    /// A copy of a time zone.
    File {
        size: u64,
    },
}

impl Found {
    /// The name of the time zone, as far as it has one. Where the link is as wanted, that of the file.
    fn name(&self, wanted: Option<&str>) -> Option<&str> {
        let noted = self.noted.as_deref();
        match &self.at_link {
            AtLink::Zone(name) if Some(name.as_str()) == wanted => noted.or(Some(name)),
            AtLink::Zone(name) => Some(name),
            AtLink::Nothing if Some(DEFAULT) == wanted => noted.or(Some(DEFAULT)),
            AtLink::Nothing => Some(DEFAULT),
            AtLink::Elsewhere | AtLink::File { .. } => None,
        }
    }

    fn link_is(&self, wanted: &str) -> bool {
        match &self.at_link {
            AtLink::Nothing => wanted == DEFAULT,
            AtLink::Zone(name) => name == wanted,
            AtLink::Elsewhere | AtLink::File { .. } => false,
        }
    }
}

/// What a set does.
struct Change<'e> {
    links: bool,
    notes: Steps<'e>,
}

impl Timezones {
    fn look(&self, cx: &Context) -> Result<Found, Failure> {
        let noted = self.files.look(cx, &cx.resolve(NOTE))?.map(|text| noted_in(&text.content).to_owned());
        let place = Place::find(&cx.resolve(LINK), &cx.writes)?;
        let status = place.as_ref().map(Place::status).transpose()?.flatten();
        let at_link = match (status, place) {
            (Some(status), Some(place)) if status.kind == FileKind::Symlink => {
                let target = String::from_utf8_lossy(&place.read_link()?).into_owned();
                target.split_once("/zoneinfo/").map_or(AtLink::Elsewhere, |(_, name)| AtLink::Zone(name.to_owned()))
            }
            (Some(status), _) if status.kind == FileKind::File => AtLink::File { size: status.size },
            (Some(status), _) => {
                let message = format!("there is a {} at '{LINK}'. Remove it", status.kind.word());
                return Err(blocked(Properties::NAME, message));
            }
            (None, _) => AtLink::Nothing,
        };
        Ok(Found { at_link, noted })
    }

    fn change<'e>(&self, cx: &Context, wanted: &'e str, found: &Found) -> Result<Change<'e>, Failure> {
        // A system without the file does not get one.
        let differs = found.noted.as_deref().is_some_and(|noted| noted != wanted);
        let note = differs.then(|| FileEdit {
            path: NOTE.to_owned(),
            missing: Missing::Refuse,
            edit: Box::new(move |text: &str| put_entry(text, InForce::First, is_note, wanted)),
        });
        let notes = Steps::of(cx, &self.files, note.into_iter().collect())?;
        Ok(Change { links: !found.link_is(wanted), notes })
    }

    fn carry_out(&self, cx: &Context, wanted: &str, change: &Change<'_>) -> Result<(), Failure> {
        if let Some(missing) = without_zone(cx, wanted)? {
            return Err(missing.failure);
        }
        change.notes.carry_out(cx, &self.files)?;
        if change.links {
            let at = cx.resolve(LINK);
            let place = Place::find(&at, &cx.writes)?.ok_or_else(|| pending::no_directory(&at))?;
            place.replace_by_link(target(wanted).as_ref(), Ownership::default())?;
        }
        Ok(())
    }
}

/// What the link leads to: from its own directory, so that it is the same from outside of the root.
fn target(name: &str) -> String {
    format!("..{}", zone_path(name))
}

fn noted_in(text: &str) -> &str {
    text.lines().find(|line| is_note(line)).map_or("", str::trim)
}

fn is_note(line: &str) -> bool {
    !line.trim().is_empty() && !line.trim().starts_with('#')
}

impl Change<'_> {
    fn is_empty(&self) -> bool {
        !self.links && self.notes.is_empty()
    }

    fn differing(&self) -> Vec<&'static str> {
        if self.is_empty() { Vec::new() } else { vec![Properties::NAME] }
    }

    fn effects(&self, found: &Found, wanted: &str) -> Effects {
        if self.is_empty() {
            return Effects::default();
        }
        let mut effects = Effects::of(Effect::Change);
        match found.at_link {
            AtLink::Nothing if self.links => {
                let kind = ItemKind::Symlink { target: target(wanted) };
                effects.creates.push(Item { path: LINK.to_owned(), kind });
            }
            AtLink::File { size } => {
                effects.destroys.push(Item { path: LINK.to_owned(), kind: ItemKind::File { size } });
            }
            _ => {}
        }
        effects
    }

    fn presumed(&self, cx: &Context, wanted: &str) -> Result<Option<Presumed>, Failure> {
        let link = if self.links { pending::at(&cx.resolve(LINK))? } else { None };
        Ok(Presumed::all([without_zone(cx, wanted)?, self.notes.presumed()?, link]))
    }
}

/// The failure that the system has no time zone of that name.
fn without_zone(cx: &Context, name: &str) -> Result<Option<Presumed>, Failure> {
    let read = |path: &str| cx.system_root.read(path, MAX_SIZE);
    // A directory of time zones is none.
    let is_zone = |content: &fs::Content| content.bytes.starts_with(b"TZif");
    if let Ok(Some(content)) = read(&zone_path(name))
        && is_zone(&content)
    {
        return Ok(None);
    }
    let list = read(&format!("{ZONES}/tzdata.zi"))?;
    let list = list.map(|content| String::from_utf8_lossy(&content.bytes).into_owned()).unwrap_or_default();
    let hint = match meant(name, &list) {
        Some(meant) => format!("; did you mean '{meant}'?"),
        None if list.is_empty() => ". Install the package with the time zones, such as tzdata".to_owned(),
        None => String::new(),
    };
    let failure = blocked(Properties::NAME, format!("there is no time zone '{name}'{hint}"));
    Ok(Some(Presumed::of(failure, vec![cx.resolve(zone_path(name)).into()])))
}

/// The name in the list of all time zones that was most likely meant: of that city, or the nearest one.
fn meant<'l>(name: &str, list: &'l str) -> Option<&'l str> {
    let names = || {
        list.lines().filter_map(|line| {
            let mut words = line.split(' ');
            match words.next()? {
                "Z" => words.next(),
                // An alias, behind the name that it stands for.
                "L" => words.nth(1),
                _ => None,
            }
        })
    };
    let is_city = |zone: &&str| zone.rsplit_once('/').is_some_and(|(_, city)| city.eq_ignore_ascii_case(name));
    names().find(is_city).or_else(|| nearest(name, names()))
}

#[cfg(test)]
mod tests {
    use super::meant;

    #[test]
    fn a_city_and_a_misspelt_name_are_recognized() {
        let list = "# version 2026a\nR E 1 2\nZ Europe/Berlin 0:53:28 - LMT 1893 Ap\n1 E CE%sT\nL Etc/UTC UTC\n";
        assert_eq!(meant("berlin", list), Some("Europe/Berlin"));
        assert_eq!(meant("Europe/Berln", list), Some("Europe/Berlin"));
        assert_eq!(meant("UCT", list), Some("UTC"));
        assert_eq!(meant("Nowhere/Land", list), None);
    }
}
