//! Codes of findings about resources.

stead_core::codes! {
    SCHEMA = "E0901", "the resource has no usable schema", "\
Every resource describes its properties with a JSON Schema, embedded in the manifest or printed by a command. Editors
complete by it, mistakes are found before anything runs, and it says which properties are secret or can only be read.";

    OPERATION = "E0902", "an operation of the resource failed", "\
The check called the resource with a desired state that its schema allows, so that every operation in its manifest
must work. The message quotes the program.";

    WHAT_IF = "E0903", "what-if changes something", "\
A program that takes a `whatIfArg` must only say what it would do, and change nothing. Here `get` answered something
else afterwards. Users run what-if on machines that must not change: if `set` cannot do that, leave the argument out of
the manifest.";

    NOT_SET = "E0904", "set does not reach the desired state", "\
After `set` ended well, `get` or `test` say that the state is not the desired one. A `set` that cannot reach it must
fail, with a text on standard error and an exit code that is not 0.";

    NOT_IDEMPOTENT = "E0905", "set changes something the second time", "\
`set` was called twice with the same desired state. The second call found it in place, but changed the
state, or said that it changed something. A document is applied again and again; only what differs may be touched.";

    DISAGREE = "E0906", "operations of the resource contradict each other", "\
`get`, `test` and `set` report one state, and a `test` that judges by itself must judge that state. What differs
between them looks like drift where there is none, or hides drift where there is some. A program that stays answers
as the one does that is called once.";

    SECRET = "E0907", "a secret comes back", "\
What comes as `{\"secureString\": ..}` or `{\"secureObject\": ..}` must not be printed again, neither in a state nor in a
message. stead covers what it recognizes, but other engines, logs and lists of processes do not.";

    EXIT_CODE = "E0908", "an exit code is not declared", "\
`exitCodes` of the manifest says what each exit code means, so that whoever reads a message need not read the program.
0 is success; declare every other code that a program of the resource can end with.";

    STATE = "E0909", "the state does not fit the schema", "\
What a resource reports is checked by the schema as what it is handed: a property that is not declared, or of another
type, ends the run of the instance. Mark what can only be read as `readOnly` and declare it all the same.";

    CAPABILITY = "E0910", "what an adapter lists cannot be carried out", "\
The `list` of an adapter prints an object for each resource that it carries out, one on a line: its `type`, `version`,
`capabilities` and, in `requireAdapter`, the adapter itself. Each is there once, and can do nothing that the adapter has no
program for.";

    EXPORTED = "E0911", "what is exported is not what there is", "\
An export lists the instances that there are, so that a document of them describes the machine: asked at once, `test` (or
`get`) must find each in its desired state, no two may have the same type and name, and every type must be known.";

    UNSTABLE = "E0912", "the same question has two answers", "\
Nothing was changed in between, but the resource answered something else the second time. Sort what has no order of
its own, and leave out what changes all the time: it looks like drift.";

    RESOLVED = "E0913", "what is resolved is not a document", "\
The `resolve` of an importer prints one object: in `configuration` a configuration document that can be read, and in
`parameters`, if there is anything, an object.";

    NESTED = "E0914", "a group does not answer for what it holds", "\
What a group answers is an array with a result for each nested instance, with its `name` and its `type` as they were handed
in. Who reads the result looks for each of them by these. `test` reports whether the group is in its desired state, from
`inDesiredState` of all results.";

    CLAIM = "E0915", "a file that is claimed was not changed", "\
`metadata.stead.claims` names the properties that hold paths which an instance creates, changes or removes. `set` changed
the state and left such a path as it was. Instances that claim the same are reported as conflicts, and one that lies in what
another claims waits for it: claim no more than `set` touches.";

    FORMER = "E0916", "a former state cannot be set again", "\
The manifest says `\"undo\": \"state\"`: `stead undo` hands what `get` reported before a set to `set`, beside what the instance states. After
it `get` must report what it did. Mark what can only be read as `readOnly`, which is left out.";
}
