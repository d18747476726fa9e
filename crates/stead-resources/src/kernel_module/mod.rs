//! `Stead/KernelModule`: a module of the kernel.

use std::collections::BTreeSet;
use std::sync::Arc;

use stead_core::call::{Execution, Exported, Failure, Presumed};
use stead_core::claims::Ties;
use stead_core::destruction::{Effect, Effects};
use stead_core::manifest::Capabilities;
use stead_core::statements::Statement;
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Plain, Provider, SetReply, State, TestReply};

use crate::declared::Declared as _;
use crate::edit::{FileEdit, FileLocks, Files, Missing, Steps};
use crate::input::{blocked, read, read_each};
use crate::part::lines::{InForce, put_entry};
use crate::text::{ModuleName, ModuleOptions};
use crate::{ALL, BuiltIn, reply};

mod files;
mod live;

use files::{BOOT, ConfigFile, SETTINGS, blacklists, loads, options, with_only};

/// A module of the kernel. New settings go to the file stead-NAME.conf in /etc/modules-load.d and /etc/modprobe.d; those that
/// are there are changed where they are. Options take effect when the module is loaded the next time. Files of packages are
/// read, and neither changed nor masked. At least one of 'loaded', 'boot', 'options' and 'blacklisted' is required.
#[resource(
    "Stead/KernelModule",
    about = "A module of the kernel: whether it is loaded, and with which options.",
    tags("kernel", "linux", "module"),
    undo = State,
    capabilities = Capabilities { set_handles_exist: false, delete: false, delete_what_if: false, ..ALL },
    always_any(loaded, boot, options, blacklisted),
)]
struct Properties<'a> {
    /// The name of the module; '-' and '_' are the same.
    #[property(key)]
    name: ModuleName<'a>,
    /// Whether the module is loaded now. Ignored where another root than '/' is managed.
    loaded: Option<bool>,
    /// Whether the module is loaded at boot.
    boot: Option<bool>,
    /// The options of the module, such as `max_loop=8`; none if empty.
    options: Option<ModuleOptions<'a>>,
    /// Whether the module is blacklisted: not loaded by its aliases, such as those of devices.
    blacklisted: Option<bool>,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {}

/// `Stead/KernelModule` as it is registered.
pub(crate) fn built_in(locks: &FileLocks) -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Modules { files: Files::new(locks) }))
}

/// Carries out `Stead/KernelModule`.
struct Modules {
    files: Files<String>,
}

impl Provider for Modules {
    fn has_state_elsewhere(&self, cx: &Context, input: &Plain) -> bool {
        cx.manages_running_system() && input.expose().get(Properties::LOADED).is_some()
    }

    fn states(&self, _cx: &Context, input: &Plain) -> Vec<Statement> {
        let name = reply::text(input, Properties::NAME).unwrap_or_default().replace('-', "_");
        reply::states(
            &format!("the kernel module '{name}'"),
            input,
            &[Properties::LOADED, Properties::BOOT, Properties::OPTIONS, Properties::BLACKLISTED],
        )
    }

    fn ties(&self, _input: &Plain) -> Ties {
        Ties::default().and_packages(["kmod"])
    }

    fn validate(&self, _cx: &Context, input: &Plain) -> Result<(), Failure> {
        read::<Properties<'_>>(input).map(|_| ())
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let name = read_each::<Properties<'_>>(input)?.name.0;
        Ok(Plain::new(Configured::look(cx)?.module(name).state(name)))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired: Properties<'_> = read(input)?;
        let configured = Configured::look(cx)?;
        let found = configured.module(desired.name.0);
        let differing = desired.differing(&found);
        let set = match desired.edits(&configured, &differing) {
            Ok(edits) => desired.reply(&differing, &Steps::of(cx, &self.files, edits)?),
            // What cannot be set as things are is still compared.
            Err(_) => SetReply::default(),
        };
        let mut state = found.state(desired.name.0);
        if desired.options.is_none() {
            state.remove(Properties::OPTIONS);
        }
        Ok(reply::tested_as(state, &differing, set))
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired: Properties<'_> = read(input)?;
        let configured = Configured::look(cx)?;
        let differing = desired.differing(&configured.module(desired.name.0));
        let steps = Steps::of(cx, &self.files, desired.edits(&configured, &differing)?)?;
        let reply = desired.reply(&differing, &steps);
        let load = desired.loaded.filter(|_| differing.contains(&Properties::LOADED));
        if execution == Execution::WhatIf {
            let live = load.and_then(|load| live::presumed(desired.name.0, load));
            let presumed = Presumed::all([steps.presumed()?, live]);
            return Ok(SetReply { presumed, what_if: desired.intentions(&differing), ..reply });
        }
        if let Some(presumed) = load.and_then(|load| live::presumed(desired.name.0, load)) {
            return Err(presumed.failure);
        }
        // The options first: they count for the module that is loaded then.
        steps.carry_out(cx, &self.files)?;
        load.map_or(Ok(()), |load| live::set(cx, desired.name.0, load)).map(|()| reply)
    }

