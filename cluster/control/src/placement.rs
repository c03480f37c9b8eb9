//! Which rank runs on which core.

/// One core: the numbers of its hardware threads that this job may use.
pub type Core = Vec<usize>;

/// How ranks are tied to cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Bind {
    /// A core for each rank when they all fit, else no binding.
    #[default]
    Auto,
    /// A core for each rank, or an error.
    Core,
    /// The ranks may run wherever the launcher may.
    None,
}

/// What the host has to offer at this moment.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct HostOffer {
    /// The cores that are ours now: in the affinity mask and not claimed by another job.
    pub free: Vec<Core>,
    /// The number of cores in the affinity mask, claimed or not.
    pub allowed: usize,
    /// Processor time that the control group grants, in cores; `None` without a limit.
    pub quota: Option<f64>,
}

/// `--bind core` cannot be done.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlacementError {
    #[error(
        "--bind core needs {ranks} free cores, but of the {allowed} that this process may use {free} are free; \
         fewer ranks, --bind none or --bind auto are possible"
    )]
    TooFewCores { ranks: usize, allowed: usize, free: usize },
    #[error("--bind core needs {ranks} cores, but the control group grants the time of {quota} only")]
    TooLittleTime { ranks: usize, quota: f64 },
    /// Who asked says where.
    #[error("accepted are core, none and auto")]
    Unknown,
}

impl std::str::FromStr for Bind {
    type Err = PlacementError;

    fn from_str(given: &str) -> Result<Self, PlacementError> {
        match given {
            "auto" => Ok(Self::Auto),
            "core" => Ok(Self::Core),
            "none" => Ok(Self::None),
            _ => Err(PlacementError::Unknown),
        }
    }
}

/// How many cores are worth claiming for `ranks` ranks: all or nothing.
pub fn cores_wanted(bind: Bind, ranks: usize, allowed: usize, quota: Option<f64>) -> usize {
    match bind {
        Bind::None => 0,
        Bind::Core => ranks,
        Bind::Auto if ranks <= allowed && in_quota(ranks, quota) => ranks,
        Bind::Auto => 0,
    }
}

/// The core of each rank in rank order, or `None` for "not bound".
pub fn plan(bind: Bind, ranks: usize, offer: &HostOffer) -> Result<Option<Vec<Core>>, PlacementError> {
    let fits = offer.free.len() >= ranks;
    match bind {
        Bind::None => Ok(None),
        Bind::Core if !fits => {
            Err(PlacementError::TooFewCores { ranks, allowed: offer.allowed, free: offer.free.len() })
        }
        Bind::Core if !in_quota(ranks, offer.quota) => {
            Err(PlacementError::TooLittleTime { ranks, quota: offer.quota.unwrap_or(f64::INFINITY) })
        }
        Bind::Auto if !fits || !in_quota(ranks, offer.quota) => Ok(None),
        Bind::Core | Bind::Auto => Ok(Some(offer.free[..ranks].to_vec())),
    }
}

fn in_quota(ranks: usize, quota: Option<f64>) -> bool {
    quota.is_none_or(|quota| ranks as f64 <= quota)
}

/// Reads a list of processors as the kernel writes it, such as `0-3,8`. Nonsense gives `None`.
pub fn parse_cpu_list(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last - first > 1 << 16 {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn offer(free: usize, allowed: usize, quota: Option<f64>) -> HostOffer {
        HostOffer { free: (0..free).map(|core| vec![2 * core, 2 * core + 1]).collect(), allowed, quota }
    }

    #[test]
    fn auto_binds_only_when_all_ranks_fit() {
        assert_eq!(plan(Bind::Auto, 2, &offer(2, 2, None)).unwrap(), Some(vec![vec![0, 1], vec![2, 3]]));
        assert_eq!(plan(Bind::Auto, 3, &offer(2, 2, None)), Ok(None));
        assert_eq!(plan(Bind::Auto, 2, &offer(1, 2, None)), Ok(None));
        assert_eq!(plan(Bind::Auto, 2, &offer(2, 2, Some(1.5))), Ok(None));
    }

    #[test]
    fn core_says_why_it_cannot_be_done() {
        let text = plan(Bind::Core, 3, &offer(1, 2, None)).unwrap_err().to_string();
        assert!(text.contains("needs 3") && text.contains("of the 2") && text.contains("1 are free"), "{text}");
        let text = plan(Bind::Core, 2, &offer(2, 2, Some(1.0))).unwrap_err().to_string();
        assert!(text.contains("time of 1"), "{text}");
    }

    #[test]
    fn nothing_is_claimed_that_will_not_be_used() {
        assert_eq!(cores_wanted(Bind::Auto, 8, 2, None), 0);
        assert_eq!(cores_wanted(Bind::Auto, 2, 2, Some(1.0)), 0);
        assert_eq!(cores_wanted(Bind::Auto, 2, 2, Some(2.0)), 2);
        assert_eq!(cores_wanted(Bind::None, 1, 2, None), 0);
    }

    #[test]
    fn kernel_lists_are_read() {
        assert_eq!(parse_cpu_list("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(parse_cpu_list("3-1"), None);
        assert_eq!(parse_cpu_list("x"), None);
    }

    proptest! {
        #[test]
        fn no_two_ranks_share_a_core(ranks in 1usize..20, free in 0usize..20) {
            if let Some(cores) = plan(Bind::Auto, ranks, &offer(free, 20, None)).unwrap() {
                prop_assert_eq!(cores.len(), ranks);
                let mut all: Vec<usize> = cores.concat();
                let before = all.len();
                all.sort_unstable();
                all.dedup();
                prop_assert_eq!(all.len(), before);
            } else {
                prop_assert!(free < ranks);
            }
        }
    }
}
