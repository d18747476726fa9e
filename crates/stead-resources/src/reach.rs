//! How far built-in resources reach beyond the root of a system that does not run.

use stead_core::id::TypeName;

/// The part of a built-in resource that happens below the root of a system that does not run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// All of it.
    Within,
    /// Its files; the resource itself leaves out what a running system makes of them, such as a service that runs.
    Files,
    /// It runs programs of the system that runs, or asks others over a network, for what it changes below the root.
    Beyond,
    /// None of it: its instances name programs, which the system that runs carries out.
    Outside,
}

/// The built-in resources of which not everything happens below a root.
const REACHES: [(&str, Reach); 15] = [
    ("Microsoft.DSC.Transitional/RunCommandOnSet", Reach::Outside),
    ("Microsoft/Process", Reach::Beyond),
    ("Stead/Command", Reach::Outside),
    ("Stead/Download", Reach::Beyond),
    ("Stead/Git", Reach::Beyond),
    ("Stead/Hostname", Reach::Files),
    ("Stead/KernelModule", Reach::Files),
    ("Stead/Locale", Reach::Files),
    ("Stead/Mount", Reach::Files),
    ("Stead/Nftables", Reach::Files),
    ("Stead/Package", Reach::Beyond),
    ("Stead/Service", Reach::Files),
    ("Stead/Sysctl", Reach::Files),
    ("Stead/Timer", Reach::Files),
    ("Stead/Timezone", Reach::Files),
];

/// Returns what of a built-in resource happens below the root of a system that does not run.
pub fn reach(type_name: &TypeName) -> Reach {
    REACHES.iter().find(|(name, _)| *name == type_name.as_str()).map_or(Reach::Within, |(_, reach)| *reach)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtins;

    /// A new resource is looked at once: whoever adds one says here, or in the table, how far it reaches.
    #[test]
    fn every_built_in_resource_was_looked_at() {
        const WITHIN: [&str; 25] = [
            "Microsoft.DSC.Debug/Echo",
            "Microsoft.DSC/Assertion",
            "Microsoft.DSC/Group",
            "Microsoft.DSC/Include",
            "Microsoft/OSInfo",
            "Stead/AptRepository",
            "Stead/Archive",
            "Stead/Block",
            "Stead/Cron",
            "Stead/Directory",
            "Stead/File",
            "Stead/Group",
            "Stead/Host",
            "Stead/Ini",
            "Stead/Json",
            "Stead/Limits",
            "Stead/Line",
            "Stead/SshKey",
            "Stead/SshdConfig",
            "Stead/Sudoers",
            "Stead/Symlink",
            "Stead/Template",
            "Stead/Toml",
            "Stead/User",
            "Stead/Yaml",
        ];
        for each in builtins() {
            let name = each.manifest.type_name.as_str();
            let is_known = WITHIN.contains(&name) != REACHES.iter().any(|(known, _)| *known == name);
            assert!(is_known, "say how far {name} reaches");
        }
    }
}
