//! What other tools call the resources of stead.

/// Names of modules, resources and states of other tools, in small letters, by the type that they are.
const TYPES: &[(&[&str], &str)] = &[
    (&["copy", "file.managed", "cookbook_file", "files", "localfile", "textfile"], "Stead/File"),
    (&["file.directory", "dir", "folder", "directories", "remote_directory"], "Stead/Directory"),
    (&["link", "file.symlink", "symboliclink"], "Stead/Symlink"),
    (&["lineinfile", "file_line", "file.line", "file.replace", "replace"], "Stead/Line"),
    (&["blockinfile", "file.blockreplace"], "Stead/Block"),
    (&["ini_file", "ini_setting", "ini.options_present", "inifile"], "Stead/Ini"),
    (&["get_url", "remote_file", "uri", "wget", "curl", "xremotefile"], "Stead/Download"),
    (&["unarchive", "archive.extracted", "tar", "zip", "archive_file"], "Stead/Archive"),
    (&["file.recurse", "erb", "epp", "jinja", "j2"], "Stead/Template"),
    (
        &[
            "apt",
            "yum",
            "dnf",
            "zypper",
            "pacman",
            "apk",
            "pkg",
            "pkg.installed",
            "pkg.latest",
            "pkg.removed",
            "apt_package",
            "dnf_package",
            "yum_package",
            "packages",
            "software",
            "nxpackage",
            "windowsfeature",
            "zypper_package",
        ],
        "Stead/Package",
    ),
    (
        &[
            "pkgrepo.managed",
            "apt_repository",
            "repository",
            "repo",
            "aptrepo",
            "deb822_repository",
            "apt_repo",
            "apt::source",
            "yum_repository",
            "yumrepo",
        ],
        "Stead/AptRepository",
    ),
    (
        &[
            "systemd",
            "systemd_service",
            "service.running",
            "service.enabled",
            "service.dead",
            "systemd_unit",
            "unit",
            "services",
            "daemon",
            "nxservice",
        ],
        "Stead/Service",
    ),
    (
        &[
            "exec",
            "shell",
            "script",
            "execute",
            "cmd.run",
            "cmd.script",
            "bash",
            "run",
            "raw",
            "cmd",
            "nxscript",
            "powershell_script",
        ],
        "Stead/Command",
    ),
    (
        &[
            "authorized_key",
            "ssh_authorized_key",
            "ssh_auth.present",
            "sshauthorizedkey",
            "authorizedkey",
            "authorized_keys",
        ],
        "Stead/SshKey",
    ),
    (&["git.latest", "git.cloned", "vcsrepo", "repository_clone", "checkout"], "Stead/Git"),
    (&["user.present", "users", "account", "useradd", "nxuser"], "Stead/User"),
    (&["group.present", "groups", "groupadd", "nxgroup"], "Stead/Group"),
    (&["cron.present", "cron_d", "cronjob", "crontab", "cron_job", "scheduledtask"], "Stead/Cron"),
    (&["systemd_timer", "timers", "schedule"], "Stead/Timer"),
    (&["modprobe", "kmod", "kmod.present", "kernel_module"], "Stead/KernelModule"),
    (
        &[
            "firewall",
            "ufw",
            "iptables",
            "firewalld",
            "nft",
            "firewall_rule",
            "firewallrule",
            "iptables.append",
            "iptables.chain_present",
            "firewalld.present",
            "security_group",
        ],
        "Stead/Nftables",
    ),
    (&["mounted", "filesystem", "fstab", "mount.mounted", "volume"], "Stead/Mount"),
    (&["hosts", "host.present", "hostsfile", "host_file"], "Stead/Host"),
    (&["hostname.set", "computer", "network.system"], "Stead/Hostname"),
    (&["sysctl.present", "kernel_parameter"], "Stead/Sysctl"),
    (&["pam_limits", "limits", "limits.d", "ulimit"], "Stead/Limits"),
    (&["locale_gen", "locale.present", "locale.system"], "Stead/Locale"),
    (&["timezone.system", "tz"], "Stead/Timezone"),
    (&["sudo", "sudoer", "sudo::conf", "sudo_rule"], "Stead/Sudoers"),
    (&["sshd", "sshd_config", "openssh", "sshd_config_match"], "Stead/SshdConfig"),
    (
        &[
            "import_tasks",
            "include_tasks",
            "import_playbook",
            "include_role",
            "import_role",
            "include",
            "include_vars",
            "role",
            "include_recipe",
            "import",
            "importtasks",
        ],
        "Microsoft.DSC/Include",
    ),
    (&["assert", "fail"], "Microsoft.DSC/Assertion"),
    (&["debug", "echo"], "Microsoft.DSC.Debug/Echo"),
];

/// The collections that Ansible's modules are written with.
const COLLECTIONS: [&str; 5] =
    ["ansible.builtin.", "ansible.posix.", "ansible.legacy.", "community.general.", "ansible.windows."];

/// What stands before the names in types that do not exist.
const OWNERS: [&str; 5] = ["stead/", "ansible/", "ansible.builtin/", "linux/", "nx/"];

/// Modules of Ansible that have the name of a resource here.
const SAME: [&str; 13] = [
    "command", "cron", "file", "git", "group", "hostname", "mount", "package", "service", "sysctl", "template",
    "timezone", "user",
];

/// Returns the type that other tools call by a name, with or without the collection, module or owner before it.
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
    let lower = name.to_lowercase();
    let bare = OWNERS.iter().find_map(|owner| lower.strip_prefix(owner)).unwrap_or(&lower);
    let bare = without_collection(bare);
    TYPES.iter().find(|(words, _)| words.contains(&bare)).map(|(_, known)| *known)
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
