//! What is mounted, as instances state it and as the kernel shows it.

#![expect(clippy::disallowed_methods, reason = "it asks the running kernel, and is not called for another system")]

use std::fs;
use std::path::{Path, PathBuf};

use stead_system::mount::{device_numbers, device_of};

/// File systems of which the kernel shows the server and the path that were stated.
const OF_SERVERS: [&str; 6] = ["nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "fuse.glusterfs"];

/// Where a device is that is stated by its path, label or UUID.
pub(super) fn path(device: &str) -> Option<PathBuf> {
    const TAGS: [(&str, &str); 4] =
        [("UUID=", "by-uuid"), ("LABEL=", "by-label"), ("PARTUUID=", "by-partuuid"), ("PARTLABEL=", "by-partlabel")];
    let tagged = TAGS.iter().find_map(|(tag, folder)| Some((folder, device.strip_prefix(tag)?.trim_matches('"'))));
    match tagged {
        Some((folder, value)) => Some(Path::new("/dev/disk").join(folder).join(value.replace(' ', "\\x20"))),
        // Two slashes stand in front of a server.
        None => (device.starts_with('/') && !device.starts_with("//")).then(|| device.into()),
    }
}

/// Returns whether the kernel shows a source, with the number of its device, that is certainly not the one that is stated.
pub(super) fn differs(stated: &str, fstype: &str, shown: &str, number: &str) -> bool {
    match path(stated) {
        None => OF_SERVERS.contains(&fstype) && of_server(stated, fstype) != of_server(shown, fstype),
        Some(path) => is_other_device(&path, fstype, shown, number),
    }
}

/// A server and a path: slashes too many make no difference, nor does case to Windows.
fn of_server(source: &str, fstype: &str) -> String {
    let source = source.replace('\\', "/");
    let names: Vec<&str> = source.split('/').filter(|name| !name.is_empty()).collect();
    let source = names.join("/");
    if matches!(fstype, "cifs" | "smb3") { source.to_lowercase() } else { source }
}

fn is_other_device(stated: &Path, fstype: &str, shown: &str, number: &str) -> bool {
    let Ok(metadata) = fs::metadata(stated) else { return false };
    if metadata.is_file() {
        return image_of(shown).is_some_and(|image| fs::canonicalize(stated).is_ok_and(|stated| stated != image));
    }
    let stated_number = device_of(&metadata);
    if stated_number == 0 || number == shown_number(stated_number) {
        return false;
    }
    // Some file systems have several devices, of which one or all are shown.
    let shown = shown.split(':').filter(|shown| shown.starts_with("/dev/"));
    let mut devices = shown.filter_map(|shown| Some((shown, device_of(&fs::metadata(shown).ok()?)))).peekable();
    devices.peek().is_some()
        && devices.all(|(shown, number)| {
            number != stated_number && !(fstype == "btrfs" && are_of_one_pool(stated, Path::new(shown)))
        })
}

/// The number of a device as the table of mounts has it.
fn shown_number(device: u64) -> String {
    let (kind, own) = device_numbers(device);
    format!("{kind}:{own}")
}

/// The file whose content a loop device has.
fn image_of(shown: &str) -> Option<PathBuf> {
    let device = shown.strip_prefix("/dev/").filter(|name| name.starts_with("loop"))?;
    let image = fs::read_to_string(Path::new("/sys/block").join(device).join("loop/backing_file")).ok()?;
    let image = image.trim_end_matches('\n');
    Some(image.strip_suffix(" (deleted)").unwrap_or(image).into())
}

/// Returns whether two devices belong to one file system of several.
fn are_of_one_pool(one: &Path, other: &Path) -> bool {
    let name = |path: &Path| fs::canonicalize(path).ok()?.file_name().map(ToOwned::to_owned);
    let (Some(one), Some(other)) = (name(one), name(other)) else { return false };
    let pools = fs::read_dir("/sys/fs/btrfs").into_iter().flatten().flatten();
    let mut devices = pools.map(|pool| pool.path().join("devices"));
    devices.any(|devices| devices.join(&one).exists() && devices.join(&other).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_found_by_its_label() {
        assert_eq!(path("UUID=\"1-2\"").as_deref(), Some(Path::new("/dev/disk/by-uuid/1-2")));
        assert_eq!(path("LABEL=a b").as_deref(), Some(Path::new("/dev/disk/by-label/a\\x20b")));
        assert_eq!((path("server:/srv"), path("//server/share")), (None, None));
    }

    #[test]
    fn what_is_on_a_server_is_compared_by_what_it_means() {
        let same =
            [("nfs4", "nas:/srv/a/", "nas:/srv/a"), ("cifs", "//NAS/Share", "\\\\nas\\share"), ("ceph", "a:/", "b:/")];
        for (fstype, stated, shown) in same {
            assert!(!differs(stated, fstype, shown, "0:40"), "{stated}");
        }
        let other =
            [("nfs", "nas:/srv/b", "nas:/srv/a"), ("cifs", "//nas/b", "//nas/a"), ("fuse.sshfs", "u@a:x", "u@b:x")];
        for (fstype, stated, shown) in other {
            assert!(differs(stated, fstype, shown, "0:40"), "{stated}");
        }
    }

    #[test]
    fn a_device_that_is_not_known_is_not_another() {
        for shown in ["/dev/root", "none", "/dev/gone:/dev/none"] {
            assert!(!differs("/dev/null", "btrfs", shown, "0:40"), "{shown}");
        }
        assert!(differs("/dev/null", "ext4", "/dev/zero", "0:40"));
        assert!(!differs("/dev/null", "ext4", "/dev/zero", "1:3"));
    }
}
