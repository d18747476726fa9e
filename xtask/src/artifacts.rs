//! The files of a release: an archive and packages for each processor, the list of what is in them, and checksums.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::extension::vsix;
use crate::notices::bill_of_materials;
use crate::package::{PROGRAMS, Package, Printed, STEAD, deb, failed, folder, output, release_build, rpm, tar, write};
use crate::program::Program;
use crate::repository::{Repository, root};

const USAGE: &str = "usage: cargo xtask package FORMAT [--program NAME] [--binary FILE]… [--out FOLDER]

  all     archives and packages with static programs for x86_64 and aarch64, the extension, a bill of materials, checksums
  deb     a package for Debian and its derivatives; needs dpkg-dev
  rpm     a package for Fedora and its relatives; needs rpmbuild
  tar     an archive to unpack below /usr/local, without the unit of the agent
  vsix    the extension for VS Code; needs npm, and fetches packages of it
  folder  the files of an installation below FOLDER

  --program NAME stead, or the controller stead-fleet, in a package of its own: deb, rpm, tar or folder [default: stead]
  --binary FILE  the program, for 'all' several [default: what cargo build --release builds]
  --out FOLDER   where the result is placed [default: target/package]";

/// The targets of a release. Programs for them need nothing of the machine that they run on.
const TARGETS: [&str; 2] = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"];

/// Makes a package, or all of them. A line each: where it is, or why it is not there.
pub(crate) fn run(repository: &Repository, words: &[String]) -> Result<String, String> {
    let (mut format, mut binaries, mut out) = (None, Vec::new(), root().join("target/package"));
    let mut name = STEAD;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--binary" => binaries.push(Program::read(PathBuf::from(words.next().ok_or(USAGE)?))?),
            "--program" => {
                let stated = words.next();
                name = PROGRAMS.into_iter().find(|name| stated.is_some_and(|stated| stated == name)).ok_or(USAGE)?;
            }
            "--out" => out = PathBuf::from(words.next().ok_or(USAGE)?),
            word if format.is_none() && !word.starts_with('-') => format = Some(word),
            _ => return Err(USAGE.to_owned()),
        }
    }
    let format = format.ok_or(USAGE)?;
    if name != STEAD && matches!(format, "all" | "vsix") {
        return Err(format!("'{format}' is made of '{STEAD}' alone: remove '--program {name}'"));
    }
    fs::create_dir_all(&out).map_err(failed(&out))?;
    let out = fs::canonicalize(&out).map_err(failed(&out))?;
    let make = match format {
        "all" => return all(repository, binaries, &out),
        "vsix" => return Ok(format!("{}\n", vsix(&out)?.display())),
        "deb" => deb,
        "rpm" => rpm,
        "tar" => tar,
        "folder" => folder,
        _ => return Err(USAGE.to_owned()),
    };
    let program = binaries.pop().map_or_else(|| Program::read(release_build(name)?), Ok)?;
    let printed = if name == STEAD { Printed::by(&program.path)? } else { Printed::default() };
    let path = make(&Package::of(name, repository, program, printed)?, &out)?;
    Ok(format!("{}\n", path.display()))
}

/// Makes everything for the programs, or for those that can be built here. A line each: where it is, or why it is not there.
pub(crate) fn all(repository: &Repository, built: Vec<Program>, out: &Path) -> Result<String, String> {
    let mut lines = Vec::new();
    let mut programs = built;
    if programs.is_empty() {
        for target in TARGETS {
            match build(target) {
                Ok(path) => programs.push(Program::read(path)?),
                Err(reason) => lines.push(format!("skipped {target}: {reason}")),
            }
        }
    }
    let Some(own) = programs.iter().find(|program| program.runs_here()) else {
        return Err(format!("no program for this processor\n{}", lines.join("\n")));
    };
    let printed = Printed::by(&own.path)?;
    let extension = vsix(out).inspect_err(|reason| lines.push(format!("skipped vsix: {reason}"))).ok();
    let (made, skipped) = packed(repository, &programs, &printed, extension.into_iter().collect(), out)?;
    let made = made.iter().map(|path| path.display().to_string());
    Ok(made.chain(lines).chain(skipped).map(|line| line + "\n").collect())
}

/// Makes everything for the programs, beside what is made already: where it is, and why something is not there.
fn packed(
    repository: &Repository,
    programs: &[Program],
    printed: &Printed,
    mut made: Vec<PathBuf>,
    out: &Path,
) -> Result<(Vec<PathBuf>, Vec<String>), String> {
    let mut skipped = Vec::new();
    for program in programs {
        let package = Package::new(repository, program.clone(), printed.clone())?;
        made.push(tar(&package, out)?);
        for (name, tool, make) in
            [("deb", "dpkg-deb", deb as fn(&Package, &Path) -> Result<PathBuf, String>), ("rpm", "rpmbuild", rpm)]
        {
            match Command::new(tool).arg("--version").output() {
                Ok(_) => made.push(make(&package, out)?),
                Err(_) => skipped.push(format!("skipped {name} for {}: there is no {tool}", program.processor)),
            }
        }
    }
    let bill = out.join(format!("stead-{}.cdx.json", env!("CARGO_PKG_VERSION")));
    write(&bill, &format!("{:#}\n", bill_of_materials(repository, STEAD)?))?;
    made.push(bill);
    let names = made.iter().filter_map(|path| path.file_name());
    let sums = output(Command::new("sha256sum").args(names).current_dir(out))?;
    write(&out.join("SHA256SUMS"), &sums)?;
    made.push(out.join("SHA256SUMS"));
    Ok((made, skipped))
}

