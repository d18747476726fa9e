//! `Stead/Git`: a working tree of a Git repository, at a revision.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;
use schemars::JsonSchema;
use serde::Deserialize;
use stead_core::call::{Execution, Failure, FailureKind, Presumed};
use stead_core::claims::{Claims, Extent};
use stead_core::destruction::{Effect, Effects, Item, ItemKind};
use stead_core::manifest::SecretForm;
use stead_core::value::{Object, Value};
use stead_host::fs::{self, Kind, Patience, Place};
use stead_host::provider::{Context, Cost, Plain, Provider, SetReply, State, TestReply};

use crate::input::{PathText, ReadOnly, RepositoryAddress, Revision, read, read_each, refused, required};
use crate::{ALL_BUT_EXPORT, BuiltIn, Profile, is_wanted, pending, removal, reply, schema, with_secrets};

mod program;
mod repository;

use program::{Git, Remote};
use repository::{CHECKED_OUT, Repository, is_commit};

const PROFILE: Profile = Profile {
    type_name: "Stead/Git",
    description: "A working tree of a Git repository, at a revision.",
    example: include_str!("example.yaml"),
    tags: &["git", "repository", "linux"],
    capabilities: ALL_BUT_EXPORT,
    schema: schema::of::<Properties<'_>>,
};

/// A working tree of a Git repository, at a revision. What is checked out is read from the files of the repository; to
/// change it, the program git is called, which asks nobody, ignores the settings of the user and the system, and runs no
/// hooks. HEAD is detached. Submodules are not fetched. Files that Git does not track stay.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(title = "Stead/Git")]
#[expect(dead_code, reason = "what is read-only is declared for the schema and for its message")]
struct Properties<'a> {
    /// The directory of the working tree. A relative path starts at the directory of the document, or at the system root
    /// that was given. Its parent directory must exist, and it must be empty unless it is a repository already.
    #[serde(borrow)]
    path: PathText<'a>,
    /// Where it is cloned from: a URL with https, http, ssh, git or file, an address such as 'git@host:path', or a path. A
    /// password in it is handed to git, not stored and never shown.
    #[serde(borrow)]
    repository: Option<RepositoryAddress<'a>>,
    /// A branch, a tag, or a commit by all of its digits.
    #[serde(borrow)]
    revision: Option<Revision<'a>>,
    /// Whether the remote repository is asked each time where a branch or tag is. Without it, the commit that it was at when
    /// it was checked out counts.
    #[serde(default)]
    #[schemars(extend("writeOnly" = true))]
    update: bool,
    /// Whether changes of tracked files, and commits that no branch has, are discarded. Without it they keep a set from
    /// checking anything out.
    #[serde(default)]
    #[schemars(extend("writeOnly" = true))]
    force: bool,
    /// How many commits of the history are fetched; all without it.
    #[schemars(range(min = 1), extend("writeOnly" = true))]
    depth: Option<u32>,
    /// Whether the working tree exists. With false it is removed with everything in it; changed files only with 'force'.
    #[serde(rename = "_exist", default = "is_wanted")]
    exist: bool,
    /// The commit that is checked out.
    commit: Option<ReadOnly<String>>,
    /// The tracked files that differ from that commit.
    modified: Option<ReadOnly<Vec<String>>>,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {
    fn check(&self) -> Result<(), Failure> {
        if self.depth == Some(0) {
            return Err(crate::input::invalid("depth", "'depth' must be at least 1"));
        }
        match (&self.repository, &self.revision) {
            _ if !self.exist => Ok(()),
            (None, _) => Err(required(&["repository"])),
            (_, None) => Err(required(&["revision"])),
            _ => Ok(()),
        }
    }
}

pub(crate) fn built_in() -> Option<BuiltIn> {
    let built_in = with_secrets(PROFILE.built_in(Arc::new(WorkingTrees))?, &[("repository", SecretForm::Credentials)]);
    Some(BuiltIn { keys: &["path"], ..built_in })
}

struct WorkingTrees;

