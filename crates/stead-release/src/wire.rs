//! The encoding of SSH (RFC 4251, section 5): strings with their length in front.

/// The unread rest of some bytes.
pub(crate) struct Reader<'b>(pub(crate) &'b [u8]);

impl<'b> Reader<'b> {
    /// The next `length` bytes.
    pub(crate) fn bytes(&mut self, length: usize) -> Option<&'b [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(crate) fn number(&mut self) -> Option<u32> {
        self.bytes(4)?.try_into().map(u32::from_be_bytes).ok()
    }

    pub(crate) fn string(&mut self) -> Option<&'b [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.bytes(length)
    }

    pub(crate) fn text(&mut self) -> Option<&'b str> {
        std::str::from_utf8(self.string()?).ok()
    }

    /// A positive integer, as `WIDTH` bytes with the highest in front.
    pub(crate) fn integer<const WIDTH: usize>(&mut self) -> Option<[u8; WIDTH]> {
        let stated = self.string()?;
        let is_shortest = match stated {
            [0, next, ..] => *next >= 0x80,
            [first, ..] => *first < 0x80,
            [] => false,
        };
        let digits = stated.strip_prefix(&[0]).unwrap_or(stated);
        let mut integer = [0; WIDTH];
        let start = WIDTH.checked_sub(digits.len()).filter(|_| is_shortest)?;
        integer.get_mut(start..)?.copy_from_slice(digits);
        Some(integer)
    }

    /// `()` at the end of the bytes.
    pub(crate) fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// Appends a string.
///
/// # Panics
/// Never: no bytes of this crate are longer than 4 GiB.
pub(crate) fn put(bytes: &mut Vec<u8>, string: &[u8]) {
    let length = u32::try_from(string.len()).unwrap_or(u32::MAX);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(string);
}
