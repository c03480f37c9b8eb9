//! Asks the daemon of this host, one thing after the other.

use crate::{ClusterReply, Demand, MOST_LINE_BYTES, VERSION};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
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
        find(Self::begin)
    }

    /// Greets the daemon of this name, if one of these users has it: another's might be anybody's.
    fn begin(name: &str, users: &[u32]) -> io::Result<Option<Self>> {
        let Ok(stream) = UnixStream::connect_addr(&address(name)?) else { return Ok(None) };
        if !users.contains(&weft_kernel::peer(stream.as_raw_fd())?.uid) {
            return Ok(None);
        }
        let stream = BufReader::new(stream);
        let mut client = Self { stream, cluster: String::new(), member: String::new() };
        match client.ask(&greeting())? {
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
        self.stream.get_mut().write_all(&line(demand)?)
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

/// Says something to the daemon that [`ClusterClient::find`] finds, and waits for nothing: for no answer, and for no
/// daemon that hangs.
///
/// # Errors
/// It is not heard, as far as that is known at once.
pub fn announce(demand: &Demand) -> io::Result<()> {
    find(|name, users| announce_at(name, users, demand)).map(drop)
}

fn announce_at(name: &str, users: &[u32], demand: &Demand) -> io::Result<Option<()>> {
    // A socket that never waits: one whose daemon accepts nobody any more may be full.
    let socket = weft_kernel::socket(libc::AF_UNIX, libc::SOCK_STREAM)?;
    match weft_kernel::connect(socket.as_raw_fd(), &weft_kernel::Abstract::new(name.as_bytes())) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(None),
        connected => connected?,
    }
    if !users.contains(&weft_kernel::peer(socket.as_raw_fd())?.uid) {
        return Ok(None);
    }
    let mut stream = UnixStream::from(OwnedFd::from(socket));
    stream.write_all(&[line(&greeting())?, line(demand)?].concat()).map(Some)
}

/// What `reach` has of the daemon of this user, else of that of the system. It is given a name, and who may have it.
fn find<T>(reach: impl Fn(&str, &[u32]) -> io::Result<Option<T>>) -> io::Result<Option<T>> {
    let user = weft_kernel::user();
    match std::env::var(VARIABLE).ok().filter(|name| !name.is_empty()) {
        Some(off) if off == "off" => Ok(None),
        Some(name) => reach(&name, &[user, 0])?.map(Some).ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("{VARIABLE} is '{name}', but no daemon listens there"))
        }),
        None if user == 0 => reach(&socket_name(0), &[0]),
        None => match reach(&socket_name(user), &[user])? {
            Some(own) => Ok(Some(own)),
            None => reach(&socket_name(0), &[0]),
        },
    }
}

fn greeting() -> Demand {
    Demand::Begin { version: VERSION, weft: env!("CARGO_PKG_VERSION").to_owned() }
}

fn line(demand: &Demand) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(demand)?;
    line.push(b'\n');
    Ok(line)
}

/// What to say of an answer that is not the one that was asked for.
pub fn refusal(reply: ClusterReply) -> io::Error {
    io::Error::other(match reply {
        ClusterReply::Refused(reason) => reason,
        other => format!("it answered what means nothing here: {other:?}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn who_announces_waits_for_no_daemon_that_hangs() {
        let name = format!("weftd-test/{}", std::process::id());
        let me = weft_kernel::user();
        assert_eq!(announce_at(&name, &[me], &Demand::Page).expect("nobody is no error"), None);
        let daemon = UnixListener::bind_addr(&address(&name).expect("an address")).expect("bound");
        // It says nothing, and accepts nobody before this has returned.
        assert_eq!(announce_at(&name, &[me], &Demand::Page).expect("said"), Some(()));
        assert_eq!(announce_at(&name, &[me.wrapping_add(1)], &Demand::Page).expect("not said"), None);
        let mut heard = String::new();
        daemon.accept().expect("accepted").0.read_to_string(&mut heard).expect("read");
        let demands = heard.lines().map(|line| serde_json::from_str(line).expect("a demand")).collect::<Vec<Demand>>();
        assert_eq!(demands, [greeting(), Demand::Page]);
    }
}
