//! The agent as a service of systemd.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use stead_host::fs::{Durability, Former, FsError, Ownership, Place, Replacement, Writes};

use crate::programs::run_command;

/// Where the unit is placed: where systemd looks for the units of an administrator.
const UNIT: &str = "/etc/systemd/system/stead-agent.service";

/// Where the unit of a package is.
const PACKAGED: &str = "/usr/lib/systemd/system/stead-agent.service";

/// The unit that starts an agent, from this program and with its state in this folder.
///
/// What a configuration manager must be able to do cannot be taken from it: it writes everywhere and loads whatever its
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
pub fn install(program: &Path, state: &Path) -> Result<&'static str, String> {
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

fn write(path: &Path, text: &str) -> Result<(), FsError> {
    let writes = Writes::new(Durability::PerFile);
    let Some(place) = Place::find(path, &writes)? else {
        let source = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(FsError::System { doing: "write", path: path.to_owned(), source });
    };
    let replacement = Replacement::begin(&place, Former::Any)?;
    replacement.write(text.as_bytes())?;
    replacement.finish(0o644, Ownership::default())?;
    writes.flush()
}
