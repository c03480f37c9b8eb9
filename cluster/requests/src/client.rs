//! Asks the daemon of this host, one thing after the other.

use crate::{ClusterReply, Demand, MOST_LINE_BYTES, VERSION};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

/// Names the daemon's socket instead of those that [`socket_name`] gives, or says `off`.
pub const VARIABLE: &str = "WEFT_DAEMON";
/// How long a daemon may take for an answer that needs nobody else.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the daemon that `user` has started is found on its host: in no file system, so nothing stays behind.
pub fn socket_name(user: u32) -> String {
    format!("weftd/{user}")
}

/// # Errors
/// The name is too long.
pub fn address(name: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(name)
}

/// A connection to a daemon, which has welcomed us.
#[derive(Debug)]
pub struct ClusterClient {
    stream: BufReader<UnixStream>,
    /// The daemon's cluster, and the member that it is.
    pub cluster: String,
    pub member: String,
}

impl ClusterClient {
    /// The daemon of this user, else that of the system; none where there is neither, or the environment says `off`.
    ///
    /// # Errors
    /// There is one that does not answer as it must.
    pub fn find() -> io::Result<Option<Self>> {
        let user = weft_kernel::user();
        match std::env::var(VARIABLE).ok().filter(|name| !name.is_empty()) {
            Some(off) if off == "off" => Ok(None),
            Some(name) => Self::begin(&name, &[user, 0])?.map(Some).ok_or_else(|| {
                io::Error::new(io::ErrorKind::NotFound, format!("{VARIABLE} is '{name}', but no daemon listens there"))
            }),
            None if user == 0 => Self::begin(&socket_name(0), &[0]),
            None => match Self::begin(&socket_name(user), &[user])? {
                Some(own) => Ok(Some(own)),
                None => Self::begin(&socket_name(0), &[0]),
            },
        }
    }

    /// Greets the daemon of this name, if one of these users has it: another's might be anybody's.
    fn begin(name: &str, users: &[u32]) -> io::Result<Option<Self>> {
        let Ok(stream) = UnixStream::connect_addr(&address(name)?) else { return Ok(None) };
        if !users.contains(&weft_kernel::peer(stream.as_raw_fd())?.uid) {
            return Ok(None);
        }
        let stream = BufReader::new(stream);
        let mut client = Self { stream, cluster: String::new(), member: String::new() };
        let weft = env!("CARGO_PKG_VERSION").to_owned();
        match client.ask(&Demand::Begin { version: VERSION, weft })? {
            ClusterReply::Welcome { cluster, member, .. } => Ok(Some(Self { cluster, member, ..client })),
            other => Err(refusal(other)),
        }
    }

    /// Asks, and waits for the answer for a while.
    ///
    /// # Errors
    /// The daemon has gone, or says nothing.
    pub fn ask(&mut self, demand: &Demand) -> io::Result<ClusterReply> {
        self.tell(demand)?;
        self.reply()
    }

    /// The same without waiting: [`reply`](Self::reply) has the answer later.
    ///
    /// # Errors
    /// The daemon has gone.
    pub fn tell(&mut self, demand: &Demand) -> io::Result<()> {
        self.stream.get_ref().set_read_timeout(Some(PATIENCE))?;
        self.say(demand)
    }

    /// Asks for what may take long: [`reply`](Self::reply) waits for the answers without end.
    ///
    /// # Errors
    /// The daemon has gone.
    pub fn begin_asking(&mut self, demand: &Demand) -> io::Result<()> {
        self.stream.get_ref().set_read_timeout(None)?;
        self.say(demand)
    }

    fn say(&mut self, demand: &Demand) -> io::Result<()> {
        let mut line = serde_json::to_vec(demand)?;
        line.push(b'\n');
        self.stream.get_mut().write_all(&line)
    }

    /// The next answer.
    ///
    /// # Errors
    /// The daemon has gone, or says what nobody understands.
    pub fn reply(&mut self) -> io::Result<ClusterReply> {
        let mut line = Vec::new();
        let mut bounded = (&mut self.stream).take(MOST_LINE_BYTES as u64);
        match bounded.read_until(b'\n', &mut line) {
            Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the daemon has ended the connection")),
            Ok(_) => Ok(serde_json::from_slice(&line)?),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                Err(io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {} s", PATIENCE.as_secs())))
            }
            Err(error) => Err(error),
        }
    }
}

/// What to say of an answer that is not the one that was asked for.
pub fn refusal(reply: ClusterReply) -> io::Error {
    io::Error::other(match reply {
        ClusterReply::Refused(reason) => reason,
        other => format!("it answered what means nothing here: {other:?}"),
    })
}
