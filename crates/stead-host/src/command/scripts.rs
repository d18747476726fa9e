//! The files that an interpreter is called to run: they are programs as it is.

use std::path::Path;

/// A program that runs the file that it is given.
struct Interpreter {
    /// Its names without a version.
    names: &'static [&'static str],
    /// Its options of one letter that take something.
    letters: &'static [(&'static str, Takes)],
    /// Further ones, each with the fewest of its letters that stand for it.
    words: &'static [(&'static str, &'static str, Takes)],
    /// The folder below the working directory in which it looks for a module that is named without a path; `None` if it looks
    /// in folders of its own only.
    modules: Option<&'static str>,
    /// What it may add to the name of a file.
    endings: &'static [&'static str],
}

/// What an option takes, which is in the same word or is the next one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// Code or a module in place of a file; what follows is for that.
    Rest,
    /// Code in place of a file; options may follow.
    Code,
    /// The file to run; what follows is for that.
    Script,
    /// A file or a folder from which it loads first.
    Loaded,
    /// A module that it loads first, or the path of one.
    Module,
    /// A folder that it works in.
    Directory,
    /// Something else.
    Value,
    /// Something else, only in the same word.
    Attached,
    /// Something else, which is the next word whatever else is in this one.
    Next,
}

use Takes::{Attached, Code, Directory, Loaded, Module, Next, Rest, Script, Value};

const fn of(names: &'static [&'static str], letters: &'static [(&'static str, Takes)]) -> Interpreter {
    Interpreter { names, letters, words: &[], modules: None, endings: &[] }
}

const INTERPRETERS: [Interpreter; 12] = [
    Interpreter {
        words: &[("--rcfile", "--rcfile", Loaded), ("--init-file", "--init-file", Loaded)],
        ..of(&["sh", "bash", "rbash", "dash", "ash"], &[("cs", Rest), ("oO", Next)])
    },
    of(&["zsh", "ksh", "mksh"], &[("cs", Rest), ("o", Value)]),
    of(&["perl"], &[("eE", Code), ("I", Loaded), ("MmFCDxiVd", Attached)]),
    Interpreter {
        words: &[("--check-hash-based-pycs", "--check-hash-based-pycs", Value)],
        ..of(&["python", "pypy"], &[("cm", Rest), ("WXQ", Value)])
    },
    Interpreter {
        endings: &[".rb", ".so"],
        ..of(
            &["ruby"],
            &[("e", Code), ("I", Loaded), ("r", Module), ("CX", Directory), ("E", Value), ("KxiFTW", Attached)],
        )
    },
    Interpreter {
        words: &[
            ("-pe", "-pe", Code),
            ("--eval", "--eval", Code),
            ("--print", "--print", Code),
            ("--require", "--require", Module),
            ("--import", "--import", Module),
            ("--loader", "--loader", Module),
            ("--experimental-loader", "--experimental-loader", Module),
            ("--conditions", "--conditions", Value),
            ("--title", "--title", Value),
            ("--input-type", "--input-type", Value),
            ("--env-file", "--env-file", Value),
            ("--icu-data-dir", "--icu-data-dir", Value),
            ("--openssl-config", "--openssl-config", Value),
            ("--max-http-header-size", "--max-http-header-size", Value),
            ("--unhandled-rejections", "--unhandled-rejections", Value),
            ("--dns-result-order", "--dns-result-order", Value),
            ("--disable-warning", "--disable-warning", Value),
            ("--redirect-warnings", "--redirect-warnings", Value),
        ],
        modules: Some("node_modules"),
        endings: &[".js", ".json", ".node", "/package.json", "/index.js"],
        ..of(&["node", "nodejs"], &[("ep", Code), ("r", Module), ("C", Value)])
    },
    of(&["php"], &[("rR", Code), ("fF", Script), ("cz", Loaded), ("dBEtS", Value)]),
    Interpreter {
        modules: Some(""),
        endings: &[".lua", ".so", "/init.lua"],
        ..of(&["lua"], &[("l", Module), ("e", Value)])
    },
    Interpreter {
        modules: Some(""),
        endings: &[".lua", ".so", "/init.lua"],
        ..of(&["luajit"], &[("b", Rest), ("l", Module), ("ej", Value), ("O", Attached)])
    },
    of(&["Rscript"], &[("e", Code), ("g", Value)]),
    Interpreter { words: &[("-encoding", "-encoding", Value)], ..of(&["tclsh"], &[]) },
    Interpreter {
        words: &[
            ("-f", "-file", Script),
            ("-c", "-command", Rest),
            ("-cwa", "-cwa", Rest),
            ("-commandwithargs", "-commandwithargs", Rest),
            ("-ec", "-ec", Rest),
            ("-encodeda", "-encodedarguments", Value),
            ("-ea", "-ea", Value),
            ("-e", "-encodedcommand", Rest),
            ("-ep", "-ep", Value),
            ("-ex", "-executionpolicy", Value),
            ("-wd", "-wd", Value),
            ("-wo", "-workingdirectory", Value),
            ("-w", "-windowstyle", Value),
            ("-config", "-configurationname", Value),
            ("-configurationfile", "-configurationfile", Loaded),
            ("-settings", "-settingsfile", Loaded),
            ("-cus", "-custompipename", Value),
            ("-if", "-if", Value),
            ("-inp", "-inputformat", Value),
            ("-of", "-of", Value),
            ("-o", "-outputformat", Value),
        ],
        ..of(&["pwsh", "pwsh-preview"], &[])
    },
];

