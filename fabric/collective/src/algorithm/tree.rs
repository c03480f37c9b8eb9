//! Binomial trees over ranks counted from the root.

use crate::schedule::{Party, Schedule};

/// A rank's place in a binomial tree. The subtree of virtual rank `v` covers virtual ranks `v..v + span`.
#[derive(Clone, Debug)]
pub struct BinomialPlace {
    me: Party,
    root: u32,
    /// Our rank counted from the root.
    pub virtual_rank: u32,
    /// Ranks in our subtree, with ourselves.
    pub span: u32,
}

impl BinomialPlace {
    pub fn new(me: Party, root: u32) -> Self {
        let virtual_rank = (me.rank + me.size - root) % me.size;
        let full = if virtual_rank == 0 { me.size.next_power_of_two() } else { 1 << virtual_rank.trailing_zeros() };
        Self { me, root, virtual_rank, span: full.min(me.size - virtual_rank) }
    }

    /// The rank in the communicator.
    pub fn rank(&self, virtual_rank: u32) -> u32 {
        ((u64::from(virtual_rank) + u64::from(self.root)) % u64::from(self.me.size)) as u32
    }

    pub fn parent(&self) -> Option<u32> {
        let up = self.virtual_rank & self.virtual_rank.wrapping_sub(1);
        (self.virtual_rank != 0).then(|| self.rank(up))
    }

    /// Children as (rank, distance in virtual ranks, ranks in its subtree), nearest first.
    pub fn children(&self) -> Vec<(u32, u32, u32)> {
        let mut children = Vec::new();
        let mut distance = 1;
        while distance < self.span {
            let child = self.virtual_rank + distance;
            children.push((self.rank(child), distance, distance.min(self.me.size - child)));
            distance *= 2;
        }
        children
    }
}

/// A message without bytes from all up to rank 0.
pub fn collect(s: &mut Schedule, me: Party) {
    let place = BinomialPlace::new(me, 0);
    for &(child, ..) in &place.children() {
        s.await_signal(child);
    }
    s.wait();
    if let Some(parent) = place.parent() {
        s.signal(parent);
    }
    s.wait();
}

/// A message without bytes from rank 0 down to all.
pub fn release(s: &mut Schedule, me: Party) {
    let place = BinomialPlace::new(me, 0);
    if let Some(parent) = place.parent() {
        s.await_signal(parent);
        s.wait();
    }
    for &(child, ..) in place.children().iter().rev() {
        s.signal(child);
    }
    s.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_and_children_agree_and_subtrees_partition_the_ranks() {
        for size in 1..40 {
            for root in 0..size {
                let places: Vec<_> = (0..size).map(|rank| BinomialPlace::new(Party { rank, size }, root)).collect();
                for (rank, place) in places.iter().enumerate() {
                    let covered: u32 = place.children().iter().map(|child| child.2).sum();
                    assert_eq!(covered + 1, place.span, "size {size} root {root} rank {rank}");
                    for (child, distance, span) in place.children() {
                        assert_eq!(places[child as usize].parent(), Some(rank as u32));
                        assert_eq!(places[child as usize].virtual_rank, place.virtual_rank + distance);
                        assert_eq!(places[child as usize].span, span);
                    }
                }
                assert_eq!(places[root as usize].span, size);
            }
        }
    }
}
