//! What files of the system say about modules: which are loaded at boot, with which options, and which are blacklisted.

use std::collections::BTreeMap;
use std::path::Path;

use stead_core::call::Failure;
use stead_host::provider::Context;
use stead_system::fs;

use crate::edit::entries_in;
use crate::part::lines::{Line, lines};

/// Where administrators have files; those of packages and of the running system are in the other folders.
pub(super) const BOOT: &str = "/etc/modules-load.d";
pub(super) const SETTINGS: &str = "/etc/modprobe.d";
const BOOT_FOLDERS: [&str; 4] =
    [BOOT, "/run/modules-load.d", "/usr/local/lib/modules-load.d", "/usr/lib/modules-load.d"];
const SETTINGS_FOLDERS: [&str; 5] =
    [SETTINGS, "/run/modprobe.d", "/usr/local/lib/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d"];

/// The file that systemd reads besides, where Debian has not made it a link.
const DEBIAN: &str = "/etc/modules";

/// Far more than a file of settings has.
const MAX_SIZE: u64 = 1 << 20;

/// A file that counts.
pub(super) struct ConfigFile {
    /// Where it is in the system that is managed.
    pub(super) path: String,
    pub(super) text: String,
}

impl ConfigFile {
    /// Returns whether it is the administrator's, and not that of a package.
    pub(super) fn is_own(&self) -> bool {
        self.path.starts_with("/etc/")
    }

    /// The lines of a kind.
    pub(super) fn lines_of<'t>(&'t self, is_it: impl Fn(&str) -> bool + 't) -> impl Iterator<Item = &'t str> {
        self.text.lines().filter(move |line| is_it(line))
    }
}

/// The files with the names of modules that are loaded at boot.
pub(super) fn of_boot(cx: &Context) -> Result<Vec<ConfigFile>, Failure> {
    let mut files = in_folders(cx, &BOOT_FOLDERS)?;
    let debian = cx.resolve(DEBIAN).status().is_some_and(|found| found.kind == fs::FileKind::File);
    let is_linked = |file: &ConfigFile| file.path == format!("{BOOT}/modules.conf");
    if let (true, Some(text)) = (debian, read(cx, DEBIAN)?) {
        // The link to it has the same content, and only the file itself can be edited.
        files.retain(|file| !is_linked(file) || file.text != text);
        files.push(ConfigFile { path: DEBIAN.to_owned(), text });
    }
    Ok(files)
}

/// The files with settings of modprobe.
pub(super) fn of_settings(cx: &Context) -> Result<Vec<ConfigFile>, Failure> {
    in_folders(cx, &SETTINGS_FOLDERS)
}

/// The files that end in '.conf', in the order of their names. Of several with one name the one in the first folder counts.
fn in_folders(cx: &Context, folders: &[&str]) -> Result<Vec<ConfigFile>, Failure> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for folder in folders {
        for name in entries_in(cx, folder)?.into_keys().filter_map(|name| name.into_string().ok()) {
            let is_settings = Path::new(&name).extension().is_some_and(|end| end == "conf");
            if is_settings && !found.contains_key(&name) {
                let path = format!("{folder}/{name}");
                found.insert(name, path);
            }
        }
    }
    let read = |path: String| Ok(read(cx, &path)?.map(|text| ConfigFile { path, text }));
    found.into_values().map(read).filter_map(Result::transpose).collect()
}

fn read(cx: &Context, path: &str) -> Result<Option<String>, Failure> {
    // A link to /dev/null in place of a file switches it off.
    match cx.system_root.read(path, MAX_SIZE) {
        Err(fs::FsError::WrongKind { .. }) => Ok(None),
        content => Ok(content?.map(|content| String::from_utf8_lossy(&content.bytes).into_owned())),
    }
}

/// Returns whether two names are those of one module: modprobe takes '-' for '_'.
pub(super) fn same_module(one: &str, other: &str) -> bool {
    let letters = |name: &str| name.replace('-', "_");
    letters(one) == letters(other)
}

/// Returns whether a line has the module loaded at boot.
pub(super) fn loads(line: &str, name: &str) -> bool {
    // Debian's file may have options behind the name.
    let word = line.trim().split([' ', '\t', '#', ';']).next().unwrap_or_default();
    same_module(word, name)
}

/// The options that a line gives the module.
pub(super) fn options<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    directive(line, "options", name)
}

/// Returns whether a line blacklists the module.
pub(super) fn blacklists(line: &str, name: &str) -> bool {
    directive(line, "blacklist", name).is_some()
}

/// What is behind the name of the module in a line that begins with this word.
fn directive<'l>(line: &'l str, word: &str, name: &str) -> Option<&'l str> {
    let rest = line.trim().strip_prefix(word)?;
    let rest = rest.strip_prefix([' ', '\t'])?.trim_start();
    let end = rest.find([' ', '\t']).unwrap_or(rest.len());
    let (module, rest) = rest.split_at_checked(end)?;
    same_module(module, name).then(|| rest.trim())
}

/// The text with this line in place of the first one of a kind, and without the others.
pub(super) fn with_only(text: &str, is_it: impl Fn(&str) -> bool, new: Option<&str>) -> String {
    let mut new = new;
    let kept = |line: Line<'_>| {
        if is_it(line.text) {
            new.take().map(|new| format!("{new}\n")).unwrap_or_default()
        } else {
            text.get(line.range).unwrap_or_default().to_owned()
        }
    };
    lines(text).into_iter().map(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_about_a_module_are_recognized() {
        assert!(
            loads("br_netfilter", "br-netfilter") && loads(" loop max_loop=8", "loop") && loads("loop # c", "loop")
        );
        assert!(!loads("# loop", "loop") && !loads("loopx", "loop"));
        assert_eq!(options("options  loop\tmax_loop=8  a=b ", "loop"), Some("max_loop=8  a=b"));
        assert_eq!(options("optionsx loop a", "loop"), None);
        assert!(blacklists("blacklist snd-pcm", "snd_pcm") && !blacklists("# blacklist loop", "loop"));
        let text = "a\nblacklist x\n# c\nblacklist x\n";
        let is_it = |line: &str| blacklists(line, "x");
        assert_eq!(with_only(text, is_it, Some("new")), "a\nnew\n# c\n");
        assert_eq!(with_only(text, is_it, None), "a\n# c\n");
    }
}
