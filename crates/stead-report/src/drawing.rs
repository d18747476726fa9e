//! The graph of the instances as a drawing.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use askama::Template;
use askama::filters::HtmlSafe;

use crate::layout::{BOX, Edges, Layout};
use crate::page::{Instance, Page};

/// The colours and shapes of pages and drawings.
pub(crate) const COLOURS: &str = include_str!("../templates/colours.css");

/// How wide a box is, and how wide the gap between two layers.
const WIDTH: f64 = 184.0;
const GAP: f64 = 44.0;
/// How high a box is.
const HEIGHT: f64 = 44.0;
/// How long the head of an arrow is.
const HEAD: f64 = 8.0;
/// How many columns of a name fit into a box.
const COLUMNS: usize = 19;
/// How many columns those have that wait for nothing, in the drawing of all.
const LOOSE_COLUMNS: usize = 5;
/// Beyond so many, what is nested in a container and what waits for that are not kept apart.
const MOST_APART: usize = 400;

/// The graph of a page as a file of its own, with a colour for each outcome; every instance is drawn.
///
/// Guarantees: it needs nothing from elsewhere, and no script runs in it. Equal pages give equal files.
pub fn svg(page: &Page) -> String {
    let drawing = Drawing::new(page, &(0..page.instances.len()).collect(), Loose::Drawn);
    File { page, colours: COLOURS, drawing }.render().unwrap_or_default()
}

#[derive(Template)]
#[template(path = "graph.svg", escape = "html")]
struct File<'a> {
    page: &'a Page,
    colours: &'static str,
    drawing: Drawing<'a>,
}

/// Whether those are drawn that nothing connects.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loose {
    /// They are, below the others.
    Drawn,
    /// They are not.
    LeftOut,
}

/// Boxes, and the edges between them.
#[derive(Template)]
#[template(path = "drawing.svg", escape = "html")]
pub(crate) struct Drawing<'a> {
    boxes: Vec<Boxed<'a>>,
    edges: Vec<Edge>,
    /// Those that may be named by links.
    pub(crate) anchors: BTreeSet<usize>,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) layers: usize,
}

impl HtmlSafe for Drawing<'_> {}

struct Boxed<'a> {
    at: usize,
    instance: &'a Instance,
    x: f64,
    y: f64,
    name: String,
    type_name: String,
}

struct Edge {
    class: &'static str,
    way: String,
}

/// A connection of two instances by their places in the page.
struct Connection {
    from: usize,
    to: usize,
    /// `None` where it only keeps them apart.
    class: Option<&'static str>,
}

impl<'a> Drawing<'a> {
    /// The drawing of these instances.
    pub(crate) fn new(page: &'a Page, drawn: &BTreeSet<usize>, loose: Loose) -> Self {
        let connections: Vec<Connection> = connections(page)
            .into_iter()
            .filter(|connection| drawn.contains(&connection.from) && drawn.contains(&connection.to))
            .collect();
        let joined: BTreeSet<usize> = connections.iter().flat_map(|each| [each.from, each.to]).collect();
        let nodes: Vec<usize> = joined.iter().copied().collect();
        let number = |at: usize| nodes.binary_search(&at).unwrap_or_default();
        let edges: Vec<(usize, usize)> = connections.iter().map(|each| (number(each.from), number(each.to))).collect();
        let layout = Layout::new(&Edges { nodes: nodes.len(), edges: &edges });
        let mut drawing = Self {
            boxes: nodes
                .iter()
                .zip(&layout.places)
                .map(|(at, (layer, middle))| boxed(page, *at, left(*layer), middle - HEIGHT / 2.0))
                .collect(),
            edges: Vec::new(),
            anchors: BTreeSet::new(),
            width: (left(layout.layers) - GAP).max(0.0) + 2.0,
            height: layout.height,
            layers: layout.layers,
        };
        for ((connection, (from, to)), way) in connections.iter().zip(&edges).zip(&layout.ways) {
            if let (Some(class), Some(way)) = (connection.class, way) {
                let way = way_of(layout.places[*from], layout.places[*to], way);
                drawing.edges.push(Edge { class, way });
            }
        }
        // What held something back is drawn over the others.
        drawing.edges.sort_by_key(|edge| edge.class.contains("held"));
        if loose == Loose::Drawn {
            drawing.add_loose(page, drawn.difference(&joined).copied());
        }
        drawing
    }

