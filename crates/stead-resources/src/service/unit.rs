//! Unit files of systemd, and the links that enable and mask them, below a root.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stead_system::fs::{FileKind, SystemPath, SystemRoot};

use crate::known::Known;
use crate::text::{NAMES, assignments, is_whole_name};

/// Where an administrator's unit files and links are, relative to the root.
pub(super) const ADMINISTRATOR: &str = "etc/systemd/system";

/// Where unit files are, in the order in which systemd looks for them.
pub(super) const SEARCHED: [&str; 10] = [
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
    /// Its real name, even if it was searched for by an alias.
    pub(super) name: String,
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
    /// Returns whether it is the administrator's, and not that of a package.
    pub(super) fn is_own(&self) -> bool {
        Path::new(&self.path).parent() == Some(Path::new(ADMINISTRATOR))
    }
}

impl Unit {
    /// The unit of that name.
    pub(super) fn find(root: &SystemRoot, name: &str) -> Self {
        let own = named(root, name);
        let template =
            || template(name).and_then(|template| named(root, &template).iter().find_map(|at| read(root, at)));
        let fragment = own.iter().find_map(|at| read(root, at)).or_else(template);
        let stated = format!("{ADMINISTRATOR}/{name}");
        let name = own.iter().find_map(|at| at.real_name(name)).unwrap_or_else(|| name.to_owned());
        let masks = own.into_iter().filter(|at| at.target.as_deref() == Some(Path::new(MASK)));
        let masks = masks.map(|at| at.path).collect();
        // The link by which it was found starts nothing, and is needed to find it again.
        let links = links(root, &name).into_iter().filter(|link| *link != stated).collect();
        Self { name, fragment, masks, links }
    }

    /// Returns the state for a unit of that name, even if the name leads to another.
    pub(super) fn named(self, root: &SystemRoot, name: &str) -> Self {
        Self { links: links(root, name), name: name.to_owned(), ..self }
    }

    /// Returns whether anything is known of it.
    pub(super) fn exists(&self) -> bool {
        self.fragment.is_some() || !self.masks.is_empty()
    }
}

fn is_mask(path: &SystemPath) -> bool {
    path.link_target().is_some_and(|target| target == Path::new(MASK))
}

/// Something that has the name of a unit where unit files are looked for.
struct Named {
    path: String,
    /// Where it leads, if it is a link.
    target: Option<PathBuf>,
}

impl Named {
    /// The name of the unit that a link makes another name for. A link to a template makes an instance of it.
    fn real_name(&self, name: &str) -> Option<String> {
        let target = self.target.as_deref().filter(|target| *target != Path::new(MASK))?;
        let real = target.file_name()?.to_str()?;
        (is_whole_name(real) && real != name && template(name).as_deref() != Some(real)).then(|| real.to_owned())
    }
}

/// The name of the unit that a name is another name of.
pub(super) fn real_name(root: &SystemRoot, name: &str) -> Option<String> {
    named(root, name).iter().find_map(|at| at.real_name(name))
}

fn named(root: &SystemRoot, name: &str) -> Vec<Named> {
    let at = |directory: &&str| {
        let path = format!("{directory}/{name}");
        let at = root.at(&path);
        match at.link_target() {
            None if at.status().is_none() => None,
            target => Some(Named { path, target }),
        }
    };
    SEARCHED.iter().filter_map(at).collect()
}

/// `a@.service` for `a@b.service`.
pub(super) fn template(name: &str) -> Option<String> {
    let (stem, suffix) = name.rsplit_once('.')?;
    let (prefix, instance) = stem.split_once('@')?;
    (!instance.is_empty()).then(|| format!("{prefix}@.{suffix}"))
}

/// Reads a unit file. A link leads to a unit file of another name, below the same root.
fn read(root: &SystemRoot, Named { path, target }: &Named) -> Option<Fragment> {
    let Some(target) = target else {
        return Some(Fragment { path: path.clone(), text: text_of(root, path)? });
    };
    let target = below(&Path::new(path).parent()?.join(target));
    // One step: systemd follows more, and nobody has more.
    let is_file = root.at(&target).status().is_some_and(|status| status.kind == FileKind::File);
    is_file.then(|| read(root, &Named { path: target, target: None })).flatten()
}

