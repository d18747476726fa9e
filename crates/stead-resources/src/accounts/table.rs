//! A database of lines with colons between fields, such as passwd(5).

use std::borrow::Cow;

use memchr::memmem::Finder;

/// The lines of a database. What is not a record, such as a comment, is kept as it is.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct Table(Vec<Vec<u8>>);

/// A record: its fields, of which the first is the name. A field that is missing is empty.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Record(Vec<Vec<u8>>);

impl Record {
    /// Of a name, with so many fields in all.
    pub(crate) fn new(name: &str, fields: usize) -> Self {
        let mut all = vec![Vec::new(); fields];
        if let Some(first) = all.first_mut() {
            name.as_bytes().clone_into(first);
        }
        Self(all)
    }

    fn of(line: &[u8]) -> Option<Self> {
        let is_record = !line.is_empty() && !matches!(line.first(), Some(b'#' | b'+' | b'-'));
        is_record.then(|| Self(line.split(|byte| *byte == b':').map(<[u8]>::to_vec).collect()))
    }

    /// A field, counted from 0. What is not UTF-8 is shown with replacement characters.
    pub(crate) fn get(&self, field: usize) -> Cow<'_, str> {
        self.0.get(field).map_or(Cow::Borrowed(""), |bytes| String::from_utf8_lossy(bytes))
    }

    pub(crate) fn name(&self) -> Cow<'_, str> {
        self.get(0)
    }

    pub(crate) fn number(&self, field: usize) -> Option<u32> {
        self.get(field).parse().ok()
    }

    /// The names of a field with commas between them.
    pub(crate) fn names(&self, field: usize) -> Vec<String> {
        self.get(field).split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    pub(crate) fn set(&mut self, field: usize, text: &str) {
        if self.0.len() <= field {
            self.0.resize(field + 1, Vec::new());
        }
        if let Some(own) = self.0.get_mut(field) {
            *own = text.as_bytes().to_vec();
        }
    }

    fn line(&self) -> Vec<u8> {
        self.0.join(&b':')
    }
}

impl Table {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let mut lines: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        if lines.last().is_some_and(Vec::is_empty) {
            lines.pop();
        }
        Self(lines)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|line| line.iter().chain(b"\n")).copied().collect()
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = Record> + '_ {
        self.0.iter().filter_map(|line| Record::of(line))
    }

    /// The records in which a text occurs somewhere: few are taken apart where one of many is looked for.
    pub(crate) fn records_with(&self, text: &str) -> impl Iterator<Item = Record> + '_ {
        let finder = Finder::new(text).into_owned();
        self.0.iter().filter(move |line| finder.find(line).is_some()).filter_map(|line| Record::of(line))
    }

    /// The first record of a name, as the system finds it.
    pub(crate) fn find(&self, name: &str) -> Option<Record> {
        let line = self.0.iter().find(|line| is_of(line, name))?;
        Record::of(line)
    }

    /// The line of a record, counted from 1, and its text.
    pub(crate) fn line(&self, name: &str) -> Option<(u64, String)> {
        let (at, line) = (1..).zip(&self.0).find(|(_, line)| is_of(line, name))?;
        Some((at, String::from_utf8_lossy(line).into_owned()))
    }

    /// Puts a record in place of that of its name, or behind all others, but before what NIS adds.
    pub(crate) fn put(&mut self, record: &Record) {
        let name = record.name().into_owned();
        if let Some(line) = self.0.iter_mut().find(|line| is_of(line, &name)) {
            *line = record.line();
            return;
        }
        let end = self.0.iter().position(|line| line.first() == Some(&b'+')).unwrap_or(self.0.len());
        self.0.insert(end, record.line());
    }

    /// Removes all records of a name.
    pub(crate) fn remove(&mut self, name: &str) {
        self.0.retain(|line| !is_of(line, name));
    }
}

fn is_of(line: &[u8], name: &str) -> bool {
    line.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"root:x:0:\n# kept\nann:x:1000:b\xff,c\n+:::\n";

    #[test]
    fn what_is_not_touched_is_kept_to_the_byte() {
        let mut table = Table::read(TEXT);
        assert_eq!(table.bytes(), TEXT);
        let mut ann = table.find("ann").unwrap();
        assert_eq!((ann.number(2), ann.names(3)), (Some(1000), vec!["b\u{fffd}".to_owned(), "c".to_owned()]));
        ann.set(2, "1001");
        table.put(&ann);
        assert_eq!(table.bytes(), b"root:x:0:\n# kept\nann:x:1001:b\xff,c\n+:::\n");
    }

    #[test]
    fn new_records_come_before_those_of_nis() {
        let mut table = Table::read(TEXT);
        table.put(&Record::new("bob", 4));
        table.remove("ann");
        assert_eq!(table.bytes(), b"root:x:0:\n# kept\nbob:::\n+:::\n");
        assert!(table.find("an").is_none() && table.find("# kept").is_none());
    }
}
