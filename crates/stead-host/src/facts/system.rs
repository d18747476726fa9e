//! The values of `facts()`, under the names that Facter gives them; but `timezone` is the name of the zone.
//!
//! Facts stay the same as long as the machine does: there is no uptime and no free memory among them, so that a
//! document that uses them is not different each time. A fact that cannot be found out is left out.

use std::collections::BTreeMap;
use std::path::Path;

use stead_core::expr::{DISTRIBUTIONS, FAMILIES};
use stead_core::value::{Object, Value};

use ring::hmac;
use serde::{Deserialize, Serialize};

use super::labels::Labels;
use super::{release_field, text_of};
use stead_system::fs::SystemRoot;
use stead_system::machine::{self, Processors};
use stead_system::network::{self, Address, Interface};
use stead_system::user::{Names, Subject};
use stead_system::{kernel, user};

/// The application that ids of machines are for, as systemd has such: `systemd-id128 machine-id --app-specific=` prints the same id.
const APPLICATION: [u8; 16] = 0x5e2b_9c1f_8d7a_4f0e_9b3c_6a1d_2e4f_8071_u128.to_be_bytes();

/// The id of the system below a root, which distinguishes it from others and stays through changes of its name and hardware;
/// `None` if it has none yet.
///
/// Guarantees: `/etc/machine-id`, which is confidential (machine-id(5)), cannot be computed from it.
pub fn machine_id(root: &SystemRoot) -> Option<String> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &machine::id(root)?);
    let digest = hmac::sign(&key, &APPLICATION);
    let bytes = digest.as_ref().first_chunk::<16>()?;
    // As a random UUID (RFC 9562).
    let id = u128::from_be_bytes(*bytes) & !0xf000_c000_0000_0000_0000 | 0x4000_8000_0000_0000_0000;
    let text = format!("{id:032x}");
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| text.get(part).unwrap_or_default());
    Some(parts.join("-"))
}

/// A machine as others know it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineIdentity {
    /// The id of its system, see [`machine_id`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its name, with the domain where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl MachineIdentity {
    /// The identity of the machine whose system is below a root.
    pub fn of(root: &SystemRoot) -> Self {
        Self { id: machine_id(root), name: System { root }.names().map(|names| names.full()) }
    }
}

/// The files that package managers are recognized by.
const PACKAGE_PROVIDERS: &[(&str, &str)] = &[
    ("apt", "usr/bin/apt-get"),
    ("dnf", "usr/bin/dnf"),
    ("yum", "usr/bin/yum"),
    ("zypper", "usr/bin/zypper"),
    ("pacman", "usr/bin/pacman"),
    ("apk", "sbin/apk"),
];

/// The facts of the running machine, and of the system below a root.
pub(super) fn facts(root: &SystemRoot, labels: &Labels) -> Value {
    let system = System { root };
    let release = system.text("etc/os-release").or_else(|| system.text("usr/lib/os-release")).unwrap_or_default();
    let kernel_release = kernel::release();
    let virtualization = machine::virtualization();
    let version: String = kernel_release.chars().take_while(|char| char.is_ascii_digit() || *char == '.').collect();
    object([
        ("os", system.operating_system(&release, &kernel::hardware())),
        ("kernel", Some(kernel::name().into())),
        ("kernelmajversion", Some(version.split('.').take(2).collect::<Vec<_>>().join(".").into())),
        ("kernelversion", Some(version.into())),
        ("kernelrelease", Some(kernel_release.into())),
        ("processors", processors()),
        ("memory", memory()),
        ("networking", system.networking()),
        ("timezone", system.timezone().map(Value::from)),
        ("dmi", dmi()),
        ("is_virtual", Some((virtualization != "physical").into())),
        ("virtual", Some(virtualization.into())),
        ("identity", identity()),
        ("machine", machine_facts(root)),
        ("labels", Some(labels.to_value())),
        ("service_provider", system.service_provider().map(Value::from)),
        ("package_provider", system.package_provider().map(Value::from)),
    ])
    .unwrap_or(Value::Null)
}

/// An object of the members that are known; `None` where none is.
fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Option<Value> {
    let known = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let members: Object = known.collect();
    (!members.is_empty()).then(|| Value::Object(members))
}