/// Returns the files that an interpreter runs with these arguments, and the folders in which it looks for libraries first.
/// Nothing of other programs, and of code among the arguments.
pub fn run_by(program: &str, arguments: &[String]) -> Vec<String> {
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if let ("busybox", Some((applet, rest))) = (name, arguments.split_first()) {
        return run_by(applet, rest);
    }
    let name = name.trim_end_matches(|character: char| character.is_ascii_digit() || character == '.');
    let Some(interpreter) = INTERPRETERS.iter().find(|each| each.names.contains(&name)) else { return Vec::new() };
    let mut reading =
        Reading { interpreter, words: arguments.iter(), found: Vec::new(), directory: None, is_code: false };
    while reading.word().is_some() {}
    reading.found
}

/// Arguments that are read.
struct Reading<'a> {
    interpreter: &'static Interpreter,
    /// Those that are still to be read.
    words: std::slice::Iter<'a, String>,
    found: Vec<String>,
    /// The folder that it changes to.
    directory: Option<&'a str>,
    /// True if no file is run, because there is code.
    is_code: bool,
}

impl<'a> Reading<'a> {
    /// Reads one word. Returns nothing behind the last one that is for the interpreter.
    fn word(&mut self) -> Option<()> {
        let word = self.words.next()?.as_str();
        let is_shell = self.interpreter.letters.iter().any(|(letters, _)| *letters == "cs");
        match word {
            "-" if !is_shell => None,
            "-" | "--" => {
                let script = self.words.next()?;
                self.script(script)
            }
            _ if word.starts_with('-') || (is_shell && word.starts_with('+')) => self.option(word),
            script => self.script(script),
        }
    }

    fn script(&mut self, script: &str) -> Option<()> {
        if !self.is_code {
            self.file(script);
        }
        None
    }

    fn option(&mut self, word: &'a str) -> Option<()> {
        let words = self.interpreter.words;
        let (name, attached) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        let is_powershell = words.iter().any(|(least, ..)| *least == "-f");
        let name = if is_powershell { name.replacen("--", "-", 1).to_ascii_lowercase() } else { name.to_owned() };
        let is_it = |(least, all, _): &&(&str, &str, Takes)| name.starts_with(least) && all.starts_with(&name);
        match words.iter().find(is_it) {
            Some((.., takes)) => self.take(*takes, attached),
            None if word.starts_with("--") => Some(()),
            None => self.letters(word.get(1..).unwrap_or_default()),
        }
    }

    /// Reads options of one letter, up to the one that takes the rest of the word.
    fn letters(&mut self, cluster: &'a str) -> Option<()> {
        for (at, letter) in cluster.char_indices() {
            let Some((_, takes)) = self.interpreter.letters.iter().find(|(all, _)| all.contains(letter)) else {
                continue;
            };
            let rest = cluster.get(at + letter.len_utf8()..).filter(|rest| !rest.is_empty());
            match takes {
                Attached => {
                    self.libraries(letter, rest.unwrap_or_default());
                    return Some(());
                }
                Next => _ = self.words.next()?,
                takes => return self.take(*takes, rest),
            }
        }
        Some(())
    }

