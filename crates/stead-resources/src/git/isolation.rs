//! How git is called so that it asks nobody, and nothing runs that a repository or the settings of a user bring.

/// Settings that hold in every call, whatever those of the repository are. Those of the user and the system are ignored.
const SETTINGS: [&str; 9] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "credential.helper=",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
];

/// Variables of this process that connections need.
const HANDED_ON: [&str; 9] = [
    "SSH_AUTH_SOCK",
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
];

/// The arguments that come first in every call.
pub fn settings() -> impl Iterator<Item = String> {
    SETTINGS.iter().flat_map(|setting| ["-c".to_owned(), (*setting).to_owned()])
}

/// The variables of every call, which take the place of those of the same name.
pub fn variables() -> Vec<(String, String)> {
    let fixed = [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_ATTR_NOSYSTEM", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        // Empty, these take the place of `core.askPass` and `core.gitProxy`.
        ("GIT_ASKPASS", ""),
        ("GIT_PROXY_COMMAND", ""),
        ("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh"),
        ("GIT_SSH_COMMAND", "ssh -o BatchMode=yes"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        // An object that is missing would be fetched by what the settings of a repository say.
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_LITERAL_PATHSPECS", "1"),
        ("LC_ALL", "C"),
    ];
    let handed_on = HANDED_ON.into_iter().filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)));
    fixed.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().chain(handed_on).collect()
}
