//! Carrying a plan out: `init`, `fetch`, `checkout` and `update-ref`, each of which can be repeated.

use stead_core::call::Failure;
use stead_host::provider::{Binding, Context};
use stead_system::fs::{self, Place};

use super::losses::{self, Losses};
use super::program::Git;
use super::repository::record_of;
use super::{Desired, Plan, Properties};
use crate::input::blocked;
use crate::pending;

/// Why a set cannot do what a plan has shown.
pub(super) const MOVED: &str = "the repository no longer has the commit that was planned; make a new plan";

impl Desired<'_> {
    /// Does what was planned.
    pub(super) fn carry_out(&self, cx: &Context, plan: &Plan) -> Result<(), Failure> {
        if !self.exist {
            let place = Place::find(&self.path, &cx.writes)?;
            return place.map_or(Ok(()), |place| Ok(fs::remove_tree(&place, &cx.patience()).map(|_| ())?));
        }
        let git = self.git(cx);
        if plan.creates {
            let place = Place::find(&self.path, &cx.writes)?.ok_or_else(|| pending::no_directory(&self.path))?;
            if let (Some(user), None) = (&self.user, place.status()?) {
                // The user may not be allowed to.
                place.make_directory_with(0o755, user.ownership())?;
            }
            let path = self.path.display().to_string();
            let made = git.outside(&["init", "--quiet", "--template=", "--", &path])?;
            if made.code != 0 {
                return Err(made.failure("git init"));
            }
        }
        // Again: where nothing was, anybody may have made something by now.
        self.check_trusted(cx)?;
        if plan.creates || plan.differing.contains(&Properties::REPOSITORY) {
            let tracked = "+refs/heads/*:refs/remotes/origin/*";
            git.must(&["config", "--replace-all", "remote.origin.fetch", tracked])?;
            git.must(&["config", "--replace-all", "remote.origin.url", git.address()?])?;
        }
        if plan.continues
            && let Some(lock) = Place::find(&self.path.join(".git/index.lock"), &cx.writes)?
        {
            lock.remove()?;
        }
        if plan.differing == [Properties::REPOSITORY] { Ok(()) } else { self.check_out(&git, plan) }
    }

    fn check_out(&self, git: &Git<'_>, plan: &Plan) -> Result<(), Failure> {
        let Some(commit) = plan.commit.as_deref() else {
            // Only changed files are discarded.
            return git.must(&["checkout", "--quiet", "--detach", "--force", "HEAD", "--"]).map(|_| ());
        };
        if !plan.has_commit {
            self.fetch(git, plan, commit)?;
        }
        // A commit by its number that a branch leads to may be somebody's own. Every other one counts from now on, whatever
        // happens, as one that came from there.
        let is_theirs = !plan.has_commit || plan.reference.is_some() || !git.is_kept(commit)?;
        if is_theirs {
            git.record(&record_of(commit), commit)?;
        }
        if !plan.has_commit {
            Self::check_seen(git, commit)?;
        }
        let mode = if self.discards(plan) { "--force" } else { "--no-overwrite-ignore" };
        git.must(&["checkout", "--quiet", "--detach", mode, commit, "--"])?;
        if is_theirs {
            let record = record_of(self.revision.unwrap_or(commit));
            git.record(&record, commit)?;
            git.forget_all_but(&record)?;
        }
        Ok(())
    }

    /// Refuses to overwrite what no what-if could show, because the commit was not there yet. Now it is.
    fn check_seen(git: &Git<'_>, commit: &str) -> Result<(), Failure> {
        let untracked = losses::in_the_way(git, commit)?;
        let losses = Losses { untracked, ..Losses::default() };
        losses.refuse().map_err(|failure| {
            let message =
                failure.message + ". The commit was just fetched; a what-if shows from now on what is overwritten";
            Failure { message, ..failure }
        })
    }

    /// Fetches a commit, without moving a reference.
    fn fetch(&self, git: &Git<'_>, plan: &Plan, commit: &str) -> Result<(), Failure> {
        let depth = self.depth.map(|depth| format!("--depth={depth}"));
        let options = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules"];
        let all_options: Vec<&str> = options.into_iter().chain(depth.as_deref()).collect();
        let from = ["--", git.address()?];
        let what = plan.reference.as_deref().unwrap_or(commit);
        let fetched = git.within(&[all_options.as_slice(), &from, &[what]].concat())?;
        if fetched.code != 0 {
            if plan.reference.is_some() {
                return Err(fetched.failure("git fetch"));
            }
            // Not every server hands out a commit by its number.
            let all = ["+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/stead/tags/*"];
            git.must(&[options.as_slice(), &["--prune"], &from, &all].concat())?;
        }
        if git.has(commit)? {
            return Ok(());
        }
        let problem = match &plan.reference {
            Some(_) if matches!(git.cx.binding, Binding::Plan(_)) => MOVED.to_owned(),
            Some(_) => "the branch or tag was moved meanwhile. Try again".to_owned(),
            None => format!("the repository has no commit {commit} on a branch or tag"),
        };
        Err(blocked(Properties::REVISION, problem))
    }
}
