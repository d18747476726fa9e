//! The server of `examples/server.yaml`: applied to a fresh machine and applied again, exported, and applied to another one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};

use crate::debian::Debian;

const TEST: &str = "a_server_is_one_document";

const DOCUMENT: &str = "/srv/server.yaml";
const PARAMETERS: &str = "/srv/parameters.json";
const EXPORTED: &str = "/srv/exported.yaml";

/// The packages that the document installs.
const PACKAGES: [&str; 4] = ["nginx-light", "cron", "logrotate", "sudo"];

/// A machine without signatures of its repository, whose packages start nothing by themselves.
const PREPARED: [(&str, &str); 3] = [
    (
        "/etc/apt/apt.conf.d/90unsigned",
        "Acquire::AllowInsecureRepositories \"true\";\nAPT::Get::AllowUnauthenticated \"true\";\n",
    ),
    ("/etc/apt/sources.list", ""),
    ("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n"),
];

#[test]
fn a_server_is_one_document() {
    if !stead_testkit::is_root(TEST) {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("server");
    let makes = stead_testkit::asked("STEAD_BOOTS").is_some();
    let fresh = match machine(&folder.join("fresh"), makes) {
        Ok(fresh) => fresh,
        Err(reason) => return stead_testkit::skip(TEST, &reason),
    };
    let server = started(&fresh, &folder.join("server"));
    is_set_up(&server);
    changes_only_what_differs(&server);
    let exported = export(&server);
    shows_no_secret(&server);
    let twin = started(&fresh, &folder.join("twin"));
    becomes_the_same(&twin, &exported);
}

/// A machine that nothing was done with, and the packages that the document asks for in a repository of its own.
fn machine(folder: &Path, makes: bool) -> Result<Debian, String> {
    let fresh = Debian::of(folder, makes)?;
    if !fresh.root("/srv/mirror").is_dir() {
        fresh.mirror(&PACKAGES)?;
    }
    Ok(fresh)
}

/// A copy of it that is on, with the program and the document.
fn started(fresh: &Debian, folder: &Path) -> Debian {
    let mut machine = fresh.copy(folder);
    machine.install(Path::new(env!("CARGO_BIN_EXE_stead")), "/usr/local/bin/stead");
    for (path, text) in PREPARED {
        machine.write(path, text);
    }
    machine.make_executable("/usr/sbin/policy-rc.d");
    let document = fs::read_to_string(stead_testkit::repository().join("examples/server.yaml")).unwrap();
    machine.write(DOCUMENT, &document);
    // The kernel is that of the host: its parameters are not changed.
    let swappiness: u32 = fs::read_to_string("/proc/sys/vm/swappiness").unwrap().trim().parse().unwrap();
    let parameters = json!({"parameters": {"mirror": "file:///srv/mirror", "swappiness": swappiness}});
    machine.write(PARAMETERS, &parameters.to_string());
    machine.boot();
    machine.wait_until_started();
    machine
}

/// The plan comes true, the second time there is nothing to do, and the machine itself agrees.
fn is_set_up(server: &Debian) {
    let (planned, code) = run(server, &["plan", DOCUMENT]);
    assert_eq!(code, Some(2), "{planned:#}");
    let (applied, code) = run(server, &["apply", DOCUMENT]);
    assert_eq!(code, Some(0), "{applied:#}");
    comes_true(&planned, &applied);
    nothing_to_do(server, DOCUMENT);

    let groups = server.ok(&["id", "-nG", "ada"]);
    assert_eq!(groups.split_whitespace().collect::<Vec<_>>(), ["ada", "adm", "operators"]);
    server.ok(&["visudo", "-cf", "/etc/sudoers.d/operators"]);
    server.ok(&["systemctl", "is-active", "nginx", "cron"]);
    server.ok(&["systemctl", "is-enabled", "nginx", "cron"]);
    let status =
        server.ok(&["dpkg-query", "-W", "-f", "${db:Status-Status} ", "nginx-light", "cron", "logrotate", "sudo"]);
    assert_eq!(status.trim(), ["installed"; 4].join(" "));
    assert_eq!(server.ok(&["uname", "-n"]).trim(), "www.example.com");
    assert!(server.ok(&["getent", "hosts", "web"]).starts_with("127.0.1.1"));
    server.ok(&["logrotate", "--debug", "/etc/logrotate.d/site"]);
    assert!(page(server, 80).contains("<h1>It stands</h1>"));
}

/// A change of the page changes the page; a change of the port restarts the server once.
fn changes_only_what_differs(server: &Debian) {
    let started = || server.ok(&["systemctl", "show", "nginx", "-p", "MainPID"]);
    let former = started();
    let (applied, code) = run(server, &["apply", DOCUMENT, "--set", "title=It stands still"]);
    assert_eq!((code, changed(&applied)), (Some(0), vec!["page".to_owned()]), "{applied:#}");
    assert_eq!(started(), former, "it was not restarted");
    let (applied, code) = run(server, &["apply", DOCUMENT, "--set", "title=It stands still", "--set", "port=8080"]);
    assert_eq!(
        (code, changed(&applied)),
        (Some(0), ["site", "accepted", "nginx"].map(str::to_owned).to_vec()),
        "{applied:#}"
    );
    assert_ne!(started(), former, "it was restarted");
    assert!(page(server, 8080).contains("<h1>It stands still</h1>"));
    run(server, &["apply", DOCUMENT]);
    nothing_to_do(server, DOCUMENT);
}

/// Exports the machine as a document, which has nothing to do where it comes from.
fn export(server: &Debian) -> String {
    let types = ["AptRepository", "Package", "Group", "User", "Hostname", "Host", "Sysctl", "Limits", "Service"];
    let exported = server.ok(&[&["stead", "export"][..], &types].concat());
    server.write(EXPORTED, &exported);
    nothing_to_do(server, EXPORTED);
    exported
}

/// The exported document makes another machine the same, as far as it was exported.
fn becomes_the_same(twin: &Debian, exported: &str) {
    twin.write(EXPORTED, exported);
    let (applied, code) = run(twin, &["apply", EXPORTED]);
    assert_eq!(code, Some(0), "{applied:#}");
    nothing_to_do(twin, EXPORTED);
    twin.ok(&["systemctl", "is-active", "nginx", "cron"]);
    assert_eq!(twin.ok(&["uname", "-n"]).trim(), "www.example.com");
    assert!(page(twin, 80).contains("nginx"));
}

/// Values that resources know to be secret are neither shown nor recorded even where the document has them in the
/// clear: not when they change, when it fails, when it is exported, or in the history.
fn shows_no_secret(server: &Debian) {
    let instance = |kind: &str, name: &str, properties: Json| json!({"name": name, "type": format!("Stead/{kind}"), "properties": properties});
    let document = |number: usize, more: Option<Json>| {
        let user = json!({"name": "secret", "passwordHash": format!("$6$CanarySalt$CanaryHash{number}")});
        let uri = format!("https://CanaryUser:CanaryWord{number}@example.com/debian");
        let repository = json!({"name": "secret", "uris": [uri], "suites": ["./"], "enabled": false});
        let own = [instance("User", "secret", user), instance("AptRepository", "secret", repository)];
        json!({"resources": own.into_iter().chain(more).collect::<Vec<_>>()}).to_string()
    };
    let failing =
        instance("User", "other", json!({"name": "other", "uid": 0, "passwordHash": "$6$CanarySalt$CanaryHash3"}));
    server.write("/srv/first.json", &document(1, None));
    server.write("/srv/second.json", &document(2, None));
    server.write("/srv/failing.json", &document(3, Some(failing)));
    server.write("/srv/show.sh", SHOW);
    server.run(&["sh", "/srv/show.sh"]);
    let shown = server.read("/srv/shown").unwrap();
    for text in
        ["Stead/User 'secret'", "passwordHash", "attempt 1 at", "already used by the user 'root'", "inDesiredState"]
    {
        assert!(shown.contains(text), "the search is blind: {text} is not in {shown}");
    }
    assert!(!shown.contains("Usage: "), "a command is misspelt");
    let lines: Vec<&str> = shown.lines().filter(|line| line.contains("Canary")).collect();
    assert!(lines.is_empty(), "{lines:#?}");
    assert!(server.read("/etc/shadow").unwrap().contains("CanaryHash3"), "it is on the machine");
    server.ok(&["sh", "-c", "! grep -r Canary /var/lib/stead/runs"]);
}

/// Every command in every form, for two documents after each other and one that fails.
const SHOW: &str = r"
exec > /srv/shown 2>&1
for document in first second failing; do
  for form in -v '--output json' '--output yaml'; do
    stead --trace-level trace plan $form /srv/$document.json
    stead --trace-level trace check $form /srv/$document.json
  done
  stead --trace-level trace apply -v --record /srv/$document.json
  stead history show last
  stead history show --output json last
  stead apply --events /srv/$document.json
  stead --trace-level trace config get --file /srv/$document.json
  stead --trace-level trace config test --file /srv/$document.json
  for form in '' '--output json'; do
    stead --trace-level trace get $form user secret
    stead --trace-level trace get $form aptrepository secret
    stead --trace-level trace export $form user aptrepository
  done
done
stead history
stead history --output json
";

/// Runs stead, and returns what it printed and its exit code.
fn run(machine: &Debian, arguments: &[&str]) -> (Json, Option<i32>) {
    let parameters: &[&str] = if arguments.contains(&DOCUMENT) { &["--parameters-file", PARAMETERS] } else { &[] };
    let output = machine.run(&[&["stead"], arguments, &["--output", "json"], parameters].concat());
    let printed = serde_json::from_slice(&output.stdout);
    let printed = printed.unwrap_or_else(|_| panic!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)));
    (printed, output.status.code())
}

