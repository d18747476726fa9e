//! A terminal at which somebody sits.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// How long nothing may happen on the screen.
const LONGEST: Timespec = Timespec { tv_sec: 120, tv_nsec: 0 };

/// A program, and the end of its terminal at which somebody sits.
pub(crate) struct AtTerminal {
    pub(crate) program: Child,
    screen: File,
}

impl AtTerminal {
    /// The command is dropped before anything is read: it holds the terminal open.
    pub(crate) fn run(mut command: Command) -> Self {
        stead_testkit::let_programs_be_interrupted();
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&screen).unwrap();
        unlockpt(&screen).unwrap();
        let name = ptsname(&screen, Vec::new()).unwrap();
        let no_control = OFlags::NOCTTY.bits().cast_signed();
        let open = OpenOptions::new().read(true).write(true).custom_flags(no_control).open(name.to_str().unwrap());
        let terminal = open.unwrap();
        let program = command
            .env("TERM", "xterm")
            .stdin(terminal.try_clone().unwrap())
            .stdout(terminal.try_clone().unwrap())
            .stderr(terminal)
            .spawn()
            .unwrap();
        Self { program, screen: File::from(screen) }
    }

    pub(crate) fn types(&mut self, text: &str) -> &mut Self {
        self.screen.write_all(text.as_bytes()).unwrap();
        self
    }

    /// Reads the screen until a text is on it.
    pub(crate) fn until(&mut self, text: &str) -> String {
        let (mut seen, mut byte) = (Vec::new(), [0]);
        while !String::from_utf8_lossy(&seen).contains(text) {
            let mut readable = [PollFd::new(&self.screen, PollFlags::IN)];
            let is_there =
                poll(&mut readable, Some(&LONGEST)).unwrap() == 1 && self.screen.read_exact(&mut byte).is_ok();
            assert!(is_there, "no '{text}' in {}", String::from_utf8_lossy(&seen));
            seen.extend(byte);
        }
        String::from_utf8_lossy(&seen).into_owned()
    }

    /// Waits for the end, and returns the screen and the exit code.
    pub(crate) fn ends(&mut self) -> (String, Option<i32>) {
        let mut seen = Vec::new();
        // When the last one has closed the terminal, reading from it fails.
        let _ = self.screen.read_to_end(&mut seen);
        (String::from_utf8_lossy(&seen).into_owned(), self.program.wait().unwrap().code())
    }
}
