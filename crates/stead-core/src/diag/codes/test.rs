//! Findings about tests of documents.

crate::codes! {
    FORM = "E1301", "a file of tests is invalid",
        "A file of tests, `*.test.yaml`, has a list `tests`, each with a `name`, and perhaps the `document` that they are about;\n\
         without it that is the file of the same name without `.test`. `given` is what the test starts from: `parameters`,\n\
         `labels`, a folder `root`, `files` by their paths, and types that may `run`. `expect` is what is to come of it: the\n\
         `plan`, `files` and `resources` as they are afterwards, `findings`, `failures` and `outputs`.";
    NAME = "E1302", "a test names what is not there",
        "An instance under `plan` or `failures` is named as the document names it, and one in a group also as `GROUP/NAME`. A\n\
         code under `findings` is one that `stead explain` knows, and a type under `run` one that the document uses.";
}
