//! A machine of another processor: behind its SSH server is a Debian for that, which an emulator runs, and the program that is sent is
//! the one that `cargo xtask package all` builds. `STEAD_MACHINES=1 cargo test -p stead --test fleet another_processor` makes that Debian.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::server::server;
use super::site;

const TEST: &str = "a_machine_of_another_processor_gets_its_program";

/// The processor, as programs and an emulator call it, and as Debian does.
const OTHER: (&str, &str) = if cfg!(target_arch = "x86_64") { ("aarch64", "arm64") } else { ("x86_64", "amd64") };

/// Whoever logs in is in the other system, in which the kernel has an emulator start programs of its processor. All of that is in
/// namespaces, and ends with the connection.
const ENTER: &str = r#"#!/bin/sh
exec unshare --user --map-root-user --mount sh -ec '
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
printf %s "$2" >/proc/sys/fs/binfmt_misc/register
mount --rbind /proc "$0/proc"
mount --rbind /dev "$0/dev"
mount --bind "$3" "$0/root"
exec chroot "$0" /usr/bin/env -i HOME=/root PATH=/usr/bin:/bin /bin/sh -c "cd; $1"
' SYSTEM "$SSH_ORIGINAL_COMMAND" 'REGISTRATION' HOME
"#;

#[test]
fn a_machine_of_another_processor_gets_its_program() {
    let found = emulator().and_then(|emulator| Ok((emulator, built()?, system()?)));
    let (registration, program, system) = match found {
        Ok(found) => found,
        Err(reason) => return stead_testkit::skip(TEST, &reason),
    };
    let world = site(false);
    let Some(_server) = server(&world) else { return };
    let home = world.path("real");
    let enter = ENTER.replace("REGISTRATION", &registration).replace("SYSTEM", system.to_str().unwrap());
    world.program("enter", &enter.replace("HOME\n", &format!("{}\n", home.display())));
    let without = world.stead("check site.yaml --hosts hosts.yaml");
    let expected = format!("and there is no program for it (Linux {})", OTHER.0);
    assert!(without.code == 1 && without.out.contains(&expected), "{}{}", without.out, without.errors);
    let folder = world.path(&format!("artifacts/stead-{}-{}-linux-musl/bin", env!("CARGO_PKG_VERSION"), OTHER.0));
    fs::create_dir_all(&folder).unwrap();
    fs::copy(&program, folder.join("stead")).unwrap();
    let on_it = |words: &str| {
        let answer = world.stead(&format!("{words} --hosts hosts.yaml --artifacts artifacts"));
        (answer.code, answer.shown() + &answer.errors)
    };
    for (words, code, end) in [
        ("plan site.yaml", 2, "Plan for 1 machine: 1 to change\n"),
        ("apply site.yaml", 0, "Applied on 1 machine: 1 changed\n"),
        ("apply site.yaml", 0, "Applied on 1 machine: 1 unchanged\n"),
    ] {
        let (ended, shown) = on_it(words);
        assert!(ended == code && shown.ends_with(end), "{words}: {shown}");
    }
    assert_eq!(world.read("real/motd"), "hello");
    let [kept] = fs::read_dir(home.join(".cache/stead-programs")).unwrap().collect::<Vec<_>>().try_into().unwrap();
    assert!(fs::read(kept.unwrap().path()).unwrap() == fs::read(program).unwrap(), "it is the one for its processor");
    assert_eq!(on_it("facts os.hardware"), (0, format!("real:\n  {}\nAsked 1 machine: 1 answered\n", OTHER.0)));
    world.write("real/motd", "drift");
    assert_eq!(on_it("check site.yaml").0, 2);
    assert_eq!((on_it("apply site.yaml").0, world.read("real/motd").as_str()), (0, "hello"));
}

/// The line by which the kernel knows what an emulator runs. It is opened where that is written, and is not looked for in the system.
fn emulator() -> Result<String, String> {
    let found = Command::new("sh").args(["-c", "command -v qemu-$0-static", OTHER.0]).output().unwrap();
    let path = String::from_utf8(found.stdout).unwrap();
    let known = fs::read_to_string(format!("/usr/lib/binfmt.d/qemu-{}.conf", OTHER.0)).unwrap_or_default();
    let Some((magic, _)) = known.trim().rsplit_once(':').and_then(|(rest, _)| rest.rsplit_once(':')) else {
        return Err(format!("there is no qemu-{}-static that says what it runs", OTHER.0));
    };
    let tried = Command::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--mount",
            "mount",
            "-t",
            "binfmt_misc",
            "none",
            "/proc/sys/fs/binfmt_misc",
        ])
        .output();
    match tried {
        Ok(tried) if found.status.success() && tried.status.success() => Ok(format!("{magic}:{}:F", path.trim())),
        _ => Err("the kernel gives nobody an emulator of their own".to_owned()),
    }
}

/// The static program for the other processor.
fn built() -> Result<PathBuf, String> {
    let program = stead_testkit::repository().join(format!("target/{}-unknown-linux-musl/release/stead", OTHER.0));
    if program.exists() { Ok(program) } else { Err("'cargo xtask package all' has not built its program".to_owned()) }
}

/// The packages that every Debian for the other processor has, unpacked.
fn system() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("machines").join(OTHER.1);
    if folder.join("root").is_dir() {
        return Ok(folder.join("root"));
    }
    if stead_testkit::asked("STEAD_MACHINES").is_none() {
        return Err(format!("it needs a Debian for {}, which it makes when STEAD_MACHINES asks for machines", OTHER.1));
    }
    let script = stead_testkit::repository().join("crates/stead/tests/boots/box.sh");
    let made = Command::new(script).arg("unpack").arg(&folder).arg(OTHER.1).output().unwrap();
    if made.status.success() {
        Ok(folder.join("root"))
    } else {
        Err(String::from_utf8_lossy(&made.stderr).into_owned())
    }
}
