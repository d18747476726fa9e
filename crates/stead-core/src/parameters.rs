//! Parameters: what a caller supplies, and whether it is what the document asks for.
