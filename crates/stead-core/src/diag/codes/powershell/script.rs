//! The codes of what can be wrong with scripts of PowerShell.

crate::codes! {
    /// E1101
    UNTERMINATED = "E1101", "a string or a comment is not closed", "\
The text of a script ends inside of a string, a comment `<# #>`, or a `$( )` in a string. PowerShell does not load such a
file.

In a string, `$(` counts parentheses only: one that stands in quotes inside of it counts, too.";

    /// E1102
    HERE_STRING = "E1102", "something follows the opening of a here-string", "\
The text of a here-string starts on the line below `@\"` or `@'`, and ends at a line that starts with `\"@` or `'@`.";

    /// E1103
    NOT_CLOSED = "E1103", "a bracket is not closed", "\
A `(`, `[` or `{` has no counterpart. PowerShell does not load such a file. The finding is at the bracket that was opened;
the missing one often belongs much further down.";

    /// E1104
    UNEXPECTED = "E1104", "something is not valid at this place", "\
PowerShell's parser does not expect this here and does not load the file. Often a line end, a `;` or an operator is missing
before it.";

    /// E1105
    MISSING_EXPRESSION = "E1105", "a value is missing", "\
An operator, an assignment, a comma or a pair of parentheses has no value. PowerShell loads nothing of such a script.";

    /// E1106
    INCOMPLETE = "E1106", "a statement is incomplete", "\
A statement lacks a part that it requires: a name after `class` or `function`, a block after a condition, `catch` or
`finally` after `try`, `in` after the variable of `foreach`.";

    /// E1107
    EMPTY_PIPE = "E1107", "a pipeline has an empty or invalid part", "\
A command is required on both sides of a pipe, and an expression can only be the first part of a pipeline.";

    /// E1108
    VARIABLE = "E1108", "a ':' in a string is taken for part of a variable", "\
In `\"$name: text\"` PowerShell takes `name:` for a scope or a drive. With braces it is clear what the name is:

```powershell
\"${name}: text\"
```
";

    /// E1109
    MEMBER = "E1109", "a member of a class is invalid", "\
A class consists of properties and methods. A property ends at a line end or a `;`; a method has parentheses and a body, and
no `;` after it. One with a type other than `[void]` returns a value, or throws.

```powershell
class Sample {
    [string] $Name
    [void] Set() { }
}
```
";

    /// E1110
    TYPE_NAME = "E1110", "the name of a type is missing or invalid", "\
The name of a type is required here: between brackets, or after the `:` of a class.";

    /// E1111
    ATTRIBUTE = "E1111", "an attribute is invalid", "\
An attribute stands in brackets, has parentheses, and belongs to what follows it: `[DscResource()] class Sample { }`. Its
arguments are constants, and those with a name are properties of the attribute.";

    /// E1112
    USING = "E1112", "a using statement is invalid", "\
`using namespace`, `using module` and `using assembly` stand before everything else in a script, and name one thing each.";

    /// E1113
    TOO_DEEP = "E1113", "a script is nested too deeply", "\
The rest of the file is not read. Constructs within constructs are read up to a fixed depth, which scripts in the field do not
reach.";

    /// E1114
    METHOD = "E1114", "a resource lacks Get, Set or Test", "\
A class with `[DscResource()]` requires three methods without parameters: `Get` that returns the class or a base class of
it, `Set` that returns nothing, and `Test` that returns `[bool]`. Inherited ones count.";

    /// E1115
    KEY = "E1115", "a resource has no key or an invalid one", "\
A class with `[DscResource()]` requires at least one property with `[DscProperty(Key)]`, its own or inherited. A key is a
`[string]`, an integer or an enumeration.";

    /// E1116
    CONSTRUCTOR = "E1116", "a resource cannot be created without arguments", "\
A class with `[DscResource()]` that declares a constructor also requires one without parameters.";

    /// E1117
    UNKNOWN_TYPE = "E1117", "a type does not exist", "\
PowerShell looks for types among its accelerators, those of .NET, the classes and enumerations of the same file, and those
of modules that `using module` names. Files that are dot sourced and nested modules are not looked at while a script is
parsed.";

    /// E1118
    DUPLICATE = "E1118", "a name is defined twice", "\
A script defines each class and enumeration once, and each of them a member once; case makes no difference.";

    /// E1119
    MODULE = "E1119", "a module that a script uses cannot be read", "\
`using module` names a module or a file that does not exist. PowerShell does not load the script.";

    /// E1120
    BASE = "E1120", "a base class is invalid", "\
A class cannot be its own base class, directly or through others. PowerShell does not load such a script.";

    /// E1121
    ENUMERATION = "E1121", "an enumeration has an invalid value", "\
The values of an enumeration are integers that fit its type, which is `[int]` unless another stands behind its `:`.";
}
