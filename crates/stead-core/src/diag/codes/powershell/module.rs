//! The codes of what can be wrong with modules of PowerShell: manifests, schemas, composites.

crate::codes! {
    SCHEMA_SYNTAX = "E1131", "the schema of a resource cannot be parsed",
        "A `.schema.mof` is written in MOF, see DSP0004. PowerShell refuses the whole file after the first error, and with\n\
         it the resource.";
    SCHEMA_NAME = "E1132", "the class of a resource has another name than its file",
        "A class that derives from `OMI_BaseResource` is declared in `DscResources/NAME/NAME.schema.mof`, NAME being the\n\
         name of the class. PowerShell refuses a file with another one. What users write is `FriendlyName`, which is free.";
    SCHEMA_INVALID = "E1133", "the schema of a resource breaks a rule",
        "The grammar is right, and PowerShell refuses the file or skips the resource: a name that is declared twice, an\n\
         unknown base class, an unknown or misplaced qualifier, `ValueMap` and `Values` that do not fit each other.";
    SCHEMA_REFUSED = "W1134", "PowerShell refuses the schema of a resource",
        "What is meant is clear, so that stead uses the resource; `Get-DscResource` and configurations of Windows\n\
         PowerShell do not find it.";
    SCHEMA_IGNORED = "W1135", "PowerShell reads a part of a schema differently, or not at all",
        "The schema is valid. The message says what PowerShell makes of the place.";
}
