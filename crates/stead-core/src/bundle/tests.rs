use super::*;

fn file(text: &str) -> Entry {
    Entry::File { mode: 0o644, content: Arc::from(text.as_bytes()) }
}

fn bundle() -> Bundle {
    let entries = [
        ("files".to_owned(), Entry::Folder { mode: 0o755 }),
        ("files/a.j2".to_owned(), file("A {{ n }}")),
        ("files/b.j2".to_owned(), file("A {{ n }}")),
        ("part.yaml".to_owned(), file("resources: []\n")),
    ];
    let document = ("site.yaml".to_owned(), Arc::from("resources: []\n"));
    Bundle::new(DocumentIdentity::of_name("web"), document, BTreeMap::from(entries)).unwrap()
}

/// A bundle whose manifest is `text`, validly named, with these contents behind it.
fn named(text: &str, contents: &[u8]) -> Vec<u8> {
    let header = format!("{FORM}{} {}\n", name_of(text.as_bytes()), text.len());
    [header.as_bytes(), text.as_bytes(), contents].concat()
}

#[test]
fn what_is_written_is_read_and_each_content_is_there_once() {
    let (bundle, bytes) = (bundle(), bundle().encode());
    assert_eq!(Bundle::decode(&bytes, Reach::Folder, Some(bundle.name())), Ok(bundle.clone()));
    assert_eq!(bytes.windows(9).filter(|window| window == b"A {{ n }}").count(), 1);
    assert_eq!(bytes.windows(13).filter(|window| window == b"resources: []").count(), 1);
    assert_eq!(
        (bundle.identity().and_then(DocumentIdentity::name), bundle.holds("files"), bundle.holds("fil")),
        (Some("web"), true, false)
    );
}

#[test]
fn no_byte_can_be_changed_added_or_taken_away() {
    let bytes = bundle().encode();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            assert!(Bundle::decode(&changed, Reach::Machine, None).is_err(), "bit {bit} of byte {at}");
        }
        assert!(Bundle::decode(&bytes[..at], Reach::Machine, None).is_err(), "{at} bytes");
        let longer = [&bytes[..at], b"0", &bytes[at..]].concat();
        assert!(Bundle::decode(&longer, Reach::Machine, None).is_err(), "one more at {at}");
    }
    assert_eq!(Bundle::decode(&[&*bytes, b"x"].concat(), Reach::Machine, None), Err(BundleError::Excess(1)));
}

#[test]
fn another_bundle_than_the_one_that_is_wanted_is_refused() {
    let other = Bundle::new(None, ("site.yaml".to_owned(), Arc::from("")), BTreeMap::new()).unwrap();
    let refused = Bundle::decode(&other.encode(), Reach::Folder, Some(bundle().name()));
    assert!(matches!(refused, Err(BundleError::Other { .. })), "{refused:?}");
}

