//! A rule of sudo: who may run what as whom.

use schemars::JsonSchema;
use serde::Deserialize;
use stead_core::call::Failure;

use super::Properties;
use crate::input::required;
use crate::text::{SudoersCommand, SudoersGroup, SudoersWord};

/// Who may run what as whom.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub(super) struct Rule<'a> {
    /// The users that the rule is for. This or 'groups' is required.
    #[serde(borrow, default)]
    #[schemars(extend("default" = []))]
    users: Vec<SudoersWord<'a>>,
    /// The groups whose members the rule is for, without '%'.
    #[serde(borrow, default)]
    #[schemars(extend("default" = []))]
    groups: Vec<SudoersGroup<'a>>,
    /// The hosts that the rule applies to; ALL if not stated.
    #[serde(borrow)]
    hosts: Option<Vec<SudoersWord<'a>>>,
    /// The users that the commands may run as, or ALL; root if neither this nor 'runAsGroups' is stated.
    #[serde(borrow)]
    run_as: Option<Vec<SudoersWord<'a>>>,
    /// The groups that the commands may run as, or ALL.
    #[serde(borrow)]
    run_as_groups: Option<Vec<SudoersWord<'a>>>,
    /// The commands that may be run: absolute paths with arguments, or ALL, in the syntax of sudoers(5). A backslash stands in
    /// front of ',', ':', '=' and '#'.
    #[serde(borrow)]
    commands: Vec<SudoersCommand<'a>>,
    /// Whether no password is required. If not stated, the defaults of sudo apply.
    nopasswd: Option<bool>,
    /// Whether environment variables may be set for the commands.
    setenv: Option<bool>,
    /// Whether the commands are prevented from running other commands.
    noexec: Option<bool>,
}

impl Rule<'_> {
    /// What must hold between properties.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let is_empty = |words: &Option<Vec<SudoersWord<'_>>>| words.as_ref().is_some_and(Vec::is_empty);
        let empty = [("hosts", &self.hosts), ("runAs", &self.run_as), ("runAsGroups", &self.run_as_groups)];
        if let Some((name, _)) = empty.into_iter().find(|(_, words)| is_empty(words)) {
            return Err(crate::input::invalid(Properties::RULES, format!("'{name}' in a rule must not be empty")));
        }
        if self.users.is_empty() && self.groups.is_empty() {
            return Err(of_rule(&["users", "groups"]));
        }
        if self.commands.is_empty() { Err(of_rule(&["commands"])) } else { Ok(()) }
    }

    /// The rule as a line of sudoers(5).
    pub(super) fn line(&self) -> String {
        let groups = self.groups.iter().map(|group| format!("%{}", group.0.0));
        let who: Vec<String> = self.users.iter().map(|user| user.0.to_owned()).chain(groups).collect();
        let hosts = self.hosts.as_ref().map_or_else(|| "ALL".to_owned(), |hosts| list(hosts));
        let commands: Vec<&str> = self.commands.iter().map(|command| command.0.trim_start()).collect();
        let (run_as, tags) = (self.run_as(), self.tags());
        format!("{} {hosts}={run_as}{tags}{}\n", who.join(","), commands.join(", "))
    }

    fn run_as(&self) -> String {
        match (self.run_as.as_deref(), self.run_as_groups.as_deref()) {
            (None, None) => String::new(),
            (users, None) => format!("({}) ", list(users.unwrap_or_default())),
            (users, Some(groups)) => format!("({}:{}) ", list(users.unwrap_or_default()), list(groups)),
        }
    }

    fn tags(&self) -> String {
        let tags = [
            (self.nopasswd, "NOPASSWD: ", "PASSWD: "),
            (self.setenv, "SETENV: ", "NOSETENV: "),
            (self.noexec, "NOEXEC: ", "EXEC: "),
        ];
        tags.into_iter().filter_map(|(stated, yes, no)| stated.map(|on| if on { yes } else { no })).collect()
    }
}

/// The failure that a rule lacks what it cannot do without.
fn of_rule(any_of: &[&str]) -> Failure {
    let missing = required(any_of);
    Failure { property: Some("/rules".to_owned()), ..missing }
}

fn list(words: &[SudoersWord<'_>]) -> String {
    words.iter().map(|word| word.0).collect::<Vec<_>>().join(",")
}
