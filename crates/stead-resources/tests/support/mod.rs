//! Trees as text, and calls of built-in resources below a temporary root.

mod archive;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value as Json;
use stead_core::call::Failure;
use stead_host::provider::{Context, Plain, Provider};
use stead_system::fs::SystemRoot;
use tempfile::TempDir;

/// A temporary root and what was traced in it.
pub(crate) struct World {
    pub(crate) root: TempDir,
    pub(crate) trace: Arc<Mutex<Vec<String>>>,
}

impl World {
    /// Builds a tree from lines such as `file a/b 0644 "text"`, `dir a 0755`, `link l -> target` and `fifo p 0600`.
    /// `archive a.tar.gz 0644 [["file", "x", "0644", "text"]]` makes an archive with these entries.
    /// Directories above that are not listed are made with mode 0755. `{uid}` and `{gid}` are those of this process.
    #[allow(dead_code, reason = "each test binary uses a part of this module")]
    pub(crate) fn build(given: &str) -> Self {
        Self::build_in(&std::env::temp_dir(), given)
    }

    /// Builds a tree in memory where the system has a place for that: thousands of random ones would wait for the disk, which
    /// those of [`World::build`] are on.
    #[allow(dead_code, reason = "each test binary uses a part of this module")]
    pub(crate) fn build_in_memory(given: &str) -> Self {
        Self::build_in(&stead_testkit::memory_folder(), given)
    }

    fn build_in(folder: &Path, given: &str) -> Self {
        let world = Self { root: tempfile::tempdir_in(folder).unwrap(), trace: Arc::default() };
        let mut modes = Vec::new();
        let given = of_this_process(given);
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
        for line in given.lines().filter(|line| !line.trim().is_empty()) {
            let (kind, rest) = line.split_once(' ').expect("a kind and a path");
            let (name, rest) = rest.split_once(' ').expect("a path and a mode or target");
            let path = world.root.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).unwrap();
            if kind == "link" {
                symlink(rest.strip_prefix("-> ").expect("'-> target'"), path).unwrap();
                continue;
            }
            let (mode, content) = rest.split_once(' ').unwrap_or((rest, "\"\""));
            match kind {
                "dir" => fs::create_dir_all(&path).unwrap(),
                "file" => fs::write(&path, bytes(content)).unwrap(),
                "archive" => fs::write(&path, archive::build(name, content)).unwrap(),
                "fifo" => rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap(),
                other => panic!("what is a '{other}'?"),
            }
            modes.push((path, u32::from_str_radix(mode, 8).unwrap()));
        }
        for (path, mode) in modes.into_iter().rev() {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        world
    }

    pub(crate) fn context(&self) -> Context {
        let trace = Arc::clone(&self.trace);
        Context {
            deadline: Duration::from_mins(1),
            trace: Arc::new(move |_, text| trace.lock().unwrap().push(text.to_owned())),
            ..Context::new(self.root.path())
        }
    }

    /// The context for a resource of that type. One that may have fixed paths gets the tree as the root of the system, so
    /// that it never reaches the system that runs the test.
    #[allow(dead_code, reason = "each test binary uses a part of this module")]
    pub(crate) fn context_for(&self, type_name: &str) -> Context {
        let by_paths_alone = matches!(type_name, "Stead/File" | "Stead/Directory" | "Stead/Symlink" | "Stead/Line");
        let is_below = type_name.starts_with("Stead/") && type_name != "Stead/Command" && !by_paths_alone;
        let system_root = if is_below { SystemRoot::below(self.root.path()) } else { SystemRoot::running() };
        Context { system_root, ..self.context() }
    }

