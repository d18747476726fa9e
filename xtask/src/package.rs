//! `cargo xtask package FORMAT`: what users install, made by the tools of the distributions.
//!
//! All formats have the same files, which are staged once: the program, its manual pages and completions, which it prints
//! itself, the unit of the agent, schemas and notices. The controller is a package of its own: most machines have none. The same
//! sources and the same `SOURCE_DATE_EPOCH` give the same bytes.

use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::notices::{bill_of_materials, notices};
use crate::program::Program;
use crate::repository::{Repository, root};

/// The programs that are packed: what each machine has, and the controller.
pub(crate) const PROGRAMS: [&str; 2] = [STEAD, "stead-fleet"];

pub(crate) const STEAD: &str = "stead";

/// Where a format has what others have elsewhere.
struct Layout {
    zsh: &'static str,
    /// The folder of the folder with the licences, where the format has one.
    licences: Option<&'static str>,
    unit: Option<&'static str>,
}

/// The folders of `adapters/` that are installed.
const ADAPTERS: [&str; 3] = ["ansible", "common", "idem"];

const UNIT: &str = "usr/lib/systemd/system/stead-agent.service";

const DEBIAN: Layout = Layout { zsh: "usr/share/zsh/vendor-completions", licences: None, unit: Some(UNIT) };
const FEDORA: Layout =
    Layout { zsh: "usr/share/zsh/site-functions", licences: Some("usr/share/licenses"), unit: Some(UNIT) };
const PLAIN: Layout = Layout { unit: None, ..FEDORA };

/// When the sources were changed last.
fn epoch() -> Result<u64, String> {
    let stated = std::env::var("SOURCE_DATE_EPOCH");
    let text = stated.or_else(|_| output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root())));
    text.ok()
        .and_then(|text| text.trim().parse().ok())
        .ok_or("SOURCE_DATE_EPOCH must be a number of seconds".to_owned())
}

/// Builds a program.
pub(crate) fn release_build(name: &str) -> Result<PathBuf, String> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--locked", "-p", name]).current_dir(root());
    if !cargo.status().is_ok_and(|status| status.success()) {
        return Err("the program cannot be built".to_owned());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    Ok(root().join(target).join("release").join(name))
}

/// A program with what belongs to it.
pub(crate) struct Package {
    name: &'static str,
    program: Program,
    printed: Printed,
    version: &'static str,
    epoch: u64,
    notices: String,
    bill: String,
}

impl Package {
    /// The package of `stead`.
    pub(crate) fn new(repository: &Repository, program: Program, printed: Printed) -> Result<Self, String> {
        Self::of(STEAD, repository, program, printed)
    }

    /// The package of one of the programs.
    pub(crate) fn of(
        name: &'static str,
        repository: &Repository,
        program: Program,
        printed: Printed,
    ) -> Result<Self, String> {
        let bill = format!("{:#}\n", bill_of_materials(repository, name)?);
        let (version, epoch, notices) = (env!("CARGO_PKG_VERSION"), epoch()?, notices(repository, name)?);
        Ok(Self { name, program, printed, version, epoch, notices, bill })
    }

    /// Returns whether it is what each machine has, with adapters, schemas and the agent.
    fn is_stead(&self) -> bool {
        self.name == STEAD
    }

    fn documents(&self) -> String {
        format!("usr/share/doc/{}", self.name)
    }
}

