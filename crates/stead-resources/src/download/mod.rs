//! `Stead/Download`: a file from a URL, with a digest that is known or pinned, or whatever the URL has.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use stead_core::call::{Execution, Failure, FailureKind, Presumed};
use stead_core::claims::{Claims, Extent, Ties};
use stead_core::destruction::Effects;
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Cost, Plain, Provider, SetReply, State, TestReply};
use stead_system::fs::{Replacement, Status, SystemPath};
use stead_system::user::NamesByRoot;
use url::Url;

use crate::checksum::Checksum;
use crate::declared::Declared as _;
use crate::file::content::{self, Shown, open_source};
use crate::file::{Current, Desired, FileContent};
use crate::input::{
    Backup, ChecksumText, DownloadUrl, FilePath, Mode, ProxyUrl, ReadOnly, blocked, cannot, failure, invalid, read,
    read_each, required, transient,
};
use crate::permissions::Permissions;
use crate::text::AccountName;
use crate::transfer::{
    self, TransferProblem, TransferProblemKind, TransferRequest, TransferStart, Validators, Vouched,
};
use crate::{BuiltIn, credentials, reply};

mod beside;
mod followed;
mod pin;

use followed::Followed;
use pin::Pin;

/// A file that is downloaded over HTTPS or HTTP, or copied from a file URL. It is in the desired state when it exists and
/// has the digest; that takes no network. With 'follow' it is what the URL has, and the server is asked for that. A transfer that breaks off is resumed. The file gets its name only when all of
/// it has arrived and has the digest. Servers are checked by the certificates that the system trusts, redirects from HTTPS
/// to HTTP are refused, and credentials and headers go to the host of the URL only.
#[resource(
    "Stead/Download",
    about = "A file that is downloaded from a URL.",
    tags("file", "download", "http", "linux"),
    exclusive(checksum, pin, follow),
    any(checksum, pin, follow)
)]
#[schemars(extend("dependentSchemas" = {
    "checksum": { "properties": { "pin": false, "follow": false } },
    "pin": { "properties": { "follow": false } }
}))]
struct Properties<'a> {
    /// Where the file is. A relative path starts at the directory of the document, or at the system root that was given. A
    /// symbolic link as the last component is refused.
    #[property(key, place)]
    path: FilePath<'a>,
    /// The URL: https, http or file. Required unless '_exist' is false. A user and a password in it are used and never shown;
    /// so is its query.
    #[property(option, credentials, required)]
    url: Option<DownloadUrl<'a>>,
    /// The digest that the file must have: 'sha256:' or 'sha512:' and hexadecimal digits. It, 'pin' or 'follow' is required, unless
    /// '_exist' is false.
    checksum: Option<ChecksumText<'a>>,
    /// With 'firstUse' the digest of the first download counts from then on. It is kept beside the file as 'NAME.sha256', which
    /// only root or the user who runs stead may be able to write; remove that file to accept another content.
    pin: Option<PinPolicy>,
    /// With 'url' the file is what the URL has: each test asks the server, by the `ETag` or the `Last-Modified` of the last download,
    /// whether it has another content now. They are kept beside the file as 'NAME.etag'. Since only the server vouches for the
    /// content, the URL must be one of https or of a file, or of this machine.
    follow: Option<FollowPolicy>,
    /// Headers of the requests, by their names. They are sent to the host of the URL only, and never shown.
    #[property(option, secret)]
    #[serde(default)]
    headers: BTreeMap<&'a str, &'a str>,
    /// The URL of an HTTP proxy: 'http://HOST:PORT' or 'https://HOST:PORT', with a user and a password if it needs them. SOCKS is
    /// not supported. Without it the variables `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` of stead's environment
    /// count.
    #[property(option, credentials)]
    proxy: Option<ProxyUrl<'a>>,
    /// How many seconds the download may take, with all that is tried again. A server may be silent for a minute.
    #[property(option)]
    #[schemars(range(min = 1, max = 86400))]
    timeout: Option<u32>,
    /// The greatest number of bytes that is accepted.
    #[property(option)]
    #[serde(default = "max_size")]
    max_size: u64,
    /// The permissions, as octal digits in quotes. A new file gets 0644 when none are given, whatever the umask is.
    mode: Option<Mode<'a>>,
    /// The name or number of the user that the file belongs to.
    owner: Option<AccountName<'a>>,
    /// The name or number of the group that the file belongs to.
    group: Option<AccountName<'a>>,
    /// Whether the file exists.
    exist: bool,
    /// The number of bytes.
    size: Option<ReadOnly<u64>>,
    /// The digest of the content that is there; the one that it must have is 'checksum'.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    sha256: Option<ReadOnly<String>>,
    /// When the content was last changed.
    #[schemars(extend("format" = "date-time"))]
    modified: Option<ReadOnly<String>>,
}

