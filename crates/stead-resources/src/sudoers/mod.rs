//! `Stead/Sudoers`: a file of rules for sudo.

use std::path::Path;
use std::sync::Arc;

use stead_core::call::{Execution, Exported, Failure, Presumed};
use stead_core::claims::{Claims, Extent, Provision, Ties};
use stead_core::destruction::{Item, ItemKind};
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Cost, Plain, Provider, SetReply, State, TestReply};

use crate::declared::Declared as _;
use crate::edit::files_in;
use crate::file::Files;
use crate::input::{ReadOnly, read, read_each};
use crate::text::{FileText, SudoersName};
use crate::{ALL, BuiltIn, is_wanted, reply};

mod grants;
mod reading;
mod rule;
mod visudo;

use grants::overridden;
use rule::Rule;

/// Rules of sudo, in a file of their own in /etc/sudoers.d with mode 0440, which belongs to root. `visudo` checks them before
/// they are placed, and in what-if too: rules with an error never take effect, nor do half of them. Of all rules that fit, sudo
/// takes the last one: it fails where a file that is read later says otherwise of the same command for the same user or group,
/// naming it. Members of groups and patterns are not looked up, and a later rule about a part of a wider one may say otherwise.
#[resource(
    "Stead/Sudoers",
    about = "Rules of sudo, in a file of their own in /etc/sudoers.d.",
    exclusive(rules, content),
    any(rules, content),
    tags("sudo", "security", "linux"),
    capabilities = ALL,
)]
struct Properties<'a> {
    /// The name of the file, without '.': sudo ignores files with other names.
    #[property(key)]
    name: SudoersName<'a>,
    /// The rules. This or 'content' is required unless '_exist' is false.
    rules: Option<Vec<Rule<'a>>>,
    /// The whole content of the file, in place of 'rules'.
    content: Option<FileText<'a>>,
    /// Whether `visudo` checks the rules. If false, they are written as they are: an error in them may keep all users from
    /// using sudo.
    #[property(option, removal)]
    #[serde(default = "is_wanted")]
    validate: bool,
    /// Whether the file exists.
    exist: bool,
    /// The mode of the file: always 0440.
    #[property(shown)]
    mode: Option<ReadOnly<String>>,
    /// The owner of the file: always root.
    #[property(shown)]
    owner: Option<ReadOnly<String>>,
    /// The group of the file: always root.
    #[property(shown)]
    group: Option<ReadOnly<String>>,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {
    fn check(&self) -> Result<(), Failure> {
        self.rules.iter().flatten().try_for_each(Rule::check)
    }
}

/// Where sudo looks for such files.
const FOLDER: &str = "/etc/sudoers.d";

/// `Stead/Sudoers` as it is registered.
pub(crate) fn built_in() -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Sudoers::default()))
}

/// Carries out `Stead/Sudoers`: what `Stead/File` would do, once the rules were checked.
///
/// sudo reads no file that is not whole: those that are being written have a '.' in their names, if they have any.
#[derive(Default)]
struct Sudoers {
    files: Files,
}

impl Provider for Sudoers {
    fn ties(&self, input: &Plain) -> Ties {
        let mut ties = Ties::default().and_packages(["sudo"]);
        let removals = (!reply::is_removal(input)).then(|| Provision::Removals(Path::new(FOLDER).into()));
        ties.uses.extend(removals);
        ties
    }

    fn validate(&self, _cx: &Context, input: &Plain) -> Result<(), Failure> {
        read::<Properties<'_>>(input).map(|_| ())
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let desired = Desired::of(read_each(input)?, input);
        Ok(Plain::new(desired.state(&self.files.get(cx, &desired.file(Some(""))).map_err(of_name)?)))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired = Desired::of(read(input)?, input);
        desired.check_in_force(cx)?;
        let TestReply { actual, differing, .. } = self.files.test(cx, &desired.file(None)).map_err(of_name)?;
        let actual = actual.map(|actual| desired.state(&actual)).unwrap_or_default();
        let differing = desired.renamed(differing);
        let names: Vec<&str> = differing.iter().map(String::as_str).collect();
        if names.is_empty() {
            return Ok(reply::tested(actual, &names));
        }
        Ok(reply::tested_as(actual, &names, self.written(cx, &desired, Execution::WhatIf)?))
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired = Desired::of(read(input)?, input);
        desired.check_in_force(cx)?;
        let invalid = self.checked(cx, &desired)?;
        match (execution, invalid) {
            (Execution::Actual, Some(invalid)) => Err(invalid.failure),
            (Execution::Actual, None) => self.written(cx, &desired, execution),
            (Execution::WhatIf, invalid) => {
                let mut reply = self.written(cx, &desired, execution)?;
                if !desired.properties.validate && self.writes(cx, &desired)? {
                    reply.what_if.push("write the rules without a check".to_owned());
                }
                Ok(SetReply { presumed: Presumed::all([invalid, reply.presumed]), ..reply })
            }
        }
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        let desired = Desired::of(Properties { exist: false, ..read_each(input)? }, input);
        self.files.delete(cx, &desired.file(None), execution).map_err(of_name)
    }

    fn export(&self, cx: &Context, _filter: &Plain) -> Result<Vec<Exported>, Failure> {
        let exported = |name: String| {
            let input = Plain::new(Value::Object([(Properties::NAME.to_owned(), Value::from(name.as_str()))].into()));
            let properties = self.get(cx, &input)?.expose().clone();
            Ok(Exported { type_name: None, name: Some(name), properties, depends_on: Vec::new(), metadata: None })
        };
        let names = files_in(cx, FOLDER)?.into_iter();
        names.filter(|name| SudoersName::is_valid(name)).map(exported).collect()
    }

