//! Archives from lists of entries, so that cases can say what is in them.

use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value as Json;
use tar::{Builder, EntryType, Header};
use zip::write::SimpleFileOptions;
use zip::{System, ZipWriter};

/// An archive of that name from entries such as `["file", "a/b", "0644", "text"]`, `["dir", "a", "0755"]`,
/// `["link", "l", "target"]`, `["hard", "h", "a/b"]`, `["device", "d"]` and `["zeros", "z", "0644", 1000]`.
///
/// In a tar archive also `["sparse", "s", "0644", 1000]`, of which nothing is stored; `["long", "", "", 300]`, a name for
/// the next entry in the form of GNU; `["pax", "key=value", "", 100]`, an attribute of the next one with so many more bytes;
/// and `["deep", "", "", 10]`, so many files that are 250 directories deep. In a zip archive `["dos", "a\\b"]`, a file or
/// directory that was added on Windows. `["cut", "", "", 9]` takes bytes from the end of the archive, `["flip", "", "", 9]`
/// changes one there.
pub(crate) fn build(name: &str, entries: &str) -> Vec<u8> {
    let entries: Vec<Vec<Json>> = serde_json::from_str(entries).expect("a list of entries");
    let is_damage = |entry: &Vec<Json>| matches!(text(entry, 0), "cut" | "flip");
    let (damage, entries): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_damage);
    let mut archive = whole(name, &entries);
    for each in damage {
        let at = archive.len() - number(&each);
        if text(&each, 0) == "cut" { archive.truncate(at) } else { archive[at] ^= 1 }
    }
    archive
}

fn whole(name: &str, entries: &[Vec<Json>]) -> Vec<u8> {
    let ending = name.rsplit('.').next();
    if ending == Some("zip") {
        return zip(entries);
    }
    let tar = tar(entries);
    if ending != Some("gz") {
        return tar;
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&tar).unwrap();
    encoder.finish().unwrap()
}

fn text(entry: &[Json], at: usize) -> &str {
    entry.get(at).and_then(Json::as_str).unwrap_or_default()
}

fn mode(entry: &[Json]) -> u32 {
    u32::from_str_radix(text(entry, 2), 8).unwrap_or(0o644)
}

fn number(entry: &[Json]) -> usize {
    usize::try_from(entry.get(3).and_then(Json::as_u64).unwrap_or_default()).unwrap()
}

fn content(entry: &[Json]) -> Vec<u8> {
    match text(entry, 0) {
        "file" => text(entry, 3).into(),
        "zeros" => vec![0; number(entry)],
        "long" => vec![b'a'; number(entry)],
        "pax" => {
            let record = format!(" {}{}\n", text(entry, 1), "x".repeat(number(entry)));
            let digits = (1..9).find(|digits| (record.len() + digits).to_string().len() == *digits).unwrap();
            format!("{}{record}", record.len() + digits).into()
        }
        _ => Vec::new(),
    }
}

fn tar(entries: &[Vec<Json>]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for entry in entries {
        let mut header = Header::new_gnu();
        let kind = match text(entry, 0) {
            "file" | "zeros" => EntryType::Regular,
            "dir" => EntryType::Directory,
            "link" => EntryType::Symlink,
            "hard" => EntryType::Link,
            "device" => EntryType::Char,
            "sparse" => EntryType::GNUSparse,
            "long" => EntryType::GNULongName,
            "pax" => EntryType::XHeader,
            "deep" => {
                deep(&mut builder, number(entry));
                continue;
            }
            other => panic!("what is a '{other}'?"),
        };
        // Bytes as they are: the library refuses the names that tests are about.
        let old = header.as_old_mut();
        let name = if kind == EntryType::XHeader { "attributes" } else { text(entry, 1) }.as_bytes();
        old.name[..name.len()].copy_from_slice(name);
        if matches!(kind, EntryType::Symlink | EntryType::Link) {
            let target = text(entry, 2).as_bytes();
            old.linkname[..target.len()].copy_from_slice(target);
        }
        if kind == EntryType::GNUSparse {
            let gnu = header.as_gnu_mut().unwrap();
            gnu.sparse[0].set_offset(number(entry) as u64);
            gnu.sparse[0].set_length(0);
            gnu.set_real_size(number(entry) as u64);
        }
        let content = content(entry);
        header.set_entry_type(kind);
        header.set_mode(mode(entry));
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, content.as_slice()).unwrap();
    }
    builder.into_inner().unwrap()
}

fn deep(builder: &mut Builder<Vec<u8>>, files: usize) {
    for file in 0..files {
        let mut header = Header::new_gnu();
        header.set_size(0);
        header.set_mode(0o644);
        builder.append_data(&mut header, format!("{file}/{}f", "d/".repeat(249)), std::io::empty()).unwrap();
    }
}

fn zip(entries: &[Vec<Json>]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for entry in entries {
        let (name, options) = (text(entry, 1), SimpleFileOptions::default().unix_permissions(mode(entry)));
        match text(entry, 0) {
            "dir" => writer.add_directory(name, options).unwrap(),
            "dos" => writer.start_file(name, SimpleFileOptions::default().system(System::Dos)).unwrap(),
            "link" => writer.add_symlink(name, text(entry, 2), options).unwrap(),
            _ => {
                writer.start_file(name, options).unwrap();
                writer.write_all(&content(entry)).unwrap();
            }
        }
    }
    writer.finish().unwrap().into_inner()
}
