//! The codes of what can be wrong with calls of PowerShell resources.

crate::codes! {
    VALUE = "E1161", "the value does not fit the type of the property",
        "PowerShell would convert it, or refuse it only in the call: \"false\" becomes $true, 1.5 becomes 2, [\"a\", \"b\"]\n\
         becomes \"a b\". stead passes on what means the same afterwards and refuses everything else. Integers must be in\n\
         range; dates are ISO 8601, time spans hh:mm:ss or d.hh:mm:ss, credentials objects with 'username' and 'password'.";
    UNKNOWN_PROPERTY = "E1162", "the resource has no such property",
        "Names do not depend on case. `stead resource describe -r TYPE` lists the properties.";
    MISSING_PROPERTY = "E1163", "a required property is missing",
        "Keys and mandatory properties must be stated; `stead resource describe -r TYPE` shows which these are.";
    RULE = "E1164", "the value does not fit a rule of the property",
        "The resource declares which values it takes: ValidateSet, ValidateRange, ValidateLength, ValidateCount,\n\
         ValidateNotNull and ValidateNotNullOrEmpty, or the value map of its schema.";
    UNSUPPORTED_TYPE = "E1165", "no value converts to the type of the property",
        "PowerShell converts nothing that JSON can express to this type, so the property cannot be set.";
}
