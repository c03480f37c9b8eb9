//! The stages of `cargo xtask test`, one file each.

mod format;
mod hosts;
mod jobs;
mod lint;
mod loom;
mod programs;
mod sanitize;
mod sockets;
mod targets;
mod tree;
mod unit;

pub use loom::STAGE as LOOM;
pub use sanitize::STAGE as SANITIZE;

use anyhow::{Result, bail};

use crate::stage::Stage;

/// In the order in which they run: what is quick and finds most comes first.
pub static ALL: &[&Stage] = &[
    &format::STAGE,
    &lint::STAGE,
    &unit::STAGE,
    &tree::STAGE,
    &jobs::STAGE,
    &hosts::STAGE,
    &sockets::STAGE,
    &programs::STAGE,
    &LOOM,
    &SANITIZE,
];

/// The stages with these names, all of [`ALL`] when there are none.
pub fn chosen(names: &[String]) -> Result<Vec<&'static Stage>> {
    let stages = || ALL.iter().copied();
    if let Some(wrong) = names.iter().find(|name| stages().all(|stage| stage.name != **name)) {
        let known: Vec<&str> = stages().map(|stage| stage.name).collect();
        bail!("no stage {wrong:?}; there are: {}", known.join(", "));
    }
    if names.is_empty() {
        return Ok(ALL.to_vec());
    }
    Ok(stages().filter(|stage| names.iter().any(|name| name == stage.name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_chosen_by_name_and_kept_in_order() {
        let names = |wanted: &[&str]| -> Vec<&str> {
            let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
            chosen(&wanted).unwrap().iter().map(|stage| stage.name).collect()
        };
        assert_eq!(names(&["lint", "format"]), ["format", "lint"]);
        assert_eq!(names(&[]).len(), ALL.len());
        assert!(chosen(&["format".into(), "wrong".into()]).is_err());
    }
}