impl Provider for WorkingTrees {
    fn validate(&self, _cx: &Context, input: &Plain) -> Result<(), Failure> {
        read::<Properties<'_>>(input).map(|_| ())
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let desired = Desired::of(cx, &read_each(input)?);
        let found = Repository::at(&desired.path)?;
        let mut state = desired.actual(found.as_ref(), &[])?;
        if let Some(commit) = found.and_then(|found| found.head) {
            state.insert("commit".to_owned(), Value::from(commit));
        }
        Ok(Plain::new(state))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired = Desired::of(cx, &read(input)?);
        let found = Repository::at(&desired.path)?;
        let plan = desired.plan(cx, found.as_ref(), Depth::Test)?;
        let mut actual = desired.actual(found.as_ref(), &plan.differing)?;
        if !plan.modified.is_empty() {
            actual.insert("modified".to_owned(), Value::from(plan.modified.clone()));
        }
        let differing = plan.differing.clone();
        Ok(reply::tested_as(actual, &differing, desired.reply(cx, &plan)?))
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired = Desired::of(cx, &read(input)?);
        let found = Repository::at(&desired.path)?;
        let plan = match desired.plan(cx, found.as_ref(), Depth::Set) {
            Err(failure) if execution == Execution::WhatIf => return desired.presumed(cx, found.as_ref(), failure),
            plan => plan?,
        };
        desired.check_kept(found.as_ref(), &plan)?;
        let mut reply = desired.reply(cx, &plan)?;
        match execution {
            _ if plan.differing.is_empty() => {}
            Execution::WhatIf => reply.presumed = pending::at(&desired.path)?,
            Execution::Actual => desired.carry_out(cx, found.as_ref(), &plan)?,
        }
        Ok(reply)
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        let desired = Desired { exist: false, ..Desired::of(cx, &read_each(input)?) };
        let found = Repository::at(&desired.path)?;
        let plan = desired.plan(cx, found.as_ref(), Depth::Set)?;
        desired.check_kept(found.as_ref(), &plan)?;
        match execution {
            _ if plan.differing.is_empty() => Ok(Vec::new()),
            Execution::WhatIf => Ok(plan.what_if(&desired)),
            Execution::Actual => desired.carry_out(cx, found.as_ref(), &plan).map(|()| Vec::new()),
        }
    }

    fn cost(&self, _desired: &Value) -> Cost {
        Cost::Process
    }

    fn claims(&self, input: &Plain) -> Option<Claims> {
        let extent = if reply::is_removal(input) { Extent::Absent } else { Extent::Tree { purge: false } };
        reply::claims(input, extent)
    }
}

/// How much is found out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// Whether anything differs.
    Test,
    /// What it takes to change it, too.
    Set,
}

/// What differs, and what is to be checked out.
#[derive(Default)]
struct Plan {
    differing: Vec<&'static str>,
    /// The commit, where it was needed.
    commit: Option<String>,
    /// The reference in the remote repository, of a branch or tag.
    reference: Option<String>,
    /// The changed files, where they were looked for.
    modified: Vec<String>,
    /// Whether the repository is new.
    creates: bool,
}

impl Plan {
    fn what_if(&self, desired: &Desired<'_>) -> Vec<String> {
        let revision = desired.revision.unwrap_or_default();
        let commit = self.commit.as_deref().map(|commit| format!(" ({commit:.12})")).unwrap_or_default();
        match (desired.exist, self.creates) {
            _ if self.differing.is_empty() => Vec::new(),
            (false, _) => vec!["remove the working tree with everything in it".to_owned()],
            (true, true) => vec![format!("clone it and check out {revision}{commit}")],
            (true, false) => vec![format!("check out {revision}{commit}")],
        }
    }
}

struct Desired<'a> {
    path_text: &'a str,
    path: PathBuf,
    remote: Option<Remote>,
    revision: Option<&'a str>,
    update: bool,
    force: bool,
    depth: Option<u32>,
    exist: bool,
}

impl<'a> Desired<'a> {
    fn of(cx: &Context, stated: &Properties<'a>) -> Self {
        Self {
            path_text: stated.path.0,
            path: stated.path.resolve(cx),
            remote: stated.repository.as_ref().map(|repository| Remote::of(cx, repository.0)),
            revision: stated.revision.as_ref().map(|revision| revision.0),
            update: stated.update,
            force: stated.force,
            depth: stated.depth,
            exist: stated.exist,
        }
    }

    fn git<'g>(&'g self, cx: &'g Context) -> Result<Git<'g>, Failure> {
        let remote = self.remote.as_ref().ok_or_else(|| required(&["repository"]))?;
        Ok(Git { cx, remote, path: &self.path })
    }

    fn plan(&self, cx: &Context, found: Option<&Repository>, depth: Depth) -> Result<Plan, Failure> {
        if !self.exist {
            return self.plan_removal(cx, found);
        }
        let Some(found) = found else {
            self.check_empty()?;
            let plan = Plan { differing: vec!["_exist"], creates: true, ..Plan::default() };
            return if depth == Depth::Test { Ok(plan) } else { self.with_target(cx, plan) };
        };
        let mut plan = Plan::default();
        let address = self.remote.as_ref().map(|remote| remote.address.as_str());
        if address.is_some() && found.origin()?.as_deref() != address {
            plan.differing.push("repository");
        }
        if self.is_checked_out(found)? != Some(true) || self.update {
            plan = self.with_target(cx, plan)?;
            if plan.commit != found.head {
                plan.differing.push("revision");
            }
        }
        let discards = self.force || plan.differing.contains(&"revision");
        if discards && found.head.is_some() {
            plan.modified = self.git(cx)?.modified()?;
            plan.differing.extend((self.force && !plan.modified.is_empty()).then_some("modified"));
            plan.commit = plan.commit.or_else(|| found.head.clone());
        }
        Ok(plan)
    }

