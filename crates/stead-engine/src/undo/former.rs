//! The resource that puts back what was at a path: `Stead/Former`, which only the document of an undo uses.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use stead_core::call::{Execution, Failure, FailureKind};
use stead_core::claims::Claims;
use stead_core::diag::counted;
use stead_core::id::TypeName;
use stead_core::manifest::{Capabilities, Manifest, Promises, UndoWay, Version};
use stead_core::schema::Schema;
use stead_core::value::{Object, Value};
use stead_core::visible::{bytes_text, path_text};
use stead_host::provider::{Context, Cost, Plain, Prediction, Provider, SetReply, State, TestReply};
use stead_system::fs::{Image, ImageNode, Loss, format_mode};

use super::Item;
use crate::embedded::EmbeddedResource;

/// The type of the resource.
pub(super) const TYPE: &str = "Stead/Former";

/// How many bytes of content are shown at most.
const SHOWN: u64 = 64 << 10;

/// The bit of a mode by which everybody may read.
const EVERYBODY: u32 = 0o004;

/// Puts back what was at paths before a run.
struct FormerPaths {
    items: BTreeMap<String, Arc<Item>>,
    /// True if what others changed since is replaced as well.
    force: bool,
    schema: Arc<Schema>,
}

/// The resource over these items; `None` when its own declaration is not valid, which a test rules out.
pub(super) fn resource(items: impl Iterator<Item = Arc<Item>>, force: bool) -> Option<EmbeddedResource> {
    let text = || json!({ "type": "string" });
    let schema = Schema::compile(json!({
        "type": "object",
        "properties": {
            "path": text(), "_exist": { "type": "boolean" }, "kind": text(), "mode": text(), "target": text(), "content": text(),
            "owner": { "type": "integer" }, "group": { "type": "integer" },
        },
        "required": ["path"],
        "additionalProperties": false,
    }));
    let capabilities = Capabilities {
        get: true,
        set: true,
        set_what_if: true,
        set_handles_exist: true,
        test: true,
        ..Capabilities::default()
    };
    let (name, version) = (TypeName::parse(TYPE).ok()?, Version::parse("1.0.0").ok()?);
    let new = Manifest::in_process(name, version);
    let promises = Promises { below_root: true, ..Promises::default() };
    let manifest = Manifest { capabilities, promises, undo: UndoWay::Files, ..new };
    let items = items.map(|item| (item.shown.clone(), item)).collect();
    let provider = FormerPaths { items, force, schema: Arc::new(schema.ok()?) };
    EmbeddedResource::new(manifest, Arc::new(provider)).ok()
}

impl Provider for FormerPaths {
    fn schema(&self, _: &Context) -> Result<Option<Arc<Schema>>, Failure> {
        Ok(Some(Arc::clone(&self.schema)))
    }

    fn get(&self, _: &Context, input: &Plain) -> Result<State, Failure> {
        let item = self.item(input)?;
        item.now().map(|(now, content)| Plain::new(Value::Object(item.state(&now, Some(&content)))))
    }

    fn test(&self, _: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let item = self.item(input)?;
        let (actual, wanted) = item.now_and_former()?;
        let is_back = item.is_back();
        if !is_back {
            self.check(item)?;
        }
        let differing = if is_back { Vec::new() } else { differing(&actual, &wanted) };
        let words = item.words(&wanted);
        let predicted = Prediction { after: Plain::new(Value::Object(wanted)), words, ..Prediction::default() };
        Ok(TestReply {
            actual: Some(Plain::new(Value::Object(actual))),
            in_desired_state: Some(is_back),
            differing: Some(differing),
            predicted: (!is_back).then_some(predicted),
            ..TestReply::default()
        })
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let item = self.item(input)?;
        if item.is_back() {
            return Ok(SetReply { changed: Some(Vec::new()), ..SetReply::default() });
        }
        self.check(item)?;
        let (before, after) = item.now_and_former()?;
        let what_if = if execution == Execution::WhatIf { item.words(&after) } else { Vec::new() };
        if execution == Execution::Actual {
            item.put_back(&cx.writes)?;
        }
        let changed = Some(differing(&before, &after));
        Ok(SetReply { after: Some(Plain::new(Value::Object(after))), changed, what_if, ..SetReply::default() })
    }

    fn cost(&self, _: &Value) -> Cost {
        Cost::Inline
    }

    /// Its order is stated by the document that it is in.
    fn claims(&self, _: &Plain) -> Option<Claims> {
        Some(Claims::default())
    }
}

