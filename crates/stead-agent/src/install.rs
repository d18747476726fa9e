//! The agent as a service of systemd.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use stead_system::fs::{
    Durability, Former, FsError, OpenError, Ownership, Place, Replacement, SystemPath, Writes, judge,
};
use stead_system::process::{Environment, Executable};

use crate::programs::run_command;

/// Where the unit is placed: where systemd looks for the units of an administrator.
const UNIT: &str = "/etc/systemd/system/stead-agent.service";

/// Where an administrator installs programs.
const INSTALLED: &str = "/usr/local/bin/stead";

/// Where the unit of a package is.
const PACKAGED: &str = "/usr/lib/systemd/system/stead-agent.service";

/// The unit that starts an agent, from this program and with its state in this folder.
///
/// The powers that a configuration manager needs cannot be taken from it: it writes everywhere and loads whatever its
/// resources need. The rest of what systemd can forbid is forbidden. A systemd before 254 ignores what makes restarts rarer
/// (`RestartSteps`), and starts the agent again every second.
pub fn unit(program: &Path, state: &Path) -> String {
    let (program, state) = (quoted(program), quoted(state));
    format!(
        "[Unit]
Description=Keeps this machine in the state of its stead document
After=local-fs.target network-online.target dbus.service
Wants=network-online.target
StartLimitIntervalSec=0

[Service]
Type=notify
WatchdogSec=5min
ExecStart={program} agent --state {state} run
Restart=always
RestartSec=1s
RestartSteps=8
RestartMaxDelaySec=5min
TimeoutStopSec=2min
KillMode=mixed
Delegate=pids
LimitCORE=0
NoNewPrivileges=no
RestrictRealtime=yes
KeyringMode=private
ProtectClock=no

[Install]
WantedBy=multi-user.target
"
    )
}

/// A path as a word of a unit.
fn quoted(path: &Path) -> String {
    let escaped =
        path.display().to_string().replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{escaped}\"")
}

/// Writes the unit, enables the service and starts it; one that runs is restarted. Returns where the unit is: that of a
/// package which is the same stays alone, so that upgrades of the package reach it.
///
/// Guarantees: nobody but root can change what the service runs, or its unit.
pub fn install(program: &Path, state: &Path) -> Result<&'static str, String> {
    check_trusted(program)?;
    let text = unit(program, state);
    let is_packaged = fs::read_to_string(PACKAGED).is_ok_and(|packaged| packaged == text);
    let place = if is_packaged && fs::symlink_metadata(UNIT).is_err() { PACKAGED } else { UNIT };
    if place == UNIT {
        write(Path::new(UNIT), &text).map_err(|error| stead_engine::error_chain(&error))?;
    }
    let name = Path::new(UNIT).file_name().and_then(OsStr::to_str).unwrap_or_default();
    for words in [&["daemon-reload"][..], &["enable", name], &["restart", name]] {
        let command: Vec<String> =
            std::iter::once("systemctl").chain(words.iter().copied()).map(str::to_owned).collect();
        run_command(&command)?;
    }
    Ok(place)
}

/// Refuses a program, a folder of the unit or a folder of its drop-ins that others could change.
fn check_trusted(program: &Path) -> Result<(), String> {
    let environment = Environment::of_this_process(&[]);
    Executable::open(program.to_owned(), &environment).map_err(|refused| {
        let program = program.display();
        let remedy = format!("install -m 0755 '{program}' {INSTALLED} && {INSTALLED} agent install");
        let why = stead_engine::error_chain(&refused);
        format!("the service would run '{program}', which others can change: {why}; run `{remedy}`")
    })?;
    let drop_ins = format!("{UNIT}.d");
    for path in [UNIT, PACKAGED, &drop_ins] {
        judge(Path::new(path), environment.trust()).map_err(|error| match error {
            OpenError::Untrusted(untrusted) => {
                format!("the unit '{path}' is not trusted: {untrusted}; {}", untrusted.help())
            }
            system @ OpenError::System { .. } => stead_engine::error_chain(&system),
        })?;
    }
    Ok(())
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
        assert_eq!(check_trusted(&program), Ok(()));
        for (path, mode) in [(&home, 0o755), (&program, 0o755), (&home, 0o777), (&program, 0o775)] {
            let former = fs::metadata(path).unwrap().permissions();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            if mode == 0o755 {
                chown(path, Some(4242), None).unwrap();
            }
            let message = check_trusted(&program).unwrap_err();
            let remedy = format!("install -m 0755 '{}' /usr/local/bin/stead", program.display());
            assert!(message.contains("which others can change: ") && message.contains(&remedy), "{message}");
            chown(path, Some(0), None).unwrap();
            fs::set_permissions(path, former).unwrap();
        }
        assert_eq!(check_trusted(&program), Ok(()));
    }
}
