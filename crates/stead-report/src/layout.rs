//! Where the boxes of a graph stand: in layers from left to right, each beside what it is connected with.

use std::collections::BTreeMap;

/// A graph that is to be drawn. Edges lead from what is needed to what needs it; those that would close a circle are left out.
pub(crate) struct Edges<'a> {
    /// How many nodes there are.
    pub(crate) nodes: usize,
    /// From, to.
    pub(crate) edges: &'a [(usize, usize)],
}

/// Where everything stands.
#[derive(Debug)]
pub(crate) struct Layout {
    /// By node: its layer, and its middle from the top.
    pub(crate) places: Vec<(usize, f64)>,
    /// By edge: the heights at which it crosses the layers between its ends; `None` where it is not drawn.
    pub(crate) ways: Vec<Option<Vec<f64>>>,
    /// How many layers there are.
    pub(crate) layers: usize,
    /// How high everything is together.
    pub(crate) height: f64,
}

/// The distance of the middles of two boxes.
pub(crate) const BOX: f64 = 56.0;
/// The distance of an edge that passes a layer from what is beside it.
const LANE: f64 = 14.0;
/// Beyond so many passages edges are drawn straight through: nobody follows them any more.
const MOST_PASSAGES: usize = 20_000;
/// How often the order in the layers is improved, there and back.
const ROUNDS: usize = 6;

/// By node: the length of the longest way that leads to it.
pub(crate) fn levels(graph: &Edges<'_>) -> Vec<usize> {
    let mut waits = vec![0_usize; graph.nodes];
    let mut behind = vec![Vec::new(); graph.nodes];
    for (from, to) in graph.edges {
        waits[*to] += 1;
        behind[*from].push(*to);
    }
    let mut levels = vec![0; graph.nodes];
    let mut free: Vec<usize> = (0..graph.nodes).filter(|node| waits[*node] == 0).collect();
    while let Some(node) = free.pop() {
        for to in &behind[node] {
            levels[*to] = levels[*to].max(levels[node] + 1);
            waits[*to] -= 1;
            if waits[*to] == 0 {
                free.push(*to);
            }
        }
    }
    levels
}

/// Everything that stands in a layer: the nodes, and behind them the passages of edges that lead further.
struct Points {
    /// By point.
    layer: Vec<usize>,
    /// How many of them are nodes: the first ones.
    nodes: usize,
    /// By layer, in the order from the top.
    layers: Vec<Vec<usize>>,
    /// By point: those in the layer before and behind that it is connected with.
    before: Vec<Vec<usize>>,
    behind: Vec<Vec<usize>>,
}

impl Points {
    fn new(graph: &Edges<'_>) -> (Self, Vec<Option<Vec<usize>>>) {
        let layer = levels(graph);
        let count = layer.iter().max().map_or(0, |last| last + 1);
        let (nodes, empty) = (graph.nodes, vec![Vec::new(); graph.nodes]);
        let mut points = Self { layer, nodes, layers: vec![Vec::new(); count], before: empty.clone(), behind: empty };
        let ways = graph.edges.iter().map(|edge| points.connect(*edge)).collect();
        for (point, layer) in points.layer.iter().enumerate() {
            points.layers[*layer].push(point);
        }
        (points, ways)
    }

    /// Adds the passages of an edge.
    fn connect(&mut self, (from, to): (usize, usize)) -> Option<Vec<usize>> {
        let (first, last) = (self.layer[from], self.layer[to]);
        if first >= last {
            return None;
        }
        let is_followed = self.layer.len() - self.nodes < MOST_PASSAGES;
        let between = if is_followed { first + 1..last } else { 0..0 };
        let mut way = Vec::new();
        let mut former = from;
        for layer in between {
            let point = self.layer.len();
            self.layer.push(layer);
            self.before.push(Vec::new());
            self.behind.push(Vec::new());
            self.join(former, point);
            way.push(point);
            former = point;
        }
        if self.layer[former] + 1 == last {
            self.join(former, to);
        }
        Some(way)
    }

    fn join(&mut self, from: usize, to: usize) {
        self.behind[from].push(to);
        self.before[to].push(from);
    }

