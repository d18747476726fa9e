//! `demo`: a controller and three machines in a folder, by the commands that operators and machines use.

use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use stead_system::Cancel;
use stead_system::folder::Folder;
use stead_system::process::{Environment, Executable};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(20);
const MACHINES: [&str; 3] = ["m1", "m2", "m3"];
/// The content that the machines are to have.
const PAGE: &str = "metadata:
  name: page
parameters:
  text:
    type: string
directives:
  configurationMode: ApplyAndAutoCorrect
resources:
- name: page
  type: Stead/File
  properties:
    path: \"[path(envvar('HOME'), 'page')]\"
    content: \"[parameters('text')]\"
";

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A folder with everything in it. What runs ends with it.
struct Demo<'o> {
    folder: PathBuf,
    stead: PathBuf,
    fleet: PathBuf,
    url: String,
    running: Vec<Child>,
    out: &'o mut dyn Write,
    end: &'o Cancel,
}

impl Drop for Demo<'_> {
    fn drop(&mut self) {
        for child in &mut self.running {
            // One that has ended by itself needs nothing.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Shows what a controller and machines do for each other, in a folder that is not there yet, until somebody ends it.
pub(crate) fn demo(folder: &Path, out: &mut dyn Write, end: &Cancel, once: bool) -> Outcome<()> {
    let fleet = std::env::current_exe()?;
    let beside = fleet.parent().unwrap_or(Path::new("/"));
    let stead = Executable::find("stead", beside, &Environment::of_this_process(&[]));
    let stead = stead.ok_or("'stead' is not installed beside 'stead-fleet' or on the path")?;
    let stead = stead.map_err(|refused| refused.reason())?.path().to_owned();
    fs::create_dir(folder).map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::AlreadyExists => ". Remove it, or name another folder with '--folder'",
            _ => "",
        };
        format!("cannot create '{}': {error}{hint}", folder.display())
    })?;
    // Keys and tokens are in it.
    let folder = Folder::create(folder)?.path().to_owned();
    let mut demo = Demo { folder, stead, fleet, url: String::new(), running: Vec::new(), out, end };
    let root = demo.begin()?;
    demo.join(&root)?;
    demo.publish()?;
    demo.repair()?;
    demo.refuse()?;
    demo.list()?;
    demo.say(&format!("\nEverything is in '{}'. To look further, in another terminal:", demo.folder.display()))?;
    for (name, value) in demo.asking() {
        demo.say(&format!("export {name}={value}"))?;
    }
    while !once && !end.is_cancelled() {
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

impl Demo<'_> {
    /// Two operators, a controller that they publish to, and a token for three machines.
    fn begin(&mut self) -> Outcome<String> {
        self.say(
            "Two operators have keys of SSH, of which both must sign. Their root statement is what machines are given.",
        )?;
        for name in ["ann", "ben"] {
            self.run(
                "ssh-keygen",
                Path::new("ssh-keygen"),
                &["-q", "-t", "ed25519", "-N", "", "-C", name, "-f", name],
            )?;
        }
        fs::create_dir(self.folder.join("fleet"))?;
        let made = self.stead(
            "release root",
            &["--name", "demo", "--signer", "ann.pub", "--signer", "ben.pub", "-o", "fleet/root"],
        )?;
        let root = made.split_whitespace().next_back().ok_or("there is no digest")?.to_owned();
        self.say("\nA controller answers machines and operators.")?;
        self.fleet("operator", &["ann", "--role", "approver", "--folder", "controller", ">", "ann.token"])?;
        let fleet = self.fleet.clone();
        self.start("controller", &fleet, &["run", "--folder", "controller", "--listen", "127.0.0.1:0"])?;
        let log = self.folder.join("controller.log");
        let port = self.wait("the controller", || {
            let said = fs::read_to_string(&log).ok()?;
            let (address, _) = said.split_once("listening on ")?.1.split_once(',')?;
            Some(address.rsplit_once(':')?.1.to_owned())
        })?;
        self.url = format!("https://localhost:{port}");
        self.fleet("publish", &["fleet"])?;
        self.fleet("token", &["--uses", "3", ">", "join.token"])?;
        Ok(root)
    }

    fn join(&mut self, root: &str) -> Outcome<()> {
        self.say("\nThree machines, here three agents, join with the digest of that statement and a token.")?;
        let (stead, url) = (self.stead.clone(), self.url.clone());
        for machine in MACHINES {
            let state = format!("{machine}/state");
            fs::create_dir(self.folder.join(machine))?;
            self.start(machine, &stead, &["agent", "run", "--state", &state])?;
            self.wait("an agent", || {
                self.command(&stead, &["agent", "history", "--state", &state])
                    .output()
                    .ok()
                    .filter(|it| it.status.success())
            })?;
            let words = [
                "--root",
                root,
                "--name",
                machine,
                "--token-file",
                "join.token",
                "--ca",
                "controller/tls.pem",
                "--state",
                &state,
            ];
            self.stead("agent join", &[&[url.as_str()], &words[..]].concat())?;
        }
        Ok(())
    }

    fn publish(&mut self) -> Outcome<()> {
        self.say("\nA release is a document for those machines that its labels select. One operator makes it, the other one signs it, too.")?;
        fs::write(self.folder.join("page.yaml"), PAGE)?;
        self.stead("bundle", &["page.yaml", "-o", "page.bundle"])?;
        self.release("hello")?;
        self.stead("release sign", &["fleet/web/1.release", "--sign", "ben"])?;
        for machine in MACHINES {
            let state = format!("{machine}/state");
            let file = format!("{machine}.identity");
            self.stead("agent identity", &["--state", &state, ">", &file])?;
            self.stead(
                "release roster add",
                &[
                    machine,
                    "--fleet",
                    "fleet/root",
                    "--identity",
                    &file,
                    "--label",
                    "role=web",
                    "--sign",
                    "ann",
                    "--sign",
                    "ben",
                ],
            )?;
        }
        let began = Instant::now();
        self.fleet("publish", &["fleet"])?;
        for machine in MACHINES {
            self.until_page(machine, "hello")?;
        }
        self.say(&format!("all three have it after {} ms", began.elapsed().as_millis()))
    }

    fn release(&mut self, text: &str) -> Outcome<()> {
        let text = format!("text={text}");
        let words = [
            "page.bundle",
            "--fleet",
            "fleet/root",
            "--channel",
            "web",
            "--where",
            "role=web",
            "--expires",
            "90d",
            "--set",
            &text,
            "--sign",
            "ann",
        ];
        self.stead("release make", &words).map(drop)
    }

    fn repair(&mut self) -> Outcome<()> {
        self.say("\nWhat somebody changes by hand is put back.")?;
        let page = self.folder.join("m2/page");
        self.say("$ echo 'by hand' > m2/page")?;
        let began = Instant::now();
        fs::write(&page, "by hand\n")?;
        self.until_page("m2", "hello")?;
        self.say(&format!("m2/page is 'hello' again after {} ms", began.elapsed().as_millis()))
    }

    fn refuse(&mut self) -> Outcome<()> {
        self.say("\nOne operator alone publishes nothing, whoever has the controller.")?;
        self.release("mine")?;
        self.say("$ stead-fleet publish fleet")?;
        let refused = self.command(&self.fleet, &["publish", "fleet"]).output()?;
        if refused.status.success() {
            return Err("a release with too few signatures was published".into());
        }
        self.say(String::from_utf8_lossy(&refused.stderr).trim_end())?;
        for machine in MACHINES {
            self.until_page(machine, "hello")?;
        }
        Ok(())
    }

    /// Lists the machines, once the controller heard from each that all is as it was released.
    fn list(&mut self) -> Outcome<()> {
        self.say("\nThe controller has heard of it all.")?;
        self.wait("a machine", || {
            let others = self.command(&self.fleet, &["machines", "state!=converged", "-o", "json"]).output().ok()?;
            let others: Value = serde_json::from_slice(&others.stdout).ok()?;
            others["machines"].as_array()?.is_empty().then_some(())
        })?;
        let shown = self.fleet("machines", &[])?;
        self.say(shown.trim_end())
    }

    fn until_page(&self, machine: &str, text: &str) -> Outcome<()> {
        let page = self.folder.join(machine).join("page");
        self.wait(&format!("{machine}/page"), || fs::read_to_string(&page).ok().filter(|found| found == text)).map(drop)
    }

    /// The environment of commands that ask the controller.
    fn asking(&self) -> [(&'static str, String); 3] {
        let path = |name: &str| self.folder.join(name).display().to_string();
        let certificate = path("controller/tls.pem");
        [
            ("STEAD_FLEET_URL", self.url.clone()),
            ("STEAD_FLEET_CERTIFICATE", certificate),
            ("STEAD_FLEET_TOKEN_FILE", path("ann.token")),
        ]
    }

    fn command(&self, program: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(words).current_dir(&self.folder).stdin(Stdio::null()).envs(self.asking());
        command
    }

    /// Starts what runs until the end, with a home of its own.
    fn start(&mut self, name: &str, program: &Path, words: &[&str]) -> Outcome<()> {
        let shown = program.file_name().unwrap_or_default().display();
        self.say(&format!("$ HOME=$PWD/{name} {shown} {} > {name}.log 2>&1 &", words.join(" ")))?;
        let log = File::create(self.folder.join(format!("{name}.log")))?;
        let mut command = self.command(program, words);
        command.env("HOME", self.folder.join(name)).stdout(log.try_clone()?).stderr(log);
        self.running.push(command.spawn()?);
        Ok(())
    }

    fn stead(&mut self, command: &str, words: &[&str]) -> Outcome<String> {
        let program = self.stead.clone();
        let words: Vec<&str> = command.split(' ').chain(words.iter().copied()).collect();
        self.run("stead", &program, &words)
    }

    fn fleet(&mut self, command: &str, words: &[&str]) -> Outcome<String> {
        let program = self.fleet.clone();
        self.run("stead-fleet", &program, &[&[command], words].concat())
    }

    /// Runs a command that is shown, and returns what it printed, which is also in a file where `>` and its name are the last words.
    fn run(&mut self, name: &str, program: &Path, words: &[&str]) -> Outcome<String> {
        let quoted = |word: &&str| if word.is_empty() { "''".to_owned() } else { (*word).to_owned() };
        self.say(&format!("$ {name} {}", words.iter().map(quoted).collect::<Vec<_>>().join(" ")))?;
        let (words, file) = match words {
            [words @ .., ">", file] => (words, Some(self.folder.join(file))),
            words => (words, None),
        };
        let Output { status, stdout, stderr } =
            self.command(program, words).output().map_err(|error| format!("{name}: {error}"))?;
        if !status.success() {
            return Err(format!("{name}: {}", String::from_utf8_lossy(&stderr).trim()).into());
        }
        if let Some(file) = file {
            fs::write(file, &stdout)?;
        }
        Ok(String::from_utf8_lossy(&stdout).into_owned())
    }

    fn say(&mut self, text: &str) -> Outcome<()> {
        if self.end.is_cancelled() {
            return Err("interrupted; the controller and the agents were stopped".into());
        }
        Ok(writeln!(self.out, "{text}")?)
    }

    /// Waits until something is found.
    fn wait<T>(&self, what: &str, mut found: impl FnMut() -> Option<T>) -> Outcome<T> {
        let began = Instant::now();
        loop {
            if let Some(found) = found() {
                return Ok(found);
            }
            if self.end.is_cancelled() {
                return Err("interrupted; the controller and the agents were stopped".into());
            }
            if began.elapsed() > PATIENCE {
                return Err(format!("{what} takes longer than {} s", PATIENCE.as_secs()).into());
            }
            std::thread::sleep(PAUSE);
        }
    }
}
