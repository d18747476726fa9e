//! `Stead/File`: a regular file, its content, mode and owner.

use std::sync::Arc;

use stead_core::call::{Execution, Failure};
use stead_core::claims::{Claims, Extent, Ties};
use stead_core::statements::Statement;
use stead_core::value::Value;
use stead_declare::resource;
use stead_host::provider::{Context, Cost, Plain, Provider, SetReply, State, TestReply};
use stead_system::user::{Names, NamesByRoot};

use crate::declared::Declared as _;
use crate::guard::{Guard, in_use};
use crate::input::{Backup, Base64, FilePath, Mode, PathText, ReadOnly, read};
use crate::permissions::Permissions;
use crate::text::AccountName;
use crate::{BuiltIn, reply};

mod backup;
pub(crate) mod content;
mod current;
mod desired;

use content::Content;
pub(crate) use content::FileContent;
pub(crate) use current::Current;
pub(crate) use desired::Desired;

/// A file with its content, mode and owner. New content appears at once and complete; the file gets a new inode then, so
/// other hard links keep the former content. What is not mentioned stays as it is.
#[resource(
    "Stead/File",
    about = "A file with its content, mode and owner.",
    tags("file", "content", "linux"),
    exclusive(content, content_base64, source)
)]
#[schemars(
    extend("dependentSchemas" = {
        "content": { "properties": { "contentBase64": false, "source": false } },
        "contentBase64": { "properties": { "source": false } },
    })
)]
struct Properties<'a> {
    /// Where the file is. A relative path starts at the directory of the document, or at the system root that was given. A
    /// symbolic link as the last component is refused; links before it are followed when only root could have placed them.
    #[property(key, place)]
    path: FilePath<'a>,
    /// The whole content, as UTF-8 text. Only one of content, contentBase64 and source can be given.
    content: Option<&'a str>,
    /// The whole content, as Base64; for what is not text.
    content_base64: Option<Base64>,
    /// A file on this machine that has the desired content; in place of content and contentBase64. A relative path
    /// starts at the directory of the document, or at the system root if the document itself manages that path.
    source: Option<PathText<'a>>,
    /// The permissions, as octal digits in quotes. A new file gets 0644 when none are given, whatever the umask is;
    /// 0600 where its properties hold a secret.
    mode: Option<Mode<'a>>,
    /// The name or number of the user that the file belongs to.
    owner: Option<AccountName<'a>>,
    /// The name or number of the group that the file belongs to.
    group: Option<AccountName<'a>>,
    /// Whether missing parent directories are created, with mode 0755. They stay when it is removed, and their mode and owner are
    /// not managed; use Stead/Directory for that.
    #[property(option)]
    parents: bool,
    /// Whether former content is kept when it is replaced or removed. With true it is kept beside the file as
    /// 'NAME.backup-' and the beginning of its SHA-256, every content once; with a suffix as 'NAMESUFFIX', the last one only.
    #[property(option, removal)]
    #[serde(default)]
    #[schemars(extend("default" = false))]
    backup: Backup<'a>,
    /// A command that must accept new content before it is in place, such as 'nginx -t -c %s': words without a shell, with %s
    /// where the path of the content goes, which is a file of the same name that only this user can read. If it ends with another
    /// exit code than 0, the file stays as it is. It is run where something is changed, not for a plan, and is a program of the
    /// running system.
    #[property(option)]
    validate: Option<Guard<'a>>,
    /// Whether the file exists.
    exist: bool,
    /// The number of bytes.
    size: Option<ReadOnly<u64>>,
    /// The digest of the content. Also reported where content that differs is not text or has more than 256 KiB.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    sha256: Option<ReadOnly<String>>,
    /// When the content was last changed.
    #[schemars(extend("format" = "date-time"))]
    modified: Option<ReadOnly<String>>,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {}

/// `Stead/File` as it is registered.
pub fn built_in() -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Files::default()))
}

/// Carries out `Stead/File`.
#[derive(Default)]
pub struct Files {
    names: NamesByRoot,
}

impl Provider for Files {
    fn validate(&self, cx: &Context, input: &Plain) -> Result<(), Failure> {
        Desired::read(cx, input, &self.names.of(&cx.system_root)).map(|_| ())
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let names = self.names.of(&cx.system_root);
        Desired::read(cx, input, &names)?.get(&names)
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let names = self.names.of(&cx.system_root);
        Desired::read(cx, input, &names)?.test(cx, &names)
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        Desired::read(cx, input, &self.names.of(&cx.system_root))?.set(cx, execution)
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        Desired::read(cx, input, &self.names.of(&cx.system_root))?.delete(cx, execution)
    }

    fn cost(&self, desired: &Value) -> Cost {
        reply::cost(desired)
    }

    fn states(&self, _cx: &Context, input: &Plain) -> Vec<Statement> {
        reply::owners(input)
    }

    fn ties(&self, input: &Plain) -> Ties {
        reply::ties(input)
    }

    fn claims(&self, input: &Plain) -> Option<Claims> {
        let [content, encoded, source] = [Properties::CONTENT, Properties::CONTENT_BASE64, Properties::SOURCE];
        let [exist, content, encoded, source, backup] =
            reply::values(input, [Properties::EXIST, content, encoded, source, Properties::BACKUP]);
        let extent = match () {
            () if exist == Some(&Value::Bool(false)) => Extent::Absent,
            () if content.or(encoded).or(source).is_some() => Extent::Whole,
            () => Extent::Attributes,
        };
        let claims = reply::claims(input, extent)?;
        Some(match backup.and_then(Backup::known_suffix) {
            Some(suffix) => claims.and_backup(suffix),
            None => claims,
        })
    }
}

impl<'a> Desired<'a, Content<'a>> {
    fn read(cx: &Context, input: &'a Plain, names: &Names) -> Result<Self, Failure> {
        let mut stated: Properties<'a> = read(input)?;
        let permissions = Permissions::find(cx, stated.mode, stated.owner, stated.group, names)?;
        let content = Content::of(&mut stated, cx)?;
        let mut desired = Self::new(cx, stated.path, content, permissions, stated.backup);
        (desired.exist, desired.parents, desired.guard) = (stated.exist, stated.parents, in_use(stated.validate, cx));
        Ok(desired.private_if_secret(input))
    }
}
