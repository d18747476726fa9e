//! Options of mounts: which are the same, and which the kernel takes as flags.

use std::collections::BTreeSet;

use stead_system::mount::{Flags, Propagation};

/// What stands for no options.
pub(super) const DEFAULTS: &str = "defaults";

/// Options of which the last one counts; the first of each is what holds without any.
const OPPOSITES: [&[&str]; 12] = [
    &["rw", "ro"],
    &["suid", "nosuid"],
    &["dev", "nodev"],
    &["exec", "noexec"],
    &["async", "sync"],
    &["relatime", "noatime", "strictatime", "atime", "norelatime", "nostrictatime"],
    &["diratime", "nodiratime"],
    &["symfollow", "nosymfollow"],
    &["nolazytime", "lazytime"],
    &["auto", "noauto"],
    &["nouser", "user", "users"],
    &["fail", "nofail"],
];

/// What the options that let others than root mount it imply, unless one of their opposites follows.
const IMPLIED: [(&str, &[&str]); 4] = [
    ("user", &["nosuid", "nodev", "noexec"]),
    ("users", &["nosuid", "nodev", "noexec"]),
    ("owner", &["nosuid", "nodev"]),
    ("group", &["nosuid", "nodev"]),
];

/// How mounts and unmounts below pass to its other mounts, with how mountinfo shows it: of several the last one counts.
const PROPAGATION: [(&str, Propagation); 4] = [
    ("shared", Propagation::SHARED),
    ("private", Propagation::PRIVATE),
    ("slave", Propagation::RECEIVED),
    ("unbindable", Propagation::UNBINDABLE),
];

/// What the kernel takes as flags.
const FLAGS: [(&str, Flags); 11] = [
    ("ro", Flags::READ_ONLY),
    ("nosuid", Flags::NO_SUID),
    ("nodev", Flags::NO_DEVICES),
    ("noexec", Flags::NO_PROGRAMS),
    ("sync", Flags::SYNCHRONOUS),
    ("dirsync", Flags::SYNCHRONOUS_NAMES),
    ("noatime", Flags::NO_ACCESS_TIMES),
    ("nodiratime", Flags::NO_ACCESS_TIMES_OF_DIRECTORIES),
    ("strictatime", Flags::STRICT_ACCESS_TIMES),
    ("lazytime", Flags::LAZY_TIMES),
    ("nosymfollow", Flags::NO_LINKS),
];

/// Those of them that mountinfo shows for each mount and that a remount changes.
const COMPARED: [&str; 7] = ["ro", "nosuid", "nodev", "noexec", "noatime", "nodiratime", "nosymfollow"];

/// Options of one mount, without those that make no difference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Options<'t> {
    effective: BTreeSet<&'t str>,
}

