//! Laws of every built-in resource.

#![expect(clippy::disallowed_methods, reason = "a test looks at its own files as it likes")]
#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "every/beside.rs"]
mod beside;
#[path = "every/canaries.rs"]
mod canaries;
#[path = "every/claims.rs"]
mod claims;
#[path = "every/exports.rs"]
mod exports;
#[path = "every/long_lines.rs"]
mod long_lines;
#[path = "every/removals.rs"]
mod removals;
#[path = "every/roots.rs"]
mod roots;
mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value as Json, json};
use stead_core::call::{Execution, FailureKind};
use stead_core::claims::{Claim, Claims, Contradiction, Extent, conflicts};
use stead_core::diag::Severity;
use stead_core::id::NodeId;
use stead_core::manifest::Implementation;
use stead_core::schema::{Reason, Schema};
use stead_host::check::{CheckedResource, Depth, check};
use stead_host::provider::Plain;
use stead_resources::{BuiltIn, builtins};
use support::World;

/// Those that are carried out here, and not by the engine.
fn carried_out() -> Vec<&'static BuiltIn> {
    builtins().iter().filter(|each| matches!(each.manifest.implementation, Implementation::InProcess)).collect()
}

/// A desired state that each can reach in an empty directory. A new resource must be listed here.
fn example(type_name: &str) -> Json {
    match type_name {
        "Stead/File" => json!({"path": "f", "source": "/etc/passwd", "mode": "0600", "backup": true}),
        "Stead/Directory" => json!({"path": "d", "mode": "0750"}),
        "Stead/Symlink" => json!({"path": "l", "target": "f", "force": true}),
        "Stead/Line" => json!({"path": "f", "line": "a", "create": true}),
        "Stead/User" => json!({"name": "new", "uid": 4000, "shell": "/bin/sh"}),
        "Stead/Group" => json!({"name": "new", "gid": 4000}),
        "Stead/Block" => json!({"path": "f", "name": "n", "content": "a", "create": true}),
        "Stead/Host" => json!({"name": "h", "ip": "10.0.0.1"}),
        "Stead/Limits" => json!({"domain": "u", "type": "soft", "item": "nofile", "value": "64"}),
        "Stead/Cron" => {
            json!({"name": "j", "schedule": "@daily", "user": "root", "command": "x", "environment": {"A": "b"}})
        }
        "Stead/Sysctl" => json!({"name": "vm.swappiness", "value": "10"}),
        "Stead/Hostname" => json!({"name": "h"}),
        "Stead/Timezone" => json!({"name": "UTC"}),
        "Stead/Locale" => json!({"variables": {"LANG": "C.UTF-8"}, "generated": ["C.UTF-8"]}),
        "Stead/KernelModule" => {
            json!({"name": "loop", "boot": true, "options": "max_loop=8", "blacklisted": false, "loaded": true})
        }
        "Stead/SshKey" => json!({"user": "u", "type": "ssh-rsa", "key": "AAAAnew", "comment": "c"}),
        "Stead/SshdConfig" => json!({
            "PermitRootLogin": false, "ciphers": ["aes256-ctr"], "AllowUsers": ["u", "v"],
            "match": [{"criteria": {"user": ["v"]}, "X11Forwarding": true}], "validate": false,
        }),
        "Stead/Ini" => json!({"path": "f", "section": "s", "key": "k", "value": "v", "create": true}),
        "Stead/Json" | "Stead/Toml" | "Stead/Yaml" => {
            json!({"path": "f", "pointer": "/a/b", "value": {"c": [1]}, "create": true})
        }
        "Stead/Service" => json!({"name": "new", "unit": "[Service]\nExecStart=/bin/true\n", "masked": false}),
        "Stead/Timer" => json!({"name": "nightly", "onCalendar": "daily", "command": "/bin/true", "persistent": true}),
        "Stead/Mount" => {
            json!({"path": "/srv", "device": "LABEL=srv", "fstype": "ext4", "options": "ro", "dump": 0, "pass": 2})
        }
        "Stead/Sudoers" => {
            json!({"name": "s", "rules": [{"users": ["u"], "commands": ["ALL"]}], "validate": false})
        }
        "Stead/Nftables" => json!({"name": "filter", "content": "chain c {\n\tcounter\n}\n"}),
        "Stead/Package" => json!({"name": "base", "version": ">= 1.0, < 2", "hold": false}),
        "Stead/AptRepository" => {
            json!({"name": "local", "uris": ["file:/srv/repository"], "suites": ["./"], "trusted": true})
        }
        "Stead/Template" => json!({"path": "f", "template": "{{ a }}\n", "variables": {"a": 1}, "mode": "0600"}),
        "Stead/Archive" => json!({"path": "d", "source": "/a.tar", "creates": "x"}),
        "Stead/Download" => json!({
            "path": "f", "url": "file:///etc/shadow", "mode": "0600",
            "checksum": "sha256:f98919ffd61eda1084d6bb1e06c164189923cb7e54f2e2e8f8642c8ffaaa599d",
        }),
        "Stead/Git" => json!({
            "path": "w", "repository": "https://host.example/r.git",
            "revision": "1111111111111111111111111111111111111111",
        }),
        "Stead/Command" => json!({"creates": "c", "set": "touch c", "get": "echo x"}),
        "Microsoft.DSC.Debug/Echo" => json!({"output": ["x", 1, null]}),
        "Microsoft/OSInfo" => json!({"family": "Linux"}),
        "Microsoft/Process" => json!({"pid": std::process::id()}),
        "Microsoft.DSC.Transitional/RunCommandOnSet" => json!({"executable": "/bin/sh", "arguments": ["-c", "exit 0"]}),
        other => panic!("{other} has no example"),
    }
}

