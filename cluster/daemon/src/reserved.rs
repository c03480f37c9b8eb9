//! What reservations leave to a job. Pure.
//!
//! Slots of a reservation that its users do not use already are kept from everybody else, from its begin to its end. A
//! job that would still run when it begins does not get them either; one that does not say how long it takes never ends
//! here.

use std::collections::HashMap;
use weft_database::Reservation;

/// The reservations that are not for a user.
pub struct KeptSlots<'a> {
    user: &'a str,
    all: &'a [Reservation],
    /// Of each reservation, what its users have on its members.
    inside: Vec<HashMap<&'a str, usize>>,
}

impl<'a> KeptSlots<'a> {
    /// `held` is what jobs have: user, member, slots.
    pub fn new(
        user: &'a str,
        all: &'a [Reservation],
        held: impl Iterator<Item = (&'a str, &'a str, usize)> + Clone,
    ) -> Self {
        let inside = all.iter().map(|reservation| {
            let mut inside = HashMap::new();
            for (_, member, slots) in held.clone().filter(|(user, ..)| reservation.is_for(user)) {
                *inside.entry(member).or_default() += slots;
            }
            inside
        });
        Self { user, all, inside: inside.collect() }
    }

    fn of_others(&self, from: u64, until: u64) -> impl Iterator<Item = (&Reservation, &HashMap<&'a str, usize>)> {
        let all = self.all.iter().zip(&self.inside);
        all.filter(move |(one, _)| !one.is_for(self.user) && one.is_between(from, until))
    }

    /// Free slots of a member that a job of the user may not have which runs between these moments: the most that are
    /// kept at any of them.
    pub fn on(&self, member: &str, from: u64, until: u64) -> usize {
        let begins = self.of_others(from, until).map(|(one, _)| one.from.max(from));
        let kept = |at: u64| -> usize {
            let slots = self.of_others(at, at.saturating_add(1)).map(|(one, inside)| {
                one.slots_on(member).saturating_sub(inside.get(member).copied().unwrap_or_default())
            });
            slots.sum()
        };
        begins.map(kept).max().unwrap_or(0)
    }

    /// Whether slots of a member are reserved for the user now.
    pub fn are_for_user(&self, member: &str, now: u64) -> bool {
        let of_user = self.all.iter().filter(|one| one.is_for(self.user) && one.is_between(now, now.saturating_add(1)));
        of_user.into_iter().any(|one| one.slots_on(member) > 0)
    }

    /// When those end that keep something from the user.
    pub fn ends(&self, now: u64) -> impl Iterator<Item = u64> {
        self.of_others(now, u64::MAX).map(|(one, _)| one.until)
    }

    /// What is in the way of a job on one of these members.
    pub fn named<'m>(
        &self,
        members: impl Iterator<Item = &'m str> + Clone,
        from: u64,
        until: u64,
    ) -> Option<&Reservation> {
        let mut all = self.of_others(from, until);
        let first = all.find(|(one, _)| members.clone().any(|member| one.slots_on(member) > 0));
        first.map(|(one, _)| one)
    }
}
