//! `Stead/Locale`: the language of the machine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use stead_core::call::{Execution, Exported, Failure, Presumed};
use stead_core::destruction::{Effect, Effects};
use stead_core::diag::nearest;
use stead_core::manifest::Capabilities;
use stead_core::value::{Object, Value};
use stead_host::provider::{Context, Plain, Provider, SetReply, State, TestReply};

use crate::edit::{FileEdit, FileLocks, Files, Missing, Steps};
use crate::input::{GeneratedLocale, LocaleName, LocaleVariable, read, read_each, refused, required};
use crate::part::lines::{InForce, entry, lines, put_entry, replaced, without_entry};
use crate::program::SystemProgram;
use crate::{ALL, BuiltIn, Profile, reply, schema};

mod generated;

use generated::{generated, is_built_in, normalized, supported};

const PROFILE: Profile = Profile {
    type_name: "Stead/Locale",
    description: "The language and the regional formats of the machine.",
    example: include_str!("example.yaml"),
    tags: &["language", "linux", "locale"],
    capabilities: Capabilities { set_handles_exist: false, delete: false, delete_what_if: false, ..ALL },
    schema: schema::of::<Properties<'_>>,
};

/// The locale that the machine starts with, and the locales that it has. The settings are in /etc/default/locale on Debian and
/// in /etc/locale.conf elsewhere. Where another root than '/' is managed, locales are only entered in /etc/locale.gen.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Stead/Locale")]
struct Properties<'a> {
    /// The variables of the settings, such as LANG and `LC_TIME`; one with an empty value is removed. Others stay as they are.
    #[serde(borrow)]
    variables: Option<BTreeMap<LocaleVariable<'a>, LocaleName<'a>>>,
    /// The locales that the machine has at least, such as de_DE.UTF-8. One that is missing is entered in /etc/locale.gen, and
    /// the program locale-gen generates it.
    #[serde(borrow)]
    generated: Option<Vec<GeneratedLocale<'a>>>,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {
    fn check(&self) -> Result<(), Failure> {
        if self.variables.is_none() && self.generated.is_none() {
            return Err(required(&["variables", "generated"]));
        }
        Ok(())
    }
}

/// `Stead/Locale` as it is registered.
pub(crate) fn built_in(locks: &FileLocks) -> Option<BuiltIn> {
    PROFILE.built_in(Arc::new(Locales { files: Files::new(locks) }))
}

const TO_GENERATE: &str = "/etc/locale.gen";
const GENERATOR: SystemProgram = SystemProgram { name: "locale-gen", package: "locales" };

/// Carries out `Stead/Locale`.
struct Locales {
    files: Files<String>,
}

impl Provider for Locales {
    fn validate(&self, _cx: &Context, input: &Plain) -> Result<(), Failure> {
        read::<Properties<'_>>(input).map(|_| ())
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let stated: Properties<'_> = read_each(input)?;
        let found = self.look(cx)?;
        let mut state = found.state();
        state.extend(stated.shown(&found));
        Ok(Plain::new(state))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired: Properties<'_> = read(input)?;
        let found = self.look(cx)?;
        let differing = desired.differing(&found);
        let set = match desired.edits(cx, &found) {
            Ok(edits) => desired.reply(&differing, &Steps::of(cx, &self.files, edits)?),
            // What cannot be set as things are is still compared.
            Err(_) => SetReply::default(),
        };
        Ok(reply::tested_as(desired.shown(&found), &differing, set))
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired: Properties<'_> = read(input)?;
        let found = self.look(cx)?;
        let differing = desired.differing(&found);
        let edits = desired.edits(cx, &found)?;
        let steps = Steps::of(cx, &self.files, edits)?;
        let reply = desired.reply(&differing, &steps);
        let missing = desired.missing(&found);
        if execution == Execution::WhatIf {
            let generator = || (!missing.is_empty() && found.is_live).then(|| GENERATOR.presumed()).flatten();
            let presumed = Presumed::all([found.cannot_generate(&missing), steps.presumed()?, generator()]);
            return Ok(SetReply { presumed, what_if: desired.intentions(&found), ..reply });
        }
        if let Some(presumed) = found.cannot_generate(&missing) {
            return Err(presumed.failure);
        }
        steps.carry_out(cx, &self.files)?;
        found.generate(cx, &missing)?;
        Ok(reply)
    }

