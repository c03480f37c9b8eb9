//! What the environment says about who started us.

use super::{JoinError, pmix};
use weft_wire::segment::MAX_MEMBERS;

/// Who started us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartedBy {
    /// Our launcher, with the segment's descriptor and perhaps the manager's.
    Launcher {
        segment: i32,
        rank: u32,
        size: u32,
        manager: Option<i32>,
        network: Option<NetworkDescriptors>,
    },
    /// Somebody else's launcher that speaks PMI-1.
    Manager {
        descriptor: i32,
        rank: u32,
        size: u32,
    },
    /// Somebody else's that speaks PMIx, whose library knows rank and size.
    Pmix,
    Alone,
}

/// What the launcher of a job on several hosts gives a rank besides: descriptors of the job map and of its two sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkDescriptors {
    pub map: i32,
    pub listener: i32,
    pub datagrams: Option<i32>,
    /// Memory of a lane, and the sockets by which it receives and sends.
    pub lane: Option<[i32; 3]>,
}

/// Launchers that speak neither PMI-1 nor PMIx, each by a variable of theirs that tells the number of ranks.
///
/// Slurm: the variable of a step, since a batch script may well run a program alone.
const FOREIGN: [(&str, &str); 5] = [
    ("OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun without PMIx"),
    ("SLURM_STEP_NUM_TASKS", "Slurm's srun without --mpi=pmi2 or pmix"),
    ("PALS_SIZE", "PALS"),
    ("JSM_NAMESPACE_SIZE", "jsrun"),
    ("MV2_COMM_WORLD_SIZE", "MVAPICH's mpirun_rsh"),
];

