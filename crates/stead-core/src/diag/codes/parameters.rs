//! The codes of findings about parameters.

crate::codes! {
    WRONG_FORM = "E0701", "the parameters have a wrong form", "\
Parameters are supplied as an object with the member `parameters`, which holds the values by name:

```yaml
parameters:
  port: 8080
  hosts: [a, b]
```

A parameter file of ARM templates is understood too. There every value stands in an object of its own:
`{\"parameters\": {\"port\": {\"value\": 8080}}}`. It is taken for one only when that is so for all of them.";

    UNKNOWN = "E0702", "there is no such parameter", "\
A value was supplied for a parameter that the document does not declare. It would have no effect, and most often its
name is misspelled: names are compared exactly, with upper and lower case.

Correct the name, remove the value, or declare the parameter in `parameters` of the document.";

    WRONG_TYPE = "E0703", "a parameter has a value of another type", "\
Each parameter has a `type`, and its value must be of that type. Nothing is converted: `\"8080\"` is not an `int`, and
`8080` is not a `string`.

On a command line and in YAML, mind the quotes: `port: \"8080\"` is text, `port: 8080` is an integer, and a number with
a fraction is neither.";

    NOT_ALLOWED = "E0704", "a parameter has a value that is not allowed", "\
`allowedValues` of a parameter lists every value that it may have. Text is compared exactly, with upper and lower case.

Choose one of them, or add the value to the list if the document is yours.";

    TOO_SMALL = "E0705", "a parameter is smaller than its minimum", "\
`minValue` is the least value that an `int` parameter may have; that value itself is allowed.";

    TOO_LARGE = "E0706", "a parameter is larger than its maximum", "\
`maxValue` is the greatest value that an `int` parameter may have; that value itself is allowed.";

    MISSING = "E0709", "a parameter has no value", "\
A parameter without a `defaultValue` needs a value from whoever runs the document: `--set name=value`, `--parameters`,
or a file named with `--parameters-file`.

`stead lint` needs no values: it checks what does not depend on them.";

    CIRCULAR = "E0710", "defaults of parameters need each other", "\
The default of a parameter may use other parameters, in any order: `[concat(parameters('prefix'), '-db')]`. Here each
of the named ones needs another of them first, so that none has a value.

Write the value of one without the others, or supply it.";

    TOO_SHORT = "E0707", "a parameter is shorter than its minimum length", "\
`minLength` is the least length of a parameter: of text in bytes of its UTF-8 form, so that `ä` counts as two; of an
array in elements. The length of a secret is not shown.";

    TOO_LONG = "E0708", "a parameter is longer than its maximum length", "\
`maxLength` is the greatest length of a parameter: of text in bytes of its UTF-8 form, so that `ä` counts as two; of an
array in elements. The length of a secret is not shown.";
}