    /// A tree with the tables and directories of a system in which the user `u`, who is the one that runs the test, has
    /// the home directory `/home/u`. It is in memory where that is possible: what is written to many of them need not reach a disk.
    #[allow(dead_code, reason = "each test binary uses a part of this module")]
    pub(crate) fn system() -> Self {
        let packages = "Package: base\\nStatus: install ok installed\\nArchitecture: all\\nVersion: 1.5\\n";
        let apt = format!(
            "file var/lib/dpkg/status 0644 \"{packages}\"\ndir etc/apt/sources.list.d 0755\ndir etc/sudoers.d 0755\n"
        );
        let archive = "archive a.tar 0644 [[\"file\", \"x\", \"0644\", \"text\"]]\n";
        let commit = "file w/.git/HEAD 0644 \"1111111111111111111111111111111111111111\\n\"\n";
        let config = "[remote \\\"origin\\\"]\\n\\turl = https://host.example/r.git\\n";
        let repository = format!("{commit}file w/.git/config 0644 \"{config}\"\n");
        Self::build_in(
            &stead_testkit::memory_folder(),
            &format!("{USERS}{MACHINE}dir home/u 0755\nfile bin/sh 0755\n{apt}{archive}{repository}"),
        )
    }

    /// The tree in the form that [`World::build`] takes.
    #[allow(dead_code, reason = "each test binary uses a part of this module")]
    pub(crate) fn tree(&self) -> String {
        let lines: Vec<_> = walk(self.root.path()).iter().map(|(name, node)| node.line(name) + "\n").collect();
        lines.concat()
    }

    /// The tree with inodes and times: equal only if nothing at all was done to it.
    #[allow(dead_code, reason = "each test binary uses a part of this module")]
    pub(crate) fn imprint(&self) -> Tree {
        walk(self.root.path())
    }

    /// Text without the accidental name of the root.
    #[allow(dead_code, reason = "each test binary uses a part of this module")]
    pub(crate) fn neutral(&self, text: &str) -> String {
        text.replace(&self.root.path().display().to_string(), "ROOT")
    }

    #[allow(dead_code, reason = "each test binary uses a part of this module")]
    pub(crate) fn show_failure(&self, failure: &Failure) -> String {
        let property = failure.property.as_deref().unwrap_or("/");
        self.neutral(&format!("error {property}: {}\n", failure.message))
    }
}

/// Text without the number of this day, counted from 1970, which a database of passwords has in a field.
#[allow(dead_code, reason = "each test binary uses a part of this module")]
pub(crate) fn without_today(text: &str) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    text.replace(&format!(":{}:", now.as_secs() / 86400), ":TODAY:")
}
fn of_this_process(text: &str) -> String {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    text.replace("{uid}", &uid.to_string()).replace("{gid}", &gid.to_string())
}

/// The lines of a tree with the databases of accounts and the directories of the system that resources write to.
#[allow(dead_code, reason = "each test binary uses a part of this module")]
pub(crate) const USERS: &str = "file etc/passwd 0644 \"u:x:{uid}:{gid}::/home/u:/bin/sh\\n\"\nfile etc/group 0644 \"u:x:{gid}:\\n\"\nfile etc/shadow 0600 \"u:*:1::::::\\n\"\ndir etc/security/limits.d 0755\ndir etc/sysctl.d 0755\ndir etc/cron.d 0755\n";

/// The lines of a tree with the files of a system about its time zone, its locale and the modules of its kernel.
#[allow(dead_code, reason = "each test binary uses a part of this module")]
pub(crate) const MACHINE: &str = "dir etc/modules-load.d 0755\ndir etc/modprobe.d 0755\nfile usr/lib/modprobe.d/p.conf 0644 \"blacklist packaged\\n\"\nlink etc/localtime -> ../usr/share/zoneinfo/Etc/Old\nfile etc/timezone 0644 \"Etc/Old\\n\"\nfile usr/share/zoneinfo/UTC 0644 \"TZif2\"\nfile usr/share/zoneinfo/Europe/Berlin 0644 \"TZif2\"\nfile etc/locale.gen 0644 \"# de_DE.UTF-8 UTF-8\\n\"\nfile var/spool/cron/crontabs/u 0600 \"A=1\\n# Puppet Name: a b\\nB=2\\n@daily x\\n\"\nfile home/u/.ssh/authorized_keys 0600 \"ssh-rsa AAAAold\\nssh-rsa AAAA c\\n\"\nfile etc/ssh/sshd_config 0644 \"Include /etc/ssh/sshd_config.d/*.conf\\n#Port 22\\nX11Forwarding yes\\nAllowUsers u\\nMatch User v\\n\\tPermitTTY no\\n\"\nfile etc/ssh/sshd_config.d/a.conf 0644 \"PermitRootLogin yes\\n\"\n";

