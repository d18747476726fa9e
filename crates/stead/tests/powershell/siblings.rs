//! Each instance runs the code of its own module, whatever ran before it or runs beside it.

use std::fmt::Write as _;

use serde_json::Value as Json;

use super::{Place, printed};

/// How two modules can have something of one name.
const KINDS: [&str; 4] = ["types of two versions", "types of two modules", "an assembly", "functions of two versions"];

/// The text before a class, and what its Get says.
fn text(kind: &str, number: usize, answer: &str) -> (String, String) {
    let ty = format!("Shared{number}");
    let source = format!("public class {ty} {{ public static string Say() {{ return \"{answer}\"; }} }}");
    match kind {
        "functions of two versions" => {
            (format!("function Get-Shared {{ '{answer}' }}"), "$this.Seen = Get-Shared".to_owned())
        }
        "an assembly" => {
            let built = format!("$PSScriptRoot/Built{number}.dll");
            let load = format!(
                "if (-not (Test-Path \"{built}\")) {{ Add-Type -TypeDefinition '{source}' -OutputAssembly \"{built}\" }}\n\
                 Add-Type -Path \"{built}\"\nfunction Get-Shared {{ [{ty}]::Say() }}"
            );
            (load, "$this.Seen = Get-Shared".to_owned())
        }
        _ => (
            format!("Add-Type -TypeDefinition '{source}'\nfunction Get-Shared {{ [{ty}]::Say() }}"),
            "$this.Seen = Get-Shared".to_owned(),
        ),
    }
}

/// A pair: the types of its instances with their versions, and what each of the two answers.
fn pair(place: &Place, kind: &str, number: usize) -> [(String, &'static str, String); 2] {
    let of_two_modules = kind == "types of two modules";
    ["1.0.0", "2.0.0"].map(|version| {
        let name = if of_two_modules { format!("Pair{number}x{}", &version[..1]) } else { format!("Pair{number}") };
        let answer = format!("{number} {version}");
        let (before, get) = text(kind, number, &answer);
        let version = if of_two_modules { "1.0.0" } else { version };
        place.module(&name, &format!("modules/{name}/{version}"), version, &before, &get);
        (format!("{name}/{name}"), version, answer)
    })
}

#[test]
fn each_module_runs_its_own_code() {
    let Some(place) = Place::new("each_module_runs_its_own_code") else { return };
    let pairs: Vec<_> = (0..stead_testkit::times("STEAD_PAIRS", KINDS.len()))
        .map(|number| pair(&place, KINDS[number % KINDS.len()], number))
        .collect();
    for reversed in [false, true] {
        let (mut document, mut answers) = ("resources:\n".to_owned(), Vec::new());
        for (number, pair) in pairs.iter().enumerate() {
            let mut pair: Vec<_> = pair.iter().collect();
            if reversed {
                pair.reverse();
            }
            for (at, (ty, version, answer)) in pair.into_iter().enumerate() {
                let name = format!("p{number}x{at}");
                writeln!(
                    document,
                    "- {{name: {name}, type: {ty}, requireVersion: '={version}', properties: {{Name: n}}}}"
                )
                .unwrap();
                answers.push((name, answer.clone()));
            }
        }
        place.write("pairs.yaml", &document);
        for width in ["1", "2"] {
            let output = place
                .command(&["dsc", "config", "get", "-f", "pairs.yaml", "-o", "json", "--width", width])
                .output()
                .unwrap();
            let result: Json = serde_json::from_str(&printed(&output)).unwrap_or_default();
            let states = result["results"].as_array().cloned().unwrap_or_default();
            let seen: Vec<(String, String)> = states.iter().map(answered).collect();
            assert_eq!(seen, answers, "{output:?}");
        }
    }
}

fn answered(instance: &Json) -> (String, String) {
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    (text(&instance["name"]), text(&instance["result"]["actualState"]["Seen"]))
}

/// Says which process it is.
const WHO: &str = "$this.Seen = [Environment]::ProcessId";

/// A call with secrets is alone with its module, and no other module's code runs there afterwards.
#[test]
fn a_call_with_secrets_shares_its_process_with_its_module_alone() {
    let Some(place) = Place::new("a_call_with_secrets_shares_its_process_with_its_module_alone") else { return };
    for module in ["One", "Other"] {
        place.class(module, WHO);
    }
    let instance = |name: &str, module: &str, login: bool| {
        let login = if login { ", Login: \"[parameters('login')]\"" } else { "" };
        format!("- {{name: {name}, type: {module}/{module}, properties: {{Name: {name}{login}}}}}\n")
    };
    let document = format!(
        "parameters: {{login: {{type: secureObject}}}}\nresources:\n{}{}{}{}{}",
        instance("a", "Other", false),
        instance("b", "One", true),
        instance("c", "One", false),
        instance("d", "Other", false),
        instance("e", "One", true)
    );
    place.write("secret.yaml", &document);
    let login = r#"{"parameters": {"login": {"username": "u", "password": "p"}}}"#;
    let arguments = ["dsc", "config", "--parameters", login, "get", "-f", "secret.yaml", "-o", "json", "--width", "1"];
    let output = place.command(&arguments).output().unwrap();
    let result: Json = serde_json::from_str(&printed(&output)).unwrap_or_default();
    let seen: Vec<(String, String)> =
        result["results"].as_array().cloned().unwrap_or_default().iter().map(answered).collect();
    let pid = |name: &str| &seen.iter().find(|(known, _)| known == name).unwrap().1;
    assert_eq!(seen.len(), 5, "{output:?}");
    assert_eq!((pid("b"), pid("a")), (pid("e"), pid("d")), "each is kept");
    assert_ne!(pid("a"), pid("b"));
}
