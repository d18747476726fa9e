//! No plaintext of a secret is in any event, in the journal, in a report or in what is printed of a run.

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::num::NonZeroUsize;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use stead_core::event::Mode;
use stead_core::value::{Object, Value};
use stead_engine::{Host, HostOptions, RunOptions, failure_lines};
use stead_host::catalog::{Search, SearchEnvironment};
use stead_host::journal::FileJournal;
use stead_host::settings::{Layers, Stated, resolve};

const DOCUMENT: &str = "
parameters:
  given: {type: secureString}
  stated: {type: secureString, defaultValue: CanaryStated}
functions:
- namespace: my
  members:
    up: {parameters: [{name: x, type: secureString}], output: {type: secureString, value: \"[toUpper(parameters('x'))]\"}}
resources:
- {name: given, type: Microsoft.DSC.Debug/Echo, properties: {output: \"[parameters('given')]\"}}
- {name: stated, type: Microsoft.DSC.Debug/Echo, properties: {output: \"[concat('<', parameters('stated'), '>')]\"}}
- {name: read, type: Microsoft.DSC.Debug/Echo, properties: {output: \"[secret('s')]\"}}
- {name: computed, type: Microsoft.DSC.Debug/Echo, properties: {output: \"[my.up(parameters('given'))]\"}}
- {name: literal, type: Microsoft.DSC.Debug/Echo, properties: {output: {secureString: CanaryLiteral}}}
- {name: failing, type: Stead/File, properties: {path: \"[concat('missing/', parameters('given'))]\", content: x}}
";

/// Options with a vault that is a program, whose manifest lies in a folder.
fn with_vault(folder: &Path) -> HostOptions {
    fs::set_permissions(folder, Permissions::from_mode(0o755)).expect("the folder is ours");
    let vault = "{type: Test/Vault, version: 1.0.0, secret: {executable: echo, args: [CanaryRead, {nameArg: --name}]}}";
    fs::write(folder.join("vault.dsc.extension.yaml"), vault).expect("it is written");
    let usual = HostOptions::default();
    let environment = SearchEnvironment { resource_path: Some(folder.as_os_str()), ..SearchEnvironment::default() };
    let settings = resolve(&Layers::default(), &Stated::default());
    HostOptions { search: Search::new(&environment, &settings.resource_path, usual.search.user), ..usual }
}

#[test]
fn a_run_and_its_journal_show_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    for mode in [Mode::GET, Mode::TEST, Mode::PLAN, Mode::APPLY] {
        let mut session = Host::new(with_vault(folder.path())).session(folder.path());
        let supplied = Object::from_iter([("given".to_owned(), Value::from("CanaryGiven"))]);
        // What is written in the document is part of it; findings show it with its place.
        let prepared = session.prepare("main.yaml", DOCUMENT, supplied);
        let prepared = prepared.map_err(|unusable| format!("{:?}", unusable.findings)).unwrap();
        let mut shown = String::new();
        let journal = Box::new(FileJournal::create(&path).unwrap());
        let execution = RunOptions { journal, ..RunOptions::new(mode, NonZeroUsize::MIN) };
        let execution = execution.consumer(|_, event| {
            let json = serde_json::to_string(event).unwrap();
            writeln!(shown, "{event:?}\n{json}").unwrap();
        });
        let run = session.run(&prepared, execution).unwrap();
        let (failures, document) = (failure_lines(&run), session.result_document(&run));
        write!(shown, "{:?}\n{failures:?}\n{document}", run.report()).unwrap();
        shown += &fs::read_to_string(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(shown.contains("computed") && shown.contains("$sealed"), "the search is blind");
        for canary in ["CanaryGiven", "CANARYGIVEN", "CanaryStated", "CanaryRead", "CanaryLiteral"] {
            assert!(!shown.contains(canary), "{mode:?} shows {canary}: {shown}");
        }
    }
}
