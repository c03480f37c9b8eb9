//! Control variables: the settings.

use super::{Answer, KNOWN, LATE, state};
use crate::abi::{
    T_ERR_CVAR_SET_NEVER, T_ERR_CVAR_SET_NOT_NOW, T_ERR_INVALID, T_SCOPE_ALL_EQ, T_SCOPE_LOCAL, T_SCOPE_READONLY,
};
use weft_fabric::Settings;
use weft_fabric::settings::{DEFINITIONS, SettingKind};

/// Bytes of a value that is a text, with its zero.
pub const TEXT_BYTES: usize = 256;

/// Settings that a rank reads when it joins its job, and whether all ranks must have the same.
const OF_RANKS: [(&str, bool); 11] = [
    ("spin_us", false),
    ("yield_us", false),
    ("eager_bytes", false),
    ("single_copy", false),
    ("single_copy_bytes", false),
    ("collectives", true),
    ("algorithms", true),
    ("device", true),
    ("encrypt", true),
    ("connect_timeout", false),
    ("status", false),
];

/// Who may change the setting, and where it must be the same. The others are read by those who start the rank.
pub fn scope(index: usize) -> i32 {
    match OF_RANKS.iter().find(|known| known.0 == DEFINITIONS[index].name) {
        _ if LATE.get() == Some(&true) => T_SCOPE_READONLY,
        Some((_, true)) => T_SCOPE_ALL_EQ,
        Some((_, false)) => T_SCOPE_LOCAL,
        None => T_SCOPE_READONLY,
    }
}

/// The words of a setting that is one of some words; others are texts.
pub fn words(index: usize) -> Option<&'static [&'static str]> {
    match DEFINITIONS[index].kind {
        SettingKind::Switch => Some(&["off", "on"]),
        SettingKind::Choice(words) => Some(words),
        _ => None,
    }
}

/// The value now, as one would type it. Before the process has joined its job: the value that it would have.
pub fn value(index: usize) -> String {
    let settings = KNOWN.get().map_or_else(expected, |known| known.settings);
    settings.rows().nth(index).map_or_else(String::new, |row| row.value)
}

fn expected() -> Settings {
    let changes = state().changes.clone();
    let changed = changes.into_iter().map(|(name, value)| (name.into(), value.into()));
    Settings::from_env(std::env::vars_os().chain(changed)).unwrap_or_default()
}

/// Changes the setting for when the process joins its job.
pub fn change(index: usize, text: &str) -> Answer<()> {
    let definition = DEFINITIONS[index];
    if scope(index) == T_SCOPE_READONLY {
        return Err(T_ERR_CVAR_SET_NEVER);
    }
    if KNOWN.get().is_some() {
        return Err(T_ERR_CVAR_SET_NOT_NOW);
    }
    if definition.kind.parse(text.trim()).is_none() {
        return Err(T_ERR_INVALID);
    }
    let mut state = state();
    state.changes.retain(|change| change.0 != definition.env);
    state.changes.push((definition.env, text.trim().to_owned()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_of_ranks_is_in_the_table_and_fits_its_text() {
        for (name, _) in OF_RANKS {
            assert!(DEFINITIONS.iter().any(|definition| definition.name == name), "{name}");
        }
        for (index, definition) in DEFINITIONS.iter().enumerate() {
            let default = Settings::default().rows().nth(index).map(|row| row.value).expect("a row");
            assert!(default.len() < TEXT_BYTES);
            assert!(words(index).is_none_or(|words| words.contains(&default.as_str())), "{}", definition.name);
        }
    }
}
