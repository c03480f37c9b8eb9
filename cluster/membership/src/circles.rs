//! Who watches whom: the members stand in two circles, in an order that follows from their numbers alone.
//!
//! The two orders have nothing in common, so hosts that fail together (a rack) are rarely neighbours in both, and what
//! one member tells its neighbours reaches a thousand in six or seven steps.

use crate::MemberId;
use crate::chance::mix;

const CIRCLES: usize = 2;
const SALTS: [u64; CIRCLES] = [0x6a09_e667_f3bc_c908, 0xbb67_ae85_84ca_a73b];

/// The circles of the members of a sorted list; members are places in it.
#[derive(Clone, Debug)]
pub(crate) struct Circles {
    /// For each circle, the members in its order, and for each member, where it stands there.
    orders: [(Vec<u32>, Vec<u32>); CIRCLES],
}

impl Circles {
    pub(crate) fn new(members: &[MemberId]) -> Self {
        Self { orders: SALTS.map(|salt| order(members, salt)) }
    }

    /// The neighbours of a member: in both directions of both circles who stands nearest, and so many of the nearest
    /// that are `usable`. Each is there once.
    pub(crate) fn neighbours(&self, of: usize, reach: usize, usable: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut found = Vec::new();
        for way in self.ways(of) {
            let mut taken = 0;
            for (distance, member) in way.enumerate() {
                let is_usable = usable(member);
                taken += usize::from(is_usable);
                if is_usable || distance == 0 {
                    add(&mut found, member);
                }
                if taken == reach {
                    break;
                }
            }
        }
        found
    }

    /// The nearest that are usable, one in each direction of each circle.
    pub(crate) fn nearest(&self, of: usize, usable: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut found = Vec::new();
        for mut way in self.ways(of) {
            if let Some(member) = way.find(|member| usable(*member)) {
                add(&mut found, member);
            }
        }
        found
    }

    /// All others in the order in which they stand from this member on: a sequence for each direction of each circle.
    fn ways(&self, of: usize) -> impl Iterator<Item = impl Iterator<Item = usize>> {
        self.orders.iter().flat_map(move |(order, places)| {
            let (size, at) = (order.len(), places[of] as usize);
            [1, size - 1].map(move |step| (1..size).map(move |far| order[(at + far * step) % size] as usize))
        })
    }
}

fn add(found: &mut Vec<usize>, member: usize) {
    if !found.contains(&member) {
        found.push(member);
    }
}

fn order(members: &[MemberId], salt: u64) -> (Vec<u32>, Vec<u32>) {
    let mut order: Vec<u32> = (0..members.len() as u32).collect();
    order.sort_by_key(|at| mix(members[*at as usize].0 ^ salt));
    let mut places = vec![0; members.len()];
    for (place, member) in order.iter().enumerate() {
        places[*member as usize] = place as u32;
    }
    (order, places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(count: u64) -> Vec<MemberId> {
        (0..count).map(|number| MemberId(mix(number))).collect()
    }

    #[test]
    fn neighbours_are_each_others() {
        for count in [1, 2, 3, 4, 9, 100] {
            let circles = Circles::new(&members(count));
            let usable = |member: usize| !member.is_multiple_of(3);
            for one in (0..count as usize).filter(|member| usable(*member)) {
                for other in circles.nearest(one, usable) {
                    assert!(circles.nearest(other, usable).contains(&one), "{one} and {other} of {count}");
                }
            }
        }
    }

    #[test]
    fn who_stands_beside_remains_a_neighbour_when_it_is_not_usable() {
        let circles = Circles::new(&members(50));
        let beside = circles.neighbours(7, 1, |_| true);
        let gone = beside[0];
        let now = circles.neighbours(7, 1, |member| member != gone);
        assert!(beside.iter().all(|member| now.contains(member)), "{beside:?}, then {now:?}");
        assert!(now.len() > beside.len() && now.len() <= 8);
        assert_eq!(circles.neighbours(7, 49, |_| true).len(), 49);
    }

    #[test]
    fn a_thousand_are_reached_in_eight_steps() {
        let circles = Circles::new(&members(1000));
        let mut reached = vec![0];
        for _ in 0..8 {
            for member in reached.clone() {
                circles.nearest(member, |_| true).into_iter().for_each(|member| add(&mut reached, member));
            }
        }
        assert_eq!(reached.len(), 1000);
    }
}
