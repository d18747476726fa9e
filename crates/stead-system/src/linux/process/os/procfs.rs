//! Processes as `/proc` shows them.

use std::fs;
use std::io::Read;

/// The status of a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::linux::process) struct Stat {
    pub(in crate::linux::process) pid: i32,
    pub(in crate::linux::process) name: String,
    pub(in crate::linux::process) ended: bool,
    pub(in crate::linux::process) parent: i32,
    pub(in crate::linux::process) group: i32,
    pub(in crate::linux::process) session: i32,
    /// In clock ticks since boot; with the pid it identifies a process.
    pub(in crate::linux::process) start: u64,
}

/// Reads `/proc/PID/stat`; `None` when there is no such process any more.
pub(in crate::linux::process) fn stat(pid: i32) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Returns the status of this process; `None` when there is no `/proc`.
pub(in crate::linux::process) fn own() -> Option<Stat> {
    stat(rustix::process::getpid().as_raw_nonzero().get())
}

/// Returns whether a process started this one, or one that did.
pub fn is_ancestor(pid: u32) -> bool {
    let parents = std::iter::successors(own(), |process| stat(process.parent));
    // A chain is as long as processes are nested; one that is not sound must not hold up anybody.
    parents.skip(1).take(1024).any(|process| u32::try_from(process.pid) == Ok(pid))
}

/// The service of systemd that this process runs in, as its control group says; `None` where there is none.
pub fn own_unit() -> Option<String> {
    service_of(&fs::read_to_string("/proc/self/cgroup").ok()?)
}

fn service_of(groups: &str) -> Option<String> {
    // That of systemd has no controllers, or its name; where there are both, one of them may be empty.
    let mut names = groups.lines().filter_map(|line| {
        let named = || line.split_once(":name=systemd:").map(|(_, path)| path);
        line.strip_prefix("0::").or_else(named)?.rsplit('/').find(|name| name.ends_with(".service"))
    });
    names.next().map(str::to_owned)
}

fn parse(text: &str) -> Option<Stat> {
    // The name is whatever the process likes, parentheses and spaces included: the last one closes it.
    let (head, tail) = text.rsplit_once(')')?;
    let (pid, name) = head.split_once('(')?;
    let fields: Vec<&str> = tail.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse().ok();
    Some(Stat {
        pid: pid.trim().parse().ok()?,
        name: name.to_owned(),
        ended: matches!(fields.first(), Some(&("Z" | "X"))),
        parent: number(1)?,
        group: number(2)?,
        session: number(3)?,
        start: fields.get(19)?.parse().ok()?,
    })
}

/// Every process that can be seen.
pub(in crate::linux::process) fn all() -> Vec<Stat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| stat(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// Returns whether the environment of a process, as it was given at its start, has a variable with this text in its
/// value.
///
/// Also false when the environment may not be read: the process ended, or runs as another user.
pub(in crate::linux::process) fn environment_has(pid: i32, variable: &str, text: &str) -> bool {
    let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
    environment.split(|byte| *byte == 0).any(|entry| {
        let value = entry.strip_prefix(variable.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        value.is_some_and(|value| String::from_utf8_lossy(value).contains(text))
    })
}

/// The children of all threads of a process.
pub(in crate::linux::process) fn children(pid: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let texts = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    texts.flat_map(|text| text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}

/// How much memory a process takes, in bytes; `None` when there is no such process any more.
pub(in crate::linux::process) fn resident_memory(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

/// The children of the first thread of this process, which is also who orphans are given to.
///
/// The quick way to see whether there are any: one small file, whatever the number of processes. The kernel may leave one out while
/// another before it ends, so that the file is read until it says twice what it said.
pub(in crate::linux::process) fn adopted() -> Vec<i32> {
    let mut before = listed_children();
    for _ in 0..8 {
        let now = listed_children();
        if now == before {
            break;
        }
        before = now;
    }
    before
}

fn listed_children() -> Vec<i32> {
    let own = rustix::process::getpid().as_raw_nonzero();
    let mut text = String::new();
    let read = fs::File::open(format!("/proc/self/task/{own}/children")).and_then(|mut file| {
        // Without the size of the file being asked for first, as `fs::read_to_string` does.
        let mut buffer = [0; 4096];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(()),
                count => text.push_str(&String::from_utf8_lossy(buffer.get(..count).unwrap_or_default())),
            }
        }
    });
    match read {
        Ok(()) => text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect(),
        // Kernels without CONFIG_PROC_CHILDREN; groups and pipes are still looked at.
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_anything() {
        let text = "42 (a) R 1 (b) S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 777 1 1";
        let stat = parse(text).unwrap();
        assert_eq!((stat.pid, stat.name.as_str(), stat.parent, stat.group, stat.session), (42, "a) R 1 (b", 7, 8, 9));
        assert_eq!((stat.ended, stat.start), (false, 777));
    }

    #[test]
    fn this_process_is_seen() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        assert!(all().iter().any(|each| each.pid == own));
        assert_eq!(stat(own).map(|each| each.ended), Some(false));
        assert_eq!(parse("nonsense"), None);
    }

    #[test]
    fn the_service_is_that_of_the_control_group() {
        let of = |groups: &str| service_of(groups);
        assert_eq!(of("0::/system.slice/stead-agent.service\n").as_deref(), Some("stead-agent.service"));
        assert_eq!(of("3:cpu:/\n1:name=systemd:/system.slice/a.service/sub\n").as_deref(), Some("a.service"));
        assert_eq!(of("9:name=systemd:/\n0::/system.slice/b.service\n").as_deref(), Some("b.service"));
        assert_eq!(of("0::/user.slice/user-0.slice/session-1.scope\n"), None);
        assert_eq!(of(""), None);
    }
}
