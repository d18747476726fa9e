//! Which claims contradict each other: the fast way against the comparison of each pair.

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;
use stead_core::claims::{Claim, Claims, Conflict, Contradiction, Extent, Links, conflicts, share_paths};
use stead_core::id::NodeId;

const LINK: Extent = Extent::Link { target: None };

fn extent() -> impl Strategy<Value = Extent> {
    let line = proptest::option::of("[xy]");
    prop_oneof![
        Just(Extent::Read),
        Just(Extent::Attributes),
        Just(Extent::Directory),
        Just(LINK),
        line.prop_map(|line| Extent::Part { line, key: None }),
        Just(Extent::Whole),
        Just(Extent::Absent),
        any::<bool>().prop_map(|purge| Extent::Tree { purge }),
        proptest::collection::btree_set("[ab]", 0..3).prop_map(|kept| Extent::Entries { kept }),
    ]
}

/// Instances as resources have them: one claim, and what goes with it.
fn instances() -> impl Strategy<Value = Vec<Claims>> {
    let path = || "(/[ab]){1,3}";
    let mode = proptest::option::of(proptest::sample::select(vec![0o600, 0o755]));
    let instance = (path(), extent(), mode, any::<bool>(), proptest::option::of(path()));
    let instance = instance.prop_map(|(path, extent, mode, keeps, source)| {
        let mut claims = Claims::path(path, extent);
        if let Some(mode) = mode {
            claims = claims.and_mode(mode);
        }
        if keeps {
            // A copy has the name of the file and more: here it is one that others have too.
            claims = claims.and_backup("/a");
        }
        source.into_iter().fold(claims, Claims::and_reads)
    });
    proptest::collection::vec(instance, 0..12)
}

/// Returns whether the order of the claims decides conflicts, since one of them is a link.
fn depends_on_order(claims: &Claims) -> bool {
    claims.0.iter().any(|Claim::Path { extent, .. }| *extent == LINK)
}

fn numbered<'c>(claims: impl IntoIterator<Item = &'c Claims>) -> Vec<(NodeId, &'c Claims)> {
    (0..).map(NodeId).zip(claims).collect()
}

fn found(claims: &[&Claims]) -> Vec<Conflict> {
    conflicts(&numbered(claims.iter().copied()))
}

proptest! {
    #[test]
    fn a_conflict_is_found_wherever_a_pair_has_one(claims in instances()) {
        let all = conflicts(&numbered(&claims));
        let pairs = (0..claims.len()).flat_map(|second| (0..second).map(move |first| (first, second)));
        let pairwise = pairs.filter(|(first, second)| !found(&[&claims[*first], &claims[*second]]).is_empty()).count();
        prop_assert_eq!(all.is_empty(), pairwise == 0);
        let number = claims.iter().map(|all| all.0.len()).sum::<usize>();
        prop_assert!(all.len() <= 2 * number, "more than two for one claim");
    }

    #[test]
    fn whoever_is_in_a_conflict_is_so_without_the_others(claims in instances()) {
        for conflict in conflicts(&numbered(&claims)) {
            let [first, second] = [conflict.first, conflict.second].map(|id| &claims[id.0 as usize]);
            let alone = found(&[first, second]);
            prop_assert!(conflict.first < conflict.second);
            prop_assert!(alone.iter().any(|each| each.about == conflict.about && each.path == conflict.path));
        }
    }

    #[test]
    fn no_conflict_is_found_where_no_path_is_shared_and_nothing_removes(claims in instances()) {
        let (numbered, removes) = (numbered(&claims), claims.iter().any(Claims::remove_below));
        let paths = |claims: &Claims| claims.0.iter().map(|Claim::Path { path, .. }| path.clone()).collect::<BTreeSet<_>>();
        let all: Vec<_> = claims.iter().flat_map(paths).collect();
        prop_assert_eq!(share_paths(numbered.iter().copied()), all.iter().collect::<BTreeSet<_>>().len() < all.len());
        prop_assert!(share_paths(numbered.iter().copied()) || removes || conflicts(&numbered).is_empty());
    }

    #[test]
    fn the_order_decides_nothing_but_the_order(mut claims in instances()) {
        claims.retain(|claims| !depends_on_order(claims));
        let turned: Vec<Claims> = claims.iter().rev().cloned().collect();
        prop_assert_eq!(conflicts(&numbered(&claims)).is_empty(), conflicts(&numbered(&turned)).is_empty());
    }
}

