//! Extended attributes: access lists, security labels, and what users attach to files.

use std::fs::File;
use std::io;

use rustix::buffer::spare_capacity;
use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// The attributes of a file that still hold when its content is another.
///
/// Not among them: capabilities and signatures, which were given to the content, and what only the kernel may write.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Attributes(Vec<(String, Vec<u8>)>);

/// As much as the system lets names, and each value, take.
const MOST: usize = 1 << 16;

impl Attributes {
    /// Reads them. There are none where the file system has none, or the file was opened to be examined only.
    pub(super) fn of(file: &File) -> Result<Self, Errno> {
        let mut names = Vec::with_capacity(MOST);
        match flistxattr(file, spare_capacity(&mut names)) {
            Ok(_) => {}
            Err(Errno::OPNOTSUPP | Errno::BADF) => return Ok(Self::default()),
            Err(errno) => return Err(errno),
        }
        let names = names.split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok());
        let kept = names.filter(|name| is_kept(name));
        kept.filter_map(|name| value(file, name).map(|value| Some((name.to_owned(), value?))).transpose())
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Gives them to another file.
    pub(super) fn apply(&self, file: &File) -> Result<(), io::Error> {
        for (name, value) in &self.0 {
            match fsetxattr(file, name.as_str(), value, XattrFlags::empty()) {
                // Labels are up to the policy of the system, which gives new files one by itself.
                Err(Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP) if name.starts_with("security.") => {}
                set => set?,
            }
        }
        Ok(())
    }
}

fn is_kept(name: &str) -> bool {
    name.starts_with("user.") || ["system.posix_acl_access", "security.selinux", "security.SMACK64"].contains(&name)
}

/// `None` if it was removed meanwhile.
fn value(file: &File, name: &str) -> Result<Option<Vec<u8>>, Errno> {
    let mut value = Vec::with_capacity(MOST);
    match fgetxattr(file, name, spare_capacity(&mut value)) {
        Ok(_) => Ok(Some(value)),
        Err(Errno::NODATA) => Ok(None),
        Err(errno) => Err(errno),
    }
}
