//! A repository with much in it, and little memory for whoever follows it: the limit is that of this whole program.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use stead_agent::SourceAddress;
use stead_release::SourceFile;
use stead_system::Cancel;

/// How much memory this program has, and each that it calls: a part of the large file.
const MEMORY: u64 = 96 << 20;
const LARGE: usize = 256 << 20;

/// Makes a commit with so many files, of which one is large.
fn fill(repository: &Path, files: usize) {
    let made = Command::new("git").args(["init", "--quiet", "--bare"]).arg(repository).status();
    assert!(made.unwrap().success());
    let mut import = Command::new("git");
    import.args(["-c", "core.bigFileThreshold=1m", "fast-import", "--quiet"]).current_dir(repository);
    let mut import = import.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = std::io::BufWriter::new(import.stdin.take().unwrap());
    write!(input, "commit refs/heads/main\ncommitter ann <ann@example.org> 1 +0000\ndata 0\n").unwrap();
    write!(input, "M 644 inline root\ndata 8\nthe root\nM 644 inline large\ndata {LARGE}\n").unwrap();
    for _ in 0..LARGE >> 20 {
        input.write_all(&vec![0; 1 << 20]).unwrap();
    }
    for number in 0..files {
        let content = format!("{number}\n");
        write!(input, "\nM 644 inline many/{}/{number}\ndata {}\n{content}", number % 100, content.len()).unwrap();
    }
    drop(input);
    assert!(import.wait().unwrap().success());
}

#[test]
fn a_repository_with_many_files_and_a_large_one_takes_little_memory() {
    let files = stead_testkit::times("STEAD_REPOSITORY_FILES", 2_000);
    let place = tempfile::tempdir().unwrap();
    let (repository, kept) = (place.path().join("repository"), place.path().join("kept"));
    fill(&repository, files);
    let limit = format!("--data={MEMORY}");
    let limited = Command::new("prlimit").args(["--pid", &std::process::id().to_string(), &limit]).status();
    assert!(limited.unwrap().success());
    let address = SourceAddress::try_from(format!("git+file://{}#main", repository.display())).unwrap();
    let mut reader = address.reader(&kept, &Cancel::default()).unwrap();
    let began = Instant::now();
    assert_eq!(reader.begin(), Ok(()));
    let first = began.elapsed();
    assert_eq!(reader.file(&SourceFile::Root), Ok(Some(b"the root".to_vec())));
    assert_eq!(reader.file(&SourceFile::Roster), Ok(None));
    let again = Instant::now();
    assert_eq!(reader.begin(), Ok(()));
    println!("{files} files and {LARGE} bytes: fetched in {first:?}, looked at again in {:?}", again.elapsed());
    // All of it is one pack: of each file by itself nobody would keep count.
    let objects = std::fs::read_dir(kept.join("git/objects")).unwrap();
    let mut objects: Vec<_> = objects.map(|each| each.unwrap().file_name().into_string().unwrap()).collect();
    objects.sort();
    assert_eq!(objects, ["info", "pack"]);
}