fn about(one: &Claims, other: &Claims) -> Option<Contradiction> {
    let one_way = found(&[one, other]).first().map(|conflict| conflict.about);
    let other_way = found(&[other, one]).first().map(|conflict| conflict.about);
    assert_eq!(one_way, other_way);
    one_way
}

#[test]
fn what_is_purged_is_not_managed_by_another() {
    let directory = |kept: &[&str]| {
        Claims::path("/d", Extent::Entries { kept: kept.iter().map(|name| (*name).to_owned()).collect() })
    };
    let file = |path: &str| Claims::path(path, Extent::Whole);
    assert_eq!(about(&directory(&["a"]), &file("/d/b")), Some(Contradiction::Purged));
    assert_eq!(about(&directory(&["a"]), &file("/d/b/c")), Some(Contradiction::Purged));
    assert_eq!(about(&directory(&["a"]), &file("/d/a/c")), None);
    assert_eq!(about(&directory(&["a"]), &Claims::path("/d/b", Extent::Absent)), None);
    assert_eq!(about(&directory(&["a"]), &directory(&["b"])), Some(Contradiction::Purged));
    assert_eq!(about(&directory(&["a"]), &Claims::path("/d", Extent::Directory)), None);
}

#[test]
fn content_has_one_owner_and_many_readers() {
    let at = |extent| Claims::path("/f", extent);
    assert_eq!(about(&at(Extent::Whole), &at(Extent::Whole)), Some(Contradiction::Same));
    assert_eq!(about(&at(Extent::Whole), &at(Extent::Part { line: None, key: None })), Some(Contradiction::Same));
    assert_eq!(about(&at(Extent::Part { line: None, key: None }), &at(Extent::Part { line: None, key: None })), None);
    let key = |key: &str| at(Extent::Part { line: None, key: Some(key.to_owned()) });
    assert_eq!(about(&key("a"), &key("a")), Some(Contradiction::SamePart));
    assert_eq!(about(&key("a"), &key("b")), None);
    assert_eq!(about(&at(Extent::Whole), &at(Extent::Read)), None);
    assert_eq!(about(&at(Extent::Whole), &at(Extent::Attributes)), None);
    assert_eq!(about(&at(Extent::Attributes), &at(Extent::Absent)), Some(Contradiction::Existence));
    assert_eq!(
        about(&Claims::path("/f/g", Extent::Part { line: None, key: None }), &at(Extent::Absent)),
        Some(Contradiction::Existence)
    );
}

#[test]
fn one_instance_does_not_conflict_with_itself() {
    let link = Claims(vec![
        Claim::Path { path: Path::new("/f").into(), extent: Extent::Whole },
        Claim::Path { path: Path::new("/f").into(), extent: Extent::Part { line: None, key: None } },
    ]);
    assert_eq!(found(&[&link]), []);
}

#[test]
fn paths_are_written_in_one_way() {
    let claims = Claims::path("./a//b/", Extent::Absent)
        .and_reads("/etc/./x")
        .resolved(|path| Path::new("/root").join(path).into());
    assert_eq!(claims, Claims::path("/root/a/b", Extent::Absent).and_reads("/etc/x"));
}