    fn plan_removal(&self, cx: &Context, found: Option<&Repository>) -> Result<Plan, Failure> {
        let Some(found) = found else { return Ok(Plan::default()) };
        let nothing = Remote::of(cx, "/");
        let git = Git { cx, remote: self.remote.as_ref().unwrap_or(&nothing), path: &self.path };
        let modified = if self.force || found.head.is_none() { Vec::new() } else { git.modified()? };
        Ok(Plan { differing: vec!["_exist"], modified, ..Plan::default() })
    }

    /// Whether the revision is checked out, as far as the repository tells.
    fn is_checked_out(&self, found: &Repository) -> Result<Option<bool>, Failure> {
        let Some(revision) = self.revision else { return Ok(None) };
        let commit = if is_commit(revision) {
            Some(revision.to_owned())
        } else {
            found.reference(&format!("{CHECKED_OUT}/{revision}"))?
        };
        Ok(commit.map(|commit| found.head.as_deref() == Some(commit.as_str())))
    }

    /// With the commit that is to be checked out, for which the remote repository is asked unless it is stated.
    fn with_target(&self, cx: &Context, plan: Plan) -> Result<Plan, Failure> {
        let revision = self.revision.unwrap_or_default();
        if is_commit(revision) {
            return Ok(Plan { commit: Some(revision.to_owned()), ..plan });
        }
        let (reference, commit) = self.git(cx)?.find_remote(revision)?;
        Ok(Plan { commit: Some(commit), reference: Some(reference), ..plan })
    }

    /// Refuses to clone into a directory that holds something.
    fn check_empty(&self) -> Result<(), Failure> {
        let Some(directory) = fs::open(&self.path, OFlags::PATH)? else { return Ok(()) };
        let status = rustix::fs::fstat(&directory).map(fs::Status::from);
        let status = status.map_err(|errno| crate::input::cannot("examine", &self.path, errno))?;
        let problem = match status.kind {
            Kind::Directory => {
                let opened = fs::open(&self.path, OFlags::RDONLY | OFlags::DIRECTORY)?;
                let entries = opened.map(|directory| fs::entries(&directory, &self.path)).transpose()?;
                entries.is_some_and(|entries| !entries.is_empty()).then(|| "holds files, and no repository".to_owned())
            }
            found => Some(format!("is a {}", found.word())),
        };
        let hint = "Remove it first";
        problem.map_or(Ok(()), |problem| Err(refused("path", format!("'{}' {problem}. {hint}", self.path.display()))))
    }

    /// Refuses to discard what nobody allowed to be discarded.
    fn check_kept(&self, found: Option<&Repository>, plan: &Plan) -> Result<(), Failure> {
        let changes = plan.differing.iter().any(|name| *name != "repository");
        let Some(found) = found.filter(|_| changes && !self.force) else { return Ok(()) };
        if let Some(first) = plan.modified.first() {
            let more = plan.modified.len() - 1;
            let others = if more > 0 { format!(" and {more} more") } else { String::new() };
            let hint = "Commit the changes, or add 'force: true' to discard them";
            return Err(refused("path", format!("'{first}'{others} was changed in the working tree. {hint}")));
        }
        if !found.keeps_head()? {
            let hint = "Give it a branch, or add 'force: true' to discard it";
            return Err(refused("path", format!("the commit that is checked out is on no branch. {hint}")));
        }
        Ok(())
    }

    fn actual(&self, found: Option<&Repository>, differing: &[&str]) -> Result<Object, Failure> {
        let mut state = reply::state(self.path_text, found.is_some());
        let Some(found) = found.filter(|_| self.exist) else { return Ok(state) };
        if let Some(origin) = found.origin()? {
            state.insert("repository".to_owned(), Value::from(without_password(origin)));
        }
        let as_desired = !differing.contains(&"revision") && self.is_checked_out(found)? == Some(true);
        let revision = self.revision.filter(|_| as_desired).or(found.head.as_deref());
        state.extend(revision.map(|revision| ("revision".to_owned(), Value::from(revision))));
        Ok(state)
    }

