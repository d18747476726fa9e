//! `Stead/Git`: a working tree of a Git repository, at a revision.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use stead_core::call::{Execution, Failure, FailureKind, Presumed};
use stead_core::claims::{Claims, Extent, Ties};
use stead_core::destruction::{Effect, Effects};
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Binding, Context, Cost, Lint, Linter, Plain, Provider, SetReply, State, TestReply};
use stead_system::fs::{self, FileKind, How, Place, SystemPath};

use crate::declared::Declared as _;
use crate::input::{PathText, ReadOnly, RepositoryAddress, Revision, blocked, invalid, read, read_each, transient};
use crate::text::NewAccountName;
use crate::{BuiltIn, credentials, pending, removal, reply};

mod checkout;
pub mod isolation;
mod lints;
mod losses;
mod program;
mod repository;
mod trust;
mod user;

use losses::Losses;
use program::{Git, Remote};
use repository::{Repository, is_commit, record_of};
use user::AsUser;

/// A working tree of a Git repository, at a revision. What is checked out is read from the files of the repository; to
/// change it, the program git is called, which asks nobody, ignores the settings of the user and the system, and runs no
/// hooks. HEAD is detached. Submodules are not fetched. Files that Git does not track stay. If git runs as root,
/// nobody else may be able to write to the repository or to a directory above it; state 'user' for a repository of another user.
#[resource(
    "Stead/Git",
    about = "A working tree of a Git repository, at a revision.",
    tags("git", "repository", "linux"),
    undo = Cannot
)]
struct Properties<'a> {
    /// The directory of the working tree. A relative path starts at the directory of the document, or at the system root
    /// that was given. Its parent directory must exist, and it must be empty unless it is a repository already. It is not a
    /// symbolic link.
    #[property(key, place)]
    path: PathText<'a>,
    /// Where it is cloned from: a URL with https, http, ssh, git or file, an address such as 'git@host:path', or a path.
    /// Required unless '_exist' is false. A user and a password in a URL with https or http are handed to git, not stored and
    /// never shown; redirects are refused then.
    #[property(credentials, required)]
    repository: Option<RepositoryAddress<'a>>,
    /// A branch, a tag, or a commit by all of its digits. Required unless '_exist' is false.
    #[property(required)]
    revision: Option<Revision<'a>>,
    /// Whether the remote repository is asked each time where a branch or tag is. Without it, the commit that it was at when
    /// it was checked out counts.
    #[property(option)]
    update: bool,
    /// Whether changes of tracked files, files in the way that git does not track, and commits that are on no branch are
    /// discarded. Without it they keep a set from checking anything out.
    #[property(option)]
    force: bool,
    /// The user that git runs as, with the SSH keys in the home directory of that user. The working tree must belong to this
    /// user; a new one does. By default git runs as the user who runs stead. Only root can state another user.
    #[property(option)]
    user: Option<NewAccountName<'a>>,
    /// How many commits of the history are fetched; all without it.
    #[property(option)]
    #[schemars(range(min = 1))]
    depth: Option<u32>,
    /// Whether the working tree exists. With false it is removed with everything in it; changed files, submodules, and commits
    /// that were not pushed only with 'force'.
    exist: bool,
    /// The commit that is checked out.
    #[property(shown)]
    commit: Option<ReadOnly<String>>,
    /// The tracked files that differ from that commit.
    modified: Option<ReadOnly<Vec<String>>>,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {
    fn check(&self) -> Result<(), Failure> {
        if self.depth == Some(0) { Err(invalid(Properties::DEPTH, "'depth' must be at least 1")) } else { Ok(()) }
    }
}

pub(crate) fn built_in() -> Option<BuiltIn> {
    Properties::built_in(Arc::new(WorkingTrees))
}

struct WorkingTrees;

impl Provider for WorkingTrees {
    fn linter(&self) -> Option<&dyn Linter> {
        const LINTER: fn(&Object) -> Vec<Lint> = lints::lints;
        Some(&LINTER)
    }

