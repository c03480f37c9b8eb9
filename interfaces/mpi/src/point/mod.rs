//! Point-to-point communication.

/// What point-to-point keeps for the process.
#[derive(Default)]
pub struct State {}

/// What point-to-point keeps for each communicator.
#[derive(Default)]
pub struct CommState {}

/// A message taken by a matched probe.
pub struct Message {}
