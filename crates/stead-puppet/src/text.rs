//! Text of others, and what is left of it in a module.

/// A description without what an editor does not show: control characters and marks that change the direction of writing.
///
/// A line that begins with `@` would be an instruction to puppet-strings: there the sign is in backticks.
pub(crate) fn plain(text: &str) -> String {
    let shown =
        |character: &char| *character == '\n' || !(character.is_control() || crate::ruby::is_invisible(*character));
    let lines = text.lines().map(|line| {
        let line: String = line.replace('\t', " ").chars().filter(shown).collect();
        let line = line.trim_end();
        line.strip_prefix('@').map_or_else(|| line.to_owned(), |rest| format!("`@`{rest}"))
    });
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// The first sentence or line of a text, with at most so many characters.
pub(crate) fn summary(text: &str, most: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    let sentence = line.split_inclusive(". ").next().unwrap_or_default().trim_end();
    if sentence.chars().count() <= most {
        return sentence.to_owned();
    }
    let cut: String = sentence.chars().take(most.saturating_sub(3)).collect();
    cut.trim_end().to_owned() + "..."
}