    /// Sorts each layer by where its neighbours stand in the one beside it, there and back several times.
    fn sort(&mut self) {
        let mut rank = vec![0.0; self.layer.len()];
        let renumber = |layer: &[usize], rank: &mut [f64]| {
            layer.iter().zip(0_u32..).for_each(|(point, at)| rank[*point] = f64::from(at));
        };
        self.layers.iter().for_each(|layer| renumber(layer, &mut rank));
        for round in 0..2 * ROUNDS {
            let (neighbours, order): (_, Box<dyn Iterator<Item = usize>>) = if round % 2 == 0 {
                (&self.before, Box::new(1..self.layers.len()))
            } else {
                (&self.behind, Box::new((0..self.layers.len().saturating_sub(1)).rev()))
            };
            for at in order {
                let layer = &mut self.layers[at];
                let wanted: BTreeMap<usize, f64> = layer
                    .iter()
                    .map(|point| (*point, mean(&neighbours[*point], &rank).unwrap_or(rank[*point])))
                    .collect();
                layer.sort_by(|one, other| wanted[one].total_cmp(&wanted[other]));
                renumber(layer, &mut rank);
            }
        }
    }

    fn distance(&self, above: usize, below: usize) -> f64 {
        match (above < self.nodes, below < self.nodes) {
            (true, true) => BOX,
            (false, false) => LANE,
            _ => f64::midpoint(BOX, LANE),
        }
    }

    /// Moves every point as near to its neighbours as the order and the distances let it.
    fn heights(&self) -> Vec<f64> {
        let mut heights = vec![0.0; self.layer.len()];
        for layer in &self.layers {
            self.settle(layer, &mut heights, |_, _| 0.0);
        }
        for round in 0..2 * ROUNDS {
            let wanted = |point: usize, heights: &[f64]| {
                let (before, behind) = (mean(&self.before[point], heights), mean(&self.behind[point], heights));
                let (first, second) = if round % 2 == 0 { (before, behind) } else { (behind, before) };
                first.or(second).unwrap_or(heights[point])
            };
            let forward = round % 2 == 0;
            for at in 0..self.layers.len() {
                let at = if forward { at } else { self.layers.len() - 1 - at };
                self.settle(&self.layers[at], &mut heights, wanted);
            }
        }
        self.squeeze(&mut heights);
        heights
    }

    /// Takes out the height at which nothing stands in any layer, as between parts that are not connected.
    fn squeeze(&self, heights: &mut [f64]) {
        let half = |point: usize| if point < self.nodes { BOX / 2.0 } else { LANE / 2.0 };
        let mut order: Vec<usize> = (0..heights.len()).collect();
        order.sort_by(|one, other| (heights[*one] - half(*one)).total_cmp(&(heights[*other] - half(*other))));
        let mut bottom = order.first().map_or(0.0, |top| heights[*top] - half(*top));
        let mut empty = 0.0;
        for point in order {
            let height = heights[point];
            empty += (height - half(point) - bottom).max(0.0);
            bottom = bottom.max(height + half(point));
            heights[point] -= empty;
        }
    }

