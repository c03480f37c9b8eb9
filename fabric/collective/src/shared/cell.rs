//! Where a group keeps its team.

use super::team::Team;
use std::sync::OnceLock;

/// What a group keeps: its team once it has been asked for, or that there is none.
pub struct TeamCell<O>(OnceLock<Option<Team<O>>>);

impl<O> Default for TeamCell<O> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<O> TeamCell<O> {
    /// The group's team, or that it has none; `None` where nobody has asked for it yet.
    #[inline]
    pub fn get(&self) -> Option<Option<&Team<O>>> {
        self.0.get().map(Option::as_ref)
    }

    /// Keeps what [`Team::form`] has answered.
    pub fn fill(&self, team: Option<Team<O>>) -> Option<&Team<O>> {
        self.0.get_or_init(|| team).as_ref()
    }
}
