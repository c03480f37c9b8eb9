//! How the bodies lie and move at the start: two clusters in the manner of Plummer, one beside the other.
//!
//! The way there is that of the SPLASH programs (Aarseth, Hénon and Wielen 1974; units with G = 1 and a mass of 1),
//! with their random numbers, so that results can be held against theirs: the second half of the bodies is the first,
//! shifted.

use crate::stars::Star;
use crate::vector::{Vector, added, scaled, square, subtracted};
use std::f64::consts::PI;

/// What SPLASH starts its random numbers with.
pub const SEED: u32 = 123;

/// The second cluster is so far from the first, in each direction.
const OFFSET: f64 = 4.0;

/// Nobody is farther from the middle of a cluster, in its own unit of length.
const FARTHEST: f64 = 9.0;

/// The random numbers of SPLASH: linear and congruent, with 31 bits.
struct Congruent {
    state: u32,
}

impl Congruent {
    const MASK: u32 = 0x7fff_ffff;

    fn within(&mut self, low: f64, high: f64) -> f64 {
        let before = self.state;
        self.state = before.wrapping_mul(1_103_515_245).wrapping_add(12345) & Self::MASK;
        low + (high - low) * (f64::from(before) / 2_147_483_648.0)
    }

    /// A point on a sphere.
    fn on_sphere(&mut self, radius: f64) -> Vector {
        loop {
            let point = [0; 3].map(|_| self.within(-1.0, 1.0));
            let square = square(point);
            if square <= 1.0 {
                return scaled(point, radius / square.sqrt());
            }
        }
    }
}

/// As many bodies, about their common centre, which rests.
pub fn clusters(count: usize) -> Vec<Star> {
    let mut random = Congruent { state: SEED };
    let half = count.div_ceil(2);
    let mut stars: Vec<Star> = (0..half).map(|_| one(&mut random)).collect();
    for number in half..count {
        let Star { position, velocity, .. } = stars[number - half];
        stars.push(Star { position: position.map(|at| at + OFFSET), velocity, cost: 1 });
    }
    let mean = |of: fn(&Star) -> Vector| {
        let sum = stars.iter().fold([0.0; 3], |sum, body| added(sum, of(body)));
        sum.map(|all| all / count as f64)
    };
    let (place, motion) = (mean(|star| star.position), mean(|star| star.velocity));
    for star in &mut stars {
        star.position = subtracted(star.position, place);
        star.velocity = subtracted(star.velocity, motion);
    }
    stars
}

fn one(random: &mut Congruent) -> Star {
    let length = 9.0 * PI / 16.0;
    let speed = (1.0 / length).sqrt();
    let radius = loop {
        // By the mass that is nearer to the middle.
        let radius = 1.0 / (random.within(0.0, 0.999).powf(-2.0 / 3.0) - 1.0).sqrt();
        if radius <= FARTHEST {
            break radius;
        }
    };
    let position = random.on_sphere(length * radius);
    // As a part of the speed with which it would escape.
    let part = loop {
        let (part, chance) = (random.within(0.0, 1.0), random.within(0.0, 0.1));
        if chance <= part * part * (1.0 - part * part).powf(3.5) {
            break part;
        }
    };
    let velocity = std::f64::consts::SQRT_2 * part / (1.0 + radius * radius).powf(0.25);
    Star { position, velocity: random.on_sphere(speed * velocity), cost: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_are_those_of_the_c_library_of_old() {
        let mut random = Congruent { state: 1 };
        let drawn = [0; 3].map(|_| (random.within(0.0, 1.0) * 2_147_483_648.0) as u32);
        assert_eq!(drawn, [1, 1_103_527_590, 377_401_575]);
    }

    #[test]
    fn the_common_centre_rests_in_the_middle() {
        let stars = clusters(1001);
        assert_eq!(stars.len(), 1001);
        for of in [|star: &Star| star.position, |star: &Star| star.velocity] {
            let sum = stars.iter().fold([0.0; 3], |sum, body| added(sum, of(body)));
            assert!(square(sum) < 1e-20, "{sum:?}");
        }
    }
}
