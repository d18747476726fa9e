//! Unit files of systemd, and the links that enable and mask them, below a root.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::known::Known;
use crate::text::{NAMES, assignments, is_whole_name};

/// Where an administrator's unit files and links are, relative to the root.
pub(super) const ADMINISTRATOR: &str = "etc/systemd/system";

/// Where unit files are, in the order in which systemd looks for them.
const SEARCHED: [&str; 10] = [
    "etc/systemd/system.control",
    "run/systemd/system.control",
    "run/systemd/transient",
    "run/systemd/generator.early",
    ADMINISTRATOR,
    "run/systemd/system",
    "run/systemd/generator",
    "usr/local/lib/systemd/system",
    "usr/lib/systemd/system",
    "run/systemd/generator.late",
];

/// What a link to it in place of a unit file means: that the unit must not start.
pub(super) const MASK: &str = "/dev/null";

/// A unit, as the files below a root say.
pub(super) struct Unit {
    /// Its unit file, if it has one besides a mask.
    pub(super) fragment: Option<Fragment>,
    /// Where it is masked, relative to the root.
    pub(super) masks: Vec<String>,
    /// The links that enable it, relative to the root.
    pub(super) links: Vec<String>,
}

/// A unit file.
#[derive(Clone)]
pub(super) struct Fragment {
    /// Where it is, relative to the root.
    pub(super) path: String,
    pub(super) text: String,
}

impl Fragment {
    /// Whether it is the administrator's, and not that of a package.
    pub(super) fn is_own(&self) -> bool {
        Path::new(&self.path).parent() == Some(Path::new(ADMINISTRATOR))
    }
}

impl Unit {
    /// The unit of that name.
    pub(super) fn find(root: &Path, name: &str) -> Self {
        let own = named(root, name);
        let template =
            || template(name).and_then(|template| named(root, &template).iter().find_map(|at| read(root, at)));
        let fragment = own.iter().find_map(|at| read(root, at)).or_else(template);
        let masks = own.into_iter().filter(|at| at.target.as_deref() == Some(Path::new(MASK)));
        Self { fragment, masks: masks.map(|at| at.path).collect(), links: links(root, name) }
    }

    /// Whether anything is known of it.
    pub(super) fn exists(&self) -> bool {
        self.fragment.is_some() || !self.masks.is_empty()
    }
}

fn is_mask(path: &Path) -> bool {
    fs::read_link(path).is_ok_and(|target| target == Path::new(MASK))
}

/// Something that has the name of a unit where unit files are looked for.
struct Named {
    path: String,
    /// Where it leads, if it is a link.
    target: Option<PathBuf>,
}

fn named(root: &Path, name: &str) -> Vec<Named> {
    let at = |directory: &&str| {
        let path = format!("{directory}/{name}");
        match fs::read_link(root.join(&path)) {
            Ok(target) => Some(Named { path, target: Some(target) }),
            // It is not a link.
            Err(error) if error.kind() == ErrorKind::InvalidInput => Some(Named { path, target: None }),
            Err(_) => None,
        }
    };
    SEARCHED.iter().filter_map(at).collect()
}

/// `a@.service` for `a@b.service`.
fn template(name: &str) -> Option<String> {
    let (stem, suffix) = name.rsplit_once('.')?;
    let (prefix, instance) = stem.split_once('@')?;
    (!instance.is_empty()).then(|| format!("{prefix}@.{suffix}"))
}

/// Reads a unit file. A link leads to a unit file of another name, below the same root.
fn read(root: &Path, Named { path, target }: &Named) -> Option<Fragment> {
    let Some(target) = target else {
        return Some(Fragment { path: path.clone(), text: text_of(root, path)? });
    };
    let target = below(&Path::new(path).parent()?.join(target));
    // One step: systemd follows more, and nobody has more.
    let is_file = fs::symlink_metadata(root.join(&target)).is_ok_and(|metadata| metadata.is_file());
    is_file.then(|| read(root, &Named { path: target, target: None })).flatten()
}

/// The text of a unit file below a root; `None` of what is not a file, or is far larger than one.
pub(super) fn text_of(root: &Path, path: &str) -> Option<String> {
    const MAX_SIZE: u64 = 4 << 20;
    let content = stead_host::fs::read_within(root, Path::new(path), MAX_SIZE).ok()??;
    Some(String::from_utf8_lossy(&content.bytes).into_owned())
}

/// A path within the root, relative to it.
fn below(path: &Path) -> String {
    use std::path::Component;
    let mut below = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => below.push(name),
            Component::ParentDir => _ = below.pop(),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    below.to_string_lossy().into_owned()
}

/// What the administrator's directory has by which units are enabled.
#[derive(Default)]
struct Enabling {
    /// The directories with the links by which a unit requires or wants others.
    folders: Vec<String>,
    /// The links in it, and the last names of where they lead.
    aliases: Vec<(String, OsString)>,
}

/// The directory as it was last read: links come and go only with a change of it.
static ENABLING: Known<Enabling> = Known::new();

