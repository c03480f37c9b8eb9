//! A binomial tree over all processes of a job: what one gives to all, or all to one, takes a step for each power of
//! two.

/// One process's place in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreePlace {
    /// As if the root were 0.
    relative: u32,
    root: u32,
    size: u32,
}

impl TreePlace {
    /// The place of `me` among `size` processes where `root` is the root; both are less than `size`.
    pub fn new(me: u32, root: u32, size: u32) -> Self {
        Self { relative: (me + (size - root)) % size, root, size }
    }

    fn absolute(self, relative: u32) -> u32 {
        (relative + self.root) % self.size
    }

    /// What distinguishes a process from its parent: its lowest bit.
    fn lowest(self) -> u32 {
        if self.relative == 0 { u32::MAX } else { self.relative & self.relative.wrapping_neg() }
    }

    /// The process above this one.
    pub fn parent(self) -> Option<u32> {
        (self.relative != 0).then(|| self.absolute(self.relative - self.lowest()))
    }

    /// The processes below this one, those with fewer below them first: the order in which they have gathered.
    pub fn children(self) -> impl DoubleEndedIterator<Item = u32> {
        let steps = self.lowest().min(self.size.next_power_of_two()).trailing_zeros();
        let below = (0..steps).map(move |power| self.relative + (1 << power));
        below.filter(move |relative| *relative < self.size).map(move |relative| self.absolute(relative))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_but_the_root_is_one_process_s_child() {
        for size in 1..40 {
            for root in 0..size {
                let mut parents = vec![None; size as usize];
                for me in 0..size {
                    for child in TreePlace::new(me, root, size).children() {
                        assert_eq!(parents[child as usize].replace(me), None, "{child} of {size} under {root}");
                    }
                }
                let told = (0..size).map(|me| TreePlace::new(me, root, size).parent());
                assert_eq!(told.collect::<Vec<_>>(), parents, "{size} under {root}");
                assert_eq!(parents.iter().filter(|parent| parent.is_none()).count(), 1);
            }
        }
    }

    #[test]
    fn nobody_is_far_from_the_root() {
        let depth = |me: u32| std::iter::successors(Some(me), |at| TreePlace::new(*at, 3, 100).parent()).count() - 1;
        assert_eq!((0..100).map(depth).max(), Some(6));
    }
}
