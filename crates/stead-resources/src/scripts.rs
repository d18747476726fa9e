//! The files that an interpreter is called to run: they are programs as it is.

use std::path::Path;

/// A program that runs the file that it is given.
struct Interpreter {
    /// Its name without a version.
    name: &'static str,
    /// The letters of options that are followed by code, or a module, in place of a file.
    code: &'static str,
    /// Options that are followed by the file, in small letters.
    file: &'static [&'static str],
    /// Options that are followed by something else.
    valued: &'static [&'static str],
}

const fn shell(name: &'static str) -> Interpreter {
    Interpreter { name, code: "cs", file: &["--rcfile", "--init-file"], valued: &["-o", "+o", "-O", "+O"] }
}

const fn language(name: &'static str, code: &'static str, valued: &'static [&'static str]) -> Interpreter {
    Interpreter { name, code, file: &[], valued }
}

const INTERPRETERS: [Interpreter; 16] = [
    shell("sh"),
    shell("bash"),
    shell("dash"),
    shell("ash"),
    shell("zsh"),
    shell("ksh"),
    shell("mksh"),
    language("perl", "eE", &[]),
    language("python", "cm", &["-W", "-X"]),
    language("ruby", "e", &["-r", "-C", "-E"]),
    language("node", "ep", &["-r", "--require", "--import"]),
    Interpreter { name: "php", code: "r", file: &["-f", "-c"], valued: &["-d"] },
    language("lua", "e", &["-l"]),
    language("Rscript", "e", &[]),
    language("tclsh", "", &["-encoding"]),
    Interpreter { name: "pwsh", code: "", file: &["-file", "-f"], valued: &[] },
];

/// Returns the file that an interpreter runs with these arguments, and the folders with which it begins its search for libraries
/// (`-I`). Nothing of other programs, and of code among the arguments.
pub(crate) fn run_by<'a>(program: &str, arguments: &'a [String]) -> Vec<&'a str> {
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.trim_end_matches(|character: char| character.is_ascii_digit() || character == '.');
    let Some(interpreter) = INTERPRETERS.iter().find(|each| each.name == name) else { return Vec::new() };
    let (mut found, mut rest) = (Vec::new(), arguments.iter().map(String::as_str));
    while let Some(word) = rest.next() {
        let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        match word {
            "-" => break,
            "--" => {
                found.extend(rest.next());
                break;
            }
            "-I" => found.extend(rest.next()),
            _ if word.starts_with("-I") => found.extend(word.get(2..)),
            _ if interpreter.file.contains(&word.to_ascii_lowercase().as_str()) => found.extend(rest.next()),
            _ if interpreter.valued.contains(&word) => _ = rest.next(),
            _ if letters.is_some_and(|letters| letters.chars().any(|each| interpreter.code.contains(each))) => break,
            _ if word.starts_with(['-', '+']) => {}
            file => {
                found.push(file);
                break;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_run_is_not_what_it_is_given() {
        let cases = [
            ("sh run.sh a b", "run.sh"),
            ("/bin/bash -eu ./run.sh x", "./run.sh"),
            ("bash -o pipefail run.sh", "run.sh"),
            ("bash --rcfile rc run.sh", "rc run.sh"),
            ("sh -c ./run.sh", ""),
            ("sh -ec ./run.sh", ""),
            ("sh -s x", ""),
            ("python3.12 -W error script.py -c", "script.py"),
            ("python3 -m http.server", ""),
            ("perl -Ilib -w -I other script.pl", "lib other script.pl"),
            ("perl -Ilib -ne print", "lib"),
            ("ruby -- -odd.rb", "-odd.rb"),
            ("node --require a.js main.js", "main.js"),
            ("php -d a=b -f x.php", "x.php"),
            ("pwsh -NoProfile -File a.ps1 b.ps1", "a.ps1 b.ps1"),
            ("cat run.sh", ""),
            ("sh", ""),
        ];
        for (command, expected) in cases {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(run_by(&words[0], &words[1..]).join(" "), expected, "{command}");
        }
    }
}