/// What is trusted where no digest is stated.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
enum PinPolicy {
    FirstUse,
}

/// What decides which content is right, where the document does not.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
enum FollowPolicy {
    Url,
}

/// What is accepted where nothing is stated.
fn max_size() -> u64 {
    16 << 30
}

/// The longest time that can be stated, in seconds.
const LONGEST: u32 = 86_400;

impl<'a> crate::input::Properties<'a> for Properties<'a> {
    fn check(&self) -> Result<(), Failure> {
        if self.timeout.is_some_and(|seconds| !(1..=LONGEST).contains(&seconds)) {
            return Err(invalid(Properties::TIMEOUT, format!("'timeout' must be between 1 and {LONGEST}")));
        }
        if self.follow.is_some() && self.url.as_ref().is_some_and(|url| transfer::is_open(&url.0)) {
            let message =
                "'follow' needs a URL of https: what comes over HTTP could be from anybody. State a 'checksum' instead";
            return Err(invalid(Properties::FOLLOW, message));
        }
        Ok(())
    }
}

/// `Stead/Download` as it is registered.
pub(crate) fn built_in() -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Downloads::default()))
}

#[derive(Default)]
struct Downloads {
    names: NamesByRoot,
}

impl Provider for Downloads {
    fn validate(&self, _cx: &Context, input: &Plain) -> Result<(), Failure> {
        read::<Properties<'_>>(input).map(|_| ())
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        self.desired(cx, read_each(input)?)?.get(&self.names.of(&cx.system_root))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired = self.desired(cx, read(input)?)?;
        let mut reply = desired.test(cx, &self.names.of(&cx.system_root))?;
        if let Some(predicted) = &mut reply.predicted {
            desired.content.effects_beside(desired.exist, &mut predicted.effects);
        }
        Ok(reply)
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired = self.desired(cx, read(input)?)?;
        let mut reply = desired.set(cx, execution)?;
        if reply.effects.effect.is_some() {
            desired.content.effects_beside(desired.exist, &mut reply.effects);
            if execution == Execution::Actual {
                desired.content.update_beside(cx, desired.exist)?;
            }
        }
        Ok(reply)
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        let stated: Properties<'_> = read_each(input)?;
        let mut desired = self.desired(cx, stated)?;
        let (pin, followed) = (desired.content.pin.take(), desired.content.followed.take());
        let mut done = desired.delete(cx, execution)?;
        if let Some(pin) = pin.filter(|pin| pin.checksum.is_some()) {
            match execution {
                Execution::Actual => pin.remove(cx)?,
                Execution::WhatIf => done.push("remove its pin".to_owned()),
            }
        }
        if let Some(followed) = followed.filter(Followed::is_kept) {
            match execution {
                Execution::Actual => followed.remove(cx)?,
                Execution::WhatIf => done.push("remove its ETag".to_owned()),
            }
        }
        Ok(done)
    }

