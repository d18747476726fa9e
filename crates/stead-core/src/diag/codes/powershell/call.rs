//! The codes of what can be wrong with calls of PowerShell resources.

crate::codes! {}
