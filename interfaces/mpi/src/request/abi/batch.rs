//! What a call that completes several requests tells the program (MPI 5.0, section 3.7.5).

use crate::abi::{REQUEST_NULL, Status};
use crate::error::{Class, Error, Result};
use crate::request::{Functions, OperationEnd, TakenRequest};

/// The handles of a call and the statuses it fills.
pub(super) struct Batch {
    requests: *mut usize,
    statuses: *mut Status,
    /// Statuses filled.
    filled: usize,
    failures: Vec<RequestFailure>,
    outside: Vec<EndedCallback>,
}

struct RequestFailure {
    place: usize,
    error: Error,
}

/// A generalized request that is taken, and whose functions are still to be called.
struct EndedCallback {
    place: usize,
    functions: Functions,
    /// The request stays: only its status is asked for.
    only_status: bool,
}

impl Batch {
    /// # Safety
    /// `requests` is an array of handles, `statuses` null or an array of statuses; both hold every index and place
    /// that is settled later.
    pub unsafe fn new(requests: *mut usize, statuses: *mut Status) -> Self {
        Self { requests, statuses, filled: 0, failures: Vec::new(), outside: Vec::new() }
    }

    /// The handle at `index`.
    #[inline]
    pub fn handle(&self, index: usize) -> usize {
        // SAFETY: `new` promises the array.
        unsafe { *self.requests.add(index) }
    }

    /// Stores what became of the request at `index` as the next status.
    #[inline]
    pub fn settle(&mut self, index: usize, taken: TakenRequest) {
        let gone = match taken {
            TakenRequest::Pending => return,
            TakenRequest::Inactive => {
                self.fill(OperationEnd::EMPTY);
                false
            }
            TakenRequest::Ended { end, kept } => {
                self.fill(end);
                !kept
            }
            TakenRequest::Outside(functions) => {
                self.outside.push(EndedCallback { place: self.filled, functions, only_status: false });
                self.filled += 1;
                true
            }
        };
        if gone {
            // SAFETY: `new` promises the array.
            unsafe { *self.requests.add(index) = REQUEST_NULL };
        }
    }

    /// Like [`Self::settle`] for a request that is gone and has only a status to tell.
    #[inline]
    pub fn settle_plain(&mut self, index: usize, status: Status) {
        self.put(self.filled, status);
        // SAFETY: `new` promises the array.
        unsafe { *self.requests.add(index) = REQUEST_NULL };
        self.filled += 1;
    }

    /// Like [`Self::settle`] for what was only looked at: handles stay.
    pub fn settle_seen(&mut self, seen: TakenRequest) {
        match seen {
            TakenRequest::Pending => {}
            TakenRequest::Inactive => self.fill(OperationEnd::EMPTY),
            TakenRequest::Ended { end, .. } => self.fill(end),
            TakenRequest::Outside(functions) => {
                self.outside.push(EndedCallback { place: self.filled, functions, only_status: true });
                self.filled += 1;
            }
        }
    }

    /// Stores an error as the next status.
    pub fn fail(&mut self, error: Error) {
        self.fill(OperationEnd { status: Status::EMPTY, error: Some(Box::new(error)) });
    }

    /// Whether a process was lost, so that waiting for others may never end.
    pub fn has_lost(&self) -> bool {
        self.failures.iter().any(|failure| failure.error.class.is_loss())
    }

    /// Statuses filled so far.
    pub fn filled(&self) -> usize {
        self.filled
    }

    #[inline]
    fn fill(&mut self, end: OperationEnd) {
        let place = self.filled;
        self.filled += 1;
        self.store(place, end);
    }

    /// Stores a status, with no error: the standard leaves that field alone where the call succeeds, but every other
    /// library writes it, and programs look.
    #[inline]
    fn put(&self, place: usize, status: Status) {
        if !self.statuses.is_null() {
            // SAFETY: `new` promises the array.
            unsafe { *self.statuses.add(place) = status.without_error() };
        }
    }

    #[inline]
    fn store(&mut self, place: usize, end: OperationEnd) {
        self.put(place, end.status);
        if let Some(error) = end.error {
            self.failures.push(RequestFailure { place, error: *error });
        }
    }

    /// Calls the program's functions and answers for all; the monitor must not be held.
    ///
    /// # Errors
    /// `MPI_ERR_IN_STATUS`, with the error field of every status set.
    ///
    /// # Safety
    /// The functions of generalized requests may be called.
    pub unsafe fn conclude(mut self) -> Result<()> {
        for callback in std::mem::take(&mut self.outside) {
            let functions = callback.functions;
            // SAFETY: the caller's promise.
            let end = unsafe { if callback.only_status { functions.query() } else { functions.end() } };
            self.store(callback.place, end);
        }
        if self.failures.is_empty() {
            return Ok(());
        }
        self.failed()
    }

    #[cold]
    fn failed(self) -> Result<()> {
        if !self.statuses.is_null() {
            for failure in &self.failures {
                // SAFETY: as above.
                unsafe { (*self.statuses.add(failure.place)).error = failure.error.code };
            }
        }
        let first = self.failures.iter().find(|failure| failure.error.class != Class::Pending).map_or_else(
            || Error::new(Class::Pending, "requests are pending"),
            |failure| {
                let detail = format!("request {} of {}: {}", failure.place, self.filled, failure.error.detail);
                Error { on: failure.error.on, ..Error::new(Class::InStatus, detail) }
            },
        );
        Err(first)
    }
}