    fn cost(&self, _desired: &Value) -> Cost {
        Cost::Process
    }

    fn ties(&self, input: &Plain) -> Ties {
        // It brings the certificates that servers are checked by.
        reply::ties(input).and_packages(["ca-certificates"])
    }

    fn claims(&self, input: &Plain) -> Option<Claims> {
        let extent = if reply::is_removal(input) { Extent::Absent } else { Extent::Whole };
        let claims = reply::claims(input, extent)?;
        let states = |property: &str| input.expose().get(property).is_some();
        Some(match () {
            () if states(Properties::PIN) => claims.and_backup(pin::SUFFIX),
            () if states(Properties::FOLLOW) => claims.and_backup(followed::SUFFIX),
            () => claims,
        })
    }
}

impl Downloads {
    fn desired<'a>(&self, cx: &'a Context, stated: Properties<'a>) -> Result<Desired<'a, Remote<'a>>, Failure> {
        let (text, path) = (stated.path.0.0, stated.path.0.resolve(cx));
        let pin = stated.pin.map(|_| Pin::of(&path, text)).transpose()?;
        let followed = stated.follow.map(|_| Followed::of(&path, text, stated.url.as_ref().map(|url| &url.0)));
        let timeout =
            stated.timeout.map_or(cx.deadline, |seconds| Duration::from_secs(seconds.into()).min(cx.deadline));
        let source = stated.url.map(|url| Source::of(cx, url.0)).transpose()?;
        let content = Remote {
            cx,
            source,
            checksum: stated.checksum,
            pin,
            followed: followed.transpose()?,
            headers: stated.headers,
            proxy: stated.proxy.map(|proxy| proxy.0),
            timeout,
            max_size: stated.max_size,
            received: RefCell::default(),
        };
        let permissions =
            Permissions::find(cx, stated.mode, stated.owner, stated.group, &self.names.of(&cx.system_root))?;
        let mut desired = Desired::new(cx, stated.path, content, permissions, Backup::No);
        desired.exist = stated.exist;
        Ok(desired)
    }
}

/// Where the content is.
enum Source {
    Http(Url),
    File(SystemPath),
}

impl Source {
    fn of(cx: &Context, url: Url) -> Result<Self, Failure> {
        if url.scheme() != "file" {
            return Ok(Self::Http(url));
        }
        let path = url.to_file_path().map_err(|()| invalid(Properties::URL, "'url' must be a file of this machine"))?;
        Ok(Self::File(cx.resolve(path)))
    }
}

/// Content that is elsewhere, and known by its digest or by what the server says of it.
struct Remote<'a> {
    cx: &'a Context,
    source: Option<Source>,
    checksum: Option<ChecksumText<'a>>,
    pin: Option<Pin>,
    followed: Option<Followed>,
    headers: BTreeMap<&'a str, &'a str>,
    proxy: Option<&'a str>,
    timeout: Duration,
    max_size: u64,
    /// The digest of what was downloaded, and what the server said of it, where that is to be kept.
    received: RefCell<Option<(String, Validators)>>,
}

