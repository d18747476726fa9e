//! The codes of what can be wrong with YAML and JSON as such.

crate::codes! {
    EMPTY = "E0101", "the text holds no document",
        "The text is empty, or holds nothing but comments.\n\n\
         A document is an object; the smallest one that does anything looks like this:\n\n\
         ```yaml\nresources:\n- name: os\n  type: Microsoft/OSInfo\n```\n";
    SYNTAX = "E0102", "the text is neither YAML nor JSON",
        "The text breaks a rule of YAML 1.2, of which JSON is a part. The message names the rule, the mark shows where \
         it was noticed; the cause often stands just before it.\n\n\
         Text that holds one of the characters `: # [ ] { } , & * ! | > ' \" % @` and a backtick in a place where YAML \
         gives it a meaning must be put in quotes:\n\n\
         ```yaml\nname: 'a: b'\n```\n";
    INDENTATION = "E0103", "the indentation fits nothing above it",
        "In YAML the number of spaces in front of a line says what the line belongs to. This line is not as deep as \
         any of those that it could belong to.\n\n\
         ```yaml\nproperties:\n  path: /tmp/a\n mode: '0644'     # wrong: between the two depths\n```\n\n\
         Give all keys of an object the same number of spaces.\n";
    TAB = "E0104", "a tab in the indentation",
        "YAML forbids tabs in front of a line, because the depth of a tab is a matter of taste. Replace each by spaces, \
         two being usual. Within `[…]` and `{…}` tabs are fine, so JSON may be indented by tabs.\n";
    QUOTE = "E0105", "a quote is not closed",
        "Text that starts with `'` or `\"` ends with the same character. Within single quotes a single quote is \
         written twice; within double quotes a double quote is written `\\\"`.\n\n\
         ```yaml\na: 'it''s'\nb: \"say \\\"so\\\"\"\n```\n";
    BRACKET = "E0106", "a bracket is not closed",
        "A list that starts with `[` ends with `]`, an object that starts with `{` ends with `}`, and what stands \
         between is separated by commas.\n\n\
         To write text that starts with a bracket, put it in quotes.\n";
    UNQUOTED = "E0107", "an expression without quotes",
        "An expression is text of the form `[…]`. YAML itself takes `[` for the start of a list, so an expression must \
         be put in quotes:\n\n\
         ```yaml\nname: [concat('a', 'b')]      # a list of two strange words\nname: \"[concat('a', 'b')]\"    # an expression\n```\n\n\
         If a list was meant, put its first element in quotes: `['f(x)']`.\n";
    ESCAPE = "E0108", "a backslash means nothing here",
        "Within double quotes a backslash starts an escape: `\\n`, `\\t`, `\\\"`, `\\\\`, `\\u00e4` and a few more. This \
         one is none of them.\n\n\
         Paths of Windows are best written in single quotes, where a backslash is just a backslash: `'C:\\Windows'`.\n";
    COLON = "E0109", "a missing colon, or no space after it",
        "`key: value` requires a colon and a space after the key. `key:value` is one word to YAML, because colons are common \
         within words, as in `http://example.org`, and `key value` is text.\n";
    DOCUMENTS = "E0110", "more than one document",
        "A line `---` starts another YAML document in the same text. Put each in a file of its own.\n";
    KEY = "E0111", "a key that is not text",
        "YAML allows lists and objects as keys; JSON and the documents here do not. Keys are text; numbers, booleans \
         and null are taken as they are written.\n";
    ALIAS = "E0112", "an alias of nothing",
        "`*name` repeats what was marked with `&name` further up, and nothing was. To write text that starts with an \
         asterisk, put it in quotes: `'*.txt'`.\n";
    CYCLE = "E0113", "an alias within what it repeats",
        "`*name` stands inside the value that `&name` marks. It would contain itself without end.\n";
    TAG_MISMATCH = "E0114", "a value that is not what its tag says",
        "A tag such as `!!int` says what kind of value follows. This value is not of that kind. Usually the tag can be \
         left out.\n";
    TAG_UNKNOWN = "W0115", "a tag without a meaning here",
        "Tags such as `!unit` are a private matter of programs that define them. The tag is ignored and the value is \
         read as if it had none. Known are `!!str`, `!!int`, `!!float`, `!!bool`, `!!null`, `!!seq` and `!!map`.\n\n\
         To write text that starts with an exclamation mark, put it in quotes.\n";
    NUMBER = "E0116", "a number that cannot be kept",
        "Integers are kept exactly from -9223372036854775808 to 18446744073709551615. Infinity and not-a-number have \
         no form in JSON, which resources are given.\n\n\
         If text was meant, such as a serial number, put it in quotes.\n";
    LIMIT = "E0117", "the text is larger than allowed",
        "Texts are limited in bytes, in depth, in the number of their values, and in the number of values that aliases \
         may repeat, so that no text can make the program use all memory. The limits are far above what users write: \
         16 MiB, 128 levels, 1,000,000 values and 100,000 repeated values.\n";
    DUPLICATE = "W0118", "a key occurs twice",
        "An object has a key more than once. The last value counts, at the place of the first, as in DSC v3. Remove \
         one of them.\n";
    MERGE = "W0119", "a merge key, which merges nothing",
        "YAML 1.1 took `<<: *name` as \"insert the members here\". YAML 1.2 and DSC v3 do not: it is a key of the name \
         `<<`. Write the members out, or use `variables`.\n";
    NUMBER_AS_TEXT = "W0120", "a number that is read as text",
        "The number is beyond what 64-bit floating point can hold, about 1.8e308, and is taken as text, as in DSC v3. \
         Put it in quotes if that is meant.\n";
    TOO_MANY = "E0121", "too many findings",
        "There is more wrong with the text than is worth printing. The first findings are shown; fix them and try \
         again.\n";
    NO_BREAK = "E0122", "a no-break space where a space is meant",
        "A no-break space (U+00A0) looks like a space and is text to YAML: in front of a key it is a part of the key, and in front of a \
         value a part of the value. Web pages, chats and word processors put it into what is copied from them. Write a space in its \
         place; `stead lint --fix` does so. In a text of several lines, and in quotes, it is kept.\n";
    TYPOGRAPHIC = "W0123", "a value in typographic quotes",
        "YAML knows the quotes `\"` and `'`. Typographic quotes, which word processors and web pages write in their place, are a part \
         of the text. If that is meant, put all of it in plain quotes: `'\u{201c}text\u{201d}'`.\n";
    TAG_FOREIGN = "E0124", "a tag that another program computes",
        "Programs define tags of their own: `!vault` is text that Ansible decrypts, and `!Sub` is a function of CloudFormation. Here \
         the value would be used as it is written, which nobody means. The message says how a document says it.\n\n\
         To write text that starts with an exclamation mark, put it in quotes.\n";
}