    /// Adds the folders of `-Mlib=a,b` of Perl.
    fn libraries(&mut self, letter: char, value: &str) {
        let folders = value.strip_prefix("lib=").filter(|_| letter == 'M');
        folders.into_iter().flat_map(|folders| folders.split(',')).for_each(|folder| self.file(folder));
    }

    fn take(&mut self, takes: Takes, attached: Option<&'a str>) -> Option<()> {
        if takes == Rest {
            return None;
        }
        let value = attached.or_else(|| self.words.next().map(String::as_str))?;
        match takes {
            Script => return self.script(value),
            Code => self.is_code = true,
            Loaded => self.file(value),
            Module => self.module(value.strip_prefix("file://").unwrap_or(value)),
            Directory => self.directory = Some(value),
            Rest | Value | Attached | Next => {}
        }
        Some(())
    }

    fn module(&mut self, name: &str) {
        match self.interpreter.modules {
            _ if name.starts_with(['.', '/']) => self.file(name),
            Some("") => self.file(name),
            Some(folder) => self.file(&format!("{folder}/{name}")),
            None => {}
        }
    }

    fn file(&mut self, name: &str) {
        let name =
            self.directory.map_or_else(|| Path::new(name).to_owned(), |directory| Path::new(directory).join(name));
        let endings = self.interpreter.endings.iter().filter(|_| name.extension().is_none());
        let name = name.to_string_lossy();
        let others = endings.map(|ending| format!("{name}{ending}"));
        self.found.extend(std::iter::once(name.clone().into_owned()).chain(others));
    }
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
            ("bash -euo pipefail run.sh", "run.sh"),
            ("bash -oe pipefail +O extglob run.sh", "run.sh"),
            ("zsh -opipefail run.sh x", "run.sh"),
            ("bash - run.sh x", "run.sh"),
            ("bash --rcfile rc run.sh", "rc run.sh"),
            ("sh -c ./run.sh", ""),
            ("sh -ec ./run.sh", ""),
            ("sh -s x", ""),
            ("busybox sh -e run.sh x", "run.sh"),
            ("busybox cat run.sh", ""),
            ("python3.12 -W error script.py -c", "script.py"),
            ("python3 -Wc -Ximporttime run.py x", "run.py"),
            ("python3 -bX dev run.py x", "run.py"),
            ("python3 -I script.py data.txt", "script.py"),
            ("python3 -Ic code data.txt", ""),
            ("python3 -m http.server", ""),
            ("python3 - x", ""),
            ("perl -Ilib -w -I other script.pl", "lib other script.pl"),
            ("perl -Mfeature=say -F: -i.bak script.pl x", "script.pl"),
            ("perl -wMlib=a,b script.pl", "a b script.pl"),
            ("perl -0777ne print x", ""),
            ("perl -Ilib -ne print", "lib"),
            ("perl -e print -Ilib x", "lib"),
            ("ruby -- -odd.rb", "-odd.rb"),
            ("ruby -rjson -r ./a.rb -ruU ./b.rb", "./a.rb ./b.rb"),
            ("ruby -r ./a -E UTF-8 -C dir run.rb", "./a ./a.rb ./a.so dir/run.rb"),
            ("node --require ./a.js main.js", "./a.js main.js"),
            ("node -r ./run.sh x.js y", "./run.sh x.js"),
            ("node --import=file:///a/b.mjs --title t x.js", "/a/b.mjs x.js"),
            ("nodejs -r a.js -e 1 x.js", "node_modules/a.js"),
            ("php -d a=b -f x.php", "x.php"),
            ("php -c a.ini x.php y.php", "a.ini x.php"),
            ("lua5.4 -e x=1 -l a.lua b.lua", "a.lua b.lua"),
            ("luajit -jv -O3 x.lua y", "x.lua"),
            ("tclsh -encoding utf-8 x.tcl", "x.tcl"),
            ("pwsh -NoProfile -File a.ps1 b.ps1", "a.ps1"),
            ("pwsh -ExecutionPolicy Bypass -File a.ps1", "a.ps1"),
            ("pwsh --ex Bypass -wd / -NonInteractive a.ps1 b", "a.ps1"),
            ("pwsh -nop -c a.ps1", ""),
            ("cat run.sh", ""),
            ("sh", ""),
        ];
        for (command, expected) in cases {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(run_by(&words[0], &words[1..]).join(" "), expected, "{command}");
        }
    }
}