/// Builds the program for a target that is linked statically, with zig unless the environment names another linker.
fn build(target: &str) -> Result<PathBuf, String> {
    let library = output(Command::new("rustc").args(["--print", "target-libdir", "--target", target]))?;
    // Distributions build the library with the program: their toolchains have its sources alone.
    let builds_library = !Path::new(library.trim()).is_dir();
    if builds_library && std::env::var_os("RUSTC_BOOTSTRAP").is_none() {
        return Err(format!("the toolchain has no standard library for it; 'rustup target add {target}' installs it"));
    }
    let name = target.replace('-', "_");
    let linker = format!("CARGO_TARGET_{}_LINKER", name.to_uppercase());
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--locked", "-p", "stead", "--target", target]).current_dir(root());
    if builds_library {
        cargo.arg("-Zbuild-std=std,panic_unwind");
    }
    if std::env::var_os(&linker).is_none() {
        output(Command::new("python3").args(["-m", "ziglang", "version"])).map_err(|_| {
            format!("there is no linker for it; 'pip install ziglang' installs one, or {linker} names one")
        })?;
        let zig = root().join("packaging/zig");
        cargo.env("ZIG_TARGET", target.replace("-unknown", "")).env(&linker, zig.join("cc"));
        cargo.env(format!("CC_{name}"), zig.join("cc")).env(format!("AR_{name}"), zig.join("ar"));
        let flags = "-C link-self-contained=no -C target-feature=+crt-static";
        cargo.env(format!("CARGO_TARGET_{}_RUSTFLAGS", name.to_uppercase()), flags);
    }
    if !cargo.status().is_ok_and(|status| status.success()) {
        return Err("the program cannot be built".to_owned());
    }
    let folder = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    Ok(root().join(folder).join(target).join("release/stead"))
}

#[cfg(test)]
mod tests {

    use super::*;

