//! Needs that no document writes down: what an instance lies in or uses is created by another.

use std::collections::{BTreeMap, BTreeSet};

use super::link::{append, sort_scope};
use super::{Graph, Need, NeedKind};
use crate::id::NodeId;

/// That an instance needs another although the document does not say so.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Implied {
    /// The instance that needs the other.
    pub instance: NodeId,
    /// The node that it needs.
    pub needed: NodeId,
}

/// An implied need that is left out because the document states the opposite order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contradicted {
    /// The need that is left out.
    pub implied: Implied,
    /// The instances from the one that would be needed to the one that would need it: each needs the next.
    pub chain: Vec<NodeId>,
}

/// How many cycles are taken apart one by one. A document with more of them contradicts what it manages throughout.
const MOST_CYCLES: usize = 32;

impl Graph {
    /// Lets instances need what they need without saying so, in this way, and sorts the graph anew. What contradicts the
    /// document or what was implied before, or is written in it already, is left out, and so is what is not adjacent.
    ///
    /// Guarantees: all needs that there are stay; the graph has no cycle; the result depends on the set of what is implied
    /// and not on its order. Takes time in proportion to the graph, and as long again for each cycle that would arise, up to
    /// 32: then all that is implied between instances on cycles, or between two cycles, is taken back.
    ///
    /// Returns what contradicts the document, but for what was left out after those 32.
    pub fn imply(&mut self, implied: BTreeSet<Implied>, kind: NeedKind) -> Vec<Contradicted> {
        let needs = |one: NodeId, other: NodeId| self.node(one).needs.iter().any(|need| need.node == other);
        let is_new = |each: &Implied| {
            each.instance != each.needed
                && self.node(each.instance).scope == self.node(each.needed).scope
                && !needs(each.instance, each.needed)
        };
        let (opposite, mut news): (BTreeSet<Implied>, BTreeSet<Implied>) =
            implied.into_iter().filter(is_new).partition(|each| needs(each.needed, each.instance));
        let direct = |implied: Implied| Contradicted { implied, chain: vec![implied.needed, implied.instance] };
        let mut contradicted: Vec<Contradicted> = opposite.into_iter().map(direct).collect();
        if news.is_empty() {
            return contradicted;
        }
        for each in &news {
            self.add_need(each.instance, Need { node: each.needed, kind });
        }
        let scopes = 0..self.scopes.len();
        let sorted: Vec<Vec<NodeId>> =
            scopes.map(|scope| self.sort_without_cycles(scope, &mut news, &mut contradicted)).collect();
        self.implied.append(&mut news);
        let mut order = Vec::with_capacity(self.nodes.len());
        if let Some(outermost) = sorted.first() {
            append(self, &sorted, outermost, &mut order);
        }
        self.order = order;
        contradicted
    }

    /// The order of a scope, for which new needs that are part of a cycle are taken back.
    fn sort_without_cycles(
        &mut self,
        scope: usize,
        news: &mut BTreeSet<Implied>,
        contradicted: &mut Vec<Contradicted>,
    ) -> Vec<NodeId> {
        for _ in 0..MOST_CYCLES {
            let members = &self.scopes[scope].members;
            let mut cycle: Vec<NodeId> = match sort_scope(self, members) {
                Ok(sorted) => return sorted,
                Err(cycle) => cycle.0.into_iter().map(|at| members[at]).collect(),
            };
            let following = cycle.iter().cycle().skip(1);
            let links =
                cycle.iter().zip(following).map(|(instance, needed)| Implied { instance: *instance, needed: *needed });
            let Some(closing) = links.filter(|link| news.contains(link)).max() else { return cycle };
            self.take_back(closing, news);
            let needed = cycle.iter().position(|id| *id == closing.needed);
            cycle.rotate_left(needed.unwrap_or_default());
            contradicted.push(Contradicted { implied: closing, chain: cycle });
        }
        let core = self.cyclic_core(scope);
        let within = |each: &&Implied| core.contains(&each.instance) && core.contains(&each.needed);
        for each in news.iter().filter(within).copied().collect::<Vec<_>>() {
            self.take_back(each, news);
        }
        // What the document says by itself has no cycle.
        sort_scope(self, &self.scopes[scope].members).unwrap_or_default()
    }

    /// The instances of a scope that are on a cycle, or between two: what is left when those that need nothing of the rest, or
    /// that nothing of the rest needs, are taken away again and again.
    fn cyclic_core(&self, scope: usize) -> BTreeSet<NodeId> {
        let members = &self.scopes[scope].members;
        let needs = |id: NodeId| self.node(id).needs.iter().map(|need| need.node);
        let mut users: BTreeMap<NodeId, Vec<NodeId>> = members.iter().map(|id| (*id, Vec::new())).collect();
        for id in members {
            needs(*id).for_each(|need| users.entry(need).or_default().push(*id));
        }
        let of = |id: NodeId| users.get(&id).into_iter().flatten().copied();
        // How many that are left each needs, and how many need it.
        let mut left: BTreeMap<NodeId, (usize, usize)> =
            members.iter().map(|id| (*id, (needs(*id).count(), of(*id).count()))).collect();
        let mut due: Vec<NodeId> = members.clone();
        while let Some(id) = due.pop() {
            if left.get(&id).is_none_or(|(needs, users)| *needs > 0 && *users > 0) {
                continue;
            }
            left.remove(&id);
            let mut lose = |other: NodeId, count: fn(&mut (usize, usize)) -> &mut usize| {
                let Some(count) = left.get_mut(&other).map(count) else { return };
                *count -= 1;
                due.extend((*count == 0).then_some(other));
            };
            needs(id).for_each(|need| lose(need, |(_, users)| users));
            of(id).for_each(|user| lose(user, |(needs, _)| needs));
        }
        left.into_keys().collect()
    }

    fn take_back(&mut self, implied: Implied, news: &mut BTreeSet<Implied>) {
        news.remove(&implied);
        if let Some(node) = self.nodes.get_mut(implied.instance.index()) {
            node.needs.retain(|need| need.node != implied.needed);
        }
    }

    /// Adds a need unless there is one of the same instance.
    pub(super) fn add_need(&mut self, id: NodeId, need: Need) {
        let Some(node) = self.nodes.get_mut(id.index()) else { return };
        if let Err(at) = node.needs.binary_search_by_key(&need.node, |known| known.node) {
            node.needs.insert(at, need);
        }
    }
}
