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
        "The schema is valid as the standard has it. The message says what PowerShell makes of the place.";
    MANIFEST = "E1136", "the manifest of a module is not valid",
        "A manifest is one table in PowerShell's restricted language, with a `ModuleVersion` and members that PowerShell\n\
         knows. PowerShell lists a module with a broken manifest with version 0.0 and without resources.";
    MODULE_FILE = "W1137", "a module names a file that it does not have",
        "`RootModule`, `NestedModules` and `ScriptsToProcess` name files below the folder of the module, with their case.\n\
         PowerShell lists the module and fails to import it.";
    RESOURCE_FILE = "E1138", "a file of a resource is missing",
        "A script resource is a folder `DscResources/NAME` with `NAME.schema.mof` and `NAME.psm1`, or `NAME.psd1`.";
    EXPORT = "W1139", "a module exports a resource that it does not have",
        "`DscResourcesToExport` is taken as written. A name that no resource has is a misspelling or a leftover.";
    UNREADABLE = "E1140", "a file of a module cannot be read",
        "The message says why. What root reads may be changed by root only, with every folder on the way to it.";
    COMPOSITE = "E1141", "a composite resource without a configuration",
        "A composite resource is a `Configuration` in `DscResources/NAME/NAME.schema.psm1`. Its parameters are the\n\
         properties of the resource. A configuration within a function or a block is not one that PowerShell finds.";
    REQUIRED = "W1142", "a module requires one that is not installed",
        "PowerShell loads a module only with those in its `RequiredModules`, each in a version that the manifest admits. They\n\
         are looked for in `PSModulePath` and where PowerShell looks besides.";
    NOT_LOADED = "W1147", "PowerShell does not load a resource that is used",
        "A file that the resource consists of has a mistake: the code in brackets says which. Of each file the first one is shown;\n\
         those behind it are consequences of it as a rule. Calls of the resource fail until it is fixed.";
    EXPANSION = "E1146", "a composite resource cannot be expanded",
        "An instance of a composite resource becomes the instances that its configuration declares. Evaluated are\n\
         parameters with their defaults, `Import-DscResource`, resource blocks, `if`, `foreach`, assignments, and values made\n\
         of literals, variables, tables, indexes and operators. What else a configuration does would depend on PowerShell,\n\
         and is refused: commands, methods, `Node`, `$ConfigurationData`, `PsDscRunAsCredential`.";
}
