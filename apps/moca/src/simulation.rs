//! Clusters of ions and electrons, one after the other: what is done when the forces of a round are known.
//!
//! It is what the original does. In a round pairs that are near enough recombine, the nearest first, and nobody moves;
//! or, if there are none, all move: with the field, and at random. At the end of its time a cluster's pairs are taken
//! out, the nearest first, and each escapes with the probability that its distance says.

use crate::forces::{NearPair, RoundFacts, find};
use crate::particles::Particles;
use crate::physics::{CURVE, DIFFUSION, LAST, MOBILITY, SPREAD, escape, point, step};
use crate::random::GlobalRandom;
use serde::{Deserialize, Serialize};

/// What has become of clusters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClusterTally {
    pub clusters: u32,
    /// How many pairs have recombined, by points of time.
    pub curve: Vec<u64>,
    /// How many pairs there were at the end of time.
    pub survivors: u64,
    /// The sum of their probabilities to escape.
    pub escaped: f64,
    pub rounds: u64,
}

/// Clusters that begin with ions in the same places.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IonSimulation {
    ions: Vec<[f64; 3]>,
    /// How far electrons are from their ions at the start; `None`: as they are when they come to rest.
    distance: Option<f64>,
    clusters: u32,
    random: GlobalRandom,
    pub particles: Particles,
    time: f64,
    pub tally: ClusterTally,
}

impl IonSimulation {
    pub fn new(ions: Vec<[f64; 3]>, distance: Option<f64>, clusters: u32, random: GlobalRandom) -> Self {
        let tally = ClusterTally { clusters: 0, curve: vec![0; CURVE], survivors: 0, escaped: 0.0, rounds: 0 };
        let particles = Particles::default();
        let mut simulation = Self { ions, distance, clusters, random, particles, time: 0.0, tally };
        simulation.begin_cluster();
        simulation
    }

    pub fn is_over(&self) -> bool {
        self.tally.clusters == self.clusters
    }

    fn begin_cluster(&mut self) {
        self.time = 0.0;
        let random = &mut self.random;
        let electron = |ion: &[f64; 3]| {
            let direction = random.direction();
            let distance = self.distance.unwrap_or_else(|| rest(random));
            [0, 1, 2].map(|axis| ion[axis] + direction[axis] * distance)
        };
        self.particles.electrons = self.ions.iter().map(electron).collect();
        self.particles.ions.clone_from(&self.ions);
    }

    /// Does what follows from a round in which this was found for all particles.
    pub fn apply(&mut self, found: &RoundFacts) {
        self.tally.rounds += 1;
        if found.near.is_empty() {
            self.move_all(&found.fields, step(found.nearest));
        } else {
            self.recombine(&found.near);
        }
        if self.particles.ions.is_empty() || self.time >= LAST {
            self.end_cluster();
        }
    }

    fn move_all(&mut self, fields: &[[f64; 3]], step: f64) {
        let range = 2.0 * (6.0 * DIFFUSION * step).sqrt();
        let all = self.particles.ions.iter_mut().chain(&mut self.particles.electrons);
        for (place, field) in all.zip(fields) {
            for axis in 0..3 {
                place[axis] += MOBILITY * step * field[axis] + (self.random.next() - 0.5) * range;
            }
        }
        self.time += step;
    }

    /// The nearest pair first; then those of which neither has recombined.
    fn recombine(&mut self, near: &[NearPair]) {
        let mut near = near.to_vec();
        near.sort_by(|a, b| a.2.total_cmp(&b.2));
        let Particles { ions, electrons } = &mut self.particles;
        let (mut gone_ions, mut gone_electrons) = (vec![false; ions.len()], vec![false; electrons.len()]);
        for (ion, electron, _) in near {
            let (ion, electron) = (ion as usize, electron as usize);
            if !gone_ions[ion] && !gone_electrons[electron] {
                (gone_ions[ion], gone_electrons[electron]) = (true, true);
                self.tally.curve[point(self.time)] += 1;
            }
        }
        keep(ions, &gone_ions);
        keep(electrons, &gone_electrons);
    }

    fn end_cluster(&mut self) {
        let Particles { ions, electrons } = &mut self.particles;
        self.tally.survivors += ions.len() as u64;
        while !ions.is_empty() {
            let pairs = (0..ions.len()).flat_map(|ion| (0..electrons.len()).map(move |electron| (ion, electron)));
            let apart = |(ion, electron): (usize, usize)| {
                let way = [0, 1, 2].map(|axis| ions[ion][axis] - electrons[electron][axis]);
                way.iter().map(|part| part * part).sum::<f64>().sqrt()
            };
            let (pair, distance) =
                pairs.map(|pair| (pair, apart(pair))).min_by(|a, b| a.1.total_cmp(&b.1)).expect("there are pairs");
            self.tally.escaped += escape(distance);
            ions.remove(pair.0);
            electrons.remove(pair.1);
        }
        self.tally.clusters += 1;
        if !self.is_over() {
            self.begin_cluster();
        }
    }

    /// Goes on alone until this is so.
    pub fn run_until(&mut self, is_enough: impl Fn(&Self) -> bool) {
        while !self.is_over() && !is_enough(self) {
            let found = find(&self.particles, 0..self.particles.count());
            self.apply(&found);
        }
    }
}

/// How far from its ion an electron comes to rest.
fn rest(random: &mut GlobalRandom) -> f64 {
    loop {
        let (distance, chance) = (6.0 * random.next(), random.next());
        let squared = distance * distance;
        if chance <= squared * (1.0 - squared).exp() {
            return distance * SPREAD;
        }
    }
}

fn keep(places: &mut Vec<[f64; 3]>, gone: &[bool]) {
    let mut gone = gone.iter();
    places.retain(|_| gone.next() == Some(&false));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::physics::{ONSAGER, TRACK};

    #[test]
    fn each_pair_recombines_or_is_there_at_the_end() {
        let mut simulation = IonSimulation::new(TRACK.to_vec(), None, 3, GlobalRandom::default());
        simulation.run_until(|_| false);
        let ClusterTally { clusters, curve, survivors, escaped, .. } = simulation.tally;
        assert_eq!((clusters, curve.iter().sum::<u64>() + survivors), (3, 51));
        assert!(escaped <= survivors as f64);
    }

    #[test]
    fn the_nearest_pair_recombines_first() {
        let mut simulation = IonSimulation::new(vec![[0.0; 3], [1e-9; 3]], Some(ONSAGER), 1, GlobalRandom::default());
        let electrons = simulation.particles.electrons.clone();
        simulation.recombine(&[(0, 0, 2e-18), (0, 1, 1e-18), (1, 1, 3e-18)]);
        assert_eq!(simulation.particles, Particles { ions: vec![[1e-9; 3]], electrons: electrons[..1].to_vec() });
    }
}
