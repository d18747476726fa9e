//! Secrets that a document states in the clear, for every kind of resource whose schema marks them: nothing that is printed or
//! kept has one, in any form that encoders write.
//!
//! A new way to carry out a resource, or to state a schema, does not compile here before it has a case.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value as Json, json};
use stead_core::manifest::{Implementation, SchemaSource};

use super::forms::{forms, within_json};
use super::{Place, answer};

/// Two texts as long as passwords are, with characters that each encoder writes in another way.
const SECRETS: [&str; 2] = ["tökén <1> & 'a'+\"b\"/c", "pässwörd {2} $x;`id` 'd'?e=f"];

/// A kind of resource.
struct Kind {
    name: &'static str,
    of: &'static str,
    /// Makes the resource, and returns properties with both secrets in the clear.
    make: fn(&Place) -> Json,
    needs_powershell: bool,
}

impl Kind {
    const fn new(name: &'static str, of: &'static str, make: fn(&Place) -> Json) -> Self {
        Self { name, of, make, needs_powershell: false }
    }

    const fn of_powershell(name: &'static str, of: &'static str, make: fn(&Place) -> Json) -> Self {
        Self { needs_powershell: true, ..Self::new(name, of, make) }
    }
}

const KINDS: [Kind; 12] = [
    Kind::new("built in", "Stead/Download", built_in),
    Kind::new("engine", "Microsoft.DSC/Group", group),
    Kind::new("schema in the manifest", "Kit/Embedded", embedded),
    Kind::new("schema by a program", "Kit/Printed", printed),
    Kind::new("resident", "Kit/Staying", staying),
    Kind::new("listed", "Kit/Listed", |place| adapted(place, true)),
    Kind::new("schema of the adapter", "Kit/Bare", |place| adapted(place, false)),
    Kind::new("manifest of an adapted resource", "Kit/Described", described),
    Kind::new("late", "Kit/Late", late),
    Kind::of_powershell("class", "Vault/Item", powershell),
    Kind::of_powershell("script with a MOF", "Vault/Scripted", with_login_alone),
    Kind::of_powershell("composite", "Vault/Both", with_login_alone),
];

/// The kinds that try an implementation.
fn kinds_of(implementation: &Implementation) -> &'static [&'static str] {
    match implementation {
        Implementation::InProcess => &["built in"],
        Implementation::Engine => &["engine", "composite"],
        Implementation::Command(resource) => match &resource.schema {
            Some(SchemaSource::Embedded(_)) | None => &["schema in the manifest", "resident"],
            Some(SchemaSource::Command { .. }) => &["schema by a program"],
        },
        Implementation::Adapted { .. } => {
            &["listed", "schema of the adapter", "manifest of an adapted resource", "class", "script with a MOF"]
        }
        Implementation::Late(_) => &["late"],
    }
}

#[test]
fn every_implementation_has_a_kind() {
    let names: BTreeSet<&str> = KINDS.iter().map(|kind| kind.name).collect();
    let tried = [Implementation::InProcess, Implementation::Engine, Implementation::Command(std::sync::Arc::default())];
    assert!(tried.iter().flat_map(kinds_of).all(|name| names.contains(name)));
}

fn schema() -> Json {
    let secret = json!({ "type": "string", "format": "password", "writeOnly": true });
    let login = json!({ "type": "object", "properties": { "user": { "type": "string" }, "password": secret } });
    let notes = json!({ "type": "array", "items": { "type": "string" } });
    let name = json!({ "type": "string" });
    let properties =
        json!({ "name": name, "size": { "type": "integer" }, "token": secret, "login": login, "notes": notes });
    json!({ "type": "object", "properties": properties })
}

/// Properties of which the machine has others, so that there is something to change.
fn properties() -> Json {
    json!({ "name": "a", "size": 1, "token": SECRETS[0], "login": { "user": "ann", "password": SECRETS[1] } })
}

fn without_schema(type_name: &str) -> Json {
    let read = json!({ "executable": "sh", "args": ["program.sh", "read"], "input": "stdin" });
    let set = json!({ "executable": "sh", "args": ["program.sh"], "input": "stdin", "return": "state" });
    let of = "https://aka.ms/dsc/schemas/v3/bundled/resource/manifest.json";
    json!({ "$schema": of, "type": type_name, "version": "1.0.0", "get": read, "set": set })
}

