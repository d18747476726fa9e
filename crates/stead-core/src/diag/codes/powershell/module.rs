//! The codes of what can be wrong with modules of PowerShell: manifests, schemas, composites.

crate::codes! {}
