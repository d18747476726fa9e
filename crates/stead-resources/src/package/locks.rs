//! The list of the plugin of dnf that keeps packages at their versions.

use stead_core::call::Failure;
use stead_host::provider::Context;

use super::Properties;
use super::manager::Installed;
use crate::input::blocked;

const SETTINGS: &str = "etc/dnf/plugins/versionlock.conf";
const LIST: &str = "etc/dnf/plugins/versionlock.list";

/// Far more than a list of all packages.
const MAX_SIZE: u64 = 16 << 20;

/// The name of packages that are kept, or the beginning of it.
pub(super) struct Lock {
    name: String,
    is_begin: bool,
}

impl Lock {
    /// Reads a line: a package as NAME-EPOCH:VERSION-RELEASE.ARCHITECTURE, or a name. Versions that are only excluded have a
    /// mark in front.
    fn of(line: &str) -> Option<Self> {
        let line = line.split('#').next()?.trim();
        let line = Some(line).filter(|line| !line.is_empty() && !line.starts_with('!'))?;
        let is_version = |text: &str| text.starts_with(|first: char| first.is_ascii_digit() || first == '*');
        let without_version =
            |text| str::rsplit_once(text, '-').filter(|(_, last)| is_version(last)).map(|(name, _)| name);
        // A release, and the version before it.
        let name = without_version(line).map_or(line, |before| without_version(before).unwrap_or(before));
        let begin = name.strip_suffix('*');
        Some(Self { name: begin.unwrap_or(name).to_owned(), is_begin: begin.is_some() })
    }

    pub(super) fn is_of(&self, name: &str) -> bool {
        if self.is_begin { name.starts_with(&self.name) } else { name == self.name }
    }
}

fn text(cx: &Context, name: &str) -> Result<Option<String>, Failure> {
    let content = cx.system_root.read(name, MAX_SIZE)?;
    Ok(content.map(|content| String::from_utf8_lossy(&content.bytes).into_owned()))
}

/// The value of a setting of the plugin.
fn setting(cx: &Context, key: &str) -> Result<Option<String>, Failure> {
    let settings = text(cx, SETTINGS)?.unwrap_or_default();
    let mut assignments = settings.lines().filter_map(|line| line.split_once('='));
    Ok(assignments.rfind(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned()))
}

/// Returns whether the plugin is installed and not switched off.
pub(super) fn are_obeyed(cx: &Context) -> bool {
    let is_off = |value: String| ["0", "false", "no", "off"].contains(&value.to_lowercase().as_str());
    matches!(text(cx, SETTINGS), Ok(Some(_))) && !setting(cx, "enabled").ok().flatten().is_some_and(is_off)
}

/// Where the list is, below the root.
pub(super) fn list(cx: &Context) -> Result<String, Failure> {
    let stated = setting(cx, "locklist")?.map(|path| path.trim_start_matches('/').to_owned());
    Ok(stated.unwrap_or_else(|| LIST.to_owned()))
}

/// The text of the list; none where the plugin is not there to obey it.
pub(super) fn obeyed(cx: &Context) -> Result<String, Failure> {
    let list = if are_obeyed(cx) { text(cx, &list(cx)?)? } else { None };
    Ok(list.unwrap_or_default())
}

/// What is kept.
pub(super) fn locked(cx: &Context) -> Result<Vec<Lock>, Failure> {
    Ok(obeyed(cx)?.lines().filter_map(Lock::of).collect())
}

/// The list with these packages kept at the versions in which they are installed, or free. Fails where a line keeps others
/// with them.
pub(super) fn edited(list: &str, wanted: &[(String, bool)], installed: &Installed) -> Result<String, Failure> {
    let bare = |name: &str| name.split(':').next().unwrap_or_default().to_owned();
    let is_stated =
        |line: &str| Lock::of(line).is_some_and(|lock| wanted.iter().any(|(name, _)| lock.is_of(&bare(name))));
    let is_shared = |line: &&str| is_stated(line) && Lock::of(line).is_some_and(|lock| lock.is_begin);
    if let Some(line) = list.lines().find(is_shared) {
        let message = format!("the lock '{}' of dnf's plugin versionlock may hold other packages as well", line.trim());
        return Err(blocked(Properties::HOLD, format!("{message}. Replace it by a lock of each package")));
    }
    let mut lines: Vec<String> = list.lines().filter(|line| !is_stated(line)).map(str::to_owned).collect();
    for (name, _) in wanted.iter().filter(|(_, on)| *on) {
        let Some(package) = installed.find(name) else { continue };
        let epoch = if package.version.contains(':') { "" } else { "0:" };
        lines.push(format!("{}-{epoch}{}.*", bare(name), package.version));
    }
    Ok(lines.into_iter().map(|line| line + "\n").collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_keeps_the_packages_of_a_name() {
        let is_of = |line: &str, name: &str| Lock::of(line).is_some_and(|lock| lock.is_of(name));
        for line in ["gcc-c++-0:12-1.*", "gcc-c++", "gcc-c++-0:12-1.x86_64 # why", "gcc*-0:12-1.*", "gcc-c++-12"] {
            assert!(is_of(line, "gcc-c++"), "{line}");
        }
        assert!(is_of("java-17-openjdk", "java-17-openjdk") && is_of("java-17-openjdk-17.0.1-2.*", "java-17-openjdk"));
        for line in ["gcc-0:12-1.*", "!gcc-c++-0:12-1.*", "# gcc-c++", "gcc-c++-devel-0:12-1.*"] {
            assert!(!is_of(line, "gcc-c++"), "{line}");
        }
    }
}
