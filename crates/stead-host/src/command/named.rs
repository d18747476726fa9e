//! The files that the arguments of a manifest name. An interpreter runs them, with the rights of the run.
//!
//! Which argument is a script only the program knows. So whatever may be a path is taken for one, and what it leads to
//! is judged as a program is.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::Path;

use stead_system::fs::{OpenError, Trust, TrustedDirectory, Untrusted};

/// Programs that run another one as the user that an option names, who may run what is theirs.
const AS_ANOTHER: [(&str, &[&str]); 2] = [("runuser", &["-u", "--user"]), ("setpriv", &["--reuid"])];

/// Returns whether what a program is given is run as another user than root.
pub(super) fn runs_as_another(executable: &str, arguments: &[OsString]) -> bool {
    let name = Path::new(executable).file_name().unwrap_or_default();
    let Some((_, options)) = AS_ANOTHER.iter().find(|(each, _)| name == *each) else { return false };
    let arguments: Vec<Cow<'_, str>> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    let following = arguments.iter().zip(arguments.iter().skip(1)).filter(|(option, _)| options.contains(&&***option));
    let attached = arguments.iter().filter_map(|argument| argument.split_once('='));
    let attached = attached.filter(|(option, _)| options.contains(option)).map(|(_, user)| user);
    let mut users = following.map(|(_, user)| &**user).chain(attached).peekable();
    users.peek().is_some() && users.all(|user| !matches!(user, "root" | "0"))
}

/// Judges every file that arguments name. Returns the first that is not trusted, as it is named.
///
/// `directory` is where the manifest lies and its programs work. Of code among the arguments (`-c`, `-Command`) the
/// relative paths are judged, which are parts of the resource; what else it opens is its own affair.
pub(super) fn judge(arguments: &[String], directory: &Path) -> Result<(), (String, Untrusted)> {
    if arguments.is_empty() {
        return Ok(());
    }
    let opened = match TrustedDirectory::open(directory, Trust::RootAnywhere) {
        Ok(opened) => opened,
        Err(OpenError::Untrusted(untrusted)) => return Err((directory.display().to_string(), untrusted)),
        // The program cannot be started there either.
        Err(OpenError::System { .. }) => return Ok(()),
    };
    arguments
        .iter()
        .flat_map(|argument| paths_in(argument))
        .try_for_each(|path| opened.judge(Path::new(&path)).map_err(|untrusted| (path, untrusted)))
}

/// Returns the paths that may be in an argument: all of it, what an option has attached, and each relative word of
/// code.
fn paths_in(argument: &str) -> Vec<String> {
    let attached = argument.split_once('=').map(|(_, value)| value);
    let behind_option =
        argument.starts_with('-').then(|| argument.find('/')).flatten().and_then(|at| argument.get(at..));
    let words = argument.split(is_no_path).filter(|word| !word.starts_with('/') && *word != argument);
    let all = std::iter::once(argument).chain(attached).chain(behind_option).chain(words);
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
        let cases: [(&str, &[&str]); 8] = [
            ("run.sh", &["run.sh"]),
            ("/opt/x y.sh", &["/opt/x y.sh", "y.sh"]),
            ("--file=lib/a.py", &["--file=lib/a.py", "lib/a.py", "/a.py", "--file", "lib/a.py"]),
            ("-I/opt/lib", &["-I/opt/lib", "/opt/lib"]),
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
            ("/usr/bin/setpriv --reuid=ada --clear-groups sh run.sh", true),
            ("setpriv --reuid 1000 sh run.sh", true),
            ("setpriv --reuid=0 sh run.sh", false),
            ("setpriv --no-new-privs sh run.sh", false),
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
