//! What is best on a machine: the lengths from which on one way is better than another, and how long packets are best.
//!
//! The numbers come from measured times ([`Best::of`]); without any they are those that did best on the machines that
//! were met first. They are each process's own affair: whoever receives takes packets of any length, and an offer of
//! any message, so two processes with different numbers understand each other.

use std::fmt;

/// Lengths of packets in shared memory that are measured. The last one is the longest there is.
pub const PACKETS: [usize; 4] = [4 << 10, 8 << 10, 16 << 10, 32 << 10];
/// Lengths of messages that packets are chosen for, by powers of two: up to this one, and so on.
const FIRST_CLASS_LOG2: u32 = 12;
const CLASSES: usize = 9;

/// What is best. Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Best {
    /// Longest message that is best sent in one packet.
    pub whole: usize,
    /// Only longer messages may be faster copied by the kernel than streamed.
    pub offers_above: usize,
    /// Shortest message that is worth to be copied by loads out of the sender's memory: the answer costs something,
    /// too.
    pub shown_from: usize,
    /// Longest such message that the receiver copies alone.
    pub alone_to: usize,
    packets: [usize; CLASSES],
}

impl Default for Best {
    fn default() -> Self {
        let short = PACKETS[1];
        // Short packets let both sides begin to copy early. Each costs the transfer of a line that the receiver polls,
        // so long messages go in longer ones.
        let packets = [short, short, short, PACKETS[2], PACKETS[2], PACKETS[2], PACKETS[3], PACKETS[3], PACKETS[3]];
        Self { whole: short, offers_above: short, shown_from: 2048, alone_to: 256 << 10, packets }
    }
}

/// The index of a message's length.
#[inline]
fn class_of(length: usize) -> usize {
    let log2 = length.next_power_of_two().ilog2();
    (log2.saturating_sub(FIRST_CLASS_LOG2) as usize).min(CLASSES - 1)
}

/// What messages of one length took one way, nanoseconds; `None` where it was not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    pub length: usize,
    /// In packets of each of [`PACKETS`], of which the first that is as long as the message is the last.
    pub ring: [Option<u64>; PACKETS.len()],
    /// Copied by the receiver, by the kernel.
    pub copied: Option<u64>,
    /// Copied by the receiver, by loads.
    pub shown: Option<u64>,
    /// Copied by both, by loads and by the kernel.
    pub shared: Option<u64>,
}

impl Times {
    /// The fastest packets and their time.
    fn best_packet(&self) -> Option<(usize, u64)> {
        let known = PACKETS.iter().zip(&self.ring).filter_map(|(packet, ns)| Some((*packet, (*ns)?)));
        known.min_by_key(|(_, ns)| *ns)
    }

    /// Those, unless the usual ones are as good: within a thirty-second.
    fn packet(&self, usual: usize) -> Option<usize> {
        let (best, ns) = self.best_packet()?;
        let index = PACKETS.iter().position(|packet| *packet == usual)?;
        let is_as_good = self.ring[index].is_some_and(|usual_ns| usual_ns <= ns + ns / 32);
        Some(if is_as_good { usual } else { best })
    }

    fn is_faster(ns: Option<u64>, other: Option<u64>) -> bool {
        ns.zip(other).is_some_and(|(ns, other)| ns < other)
    }
}

impl Best {
    /// What is best where messages take so long, in the order of their lengths.
    pub fn of(times: &[Times]) -> Self {
        let usual = Self::default();
        let mut best = usual;
        for (class, packet) in best.packets.iter_mut().enumerate() {
            let length = 1 << (FIRST_CLASS_LOG2 as usize + class);
            // Lengths between those that were measured go as the shorter one.
            let nearest = times.iter().rfind(|times| times.length <= length).or(times.first());
            *packet = nearest.and_then(|times| times.packet(*packet)).unwrap_or(*packet);
        }
        let ring = |times: &Times| times.best_packet().map(|(_, ns)| ns);
        let is_whole = |length: usize| best.packet(length) >= length;
        let lengths = times.iter().map(|times| times.length);
        best.whole = lengths.take_while(|length| is_whole(*length)).last().unwrap_or(usual.whole);
        // A machine changes, and so does what is in whose cache: where a copy is not far from as fast, it is tried.
        let may_copy = |times: &&Times| Times::is_faster(times.copied, ring(times).map(|ns| ns + ns / 4));
        if times.iter().any(|times| times.copied.is_some()) {
            let first = times.iter().find(may_copy).map(|times| times.length);
            best.offers_above = first.map_or(usize::MAX, |length| length / 2);
        }
        let first = times.iter().find(|times| Times::is_faster(times.shown, ring(times)));
        best.shown_from = first.map_or(usual.shown_from, |times| times.length);
        let alone = times.iter().rfind(|times| Times::is_faster(times.shown, times.shared));
        best.alone_to = alone.map_or(usual.alone_to, |times| times.length);
        best
    }

    /// How long packets of a message of that length are best.
    #[inline]
    pub fn packet(&self, length: usize) -> usize {
        self.packets[class_of(length)]
    }