impl Enabling {
    fn of(root: &Path) -> Arc<Self> {
        let directory = root.join(ADMINISTRATOR);
        let Ok(read) = ENABLING.of(vec![directory.clone()], || Ok::<_, Infallible>(Self::read(&directory)));
        read
    }

    fn read(directory: &Path) -> Self {
        let mut read = Self::default();
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let (Ok(name), Ok(file_type)) = (entry.file_name().into_string(), entry.file_type()) else { continue };
            if file_type.is_dir() && [".wants", ".requires", ".upholds"].iter().any(|end| name.ends_with(end)) {
                read.folders.push(name);
            } else if let Some(target) = file_type.is_symlink().then(|| fs::read_link(entry.path()).ok()).flatten() {
                read.aliases.extend(target.file_name().map(|last| (name, last.to_owned())));
            }
        }
        read
    }
}

/// The links by which other units require or want a unit, and those that are other names of it.
fn links(root: &Path, name: &str) -> Vec<String> {
    let enabling = Enabling::of(root);
    let in_folders = enabling.folders.iter().map(|folder| format!("{ADMINISTRATOR}/{folder}/{name}"));
    let in_folders = in_folders.filter(|path| fs::read_link(root.join(path)).is_ok());
    let aliases =
        enabling.aliases.iter().filter(|(alias, target)| alias != name && target.as_bytes() == name.as_bytes());
    let mut links: Vec<String> =
        in_folders.chain(aliases.map(|(alias, _)| format!("{ADMINISTRATOR}/{alias}"))).collect();
    links.sort();
    links
}

/// The names of all units below a root that are enabled or masked there and end so, without templates.
pub(super) fn configured(root: &Path, suffix: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut folders = vec![(root.join(ADMINISTRATOR), false)];
    while let Some((folder, is_inner)) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (Ok(name), Ok(file_type)) = (entry.file_name().into_string(), entry.file_type()) else { continue };
            if file_type.is_dir() && !is_inner && Path::new(&name).extension() != Some("d".as_ref()) {
                folders.push((entry.path(), true));
            } else if name.ends_with(suffix) && (is_inner || !file_type.is_symlink() || is_mask(&entry.path())) {
                names.insert(name);
            }
        }
    }
    names.retain(|name| !name.contains("@."));
    names
}

/// What the section `[Install]` of a unit file asks for.
#[derive(Default, Debug, PartialEq, Eq)]
pub(super) struct Install {
    /// The links that enable the unit, relative to the root.
    pub(super) links: Vec<String>,
    /// The units that are enabled and disabled with it.
    pub(super) also: Vec<String>,
    /// Whether it names something that is not the name of a unit, which is passed over.
    pub(super) has_odd_names: bool,
}

impl Install {
    /// Reads the section for the unit of that name.
    pub(super) fn of(text: &str, name: &str) -> Self {
        let mut install = Self::default();
        for (key, value) in assignments(text, "Install") {
            if !NAMES.contains(&key) {
                continue;
            }
            let words: Vec<String> = value.split_whitespace().map(|word| specified(word, name)).collect();
            // Another name could lead out of the folder.
            install.has_odd_names |= !words.iter().all(|word| is_whole_name(word));
            let words = words.into_iter().filter(|word| is_whole_name(word));
            let within = |kind: &str, unit: String| format!("{ADMINISTRATOR}/{unit}.{kind}/{name}");
            match key {
                "WantedBy" => install.links.extend(words.map(|unit| within("wants", unit))),
                "RequiredBy" => install.links.extend(words.map(|unit| within("requires", unit))),
                "UpheldBy" => install.links.extend(words.map(|unit| within("upholds", unit))),
                "Alias" => {
                    let aliases = words.filter(|alias| alias != name);
                    install.links.extend(aliases.map(|alias| format!("{ADMINISTRATOR}/{alias}")));
                }
                "Also" => install.also.extend(words),
                _ => {}
            }
        }
        install
    }
}

/// A name of another unit in which specifiers stand for parts of the name of this one.
fn specified(word: &str, name: &str) -> String {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let (prefix, instance) = stem.split_once('@').unwrap_or((stem, ""));
    let parts = [("%i", instance), ("%I", instance), ("%n", name), ("%N", stem), ("%p", prefix), ("%P", prefix)];
    parts.iter().fold(word.to_owned(), |word, (specifier, part)| word.replace(specifier, part)).replace("%%", "%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_install_section_says_which_links_enable_a_unit() {
        let text = "[Unit]\nWantedBy=no\n[Install]\n# c\nWantedBy=a.target \\\n  b@%i.target\nAlias=x.service\nAlso=s.socket\n";
        let install = Install::of(text, "n@1.service");
        let links = ["a.target.wants/n@1.service", "b@1.target.wants/n@1.service", "x.service"];
        assert_eq!(install.links, links.map(|link| format!("{ADMINISTRATOR}/{link}")));
        assert_eq!(install.also, ["s.socket"]);
    }
}
