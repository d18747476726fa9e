//! Spaces in place of the tabs in the indentation of lines.

use std::ops::Range;

use granit_parser::Parser;

use super::limits::{Limits, options};
use super::unquoted::without_comment;

/// The numbers of spaces that a tab may stand for where several lines are indented with tabs.
const WIDTHS: [usize; 3] = [2, 4, 8];
/// How much deeper than its key a value stands.
const STEP: usize = 2;

/// Returns the change that puts spaces in place of tabs, given where a line starts that is indented with one: of all such lines, or of
/// this one as deep as the lines around it.
///
/// Guarantees: the changed text can be read at least to the end of what is changed.
pub(super) fn in_spaces(text: &str, start: usize) -> Option<(Range<usize>, String)> {
    let is_other = |at: &usize| *at != start;
    let mut tabbed = starts(text).filter(|at| blank(text, *at).contains('\t'));
    let others: Vec<usize> = tabbed.by_ref().filter(is_other).collect();
    if others.is_empty() {
        let range = start..start + blank(text, start).len();
        let depths = depths(text, start);
        let mut changes = depths.into_iter().map(|depth| (range.clone(), " ".repeat(depth)));
        return changes.find(|change| can_be_read(text, change));
    }
    let from = others.iter().copied().chain([start]).min()?;
    let last = others.iter().copied().chain([start]).max()?;
    let range = from..last + text.get(last..)?.find('\n').unwrap_or(text.len() - last);
    let lines = || text.get(range.clone()).unwrap_or_default().split_inclusive('\n');
    let with_width = |width: usize| {
        let spaced = lines().map(|line| {
            let rest = line.trim_start_matches([' ', '\t']);
            let indentation = line.get(..line.len() - rest.len()).unwrap_or_default();
            format!("{}{rest}", indentation.replace('\t', &" ".repeat(width)))
        });
        (range.clone(), spaced.collect::<String>())
    };
    WIDTHS.into_iter().map(with_width).find(|change| is_nested(text, change) && can_be_read(text, change))
}

/// Returns whether in a changed text each value below its key is deeper than that, as it is meant where tabs indent it.
fn is_nested(text: &str, (range, new): &(Range<usize>, String)) -> bool {
    let before = text.get(..range.start).unwrap_or_default();
    let above = before.lines().rev().find(|line| !line.trim().is_empty());
    let lines: Vec<&str> = above.into_iter().chain(new.lines().filter(|line| !line.trim().is_empty())).collect();
    lines.windows(2).all(|pair| {
        let [above, line] = pair else { return true };
        let key = above.len() - above.trim_start_matches([' ', '-']).len();
        let column = line.len() - line.trim_start().len();
        let is_element = line.trim_start().starts_with("- ");
        !without_comment(above).ends_with(':') || column > key || (is_element && column == key)
    })
}

/// The places where lines start.
fn starts(text: &str) -> impl Iterator<Item = usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1))
}

/// The indentation of the line that starts at a place.
fn blank(text: &str, start: usize) -> &str {
    let line = text.get(start..).unwrap_or_default();
    line.get(..line.len() - line.trim_start_matches([' ', '\t']).len()).unwrap_or_default()
}

/// The columns at which a line can begin, by the line above it: the likeliest first.
fn depths(text: &str, start: usize) -> Vec<usize> {
    let above = text.get(..start).unwrap_or_default().lines().rev();
    let Some(line) =
        above.map(str::trim_end).find(|line| !line.trim_start().is_empty() && !line.trim_start().starts_with('#'))
    else {
        return vec![0];
    };
    let line = without_comment(line);
    let dash = line.len() - line.trim_start().len();
    let key = line.len() - line.trim_start_matches([' ', '-']).len();
    let opens = line.ends_with([':', '|', '>']) || line.ends_with("|-") || line.ends_with(">-");
    if opens { vec![key + STEP, key] } else { vec![key, dash] }
}

fn can_be_read(text: &str, (range, new): &(Range<usize>, String)) -> bool {
    let mut changed = text.to_owned();
    changed.replace_range(range.clone(), new);
    let line = changed.get(range.start + new.len()..).and_then(|rest| rest.find('\n')).unwrap_or(0);
    let end = range.start + new.len() + line;
    let fault = Parser::new_from_str_with_options(&changed, options(&Limits::default(), false))
        .find_map(std::result::Result::err);
    fault.is_none_or(|fault| fault.marker().byte_offset().is_some_and(|at| at > end))
}
