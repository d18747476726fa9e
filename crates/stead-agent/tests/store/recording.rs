//! The changes of a process to a directory, read from a record of its system calls.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// One thing that a process did, or said.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Op {
    /// It began.
    Start,
    /// It said that so many steps are done.
    Said(usize),
    Mkdir(PathBuf),
    /// It gave a file a name, its first or another one.
    Link(usize, PathBuf),
    Rename(PathBuf, PathBuf),
    Unlink(PathBuf),
    /// It appended to a file.
    Write(usize, Vec<u8>),
    FlushFile(usize),
    FlushDirectory(PathBuf),
}

#[derive(Clone, PartialEq, Debug)]
enum Node {
    Directory(PathBuf),
    File(usize),
    Other,
}

/// Reads recordings of processes that worked in a directory one after the other.
pub(crate) struct Reader {
    home: PathBuf,
    names: BTreeMap<PathBuf, Node>,
    descriptors: BTreeMap<i32, Node>,
    files: usize,
    pub(crate) ops: Vec<Op>,
}

/// A system call: its name, its arguments, and what it returned.
struct Call<'a> {
    name: &'a str,
    arguments: Vec<&'a str>,
    returned: i32,
}

impl<'a> Call<'a> {
    /// `None` for lines about anything else, and calls that failed or did not return.
    fn parse(line: &'a str) -> Option<Self> {
        let (_, call) = line.split_once(' ')?;
        let (name, rest) = call.trim_start().split_once('(')?;
        let (arguments, returned) = rest.rsplit_once(" = ")?;
        let arguments = arguments.trim_end().strip_suffix(')')?.split(", ").collect();
        let returned = returned.split(' ').next()?.parse().ok().filter(|returned| *returned >= 0)?;
        Some(Self { name, arguments, returned })
    }

    fn text(&self, at: usize) -> Vec<u8> {
        let hexadecimal = self.arguments[at].trim_matches('"').split("\\x").skip(1);
        hexadecimal.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
    }

    fn path(&self, at: usize) -> PathBuf {
        String::from_utf8(self.text(at)).unwrap().into()
    }

    fn descriptor(&self, at: usize) -> i32 {
        self.arguments[at].parse().unwrap_or(-1)
    }

    fn has(&self, flag: &str) -> bool {
        self.arguments.iter().any(|argument| argument.contains(flag))
    }
}

impl Reader {
    pub(crate) fn new(home: &Path) -> Self {
        let (names, descriptors) = (BTreeMap::new(), BTreeMap::new());
        Self { home: home.to_owned(), names, descriptors, files: 0, ops: Vec::new() }
    }

    /// Reads what one process did after it began.
    pub(crate) fn read(&mut self, log: &[String]) {
        self.descriptors.clear();
        self.ops.push(Op::Start);
        let begin = "/begin".bytes().fold(String::new(), |text, byte| format!("{text}\\x{byte:02x}"));
        for line in log.iter().skip_while(|line| !line.contains(&begin)) {
            if let Some(call) = Call::parse(line) {
                self.take(&call);
            }
        }
    }

    fn take(&mut self, call: &Call<'_>) {
        match call.name {
            "openat" | "openat2" => self.open(call),
            "fcntl" if call.has("F_DUPFD") => {
                let node = self.node(call.descriptor(0));
                self.descriptors.insert(call.returned, node);
            }
            "close" => drop(self.descriptors.remove(&call.descriptor(0))),
            "mkdirat" => {
                let path = self.resolve(call, 0);
                self.names.insert(path.clone(), Node::Directory(path.clone()));
                self.push(Op::Mkdir(path));
            }
            "write" => self.write(call),
            "fsync" | "fdatasync" => match self.node(call.descriptor(0)) {
                Node::File(file) => self.push(Op::FlushFile(file)),
                Node::Directory(path) => self.push(Op::FlushDirectory(path)),
                Node::Other => {}
            },
            "linkat" => self.link(call),
            "renameat" | "renameat2" | "rename" => {
                let (from, to) = (self.resolve(call, 0), self.resolve(call, 2));
                // Two names of one file both stay.
                if self.names.get(&from) != self.names.get(&to) {
                    let node = self.names.remove(&from).unwrap();
                    self.names.insert(to.clone(), node);
                    self.push(Op::Rename(from, to));
                }
            }
            "unlinkat" => {
                let path = self.resolve(call, 0);
                self.names.remove(&path);
                self.push(Op::Unlink(path));
            }
            _ => {}
        }
    }

    fn open(&mut self, call: &Call<'_>) {
        let path = self.resolve(call, 0);
        let node = match self.names.get(&path) {
            _ if call.has("O_TMPFILE") => self.new_file(),
            Some(node) => node.clone(),
            None if call.has("O_CREAT") && path.starts_with(&self.home) => {
                let node = self.new_file();
                self.names.insert(path.clone(), node.clone());
                if let Node::File(file) = node {
                    self.push(Op::Link(file, path));
                }
                node
            }
            None if self.home.starts_with(&path) => Node::Directory(path),
            None => Node::Other,
        };
        self.descriptors.insert(call.returned, node);
    }

    fn write(&mut self, call: &Call<'_>) {
        let mut bytes = call.text(1);
        bytes.truncate(usize::try_from(call.returned).unwrap());
        if call.descriptor(0) == 1 {
            let said = String::from_utf8(bytes).unwrap();
            if let Some(done) = said.trim().strip_prefix('=').and_then(|done| done.parse().ok()) {
                self.push(Op::Said(done));
            }
        } else if let Node::File(file) = self.node(call.descriptor(0)) {
            self.push(Op::Write(file, bytes));
        }
    }

    fn link(&mut self, call: &Call<'_>) {
        let node = if call.text(1).is_empty() {
            self.node(call.descriptor(0))
        } else {
            let path = self.resolve(call, 0);
            self.names.get(&path).cloned().or_else(|| self.by_descriptor(&path)).unwrap()
        };
        let Node::File(file) = node else { panic!("a link to {node:?}") };
        let to = self.resolve(call, 2);
        self.names.insert(to.clone(), Node::File(file));
        self.push(Op::Link(file, to));
    }

    fn new_file(&mut self) -> Node {
        self.files += 1;
        Node::File(self.files)
    }

    fn node(&self, descriptor: i32) -> Node {
        self.descriptors.get(&descriptor).cloned().unwrap_or(Node::Other)
    }

    fn by_descriptor(&self, path: &Path) -> Option<Node> {
        let number = path.strip_prefix("/proc/self/fd").ok()?.to_str()?.parse().ok()?;
        self.descriptors.get(&number).cloned()
    }

    /// The path that a descriptor and the name behind it are.
    fn resolve(&self, call: &Call<'_>, at: usize) -> PathBuf {
        let name = call.path(at + 1);
        let Node::Directory(directory) = self.node(call.descriptor(at)) else { return name };
        directory.join(name).components().filter(|part| *part != Component::CurDir).collect()
    }

    fn push(&mut self, op: Op) {
        self.ops.push(op);
    }
}
