//! Everything that can go wrong on the way, in one place.

use crate::random::Random;

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;
pub const S: u64 = 1_000_000_000;

/// Nothing passes from one end to the other for a while.
#[derive(Clone, Copy, Debug)]
pub struct Partition {
    pub from_ns: u64,
    pub to_ns: u64,
    /// Which of the two directions is shut.
    pub shut: [bool; 2],
}

#[derive(Clone, Debug)]
pub struct Faults {
    pub loss_ppm: u32,
    pub duplicate_ppm: u32,
    /// Datagrams that take so much longer that others overtake them.
    pub reorder_ppm: u32,
    pub corrupt_ppm: u32,
    /// Times at which everything is held up.
    pub spike_ppm: u32,
    pub spike_ns: u64,
    /// How often an end loses its core after it was driven, and for how long at most.
    pub stall_ppm: u32,
    pub stall_ns: u64,
    pub delay_ns: u64,
    pub jitter_ns: u64,
    pub partitions: Vec<Partition>,
    /// Datagrams beyond this vanish.
    pub carries: usize,
}

impl Faults {
    pub fn none(delay_ns: u64) -> Self {
        Self {
            loss_ppm: 0,
            duplicate_ppm: 0,
            reorder_ppm: 0,
            corrupt_ppm: 0,
            spike_ppm: 0,
            spike_ns: 0,
            stall_ppm: 0,
            stall_ns: 0,
            delay_ns,
            jitter_ns: 0,
            partitions: Vec::new(),
            carries: usize::MAX,
        }
    }

    pub fn of_seed(random: &mut Random) -> Self {
        let mut upto = |most: u64| if random.chance(500_000) { random.range(0, most + 1) as u32 } else { 0 };
        let (loss_ppm, duplicate_ppm, reorder_ppm) = (upto(200_000), upto(200_000), upto(300_000));
        let (corrupt_ppm, spike_ppm) = (upto(100_000), upto(1_000));
        let delay_ns = random.pick(&[1, 10, 50, 500, 20_000]) * US;
        Self {
            loss_ppm,
            duplicate_ppm,
            reorder_ppm,
            corrupt_ppm,
            spike_ppm,
            spike_ns: random.range(1, 50) * MS,
            stall_ppm: random.pick(&[0, 0, 1_000, 20_000]),
            stall_ns: random.pick(&[MS, 100 * MS, S]),
            delay_ns,
            jitter_ns: delay_ns * random.pick(&[0, 0, 1, 4]),
            partitions: Self::partitions(random),
            carries: random.pick(&[usize::MAX, usize::MAX, 500, 1_300]),
        }
    }

    fn partitions(random: &mut Random) -> Vec<Partition> {
        let count = random.pick(&[0, 0, 0, 1, 2]);
        let partition = |_| {
            let from_ns = random.range(0, 300 * MS);
            let lasts_ns = random.pick(&[10 * MS, 300 * MS, 3 * S, 9 * S]);
            let shut = random.pick(&[[true, true], [true, false], [false, true]]);
            Partition { from_ns, to_ns: from_ns + lasts_ns, shut }
        };
        (0..count).map(partition).collect()
    }

    pub fn is_shut(&self, now_ns: u64, direction: usize) -> bool {
        self.partitions.iter().any(|p| p.shut[direction] && (p.from_ns..p.to_ns).contains(&now_ns))
    }
}
