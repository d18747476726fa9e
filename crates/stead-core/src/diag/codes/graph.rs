//! Findings about how the instances of a document relate.

crate::codes! {
    DUPLICATE_INSTANCE = "E0501", "two instances of the same name and type",
        "Adjacent instances are distinguished by their type and name; `dependsOn` and `reference()` find them by both.\n\
         Give one of them another name.";
    UNKNOWN_INSTANCE = "E0502", "no instance of that type and name",
        "`dependsOn` and `reference()` name an adjacent instance by its type and name, both as declared:\n\
         `[resourceId('Owner/Type', 'name')]`. The type is compared without regard to case, the name exactly.";
    NOT_ADJACENT = "E0503", "the instance is not adjacent",
        "An instance can only depend on and refer to adjacent ones: those declared in the same document, group or\n\
         adapter, or resolved by the same importer. From outside, depend on the group that holds the instance; from\n\
         inside, let the group depend on what is outside.";
    CYCLE = "E0504", "instances wait for each other",
        "Each instance of the chain needs the next to be settled first, and the last needs the first, so none can\n\
         begin. `reference()` counts like `dependsOn`. Remove one of the links.";
    NOT_AN_ID = "E0505", "not a resource id",
        "A resource id has the form `Owner/Type:name`, the name percent-encoded. Use the function `resourceId()`,\n\
         which does that: `[resourceId('Owner/Type', 'name')]`.";
    UNKNOWN_TYPE = "E0506", "unknown resource type",
        "No built-in resource and no manifest on the search path has this type, or none has a version that the\n\
         instance asks for. `stead resource list` shows what there is and `DSC_RESOURCE_PATH` where it is looked for.";
    BAD_NAME = "E0507", "the name of an instance is not text",
        "The expression of a `name` must give a string that is known before anything runs: it can use parameters,\n\
         variables and `copyIndex()`, but not `reference()` or secrets.";
    BAD_COUNT = "E0508", "the count or the items of a loop cannot be used",
        "`copy.count` must be an integer from 0 to 1,000,000, `copy.each` a list or an object of at most so many items, and\n\
         both must be known before anything runs.";
    TWO_LOOPS = "E0527", "two loops of one name",
        "`dependsOn: [NAME]` with the name of a loop waits for all instances of it. Here several loops have that name; give\n\
         each a `name` of its own.";
    TOO_DEEP = "E0509", "nested too deep",
        "Groups and included documents can be nested 32 deep. An included document that includes itself, directly\n\
         or through others, never ends.";
    BAD_INCLUDE = "E0510", "the included document cannot be loaded",
        "An include names either `configurationFile` or `configurationContent`, and may name `parametersFile` or\n\
         `parametersContent`. Relative paths start in the folder of the document that the include stands in.";
    MISSING_FACT = "E0511", "the machine cannot supply a value",
        "An expression asked for something that only the machine knows, such as an environment variable or a\n\
         secret, and it is not there.";
    WRONG_VERSION = "E0512", "another version is required",
        "`directives.version` states which versions of the engine the document is written for; it is compared with\n\
         that of the engine of the dsc that this program is compatible with, which is counted by itself: dsc\n\
         3.4.0-preview.1 has the engine 3.2.0.";
    SECRET_HERE = "E0513", "a secret is not allowed here",
        "Names, conditions, dependencies and counts are shown and stored, and so they cannot be computed from\n\
         secure parameters or from `secret()`.";
    NOT_AN_OBJECT = "E0514", "the value has the wrong type",
        "The properties of a group are a document: an object with `resources`. Parameters for an included document\n\
         are an object, too.";
    TOO_MANY = "E0515", "too many instances",
        "A document can have 1,000,000 instances, each iteration of a loop counted and nested ones as well, and include\n\
         10,000 documents. Loops in loops and documents that include several others reach that with a few lines.";
    DEPRECATED = "W0516", "the resource is deprecated",
        "Whoever made the resource advises against it; the message is theirs. It is called all the same.";
    NO_EFFECT = "W0530", "a directive that has no effect here",
        "The directive is read, and nothing follows from it at this place. `reconcileWait` and `reconcilePending` are about an\n\
         instance that is called itself: what holds others, a group or an include, is not. State them at those. `reconcile`,\n\
         `removed`, `implicitOrder` and `secretsFrom` are those of the outermost document, and hold for what that includes as well.";
    RIGHTS = "E0517", "the document requires other rights",
        "`directives.securityContext` says with what rights a document must run: `elevated` as root, `restricted` as\n\
         anybody else, `current` as whoever runs it. Nothing of it is begun with others, not even a plan. Instances can\n\
         ask for more in their own `directives`, but for no less.";
    INCOMPLETE = "W0531", "the resource lacks an operation of its kind",
        "An importer without `resolve` in its manifest cannot say which document its properties stand for: it is called\n\
         as a resource, and the instances of that document are not seen. An adapter without `validate` cannot say whether\n\
         properties are valid: mistakes in them are found only when they are set. Ask the author of the manifest.";
    LATE = "W0532", "the resource is looked for during the run",
        "`directives.resourceDiscovery: duringDeployment` lets a document use a resource that it installs itself: a type that\n\
         is not there is looked for again when the instances that it depends on are settled. Until then nothing is known of\n\
         it: its properties are checked when it is called, a plan says that the instance is unknown until what it depends\n\
         on has changed, and where nothing of that would change, that it fails. Groups, importers and adapters with nested\n\
         instances must be there when the run begins.";
    GONE = "W0533", "something is no longer in the document, and kept",
        "stead keeps a record of what the runs of a document manage, and of what they created. When an instance is no longer\n\
         in the document, what it managed stays, unless the document says `directives: {removed: remove}`: then what earlier\n\
         runs created is removed, in a plan that shows it, and only where no other instance manages it, and no other document\n\
         that the same user applied. What was there before is never removed. What a run created is removed also where somebody\n\
         changed it since: the plan shows what is there now. What cannot be removed as it is, such as a directory that others\n\
         put something into, is kept, and the rest of the document is applied. `removed: keep` leaves everything and hides this\n\
         warning. To remove something else, or with what others put into it, state it with `_exist: false` and what that\n\
         needs, such as `recurse`. An instance whose `condition` is false is still in the document.\n\n\
         Documents of one name are one document, wherever their files lie: give each its own name, or none.";
    CONTRADICTED = "W0534", "the order that is stated contradicts what an instance needs",
        "An instance comes after the directory that contains its path, the user that owns it and the package that it uses, if the\n\
         same document has them. Here `dependsOn` states the opposite order, and a stated order holds: on a machine that lacks the\n\
         directory, the user or the package, the instance fails. Remove the dependency; `stead graph FILE --why NAME` shows the\n\
         implied order.";
    WILDCARD = "W0535", "a path with a wildcard",
        "A path names one file or directory: `*`, `?` and words in braces, such as `{a,b}`, are characters of its name, and not\n\
         expanded. A loop states an instance for each of several files:\n\n\
         ```yaml\nresources:\n- type: Stead/File\n  copy: {name: sites, each: [shop, blog], as: site}\n  properties: {path: \"[concat(site(), '.conf')]\", mode: \"0640\"}\n```\n\n\
         `Stead/Directory` with `entries` and `_purge` removes the files of a directory that are not wanted. Where a file or directory of\n\
         that very name exists, nothing is reported.";
    BESIDE_ROOT = "W0536", "programs run on this machine, not below the system root",
        "With `--system-root FOLDER` the resources of stead read and change the operating system in that folder. Commands, such as\n\
         those of `Stead/Command`, and resources that are programs run where stead runs: a command that reloads a service reloads\n\
         the service of this machine, and a path in its text is one of this machine. `stead plan` and `check` run them, too, to test.\n\n\
         `--skip Stead/Command` leaves such instances out, with everything that depends on them. To run them in the other system, start\n\
         stead in it, with chroot(1), systemd-nspawn(1) or in a container.";
    UNKNOWN_FILE = "W0537", "a file whose changes count does not exist",
        "A service restarts or reloads after a change of the files in `restartedAfter` and `reloadedAfter`. A file that is neither on\n\
         the machine nor created by the document never changes. It is reported where the document manages one that differs by a\n\
         letter; what a package brings may come later.";
    NOT_IN_BUNDLE = "E0518", "the file is not in the bundle",
        "A delivery is a bundle: the document with every file that it names by a relative path, whatever its conditions\n\
         say. Nothing else is read of the folder of the document, so that what was delivered is what runs. Files whose\n\
         paths are computed, or that programs read, are named by `directives: {files: [PATTERN]}`. An absolute path is\n\
         read on the machine.";
}
