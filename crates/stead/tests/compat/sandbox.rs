//! Runs the program under test as the recorded one was run: a clean home, the test resources, nothing else.

use std::env::{JoinPathsError, join_paths};
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::case::{Answer, Run};

/// Far above what any case takes, so that a hang ends the case and not the whole test.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Where the system looks for programs when nothing else is said.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The folders that placeholders of the recorded cases stand for.
pub(crate) struct Places {
    /// Holds the manifests of the test resources.
    pub(crate) resources: PathBuf,
    /// Holds the documents that cases name.
    pub(crate) examples: PathBuf,
    /// Holds the program under test and the one behind the test resources.
    pub(crate) programs: PathBuf,
    /// A folder of the case's own.
    pub(crate) work: PathBuf,
}

impl Places {
    /// Puts real paths where a recorded text has placeholders.
    pub(crate) fn fill(&self, text: &str) -> String {
        text.replace("${REPO}/dsc/tests/../examples", &self.examples.to_string_lossy())
            .replace("${RESOURCES}", &self.resources.to_string_lossy())
            .replace("${HOME}", &self.home().to_string_lossy())
            .replace("${WORK}", &self.work.to_string_lossy())
    }

    /// Puts placeholders where an answer has real paths.
    pub(crate) fn hide(&self, text: &str) -> String {
        text.replace(&*self.examples.to_string_lossy(), "${REPO}/dsc/tests/../examples")
            .replace(&*self.resources.to_string_lossy(), "${RESOURCES}")
            .replace(&*self.home().to_string_lossy(), "${HOME}")
            .replace(&*self.work.to_string_lossy(), "${WORK}")
    }

    fn home(&self) -> PathBuf {
        self.work.join("home")
    }

    /// Writes the files of a case where it runs, manifests among them.
    pub(crate) fn write(&self, files: &[(String, String)]) -> io::Result<()> {
        fs::create_dir_all(self.current())?;
        files.iter().try_for_each(|(name, text)| fs::write(self.current().join(name), self.fill(text)))
    }

    /// Where manifests are looked for.
    fn manifests(&self) -> Result<OsString, JoinPathsError> {
        join_paths([&self.resources, &self.current()])
    }

    /// The cases were recorded in a folder of this name, and some answers tell it.
    fn current(&self) -> PathBuf {
        self.work.join("behav")
    }
}

/// Runs the program as a recorded run says and returns its answer, placeholders put in.
pub(crate) fn answer(program: &Path, places: &Places, run: &Run) -> Result<Answer, Box<dyn Error>> {
    answer_with(program, places, run, &[])
}

/// Runs a program with more in the environment.
pub(crate) fn answer_with(
    program: &Path,
    places: &Places,
    run: &Run,
    variables: &[(&str, &str)],
) -> Result<Answer, Box<dyn Error>> {
    fs::create_dir_all(places.home())?;
    fs::create_dir_all(places.current())?;
    let mut child = Command::new(program)
        .args(run.args.iter().map(|arg| places.fill(arg)))
        .env_clear()
        .env("HOME", places.home())
        .env("STEAD_STATE", places.home().join("state"))
        .env("PATH", format!("{}:{SYSTEM_PATH}", places.programs.display()))
        .env("DSC_RESOURCE_PATH", places.manifests()?)
        .envs(variables.iter().copied())
        .current_dir(places.current())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    feed(&mut child, run.stdin.as_deref().map(|text| places.fill(text)));
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let exit = wait(&mut child)?;
    let text =
        |reader: thread::JoinHandle<Vec<u8>>| places.hide(&String::from_utf8_lossy(&reader.join().unwrap_or_default()));
    Ok(Answer { exit, stdout: text(stdout), stderr: text(stderr) })
}

/// Writes from a thread of its own: the program may answer before it has read everything.
fn feed(child: &mut Child, text: Option<String>) {
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read its input is not a failure of the case.
        thread::spawn(move || drop(stdin.write_all(text.unwrap_or_default().as_bytes())));
    }
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What could be read before an error is still worth comparing.
            drop(pipe.read_to_end(&mut bytes));
        }
        bytes
    })
}

fn wait(child: &mut Child) -> Result<Option<i64>, Box<dyn Error>> {
    let deadline = Instant::now() + TIME_LIMIT;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code().map(i64::from));
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(2));
    }
}
