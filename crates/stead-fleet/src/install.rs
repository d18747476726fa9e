//! The controller as a service of systemd.

use std::error::Error;
use std::io::Write;
use std::path::Path;

use clap::ValueEnum as _;
use stead_system::unit::{OwnService, unit_word};

use crate::Serving;

/// The name of the unit, of its account and of its folder below /var/lib.
const NAME: &str = "stead-fleet";
/// A file with variables of the environment, such as `STEAD_FLEET_STORE` with its password: units can be read by everybody.
const VARIABLES: &str = "/etc/stead/fleet.env";
/// The first port that an account without capabilities may listen on.
const UNPRIVILEGED: u16 = 1024;

/// The unit that runs the controller, from this program and with these options.
///
/// It runs as an account of its own, which owns its folder and can write nowhere else. What systemd can forbid beside is forbidden.
fn unit(program: &Path, serving: &Serving) -> String {
    let command: Vec<String> =
        std::iter::once(program.display().to_string()).chain(words(serving)).map(|word| unit_word(&word)).collect();
    let command = command.join(" ");
    let capabilities = if (1..UNPRIVILEGED).contains(&serving.listen.port()) {
        "CapabilityBoundingSet=CAP_NET_BIND_SERVICE\nAmbientCapabilities=CAP_NET_BIND_SERVICE"
    } else {
        "CapabilityBoundingSet="
    };
    format!(
        "[Unit]
Description=Controller of a fleet of machines (stead)
After=network-online.target
Wants=network-online.target
StartLimitIntervalSec=0

[Service]
Type=notify
ExecStart={command}
EnvironmentFile=-{VARIABLES}
Restart=always
RestartSec=1s
RestartSteps=8
RestartMaxDelaySec=1min
TimeoutStopSec=1min
User={NAME}
StateDirectory={NAME}
StateDirectoryMode=0700
UMask=0077
LimitNOFILE=131072
LimitCORE=0
{capabilities}
NoNewPrivileges=yes
KeyringMode=private
LockPersonality=yes
MemoryDenyWriteExecute=yes
PrivateDevices=yes
PrivateTmp=yes
ProcSubset=pid
ProtectClock=yes
ProtectControlGroups=yes
ProtectHome=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
ProtectSystem=strict
RemoveIPC=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallErrorNumber=EPERM
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallFilter=setrlimit

[Install]
WantedBy=multi-user.target
"
    )
}

/// The arguments of the controller.
fn words(serving: &Serving) -> Vec<String> {
    let Serving { listen, certificate, key, names, most_waiting, keep_reports, log_format } = serving;
    let format = log_format.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let mut words = vec!["run".to_owned()];
    let mut put = |name: &str, value: String| words.extend([name.to_owned(), value]);
    put("--folder", format!("/var/lib/{NAME}"));
    put("--listen", listen.to_string());
    for (name, file) in [("--certificate", certificate), ("--key", key)] {
        if let Some(file) = file {
            put(name, std::path::absolute(file).unwrap_or_else(|_| file.clone()).display().to_string());
        }
    }
    for name in names {
        put("--name", name.clone());
    }
    put("--most-waiting", most_waiting.to_string());
    put("--keep-reports", keep_reports.to_string());
    put("--log-format", format);
    words
}

/// Installs this program as the service of the controller and starts it, or only prints the unit.
pub(crate) fn install(serving: &Serving, only_print: bool, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let text = unit(&program, serving);
    if only_print {
        return Ok(out.write_all(text.as_bytes())?);
    }
    let account = format!("u {NAME} - \"Controller of stead\" /var/lib/{NAME}");
    let (unit, files) = (format!("{NAME}.service"), [VARIABLES]);
    let service = OwnService {
        unit: &unit,
        text: &text,
        program: &program,
        arguments: "install",
        files: &files,
        account: Some(&account),
    };
    let place = service.install()?;
    writeln!(out, "{} is installed; the controller is running", place.display())?;
    // As the service's account and with its environment file: otherwise the operator is made in a store that no controller reads.
    let within = format!("systemd-run --quiet --pipe --wait --collect --uid={NAME} -p EnvironmentFile=-{VARIABLES}");
    writeln!(out, "create an operator: {within} {} operator NAME --role approver", program.display())?;
    Ok(())
}
