//! Types of file systems that are misspelt, and devices that are none.

use stead_core::diag::{did_you_mean, nearest};
use stead_core::value::{Object, Value};
use stead_host::provider::Lint;

use super::Properties;

/// File systems on block devices, where fstab(5) takes a path or a tag, and nothing else.
const ON_DEVICES: [&str; 21] = [
    "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs", "nilfs2", "reiserfs", "vfat", "msdos", "exfat", "ntfs",
    "ntfs3", "ntfs-3g", "iso9660", "udf", "squashfs", "erofs", "hfsplus", "swap",
];

/// The others that the kernel or a helper of mount(8) has: no finding of them, so that the list may be short of some.
const OTHERS: [&str; 49] = [
    "9p",
    "adfs",
    "affs",
    "afs",
    "auto",
    "autofs",
    "bcachefs",
    "befs",
    "bfs",
    "binfmt_misc",
    "ceph",
    "cgroup",
    "cgroup2",
    "cifs",
    "coda",
    "configfs",
    "cramfs",
    "davfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "ecryptfs",
    "efivarfs",
    "fat",
    "fuse",
    "fuseblk",
    "gfs2",
    "glusterfs",
    "hfs",
    "hugetlbfs",
    "minix",
    "mqueue",
    "nfs",
    "nfs4",
    "none",
    "nfsd",
    "ocfs2",
    "overlay",
    "proc",
    "ramfs",
    "romfs",
    "securityfs",
    "smb3",
    "smbfs",
    "sysfs",
    "tmpfs",
    "tracefs",
    "ubifs",
    "zfs",
];

/// The tags in front of a value that names a device.
const TAGS: [&str; 5] = ["UUID=", "LABEL=", "PARTUUID=", "PARTLABEL=", "ID="];

/// Finds a type that is near to a known one, and a device that mount(8) looks for in the directory that it is started in.
pub(super) fn lints(properties: &Object) -> Vec<Lint> {
    let text = |name: &str| properties.get(name).and_then(Value::as_str);
    let Some(fstype) = text(Properties::FSTYPE) else { return Vec::new() };
    let misspelt = misspelt(fstype).map(|meant| {
        let message = "the type of file system is not one that the kernel or mount(8) is known to have";
        Lint::new(&[Properties::FSTYPE], message, did_you_mean(meant))
    });
    let device = text(Properties::DEVICE)
        .filter(|device| is_on_a_device(fstype) && !is_device(device) && !is_uuid(device))
        .map(|_| {
            let message =
                "'device' is neither an absolute path nor UUID=, LABEL=, PARTUUID= or PARTLABEL= with a value";
            Lint::new(
                &[Properties::DEVICE],
                message,
                "write its path, such as /dev/sdb1, or UUID= and what `lsblk -f` shows",
            )
        });
    misspelt.into_iter().chain(device).collect()
}

fn misspelt(fstype: &str) -> Option<&'static str> {
    let known = || ON_DEVICES.into_iter().chain(OTHERS);
    let is_known = |word: &str| known().any(|each| each == word) || word.starts_with("fuse.");
    // A list of types is for mount(8) to choose from, and what is short is near to anything.
    let is_word = fstype.len() > 2 && fstype.chars().all(|each| each.is_ascii_alphanumeric());
    (is_word && !is_known(fstype)).then(|| nearest(fstype, known())).flatten()
}

/// Returns whether a file system of a type is on a block device.
pub(super) fn is_on_a_device(fstype: &str) -> bool {
    ON_DEVICES.contains(&fstype)
}

fn is_device(device: &str) -> bool {
    device.starts_with('/') || TAGS.iter().any(|tag| device.starts_with(tag))
}

/// Returns whether a text is a UUID as file systems on block devices have them.
pub(super) fn is_uuid(text: &str) -> bool {
    let parts: Vec<usize> = text.split('-').map(str::len).collect();
    let is_hexadecimal = text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_hexadecimal && matches!(*parts, [8, 4, 4, 4, 12] | [4, 4] | [16])
}
