//! The states that are a part of Idem itself, and what takes their place.

/// Modules, their functions, and what to write instead.
const OWN: [(&str, &str, &str); 6] = [
    ("time", "sleep", "state 'directives.reconcileWait' at what is to be waited for; a Stead/Command can sleep"),
    ("data", "write", "use Stead/File, Stead/Json or Stead/Yaml"),
    ("sls", "run", "convert the files that it names together with this one, or include the document made of them"),
    ("exec", "stateful", "use a Stead/Command with 'test' and 'set'"),
    ("acct", "profile", "supply credentials as parameters of the type secureString"),
    ("trigger", "build", "use 'onChanges' at what it triggers"),
];

/// Returns what to write in place of a state that means nothing outside of Idem; `None` for all others.
pub(super) fn advice(module: &str, function: &str) -> Option<&'static str> {
    OWN.iter().find(|(own, called, _)| (*own, *called) == (module, function)).map(|(.., advice)| *advice)
}
