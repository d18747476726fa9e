//! Which ways lead through the body of a method, as PowerShell follows them: it asks for no value of a condition, and a loop with one may
//! end at once.

/// What is known at a place of a body.
pub(super) struct Flow {
    /// True if a way leads there.
    pub(super) reaches: bool,
    /// The loops around it, the innermost last.
    loops: Vec<Loop>,
    /// The label of the loop that begins next.
    pub(super) label: Option<String>,
}

/// A loop, or a switch, and what leaves a round of it.
#[derive(Default)]
pub(super) struct Loop {
    label: Option<String>,
    /// True if a `break` that can be reached ends it.
    pub(super) is_broken: bool,
    /// True if a `continue` that can be reached begins the next round.
    pub(super) is_continued: bool,
}

impl Default for Flow {
    fn default() -> Self {
        Self { reaches: true, loops: Vec::new(), label: None }
    }
}

impl Flow {
    /// Begins a loop, by the label before it.
    pub(super) fn enter(&mut self) {
        let label = self.label.take();
        self.loops.push(Loop { label, ..Loop::default() });
    }

    /// Ends the innermost loop; returns what left its rounds.
    pub(super) fn leave(&mut self) -> Loop {
        self.loops.pop().unwrap_or_default()
    }

    /// Follows a `break` or `continue` to the loop of that label, else to the innermost one.
    pub(super) fn jump(&mut self, is_break: bool, label: Option<&str>) {
        let reaches = std::mem::take(&mut self.reaches);
        let is_meant = |each: &&mut Loop| match (label, &each.label) {
            (None, _) => true,
            (Some(wanted), own) => own.as_ref().is_some_and(|own| own.eq_ignore_ascii_case(wanted)),
        };
        if let Some(meant) = self.loops.iter_mut().rev().find(is_meant) {
            meant.is_broken |= reaches && is_break;
            meant.is_continued |= reaches && !is_break;
        }
    }
}
