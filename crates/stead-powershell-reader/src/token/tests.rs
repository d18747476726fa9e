use super::*;

/// The tokens of a text in one mode, by their text.
fn tokens(text: &str, mode: Mode) -> Vec<(TokenKind, &str)> {
    let mut lexer = Lexer::new(text);
    let tokens = std::iter::from_fn(|| Some(lexer.next(mode)).filter(|token| token.kind != TokenKind::End));
    tokens.map(|token| (token.kind, &text[token.start..token.end])).collect()
}

fn words(text: &str, mode: Mode) -> Vec<&str> {
    tokens(text, mode).into_iter().map(|(_, text)| text).collect()
}

#[test]
fn a_word_depends_on_the_mode() {
    assert_eq!(words("a-b.c", Mode::Argument), ["a-b.c"]);
    assert_eq!(words("a-b.c", Mode::Member), ["a", "-", "b", ".", "c"]);
    assert_eq!(words("a.b[int]", Mode::Type), ["a.b", "[", "int", "]"]);
    assert_eq!(words("1..3", Mode::Expression), ["1", "..", "3"]);
    assert_eq!(words("1..3", Mode::Argument), ["1..3"]);
    assert_eq!(words("$a-eq1", Mode::Expression), ["$a", "-eq", "1"]);
    assert_eq!(words("echo#b $x#c", Mode::Argument), ["echo#b", "$x"]);
    assert_eq!(words("a`\nb --% { ' \nc", Mode::Argument), ["a", "b", "--% { ' ", "\n", "c"]);
    assert_eq!(words("-x:{1}", Mode::Argument), ["-x:", "{", "1", "}"]);
    assert_eq!(words("a$(1 + 2)'b {'\"$(')\"c", Mode::Argument), ["a$(1 + 2)'b {'\"$(')\"c"]);
}

#[test]
fn a_token_is_what_its_mode_makes_of_it_whatever_it_was_peeked_as() {
    let text = "a-b.c 'd' \"e\" @'\n'@ $(x) @(1) @{} ,;()[int]..1 :l -eq 2>&1 | && $a/b \r\n<#f#>+= ?.x #g\n--% h";
    let modes = [Mode::Expression, Mode::Argument, Mode::Type, Mode::Member];
    let peek = |at: usize, read: &[Mode]| {
        let mut lexer = Lexer::new(text);
        lexer.reset(at);
        read.iter().map(|mode| lexer.peek(*mode)).last()
    };
    for at in 0..=text.len() {
        for first in modes {
            for second in modes {
                assert_eq!(peek(at, &[first, second]), peek(at, &[second]), "{at}: {first:?}, {second:?}");
            }
        }
    }
}

#[test]
fn texts_end_where_powershell_ends_them() {
    assert_eq!(words("'a''b'c", Mode::Expression), ["'a''b'", "c"]);
    assert_eq!(words("“a”” `\" $(\")\") ", Mode::Expression), ["“a”” `\" $(\")\"", ")"]);
    assert_eq!(words("@'\n '@\n'@x", Mode::Expression), ["@'\n '@\n'@", "x"]);
    assert_eq!(Lexer::new("'a").into_flaws(), []);
    let mut lexer = Lexer::new("'a");
    lexer.next(Mode::Expression);
    assert_eq!(lexer.into_flaws(), [(Flaw::UnterminatedString, 0)]);
}

#[test]
fn texts_say_what_they_say() {
    assert_eq!(unquote("'it''s'"), "it's");
    assert_eq!(unquote("@'\r\nx\r\ny\r\n'@"), "x\r\ny");
    assert_eq!(unquote("@'\n'@"), "");
    let text = |text: &str| vec![StringPart::Text(text.into())];
    assert_eq!(parts("\"a`t`u{e9}\"\"b\""), text("a\té\"b"));
    assert_eq!(parts("@\"\n\"a\"\n\"@"), text("\"a\""));
    assert_eq!(parts("a'b c'`d"), text("ab cd"));
    assert_eq!(
        parts("\"$env:A/${b c}$\""),
        [
            StringPart::Variable("env:A".into()),
            StringPart::Text("/".into()),
            StringPart::Variable("b c".into()),
            StringPart::Text("$".into()),
        ]
    );
    let nested = parts("\"a$( \"\"b\"\" + `\"c`\" )\"");
    let [_, StringPart::SubExpression(nested)] = &nested[..] else { panic!("{nested:?}") };
    assert_eq!(nested.script, " \"b\" + \"c\" ");
    assert_eq!([0, 1, 3, 7].map(|at| nested.origin(at)), [4, 6, 9, 14]);
}

#[test]
fn numbers_take_the_type_that_they_ask_for() {
    let integer = |value, bits, signed| Some(Number::Integer { value, bits, signed });
    assert_eq!(Number::parse("0xFFFFFFFF"), integer(-1, 32, true));
    assert_eq!(Number::parse("0xFFFFFFFFFF"), integer(0xFF_FFFF_FFFF, 64, true));
    assert_eq!(Number::parse("1gb"), integer(1 << 30, 32, true));
    assert_eq!(Number::parse("2147483648"), integer(1 << 31, 64, true));
    assert_eq!(Number::parse("1ul"), integer(1, 64, false));
    assert_eq!(Number::parse("300y"), None);
    assert_eq!(Number::parse("0b101"), integer(5, 32, true));
    assert_eq!(Number::parse("9223372036854775808"), Some(Number::Decimal { mantissa: 1 << 63, scale: 0 }));
    assert_eq!(Number::parse("1.50d"), Some(Number::Decimal { mantissa: 150, scale: 2 }));
    assert_eq!(Number::parse("1e400"), Some(Number::Double(f64::INFINITY)));
    assert_eq!(Number::parse(".5kb"), Some(Number::Double(512.0)));
    assert_eq!(Number::parse("1_000"), None);
}
