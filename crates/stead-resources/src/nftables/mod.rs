//! `Stead/Nftables`: a table of nftables.

use std::path::Path;
use std::sync::Arc;

use stead_core::call::{Execution, Exported, Failure, Presumed};
use stead_core::claims::{Claim, Claims, Extent, Ties};
use stead_core::destruction::{Effect, Effects, Item, ItemKind};
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Cost, Lint, Linter, Plain, Provider, SetReply, State, TestReply};
use stead_system::fs::{FileKind, FsError};

use crate::declared::Declared as _;
use crate::edit::{self, FileLocks, Steps, entries_in, files_in};
use crate::file::Files;
use crate::input::{ReadOnly, blocked, invalid, read, read_each};
use crate::text::{TableName, TableText, words};
use crate::{ALL, BuiltIn, is_wanted, reply};

mod boot;
mod found;
mod kernel;
mod lints;

use boot::{Beside, FOLDER, Table, main_file};
use found::{Found, Read};
use kernel::AtBoot;

/// More than a file of rules has, with all elements of its sets.
const MAX_SIZE: u64 = 64 << 20;

/// A table of nftables with all that is in it: in the running kernel, and in a file that `nftables.service` reads at boot. `nft -c`
/// checks it first, in what-if too. It takes the place of a table of the same name as one transaction; its counters begin at 0
/// then, and elements that packets put into its sets are lost. Other tables stay as they are. The file is included at the end of
/// `/etc/nftables.conf`, behind a `flush ruleset` there; on systems with `/etc/sysconfig/nftables.conf` in that. The service itself is
/// enabled by a `Stead/Service`. Handles, counters and elements of sets that packets or time change are not compared.
/// All files that `nftables.service` reads are tried as well: the instance fails if nft refuses them, if another file changes the
/// table, or if another file needs a table that is removed. A file of the table that stead did not write stays, and may bring the
/// table back at a restart.
#[resource(
    "Stead/Nftables",
    about = "A table of nftables, now and after a restart.",
    tags("nftables", "firewall", "network", "security", "linux"),
    undo = State,
    capabilities = ALL,
)]
struct Properties<'a> {
    /// The family of the table.
    #[property(key)]
    #[serde(default = "usual_family")]
    family: Family,
    /// The name of the table.
    #[property(key)]
    name: TableName<'a>,
    /// What is in the table, as it stands between its braces in nft(8): chains with their rules, sets, maps. It includes no files.
    /// Required unless '_exist' is false.
    #[property(required)]
    content: Option<TableText<'a>>,
    /// Whether the table is in a file that is read at boot.
    #[serde(default = "is_wanted")]
    boot: bool,
    /// Whether the table exists.
    exist: bool,
    /// Whether the running kernel has the table as its file states it. Not reported where another root than '/' is managed.
    #[property(shown)]
    loaded: Option<ReadOnly<bool>>,
}

words! {
    /// A family of tables.
    enum Family {
        Inet = "inet",
        Ip = "ip",
        Ip6 = "ip6",
        Arp = "arp",
        Bridge = "bridge",
        Netdev = "netdev",
    }
}

fn usual_family() -> Family {
    Family::Inet
}

impl serde::Serialize for Family {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {}

/// `Stead/Nftables` as it is registered.
pub(crate) fn built_in(locks: &FileLocks) -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Tables { files: Files::default(), texts: edit::Files::new(locks) }))
}

/// Carries out `Stead/Nftables`: its file as `Stead/File` would, and the table of the running kernel.
struct Tables {
    files: Files,
    texts: edit::Files<String>,
}

impl Provider for Tables {
    fn linter(&self) -> Option<&dyn Linter> {
        const LINTER: fn(&Object) -> Vec<Lint> = lints::lints;
        Some(&LINTER)
    }

    fn has_state_elsewhere(&self, cx: &Context, _input: &Plain) -> bool {
        is_live(cx)
    }

    fn ties(&self, _input: &Plain) -> Ties {
        Ties::default().and_packages(["nftables"])
    }