    fn export(&self, cx: &Context, _filter: &Plain) -> Result<Vec<Exported>, Failure> {
        let configured = Configured::look(cx)?;
        let mut names = configured.names();
        if cx.manages_running_system() {
            names.extend(live::all());
        }
        Ok(names.iter().map(|name| Exported::named(name, configured.module(name).state(name))).collect())
    }
}

/// What is configured for all modules.
struct Configured {
    boot: Vec<ConfigFile>,
    settings: Vec<ConfigFile>,
    is_live: bool,
}

/// What there is of one module.
struct Found {
    /// `None` where another system than the running one is managed.
    loaded: Option<bool>,
    boot: bool,
    options: String,
    blacklisted: bool,
}

impl Configured {
    fn look(cx: &Context) -> Result<Self, Failure> {
        let (boot, settings) = (files::of_boot(cx)?, files::of_settings(cx)?);
        Ok(Self { boot, settings, is_live: cx.manages_running_system() })
    }

    fn module(&self, name: &str) -> Found {
        let lines = || self.settings.iter().flat_map(|file| file.text.lines());
        let own = self.settings.iter().filter(|file| file.is_own()).flat_map(|file| file.text.lines());
        Found {
            loaded: self.is_live.then(|| live::is_loaded(name)),
            boot: self.boot.iter().flat_map(|file| file.text.lines()).any(|line| loads(line, name)),
            options: own.filter_map(|line| options(line, name)).collect::<Vec<_>>().join(" "),
            blacklisted: lines().any(|line| blacklists(line, name)),
        }
    }

    /// The names of the modules about which files of the administrator say something.
    fn names(&self) -> BTreeSet<String> {
        let own = |files: &'_ [ConfigFile]| -> Vec<String> {
            files.iter().filter(|file| file.is_own()).flat_map(|file| file.text.lines().map(str::to_owned)).collect()
        };
        let at_boot = own(&self.boot).into_iter().filter_map(|line| {
            let word = line.trim().split([' ', '\t', '#', ';']).next()?.to_owned();
            (!word.is_empty()).then_some(word)
        });
        let set = own(&self.settings).into_iter().filter_map(|line| {
            let mut words = line.split_whitespace();
            words.next().filter(|word| matches!(*word, "options" | "blacklist"))?;
            words.next().map(str::to_owned)
        });
        at_boot.chain(set).map(|name| name.replace('-', "_")).collect()
    }
}

impl Found {
    fn state(&self, name: &str) -> Object {
        let stated = [
            (Properties::NAME, Some(Value::from(name))),
            (Properties::LOADED, self.loaded.map(Value::from)),
            (Properties::BOOT, Some(Value::from(self.boot))),
            (Properties::OPTIONS, Some(Value::from(self.options.as_str()))),
            (Properties::BLACKLISTED, Some(Value::from(self.blacklisted))),
        ];
        reply::stated(stated)
    }
}