impl<'t> Options<'t> {
    /// Of a list with commas between them. What holds without being stated is left out, but for a bind mount: there it
    /// takes away a flag of what is bound.
    pub(super) fn of(text: &'t str) -> Self {
        let mut effective = BTreeSet::new();
        let is_bind = split(text).any(|option| matches!(option, "bind" | "rbind"));
        let with_implied = |option: &'t str| {
            let implied = IMPLIED.iter().find(|(name, _)| *name == option).map_or(&[][..], |(_, implied)| implied);
            std::iter::once(option).chain(implied.iter().copied())
        };
        for option in split(text).flat_map(with_implied) {
            if let Some(group) = OPPOSITES.iter().find(|group| group.contains(&option)) {
                effective.retain(|other| !group.contains(other));
                let is_said = is_bind && group.iter().any(|option| COMPARED.contains(option));
                if group.first() == Some(&option) && !is_said {
                    continue;
                }
            }
            if propagation(option).is_some() {
                effective.retain(|other| propagation(other).is_none());
            }
            let name = option.split('=').next().unwrap_or_default();
            if option.contains('=') {
                effective.retain(|other: &&str| other.split_once('=').is_none_or(|(other, _)| other != name));
            }
            if !matches!(option, "" | DEFAULTS) {
                effective.insert(option);
            }
        }
        Self { effective }
    }

    pub(super) fn has(&self, option: &str) -> bool {
        self.effective.contains(option)
    }

    /// Returns whether another directory is what is mounted.
    pub(super) fn is_bind(&self) -> bool {
        self.has("bind") || self.has("rbind")
    }

    /// How mounts below are to pass to its other mounts, if that is stated.
    pub(super) fn propagation(&self) -> Option<Propagation> {
        self.effective.iter().find_map(|option| propagation(option))
    }

    /// Returns whether they ask for another propagation than the one that mountinfo shows in these fields.
    pub(super) fn differ_in_propagation(&self, fields: &[String]) -> bool {
        let has = |tag: &str| fields.iter().any(|field| field.starts_with(tag));
        let is = match (has("shared:"), has("master:"), has("unbindable")) {
            (true, ..) => Propagation::SHARED,
            (_, true, _) => Propagation::RECEIVED,
            (.., true) => Propagation::UNBINDABLE,
            _ => Propagation::PRIVATE,
        };
        self.propagation().is_some_and(|stated| !stated.is(is))
    }

    /// Returns whether `mount` makes the mount point where it is missing.
    pub(super) fn makes_mount_point(&self) -> bool {
        self.effective.iter().any(|option| option.to_ascii_lowercase().starts_with("x-mount.mkdir"))
    }

    /// Returns whether the kernel takes them as they are, besides those for who reads fstab(5).
    pub(super) fn are_for_kernel(&self) -> bool {
        let of_mount = |option: &str| {
            matches!(
                option.split('=').next(),
                Some("user" | "users" | "owner" | "group" | "loop" | "offset" | "sizelimit")
            ) || option.to_ascii_lowercase().starts_with("x-mount.")
        };
        !self.effective.iter().any(|option| of_mount(option))
    }

    /// The flags of a mount. How times of access are kept is always said, or a remount would leave it as it was.
    pub(super) fn flags(&self) -> Flags {
        let flags = FLAGS.iter().filter(|(option, _)| self.has(option));
        let flags = flags.fold(Flags::NONE, |flags, (_, flag)| flags | *flag);
        let of_times = Flags::NO_ACCESS_TIMES | Flags::STRICT_ACCESS_TIMES;
        if flags.intersect(of_times) { flags } else { flags | Flags::RELATIVE_ACCESS_TIMES }
    }

    /// The flags of a bind mount of what the kernel shows with these options: it has them as well, unless it states others.
    pub(super) fn flags_of_bind(&self, of_source: &str) -> Flags {
        let has_times = of_source.split(',').any(|option| matches!(option, "relatime" | "noatime"));
        let is_flag = |option: &&str| !IMPLIED.iter().any(|(name, _)| name == option);
        let own = self.effective.iter().copied().filter(is_flag);
        let times = (!has_times).then_some("strictatime");
        let all: Vec<&str> = of_source.split(',').chain(times).chain(own).collect();
        Options::of(&all.join(",")).flags() | Flags::BIND
    }

    /// Returns whether there are no options that have an effect.
    pub(super) fn is_empty(&self) -> bool {
        self.effective.is_empty()
    }

    /// Returns whether an option is stated, or one that excludes it.
    fn states(&self, option: &str) -> bool {
        let group = OPPOSITES.iter().find(|group| group.contains(&option));
        group.map_or_else(|| self.has(option), |group| group.iter().any(|option| self.has(option)))
    }

    /// What is for the file system itself.
    pub(super) fn data(&self) -> String {
        let is_own = |option: &&&str| {
            let is_flag = FLAGS.iter().any(|(flag, _)| flag == *option);
            let is_word = OPPOSITES.iter().any(|group| group.contains(option));
            let is_note = option.starts_with("x-") || option.starts_with("X-") || option.starts_with("comment=");
            let is_other = is_flag || is_word || is_note || propagation(option).is_some();
            !(is_other || matches!(**option, "_netdev" | "bind" | "rbind" | "silent" | "loud"))
        };
        self.effective.iter().filter(is_own).copied().collect::<Vec<_>>().join(",")
    }

    /// The options for a remount by `mount`, which would leave what is not said as it was.
    pub(super) fn for_remount(&self) -> String {
        let is_kept = |option: &&str| propagation(option).is_none();
        let kept = self.effective.iter().copied().filter(is_kept);
        let mut options: Vec<&str> = std::iter::once("remount").chain(kept).collect();
        // Behind what lets others mount it, which implies their opposites.
        let opposites = [("ro", "rw"), ("nosuid", "suid"), ("nodev", "dev"), ("noexec", "exec")];
        options.extend(opposites.iter().filter(|(no, _)| !self.has(no)).map(|(_, yes)| yes));
        if !["noatime", "strictatime"].iter().any(|option| self.has(option)) {
            options.push("relatime");
        }
        options.join(",")
    }

    /// Returns whether the options that the kernel shows, for a mount and for its file system, differ from these. A bind mount
    /// has those that it does not state from elsewhere.
    pub(super) fn differ_from(&self, fstype: &str, of_mount: &str, of_file_system: &str) -> bool {
        let (live, file_system) = (Options::of(of_mount), Options::of(of_file_system));
        let is_live = |option: &str| live.has(option) || (option == "ro" && file_system.has(option) && !self.is_bind());
        let is_compared = |option: &&&str| !self.is_bind() || self.states(option);
        if COMPARED.iter().filter(is_compared).any(|option| self.has(option) != is_live(option)) {
            return true;
        }
        // Other file systems may round or negotiate what they are given.
        let is_sized = fstype == "tmpfs" && !self.is_bind();
        let has_other = |name: &&str| self.number(name).is_some_and(|stated| file_system.number(name) != Some(stated));
        is_sized && ["size", "nr_inodes"].iter().any(has_other)
    }

    /// The value of an option of tmpfs(5), as far as it is kept; `None` where there is no limit.
    fn number(&self, name: &str) -> Option<u64> {
        let value = self.effective.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='))?;
        let (digits, unit) = match value.as_bytes().last()?.to_ascii_lowercase() {
            b'k' => (value.get(..value.len() - 1)?, 1 << 10),
            b'm' => (value.get(..value.len() - 1)?, 1 << 20),
            b'g' => (value.get(..value.len() - 1)?, 1 << 30),
            _ => (value, 1),
        };
        let number = digits.parse::<u64>().ok()?.checked_mul(unit)?;
        (number > 0).then(|| pages(name, number))
    }
}

