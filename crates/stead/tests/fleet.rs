//! Many machines, with an `ssh` of the test in place of the real one: each machine is a folder, in which a shell runs what is sent.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "fleet/cut.rs"]
mod cut;
#[path = "support/forms.rs"]
mod forms;
#[path = "fleet/plans.rs"]
mod plans;
#[path = "fleet/processors.rs"]
mod processors;
#[path = "fleet/programs.rs"]
mod programs;
#[path = "fleet/root.rs"]
mod root;
#[path = "fleet/server.rs"]
mod server;
#[path = "support/terminal.rs"]
mod terminal;
#[path = "fleet/vaults.rs"]
mod vaults;
#[path = "fleet/words.rs"]
mod words;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value as Json;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_stead");

/// What `ssh` is here. Its arguments are in `log`; `gone` is out of reach, and other names can be made to be hostile.
const SSH: &str = r#"#!/bin/sh
echo "$*" >>"$TEST_ROOT/log"
while [ "$1" != -- ]; do shift; done
host=$2; command=$3
case $host in
gone*) echo "ssh: connect to host $host port 22: Connection refused" >&2; exit 255;;
garbage*) head -c 100000 /dev/urandom; exit 0;;
escape*) printf 'stead-hosts found\n{"instances":[{"name":"\\u001b[2Jx","type":"A/B","status":"failed","message":"\\u001b]0;t\\u0007"}]}'
  printf '\033[2Jhello\n' >&2; exit 1;;
flood*) echo 'stead-hosts found'; yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; exit 0;;
noise*) echo 'stead-hosts found'; yes '{"event":"x","instance":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}' >&2; exit 0;;
mute*) echo 'stead-hosts found'; head -n 1 >/dev/null; exit 0;;
two*) echo 'stead-hosts found'; head -n 1 >/dev/null; echo '{"instances":[]}'; exit 2;;
behind*) sleep infinity & echo "ssh: no route to $host" >&2; exit 255;;
long*) echo 'stead-hosts found'; head -c 3000000 /dev/zero | tr '\000' a >&2; sleep infinity;;
lies*) echo 'stead-hosts kept'; head -n 1 >>"$TEST_ROOT/lies.order"; echo '{"instances":[]}'; exit 0;;
wants*) echo 'stead-hosts send ../../etc'; cat >>"$TEST_ROOT/wants.got"; exit 0;;
names*) echo 'stead-hosts found'; head -n 1 >/dev/null; echo '{"event":"x","machine":"web1","instance":"y"}' >&2
  echo '{"name":"web1","outcome":"unchanged","instances":[{"name":"web1:\n  ","type":"A/B","status":"failed","message":"x\nweb1:"}]}'; exit 1;;
after*) echo 'stead-hosts found'; head -n 1 >/dev/null; echo '{"instances":[]}'; echo '{"instances":[{"name":"late","type":"A/B","status":"failed"}]}'
  echo '{"plan":"late"}'; exit 0;;
silent*) touch "$TEST_ROOT/silent"; exec sleep infinity;;
echoes*) echo 'stead-hosts found'; head -n 1 >&2
  echo '{"event":"x","instance":"\u0068unter2-of-echo"}' >&2; echo '{"why":"\u0068unter2-of-echo"}' >&2
  echo '{"instances":[{"name":"x","type":"A/B","status":"failed","message":"\u0068unter2-of-echo"}]}'; exit 1;;
esac
home=$TEST_ROOT/$host
[ -d "$home" ] || mkdir -p "$home"
cd "$home"
exec env -i HOME="$home" STEAD_STATE="$home/state" TEST_ROOT="$TEST_ROOT" PATH="$TEST_PATH" sh -c "$command"
"#;

struct World(TempDir);