impl Remote<'_> {
    /// The digest that the content must have; `None` before the first use.
    fn expected(&self) -> Option<&Checksum> {
        let pinned = || self.pin.as_ref()?.checksum.as_ref();
        self.checksum.as_ref().map(|stated| &stated.checksum).or_else(pinned)
    }

    /// Adds what becomes of the file beside it, when the file is changed.
    fn effects_beside(&self, exist: bool, effects: &mut Effects) {
        let pin = self.pin.as_ref().map(|pin| (pin.checksum.is_some(), pin.item()));
        let followed = self.asked().map(|followed| (followed.is_kept(), followed.item()));
        for (is_there, item) in pin.into_iter().chain(followed) {
            match (exist, is_there) {
                (true, false) => effects.creates.push(item),
                (false, true) => effects.destroys.push(item),
                _ => {}
            }
        }
    }

    fn update_beside(&self, cx: &Context, exist: bool) -> Result<(), Failure> {
        let received = self.received.take();
        if let Some(pin) = &self.pin {
            match &received {
                Some((sha256, _)) if exist && pin.checksum.is_none() => pin.keep(cx, sha256)?,
                _ if !exist && pin.checksum.is_some() => pin.remove(cx)?,
                _ => {}
            }
        }
        match (self.asked(), received) {
            (Some(followed), Some((sha256, validators))) if exist => followed.keep(cx, &sha256, validators),
            (Some(followed), _) if !exist && followed.is_kept() => followed.remove(cx),
            _ => Ok(()),
        }
    }

    /// What is known of a file whose server is asked.
    fn asked(&self) -> Option<&Followed> {
        self.followed.as_ref().filter(|_| !matches!(self.source, Some(Source::File(_))))
    }

    fn request<'r>(&'r self, url: &'r Url) -> TransferRequest<'r> {
        let Self { headers, proxy, timeout, max_size, .. } = self;
        let (proxy, timeout, max_size, cancel) = (*proxy, *timeout, *max_size, &self.cx.cancel);
        let vouched = if self.followed.is_some() { Vouched::ByServer } else { Vouched::ByDigest };
        TransferRequest { url, headers, proxy, timeout, max_size, vouched, leaves_alone: false, cancel }
    }

    /// Returns whether a file is what its URL has.
    fn is_followed(&self, followed: &Followed, (file, at): (&File, &Path)) -> Result<bool, Failure> {
        match &self.source {
            None => Err(required(&[Properties::URL])),
            Some(Source::File(path)) => {
                let (source, _) = open_local(path)?;
                let digest = |file| content::sha256(file).map_err(|error| cannot("read", at, error));
                Ok(digest(&source)? == digest(file)?)
            }
            Some(Source::Http(url)) => {
                let changed = |known: &_| transfer::has_changed(&self.request(url), known);
                followed.is_in((file, at), |known| changed(known).map_err(|problem| failed(url, problem)))
            }
        }
    }

    fn download(&self, to: &Replacement<'_>) -> Result<Validators, Failure> {
        match &self.source {
            None => Err(required(&[Properties::URL])),
            Some(Source::File(path)) => {
                let (file, status) = open_local(path)?;
                if status.size > self.max_size {
                    return Err(blocked(
                        Properties::URL,
                        format!("'{}' has more bytes than 'maxSize'", path.display()),
                    ));
                }
                content::copy(&file, to).map(|()| Validators::default())
            }
            Some(Source::Http(url)) => transfer::fetch(&self.request(url), TransferStart::Anew, to.file())
                .map(Option::unwrap_or_default)
                .map_err(|problem| failed(url, problem)),
        }
    }

    /// Refuses a file that does not have the digest.
    fn check(&self, file: &File, at: &Path) -> Result<(), Failure> {
        let Some(expected) = self.expected() else { return Ok(()) };
        if expected.is_of(file).map_err(|error| cannot("read", at, error))? {
            return Ok(());
        }
        Err(match &self.pin {
            Some(pin) => {
                let hint = format!("Remove '{}' to accept it", pin.path().display());
                transient(Properties::PIN, format!("what was downloaded is not what was there at first. {hint}"))
            }
            None => transient(Properties::CHECKSUM, "what was downloaded has another digest"),
        })
    }
}

