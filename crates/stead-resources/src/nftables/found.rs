//! A table as found in the running kernel and for the next boot.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use stead_core::call::Failure;
use stead_core::value::{Object, Value};
use stead_host::provider::Context;

use super::boot::{Beside, Table};
use super::kernel::{self, AtBoot, ReadAtBoot, Rules};
use super::{Properties, is_live};

/// A table as it is found.
pub(super) struct Found {
    /// The text of its file.
    pub(super) file: Option<String>,
    /// The content in it, if stead wrote it.
    own: Option<String>,
    /// True if the main file reads its file, and does nothing else to the table behind it.
    pub(super) is_read: bool,
    /// The table of the running kernel.
    pub(super) rules: Option<Rules>,
    read: Read,
    /// The rules of the last content that was asked for.
    meant: RefCell<Option<(String, Rc<Rules>)>>,
    kept: OnceCell<bool>,
}

/// The texts that nftables.service reads.
pub(super) struct Read {
    /// The text of the main file.
    pub(super) main: String,
    /// The files of the folder that it reads.
    pub(super) folder: Vec<Beside>,
}

impl Found {
    pub(super) fn new(table: &Table<'_>, file: Option<String>, read: Read, rules: Option<Rules>) -> Self {
        let own = file.as_deref().and_then(|text| table.content(text)).map(str::to_owned);
        let is_read = table.is_read_by(&read.main);
        Self { file, own, is_read, rules, read, meant: RefCell::default(), kept: OnceCell::new() }
    }

    /// The content in its file, if stead wrote that.
    pub(super) fn own(&self) -> Option<&str> {
        self.own.as_deref()
    }

    pub(super) fn exists(&self) -> bool {
        self.own.is_some() || self.rules.is_some()
    }

    /// Returns whether it is loaded at boot as its file states it.
    pub(super) fn is_kept(&self, cx: &Context, table: &Table<'_>) -> bool {
        let (Some(content), Some(text)) = (&self.own, &self.file) else { return false };
        let comes_true = || {
            let at_boot = self.at_boot(cx, table, &self.read.main, text, content);
            at_boot.is_ok_and(|at_boot| matches!(at_boot, AtBoot::Stated))
        };
        self.is_read && *self.kept.get_or_init(|| !is_live(cx) || kernel::presumed().is_some() || comes_true())
    }

    /// The fate of the table at boot once its file has a text, and is read.
    pub(super) fn at_boot_with(
        &self,
        cx: &Context,
        table: &Table<'_>,
        text: &str,
        content: &str,
    ) -> Result<AtBoot, Failure> {
        let main = (table.include("").edit)(&self.read.main);
        self.at_boot(cx, table, &main, text, content)
    }

    fn at_boot(
        &self,
        cx: &Context,
        table: &Table<'_>,
        main: &str,
        text: &str,
        content: &str,
    ) -> Result<AtBoot, Failure> {
        let stated = self.meant(cx, table, content)?;
        kernel::at_boot(cx, table, &ReadAtBoot { main, folder: &self.read.folder, text }, &stated)
    }

    /// The rules that a content comes to.
    pub(super) fn meant(&self, cx: &Context, table: &Table<'_>, content: &str) -> Result<Rc<Rules>, Failure> {
        if let Some((_, rules)) = self.meant.borrow().as_ref().filter(|(known, _)| known == content) {
            return Ok(Rc::clone(rules));
        }
        let rules = Rc::new(kernel::meant(cx, table, content, Properties::CONTENT)?);
        self.meant.replace(Some((content.to_owned(), Rc::clone(&rules))));
        Ok(rules)
    }

    /// Returns whether the running kernel has a table with this content.
    pub(super) fn has(&self, cx: &Context, table: &Table<'_>, content: &str) -> Result<bool, Failure> {
        match &self.rules {
            Some(rules) => Ok(*self.meant(cx, table, content)? == *rules),
            None => Ok(false),
        }
    }

    pub(super) fn state(&self, cx: &Context, stated: &Properties<'_>) -> Result<Object, Failure> {
        let mut state = stated.identified();
        state.insert(Properties::EXIST.to_owned(), Value::from(self.exists()));
        if !self.exists() {
            return Ok(state);
        }
        let table = stated.table();
        let own = self.own.as_deref().filter(|_| self.is_read || self.rules.is_none());
        let kept = own.map(|own| match stated.content {
            Some(content) if self.file.as_ref() == Some(&table.text(content.0)) => content.0,
            _ => own,
        });
        // What nft does not take is not loaded.
        let is_loaded = kept.map_or(self.rules.is_some(), |content| self.has(cx, &table, content).is_ok_and(|has| has));
        let content = match (kept, stated.content) {
            (Some(content), _) => content.to_owned(),
            (None, Some(content)) if self.has(cx, &table, content.0).is_ok_and(|has| has) => content.0.to_owned(),
            _ => kernel::listed(cx, &table)?,
        };
        let is_kept = self.is_kept(cx, &table);
        let all = [(Properties::CONTENT, Value::from(content)), (Properties::BOOT, Value::from(is_kept))];
        state.extend(all.map(|(name, value)| (name.to_owned(), value)));
        state.extend(is_live(cx).then(|| (Properties::LOADED.to_owned(), Value::from(is_loaded))));
        Ok(state)
    }
}
