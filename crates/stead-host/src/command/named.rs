//! The files that the arguments of a manifest name. An interpreter runs them, with the rights of the run.
//!
//! Which argument is a script only the program knows. So whatever may be a path is taken for one, and what it leads to
//! is judged as a program is.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::Path;

use stead_system::fs::{self, OpenError, Trust, TrustedDirectory, Untrusted};

use super::scripts::run_by;

/// A program that runs another one, by the form of its arguments.
struct Runner {
    name: &'static str,
    /// The options whose value is the user that the other one runs as.
    user: &'static [&'static str],
    /// Further options with a value.
    valued: &'static [&'static str],
    /// True if an operand is the user where no option names one.
    is_user_operand: bool,
}

/// An option whose text it splits into words is not read.
const ENV: Runner = Runner {
    name: "env",
    user: &["-S", "--split-string"],
    valued: &["-u", "--unset", "-C", "--chdir"],
    is_user_operand: false,
};

/// Those that run it as another user, who may run what is theirs.
const AS_ANOTHER: [Runner; 6] = [
    Runner { name: "su", user: &[], valued: OF_SU, is_user_operand: true },
    Runner { name: "runuser", user: &["-u", "--user"], valued: OF_SU, is_user_operand: true },
    Runner {
        name: "sudo",
        user: &["-u", "--user"],
        valued: &[
            "-g", "--group", "-p", "--prompt", "-C", "-D", "--chdir", "-h", "--host", "-r", "-t", "-T", "-U", "-R",
        ],
        is_user_operand: false,
    },
    Runner {
        name: "setpriv",
        user: &["--reuid"],
        valued: &[
            "--regid",
            "--ruid",
            "--euid",
            "--rgid",
            "--egid",
            "--groups",
            "--inh-caps",
            "--bounding-set",
            "--ambient-caps",
        ],
        is_user_operand: false,
    },
    Runner {
        name: "systemd-run",
        user: &["--uid"],
        valued: &[
            "-p",
            "--property",
            "-u",
            "--unit",
            "--gid",
            "--slice",
            "--description",
            "-E",
            "--setenv",
            "-M",
            "--machine",
        ],
        is_user_operand: false,
    },
    Runner { name: "chroot", user: &["--userspec"], valued: &["--groups"], is_user_operand: false },
];

const OF_SU: &[&str] = &[
    "-c",
    "--command",
    "--session-command",
    "-g",
    "--group",
    "-G",
    "--supp-group",
    "-s",
    "--shell",
    "-w",
    "--whitelist-environment",
];

/// Returns whether what a program is given is run as another user than root. What the other program is given says nothing of
/// that, nor does an option that is not known to name a user.
pub(super) fn runs_as_another(executable: &str, arguments: &[OsString]) -> bool {
    let arguments: Vec<Cow<'_, str>> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    let (mut program, mut rest) = (executable, &*arguments);
    while Path::new(program).file_name().is_some_and(|name| name == ENV.name) {
        let (split, behind) = ENV.read(rest);
        if !split.is_empty() {
            return false;
        }
        let variables = behind.iter().take_while(|word| !word.starts_with('-') && word.contains('='));
        let behind = behind.get(variables.count()..).unwrap_or_default();
        let Some((first, others)) = behind.split_first() else { return false };
        (program, rest) = (first, others);
    }
    let name = Path::new(program).file_name().unwrap_or_default();
    let Some(runner) = AS_ANOTHER.iter().find(|runner| name == runner.name) else { return false };
    let (users, behind) = runner.read(rest);
    let operand = behind.first().filter(|_| users.is_empty() && runner.is_user_operand).map(|user| &**user);
    let mut users = users.into_iter().chain(operand).peekable();
    users.peek().is_some() && users.all(is_another)
}

/// Returns whether a user, by name or number, with or without a group, is not root.
fn is_another(user: &str) -> bool {
    let user = user.split(':').next().unwrap_or_default();
    let is_zero = user.trim_start_matches('#').parse() == Ok(0_u32);
    !(user.is_empty() || user == "root" || is_zero)
}

impl Runner {
    /// Reads its own options. Returns the users that they name, and what is behind them.
    fn read<'a>(&self, arguments: &'a [Cow<'a, str>]) -> (Vec<&'a str>, &'a [Cow<'a, str>]) {
        let (mut users, mut rest) = (Vec::new(), arguments);
        while let Some((word, behind)) = rest.split_first() {
            match &**word {
                "--" => return (users, behind),
                // The login shell of su.
                "-" if self.is_user_operand => rest = behind,
                option if option.len() > 1 && option.starts_with('-') => {
                    let (name, attached) = self.split(option);
                    let takes_next = attached.is_none() && (self.user.contains(&name) || self.valued.contains(&name));
                    let next = behind.first().filter(|_| takes_next).map(|value| &**value);
                    users.extend(attached.or(next).filter(|_| self.user.contains(&name)));
                    rest = if takes_next { behind.get(1..).unwrap_or_default() } else { behind };
                }
                _ => break,
            }
        }
        (users, rest)
    }

    /// The name of an option, and the value that is attached to it. Of several letters it is the first that takes a value.
    fn split<'a>(&self, option: &'a str) -> (&'a str, Option<&'a str>) {
        if option.starts_with("--") {
            return option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        }
        let takes_value = |letter: char| {
            let is_it = |name: &&&str| name.len() == 2 && name.ends_with(letter);
            self.user.iter().chain(self.valued).find(is_it).copied()
        };
        let found = option.char_indices().skip(1).find_map(|(at, letter)| Some((at, letter, takes_value(letter)?)));
        let Some((at, letter, name)) = found else { return (option, None) };
        (name, option.get(at + letter.len_utf8()..).filter(|value| !value.is_empty()))
    }
}