/// The texts that a program prints of itself, which are the same on every processor. The controller prints none.
#[derive(Clone, Default)]
pub(crate) struct Printed {
    /// The shell, and its script.
    pub(crate) completions: Vec<(&'static str, String)>,
    pub(crate) unit: String,
    /// The name of the file, and the page.
    pub(crate) pages: Vec<(String, String)>,
}

impl Printed {
    /// Asks a program that runs here.
    pub(crate) fn by(program: &Path) -> Result<Self, String> {
        let program = fs::canonicalize(program).map_err(failed(program))?;
        let answer = |words: &[&str]| output(Command::new(&program).args(words).env("HOME", "/nonexistent"));
        let mut completions = Vec::new();
        for shell in ["bash", "zsh", "fish"] {
            completions.push((shell, answer(&["completer", shell])?));
        }
        let unit = answer(&["agent", "--state", "/var/lib/stead", "install", "--print"])?;
        // It names the program where it is now.
        let unit = unit.replace(&program.display().to_string(), "/usr/bin/stead");
        let mut pages = Vec::new();
        manual(&answer, &mut pages, "stead")?;
        Ok(Self { completions, unit, pages })
    }
}

/// Where the files are that a package of Debian has besides.
const OF_DEBIAN: &str = "packaging/debian";

/// The revision of the package among those of one version.
const REVISION: &str = "1";

pub(crate) fn deb(package: &Package, out: &Path) -> Result<PathBuf, String> {
    // They are about the agent.
    let scripts: &[&str] = if package.is_stead() { &["postinst", "prerm", "postrm"] } else { &[] };
    let work = Work::below(out)?;
    let stage = work.0.join("stage");
    package.stage(&stage, &DEBIAN)?;
    let architecture = package.program.of_debian();
    let version = format!("{}-{REVISION}", package.version);
    debian_documents(package, &version, &stage.join(package.documents()))?;
    let sums = ["-c", "find usr -type f | LC_ALL=C sort | xargs md5sum"];
    let sums = output(Command::new("sh").args(sums).current_dir(&stage))?;
    let size = output(Command::new("du").args(["-sk", "--apparent-size"]).arg(&stage))?;
    let depends = if package.program.is_static { String::new() } else { libraries(package, &work.0)? };
    let control = read(&root().join(OF_DEBIAN).join(format!("{}.control", package.name)))?
        .replace("@VERSION@", &version)
        .replace("@ARCHITECTURE@", architecture)
        .replace("@SIZE@", size.split_whitespace().next().unwrap_or("0"))
        .replace("Depends: @DEPENDS@\n", &depends);
    let about = stage.join("DEBIAN");
    write(&about.join("control"), &control)?;
    write(&about.join("md5sums"), &sums)?;
    for name in scripts {
        write(&about.join(name), &read(&root().join(OF_DEBIAN).join(name))?)?;
    }
    package.seal(&stage)?;
    for name in scripts {
        set_mode(&about.join(name), 0o755)?;
    }
    let file = out.join(format!("{}_{version}_{architecture}.deb", package.name));
    let mut pack = Command::new("dpkg-deb");
    pack.args(["--root-owner-group", "--build"]).arg(&stage).arg(&file);
    output(pack.env("SOURCE_DATE_EPOCH", package.epoch.to_string()))?;
    Ok(file)
}

/// The field of Debian that names the libraries of the staged program.
fn libraries(package: &Package, work: &Path) -> Result<String, String> {
    // dpkg-shlibdeps wants to know whose libraries it looks for.
    write(&work.join("debian/control"), "Source: stead\n\nPackage: stead\nArchitecture: any\n")?;
    let program = format!("stage/usr/bin/{}", package.name);
    let found = output(Command::new("dpkg-shlibdeps").args(["-O", &program]).current_dir(work))?;
    Ok(format!("Depends: {}\n", found.trim().trim_start_matches("shlibs:Depends=")))
}

/// Writes the documents that the policy of Debian asks for.
fn debian_documents(package: &Package, version: &str, folder: &Path) -> Result<(), String> {
    let mit = read(&root().join("LICENSE-MIT"))?;
    let copyright = read(&root().join(OF_DEBIAN).join("copyright"))?.replace("@MIT@", &as_field(&mit));
    write(&folder.join("copyright"), &copyright)?;
    let time = format!("--date=@{}", package.epoch);
    let time = output(Command::new("date").args(["--utc", "--rfc-email", &time]))?;
    let changes = format!(
        "{} ({version}) unstable; urgency=medium\n\n  * changelog.gz has what changed.\n\n \
         -- The stead developers <stead@example.invalid>  {}\n",
        package.name,
        time.trim()
    );
    write(&folder.join("changelog.Debian"), &changes)?;
    compress(&folder.join("changelog.Debian")).map(drop)
}

pub(crate) fn rpm(package: &Package, out: &Path) -> Result<PathBuf, String> {
    let work = Work::below(out)?;
    let stage = work.0.join("stage");
    package.stage(&stage, &FEDORA)?;
    package.seal(&stage)?;
    let results = work.0.join("results");
    let mut rpmbuild = Command::new("rpmbuild");
    for (name, value) in [
        ("_topdir", work.0.display().to_string()),
        ("_rpmdir", results.display().to_string()),
        ("_buildhost", "reproducible".to_owned()),
        ("use_source_date_epoch_as_buildtime", "1".to_owned()),
        ("clamp_mtime_to_source_date_epoch", "1".to_owned()),
        ("stage", stage.display().to_string()),
        ("stead_version", package.version.to_owned()),
    ] {
        rpmbuild.args(["--define", &format!("{name} {value}")]);
    }
    rpmbuild
        .args(["-bb", "--quiet", "--target", package.program.processor])
        .arg(root().join("packaging/rpm").join(format!("{}.spec", package.name)));
    output(rpmbuild.env("SOURCE_DATE_EPOCH", package.epoch.to_string()))?;
    let is_package = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rpm");
    let result = files(&results)?.into_iter().find(is_package).ok_or("rpmbuild made no package")?;
    let file = out.join(result.file_name().unwrap_or_default());
    fs::copy(&result, &file).map_err(failed(&file))?;
    Ok(file)
}

pub(crate) fn tar(package: &Package, out: &Path) -> Result<PathBuf, String> {
    let work = Work::below(out)?;
    let stage = work.0.join("stage");
    package.stage(&stage, &PLAIN)?;
    package.seal(&stage)?;
    let name = format!("{}-{}-{}", package.name, package.version, package.program.target());
    let archive = work.0.join(format!("{name}.tar"));
    let mut pack = Command::new("tar");
    pack.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=ustar"]);
    pack.arg(format!("--transform=s,^usr,{name},")).arg("-C").arg(&stage).arg("-cf").arg(&archive).arg("usr");
    output(&mut pack)?;
    let (packed, file) = (compress(&archive)?, out.join(format!("{name}.tar.gz")));
    fs::rename(packed, &file).map_err(failed(&file))?;
    Ok(file)
}

pub(crate) fn folder(package: &Package, out: &Path) -> Result<PathBuf, String> {
    package.stage(out, &FEDORA)?;
    Ok(out.to_owned())
}

impl Package {
    /// Places all files below a folder, as they are below the root of a machine.
    fn stage(&self, stage: &Path, layout: &Layout) -> Result<(), String> {
        let program = stage.join("usr/bin").join(self.name);
        // One that runs cannot be written to.
        let _ = fs::remove_file(&program);
        write(&program, "")?;
        fs::copy(&self.program.path, &program).map_err(failed(&self.program.path))?;
        if self.program.runs_here() {
            output(Command::new("strip").args(["--remove-section=.comment", "--remove-section=.note"]).arg(&program))?;
        }
        set_mode(&program, 0o755)?;
        for (shell, script) in &self.printed.completions {
            let path = match *shell {
                "bash" => "usr/share/bash-completion/completions/stead".to_owned(),
                "zsh" => format!("{}/_stead", layout.zsh),
                _ => "usr/share/fish/vendor_completions.d/stead.fish".to_owned(),
            };
            write(&stage.join(path), script)?;
        }
        if let Some(path) = layout.unit.filter(|_| self.is_stead()) {
            write(&stage.join(path), &self.printed.unit)?;
        }
        for (name, page) in &self.printed.pages {
            let path = stage.join("usr/share/man/man1").join(name);
            write(&path, page)?;
            compress(&path)?;
        }
        if self.is_stead() {
            stage_shared(stage)?;
        }
        let documents = stage.join(self.documents());
        write(&documents.join("changelog"), &read(&root().join("CHANGELOG.md"))?)?;
        write(&documents.join("THIRD-PARTY"), &self.notices)?;
        write(&documents.join(format!("{}.cdx.json", self.name)), &self.bill)?;
        compress(&documents.join("changelog"))?;
        compress(&documents.join("THIRD-PARTY"))?;
        compress(&documents.join(format!("{}.cdx.json", self.name)))?;
        if let Some(folder) = layout.licences {
            for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
                write(&stage.join(folder).join(self.name).join(name), &read(&root().join(name))?)?;
            }
        }
        Ok(())
    }

