//! Bodies of the functions that start, end and describe the interface.

use std::sync::OnceLock;
use std::time::Instant;

static EPOCH: OnceLock<Instant> = OnceLock::new();

/// Seconds since some time in the past of this process.
pub(crate) unsafe fn wtime() -> f64 {
    EPOCH.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// Resolution of [`wtime`] in seconds.
pub(crate) unsafe fn wtick() -> f64 {
    1e-9
}
