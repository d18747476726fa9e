//! Which paths are trusted: a table of what others could change, and where.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, XattrFlags, setxattr};
use stead_system::fs::{OpenError, Trust, TrustedDirectory, TrustedFile};
use stead_testkit::is_root;

const EVE: u32 = 12345;

struct Home(tempfile::TempDir);

impl Home {
    /// `one/two/file`, all of it root's.
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(home.at("one/two")).unwrap();
        fs::write(home.at("one/two/file"), "text").unwrap();
        for name in ["", "one", "one/two"] {
            home.mode(name, 0o755);
        }
        home
    }

    /// Returns a home with links: target and name.
    fn with_links(links: &[(&str, &str)]) -> Self {
        let home = Self::new();
        fs::create_dir(home.at("other")).unwrap();
        home.mode("other", 0o755);
        for (target, name) in links {
            home.link(target, name);
        }
        home
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.at(name), Permissions::from_mode(mode)).unwrap();
    }

    fn give(&self, name: &str) {
        lchown(self.at(name), Some(EVE), None).unwrap();
    }

    fn link(&self, target: &str, name: &str) {
        symlink(target, self.at(name)).unwrap();
    }

    /// Lets another user write, by an access list and not by the mode alone.
    fn grant(&self, name: &str) {
        // Version 2; then tag, rights and id of each entry: owner, user, group, mask, others.
        let entries: [(u16, u16, u32); 5] =
            [(1, 7, u32::MAX), (2, 7, EVE), (4, 5, u32::MAX), (16, 7, u32::MAX), (32, 5, u32::MAX)];
        let entry = |(tag, rights, id): (u16, u16, u32)| {
            [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
        };
        let list = [2_u32.to_le_bytes().to_vec(), entries.map(entry).concat()].concat();
        setxattr(self.at(name), "system.posix_acl_access", &list, XattrFlags::empty()).unwrap();
    }

    fn judge(&self, name: &str) -> String {
        let opened = TrustedFile::open(&self.at(name), Trust::Root);
        self.judge_in_directory(name, opened.as_ref().err());
        match opened {
            Ok(file) => std::io::read_to_string(file.read().unwrap()).unwrap(),
            Err(OpenError::Untrusted(untrusted)) => self.shown(&format!("{untrusted}; {}", untrusted.help())),
            Err(error) => format!("{error}: {:?}", std::error::Error::source(&error)),
        }
    }

    /// Files that are read or listed through their directory are judged like those that are opened by their path.
    fn judge_in_directory(&self, name: &str, expected: Option<&OpenError>) {
        let path = self.at(name);
        let Ok(directory) = TrustedDirectory::open(path.parent().unwrap(), Trust::Root) else { return };
        let read = directory.readable(path.file_name().unwrap()).err();
        assert_eq!(read.map(|error| error.to_string()), expected.map(ToString::to_string), "{name}");
        for path in path.ancestors().skip(1).take(2) {
            let Ok(above) = TrustedDirectory::open(path.parent().unwrap(), Trust::Root) else { continue };
            let listable = above.listable_below(path.file_name().unwrap()).err();
            let expected = TrustedDirectory::open(path, Trust::Root).err();
            assert_eq!(listable.map(|error| error.to_string()), expected.map(|error| error.to_string()), "{name}");
        }
    }

    fn shown(&self, text: &str) -> String {
        text.replace(self.0.path().to_str().unwrap(), "~")
    }
}

