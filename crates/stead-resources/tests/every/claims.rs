//! What is changed is claimed: order, conflicts and questions about paths go by claims alone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use stead_core::call::Execution;
use stead_core::claims::{Claim, Claims, Extent};
use stead_host::provider::{Context, Plain, Provider};
use stead_system::fs::SystemRoot;

use super::support::World;
use super::{carried_out, example};

/// Those whose effects no list of paths names. A new resource without claims must be listed here.
const WITHOUT_CLAIMS: &[&str] = &[
    "Microsoft.DSC.Transitional/RunCommandOnSet",
    "Microsoft/Process",
    "Stead/Command",
    "Stead/KernelModule",
    "Stead/Locale",
    "Stead/Package",
    "Stead/SshKey",
];

/// Those with claims whose examples change nothing: they only report, or fail as there is no network.
const UNCHANGED: &[&str] = &["Microsoft.DSC.Debug/Echo", "Microsoft/OSInfo", "Stead/Git"];

/// Paths that are changed beside those that are claimed. The record of an account stands for the whole account, of which the lock
/// of all databases and the passwords are a part; and a unit for the links by which it is enabled.
const BESIDE: &[&str] = &[
    "Stead/Group: etc/.pwd.lock",
    "Stead/Timer: etc/systemd/system/timers.target.wants",
    "Stead/Timer: etc/systemd/system/timers.target.wants/nightly.timer",
    "Stead/User: etc/.pwd.lock",
    "Stead/User: etc/shadow",
];

/// The paths whose lines differ between two trees.
fn changed(before: &str, after: &str) -> BTreeSet<PathBuf> {
    let (before, after): (BTreeSet<&str>, BTreeSet<&str>) = (before.lines().collect(), after.lines().collect());
    before.symmetric_difference(&after).filter_map(|line| line.split(' ').nth(1)).map(PathBuf::from).collect()
}

/// The paths that an instance changes and has no claim on; `None` if it changes nothing at all.
fn unclaimed(
    world: &World,
    cx: &Context,
    provider: &dyn Provider,
    input: &Plain,
    claims: &Claims,
) -> Option<Vec<PathBuf>> {
    let managed = claims.0.iter().filter(|Claim::Path { extent, .. }| *extent != Extent::Read);
    let managed = managed.map(|Claim::Path { path, extent }| (PathBuf::from(cx.resolve(&**path)), extent));
    let managed: Vec<(PathBuf, &Extent)> = managed.collect();
    let before = world.tree();
    // What fails may have changed something as well.
    drop(provider.set(cx, input, Execution::Actual));
    let mut changed = changed(&before, &world.tree());
    if changed.is_empty() {
        return None;
    }
    let is_claimed = |path: &Path| {
        let (changed, is_new) = (world.root.path().join(path), !before.contains(&format!(" {} ", path.display())));
        managed.iter().any(|(claimed, extent)| {
            let covers = matches!(extent, Extent::Tree { .. } | Extent::Entries { .. } | Extent::Absent);
            // A directory is made for what is in it, and a record of a database is claimed as if it were in a directory.
            let leads_there = claimed.starts_with(&changed) && (is_new || changed.is_file());
            changed == *claimed || leads_there || covers && changed.starts_with(claimed)
        })
    };
    changed.retain(|path| !is_claimed(path));
    Some(changed.into_iter().collect())
}

#[test]
fn each_changes_only_what_it_claims() {
    let (mut without, mut unchanged, mut found) = (Vec::new(), Vec::new(), Vec::new());
    for built_in in carried_out() {
        let name = built_in.manifest.type_name.as_str();
        let (world, input) = (World::system(), Plain::new(example(name)));
        let cx = Context { system_root: SystemRoot::below(world.root.path()), ..world.context() };
        let Some(claims) = built_in.provider.manages(&cx, &input) else {
            without.push(name);
            continue;
        };
        match unclaimed(&world, &cx, &*built_in.provider, &input, &claims) {
            None => unchanged.push(name),
            Some(paths) => found.extend(paths.iter().map(|path| format!("{name}: {}", path.display()))),
        }
    }
    assert_eq!(without, WITHOUT_CLAIMS, "those without claims");
    assert_eq!(unchanged, UNCHANGED, "those that change nothing");
    assert_eq!(found, BESIDE, "what is changed and not claimed");
}
