//! What a program answers, and why it may not.

use weft_objects::ObjectFault;

/// What a run has found, on process 0; on the others nobody reads it.
#[derive(Debug, Default)]
pub struct AppAnswer {
    /// What was computed: `482 x 80`.
    pub input: String,
    pub seconds: f64,
    wrong: Vec<String>,
}

impl AppAnswer {
    pub fn new(input: String, seconds: f64) -> Self {
        Self { input, seconds, wrong: Vec::new() }
    }

    /// Notes what is wrong if it is not right.
    pub fn check(&mut self, is_right: bool, what: impl FnOnce() -> String) {
        if !is_right {
            self.wrong.push(what());
        }
    }

    pub fn wrong(&self) -> &[String] {
        &self.wrong
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AppFailure {
    /// Wrong use, which all processes see alike: one line.
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Object(#[from] ObjectFault),
    #[error("{0}")]
    Other(String),
}
