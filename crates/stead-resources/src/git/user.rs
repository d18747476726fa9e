//! The user whom git runs as, in directories that this user, and not root alone, can write.

use stead_core::call::{Failure, Presumed};
use stead_host::provider::Context;
use stead_system::fs::{self, How, Ownership, SystemPath};

use super::Properties;
use crate::accounts::Account;
use crate::input::{blocked, impossible};
use crate::program::SystemProgram;

const SETSID: SystemProgram = SystemProgram { name: "setsid", package: "util-linux" };
const SETPRIV: SystemProgram = SystemProgram { name: "setpriv", package: "util-linux" };
const GIT: SystemProgram = SystemProgram { name: "git", package: "git" };

/// A user that an instance states.
pub(super) struct AsUser<'a> {
    pub(super) name: &'a str,
    /// Or why there is no such user, which an instance before may change.
    account: Result<Account, Presumed>,
    /// How its groups are obtained: another system's are not known here.
    groups: &'static str,
}

impl<'a> AsUser<'a> {
    pub(super) fn find(cx: &Context, name: &'a str) -> Result<Self, Failure> {
        let account = Account::find(cx, name, Properties::USER)?;
        let groups = if cx.manages_running_system() { "--init-groups" } else { "--clear-groups" };
        Ok(Self { name, account, groups })
    }

    pub(super) fn uid(&self) -> Option<u32> {
        self.account.as_ref().ok().map(|account| account.uid)
    }

    pub(super) fn home(&self) -> Option<&str> {
        self.account.as_ref().ok().map(|account| account.home.as_str())
    }

    /// Returns whether it is the one who runs stead.
    pub(super) fn is_caller(&self) -> bool {
        self.uid() == Some(stead_system::user::own())
    }

    /// That what is created belongs to the user.
    pub(super) fn ownership(&self) -> Ownership {
        self.account.as_ref().map(Account::ownership).unwrap_or_default()
    }

    /// Refuses to call git where it could not run as the user, or would find what is another one's.
    pub(super) fn check(&self, tree: &SystemPath) -> Result<(), Presumed> {
        let account = self.account.as_ref().map_err(Clone::clone)?;
        if !stead_system::user::is_root() && !self.is_caller() {
            let failure = impossible(Properties::USER, "only root can run git as another user");
            return Err(Presumed::of(failure, Vec::new()));
        }
        let owner = |path: &SystemPath| Some((path.to_path_buf(), fs::open(path, How::Look).ok()??));
        let Some((path, opened)) = owner(&tree.join(".git")).or_else(|| owner(tree)) else { return Ok(()) };
        if fs::status_of(&opened, &path).is_ok_and(|status| status.uid == account.uid) {
            return Ok(());
        }
        let problem = format!("'{}' does not belong to the user '{}'", path.display(), self.name);
        let hint = "Change its owner to that user, or remove 'user'";
        Err(Presumed::of(blocked(Properties::USER, format!("{problem}. {hint}")), vec![path]))
    }

    /// The program and the first of its arguments with which git is called. Git gets a session of its own, so that it has no
    /// terminal of root's.
    pub(super) fn command(&self) -> Result<(String, Vec<String>), Failure> {
        let account = self.account.as_ref().map_err(|presumed| presumed.failure.clone())?;
        let find = |program: SystemProgram| match program.find() {
            Ok(path) => Ok(path.display().to_string()),
            Err(presumed) => Err(presumed.failure),
        };
        let [setsid, setpriv, git] = [find(SETSID)?, find(SETPRIV)?, find(GIT)?];
        if self.is_caller() {
            return Ok((git, Vec::new()));
        }
        let ids = [format!("--reuid={}", account.uid), format!("--regid={}", account.gid), self.groups.to_owned()];
        let before = ["--wait".to_owned(), setpriv].into_iter().chain(ids);
        Ok((setsid, before.chain(["--".to_owned(), git]).collect()))
    }

    /// Variables that tell programs who they are.
    pub(super) fn environment(&self) -> Vec<(String, String)> {
        let home = self.home().unwrap_or("/");
        let variables = [("HOME", home), ("USER", self.name), ("LOGNAME", self.name)];
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
    }
}
