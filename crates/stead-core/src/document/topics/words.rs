//! The words of the field.

use super::{Part, Topic};

const fn word(name: &'static str, also: &'static [&'static str], text: &'static str) -> Topic {
    Topic { name, also, part: Part::Word, text, form: "" }
}

/// The words with their other names.
pub(super) const WORDS: &[Topic] = &[
    word(
        "document",
        &["configuration", "playbook", "manifest file"],
        "The text that says how things should be, in YAML or JSON. Its keys: \
`resources`, `parameters`, `variables`, `functions`, `outputs`, `metadata`, `directives`.",
    ),
    word(
        "instance",
        &["task", "resource instance"],
        "One entry of `resources`: a resource with a name and a desired state.",
    ),
    word(
        "resource",
        &["provider", "module"],
        "What can read and change one kind of thing, such as a file. It has a type and a version; \
`stead resource list` lists all.",
    ),
    word(
        "expression",
        &["expressions", "escape", "[["],
        "A string that begins with `[`, such as `[concat('a', 'b')]`: its value is computed. \
Text that really begins with `[` is written with two: `[[Unit]`. There are no operators; functions do that, see `stead explain concat`.",
    ),
    word(
        "vendor",
        &["Stead", "Stead/", "namespace"],
        "The part of a type before the slash: who wrote the resource. `Stead/File` is the resource `File` of stead itself; those of PowerShell, of \
Puppet and of your own programs have other names there.",
    ),
    word(
        "loop",
        &["loops", "foreach", "loop_control"],
        "An instance with `copy`; see `stead explain copy`. Lists are computed with `map()` and `filter()`.",
    ),
    word(
        "handler",
        &["handlers", "notify", "refreshonly"],
        "An instance with the directive `onChanges`. Services restart and reload by \
their properties `restartedAfter` and `reloadedAfter`.",
    ),
    word(
        "secret",
        &["secrets", "sealed", "vault"],
        "A value that only the host can open: of a parameter of the type `secureString`, or of \
`secret('NAME')`, which asks the vaults of the machine. It is never shown.",
    ),
    word(
        "templates",
        &["jinja"],
        "A text with placeholders: `Stead/Template` for files, `stead.template()` in expressions.",
    ),
    word(
        "container",
        &["groups"],
        "An instance with nested ones: `Microsoft.DSC/Group`, an assertion, an include or an adapter. \
Others depend on it as a whole.",
    ),
    word(
        "assertions",
        &["assert"],
        "A group that is tested and never changed, `Microsoft.DSC/Assertion`: what depends on it is skipped if it \
does not hold.",
    ),
    word(
        "includes",
        &["import", "role", "cookbook", "recipe", "collection"],
        "A document as an instance of another: `Microsoft.DSC/Include`.",
    ),
    word(
        "scope",
        &[],
        "The instances that are adjacent to each other, with their parameters and variables. An instance names others of its \
own scope only.",
    ),
    word("desired state", &["desired"], "The properties of an instance, evaluated."),
    word("actual state", &["state", "actual"], "What a resource reports of the machine."),
    word(
        "drift",
        &["drifted"],
        "The difference between the desired and the actual state. `stead check` reports it and `stead apply` \
removes it.",
    ),
    word(
        "converge",
        &["convergence", "idempotence"],
        "To bring the actual state to the desired one. A document that has converged changes \
nothing when it is applied again.",
    ),
    word(
        "plan",
        &["what-if", "dry-run", "noop"],
        "What an apply would do: `stead plan FILE`. `--out PLAN` saves it, and `stead apply PLAN` does \
just that or changes nothing.",
    ),
    word(
        "run",
        &[],
        "One pass over a document. `stead history` shows those that changed something, or were made with `--record`.",
    ),
    word(
        "journal",
        &["event", "events"],
        "Where a run records what happens before it counts, so that one that was interrupted can be \
resumed.",
    ),
    word(
        "owed",
        &["debt"],
        "A handler that could not be carried out, or a notification that was not delivered, although its instance \
changed: the next run does it.",
    ),
    word(
        "retry",
        &["retries", "reconciliation"],
        "To run again what did not reach its desired state, while there is progress: \
`--reconcile`, `--wait`. What no other run can heal is not run again.",
    ),
    word(
        "bundle",
        &[],
        "A document with all files that it reads, in one file that its digest names: `stead bundle FILE -o BUNDLE`.",
    ),
    word(
        "agent",
        &["lcm"],
        "The process that keeps a machine in the state of the document that was delivered to it: `stead agent`.",
    ),
    word("stage", &["current", "previous"], "What a delivered document is to the agent: pending, current or previous."),
    word(
        "pending",
        &["rerun", "re-run"],
        "An instance that did not reach its desired state and may still do so: it runs again while others make progress, and \
at most as often as `--reconcile` says. To the agent, a delivered document that has not converged yet is pending as well.",
    ),
    word(
        "directive",
        &[],
        "A key of `directives`, such as `onChanges`: how stead runs an instance or the document. The desired state itself goes \
below `properties`. `stead explain directives` lists them.",
    ),
    word(
        "claim",
        &["claims", "manages"],
        "What an instance manages, such as a path or a user. Two instances that manage the same are reported, and what \
lies in a path of another comes after it.",
    ),
    word(
        "former",
        &["Stead/Former"],
        "What was at a path before a run changed it. `stead undo` puts it back, and shows it as `Stead/Former`. A document cannot \
have such an instance.",
    ),
    word("generation", &[], "A document that the agent accepted, by its number; see `stead agent restore`."),
    word("job", &[], "One pass of the agent over a document."),
    word("adapter", &["adapted"], "A resource that carries out others, such as those of PowerShell."),
    word(
        "manifest",
        &[],
        "The file in which a resource says what it is: its type, schema and programs. `stead new resource` writes one.",
    ),
    word("extension", &[], "A program that finds manifests, imports documents or supplies secrets."),
    word(
        "fact",
        &["grain", "grains", "ansible_facts", "facter", "ohai", "setup"],
        "What only the machine knows, such as `os.family`: `stead facts` lists them, and `facts()` reads \
them.",
    ),
    word(
        "finding",
        &["diagnostic"],
        "Something wrong with a document, with a code and a place. `stead explain CODE` says more.",
    ),
    word(
        "values by machine",
        &["hiera", "pillar", "group_vars", "host_vars"],
        "What differs between machines is a parameter of the document. The file of `--hosts` states parameters of machines and of groups, \
`--parameters-file` those of one run, and expressions read both with `parameters('NAME')`.",
    ),
    word("report", &[], "What is known of a run, from its events; `-o json` prints it."),
    word("tag", &["tags"], "A word in `metadata.tags` of an instance. `--only TAG` and `--skip TAG` select by it."),
];
