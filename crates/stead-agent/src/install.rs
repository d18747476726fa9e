//! The agent as a service of systemd.

use std::path::{Path, PathBuf};

use stead_system::unit::{OwnService, unit_word};

/// The unit that starts an agent, from this program and with its state in this folder.
///
/// The powers that a configuration manager needs cannot be taken from it: it writes everywhere and loads whatever its
/// resources need. The rest of what systemd can forbid is forbidden. A systemd before 254 ignores what makes restarts rarer
/// (`RestartSteps`), and starts the agent again every second.
pub fn unit(program: &Path, state: &Path) -> String {
    let [program, state] = [program, state].map(|path| unit_word(&path.display().to_string()));
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

/// Writes the unit, enables the service and starts it, as [`OwnService::install`] does.
pub fn install(program: &Path, state: &Path) -> Result<PathBuf, String> {
    let text = unit(program, state);
    let (unit, arguments) = ("stead-agent.service", "agent install");
    OwnService { unit, text: &text, program, arguments, files: &[], account: None }.install()
}
