//! Archives from lists of entries, so that cases can say what is in them.

use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value as Json;
use tar::{Builder, EntryType, Header};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// An archive of that name from entries such as `["file", "a/b", "0644", "text"]`, `["dir", "a", "0755"]`,
/// `["link", "l", "target"]`, `["hard", "h", "a/b"]`, `["device", "d"]` and `["zeros", "z", "0644", 1000]`.
pub(crate) fn build(name: &str, entries: &str) -> Vec<u8> {
    let entries: Vec<Vec<Json>> = serde_json::from_str(entries).expect("a list of entries");
    let ending = name.rsplit('.').next();
    if ending == Some("zip") {
        return zip(&entries);
    }
    let tar = tar(&entries);
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

fn content(entry: &[Json]) -> Vec<u8> {
    match entry.get(3) {
        Some(Json::Number(zeros)) => vec![0; usize::try_from(zeros.as_u64().unwrap()).unwrap()],
        _ => text(entry, 3).into(),
    }
}

fn tar(entries: &[Vec<Json>]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for entry in entries {
        let mut header = Header::new_gnu();
        // Bytes as they are: the library refuses the names that tests are about.
        let old = header.as_old_mut();
        let name = text(entry, 1).as_bytes();
        old.name[..name.len()].copy_from_slice(name);
        let kind = match text(entry, 0) {
            "file" | "zeros" => EntryType::Regular,
            "dir" => EntryType::Directory,
            "link" => EntryType::Symlink,
            "hard" => EntryType::Link,
            "device" => EntryType::Char,
            other => panic!("what is a '{other}'?"),
        };
        if matches!(kind, EntryType::Symlink | EntryType::Link) {
            let target = text(entry, 2).as_bytes();
            old.linkname[..target.len()].copy_from_slice(target);
        }
        let content = if kind == EntryType::Regular { content(entry) } else { Vec::new() };
        header.set_entry_type(kind);
        header.set_mode(mode(entry));
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, content.as_slice()).unwrap();
    }
    builder.into_inner().unwrap()
}

fn zip(entries: &[Vec<Json>]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for entry in entries {
        let (name, options) = (text(entry, 1), SimpleFileOptions::default().unix_permissions(mode(entry)));
        match text(entry, 0) {
            "dir" => writer.add_directory(name, options).unwrap(),
            "link" => writer.add_symlink(name, text(entry, 2), options).unwrap(),
            _ => {
                writer.start_file(name, options).unwrap();
                writer.write_all(&content(entry)).unwrap();
            }
        }
    }
    writer.finish().unwrap().into_inner()
}
