//! The stages of `cargo xtask test`, one file each.

mod format;
mod jobs;
mod lint;
mod loom;
mod sanitize;
mod sockets;
mod tree;
mod unit;

pub use loom::STAGE as LOOM;
pub use sanitize::STAGE as SANITIZE;

use anyhow::{Result, bail};

use crate::stage::Stage;

/// In the order in which they run: what is quick and finds most comes first.
pub static ALL: &[&Stage] =
    &[&format::STAGE, &lint::STAGE, &unit::STAGE, &tree::STAGE, &jobs::STAGE, &sockets::STAGE, &LOOM, &SANITIZE];

/// The stages with these names, all when there are none.
pub fn chosen(names: &[String]) -> Result<Vec<&'static Stage>> {
    if let Some(wrong) = names.iter().find(|name| ALL.iter().all(|stage| stage.name != **name)) {
        let known: Vec<&str> = ALL.iter().map(|stage| stage.name).collect();
        bail!("no stage {wrong:?}; there are: {}", known.join(", "));
    }
    let wanted = |stage: &&Stage| names.is_empty() || names.iter().any(|name| name == stage.name);
    Ok(ALL.iter().copied().filter(wanted).collect())
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