/// A program that answers a get with every form of the secrets that it was given, and a set with what it was given.
fn program(place: &Place) {
    let notes: Vec<String> = SECRETS.iter().flat_map(|secret| forms(secret)).collect();
    let state = json!({ "name": "a", "size": 2, "notes": notes });
    place.write("state.json", &state.to_string());
    place.write("program.sh", "cat > got\n[ \"$1\" = read ] || { cp got given; cat got; exit; }\ncat state.json\n");
}

fn manifest(place: &Place, name: &str, mut manifest: Json, member: &str, value: Json) {
    program(place);
    manifest[member] = value;
    place.write(name, &manifest.to_string());
}

fn embedded(place: &Place) -> Json {
    manifest(place, "a.dsc.resource.json", without_schema("Kit/Embedded"), "schema", json!({ "embedded": schema() }));
    properties()
}

fn printed(place: &Place) -> Json {
    place.write("schema.json", &schema().to_string());
    let prints = json!({ "command": { "executable": "cat", "args": ["schema.json"] } });
    manifest(place, "a.dsc.resource.json", without_schema("Kit/Printed"), "schema", prints);
    properties()
}

/// One that stays, and says every form also in its logs and on standard error.
fn staying(place: &Place) -> Json {
    let mut staying = without_schema("Kit/Staying");
    let resident = json!({ "executable": "python3", "args": ["staying.py"] });
    staying["metadata"] = json!({ "stead": { "resident": resident } });
    manifest(place, "a.dsc.resource.json", staying, "schema", json!({ "embedded": schema() }));
    place.write("staying.py", STAYING);
    properties()
}

const STAYING: &str = r#"
import json, sys
def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    id, params = request.get("id"), request["params"]
    if request["method"] == "initialize":
        say(id=id, result={"protocol": 1})
        continue
    with open("state.json") as file:
        state = json.load(file)
    for level in ("warning", "info", "verbose", "debug"):
        say(method="$/log", params={"id": id, "level": level, "message": " ".join(state["notes"])})
    print("\n".join(state["notes"]), file=sys.stderr, flush=True)
    if request["method"] == "set" and not params.get("whatIf"):
        with open("given", "w") as file:
            json.dump(params["properties"], file, ensure_ascii=False)
    say(id=id, result={"actual": state, "after": params["properties"]})
"#;

/// An adapter, and what it lists: with a schema of its own, or described by that of the adapter.
fn adapted(place: &Place, has_schema: bool) -> Json {
    let mut adapter = without_schema("Kit/Adapter");
    adapter["kind"] = "adapter".into();
    let list = json!({ "executable": "cat", "args": ["list.json"] });
    adapter["adapter"] = json!({ "list": list, "inputKind": "single" });
    adapter["validate"] = json!({ "executable": "echo", "args": ["{\"valid\": true}"], "input": "stdin" });
    let all = if has_schema { json!({ "type": "object" }) } else { schema() };
    manifest(place, "a.dsc.resource.json", adapter, "schema", json!({ "embedded": all }));
    let mut listed = json!({
        "type": if has_schema { "Kit/Listed" } else { "Kit/Bare" }, "kind": "resource", "version": "1.0.0",
        "capabilities": ["get", "set"], "path": "list.json", "directory": ".", "requireAdapter": "Kit/Adapter",
    });
    if has_schema {
        listed["schema"] = schema();
    }
    place.write("list.json", &listed.to_string());
    properties()
}

fn described(place: &Place) -> Json {
    let properties = adapted(place, false);
    place.write("list.json", "");
    let described = json!({
        "$schema": "https://aka.ms/dsc/schemas/v3/bundled/adaptedresource/manifest.json", "type": "Kit/Described",
        "kind": "resource", "version": "1.0.0", "capabilities": ["get", "set"], "requireAdapter": "Kit/Adapter",
        "path": "list.json", "schema": { "embedded": schema() },
    });
    place.write("b.dsc.adaptedResource.json", &described.to_string());
    properties
}

/// The document installs it itself.
fn late(place: &Place) -> Json {
    manifest(place, "kit.json", without_schema("Kit/Late"), "schema", json!({ "embedded": schema() }));
    properties()
}

/// A part of an address. Nobody listens there.
const CREDENTIAL: &str = "canary-secret-77";

