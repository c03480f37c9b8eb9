//! The pull of all bodies on one, by the tree: a cube that is far enough, for its size, pulls as one body.
//!
//! What is far enough is asked for each body, as the SPLASH programs do. But bodies of one leaf are asked for together
//! where all of them must say the same, and share a list of what pulls them. Sums are taken in an order that depends
//! on the tree only, so they are the same whoever takes them.

use crate::stars::Star;
use crate::tree::{OctNode, Octree};
use crate::vector::{Vector, square, subtracted};
use std::ops::Range;

/// How the pull is calculated.
#[derive(Clone, Copy)]
pub struct Accuracy {
    /// A cube is far enough if its distance is so many times its edge.
    pub distance: f64,
    /// The square of the length within which the pull is softened.
    pub softening: f64,
}

/// What pulls one body.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pull {
    pub acceleration: Vector,
    pub potential: f64,
    /// How many bodies and cubes there were.
    pub terms: u32,
}

/// A share less than this is what rounding could do to a comparison.
const ROUNDING: f64 = 1e-9;

/// So many terms are added beside each other.
const LANES: usize = 4;

/// Masses in space.
#[derive(Default)]
struct Masses {
    x: Vec<f64>,
    y: Vec<f64>,
    z: Vec<f64>,
    mass: Vec<f64>,
    /// Without those that only fill a row of lanes.
    count: usize,
}

impl Masses {
    fn clear(&mut self) {
        for part in [&mut self.x, &mut self.y, &mut self.z, &mut self.mass] {
            part.clear();
        }
        self.count = 0;
    }

    fn push(&mut self, at: Vector, mass: f64) {
        self.x.push(at[0]);
        self.y.push(at[1]);
        self.z.push(at[2]);
        self.mass.push(mass);
        self.count += 1;
    }

    /// Fills the last row of lanes with nothing.
    fn finish(&mut self) {
        let length = self.count.next_multiple_of(LANES);
        for part in [&mut self.x, &mut self.y, &mut self.z, &mut self.mass] {
            part.resize(length, 0.0);
        }
    }

    /// What they do to a body: four sums in four lanes.
    #[inline]
    fn pull(&self, at: Vector, softening: f64, sums: &mut [[f64; LANES]; 4]) {
        let (x, y, z, mass) = (rows(&self.x), rows(&self.y), rows(&self.z), rows(&self.mass));
        let [ax, ay, az, potential] = sums;
        for (((x, y), z), mass) in x.iter().zip(y).zip(z).zip(mass) {
            for lane in 0..LANES {
                let (dx, dy, dz) = (x[lane] - at[0], y[lane] - at[1], z[lane] - at[2]);
                let squared = dx * dx + dy * dy + dz * dz + softening;
                let inverse = 1.0 / squared.sqrt();
                let depth = mass[lane] * inverse;
                let pull = depth * inverse * inverse;
                ax[lane] += dx * pull;
                ay[lane] += dy * pull;
                az[lane] += dz * pull;
                potential[lane] -= depth;
            }
        }
    }
}

/// A row of lanes after the other.
fn rows(part: &[f64]) -> &[[f64; LANES]] {
    part.as_chunks().0
}

fn total(lanes: [f64; LANES]) -> f64 {
    (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
}

/// Calculates pulls; keeps its memory from one leaf to the next.
pub struct Puller<'a> {
    tree: &'a Octree,
    accuracy: Accuracy,
    /// The mass of a body.
    mass: f64,
    /// What pulls all bodies of a leaf.
    shared: Masses,
    /// Nodes that only some bodies of the leaf may take as one.
    doubtful: Vec<u32>,
    own: Masses,
}

impl<'a> Puller<'a> {
    pub fn new(tree: &'a Octree, mass: f64, accuracy: Accuracy) -> Self {
        let (shared, doubtful, own) = (Masses::default(), Vec::new(), Masses::default());
        Self { tree, accuracy, mass, shared, doubtful, own }
    }

    /// The pulls on these bodies, in the order of the tree.
    pub fn pulls(&mut self, range: Range<usize>) -> Vec<Pull> {
        let tree = self.tree;
        let mut pulls = Vec::with_capacity(range.len());
        let leaves = (0..).zip(&tree.nodes).filter(|(_, node)| node.is_leaf);
        for (number, leaf) in leaves {
            let wanted = range.start.max(leaf.first as usize)..range.end.min(leaf.end as usize);
            if wanted.is_empty() {
                continue;
            }
            self.gather(number, leaf);
            pulls.extend(wanted.map(|slot| self.pull(slot)));
        }
        pulls
    }

    /// Sorts all nodes into those that pull all bodies of a leaf as one, those that none takes so, and the others.
    fn gather(&mut self, number: u32, leaf: &OctNode) {
        let tree = self.tree;
        let (middle, reach) = extent(tree, leaf);
        let needed = self.accuracy.distance * self.accuracy.distance;
        self.shared.clear();
        self.doubtful.clear();
        let mut at = 0;
        while let Some(node) = tree.nodes.get(at as usize) {
            let (near, far) = nearest_and_farthest(node.centre, middle, reach);
            if at == number {
                self.doubtful.push(at);
                at = node.next;
            } else if needed * near * (1.0 - ROUNDING) >= node.edge_squared {
                self.shared.push(node.centre, node.mass);
                at = node.next;
            } else if needed * far * (1.0 + ROUNDING) < node.edge_squared {
                if node.is_leaf {
                    for star in &tree.stars[node.first as usize..node.end as usize] {
                        self.shared.push(star.position, self.mass);
                    }
                }
                at += 1;
            } else {
                self.doubtful.push(at);
                at = node.next;
            }
        }
        self.shared.finish();
    }

