//! Times on a command line.

/// A time of a line.
pub fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(s) if (0.001..=3600.0).contains(&s) => Ok(s),
        _ => Err(format!("{text:?} is not a time between 0.001 and 3600 seconds")),
    }
}
