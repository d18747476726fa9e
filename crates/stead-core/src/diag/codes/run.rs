//! Findings about expressions that are evaluated while a run goes on.

crate::codes! {
    BAD_CONDITION = "E0520", "a condition is not true or false",
        "The expression of a `condition` must give a boolean; text such as 'true' is not one. Compare with `equals()`\n\
         or convert with `bool()`.";
    SECRET_CONDITION = "E0521", "a secret decides whether an instance runs",
        "Whether an instance runs is shown and stored, so a condition cannot be computed from secure parameters or\n\
         from `secret()`.";
    NO_FACT = "E0522", "the machine cannot supply a value",
        "An expression asked for something that only the machine knows, such as an environment variable or a secret,\n\
         and it is not there.";
    WRONG_OUTPUT = "E0524", "an output has another type than declared",
        "The value of an output must be of the type that its declaration states. Everything else of the document\n\
         was carried out all the same, and its results are kept.";
    CONFLICT = "W0525", "two instances undo each other's work",
        "Two instances state different content for the same path, or one its whole content and the other a line of it; or\n\
         one a value of a structured file and the other a part of that value; or one removes what the other creates, by its\n\
         own `_exist` or because a directory is to hold other names only; or they require different modes, or one a file and the other a directory; or one replaces a directory with\n\
         a symbolic link after the other has worked in it; or they state different values for a property of one package,\n\
         unit, account, mount point, host, limit, parameter or module of the kernel, whatever names they have for it.\n\
         Each run applies both, so the machine never converges, and between the two things are as the first one states.\n\
         Paths are compared as they are written. Links that the document itself creates are followed; other links are not\n\
         resolved.";
    NOT_RUN_YET = "E0523", "an instance is referred to that has not run",
        "`reference()` gives what an instance answered, so that instance must run first. Where the id is known\n\
         before anything runs, this is arranged automatically; otherwise name the instance in `dependsOn`.";
    RECONCILER = "E0526", "a reconciler or a pending rule that does not exist or is not trusted",
        "`--reconcile` and `directives.reconcile.reconciler` name what runs pending instances again: `continuous`, `basic` \
         or `none`. `--pending` and `directives.reconcile.pending` name the rule that says what is pending: `default`.\n\
         Any other name is that of a program, `stead-reconciler-NAME` or `stead-pending-NAME`, in one of the directories \
         that resources are looked for in. What root runs must be writable by root only, as its directory must be.\n";
}
