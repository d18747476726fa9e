//! Values that `&name` marks, and their repetition by `*name`.

use std::collections::{HashMap, HashSet};

use super::{Kind, Node};

/// Marked values, kept only if something may repeat them, and only within a budget.
///
/// The budget is in values, and in text: every [`UNIT`] bytes cost as much as a value.
pub(super) struct Anchors<'t> {
    text: &'t str,
    budget: usize,
    spent: usize,
    by_id: HashMap<usize, Anchored>,
    names: Option<AnchorNames<'t>>,
}

/// So much text costs as much as a value, which is about what a value takes in memory.
const UNIT: usize = 64;

enum Anchored {
    /// It has not ended.
    Open {
        wanted: bool,
    },
    Kept {
        node: Node,
        size: Size,
    },
    Unwanted,
}

/// The names that may be repeated.
enum AnchorNames<'t> {
    These(HashSet<&'t str>),
    /// There are so many that a list of them would be an attack of its own.
    All,
}

/// The cost of a value, and its depth.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) cost: usize,
    pub(super) depth: usize,
}

/// The value that an alias stands for.
pub(super) enum Repeated {
    Node(Node, Size),
    /// The value has not ended: it would contain itself.
    Open,
    /// The budget is spent.
    TooMuch,
}

/// The budget is spent.
pub(super) struct TooMuch;

impl<'t> Anchors<'t> {
    pub(super) fn new(text: &'t str, budget: usize) -> Self {
        Self { text, budget, spent: 0, by_id: HashMap::new(), names: None }
    }

    /// A marked list or object starts.
    pub(super) fn open(&mut self, id: usize) {
        self.by_id.insert(id, Anchored::Open { wanted: true });
    }

    /// The name of a mark becomes known, which is after an open or a scalar was announced.
    pub(super) fn name(&mut self, id: usize, name: &str) {
        let names = self.names.get_or_insert_with(|| alias_names(self.text, self.budget));
        let wanted = match names {
            AnchorNames::These(names) => names.contains(name),
            AnchorNames::All => true,
        };
        let Some(anchored) = self.by_id.get_mut(&id).filter(|_| !wanted) else { return };
        if let Anchored::Kept { size, .. } = anchored {
            self.spent = self.spent.saturating_sub(size.cost);
        }
        *anchored = match anchored {
            Anchored::Open { .. } => Anchored::Open { wanted: false },
            Anchored::Kept { .. } | Anchored::Unwanted => Anchored::Unwanted,
        };
    }

    /// A marked value has ended.
    pub(super) fn keep(&mut self, id: usize, node: &Node) -> Result<(), TooMuch> {
        let unwanted = matches!(self.by_id.get(&id), Some(Anchored::Open { wanted: false }));
        let anchored = if unwanted {
            Anchored::Unwanted
        } else {
            let size = measure(node);
            self.spend(size)?;
            Anchored::Kept { node: node.clone(), size }
        };
        self.by_id.insert(id, anchored);
        Ok(())
    }

    /// Returns the value that an alias of the mark stands for.
    pub(super) fn repeat(&mut self, id: usize) -> Repeated {
        let Some(Anchored::Kept { size, .. }) = self.by_id.get(&id) else { return Repeated::Open };
        let size = *size;
        if self.spend(size).is_err() {
            return Repeated::TooMuch;
        }
        match self.by_id.get(&id) {
            Some(Anchored::Kept { node, .. }) => Repeated::Node(node.clone(), size),
            _ => Repeated::Open,
        }
    }

    fn spend(&mut self, size: Size) -> Result<(), TooMuch> {
        self.spent = self.spent.saturating_add(size.cost);
        if self.spent <= self.budget { Ok(()) } else { Err(TooMuch) }
    }
}

fn measure(node: &Node) -> Size {
    let text = |text: &str| text.len() / UNIT;
    let add = |size: Size, child: &Node| {
        let Size { cost, depth } = measure(child);
        Size { cost: size.cost + cost, depth: size.depth.max(depth + 1) }
    };
    let empty = Size { cost: 1, depth: 1 };
    match &node.kind {
        Kind::Array(items) => items.iter().fold(empty, add),
        Kind::Object(entries) => {
            let keys = entries.iter().map(|entry| text(&entry.key)).sum::<usize>();
            let size = entries.iter().map(|entry| &entry.value).fold(empty, add);
            Size { cost: size.cost + keys, ..size }
        }
        Kind::String(string) => Size { cost: 1 + text(string), depth: 0 },
        _ => Size { cost: 1, depth: 0 },
    }
}

/// Everything that could be the name of an alias: what follows an asterisk.
fn alias_names(text: &str, most: usize) -> AnchorNames<'_> {
    let ends = [' ', '\t', '\n', '\r', '[', ']', '{', '}', ','];
    let mut names = HashSet::new();
    for (at, _) in text.match_indices('*') {
        let name = text.get(at + 1..).and_then(|rest| rest.split(ends).next()).unwrap_or_default();
        names.insert(name);
        if names.len() > most {
            return AnchorNames::All;
        }
    }
    AnchorNames::These(names)
}
