//! Tables that fit the terminal.

use stead_core::visible::visible;

/// A table with a line below its headings. Columns are as wide as their cells, and all fit in `most` columns of text if
/// that is given.
pub fn table(headings: &[&str], rows: &[Vec<String>], most: Option<usize>) -> String {
    let rows = seen(rows);
    let columns = columns(headings, &rows, most);
    let line = |cell: &dyn Fn(usize) -> String| {
        let cells = columns.iter().map(|(at, width)| format!("{:width$}", shortened(&cell(*at), *width)));
        cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned() + "\n"
    };
    let rule = "-".repeat(total(&columns));
    let style = anstyle::AnsiColor::Green.on_default().bold();
    let heading = line(&|at| headings.get(at).copied().unwrap_or_default().to_owned());
    let body = rows.iter().map(|row| line(&|at| row.get(at).cloned().unwrap_or_default()));
    format!("{style}{heading}{rule}{style:#}\n") + &body.collect::<String>()
}

/// How wide a table is where there is room for all of it.
pub fn natural_width(headings: &[&str], rows: &[Vec<String>]) -> usize {
    total(&columns(headings, &seen(rows), None))
}

/// Cells as they are shown.
fn seen(rows: &[Vec<String>]) -> Vec<Vec<String>> {
    rows.iter().map(|row| row.iter().map(|cell| visible(cell).into_owned()).collect()).collect()
}

/// The space between two columns.
const GAP: &str = "  ";

/// Which columns are shown, and how wide. Where there is too little room, columns without any text are left out, the last
/// one, a description, is cut or left out, and then the widest are cut.
fn columns(headings: &[&str], rows: &[Vec<String>], most: Option<usize>) -> Vec<(usize, usize)> {
    /// Less of a description says nothing.
    const LEAST: usize = 12;
    let cells = |at: usize| rows.iter().filter_map(move |row| row.get(at)).map(|cell| cell.chars().count());
    let width = |(at, heading): (usize, &&str)| (at, cells(at).chain([heading.chars().count()]).max().unwrap_or(0));
    let mut columns: Vec<(usize, usize)> = headings.iter().enumerate().map(width).collect();
    let Some(most) = most.filter(|most| total(&columns) > *most) else { return columns };
    columns.retain(|(at, _)| cells(*at).any(|cell| cell > 0));
    let Some((last, description)) = columns.pop() else { return columns };
    let left = most.saturating_sub(total(&columns) + GAP.len());
    if left >= LEAST.min(description) {
        columns.push((last, description.min(left)));
    }
    while total(&columns) > most {
        match columns.iter_mut().max_by_key(|(_, width)| *width) {
            Some((_, width)) if *width > 1 => *width -= 1,
            _ => break,
        }
    }
    columns
}

fn total(columns: &[(usize, usize)]) -> usize {
    columns.iter().map(|(_, width)| width).sum::<usize>() + GAP.len() * columns.len().saturating_sub(1)
}

/// The start of a text that is longer than that many characters.
fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(most: Option<usize>) -> Vec<String> {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let rows =
            [row(["Test/Long", "1.0.0", "", "A description that is far too long"]), row(["Test/B", "2.0.0", "", ""])];
        let text = table(&["Type", "Version", "Adapter", "Description"], &rows, most);
        let plain = anstream::adapter::strip_str(&text).to_string();
        plain.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_table_is_as_wide_as_its_cells_or_as_the_terminal() {
        assert_eq!(shown(None)[0], "Type       Version  Adapter  Description");
        assert_eq!(shown(Some(100)), shown(None));
        let narrow = ["Type       Version  Description", &"-".repeat(40), "Test/Long  1.0.0    A description that …"];
        assert_eq!(shown(Some(40))[..3], narrow);
        assert_eq!(shown(Some(25))[..3], ["Type       Version", &"-".repeat(18), "Test/Long  1.0.0"]);
        assert_eq!(shown(Some(12))[..3], ["Type   Vers…", &"-".repeat(12), "Test…  1.0.0"]);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for most in 1..60 {
            let widest = shown(Some(most)).iter().map(|line| line.chars().count()).max();
            assert!(widest <= Some(most.max(4)), "{most}: {widest:?}");
        }
    }
}
