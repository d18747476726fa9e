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

/// How far what an instance changes and what it claims are apart.
struct Apart {
    unclaimed: Vec<PathBuf>,
    /// Claims at which nothing was changed: they are too wide, or wrong.
    untouched: Vec<PathBuf>,
}

/// Sets an instance, and compares; `None` if it changes nothing at all.
fn compared(world: &World, cx: &Context, provider: &dyn Provider, input: &Plain, claims: &Claims) -> Option<Apart> {
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
    // What is claimed beneath a file is a record in it.
    let is_touched = |claimed: &Path| {
        changed
            .iter()
            .any(|path| claimed == path || claimed.starts_with(path) && world.root.path().join(path).is_file())
    };
    let own = |claimed: &PathBuf| claimed.strip_prefix(world.root.path()).unwrap_or(claimed).to_owned();
    let may_stay = |extent: &Extent| matches!(extent, Extent::Backup | Extent::Mode(_));
    let untouched = managed.iter().filter(|(_, extent)| !may_stay(extent)).map(|(claimed, _)| own(claimed));
    let untouched = untouched.filter(|claimed| !is_touched(claimed)).collect();
    changed.retain(|path| !is_claimed(path));
    Some(Apart { unclaimed: changed.into_iter().collect(), untouched })
}

#[test]
fn each_changes_what_it_claims_and_nothing_else() {
    let (mut without, mut unchanged) = (Vec::new(), Vec::new());
    let (mut found, mut untouched) = (Vec::new(), Vec::new());
    for built_in in carried_out() {
        let name = built_in.manifest.type_name.as_str();
        let (world, input) = (World::system(), Plain::new(example(name)));
        let cx = Context { system_root: SystemRoot::below(world.root.path()), ..world.context() };
        let Some(claims) = built_in.provider.manages(&cx, &input) else {
            without.push(name);
            continue;
        };
        let named = |path: &PathBuf| format!("{name}: {}", path.display());
        match compared(&world, &cx, &*built_in.provider, &input, &claims) {
            None => unchanged.push(name),
            Some(apart) => {
                found.extend(apart.unclaimed.iter().map(named));
                untouched.extend(apart.untouched.iter().map(named));
            }
        }
    }
    assert_eq!(without, WITHOUT_CLAIMS, "those without claims");
    assert_eq!(unchanged, UNCHANGED, "those that change nothing");
    assert_eq!(found, BESIDE, "what is changed and not claimed");
    assert_eq!(untouched, [""; 0], "what is claimed and not changed");
}