/// Judges every file that arguments name. Returns the first that is not trusted, as it is named.
///
/// `directory` is where the manifest lies and its programs work. Of code among the arguments (`-c`, `-Command`) the
/// relative paths are judged, which are parts of the resource; what else it opens is its own affair. A folder of others may be
/// named, unless an interpreter loads from it.
pub(super) fn judge(executable: &str, arguments: &[String], directory: &Path) -> Result<(), (String, Untrusted)> {
    if arguments.is_empty() {
        return Ok(());
    }
    let opened = match TrustedDirectory::open(directory, Trust::RootAnywhere) {
        Ok(opened) => opened,
        Err(OpenError::Untrusted(untrusted)) => return Err((directory.display().to_string(), untrusted)),
        // The program cannot be started there either.
        Err(OpenError::System { .. }) => return Ok(()),
    };
    let mut named = arguments.iter().flat_map(|argument| paths_in(argument));
    named.try_for_each(|path| opened.judge(Path::new(&path)).map_err(|untrusted| (path, untrusted)))?;
    let mut loaded = run_by(executable, arguments).into_iter();
    loaded.try_for_each(|path| match fs::judge(&directory.join(&path), Trust::RootAnywhere) {
        Err(OpenError::Untrusted(untrusted)) => Err((path, untrusted)),
        // What cannot be looked at cannot be run either.
        Ok(()) | Err(OpenError::System { .. }) => Ok(()),
    })
}

/// Returns the paths that may be in an argument: all of it, what an option has attached, and each relative word of
/// code.
fn paths_in(argument: &str) -> Vec<String> {
    let attached = argument.split_once('=').map(|(_, value)| value);
    let behind_option =
        argument.starts_with('-').then(|| argument.find('/')).flatten().and_then(|at| argument.get(at..));
    let letter = argument.strip_prefix('-').filter(|rest| !rest.starts_with('-')).and_then(|rest| rest.get(1..));
    let words = argument.split(is_no_path).filter(|word| !word.starts_with('/') && *word != argument);
    let all = std::iter::once(argument).chain(attached).chain(behind_option).chain(letter).chain(words);
    // PowerShell takes both slashes.
    let plain = all.map(|path| path.replace('\\', "/"));
    plain.filter(|path| !path.is_empty() && !path.contains('\0')).collect()
}

/// Returns whether a character ends a word in the languages of shells.
fn is_no_path(character: char) -> bool {
    character.is_whitespace() || "\"'`;|&<>(){}[]$,=@".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_may_be_a_path_is_taken_for_one() {
        let cases: [(&str, &[&str]); 10] = [
            ("-Ilib", &["-Ilib", "lib"]),
            ("run.sh", &["run.sh"]),
            ("/opt/x y.sh", &["/opt/x y.sh", "y.sh"]),
            ("--file=lib/a.py", &["--file=lib/a.py", "lib/a.py", "/a.py", "--file", "lib/a.py"]),
            ("-I/opt/lib", &["-I/opt/lib", "/opt/lib", "/opt/lib"]),
            ("-fown/x.awk", &["-fown/x.awk", "/x.awk", "own/x.awk"]),
            (".\\a\\b.ps1", &["./a/b.ps1"]),
            ("$Input | ./a/b.ps1 Get", &["$Input | ./a/b.ps1 Get", "Input", "./a/b.ps1", "Get"]),
            ("$(cat 'a b')>c;d", &["$(cat 'a b')>c;d", "cat", "a", "b", "c", "d"]),
            ("", &[]),
        ];
        for (argument, expected) in cases {
            assert_eq!(paths_in(argument), expected, "{argument}");
        }
    }

    #[test]
    fn only_an_option_that_names_another_user_makes_one() {
        let cases = [
            ("runuser -u ada -- sh run.sh", true),
            ("runuser -uada sh run.sh", true),
            ("runuser -l ada -c ./run.sh", true),
            ("su ada -c ./run.sh", true),
            ("su - ada -c ./run.sh", true),
            ("su -s /bin/sh ada", true),
            ("su -c ./run.sh", false),
            ("su - root -c ./run.sh", false),
            ("sudo -u ada ./run.sh", true),
            ("sudo -nu ada ./run.sh", true),
            ("sudo -u #0 ./run.sh", false),
            ("sudo ./run.sh -u ada", false),
            ("/usr/bin/setpriv --reuid=ada --clear-groups sh run.sh", true),
            ("setpriv --reuid 1000 sh run.sh", true),
            ("setpriv --reuid=0 sh run.sh", false),
            ("setpriv --reuid 00 sh run.sh", false),
            ("setpriv --no-new-privs sh run.sh", false),
            ("setpriv --no-new-privs sh run.sh --reuid=ada", false),
            ("systemd-run --uid=ada sh run.sh", true),
            ("systemd-run --wait sh run.sh --uid=ada", false),
            ("chroot --userspec=ada:users / sh run.sh", true),
            ("chroot --userspec=:users / sh run.sh", false),
            ("env A=1 runuser -u ada sh run.sh", true),
            ("env -u A -i env B=2 su ada", true),
            ("env A=1 sh run.sh runuser -u ada", false),
            ("env -S su ada", false),
            ("runuser -u root -- sh run.sh", false),
            ("env -u ada sh run.sh", false),
            ("runuser -u", false),
        ];
        for (line, expected) in cases {
            let mut words = line.split(' ');
            let program = words.next().unwrap();
            let arguments: Vec<OsString> = words.map(OsString::from).collect();
            assert_eq!(runs_as_another(program, &arguments), expected, "{line}");
        }
    }
}