#[test]
fn each_has_cases() {
    let corpus = stead_testkit::repository().join("corpus");
    let mut texts = Vec::new();
    let mut folders = vec![corpus.join("resources"), corpus.join("builtins")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { texts.push(fs::read_to_string(path).unwrap()) }
        }
    }
    for built_in in carried_out() {
        let name = built_in.manifest.type_name.as_str();
        let cases = texts.iter().filter(|text| text.contains(&format!("\n{name}"))).count();
        assert!(cases > 1, "{name} has {cases} cases below corpus/");
    }
}

#[test]
fn each_does_what_it_declares() {
    for built_in in carried_out() {
        let (name, can) = (built_in.manifest.type_name.as_str(), built_in.manifest.capabilities);
        let (world, input) = (World::system(), Plain::new(example(name)));
        let (cx, provider) = (world.context_for(name), &built_in.provider);
        let unsupported = |kind: Option<FailureKind>| kind == Some(FailureKind::Unsupported);
        let answers = [
            ("get", can.get, provider.get(&cx, &input).err()),
            ("test", can.test, provider.test(&cx, &input).err()),
            ("what-if", can.set_what_if, provider.set(&cx, &input, Execution::WhatIf).err()),
            ("delete what-if", can.delete_what_if, provider.delete(&cx, &input, Execution::WhatIf).err()),
            ("set", can.set, provider.set(&cx, &input, Execution::Actual).err()),
            ("delete", can.delete, provider.delete(&cx, &input, Execution::Actual).err()),
            ("export", can.export, provider.export(&cx, &Plain::new(json!({"path": "."}))).err()),
        ];
        for (method, declared, failure) in answers {
            // Echo answers a what-if without declaring it: as in dsc, it is asked for a test instead.
            let answered = !unsupported(failure.map(|failure| failure.kind));
            assert!(answered || !declared, "{name} declares '{method}' and does not have it");
        }
    }
}

/// The property whose value is the path that an instance manages is the one that is declared as its place.
#[test]
fn each_declares_where_its_things_are() {
    for built_in in carried_out() {
        let name = built_in.manifest.type_name.as_str();
        let stated = example(name);
        let claims = built_in.provider.claims(&Plain::new(stated.clone())).unwrap_or_default();
        let is_managed = |text: &str| {
            claims.0.iter().any(|Claim::Path { path, extent }| *extent != Extent::Read && **path == *Path::new(text))
        };
        let places = stated.as_object().unwrap().iter();
        let places = places.filter_map(|(property, value)| is_managed(value.as_str()?).then_some(property.as_str()));
        let places: Vec<&str> = places.collect();
        let declared = built_in.place.filter(|place| stated.get(place).is_some());
        // What is mounted is a part of a table, whose key is the mount point.
        let of_table = declared.filter(|place| claims.0.iter().any(|claim| is_part_called(claim, &stated[place])));
        assert_eq!(places, Vec::from_iter(declared.filter(|_| of_table.is_none())), "{name}");
    }
}

