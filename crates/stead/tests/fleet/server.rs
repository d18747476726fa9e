//! A real `sshd` and `ssh`, where they are on this machine.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{World, site};

/// An SSH server of the test; its machine is a folder as those of the other tests.
pub(crate) struct Server(std::process::Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An inventory of the machine of a server on this port.
pub(crate) fn real(port: u16) -> String {
    format!("machines: {{real: {{address: 127.0.0.1, port: {port}}}}}")
}

/// Starts a server on a free port, with an inventory and a configuration of `ssh` for it; `None` where there is none on this machine.
pub(crate) fn server(world: &World) -> Option<(Server, u16)> {
    let is_there = ["/usr/sbin/sshd", "/usr/bin/ssh", "/usr/bin/ssh-keygen", "/run/sshd"]
        .iter()
        .all(|path| Path::new(path).exists());
    if !is_there {
        stead_testkit::skip("a_real_server", "there is no SSH server");
        return None;
    }
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let at = |name: &str| world.path(name).display().to_string();
    for key in ["host", "own"] {
        let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &at(key)]).status().unwrap();
        assert!(made.success());
    }
    fs::copy(world.path("own.pub"), world.path("authorized")).unwrap();
    fs::create_dir(world.path("real")).unwrap();
    let there = format!("HOME={0} STEAD_STATE={0}/state PATH=/usr/bin:/bin", at("real"));
    let enter = format!("cd {} && exec env -i {there} sh -c \"$SSH_ORIGINAL_COMMAND\"", at("real"));
    world.program("enter", &format!("#!/bin/sh\n{enter}\n"));
    world.write(
        "sshd.conf",
        &format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\n\
             PermitRootLogin yes\nForceCommand {}\n",
            at("host"),
            at("authorized"),
            at("enter"),
        ),
    );
    let known = fs::read_to_string(world.path("host.pub")).unwrap();
    world.write("known", &format!("[127.0.0.1]:{port} {known}"));
    world.write(
        "ssh.conf",
        &format!(
            "IdentityFile {}\nIdentitiesOnly yes\nUserKnownHostsFile {}\nGlobalKnownHostsFile none\n",
            at("own"),
            at("known")
        ),
    );
    world.program("bin/ssh", &format!("#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n", at("ssh.conf")));
    world.write("hosts.yaml", &real(port));
    let mut command = Command::new("/usr/sbin/sshd");
    command.args(["-D", "-e", "-f", &at("sshd.conf")]).stdin(Stdio::null()).stdout(Stdio::null());
    let server = Server(command.stderr(fs::File::create(world.path("sshd.log")).unwrap()).spawn().unwrap());
    stead_testkit::until(|| std::net::TcpStream::connect(("127.0.0.1", port)).ok());
    Some((server, port))
}

#[test]
fn a_real_server_is_planned_applied_and_repaired_and_its_key_is_never_accepted() {
    let world = site(false);
    let Some((_server, port)) = server(&world) else { return };
    let plan = world.stead("plan site.yaml --hosts hosts.yaml --brief");
    let expected = "real:\n  + Stead/File 'motd'  to be created\n  + Stead/File 'page'  to be created\nPlan for 1 machine: 1 to change\n";
    assert_eq!((plan.code, plan.shown().as_str()), (2, expected), "{}{}", plan.errors, world.read("sshd.log"));
    assert_eq!(world.stead("apply site.yaml --hosts hosts.yaml").code, 0);
    assert_eq!(world.read("real/motd"), "hello");
    assert_eq!(world.stead("apply site.yaml --hosts hosts.yaml").shown(), "Applied on 1 machine: 1 unchanged\n");
    world.write("real/motd", "drift");
    assert_eq!(world.stead("check site.yaml --hosts hosts.yaml").code, 2);
    assert_eq!(world.stead("apply site.yaml --hosts hosts.yaml").code, 0);
    assert_eq!(world.read("real/motd"), "hello");
    let known = world.read("known");
    world.write("known", "");
    let refused = world.stead("check site.yaml --hosts hosts.yaml");
    assert_eq!((refused.code, refused.out.contains("Host key verification failed")), (1, true), "{}", refused.out);
    assert_eq!(world.read("known"), "");
    world.write("known", &known);
    // A document that fails halts the rest; what failed is said as it is.
    world
        .write("fails.yaml", "resources: [{name: x, type: Stead/Command, properties: {set: 'exit 7', test: 'false'}}]");
    world.write(
        "hosts.yaml",
        &format!("port: {port}\nmachines: {{real: {{address: 127.0.0.1}}, next: {{address: 127.0.0.1}}}}"),
    );
    let failed = world.stead("apply fails.yaml --hosts hosts.yaml --at-once 1 --halt-after 1 --brief");
    let expected = "real:\n  ! Stead/Command 'x'  failed: the command 'set' ended with exit code 7\nnext:\n  not begun\nApplied on 2 machines: 1 gave up · 1 not begun\n";
    assert_eq!((failed.code, failed.shown().as_str()), (1, expected), "{}", failed.errors);
}