/// A change that somebody made, the file that is opened then, and the result.
type Row = (&'static str, fn(&Home), &'static str, &'static str);

const ROWS: &[Row] = &[
    ("nothing", |_| (), "one/two/file", "text"),
    (
        "a given file",
        |home| home.give("one/two/file"),
        "one/two/file",
        "'~/one/two/file' is owned by user 12345, not by root; run `chown root '~/one/two/file'`",
    ),
    (
        "a file for all",
        |home| home.mode("one/two/file", 0o666),
        "one/two/file",
        "'~/one/two/file' can be written by everyone (mode 0666); run `chmod go-w '~/one/two/file'`",
    ),
    (
        "a file for its group",
        |home| home.mode("one/two/file", 0o664),
        "one/two/file",
        "'~/one/two/file' can be written by its group or an access list (mode 0664); run `chmod g-w '~/one/two/file'`",
    ),
    (
        "a file with an access list",
        |home| home.grant("one/two/file"),
        "one/two/file",
        "'~/one/two/file' can be written by its group or an access list (mode 0775); run `chmod g-w '~/one/two/file'`",
    ),
    (
        "a directory with an access list",
        |home| home.grant("one/two"),
        "one/two/file",
        "'~/one/two' can be written by its group or an access list (mode 0775); run `chmod g-w '~/one/two'`",
    ),
    (
        "a given directory",
        |home| home.give("one/two"),
        "one/two/file",
        "'~/one/two' is owned by user 12345, not by root; put what root is to use into a directory of root, such as below /usr/local",
    ),
    (
        "a given ancestor",
        |home| home.give("one"),
        "one/two/file",
        "'~/one' is owned by user 12345, not by root; put what root is to use into a directory of root, such as below /usr/local",
    ),
    (
        "an ancestor for its group",
        |home| home.mode("one", 0o775),
        "one/two/file",
        "'~/one' can be written by its group or an access list (mode 0775); run `chmod g-w '~/one'`",
    ),
    ("a sticky ancestor", |home| home.mode("one", 0o1777), "one/two/file", "text"),
    (
        "a sticky directory",
        |home| home.mode("one/two", 0o1777),
        "one/two/file",
        "'~/one/two/file' is in a directory that everyone can write; move it to a directory that only root can write",
    ),
    (
        "a given directory in a sticky one",
        |home| {
            home.mode("one", 0o1777);
            home.give("one/two");
        },
        "one/two/file",
        "'~/one/two' is owned by user 12345, not by root; put what root is to use into a directory of root, such as below /usr/local",
    ),
    ("a link", |home| home.link("two/file", "one/link"), "one/link", "text"),
    (
        "a link to a link, and back",
        |home| {
            home.link("../../one", "one/two/up");
            home.link("two/up/two/../two/file", "one/link");
        },
        "one/link",
        "text",
    ),
    (
        "a given link",
        |home| {
            home.link("two/file", "one/link");
            home.give("one/link");
        },
        "one/link",
        "'~/one/link' is owned by user 12345, not by root; run `chown root '~/one/link'`",
    ),
    (
        "a link into a given directory",
        |home| {
            home.link("one/two/file", "link");
            home.give("one");
        },
        "link",
        "'~/one' is owned by user 12345, not by root; put what root is to use into a directory of root, such as below /usr/local",
    ),
    (
        "a link as a directory",
        |home| {
            home.link("one/two", "link");
            home.give("one/two");
        },
        "link/file",
        "'~/one/two' is owned by user 12345, not by root; put what root is to use into a directory of root, such as below /usr/local",
    ),
];

#[test]
fn every_component_counts() {
    if !is_root("every_component_counts") {
        return;
    }
    for (what, change, path, expected) in ROWS {
        let home = Home::new();
        change(&home);
        assert_eq!(home.judge(path), *expected, "{what}");
        // Nobody else is careful.
        assert!(TrustedFile::open(&home.at(path), Trust::Everyone).is_ok(), "{what}");
    }
}

type Change = fn(&Home, &str);

/// The changes that somebody can have made to a component of a path.
const CHANGES: [(&str, Change); 6] = [
    ("given", |home, name| home.give(name)),
    ("for everyone", |home, name| home.mode(name, 0o777)),
    ("for its group", |home, name| home.mode(name, 0o775)),
    ("with an access list", |home, name| home.grant(name)),
    ("given and for everyone", |home, name| {
        home.mode(name, 0o777);
        home.give(name);
    }),
    (STICKY, |home, name| home.mode(name, 0o1777)),
];

const STICKY: &str = "sticky";

/// Paths that lead to `one/two/file`, with the links that are needed: target and name.
const WAYS: [(&str, &[(&str, &str)]); 9] = [
    ("one/two/file", &[]),
    ("one/./two/../two/file", &[]),
    ("one/two/../../one/two/file", &[]),
    ("link", &[("one/two/file", "link")]),
    ("other/link", &[("../one/two/file", "other/link")]),
    ("other/directory/file", &[("../one/two", "other/directory")]),
    ("other/directory/two/file", &[("../one", "other/directory")]),
    ("first", &[("other/second", "first"), ("../third", "other/second"), ("one/two/file", "third")]),
    ("other/up/one/two/file", &[("..", "other/up")]),
];

/// The components of a path that are changed, one at a time.
const COMPONENTS: [&str; 4] = ["", "one", "one/two", "one/two/file"];

/// How careful one may be: the file and its directory, as they are found by their paths. The control, which must fail.
fn is_trusted_by_path(path: &Path) -> bool {
    let is_fine = |path: &Path| fs::metadata(path).is_ok_and(|all| all.uid() == 0 && all.mode() & 2 == 0);
    is_fine(path) && path.parent().is_some_and(is_fine)
}

#[test]
fn every_component_counts_whatever_leads_there() {
    if !is_root("every_component_counts_whatever_leads_there") {
        return;
    }
    let (mut refused, mut control) = (0, 0);
    for (way, links) in WAYS {
        let link_names = links.iter().map(|(_, name)| *name);
        for (component, (change, apply)) in COMPONENTS.iter().flat_map(|name| CHANGES.map(|change| (name, change))) {
            let home = Home::with_links(links);
            apply(&home, component);
            // What is root's in a sticky directory stays where it is.
            let is_safe = change == STICKY && matches!(*component, "" | "one");
            let opened = TrustedFile::open(&home.at(way), Trust::Root).is_ok();
            assert!(is_safe || !opened, "'{component}' {change}, by {way}");
            refused += usize::from(!is_safe);
            control += usize::from(!is_safe && is_trusted_by_path(&home.at(way)));
        }
        for link in link_names {
            let home = Home::with_links(links);
            home.give(link);
            assert!(TrustedFile::open(&home.at(way), Trust::Root).is_err(), "'{link}' given, by {way}");
            refused += 1;
            control += usize::from(is_trusted_by_path(&home.at(way)));
        }
    }
    println!("{refused} refused, of which {control} pass where only the file and its directory are judged");
    assert!(refused > 200 && control > 50, "{refused} refused, {control} by the control");
}

#[test]
fn what_has_no_end_is_not_read() {
    let home = Home::new();
    rustix::fs::mknodat(CWD, home.at("pipe"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    home.link("loop", "loop");
    let open = |name: &str| TrustedFile::open(&home.at(name), Trust::Everyone);
    assert!(open("pipe").unwrap().read().is_err());
    let directory = TrustedDirectory::open(home.0.path(), Trust::Everyone).unwrap();
    assert!(directory.readable("pipe".as_ref()).is_err());
    assert!(directory.readable("one".as_ref()).is_err() && directory.readable("..".as_ref()).is_err());
    home.link("one/two", "link");
    for (name, is_directory) in
        [("one", true), ("link", true), ("..", true), ("pipe", false), ("loop", false), ("x", false)]
    {
        assert_eq!(directory.listable_below(name.as_ref()).is_ok(), is_directory, "{name}");
    }
    assert!(matches!(open("loop"), Err(OpenError::System { .. })));
    assert!(open("one").is_err() && open("none").is_err_and(|error| error.is_not_found()));
}

#[test]
fn what_was_exchanged_since_is_not_read() {
    let home = Home::new();
    let file = TrustedFile::open(&home.at("one/two/file"), Trust::Everyone).unwrap();
    fs::rename(home.at("one"), home.at("moved")).unwrap();
    assert!(file.read().is_ok(), "its directory is open");
    fs::write(home.at("moved/two/new"), "other").unwrap();
    fs::rename(home.at("moved/two/new"), home.at("moved/two/file")).unwrap();
    assert!(file.read().is_err());
}

#[test]
fn directories_are_made_only_where_root_alone_writes() {
    if !is_root("directories_are_made_only_where_root_alone_writes") {
        return;
    }
    let home = Home::new();
    let create = |name: &str| TrustedDirectory::create(&home.at(name), Trust::Root);
    assert_eq!(create("new/er/est").unwrap().path(), home.at("new/er/est").canonicalize().unwrap());
    assert_eq!(fs::metadata(home.at("new/er")).unwrap().permissions().mode() & 0o777, 0o700);
    chown(home.at("one"), Some(EVE), None).unwrap();
    home.link("../new", "one/cache");
    assert!(create("one/cache/x").is_err() && create("one/x").is_err());
    assert!(!home.at("new/x").exists() && !Path::new(&home.at("one/x")).exists());
}
