//! The settings for all users and the modules that PowerShell reads by itself, whatever a call names.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::CstRootNode;
use serde_json::{Map, Value as Json, json};
use stead_system::fs::{OpenError, Trust, TrustedDirectory, TrustedFile, judge};

use super::{Settings, StartError};
use crate::loaded::judge_below;

/// The settings of a PowerShell: for all users in the folder that it is installed in, for one in that of a user.
pub(super) const SETTINGS_FILE: &str = "powershell.config.json";

/// The modules for all users, which every runspace looks in first, whatever is set.
const SHARED_MODULES: &str = "/usr/local/share/powershell/Modules";

/// The setting of directories of modules, and the variable.
pub(super) const MODULE_PATH: &str = "PSModulePath";

/// The longest file of settings that is read.
const LONGEST_SETTINGS: u64 = 1 << 20;

/// Findings of earlier starts of the workers of a pool.
#[derive(Default)]
pub(super) struct Earlier {
    /// Where the PowerShell is installed that a launcher starts, once that is known.
    pub(super) home: OnceLock<PathBuf>,
    /// The directories of modules that were left out, and why: each is said once.
    left_out: Mutex<BTreeSet<String>>,
    /// The resources and the variables that they read and are not given: each is said once.
    withheld: Mutex<BTreeSet<(String, String)>>,
}

impl Earlier {
    /// Returns whether nothing was said before of a variable that a resource reads.
    pub(super) fn is_first_of(&self, resource: &str, variable: &str) -> bool {
        let mut said = self.withheld.lock().unwrap_or_else(PoisonError::into_inner);
        said.insert((resource.to_owned(), variable.to_owned()))
    }

    /// Warns that a directory of modules is left out, unless that was said before.
    fn warn(&self, folder: &Path, error: &OpenError) {
        let said = format!("the PowerShell modules in '{}' are not found by name: {error}", folder.display());
        if self.left_out.lock().unwrap_or_else(PoisonError::into_inner).insert(said.clone()) {
            tracing::warn!("{said}");
        }
    }
}

/// The settings for all users of the PowerShell that is installed in a folder, and what they leave open: no script blocks
/// are logged, which PowerShell by itself does with those that have certain words, and with them what a call was given; and
/// nothing but errors is, unless some logging is asked for. Directories of modules that others can change are left out.
pub(super) fn own_settings(home: &Path, trust: Trust, earlier: &Earlier) -> Result<Json, StartError> {
    let path = home.join(SETTINGS_FILE);
    let unreadable = |reason: String| StartError::Unreadable { path: path.clone(), reason };
    let mut text = String::new();
    match TrustedFile::open(&path, trust).and_then(|file| file.read()) {
        Ok(file) => {
            let read = file.take(LONGEST_SETTINGS).read_to_string(&mut text);
            read.map_err(|error| unreadable(error.to_string()))?;
        }
        Err(error) if error.is_not_found() => {}
        Err(error) => return Err(refused(error)),
    }
    let mut stated = parse(&text).map_err(unreadable)?;
    fill(&mut stated);
    let paths = stated.iter_mut().filter(|(name, _)| name.eq_ignore_ascii_case(MODULE_PATH));
    paths.for_each(|(_, value)| keep_trusted(value, trust, earlier));
    Ok(Json::Object(stated))
}

/// PowerShell takes comments and trailing commas, and no text at all.
fn parse(text: &str) -> Result<Map<String, Json>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let options = ParseOptions { allow_missing_commas: false, ..ParseOptions::default() };
    let root = CstRootNode::parse(text, &options).map_err(|error| error.to_string())?;
    match root.value().map(|value| value.to_serde_value()) {
        None | Some(Some(Json::Null)) => Ok(Map::new()),
        Some(Some(Json::Object(stated))) => Ok(stated),
        Some(_) => Err("it must be a JSON object".to_owned()),
    }
}

/// States what the settings leave open.
fn fill(stated: &mut Map<String, Json>) {
    let policies = member(stated, "PowerShellPolicies", json!({}));
    let mut is_unstated = false;
    if let Json::Object(policies) = policies {
        is_unstated = policies.values().all(|policy| policy.is_null() || *policy == json!({}));
        if let Json::Object(logging) = member(policies, "ScriptBlockLogging", json!({})) {
            member(logging, "EnableScriptBlockLogging", json!(false));
        }
    }
    if is_unstated {
        member(stated, "LogLevel", json!("Error"));
    }
}

/// The member of a name that PowerShell compares without regard to case; where there is none, or `null`, it becomes this.
fn member<'a>(of: &'a mut Map<String, Json>, name: &str, absent: Json) -> &'a mut Json {
    let known = of.keys().find(|known| known.eq_ignore_ascii_case(name)).cloned();
    let value = of.entry(known.unwrap_or_else(|| name.to_owned())).or_insert(Json::Null);
    if value.is_null() {
        *value = absent;
    }
    value
}