    fn export(&self, cx: &Context, _filter: &Plain) -> Result<Vec<Exported>, Failure> {
        Ok(vec![Exported::named("locale", self.look(cx)?.state())])
    }
}

/// What the machine has.
struct Found {
    /// Where the settings are.
    settings: &'static str,
    variables: BTreeMap<String, String>,
    /// Normalized names; where another root is managed, those that are to be generated count as well.
    generated: BTreeSet<String>,
    /// The normalized names that are entered to be generated; `None` where the system has no such list.
    entered: Option<BTreeSet<String>>,
    is_live: bool,
}

impl Locales {
    fn look(&self, cx: &Context) -> Result<Found, Failure> {
        let settings = settings_path(cx);
        let text = self.files.look(&cx.resolve(settings))?;
        let variables = text.iter().flat_map(|text| text.content.lines().filter_map(variable));
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let list = self.files.look(&cx.resolve(TO_GENERATE))?;
        let names = |text: &str| text.lines().filter_map(entered).map(|(name, _)| normalized(name)).collect();
        let entered: Option<BTreeSet<String>> = list.map(|text| names(&text.content));
        let is_live = cx.manages_running_system();
        let mut generated = generated(cx)?;
        if !is_live {
            generated.extend(entered.iter().flatten().cloned());
        }
        Ok(Found { settings, variables, generated, entered, is_live })
    }
}

/// Where the settings are. Debian reads /etc/default/locale, which newer versions of it make a link to the other file.
fn settings_path(cx: &Context) -> &'static str {
    const DEBIAN: &str = "/etc/default/locale";
    const OTHERS: &str = "/etc/locale.conf";
    let status = |path: &str| std::fs::symlink_metadata(cx.resolve(path)).ok();
    match (status(DEBIAN), status(OTHERS)) {
        (Some(found), _) if found.is_file() => DEBIAN,
        (None, None) if status("/etc/debian_version").is_some() && status("/etc/default").is_some() => DEBIAN,
        _ => OTHERS,
    }
}