    fn validate(&self, _cx: &Context, input: &Plain) -> Result<(), Failure> {
        read::<Properties<'_>>(input).map(|_| ())
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let stated: Properties<'_> = read_each(input)?;
        let found = self.look(cx, &stated.table())?;
        Ok(Plain::new(found.state(cx, &stated)?))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired: Properties<'_> = read(input)?;
        let found = self.look(cx, &desired.table())?;
        let differing = desired.differing(cx, &found)?;
        if cx.verdict_suffices && differing.is_empty() {
            return Ok(reply::in_state());
        }
        let mut state = found.state(cx, &desired)?;
        if found.rules.is_some() && differing.contains(&Properties::CONTENT) {
            let content = kernel::listed(cx, &desired.table())?;
            state.insert(Properties::CONTENT.to_owned(), Value::from(content));
        }
        Ok(reply::tested_as(state, &differing, self.predicted(cx, &desired, &found, &differing)?))
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired: Properties<'_> = read(input)?;
        let found = self.look(cx, &desired.table())?;
        let differing = desired.differing(cx, &found)?;
        let reply = self.predicted(cx, &desired, &found, &differing)?;
        if differing.is_empty() {
            return Ok(reply);
        }
        if execution == Execution::Actual {
            return self.bring_about(cx, &desired, &found).map(|()| reply);
        }
        let refused = || desired.checked(cx, &found).err().map(|failure| Presumed::of(failure, Vec::new()));
        let program = if is_live(cx) { kernel::presumed() } else { None };
        let presumed = Presumed::all([program.or_else(refused), self.files_presumed(cx, &desired, &found)?]);
        Ok(SetReply { presumed, what_if: desired.intentions(cx, &found, &differing), ..reply })
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        let desired = Properties { exist: false, ..read_each(input)? };
        let found = self.look(cx, &desired.table())?;
        let differing = desired.differing(cx, &found)?;
        match execution {
            Execution::Actual => self.bring_about(cx, &desired, &found)?,
            Execution::WhatIf => desired.checked(cx, &found)?,
        }
        Ok(desired.intentions(cx, &found, &differing))
    }

    fn export(&self, cx: &Context, _filter: &Plain) -> Result<Vec<Exported>, Failure> {
        let files = files_in(cx, FOLDER)?;
        let of_files = files.iter().filter_map(|name| Table::of_file(name)).map(|table| (table.family, table.name));
        let live = if is_live(cx) { kernel::tables(cx)? } else { Vec::new() };
        let live = live.iter().map(|(family, name)| (family.as_str(), name.as_str()));
        let mut all: Vec<(&str, &str)> = of_files.chain(live).filter(|(_, name)| TableName::is_valid(name)).collect();
        all.sort_unstable();
        all.dedup();
        let mut exported = Vec::new();
        for (family, name) in all {
            let stated = [(Properties::FAMILY, family), (Properties::NAME, name)];
            let stated: Object = stated.map(|(name, text)| (name.to_owned(), Value::from(text))).into();
            let input = Plain::new(Value::Object(stated));
            // The name of a file can have any family.
            let Ok(properties) = read_each::<Properties<'_>>(&input) else { continue };
            let state = self.look(cx, &properties.table())?.state(cx, &properties)?;
            exported.push(Exported::named(format!("{family} {name}"), state));
        }
        Ok(exported)
    }

    fn cost(&self, _desired: &Value) -> Cost {
        Cost::Process
    }

    fn claims(&self, input: &Plain) -> Option<Claims> {
        let family = reply::text(input, Properties::FAMILY).unwrap_or_else(|| usual_family().word());
        let name = reply::text(input, Properties::NAME)?;
        let is_kept = !reply::is_removal(input) && input.expose().get(Properties::BOOT) != Some(&Value::Bool(false));
        let extent = if is_kept { Extent::Whole } else { Extent::Absent };
        Some(Claims::path(Table { family, name }.path(), extent))
    }

    fn manages(&self, cx: &Context, input: &Plain) -> Option<Claims> {
        let Claims(mut all) = self.claims(input)?;
        if matches!(all.first(), Some(Claim::Path { extent: Extent::Whole, .. })) {
            all.extend(Claims::path(main_file(cx), Extent::Attributes).0);
        }
        Some(Claims(all))
    }
}

