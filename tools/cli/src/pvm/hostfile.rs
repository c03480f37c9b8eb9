//! Hostfiles of PVM: a host a line, with options behind it.

/// The hosts of a hostfile, each as [`super::far::command`] takes it. `#` begins a comment, a backslash at the end goes on
/// in the next line, `*` stands before options for the hosts that follow, and `&` before a host that is not to be added
/// now.
pub fn read(text: &str) -> Vec<String> {
    let mut hosts = Vec::new();
    let mut defaults = "";
    let text = text.replace("\\\n", " ");
    for line in text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()) {
        match line.split_at_checked(1) {
            None | Some(("&", _)) => {}
            Some(("*", options)) => defaults = options.trim(),
            // What stands first counts.
            Some(_) => hosts.push(format!("{line} {defaults}").trim().to_owned()),
        }
    }
    hosts
}

#[cfg(test)]
mod tests {
    #[test]
    fn hosts_have_their_options_before_those_of_all() {
        let text = "# all\none\n* wd=/tmp \\\n sp=2\ntwo sp=7 # old\n\n&three\n  four\n";
        assert_eq!(super::read(text), ["one", "two sp=7 wd=/tmp   sp=2", "four wd=/tmp   sp=2"]);
    }
}
