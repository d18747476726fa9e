//! The type that was meant by a word that is none.

use super::{FoundResource, Resources};
use crate::diag::{Diagnostic, Meant};
use crate::document::codes;
use crate::expr::codes::ARGUMENT_VALUE;
use crate::id::TypeName;
use crate::text::Sources;

/// Types that other tools have under a name of their own, by that name in small letters.
const TYPES: &[(&[&str], &str)] = &[
    (&["copy", "file.managed", "cookbook_file"], "Stead/File"),
    (&["file.directory"], "Stead/Directory"),
    (&["link", "file.symlink"], "Stead/Symlink"),
    (&["lineinfile", "file_line", "file.line", "file.replace", "replace"], "Stead/Line"),
    (&["blockinfile", "file.blockreplace"], "Stead/Block"),
    (&["ini_file", "ini_setting", "ini.options_present"], "Stead/Ini"),
    (&["get_url", "remote_file"], "Stead/Download"),
    (&["unarchive", "archive.extracted"], "Stead/Archive"),
    (&["apt", "yum", "dnf", "pkg", "pkg.installed", "apt_package", "packages"], "Stead/Package"),
    (&["pkgrepo.managed", "apt_repository"], "Stead/AptRepository"),
    (&["systemd", "systemd_service", "service.running", "systemd_unit"], "Stead/Service"),
    (&["exec", "shell", "script", "execute", "cmd.run", "bash"], "Stead/Command"),
    (&["authorized_key", "ssh_authorized_key", "ssh_auth.present"], "Stead/SshKey"),
    (&["git.latest", "vcsrepo"], "Stead/Git"),
    (&["user.present"], "Stead/User"),
    (&["group.present"], "Stead/Group"),
    (&["cron.present", "cron_d"], "Stead/Cron"),
    (&["modprobe", "kmod"], "Stead/KernelModule"),
];

/// Adds to findings about types without an owner the type that was probably meant.
pub fn suggest_types(findings: &mut [Diagnostic], resources: &dyn Resources, sources: &Sources) {
    let is_type = |finding: &&mut Diagnostic| {
        let is_argument = *finding.code == ARGUMENT_VALUE && finding.message.contains("is not a resource type");
        (*finding.code == codes::TYPE_NAME || is_argument) && finding.fix.is_none()
    };
    for finding in findings.iter_mut().filter(is_type) {
        let Some(written) = finding.span.and_then(|span| sources.text(span)) else { continue };
        let word = written.trim_matches(['"', '\'']);
        if let Some(meant) = type_meant(word, resources) {
            *finding = finding.clone().with_meant(word, &meant, Some(written));
        }
    }
}

/// Returns the type that was meant by a word that is none: `File`, `Stead.File` and `Stead::File` are `Stead/File`, and one that is
/// only near may be something else.
fn type_meant(word: &str, resources: &dyn Resources) -> Option<Meant> {
    let collections = ["ansible.builtin.", "ansible.posix.", "community.general."];
    let word = collections.iter().find_map(|collection| word.strip_prefix(collection)).unwrap_or(word);
    let lower = word.to_lowercase();
    if let Some((_, known)) = TYPES.iter().find(|(words, _)| words.contains(&&*lower)) {
        return Some(Meant::only(*known));
    }
    let separated = word.replace("::", "/").replace('\\', "/");
    let whole = match separated.rsplit_once('.') {
        _ if separated.contains('/') => separated,
        Some((owner, name)) => format!("{owner}/{name}"),
        None => format!("Stead/{separated}"),
    };
    match resources.find(&TypeName::parse(&whole).ok()?, None, None) {
        FoundResource::Resource(manifest) => Some(Meant::only(manifest.type_name.as_str())),
        FoundResource::Nothing(why) => why.meant.map(|meant| Meant::perhaps(meant.as_str())),
    }
}
