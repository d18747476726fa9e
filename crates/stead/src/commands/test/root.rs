//! The roots that tests start from.

use std::io;
use std::path::{Path, PathBuf};

use stead_engine::error_chain;
use stead_system::fs::{copy_tree, make_link, reason};
use stead_system::scratch::Scratch;

use super::file::{Given, Root};

/// Makes the root of a test, with what it is to start from: a copy of a folder, or else what every machine has.
///
/// # Errors
/// In words, when something cannot be made.
pub(super) fn make(scratch: &Scratch, root: &Path, given: &Given) -> Result<(), String> {
    let failed = |error: io::Error| format!("cannot create the root: {}", reason(&error));
    scratch.create_folder(root).map_err(failed)?;
    match &given.root {
        Root::Copy(folder) if !folder.is_dir() => {
            return Err(format!("the root '{}' is not a folder", folder.display()));
        }
        Root::Copy(folder) => copy_tree(folder, root).map_err(|error| error_chain(&error))?,
        Root::Machine => machine(scratch, root).map_err(failed)?,
        Root::Empty => {}
    }
    scratch.set_mode(root, OPEN).map_err(failed)?;
    for folder in &given.folders {
        let failed = |error: io::Error| format!("cannot create '/{}': {}", folder.display(), reason(&error));
        make_folders(scratch, root, &root.join(resolved(folder, &given.root))).map_err(failed)?;
    }
    for (path, file) in &given.files {
        let failed = |error: io::Error| format!("cannot create '/{}': {}", path.display(), reason(&error));
        let below = root.join(resolved(path, &given.root));
        make_folders(scratch, root, below.parent().unwrap_or(root)).map_err(failed)?;
        if below.symlink_metadata().is_ok() {
            std::fs::remove_file(&below).map_err(failed)?;
        }
        scratch.create_file(&below, file.content.as_bytes(), file.mode.unwrap_or(0o644)).map_err(failed)?;
    }
    Ok(())
}

/// The path that links of the machine lead a path to.
fn resolved(path: &Path, root: &Root) -> PathBuf {
    let link = LINKS.iter().find(|(link, _)| matches!(root, Root::Machine) && path.starts_with(link));
    let rest = link.and_then(|(link, target)| Some(Path::new(target).join(path.strip_prefix(link).ok()?)));
    rest.unwrap_or_else(|| path.to_owned())
}

/// The folders that every machine has.
const FOLDERS: [&str; 33] = [
    "etc/cron.d",
    "etc/logrotate.d",
    "etc/modprobe.d",
    "etc/modules-load.d",
    "etc/profile.d",
    "etc/security/limits.d",
    "etc/ssh",
    "etc/sudoers.d",
    "etc/sysctl.d",
    "etc/systemd/system",
    "etc/tmpfiles.d",
    "home",
    "opt",
    "root",
    "run",
    "srv",
    "tmp",
    "usr/bin",
    "usr/lib/systemd/system",
    "usr/local/bin",
    "usr/local/etc",
    "usr/local/lib",
    "usr/local/sbin",
    "usr/local/share",
    "usr/sbin",
    "usr/share",
    "var/cache",
    "var/lib",
    "var/log",
    "var/mail",
    "var/opt",
    "var/spool",
    "var/tmp",
];

/// The files that every machine has: who may log in, what it is called, and shells, which are only there to be named.
const FILES: [(&str, &str, u32); 8] = [
    ("etc/group", "root:x:0:\n", 0o644),
    ("etc/hostname", "localhost\n", 0o644),
    ("etc/hosts", "127.0.0.1 localhost\n::1 localhost\n", 0o644),
    ("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n", 0o644),
    ("etc/shadow", "root:*:19000:0:99999:7:::\n", 0o600),
    ("usr/bin/bash", "", 0o755),
    ("usr/bin/sh", "", 0o755),
    ("usr/sbin/nologin", "", 0o755),
];

/// The links that every machine has.
const LINKS: [(&str, &str); 3] = [("bin", "usr/bin"), ("lib", "usr/lib"), ("sbin", "usr/sbin")];

/// Returns whether a link is as every machine has it.
pub(super) fn is_of_machine(path: &Path, target: &Path) -> bool {
    LINKS.iter().any(|(link, usual)| path == Path::new("/").join(link) && target == Path::new(usual))
}

/// Returns whether a file is as every machine has it.
pub(super) fn came_with_it(path: &Path, content: &[u8]) -> bool {
    FILES.iter().any(|(known, text, _)| {
        path.strip_prefix("/").is_ok_and(|path| path == Path::new(known)) && text.as_bytes() == content
    })
}

/// Makes what every machine has: the folders of the Filesystem Hierarchy Standard, and root.
fn machine(scratch: &Scratch, root: &Path) -> io::Result<()> {
    for folder in FOLDERS {
        make_folders(scratch, root, &root.join(folder))?;
    }
    scratch.set_mode(&root.join("root"), 0o700)?;
    scratch.set_mode(&root.join("tmp"), 0o1777)?;
    scratch.set_mode(&root.join("var/tmp"), 0o1777)?;
    LINKS.iter().try_for_each(|(link, target)| make_link(target, &root.join(link)))?;
    FILES.iter().try_for_each(|(path, content, mode)| scratch.create_file(&root.join(path), content.as_bytes(), *mode))
}

/// The mode of folders that anybody may enter.
const OPEN: u32 = 0o755;

/// Makes the folders that are missing. One that is there is entered only where no link leads to it: what a copied link names is
/// outside of the root.
fn make_folders(scratch: &Scratch, root: &Path, folder: &Path) -> io::Result<()> {
    let within = folder.strip_prefix(root).unwrap_or(folder);
    let mut path = root.to_owned();
    for name in within {
        path.push(name);
        match path.symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            Ok(_) => {
                return Err(io::Error::other(format!(
                    "'{}' is a link or a file; write the path that it leads to",
                    name.display()
                )));
            }
            Err(_) => {
                scratch.create_folder(&path)?;
                scratch.set_mode(&path, OPEN)?;
            }
        }
    }
    Ok(())
}