/// Reads the variables through `variable`.
pub fn read(variable: impl Fn(&'static str) -> Option<String>) -> Result<StartedBy, JoinError> {
    let variables = Variables(variable);
    let segment = variables.descriptor("WEFT_SEGMENT")?;
    let manager = variables.descriptor("PMI_FD")?;
    if let Some(segment) = segment {
        let (rank, size) = variables.place("WEFT_SEGMENT")?;
        let network = variables.network()?;
        return Ok(StartedBy::Launcher { segment, rank, size, manager, network });
    }
    if let Some(descriptor) = manager {
        let (rank, size) = variables.place("PMI_FD")?;
        return Ok(StartedBy::Manager { descriptor, rank, size });
    }
    if (variables.0)(pmix::NAMESPACE).is_some_and(|namespace| !namespace.is_empty()) {
        return Ok(StartedBy::Pmix);
    }
    if let Some(port) = (variables.0)("PMI_PORT") {
        return Err(JoinError::Port(port));
    }
    variables.refuse_foreign()?;
    Ok(StartedBy::Alone)
}

struct Variables<F>(F);

impl<F: Fn(&'static str) -> Option<String>> Variables<F> {
    fn number<N: std::str::FromStr + PartialOrd>(
        &self,
        name: &'static str,
        range: std::ops::RangeInclusive<N>,
        allowed: impl Fn() -> String,
    ) -> Result<Option<N>, JoinError> {
        let Some(value) = (self.0)(name) else { return Ok(None) };
        match value.parse() {
            Ok(number) if range.contains(&number) => Ok(Some(number)),
            _ => Err(JoinError::Environment { name, value, allowed: allowed() }),
        }
    }

    fn descriptor(&self, name: &'static str) -> Result<Option<i32>, JoinError> {
        self.number(name, 0..=i32::MAX, || "the number of an open descriptor".into())
    }

    fn network(&self) -> Result<Option<NetworkDescriptors>, JoinError> {
        let Some(map) = self.descriptor("WEFT_JOB_MAP")? else { return Ok(None) };
        let listener = self.descriptor("WEFT_TCP_LISTENER")?;
        let listener = listener.ok_or(JoinError::Missing { name: "WEFT_JOB_MAP", missing: "WEFT_TCP_LISTENER" })?;
        let sockets = self.descriptor("WEFT_XDP_RECEIVER")?.zip(self.descriptor("WEFT_XDP_SENDER")?);
        let lane = self.descriptor("WEFT_XDP_MEMORY")?.zip(sockets).map(|(memory, (a, b))| [memory, a, b]);
        Ok(Some(NetworkDescriptors { map, listener, datagrams: self.descriptor("WEFT_UDP_SOCKET")?, lane }))
    }

    /// Rank and number of ranks, which `beside` needs.
    fn place(&self, beside: &'static str) -> Result<(u32, u32), JoinError> {
        let missing = |missing| JoinError::Missing { name: beside, missing };
        let size = self.number("PMI_SIZE", 1..=MAX_MEMBERS, || format!("a number of ranks from 1 to {MAX_MEMBERS}"))?;
        let size = size.ok_or(missing("PMI_SIZE"))?;
        let rank = self.number("PMI_RANK", 0..=size - 1, || format!("a rank from 0 to {}", size - 1))?;
        Ok((rank.ok_or(missing("PMI_RANK"))?, size))
    }

    fn refuse_foreign(&self) -> Result<(), JoinError> {
        for (variable, launcher) in FOREIGN {
            let value = (self.0)(variable);
            if let Some(value) = value.filter(|value| value.trim().parse().is_ok_and(|size: u64| size > 1)) {
                return Err(JoinError::ForeignLauncher { launcher, variable, value });
            }
        }
        Ok(())
    }
}

/// Removes what named this process's descriptors, so that programs it starts do not take them for their own.
pub fn forget() {
    for name in [
        "WEFT_SEGMENT",
        "PMI_FD",
        "WEFT_JOB_MAP",
        "WEFT_TCP_LISTENER",
        "WEFT_UDP_SOCKET",
        "WEFT_XDP_MEMORY",
        "WEFT_XDP_RECEIVER",
        "WEFT_XDP_SENDER",
        "WEFT_PARENT",
    ] {
        // SAFETY: the interface starts once, and its user keeps other threads off the environment meanwhile, as the C
        // library wants it of everybody who starts a library.
        unsafe { std::env::remove_var(name) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(variables: &[(&str, &str)]) -> Result<StartedBy, String> {
        let find = |name| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        read(find).map_err(|error| error.to_string())
    }

    #[test]
    fn three_ways_to_find_a_job() {
        let ours = [("WEFT_SEGMENT", "5"), ("PMI_FD", "6"), ("PMI_RANK", "2"), ("PMI_SIZE", "3")];
        let launched = StartedBy::Launcher { segment: 5, rank: 2, size: 3, manager: Some(6), network: None };
        assert_eq!(start(&ours), Ok(launched));
        assert_eq!(start(&ours[1..]), Ok(StartedBy::Manager { descriptor: 6, rank: 2, size: 3 }));
        assert_eq!(start(&ours[2..]), Ok(StartedBy::Alone), "a program that a rank started");
        assert_eq!(start(&[]), Ok(StartedBy::Alone));
    }

    #[test]
    fn a_job_on_several_hosts_has_a_map_and_a_listener() {
        let ours = [("WEFT_SEGMENT", "5"), ("PMI_RANK", "2"), ("PMI_SIZE", "3"), ("WEFT_JOB_MAP", "7")];
        let error = start(&ours).unwrap_err();
        assert!(error.starts_with("WEFT_JOB_MAP is set, but WEFT_TCP_LISTENER is not"), "{error}");
        let with = [
            &ours[..],
            &[
                ("WEFT_TCP_LISTENER", "8"),
                ("WEFT_UDP_SOCKET", "9"),
                ("WEFT_XDP_MEMORY", "10"),
                ("WEFT_XDP_RECEIVER", "11"),
                ("WEFT_XDP_SENDER", "12"),
            ],
        ]
        .concat();
        let network = Some(NetworkDescriptors { map: 7, listener: 8, datagrams: Some(9), lane: Some([10, 11, 12]) });
        assert_eq!(start(&with), Ok(StartedBy::Launcher { segment: 5, rank: 2, size: 3, manager: None, network }));
    }

    #[test]
    fn a_slip_names_variable_value_and_what_is_allowed() {
        let place = |rank, size| start(&[("WEFT_SEGMENT", "5"), ("PMI_RANK", rank), ("PMI_SIZE", size)]).unwrap_err();
        assert_eq!(place("3", "3"), "PMI_RANK is '3', allowed is a rank from 0 to 2");
        assert_eq!(place("-1", "2"), "PMI_RANK is '-1', allowed is a rank from 0 to 1");
        assert_eq!(place("0", "0"), "PMI_SIZE is '0', allowed is a number of ranks from 1 to 4096");
        let text = start(&[("WEFT_SEGMENT", "x")]).unwrap_err();
        assert_eq!(text, "WEFT_SEGMENT is 'x', allowed is the number of an open descriptor");
        let text = start(&[("PMI_FD", "3"), ("PMI_SIZE", "1")]).unwrap_err();
        assert!(text.starts_with("PMI_FD is set, but PMI_RANK is not"), "{text}");
    }

    #[test]
    fn a_launcher_that_wanted_more_than_one_is_refused_by_name() {
        let text = start(&[("OMPI_COMM_WORLD_SIZE", "4"), ("PMIX_RANK", "0")]).unwrap_err();
        assert!(
            text.contains("Open MPI's mpirun without PMIx (OMPI_COMM_WORLD_SIZE=4)") && text.contains("4 jobs of one"),
            "{text}"
        );
        assert_eq!(start(&[("OMPI_COMM_WORLD_SIZE", "1")]), Ok(StartedBy::Alone));
        assert_eq!(start(&[("SLURM_NTASKS", "4")]), Ok(StartedBy::Alone), "a batch script is no step");
        assert!(start(&[("SLURM_STEP_NUM_TASKS", "4")]).unwrap_err().contains("--mpi=pmi2"));
        let under_pmi = [("OMPI_COMM_WORLD_SIZE", "4"), ("PMI_FD", "3"), ("PMI_RANK", "0"), ("PMI_SIZE", "1")];
        assert!(start(&under_pmi).is_ok(), "who speaks PMI-1 is believed");
    }

    #[test]
    fn pmix_comes_behind_what_needs_no_library() {
        let pmix = [("PMIX_NAMESPACE", "n"), ("PMIX_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "4")];
        assert_eq!(start(&pmix), Ok(StartedBy::Pmix));
        let both = [&pmix[..], &[("PMI_FD", "3"), ("PMI_RANK", "0"), ("PMI_SIZE", "1")]].concat();
        assert_eq!(start(&both), Ok(StartedBy::Manager { descriptor: 3, rank: 0, size: 1 }));
    }

    #[test]
    fn a_port_is_not_served() {
        assert!(start(&[("PMI_PORT", "h:1")]).unwrap_err().contains("PMI_PORT=h:1"));
    }
}
