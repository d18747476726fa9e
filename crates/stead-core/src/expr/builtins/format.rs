//! `format`: a template with `{0}`, or `{0:>8.2}`.
//!
//! ```text
//! place = '{' [ number ] [ ':' spec ] '}'          '{{' and '}}' stand for the braces themselves
//! spec  = [ [ fill ] '<' | '^' | '>' ] [ '+' ] [ '#' ] [ '0' ] [ width ] [ '.' precision ] [ kind ]
//! kind  = 'x' | 'X' | 'o' | 'b' | 'e' | 'E'        of numbers
//! ```

use super::super::builtin::{Arguments, BuiltinResult, Wrong};
use super::text::{MAX_TEXT, to_text};
use crate::value::{Number, Value};

/// Wider columns and more digits than anybody means.
const MAX_WIDTH: usize = 4096;

pub(super) fn format(mut arguments: Arguments) -> BuiltinResult {
    let template = arguments.text()?;
    let values: Vec<Value> = arguments.collect();
    let mut out = String::with_capacity(template.len());
    for piece in pieces(&template, values.len())? {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Place(index, spec) => {
                let value = values.get(index).map_or(Ok(String::new()), |value| spec.render(value, index + 1));
                out.push_str(&value?);
            }
        }
        if out.len() > MAX_TEXT {
            return Err(Wrong::limit());
        }
    }
    Ok(out.into())
}

/// Checks a template for that many arguments.
pub(in crate::expr) fn check_template(template: &str, arguments: usize) -> Result<(), Wrong> {
    pieces(template, arguments).map(drop)
}

/// A part of a template.
enum Piece<'t> {
    Text(&'t str),
    /// The position of an argument that there is, and how it is written.
    Place(usize, Spec),
}

