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
    "Stead/Service",
    "Stead/SshKey",
    "Stead/Timer",
];

/// Those with claims whose examples change nothing: they only report, or fail as there is no network.
const UNCHANGED: &[&str] = &["Microsoft.DSC.Debug/Echo", "Microsoft/OSInfo", "Stead/Git"];

/// Paths that accounts change beside the records that they claim: those stand for the whole account, of which the lock of all
/// databases and the passwords are a part.
const OF_ACCOUNTS: &[&str] = &["Stead/Group: etc/.pwd.lock", "Stead/User: etc/.pwd.lock", "Stead/User: etc/shadow"];

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
    let managed: Vec<PathBuf> = managed.map(|Claim::Path { path, .. }| PathBuf::from(cx.resolve(&**path))).collect();
    let before = world.tree();
    // What fails may have changed something as well.
    drop(provider.set(cx, input, Execution::Actual));
    let mut changed = changed(&before, &world.tree());
    if changed.is_empty() {
        return None;
    }
    // A record of a database is claimed as if it were in a directory.
    let is_claimed = |path: &Path| managed.iter().any(|each| path.starts_with(each) || each.starts_with(path));
    changed.retain(|path| !is_claimed(&world.root.path().join(path)));
    Some(changed.into_iter().collect())
}

#[test]
fn each_changes_only_what_it_claims() {
    let (mut without, mut unchanged, mut found) = (Vec::new(), Vec::new(), Vec::new());
    for built_in in carried_out() {
        let name = built_in.manifest.type_name.as_str();
        let (world, input) = (World::system(), Plain::new(example(name)));
        let cx = Context { system_root: SystemRoot::below(world.root.path()), ..world.context() };
        let Some(claims) = built_in.provider.claims_there(&cx, &input) else {
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
    assert_eq!(found, OF_ACCOUNTS, "what is changed and not claimed");
}
