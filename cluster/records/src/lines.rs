//! Records in a file: one line of JSON each.

use crate::JobRecord;

/// A line that is no record.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {error}")]
pub struct LineError {
    /// From 1.
    pub line: usize,
    error: serde_json::Error,
}

impl JobRecord {
    /// One line, with its end.
    pub fn line(&self) -> String {
        // Its keys are texts, and its numbers finite: there is nothing that JSON could not say.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

/// Reads the lines of a file, empty ones left out.
///
/// # Errors
/// The first line that is no record.
pub fn read(text: &str) -> Result<Vec<JobRecord>, LineError> {
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    lines.map(|(text, line)| serde_json::from_str(text).map_err(|error| LineError { line, error })).collect()
}
