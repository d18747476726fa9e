//! Attributes of a file that stay when its content is replaced.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use rustix::fs::{XattrFlags, getxattr, setxattr};
use rustix::io::Errno;
use stead_system::fs::{Former, Ownership, Place, Replacement, SystemPath, Writes};

const LIST: &str = "system.posix_acl_access";

/// Of the user 12345, who may read, in the form of the kernel: the version, and tag, permissions and id of each entry.
fn access_list() -> Vec<u8> {
    const NOBODY: u32 = u32::MAX;
    let entries: [(u16, u16, u32); 5] =
        [(0x01, 6, NOBODY), (0x02, 4, 12345), (0x04, 0, NOBODY), (0x10, 4, NOBODY), (0x20, 0, NOBODY)];
    let entry = |(tag, permissions, id): (u16, u16, u32)| {
        [&tag.to_le_bytes()[..], &permissions.to_le_bytes()[..], &id.to_le_bytes()[..]].concat()
    };
    2_u32.to_le_bytes().into_iter().chain(entries.into_iter().flat_map(entry)).collect()
}

fn attribute(path: &std::path::Path, name: &str) -> Vec<u8> {
    let mut value = vec![0; 1000];
    let length = getxattr(path, name, &mut value[..]).expect("an attribute");
    value.truncate(length);
    value
}

#[test]
fn access_lists_and_attributes_of_users_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "before").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    for (name, value) in [("user.stead.test", &b"kept"[..]), (LIST, &access_list())] {
        match setxattr(&path, name, value, XattrFlags::empty()) {
            Err(Errno::OPNOTSUPP) => {
                let why = format!("SKIPPED: no '{name}' in {}\n", folder.path().display());
                return std::io::stderr().write_all(why.as_bytes()).unwrap();
            }
            set => set.unwrap(),
        }
    }

    let place = Place::find(&SystemPath::here(&path), &Writes::unrecorded()).unwrap().unwrap();
    let mut replacement = Replacement::begin(&place, Former::Any).unwrap();
    replacement.keep_attributes(&File::open(&path).unwrap()).unwrap();
    replacement.write(b"after").unwrap();
    replacement.finish(0o640, Ownership::default()).unwrap();

    assert_eq!(fs::read(&path).unwrap(), b"after");
    assert_eq!(attribute(&path, "user.stead.test"), b"kept");
    assert_eq!(attribute(&path, LIST), access_list());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o640);
}
