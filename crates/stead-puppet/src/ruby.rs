//! Ruby literals. Text of others (descriptions, names, defaults) reaches a generated file only through here, so that it is
//! never code.

use std::fmt::Write as _;

/// A value of a type file: what puppet-strings can read without running it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Text(String),
    /// `:name`
    Symbol(&'static str),
    Boolean(bool),
    /// On one line.
    Array(Vec<Literal>),
    /// On one line, with identifiers as keys.
    Labels(Vec<(String, Literal)>),
    /// On one line, with strings as keys.
    Map(Vec<(String, Literal)>),
    /// One line for each entry, with identifiers as keys.
    Block(Vec<(String, Literal)>),
}

impl Literal {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(crate) fn texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        Self::Array(texts.into_iter().map(Self::text).collect())
    }

    pub(crate) fn labels<'a>(entries: impl IntoIterator<Item = (&'a str, Self)>) -> Self {
        Self::Labels(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// Writes the literal; `indent` is that of the line it begins on.
    pub(crate) fn write(&self, out: &mut String, indent: usize) {
        match self {
            Self::Text(text) => out.push_str(&string(text)),
            Self::Symbol(name) => put(out, format_args!(":{name}")),
            Self::Boolean(value) => put(out, format_args!("{value}")),
            Self::Array(items) => {
                let items: Vec<_> = items.iter().map(|item| item.on_a_line(String::new())).collect();
                put(out, format_args!("[{}]", items.join(", ")));
            }
            Self::Labels(entries) => write_line(out, entries, |key| format!("{key}: ")),
            Self::Map(entries) => write_line(out, entries, |key| string(key) + " => "),
            Self::Block(entries) => {
                out.push_str("{\n");
                write_entries(out, entries, indent + 2);
                put(out, format_args!("{:indent$}}}", ""));
            }
        }
    }

    fn on_a_line(&self, mut start: String) -> String {
        self.write(&mut start, 0);
        start
    }
}

fn write_line(out: &mut String, entries: &[(String, Literal)], key: impl Fn(&str) -> String) {
    let entries: Vec<_> = entries.iter().map(|(name, value)| value.on_a_line(key(name))).collect();
    put(out, format_args!("{{ {} }}", entries.join(", ")));
}

/// Writes the entries of a hash or the arguments of a call, one on each line.
pub(crate) fn write_entries(out: &mut String, entries: &[(String, Literal)], indent: usize) {
    for (key, value) in entries {
        put(out, format_args!("{:indent$}{key}: ", ""));
        value.write(out, indent);
        out.push_str(",\n");
    }
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(text);
}

/// A string literal that Ruby reads as exactly this text, whatever it is.
///
/// Guarantees: in single quotes, where nothing is interpolated; only text with characters that an editor or Ruby's reader
/// would alter is in double quotes, and then everything that could be more than a character is escaped.
pub(crate) fn string(text: &str) -> String {
    if text.chars().any(needs_escape) { double_quoted(text) } else { single_quoted(text) }
}

/// Returns whether a character is escaped. Ruby reads `\r\n` as `\n`; directions of writing hide what a text says.
fn needs_escape(character: char) -> bool {
    (character.is_control() && character != '\n') || is_invisible(character)
}

/// Characters without a shape that change how the others are shown or read.
pub(crate) fn is_invisible(character: char) -> bool {
    matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'"))
}

fn double_quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' | '#' => quoted.extend(['\\', character]),
            _ if needs_escape(character) => put(&mut quoted, format_args!("\\u{{{:x}}}", u32::from(character))),
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
pub(crate) mod tests {
    use std::process::Command;

    use proptest::prelude::*;
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::TestRunner;

    use super::*;

    /// Texts that end a literal, begin code or a comment, or are read as something else.
    const PIECES: &[&str] = &[
        "'",
        "\"",
        "\\",
        "#{exit 3}",
        "#$0",
        "#@x",
        "\n",
        "\r\n",
        "\r",
        "\t",
        "\0",
        "\u{4}",
        "\u{1a}",
        "\u{7f}",
        "\u{85}",
        "=begin\n",
        "\n=begin\n",
        "\n=end\n",
        "\n__END__\n",
        "__END__",
        "`id`",
        "%q(",
        ")",
        "}",
        "<<~X\n",
        "\u{2028}",
        "\u{202e}",
        "\u{feff}",
        "é",
        "日本",
        "😀",
        "\\u{41}",
        "\\x41",
        "$x",
        "|",
        "@see",
        " ",
        "a",
    ];

    /// Texts of all kinds, the same in each run.
    pub(crate) fn texts() -> Vec<String> {
        let piece = prop_oneof![proptest::sample::select(PIECES).prop_map(str::to_owned), "\\PC{0,8}", any::<String>()];
        let text = proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat());
        let mut runner = TestRunner::deterministic();
        let mut texts: Vec<_> = (0..2000).map(|_| text.new_tree(&mut runner).expect("a text").current()).collect();
        texts.extend(PIECES.iter().map(|piece| (*piece).to_owned()));
        texts
    }

    #[test]
    fn ruby_reads_a_string_as_what_was_written() {
        let mut texts = texts();
        // Ruby has no string with half of a pair of surrogates, and neither has Rust: all others must survive.
        texts.push(String::new());
        let literals: Vec<_> = texts.iter().map(|text| string(text)).collect();
        let program = format!("[\n{},\n].each {{ |text| puts text.unpack1('H*') }}\n", literals.join(",\n"));
        let Some(output) = run("ruby_reads_a_string_as_what_was_written", &program) else { return };
        assert_eq!(output.lines().collect::<Vec<_>>(), texts.iter().map(|text| hex(text)).collect::<Vec<_>>());
    }

    /// Returns the output of a Ruby program; `None`, and a line that says so, where it cannot run because something
    /// is not installed.
    pub(crate) fn run(test: &str, program: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program.rb");
        std::fs::write(&path, program).unwrap();
        let Ok(output) = Command::new("ruby").arg(&path).output() else {
            stead_testkit::skip(test, "ruby is not installed");
            return None;
        };
        let errors = String::from_utf8_lossy(&output.stderr);
        if errors.contains("cannot load such file -- puppet") {
            stead_testkit::skip(test, "puppet is not installed");
            return None;
        }
        assert!(output.status.success(), "{errors}");
        Some(String::from_utf8(output.stdout).unwrap())
    }

    pub(crate) fn hex(text: &str) -> String {
        text.bytes().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
    }

    #[test]
    fn nothing_is_interpolated() {
        assert_eq!(string("it's #{x} \\"), r"'it\'s #{x} \\'");
        assert_eq!(string("a\r#{x}\"\\"), r#""a\u{d}\#{x}\"\\""#);
        assert_eq!(string("two\nlines"), "'two\nlines'");
    }
}
