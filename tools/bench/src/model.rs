//! The performance model of *Challenging Applications on Fast Networks* (1998), section 6: efficiency from a program's
//! sequential time, its volume and messages, and the throughput of the kernel whose pattern it has.
//!
//! 1. The average message is the volume by the number of messages.
//! 2. Its size gives a throughput, on the curve that was measured for the pattern of communication.
//! 3. The volume by that throughput is the least time spent communicating, `comm`.
//! 4. The time on p processes is taken to be `T1 / p + comm`, so the efficiency is `T1 / (T1 + p comm)`.
//!
//! It takes the work to be spread evenly and messages to wait for nothing, and so says too much; it takes nothing to be
//! computed meanwhile, and so says too little.
//!
//! Units are seconds and bytes. Curves are those of section 4, so throughput is what all senders send together (of a
//! group, each message counted once), and the volume is counted in the same way. Pure: no clock, no files. What is
//! measured, and which pattern a program has, is told by who calls.

use serde::{Deserialize, Serialize};

/// What all processes of a program send in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Volume {
    pub bytes: f64,
    pub messages: f64,
}

/// Throughput against the size of messages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThroughputCurve {
    /// (bytes, bytes in a second), bytes rising.
    points: Vec<(f64, f64)>,
}

/// What the model says of a program.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Step 1.
    pub message_bytes: f64,
    /// Step 2, bytes in a second: what the volume and `comm_s` make it, where several patterns have a part.
    pub throughput: f64,
    /// Step 3.
    pub comm_s: f64,
    /// Step 4: 1 where all processes are of full use.
    pub efficiency: f64,
}

impl Volume {
    /// Bytes of the average message; 0 of a program that sends none.
    pub fn message_bytes(self) -> f64 {
        if self.messages > 0.0 { self.bytes / self.messages } else { 0.0 }
    }
}

impl ThroughputCurve {
    /// Points in any order. Sizes or throughputs that are not above 0 are left out; `None` where nothing remains.
    pub fn new(points: impl IntoIterator<Item = (f64, f64)>) -> Option<Self> {
        let mut points: Vec<(f64, f64)> =
            points.into_iter().filter(|(bytes, rate)| *bytes > 0.0 && *rate > 0.0).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        (!points.is_empty()).then_some(Self { points })
    }

    /// The throughput for messages of that size. Between two points it is read off the straight line that joins
    /// them in a picture with logarithmic axes. Below the first one messages are taken to need as long as those do;
    /// beyond the last one throughput stays.
    pub fn at(&self, bytes: f64) -> f64 {
        let after = self.points.partition_point(|(size, _)| *size < bytes);
        let Some(&(high, high_rate)) = self.points.get(after) else { return self.points[after - 1].1 };
        if after == 0 {
            return high_rate * bytes / high;
        }
        let (low, low_rate) = self.points[after - 1];
        let share = (bytes / low).ln() / (high / low).ln();
        low_rate * (high_rate / low_rate).powf(share)
    }
}

/// Efficiency of `processes` that need `sequential_s` alone and communicate for `comm_s` (the formula of step 4).
pub fn efficiency(sequential_s: f64, processes: u32, comm_s: f64) -> f64 {
    sequential_s / (sequential_s + f64::from(processes) * comm_s)
}

/// Efficiency that was measured: of one process in `sequential_s` and `processes` of them in `parallel_s`.
pub fn measured_efficiency(sequential_s: f64, processes: u32, parallel_s: f64) -> f64 {
    sequential_s / (f64::from(processes) * parallel_s)
}

/// What the network has to carry in a second for a linear speed-up (section 5): the volume by the ideal time.
pub fn required_throughput(sequential_s: f64, processes: u32, volume: Volume) -> f64 {
    volume.bytes / (sequential_s / f64::from(processes))
}

