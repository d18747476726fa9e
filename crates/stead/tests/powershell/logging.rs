//! Calls leave nothing in the log of the system.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::Place;

/// Where the log of the system is taken.
const LOG: &str = "/run/systemd/journal/dev-log";

/// Returns the messages that are logged while a program runs, which sees another log of the system in the place of its own.
fn logged(place: &Place, command: &Command) -> Vec<String> {
    let path = place.path("log");
    let _ = fs::remove_file(&path);
    let log = UnixDatagram::bind(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    let reading = log.try_clone().unwrap();
    let reader = std::thread::spawn(move || {
        let (mut buffer, mut texts) = (vec![0; 1 << 18], Vec::new());
        loop {
            let count = reading.recv(&mut buffer).unwrap();
            if &buffer[..count] == b"end of the test" {
                return texts;
            }
            texts.push(String::from_utf8_lossy(&buffer[..count]).into_owned());
        }
    });
    let script = format!(
        "mount -t tmpfs none /run && mkdir -p {0} && touch {LOG} && mount --bind '{1}' {LOG} && exec \"$@\"",
        Path::new(LOG).parent().unwrap().display(),
        path.display()
    );
    let mut within = Command::new("unshare");
    within.args(["-m", "sh", "-c", &script, "sh"]).arg(command.get_program()).args(command.get_args()).env_clear();
    within.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
    let output = within.current_dir(command.get_current_dir().unwrap_or(Path::new("/"))).output().unwrap();
    log.set_write_timeout(Some(Duration::from_mins(1))).unwrap();
    UnixDatagram::unbound().unwrap().send_to(b"end of the test", &path).unwrap();
    assert!(output.status.success(), "{output:?}");
    reader.join().unwrap()
}

#[test]
fn nothing_of_a_call_is_in_the_log_of_the_system() {
    let test = "nothing_of_a_call_is_in_the_log_of_the_system";
    let Some(place) = Place::new(test) else { return };
    if fs::read_link("/dev/log").ok().as_deref() != Some(Path::new(LOG)) {
        return stead_testkit::skip(test, "the log of the system is elsewhere");
    }
    let mut plain = Command::new(&place.pwsh);
    plain.args(["-NoProfile", "-NonInteractive", "-Command", "$properties = 'canary'"]);
    plain.envs([("PATH", place.path_variable()), ("HOME", place.path("").display().to_string())]);
    let by_itself = logged(&place, &plain);
    assert!(by_itself.iter().any(|text| text.contains("canary")), "PowerShell by itself logs it: {by_itself:?}");
    place.class("Quiet", "$properties = $this.Name; $this.Seen = $properties");
    let instance = |number| format!("- {{name: r{number}, type: Quiet/Quiet, properties: {{Name: n{number}}}}}\n");
    let document: String = (0..20).map(instance).collect();
    let document = format!("resources:\n{document}");
    place.write("many.yaml", &document);
    let mark = place.path("done").display().to_string();
    let set = format!("if ($o.Properties.Length -eq 13) {{ New-Item ''{mark}'' }}");
    let secret = format!(
        "parameters: {{tok: {{type: secureString}}}}\nresources:\n- name: s\n  type: PSDesiredStateConfiguration/Script\n  \
         properties:\n    GetScript: \"@{{ Result = 'x' }}\"\n    TestScript: \"Test-Path '{mark}'\"\n    SetScript: \
         \"[concat('$o = @{{ Properties = ''', parameters('tok'), ''' }}; {set}')]\"\n"
    );
    place.write("secret.yaml", &secret);
    for arguments in [["check", "many.yaml"], ["apply", "many.yaml"]] {
        assert_eq!(logged(&place, &place.command(&arguments)), [""; 0], "{arguments:?}");
    }
    let mut secret = place.command(&["apply", "secret.yaml"]);
    secret.env("STEAD_PARAM_tok", "hunter-canary");
    assert_eq!(logged(&place, &secret), [""; 0]);
    assert!(place.path("done").exists());
}

/// The settings for all users in whatever form PowerShell takes them.
#[test]
fn settings_that_ask_for_no_logging_log_nothing() {
    let test = "settings_that_ask_for_no_logging_log_nothing";
    let Some(mut place) = Place::new(test) else { return };
    if fs::read_link("/dev/log").ok().as_deref() != Some(Path::new(LOG)) {
        return stead_testkit::skip(test, "the log of the system is elsewhere");
    }
    let copied = Command::new("cp").arg("-a").arg(place.pwsh.parent().unwrap()).arg(place.path("installed")).status();
    assert!(copied.unwrap().success());
    place.pwsh = place.path("installed/pwsh");
    place.class("Quiet", "$properties = $this.Name; $this.Seen = $properties");
    let command = || place.command(&["invoke", "Quiet/Quiet", "--method", "get", "--property", "Name=canary"]);
    for settings in [
        r#"{"PowerShellPolicies":null}"#,
        r#"{"PowerShellPolicies":{"ScriptBlockLogging":null}}"#,
        r#"{"PowerShellPolicies":{"ScriptBlockLogging":{}}}"#,
        "// of ours\n{ /* none */ }",
    ] {
        place.write("installed/powershell.config.json", settings);
        assert_eq!(logged(&place, &command()), [""; 0], "{settings}");
    }
    place.write(
        "installed/powershell.config.json",
        r#"{"PowerShellPolicies":{"ScriptBlockLogging":{"EnableScriptBlockLogging":true}}}"#,
    );
    assert!(logged(&place, &command()).iter().any(|text| text.contains("properties")), "an administrator asks for it");
    place.write("installed/powershell.config.json", "{");
    let output = command().output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("installed/powershell.config.json', which PowerShell itself reads"),
        "{said}"
    );
}