fn bytes(json: &str) -> Vec<u8> {
    // Latin-1 in, so that any byte can be written as \u00XX.
    let text: String = serde_json::from_str(json).expect("content as JSON text");
    text.chars().map(|c| u8::try_from(u32::from(c)).expect("one byte")).collect()
}

/// The nodes below a directory, by relative paths.
pub(crate) type Tree = BTreeMap<OsString, Node>;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Node {
    mode: u32,
    content: Vec<u8>,
    inode: u64,
    changed: (i64, i64),
    owner: (u32, u32),
}

impl Node {
    #[allow(dead_code, reason = "each test binary uses a part of this module")]
    fn line(&self, name: &OsString) -> String {
        let name = name.to_string_lossy();
        let mode = format!("{:04o}", self.mode & 0o7777);
        match self.mode & 0o170_000 {
            0o040_000 => format!("dir {name} {mode}"),
            0o120_000 => format!("link {name} -> {}", String::from_utf8_lossy(&self.content)),
            0o100_000 => {
                let text: String = self.content.iter().map(|byte| char::from(*byte)).collect();
                format!("file {name} {mode} {}", serde_json::to_string(&text).unwrap())
            }
            _ => format!("fifo {name} {mode}"),
        }
    }

    /// Returns the kind of node: a file, a directory, a link or something else.
    #[allow(dead_code, reason = "each test binary uses a part of this module")]
    pub(crate) fn kind(&self) -> u32 {
        self.mode & 0o170_000
    }

    /// Returns whether another node is of the same kind and, if it is a link, leads to the same target.
    #[allow(dead_code, reason = "each test binary uses a part of this module")]
    pub(crate) fn remains(&self, now: &Self) -> bool {
        self.kind() == now.kind() && (self.kind() != 0o120_000 || self.content == now.content)
    }

    /// Returns what a copy has in common with its original.
    #[allow(dead_code, reason = "each test binary uses a part of this module")]
    pub(crate) fn copied(&self) -> (u32, Vec<u8>, (u32, u32)) {
        (self.mode, self.content.clone(), self.owner)
    }
}

#[allow(dead_code, reason = "each test binary uses a part of this module")]
pub(crate) fn walk(root: &Path) -> Tree {
    let mut nodes = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let content = if metadata.is_symlink() {
                fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
            } else if metadata.is_file() {
                fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            if metadata.is_dir() {
                pending.push(path.clone());
            }
            let changed = (metadata.ctime(), metadata.ctime_nsec());
            let owner = (metadata.uid(), metadata.gid());
            let node = Node { mode: metadata.mode(), content, inode: metadata.ino(), changed, owner };
            nodes.insert(path.strip_prefix(root).unwrap().into(), node);
        }
    }
    nodes
}

/// The built-in resource of that type.
pub(crate) fn provider(type_name: &str) -> Arc<dyn Provider> {
    let mut found = stead_resources::builtins().iter();
    let built_in = found.find(|each| each.manifest.type_name.as_str() == type_name);
    let built_in = built_in.unwrap_or_else(|| panic!("{type_name} is not registered: name it in make_all() of lib.rs"));
    Arc::clone(&built_in.provider)
}

#[allow(dead_code, reason = "each test binary uses a part of this module")]
pub(crate) fn plain(json: &str) -> Plain {
    Plain::new(serde_json::from_str::<Json>(json).expect("JSON"))
}

/// A state without what depends on when and by whom the test is run.
#[allow(dead_code, reason = "each test binary uses a part of this module")]
pub(crate) fn lasting(state: &Plain, desired: &Plain) -> String {
    let mut json: Json = state.to_json();
    if let Json::Object(members) = &mut json {
        members.retain(|name, _| {
            desired.expose().get(name).is_some() || !["owner", "group", "modified"].contains(&name.as_str())
        });
    }
    format!("{json}\n")
}