    fn cost(&self, _desired: &Value) -> Cost {
        Cost::Process
    }

    fn claims(&self, input: &Plain) -> Option<Claims> {
        let name = input.expose().get(Properties::NAME).and_then(Value::as_str)?;
        let extent = if reply::is_removal(input) { Extent::Absent } else { Extent::Whole };
        Some(Claims::path(path_of(name), extent))
    }
}

fn path_of(name: &str) -> String {
    format!("{FOLDER}/{name}")
}

/// A failure about the file as one about the property that says where it is.
fn of_name(failure: Failure) -> Failure {
    match failure.property.as_deref() {
        Some("/path") => Failure { property: Some("/name".to_owned()), ..failure },
        _ => failure,
    }
}

impl Sudoers {
    /// Why the rules, which differ from those that are there, are not placed.
    fn checked(&self, cx: &Context, desired: &Desired<'_>) -> Result<Option<Presumed>, Failure> {
        // The program of the running system is not asked about files alone of another.
        let is_checked = desired.properties.validate && !cx.files_alone();
        let Some(content) = desired.content.as_deref().filter(|_| is_checked) else { return Ok(None) };
        if self.writes(cx, desired)? {
            visudo::check(cx, &path_of(desired.properties.name.0), desired.property(), content)
        } else {
            Ok(None)
        }
    }

    /// Returns whether other rules are placed than those that are there.
    fn writes(&self, cx: &Context, desired: &Desired<'_>) -> Result<bool, Failure> {
        let differing = self.files.test(cx, &desired.file(None)).map_err(of_name)?.differing.unwrap_or_default();
        Ok(desired.properties.exist
            && differing.iter().any(|name| name == Properties::CONTENT || name == Properties::EXIST))
    }

    fn written(&self, cx: &Context, desired: &Desired<'_>, execution: Execution) -> Result<SetReply, Failure> {
        let mut reply = self.files.set(cx, &desired.file(None), execution).map_err(of_name)?;
        let changed = desired.renamed(reply.changed);
        if let Some(content) =
            desired.content.as_deref().filter(|_| changed == [Properties::EXIST] && desired.properties.exist)
        {
            let kind = ItemKind::File { size: content.len() as u64 };
            reply.effects.creates.push(Item { path: path_of(desired.properties.name.0), kind });
        }
        let after = reply.after.map(|after| Plain::new(desired.state(&after)));
        let of_presumed = |presumed: Presumed| presumed.with_failures(&of_name);
        Ok(SetReply { after, changed: Some(changed), presumed: reply.presumed.map(of_presumed), ..reply })
    }
}

/// A desired state, with what it comes to as a file.
struct Desired<'a> {
    properties: Properties<'a>,
    /// The rules as they are stated, for states.
    rules: Option<&'a Value>,
    content: Option<String>,
}

impl<'a> Desired<'a> {
    fn of(properties: Properties<'a>, input: &'a Plain) -> Self {
        let rules = properties.rules.as_ref().map(|rules| rules.iter().map(Rule::line).collect());
        let content = properties.content.map(|content| content.0.to_owned()).or(rules);
        Self { properties, rules: input.expose().get(Properties::RULES), content }
    }

    /// Fails where the rules would not be in force beside those of other files.
    fn check_in_force(&self, cx: &Context) -> Result<(), Failure> {
        let content = self.content.as_deref().filter(|_| self.properties.exist);
        let path = path_of(self.properties.name.0);
        let found = content.and_then(|content| overridden(&cx.system_root, &path, self.property(), content));
        found.map_or(Ok(()), Err)
    }

    /// The properties of the file. Only root can give a file to root.
    fn file(&self, otherwise: Option<&str>) -> Plain {
        let path = path_of(self.properties.name.0);
        let content = self.content.as_deref().or(otherwise).map(Value::from);
        let root = stead_system::user::is_root().then(|| Value::from("root"));
        let stated = [
            ("path", Some(Value::from(path))),
            (Properties::CONTENT, content),
            (Properties::MODE, Some(Value::from("0440"))),
            (Properties::OWNER, root.clone()),
            (Properties::GROUP, root),
            (Properties::EXIST, Some(Value::from(self.properties.exist))),
        ];
        let stated: Object = stated.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        Plain::new(Value::Object(stated))
    }

    /// A state of the file as one of the rules.
    fn state(&self, file: &State) -> Object {
        let reported = |name: &str| Some((name.to_owned(), file.expose().get(name)?.clone()));
        let mut state: Object = [(Properties::NAME.to_owned(), Value::from(self.properties.name.0))].into();
        state.extend(
            [Properties::EXIST, Properties::CONTENT, Properties::MODE, Properties::OWNER, Properties::GROUP]
                .into_iter()
                .filter_map(reported),
        );
        let content = state.get(Properties::CONTENT).and_then(Value::as_str);
        if let Some(rules) = self.rules.filter(|_| content.is_some() && content == self.content.as_deref()) {
            state.remove(Properties::CONTENT);
            state.insert(Properties::RULES.to_owned(), rules.clone());
        }
        state
    }

    /// The property that states what is in the file.
    fn property(&self) -> &'static str {
        if self.rules.is_some() { Properties::RULES } else { Properties::CONTENT }
    }

    /// The names of properties of the file as those that state them.
    fn renamed(&self, names: Option<Vec<String>>) -> Vec<String> {
        let renamed = |name: String| if name == Properties::CONTENT { self.property().to_owned() } else { name };
        names.into_iter().flatten().map(renamed).collect()
    }
}