fn built_in(_place: &Place) -> Json {
    json!({ "path": "f", "url": format!("http://ann:{CREDENTIAL}@127.0.0.1:9/f"), "timeout": 1, "checksum": format!("sha256:{:064}", 0) })
}

fn group(place: &Place) -> Json {
    json!({ "resources": [{ "name": "in", "type": "Kit/Embedded", "properties": embedded(place) }] })
}

fn powershell(place: &Place) -> Json {
    place.write("modules/Vault/Vault.psd1", MODULE);
    place.write("modules/Vault/Vault.psm1", CLASS);
    place.write("modules/Vault/DscResources/Scripted/Scripted.psm1", SCRIPT);
    place.write("modules/Vault/DscResources/Scripted/Scripted.schema.mof", MOF);
    place.write(
        "modules/Vault/DscResources/Both/Both.psd1",
        "@{ RootModule = 'Both.schema.psm1'; ModuleVersion = '1.0' }\n",
    );
    place.write("modules/Vault/DscResources/Both/Both.schema.psm1", COMPOSITE);
    json!({ "Name": "a", "Login": { "username": "ann", "password": SECRETS[1] }, "Token": SECRETS[0] })
}

fn with_login_alone(place: &Place) -> Json {
    let mut properties = powershell(place);
    properties.as_object_mut().unwrap().remove("Token");
    properties
}

const MODULE: &str = "@{ RootModule = 'Vault.psm1'; ModuleVersion = '1.0'; DscResourcesToExport = '*' }\n";
const CLASS: &str = "[DscResource()]
class Item {
    [DscProperty(Key)] [string] $Name
    [DscProperty()] [SecureString] $Token
    [DscProperty()] [PSCredential] $Login
    [DscProperty(NotConfigurable)] [string] $Note
    [Item] Get() { $this.Note = $this.Login.GetNetworkCredential().Password; return $this }
    [bool] Test() { return $false }
    [void] Set() { Write-Verbose -Verbose $this.Login.GetNetworkCredential().Password }
}
";
const MOF: &str = "[ClassVersion(\"1.0.0.0\")]
class Scripted : OMI_BaseResource
{
    [Key] String Name;
    [Write, EmbeddedInstance(\"MSFT_Credential\")] String Login;
};
";
const SCRIPT: &str = "function Get-TargetResource { param([string] $Name, [PSCredential] $Login)
    @{ Name = $Name; Login = $Login } }
function Test-TargetResource { param([string] $Name, [PSCredential] $Login) $false }
function Set-TargetResource { param([string] $Name, [PSCredential] $Login) }
Export-ModuleMember -Function *-TargetResource
";
const COMPOSITE: &str = "Configuration Both
{
    param([Parameter(Mandatory)] [string] $Name, [pscredential] $Login)
    Import-DscResource -ModuleName Vault
    Item First { Name = $Name; Login = $Login }
    Scripted Second { Name = $Name; Login = $Login }
}
";

/// The commands that are run with a document, in this order.
const COMMANDS: [&[&str]; 19] = [
    &["lint", "d.json"],
    &["graph", "d.json"],
    &["plan", "-v", "d.json"],
    &["plan", "-v", "-o", "json", "d.json"],
    &["plan", "--events", "d.json"],
    &["plan", "--out", "plan", "d.json"],
    &["show", "plan"],
    &["show", "-o", "json", "plan"],
    &["check", "-v", "-o", "yaml", "d.json"],
    &["config", "get", "-f", "d.json"],
    &["config", "test", "-f", "d.json"],
    &["config", "set", "-w", "-f", "d.json"],
    &["-l", "trace", "config", "test", "-f", "d.json"],
    &["apply", "-v", "-o", "json", "--max-unchanged-reruns", "0", "plan"],
    &["-l", "trace", "apply", "-v", "--record", "--runs", "runs", "--max-unchanged-reruns", "0", "d.json"],
    &["apply", "--events", "--max-unchanged-reruns", "0", "d.json"],
    &["config", "set", "-f", "d.json"],
    &["history", "--runs", "runs"],
    &["history", "--runs", "runs", "show", "-o", "json"],
];

fn document(kind: &Kind, properties: &Json) -> Json {
    let instance = json!({ "name": "x", "type": kind.of, "properties": properties });
    if kind.name != "late" {
        return json!({ "resources": [instance] });
    }
    let install = json!({ "set": "cp kit.json late.dsc.resource.json", "test": "test -e late.dsc.resource.json" });
    let mut late = instance;
    late["dependsOn"] = json!(["[resourceId('Stead/Command', 'install')]"]);
    let installed = json!({ "name": "install", "type": "Stead/Command", "properties": install });
    json!({ "directives": { "resourceDiscovery": "duringDeployment" }, "resources": [installed, late] })
}

/// Who finds a secret in a text of a kind.
struct Finder<'k> {
    kind: &'k Kind,
    forms: Vec<String>,
}