fn is_live(cx: &Context) -> bool {
    cx.manages_running_system() && !cx.files_alone()
}

impl Tables {
    fn look(&self, cx: &Context, table: &Table<'_>) -> Result<Found, Failure> {
        let file = self.files.get(cx, &file(&table.path(), Some(""), false))?;
        let is_there = file.expose().get(Properties::EXIST) == Some(&Value::Bool(true));
        // All of it, however long it is: `Stead/File` reports no content beyond a size.
        let text = if is_there { self.texts.look(cx, &cx.resolve(table.path()))? } else { None };
        let main = self.texts.look(cx, &cx.resolve(main_file(cx)))?;
        let main = main.map_or_else(String::new, |main| main.content.clone());
        let folder = if is_live(cx) { self.read_at_boot(cx, &main)? } else { Vec::new() };
        let rules = if is_live(cx) { kernel::in_force(cx, table)? } else { None };
        Ok(Found::new(table, text.map(|text| text.content.clone()), Read { main, folder }, rules))
    }

    /// The files of the folder that nftables.service reads, as it finds them: through links, and no directories.
    fn read_at_boot(&self, cx: &Context, main: &str) -> Result<Vec<Beside>, Failure> {
        let mut found = Vec::new();
        for (name, kind) in entries_in(cx, FOLDER)? {
            let path = format!("{FOLDER}/{}", name.to_string_lossy());
            let at = cx.resolve(Path::new(FOLDER).join(&name));
            let is_empty = at.link_target().is_some_and(|target| target == Path::new("/dev/null"));
            if is_empty || !boot::is_read(main, &path) {
                continue;
            }
            let text = match at.followed().map_or(kind, |status| status.kind) {
                FileKind::Directory => continue,
                FileKind::Special => None,
                FileKind::File if kind == FileKind::File => self.texts.look(cx, &at)?.map(|text| text.content.clone()),
                // nft says of a link in circles that it is one, and passes over one that leads nowhere.
                FileKind::File | FileKind::Symlink => {
                    match cx.system_root.read(Path::new(FOLDER).join(&name), MAX_SIZE) {
                        Ok(Some(content)) => Some(String::from_utf8_lossy(&content.bytes).into_owned()),
                        Ok(None) => continue,
                        Err(error @ FsError::TooLarge { .. }) => return Err(error.into()),
                        Err(_) => Some(String::new()),
                    }
                }
            };
            found.push(Beside { path, text });
        }
        Ok(found)
    }

    /// The answer to a set.
    fn predicted(
        &self,
        cx: &Context,
        desired: &Properties<'_>,
        found: &Found,
        differing: &[&str],
    ) -> Result<SetReply, Failure> {
        let path = desired.table().path();
        let mut effects = if differing.is_empty() {
            Effects::default()
        } else {
            Effects::of(match (desired.exist, found.exists()) {
                (false, _) => Effect::Remove,
                // The file of somebody else is replaced.
                (true, false) if found.file.is_none() => Effect::Create,
                (true, _) => Effect::Change,
            })
        };
        let item = |text: &str| Item { path: path.clone(), kind: ItemKind::File { size: text.len() as u64 } };
        match (desired.text(), &found.file) {
            (Some(text), None) => {
                let reply = self.files.set(cx, &file(&path, Some(&text), true), Execution::WhatIf)?;
                effects.creates.extend(reply.effects.creates.items().iter().cloned());
                effects.creates.push(item(&text));
            }
            (Some(_), Some(text)) if found.own().is_none() => effects.destroys.push(item(text)),
            (None, Some(text)) if desired.changes_file(found) => effects.destroys.push(item(text)),
            _ => {}
        }
        effects.creates.extend(self.include(cx, desired, &desired.table())?.creates());
        Ok(SetReply { effects, ..reply::set(desired.after(cx), differing, Vec::new()) })
    }