impl World {
    /// A world in which machines have a stead or not.
    fn new(has_stead: bool) -> Self {
        let world = Self(tempfile::tempdir().unwrap());
        for folder in ["bin", "there"] {
            fs::create_dir(world.path(folder)).unwrap();
        }
        world.program("bin/ssh", SSH);
        if has_stead {
            symlink(PROGRAM, world.path("there/stead")).unwrap();
        }
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Writes a program. `VERSION` in it is that of this stead.
    fn program(&self, name: &str, text: &str) {
        let _ = fs::remove_file(self.path(name));
        self.write(name, &text.replace("VERSION", env!("CARGO_PKG_VERSION")));
        fs::set_permissions(self.path(name), PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// Has machines call this in place of stead.
    fn pretends(&self, answers: &str) {
        self.program(
            "there/stead",
            &format!("#!/bin/sh\n[ \"$1\" = --version ] && {{ echo 'stead VERSION'; exit; }}\n{answers}"),
        );
    }

    /// Gives the caller a vault: a program to which the name of a secret is `$2`.
    fn vault(&self, program: &str) {
        self.vault_in("bin", program);
    }

    fn vault_in(&self, folder: &str, program: &str) {
        let manifest = "{type: Test/Vault, version: 1.0.0, secret: {executable: ./vault.sh, args: [{nameArg: --name}, {vaultArg: --vault}]}}";
        self.write(&format!("{folder}/vault.dsc.extension.yaml"), manifest);
        self.program(&format!("{folder}/vault.sh"), &format!("#!/bin/sh\n{program}\n"));
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(words.split(' ')).current_dir(self.0.path()).stdin(Stdio::null());
        command.env_clear().env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()));
        command.env("HOME", self.path("home")).env("STEAD_STATE", self.path("own-state")).env("NO_COLOR", "1");
        command.env("TEST_ROOT", self.0.path());
        command.env("TEST_PATH", format!("{}:/usr/bin:/bin", self.path("there").display()));
        // Of the environment of this user `ssh` gets what it needs; here the test says the rest.
        command.arg("--env").arg("TEST_*");
        command
    }

    fn stead(&self, words: &str) -> Answer {
        Answer::of(self.command(words).output().unwrap())
    }

    fn with_input(&self, words: &str, input: &str) -> Answer {
        let mut command = self.command(words);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Answer::of(child.wait_with_output().unwrap())
    }
}

struct Answer {
    code: i32,
    out: String,
    errors: String,
}

impl Answer {
    fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code().unwrap_or(-1), out: text(output.stdout), errors: text(output.stderr) }
    }

    /// What it printed, without how long it took.
    fn shown(&self) -> String {
        let untimed = |line: &str| {
            line.rsplit_once(" in ").filter(|(_, time)| time.ends_with(" s")).map(|(head, _)| head.to_owned())
        };
        self.out.lines().map(|line| untimed(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
    }
}

const SITE: &str = "parameters: {text: {type: string, defaultValue: hello}}
resources:
- {name: motd, type: Stead/File, properties: {path: motd, content: \"[parameters('text')]\"}}
- {name: page, type: Stead/File, properties: {path: page, source: page.html}}
";

const HOSTS: &str = "layers: [{where: role=db, parameters: {text: data, other: 1}}]
machines:
  web1: {labels: {role: web}}
  web2: {labels: {role: web}}
  db1: {labels: {role: db}}
";

fn site(has_stead: bool) -> World {
    let world = World::new(has_stead);
    world.write("site.yaml", SITE);
    world.write("page.html", "<p>\n");
    world.write("hosts.yaml", HOSTS);
    world
}

#[test]
fn many_machines_are_planned_applied_and_checked_and_drift_is_repaired() {
    let world = site(true);
    let plan = world.stead("plan site.yaml --hosts hosts.yaml");
    let expected = "web1, web2:
  + Stead/File 'motd'  to be created
      + content: \"hello\"
  + Stead/File 'page'  to be created
      + content: \"<p>\\n\"
db1:
  + Stead/File 'motd'  to be created
      + content: \"data\"
  + Stead/File 'page'  to be created
      + content: \"<p>\\n\"
Plan for 3 machines: 3 to change
";
    assert_eq!((plan.code, plan.shown().as_str()), (2, expected), "{}", plan.errors);
    assert!(!world.path("web1/motd").exists());
    let apply = world.stead("apply site.yaml --hosts hosts.yaml --where role=web");
    assert_eq!(
        (apply.code, apply.shown().ends_with("Applied on 2 machines: 2 changed\n")),
        (0, true),
        "{}",
        apply.errors
    );
    assert_eq!((world.read("web1/motd"), world.read("web2/page")), ("hello".to_owned(), "<p>\n".to_owned()));
    let again = world.stead("apply site.yaml --hosts hosts.yaml --where role=web");
    assert_eq!((again.code, again.shown().as_str()), (0, "Applied on 2 machines: 2 unchanged\n"));
    world.write("web2/motd", "other");
    let check = world.stead("check site.yaml --hosts hosts.yaml --where role=web --brief");
    let expected = "web2:\n  ~ Stead/File 'motd'  drifted\nCheck of 2 machines: 1 drifted · 1 in desired state\n";
    assert_eq!((check.code, check.shown().as_str()), (2, expected), "{}", check.errors);
    let repaired = world.stead("apply site.yaml --host web2 --brief");
    assert_eq!((repaired.code, world.read("web2/motd")), (0, "hello".to_owned()), "{}", repaired.errors);
    // What is on the command line wins over the inventory.
    let set = world.stead("apply site.yaml --hosts hosts.yaml --set text=set -o json");
    let report: Json = serde_json::from_str(&set.out).unwrap();
    assert_eq!((set.code, world.read("db1/motd")), (0, "set".to_owned()), "{}", set.errors);
    assert_eq!(report["totals"], serde_json::json!({ "changed": 3 }));
    assert_eq!(report["machines"][2]["name"], "db1");
    assert_eq!(report["machines"][2]["report"]["totals"]["created"], 2);
}

#[test]
fn a_machine_without_stead_gets_the_program_once() {
    let world = site(false);
    let first = world.stead("apply site.yaml --host web1");
    assert_eq!((first.code, world.read("web1/motd")), (0, "hello".to_owned()), "{}{}", first.out, first.errors);
    let folder = world.path("web1/.cache/stead-programs");
    let names = || fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let [program] = names().try_into().unwrap();
    let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    let kept = inode(&program);
    assert_eq!(world.stead("check site.yaml --host web1").code, 0);
    assert_eq!(inode(&program), kept);
    // What was changed there is not run.
    fs::write(&program, "#!/bin/sh\ntouch \"$HOME/pwned\"\n").unwrap();
    let again = world.stead("check site.yaml --host web1");
    assert_eq!((again.code, world.path("web1/pwned").exists()), (0, false), "{}", again.errors);
    // Nor is anything where the folder is a link.
    fs::create_dir_all(world.path("web2/.cache")).unwrap();
    fs::create_dir(world.path("elsewhere")).unwrap();
    symlink(world.path("elsewhere"), world.path("web2/.cache/stead-programs")).unwrap();
    let refused = world.stead("check site.yaml --host web2");
    let expected = "web2:\n  failed: cannot use the directory stead-programs in its cache directory: it must";
    assert_eq!((refused.code, refused.shown().starts_with(expected)), (1, true), "{}", refused.out);
    assert_eq!(fs::read_dir(world.path("elsewhere")).unwrap().count(), 0);
}

#[test]
fn the_first_failure_halts_and_what_was_not_begun_is_said() {
    let world = site(true);
    let names = "machines: {a: null, gone: null, b: null, c: null}";
    world.write("hosts.yaml", names);
    let halted = world.stead("apply site.yaml --hosts hosts.yaml --at-once 1 --halt-after 1 --brief");
    let expected = "a:
  + Stead/File 'motd'  created
  + Stead/File 'page'  created
gone:
  unreachable: ssh: connect to host gone port 22: Connection refused
b, c:
  not begun
Applied on 4 machines: 1 changed · 1 unreachable · 2 not begun
";
    assert_eq!((halted.code, halted.shown().as_str()), (1, expected), "{}", halted.errors);
    assert!(!world.path("b").exists());
    let rest = world.stead("apply site.yaml --hosts hosts.yaml --brief");
    assert!(rest.shown().ends_with("Applied on 4 machines: 2 changed · 1 unchanged · 1 unreachable\n"), "{}", rest.out);
}

#[test]
fn connections_are_tried() {
    let world = site(true);
    world.write("hosts.yaml", "machines: {a: {labels: {role: web}}, gone: null}");
    let tried = world.stead("hosts --check");
    let expected = "Name  Address  Labels    Connection
------------------------------------------------------------------------------------
a     a        role=web  ok
gone  gone               ssh: connect to host gone port 22: Connection refused
";
    let lines = |text: &str| text.lines().filter(|line| !line.starts_with("--")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!((tried.code, lines(&tried.out)), (1, lines(expected)), "{}", tried.errors);
    let data: Json = serde_json::from_str(&world.stead("hosts --check -o json").out).unwrap();
    let reached = |at: usize| &data["machines"][at]["reached"];
    assert_eq!((reached(0), reached(1)), (&Json::Bool(true), &Json::Bool(false)));
    assert_eq!(world.stead("hosts --check --where role=web").code, 0);
}

#[test]
fn hostile_machines_harm_nobody() {
    let world = site(true);
    world.write("hosts.yaml", "machines: {garbage: null, escape: null, flood: null, noise: null, mute: null, two: null, behind: null, web1: null}");
    let apply = world.stead("apply site.yaml --hosts hosts.yaml --brief");
    assert_eq!((apply.code, world.read("web1/motd")), (1, "hello".to_owned()));
    let all = apply.out.clone() + &apply.errors;
    assert!(!all.contains(|c: char| c.is_control() && c != '\n'), "{all:?}");
    for said in [
        "garbage:\n  failed: unexpected output before stead started\n",
        "flood, noise:\n  failed: it sent more than 64 MiB\n",
        "mute:\n  failed: it sent no report that can be read\n",
        "behind:\n  unreachable: ssh: no route to behind\n",
    ] {
        assert!(all.contains(said), "{all}");
    }
    assert!(apply.shown().ends_with("Applied on 8 machines: 1 changed · 6 failed · 1 unreachable\n"), "{all}");
    let check = world.stead("check site.yaml --host mute");
    assert_eq!(
        (check.code, check.shown().as_str()),
        (1, "mute:\n  failed: it sent no report that can be read\nCheck of 1 machine: 1 failed\n")
    );
    for name in
        ["-oProxyCommand=touch${IFS}pwned", "a b", "$(touch pwned)", "x;touch pwned", "@", "-l@web1", "a\u{1b}[2J"]
    {
        let refused = Answer::of(world.command("check site.yaml").arg(format!("--host={name}")).output().unwrap());
        assert_eq!(refused.code, 3, "{name}: {}", refused.errors);
        assert!(!refused.errors.contains('\u{1b}'), "{}", refused.errors);
    }
    assert!(!world.path("pwned").exists());
}

/// What a machine says of itself counts for itself alone, and only up to its end.
#[test]
fn a_machine_speaks_for_itself_and_hears_of_nobody_else() {
    let world = site(true);
    world.write("site.yaml", "parameters: {token: {type: secureString}}\nresources: []\n");
    let machine = |name: &str| format!("{name}: {{parameters: {{token: hunter2-of-{name}}}}}");
    let machines = ["long", "lies", "wants", "names", "after", "web1"].map(machine).join(", ");
    world.write("hosts.yaml", &format!("machines: {{{machines}}}"));
    let apply = world.stead("apply site.yaml --hosts hosts.yaml -o json --events");
    let report: Json = serde_json::from_str(&apply.out).unwrap();
    let outcome = |name: &str| {
        let mut found = report["machines"].as_array().unwrap().iter().filter(|machine| machine["name"] == name);
        let (machine, other) = (found.next().unwrap(), found.next());
        assert!(other.is_none(), "{report}");
        format!("{}: {}", machine["outcome"].as_str().unwrap(), machine["message"].as_str().unwrap_or("-"))
    };
    assert_eq!(outcome("long"), "failed: it sent a line of more than 1 MiB");
    assert_eq!(outcome("wants"), "failed: unexpected output before stead started");
    for (name, expected) in
        [("lies", "unchanged: -"), ("names", "failed: -"), ("after", "unchanged: -"), ("web1", "unchanged: -")]
    {
        assert_eq!(outcome(name), expected, "{report}");
    }
    assert_eq!((apply.code, report["totals"]["failed"].as_u64()), (1, Some(3)), "{report}");
    assert!(
        apply.errors.contains(r#""machine":"names""#) && !apply.out.contains("late"),
        "{}{}",
        apply.errors,
        apply.out
    );
    // Of the event that says that it is of `web1`, and of those of `web1` itself, each has its machine.
    assert!(
        !apply.errors.lines().any(|line| line.contains("web1") && line.contains(r#""event":"x""#)),
        "{}",
        apply.errors
    );
    let orders = world.read("lies.order");
    assert!(orders.contains("hunter2-of-lies") && orders.matches("hunter2").count() == 1, "{orders}");
    assert_eq!(world.read("wants.got"), "");
    let text = world.stead("apply site.yaml --host names --set token=x");
    assert!(!text.out.lines().any(|line| line.starts_with("web1")), "{}", text.out);
}

#[test]
fn secrets_are_in_the_pipe_alone() {
    let world = site(true);
    world.write(
        "site.yaml",
        "parameters: {token: {type: secureString}}
resources:
- name: look
  type: Stead/Command
  properties:
    set: 'cat /proc/*/cmdline /proc/*/environ >seen 2>/dev/null; echo done >done'
    test: 'test -e done'
- {name: secret, type: Stead/File, properties: {path: secret, content: \"[parameters('token')]\"}}
",
    );
    world.write(
        "hosts.yaml",
        "machines: {web1: {parameters: {token: kept-in-the-pipe-of-web1}}, echoes: {parameters: {token: kept-in-the-pipe-of-echo}}}",
    );
    let apply = world.stead("apply site.yaml --hosts hosts.yaml -v");
    assert_eq!(
        (apply.code, world.read("web1/secret").as_str()),
        (1, "kept-in-the-pipe-of-web1"),
        "{}{}",
        apply.out,
        apply.errors
    );
    let seen = fs::read(world.path("web1/seen")).unwrap();
    assert!(!seen.is_empty() && !String::from_utf8_lossy(&seen).contains("kept-in-the-pipe"));
    let json = world.stead("apply site.yaml --hosts hosts.yaml -o json --events");
    for text in [&apply.out, &apply.errors, &json.out, &json.errors, &world.read("log")] {
        assert!(!text.contains("kept-in-the-pipe"), "{text}");
    }
    assert!(json.errors.contains("\"machine\":\"web1\""), "{}", json.errors);
}

#[test]
fn where_nothing_runs_yet_the_end_is_at_once() {
    let world = site(true);
    let command = &mut world.command("check site.yaml --host silent");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    stead_testkit::until(|| world.path("silent").exists().then_some(()));
    let began = std::time::Instant::now();
    let signalled = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(signalled.success());
    let answer = Answer::of(child.wait_with_output().unwrap());
    // Otherwise what is asked to end gets minutes.
    assert!(began.elapsed() < std::time::Duration::from_secs(30));
    assert_eq!((answer.code, answer.shown().as_str()), (6, "silent:\n  not begun\nCheck of 1 machine: 1 not begun\n"));
}

#[test]
fn at_a_terminal_there_is_a_line_for_each_machine_under_way() {
    let world = site(true);
    let waits = "resources:
- {name: one, type: Stead/Command, properties: {set: 'while [ ! -e go ]; do sleep 0.05; done', test: 'test -e go'}}
- {name: two, type: Stead/File, properties: {path: two, content: x}}
";
    world.write("site.yaml", waits);
    let mut command = world.command("apply site.yaml --host web1 --host web2 --yes --width 1");
    command.env("TERM", "xterm");
    let mut terminal = terminal::AtTerminal::run(command);
    let seen = terminal.until("  web1  0/2  Stead/Command:one  1 s");
    assert!(seen.contains("web2  connecting"), "{seen}");
    for name in ["web1", "web2"] {
        world.write(&format!("{name}/go"), "");
    }
    let (screen, code) = terminal.ends();
    assert_eq!(code, Some(0), "{screen}");
    let last = screen.rsplit_once("\u{1b}[2K").unwrap().1;
    assert!(last.starts_with("web1, web2:") || last.starts_with("\rweb1, web2:"), "{last:?}");
    // Nobody else gets such a line.
    assert!(!world.stead("apply site.yaml --host web1").errors.contains("connecting"));
}

#[test]
fn a_machine_is_named_once() {
    let world = site(true);
    let check = world.stead("check site.yaml --host web1 --host web1 --brief");
    assert!(check.shown().ends_with("Check of 1 machine: 1 drifted\n"), "{}{}", check.out, check.errors);
    let refused = world.stead("check site.yaml --host a@web1 --host b@web1");
    let expected = "error: 'web1' is named with more than one user\nhelp: name each machine once\n";
    assert_eq!((refused.code, refused.errors.as_str()), (3, expected));
}

#[test]
fn the_end_of_its_input_ends_a_run_at_the_next_safe_point() {
    let world = site(true);
    world.write(
        "site.yaml",
        "resources:
- {name: one, type: Stead/Command, properties: {set: 'touch begun; sleep 600', test: 'false'}}
- {name: two, type: Stead/File, dependsOn: [\"[resourceId('Stead/Command', 'one')]\"], properties: {path: two, content: x}}
",
    );
    assert_eq!(world.stead("bundle site.yaml -o site.bundle").code, 0);
    let bundle = fs::read(world.path("site.bundle")).unwrap();
    let order = serde_json::json!({
        "protocol": 3, "bundle": bundle.len(), "work": {"document": {
            "operation": "apply", "identity": "name:test", "parameters": {"parameters": {}},
            "only": [], "skip": [], "width": null, "systemRoot": null, "reconcile": {}, "record": null,
        }},
    });
    let mut there = Command::new(PROGRAM);
    there.arg("remote").env("HOME", world.0.path()).env("STEAD_STATE", world.path("state"));
    let mut child = there.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(&[format!("{order}\n").as_bytes(), &bundle].concat()).unwrap();
    stead_testkit::until(|| world.path("begun").exists().then_some(()));
    drop(pipe);
    assert_eq!(child.wait().unwrap().code(), Some(6));
    assert!(!world.path("two").exists());
    // What is not an order, or of another version, is refused, and nothing of it is shown.
    for wrong in ["{\"token\": \"hunter2\"}".to_owned(), order.to_string().replace("\"protocol\":3", "\"protocol\":9")]
    {
        let mut child = there.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(wrong.as_bytes()).unwrap();
        let answer = Answer::of(child.wait_with_output().unwrap());
        assert_eq!((answer.code, answer.errors.contains("hunter2")), (1, false), "{}", answer.errors);
        let is_version = wrong.contains("protocol");
        assert_eq!(answer.errors.contains("unsupported protocol version 9"), is_version, "{}", answer.errors);
    }
}

#[test]
fn five_hundred_machines_are_readable() {
    let world = site(true);
    // Each answers as a machine that differs in one of two ways would.
    world.pretends(
        r#"head -n 1 >/dev/null
case $HOME in *7) exit 3;; esac
echo '{"changes":true,"instances":[{"name":"motd","type":"Stead/File","status":"drifted","action":"change","changes":[]}]}'
exit 2
"#,
    );
    let names: Vec<String> = (0..500).map(|number| format!("  m{number:03}:\n")).collect();
    world.write("hosts.yaml", &format!("machines:\n{}", names.concat()));
    let check = world.stead("check site.yaml --hosts hosts.yaml");
    let expected = "m000, m001, m002, m003, m004, m005, m006, m008, m009, m010 and 440 more:
  ~ Stead/File 'motd'  drifted
m007, m017, m027, m037, m047, m057, m067, m077, m087, m097 and 40 more:
  refused
Check of 500 machines: 450 drifted · 50 refused
";
    assert_eq!((check.code, check.shown().as_str()), (3, expected), "{}", check.errors);
}

/// The processor time of a process, in milliseconds, and the most memory that it had, in kilobytes: its own, without the programs
/// that it started.
fn cost(world: &World, inventory: &str) -> (u64, u64) {
    let mut command = world.command(&format!("check site.yaml --hosts {inventory}"));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut memory = 0;
    let time = stead_testkit::until(|| {
        let read = |name: &str| fs::read_to_string(format!("/proc/{}/{name}", child.id())).unwrap();
        let most = read("status")
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB")?.trim().parse().ok());
        memory = memory.max(most.unwrap_or(0));
        let stat = read("stat");
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        let ticks: u64 = [11, 12].iter().map(|at| fields[*at].parse::<u64>().unwrap()).sum();
        // It has ended, and is not waited for yet.
        (fields[0] == "Z").then_some(ticks * 10)
    });
    child.wait().unwrap();
    (time, memory)
}

#[test]
fn five_hundred_machines_cost_little() {
    const MACHINES: u64 = 500;
    let world = site(true);
    // As little as a machine can answer.
    world.program(
        "bin/ssh",
        r#"#!/bin/sh
echo 'stead-hosts found'
IFS= read -r order
echo '{"event":"began","instances":1}' >&2
echo '{"event":"settled","instance":"Stead/File:motd"}' >&2
echo '{"changes":true,"instances":[{"name":"motd","type":"Stead/File","status":"drifted","action":"change","changes":[]}]}'
exit 2
"#,
    );
    let inventory =
        |count: u64| (0..count).fold("machines:\n".to_owned(), |inventory, at| inventory + &format!("  m{at}:\n"));
    for (name, count) in [("one.yaml", 1), ("all.yaml", MACHINES)] {
        world.write(name, &inventory(count));
    }
    let ((time_of_one, memory_of_one), (time, memory)) = (cost(&world, "one.yaml"), cost(&world, "all.yaml"));
    let each = |all: u64, one: u64| all.saturating_sub(one) / (MACHINES - 1);
    assert!(each(time * 1000, time_of_one * 1000) <= 2000, "{time} ms for all, {time_of_one} ms for one");
    assert!(each(memory, memory_of_one) <= 100, "{memory} KB for all, {memory_of_one} KB for one");
}
