//! Start-up: how a process finds its job.
//!
//! 1. `WEFT_SEGMENT` names an inherited descriptor: our launcher made the segment. No message is needed.
//! 2. Nothing: a job of one.

use crate::pace::Bounds;
use crate::port::Limits;
use std::os::fd::{FromRawFd, OwnedFd};
use weft_device::shm::{Segment, SegmentError};

/// Why a process could not join its job. Ends the process's membership.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error(transparent)]
    Segment(#[from] SegmentError),
    #[error("{name} is '{value}', allowed is {allowed}")]
    Environment { name: &'static str, value: String, allowed: &'static str },
}

/// What start-up has found out.
pub(crate) struct Joined {
    pub segment: Segment,
    pub member: u32,
    pub job: String,
    pub limits: Limits,
    pub bounds: Bounds,
}

impl Joined {
    pub fn plain(segment: Segment, member: u32) -> Self {
        Self { segment, member, job: String::new(), limits: Limits::default(), bounds: Bounds::default() }
    }
}

fn number(name: &'static str, allowed: &'static str) -> Result<Option<u32>, JoinError> {
    match std::env::var(name) {
        Err(_) => Ok(None),
        Ok(value) => match value.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(JoinError::Environment { name, value, allowed }),
        },
    }
}

pub(crate) fn join() -> Result<Joined, JoinError> {
    let Some(descriptor) = number("WEFT_SEGMENT", "the number of an open descriptor")? else {
        return Ok(Joined::plain(Segment::create(1)?, 0));
    };
    // SAFETY: the launcher has opened this descriptor for us and nobody else uses it. If it is not open, the segment
    // cannot be mapped and that is the error.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor as i32) };
    let segment = Segment::open(descriptor)?;
    let member = number("PMI_RANK", "a rank of the job")?.unwrap_or(0);
    let mut joined = Joined::plain(segment, member);
    joined.job = std::env::var("WEFT_JOB").unwrap_or_default();
    Ok(joined)
}
