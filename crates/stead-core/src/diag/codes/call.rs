//! The codes of how calls fail.

crate::codes! {
    INVALID = "E0801", "the properties are not valid for the resource",
"The resource does not accept the properties of the instance: they do not fit its schema, its own `validate` refused them,
or they make no sense together.

Nothing was changed. The message names the property where there is one; `stead resource schema -r TYPE` shows what is accepted.";
    UNSUPPORTED = "E0802", "the resource cannot do what is asked",
"The manifest of the resource does not offer the operation, or not in the way that is needed here. Among the reasons:

- a what-if of a resource that can neither predict nor be tested;
- `_exist: false` for a resource without `delete`;
- properties with secrets for a program that takes them in its arguments or its environment, where other users of the
  machine can read them. Such a manifest should say `\"input\": \"stdin\"`;
- properties of more than 128 KiB as one argument, which no Linux system allows.

Nothing was changed.";
    EXIT = "E0803", "the program of the resource failed",
"The program ended with an exit code other than 0. The message holds the description of that code in the manifest, or what
the program wrote to its standard error.

What the program did before it failed stays done; the next run looks at the actual state again.";
    SIGNAL = "E0804", "the program of the resource was ended by a signal",
"The program did not end by itself. Signal 9 often means that memory ran out, 11 and 6 that the program crashed.

It may have changed something; the next run looks at the actual state again.";
    START = "E0805", "the program of the resource could not be started",
"Programs are looked for beside the manifest first, then in the absolute directories of `PATH`. The file must be
executable and made for this machine, and the interpreter in its first line must exist.

As root, the program, its interpreters and the files that the arguments of a manifest name must be root's, and so must the
folders on the way to them. The message names what another user could change, and the command that helps.

Nothing was changed.";
    DEADLINE = "E0806", "the resource took longer than allowed",
"The program did not end in time. It and everything it had started was asked to end, and after a grace of seconds ended by
force; the message names the processes.

It may have changed something. Where the work simply takes long, allow more time; a program that waits for input it never
gets hangs for ever.";
    OUTPUT_LIMIT = "E0807", "the resource wrote more than allowed",
"The program wrote more to its standard output or its standard error than the limit, and was ended. The limit keeps a
resource that runs wild from taking the memory of the machine.";
    PROTOCOL = "E0808", "the answer of the resource cannot be understood",
"The program ended well, but what it printed is not what its manifest promises: one JSON value a line, in UTF-8, without
names that occur twice in an object, and with the properties of the protocol in their types.

The state is unknown then, and never taken for the desired one. Messages for users belong on standard error.";
    LEFT_BEHIND = "E0809", "the program of the resource left processes behind",
"The program ended, and processes that it had started were still running. They have been ended: nothing that nobody watches
may go on changing the machine.

A service must be started by the service manager, not by the program of a resource.

What the program did besides stays, such as the file that `creates` names. So an instance that was left like this by a set has
failed in later runs as well where its test finds it in its desired state: until a set of it runs through, or `stead apply
--only NAME` says that it is all right. Of a document that the agent keeps, the instance is left alone until the document is
delivered again, with what the test finds removed, or `stead agent apply --use-existing` says that it is all right.";
    CANCELLED = "E0810", "the run was cancelled",
"The run was asked to end while the resource was at work. Its program was asked to end, then forced.

It may have changed something; the next run looks at the actual state again.";
    NOT_CONVERGED = "E0811", "the state is still not the desired one",
"The resource reported success, and the state that it reports afterwards still differs from the desired one.

Something else changes it back, the resource rounds or rewrites the value, or the value can only be written.";
    SYSTEM = "E0812", "the system refused something",
"The operating system refused what was needed: a file, a right, space, another process. The message holds its reason.
Among the reasons:

- a directory, a file, a user or a group is not there yet. Another instance can create it; name that in `dependsOn`;
- something of another kind is there, and is left alone. The message says how to remove it;
- a right is missing, the file system is full or can only be read.

What is missing or in the way is given up once nothing else of the run can change that; see docs/reconciliation.md. Where a
wait is stated it is tried again as everything else.

Files are in their former or in the desired state, never between. A plan says the same of what no change in front of it makes
possible.";
    REFUSED = "E0813", "what is requested is not available",
"What the instance asks for is not possible on this machine as it is, and trying again does not change that. So it is not
tried again, whatever the reconciler. Among the reasons:

- a package, or a version of one, that the package lists do not have;
- a unit that is to start at boot, and whose unit file does not say when;
- an archive with a path that leads out of its directory;
- a directory that is to be removed, and in which something is mounted.

Nothing was changed, but package lists may have been updated. The message says what is missing, and what to change in the document or on the machine.";
}
