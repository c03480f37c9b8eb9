//! What holds for a job where its command line says nothing: the settings of the environment.

use std::time::Duration;
use weft_cluster::placement;
use weft_wire::settings::{Bind, Settings, unknown};

/// The launcher's part of the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Defaults {
    pub bind: placement::Bind,
    pub timeout: Option<Duration>,
    /// Whether each line of output begins with its rank.
    pub tag: bool,
    /// Whether a rank that is lost leaves the others alone.
    pub keep_going: bool,
    /// How long a host may take to answer.
    pub launch_timeout: Option<Duration>,
    /// From so many hosts on, agents start agents.
    pub launch_tree: Option<usize>,
    /// Whether hosts come from the allocation of a batch system.
    pub allocation: bool,
}

impl Defaults {
    /// As this process's environment says. Settings that are refused are reported when the job is started.
    pub fn of_environment() -> Self {
        Self::from(&Settings::from_env(std::env::vars_os()).unwrap_or_default())
    }
}

/// One line for each variable of the environment that begins as ours and that nobody knows.
pub fn tell_of_unknown(front: &str) {
    unknown(std::env::vars_os()).iter().for_each(|unknown| eprintln!("{front}: {}", unknown.warning()));
}

impl From<&Settings> for Defaults {
    fn from(settings: &Settings) -> Self {
        let bind = match settings.bind {
            Bind::Auto => placement::Bind::Auto,
            Bind::Core => placement::Bind::Core,
            Bind::None => placement::Bind::None,
        };
        Self {
            bind,
            timeout: settings.timeout.map(Duration::from_secs),
            tag: settings.tag_output,
            keep_going: settings.keep_going,
            launch_timeout: settings.launch_timeout.map(Duration::from_secs),
            launch_tree: settings.launch_tree.map(|hosts| hosts as usize),
            allocation: settings.allocation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_speaks_where_the_command_line_does_not() {
        let env = [
            ("WEFT_BIND", "none"),
            ("WEFT_TIMEOUT", "30"),
            ("WEFT_TAG_OUTPUT", "on"),
            ("WEFT_KEEP_GOING", "on"),
            ("WEFT_LAUNCH_TIMEOUT", "9"),
            ("WEFT_LAUNCH_TREE", "never"),
            ("WEFT_ALLOCATION", "off"),
        ];
        let defaults = Defaults::from(&Settings::from_env(env).expect("accepted"));
        let expected = Defaults {
            bind: placement::Bind::None,
            timeout: Some(Duration::from_secs(30)),
            tag: true,
            keep_going: true,
            launch_timeout: Some(Duration::from_secs(9)),
            launch_tree: None,
            allocation: false,
        };
        assert_eq!(defaults, expected);
        let plain = Defaults {
            bind: placement::Bind::Auto,
            timeout: None,
            tag: false,
            keep_going: false,
            launch_timeout: Some(Duration::from_secs(4)),
            launch_tree: Some(128),
            allocation: true,
        };
        assert_eq!(Defaults::from(&Settings::default()), plain);
    }
}