/// A size as far as it is kept: the kernel rounds it up to whole pages, whose size is a power of two of at most this.
fn pages(name: &str, number: u64) -> u64 {
    const LARGEST: u64 = 64 << 10;
    if name == "size" { number.div_ceil(LARGEST) } else { number }
}

/// How mounts below pass on, as an option says it; with an 'r' in front it is about all mounts below as well.
fn propagation(option: &str) -> Option<Propagation> {
    let flag = |name: &str| PROPAGATION.iter().find(|(word, _)| *word == name).map(|(_, flag)| *flag);
    flag(option).or_else(|| Some(flag(option.strip_prefix('r')?)?.recursive()))
}

/// Without the commas within quotes, which values may have.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    text.split(move |char| {
        is_quoted ^= char == '"';
        char == ',' && !is_quoted
    })
    .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_difference_is_the_same() {
        let same = [
            ("defaults", "rw,relatime,suid"),
            ("noatime,ro", "ro,noatime"),
            ("ro,rw", ""),
            ("size=1m,size=2m", "size=2m"),
            ("context=\"a,b\",ro", "ro,context=\"a,b\""),
            ("user", "nosuid,nodev,noexec,user"),
            ("owner,dev", "owner,suid,dev,nosuid"),
            ("shared,rprivate", "rprivate"),
            ("bind,defaults,async", "bind"),
        ];
        for (one, other) in same {
            assert_eq!(Options::of(one), Options::of(other), "{one}");
        }
        assert_ne!(Options::of("size=1m"), Options::of("size=2m"));
        assert_ne!(Options::of("noauto"), Options::of("auto"));
        assert_ne!(Options::of("exec,user"), Options::of("user,exec"));
        assert_ne!(Options::of("shared"), Options::of("private"));
        assert_ne!(Options::of("bind"), Options::of("bind,suid"));
    }

    #[test]
    fn a_remount_states_what_users_do_not_get() {
        let options = Options::of("user,exec,rshared").for_remount();
        let at = |option: &str| options.split(',').position(|each| each == option);
        assert!(at("exec") > at("user") && at("noexec").is_none() && at("rshared").is_none(), "{options}");
    }

    #[test]
    fn a_bind_mount_keeps_the_flags_that_it_does_not_state() {
        let flags = |own: &str| Options::of(own).flags_of_bind("ro,nosuid,noexec,noatime").without(Flags::BIND);
        let of_source = Flags::READ_ONLY | Flags::NO_SUID | Flags::NO_PROGRAMS | Flags::NO_ACCESS_TIMES;
        for (own, expected) in [
            ("bind", of_source),
            ("bind,defaults", of_source),
            ("bind,nodev", of_source | Flags::NO_DEVICES),
            ("rbind,exec", of_source.without(Flags::NO_PROGRAMS)),
            ("bind,rw,suid", Flags::NO_PROGRAMS | Flags::NO_ACCESS_TIMES),
            ("bind,user,exec", of_source.without(Flags::NO_PROGRAMS) | Flags::NO_DEVICES),
            ("bind,relatime", of_source.without(Flags::NO_ACCESS_TIMES) | Flags::RELATIVE_ACCESS_TIMES),
        ] {
            assert_eq!(flags(own), expected, "{own}");
        }
        assert!(Options::of("bind").flags_of_bind("rw").intersect(Flags::STRICT_ACCESS_TIMES));
    }

    #[test]
    fn propagation_is_compared_with_the_optional_fields() {
        let fields = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for (option, shown) in
            [("shared", "shared:1 master:2"), ("rslave", "master:2"), ("private", ""), ("ro", "shared:1")]
        {
            assert!(!Options::of(option).differ_in_propagation(&fields(shown)), "{option}");
        }
        for (option, shown) in [("shared", ""), ("rprivate", "shared:1"), ("slave", "unbindable"), ("unbindable", "")] {
            assert!(Options::of(option).differ_in_propagation(&fields(shown)), "{option}");
        }
        assert_eq!(Options::of("bind,rshared,size=1m").data(), "size=1m");
    }

    #[test]
    fn what_the_kernel_shows_is_compared_by_what_it_means() {
        let live = ("rw,nosuid,relatime", "rw,size=1024k,nr_inodes=8,mode=755");
        for options in ["nosuid", "nosuid,size=1m,nofail", "nosuid,size=1048000"] {
            assert!(!Options::of(options).differ_from("tmpfs", live.0, live.1), "{options}");
        }
        for options in ["defaults", "nosuid,ro", "nosuid,noatime", "nosuid,size=2m", "nosuid,nr_inodes=9"] {
            assert!(Options::of(options).differ_from("tmpfs", live.0, live.1), "{options}");
        }
        for options in ["bind", "bind,nosuid", "rbind,rw,exec", "bind,relatime"] {
            assert!(!Options::of(options).differ_from("tmpfs", live.0, live.1), "{options}");
        }
        for options in ["bind,ro", "bind,suid", "rbind,noexec", "bind,noatime"] {
            assert!(Options::of(options).differ_from("tmpfs", live.0, live.1), "{options}");
        }
    }
}