fn is_part_called(Claim::Path { extent, .. }: &Claim, name: &Json) -> bool {
    matches!(extent, Extent::Part { key: Some(key), .. } if Some(key.as_str()) == name.as_str())
}

#[test]
fn each_keeps_to_what_is_expected_of_resources() {
    let mut all = Vec::new();
    for built_in in carried_out() {
        let name = built_in.manifest.type_name.as_str();
        let world = World::system();
        let subject = CheckedResource {
            manifest: &built_in.manifest,
            provider: &*built_in.provider,
            schema: Some(built_in.schema()),
        };
        let findings = check(subject, &world.context_for(name), &example(name), Depth::Set);
        let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
        // It is for what runs by every set.
        let runs_always = |id: &str| name.ends_with("/RunCommandOnSet") && id == "E0905";
        let errors = errors.filter(|finding| !runs_always(finding.code.id));
        all.extend(errors.map(|finding| format!("{name}: {}: {}", finding.code.id, finding.message)));
    }
    assert!(all.is_empty(), "{all:#?}");
}

#[test]
fn each_property_is_described() {
    for built_in in builtins() {
        let name = built_in.manifest.type_name.as_str();
        // The schema of dsc has no descriptions, and its schema is compared.
        if name == "Microsoft.DSC.Debug/Echo" {
            continue;
        }
        assert!(built_in.schema()["description"].is_string(), "{name}");
        for (property, schema) in built_in.schema()["properties"].as_object().unwrap() {
            assert!(schema["description"].is_string(), "{name}: the property '{property}' has no doc comment");
            let format = schema["format"].as_str().unwrap_or_default();
            assert!(!format.contains("int"), "{name}: '{property}' has the format '{format}', which is one of Rust");
        }
    }
}