impl<'a> Properties<'a> {
    fn stated_options(&self) -> Option<String> {
        self.options.map(|options| options.0.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    fn differing(&self, found: &Found) -> Vec<&'static str> {
        let differs = |stated: Option<bool>, found: bool| stated.is_some_and(|stated| stated != found);
        let words = found.options.split_whitespace();
        let all = [
            (Properties::LOADED, found.loaded.is_some_and(|loaded| differs(self.loaded, loaded))),
            (Properties::BOOT, differs(self.boot, found.boot)),
            (Properties::OPTIONS, self.stated_options().is_some_and(|stated| !stated.split_whitespace().eq(words))),
            (Properties::BLACKLISTED, differs(self.blacklisted, found.blacklisted)),
        ];
        all.into_iter().filter_map(|(name, differs)| differs.then_some(name)).collect()
    }

    /// The state that a set leads to: what is stated.
    fn after(&self) -> Object {
        let stated = [
            (Properties::NAME, Some(Value::from(self.name.0))),
            (Properties::LOADED, self.loaded.map(Value::from)),
            (Properties::BOOT, self.boot.map(Value::from)),
            (Properties::OPTIONS, self.options.map(|options| Value::from(options.0))),
            (Properties::BLACKLISTED, self.blacklisted.map(Value::from)),
        ];
        reply::stated(stated)
    }

    fn reply(&self, differing: &[&str], steps: &Steps<'_>) -> SetReply {
        let mut effects = if differing.is_empty() { Effects::default() } else { Effects::of(Effect::Change) };
        effects.creates.extend(steps.creates());
        effects.destroys.extend(steps.removed_lines());
        SetReply { effects, ..reply::set(self.after(), differing, Vec::new()) }
    }

    fn intentions(&self, differing: &[&str]) -> Vec<String> {
        let words = |name: &&str| match (*name, self.loaded, self.boot, self.blacklisted) {
            (Properties::LOADED, Some(true), ..) => "load the module".to_owned(),
            (Properties::LOADED, ..) => "unload the module".to_owned(),
            (Properties::BOOT, _, Some(true), _) => "load the module at boot".to_owned(),
            (Properties::BOOT, ..) => "do not load the module at boot".to_owned(),
            (Properties::OPTIONS, ..) if self.stated_options().is_none_or(|options| options.is_empty()) => {
                "remove its options".to_owned()
            }
            (Properties::OPTIONS, ..) => format!("set its options to '{}'", self.stated_options().unwrap_or_default()),
            (_, _, _, Some(true)) => "blacklist the module".to_owned(),
            _ => "remove it from the blacklist".to_owned(),
        };
        differing.iter().map(words).collect()
    }

    fn edits(&self, configured: &Configured, differing: &[&str]) -> Result<Vec<FileEdit<'a>>, Failure> {
        let name = self.name.0;
        let mut edits = Vec::new();
        if differing.contains(&Properties::BOOT) {
            let new = (self.boot == Some(true)).then(|| name.to_owned());
            edits.extend(edits_of(Properties::BOOT, &configured.boot, BOOT, name, new, move |line| loads(line, name))?);
        }
        // Both are in files of modprobe, which each are edited once.
        let mut settings: Vec<FileEdit<'a>> = Vec::new();
        if differing.contains(&Properties::OPTIONS) {
            let new = self.stated_options().filter(|options| !options.is_empty());
            let new = new.map(|options| format!("options {name} {options}"));
            let own: Vec<&ConfigFile> = configured.settings.iter().filter(|file| file.is_own()).collect();
            settings.extend(in_files(&own, SETTINGS, name, new, move |line| options(line, name).is_some()));
        }
        if differing.contains(&Properties::BLACKLISTED) {
            let new = (self.blacklisted == Some(true)).then(|| format!("blacklist {name}"));
            let is_it = move |line: &str| blacklists(line, name);
            settings.extend(edits_of(Properties::BLACKLISTED, &configured.settings, SETTINGS, name, new, is_it)?);
        }
        edits.extend(joined(settings));
        Ok(edits)
    }
}

/// What becomes of the files so that a line of a kind is there, or none is. Fails where a file of a package has one.
fn edits_of<'a>(
    property: &str,
    files: &[ConfigFile],
    folder: &str,
    name: &str,
    new: Option<String>,
    is_it: impl Fn(&str) -> bool + Copy + 'a,
) -> Result<Vec<FileEdit<'a>>, Failure> {
    let packaged = files.iter().find(|file| !file.is_own() && file.lines_of(is_it).next().is_some());
    if let Some(file) = packaged.filter(|_| new.is_none()) {
        let masked = file.path.rsplit('/').next().unwrap_or_default();
        let hint = format!("Override it with a Stead/File or a Stead/Symlink to /dev/null at '{folder}/{masked}'");
        let message = format!("the file '{}' of a package is about the module, and is not changed. {hint}", file.path);
        return Err(blocked(property, message));
    }
    let own: Vec<&ConfigFile> = files.iter().filter(|file| file.is_own()).collect();
    Ok(in_files(&own, folder, name, new, is_it))
}

/// The new line in place of the first one of its kind, or in the file of the module, and no other one of that kind.
fn in_files<'a>(
    own: &[&ConfigFile],
    folder: &str,
    name: &str,
    new: Option<String>,
    is_it: impl Fn(&str) -> bool + Copy + 'a,
) -> Vec<FileEdit<'a>> {
    let mut new = new;
    let mut edits = Vec::new();
    for file in own.iter().filter(|file| file.lines_of(is_it).next().is_some()) {
        let new = new.take();
        let edit = Box::new(move |text: &str| with_only(text, is_it, new.as_deref()));
        edits.push(FileEdit { path: file.path.clone(), missing: Missing::Refuse, edit });
    }
    if let Some(new) = new {
        let edit = Box::new(move |text: &str| put_entry(text, InForce::First, is_it, &new));
        // A file of a package has another name: one with the same name in the folder of the administrator would mask it.
        edits.push(FileEdit { path: format!("{folder}/stead-{name}.conf"), missing: Missing::create_if(true), edit });
    }
    edits
}

/// One edit for each file.
fn joined(edits: Vec<FileEdit<'_>>) -> Vec<FileEdit<'_>> {
    let mut all: Vec<FileEdit<'_>> = Vec::new();
    for edit in edits {
        let Some(at) = all.iter().position(|each| each.path == edit.path) else {
            all.push(edit);
            continue;
        };
        let first = all.swap_remove(at);
        let (one, other) = (first.edit, edit.edit);
        all.push(FileEdit {
            path: edit.path,
            missing: first.missing,
            edit: Box::new(move |text: &str| other(&one(text))),
        });
    }
    all
}
