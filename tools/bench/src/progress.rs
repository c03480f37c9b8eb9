//! How far a run is, for who looks.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar of so many steps.
pub fn bar(steps: u64) -> ProgressBar {
    let template = "{bar:30} {percent:>3} % {msg} ({elapsed}, about {eta} to go)";
    let style = ProgressStyle::with_template(template).expect("the template is constant");
    // No steady tick: a thread that wakes up now and then would disturb what is measured.
    ProgressBar::new(steps).with_style(style)
}

/// Says what is measured now: in the bar where somebody looks, else in a line each.
pub fn note(bar: &ProgressBar, turn: u32, what: &str) {
    if bar.is_hidden() {
        eprintln!("turn {}: {what}", turn + 1);
    }
    bar.set_message(format!("turn {}: {what}", turn + 1));
    bar.tick();
}