/// What is accepted and not in the schema would be in no reference, completion or hint.
#[test]
fn each_has_the_properties_of_its_schema_and_no_others() {
    for built_in in carried_out() {
        let name = built_in.manifest.type_name.as_str();
        let world = World::system();
        let input = Plain::new(json!({ "no such property": 1 }));
        let failure = built_in.provider.validate(&world.context_for(name), &input).unwrap_err();
        let Some(Reason::Unknown { known, .. }) = failure.reason.as_deref() else {
            panic!("{name}: {failure:?}");
        };
        let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
        let described = built_in.schema()["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(known, described, "{name}: what is accepted, and what the schema has");
    }
}

/// Values of all kinds, among them those that constraints are about.
fn value() -> impl Strategy<Value = Json> {
    let texts = [
        "", "p", "a/b", "0644", "u=rwx", "line\n", "YQ==", "AAAA", "Linux", "BOF", "^a", "(", "~/x", "d/", "a\0", "/a",
        "vm.x",
    ];
    let texts = select(texts.map(Json::from).to_vec());
    let others = [
        json!(true),
        json!(false),
        json!(null),
        json!(0),
        json!(1),
        json!(-1),
        json!(64),
        json!(64.0),
        json!(1.5),
        json!(604_801),
        json!([]),
        json!(["p"]),
        json!(["a/b"]),
        json!([1]),
        json!([[]]),
        json!({}),
        json!({"A": "b"}),
        json!({"A": 1}),
        json!({"secureString": "x"}),
    ];
    prop_oneof![texts, select(others.to_vec())]
}

/// Properties for a schema: those that are required, some others, and now and then one that does not exist.
fn properties(schema: &Json) -> BoxedStrategy<Json> {
    let names: Vec<String> = schema["properties"].as_object().unwrap().keys().cloned().collect();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let member = |name: String| {
        // A timer and a job of cron without them are never accepted.
        let has = |name: &str| schema["properties"].get(name).is_some();
        let is_timer = has("onCalendar");
        let is_needed = is_timer && ["onCalendar", "command"].contains(&name.as_str())
            || has("schedule") && ["schedule", "user", "command"].contains(&name.as_str())
            || required.contains(&json!(name));
        let common = if is_needed { 0.95 } else { 0.15 };
        let known = match schema["properties"][&name]["enum"].as_array() {
            _ if name == "path" => prop_oneof![4 => select(vec![json!("p"), json!("/a")]), 1 => value()].boxed(),
            _ if name == "url" => prop_oneof![4 => Just(json!("file:///p")), 1 => value()].boxed(),
            Some(words) => prop_oneof![4 => select(words.clone()), 1 => value()].boxed(),
            None if name == "schedule" => prop_oneof![4 => Just(json!("@daily")), 1 => value()].boxed(),
            None if name == "onCalendar" => prop_oneof![4 => Just(json!("daily")), 1 => value()].boxed(),
            None if is_timer && name == "command" => prop_oneof![4 => Just(json!("/a")), 1 => value()].boxed(),
            None if name == "key" => prop_oneof![4 => Just(json!("AAAA")), 1 => value()].boxed(),
            None if name == "type" => prop_oneof![4 => Just(json!("ssh-rsa")), 1 => value()].boxed(),
            None => value().boxed(),
        };
        (Just(name), proptest::option::weighted(common, known))
    };
    let unknown = (Just("unknown".to_owned()), proptest::option::weighted(0.03, value()));
    let members: Vec<_> = names.into_iter().map(member).collect();
    (members, unknown)
        .prop_map(|(members, unknown)| {
            let stated = members.into_iter().chain([unknown]).filter_map(|(name, value)| Some((name, value?)));
            Json::Object(stated.collect::<Map<_, _>>())
        })
        .boxed()
}

/// The rules that no JSON Schema expresses, or not in a way that anybody would understand.
const BEYOND: &[&str] = &[
    "read-only",
    "required",
    "cannot be used together",
    "requires 'source' or 'entries'",
    "is not valid Base64",
    "begins with '~'",
    "ends with '/'",
    "NUL",
    "must be a path",
    "must be a name or a number",
    "is not a valid regular expression",
    "must be the URL of an HTTP proxy",
    "must be true, false, or a suffix",
    "must be an IPv4 or IPv6 address",
    "must not contain null",
    "must not be empty",
    "must be a schedule of cron",
    "must be letters, digits and '_'",
    "must be the name of a timer",
    "must be the directory that it is mounted at",
    "must be \"none\" for swap space",
    "must not contain '#' or",
    "for a job in /etc/cron.d",
    "must be the name of a user",
    "cannot be true while '_exist' is false",
    "must be a list of patterns",
    "must be a path relative to 'path'",
    "must be a URL that begins with",
    "must be at least 1",
    "line 1",
    "must be a systemd calendar event",
    "must begin with an absolute path",
    "must be a single line without spaces around it",
    "must be a single line without control characters",
    "has an unclosed quote",
    "must be what is between the braces of one table",
    "must not include files",
    "systemd would ignore a part",
    "cron cannot hold it",
];

#[test]
fn each_accepts_what_its_schema_allows() {
    let cases = u32::try_from(stead_testkit::times("STEAD_PROPERTIES", 2000)).unwrap_or(u32::MAX);
    for built_in in carried_out() {
        let (name, schema) =
            (built_in.manifest.type_name.clone(), Schema::compile(built_in.schema().clone()).ok().unwrap());
        let (world, mut accepted) = (World::system(), 0);
        let cx = world.context_for(name.as_str());
        let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
        // The same inputs each time: how many of them are accepted must not depend on luck.
        let inputs = proptest::test_runner::TestRng::deterministic_rng(config.rng_algorithm);
        let mut runner = proptest::test_runner::TestRunner::new_with_rng(config, inputs);
        let counted = std::cell::RefCell::new(&mut accepted);
        runner
            .run(&properties(built_in.schema()), |properties| {
                let allowed = schema.validate(&properties).is_empty();
                match built_in.provider.validate(&cx, &Plain::new(properties)) {
                    Ok(()) => {
                        prop_assert!(allowed, "{name} accepts what its schema does not allow");
                        **counted.borrow_mut() += 1;
                    }
                    Err(failure) if allowed => {
                        let message = failure.message;
                        prop_assert!(BEYOND.iter().any(|each| message.contains(each)), "{name} refuses: {message}");
                    }
                    Err(failure) => prop_assert_eq!(failure.kind, FailureKind::Invalid),
                }
                Ok(())
            })
            .unwrap();
        assert!(accepted > 0, "{name}: no input was accepted, so the test says little");
    }
}

/// Properties whose text is not a part of a file or name of the system: it is content as a whole, the value of a format that
/// escapes it, or handed to a program or to nobody.
const NOT_OF_A_FORMAT: &[&str] = &[
    "Microsoft.DSC.Debug/Echo output",
    "Microsoft.DSC.Transitional/RunCommandOnSet arguments",
    "Microsoft.DSC.Transitional/RunCommandOnSet executable",
    "Microsoft/OSInfo",
    "Microsoft/Process",
    "Stead/Archive",
    "Stead/Command",
    "Stead/Directory",
    "Stead/Download",
    "Stead/File",
    "Stead/Git",
    "Stead/Json pointer",
    "Stead/Json value",
    "Stead/Package excluded",
    "Stead/Service reloadedAfter",
    "Stead/Service restartedAfter",
    "Stead/Symlink",
    "Stead/Template",
    "Stead/Toml pointer",
    "Stead/Toml value",
    "Stead/Yaml pointer",
    "Stead/Yaml value",
];

/// A text with a control character, wherever a schema allows a text.
fn with_control(schema: &Json, text: &str) -> Vec<Json> {
    let kinds: Vec<&Json> = schema["oneOf"].as_array().map_or_else(|| vec![schema], |kinds| kinds.iter().collect());
    let of = |kind: &&Json| match kind["type"].as_str() {
        Some("string") if kind["enum"].is_null() => vec![json!(text)],
        Some("array") => vec![
            json!([text]),
            json!([{"users": [text], "commands": ["ALL"]}]),
            json!([{"users": ["u"], "commands": [text]}]),
        ],
        Some("object") => vec![json!({"A": text})],
        _ => Vec::new(),
    };
    kinds.iter().flat_map(of).collect()
}

#[test]
fn no_control_character_reaches_a_file_of_a_format() {
    for built_in in carried_out() {
        let name = built_in.manifest.type_name.as_str();
        let (world, provider) = (World::system(), &built_in.provider);
        for (property, schema) in built_in.schema()["properties"].as_object().unwrap() {
            // Paths are what the system takes for one.
            let is_other = NOT_OF_A_FORMAT.contains(&name) || NOT_OF_A_FORMAT.contains(&&*format!("{name} {property}"));
            let is_pattern = ["path", "match", "after", "before"].contains(&property.as_str());
            if is_other || is_pattern || schema["readOnly"] == json!(true) {
                continue;
            }
            for control in ['\0', '\u{1}', '\u{1b}', '\u{7f}', '\u{85}'] {
                for value in with_control(schema, &format!("/a{control}b")) {
                    let mut stated = example(name);
                    stated[property] = value;
                    let failure = provider.validate(&world.context_for(name), &Plain::new(stated)).err();
                    let about = failure.and_then(|failure| failure.property).unwrap_or_default();
                    assert!(
                        about.starts_with(&format!("/{property}")),
                        "{name}: '{property}' accepts {control:?}, or says it of '{about}'"
                    );
                }
            }
        }
    }
}

#[test]
fn no_message_quotes_a_value() {
    for built_in in carried_out() {
        let world = World::system();
        for property in built_in.schema()["properties"].as_object().unwrap().keys() {
            for value in [json!("s3cret\n/\0"), json!(["s3cret/"]), json!({"s3cret": 1}), json!([{"s3cret": "s3cret"}])]
            {
                let mut stated = example(built_in.manifest.type_name.as_str());
                stated[property] = value;
                let cx = world.context_for(built_in.manifest.type_name.as_str());
                let failure = built_in.provider.validate(&cx, &Plain::new(stated)).err();
                let message = failure.map(|failure| failure.message).unwrap_or_default();
                assert!(!message.contains("s3cret"), "{}: {property}: {message}", built_in.manifest.type_name);
            }
        }
    }
}

#[test]
fn what_is_required_is_said_where_nothing_is_stated() {
    for (name, property) in
        [("Stead/File", "path"), ("Stead/Directory", "path"), ("Microsoft.DSC.Debug/Echo", "output")]
    {
        let failure = support::provider(name).get(&World::system().context(), &Plain::default()).err().unwrap();
        assert_eq!(failure.message, format!("'{property}' is required"));
    }
}

#[test]
fn what_checks_content_is_announced_where_content_is_written() {
    for name in ["File", "Template", "Line", "Block", "Ini", "Json", "Toml", "Yaml"].map(|name| format!("Stead/{name}"))
    {
        let mut stated = example(&name);
        stated["validate"] = json!("/no-such-program %s");
        let (world, input) = (World::system(), Plain::new(stated));
        let cx = world.context_for(&name);
        let reply = support::provider(&name).set(&cx, &input, Execution::WhatIf).unwrap();
        let announced = "have '/no-such-program f' check the content first";
        assert!(reply.what_if.iter().any(|words| words == announced), "{name}: {:?}", reply.what_if);
        let missing = reply.presumed.map(|presumed| presumed.failure.message).unwrap_or_default();
        assert!(missing.contains("/no-such-program"), "{name}: {missing}");
        // Without the command, so that it is in the desired state.
        support::provider(&name).set(&cx, &Plain::new(example(&name)), Execution::Actual).unwrap();
        let reply = support::provider(&name).set(&cx, &input, Execution::WhatIf).unwrap();
        assert_eq!((reply.what_if.len(), reply.presumed.is_none()), (0, true), "{name}");
    }
}

#[test]
fn parts_of_parts_contradict_each_other() {
    let claims = |pointer: &str| {
        support::provider("Stead/Json").claims(&Plain::new(json!({"path": "/f", "pointer": pointer}))).unwrap()
    };
    let found = |one: &str, other: &str| {
        let (one, other) = (claims(one), claims(other));
        let found = conflicts(&[(NodeId(0), &one), (NodeId(1), &other)]);
        found.into_iter().map(|found| (found.first, found.second, found.about)).collect::<Vec<_>>()
    };
    let expected = [(NodeId(0), NodeId(1), Contradiction::SamePart)];
    for (one, other) in [("/o", "/o/a"), ("/o/a", "/o"), ("/o", "/o/a/b/0"), ("/o/a/b", "/o")] {
        assert_eq!(found(one, other), expected, "{one} {other}");
    }
    for (one, other) in [("/o", "/ob"), ("/o/a", "/o/b"), ("/o/a", "/p/a"), ("/o~1a", "/o")] {
        assert_eq!(found(one, other), [], "{one} {other}");
    }
}

#[test]
fn instances_with_one_keyword_of_sshd_contradict_each_other() {
    let claims = |stated: Json| support::provider("Stead/SshdConfig").claims(&Plain::new(stated)).unwrap();
    let own = claims(json!({"PermitRootLogin": false, "challengeResponseAuthentication": false}));
    let found = |other: Json| {
        let other = claims(other);
        conflicts(&[(NodeId(0), &own), (NodeId(1), &other)]).iter().map(|found| found.about).collect::<Vec<_>>()
    };
    assert_eq!(found(json!({"permitrootlogin": true})), [Contradiction::SamePart]);
    // Two names of one keyword.
    assert_eq!(found(json!({"KbdInteractiveAuthentication": true})), [Contradiction::SamePart]);
    assert_eq!(found(json!({"_metadata": {"filepath": "/other"}, "PermitRootLogin": true})), []);
    assert_eq!(found(json!({"X11Forwarding": true})), []);
    assert_ne!(found(json!({"X11Forwarding": true, "_purge": true})), []);
}

/// Two instances that state one part of a file differently would undo each other's work without an end.
#[test]
fn two_values_for_one_part_contradict_each_other() {
    let pairs = [
        ("Stead/Ini", json!({"path": "/f", "section": "s", "key": "k"}), "key"),
        ("Stead/Json", json!({"path": "/f", "pointer": "/a"}), "pointer"),
        ("Stead/Toml", json!({"path": "/f", "pointer": "/a"}), "pointer"),
        ("Stead/Yaml", json!({"path": "/f", "pointer": "/a"}), "pointer"),
        ("Stead/Block", json!({"path": "/f", "name": "n", "content": "a"}), "name"),
        ("Stead/Sysctl", json!({"name": "vm.swappiness"}), "name"),
        ("Stead/Limits", json!({"domain": "u", "type": "soft", "item": "nofile"}), "domain"),
        ("Stead/SshKey", json!({"user": "root", "key": "AAAA"}), "key"),
        ("Stead/Cron", json!({"name": "n", "table": "user", "user": "u"}), "name"),
    ];
    for (type_name, stated, key) in pairs {
        let claims = |name: Option<&str>| {
            let mut stated = stated.clone();
            if let Some(name) = name {
                stated[key] = json!(name);
            }
            support::provider(type_name).claims(&Plain::new(stated)).unwrap()
        };
        let found = |other: &Claims| {
            let all = [(NodeId(0), &claims(None)), (NodeId(1), other)];
            conflicts(&all).iter().map(|conflict| conflict.about).collect::<Vec<_>>()
        };
        assert_eq!(found(&claims(None)), [Contradiction::SamePart], "{type_name}");
        assert_eq!(found(&claims(Some("other"))), [], "{type_name}");
    }
}
