//! The tree of Barnes and Hut: space is cut into eight cubes, and each cube again, until no more than ten bodies are
//! in one. It is the tree of the SPLASH programs, node by node; only the order of children is another.
//!
//! Bodies are sorted along a curve that goes through the cubes one by one, so each node is a run of them, and the tree
//! is an array: a node, what is below it, then what is beside it.

use crate::stars::Star;
use crate::vector::{Vector, added, scaled};

/// A cube with more bodies is cut.
const LEAF_BODIES: usize = 10;

/// So often a cube is cut at most. Where that is not enough bodies lie in the same place, and are in one leaf.
const LEVELS: u32 = 21;

/// A cube with bodies.
#[derive(Default)]
pub struct OctNode {
    /// Their centre of mass.
    pub centre: Vector,
    pub mass: f64,
    /// The square of the cube's edge.
    pub edge_squared: f64,
    /// The node after all that is below this one.
    pub next: u32,
    /// The bodies, in the order of the tree.
    pub first: u32,
    pub end: u32,
    pub is_leaf: bool,
}

/// The tree, and the bodies in its order.
pub struct Octree {
    pub nodes: Vec<OctNode>,
    pub stars: Vec<Star>,
}

impl Octree {
    /// The tree of these bodies, each of this mass. Equal bodies make equal trees.
    pub fn new(stars: &[Star], mass: f64) -> Self {
        let (corner, edge) = surrounding(stars);
        let mut order: Vec<(u64, u32)> =
            stars.iter().zip(0..).map(|(star, slot)| (curve(star.position, corner, edge), slot)).collect();
        // They come in the order of the last tree, so much is sorted already.
        order.sort();
        let sorted: Vec<Star> = order.iter().map(|(_, slot)| stars[*slot as usize]).collect();
        let keys: Vec<u64> = order.iter().map(|(key, _)| *key).collect();
        let mut tree = Self { nodes: Vec::with_capacity(stars.len() / 2), stars: sorted };
        tree.grow(&keys, (0, stars.len()), 0, (mass, edge * edge));
        tree
    }

    /// Adds the node of these bodies and all below it. Answers with its mass and centre.
    fn grow(&mut self, keys: &[u64], range: (usize, usize), level: u32, scale: (f64, f64)) -> (f64, Vector) {
        let (first, end) = range;
        let (mass, edge_squared) = scale;
        let is_leaf = level == LEVELS || (level > 0 && end - first <= LEAF_BODIES);
        let at = self.nodes.len();
        let (first_body, end_body) = (first as u32, end as u32);
        self.nodes.push(OctNode { first: first_body, end: end_body, edge_squared, is_leaf, ..OctNode::default() });
        let (mut all, mut moment) = (0.0, [0.0; 3]);
        if is_leaf {
            for star in &self.stars[first..end] {
                all += mass;
                moment = added(moment, scaled(star.position, mass));
            }
        } else {
            let shift = 3 * (LEVELS - 1 - level);
            let mut begin = first;
            while begin < end {
                let child = keys[begin] >> shift;
                let length = keys[begin..end].partition_point(|key| key >> shift == child);
                let (part, centre) = self.grow(keys, (begin, begin + length), level + 1, (mass, edge_squared / 4.0));
                all += part;
                moment = added(moment, scaled(centre, part));
                begin += length;
            }
        }
        let centre = moment.map(|sum| sum / all);
        let next = self.nodes.len() as u32;
        let node = &mut self.nodes[at];
        (node.centre, node.mass, node.next) = (centre, all, next);
        (all, centre)
    }
}

/// The cube around all, with a little room: its corner and its edge.
fn surrounding(stars: &[Star]) -> (Vector, f64) {
    let (mut low, mut high) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
    for star in stars {
        for axis in 0..3 {
            low[axis] = low[axis].min(star.position[axis]);
            high[axis] = high[axis].max(star.position[axis]);
        }
    }
    let side = (0..3).map(|axis| high[axis] - low[axis]).fold(0.0, f64::max);
    (low.map(|at| at - side / 100_000.0), 1.00002 * side)
}

/// The place on the curve: from each coordinate one bit in turn.
fn curve(position: Vector, corner: Vector, edge: f64) -> u64 {
    let cells = f64::from(1 << LEVELS);
    (0..3).fold(0, |key, axis| {
        let cell = ((position[axis] - corner[axis]) / edge * cells) as u64;
        key | spread(cell) << (2 - axis)
    })
}

/// The bits of a number of 21 bits, with room for two others after each.
fn spread(number: u64) -> u64 {
    let mut bits = number & 0x1f_ffff;
    bits = (bits | bits << 32) & 0x001f_0000_0000_ffff;
    bits = (bits | bits << 16) & 0x001f_0000_ff00_00ff;
    bits = (bits | bits << 8) & 0x100f_00f0_0f00_f00f;
    bits = (bits | bits << 4) & 0x10c3_0c30_c30c_30c3;
    (bits | bits << 2) & 0x1249_2492_4924_9249
}