fn pieces(template: &str, arguments: usize) -> Result<Vec<Piece<'_>>, Wrong> {
    let (mut pieces, mut rest, mut next) = (Vec::new(), template, 0);
    while let Some(at) = rest.find(['{', '}']) {
        let (plain, special) = rest.split_at(at);
        pieces.push(Piece::Text(plain));
        if let Some(after) = special.strip_prefix("{{").or_else(|| special.strip_prefix("}}")) {
            pieces.push(Piece::Text(special.get(..1).unwrap_or("")));
            rest = after;
            continue;
        }
        let place = special.strip_prefix('{').and_then(|place| place.split_once('}'));
        let (place, after) =
            place.ok_or_else(|| template_error("a brace is not closed; a plain one is written twice"))?;
        let (index, spec) = place.split_once(':').unwrap_or((place, ""));
        pieces.push(Piece::Place(argument(index.trim(), &mut next, arguments)?, Spec::read(spec)?));
        rest = after;
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

fn template_error(message: &str) -> Wrong {
    Wrong::value(0, format!("Invalid format string: {message}"))
}

/// The position of the argument that a place names; `next` counts the places without a number.
fn argument(index: &str, next: &mut usize, arguments: usize) -> Result<usize, Wrong> {
    let position = if index.is_empty() {
        *next += 1;
        *next - 1
    } else {
        index.parse().map_err(|_| not_a_number(index))?
    };
    if position < arguments {
        return Ok(position);
    }
    Err(template_error(&format!("there is no argument for {{{position}}}; {arguments} after the template")))
}

/// `{0,5}` aligns in .NET, and so in ARM templates.
fn not_a_number(index: &str) -> Wrong {
    let aligned = index.split_once(',').and_then(|(index, width)| Some((index, width.trim().parse::<i32>().ok()?)));
    let Some((index, width)) = aligned else {
        return template_error("a place is written {0}, with the number of an argument");
    };
    let align = if width < 0 { '<' } else { '>' };
    template_error(&format!(
        "'{{{index},{width}}}' is not supported; write {{{index}:{align}{}}}",
        width.unsigned_abs()
    ))
}

/// Translates a number format of .NET, such as `D4`, into what follows the colon here; `None` if there is no counterpart.
fn format_of_numbers(text: &str) -> Option<String> {
    let (kind, digits) = (text.chars().next()?, text.get(1..)?);
    let digits: usize = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    let zeros = || if digits > 0 { format!("0{digits}") } else { String::new() };
    match kind {
        'D' | 'd' => Some(zeros()),
        'X' | 'x' => Some(format!("{}{kind}", zeros())),
        'F' | 'f' | 'N' | 'n' => Some(format!(".{digits}")),
        _ => None,
    }
}

/// How a value is written.
struct Spec {
    fill: char,
    align: Option<char>,
    plus: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    kind: Option<char>,
}

impl Spec {
    fn read(text: &str) -> Result<Self, Wrong> {
        let mut rest = text.trim_end();
        let mut spec = Self {
            fill: ' ',
            align: None,
            plus: false,
            alternate: false,
            zero: false,
            width: 0,
            precision: None,
            kind: None,
        };
        let is_align = |c: &char| matches!(c, '<' | '^' | '>');
        let mut chars = rest.chars();
        let (first, second) = (chars.next(), chars.next());
        if let (Some(fill), Some(align)) = (first, second.filter(is_align)) {
            (spec.fill, spec.align) = (fill, Some(align));
            rest = chars.as_str();
        } else if let Some(align) = first.filter(is_align) {
            spec.align = Some(align);
            rest = rest.get(1..).unwrap_or("");
        }
        spec.plus = flag(&mut rest, '+');
        flag(&mut rest, '-');
        spec.alternate = flag(&mut rest, '#');
        spec.zero = flag(&mut rest, '0');
        spec.width = count(&mut rest)?.unwrap_or(0);
        if flag(&mut rest, '.') {
            spec.precision =
                Some(count(&mut rest)?.ok_or_else(|| template_error("a precision is missing behind '.'"))?);
        }
        let mut chars = rest.chars();
        spec.kind = chars.next();
        if chars.next().is_some() {
            let instead = format_of_numbers(text).map(|spec| match spec.as_str() {
                "" => "; leave it out".to_owned(),
                spec => format!("; write '{spec}' instead"),
            });
            let message = format!("'{text}' does not say how to write a value{}", instead.unwrap_or_default());
            return Err(template_error(&message));
        }
        Ok(spec)
    }

    fn render(&self, value: &Value, argument: usize) -> Result<String, Wrong> {
        if let Value::Number(number) = value {
            let (sign, digits) = self.number(number)?;
            return Ok(self.pad(&sign, &digits, '>'));
        }
        if self.kind.is_some() {
            let message = format!("a {} cannot be written in the form that the template asks for", value.kind());
            return Err(Wrong::kind(argument, message));
        }
        let text = to_text(value)?;
        let text = self.precision.map_or(text.clone(), |most| text.chars().take(most).collect());
        Ok(self.pad("", &text, '<'))
    }

    /// The sign, or what else stands in front of zeros, and the digits.
    fn number(&self, number: &Number) -> Result<(String, String), Wrong> {
        let written = match (self.kind, number.as_i64(), number.as_f64()) {
            (None | Some('?'), Some(integer), _) => integer.to_string(),
            (Some('x'), Some(integer), _) => return Ok(self.radix("0x", format!("{integer:x}"))),
            (Some('X'), Some(integer), _) => return Ok(self.radix("0x", format!("{integer:X}"))),
            (Some('o'), Some(integer), _) => return Ok(self.radix("0o", format!("{integer:o}"))),
            (Some('b'), Some(integer), _) => return Ok(self.radix("0b", format!("{integer:b}"))),
            (Some('e'), Some(integer), _) => {
                self.precision.map_or(format!("{integer:e}"), |p| format!("{integer:.p$e}"))
            }
            (Some('E'), Some(integer), _) => {
                self.precision.map_or(format!("{integer:E}"), |p| format!("{integer:.p$E}"))
            }
            (None | Some('?'), None, Some(float)) => {
                self.precision.map_or(number.to_string(), |p| format!("{float:.p$}"))
            }
            (Some('e'), None, Some(float)) => self.precision.map_or(format!("{float:e}"), |p| format!("{float:.p$e}")),
            (Some('E'), None, Some(float)) => self.precision.map_or(format!("{float:E}"), |p| format!("{float:.p$E}")),
            (Some('x' | 'X' | 'o' | 'b'), ..) => return Err(template_error("only integers have these digits")),
            (kind, ..) => {
                let kind = kind.map(String::from).unwrap_or_default();
                return Err(template_error(&format!(
                    "'{kind}' is not a way to write a number; there are x, X, o, b, e and E"
                )));
            }
        };
        Ok(match written.strip_prefix('-') {
            Some(digits) => ("-".to_owned(), digits.to_owned()),
            None => (if self.plus { "+" } else { "" }.to_owned(), written),
        })
    }

    fn radix(&self, prefix: &str, digits: String) -> (String, String) {
        let plus = if self.plus { "+" } else { "" };
        (format!("{plus}{}", if self.alternate { prefix } else { "" }), digits)
    }

    fn pad(&self, sign: &str, body: &str, default: char) -> String {
        let missing = self.width.saturating_sub(sign.len() + body.chars().count());
        if self.zero && default == '>' {
            return format!("{sign}{}{body}", "0".repeat(missing));
        }
        let before = match self.align.unwrap_or(default) {
            '<' => 0,
            '^' => missing / 2,
            _ => missing,
        };
        let fill = |count: usize| std::iter::repeat_n(self.fill, count).collect::<String>();
        format!("{}{sign}{body}{}", fill(before), fill(missing - before))
    }
}

fn flag(rest: &mut &str, wanted: char) -> bool {
    let after = rest.strip_prefix(wanted);
    *rest = after.unwrap_or(rest);
    after.is_some()
}

fn count(rest: &mut &str) -> Result<Option<usize>, Wrong> {
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, after) = rest.split_at(end);
    *rest = after;
    if digits.is_empty() {
        return Ok(None);
    }
    let count = digits.parse().ok().filter(|count| *count <= MAX_WIDTH);
    count.map(Some).ok_or_else(|| template_error(&format!("widths and precisions are at most {MAX_WIDTH}")))
}