    /// A small program of this machine, and one that says that it is a static one for another processor.
    fn programs(folder: &Path) -> [Program; 2] {
        let here = PathBuf::from("/bin/true");
        let mut bytes = fs::read(&here).unwrap();
        bytes[18] = if cfg!(target_arch = "x86_64") { 183 } else { 62 };
        let [start, size, count] = [32, 54, 56].map(|at| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]])));
        for entry in 0..count {
            let at = start + entry * size;
            if bytes[at] == 3 {
                bytes[at] = 0;
            }
        }
        let other = folder.join("other");
        fs::write(&other, bytes).unwrap();
        [here, other].map(|path| Program::read(path).unwrap())
    }

    fn lines_of(program: &str, words: &[&str], file: &Path) -> String {
        output(Command::new(program).args(words).arg(file)).unwrap()
    }

    #[test]
    fn what_is_made_of_one_program_alone_is_not_made_of_another() {
        let (out, repository) = (tempfile::tempdir().unwrap(), Repository::read().unwrap());
        let folder = out.path().join("made");
        for format in ["all", "vsix"] {
            let words = [format, "--program", "stead-fleet", "--out", folder.to_str().unwrap()].map(str::to_owned);
            let refusal = run(&repository, &words).unwrap_err();
            assert!(refusal.contains("remove '--program stead-fleet'") && !folder.exists(), "{refusal}");
        }
    }

    #[test]
    fn everything_is_made_for_each_processor() {
        let (folder, repository) = (tempfile::tempdir().unwrap(), Repository::read().unwrap());
        let out = fs::canonicalize(folder.path()).unwrap();
        let programs = programs(&out);
        let printed = Printed {
            completions: vec![("bash", "b".to_owned()), ("zsh", "z".to_owned()), ("fish", "f".to_owned())],
            unit: "[Unit]\n".to_owned(),
            pages: vec![("stead.1".to_owned(), "page".to_owned())],
        };
        let (made, skipped) = packed(&repository, &programs, &printed, Vec::new(), &out).unwrap();
        let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        for program in &programs {
            let archive = format!("stead-{}-{}.tar.gz", env!("CARGO_PKG_VERSION"), program.target());
            let archive = made.iter().find(|path| name(path) == archive).unwrap();
            let files = lines_of("tar", &["-tzf"], archive);
            for file in ["/bin/stead\n", "/man1/stead.1.gz\n", "/completions/stead\n", "/stead.cdx.json.gz\n"] {
                assert!(files.contains(file), "{file}: {files}");
            }
        }
        for (extension, tool, words, field) in [
            (".deb", "dpkg-deb", &["--field"][..], programs.clone().map(|each| each.of_debian())),
            (
                ".rpm",
                "rpm",
                &["--query", "--package", "--queryformat", "%{ARCH}"],
                programs.clone().map(|each| each.processor),
            ),
        ] {
            let packages: Vec<&PathBuf> = made.iter().filter(|path| name(path).ends_with(extension)).collect();
            if packages.is_empty() {
                assert!(skipped.iter().any(|line| line.contains(&extension[1..])), "{skipped:?}");
                stead_testkit::skip("everything_is_made_for_each_processor", &skipped.join("; "));
                continue;
            }
            assert_eq!(packages.len(), 2, "{made:?}");
            for (package, wanted) in packages.iter().zip(field) {
                let said = lines_of(tool, words, package);
                assert!(said.contains(wanted), "{wanted}: {said}");
                let is_static = wanted != programs[0].of_debian();
                assert!(extension == ".rpm" || said.contains("\nDepends: ") != is_static, "{said}");
            }
        }
        output(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(&out)).unwrap();
        let sums = fs::read_to_string(out.join("SHA256SUMS")).unwrap();
        assert_eq!(sums.lines().count(), made.len() - 1, "{sums}");
    }

    /// The static program of a target, where one was built, and what runs it.
    fn built(target: &str) -> Option<Program> {
        let of_profile = |profile| root().join("target").join(target).join(profile).join("stead");
        let stated = std::env::var_os("STEAD_TEST_STATIC").map(|folder| PathBuf::from(folder).join(target));
        let mut found = stated.into_iter().chain(["release", "debug"].map(of_profile));
        found.find(|path| path.exists()).map(|path| Program::read(path).unwrap())
    }

    #[test]
    fn static_programs_start_where_there_is_nothing_else() {
        const TEST: &str = "static_programs_start_where_there_is_nothing_else";
        for target in TARGETS {
            let Some(program) = built(target) else {
                stead_testkit::skip(TEST, &format!("no program was built for {target}"));
                continue;
            };
            assert!(program.is_static, "{program:?}");
            let empty = tempfile::tempdir().unwrap();
            fs::copy(&program.path, empty.path().join("stead")).unwrap();
            let text = "resources:\n- {name: a, type: Stead/File, properties: {path: made, content: x}}\n";
            fs::write(empty.path().join("a.yaml"), text).unwrap();
            let mut run = Command::new("unshare");
            run.args(["--map-root-user", "chroot"]).arg(empty.path()).env("HOME", "/").env("STEAD_STATE", "/state");
            if !program.runs_here() {
                let qemu = output(Command::new("sh").args(["-c", "command -v qemu-$0-static", program.processor]));
                let Ok(qemu) = qemu else {
                    stead_testkit::skip(TEST, &format!("there is no qemu-{}-static", program.processor));
                    continue;
                };
                fs::copy(qemu.trim(), empty.path().join("qemu")).unwrap();
                run.arg("/qemu");
            }
            let printed = output(run.args(["/stead", "apply", "/a.yaml"])).unwrap();
            assert!(printed.contains("Applied: 1 created"), "{target}: {printed}");
            assert_eq!(fs::read_to_string(empty.path().join("made")).unwrap(), "x");
        }
    }

    /// Users that are in no file, as those of a server are: systemd's own module for the library of the machine has them.
    #[test]
    fn static_programs_know_users_of_servers() {
        const TEST: &str = "static_programs_know_users_of_servers";
        const RECORDS: &str = r#"set -eu
mkdir -p /run/userdb
mount -t tmpfs none /run/userdb
cd /run/userdb
printf '{"userName":"hanna","uid":54711,"gid":54712,"homeDirectory":"/srv/hanna"}' >hanna.user
printf '{"groupName":"hands","gid":54712}' >hands.group
ln -s hanna.user 54711.user
ln -s hands.group 54712.group
getent passwd hanna >/dev/null || exit 77
cd "$1"
HOME=/ STEAD_STATE=$1/state "$0" apply a.yaml
stat -c %u:%g made
HOME=/ STEAD_STATE=$1/state "$0" get Stead/File path=made"#;
        let Some(program) = TARGETS.into_iter().filter_map(built).find(Program::runs_here) else {
            return stead_testkit::skip(TEST, "no program was built for this processor");
        };
        if !stead_testkit::is_root(TEST) {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let text = "resources:\n- {name: a, type: Stead/File, properties: {path: made, owner: hanna, group: hands}}\n";
        fs::write(folder.path().join("a.yaml"), text).unwrap();
        let mut run = Command::new("unshare");
        run.args(["--mount", "sh", "-c", RECORDS]).arg(&program.path).arg(folder.path());
        let ended = run.output().unwrap();
        let [printed, complained] = [&ended.stdout, &ended.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        if ended.status.code() == Some(77) {
            return stead_testkit::skip(TEST, "the machine's library does not know records of systemd");
        }
        assert!(ended.status.success() && printed.contains("54711:54712"), "{printed}{complained}");
        assert!(printed.contains("hanna") && printed.contains("hands"), "{printed}{complained}");
    }
}