/// All four steps. Where a program has several patterns each is taken to carry the same part of its volume, in
/// messages of the average size; the paper does not say how it weighs them.
///
/// # Panics
/// If there is no curve.
pub fn predict(sequential_s: f64, processes: u32, volume: Volume, curves: &[&ThroughputCurve]) -> Prediction {
    assert!(!curves.is_empty(), "a pattern has a curve");
    let message_bytes = volume.message_bytes();
    let part = volume.bytes / curves.len() as f64;
    let comm_s = if part > 0.0 { curves.iter().map(|curve| part / curve.at(message_bytes)).sum() } else { 0.0 };
    let throughput = if comm_s > 0.0 { volume.bytes / comm_s } else { 0.0 };
    Prediction { message_bytes, throughput, comm_s, efficiency: efficiency(sequential_s, processes, comm_s) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: f64 = 1e6;

    /// A row of the paper's table 1: sequential time, volume, and messages.
    struct PaperRow(f64, f64, f64);
    const INTEGER_SORT: PaperRow = PaperRow(16.3, 154.4, 2.0);
    const SHALLOW: PaperRow = PaperRow(535.0, 2358.5, 22.3);
    const MULTIGRID: PaperRow = PaperRow(0.5, 1.9, 3.1);
    const FFT: PaperRow = PaperRow(22.2, 24.5, 0.5);

    impl PaperRow {
        fn volume(&self) -> Volume {
            Volume { bytes: self.1 * MB, messages: self.2 * 1e3 }
        }

        /// On 8 nodes, where the kernels have this throughput at the size of its messages.
        fn predict(&self, throughput: f64) -> Prediction {
            let curve = ThroughputCurve::new([(1.0, throughput * MB)]).unwrap();
            predict(self.0, 8, self.volume(), &[&curve])
        }
    }

    fn is_near(value: f64, expected: f64, off: f64) -> bool {
        (value - expected).abs() <= off
    }

    #[test]
    fn integer_sort_needs_what_the_paper_says_for_a_linear_speed_up() {
        let throughput = required_throughput(INTEGER_SORT.0, 8, INTEGER_SORT.volume());
        assert!(is_near(throughput / MB, 75.8, 0.05), "{throughput}");
    }

    /// Section 7.1: on Myrinet 1.3 s in communication and 2.0 s in computing; figure 6: 118 MB/s.
    #[test]
    fn integer_sort_communicates_as_long_on_myrinet_as_in_the_paper() {
        let said = INTEGER_SORT.predict(118.0);
        assert!(is_near(said.comm_s, 1.3, 0.05), "{said:?}");
        assert!(is_near(INTEGER_SORT.0 / 8.0, 2.0, 0.05));
        let total = 2.0 + 1.3;
        assert!(is_near(said.efficiency, measured_efficiency(INTEGER_SORT.0, 8, total), 0.02), "{said:?}");
    }

    /// Section 7.7 measured 93 % on Myrinet, 82 % on ATM, 57 % on Fast Ethernet; kernels of figure 6: 118 and 64
    /// MB/s, and the speed of the 100 Mbit/s link.
    #[test]
    fn efficiency_of_the_transform_is_that_of_the_paper() {
        for (throughput, measured, off) in [(118.0, 0.93, 0.005), (64.0, 0.82, 0.07), (100.0 / 8.0, 0.57, 0.03)] {
            let said = FFT.predict(throughput).efficiency;
            assert!(is_near(said, measured, off), "{throughput} MB/s: {said}");
            // Mostly it says too much.
            assert!(said > measured - 0.005, "{throughput} MB/s: {said}");
        }
    }

    #[test]
    fn average_messages_are_those_of_table_1() {
        assert!(SHALLOW.volume().message_bytes() > 100e3, "section 7.2: over 100 KB");
        assert!(is_near(MULTIGRID.volume().message_bytes(), 613.0, 1.0));
        assert_eq!(Volume::default().message_bytes(), 0.0);
    }

    /// Section 7.2 measured 56 %; figure 4 has 127 MB/s of the ring.
    #[test]
    fn too_much_is_said_of_the_shallow_water_where_more_than_the_volume_holds_it_up() {
        let said = SHALLOW.predict(127.0).efficiency;
        assert!(said > 0.56 && said < 0.8, "{said}");
    }

    #[test]
    fn between_points_a_curve_is_straight_on_logarithmic_axes() {
        let curve = ThroughputCurve::new([(10_000.0, 1e9), (100.0, 1e7), (0.0, 5.0), (7.0, 0.0)]).unwrap();
        assert_eq!((curve.at(100.0), curve.at(10_000.0)), (1e7, 1e9));
        assert!(is_near(curve.at(1000.0), 1e8, 1.0));
        // A message of 10 bytes takes as long as one of 100; a longer one than measured goes no faster.
        assert!(is_near(curve.at(10.0), 1e6, 1e-6));
        assert_eq!((curve.at(0.0), curve.at(1e9)), (0.0, 1e9));
        assert_eq!(ThroughputCurve::new([(0.0, 1.0)]), None);
    }

    #[test]
    fn two_patterns_carry_half_of_the_volume_each() {
        let flat = |rate| ThroughputCurve::new([(1.0, rate)]).unwrap();
        let volume = Volume { bytes: 600.0, messages: 6.0 };
        let said = predict(10.0, 2, volume, &[&flat(100.0), &flat(300.0)]);
        assert_eq!((said.message_bytes, said.comm_s, said.throughput), (100.0, 4.0, 150.0));
        assert_eq!(said.efficiency, 10.0 / 18.0);
    }

    #[test]
    fn who_sends_nothing_is_of_full_use() {
        let curve = ThroughputCurve::new([(1.0, 1.0)]).unwrap();
        let said = predict(3.0, 8, Volume::default(), &[&curve]);
        assert_eq!((said.efficiency, said.comm_s, said.message_bytes), (1.0, 0.0, 0.0));
    }
}
