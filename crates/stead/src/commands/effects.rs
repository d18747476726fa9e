//! What a set creates and destroys besides what states show, an item a line.

use std::collections::BTreeMap;

use stead_core::destruction::{Effects, Entries, Item, Listing};
use stead_report::Line;

use super::values;

/// The lines; empty where nothing is listed.
pub(super) fn lines(effects: &Effects) -> Vec<Line> {
    let (new, old) = (contents(&effects.creates), contents(&effects.destroys));
    let replaced = old.iter().filter_map(|(path, old)| Some((path, old, new.get(path)?)));
    let replaced =
        replaced.map(|(path, old, new)| values::detail('~', &format!("content of {path} ({})", change(old, new))));
    let alone = |item: &Item| {
        let path = item.path.as_str();
        item.kind.content().is_none() || !(new.contains_key(path) && old.contains_key(path))
    };
    let place = effects.place.as_deref().map(values::said);
    let created = listed('+', &effects.creates, alone);
    let destroyed = listed('-', &effects.destroys, alone);
    place.into_iter().chain(replaced).chain(created).chain(destroyed).collect()
}

/// The contents in a listing, by path.
fn contents(listing: &Listing) -> BTreeMap<&str, String> {
    listing.items().iter().filter_map(|item| Some((item.path.as_str(), item.kind.content()?))).collect()
}

/// Two contents may be alike in all that is known of them.
fn change(old: &str, new: &str) -> String {
    if old == new { new.to_owned() } else { format!("{old} -> {new}") }
}

/// How many names below a directory are shown. All that are known are in the JSON.
const NAMES: usize = 20;

fn listed(sign: char, listing: &Listing, alone: impl Fn(&Item) -> bool) -> Vec<Line> {
    let items = listing.items().iter().filter(|item| alone(item));
    let items = items.flat_map(|item| {
        let sign = if item.kind.is_replaced() { '~' } else { sign };
        std::iter::once(values::detail(sign, &item.to_string())).chain(below(sign, item.kind.entries()))
    });
    let more = Some(listing.more()).filter(|more| *more > 0);
    items.chain(more.map(|more| values::detail(sign, &format!("and {more} more")))).collect()
}

/// The first names below a directory, relative to it, and how many follow.
fn below(sign: char, entries: &Entries) -> Vec<Line> {
    let names = entries.names().iter().take(NAMES);
    let rest = entries.rest_after(names.len()).filter(|_| entries.total() > 0).map(|rest| format!("and {rest}"));
    names.chain(&rest).map(|text| values::deeper_detail(sign, text)).collect()
}
