//! An `sshd` in a network namespace, gone when the test is gone, however it ends; and a client's configuration for it.

use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Keys for a client and for the hosts that it logs in to, and what it knows of these.
pub struct Keys {
    folder: tempfile::TempDir,
}

/// A server that runs as long as this value.
pub struct Sshd {
    /// Ends it when its standard input ends, also when we are killed.
    guard: Child,
}

impl Keys {
    /// Makes them; the client knows the hosts at these addresses.
    ///
    /// # Panics
    /// When `ssh-keygen` cannot make them.
    pub fn new(known: &[IpAddr]) -> Self {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        for name in ["client", "host"] {
            let mut command = Command::new("ssh-keygen");
            command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.path().join(name));
            assert!(command.status().expect("ssh-keygen").success());
        }
        let key = std::fs::read_to_string(folder.path().join("host.pub")).expect("a key");
        let line = |address: &IpAddr| format!("{address} {key}");
        let keys = Self { folder };
        keys.write("known_hosts", &known.iter().map(line).collect::<String>());
        std::fs::copy(keys.path("client.pub"), keys.path("authorized")).expect("a copy");
        let identity = keys.path("client");
        let known = keys.path("known_hosts");
        keys.write(
            "config",
            &format!(
                "IdentityFile {}\nIdentitiesOnly yes\nIdentityAgent none\nUserKnownHostsFile {}\n\
                 GlobalKnownHostsFile none\nUpdateHostKeys no\n",
                identity.display(),
                known.display()
            ),
        );
        keys
    }

    /// A file among the keys.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes such a file.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("there is room for a file");
    }

    /// The default launch command, by a client that has these keys.
    pub fn launch(&self) -> String {
        let usual = weft_cluster::hosts::Launch::default().to_string();
        usual.replacen("ssh ", &format!("ssh -F '{}' ", self.path("config").display()), 1)
    }
}

impl Sshd {
    /// Starts one in a namespace, with these lines of configuration besides.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(keys: &Keys, namespace: &str, lines: &str) -> Self {
        // Its own place for privilege separation, which a distribution makes at boot.
        std::fs::create_dir_all("/run/sshd").expect("root may make it");
        let configuration = keys.path(namespace);
        let text = format!(
            "{lines}\nHostKey {}\nAuthorizedKeysFile {}\nPermitRootLogin yes\nPidFile none\nStrictModes no\nUsePAM no\n",
            keys.path("host").display(),
            keys.path("authorized").display()
        );
        std::fs::write(&configuration, text).expect("there is room for a file");
        let mut guard = guarded(namespace, &configuration);
        let mut said = BufReader::new(guard.stderr.take().expect("piped")).lines();
        let is_up = |line: &std::io::Result<String>| line.as_ref().is_ok_and(|line| line.contains("listening on"));
        let up = said.by_ref().find(is_up);
        assert!(up.is_some(), "sshd cannot be started (Debian: openssh-server)");
        // What it says later nobody reads, and it must not wait for a reader.
        std::thread::spawn(move || said.for_each(drop));
        Self { guard }
    }
}

fn guarded(namespace: &str, configuration: &Path) -> Child {
    let script = "ip netns exec \"$0\" /usr/sbin/sshd -D -e -f \"$1\" < /dev/null & cat > /dev/null; kill $!";
    let mut command = Command::new("sh");
    command.args(["-c", script, namespace]).arg(configuration);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a shell")
}

impl Drop for Sshd {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}
