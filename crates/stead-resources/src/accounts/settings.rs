//! How new accounts are made: login.defs(5) and the defaults of useradd(8).

use std::ops::RangeInclusive;

use stead_core::call::Failure;
use stead_host::provider::Context;

/// Far more than the settings of any system.
const MAX_SIZE: u64 = 1 << 20;

/// What the settings of a system say.
pub(crate) struct Settings {
    login: String,
    useradd: String,
}

impl Settings {
    /// Those of the system that a call is about. What is missing has the value that shadow-utils take.
    pub(crate) fn of(cx: &Context) -> Result<Self, Failure> {
        let text = |path: &str| -> Result<String, Failure> {
            let content = cx.system_root.read(path, MAX_SIZE)?;
            Ok(content.map(|content| String::from_utf8_lossy(&content.bytes).into_owned()).unwrap_or_default())
        };
        Ok(Self { login: text("/etc/login.defs")?, useradd: text("/etc/default/useradd")? })
    }

    /// Of a key that is repeated the last value, as shadow-utils take it.
    fn login(&self, key: &str) -> Option<&str> {
        let lines = self.login.lines().map(|line| line.split('#').next().unwrap_or_default());
        let settings = lines.filter_map(|line| line.trim().split_once(char::is_whitespace));
        settings.rev().find(|(name, _)| *name == key).map(|(_, value)| value.trim())
    }

    fn number(&self, key: &str, otherwise: u32) -> u32 {
        self.login(key).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    }

    fn useradd(&self, key: &str) -> Option<&str> {
        let value = self.useradd.lines().rev().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix('='))?;
        Some(value.trim()).filter(|value| !value.is_empty())
    }

    /// The numbers that new users or groups get, `prefix` being UID or GID.
    fn range(&self, prefix: &str, system: bool) -> RangeInclusive<u32> {
        let first = self.number(&format!("{prefix}_MIN"), 1000);
        if system {
            let last = self.number(&format!("SYS_{prefix}_MAX"), first.saturating_sub(1));
            return self.number(&format!("SYS_{prefix}_MIN"), 101)..=last;
        }
        first..=self.number(&format!("{prefix}_MAX"), 60000)
    }

    /// A number for a new user.
    pub(crate) fn new_uid(&self, system: bool, used: &[u32]) -> Option<u32> {
        free(self.range("UID", system), system, used)
    }

    /// A number for a new group.
    pub(crate) fn new_gid(&self, system: bool, used: &[u32]) -> Option<u32> {
        free(self.range("GID", system), system, used)
    }

    /// Returns whether each user has a group of the same name.
    pub(crate) fn user_groups(&self) -> bool {
        self.login("USERGROUPS_ENAB").is_some_and(|value| value == "yes")
    }

    /// The number of the group of new users that have none of their own.
    pub(crate) fn group(&self) -> u32 {
        self.useradd("GROUP").and_then(|text| text.parse().ok()).unwrap_or(100)
    }

    /// The directory that homes are in.
    pub(crate) fn homes(&self) -> &str {
        self.useradd("HOME").unwrap_or("/home")
    }

    pub(crate) fn shell(&self) -> &str {
        self.useradd("SHELL").unwrap_or("/bin/sh")
    }

    pub(crate) fn skeleton(&self) -> &str {
        self.useradd("SKEL").unwrap_or("/etc/skel")
    }

    /// The mode of a new home.
    pub(crate) fn home_mode(&self) -> u32 {
        let octal = |key| self.login(key).and_then(|text| u32::from_str_radix(text, 8).ok());
        octal("HOME_MODE").or_else(|| octal("UMASK").map(|umask| 0o777 & !umask)).unwrap_or(0o700)
    }

    /// Minimum age, maximum age and warning of new passwords, in days, as fields of a database.
    pub(crate) fn password_ages(&self) -> [&str; 3] {
        ["PASS_MIN_DAYS", "PASS_MAX_DAYS", "PASS_WARN_AGE"].map(|key| self.login(key).unwrap_or(""))
    }
}

/// The number behind the highest that is used, or of system accounts before the lowest, as shadow-utils choose; where there
/// is none, any that is free.
fn free(range: RangeInclusive<u32>, system: bool, used: &[u32]) -> Option<u32> {
    let inside = || used.iter().copied().filter(|id| range.contains(id));
    let is_free = |id: &u32| range.contains(id) && !used.contains(id);
    if system {
        let next = inside().min().map_or(Some(*range.end()), |lowest| lowest.checked_sub(1));
        return next.filter(is_free).or_else(|| range.clone().rev().find(is_free));
    }
    let next = inside().max().map_or(Some(*range.start()), |highest| highest.checked_add(1));
    next.filter(is_free).or_else(|| range.clone().find(is_free))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_repeated_settings_the_last_one_counts() {
        let settings = Settings {
            login: "UID_MIN 1000\n# UID_MIN 3000\nUID_MIN\t2000 # why\n".to_owned(),
            useradd: "SHELL=/bin/a\nSHELL=/bin/b\n".to_owned(),
        };
        assert_eq!(settings.new_uid(false, &[]), Some(2000));
        assert_eq!(settings.shell(), "/bin/b");
    }

    #[test]
    fn numbers_are_those_of_shadow_utils() {
        assert_eq!(free(1000..=1003, false, &[0, 65534]), Some(1000));
        assert_eq!(free(1000..=1003, false, &[1000, 1002]), Some(1003));
        assert_eq!(free(1000..=1003, false, &[1000, 1003]), Some(1001));
        assert_eq!(free(1000..=1001, false, &[1000, 1001]), None);
        assert_eq!(free(101..=999, true, &[]), Some(999));
        assert_eq!(free(101..=999, true, &[999, 990]), Some(989));
        assert_eq!(free(101..=103, true, &[101]), Some(103));
    }
}
