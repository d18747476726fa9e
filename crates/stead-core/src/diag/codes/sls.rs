//! Findings of the conversion of SLS files.

crate::codes! {
    TEMPLATE = "E1001", "a template is not evaluated",
        "SLS files are converted as they are written; Jinja is not evaluated. Exact counterparts exist only for\n\
         `{{ params.get('name') }}`, `{{ params.get('name', default) }}`, `{{ params.name }}` and\n\
         `{{ params['name'] }}` within values: they become parameters of the document. Convert the rendered file\n\
         instead, or write the loop as `copy` and the condition as `condition`.";
    FORM = "E1002", "an SLS file is invalid",
        "An SLS file holds states by their ids: `id: {module.function: [{argument: value}, ..]}` or\n\
         `id: module.function`, besides `include`, `extend`, `exclude` and `META`.";
    UNKNOWN_STATE = "E1003", "no state of that module and id",
        "Requisites, `extend` and `exclude` name a state of the converted files by its module, without the function,\n\
         and its id, its name or a pattern for them; `sls` names a whole file. Idem may find others in its enforced\n\
         state; stead has none.";
    INCLUDE = "E1004", "the included SLS file cannot be loaded",
        "`a.b` stands for the file `a/b.sls` or `a/b/init.sls`, relative to the directory of the first file that is\n\
         converted; a leading dot stands for the directory of the file that includes it.";
    BINDING = "E1005", "not an argument binding",
        "A binding is `${module:id:path}`, the path being keys and indexes: `a:b[0]:[*]:c`. `arg_bind` holds the same\n\
         as a list: `- module: [{id: [{path: argument}]}]`.";
    NOT_CARRIED = "W1006", "not carried over",
        "stead has no counterpart for this. The document leaves it out, or holds it below `metadata.Idem`, where it has\n\
         no effect. Read what the message says about the instance before the document is applied.";
    DIFFERENT = "W1007", "carried over with a difference",
        "The document has the nearest that stead has. The message says where it behaves differently.";
}