#[test]
fn a_path_is_one_kind_of_thing_with_one_mode() {
    let at = |extent| Claims::path("/f", extent);
    let mode = |mode| at(Extent::Attributes).and_mode(mode);
    assert_eq!(about(&at(Extent::Directory), &at(Extent::Whole)), Some(Contradiction::Kind));
    assert_eq!(about(&at(LINK), &at(Extent::Attributes)), Some(Contradiction::Kind));
    assert_eq!(about(&mode(0o644), &mode(0o600)), Some(Contradiction::Mode));
    assert_eq!(about(&mode(0o644), &mode(0o644)), None);
}

#[test]
fn a_link_takes_the_place_of_what_was_made_before() {
    let (link, within) = (Claims::path("/d", LINK), Claims::path("/d/f", Extent::Whole));
    let conflicts = found(&[&within, &link]);
    assert_eq!(conflicts.iter().map(|conflict| conflict.about).collect::<Vec<_>>(), [Contradiction::Replaced]);
    assert_eq!(found(&[&link, &within]), []);
}

#[test]
fn copies_of_former_content_are_purged_too() {
    let directory = Claims::path("/d", Extent::Entries { kept: ["f".to_owned()].into() });
    assert_eq!(about(&directory, &Claims::path("/d/f", Extent::Whole)), None);
    assert_eq!(about(&directory, &Claims::path("/d/f", Extent::Whole).and_backup(".old")), Some(Contradiction::Purged));
}

#[test]
fn many_claims_take_little_time() {
    let lines: Vec<Claims> = (0..100_000).map(|_| Claims::path("/f", Extent::Part { line: None, key: None })).collect();
    assert_eq!(conflicts(&numbered(&lines)), []);
    // However many parts a file has, each of which two manage is found.
    let key = |number: u32| Claims::path("/f", Extent::Part { line: None, key: Some((number % 50_000).to_string()) });
    let keys: Vec<Claims> = (0..100_000).map(key).collect();
    assert_eq!(conflicts(&numbered(&keys)).len(), 50_000);
}

#[test]
fn a_path_behind_links_means_where_they_lead() {
    let link = |path: &str, target: &str| {
        let claims = Claims::path(path, Extent::Link { target: Some(Path::new(target).into()) });
        claims.resolved(|path| path.into())
    };
    let links = [
        link("/l", "d"),
        link("/d/m", "../e/./f"),
        link("/deep/er", "/l/m"),
        link("/l/n", "/g"),
        link("/o", "/p"),
        link("/p", "o"),
        link("/q", "/q/r"),
        link("/two", "/d"),
        link("/two", "/e"),
    ];
    let links = Links::of(&links);
    let others = |path: &str| -> Vec<String> {
        links.others(Path::new(path)).iter().map(|path| path.display().to_string()).collect()
    };
    assert_eq!(others("/l/x"), ["/d/x"]);
    assert_eq!(others("/l/m/x"), ["/d/m/x", "/e/f/x"]);
    assert_eq!(others("/deep/er/x/y"), ["/l/m/x/y", "/d/m/x/y", "/e/f/x/y"]);
    // A link that lies behind another one is at both paths.
    assert_eq!(
        (others("/l/n/x"), others("/d/n/x")),
        (vec!["/d/n/x".to_owned(), "/g/x".to_owned()], vec!["/g/x".to_owned()])
    );
    assert_eq!(others("/two/x"), ["/d/x", "/e/x"]);
    // The link itself is where it is; a circle has an end.
    assert_eq!((others("/l").len(), others("/x").len()), (0, 0));
    assert_eq!((others("/o/x"), others("/q/x").len()), (vec!["/p/x".to_owned()], 40));
}

#[test]
fn many_links_take_little_time() {
    let link = |at: usize| {
        let path = if at.is_multiple_of(2) { "/l".to_owned() } else { format!("/l/{at}") };
        Claims::path(path, Extent::Link { target: Some(Path::new(&format!("/d/{at}")).into()) })
    };
    let links: Vec<Claims> = (0..10_000).map(link).collect();
    let links = Links::of(&links);
    assert_eq!(links.others(Path::new("/l/1/x")).len(), 40);
}
