//! The facts of a machine by their paths, the words of distributions in them, and what other tools call them.

use super::ValueKind;

/// The paths of facts and what is there. What a machine cannot find out is left out, so that not every machine has all of them.
const PATHS: &[(&str, ValueKind)] = &[
    ("os.name", ValueKind::String),
    ("os.family", ValueKind::String),
    ("os.release.full", ValueKind::String),
    ("os.release.major", ValueKind::String),
    ("os.release.minor", ValueKind::String),
    ("os.distro.id", ValueKind::String),
    ("os.distro.codename", ValueKind::String),
    ("os.distro.description", ValueKind::String),
    ("os.architecture", ValueKind::String),
    ("os.hardware", ValueKind::String),
    ("kernel", ValueKind::String),
    ("kernelmajversion", ValueKind::String),
    ("kernelversion", ValueKind::String),
    ("kernelrelease", ValueKind::String),
    ("processors.count", ValueKind::Number),
    ("processors.models", ValueKind::Array),
    ("memory.system.total_bytes", ValueKind::Number),
    ("memory.swap.total_bytes", ValueKind::Number),
    ("networking.hostname", ValueKind::String),
    ("networking.domain", ValueKind::String),
    ("networking.fqdn", ValueKind::String),
    ("networking.primary", ValueKind::String),
    ("networking.ip", ValueKind::String),
    ("networking.ip6", ValueKind::String),
    ("networking.mac", ValueKind::String),
    ("timezone", ValueKind::String),
    ("dmi.manufacturer", ValueKind::String),
    ("dmi.product.name", ValueKind::String),
    ("is_virtual", ValueKind::Boolean),
    ("virtual", ValueKind::String),
    ("identity.user", ValueKind::String),
    ("identity.uid", ValueKind::Number),
    ("identity.group", ValueKind::String),
    ("identity.gid", ValueKind::Number),
    ("identity.privileged", ValueKind::Boolean),
    ("machine.id", ValueKind::String),
    ("machine.name", ValueKind::String),
    ("service_provider", ValueKind::String),
    ("package_provider", ValueKind::String),
];

/// The files that facts are read from, by how their paths begin; the first one counts.
const ORIGINS: &[(&str, &str)] = &[
    ("os.architecture", ""),
    ("os.hardware", ""),
    ("os.", "'/etc/os-release'"),
    ("networking.hostname", "'/etc/hostname'"),
    ("networking.domain", "'/etc/hosts'"),
    ("timezone", "'/etc/localtime'"),
    ("machine.id", "'/etc/machine-id'"),
    ("machine.name", "'/etc/hostname'"),
    ("service_provider", "the programs"),
    ("package_provider", "the programs"),
];

/// Returns where a fact is read from that a machine may lack.
pub(super) fn fact_origin(path: &str) -> Option<&'static str> {
    let (_, origin) = ORIGINS.iter().find(|(begin, _)| path.starts_with(begin))?;
    Some(*origin).filter(|origin| !origin.is_empty())
}

/// The paths below which there are names of the machine's own.
const OPEN: &[&str] = &["labels", "networking.interfaces"];

/// The names of distributions, by `ID` of os-release.
pub const DISTRIBUTIONS: &[(&str, &str)] = &[
    ("almalinux", "AlmaLinux"),
    ("alpine", "Alpine"),
    ("amzn", "Amazon"),
    ("arch", "Archlinux"),
    ("centos", "CentOS"),
    ("debian", "Debian"),
    ("fedora", "Fedora"),
    ("gentoo", "Gentoo"),
    ("linuxmint", "Linuxmint"),
    ("ol", "OracleLinux"),
    ("opensuse-leap", "OpenSuSE"),
    ("opensuse-tumbleweed", "OpenSuSE"),
    ("raspbian", "Raspbian"),
    ("rhel", "RedHat"),
    ("rocky", "Rocky"),
    ("sles", "SLES"),
    ("ubuntu", "Ubuntu"),
];

/// The families of distributions, by `ID` or a word of `ID_LIKE`.
pub const FAMILIES: &[(&str, &str)] = &[
    ("alpine", "Alpine"),
    ("arch", "Archlinux"),
    ("debian", "Debian"),
    ("fedora", "RedHat"),
    ("gentoo", "Gentoo"),
    ("rhel", "RedHat"),
    ("centos", "RedHat"),
    ("amzn", "RedHat"),
    ("suse", "Suse"),
    ("sles", "Suse"),
    ("ubuntu", "Debian"),
];

