//! Daemons on other hosts.

use crate::reach::launch_of_environment;
use std::io;
use std::process::Command;
use weft_pvm_machine::daemon::{DIRECTORY_VARIABLE, PATH_VARIABLE};
use weft_pvm_machine::door::MACHINE_VARIABLE;

/// The command that starts the daemon of another host, which is named as in a hostfile: a name, and options behind it.
/// What they mean is in the manual of PVM's daemon: `lo=` the user there, `ip=` another name for the way there, `dx=`
/// the program that is `weft` there, `ep=` where programs are, `wd=` the folder that tasks begin in. The others are not
/// needed here.
///
/// # Errors
/// The launch command is none, or the host would be an option of it.
pub fn command(line: &str) -> io::Result<Command> {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default();
    let option = |name: &str| {
        let value = line.split_whitespace().skip(1).find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        value.filter(|value| !value.is_empty())
    };
    let there = option("ip").unwrap_or(name);
    let there = option("lo").map_or(there.to_owned(), |user| format!("{user}@{there}"));
    if there.starts_with('-') {
        return Err(io::Error::other("a host begins with a hyphen"));
    }
    let launch = launch_of_environment().map_err(|errors| io::Error::other(errors.join("; ")))?;
    let machine = std::env::var(MACHINE_VARIABLE).ok();
    let settings =
        [(MACHINE_VARIABLE, machine.as_deref()), (PATH_VARIABLE, option("ep")), (DIRECTORY_VARIABLE, option("wd"))];
    let settings = settings.iter().filter_map(|(name, value)| Some(format!("{name}={}", (*value)?)));
    let ours = std::env::current_exe()?.to_string_lossy().into_owned();
    let program = [option("dx").unwrap_or(&ours), "pvm", "--far"].map(str::to_owned);
    let words: Vec<String> = std::iter::once("env".to_owned()).chain(settings).chain(program).collect();
    let words = launch.command(&there, &words);
    let (program, arguments) = words.split_first().ok_or_else(|| io::Error::other("there is no launch command"))?;
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_a_host_go_into_its_command() {
        let words = |line: &str| {
            let command = command(line).expect("a command");
            command.get_args().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        let all = words("ada lo=eve ip=10.0.0.2 dx=/opt/weft ep=/a:/b wd=/tmp sp=500 so=pw");
        assert!(all.contains("eve@10.0.0.2 env "), "{all}");
        assert!(all.ends_with("PVM_PATH=/a:/b PVM_WD=/tmp /opt/weft pvm --far"), "{all}");
        assert!(super::command("-oProxyCommand=x").is_err() && super::command("a ip=-x").is_err());
        assert!(words("ada").contains(" ada env "), "{}", words("ada"));
    }
}
