//! The codes of what can be wrong with scripts of PowerShell.

crate::codes! {}
