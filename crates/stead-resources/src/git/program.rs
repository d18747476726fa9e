//! Calls of git, which ask nobody, run nothing that a repository brings, and have no credentials in their arguments.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use stead_core::call::{Failure, FailureKind};
use stead_host::provider::Context;
use url::Url;

use crate::input::refused;
use crate::program::{Ended, Invocation, run};

/// Settings that hold in every call, whatever those of the repository are. Those of the user and the system are ignored.
const SETTINGS: [&str; 7] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "credential.helper=",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "gc.auto=0",
    "advice.detachedHead=false",
];

/// Variables of this process that connections need.
const HANDED_ON: [&str; 9] = [
    "SSH_AUTH_SOCK",
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
];

/// Where a repository is fetched from.
pub(super) struct Remote {
    /// Without a password.
    pub(super) address: String,
    /// The directory that it is, where it is one of this machine.
    pub(super) directory: Option<PathBuf>,
    /// The name and the value of the setting that has the credentials.
    credentials: Option<(String, String)>,
}

impl Remote {
    pub(super) fn of(cx: &Context, stated: &str) -> Self {
        let plain = |address: String| Self { address, directory: None, credentials: None };
        match Url::parse(stated).ok().filter(|_| stated.contains("://")) {
            Some(url) if url.scheme() == "file" => {
                let path = url.to_file_path().map(|path| cx.resolve(path));
                path.map_or_else(|()| plain(stated.to_owned()), Self::directory)
            }
            Some(url) if matches!(url.scheme(), "http" | "https") => Self::http(url),
            Some(url) => plain(url.to_string()),
            None if is_host_and_path(stated) => plain(stated.to_owned()),
            None => Self::directory(cx.resolve(stated)),
        }
    }

    fn directory(path: PathBuf) -> Self {
        Self { address: path.display().to_string(), directory: Some(path), credentials: None }
    }

    fn http(mut url: Url) -> Self {
        let decoded = |text: &str| percent_decode_str(text).collect::<Vec<u8>>();
        let mut pair = decoded(url.username());
        let has_credentials = !pair.is_empty() || url.password().is_some();
        pair.push(b':');
        pair.extend(decoded(url.password().unwrap_or_default()));
        // What has a host has room for these.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        let address = url.to_string();
        let credentials = has_credentials.then(|| {
            let origin = url.origin().ascii_serialization();
            (format!("http.{origin}/.extraHeader"), format!("Authorization: Basic {}", STANDARD.encode(pair)))
        });
        Self { address, directory: None, credentials }
    }
}

/// Whether an address has the short form of SSH: `user@host:path`.
fn is_host_and_path(text: &str) -> bool {
    text.split_once(':').is_some_and(|(host, _)| !host.is_empty() && !host.contains('/'))
}

/// Git, for one repository.
pub(super) struct Git<'a> {
    pub(super) cx: &'a Context,
    pub(super) remote: &'a Remote,
    /// The working tree.
    pub(super) path: &'a Path,
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
        let settings = SETTINGS.iter().flat_map(|setting| ["-c".to_owned(), (*setting).to_owned()]);
        let arguments = settings.chain(places).chain(arguments.iter().map(|&argument| argument.to_owned()));
        let invocation = Invocation {
            program: "git".to_owned(),
            arguments: arguments.collect(),
            environment: self.environment(),
            directory: PathBuf::from("/"),
            timeout: None,
        };
        run(self.cx, &invocation, "git")
    }

    fn environment(&self) -> Vec<(String, String)> {
        let fixed = [
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh"),
            ("GIT_SSH_COMMAND", "ssh -o BatchMode=yes"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("LC_ALL", "C"),
        ];
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let handed_on = HANDED_ON.into_iter().filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)));
        let mut variables: Vec<_> = fixed.into_iter().map(owned).chain(handed_on).collect();
        // Only this user and root can read the environment of a process.
        if let Some((name, value)) = &self.remote.credentials {
            let of_credentials = [
                ("GIT_CONFIG_COUNT", "1"),
                ("GIT_CONFIG_KEY_0", name.as_str()),
                ("GIT_CONFIG_VALUE_0", value.as_str()),
            ];
            variables.extend(of_credentials.into_iter().map(owned));
        }
        variables
    }

    /// The same, which must succeed.
    pub(super) fn must(&self, arguments: &[&str]) -> Result<String, Failure> {
        succeeded(self.within(arguments)?, arguments)
    }

    /// The reference and the commit of the branch or tag of that name in the remote repository.
    pub(super) fn find_remote(&self, name: &str) -> Result<(String, String), Failure> {
        let (branch, tag) = (format!("refs/heads/{name}"), format!("refs/tags/{name}"));
        let peeled = format!("{tag}^{{}}");
        let arguments = ["ls-remote", "--quiet", "--", &self.remote.address, &branch, &tag, &peeled];
        let output = succeeded(self.outside(&arguments)?, &arguments)?;
        let listed: Vec<(&str, &str)> = output.lines().filter_map(|line| line.split_once('\t')).collect();
        let commit_of = |wanted: &str| listed.iter().find(|(_, name)| *name == wanted).map(|(commit, _)| *commit);
        let found = match commit_of(&branch) {
            Some(commit) => Some((branch.clone(), commit)),
            None => commit_of(&peeled).or_else(|| commit_of(&tag)).map(|commit| (tag.clone(), commit)),
        };
        let found = found.map(|(reference, commit)| (reference, commit.to_owned()));
        let hint = "Name one of them, or a commit by all of its digits";
        found.ok_or_else(|| refused("revision", format!("the repository has no branch or tag '{name}'. {hint}")))
    }

    /// The files of the working tree that differ from what is checked out, relative to it.
    pub(super) fn modified(&self) -> Result<Vec<String>, Failure> {
        let output = self.must(&["status", "--porcelain=v1", "-z", "--untracked-files=no", "--no-renames"])?;
        Ok(output.split('\0').filter_map(|line| line.get(3..)).map(str::to_owned).collect())
    }
}

fn succeeded(ended: Ended, arguments: &[&str]) -> Result<String, Failure> {
    if ended.code == 0 {
        return Ok(ended.output);
    }
    let verb = arguments.first().unwrap_or(&"");
    let failure = ended.failure(&format!("git {verb}"));
    Err(Failure { kind: FailureKind::Exit(ended.code), ..failure })
}