/// The variable that a line of the settings sets.
fn variable(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let (name, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
    let unquoted = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
    Some((name, unquoted.unwrap_or(value)))
}

/// The locale and the codeset that a line enters to be generated.
fn entered(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    line.split_once(char::is_whitespace).filter(|_| !line.starts_with('#'))
}

/// The same of a line that is a comment.
fn commented(line: &str) -> Option<(&str, &str)> {
    entered(line.trim().strip_prefix('#')?.trim_start())
}

impl Found {
    fn state(&self) -> Object {
        let variables = self.variables.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
        let generated: Vec<&str> =
            self.generated.iter().map(String::as_str).filter(|name| !is_built_in(name)).collect();
        [("variables".to_owned(), Value::Object(variables.collect())), ("generated".to_owned(), Value::from(generated))]
            .into()
    }

    /// Whether the machine has a locale and keeps it when locales are generated anew.
    fn has(&self, name: &str) -> bool {
        let name = normalized(name);
        let stays = self.entered.as_ref().is_none_or(|entered| entered.contains(&name));
        is_built_in(&name) || self.generated.contains(&name) && stays
    }

    fn variable(&self, name: &str) -> &str {
        self.variables.get(name).map_or("", String::as_str)
    }

    /// Generates what is entered, if anything is missing.
    fn generate(&self, cx: &Context, missing: &[&str]) -> Result<(), Failure> {
        if missing.is_empty() || !self.is_live {
            return Ok(());
        }
        GENERATOR.run(cx, &[])?;
        let now = generated(cx)?;
        match missing.iter().find(|name| !now.contains(&normalized(name))) {
            Some(name) => Err(refused("generated", format!("locale-gen did not generate the locale '{name}'"))),
            None => Ok(()),
        }
    }

    /// The failure that the system has no list of locales to generate.
    fn cannot_generate(&self, missing: &[&str]) -> Option<Presumed> {
        let name = missing.first().filter(|_| self.entered.is_none())?;
        let hint = "Install the package that generates locales, such as locales, or one with the locale";
        let message = format!("there is no '{TO_GENERATE}' in which to enter the locale '{name}'. {hint}");
        Some(Presumed { failure: refused("generated", message), paths: vec![TO_GENERATE.into()] })
    }
}

impl<'a> Properties<'a> {
    fn stated_variables(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.variables.iter().flatten().map(|(name, value)| (name.0, value.0))
    }

    fn stated_locales(&self) -> impl Iterator<Item = &'a str> {
        self.generated.iter().flatten().map(|name| name.0)
    }

    fn missing(&self, found: &Found) -> Vec<&'a str> {
        self.stated_locales().filter(|name| !found.has(name)).collect()
    }

    fn differing(&self, found: &Found) -> Vec<&'static str> {
        let variables = self.stated_variables().any(|(name, value)| found.variable(name) != value);
        let all = [("variables", variables), ("generated", !self.missing(found).is_empty())];
        all.into_iter().filter_map(|(name, differs)| differs.then_some(name)).collect()
    }

    /// What the machine has of what is stated.
    fn shown(&self, found: &Found) -> Object {
        self.with(|name, _| found.variable(name).to_owned(), |name| found.has(name))
    }

    fn after(&self) -> Object {
        self.with(|_, value| value.to_owned(), |_| true)
    }

    fn reply(&self, differing: &[&str], steps: &Steps<'_>) -> SetReply {
        let mut effects = if differing.is_empty() { Effects::default() } else { Effects::of(Effect::Change) };
        effects.creates.extend(steps.creates());
        SetReply { effects, ..reply::set(self.after(), differing, Vec::new()) }
    }

    fn with(&self, value_of: impl Fn(&str, &str) -> String, has: impl Fn(&str) -> bool) -> Object {
        let variable = |(name, value)| (str::to_owned(name), Value::from(value_of(name, value)));
        let variables = self.variables.as_ref().map(|_| Value::Object(self.stated_variables().map(variable).collect()));
        let names = || self.stated_locales().filter(|name| has(name)).collect::<Vec<_>>();
        let stated = [("variables", variables), ("generated", self.generated.as_ref().map(|_| Value::from(names())))];
        reply::stated(stated)
    }

    fn intentions(&self, found: &Found) -> Vec<String> {
        let words = |(name, value): (&str, &str)| match value {
            "" => format!("remove {name} from '{}'", found.settings),
            value => format!("set {name} to {value} in '{}'", found.settings),
        };
        let variables = self.stated_variables().filter(|(name, value)| found.variable(name) != *value).map(words);
        let verb = if found.is_live { "generate" } else { "enter" };
        variables.chain(self.missing(found).iter().map(|name| format!("{verb} the locale {name}"))).collect()
    }

    /// What becomes of the list of locales to generate, and of the settings.
    fn edits(&self, cx: &Context, found: &Found) -> Result<Vec<FileEdit<'a>>, Failure> {
        let mut edits = Vec::new();
        let entered = |name: &str| found.entered.as_ref().is_some_and(|entered| entered.contains(&normalized(name)));
        let new: Vec<_> = self.missing(found).into_iter().filter(|name| !entered(name)).collect();
        if !new.is_empty() && found.entered.is_some() {
            let supported = supported(cx)?;
            let new = new.iter().map(|name| with_codeset(name, &supported)).collect::<Result<Vec<_>, _>>()?;
            let edit = move |text: &str| new.iter().fold(text.to_owned(), |text, entry| enter(&text, entry));
            edits.push(FileEdit { path: TO_GENERATE.to_owned(), missing: Missing::Refuse, edit: Box::new(edit) });
        }
        let changed: Vec<_> = self.stated_variables().filter(|(name, value)| found.variable(name) != *value).collect();
        let edit = move |text: &str| changed.iter().fold(text.to_owned(), |text, entry| put_variable(&text, *entry));
        edits.push(FileEdit {
            path: found.settings.to_owned(),
            missing: Missing::create_if(true),
            edit: Box::new(edit),
        });
        Ok(edits)
    }
}