    /// The edit by which the file of a table is read at boot.
    fn include<'t>(&self, cx: &Context, desired: &Properties<'_>, table: &'t Table<'t>) -> Result<Steps<'t>, Failure> {
        let edit = desired.text().map(|_| table.include(main_file(cx)));
        Steps::of(cx, &self.texts, edit.into_iter().collect())
    }

    /// In what-if: what keeps the files from being written.
    fn files_presumed(
        &self,
        cx: &Context,
        desired: &Properties<'_>,
        found: &Found,
    ) -> Result<Option<Presumed>, Failure> {
        let own = if desired.changes_file(found) {
            self.files.set(cx, &desired.file(found), Execution::WhatIf)?.presumed
        } else {
            None
        };
        Ok(Presumed::all([own, self.include(cx, desired, &desired.table())?.presumed()?]))
    }

    fn bring_about(&self, cx: &Context, desired: &Properties<'_>, found: &Found) -> Result<(), Failure> {
        let table = desired.table();
        desired.checked(cx, found)?;
        // The kernel first: it may refuse what the file would take.
        match desired.content.filter(|_| desired.exist) {
            Some(content) if is_live(cx) && !found.has(cx, &table, content.0)? => {
                kernel::load(cx, &table, content.0, Properties::CONTENT)?;
                if kernel::in_force(cx, &table)?.as_ref() != Some(found.meant(cx, &table, content.0)?.as_ref()) {
                    let message =
                        "the running kernel does not have the table as it was loaded; another program changes it";
                    return Err(blocked(Properties::CONTENT, message));
                }
            }
            None if found.rules.is_some() => kernel::remove(cx, &table)?,
            _ => {}
        }
        if desired.changes_file(found) {
            self.files.set(cx, &desired.file(found), Execution::Actual)?;
        }
        self.include(cx, desired, &table)?.carry_out(cx, &self.texts)
    }
}

/// The properties of a file with this text, or of none. A new one is for root alone, as the rules of the running kernel are.
fn file(path: &str, text: Option<&str>, is_new: bool) -> Plain {
    let stated = [
        ("path", Some(Value::from(path))),
        (Properties::CONTENT, text.map(Value::from)),
        ("mode", is_new.then(|| Value::from("0600"))),
        ("parents", Some(Value::from(true))),
        (Properties::EXIST, Some(Value::from(text.is_some()))),
    ];
    Plain::new(Value::Object(reply::stated(stated)))
}

