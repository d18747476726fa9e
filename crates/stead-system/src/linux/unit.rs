//! Programs of stead as services of systemd.

use std::path::{Path, PathBuf};

use super::fs::{Durability, Former, FsError, OpenError, Ownership, Place, Replacement, SystemPath, Writes, judge};
use super::process::{Environment, Executable, run_command};
use crate::error::error_chain;

/// Where systemd looks for the units of an administrator, and where packages have theirs.
const OWN: &str = "/etc/systemd/system";
const PACKAGED: &str = "/usr/lib/systemd/system";

/// Where an administrator installs programs.
const INSTALLED: &str = "/usr/local/bin";

/// A program that is installed as a service of the running system.
pub struct OwnService<'a> {
    /// The name of its unit, as in `stead-agent.service`.
    pub unit: &'a str,
    /// The text of its unit.
    pub text: &'a str,
    /// The program.
    pub program: &'a Path,
    /// The arguments with which the program installs itself.
    pub arguments: &'a str,
    /// Files that decide what the service does, beside those of its unit.
    pub files: &'a [&'a str],
    /// The account that it runs as, which is created if it does not exist: a line of `sysusers.d`. Without one it is root.
    pub account: Option<&'a str>,
}

impl OwnService<'_> {
    /// Writes the unit, enables the service and starts it; one that runs is restarted. Returns where the unit is: that of a package which
    /// is the same stays alone, so that upgrades of the package reach it.
    ///
    /// Guarantees: nobody but root can change what the service runs, or its unit.
    pub fn install(&self) -> Result<PathBuf, String> {
        self.check_trusted()?;
        let packaged = Path::new(PACKAGED).join(self.unit);
        let is_packaged = std::fs::read_to_string(&packaged).is_ok_and(|text| text == self.text);
        let own = Path::new(OWN).join(self.unit);
        let place = if is_packaged && std::fs::symlink_metadata(&own).is_err() { packaged } else { own.clone() };
        let account = self.account.map(|line| ["systemd-sysusers", "--inline", line]);
        account.iter().try_for_each(|command| called(command))?;
        if place == own {
            write(&own, self.text).map_err(|error| error_chain(&error))?;
        }
        called(&["systemctl", "daemon-reload"])?;
        called(&["systemctl", "enable", self.unit])?;
        called(&["systemctl", "restart", self.unit])?;
        Ok(place)
    }

    /// Refuses a program, a folder of the unit or of its drop-ins, and a file, that others could change.
    fn check_trusted(&self) -> Result<(), String> {
        let environment = Environment::of_this_process(&[]);
        Executable::open(self.program.to_owned(), &environment).map_err(|refused| {
            let (program, name) = (self.program.display(), self.program.file_name().unwrap_or_default().display());
            let (installed, arguments) = (format!("{INSTALLED}/{name}"), self.arguments);
            let remedy = format!("install -m 0755 '{program}' {installed} && {installed} {arguments}");
            let why = error_chain(&refused);
            format!("the service would run '{program}', which others can change: {why}; run `{remedy}`")
        })?;
        let units = [OWN, PACKAGED].map(|folder| Path::new(folder).join(self.unit));
        let drop_ins = Path::new(OWN).join(format!("{}.d", self.unit));
        let files = self.files.iter().map(PathBuf::from);
        for path in units.into_iter().chain([drop_ins]).chain(files) {
            judge(&path, environment.trust()).map_err(|error| match error {
                OpenError::Untrusted(untrusted) => {
                    let (path, help) = (path.display(), untrusted.help());
                    format!("the service would use '{path}', which others can change: {untrusted}; {help}")
                }
                system @ OpenError::System { .. } => error_chain(&system),
            })?;
        }
        Ok(())
    }
}

/// Text as a word of a command in a unit.
pub fn unit_word(text: &str) -> String {
    let escaped =
        text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

fn called(command: &[&str]) -> Result<(), String> {
    run_command(&command.iter().copied().map(str::to_owned).collect::<Vec<_>>())
}

fn write(path: &Path, text: &str) -> Result<(), FsError> {
    let writes = Writes::new(Durability::PerFile);
    let Some(place) = Place::find(&SystemPath::here(path), &writes)? else {
        let source = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(FsError::System { doing: "write", path: path.to_owned(), source });
    };
    let replacement = Replacement::begin(&place, Former::Any)?;
    replacement.write(text.as_bytes())?;
    replacement.finish(0o644, Ownership::default())?;
    writes.flush()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, chown};

    use super::*;

    #[test]
    fn root_makes_no_service_of_what_others_can_change() {
        if !stead_testkit::is_root("root_makes_no_service_of_what_others_can_change") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (home, program) = (folder.path().join("u"), folder.path().join("u/stead"));
        fs::create_dir(&home).unwrap();
        fs::copy("/bin/true", &program).unwrap();
        let settings = folder.path().join("settings");
        fs::write(&settings, "").unwrap();
        let files = [settings.to_str().unwrap()];
        let service = OwnService {
            unit: "stead-x.service",
            text: "",
            program: &program,
            arguments: "x install",
            files: &files,
            account: None,
        };
        assert_eq!(service.check_trusted(), Ok(()));
        let refusal = |path: &Path, owner: u32, mode: u32| {
            let former = fs::metadata(path).unwrap().permissions();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            chown(path, Some(owner), None).unwrap();
            let message = service.check_trusted().unwrap_err();
            chown(path, Some(0), None).unwrap();
            fs::set_permissions(path, former).unwrap();
            message
        };
        let remedy =
            format!("install -m 0755 '{}' /usr/local/bin/stead && /usr/local/bin/stead x install", program.display());
        for (path, owner, mode) in
            [(&home, 4242, 0o755), (&program, 4242, 0o755), (&home, 0, 0o777), (&program, 0, 0o775)]
        {
            let message = refusal(path, owner, mode);
            assert!(message.contains("which others can change: ") && message.contains(&remedy), "{message}");
        }
        for (owner, mode) in [(4242, 0o600), (0, 0o622)] {
            let message = refusal(&settings, owner, mode);
            assert!(message.contains(&format!("would use '{}', which others can change: ", files[0])), "{message}");
        }
        assert_eq!(service.check_trusted(), Ok(()));
    }

    #[test]
    fn nothing_of_a_word_is_read_by_systemd() {
        assert_eq!(unit_word(r#"/a b/%h $HOME "\x""#), r#""/a b/%%h $$HOME \"\\x\"""#);
        assert_eq!(unit_word("/a\nExecStart=/b"), r#""/a\nExecStart=/b""#);
    }
}