/// The text of a unit file below a root; `None` of what is not a file, or is far larger than one.
pub(super) fn text_of(root: &SystemRoot, path: &str) -> Option<String> {
    const MAX_SIZE: u64 = 4 << 20;
    root.text(path, MAX_SIZE)
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
    fn of(root: &SystemRoot) -> Arc<Self> {
        let Ok(read) = ENABLING.of(vec![root.at(ADMINISTRATOR)], || Ok::<_, Infallible>(Self::read(root)));
        read
    }

    fn read(root: &SystemRoot) -> Self {
        let mut read = Self::default();
        for (name, kind) in root.entries(ADMINISTRATOR).unwrap_or_default() {
            let Ok(name) = name.into_string() else { continue };
            if kind == FileKind::Directory && [".wants", ".requires", ".upholds"].iter().any(|end| name.ends_with(end))
            {
                read.folders.push(name);
            } else if let Some(target) = root.at(format!("{ADMINISTRATOR}/{name}")).link_target() {
                read.aliases.extend(target.file_name().map(|last| (name, last.to_owned())));
            }
        }
        read
    }
}

/// The links by which other units require or want a unit, and those that are other names of it.
pub(super) fn links(root: &SystemRoot, name: &str) -> Vec<String> {
    let enabling = Enabling::of(root);
    let in_folders = enabling.folders.iter().map(|folder| format!("{ADMINISTRATOR}/{folder}/{name}"));
    let in_folders = in_folders.filter(|path| root.at(path).link_target().is_some());
    let aliases =
        enabling.aliases.iter().filter(|(alias, target)| alias != name && target.as_encoded_bytes() == name.as_bytes());
    let mut links: Vec<String> =
        in_folders.chain(aliases.map(|(alias, _)| format!("{ADMINISTRATOR}/{alias}"))).collect();
    links.sort();
    links
}

/// The names of all units below a root that are enabled or masked there and end so, without templates.
pub(super) fn configured(root: &SystemRoot, suffix: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut folders = vec![(ADMINISTRATOR.to_owned(), false)];
    while let Some((folder, is_inner)) = folders.pop() {
        for (name, kind) in root.entries(&folder).unwrap_or_default() {
            let Ok(name) = name.into_string() else { continue };
            let path = format!("{folder}/{name}");
            if kind == FileKind::Directory && !is_inner && Path::new(&name).extension() != Some("d".as_ref()) {
                folders.push((path, true));
            } else if name.ends_with(suffix) && (is_inner || kind != FileKind::Symlink || is_mask(&root.at(&path))) {
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
    /// True if it names something that is not a valid name of a unit, which is ignored.
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

    #[test]
    fn an_alias_is_another_name_of_its_unit() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for folder in ["usr/lib/systemd/system", "etc/systemd/system/multi-user.target.wants"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        let link = |target: &str, path: &str| std::os::unix::fs::symlink(target, at(path)).unwrap();
        std::fs::write(at("usr/lib/systemd/system/ssh.service"), "[Install]\nWantedBy=multi-user.target\n").unwrap();
        std::fs::write(at("usr/lib/systemd/system/tty@.service"), "[Service]\n").unwrap();
        link("/usr/lib/systemd/system/ssh.service", "etc/systemd/system/sshd.service");
        link("ssh.service", "usr/lib/systemd/system/openssh.service");
        link("tty@.service", "usr/lib/systemd/system/tty@1.service");
        let (system, wants) =
            (SystemRoot::below(root.path()), format!("{ADMINISTRATOR}/multi-user.target.wants/ssh.service"));
        assert_eq!(Unit::find(&system, "sshd.service").links, [""; 0]);
        link("/usr/lib/systemd/system/ssh.service", &wants);
        let found = |name: &str| Unit::find(&system, name);
        assert_eq!(
            (found("sshd.service").name, found("sshd.service").links),
            ("ssh.service".into(), vec![wants.clone()])
        );
        assert_eq!(found("openssh.service").name, "ssh.service");
        assert_eq!(found("ssh.service").links, [wants, format!("{ADMINISTRATOR}/sshd.service")]);
        assert_eq!(found("tty@1.service").name, "tty@1.service");
    }
}