#[test]
fn a_manifest_that_names_itself_rightly_is_checked_all_the_same() {
    let (empty, text) = (sha256(""), sha256("x"));
    let document = format!("document 0 {empty} site.yaml\n");
    let of = |lines: &str| Bundle::decode(&named(&format!("{document}{lines}"), b"x"), Reach::Folder, None);
    assert!(of(&format!("file 644 1 {text} a\n")).is_ok());
    for lines in [
        format!("file 644 1 {text} ../a\n"),
        format!("file 644 1 {text} a/../../b\n"),
        format!("file 644 1 {text} /etc/shadow\n"),
        format!("file 644 1 {text} \n"),
        format!("file 644 1 {text} .\n"),
        format!("file 644 1 {text} a//b\n"),
        format!("file 644 1 {text} a/\n"),
        format!("file 644 1 {text} a\tb\n"),
        format!("file 644 1 {text} a\u{9b}b\n"),
        format!("file 644 1 {text} {}\n", "n".repeat(256)),
        format!("file 644 1 {text} {}n\n", "n/".repeat(2000)),
        // Twice, in another order, and below a file.
        format!("file 644 1 {text} a\nfile 644 1 {text} a\n"),
        format!("file 644 1 {text} b\nfile 644 1 {text} a\n"),
        format!("file 644 1 {text} a\nfile 644 1 {text} a/b\n"),
        format!("file 644 1 {text} a\nfile 644 1 {text} a.b\nfile 644 1 {text} a/b\n"),
        // Another length than the content has, for one digest; no length, and one of more than there is.
        format!("file 644 1 {text} a\nfile 644 0 {text} b\n"),
        format!("file 644 01 {text} a\n"),
        format!("file 644 +1 {text} a\n"),
        format!("file 644 18446744073709551615 {text} a\n"),
        format!("file 644 18446744073709551615 {text} a\nfile 644 18446744073709551615 {empty} b\n"),
        format!("file 644 67108865 {text} a\n"),
        // Digests that are none, and of something else.
        format!("file 644 1 {} a\n", text.to_uppercase()),
        format!("file 644 1 {} a\n", sha256("y")),
        format!("file 644 1 {} a\n", &text[1..]),
        // Modes and kinds.
        format!("file 4755 1 {text} a\n"),
        format!("file 888 1 {text} a\n"),
        format!("link 777 1 {text} a\n"),
        format!("file 644 1 {text} a\r\n"),
        format!("identity x\nfile 644 1 {text} a\n"),
        format!("{document}file 644 1 {text} a\n"),
        "\n".to_owned(),
    ] {
        assert!(of(&lines).is_err(), "{lines}");
    }
    // One content counts for each of its files: they would be on the disk all the same.
    let large = vec![0; 4 << 20];
    let repeated = |count: usize| {
        let files = (0..count).map(|at| format!("file 644 {} {} {at:02}\n", large.len(), sha256(&large)));
        let mut contents = [(sha256("x"), &b"x"[..]), (sha256(&large), &large)];
        contents.sort();
        let document = format!("document 1 {text} site.yaml\n");
        let manifest = document + &files.collect::<String>();
        Bundle::decode(&named(&manifest, &contents.map(|(_, content)| content).concat()), Reach::Folder, None)
    };
    assert!(repeated(15).is_ok());
    assert_eq!(repeated(16), Err(BundleError::TooLarge("64 MiB".to_owned())));
    let many: Vec<String> = (0..=MOST_ENTRIES).map(|at| format!("folder 755 {at:06}\n")).collect();
    assert!(matches!(of(&many.concat()), Err(BundleError::TooLarge(_))));
    // A bundle for one machine has absolute paths, and only its own agent reads it.
    let machine = named(&format!("{document}file 644 1 {text} /etc/motd\n"), b"x");
    assert!(Bundle::decode(&machine, Reach::Folder, None).is_err());
    assert_eq!(Bundle::decode(&machine, Reach::Machine, None).map(|bundle| bundle.reach()), Ok(Reach::Machine));
}

#[test]
fn a_path_has_one_form_and_does_not_lead_out_of_the_folder() {
    for (folder, written, meant) in [
        ("", "a", Some("a")),
        ("", "./a//b/", Some("a/b")),
        ("", "a/../b", Some("b")),
        ("", "../a", None),
        ("", "a/../../b", None),
        ("roles/web", "a", Some("roles/web/a")),
        ("roles/web", "../a", Some("roles/a")),
        ("roles/web", "../../../a", None),
        ("roles/web", "/a/../../b", Some("/b")),
        ("/srv/roles", "../a", Some("/srv/a")),
        ("", ".", Some("")),
    ] {
        assert_eq!(path::normal(folder, written).as_deref(), meant, "{folder} {written}");
    }
    assert_eq!(["a/b/c", "a", "/a"].map(path::folder_of), ["a/b", "", "/"]);
    assert_eq!(path::within("/", "a"), "/a");
}

/// Bundles of random paths are decoded again, and encoding them once more gives the same bytes.
#[test]
fn every_bundle_has_one_text() {
    let mut random = 0x2545_f491_usize;
    let mut next = |most: usize| {
        random = random.wrapping_mul(1_103_515_245).wrapping_add(12_345) & 0x7fff_ffff;
        (random >> 8) % most
    };
    let names = ["a", "b", "c.j2", "ä", "a b", "..", ".", "", "x\ny", "/"];
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..3000 {
        let path = |next: &mut dyn FnMut(usize) -> usize| {
            let parts: Vec<&str> = (0..=next(2)).map(|_| names[next(names.len())]).collect();
            parts.join("/")
        };
        let entries = (0..next(4)).map(|_| {
            (path(&mut next), if next(4) == 0 { Entry::Folder { mode: 0o750 } } else { file(names[next(6)]) })
        });
        match Bundle::new(None, ("d".to_owned(), Arc::from("text")), entries.collect::<Vec<_>>().into_iter().collect())
        {
            Ok(bundle) => {
                accepted += 1;
                let bytes = bundle.encode();
                assert_eq!(
                    Bundle::decode(&bytes, Reach::Machine, Some(bundle.name())).map(|read| read.encode()),
                    Ok(bytes)
                );
            }
            Err(_) => refused += 1,
        }
    }
    assert!(accepted > 200 && refused > 200, "{accepted} {refused}");
}
