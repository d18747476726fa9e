//! Calls of git, which ask nobody, run nothing that a repository brings, and have no credentials in their arguments.

use std::path::PathBuf;
use std::time::Instant;

use stead_core::call::Failure;
use stead_host::provider::Context;
use stead_system::fs::SystemPath;
use url::Url;

use super::repository::CHECKED_OUT;
use super::user::AsUser;
use super::{Properties, isolation};
use crate::credentials;
use crate::input::{blocked, impossible, required};
use crate::program::{Ended, Invocation, SearchPath, run};

/// Where a repository is fetched from.
pub(super) struct Remote {
    /// Without a password.
    pub(super) address: String,
    /// The directory that it is, where it is one of this machine.
    pub(super) directory: Option<SystemPath>,
    /// The setting that has the credentials: its name and its value.
    credentials: Option<(String, String)>,
}

impl Remote {
    pub(super) fn of(cx: &Context, stated: &str) -> Self {
        let plain = || Self { address: stated.to_owned(), directory: None, credentials: None };
        match Url::parse(stated).ok().filter(|_| stated.contains("://")) {
            Some(url) if url.scheme() == "file" => {
                url.to_file_path().map_or_else(|()| plain(), |path| Self::directory(cx.resolve(path)))
            }
            Some(url) if matches!(url.scheme(), "http" | "https") => Self::http(url),
            Some(_) => plain(),
            None if is_host_and_path(stated) => plain(),
            None => Self::directory(cx.resolve(stated)),
        }
    }

    fn directory(path: SystemPath) -> Self {
        Self { address: path.display().to_string(), directory: Some(path), credentials: None }
    }

    fn http(mut url: Url) -> Self {
        let header = credentials::take(&mut url);
        let name = format!("http.{}/.extraHeader", url.origin().ascii_serialization());
        let credentials = header.map(|header| (name, format!("Authorization: {header}")));
        Self { address: url.to_string(), directory: None, credentials }
    }
}

/// Returns whether an address has the short form of SSH: `user@host:path`.
fn is_host_and_path(text: &str) -> bool {
    text.split_once(':').is_some_and(|(host, _)| !host.is_empty() && !host.contains('/'))
}

/// Git, for one repository.
pub(super) struct Git<'a> {
    pub(super) cx: &'a Context,
    /// What the instance states; without it only what needs no other repository can be called.
    pub(super) remote: Option<&'a Remote>,
    /// The working tree.
    pub(super) path: &'a SystemPath,
    /// Whom it runs as, if that is not the user who runs stead.
    pub(super) user: Option<&'a AsUser<'a>>,
    /// When all calls together must have ended.
    pub(super) until: Option<Instant>,
}

