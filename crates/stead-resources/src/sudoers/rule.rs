//! A rule of sudo: who may run what as whom.

use schemars::JsonSchema;
use serde::Deserialize;
use stead_core::call::Failure;

use crate::input::{SudoersCommand, SudoersWord, required};

/// Who may run what as whom.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub(super) struct Rule<'a> {
    /// The users who may. Either they or 'groups' are required.
    #[serde(borrow, default)]
    #[schemars(extend("default" = []))]
    users: Vec<SudoersWord<'a>>,
    /// The groups whose members may, without '%'.
    #[serde(borrow, default)]
    #[schemars(extend("default" = []))]
    groups: Vec<SudoersWord<'a>>,
    /// The hosts on which they may; ALL without it.
    #[serde(borrow)]
    hosts: Option<Vec<SudoersWord<'a>>>,
    /// The users as whom they may, or ALL. Only as root without it and 'runAsGroups'.
    #[serde(borrow)]
    run_as: Option<Vec<SudoersWord<'a>>>,
    /// The groups as which they may, or ALL.
    #[serde(borrow)]
    run_as_groups: Option<Vec<SudoersWord<'a>>>,
    /// The commands that they may run, by absolute paths, or ALL. As sudoers(5) has them: a backslash stands before ',', ':'
    /// and '=' in arguments.
    #[serde(borrow)]
    commands: Vec<SudoersCommand<'a>>,
    /// Whether they need no password. Without it, what the other settings of sudo say.
    nopasswd: Option<bool>,
    /// Whether they may set variables of the environment.
    setenv: Option<bool>,
    /// Whether the commands may not run others.
    noexec: Option<bool>,
}

impl Rule<'_> {
    /// What must hold between properties.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let is_empty = |words: &Option<Vec<SudoersWord<'_>>>| words.as_ref().is_some_and(Vec::is_empty);
        let empty = [("hosts", &self.hosts), ("runAs", &self.run_as), ("runAsGroups", &self.run_as_groups)];
        if let Some((name, _)) = empty.into_iter().find(|(_, words)| is_empty(words)) {
            return Err(crate::input::invalid("rules", format!("'{name}' in a rule must not be empty")));
        }
        if self.users.is_empty() && self.groups.is_empty() {
            return Err(of_rule(&["users", "groups"]));
        }
        if self.commands.is_empty() { Err(of_rule(&["commands"])) } else { Ok(()) }
    }

    /// The rule as a line of sudoers(5).
    pub(super) fn line(&self) -> String {
        let groups = self.groups.iter().map(|group| format!("%{}", group.0));
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