    /// The same with packets of one length, to measure them.
    #[must_use]
    pub fn with_packets(self, bytes: usize) -> Self {
        Self { packets: [bytes; CLASSES], whole: bytes, ..self }
    }

    /// The same with messages of any length shown, which receivers copy alone up to this one, to measure that.
    #[must_use]
    pub fn with_shown(self, alone_to: usize) -> Self {
        Self { shown_from: 0, alone_to, ..self }
    }

    /// As a launcher hands it to its ranks: [`fmt::Display`] writes it. `None` if it is nothing that could have been
    /// written.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split(',').map(|number| number.parse::<usize>().ok());
        let mut next = || numbers.next().flatten();
        let (whole, offers_above, shown_from, alone_to) = (next()?, next()?, next()?, next()?);
        let mut packets = [0; CLASSES];
        for packet in &mut packets {
            *packet = next().filter(|packet| PACKETS.contains(packet))?;
        }
        let fits = PACKETS.contains(&whole) && numbers.next().is_none();
        fits.then_some(Self { whole, offers_above, shown_from, alone_to, packets })
    }
}

impl fmt::Display for Best {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{},{}", self.whole, self.offers_above, self.shown_from, self.alone_to)?;
        self.packets.iter().try_for_each(|packet| write!(f, ",{packet}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine on which a line takes so long from core to core, copies a byte in so many picoseconds, and begins a
    /// copy by the kernel in so many nanoseconds; both sides of a ring copy, one packet behind the other.
    fn machine(line_ns: u64, byte_ps: u64, kernel_ns: u64) -> Vec<Times> {
        let lengths = [1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20];
        let copy = |bytes: usize| bytes as u64 * byte_ps / 1000;
        let ring = |length: usize, packet: usize| {
            let packets = length.div_ceil(packet) as u64;
            copy(length) + copy(packet.min(length)) + packets * line_ns
        };
        let times = |length: usize| Times {
            length,
            ring: PACKETS.map(|packet| (packet < 2 * length || packet == PACKETS[0]).then(|| ring(length, packet))),
            copied: Some(2 * line_ns + kernel_ns + copy(length)),
            shown: Some(2 * line_ns + copy(length)),
            shared: Some(4 * line_ns + kernel_ns + copy(length) / 2),
        };
        lengths.map(times).to_vec()
    }

    #[test]
    fn without_figures_it_is_what_did_best_on_the_first_machines() {
        let best = Best::of(&[]);
        assert_eq!(best, Best::default());
        let packets = [1, 8192, 16384, 16385, 131_072, 131_073, 1 << 30].map(|length| best.packet(length) >> 10);
        assert_eq!(packets, [8, 8, 8, 16, 16, 32, 32]);
    }

    #[test]
    fn packets_are_short_where_lines_are_near_and_long_where_they_are_far() {
        let (near, far) = (Best::of(&machine(20, 100, 1000)), Best::of(&machine(2000, 100, 1000)));
        assert_eq!([16 << 10, 64 << 10, 256 << 10].map(|length| near.packet(length) >> 10), [4, 4, 8]);
        assert_eq!([16 << 10, 64 << 10, 256 << 10].map(|length| far.packet(length) >> 10), [16, 32, 32]);
        assert!(near.whole == 4 << 10 && far.whole >= 16 << 10, "{near:?} {far:?}");
    }

    #[test]
    fn copies_begin_where_they_pay() {
        let (cheap, dear) = (Best::of(&machine(100, 100, 300)), Best::of(&machine(100, 100, 20_000)));
        assert!(cheap.offers_above < 8 << 10 && dear.offers_above > 64 << 10, "{cheap:?} {dear:?}");
        assert!(cheap.alone_to < dear.alone_to, "{cheap:?} {dear:?}");
        assert_eq!(dear.alone_to, 256 << 10);
        let (quick, slow) = (Best::of(&machine(50, 100, 1000)), Best::of(&machine(300, 100, 1000)));
        assert!(quick.shown_from < slow.shown_from, "{quick:?} {slow:?}");
        let never = machine(100, 100, 1000).into_iter().map(|times| Times { copied: Some(u64::MAX), ..times });
        assert_eq!(Best::of(&never.collect::<Vec<_>>()).offers_above, usize::MAX);
    }

    #[test]
    fn a_difference_that_is_noise_changes_nothing() {
        let mut times = machine(80, 60, 1000);
        for times in &mut times {
            let ns = times.best_packet().expect("packets").1;
            times.ring = [Some(ns), Some(ns + ns / 40), Some(ns + ns / 50), Some(ns + ns / 35)];
        }
        assert_eq!(Best::of(&times).packets, Best::default().packets);
    }

    #[test]
    fn what_is_handed_on_is_read_as_it_was_written() {
        for best in [Best::default(), Best::of(&machine(500, 30, 2000)), Best::default().with_packets(32 << 10)] {
            assert_eq!(Best::parse(&best.to_string()), Some(best));
        }
        let text = Best::default().to_string();
        for wrong in [String::new(), format!("{text},8192"), text.replace("8192", "8193"), text.replace(',', ";")] {
            assert_eq!(Best::parse(&wrong), None, "{wrong}");
        }
    }
}