fn listed<'t>(table: &[(&str, &'t str)], wanted: &str) -> Option<&'t str> {
    table.iter().find(|(key, _)| *key == wanted).map(|(_, value)| *value)
}

/// The names of a machine in the network.
struct HostNames {
    host: String,
    domain: Option<String>,
}

impl HostNames {
    fn full(&self) -> String {
        self.domain.as_ref().map_or_else(|| self.host.clone(), |domain| format!("{}.{domain}", self.host))
    }
}

/// A system whose files are below a root.
struct System<'r> {
    root: &'r SystemRoot,
}

impl System<'_> {
    fn text(&self, path: &str) -> Option<String> {
        text_of(self.root, path)
    }

    fn has(&self, path: &str) -> bool {
        self.root.status(path).is_some()
    }

    fn is_running(&self) -> bool {
        self.root.is_running()
    }

    fn operating_system(&self, release: &str, hardware: &str) -> Option<Value> {
        let field = |name: &str| release_field(release, name);
        let id = field("ID").unwrap_or_default();
        let name = listed(DISTRIBUTIONS, &id).map(str::to_owned).or_else(|| field("NAME"));
        let like = field("ID_LIKE").unwrap_or_default();
        let family = std::iter::once(id.as_str()).chain(like.split(' ')).find_map(|word| listed(FAMILIES, word));
        let family = family.map(str::to_owned).or_else(|| name.clone());
        // Only this file of Debian has the number behind the dot.
        let exact = self.text("etc/debian_version").map(|text| text.trim().to_owned());
        let exact = exact.filter(|text| id == "debian" && text.starts_with(|first: char| first.is_ascii_digit()));
        let version = exact.or_else(|| field("VERSION_ID"));
        // The two numbers of Ubuntu are a year and a month: both are the major version.
        let parts = version.iter().flat_map(|version| version.splitn(if id == "ubuntu" { 1 } else { 3 }, '.'));
        let mut numbers = parts.map(|part| Some(Value::from(part)));
        let (major, minor) = (numbers.next().flatten(), numbers.next().flatten());
        let is_debian = family.as_deref() == Some("Debian");
        object([
            ("name", name.map(Value::from)),
            ("family", family.map(Value::from)),
            ("release", object([("full", version.as_deref().map(Value::from)), ("major", major), ("minor", minor)])),
            (
                "distro",
                object([
                    ("id", Some(id).filter(|id| !id.is_empty()).map(Value::from)),
                    ("codename", field("VERSION_CODENAME").map(Value::from)),
                    ("description", field("PRETTY_NAME").map(Value::from)),
                ]),
            ),
            ("architecture", Some(if is_debian { debian_architecture(hardware) } else { hardware }.into())),
            ("hardware", Some(hardware.into())),
        ])
    }

    fn names(&self) -> Option<HostNames> {
        let stated = self.text("etc/hostname").map(|text| text.trim().to_owned()).filter(|name| !name.is_empty());
        let name = if self.is_running() { kernel::host_name() } else { stated? };
        let (host, domain) = match name.split_once('.') {
            Some((host, domain)) => (host.to_owned(), Some(domain.to_owned())),
            None => (name.clone(), self.domain(&name)),
        };
        Some(HostNames { host, domain })
    }

    fn networking(&self) -> Option<Value> {
        let names = self.names()?;
        let fqdn = names.full();
        let interfaces = if self.is_running() { interfaces() } else { BTreeMap::new() };
        let primary = network::primary().filter(|name| interfaces.contains_key(name));
        let own = |member: &str| interfaces.get(primary.as_ref()?)?.get(member).cloned();
        let (ip, ip6, mac) = (own("ip"), own("ip6"), own("mac"));
        object([
            ("hostname", Some(names.host.into())),
            ("domain", names.domain.map(Value::from)),
            ("fqdn", Some(fqdn.into())),
            ("primary", primary.map(Value::from)),
            ("ip", ip),
            ("ip6", ip6),
            ("mac", mac),
            ("interfaces", (!interfaces.is_empty()).then(|| Value::Object(interfaces.into_iter().collect()))),
        ])
    }

    /// The domain that a host is in: of its full name in the hosts file, or the one of the resolver. No name is looked up.
    fn domain(&self, host: &str) -> Option<String> {
        let hosts = self.text("etc/hosts").unwrap_or_default();
        let names = hosts.lines().map(|line| line.split('#').next().unwrap_or_default());
        let mut full = names.flat_map(|line| line.split_whitespace().skip(1));
        let by_hosts = full.find_map(|name| name.strip_prefix(host)?.strip_prefix('.'));
        let resolver = self.text("etc/resolv.conf").unwrap_or_default();
        let word = |keyword| {
            let mut lines = resolver.lines().map(str::split_whitespace);
            lines.find_map(|mut words| words.next().filter(|first| *first == keyword).and(words.next()))
        };
        by_hosts.or_else(|| word("domain")).or_else(|| word("search")).map(str::to_owned).filter(|name| name != ".")
    }

    /// The zone by its name, such as `Europe/Berlin`.
    fn timezone(&self) -> Option<String> {
        let target = self.root.at("etc/localtime").link_target();
        let linked = target.as_deref().and_then(Path::to_str).and_then(|path| Some(path.split_once("zoneinfo/")?.1));
        let linked = linked.map(str::to_owned);
        linked.or_else(|| self.text("etc/timezone").map(|text| text.trim().to_owned())).filter(|name| !name.is_empty())
    }

    fn service_provider(&self) -> Option<&'static str> {
        let has_systemd = if self.is_running() { "run/systemd/system" } else { "lib/systemd/systemd" };
        let others = [("openrc", "sbin/openrc-run"), ("sysvinit", "etc/init.d")];
        std::iter::once(("systemd", has_systemd)).chain(others).find(|(_, path)| self.has(path)).map(|(name, _)| name)
    }

    fn package_provider(&self) -> Option<&'static str> {
        PACKAGE_PROVIDERS.iter().find(|(_, program)| self.has(program)).map(|(name, _)| *name)
    }
}

