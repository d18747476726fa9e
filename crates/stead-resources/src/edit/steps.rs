//! Several text files that one instance edits.

use std::sync::Arc;

use stead_core::call::{Failure, Presumed};
use stead_core::destruction::{Item, ItemKind};
use stead_host::provider::Context;
use stead_system::fs::{Place, SystemPath};

use super::{Edit, Files, Missing, Outcome, Text, presumed};
use crate::pending;

/// What becomes of one text file.
pub(crate) struct FileEdit<'e> {
    /// Where it is in the system that is managed, for lists and messages.
    pub(crate) path: String,
    pub(crate) missing: Missing,
    /// From the text, which is empty where there is no file, to the text afterwards.
    pub(crate) edit: Box<dyn Fn(&str) -> String + 'e>,
}

/// Edits of which each changes something.
pub(crate) struct Steps<'e>(Vec<Step<'e>>);

struct Step<'e> {
    edit: FileEdit<'e>,
    at: SystemPath,
    former: Option<Arc<Text<String>>>,
    /// The size afterwards.
    size: u64,
}

impl<'e> Steps<'e> {
    /// Those edits that change a file as it is now. Changes nothing.
    pub(crate) fn of(cx: &Context, files: &Files<String>, edits: Vec<FileEdit<'e>>) -> Result<Self, Failure> {
        let mut steps = Vec::new();
        for edit in edits {
            let at = cx.resolve(&edit.path);
            let former = files.look(cx, &at)?;
            let text = former.as_ref().map_or("", |former| former.content.as_str());
            let after = (edit.edit)(text);
            if after != text {
                steps.push(Step { edit, at, former, size: after.len() as u64 });
            }
        }
        Ok(Self(steps))
    }

    /// Returns whether nothing is changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The files that are created.
    pub(crate) fn creates(&self) -> impl Iterator<Item = Item> {
        let new = self.0.iter().filter(|step| step.former.is_none());
        new.map(|step| Item { path: step.edit.path.clone(), kind: ItemKind::File { size: step.size } })
    }

    /// The lines that are removed.
    pub(crate) fn removed_lines(&self) -> impl Iterator<Item = Item> {
        self.0.iter().flat_map(|step| {
            let text = step.former.as_ref().map_or("", |former| former.content.as_str());
            let lines = super::removed_lines(text, &(step.edit.edit)(text));
            lines.into_iter().map(|kind| Item { path: step.edit.path.clone(), kind })
        })
    }

    /// In what-if: what keeps one of them from being made as things are.
    pub(crate) fn presumed(&self) -> Result<Option<Presumed>, Failure> {
        for step in &self.0 {
            if let Some(presumed) = presumed(&step.at, step.former.as_deref(), step.edit.missing)? {
                return Ok(Some(presumed));
            }
        }
        Ok(None)
    }

    /// Makes them, one after the other.
    pub(crate) fn carry_out(&self, cx: &Context, files: &Files<String>) -> Result<(), Failure> {
        for Step { edit, at, .. } in &self.0 {
            let place = Place::find(at, &cx.writes)?.ok_or_else(|| pending::no_directory(at))?;
            files.edit(cx, &place, edit.missing, |text| {
                let text = text.map_or("", |text| text.content.as_str());
                let after = (edit.edit)(text);
                let outcome = if after == text { Outcome::Keep } else { Outcome::Write(after.into_bytes()) };
                Ok(Edit { outcome, result: () })
            })?;
        }
        Ok(())
    }
}