    /// Adds those that nothing connects, row by row below the others.
    fn add_loose(&mut self, page: &'a Page, loose: impl Iterator<Item = usize>) {
        let columns = self.layers.max(LOOSE_COLUMNS);
        let top = self.height;
        for (place, at) in loose.enumerate() {
            let (row, column) = (place / columns, place % columns);
            let y = top + BOX * float(row) + (BOX - HEIGHT) / 2.0;
            self.boxes.push(boxed(page, at, left(column), y));
            self.width = self.width.max(left(column) + WIDTH + 2.0);
            self.height = self.height.max(y + HEIGHT + (BOX - HEIGHT) / 2.0);
        }
    }
}

/// The instances that something connects with others.
pub(crate) fn connected(page: &Page) -> BTreeSet<usize> {
    connections(page).iter().flat_map(|each| [each.from, each.to]).collect()
}

/// All connections: what an instance needs, and what it is nested in.
fn connections(page: &Page) -> Vec<Connection> {
    let mut members = vec![Vec::new(); page.instances.len()];
    for (at, instance) in page.instances.iter().enumerate() {
        if let Some(container) = instance.within.and_then(|within| members.get_mut(within)) {
            container.push(at);
        }
    }
    let mut found = Vec::new();
    let mut apart = 0;
    for (to, instance) in page.instances.iter().enumerate() {
        if let Some(from) = instance.within {
            found.push(Connection { from, to, class: Some("edge holds") });
        }
        for need in &instance.needs {
            let from = need.instance;
            let class = match (instance.held_by == Some(from), need.is_implied) {
                (true, _) => "edge held",
                (false, true) => "edge implied",
                (false, false) => "edge",
            };
            found.push(Connection { from, to, class: Some(class) });
            // Whatever needs a container stands behind all that is nested in it.
            let nested = members.get(from).map(Vec::as_slice).unwrap_or_default();
            apart += nested.len();
            if apart <= MOST_APART {
                found.extend(nested.iter().map(|member| Connection { from: *member, to, class: None }));
            }
        }
    }
    found
}

fn boxed(page: &Page, at: usize, x: f64, y: f64) -> Boxed<'_> {
    let instance = &page.instances[at];
    let (name, type_name) = (instance.name.cut(COLUMNS), instance.type_name.cut(COLUMNS));
    Boxed { at, instance, x, y, name, type_name }
}

#[expect(clippy::cast_precision_loss, reason = "a number of rows or layers")]
fn float(number: usize) -> f64 {
    number as f64
}

fn left(layer: usize) -> f64 {
    1.0 + float(layer) * (WIDTH + GAP)
}

/// The line from one box to another, straight where it passes a layer.
fn way_of(from: (usize, f64), to: (usize, f64), passages: &[f64]) -> String {
    let (mut x, mut y) = (left(from.0) + WIDTH, from.1);
    let mut way = format!("M{x:.0} {y:.1}");
    let curve = |way: &mut String, (x, y): (f64, f64), (to_x, to_y): (f64, f64)| {
        let bend = (to_x - x) / 2.0;
        // Writing to a string cannot fail.
        let _ = write!(way, "C{:.0} {y:.1} {:.0} {to_y:.1} {to_x:.0} {to_y:.1}", x + bend, to_x - bend);
    };
    for (layer, height) in (from.0 + 1..).zip(passages) {
        curve(&mut way, (x, y), (left(layer), *height));
        (x, y) = (left(layer) + WIDTH, *height);
        let _ = write!(way, "H{x:.0}");
    }
    let end = left(to.0);
    curve(&mut way, (x, y), (end - HEAD, to.1));
    let _ = write!(way, "h1m-1 -4l{HEAD:.0} 4l-{HEAD:.0} 4z");
    way
}
