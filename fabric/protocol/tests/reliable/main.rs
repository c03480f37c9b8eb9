//! Links over a simulated network: a virtual clock, and everything that can go wrong by seed.
//!
//! `WEFT_TEST_SEEDS=100000` runs more seeds, `WEFT_TEST_SEED=17` replays one; a test that fails prints the line.

mod answers;
mod ends;
mod faults;
mod golden;
mod hostile;
mod network;
mod parting;
mod random;
mod seeds;
mod sharing;
mod sizes;
mod traffic;
mod world;
