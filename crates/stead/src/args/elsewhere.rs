//! Options and commands of other tools, and what they are here.

/// An option of another tool.
pub(super) struct Foreign {
    /// The ways in which it is written.
    pub(super) written: &'static [&'static str],
    /// An option that a command has if the tip is true of it; the first entry counts of which that is so.
    pub(super) with: &'static str,
    /// What to write here.
    pub(super) tip: &'static str,
}

const fn option(written: &'static [&'static str], with: &'static str, tip: &'static str) -> Foreign {
    Foreign { written, with, tip }
}

/// For every command.
pub(super) const ALWAYS: &str = "help";

const DRY_RUN: &[&str] = &[
    "--dry-run",
    "--dryrun",
    "--dry_run",
    "--what-if",
    "--whatif",
    "--noop",
    "--check",
    "--test",
    "--preview",
    "--simulate",
    "--no-op",
    "--why-run",
    "-n",
    "-C",
];

const INVENTORY: &[&str] = &["--inventory", "--inventory-file", "-i"];

/// Those that are typed by habit, by what they are about.
pub(super) const OPTIONS: &[Foreign] = &[
    option(DRY_RUN, "what-if", "'--what-if' shows what would change"),
    option(DRY_RUN, ALWAYS, "'stead plan' shows what apply would do"),
    option(
        &["--detailed-exitcode", "--detailed-exitcodes", "--retcode-passthrough"],
        ALWAYS,
        "without it, 'stead plan' ends with 2 where apply would change something",
    ),
    option(
        &["--diff", "--show-diff", "--show_diff", "-D"],
        ALWAYS,
        "plans and results show each difference without it",
    ),
    option(&["--limit", "-l", "--last", "--count", "--max-count"], "lines", "'-n COUNT' limits how many are listed"),
    option(
        &["--limit", "-l"],
        "where",
        "'--where name=NAME' limits a run to machines of '--hosts', '--only' to instances",
    ),
    option(
        &["--tags", "--tag", "--limit", "--target", "--targets", "-l", "-t"],
        "only",
        "'--only' limits a run to names, types and tags",
    ),
    option(
        &["-t"],
        ALWAYS,
        "'stead apply FILE' runs once, 'stead plan FILE' shows what it would do; the agent keeps a machine so",
    ),
    option(&["--skip-tags", "--skip_tags", "--exclude"], "skip", "'--skip' leaves out names, types and tags"),
    option(
        &["--start-at-task"],
        "only",
        "a run begins at the first instance and changes none that is in its state; '--only' chooses instances",
    ),
    option(
        &["--list-tasks", "--list-tags", "--graph"],
        ALWAYS,
        "'stead graph' prints the instances of a document and their order",
    ),
    option(
        &["--group", "--role", "--label", "--selector", "--subset", "-G", "-E", "-L", "-N"],
        "where",
        "'--where role=web' chooses machines of '--hosts' by their labels",
    ),
    option(
        &["--list", "--list-hosts"],
        "check where",
        "'stead hosts FILE' lists the machines without it, and with '-o json' all of each",
    ),
    option(&["--list-hosts"], ALWAYS, "'stead hosts' lists the machines of an inventory"),
    option(&["--syntax-check", "--validate"], ALWAYS, "'stead lint' checks a document"),
    option(
        &["--step", "--confirm", "--interactive"],
        "yes",
        "'stead apply' asks before it removes or replaces something",
    ),
    option(
        &["--forks", "--parallelism", "--parallel", "--concurrency", "--batch-size", "--batch", "-j"],
        "at-once",
        "'--width' states how many instances run at once, '--at-once' how many machines",
    ),
    option(
        &["--forks", "--parallelism", "--parallel", "--concurrency", "-j"],
        "width",
        "'--width' states how many instances run at once",
    ),
    option(
        &["--ask-become-pass", "--ask-sudo-pass", "-K"],
        "ask-sudo-password",
        "'--ask-sudo-password' asks for the password that sudo wants",
    ),
    option(
        &["--become", "--become-user", "--become-method", "--become-flags", "--sudo", "-b"],
        "sudo",
        "'--sudo' works as root on other machines; on this one, run stead as root",
    ),
    option(&["--remote-user", "-u"], "user", "'--user' names who logs in on other machines"),
    option(
        &[
            "--private-key",
            "--key-file",
            "--connection",
            "-c",
            "--ssh-common-args",
            "--ssh-extra-args",
            "--scp-extra-args",
        ],
        "hosts",
        "machines are reached by your 'ssh': keys and jump hosts come from its configuration",
    ),
    option(
        &["--brief", "--short", "--summary"],
        "lines",
        "'stead history show RUN --brief' has a line for each instance",
    ),
    option(&["--server", "--master"], ALWAYS, "'stead agent join URL' has a machine follow a controller"),
    option(&["--force-handlers"], ALWAYS, "a handler that a failed run did not reach is run by the next one"),
    option(
        &["--flush-cache", "--fact-cache", "--usecacheonfailure", "--cache-dir"],
        ALWAYS,
        "facts are not cached: each run reads the machine; 'stead facts' prints them",
    ),
    option(
        &["--module-name", "--args", "-m", "-a"],
        ALWAYS,
        "'stead set TYPE NAME=VALUE' sets one resource without a document",
    ),
    option(
        &["--keep-going", "--continue-on-error", "--fail-fast", "--any-errors-fatal"],
        ALWAYS,
        "an instance that fails stops only those that depend on it",
    ),
    option(&["--serial"], "at-once", "'--at-once' states how many machines run at once"),
    option(&["--max-fail-percentage"], "halt-after", "'--halt-after' starts no other machine after that many failures"),
    option(
        &["--retry", "--retries"],
        "max-pending-reruns",
        "'--reconcile' sets how pending instances are run again, '--max-pending-reruns' how often at most",
    ),
    option(
        &["--vault-password-file", "--ask-vault-pass", "--vault-id", "--acct-file", "--acct-key"],
        ALWAYS,
        "secrets come from vaults of the machine; see 'stead explain secret'",
    ),
    option(
        &["--module-path", "--modulepath", "-M"],
        ALWAYS,
        "the environment variable DSC_RESOURCE_PATH names folders with resources",
    ),
    option(&["--onetime", "--once", "--no-daemonize"], "yes", "'stead apply' runs once and ends"),
    option(
        &["--daemonize", "--daemon", "--watch", "--interval", "--runinterval"],
        ALWAYS,
        "'stead agent' keeps a machine in the state of a document",
    ),
    option(
        &["--debug", "--trace", "--log-level", "--logdest", "--loglevel", "--trace-level", "--evaltrace", "-d"],
        "verbose",
        "'-vv' logs what is called, '-vvv' details",
    ),
    option(&["--no-color", "--no-colour"], "color", "'--color never' prints no colours"),
    option(
        &["--auto-approve", "--assume-yes", "--assumeyes", "--force", "--no-confirm", "--noconfirm"],
        "yes",
        "'--yes' asks nothing",
    ),
    option(&["--out", "--save"], "yes", "'stead plan --out FILE' saves a plan, 'stead apply FILE' does what it shows"),
    option(
        &["--var", "--extra-vars", "--extra-var", "-e", "--param", "--params", "--pillar"],
        "set",
        "'--set NAME=VALUE' supplies a parameter",
    ),
    option(
        &["--var-file", "--vars-file", "--values", "--parameters_file", "--hiera_config", "--hiera-config"],
        "parameters-file",
        "'--parameters-file' names a file with parameters",
    ),
    option(
        &["--environment"],
        "parameters-file",
        "'--parameters-file' names the file with the parameters of an environment",
    ),
    option(&["--json"], "output", "'-o json' prints JSON"),
    option(
        &["--destroy"],
        ALWAYS,
        "'_exist: false' in a document says that something is to be absent; 'stead undo' takes back a run",
    ),
    option(
        &["--replace", "--taint"],
        ALWAYS,
        "nothing is made anew by a mark: what differs from the document is changed",
    ),
    option(
        &["--namespace", "--all-namespaces", "--context", "--kubeconfig"],
        ALWAYS,
        "machines are named with '--host' or '--hosts'",
    ),
    option(
        &["--recursive", "-R", "-k", "--kustomize"],
        ALWAYS,
        "one document is given; it includes others: Microsoft.DSC/Include",
    ),
    option(&["--local", "--masterless"], ALWAYS, "without '--host' and '--hosts' this machine is meant"),
    option(
        &["--file-root", "--file-roots", "--pillar-root", "--codedir", "--confdir"],
        "relative-to",
        "'--relative-to' names where relative paths start",
    ),
    option(
        &["--refresh", "--refresh-only", "--state", "--backup", "--workspace", "--managed-state", "--esm-plugin"],
        ALWAYS,
        "no state is kept in a file: 'stead check' looks at the machine",
    ),
    option(&["--lock", "--lock-timeout"], "yes", "one run at a time changes a machine; a second one waits for it"),
    option(&["--silent"], "quiet", "'--quiet' prints what failed and nothing else"),
    option(&["--timeout"], "deadline", "'--deadline' limits the time of one program"),
    option(&["--chdir", "--dir", "--directory"], "relative-to", "'--relative-to' names where relative paths start"),
    option(INVENTORY, "hosts", "'--hosts FILE' names an inventory of machines"),
    option(
        &["--inventory", "--inventory-file", "-i", "--hosts", "--host"],
        ALWAYS,
        "this command is about this machine; plan, apply and check take '--hosts INVENTORY'",
    ),
    option(
        &["--root"],
        "system-root relative-to",
        "'--system-root' names another operating system, '--relative-to' where relative paths start",
    ),
    option(&["--root"], "system-root", "'--system-root' names another operating system"),
    option(&["--root"], "relative-to", "'--relative-to' names where relative paths start"),
];

