//! Types of resources that other tools have, and what they are here.

/// The counterpart of a type of another tool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OtherType {
    /// This type.
    Type(&'static str),
    /// No type of its own: in words, what to write.
    Advice(&'static str),
}

use OtherType::{Advice, Type};

const A_PROGRAM: OtherType = Advice("no resource manages it: a Stead/Command calls its program, with 'test' and 'set'");

/// Types that other tools have under a name of their own, by that name in small letters.
const TYPES: &[(&[&str], OtherType)] = &[
    (
        &[
            "copy",
            "file.managed",
            "file.touch",
            "cookbook_file",
            "local_file",
            "file.copy",
            "tempfile",
            "assemble",
            "file.serialize",
            "local_sensitive_file",
            "files",
            "localfile",
            "textfile",
        ],
        Type("Stead/File"),
    ),
    (
        &[
            "file.directory",
            "dir",
            "folder",
            "mkdir",
            "remote_directory",
            "file.recurse",
            "synchronize",
            "tidy",
            "rsync",
            "directories",
        ],
        Type("Stead/Directory"),
    ),
    (&["link", "file.symlink", "alternatives.set", "symboliclink", "ln"], Type("Stead/Symlink")),
    (
        &[
            "lineinfile",
            "file_line",
            "file.line",
            "file.replace",
            "replace",
            "file.append",
            "file.prepend",
            "file.comment",
            "file.uncomment",
            "file.keyvalue",
            "augeas",
            "fileedit",
            "filesline",
        ],
        Type("Stead/Line"),
    ),
    (&["blockinfile", "file.blockreplace"], Type("Stead/Block")),
    (
        &["ini_file", "ini_setting", "ini.options_present", "ini", "inifile", "ini_subsetting", "config_file"],
        Type("Stead/Ini"),
    ),
    (&["json_file", "json_setting"], Type("Stead/Json")),
    (&["yaml_file", "yaml_setting", "yedit"], Type("Stead/Yaml")),
    (&["toml_file", "toml_setting"], Type("Stead/Toml")),
    (
        &["get_url", "remote_file", "wget", "curl", "fetch_url", "http_file", "uri", "xremotefile"],
        Type("Stead/Download"),
    ),
    (&["unarchive", "archive.extracted", "archive_file", "tar", "untar", "unzip", "zip"], Type("Stead/Archive")),
    (&["templatefile", "template_file", "jinja", "erb", "epp", "j2"], Type("Stead/Template")),
    (
        &[
            "apt",
            "yum",
            "dnf",
            "pkg",
            "pkg.installed",
            "pkg.latest",
            "pkg.removed",
            "pkg.purged",
            "apt_package",
            "packages",
            "zypper",
            "pacman",
            "apk",
            "dpkg",
            "rpm",
            "dnf_package",
            "yum_package",
            "package_facts",
            "dpkg_selections",
            "apt-get",
            "install",
            "software",
            "nxpackage",
            "windowsfeature",
            "zypper_package",
        ],
        Type("Stead/Package"),
    ),
    (
        &[
            "pkgrepo.managed",
            "apt_repository",
            "apt::source",
            "apt_source",
            "repository",
            "deb822_repository",
            "apt_repo",
            "apt_key",
            "aptrepo",
            "yum_repository",
            "yumrepo",
        ],
        Type("Stead/AptRepository"),
    ),
    (
        &[
            "systemd",
            "systemd_service",
            "service.running",
            "service.enabled",
            "service.dead",
            "service.disabled",
            "service.masked",
            "systemd_unit",
            "unit",
            "daemon",
            "sysvinit",
            "services",
            "systemd::unit_file",
            "unit_file",
            "dropin",
            "systemd::dropin_file",
            "service_facts",
            "nxservice",
        ],
        Type("Stead/Service"),
    ),
    (&["systemd_timer", "systemd::timer", "schedule", "at", "timer_unit", "timers"], Type("Stead/Timer")),
    (
        &[
            "exec",
            "shell",
            "script",
            "execute",
            "cmd.run",
            "bash",
            "raw",
            "cmd",
            "cmd.script",
            "run",
            "null_resource",
            "expect",
            "nxscript",
            "powershell_script",
        ],
        Type("Stead/Command"),
    ),
    (
        &[
            "authorized_key",
            "authorized_keys",
            "ssh_authorized_key",
            "ssh_auth.present",
            "sshauthorizedkey",
            "ssh_authorized_keys",
            "authorizedkey",
        ],
        Type("Stead/SshKey"),
    ),
    (
        &["sshd", "sshd_config", "ssh_config", "sshserver", "openssh", "sshd::config", "sshd_config_match"],
        Type("Stead/SshdConfig"),
    ),
    (&["git.latest", "git.cloned", "vcsrepo", "repo", "checkout", "gitrepo", "repository_clone"], Type("Stead/Git")),
    (&["user.present", "user.absent", "account", "users", "useradd", "nxuser"], Type("Stead/User")),
    (&["group.present", "group.absent", "groups", "groupadd", "nxgroup"], Type("Stead/Group")),
    (
        &[
            "cron.present",
            "cron.file",
            "cron_d",
            "cronjob",
            "crontab",
            "cronvar",
            "cron.env_present",
            "cron_job",
            "scheduledtask",
        ],
        Type("Stead/Cron"),
    ),
    (
        &["modprobe", "kmod", "kmod.present", "kernel_blacklist", "module", "kernelmodule", "kernel_module"],
        Type("Stead/KernelModule"),
    ),
    (
        &[
            "mount.mounted",
            "mount.unmounted",
            "mount.fstab_present",
            "fstab",
            "filesystem_mount",
            "swap",
            "mount.swap",
            "mounted",
            "filesystem",
            "volume",
        ],
        Type("Stead/Mount"),
    ),
    (
        &["host.present", "host.only", "hostsfile_entry", "hosts", "etchosts", "hostsfile", "host_file"],
        Type("Stead/Host"),
    ),
    (&["network.system", "hostnamectl", "host_name", "hostname.set", "computer"], Type("Stead/Hostname")),
    (&["timezone.system", "tz", "timezonectl", "timedatectl"], Type("Stead/Timezone")),
    (&["locale_gen", "locale.present", "locale.system", "localectl", "locales"], Type("Stead/Locale")),
    (&["sysctl.present", "kernel_parameter", "sysctlparameter"], Type("Stead/Sysctl")),
    (&["pam_limits", "limits::limits", "ulimit", "limit", "user_limits", "limits", "limits.d"], Type("Stead/Limits")),
    (&["sudo", "sudoers.present", "sudo::conf", "sudorule", "sudoer", "sudo_rule"], Type("Stead/Sudoers")),
    (
        &[
            "include_tasks",
            "import_tasks",
            "include_role",
            "import_role",
            "import_playbook",
            "include",
            "include_recipe",
            "include_vars",
            "role",
            "import",
            "importtasks",
        ],
        Type("Microsoft.DSC/Include"),
    ),
    (&["assert", "fail", "test.fail_without_changes"], Type("Microsoft.DSC/Assertion")),
    (&["block", "group_of_resources"], Type("Microsoft.DSC/Group")),
    (
        &[
            "firewall",
            "ufw",
            "iptables",
            "firewalld",
            "firewalld.present",
            "iptables.append",
            "firewall_rule",
            "firewallrule",
            "nft",
            "firewalld_port",
            "ip6tables",
            "ufw_rule",
            "iptables.chain_present",
            "security_group",
        ],
        Type("Stead/Nftables"),
    ),
    (&["echo"], Type("Microsoft.DSC.Debug/Echo")),
    (
        &["debug", "notify", "log", "message", "pause", "test.show_notification"],
        Advice("what a run does is in its report; a value is an output of the document: `outputs`"),
    ),
    (
        &["set_fact", "register", "set_stats", "locals"],
        Advice("a value is one of `variables` of the document, and is read with \"[variables('name')]\""),
    ),
    (
        &["setup", "gather_facts", "ohai", "facter"],
        Advice("facts are read where an expression has them, as in \"[facts('os.family')]\""),
    ),
    (
        &["stat", "slurp", "find", "fetch"],
        Advice(
            "nothing is registered: a condition is made of facts, and 'creates' of a Stead/Command looks for a path",
        ),
    ),
    (&["reboot", "reboot_required", "system.reboot"], Advice("the machine is not rebooted by a run")),
    (
        &["wait_for", "wait_for_connection", "http_conn_validator", "tcp_conn_validator"],
        Advice(
            "a Stead/Command whose 'test' looks whether it is there waits for it: `directives: {reconcileWait: 5}` tries again",
        ),
    ),
    (
        &["uri", "http", "http_request", "http.query"],
        Advice("a Stead/Command makes a request with `curl`; a file comes with Stead/Download"),
    ),
    (
        &["meta", "flush_handlers", "add_host", "group_by", "ping"],
        Advice("remove it: an instance describes a part of this machine"),
    ),
    (
        &[
            "docker_container",
            "docker_image",
            "docker",
            "docker_compose",
            "docker_compose_v2",
            "podman_container",
            "container",
            "mysql_db",
            "mysql_user",
            "mysql_database",
            "mysql_grant",
            "postgresql_db",
            "postgresql_user",
            "postgres_database",
            "postgresql::server::db",
            "mariadb",
            "pip",
            "npm",
            "gem",
            "snap",
            "flatpak",
            "helm",
            "k8s",
            "kubernetes",
            "openssl_certificate",
            "x509_certificate",
            "openssl_privatekey",
            "openssl_csr",
            "acl",
            "seboolean",
            "selinux",
            "alternatives",
            "debconf",
            "lvol",
            "lvg",
            "parted",
            "filesystem",
            "nmcli",
            "network_interface",
            "network",
            "netplan",
            "logrotate",
            "a2enmod",
            "apache2_module",
            "htpasswd",
            "known_hosts",
            "sshkey",
            "gpg_key",
            "java_cert",
            "ca_certificate",
            "motd",
            "iptables_raw",
        ],
        A_PROGRAM,
    ),
    (
        &["aws_instance", "google_compute_instance", "azurerm_virtual_machine", "ec2_instance", "droplet"],
        Advice(
            "machines themselves are not made: stead manages what is on one, and '--hosts' names those that it manages",
        ),
    ),
];

/// The collections that Ansible's modules are written with.
const COLLECTIONS: [&str; 7] = [
    "ansible.builtin.",
    "ansible.posix.",
    "ansible.legacy.",
    "ansible.windows.",
    "community.docker.",
    "community.general.",
    "community.mysql.",
];

/// The owners in types that do not exist, in front of the name.
const OWNERS: [&str; 5] = ["stead/", "ansible/", "ansible.builtin/", "linux/", "nx/"];

/// Modules of Ansible that have the name of a resource here.
const SAME: [&str; 13] = [
    "command", "cron", "file", "git", "group", "hostname", "mount", "package", "service", "sysctl", "template",
    "timezone", "user",
];

/// Returns what a type of another tool is here, by its name there, with or without the collection, module or owner before it.
pub fn other_type(name: &str) -> Option<OtherType> {
    let lower = name.to_lowercase();
    let bare = OWNERS.iter().find_map(|owner| lower.strip_prefix(owner)).unwrap_or(&lower);
    let bare = without_collection(bare);
    let row = |word: &str| TYPES.iter().find(|(words, _)| words.contains(&word)).map(|(_, meant)| *meant);
    row(bare).or_else(|| row(&bare.replace('-', "_")))
}

/// Returns the type that other tools call by a name, as [`other_type`] reads it.
///
/// # Examples
/// ```
/// use stead_core::document::type_of_others;
///
/// assert_eq!(type_of_others("ansible.builtin.lineinfile"), Some("Stead/Line"));
/// assert_eq!(type_of_others("Stead/Firewall"), Some("Stead/Nftables"));
/// assert_eq!(type_of_others("nothing"), None);
/// ```
pub fn type_of_others(name: &str) -> Option<&'static str> {
    match other_type(name)? {
        Type(known) => Some(known),
        Advice(_) => None,
    }
}

