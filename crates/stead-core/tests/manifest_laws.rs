//! Laws of every manifest and every version.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![expect(clippy::disallowed_methods, reason = "the cases are files; the core itself reads none")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use stead_core::id::TypeName;
use stead_core::manifest::{
    self, Catalog, Declaration, Implementation, Manifest, ManifestForm, NotChosen, Version, VersionRequirement,
};
use stead_testkit::{repository, skip};

#[test]
fn every_code_has_a_case() {
    let folder = repository().join("corpus/manifest");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let cases = paths.filter(|path| path.is_file()).map(|path| fs::read_to_string(path).unwrap());
    let all: String = cases.collect();
    for code in manifest::codes::CODES {
        assert!(all.contains(&format!("[{}]: ", code.id)), "no case shows {}", code.id);
    }
}

/// Every key of manifests, and some values of theirs.
const WORDS: &str = "$schema type kind version tags condition get set whatIf test delete export resolve validate adapter \
    exitCodes schema metadata executable args input return jsonInputArg mandatory whatIfArg resourcePathArg includeQuotes \
    embedded command supportsFiltering list inputKind capabilities path content requireAdapter discover import secret \
    fileExtensions output nameArg resources adaptedResources extensions properties 1 A/B 1.0.0 2024-01-01 adapter stdin \
    state single [true()]";

/// JSON that is near enough to a manifest to reach every corner of the parser.
fn nearly_manifest() -> impl Strategy<Value = Json> {
    let word = prop::sample::select(WORDS.split_whitespace().collect::<Vec<_>>());
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        word.clone().prop_map(Json::from),
        ".{0,6}".prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 60, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::vec((word.clone(), inner), 0..8).prop_map(|members| Json::Object(
                members.into_iter().map(|(key, value)| (key.into(), value)).collect()
            )),
        ]
    })
}

fn version() -> impl Strategy<Value = Version> {
    let pre = prop::sample::select(vec!["", "-alpha", "-alpha.1", "-rc.1", "-0.3.7"]);
    let semantic = (0..3u64, 0..3u64, 0..3u64, pre).prop_map(|(a, b, c, pre)| format!("{a}.{b}.{c}{pre}"));
    let date = (2020..2023, 1..4, 1..4, prop::sample::select(vec!["", "-alpha", "-preview"]))
        .prop_map(|(year, month, day, suffix)| format!("{year}-{month:02}-{day:02}{suffix}"));
    prop_oneof![3 => semantic, 1 => date].prop_map(|text| Version::parse(&text).unwrap())
}

fn requirement() -> impl Strategy<Value = String> {
    let operator = prop::sample::select(vec!["=", ">", "<", ">=", "<=", "^", "~", ""]);
    let number = prop::sample::select(vec!["1", "1.1", "1.2.0", "2.*", "0.1.*", "1.0.0-rc.1", "1.x", "*", "2.0.0+b"]);
    prop::collection::vec((operator, number), 1..3).prop_map(|comparators| {
        comparators.into_iter().map(|(operator, number)| format!("{operator}{number}")).collect::<Vec<_>>().join(",")
    })
}

fn named(type_name: &str, version: Version, implementation: Implementation) -> Arc<Manifest> {
    Arc::new(Manifest::new(TypeName::parse(type_name).unwrap(), version, implementation))
}

fn commands(type_name: &str, versions: &[Version]) -> Catalog {
    let mut catalog = Catalog::default();
    for version in versions {
        catalog.add(named(type_name, version.clone(), Implementation::Command(Arc::default())));
    }
    catalog
}

