//! Connections that break, callers that are killed, and secrets in every form, with a real SSH server on this machine.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stead_testkit::until;

use super::forms::forms;
use super::server::{real, server};
use super::{World, site};

/// A way to a server that breaks after so many pieces of what the server says, or of what it is sent.
struct Cut {
    port: u16,
    left: Arc<[AtomicUsize; 2]>,
}

/// The direction that is counted.
#[derive(Clone, Copy)]
enum From {
    Server = 0,
    Caller = 1,
}

impl Cut {
    fn new(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let left: Arc<[AtomicUsize; 2]> = Arc::default();
        let counted = Arc::clone(&left);
        // It ends with the tests.
        std::thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                let server = TcpStream::connect(("127.0.0.1", server)).unwrap();
                for (from, to, direction) in [(&server, &caller, From::Server), (&caller, &server, From::Caller)] {
                    let (from, to, left) = (from.try_clone().unwrap(), to.try_clone().unwrap(), Arc::clone(&counted));
                    std::thread::spawn(move || pass(from, to, &left[direction as usize]));
                }
            }
        });
        Self { port, left }
    }

    fn after(&self, pieces: usize, direction: From) {
        for (at, left) in self.left.iter().enumerate() {
            left.store(if at == direction as usize { pieces } else { usize::MAX }, Ordering::SeqCst);
        }
    }

    /// How many pieces were passed since [`Self::after`] with as many as can be counted.
    fn passed(&self, direction: From) -> usize {
        usize::MAX - self.left[direction as usize].load(Ordering::SeqCst)
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, left: &AtomicUsize) {
    let mut piece = vec![0; 256 << 10];
    while let Ok(count @ 1..) = from.read(&mut piece) {
        let has_one = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        if !has_one || to.write_all(&piece[..count]).is_err() {
            break;
        }
    }
    for stream in [from, to] {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// The processes of a machine, which all have its folder in their environment or command line.
fn is_quiet(world: &World) -> Option<()> {
    let home = world.path("real");
    let is_of_it = |process: &Path| {
        ["environ", "cmdline"].iter().any(|name| {
            let text = fs::read(process.join(name)).unwrap_or_default();
            String::from_utf8_lossy(&text).contains(home.to_str().unwrap())
        })
    };
    let own = std::process::id().to_string();
    let all = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    // The server has its command in its configuration alone.
    let mut all = all.filter(|path| path.file_name().is_some_and(|name| name.to_str().unwrap().parse::<u32>().is_ok()));
    (!all.any(|path| !path.ends_with(&own) && is_of_it(&path))).then_some(())
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Nothing but what was there, what the document names, whole, and what is kept.
fn is_whole(world: &World, at: &str) {
    let allowed = BTreeSet::from(["motd", "page", "state", ".cache"].map(str::to_owned));
    let found = names(&world.path("real"));
    assert!(found.is_subset(&allowed), "{at}: {found:?}");
    for (name, content) in [("motd", "hello"), ("page", "<p>\n")] {
        let is = world.read(&format!("real/{name}"));
        assert!(is.is_empty() && !world.path(&format!("real/{name}")).exists() || is == content, "{at}: {name} {is:?}");
    }
    let programs = names(&world.path("real/.cache/stead-programs"));
    assert!(programs.len() <= 1 && !programs.iter().any(|name| name.starts_with("new-")), "{at}: {programs:?}");
}

#[test]
fn a_connection_that_breaks_at_any_message_leaves_nothing_half_done() {
    let world = site(false);
    let Some((_server, port)) = server(&world) else { return };
    let cut = Cut::new(port);
    let known = world.read("known").replace(&format!(":{port} "), &format!(":{} ", cut.port));
    world.write("known", &known);
    world.write("hosts.yaml", &real(cut.port));
    let apply = || world.stead("apply site.yaml --hosts hosts.yaml --record --width 1");
    let again = |at: &str| {
        until(|| is_quiet(&world));
        is_whole(&world, at);
        cut.after(usize::MAX, From::Server);
        let next = apply();
        assert_eq!((next.code, world.read("real/motd").as_str()), (0, "hello"), "{at}: {}{}", next.out, next.errors);
        is_whole(&world, at);
        for name in ["motd", "page"] {
            fs::remove_file(world.path("real").join(name)).unwrap();
        }
    };
    // While the program is on its way.
    for pieces in [20, 60] {
        cut.after(pieces, From::Caller);
        assert_eq!(apply().code, 1);
        until(|| is_quiet(&world));
        is_whole(&world, &format!("{pieces} pieces of the program"));
    }
    again("the whole program");
    cut.after(usize::MAX, From::Server);
    assert_eq!(apply().code, 0);
    let all = cut.passed(From::Server);
    again("a whole run");
    let stride = (all / stead_testkit::times("STEAD_CUTS", 8)).max(1);
    let mut broken = 0;
    for pieces in (0..all).step_by(stride).chain(all.saturating_sub(stride.min(4))..all) {
        cut.after(pieces, From::Server);
        broken += usize::from(apply().code != 0);
        again(&format!("{pieces} of {all} pieces"));
    }
    assert!(broken > all / stride / 2, "{broken} of {all}");
}

#[test]
fn a_caller_that_is_killed_ends_the_run_at_its_next_safe_point() {
    let world = site(false);
    let Some(_server) = server(&world) else { return };
    world.write(
        "site.yaml",
        "resources:
- {name: one, type: Stead/Command, properties: {set: 'touch begun; while [ ! -e go ]; do sleep 0.05; done; touch one', test: 'test -e one'}}
- {name: two, type: Stead/File, dependsOn: [\"[resourceId('Stead/Command', 'one')]\"], properties: {path: two, content: x}}
",
    );
    let mut command = world.command("apply site.yaml --hosts hosts.yaml");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until(|| world.path("real/begun").exists().then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    // Nothing of it is left, and what it had not begun is not done, though it could be.
    until(|| is_quiet(&world));
    assert!(!world.path("real/two").exists());
    world.write("real/go", "");
    let next = world.stead("apply site.yaml --hosts hosts.yaml --brief");
    assert_eq!((next.code, world.read("real/two").as_str()), (0, "x"), "{}{}", next.out, next.errors);
}

const SECRET: &str = "hunter2 & 'sons'+<\"Zoë\">/100%\\";

#[test]
fn a_secret_is_in_no_form_anywhere_but_in_the_pipe() {
    is_in_the_pipe_alone("parameters('token')");
}

#[test]
fn a_secret_of_the_vault_of_the_caller_is_in_no_form_anywhere_but_in_the_pipe() {
    is_in_the_pipe_alone("secret('token')");
}

fn is_in_the_pipe_alone(token: &str) {
    let world = site(false);
    let Some((_server, port)) = server(&world) else { return };
    world.write(
        "site.yaml",
        &"parameters: {token: {type: secureString}}
resources:
- name: look
  type: Stead/Command
  properties:
    set: 'sh look; touch looked'
    test: test -e looked
- {name: secret, type: Stead/File, properties: {path: secret, content: \"[TOKEN]\"}}
- {name: fails, type: Stead/File, properties: {path: \"[concat(TOKEN, '/', TOKEN)]\", content: x}}
"
        .replace("TOKEN", token),
    );
    world.vault("cat \"${0%/*}/token\"");
    world.write("bin/token", SECRET);
    // Of every process, and of those of the machine also the files that they have open.
    world.write(
        "real/look",
        "exec >seen 2>/dev/null
cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ
for process in /proc/[0-9]*; do
  [ \"$(readlink $process/cwd)\" = \"$PWD\" ] || continue
  echo \"a process of it: $(readlink $process/exe)\"
  cat $process/status $process/comm $process/wchan $process/stack
  for file in $process/fd/*; do
    case $(readlink $file) in */seen) ;; *) [ ! -f $file ] || cat $file;; esac
  done
done
",
    );
    let stated = if token == "secret('token')" { "of-nobody" } else { SECRET };
    let token = serde_json::to_string(stated).unwrap();
    let machine = format!("{{address: 127.0.0.1, port: {port}, parameters: {{token: {token}}}}}");
    world.write("hosts.yaml", &format!("machines: {{real: {machine}}}"));
    let mut texts = Vec::new();
    for words in ["plan", "check", "apply --record", "apply -o json --events", "plan --out all.plan"] {
        let answer = world.stead(&format!("{words} site.yaml --hosts hosts.yaml -v"));
        texts.extend([answer.out, answer.errors]);
    }
    let history = world.stead("history show last --hosts hosts.yaml -o json");
    assert_eq!((history.code, world.read("real/secret").as_str()), (0, SECRET), "{texts:?}");
    texts.extend([history.out, history.errors]);
    let kept = Command::new("grep").args(["-rah", ""]).arg(world.path("real/state")).output().unwrap().stdout;
    texts.extend(
        [kept, fs::read(world.path("real/seen")).unwrap()].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    );
    texts.extend(["all.plan", "sshd.log"].map(|name| world.read(name)));
    for seen in ["remote", "a process of it: ", "stead-programs/stead-"] {
        assert!(texts.iter().any(|text| text.contains(seen)), "the search is blind for {seen}");
    }
    for form in forms(SECRET) {
        let found = texts.iter().find(|text| text.contains(&form));
        assert!(found.is_none(), "{form}: {found:?}");
    }
}
