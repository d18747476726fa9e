//! Mistakes in expressions.

crate::codes! {
    UNEXPECTED = "E0301", "an expression that cannot be read",
        "Text that begins with `[` is an expression: one call such as `[concat('a', parameters('b'))]`, whose arguments are\n\
         further calls, 'text' in single quotes, integers, `true` and `false`. Members and elements follow a call:\n\
         `parameters('p').name[0]`. There are no operators and no text around the brackets.\n\n\
         Text that merely begins with a bracket is written with two: `[[not an expression]`.";
    TRAILING = "E0302", "text behind an expression",
        "An expression is the whole of a value. Text around it is added inside, with `[concat('a', …)]` or\n\
         `[format('a{0}b', …)]`. Text that merely begins with a bracket is written with two: `[[a] b`.";
    INTEGER_SIZE = "E0303", "an integer that is too large",
        "Integers have 64 bits: from -9223372036854775808 to 9223372036854775807. Larger numbers must be text.";
    UNKNOWN_FUNCTION = "E0304", "an unknown function",
        "There is no such function in the language. Names are case-sensitive: `concat`, not `Concat`. Functions that the\n\
         document defines are called with their namespace: `[namespace.name(…)]`. `stead function list` shows the others.";
    ARGUMENT_COUNT = "E0305", "a wrong number of arguments",
        "The function takes fewer or more arguments. `stead function list NAME` shows how it is used.";
    TOO_LARGE = "E0306", "an expression that is too large",
        "Expressions may be 1 MiB long and their calls nested 64 deep. Compute parts of it in `variables`.";
    LAMBDA = "E0307", "a misplaced or malformed lambda",
        "`lambda('x', body)` is written directly as an argument of `map` or `filter`. Its parameters are one or two names\n\
         in quotes, the element and its index; in the body they are read with `lambdaVariables('x')`.";
    UNCLOSED_TEXT = "E0308", "text without a closing quote",
        "Text stands in single quotes: `'text'`. There are no other quotes, and no escapes with a backslash; a single quote\n\
         within text is written twice: `'it''s'`.";
    ARGUMENT_TYPE = "E0401", "an argument of a wrong type",
        "The function does not take values of this type at this place. Convert it with `string()`, `int()`, `bool()`,\n\
         `array()` or `json()`; `stead function list NAME` shows which types are taken.";
    ARGUMENT_VALUE = "E0402", "an argument that the function refuses",
        "The type is right, but the function has no result for this value, such as a position outside of the text.";
    ARITHMETIC = "E0403", "arithmetic without a result",
        "Integers have 64 bits. A result that does not fit is an error, never a wrapped or rounded number; so is a\n\
         division by zero.";
    UNKNOWN_NAME = "E0404", "a name that is not there",
        "There is no parameter, variable, copy loop, lambda parameter or instance of that name at this place. Variables\n\
         see only those that are declared before them.\n\n\
         A fact that no machine has is refused before anything is computed, also in the branch of an `if()` that is not taken,\n\
         as an unknown function is. One that some machines have counts where it is computed: `tryGet(facts('os'), 'family')`\n\
         is null on a machine, or below a `--system-root`, that does not have it.";
    NOT_HERE = "E0405", "a function that cannot be used here",
        "Some functions have a meaning only at some places of a document: `copyIndex()` in a copy loop, `utcNow()` in the\n\
         default of a parameter, `stdout()` in an import extension, and only `parameters()` inside a function that the\n\
         document defines.";
    ACCESS = "E0406", "a member or element that is not there",
        "`.name` and `['name']` select a member of an object, `[0]` an element of an array, counted from 0. Where it may be\n\
         absent, use `tryGet(value, 'name')`, which returns null then.";
    USER_FUNCTION = "E0407", "an unknown function of the document",
        "Functions that the document defines under `functions` are called as `[namespace.name(…)]`. They cannot call each\n\
         other or themselves.";
    USER_FUNCTION_TYPE = "E0408", "a value that does not fit a function of the document",
        "The number and types of the arguments must be those of its `parameters`, and its result must be of the type\n\
         that its `output` states.";
    LIMIT = "E0409", "an evaluation that grows too large",
        "An evaluation may produce about two million elements, or 32 MiB of text, and values nested 256 deep. All expressions\n\
         of a document together may take 20 million steps, and its parameters, variables and loops 192 MiB of memory. A run\n\
         may hold 1 GiB of properties and answers. This protects the machine from documents that multiply without end.";
    ABSENT_FACT = "E0410", "something that the machine does not have",
        "The environment variable or the secret does not exist. `tryWhich()` and `coalesce()` express what may be absent.";
    SEALED = "E0411", "a secret where a readable value is needed",
        "Names of parameters, variables, instances, files and environment variables must be known while the document is\n\
         resolved; they cannot be computed from secrets, which are opened only when a resource is called.";
}
