//! The shared object: the simulation, replicated. In a round each process that takes part writes what it has found for
//! its particles. With the last of them the round is over, and all replicas do what follows, alike: who is where is
//! never sent.
//!
//! The fewer particles there are, the fewer processes take part, as in the original. Where one is left it goes on with
//! a copy of its own until the cluster is over, and puts that in the place of the object.

use crate::forces::{NearPair, RoundFacts};
use crate::particles::Particles;
use crate::simulation::{ClusterTally, IonSimulation};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use weft_app_objects::Reals;
use weft_objects::object;

/// A process takes part for so many particles. With fewer it takes longer to tell what was found than to find it.
const PARTICLES: usize = 96;

/// The simulation, and what has been found in this round.
#[derive(Serialize, Deserialize)]
pub struct IonRounds {
    simulation: IonSimulation,
    processes: u32,
    round: u64,
    written: u32,
    fields: Vec<[f64; 3]>,
    nearest: f64,
    /// By process.
    near: Vec<Vec<NearPair>>,
    /// When the first cluster was over.
    first: Option<ClusterTally>,
}

/// What processes need of a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoundView {
    pub round: u64,
    pub clusters: u32,
    pub is_over: bool,
    pub particles: Particles,
}

/// How many of these processes take part in a round with so many particles.
pub fn workers(particles: usize, processes: u32) -> u32 {
    ((particles / PARTICLES) as u32).clamp(1, processes)
}

/// The particles of one of them.
pub fn rows(particles: usize, workers: u32, process: u32) -> Range<usize> {
    let first = |process: u32| particles * process as usize / workers as usize;
    first(process)..first(process + 1)
}

impl IonRounds {
    pub fn new(simulation: IonSimulation, processes: u32) -> Self {
        let near = vec![Vec::new(); processes as usize];
        let mut rounds = Self {
            simulation,
            processes,
            round: 0,
            written: 0,
            fields: Vec::new(),
            nearest: f64::INFINITY,
            near,
            first: None,
        };
        rounds.begin();
        rounds
    }

    fn begin(&mut self) {
        self.written = 0;
        self.nearest = f64::INFINITY;
        self.fields.resize(self.simulation.particles.count(), [0.0; 3]);
        if self.first.is_none() && self.simulation.tally.clusters > 0 {
            self.first = Some(self.simulation.tally.clone());
        }
    }
}

#[object]
impl IonRounds {
    /// This round, or the one that it is by then. Waits for it.
    #[operation(read, guard = self.round >= *round)]
    pub fn from(&self, round: u64) -> RoundView {
        RoundView {
            round: self.round,
            clusters: self.simulation.tally.clusters,
            is_over: self.simulation.is_over(),
            particles: self.simulation.particles.clone(),
        }
    }

    /// What a process has found for its particles: fields, three numbers each, the least distance, and pairs.
    #[operation(write)]
    pub fn tell(&mut self, process: u32, first: usize, fields: Reals, nearest: f64, near: Vec<NearPair>) {
        let told = fields.0.as_chunks().0;
        self.fields[first..first + told.len()].copy_from_slice(told);
        self.nearest = self.nearest.min(nearest);
        self.near[process as usize] = near;
        self.written += 1;
        if self.written == workers(self.simulation.particles.count(), self.processes) {
            let (fields, near) = (std::mem::take(&mut self.fields), self.near.concat());
            self.near.iter_mut().for_each(Vec::clear);
            let found = RoundFacts { fields, nearest: self.nearest, near };
            self.simulation.apply(&found);
            self.round += 1;
            self.begin();
        }
    }

    /// A copy, for who goes on alone.
    #[operation(read)]
    pub fn simulation(&self) -> IonSimulation {
        self.simulation.clone()
    }

    /// Puts back what has become of the copy.
    #[operation(write)]
    pub fn put_back(&mut self, simulation: IonSimulation) {
        self.simulation = simulation;
        self.round += 1;
        self.begin();
    }

    /// What has become of all clusters, and of the first alone. Waits for the end.
    #[operation(read, guard = self.simulation.is_over())]
    pub fn tallies(&self) -> (ClusterTally, Option<ClusterTally>) {
        (self.simulation.tally.clone(), self.first.clone())
    }
}
