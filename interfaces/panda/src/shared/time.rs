//! Time: nanoseconds since 1970, or between two moments.

/// Nanoseconds of a second.
const NANO: i128 = 1_000_000_000;

/// As C has it: nanoseconds are never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub struct PandaTime {
    pub seconds: i64,
    pub nanoseconds: i64,
}

impl PandaTime {
    pub const INFINITY: Self = Self { seconds: i64::MAX, nanoseconds: 999_999_999 };

    pub const fn from_nanoseconds(all: i128) -> Self {
        Self { seconds: all.div_euclid(NANO) as i64, nanoseconds: all.rem_euclid(NANO) as i64 }
    }

    pub const fn nanoseconds(self) -> i128 {
        self.seconds as i128 * NANO + self.nanoseconds as i128
    }

    pub fn now() -> Self {
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        Self { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos().into() }
    }

    pub fn from_seconds(seconds: f64) -> Self {
        Self::from_nanoseconds((seconds * NANO as f64) as i128)
    }

    pub fn seconds(self) -> f64 {
        self.seconds as f64 + self.nanoseconds as f64 / NANO as f64
    }

    pub fn times(self, factor: f64) -> Self {
        Self::from_nanoseconds((self.nanoseconds() as f64 * factor) as i128)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_are_never_negative() {
        for all in [0, 1, -1, 1_500_000_000, -1_500_000_000, -2_000_000_000] {
            let time = PandaTime::from_nanoseconds(all);
            assert_eq!(time.nanoseconds(), all);
            assert!((0..1_000_000_000).contains(&time.nanoseconds), "{time:?}");
        }
        assert_eq!(PandaTime::from_seconds(-1.5), PandaTime { seconds: -2, nanoseconds: 500_000_000 });
        assert!((PandaTime::from_seconds(2.25).seconds() - 2.25).abs() < 1e-9);
        assert_eq!(PandaTime::from_seconds(3.0).times(0.5), PandaTime::from_seconds(1.5));
        assert!(PandaTime::now() < PandaTime::INFINITY);
    }
}