/// A locale with its codeset, as the list has it. Fails for one that the system cannot generate.
fn with_codeset(name: &str, supported: &[(String, String)]) -> Result<(String, String), Failure> {
    if let Some(found) = supported.iter().find(|(each, _)| normalized(each) == normalized(name)) {
        return Ok(found.clone());
    }
    if !supported.is_empty() {
        let meant = nearest(name, supported.iter().map(|(each, _)| each.as_str()));
        let hint = meant.map(|meant| format!("; did you mean '{meant}'?")).unwrap_or_default();
        return Err(refused("generated", format!("the system has no locale '{name}'{hint}")));
    }
    let codeset = name.split_once('.').map(|(_, rest)| rest.split('@').next().unwrap_or(rest));
    let codeset =
        codeset.map(|codeset| if normalized(&format!("x.{codeset}")) == "x.utf8" { "UTF-8" } else { codeset });
    let message =
        || refused("generated", format!("the codeset of '{name}' is not known; state it, as in '{name}.UTF-8'"));
    codeset.map(|codeset| (name.to_owned(), codeset.to_owned())).ok_or_else(message)
}

/// The list with an entry: that of the comment that has it, or a new one.
fn enter(text: &str, (name, codeset): &(String, String)) -> String {
    let is_own = |line: &str| commented(line).is_some_and(|(each, _)| normalized(each) == normalized(name));
    let new = format!("{name} {codeset}");
    match lines(text).into_iter().find(|line| is_own(line.text)) {
        Some(line) => replaced(text, &(line.range.start..line.range.start + line.text.len()), &new),
        None => put_entry(text, InForce::Last, |_| false, &new),
    }
}

fn put_variable(text: &str, (name, value): (&str, &str)) -> String {
    let is_own = |line: &str| variable(line).is_some_and(|(own, _)| own == name);
    if value.is_empty() {
        return without_entry(text, is_own);
    }
    // Of several the last one counts.
    let current = entry(text, InForce::Last, is_own).and_then(|line| variable(line.text).map(|(_, value)| value));
    if current == Some(value) {
        text.to_owned()
    } else {
        put_entry(text, InForce::Last, is_own, &format!("{name}={value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locale_is_entered_as_the_system_writes_it() {
        let supported =
            [("de_DE.UTF-8".to_owned(), "UTF-8".to_owned()), ("de_DE@euro".to_owned(), "ISO-8859-15".to_owned())];
        assert_eq!(with_codeset("de_DE.utf8", &supported).unwrap(), supported[0]);
        assert_eq!(with_codeset("de_DE@euro", &supported).unwrap(), supported[1]);
        assert!(with_codeset("de_DF.UTF-8", &supported).unwrap_err().message.ends_with("did you mean 'de_DE.UTF-8'?"));
        assert_eq!(with_codeset("de_DE.utf8", &[]).unwrap().1, "UTF-8");
        assert!(with_codeset("de_DE", &[]).is_err());
        let text = "# This file\n# de_DE.UTF-8 UTF-8\n";
        assert_eq!(enter(text, &supported[0]), "# This file\nde_DE.UTF-8 UTF-8\n");
        assert_eq!(enter(text, &supported[1]), "# This file\n# de_DE.UTF-8 UTF-8\nde_DE@euro ISO-8859-15\n");
    }
}
