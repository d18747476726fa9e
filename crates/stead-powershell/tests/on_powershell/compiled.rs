//! The worker that PowerShell compiles, and where it is kept.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use stead_core::digest::sha256;
use stead_powershell::worker::KeptWorker;
use stead_system::fs::User;

use super::*;

/// A pool of which the worker is kept in a folder, and a call by it.
fn answers(folder: &Path, module: &Path) -> Result<(), Failed> {
    let executable = stead_testkit::powershell("answers").unwrap();
    let settings = Settings::new(executable, Environment::of_this_process(&[]), 1);
    let compiled = Some(KeptWorker { folder: folder.to_owned(), user: User::current() });
    let (cancel, deadline) = (Cancel::default(), Deadline::after(Duration::from_mins(1)));
    let limits = Limits { deadline, output: 1 << 20, cancel: &cancel, inherited: &[], to_come: 0 };
    let call = Call {
        kind: DefinitionKind::Class,
        module: Module { path: module, stamp: "" },
        resource: "Kept",
        method: Method::Get,
        properties: &[],
        records: Records::None,
        progress: None,
        directory: Path::new("/"),
        root: Path::new("/"),
    };
    Pool::new(Settings { compiled, ..settings }).call(&call, &limits, &mut |_| {}).map(drop)
}

/// What is kept is run as it is, so that it is compiled anew where anybody else could have changed it, where it is not what was
/// written, or belongs to another stead or another PowerShell.
#[test]
fn a_worker_is_compiled_once_and_no_other_than_that_is_run() {
    let Some(bench) = Bench::new("a_worker_is_compiled_once_and_no_other_than_that_is_run") else { return };
    let module = bench.class("Kept", "", "");
    let kept = bench.folder.path().join("kept");
    answers(&kept, &module).unwrap();
    let file = kept.join("powershell-worker");
    let (first, of) = (fs::read(&file).unwrap(), fs::metadata(&file).unwrap());
    assert_eq!(of.permissions().mode() & 0o777, 0o600);
    answers(&kept, &module).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), of.modified().unwrap(), "it is not written again");

    // The header, and behind it the sources and the version that it was compiled of and by.
    let lines: Vec<&[u8]> = first.splitn(3, |byte| *byte == b'\n').collect();
    let [header, about, compiled] = lines[..] else { panic!("it has two lines in front") };
    let begin = String::from_utf8_lossy(header).rsplit_once(' ').unwrap().0.to_owned();
    let about = String::from_utf8_lossy(about).into_owned();
    let file_of = |about: &str, compiled: &[u8]| {
        let body = [about.as_bytes(), b"\n", compiled].concat();
        [format!("{begin} {}\n", sha256(&body)).as_bytes(), &body].concat()
    };
    assert_eq!(file_of(&about, compiled), first);
    let broken = b"no assembly";
    let sources = about.split(' ').next().unwrap();
    let others = [
        [&first[..first.len() - 1], b"?"].concat(),
        file_of(&about.replace(|digit: char| digit.is_ascii_digit(), "0"), broken),
        file_of(&format!("{sources} 7.2.0"), broken),
    ];
    for (index, other) in others.into_iter().enumerate() {
        fs::write(&file, other).unwrap();
        answers(&kept, &module).unwrap_or_else(|failed| panic!("{index}: {}", failed.explain()));
        assert!(fs::read(&file).unwrap().starts_with(format!("{begin} ").as_bytes()), "{index}");
    }
    // What this one compiled is run as it is, and compiled again, once, where it cannot be loaded.
    fs::write(&file, file_of(&about, broken)).unwrap();
    answers(&kept, &module).unwrap();
    let (again, of) = (fs::read(&file).unwrap(), fs::metadata(&file).unwrap());
    assert!(again.starts_with(begin.as_bytes()) && again.len() > compiled.len());
    answers(&kept, &module).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), of.modified().unwrap(), "it is not written again");
    fs::write(&file, file_of(&about, broken)).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o620)).unwrap();
    answers(&kept, &module).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}