/// Returns the name of a module of Ansible without its collection.
pub(crate) fn without_collection(name: &str) -> &str {
    COLLECTIONS.iter().find_map(|collection| name.strip_prefix(collection)).unwrap_or(name)
}

/// Returns the type that a module of Ansible is, where it is written as a key.
pub(super) fn type_of_module(key: &str) -> Option<String> {
    if let Some(known) = type_of_others(key).filter(|_| !key.contains('/')) {
        return Some(known.to_owned());
    }
    let bare = without_collection(key);
    let mut letters = bare.chars();
    let first = letters.next().filter(|_| SAME.contains(&bare))?;
    Some(format!("Stead/{}{}", first.to_ascii_uppercase(), letters.as_str()))
}

/// The expression for the id of an instance that is written as a reference of Puppet, such as `Package['nginx']`. A `File` of Puppet
/// may be three types here, so that the other instances must be known.
pub(super) fn id_of_reference(text: &str) -> Option<String> {
    let (word, rest) = text.split_once('[')?;
    let name = rest.strip_suffix(']')?.trim_matches(['\'', '"']);
    let is_type =
        word != "File" && word.starts_with(|c: char| c.is_ascii_uppercase()) && word.chars().all(char::is_alphanumeric);
    let is_name = !name.is_empty() && !name.contains(['\'', '"', '\\', '\n', '[', ']']);
    let type_name = type_of_others(word).map_or_else(|| format!("Stead/{word}"), str::to_owned);
    (is_type && is_name).then(|| format!("[resourceId('{type_name}', '{name}')]"))
}
