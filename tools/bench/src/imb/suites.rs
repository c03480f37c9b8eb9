//! What is measured: the benchmarks of Intel's suites, and beside them programs that others use or that we wrote.

use crate::lines;
use serde::Serialize;

named! {
    /// A table of its own, with a bar of its own.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Suite {
        /// IMB-MPI1.
        Mpi1 = "mpi1", "IMB-MPI1";
        /// IMB-NBC: nonblocking collectives, with computation beside them and without.
        Nbc = "nbc", "IMB-NBC";
        /// IMB-RMA.
        Rma = "rma", "IMB-RMA";
        /// IMB-P2P: random partners and exchanges in place.
        P2p = "p2p", "IMB-P2P";
        /// The collectives of IMB-MPI1 among more ranks than cores.
        Crowd = "crowd", "IMB-MPI1, collectives of a crowd";
        /// One-sided operations one by one, by a program of ours.
        OneSided = "one-sided", "one-sided operations";
        /// `MPI_Pack` and `MPI_Unpack` of strided and nested types, by a program of ours.
        Pack = "pack", "packing";
        /// ScaLAPACK's solver of linear equations.
        Xdlu = "xdlu", "ScaLAPACK xdlu";
        /// `python -m mpi4py.bench pingpong`.
        Mpi4py = "mpi4py", "mpi4py pingpong";
    }
}

const MPI1: &str = "PingPong PingPing Sendrecv Exchange Uniband Biband Allreduce Reduce Reduce_local Reduce_scatter \
    Reduce_scatter_block Allgather Allgatherv Gather Gatherv Scatter Scatterv Alltoall Alltoallv Bcast Barrier";
const NBC: &str = "Ibcast Ibcast_pure Iallgather Iallgather_pure Iallgatherv Iallgatherv_pure Igather Igather_pure \
    Igatherv Igatherv_pure Iscatter Iscatter_pure Iscatterv Iscatterv_pure Ialltoall Ialltoall_pure Ialltoallv \
    Ialltoallv_pure Ireduce Ireduce_pure Ireduce_scatter Ireduce_scatter_pure Iallreduce Iallreduce_pure Ibarrier \
    Ibarrier_pure";
const RMA: &str = "Unidir_put Unidir_get Bidir_put Bidir_get One_put_all One_get_all All_put_all All_get_all Put_local \
    Put_all_local Exchange_put Exchange_get Accumulate Get_accumulate Fetch_and_op Compare_and_swap Get_local Get_all_local \
    Truly_passive_put";
/// The stencils need more ranks.
const P2P: &str = "PingPong PingPing Unirandom Birandom Corandom SendRecv_Replace";
const CROWD: &str = "Allreduce Reduce Reduce_scatter Reduce_scatter_block Allgather Allgatherv Gather Gatherv Scatter \
    Scatterv Alltoall Alltoallv Bcast Barrier";

/// What a suite must reach: the geometric mean of the ratios, and each of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SuiteBar {
    pub mean: f64,
    pub worst: Option<f64>,
}

impl Suite {
    /// The binary of Intel's, if it is one.
    pub fn intel_program(self) -> Option<&'static str> {
        match self {
            Suite::Mpi1 | Suite::Crowd => Some("IMB-MPI1"),
            Suite::Nbc => Some("IMB-NBC"),
            Suite::Rma => Some("IMB-RMA"),
            Suite::P2p => Some("IMB-P2P"),
            _ => None,
        }
    }

    /// The benchmarks that such a program is asked for.
    pub fn benchmarks(self) -> Vec<&'static str> {
        let names = match self {
            Suite::Mpi1 => MPI1,
            Suite::Nbc => NBC,
            Suite::Rma => RMA,
            Suite::P2p => P2P,
            Suite::Crowd => CROWD,
            _ => "",
        };
        names.split_whitespace().collect()
    }

    /// Whether figures are rates, of which more is better.
    pub fn is_rate(self) -> bool {
        self == Suite::Xdlu
    }

    pub fn bar(self) -> Option<SuiteBar> {
        let bar = |mean, worst| Some(SuiteBar { mean, worst });
        match self {
            Suite::Mpi1 => bar(1.0, Some(1.5)),
            Suite::Nbc | Suite::Rma => bar(1.1, Some(1.5)),
            Suite::Crowd => bar(0.8, None),
            Suite::Pack | Suite::Xdlu | Suite::Mpi4py => bar(1.0, None),
            Suite::P2p | Suite::OneSided => None,
        }
    }
}

/// A suite and which of its benchmarks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    pub suite: Suite,
    /// Empty where the program measures all it can.
    pub benchmarks: Vec<&'static str>,
}

/// What `--only` asks for; everything without it.
///
/// # Errors
/// A pattern that names nothing.
pub fn select(patterns: &[String]) -> anyhow::Result<Vec<Selected>> {
    let named = |pattern: &str, suite: Suite, benchmark: &str| {
        lines::matches(&pattern.to_lowercase(), &format!("{}/{}", suite.word(), benchmark.to_lowercase()))
    };
    let whole = |pattern: &str, suite: Suite| lines::matches(pattern, suite.word());
    let some = |pattern: &str, suite: Suite| {
        whole(pattern, suite) || suite.benchmarks().iter().any(|benchmark| named(pattern, suite, benchmark))
    };
    for pattern in patterns {
        let known = Suite::ALL.into_iter().any(|suite| some(pattern, suite));
        anyhow::ensure!(known, "--only {pattern}: no suite or benchmark has such a name; --list shows them all");
    }
    let wanted = |suite: Suite, benchmark: &str| {
        patterns.is_empty() || patterns.iter().any(|p| whole(p, suite) || named(p, suite, benchmark))
    };
    let selected = |suite: Suite| {
        let benchmarks: Vec<_> = suite.benchmarks().into_iter().filter(|name| wanted(suite, name)).collect();
        let runs = if suite.intel_program().is_some() { !benchmarks.is_empty() } else { wanted(suite, "") };
        runs.then_some(Selected { suite, benchmarks })
    };
    Ok(Suite::ALL.into_iter().filter_map(selected).collect())
}

/// Every name that `--only` knows.
pub fn list() -> String {
    let names = |suite: Suite| match suite.benchmarks() {
        none if none.is_empty() => format!("{}\n", suite.word()),
        some => some.iter().map(|name| format!("{}/{}\n", suite.word(), name.to_lowercase())).collect(),
    };
    Suite::ALL.into_iter().map(names).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(patterns: &[&str]) -> Vec<(Suite, usize)> {
        let patterns: Vec<String> = patterns.iter().map(|p| p.to_string()).collect();
        select(&patterns).unwrap().into_iter().map(|s| (s.suite, s.benchmarks.len())).collect()
    }

    #[test]
    fn patterns_name_suites_benchmarks_or_both_with_stars() {
        assert_eq!(chosen(&[]).len(), Suite::ALL.len());
        assert_eq!(chosen(&["xdlu", "nbc"]), [(Suite::Nbc, 26), (Suite::Xdlu, 0)]);
        assert_eq!(chosen(&["mpi1/Allgather"]), [(Suite::Mpi1, 1)]);
        assert_eq!(chosen(&["*/allgather*"]), [(Suite::Mpi1, 2), (Suite::Crowd, 2)]);
    }

    #[test]
    fn a_pattern_that_names_nothing_is_refused() {
        let error = select(&["mpi1/allgatter".into()]).unwrap_err().to_string();
        assert!(error.contains("allgatter"), "{error}");
    }
}