    /// The answer to a set that does this.
    fn reply(&self, cx: &Context, plan: &Plan) -> Result<SetReply, Failure> {
        let mut after = reply::state(self.path_text, self.exist);
        if let (true, Some(remote), Some(revision)) = (self.exist, &self.remote, self.revision) {
            after.insert("repository".to_owned(), Value::from(remote.address.as_str()));
            after.insert("revision".to_owned(), Value::from(revision));
        }
        let reply = reply::set(after, &plan.differing, plan.what_if(self));
        if plan.differing.is_empty() {
            return Ok(reply);
        }
        let mut effects = Effects::of(match (self.exist, plan.creates) {
            (false, _) => Effect::Remove,
            (true, true) => Effect::Create,
            (true, false) => Effect::Change,
        });
        if self.exist {
            effects.destroys.extend(plan.modified.iter().filter(|_| self.force).filter_map(|name| self.lost(name)));
        } else if let Some(place) = Place::find(&self.path, &cx.writes)? {
            effects.destroys.extend(removal::item(&place, self.path_text.to_owned(), &Patience::of(cx))?);
        }
        Ok(SetReply { effects, ..reply })
    }

    /// A changed file whose content is discarded.
    fn lost(&self, name: &str) -> Option<Item> {
        let size = self.path.join(name).symlink_metadata().ok().filter(std::fs::Metadata::is_file)?.len();
        let path = removal::shown(self.path_text, Path::new(name));
        Some(Item { path, kind: ItemKind::Content { size, sha256: None } })
    }

    /// In what-if: git, or a repository on this machine, may come from an instance before.
    fn presumed(&self, cx: &Context, found: Option<&Repository>, failure: Failure) -> Result<SetReply, Failure> {
        let directory = self.remote.as_ref().and_then(|remote| remote.directory.clone());
        let paths = match directory.filter(|directory| !directory.exists()) {
            Some(directory) => vec![directory],
            None if failure.kind == FailureKind::Start => vec![PathBuf::from("/usr/bin/git")],
            None => return Err(failure),
        };
        let differing = if found.is_none() { "_exist" } else { "revision" };
        let plan = Plan { differing: vec![differing], creates: found.is_none(), ..Plan::default() };
        Ok(SetReply { presumed: Some(Presumed { failure, paths }), ..self.reply(cx, &plan)? })
    }

    fn carry_out(&self, cx: &Context, found: Option<&Repository>, plan: &Plan) -> Result<(), Failure> {
        if !self.exist {
            let place = Place::find(&self.path, &cx.writes)?;
            return place.map_or(Ok(()), |place| Ok(fs::remove_tree(&place, &Patience::of(cx)).map(|_| ())?));
        }
        let git = self.git(cx)?;
        if found.is_none() {
            if Place::find(&self.path, &cx.writes)?.is_none() {
                return Err(pending::no_directory(&self.path));
            }
            let path = self.path.display().to_string();
            let made = git.outside(&["init", "--quiet", "--template=", "--", &path])?;
            if made.code != 0 {
                return Err(made.failure("git init"));
            }
        }
        git.must(&["config", "remote.origin.url", &git.remote.address])?;
        git.must(&["config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"])?;
        plan.commit.as_deref().map_or(Ok(()), |commit| self.check_out(&git, plan, commit))
    }

    fn check_out(&self, git: &Git<'_>, plan: &Plan, commit: &str) -> Result<(), Failure> {
        let object = format!("{commit}^{{commit}}");
        if git.within(&["cat-file", "-e", &object])?.code != 0 {
            self.fetch(git, plan, commit)?;
        }
        let force: &[&str] = if self.force { &["--force"] } else { &[] };
        git.must(&[&["checkout", "--quiet", "--detach"], force, &[commit, "--"]].concat())?;
        match self.revision.filter(|revision| !is_commit(revision)) {
            Some(revision) => git.must(&["update-ref", &format!("{CHECKED_OUT}/{revision}"), commit]).map(|_| ()),
            None => Ok(()),
        }
    }

    fn fetch(&self, git: &Git<'_>, plan: &Plan, commit: &str) -> Result<(), Failure> {
        let depth = self.depth.map(|depth| format!("--depth={depth}"));
        let options = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules"];
        let options: Vec<&str> = options.into_iter().chain(depth.as_deref()).collect();
        let address = git.remote.address.as_str();
        let what = plan.reference.as_deref().unwrap_or(commit);
        let fetched = git.within(&[options.as_slice(), &["--", address, what]].concat())?;
        if fetched.code == 0 {
            return Ok(());
        }
        if plan.reference.is_some() {
            return Err(fetched.failure("git fetch"));
        }
        // Not every server hands out a commit by its number.
        let all = ["+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"];
        git.must(&[&["fetch", "--quiet", "--no-recurse-submodules", "--", address], all.as_slice()].concat())
            .map(|_| ())
    }
}

/// An address without the password that somebody stored in it.
fn without_password(address: String) -> String {
    let Ok(mut url) = url::Url::parse(&address) else { return address };
    if url.password().is_none() {
        return address;
    }
    // What has a password has room for another.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string()
}