    fn validate(&self, _cx: &Context, input: &Plain) -> Result<(), Failure> {
        read::<Properties<'_>>(input).map(|_| ())
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let stated: Properties<'_> = read_each(input)?;
        let desired = Desired::of(cx, &stated)?;
        let found = desired.find()?;
        let mut state = desired.actual(found.as_ref())?;
        if let Some(commit) = found.and_then(|found| found.head) {
            state.insert(Properties::COMMIT.to_owned(), Value::from(commit));
        }
        Ok(Plain::new(state))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired = Desired::of(cx, &read(input)?)?;
        let found = desired.find()?;
        let plan = desired.plan(cx, found.as_ref(), Depth::Test)?;
        let mut actual = desired.actual(found.as_ref())?;
        if let Some(head) = found.as_ref().and_then(|found| found.head.as_ref()).filter(|_| plan.checks_out()) {
            actual.insert(Properties::COMMIT.to_owned(), Value::from(head.as_str()));
        }
        if !plan.losses.modified.is_empty() {
            actual.insert(Properties::MODIFIED.to_owned(), Value::from(plan.losses.modified.clone()));
        }
        if plan.checks_out() && plan.commit.is_none() {
            return Ok(reply::tested(actual, &plan.differing));
        }
        Ok(reply::tested_as(actual, &plan.differing, desired.reply(cx, &plan)?))
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired = Desired::of(cx, &read(input)?)?;
        let found = desired.find()?;
        let plan = match desired.plan(cx, found.as_ref(), Depth::Set) {
            Err(failure) if execution == Execution::WhatIf => return desired.presumed(cx, found.as_ref(), failure),
            plan => plan?,
        };
        desired.check_kept(&plan)?;
        let mut reply = desired.reply(cx, &plan)?;
        match execution {
            _ if plan.differing.is_empty() => {}
            Execution::WhatIf if !desired.exist => reply.presumed = pending::not_removable(&desired.path)?,
            Execution::WhatIf => reply.presumed = pending::at(&desired.path)?,
            Execution::Actual => desired.carry_out(cx, &plan)?,
        }
        Ok(reply)
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        let desired = Desired { exist: false, ..Desired::of(cx, &read_each(input)?)? };
        let found = desired.find()?;
        let plan = desired.plan(cx, found.as_ref(), Depth::Set)?;
        desired.check_kept(&plan)?;
        match execution {
            _ if plan.differing.is_empty() => Ok(Vec::new()),
            Execution::WhatIf => Ok(plan.what_if(&desired)),
            Execution::Actual => desired.carry_out(cx, &plan).map(|()| Vec::new()),
        }
    }

    fn cost(&self, _desired: &Value) -> Cost {
        Cost::Process
    }

    fn ties(&self, input: &Plain) -> Ties {
        reply::ties(input).and_packages(["git"])
    }

    fn claims(&self, input: &Plain) -> Option<Claims> {
        let extent = if reply::is_removal(input) { Extent::Absent } else { Extent::Tree { purge: false } };
        reply::claims(input, extent)
    }
}

/// How much is found out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// Whether anything differs. The remote repository is asked only where the document says so.
    Test,
    /// What it takes to change it, and what would be lost, too.
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
    /// Whether the repository has that commit, so that what is in its way is among the losses.
    has_commit: bool,
    /// What a set discards, where that was looked for.
    losses: Losses,
    /// Whether the repository is new.
    creates: bool,
    /// Whether a first checkout is continued, so that the files that git does not track come from it.
    continues: bool,
}

impl Plan {
    /// Returns whether anything is to be checked out in a repository that is there.
    fn checks_out(&self) -> bool {
        self.differing.contains(&Properties::REVISION)
    }

    fn what_if(&self, desired: &Desired<'_>) -> Vec<String> {
        let revision = desired.revision.unwrap_or_default();
        let commit = self.commit.as_deref().map(|commit| format!(" ({commit:.12})")).unwrap_or_default();
        let losses = self.losses.what_if();
        match (desired.exist, self.creates) {
            _ if self.differing.is_empty() => Vec::new(),
            (false, _) => vec!["remove the working tree with everything in it".to_owned()],
            (true, true) => vec![format!("clone it and check out {revision}{commit}")],
            (true, false) if self.differing == [Properties::REPOSITORY] => {
                vec!["change the address of the remote".to_owned()]
            }
            (true, false) => [losses, vec![format!("check out {revision}{commit}")]].concat(),
        }
    }
}

struct Desired<'a> {
    path_text: &'a str,
    path: SystemPath,
    remote: Option<Remote>,
    revision: Option<&'a str>,
    user: Option<AsUser<'a>>,
    update: bool,
    force: bool,
    depth: Option<u32>,
    exist: bool,
    /// When all calls of git together must have ended.
    until: Option<Instant>,
}

impl<'a> Desired<'a> {
    fn of(cx: &Context, stated: &Properties<'a>) -> Result<Self, Failure> {
        Ok(Self {
            user: stated.user.as_ref().map(|user| AsUser::find(cx, user.0)).transpose()?,
            path_text: stated.path.0,
            path: stated.path.resolve(cx),
            remote: stated.repository.as_ref().map(|repository| Remote::of(cx, repository.0)),
            revision: stated.revision.as_ref().map(|revision| revision.0),
            update: stated.update,
            force: stated.force,
            depth: stated.depth,
            exist: stated.exist,
            until: Instant::now().checked_add(cx.deadline),
        })
    }

