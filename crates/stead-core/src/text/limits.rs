//! What reading a text may cost.

/// What a text may cost. Every limit holds before memory is spent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of text. At most 4 GiB are read whatever it says, because places are kept in 32 bits.
    pub bytes: usize,
    /// Lists and objects within each other.
    pub depth: usize,
    /// Values, keys not counted.
    pub nodes: usize,
    /// Values that aliases repeat, and those kept to be repeated; 64 bytes of text count as one more.
    pub aliases: usize,
    /// Findings that are reported.
    pub findings: usize,
}

impl Default for Limits {
    /// 16 MiB, 128 levels, 1,000,000 values, of which 100,000 by aliases, and 1000 findings.
    ///
    /// A hundred thousand files make about 11 MiB and 700,000 values. So many values take less than 256 MiB of memory
    /// together with the text, even as members of one object. The depth keeps every recursion over a tree within a small
    /// stack. Nobody reads more than the first dozens of findings.
    fn default() -> Self {
        Self { bytes: 16 << 20, depth: 128, nodes: 1_000_000, aliases: 100_000, findings: 1000 }
    }
}
