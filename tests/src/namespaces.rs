//! Hosts for a test: network namespaces with a prefix of this process, gone when it is gone, however it ends.

use crate::root;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// Namespaces that live as long as this value, or the process.
pub struct Namespaces {
    prefix: String,
    /// Deletes them when its standard input ends, also when we are killed.
    guard: Child,
}

impl Namespaces {
    /// Makes `count` of them, joined by a network of their own.
    ///
    /// # Panics
    /// Where that is not permitted.
    pub fn up(prefix: &str, count: usize) -> Self {
        Self::made(prefix, &["guard", prefix, &count.to_string()])
    }

    /// Makes two of them with nothing but a cable between them, which have addresses of both families.
    ///
    /// # Panics
    /// As [`Self::up`].
    pub fn cable(prefix: &str) -> Self {
        Self::made(prefix, &["cable", prefix])
    }

    fn made(prefix: &str, words: &[&str]) -> Self {
        let script = root().join("tests/namespaces.sh");
        let mut command = Command::new("sh");
        command.arg(script).args(words);
        let mut guard = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell");
        let mut said = String::new();
        BufReader::new(guard.stdout.take().expect("piped")).read_line(&mut said).expect("text");
        assert_eq!(said, "up\n", "network namespaces cannot be made here (root may, with iproute2 installed)");
        Self { prefix: prefix.to_owned(), guard }
    }

    /// Two that all tests of this process use.
    pub fn pair() -> &'static Self {
        static PAIR: OnceLock<Namespaces> = OnceLock::new();
        PAIR.get_or_init(|| Self::up(&format!("wt{}x", std::process::id()), 2))
    }

    /// The name of host `number`, from 1.
    pub fn name(&self, number: usize) -> String {
        format!("{}{number}", self.prefix)
    }

    /// The namespace of what is between them.
    pub fn switch(&self) -> String {
        format!("{}-switch", self.prefix)
    }

    /// The address of host `number`, from 1.
    pub fn address(&self, number: usize) -> std::net::IpAddr {
        std::net::Ipv4Addr::new(10, 77, 0, number as u8).into()
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}