proptest! {
    #[test]
    fn parsing_ends_and_either_declares_or_explains(json in nearly_manifest()) {
        let node = manifest::unplaced(&json);
        prop_assert_eq!(manifest::plain(&node), json.clone());
        for form in [ManifestForm::Resource, ManifestForm::Adapted, ManifestForm::Extension, ManifestForm::guess(&node)] {
            let (declared, findings) = manifest::parse(form, &node, Path::new("/m/x.dsc.resource.json"));
            let silent = declared.is_empty() && findings.is_empty();
            prop_assert!(!silent || form == ManifestForm::List, "nothing is said about {json}");
            for each in declared {
                if let Declaration::Resource(manifest) = each.declaration {
                    let listing = manifest::listing(&manifest);
                    prop_assert_eq!(&listing["type"], manifest.type_name.as_str());
                }
            }
        }
        let _ = manifest::parse_listed(json);
    }

    #[test]
    fn versions_are_totally_ordered_and_read_back(a in version(), b in version(), c in version()) {
        prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
        prop_assert_eq!(a == b, a.cmp(&b).is_eq());
        if a <= b && b <= c {
            prop_assert!(a <= c);
        }
        prop_assert_eq!(Version::parse(&a.to_string()), Ok(a));
    }

    #[test]
    fn requirements_are_those_of_cargo_with_less_allowed(text in requirement(), version in version()) {
        let cargo = semver::VersionReq::parse(&text);
        if let Ok(requirement) = VersionRequirement::parse(&text) {
            let cargo = cargo.unwrap();
            let expected = matches!(&version, Version::Semantic(version) if cargo.matches(version));
            prop_assert_eq!(requirement.matches(&version), expected);
            prop_assert!(!text.split(',').any(|each| each.starts_with(|first: char| first.is_ascii_digit())));
        }
    }

    #[test]
    fn the_newest_that_fits_is_found(versions in prop::collection::vec(version(), 1..8), text in requirement()) {
        let catalog = commands("A/B", &versions);
        let wanted = TypeName::parse("a/b").unwrap();
        prop_assert_eq!(Some(&catalog.find(&wanted, None).unwrap().version), versions.iter().max());
        if let Ok(requirement) = VersionRequirement::parse(&text) {
            let newest = versions.iter().filter(|version| requirement.matches(version)).max();
            let found = catalog.find(&wanted, Some(&requirement));
            prop_assert_eq!(found.ok().map(|manifest| &manifest.version), newest);
        }
    }

    /// Names in front of the ending, and its case, do not matter.
    #[test]
    fn the_ending_alone_decides_the_form(
        name in ".{0,12}(\\.[dD][sS][cC])?(\\.(resource|adaptedResource|EXTENSION|Manifests|other))?(\\.(json|YAML|yml|jsonc))?"
    ) {
        let forms = [
            ("resource", ManifestForm::Resource),
            ("adaptedresource", ManifestForm::Adapted),
            ("extension", ManifestForm::Extension),
            ("manifests", ManifestForm::List),
        ];
        let lower = name.to_ascii_lowercase();
        let ends = |word: &str| ["json", "yaml", "yml"].iter().any(|ending| lower.ends_with(&format!(".dsc.{word}.{ending}")));
        let expected = forms.iter().find(|(word, _)| ends(word)).map(|(_, form)| *form);
        prop_assert_eq!(ManifestForm::of(&name), expected);
    }
}

#[test]
fn forms_are_known_by_file_names_without_regard_to_case() {
    let cases = [
        ("a.dsc.resource.json", Some(ManifestForm::Resource)),
        ("A.DSC.RESOURCE.YML", Some(ManifestForm::Resource)),
        ("a.b.dsc.adaptedresource.yaml", Some(ManifestForm::Adapted)),
        ("a.dsc.extension.json", Some(ManifestForm::Extension)),
        (".dsc.manifests.json", Some(ManifestForm::List)),
        ("dsc.resource.json", None),
        ("a.dsc.resource.jsonc", None),
        ("a.dsc.resource", None),
        ("adsc.resource.json", None),
        ("", None),
    ];
    for (name, form) in cases {
        assert_eq!(ManifestForm::of(name), form, "{name}");
    }
}

#[test]
fn what_is_not_found_says_what_there_is() {
    let versions = ["1.0.0", "2.1.0-rc.1", "1.1.0"].map(|text| Version::parse(text).unwrap());
    let mut catalog = commands("Contoso.Web/Site", &versions);
    let wanted = |text: &str| TypeName::parse(text).unwrap();
    let near = |text: &str| catalog.find(&wanted(text), None).unwrap_err().help();
    assert_eq!(near("Contoso.Web/Sites").as_deref(), Some("did you mean 'Contoso.Web/Site'?"));
    // A type of somebody else is another one, however it is called.
    assert_eq!((near("Other/Site"), near("Other/Thing")), (None, None));
    let requirement = VersionRequirement::parse(">=2").unwrap();
    let error = catalog.find(&wanted("Contoso.Web/Site"), Some(&requirement)).unwrap_err();
    let there = "no version of 'Contoso.Web/Site' satisfies '>=2'; available: 2.1.0-rc.1, 1.1.0, 1.0.0";
    assert_eq!(error.to_string(), there);
    assert!(error.help().unwrap().contains("'>=2.1.0-rc.1'"));
    assert!(matches!(error, NotChosen::Version { .. }));
    // The newest wins, whether it is built in or was found.
    catalog.add(named("Contoso.Web/Site", Version::parse("0.9.0").unwrap(), Implementation::InProcess));
    let found = |text: Option<&str>| {
        let requirement = text.map(|text| VersionRequirement::parse(text).unwrap());
        catalog.find(&wanted("Contoso.Web/Site"), requirement.as_ref()).unwrap().version.to_string()
    };
    assert_eq!((found(None), found(Some("<1"))), ("2.1.0-rc.1".into(), "0.9.0".into()));
}

