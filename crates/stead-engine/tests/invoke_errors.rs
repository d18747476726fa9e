//! The ids of errors of direct invocation, held against those that `Invoke-DscResource` gives. The recordings lie outside of
//! the repository; what PowerShell itself says comes from a program that stands in for it: this very program.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

#[path = "../../stead-powershell/tests/support/stand_in.rs"]
mod stand_in;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use stand_in::failure_of;
use stead_core::value::{Object, Value};
use stead_engine::{Host, HostOptions, InvokeError, Invoked, Method, ResourceCall, ResourceSpecification};
use stead_powershell::adapter::PowerShellOptions;
use stead_system::fs::User;
use stead_system::process::Environment;

const TEST: &str = "invoked_resources_fail_with_the_recorded_ids";

/// Errors of the binding of parameters, before anything is invoked: the module `Stead` declares the same ones.
const BINDING: [&str; 4] =
    ["ParameterArgument", "NamedParameterNotFound,Invoke", "MissingMandatoryParameter,Invoke", "NativeCommandError"];

/// Errors of `Invoke-DscResource` itself, before the resource is called: here they cannot come from PowerShell.
const BEFORE: [&str; 8] = [
    "Microsoft.PowerShell.Commands.WriteErrorException,CheckResourceFound",
    "InvalidResourceSpecification,",
    "PsDscRunAsCredentialNotSupport,",
    "unexpected state ",
    "Argument,Microsoft.PowerShell.Commands.GetModuleCommand",
    "ExceptionWhenSetting",
    "PropertyAssignmentException",
    "NamedParameterNotFound,Get-TargetResource",
];

fn main() -> ExitCode {
    if stand_in::is_asked_for() {
        stand_in::main();
        return ExitCode::SUCCESS;
    }
    let test = libtest_mimic::Trial::test(TEST, || {
        std::panic::catch_unwind(invoked_resources_fail_with_the_recorded_ids)
            .map_err(|_| libtest_mimic::Failed::without_message())
    });
    libtest_mimic::run(&libtest_mimic::Arguments::from_args(), vec![test]).exit_code()
}

fn invoked_resources_fail_with_the_recorded_ids() {
    let corpus = stead_testkit::repository().join("../shared/corpus/powershell");
    let Ok(cases) = std::fs::read_to_string(corpus.join("invoke/cases.jsonl")) else {
        return stead_testkit::skip(TEST, "the recorded calls are not there");
    };
    let (mut of_resources, mut of_lookup, mut differ) = (0, 0, BTreeMap::new());
    for case in cases.lines().map(|line| serde_json::from_str::<Json>(line).unwrap()) {
        let recorded = failure_of(&case).and_then(|failure| Some(failure["id"].as_str()?.to_owned()));
        let Some((recorded, wanted)) = recorded.zip(specification(&case)) else { continue };
        // What a script of the recording changed in a module is not changed here.
        let is_changed = case["setup"].as_str().is_some_and(|setup| setup.contains("$env:MODULES"))
            || case["name"].as_str().is_some_and(|name| name.starts_with("path with "));
        if is_changed || case["kind"] != "call" || BINDING.iter().any(|start| recorded.starts_with(start)) {
            continue;
        }
        // One resource calls another, whose error is its own.
        let is_before = BEFORE.iter().any(|start| recorded.starts_with(start)) && wanted.name != "Caller";
        let answer = if is_before { json!({ "state": "returned" }) } else { case.clone() };
        let invoked = invoke(&corpus, &case, &wanted, &answer);
        let found = invoked.map_or_else(|error| error.id().to_owned(), |_| "none".to_owned());
        match (found == recorded, is_before) {
            (true, true) => of_lookup += 1,
            (true, false) => of_resources += 1,
            (false, _) => {
                differ.insert(case["name"].as_str().unwrap().to_owned(), format!("{recorded} | {found}"));
            }
        }
    }
    let deviations = stead_testkit::repository().join("corpus/powershell/invoke/deviations.json");
    let deviations: BTreeMap<String, String> =
        serde_json::from_str(&std::fs::read_to_string(deviations).unwrap()).unwrap();
    assert_eq!(differ.keys().collect::<Vec<_>>(), deviations.keys().collect::<Vec<_>>(), "{differ:#?}");
    #[expect(clippy::print_stderr, reason = "the counts are seen when the test passes, too")]
    {
        eprintln!(
            "{of_resources} recorded ids of errors in resources and {of_lookup} of errors before agree, {} deviate",
            differ.len()
        );
    }
}

/// The resource of a recorded call; `None` for specifications that a command line cannot express.
fn specification(case: &Json) -> Option<ResourceSpecification> {
    let text = |value: &Json| value.as_str().map(str::to_owned);
    let call = &case["call"];
    let (module, version) = match &call["module"] {
        Json::Object(table) if table.len() == 2 => {
            (Some(text(table.get("ModuleName")?)?), Some(text(table.get("RequiredVersion")?)?))
        }
        Json::Object(_) => return None,
        name => (text(name), None),
    };
    Some(ResourceSpecification { name: text(&call["name"])?, module, version, ..ResourceSpecification::default() })
}

fn invoke(corpus: &Path, case: &Json, wanted: &ResourceSpecification, answer: &Json) -> Result<Invoked, InvokeError> {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("case.json");
    std::fs::write(&recording, answer.to_string()).unwrap();
    let modules = folder.path().join("modules");
    std::fs::create_dir(&modules).unwrap();
    for name in case["modules"].as_array().into_iter().flatten().filter_map(Json::as_str) {
        let among = ["invoke", "behaviour", "discovery"].map(|part| corpus.join(part).join("modules").join(name));
        let source = among.iter().find(|candidate| candidate.is_dir()).unwrap();
        std::os::unix::fs::symlink(source.canonicalize().unwrap(), modules.join(name)).unwrap();
    }
    let mut environment = Environment::of_this_process(&[]);
    environment.set("STEAD_STAND_IN_CASE", recording.to_str().unwrap());
    let host = host(modules, environment);
    let Value::Object(properties) = Value::from(case["call"]["property"].clone()) else { return Ok(nothing()) };
    let called = ResourceCall::specified(host.session(folder.path()), wanted)?;
    called.invoke(method(&case["call"]["method"]), properties, false)
}

fn nothing() -> Invoked {
    Invoked::State(Value::Object(Object::new()).to_redacted_json())
}

fn host(modules: PathBuf, environment: Environment) -> Host {
    let options = PowerShellOptions {
        executable: Some(std::env::current_exe().unwrap()),
        module_path: vec![modules],
        cache: None,
        environment,
        user: User::current(),
        width: 1,
        isolated: false,
    };
    Host::new(HostOptions { powershell: Some(Arc::new(move || Some(options.clone()))), ..HostOptions::default() })
}

fn method(name: &Json) -> Method {
    match name.as_str().unwrap_or_default().to_lowercase().as_str() {
        "get" => Method::Get,
        "test" => Method::Test,
        _ => Method::Set,
    }
}
