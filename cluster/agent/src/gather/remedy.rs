//! What to do about what a launch command has said at its end, where that is known: mostly `ssh`, whose words are
//! short.

/// To be appended to a message; empty where nothing is known.
pub fn remedy(said: &str) -> &'static str {
    let says = |words: &str| said.contains(words);
    if says("Permission denied (") {
        "; nobody is asked for a password: let a key open that account (ssh-copy-id)"
    } else if says("Host key verification failed") {
        "; the host's key is not the one that ssh knows, or it knows none: log in once by hand, and look"
    } else if says("/weft") && (says("No such file") || says("not found")) {
        "; install it there under this path, or let --stage copy it"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_says_has_a_remedy() {
        assert!(remedy(": ada@n1: Permission denied (publickey,password).").contains("password"));
        assert!(remedy(": Host key verification failed.").contains("key"));
        assert!(remedy(": bash: line 1: /opt/weft/bin/weft: No such file or directory").contains("--stage"));
        assert_eq!(remedy(": ssh: connect to host n1 port 22: Connection refused"), "");
        assert_eq!(remedy(": sh: 1: cannot open /x: Permission denied"), "");
    }
}