const NO_CASES: &str = "the recorded cases do not lie beside the repository";

/// Cases recorded from another implementation, where they are at hand.
fn recorded() -> Option<Vec<Json>> {
    let path = stead_testkit::repository().join("../shared/corpus/dsc/cases.jsonl");
    let text = fs::read_to_string(path).ok()?;
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn requirements_choose_as_recorded() {
    // The versions that the recorded machine had, and what each requirement chose there.
    let there = ["1.1.0", "1.1.2", "1.1.3", "2.0.0", "2.1.0-preview.2"].map(|text| Version::parse(text).unwrap());
    let catalog = commands("Test/Version", &there);
    let wanted = TypeName::parse("Test/Version").unwrap();
    let mut pairs: Vec<(String, String)> = [
        (">=1.0.0", "2.0.0"),
        ("<=1.1.0", "1.1.0"),
        (">1,<=2.0.0", "2.0.0"),
        (">1.0.0,<2.0.0", "1.1.3"),
        ("=1", "1.1.3"),
        ("=1.1", "1.1.3"),
        ("~1.1", "1.1.3"),
        ("=2", "2.0.0"),
    ]
    .map(|(requirement, version)| (requirement.to_owned(), version.to_owned()))
    .to_vec();
    match recorded() {
        None => skip("requirements_are_as_recorded", NO_CASES),
        Some(cases) => {
            pairs.extend(cases.iter().filter(|case| case["suite"] == "dsc_config_version").filter_map(|case| {
                let vars = &case["vars"];
                Some((vars["req"].as_str()?.to_owned(), vars["expected"].as_str()?.to_owned()))
            }));
        }
    }
    for (requirement, expected) in pairs {
        let parsed = VersionRequirement::parse(&requirement).unwrap();
        assert_eq!(catalog.find(&wanted, Some(&parsed)).unwrap().version.to_string(), expected, "{requirement}");
    }
    assert_eq!(catalog.find(&wanted, None).unwrap().version.to_string(), "2.1.0-preview.2");
}

#[test]
fn listings_are_as_recorded() {
    let Some(cases) = recorded() else {
        return skip("listings_are_as_recorded", NO_CASES);
    };
    let runs = cases.iter().flat_map(|case| case["runs"].as_array().unwrap());
    let lines =
        runs.flat_map(|run| run["stdout"].as_str().unwrap().lines()).filter(|line| line.starts_with("{\"type\""));
    let mut compared = 0;
    for line in lines {
        let Ok(expected) = serde_json::from_str::<Json>(line) else { continue };
        if expected["requireAdapter"].is_null() && expected["manifest"].is_object() {
            let path = Path::new(expected["path"].as_str().unwrap());
            let node = manifest::unplaced(&expected["manifest"]);
            let (declared, findings) = manifest::parse(ManifestForm::Resource, &node, path);
            let [declared] = &declared[..] else { panic!("{findings:?}") };
            let Declaration::Resource(manifest) = &declared.declaration else { panic!("not a resource") };
            assert_eq!(manifest::listing(manifest).to_string(), line);
            compared += 1;
        } else if expected["implementedAs"].is_string() {
            let adapter = named("Test/TestGroup", Version::parse("1.0.0").unwrap(), Implementation::Engine);
            let listed = manifest::parse_listed(expected).unwrap().into_manifest(adapter);
            assert_eq!(manifest::listing(&listed).to_string(), line);
            compared += 1;
        }
    }
    assert!(compared > 10, "{compared}");
}

#[test]
fn what_an_adapter_lists_has_to_make_sense() {
    let listed = json!({"type": "A/B", "version": "1", "requireAdapter": "C/D", "capabilities": ["get", "fly"]});
    let findings = manifest::parse_listed(listed).unwrap_err();
    let codes: Vec<_> = findings.iter().map(|finding| finding.code.id).collect();
    assert_eq!(codes, ["E0605", "E0606"]);
}