/// Words behind a command that has commands of its own, and what to type there.
pub(super) const INNER: &[(&str, &[&str], &str)] = &[
    (
        "agent",
        &["start", "enable", "up", "restart", "stop", "disable"],
        "'stead agent install' makes it a service, which systemctl starts and stops; 'stead agent run' runs it here",
    ),
    ("agent", &["log", "tail", "journal"], "'stead agent logs' prints what it did"),
    ("history", &["list", "ls"], "'stead history' lists recorded runs"),
    ("resource", &["ls"], "'stead resource list' lists the resources that there are"),
];

/// Commands of other tools, and what to type here.
pub(super) const COMMANDS: &[(&[&str], &str)] = &[
    (
        &[
            "run",
            "deploy",
            "up",
            "converge",
            "enforce",
            "provision",
            "playbook",
            "state.apply",
            "highstate",
            "puppet-apply",
            "state.highstate",
            "state.sls",
            "state.single",
            "sync",
            "reconcile",
            "push",
            "kickstart",
            "bootstrap",
        ],
        "'stead apply FILE' brings the machine into the state of a document",
    ),
    (&["preview", "noop", "dry-run", "dryrun", "what-if", "whatif"], "'stead plan FILE' shows what apply would change"),
    (&["drift", "diff", "verify", "audit", "refresh"], "'stead check FILE' reports drift"),
    (&["status"], "'stead check FILE' reports drift, 'stead agent status' what the agent does"),
    (
        &["destroy", "down", "remove", "rm", "delete", "uninstall", "absent"],
        "'_exist: false' in a document says that something is to be absent, and 'stead apply FILE' removes it; 'stead undo' takes back a run",
    ),
    (&["rollout"], "'stead undo' takes back what a run changed, 'stead history' lists runs"),
    (&["taint", "untaint"], "nothing is marked: 'stead apply FILE' changes what differs from the document"),
    (
        &["workspace", "env", "environment"],
        "'--parameters-file FILE' has the values of an environment; an inventory has those of each machine",
    ),
    (&["force-unlock", "unlock"], "one run at a time changes a machine; a second one waits until it ends"),
    (
        &["lookup", "hiera", "pillar", "pillar.items", "pillar.get"],
        "'stead hosts FILE -o json' lists the parameters of machines; '--set NAME=VALUE' supplies one",
    ),
    (&["cert", "ca", "key", "salt-key", "ssl"], "'stead agent join URL' has a machine follow a controller"),
    (
        &["ssh", "all", "localhost", "node", "nodes", "*"],
        "machines are named behind a command: 'stead apply FILE --host NAME', or '--hosts INVENTORY'",
    ),
    (&["molecule", "kitchen", "rspec"], "'stead test' runs the tests of documents"),
    (
        &["edit", "patch", "scale", "label", "annotate", "expose", "replace"],
        "edit the document, and 'stead apply FILE' changes what differs",
    ),
    (&["rollback", "revert", "restore", "reset"], "'stead undo' takes back what a recorded run changed"),
    (&["init", "create", "generate", "scaffold"], "'stead new document' writes a document to start from"),
    (
        &["validate", "syntax-check", "parser", "compile", "ansible-lint", "puppet-lint"],
        "'stead lint' checks a document",
    ),
    (&["format"], "'stead fmt' formats documents"),
    (
        &["facter", "setup", "gather", "grains", "grains.items", "grains.get", "grains.item", "ohai"],
        "'stead facts' shows facts about this machine",
    ),
    (
        &["doc", "docs", "describe", "man", "info", "inspect"],
        "'stead explain SUBJECT' explains a resource, a property, a key, a function or a code",
    ),
    (&["vault", "encrypt", "decrypt"], "secrets come from vaults of the machine; see 'stead explain secret'"),
    (
        &["import", "state"],
        "no state is kept in a file: 'stead check FILE' compares the machine with a document, 'stead export TYPE' writes what there is",
    ),
    (&["output"], "'stead apply FILE -o json' has the outputs of a document"),
    (&["console"], "'stead eval EXPRESSION' evaluates an expression"),
    (&["inventory"], "'stead hosts FILE' lists the machines of an inventory"),
    (&["ping", "test.ping"], "'stead hosts FILE --check' tries the connection to each machine"),
    (
        &["ad-hoc", "adhoc", "exec", "shell", "cmd.run", "command"],
        "'stead set TYPE NAME=VALUE' sets one resource without a document",
    ),
    (&["install", "add"], "'stead set package NAME' installs a package; in a document it is a Stead/Package"),
    (
        &["ls", "list", "module", "modules", "provider", "providers", "galaxy", "collection"],
        "'stead resource list' lists the resources that there are",
    ),
    (&["log", "logs", "events", "trace"], "'stead history' shows what recorded runs did"),
    (&["view"], "'stead show FILE' shows a saved plan"),
    (&["version"], "'stead --version' prints the version"),
    (&["completion", "completions"], "'stead completer SHELL' prints a script that completes commands"),
    (&["daemon", "watch", "pull"], "'stead agent' keeps a machine in the state of a document"),
];