    /// Gives everything below a folder the modes and the time of a package.
    fn seal(&self, path: &Path) -> Result<(), String> {
        let is_program = path.parent().is_some_and(|folder| folder.ends_with("usr/bin"));
        set_mode(path, if path.is_dir() || is_program { 0o755 } else { 0o644 })?;
        if path.is_dir() {
            for entry in entries(path)? {
                self.seal(&entry)?;
            }
        }
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(self.epoch);
        let times = FileTimes::new().set_accessed(time).set_modified(time);
        File::open(path).and_then(|file| file.set_times(times)).map_err(failed(path))
    }
}

/// Places what `stead` reads besides: schemas and adapters.
fn stage_shared(stage: &Path) -> Result<(), String> {
    for schema in files(&root().join("schemas"))? {
        let name = schema.file_name().unwrap_or_default();
        write(&stage.join("usr/share/stead/schemas").join(name), &read(&schema)?)?;
    }
    for folder in ADAPTERS {
        for file in files(&root().join("adapters").join(folder))? {
            let name = file.file_name().unwrap_or_default();
            if file.parent().is_some_and(|parent| parent.ends_with(folder)) {
                write(&stage.join("usr/lib/stead/adapters").join(folder).join(name), &read(&file)?)?;
            }
        }
    }
    Ok(())
}