/// The failure of a download that came to no end.
fn failed(url: &Url, TransferProblem { kind, reason, .. }: TransferProblem) -> Failure {
    let (kind, more) = match kind {
        TransferProblemKind::Cancelled => return Failure::new(FailureKind::Cancelled, "the download was cancelled"),
        TransferProblemKind::Proxy => return invalid(Properties::PROXY, "'proxy' must be the URL of an HTTP proxy"),
        TransferProblemKind::Headers => {
            return invalid(Properties::HEADERS, "'headers' must be names and values of HTTP headers");
        }
        TransferProblemKind::Size => (FailureKind::Refused, ", see 'maxSize'"),
        TransferProblemKind::Validators => (FailureKind::Refused, ". Without 'follow', state a 'checksum'"),
        TransferProblemKind::Denied => (FailureKind::Refused, ""),
        TransferProblemKind::Deadline => (FailureKind::Deadline, ""),
        TransferProblemKind::System => (FailureKind::System, ""),
    };
    let message = format!("cannot download '{}': {reason}{more}", credentials::without(url.as_str()));
    failure(kind, Properties::URL, message)
}

/// Opens the file that a URL names.
fn open_local(path: &SystemPath) -> Result<(File, Status), Failure> {
    open_source(path).map_err(|failure| Failure { property: Some("/url".to_owned()), ..failure })
}

impl FileContent for Remote<'_> {
    fn property(&self) -> &'static str {
        match () {
            () if self.pin.is_some() => Properties::PIN,
            () if self.followed.is_some() => Properties::FOLLOW,
            () => Properties::CHECKSUM,
        }
    }

    fn is_in(&self, file: &File, _status: &Status, at: &Path) -> Result<bool, Failure> {
        if let Some(followed) = &self.followed {
            return self.is_followed(followed, (file, at));
        }
        self.expected().map_or(Ok(false), |expected| expected.is_of(file).map_err(|error| cannot("read", at, error)))
    }

    fn presumed(&self) -> Option<Presumed> {
        let Some(Source::File(path)) = &self.source else { return None };
        let failure = match open_local(path) {
            Err(failure) => failure,
            Ok((_, status)) if status.size > self.max_size => {
                blocked(Properties::URL, "the file has more bytes than 'maxSize'")
            }
            Ok((file, _)) => self.check(&file, path).err()?,
        };
        Some(Presumed::of(failure, vec![path.to_path_buf()]))
    }

    fn echo(&self, state: &mut Object) {
        if let Some(checksum) = &self.checksum {
            state.insert(Properties::CHECKSUM.to_owned(), Value::from(checksum.text));
        }
        if self.pin.is_some() {
            state.insert(Properties::PIN.to_owned(), Value::from("firstUse"));
        }
        if self.followed.is_some() {
            state.insert(Properties::FOLLOW.to_owned(), Value::from("url"));
        }
    }

    fn is_shown_as_stated(&self) -> bool {
        true
    }

    fn announce(&self, _shown: Option<&Shown>, state: &mut Object) {
        self.echo(state);
    }

    fn shown(&self) -> Option<Shown> {
        None
    }

    fn shown_of(&self, file: &File, status: &Status) -> io::Result<Shown> {
        Ok(Shown::Digest { size: status.size, sha256: content::sha256(file)? })
    }

    fn report(&self, file: &File, _status: &Status, state: &mut Object) -> io::Result<()> {
        if let Some(checksum) = &self.checksum {
            state.insert(Properties::CHECKSUM.to_owned(), Value::from(checksum.checksum.actual(file)?));
        }
        Ok(())
    }

    fn give(&self, current: &Current, at: &Path, state: &mut Object) -> Result<(), Failure> {
        if self.is_in(&current.file, &current.status, at)? {
            self.echo(state);
            return Ok(());
        }
        self.report(&current.file, &current.status, state).map_err(|error| cannot("read", at, error))
    }

    fn write(&self, replacement: &Replacement<'_>) -> Result<(), Failure> {
        let validators = self.download(replacement)?;
        let at = Path::new("the downloaded file");
        self.check(replacement.file(), at)?;
        if self.pin.is_some() || self.followed.is_some() {
            let digest = content::sha256(replacement.file()).map_err(|error| cannot("read", at, error))?;
            self.received.replace(digest.map(|digest| (digest, validators)));
        }
        Ok(())
    }
}