/// The status of each instance.
fn statuses(report: &Json) -> BTreeMap<String, String> {
    let text = |of: &Json| of.as_str().unwrap_or_default().to_owned();
    let status = |each: &Json| (text(&each["name"]), format!("{} {}", text(&each["status"]), text(&each["action"])));
    report["instances"].as_array().unwrap().iter().map(status).collect()
}

/// The names of the instances that changed.
fn changed(report: &Json) -> Vec<String> {
    let all = report["instances"].as_array().unwrap().iter();
    all.filter(|each| each["status"] == "changed").map(|each| each["name"].as_str().unwrap().to_owned()).collect()
}

/// Every instance ends as the plan says, but where it says that nobody knows yet.
fn comes_true(planned: &Json, applied: &Json) {
    let applied = statuses(applied);
    for (name, status) in statuses(planned).iter().filter(|(_, status)| !status.starts_with("unknown")) {
        assert_eq!(applied.get(name), Some(status), "{name}");
    }
}

/// Neither a plan nor an apply finds a difference.
fn nothing_to_do(machine: &Debian, document: &str) {
    for command in ["plan", "apply", "check"] {
        let (report, code) = run(machine, &[command, document]);
        assert_eq!((code, &report["changes"]), (Some(0), &json!(false)), "{command}: {report:#}");
    }
}

/// Returns the answer of the web server on a port.
fn page(machine: &Debian, port: u16) -> String {
    let request =
        r"exec 3<>/dev/tcp/127.0.0.1/$0; printf 'GET / HTTP/1.0\r\nHost: www.example.com\r\n\r\n' >&3; cat <&3";
    machine.ok(&["bash", "-c", request, &port.to_string()])
}