impl Git<'_> {
    /// Calls git within the repository.
    pub(super) fn within(&self, arguments: &[&str]) -> Result<Ended, Failure> {
        let git = self.path.join(".git").display().to_string();
        let tree = self.path.display().to_string();
        let places = [format!("--git-dir={git}"), format!("--work-tree={tree}")];
        self.call(places.into_iter(), arguments)
    }

    /// Calls git without a repository.
    pub(super) fn outside(&self, arguments: &[&str]) -> Result<Ended, Failure> {
        self.call(std::iter::empty(), arguments)
    }

    fn call(&self, places: impl Iterator<Item = String>, arguments: &[&str]) -> Result<Ended, Failure> {
        let (program, before) = match self.user {
            Some(user) => user.command()?,
            None => ("git".to_owned(), Vec::new()),
        };
        let arguments =
            isolation::settings().chain(places).chain(arguments.iter().map(|&argument| argument.to_owned()));
        let invocation = Invocation {
            program,
            arguments: before.into_iter().chain(arguments).collect(),
            environment: self.environment(),
            directory: SystemPath::here("/"),
            timeout: self.until.map(|until| until.saturating_duration_since(Instant::now())),
            search: SearchPath::Own,
        };
        run(self.cx, &invocation, "git")
    }

    fn environment(&self) -> Vec<(String, String)> {
        // An agent for SSH is that of the user who runs stead.
        let mut variables = isolation::variables();
        variables.retain(|(name, _)| self.user.is_none() || name != "SSH_AUTH_SOCK");
        variables.extend(self.user.into_iter().flat_map(AsUser::environment));
        // Only this user and root can read the environment of a process. A redirect could lead to another host.
        if let Some((name, value)) = self.remote.and_then(|remote| remote.credentials.as_ref()) {
            let of_credentials = [
                ("GIT_CONFIG_COUNT", "2"),
                ("GIT_CONFIG_KEY_0", name.as_str()),
                ("GIT_CONFIG_VALUE_0", value.as_str()),
                ("GIT_CONFIG_KEY_1", "http.followRedirects"),
                ("GIT_CONFIG_VALUE_1", "false"),
            ];
            variables.extend(of_credentials.map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
        variables
    }

    /// The home directory that git is given.
    pub(super) fn home(&self) -> Option<PathBuf> {
        let of_user = self.user.and_then(AsUser::home).map(PathBuf::from);
        of_user.or_else(|| std::env::var_os("HOME").map(PathBuf::from))
    }

    /// The address that is fetched from.
    pub(super) fn address(&self) -> Result<&str, Failure> {
        self.remote.map(|remote| remote.address.as_str()).ok_or_else(|| required(&[Properties::REPOSITORY]))
    }

    /// The same, which must succeed.
    pub(super) fn must(&self, arguments: &[&str]) -> Result<String, Failure> {
        self.succeeded(&self.within(arguments)?, arguments)
    }

    fn succeeded(&self, ended: &Ended, arguments: &[&str]) -> Result<String, Failure> {
        if ended.code == 0 {
            return Ok(ended.output.clone());
        }
        let failure = ended.failure(&format!("git {}", arguments.first().unwrap_or(&"")));
        if failure.message.contains("dubious ownership") {
            let user = self.user.map_or("user who runs stead".to_owned(), |user| format!("user '{}'", user.name));
            let hint = format!("Change its owner to the {user}, or fetch it over SSH or HTTPS");
            let problem = format!("git refuses to read '{}': it belongs to another user", self.address()?);
            return Err(blocked(Properties::REPOSITORY, format!("{problem}. {hint}")));
        }
        let has_credentials = self.remote.is_some_and(|remote| remote.credentials.is_some());
        let is_redirect = has_credentials && failure.message.contains("returned error: 30");
        let is_out_of_reach =
            ["unable to access", "Could not read from remote repository", "does not appear to be a git"]
                .iter()
                .any(|words| failure.message.contains(words));
        let hint = if is_redirect {
            ". Redirects are refused when credentials are given: set 'repository' to the final URL"
        } else if is_out_of_reach {
            ". Check the address, and whether this machine can reach it and has access"
        } else {
            ""
        };
        Err(Failure { message: failure.message + hint, ..failure })
    }

    /// The reference and the commit of the branch or tag of that name in the remote repository.
    pub(super) fn find_remote(&self, name: &str) -> Result<(String, String), Failure> {
        let (branch, tag) = (format!("refs/heads/{name}"), format!("refs/tags/{name}"));
        let peeled = format!("{tag}^{{}}");
        let arguments = ["ls-remote", "--quiet", "--", self.address()?, &branch, &tag, &peeled];
        let output = self.succeeded(&self.outside(&arguments)?, &arguments)?;
        let listed: Vec<(&str, &str)> = output.lines().filter_map(|line| line.split_once('\t')).collect();
        let commit_of = |wanted: &str| listed.iter().find(|(_, name)| *name == wanted).map(|(commit, _)| *commit);
        let found = match commit_of(&branch) {
            Some(commit) => Some((branch.clone(), commit)),
            None => commit_of(&peeled).or_else(|| commit_of(&tag)).map(|commit| (tag.clone(), commit)),
        };
        let found = found.map(|(reference, commit)| (reference, commit.to_owned()));
        let hint = "Name one of them, or a commit by all of its digits";
        found.ok_or_else(|| {
            impossible(Properties::REVISION, format!("the repository has no branch or tag '{name}'. {hint}"))
        })
    }

    /// The files of the working tree that differ from what is checked out, relative to it. Submodules are not looked into:
    /// their own settings would count there.
    pub(super) fn modified(&self) -> Result<Vec<String>, Failure> {
        let options = ["--porcelain=v1", "-z", "--untracked-files=no", "--no-renames", "--ignore-submodules=all"];
        let output = self.must(&[&["status"], options.as_slice()].concat())?;
        let names: Vec<String> = output.split('\0').filter_map(|line| line.get(3..)).map(str::to_owned).collect();
        match names.iter().find(|name| name.contains(char::REPLACEMENT_CHARACTER)) {
            // Nothing could say what is lost with it.
            Some(name) => {
                let problem = format!("'{name}' was changed in the working tree, and its name is not UTF-8");
                Err(blocked(Properties::PATH, format!("{problem}. Commit the change, or undo it")))
            }
            None => Ok(names),
        }
    }

    /// Returns whether the repository has a commit.
    pub(super) fn has(&self, commit: &str) -> Result<bool, Failure> {
        Ok(self.within(&["cat-file", "-e", &format!("{commit}^{{commit}}")])?.code == 0)
    }

    /// The files of a commit that are not tracked now.
    pub(super) fn missing_of(&self, commit: &str) -> Result<Vec<String>, Failure> {
        let options = ["--cached", "--name-only", "-z", "--no-renames", "--diff-filter=D", "--ignore-submodules=none"];
        self.must(&[&["diff-index"], options.as_slice(), &[commit, "--"]].concat()).map(|output| listed(&output))
    }

    /// The files of that kind at or below some paths.
    pub(super) fn files(&self, kind: &str, paths: &[String]) -> Result<Vec<String>, Failure> {
        let mut found = Vec::new();
        // The system limits how long all arguments are together.
        for some in paths.chunks(256) {
            let paths: Vec<&str> = some.iter().map(String::as_str).collect();
            found.extend(listed(&self.must(&[&["ls-files", "-z", kind, "--"], paths.as_slice()].concat())?));
        }
        Ok(found)
    }

    /// Returns whether a branch, a tag or anything else leads to a commit.
    pub(super) fn is_kept(&self, commit: &str) -> Result<bool, Failure> {
        let contains = format!("--contains={commit}");
        self.must(&["for-each-ref", "--count=1", "--format=%(refname)", &contains]).map(|output| !output.is_empty())
    }

    /// A commit that no other repository is known to have: of what is checked out, a branch, a tag or the stash.
    pub(super) fn unpushed(&self, head: Option<&str>) -> Result<Option<String>, Failure> {
        let local = ["--branches", "--tags", "--glob=refs/stas[h]", "--not", "--remotes", "--glob=refs/stead/*"];
        let head = head.map_or(&[][..], |_| &["HEAD"]);
        let output = self.must(&[&["rev-list", "--max-count=1"], head, local.as_slice()].concat())?;
        Ok(Some(output).filter(|commit| !commit.is_empty()))
    }

    /// Notes that a commit is what was checked out for a revision.
    pub(super) fn record(&self, reference: &str, commit: &str) -> Result<(), Failure> {
        self.must(&["update-ref", reference, commit]).map(|_| ())
    }

    /// Forgets all such notes but one.
    pub(super) fn forget_all_but(&self, reference: &str) -> Result<(), Failure> {
        let recorded = self.must(&["for-each-ref", "--format=%(refname)", CHECKED_OUT])?;
        let mut others = recorded.lines().filter(|recorded| *recorded != reference);
        others.try_for_each(|other| self.must(&["update-ref", "-d", other]).map(|_| ()))
    }
}

fn listed(output: &str) -> Vec<String> {
    output.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
