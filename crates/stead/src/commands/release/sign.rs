//! Signatures, made by the program `ssh-keygen`: of keys in files, in agents and in hardware.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use stead_release::{Signable, Signed};
use stead_system::Cancel;
use stead_system::process::{self, Environment, Executable, Exit, Limits, Program};

use crate::input;
use crate::terminal::complain_text;

/// How long somebody may take to touch a key, or to type a passphrase.
const PATIENCE: Duration = Duration::from_mins(2);

/// Adds a signature by each of these keys. An error is one sentence, and an advice.
pub(super) fn sign<S: Signable>(signed: &mut Signed<S>, keys: &[impl AsRef<Path>]) -> Result<(), (String, String)> {
    for key in keys.iter().map(AsRef::as_ref) {
        let shown = key.display();
        let text = signature(signed.bytes(), S::PURPOSE, key)?;
        signed.add(&text).ok_or_else(|| {
            let advice = "each signer signs once, with a key that is Ed25519 or ECDSA over P-256";
            (
                format!(
                    "cannot add a signature by '{shown}': it has signed already, or its algorithm is not supported"
                ),
                advice.into(),
            )
        })?;
    }
    Ok(())
}

fn signature(bytes: &[u8], namespace: &str, key: &Path) -> Result<String, (String, String)> {
    let mut environment =
        Environment::of_this_process(&["SSH_AUTH_SOCK", "SSH_SK_PROVIDER", "DISPLAY", "WAYLAND_DISPLAY"]);
    // It cannot ask at the terminal, which is of this process.
    environment.set("SSH_ASKPASS_REQUIRE", "force");
    let asker = std::env::var_os("SSH_ASKPASS").unwrap_or_else(|| "/bin/false".into());
    environment.set("SSH_ASKPASS", asker);
    let failed = |why: String| {
        let advice = format!(
            "a key with a passphrase is added to ssh-agent first, by 'ssh-add {}', and its public key given here",
            key.display()
        );
        (format!("cannot sign with '{}': {why}", key.display()), advice)
    };
    let found = Executable::find("ssh-keygen", Path::new("/nonexistent"), &environment);
    let found = found.ok_or_else(|| failed("there is no program 'ssh-keygen'".to_owned()))?;
    let executable = found.map_err(|refused| failed(format!("the program 'ssh-keygen' {}", refused.reason())))?;
    let program = Program {
        executable: &executable,
        arguments: &["-Y", "sign", "-n", namespace, "-f"]
            .map(OsString::from)
            .into_iter()
            .chain([key.into()])
            .collect::<Vec<_>>(),
        directory: &input::current_folder(),
        environment: &environment,
        variables: &[],
        input: Some(bytes),
    };
    let limits = Limits { deadline: PATIENCE, changes: false, ..Limits::default() };
    let mut said = Vec::new();
    let finished = process::run(&program, &limits, &Cancel::default(), &mut |bytes| said.extend_from_slice(bytes));
    let finished = finished.map_err(|error| failed(stead_engine::error_chain(&error)))?;
    let said = String::from_utf8_lossy(&said);
    if finished.exit != Exit::Code(0) {
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        return Err(failed(format!("ssh-keygen ended with {}: {}", finished.exit, last.trim())));
    }
    for line in said.lines().filter(|line| !line.starts_with("Signing data")) {
        complain_text(&format!("{line}\n"));
    }
    String::from_utf8(finished.stdout).map_err(|_| failed("ssh-keygen printed no signature".to_owned()))
}