/// Returns Debian's name of an architecture that the kernel calls otherwise.
fn debian_architecture(hardware: &str) -> &str {
    match hardware {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "i586" | "i686" => "i386",
        "armv7l" => "armhf",
        "ppc64le" => "ppc64el",
        other => other,
    }
}

fn processors() -> Option<Value> {
    let Processors { count, models } = machine::processors()?;
    let count = i64::try_from(count).ok().filter(|count| *count > 0);
    let models: Vec<Value> = models.into_iter().map(Value::from).collect();
    object([("count", count.map(Value::from)), ("models", (!models.is_empty()).then(|| Value::Array(models)))])
}

fn memory() -> Option<Value> {
    let memory = machine::memory()?;
    let total = |bytes: Option<u64>| object([("total_bytes", Some(i64::try_from(bytes?).ok()?.into()))]);
    object([("system", total(memory.total)), ("swap", total(memory.swap))])
}

/// The interfaces by name, each with the first of its addresses of each kind.
fn interfaces() -> BTreeMap<String, Value> {
    let members = |address: &Address| match address {
        Address::Ip4(ip, mask) => {
            std::iter::once(("ip", ip.to_string())).chain(mask.map(|mask| ("netmask", mask.to_string()))).collect()
        }
        Address::Ip6(ip) => vec![("ip6", ip.to_string())],
        Address::Hardware(bytes) => vec![("mac", bytes.map(|byte| format!("{byte:02x}")).join(":"))],
    };
    let described = |interface: &Interface| {
        let members = interface.addresses.iter().flat_map(members);
        Value::Object(members.map(|(name, text)| (name.to_owned(), text.into())).collect())
    };
    network::interfaces().iter().map(|(name, interface)| (name.clone(), described(interface))).collect()
}

fn dmi() -> Option<Value> {
    let product = object([("name", machine::product().map(Value::from))]);
    object([("manufacturer", machine::vendor().map(Value::from)), ("product", product)])
}

fn machine_facts(root: &SystemRoot) -> Option<Value> {
    let MachineIdentity { id, name } = MachineIdentity::of(root);
    object([("id", id.map(Value::from)), ("name", name.map(Value::from))])
}

fn identity() -> Option<Value> {
    let (uid, gid, names) = (user::own(), user::own_group(), Names::default());
    object([
        ("user", Some(names.name(Subject::User, uid).into())),
        ("uid", Some(i64::from(uid).into())),
        ("group", Some(names.name(Subject::Group, gid).into())),
        ("gid", Some(i64::from(gid).into())),
        ("privileged", Some(user::is_root().into())),
    ])
}