    fn find(&self) -> Result<Option<Repository>, Failure> {
        Repository::at(&self.path, self.user.as_ref().and_then(AsUser::uid))
    }

    fn git<'g>(&'g self, cx: &'g Context) -> Git<'g> {
        Git { cx, remote: self.remote.as_ref(), path: &self.path, user: self.user.as_ref(), until: self.until }
    }

    fn plan(&self, cx: &Context, found: Option<&Repository>, depth: Depth) -> Result<Plan, Failure> {
        if !self.exist {
            return self.plan_removal(cx, found, depth);
        }
        let Some(found) = found else {
            self.check_empty()?;
            let plan = Plan { differing: vec![Properties::EXIST], creates: true, ..Plan::default() };
            if depth == Depth::Test {
                return Ok(plan);
            }
            self.check_trusted(cx)?;
            return self.with_target(cx, None, plan);
        };
        let mut plan = Plan::default();
        let address = self.remote.as_ref().map(|remote| remote.address.as_str());
        plan.differing.extend((found.origin()?.as_deref() != address).then_some(Properties::REPOSITORY));
        let is_checked_out = self.is_checked_out(found)?;
        let asks = self.update || depth == Depth::Set && !is_checked_out;
        // To ask a repository on this machine is to call git in it.
        if self.force || asks || depth == Depth::Set && !plan.differing.is_empty() {
            self.check_trusted(cx)?;
        }
        if asks {
            plan = self.with_target(cx, found.head.as_deref(), plan)?;
        }
        let moves = plan.commit.is_some() && plan.commit != found.head;
        plan.differing.extend((moves || !is_checked_out).then_some(Properties::REVISION));
        let discards = self.force || depth == Depth::Set && plan.checks_out();
        if discards { self.with_losses(cx, found, plan) } else { Ok(plan) }
    }

    fn check_trusted(&self, cx: &Context) -> Result<(), Failure> {
        trust::check(&self.git(cx)).map_err(|presumed| presumed.failure)
    }

    /// With what is lost when something is checked out, and that changed files are to be discarded.
    fn with_losses(&self, cx: &Context, found: &Repository, mut plan: Plan) -> Result<Plan, Failure> {
        let git = self.git(cx);
        plan.continues = found.is_unfinished()?;
        plan.losses.modified = git.modified()?;
        if let Some(commit) = &plan.commit {
            plan.has_commit = git.has(commit)?;
            if plan.has_commit {
                plan.losses.untracked = losses::in_the_way(&git, commit)?;
            }
            if let Some(head) = found.head.as_ref().filter(|head| *head != commit) {
                plan.losses.commit = (!git.is_kept(head)?).then(|| head.clone());
            }
        }
        let discards = self.force && !plan.losses.modified.is_empty();
        plan.differing.extend(discards.then_some(Properties::MODIFIED));
        Ok(plan)
    }

    fn plan_removal(&self, cx: &Context, found: Option<&Repository>, depth: Depth) -> Result<Plan, Failure> {
        let Some(found) = found else { return Ok(Plan::default()) };
        let mut plan = Plan { differing: vec![Properties::EXIST], ..Plan::default() };
        if depth == Depth::Set && !self.force && found.has_objects()? {
            self.check_trusted(cx)?;
            let git = self.git(cx);
            plan.losses = Losses {
                modified: git.modified()?,
                unpushed: git.unpushed(found.head.as_deref())?,
                submodules: found.has_submodules()?,
                ..Losses::default()
            };
        }
        Ok(plan)
    }

    /// Returns whether the revision is checked out, as far as the repository tells.
    fn is_checked_out(&self, found: &Repository) -> Result<bool, Failure> {
        let commit = match self.revision {
            None => None,
            Some(revision) if is_commit(revision) => Some(revision.to_owned()),
            Some(revision) => found.reference(&record_of(revision))?,
        };
        Ok(commit.is_some() && commit == found.head)
    }