/// Collects the page of a command, and those of the commands that it names.
fn manual(
    answer: &dyn Fn(&[&str]) -> Result<String, String>,
    pages: &mut Vec<(String, String)>,
    name: &str,
) -> Result<(), String> {
    let words: Vec<&str> = name.split('-').skip(1).collect();
    let page = answer(&[&["manual"], words.as_slice()].concat())?;
    let named = page.lines().filter_map(|line| Some(line.strip_suffix("(1)")?.replace("\\-", "-")));
    let named: Vec<String> = named.filter(|command| command.starts_with(&format!("{name}-"))).collect();
    pages.push((format!("{name}.1"), page));
    named.iter().try_for_each(|command| manual(answer, pages, command))
}

/// A folder for what is not the result, removed in the end.
pub(crate) struct Work(PathBuf);

impl Work {
    pub(crate) fn below(out: &Path) -> Result<Self, String> {
        let folder = out.join(format!(".work-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(failed(&folder))?;
        Ok(Self(folder))
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A text as the value of a field of Debian.
fn as_field(text: &str) -> String {
    let lines = text.trim().lines().map(|line| if line.is_empty() { " .".to_owned() } else { format!(" {line}") });
    lines.collect::<Vec<_>>().join("\n")
}

/// Replaces a file by its compressed form, which does not depend on when that is done.
fn compress(path: &Path) -> Result<PathBuf, String> {
    output(Command::new("gzip").args(["--best", "--no-name", "--force"]).arg(path))?;
    let mut name = path.as_os_str().to_owned();
    name.push(".gz");
    Ok(PathBuf::from(name))
}

/// Returns the output of a program.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().display().to_string();
    let output = command.output().map_err(|error| format!("cannot run {program}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{program} failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(failed(path))
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::create_dir_all(path.parent().unwrap_or(path)).and_then(|()| fs::write(path, text)).map_err(failed(path))
}

fn set_mode(path: &Path, mode: u32) -> Result<(), String> {
    fs::set_permissions(path, Permissions::from_mode(mode)).map_err(failed(path))
}

/// Returns the entries of a folder, in order.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut entries: Vec<PathBuf> = entries.map_err(failed(folder))?;
    entries.sort();
    Ok(entries)
}

/// All files below a folder.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for entry in entries(folder)? {
        if entry.is_dir() { found.extend(files(&entry)?) } else { found.push(entry) }
    }
    Ok(found)
}

pub(crate) fn failed(path: &Path) -> impl Fn(std::io::Error) -> String {
    move |error| format!("{}: {error}", path.display())
}
