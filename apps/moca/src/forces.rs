//! Who is how near to whom, and the field at a particle: each with each, in one order.
//!
//! Sums run in four lanes, which do not depend on who asks. So all values are the same for any number of processes.

use crate::particles::Particles;
use crate::physics::{FIELD, REACTION};
use std::ops::Range;

const LANES: usize = 4;

/// Where nobody is; far enough for its part of a sum to be nothing.
const NOWHERE: f64 = 1e30;

/// A pair that is near enough to recombine: places of the ion and the electron, and their distance, squared.
pub type NearPair = (u32, u32, f64);

/// What a process has found for some of the particles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundFacts {
    /// For each of them the field that others make, as it moves it.
    pub fields: Vec<[f64; 3]>,
    /// The least distance of two, squared.
    pub nearest: f64,
    pub near: Vec<NearPair>,
}

/// One kind of particles.
struct ParticleKind {
    parts: [Vec<f64>; 3],
}

impl ParticleKind {
    fn new(places: &[[f64; 3]]) -> Self {
        let length = places.len().next_multiple_of(LANES);
        let parts = [0, 1, 2].map(|axis| {
            let mut part: Vec<f64> = places.iter().map(|place| place[axis]).collect();
            part.resize(length, NOWHERE);
            part
        });
        Self { parts }
    }

    /// Takes one away, or puts it back.
    fn put(&mut self, at: usize, place: [f64; 3]) {
        for (part, value) in self.parts.iter_mut().zip(place) {
            part[at] = value;
        }
    }

    /// The sum over all of the way from each, by the third power of its length; and the least distance, squared.
    #[inline]
    fn act_on(&self, place: [f64; 3]) -> ([f64; 3], f64) {
        let [x, y, z] = self.parts.each_ref().map(|part| part.as_chunks::<LANES>().0);
        let (mut sums, mut nearest) = ([[0.0; LANES]; 3], [f64::INFINITY; LANES]);
        for ((x, y), z) in x.iter().zip(y).zip(z) {
            for lane in 0..LANES {
                let (dx, dy, dz) = (place[0] - x[lane], place[1] - y[lane], place[2] - z[lane]);
                let squared = dx * dx + dy * dy + dz * dz;
                let cubed = 1.0 / (squared * squared.sqrt());
                sums[0][lane] += dx * cubed;
                sums[1][lane] += dy * cubed;
                sums[2][lane] += dz * cubed;
                nearest[lane] = if squared < nearest[lane] { squared } else { nearest[lane] };
            }
        }
        let sum = sums.map(|lanes| (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]));
        (sum, nearest.into_iter().fold(f64::INFINITY, f64::min))
    }

    fn distance_squared(&self, at: usize, place: [f64; 3]) -> f64 {
        let [dx, dy, dz] = [0, 1, 2].map(|axis| place[axis] - self.parts[axis][at]);
        dx * dx + dy * dy + dz * dz
    }
}

/// What there is to find for these particles: ions first, then electrons.
pub fn find(particles: &Particles, rows: Range<usize>) -> RoundFacts {
    let count = particles.ions.len();
    let (mut ions, mut electrons) = (ParticleKind::new(&particles.ions), ParticleKind::new(&particles.electrons));
    let mut found = RoundFacts { fields: Vec::with_capacity(rows.len()), nearest: f64::INFINITY, near: Vec::new() };
    for row in rows {
        let is_ion = row < count;
        let (like, other) = if is_ion { (&mut ions, &electrons) } else { (&mut electrons, &ions) };
        let at = if is_ion { row } else { row - count };
        let place = if is_ion { particles.ions[at] } else { particles.electrons[at] };
        like.put(at, [NOWHERE; 3]);
        let (pushed, nearest_like) = like.act_on(place);
        like.put(at, place);
        let (pulled, nearest_other) = other.act_on(place);
        found.fields.push([0, 1, 2].map(|axis| FIELD * (pushed[axis] - pulled[axis])));
        found.nearest = found.nearest.min(nearest_like).min(nearest_other);
        if is_ion && nearest_other <= REACTION * REACTION {
            let distances = (0..count).map(|electron| (electron, electrons.distance_squared(electron, place)));
            let near = distances.filter(|(_, squared)| *squared <= REACTION * REACTION);
            found.near.extend(near.map(|(electron, squared)| (row as u32, electron as u32, squared)));
        }
    }
    found
}
