//! The codes of findings about manifests.

crate::codes! {
    /// E0601
    WRONG_KIND = "E0601", "a value of a manifest has the wrong type", "\
A key of a manifest holds a value of a type that it cannot have, such as a number where text is expected.

```json
\"tags\": \"network\"
```

`tags` is a list, so this is written `\"tags\": [\"network\"]`. Keys that may be left out may also be `null`.";

    /// E0602
    UNKNOWN_KEY = "E0602", "a manifest has a key that does not exist", "\
At its root a manifest may only have the keys of its kind. An unknown key is refused, because most of them are misspelled,
and an operation that is silently missing is found late.

Data of your own belongs below `metadata`.";

    /// E0603
    MISSING_KEY = "E0603", "a manifest lacks a key", "\
Some keys are required: `type` and `version` in every manifest, `executable` in every operation, `inputKind` in
`adapter`, `fileExtensions` in `import`; in the manifest of an adapted resource also `kind`, `capabilities`,
`requireAdapter` and `schema`.";

    /// E0604
    TYPE_NAME = "E0604", "this is not the name of a resource type", "\
The name of a type consists of an owner, optional areas, and a name: `Contoso.Web/Site`. Each part is made of letters,
digits and `_`.";

    /// E0605
    VERSION = "E0605", "this is not a version", "\
The version of a resource is a semantic version with all three numbers, such as `1.4.0` or `2.0.0-rc.1`. Dates such as
`2024-05-01` are read for compatibility with Azure. Extensions have semantic versions only.";

    /// E0606
    WORD = "E0606", "this word is not one of those allowed", "\
The key takes one of a few words, for instance `stdin` or `env` for `input`, `state` or `stateAndDiff` for `return`. The
message names them. Case matters.";

    /// E0607
    ARGUMENT = "E0607", "this is not an argument", "\
An argument is text, or an object with one key that says what takes its place:

- `{\"jsonInputArg\": \"--input\", \"mandatory\": true}`: the desired state as JSON
- `{\"resourceTypeArg\": \"--type\"}`, `{\"resourceVersionArg\": \"--version\"}`
- `{\"resourcePathArg\": \"--path\", \"includeQuotes\": true}`, `{\"adaptedContentArg\": \"--content\"}`
- `{\"whatIfArg\": \"--what-if\"}`: only in what-if, and only for `set` and `delete`

Extensions have `extensionsArg` in `discover`, `fileArg` in `import`, and `nameArg` and `vaultArg` in `secret`. Not every
operation takes every argument; the message names those that it takes.";

    /// E0608
    TAG = "E0608", "this is not a tag", "\
A tag is one word of letters, digits and `_`, and is given once: `resource list --tags` finds resources by it. Write
`web_server` instead of `web server`.";

    /// E0609
    EXIT_CODE = "E0609", "this is not an exit code", "\
`exitCodes` maps the codes that a program ends with to what they mean: `\"exitCodes\": {\"2\": \"not installed\"}`. Each key
is an integer in quotes.";

    /// E0610
    EXPRESSION = "E0610", "this is not an expression", "\
`condition`, and `output` of `import`, are expressions in brackets, such as `[not(equals(tryWhich('apt-get'), null()))]`.
A manifest whose condition is not `true` on a machine is left out there.";

    /// E0611
    SCHEMA = "E0611", "a schema is stated in an unknown way", "\
A schema is either written in the manifest or printed by a program:

```json
\"schema\": { \"embedded\": { \"type\": \"object\" } }
\"schema\": { \"command\": { \"executable\": \"tool\", \"args\": [\"schema\"] } }
```

Exactly one of the two is given.";

    /// E0612
    PATH_OR_CONTENT = "E0612", "an adapted resource has neither a path nor content, or both", "\
The manifest of an adapted resource says what its adapter works with: `path`, a file relative to the manifest, or
`content`, an object that is handed over. Exactly one of the two is given.";

    /// E0613
    ADAPTER = "E0613", "the kind does not fit the operations", "\
A manifest of kind `adapter` needs `adapter`, which says how the program receives the resources that it runs; no other
kind may have it. One of kind `importer` needs `resolve`, the program that turns the properties of an instance into a document:
without it nothing would be done for that instance.

`\"metadata\": {\"stead\": {\"batch\": true}}` lets an adapter take several instances in one call. Its `inputKind` must be `full`,
its operations read standard input and take no arguments about one instance, and it cannot be resident.";

    /// E0614
    EXPORT = "E0614", "an export both filters and does not", "\
`schema` of `export` describes the filter that the program takes, and `supportsFiltering: false` says that it takes none.
Give one of them.";

    /// E0615
    UNDO = "E0615", "what is taken back by its state is not read", "\
`\"metadata\": {\"stead\": {\"undo\": \"state\"}}` says that `stead undo` sets the state again that `get` reported before the set. The
resource has no `get`: give it one, or leave `undo` out, and `stead undo` names its instances as what cannot be taken back.";

    /// W0651
    WHAT_IF = "W0651", "whatIf is deprecated", "\
`whatIf` names a program of its own for what-if. It still works, but an argument of `set` says the same and shows that
the two belong together: `{\"whatIfArg\": \"--what-if\"}`.";

    /// W0652
    DATE_VERSION = "W0652", "the version is a date", "\
Versions that are dates are read for compatibility. They only satisfy a requirement that is exactly equal, and every
semantic version is newer.";

    /// W0653
    IGNORED_KEY = "W0653", "a key is ignored", "\
The key has no meaning at this place, and is ignored as other implementations ignore it. Most such keys are misspelled.";

    /// W0654
    IDLE = "W0654", "the resource can do nothing", "\
The manifest names no operation, so that no instance of it can be used. Give it at least `get`, with the program that
reads the actual state.";

    /// W0655
    INCOMPLETE = "W0655", "the manifest lacks an operation of its kind", "\
An adapter has `validate`, the program that says whether the properties of an instance are valid: without it, mistakes in
them are found only when they are set, after others were changed. An importer has `resolve`, the program that says which
document its properties stand for: without it, its other operations are called as those of a resource, as `dsc` does.";
}