impl Properties<'_> {
    fn table(&self) -> Table<'_> {
        Table { family: self.family.word(), name: self.name.0 }
    }

    fn identified(&self) -> Object {
        let identity = [(Properties::FAMILY, self.family.word()), (Properties::NAME, self.name.0)];
        identity.map(|(name, text)| (name.to_owned(), Value::from(text))).into()
    }

    /// The text of its file, where it has one.
    fn text(&self) -> Option<String> {
        let content = self.content.filter(|_| self.exist && self.boot);
        content.map(|content| self.table().text(content.0))
    }

    fn file(&self, found: &Found) -> Plain {
        file(&self.table().path(), self.text().as_deref(), found.file.is_none())
    }

    /// Returns whether the file is to be another one, or none. One that is not read stays beside a table without a file, and one of
    /// somebody else beside whatever has none.
    fn changes_file(&self, found: &Found) -> bool {
        self.text().is_some() || found.own().is_some() && (found.is_read || !self.exist)
    }

    /// Fails where the running kernel would not take the table, now or at boot.
    fn checked(&self, cx: &Context, found: &Found) -> Result<(), Failure> {
        let Some(content) = self.content.filter(|_| self.exist) else { return self.checked_without(cx, found) };
        if !is_live(cx) {
            // The nft of the system that is managed is not there to be asked.
            let missing = content.missing_chain();
            let message =
                |(line, name)| format!("line {line} jumps to the chain '{name}', which the table does not have");
            return missing.map_or(Ok(()), |missing| Err(invalid(Properties::CONTENT, message(missing))));
        }
        let table = self.table();
        kernel::check(cx, &table, content.0, Properties::CONTENT)?;
        let Some(text) = self.text() else { return self.checked_without(cx, found) };
        match found.at_boot_with(cx, &table, &text, content.0)? {
            AtBoot::Stated => Ok(()),
            AtBoot::Refused(said) => {
                Err(blocked(Properties::BOOT, format!("nftables.service cannot load its files at boot:\n{said}")))
            }
            AtBoot::Other => {
                let message = format!(
                    "the table differs after a restart: '{}' or another file in '{FOLDER}' changes it after its own file is read",
                    main_file(cx)
                );
                Err(blocked(Properties::BOOT, message))
            }
        }
    }

    /// Fails if other files need the table, so that nft would load nothing at boot without its file.
    fn checked_without(&self, cx: &Context, found: &Found) -> Result<(), Failure> {
        let table = self.table();
        if self.exist && self.boot || !is_live(cx) || !found.is_kept(cx, &table) {
            return Ok(());
        }
        match found.at_boot_with(cx, &table, "", "")? {
            AtBoot::Stated | AtBoot::Other => Ok(()),
            AtBoot::Refused(said) => Err(blocked(
                if self.exist { Properties::BOOT } else { Properties::EXIST },
                format!("nftables.service cannot load its files at boot without the table:\n{said}"),
            )),
        }
    }

    fn differing(&self, cx: &Context, found: &Found) -> Result<Vec<&'static str>, Failure> {
        if !self.exist || !found.exists() {
            let is_reached = self.exist == found.exists() || self.exist && !self.boot && !is_live(cx);
            return Ok(if is_reached { Vec::new() } else { vec![Properties::EXIST] });
        }
        let text = self.text();
        let is_other_file = text.is_some() && found.file.is_some() && text != found.file;
        let is_loaded = !is_live(cx) || found.rules.is_some();
        let is_other = match self.content.filter(|_| found.rules.is_some()) {
            Some(content) => !found.has(cx, &self.table(), content.0)?,
            None => false,
        };
        let all = [
            (Properties::CONTENT, is_other || is_other_file),
            (Properties::BOOT, self.boot != found.is_kept(cx, &self.table())),
            (Properties::LOADED, !is_loaded),
        ];
        Ok(all.into_iter().filter_map(|(name, differs)| differs.then_some(name)).collect())
    }

    /// The state that a set leads to.
    fn after(&self, cx: &Context) -> Object {
        let mut after = self.identified();
        let exists = self.exist && (self.boot || is_live(cx));
        after.insert(Properties::EXIST.to_owned(), Value::from(exists));
        if exists {
            let stated = [
                (Properties::CONTENT, self.content.map(|content| Value::from(content.0))),
                (Properties::BOOT, Some(Value::from(self.boot))),
                (Properties::LOADED, is_live(cx).then(|| Value::from(true))),
            ];
            after.extend(reply::stated(stated));
        }
        after
    }

    fn intentions(&self, cx: &Context, found: &Found, differing: &[&str]) -> Vec<String> {
        let has = |content: TableText<'_>| found.has(cx, &self.table(), content.0).is_ok_and(|has| has);
        let is_loaded = is_live(cx) && !self.content.is_some_and(has);
        let text = self.text();
        let is_foreign = found.file.is_some() && found.own().is_none();
        let words = [
            (self.exist && is_loaded, "load the table into the running kernel"),
            (!self.exist && found.rules.is_some(), "remove the table from the running kernel"),
            (text.is_some() && !is_foreign && (text != found.file), "write the file of the table"),
            (text.is_none() && self.changes_file(found), "remove the file of the table"),
        ];
        let words = words.into_iter().filter(|(is_done, _)| *is_done).map(|(_, words)| words.to_owned());
        let path = self.table().path();
        let foreign = is_foreign.then(|| match &text {
            Some(_) => format!("replace '{path}', which stead did not write"),
            None => format!("leave '{path}' in place: stead did not write it"),
        });
        let include = (text.is_some() && !found.is_read).then(|| format!("have '{}' include it", main_file(cx)));
        if differing.is_empty() { Vec::new() } else { words.chain(foreign).chain(include).collect() }
    }
}