impl FormerPaths {
    fn item(&self, input: &Plain) -> Result<&Item, Failure> {
        let path = input.expose().get("path").and_then(Value::as_str).unwrap_or_default();
        let unknown = || Failure::new(FailureKind::Invalid, format!("the run changed nothing at '{path}'"));
        self.items.get(path).map(|item| &**item).ok_or_else(unknown)
    }

    /// Fails where what is there must not be replaced.
    fn check(&self, item: &Item) -> Result<(), Failure> {
        let refused = |why: String| Err(Failure::new(FailureKind::Refused, why));
        if let Some(why) = item.lost() {
            return refused(why.to_owned());
        }
        if let Some(other) = self.foreign(item) {
            return refused(format!("'{}' in it is not of the run, and stays", path_text(&other)));
        }
        match item.why_unknown().filter(|_| !self.force) {
            Some(why) => refused(format!("{why}. --force takes it back all the same")),
            None => Ok(()),
        }
    }

    /// Something in a directory that is to go which the run did not make.
    fn foreign(&self, item: &Item) -> Option<PathBuf> {
        if item.before.node == ImageNode::Directory {
            return None;
        }
        let names = item.place.names().ok()?;
        let is_own = |name: &PathBuf| {
            let own = self.items.get(&*path_text(&item.path.join(name)));
            own.is_some_and(|own| own.before.node == ImageNode::Absent)
        };
        names.into_iter().find(|name| !is_own(name))
    }
}

impl Item {
    fn now(&self) -> Result<(Image, Vec<u8>), Failure> {
        Ok(self.place.image(SHOWN)?)
    }

    /// The state that is there, and the one that was there before the run. Both have the content where it is shown.
    fn now_and_former(&self) -> Result<(Object, Object), Failure> {
        let (image, content) = self.now()?;
        let (mut now, mut former) = (self.state(&image, Some(&content)), self.state(&self.before, Some(&self.content)));
        let hides = |image: &Image, state: &Object| image.node != ImageNode::Absent && !state.contains_key("content");
        if hides(&image, &now) || hides(&self.before, &former) {
            now.remove("content");
            former.remove("content");
        }
        Ok((now, former))
    }

    /// Names the content of a file, where the state that is put back does not have it.
    fn words(&self, former: &Object) -> Vec<String> {
        let is_silent = self.before.node == ImageNode::File && !former.contains_key("content");
        let size = || counted(self.content.len() as u64, "byte");
        is_silent.then(|| format!("content as before the run ({}), not shown", size())).into_iter().collect()
    }

    /// The state that was there before the run, without the content.
    pub(super) fn former(&self) -> Object {
        self.state(&self.before, None)
    }

    /// The content of a file is part of it where everybody may read it and no instance that changed it has secrets: it may hold others.
    fn state(&self, image: &Image, content: Option<&[u8]>) -> Object {
        let is_there = image.node != ImageNode::Absent;
        let mut state = Object::from_iter([
            ("path".to_owned(), Value::from(self.shown.clone())),
            ("_exist".to_owned(), Value::from(is_there)),
        ]);
        if !is_there {
            return state;
        }
        let mut add = |name: &str, value: Value| drop(state.insert(name.to_owned(), value));
        let kind = match &image.node {
            ImageNode::Directory => "directory",
            ImageNode::Link(target) => {
                add("target", Value::from(bytes_text(target).into_owned()));
                "link"
            }
            _ => "file",
        };
        add("kind", Value::from(kind));
        let is_open = image.node == ImageNode::File && image.mode & EVERYBODY != 0 && !self.covered;
        let content = content.filter(|content| is_open && content.len() as u64 <= SHOWN);
        if let Some(text) = content.and_then(|content| std::str::from_utf8(content).ok()) {
            add("content", Value::from(text));
        }
        if kind != "link" {
            add("mode", Value::from(format_mode(image.mode)));
        }
        add("owner", Value::from(i64::from(image.uid)));
        add("group", Value::from(i64::from(image.gid)));
        state
    }
}

/// The members of states that differ: the content, where nothing else does.
fn differing(before: &Object, after: &Object) -> Vec<String> {
    let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(name.as_str())));
    let differing = names.filter(|name| before.get(name.as_str()) != after.get(name.as_str()));
    let differing: Vec<String> = differing.map(ToString::to_string).collect();
    if differing.is_empty() { vec!["content".to_owned()] } else { differing }
}

/// Why something was not kept.
pub(super) fn lost(loss: Loss) -> &'static str {
    match loss {
        Loss::TooLarge => "what was there was not kept: it is larger than what a run keeps (64 MiB)",
        Loss::Special => "what was there was not kept: a device, a socket or a FIFO",
        Loss::Unreadable => "what was there was not kept: it could not be read",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resource_is_valid() {
        assert!(resource(std::iter::empty(), false).is_some());
    }
}
