//! The operating system: a roof that the rest of stead calls, and below it one folder for each system.
//!
//! Nobody else names `rustix`, `nix`, `libc`, `signal-hook`, `zbus` or `std::os`; `cargo xtask tidy` sees to it. What
//! is the same everywhere lies beside the folders: [`Cancel`], errors, kinds and modes of files, waiting. A second
//! folder gives the modules below under the same names, with the same types and functions: what each of them promises
//! is the contract, and how Linux keeps it is behind the dash.
//!
//! | module | what it promises to those above – how Linux keeps it, and what another system must find |
//! |---|---|
//! | [`fs`] | A path is resolved once, to an open directory and a name; links count only where nobody else could have placed them; what is below another root never leads out of it – `openat2`, `O_PATH`, `O_NOFOLLOW`; needed: opening relative to a directory without following anything |
//! | | New content appears whole, with its final owner and mode – a file without a name, `linkat`, `renameat2`; needed: a temporary file that others cannot open, and a rename that replaces |
//! | | What was written survives a power failure when it says so – `fsync`, `syncfs`; where directories cannot be flushed, the promise becomes weaker, and the documentation must say it |
//! | | Judging who could change a file ([`fs::Trust`]) – owners and modes of every component; needed: owners and access lists |
//! | [`process`] | A program is judged and then started as what was judged; everything that it started ends with it, and with this process – process groups, a mark in the environment, a supervisor, a control group; needed: a group of processes that is ended as a whole |
//! | [`lock`] | Released by the end of its process, however that comes; the same by whatever path a root is named – `flock` |
//! | [`watch`] | A change of what is in a folder is noticed, or that so much changed that it may be anything – inotify |
//! | [`folder`], [`places`], [`scratch`] | Folders that only this user can enter: for what is kept, where that lies, and for as long as a process lives – mode 0700 below `/var/lib`, `/run`, the directories of XDG, a file system of memory |
//! | [`user`] | Who runs this, and names of users and groups as numbers – uid, NSS; of another root its own files. A system with other identities needs another type than `u32` here, in [`fs::Status`] and in [`fs::Ownership`] |
//! | [`interrupt`] | A request to end sets a flag, and is a [`interrupt::Notice`] that can be waited for – signals and a pipe |
//! | [`terminal`] | Its width, whether an input can be read, and typing that is not shown – `ioctl`, `poll`, `termios` |
//! | [`socket`] | Connections of which the user at the other end is known, under a name that only this user can use; messages to the journal and the service manager – Unix sockets |
//! | [`memory_file`] | A file that no directory has and programs can read – `memfd` |
//! | [`services`], [`unit`] | The services of the running system – systemd over D-Bus; programs of stead as services – units, `systemctl` |
//! | [`mount`] | Mounting on the running system; the one module that another system need not have – `mount(2)` |
//! | [`kernel`], [`machine`], [`network`] | What the running system says of itself – `uname`, `/proc`, `/sys`, `getifaddrs` |
//! | [`clock`], [`zone`] | The clock that files are stamped by; the time zone as it is now – `CLOCK_REALTIME`, `/etc/localtime` |
//!
//! # Changes
//!
//! Things below a root are changed by these functions, one for each kind of change, and nobody has a descriptor that he changes by
//! himself. Whoever keeps what was there, to put it back, does it in them.
//!
//! | change | function |
//! |---|---|
//! | content that takes the place of a file, or of nothing | [`fs::Replacement::finish`] |
//! | a directory | [`fs::Place::make_directory`], [`fs::Place::make_directory_with`] |
//! | a link | [`fs::Place::replace_by_link`] |
//! | a second name | [`fs::Place::keep_as`] |
//! | another name | [`fs::Place::rename_if_free`] |
//! | a name that goes | [`fs::Place::remove`], [`fs::Place::remove_directory`], [`fs::remove_tree`] |
//! | owner and mode | [`fs::Writes::change`], and of a link [`fs::Place::own`] |
//! | a part of a file | none: a changed file is new content |
//!
//! # Errors
//!
//! An error of the system stays a [`std::io::Error`], and is distinguished by its kind, or by a predicate of [`fs`].

mod cancel;
mod error;
mod kind;
mod linux;
mod waiting;

pub use cancel::Cancel;
pub use error::error_chain;
pub use linux::{
    clock, folder, fs, interrupt, kernel, lock, machine, memory_file, mount, network, places, process, scratch,
    services, socket, terminal, unit, user, watch, zone,
};
