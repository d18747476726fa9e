//! The machine that the running system has.

use std::path::Path;

use super::fs::SystemRoot;

/// The id of the installation below a root, which is confidential (machine-id(5)); `None` where it has none.
pub fn id(root: &SystemRoot) -> Option<[u8; 16]> {
    const MAX_SIZE: u64 = 4096;
    let text = root.text("etc/machine-id", MAX_SIZE)?;
    let id = text.trim();
    let is_set = id.len() == 32 && id.bytes().all(|digit| digit.is_ascii_hexdigit());
    let id = u128::from_str_radix(id, 16).ok().filter(|id| is_set && *id != 0)?;
    Some(id.to_be_bytes())
}

/// The file in which the system has the id of its present boot.
pub const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The id of the present boot of the machine, as a file has it; `None` where that cannot be read.
pub fn boot_id(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|id| id.trim().to_owned())
}

/// The processors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Processors {
    /// How many there are.
    pub count: usize,
    /// The name of each.
    pub models: Vec<String>,
}

/// The processors; `None` where the system does not tell.
pub fn processors() -> Option<Processors> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let values = |name: &str| {
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        lines.filter(|(key, _)| key.trim_end() == name).map(|(_, value)| value.trim().to_owned()).collect::<Vec<_>>()
    };
    Some(Processors { count: values("processor").len(), models: values("model name") })
}

/// Bytes of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemorySize {
    /// Of the machine.
    pub total: Option<u64>,
    /// On disks, to make room in the other.
    pub swap: Option<u64>,
}

/// The memory; `None` where the system does not tell.
pub fn memory() -> Option<MemorySize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = |name: &str| {
        let number = text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next())?;
        number.parse::<u64>().ok()?.checked_mul(1024)
    };
    Some(MemorySize { total: total("MemTotal:"), swap: total("SwapTotal:") })
}

fn dmi(name: &str) -> Option<String> {
    let text = std::fs::read_to_string(Path::new("/sys/class/dmi/id").join(name)).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Who made it, as its firmware says.
pub fn vendor() -> Option<String> {
    dmi("sys_vendor")
}

/// The name that its maker gave it.
pub fn product() -> Option<String> {
    dmi("product_name")
}

/// The names of vendors or products of virtual machines, and their hypervisors.
const HYPERVISORS: &[(&str, &str)] = &[
    ("Amazon EC2", "kvm"),
    ("Google Compute Engine", "gce"),
    ("KVM", "kvm"),
    ("Virtual Machine", "hyperv"),
    ("OpenStack", "kvm"),
    ("QEMU", "kvm"),
    ("VMware", "vmware"),
    ("VirtualBox", "virtualbox"),
    ("Xen", "xen"),
];

/// The environment of the machine: a container, a hypervisor, or `physical`.
pub fn virtualization() -> String {
    const MAX_SIZE: u64 = 4096;
    let stated = SystemRoot::running().text("run/systemd/container", MAX_SIZE).map(|text| text.trim().to_owned());
    let container = stated.filter(|name| !name.is_empty());
    let container = container.or_else(|| Path::new("/.dockerenv").exists().then(|| "docker".to_owned()));
    let container = container.or_else(|| Path::new("/run/.containerenv").exists().then(|| "podman".to_owned()));
    let names = [product(), vendor()];
    let known = |text: &String| HYPERVISORS.iter().find(|(part, _)| text.contains(part)).map(|(_, kind)| *kind);
    // A vendor of virtual machines makes others, too: where the processor can tell, it decides.
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = text.lines().find(|line| line.starts_with("flags"));
    let is_guest = flags.map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    let hypervisor = match is_guest {
        Some(false) => None,
        Some(true) => Some(names.iter().flatten().find_map(known).unwrap_or("unknown")),
        None => names.iter().flatten().find_map(known),
    };
    container.or_else(|| hypervisor.map(str::to_owned)).unwrap_or_else(|| "physical".to_owned())
}
