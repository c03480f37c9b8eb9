//! Hostfiles of PVM: a host a line, with options behind it.

/// The hosts of a hostfile, each as [`super::far::command`] takes it. `#` begins a comment, a backslash at the end goes
/// on in the next line, `*` stands before options for the hosts that follow, and `&` before a host that is not to be
/// added now.
///
/// # Errors
/// A line has an option that hosts do not have.
pub fn read(text: &str) -> Result<Vec<String>, String> {
    let mut hosts = Vec::new();
    let mut defaults = "";
    let text = text.replace("\\\n", " ");
    for line in text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()) {
        let names = usize::from(!line.starts_with('*'));
        let mut options = line.trim_start_matches(['*', '&']).split_whitespace().skip(names);
        if let Some(wrong) = options.find(|word| !is_option(word)) {
            let all = OPTIONS.map(|name| format!("{name}=")).join(" ");
            return Err(format!("'{line}': '{wrong}' is no option; those are {all}, with a number from 1 for sp="));
        }
        match line.split_at_checked(1) {
            None | Some(("&", _)) => {}
            Some(("*", options)) => defaults = options.trim(),
            // What stands first counts.
            Some(_) => hosts.push(format!("{line} {defaults}").trim().to_owned()),
        }
    }
    Ok(hosts)
}

const OPTIONS: [&str; 8] = ["lo", "so", "dx", "ep", "sp", "wd", "ip", "bx"];

fn is_option(word: &str) -> bool {
    match word.split_once('=') {
        Some(("sp", speed)) => speed.parse().is_ok_and(|speed: u32| (1..=1_000_000).contains(&speed)),
        Some((name, _)) => OPTIONS.contains(&name),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn hosts_have_their_options_before_those_of_all() {
        let text = "# all\none\n* wd=/tmp \\\n sp=2\ntwo sp=7 # old\n\n&three\n  four\n";
        assert_eq!(super::read(text).expect("a good file"), ["one", "two sp=7 wd=/tmp   sp=2", "four wd=/tmp   sp=2"]);
    }

    #[test]
    fn options_that_hosts_do_not_have_are_told() {
        for wrong in ["one bogus=1", "* sp=abc", "two sp=0", "three lo=eve four"] {
            assert!(super::read(wrong).is_err_and(|error| error.contains("is no option")), "{wrong}");
        }
    }
}