    /// Gives the points of a layer the heights nearest to the wanted ones: neighbours that would overlap move as one block.
    fn settle(&self, layer: &[usize], heights: &mut [f64], wanted: impl Fn(usize, &[f64]) -> f64) {
        let mut offsets = Vec::with_capacity(layer.len());
        let mut offset = 0.0;
        for (at, point) in layer.iter().enumerate() {
            offset += if at == 0 { 0.0 } else { self.distance(layer[at - 1], *point) };
            offsets.push(offset);
        }
        let mut blocks: Vec<(f64, f64)> = Vec::new();
        for (point, offset) in layer.iter().zip(&offsets) {
            let mut block = (wanted(*point, heights) - offset, 1.0);
            while let Some(above) = blocks.pop_if(|above| above.0 > block.0) {
                let size = above.1 + block.1;
                block = ((above.0 * above.1 + block.0 * block.1) / size, size);
            }
            blocks.push(block);
        }
        let mut each = blocks.iter().flat_map(|(height, size)| std::iter::repeat_n(*height, whole(*size)));
        for (point, offset) in layer.iter().zip(&offsets) {
            heights[*point] = each.next().unwrap_or_default() + offset;
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of points")]
fn whole(size: f64) -> usize {
    size.round() as usize
}

#[expect(clippy::cast_precision_loss, reason = "a count of neighbours")]
fn mean(points: &[usize], values: &[f64]) -> Option<f64> {
    (!points.is_empty()).then(|| points.iter().map(|point| values[*point]).sum::<f64>() / points.len() as f64)
}

impl Layout {
    /// Where everything of a graph stands.
    ///
    /// Guarantees: no two boxes overlap, no edge crosses a box on its way, and the same graph stands the same way.
    pub(crate) fn new(graph: &Edges<'_>) -> Self {
        let (mut points, ways) = Points::new(graph);
        points.sort();
        let heights = points.heights();
        let top = heights.iter().copied().fold(f64::INFINITY, f64::min);
        let bottom = heights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let from_top = |point: usize| heights[point] - top + BOX / 2.0;
        let places = (0..graph.nodes).map(|node| (points.layer[node], from_top(node))).collect();
        let ways = ways.into_iter().map(|way| Some(way?.into_iter().map(from_top).collect())).collect();
        let height = if graph.nodes == 0 { 0.0 } else { bottom - top + BOX };
        Self { places, ways, layers: points.layers.len(), height }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Graphs of all kinds from a few numbers, without circles.
    fn random(seed: u64, nodes: usize, edges: usize) -> Vec<(usize, usize)> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % below as u64).unwrap()
        };
        let pairs = (0..edges).map(|_| (next(nodes), next(nodes)));
        pairs.filter(|(one, other)| one != other).map(|(one, other)| (one.min(other), one.max(other))).collect()
    }

    #[test]
    fn nothing_overlaps_and_edges_lead_to_the_right() {
        for seed in 1..60 {
            let edges = random(seed, 40, 60);
            let layout = Layout::new(&Edges { nodes: 40, edges: &edges });
            let mut taken: BTreeMap<usize, Vec<(f64, f64)>> = BTreeMap::new();
            for (layer, height) in &layout.places {
                taken.entry(*layer).or_default().push((*height, BOX));
                assert!(*height >= BOX / 2.0 - 0.01 && *height <= layout.height - BOX / 2.0 + 0.01, "{layout:?}");
            }
            for ((from, to), way) in edges.iter().zip(&layout.ways) {
                let (first, last) = (layout.places[*from].0, layout.places[*to].0);
                let way = way.as_ref().unwrap();
                assert_eq!(way.len(), last - first - 1);
                (first + 1..last)
                    .zip(way)
                    .for_each(|(layer, height)| taken.entry(layer).or_default().push((*height, LANE)));
            }
            let mut all: Vec<(f64, f64)> = taken.values().flatten().copied().collect();
            all.sort_by(|one, other| (one.0 - one.1 / 2.0).total_cmp(&(other.0 - other.1 / 2.0)));
            // A passage may be the highest of all, with half of a box above it.
            all.iter().fold(BOX / 2.0, |bottom, (height, size)| {
                assert!(height - size / 2.0 <= bottom + 0.01, "{seed}: nothing above {height}");
                bottom.max(height + size / 2.0)
            });
            for layer in taken.values_mut() {
                layer.sort_by(|one, other| one.0.total_cmp(&other.0));
                for pair in layer.windows(2) {
                    let least = f64::midpoint(pair[0].1, pair[1].1);
                    assert!(pair[1].0 - pair[0].0 >= least - 0.01, "{seed}: {pair:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_connected_alone_stands_on_one_line() {
        let layout = Layout::new(&Edges { nodes: 3, edges: &[(0, 1), (1, 2)] });
        assert_eq!(layout.places, [(0, 28.0), (1, 28.0), (2, 28.0)]);
        assert!((layout.height - BOX).abs() < 0.01);
    }

    #[test]
    fn a_circle_costs_an_edge_and_no_box() {
        let layout = Layout::new(&Edges { nodes: 2, edges: &[(0, 1), (1, 0)] });
        assert_eq!(layout.places.len(), 2);
    }
}