    /// What pulls this body of the leaf.
    fn pull(&mut self, slot: usize) -> Pull {
        let tree = self.tree;
        let position = tree.stars[slot].position;
        let Accuracy { distance, softening } = self.accuracy;
        let needed = distance * distance;
        self.own.clear();
        for top in &self.doubtful {
            let end = tree.nodes[*top as usize].next;
            let mut at = *top;
            while at < end {
                let node = &tree.nodes[at as usize];
                let away = square(subtracted(node.centre, position));
                if needed * away >= node.edge_squared {
                    self.own.push(node.centre, node.mass);
                    at = node.next;
                    continue;
                }
                if node.is_leaf {
                    let others = (node.first as usize..node.end as usize).filter(|other| *other != slot);
                    for other in others {
                        self.own.push(tree.stars[other].position, self.mass);
                    }
                }
                at += 1;
            }
        }
        self.own.finish();
        let mut sums = [[0.0; LANES]; 4];
        self.shared.pull(position, softening, &mut sums);
        self.own.pull(position, softening, &mut sums);
        let [x, y, z, potential] = sums.map(total);
        let terms = (self.shared.count + self.own.count) as u32;
        Pull { acceleration: [x, y, z], potential, terms }
    }
}

/// The middle of the box around the bodies of a leaf, and how far it reaches from there.
fn extent(tree: &Octree, leaf: &OctNode) -> (Vector, Vector) {
    let (mut low, mut high) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
    for star in &tree.stars[leaf.first as usize..leaf.end as usize] {
        for axis in 0..3 {
            low[axis] = low[axis].min(star.position[axis]);
            high[axis] = high[axis].max(star.position[axis]);
        }
    }
    let half = |axis: usize, sign: f64| (high[axis] + sign * low[axis]) / 2.0;
    ([0, 1, 2].map(|axis| half(axis, 1.0)), [0, 1, 2].map(|axis| half(axis, -1.0)))
}

/// The squares of the least and the greatest distance of a point from a box.
#[inline]
fn nearest_and_farthest(point: Vector, middle: Vector, reach: Vector) -> (f64, f64) {
    let (mut near, mut far) = (0.0, 0.0);
    for axis in 0..3 {
        let away = (point[axis] - middle[axis]).abs();
        let (least, most) = ((away - reach[axis]).max(0.0), away + reach[axis]);
        near += least * least;
        far += most * most;
    }
    (near, far)
}

/// The pull on one of these bodies, calculated one by one.
pub fn direct(stars: &[Star], slot: usize, mass: f64, softening: f64) -> Pull {
    let mut all = Masses::default();
    let others = stars.iter().enumerate().filter(|(other, _)| *other != slot);
    others.for_each(|(_, star)| all.push(star.position, mass));
    all.finish();
    let mut sums = [[0.0; LANES]; 4];
    all.pull(stars[slot].position, softening, &mut sums);
    let [x, y, z, potential] = sums.map(total);
    Pull { acceleration: [x, y, z], potential, terms: all.count as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plummer::clusters;

    const COUNT: usize = 600;
    const MASS: f64 = 1.0 / COUNT as f64;

    fn pulls(distance: f64, range: Range<usize>) -> (Octree, Vec<Pull>) {
        let tree = Octree::new(&clusters(COUNT), MASS);
        let accuracy = Accuracy { distance, softening: 0.0025 };
        let pulls = Puller::new(&tree, MASS, accuracy).pulls(range);
        (tree, pulls)
    }

    #[test]
    fn nothing_is_far_enough_for_one_who_wants_all_one_by_one() {
        let (tree, pulls) = pulls(1e-9, 0..COUNT);
        for (slot, pull) in pulls.iter().enumerate() {
            let right = direct(&tree.stars, slot, MASS, 0.0025);
            assert_eq!(pull.terms as usize, COUNT - 1);
            let wrong = square(subtracted(pull.acceleration, right.acceleration));
            assert!(wrong < 1e-24 * square(right.acceleration), "{pull:?} {right:?}");
        }
    }

    /// Asks each cube for this body alone.
    fn terms_of_one(tree: &Octree, slot: usize, distance: f64) -> u32 {
        let (mut at, mut terms) = (0, 0);
        while let Some(node) = tree.nodes.get(at) {
            let away = square(subtracted(node.centre, tree.stars[slot].position));
            let is_one = distance * distance * away >= node.edge_squared;
            if is_one {
                terms += 1;
            } else if node.is_leaf {
                terms += node.end - node.first - u32::from((node.first..node.end).contains(&(slot as u32)));
            }
            at = if is_one { node.next as usize } else { at + 1 };
        }
        terms
    }

    #[test]
    fn bodies_of_a_leaf_together_take_what_each_would_take_alone() {
        let (tree, pulls) = pulls(1.0, 0..COUNT);
        for (slot, pull) in pulls.iter().enumerate() {
            assert_eq!(pull.terms, terms_of_one(&tree, slot, 1.0), "{slot}");
        }
    }

    #[test]
    fn parts_are_the_same_bit_for_bit_as_all_at_once() {
        let (_, all) = pulls(1.0, 0..COUNT);
        for cut in [1, 7, 300, 599] {
            let (_, low) = pulls(1.0, 0..cut);
            let (_, high) = pulls(1.0, cut..COUNT);
            assert_eq!([low, high].concat(), all);
        }
    }
}