impl Finder<'_> {
    fn look(&self, place: &str, text: &str) {
        let found = self.forms.iter().find(|form| text.contains(form.as_str()));
        assert!(found.is_none(), "{}: {place} has {:?}\n{text}", self.kind.name, found.unwrap());
    }

    /// Everything that the program wrote.
    fn look_below(&self, folder: &Path) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                self.look_below(&path);
            } else {
                self.look(&path.display().to_string(), &String::from_utf8_lossy(&fs::read(&path).unwrap()));
            }
        }
    }
}

fn command(place: &Place, arguments: &[&str], pwsh: Option<&Path>) -> Command {
    let mut command = place.command(arguments);
    let path = pwsh.and_then(Path::parent).map(|folder| format!("{}:", folder.display())).unwrap_or_default();
    command.env("PATH", path + "/usr/bin:/bin").env("PSModulePath", place.path().join("modules"));
    command.env("DSC_RESOURCE_PATH", place.path()).env("STEAD_RECONCILE", "none");
    command
}

fn tried(kind: &Kind, pwsh: Option<&Path>) {
    let place = Place::new();
    let properties = (kind.make)(&place);
    place.write("d.json", &document(kind, &properties).to_string());
    let forms = SECRETS.iter().chain([&CREDENTIAL]).flat_map(|secret| forms(secret)).collect();
    let finder = Finder { kind, forms };
    let mut exits = Vec::new();
    for arguments in COMMANDS {
        let answer = answer(&mut command(&place, arguments, pwsh));
        finder.look(&arguments.join(" "), &format!("{}{}", answer.stdout, answer.stderr));
        exits.push((arguments.join(" "), answer.exit, answer.stderr));
    }
    for operation in [&["get"][..], &["test"], &["set", "-w"], &["set"]] {
        let arguments = [&["resource"], operation, &["-r", kind.of, "-f", "-"]].concat();
        let mut child = command(&place, &arguments, pwsh);
        let child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        child.stdin.take().unwrap().write_all(properties.to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        finder.look(&arguments.join(" "), &String::from_utf8_lossy(&[output.stdout, output.stderr].concat()));
    }
    let is_recorded = place.path().join("state/runs").read_dir().is_ok_and(|mut runs| runs.next().is_some());
    assert!(is_recorded, "{}: no run is recorded", kind.name);
    for kept in ["plan", "runs", "state"] {
        finder.look_below(&place.path().join(kept));
    }
    finder.look("plan", &fs::read_to_string(place.path().join("plan")).unwrap_or_default());
    let expected = [Some(2), Some(0)].map(|exit| exit.filter(|_| kind.name != "built in"));
    let of = |command: &str| exits.iter().find(|(name, ..)| name.starts_with(command)).unwrap();
    for (command, exit) in [("plan --out", expected[0]), ("apply -v", expected[1])] {
        let (_, found, said) = of(command);
        assert!(exit.is_none_or(|exit| exit == *found), "{}: {command}: {found}: {said}", kind.name);
    }
    if kind.of.starts_with("Kit/") {
        let given = fs::read_to_string(place.path().join("given")).unwrap();
        assert!(given.contains(&within_json(SECRETS[0])), "{}: {given}", kind.name);
    }
}

#[test]
fn no_kind_of_resource_shows_what_its_schema_marks() {
    let pwsh = stead_testkit::powershell("no_kind_of_resource_shows_what_its_schema_marks");
    let all = KINDS.iter().filter(|kind| pwsh.is_some() || !kind.needs_powershell);
    std::thread::scope(|scope| {
        for kind in all {
            scope.spawn(|| tried(kind, pwsh.as_deref()));
        }
    });
}