/// Leaves out of a path of modules what others can change, and what PowerShell would put variables into.
fn keep_trusted(value: &mut Json, trust: Trust, earlier: &Earlier) {
    let stated = value.as_str().unwrap_or_default();
    let is_kept = |folder: &&str| {
        trust == Trust::Everyone
            || Path::new(folder).is_absolute() && !folder.contains('%') && is_trusted(Path::new(folder), trust, earlier)
    };
    let (kept, left_out): (Vec<&str>, Vec<&str>) = stated.split(':').partition(is_kept);
    if !left_out.is_empty() && !stated.is_empty() {
        tracing::info!("no modules are looked for in '{}', which settings of PowerShell name", left_out.join(":"));
    }
    *value = if kept.is_empty() { Json::Null } else { kept.join(":").into() };
}

/// Judges the modules that PowerShell finds whatever is set: those for all users, whoever installed them.
pub(super) fn shared_modules(trust: Trust) -> Result<(), StartError> {
    own_modules(Path::new(SHARED_MODULES), trust)
}

/// Judges a directory of modules that is always in the path of PowerShell, with all below it, and who could create it. Nothing
/// of them was loaded yet.
pub(super) fn own_modules(folder: &Path, trust: Trust) -> Result<(), StartError> {
    if trust == Trust::Everyone {
        return Ok(());
    }
    let judged = match TrustedDirectory::open(folder, trust) {
        Ok(directory) => judge_below(&directory),
        Err(error) if error.is_not_found() => judge(folder, trust),
        Err(error) => Err(error),
    };
    judged.map_err(refused)
}

fn refused(error: OpenError) -> StartError {
    match error {
        OpenError::Untrusted(untrusted) => StartError::Untrusted(untrusted),
        OpenError::System { path, source } => StartError::Unreadable { path, reason: source.to_string() },
    }
}

/// The directories of modules that nobody but root can change; `None` where whoever runs may use all.
pub(super) fn trusted_modules(settings: &Settings, earlier: &Earlier) -> Option<OsString> {
    (settings.environment.trust() == Trust::Root).then(|| {
        // Never empty: an empty variable is none to PowerShell.
        let mut joined = OsString::from(":");
        for folder in settings.module_path.iter().filter(|folder| is_trusted(folder, Trust::Root, earlier)) {
            joined.push(folder);
            joined.push(":");
        }
        joined
    })
}

/// Returns whether nobody else can change a directory of modules, or anything below it: PowerShell loads any module there that
/// has a command of a name that is not known.
fn is_trusted(folder: &Path, trust: Trust, earlier: &Earlier) -> bool {
    // Whoever lists modules has said why a directory is not trusted.
    let Ok(directory) = TrustedDirectory::open(folder, trust) else { return false };
    let judged = judge_below(&directory);
    judged.inspect_err(|error| earlier.warn(folder, error)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_settings_leave_open_is_stated() {
        let off = r#"{"ScriptBlockLogging":{"EnableScriptBlockLogging":false}}"#;
        let quiet = format!(r#"{{"PowerShellPolicies":{off},"LogLevel":"Error"}}"#);
        let on = r#"{"PowerShellPolicies":{"ScriptBlockLogging":{"EnableScriptBlockLogging":true}}}"#;
        let invocations = r#"{"PowerShellPolicies":{"ScriptBlockLogging":{"EnableScriptBlockInvocationLogging":true,"EnableScriptBlockLogging":false}}}"#;
        for (text, expected) in [
            ("", &*quiet),
            ("\u{feff}{}", &quiet),
            ("// none\n{ /* yet */ }", &quiet),
            (r#"{"PowerShellPolicies":null}"#, &quiet),
            (r#"{"PowerShellPolicies":{"ScriptBlockLogging":null}}"#, &quiet),
            (r#"{"PowerShellPolicies":{"ScriptBlockLogging":{}}}"#, &quiet),
            (
                r#"{"PowerShellPolicies":{"ScriptBlockLogging":{"EnableScriptBlockInvocationLogging":true}}}"#,
                invocations,
            ),
            (on, on),
        ] {
            let mut stated = parse(text).unwrap();
            fill(&mut stated);
            assert_eq!(Json::Object(stated), serde_json::from_str::<Json>(expected).unwrap(), "{text}");
        }
        for text in ["{", "[]", "1", r#"{"a":}"#] {
            parse(text).unwrap_err();
        }
    }

    #[test]
    fn directories_of_modules_that_settings_name_are_judged() {
        if !stead_testkit::is_root("directories_of_modules_that_settings_name_are_judged") {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let [own, others] = ["own", "others"].map(|name| place.path().join(name).display().to_string());
        for folder in [&own, &others] {
            std::fs::create_dir(folder).unwrap();
        }
        std::os::unix::fs::chown(&others, Some(12345), None).unwrap();
        for (stated, expected) in [
            (json!(format!("{others}:{own}:relative:{own}/%HOME%")), json!(own)),
            (json!(others), Json::Null),
            (json!(1), Json::Null),
        ] {
            let mut value = stated.clone();
            keep_trusted(&mut value, Trust::Root, &Earlier::default());
            assert_eq!(value, expected, "{stated}");
        }
    }
}
