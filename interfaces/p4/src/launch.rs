//! Procgroups with more than the first line: the program becomes the launcher of a job, `weft mpiexec`, which starts
//! what all lines say. Processes of such a job share no memory, so each is a cluster of its own.

use crate::procgroup::ProcgroupEntry;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Becomes the launcher; comes back only with what is wrong.
pub fn become_launcher(program: &str, arguments: &[String], entries: &[ProcgroupEntry]) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let user = std::env::var("USER").unwrap_or_default();
    match words(program, arguments, entries, host.trim(), &user) {
        Ok(words) => {
            let weft = weft_fabric::spawn::find_weft().unwrap_or_else(|| "weft".into());
            let error = Command::new(&weft).arg("mpiexec").args(words).exec();
            format!("{} cannot be started, which starts processes of several clusters: {error}", weft.display())
        }
        Err(slip) => slip,
    }
}

/// What `mpiexec` is given. Only the processes of the first line get the program's arguments, as with P4.
fn words(
    program: &str,
    arguments: &[String],
    entries: &[ProcgroupEntry],
    host: &str,
    user: &str,
) -> Result<Vec<String>, String> {
    let is_here = |name: &str| ["local", "localhost", host].contains(&name) || host.split('.').next() == Some(name);
    // The first line is always of the host that we are on.
    let all_here = entries.iter().skip(1).all(|entry| is_here(&entry.host));
    let mut words = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        if !entry.user.is_empty() && entry.user != user {
            let (name, host) = (&entry.user, &entry.host);
            return Err(format!(
                "the procgroup wants {host} as the user {name}, which ssh is to be told (~/.ssh/config)"
            ));
        }
        let processes = entry.processes + u32::from(at == 0);
        if at > 0 {
            words.push(":".to_owned());
        }
        words.extend(["-n".to_owned(), processes.to_string()]);
        if !all_here {
            let name = if at == 0 || is_here(&entry.host) { host } else { &entry.host };
            words.extend(["-host".to_owned(), format!("{name}:{processes}")]);
        }
        let own = at == 0 || entry.program.is_empty();
        words.push(if own { program.to_owned() } else { entry.program.clone() });
        words.extend(arguments.iter().filter(|_| at == 0).cloned());
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procgroup::parse;

    fn told(text: &str) -> Result<String, String> {
        let entries = parse("p", text).expect("a good file");
        words("./prog", &["-x".to_owned()], &entries, "sun1.example", "me").map(|words| words.join(" "))
    }

    #[test]
    fn lines_become_programs_of_one_job() {
        assert_eq!(told("local 2\nsun1 3 /bin/other").as_deref(), Ok("-n 3 ./prog -x : -n 3 /bin/other"));
        let far =
            "-n 1 -host sun1.example:1 ./prog -x : -n 2 -host sun2:2 /bin/other : -n 1 -host sun1.example:1 ./prog";
        assert_eq!(told("local 0\nsun2 2 /bin/other me\nlocalhost 1").as_deref(), Ok(far));
    }

    #[test]
    fn another_user_is_a_matter_of_ssh() {
        assert!(told("local 0\nsun2 2 /bin/other you").expect_err("another user").contains("sun2 as the user you"));
    }
}
