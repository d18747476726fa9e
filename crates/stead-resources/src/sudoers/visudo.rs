//! The check of rules by `visudo`.

use stead_core::call::{Failure, FailureKind, Presumed};
use stead_host::provider::Context;
use stead_system::fs::SystemPath;
use stead_system::memory_file::MemoryFile;

use crate::input::{invalid, transient};
use crate::program::{self, Invocation, SearchPath, SystemProgram};

const VISUDO: SystemProgram = SystemProgram { name: "visudo", package: "sudo" };

/// Where it is as a rule.
const USUAL: &str = "/usr/sbin/visudo";

/// Has the `visudo` of the running system look at the content of a file that is to be at a path, without placing it there.
/// Answers what is wrong with it, which is about the property that states it, or that it cannot be checked.
pub(super) fn check(cx: &Context, path: &str, property: &str, content: &str) -> Result<Option<Presumed>, Failure> {
    if VISUDO.is_missing() {
        let hint = "Install sudo with an instance that this one depends on, or add 'validate: false'";
        let failure =
            Failure::new(FailureKind::Start, format!("there is no program 'visudo' to check the rules. {hint}"));
        return Ok(Some(Presumed::of(failure, vec![USUAL.into()])));
    }
    let program = match VISUDO.find() {
        Ok(program) => program,
        Err(distrusted) => return Ok(Some(distrusted)),
    };
    let copy = MemoryFile::new("sudoers", content.as_bytes())
        .map_err(|error| transient("", format!("cannot hand the rules to visudo: {error}")))?;
    let copy_path = copy.path().display().to_string();
    let invocation = Invocation {
        program: program.to_string_lossy().into_owned(),
        arguments: ["-c", "-f", &copy_path].map(str::to_owned).to_vec(),
        environment: vec![("LC_ALL".to_owned(), "C.UTF-8".to_owned())],
        directory: SystemPath::here("/"),
        timeout: None,
        search: SearchPath::System,
    };
    let ended = program::run(cx, &invocation, "visudo")?;
    if ended.code == 0 {
        return Ok(None);
    }
    // Of several lines the first one says where the error is, and not the last one, which is the reason of others.
    let said = ended.failure("visudo").message.replace(&copy_path, path);
    let (reason, lines) = said.split_once('\n').map_or((said.as_str(), ""), |(_, lines)| ("", lines));
    let reason = reason.split_once(": ").map(|(_, reason)| format!(": {reason}")).unwrap_or_default();
    let lines = if lines.is_empty() { String::new() } else { format!("\n{lines}") };
    let failure = invalid(property, format!("visudo refuses the rules{reason}{lines}"));
    Ok(Some(Presumed::of(failure, Vec::new())))
}
