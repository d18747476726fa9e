//! Who could have placed what is found.

use rustix::process::geteuid;

use super::status::Status;

const STICKY: u32 = 0o1000;

/// Why a link is not followed, if it is not.
///
/// A link is as trustworthy as those who could have put it there: its owner, and whoever may write to its directory.
pub(super) fn distrust(directory: &Status, link: &Status) -> Option<&'static str> {
    if !is_ours(link.uid) {
        Some("it belongs to another user")
    } else if !is_ours(directory.uid) {
        Some("its directory belongs to another user")
    } else if others_may_write(directory) && directory.mode & STICKY == 0 {
        Some("others may write to its directory")
    } else {
        None
    }
}

/// Returns whether the owner or mode of a file may be changed without making a new file of it.
///
/// Whoever may write to a directory may put a second name of somebody else's file there, and take it away again once
/// it is open. So a file is changed in place only if nobody but its owner could have placed it.
pub fn may_change_in_place(directory: &Status, file: &Status) -> bool {
    let shared = others_may_write(directory);
    if shared {
        // Only in a sticky directory a name stays where it is, so that the number of names can be believed.
        return directory.mode & STICKY != 0 && is_ours(directory.uid) && file.links == 1;
    }
    is_ours(directory.uid) || file.uid == directory.uid
}

fn is_ours(uid: u32) -> bool {
    uid == 0 || uid == geteuid().as_raw()
}

fn others_may_write(directory: &Status) -> bool {
    let group_is_ours = directory.gid == 0 || directory.gid == rustix::process::getegid().as_raw();
    directory.mode & 0o002 != 0 || (directory.mode & 0o020 != 0 && !group_is_ours)
}