    /// With the commit that is to be checked out, for which the remote repository is asked unless it is stated. A branch or tag
    /// that was moved since a plan was shown is still where the plan has it; at `head`, where it has shown no change.
    fn with_target(&self, cx: &Context, head: Option<&str>, plan: Plan) -> Result<Plan, Failure> {
        let revision = self.revision.unwrap_or_default();
        if is_commit(revision) {
            return Ok(Plan { commit: Some(revision.to_owned()), ..plan });
        }
        let (reference, now) = self.git(cx).find_remote(revision)?;
        let commit = match &cx.binding {
            Binding::None => now,
            Binding::Plan(shown) => {
                let shown = shown.as_ref().and_then(|changed| changed.after.get(Properties::COMMIT)?.as_str());
                shown.or(head).ok_or_else(|| transient(Properties::REVISION, checkout::MOVED))?.to_owned()
            }
        };
        Ok(Plan { commit: Some(commit), reference: Some(reference), ..plan })
    }

    /// Refuses to clone into a directory that holds something.
    fn check_empty(&self) -> Result<(), Failure> {
        let Some(directory) = fs::open(&self.path, How::Look)? else { return Ok(()) };
        let status = fs::status_of(&directory, &self.path)?;
        let problem = match status.kind {
            FileKind::Directory => {
                let opened = fs::open(&self.path, How::Directory)?;
                let entries = opened.map(|directory| fs::entries(&directory, &self.path)).transpose()?;
                entries.is_some_and(|entries| !entries.is_empty()).then(|| "holds files, and no repository".to_owned())
            }
            found => Some(format!("is a {}", found.word())),
        };
        let hint = "Remove it first";
        problem.map_or(Ok(()), |problem| {
            Err(blocked(Properties::PATH, format!("'{}' {problem}. {hint}", self.path.display())))
        })
    }

    /// Refuses to discard what nobody allowed to be discarded.
    fn check_kept(&self, plan: &Plan) -> Result<(), Failure> {
        if self.discards(plan) { Ok(()) } else { plan.losses.refuse() }
    }

    fn discards(&self, plan: &Plan) -> bool {
        self.force || (plan.continues && plan.losses.modified.is_empty())
    }

    fn actual(&self, found: Option<&Repository>) -> Result<Object, Failure> {
        let mut state = reply::state(self.path_text, found.is_some());
        let Some(found) = found.filter(|_| self.exist) else { return Ok(state) };
        if let Some(origin) = found.origin()? {
            state.insert(Properties::REPOSITORY.to_owned(), Value::from(credentials::without(&origin)));
        }
        // A branch that has moved is still the one that is stated: the commits tell what differs.
        let revision = if self.is_checked_out(found)? { self.revision } else { None };
        let revision = revision.or(found.head.as_deref());
        state.extend(revision.map(|revision| (Properties::REVISION.to_owned(), Value::from(revision))));
        Ok(state)
    }

    /// The answer to a set that does this.
    fn reply(&self, cx: &Context, plan: &Plan) -> Result<SetReply, Failure> {
        let mut after = reply::state(self.path_text, self.exist);
        if let (true, Some(remote), Some(revision)) = (self.exist, &self.remote, self.revision) {
            after.insert(Properties::REPOSITORY.to_owned(), Value::from(remote.address.as_str()));
            after.insert(Properties::REVISION.to_owned(), Value::from(revision));
            after.extend(plan.commit.as_deref().map(|commit| (Properties::COMMIT.to_owned(), Value::from(commit))));
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
        if !self.exist {
            if let Some(place) = Place::find(&self.path, &cx.writes)? {
                effects.destroys.extend(removal::item(&place, self.path_text.to_owned(), &cx.patience())?);
            }
        } else if self.discards(plan) {
            effects.destroys.extend(plan.losses.items(cx, &self.path, self.path_text)?);
        }
        Ok(SetReply { effects, ..reply })
    }

    /// In what-if: git, or a repository on this machine, may come from an instance before, and another may change who can
    /// write to a directory.
    fn presumed(&self, cx: &Context, found: Option<&Repository>, failure: Failure) -> Result<SetReply, Failure> {
        let directory = self.remote.as_ref().and_then(|remote| remote.directory.clone());
        let distrusted = trust::check(&self.git(cx)).err().filter(|presumed| presumed.failure == failure);
        let paths = match directory.filter(|directory| directory.followed().is_none()) {
            _ if distrusted.is_some() => distrusted.map(|presumed| presumed.paths.into_vec()).unwrap_or_default(),
            Some(directory) => vec![directory.into()],
            None if failure.kind == FailureKind::Start => vec![PathBuf::from("/usr/bin/git")],
            None => return Err(failure),
        };
        let differing = if found.is_some() && self.exist { Properties::REVISION } else { Properties::EXIST };
        let plan = Plan { differing: vec![differing], creates: found.is_none(), ..Plan::default() };
        Ok(SetReply { presumed: Some(Presumed::of(failure, paths)), ..self.reply(cx, &plan)? })
    }
}