/// The names of facts in other tools, in small letters, without `ansible_`, `_` and dots.
const WORDS: &[(&[&str], &str)] = &[
    (&["osfamily", "family"], "os.family"),
    (
        &[
            "distribution",
            "distro",
            "operatingsystem",
            "osname",
            "osdistribution",
            "lsbdistid",
            "lsbid",
            "platform",
            "osid",
        ],
        "os.name",
    ),
    (
        &[
            "distributionmajorversion",
            "operatingsystemmajrelease",
            "osmajorrelease",
            "lsbmajdistrelease",
            "lsbmajorrelease",
            "osmajor",
        ],
        "os.release.major",
    ),
    (
        &[
            "distributionversion",
            "operatingsystemrelease",
            "osrelease",
            "osversion",
            "platformversion",
            "lsbdistrelease",
            "lsbrelease",
        ],
        "os.release.full",
    ),
    (
        &["distributionrelease", "lsbdistcodename", "lsbcodename", "oscodename", "codename", "releasecodename"],
        "os.distro.codename",
    ),
    (&["hostname", "host", "nodename", "inventoryhostname", "computername", "oshostname"], "networking.hostname"),
    (&["fqdn", "hostfqdn"], "networking.fqdn"),
    (&["domain"], "networking.domain"),
    (
        &[
            "ip",
            "ipaddress",
            "ipv4",
            "ipaddr",
            "defaultipv4address",
            "defaultipv4",
            "networkingipaddress",
            "ip4interfaces",
        ],
        "networking.ip",
    ),
    (&["ip6", "ipaddress6", "ipv6", "defaultipv6address", "defaultipv6"], "networking.ip6"),
    (&["mac", "macaddress", "defaultipv4macaddress"], "networking.mac"),
    (&["defaultipv4interface", "defaultinterface"], "networking.primary"),
    (&["arch", "architecture", "osarch", "cpuarch"], "os.architecture"),
    (&["hardwaremodel", "hardwareisa"], "os.hardware"),
    (
        &["memtotalmb", "memtotal", "memorysize", "memorysizemb", "memorytotal", "memorymbrealtotal"],
        "memory.system.total_bytes",
    ),
    (
        &["processorvcpus", "processorcount", "processorcores", "numcpus", "cpus", "cpucount", "cputotal"],
        "processors.count",
    ),
    (&["virtualizationtype", "virtualizationrole", "virtualization"], "virtual"),
    (&["servicemgr", "init", "initpackage"], "service_provider"),
    (&["pkgmgr", "packagemanager"], "package_provider"),
    (&["system", "osfamilyname"], "kernel"),
    (&["systemvendor", "manufacturer"], "dmi.manufacturer"),
    (&["productname"], "dmi.product.name"),
    (&["userid", "user", "username", "realuserid", "usergecos"], "identity.user"),
    (&["tz", "datetimetz"], "timezone"),
    (&["machineid", "uuid", "productuuid"], "machine.id"),
];

/// The knowledge about a path of facts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FactPath {
    /// There is nothing at it, on any machine.
    Nothing,
    /// A value of this kind, on machines that can find it out.
    Of(ValueKind),
    /// Something that the machine names itself.
    Named,
}

/// Returns what is known about a path of facts.
///
/// # Examples
/// ```
/// use stead_core::expr::{FactPath, ValueKind, fact_path};
///
/// assert_eq!(fact_path("os.family"), FactPath::Of(ValueKind::String));
/// assert_eq!(fact_path("os.release"), FactPath::Of(ValueKind::Object));
/// assert_eq!(fact_path("labels.role"), FactPath::Named);
/// assert_eq!(fact_path("os.distribution"), FactPath::Nothing);
/// ```
pub fn fact_path(path: &str) -> FactPath {
    let goes_on = |whole: &str, begin: &str| whole.strip_prefix(begin).is_some_and(|rest| rest.starts_with('.'));
    if let Some((_, kind)) = PATHS.iter().find(|(known, _)| *known == path) {
        return FactPath::Of(*kind);
    }
    if OPEN.iter().any(|open| goes_on(path, open)) {
        return FactPath::Named;
    }
    let is_above = |known: &str| known == path || goes_on(known, path);
    let mut known = PATHS.iter().map(|(known, _)| *known).chain(OPEN.iter().copied());
    if known.any(is_above) { FactPath::Of(ValueKind::Object) } else { FactPath::Nothing }
}

/// Returns the paths of facts, in the order of `stead facts`.
pub(super) fn fact_paths() -> impl Iterator<Item = &'static str> + Clone {
    PATHS.iter().map(|(path, _)| *path)
}

/// Returns the path of the fact that other tools call by a word.
///
/// # Examples
/// ```
/// use stead_core::expr::fact_of_others;
///
/// assert_eq!(fact_of_others("ansible_os_family"), Some("os.family"));
/// assert_eq!(fact_of_others("ansible_facts.distribution"), Some("os.name"));
/// assert_eq!(fact_of_others("color"), None);
/// ```
pub fn fact_of_others(word: &str) -> Option<&'static str> {
    let lower = word.to_lowercase();
    let (mut bare, mut is_ansible) = (lower.as_str(), false);
    for prefix in ["ansible_facts.", "ansible_facts['", "ansible_", "facts.", "grains.", "facter_", "host."] {
        if let Some(rest) = bare.strip_prefix(prefix) {
            (bare, is_ansible) = (rest, is_ansible || prefix.starts_with("ansible"));
        }
    }
    let plain: String = bare.chars().filter(char::is_ascii_alphanumeric).collect();
    match plain.as_str() {
        // Facter and Ansible mean different things by these.
        "architecture" | "machine" if is_ansible => Some("os.hardware"),
        "kernel" if is_ansible => Some("kernelrelease"),
        _ => {
            let by_word = WORDS.iter().find(|(words, _)| words.contains(&&*plain)).map(|(_, path)| *path);
            // The last name of a path, where only one ends with it.
            let is_last = |path: &&str| *path == bare || path.rsplit('.').next() == Some(bare);
            by_word.or_else(|| {
                let mut ends = fact_paths().filter(is_last);
                ends.next().filter(|_| ends.next().is_none())
            })
        }
    }
}
