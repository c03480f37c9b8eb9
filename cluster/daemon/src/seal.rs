//! A sealed connection: both ends have proved that they know a secret, and nobody between them reads or changes a byte.
//!
//! The Noise protocol (`NNpsk0`, revision 34) does it: the secret is the cluster's key between daemons, and that of a
//! ticket where a job enters a host. Keys are new for each connection, so what was recorded stays unreadable when the
//! secret is known later. Before the handshake the one who connects says in the open what it wants ([`Preamble`]), and
//! the handshake covers that.
//!
//! On the wire, after the preamble: records of two bytes for the length, highest first, and so many sealed bytes.

use anyhow::{Context, Result, bail};
use snow::{Builder, HandshakeState, StatelessTransportState};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
/// The longest record of the protocol, and what of it the seal takes.
const MOST_RECORD_BYTES: usize = 65535;
const SEAL_BYTES: usize = 16;
/// The most that one record carries.
pub const MOST_PART_BYTES: usize = MOST_RECORD_BYTES - SEAL_BYTES;

const MAGIC: &[u8; 5] = b"weftd";
/// Of everything that daemons say to each other.
pub const VERSION: u8 = 1;
pub const PREAMBLE_BYTES: usize = 24;

pub type Secret = [u8; 32];
pub type TicketId = [u8; 16];

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preamble {
    /// A daemon of the cluster asks.
    Daemon,
    /// A job enters, with this ticket.
    Ticket(TicketId),
}

/// Why a preamble is none.
#[derive(Debug, PartialEq, Eq)]
pub enum NoPreamble {
    Stranger,
    Version(u8),
}

impl Preamble {
    pub fn bytes(self) -> [u8; PREAMBLE_BYTES] {
        let mut bytes = [0; PREAMBLE_BYTES];
        bytes[..5].copy_from_slice(MAGIC);
        bytes[5] = VERSION;
        if let Self::Ticket(id) = self {
            bytes[6] = 1;
            bytes[8..].copy_from_slice(&id);
        }
        bytes
    }

    pub fn read(bytes: &[u8; PREAMBLE_BYTES]) -> Result<Self, NoPreamble> {
        if !bytes.starts_with(MAGIC) {
            return Err(NoPreamble::Stranger);
        }
        if bytes[5] != VERSION {
            return Err(NoPreamble::Version(bytes[5]));
        }
        let mut id = [0; 16];
        id.copy_from_slice(&bytes[8..]);
        match bytes[6] {
            0 => Ok(Self::Daemon),
            1 => Ok(Self::Ticket(id)),
            _ => Err(NoPreamble::Stranger),
        }
    }
}

pub struct SealedReader {
    stream: OwnedReadHalf,
    state: Rc<StatelessTransportState>,
    nonce: u64,
    record: Vec<u8>,
}

pub struct SealedWriter {
    stream: OwnedWriteHalf,
    state: Rc<StatelessTransportState>,
    nonce: u64,
    record: Vec<u8>,
}

/// The side that has connected.
///
/// # Errors
/// The other side does not know the secret, or is gone.
pub async fn initiate(mut stream: TcpStream, what: Preamble, secret: &Secret) -> Result<(SealedReader, SealedWriter)> {
    let preamble = what.bytes();
    let mut noise = builder(&preamble, secret)?.build_initiator()?;
    stream.write_all(&preamble).await?;
    send(&mut stream, &mut noise).await?;
    receive(&mut stream, &mut noise).await.context("it does not know the key, or is no daemon of this version")?;
    finish(stream, noise)
}

/// The side that was connected to, and has read the preamble.
///
/// # Errors
/// The other side does not know the secret, or is gone.
pub async fn respond(mut stream: TcpStream, what: Preamble, secret: &Secret) -> Result<(SealedReader, SealedWriter)> {
    let preamble = what.bytes();
    let mut noise = builder(&preamble, secret)?.build_responder()?;
    receive(&mut stream, &mut noise).await.context("a stranger, or another key")?;
    send(&mut stream, &mut noise).await?;
    finish(stream, noise)
}

/// A connection that ends when the other host has answered nothing for so long.
///
/// # Errors
/// The system refuses.
pub fn watched(stream: TcpStream, silence: Duration) -> Result<TcpStream> {
    let alive = socket2::TcpKeepalive::new().with_time(silence / 3).with_interval(silence / 3).with_retries(2);
    let socket = socket2::SockRef::from(&stream);
    socket.set_tcp_keepalive(&alive)?;
    socket.set_tcp_user_timeout(Some(silence))?;
    Ok(stream)
}

fn builder<'a>(preamble: &'a [u8], secret: &'a Secret) -> Result<Builder<'a>> {
    Ok(Builder::new(PATTERN.parse()?).psk(0, secret)?.prologue(preamble)?)
}

async fn send(stream: &mut TcpStream, noise: &mut HandshakeState) -> Result<()> {
    let mut record = [0; 256];
    let bytes = noise.write_message(&[], &mut record[2..])?;
    record[..2].copy_from_slice(&(bytes as u16).to_be_bytes());
    Ok(stream.write_all(&record[..2 + bytes]).await?)
}

async fn receive(stream: &mut TcpStream, noise: &mut HandshakeState) -> Result<()> {
    let mut record = [0; 256];
    let bytes = usize::from(stream.read_u16().await?);
    let Some(place) = record.get_mut(..bytes) else { bail!("a handshake of {bytes} bytes") };
    stream.read_exact(place).await?;
    noise.read_message(place, &mut [0; 256])?;
    Ok(())
}

fn finish(stream: TcpStream, noise: HandshakeState) -> Result<(SealedReader, SealedWriter)> {
    let state = Rc::new(noise.into_stateless_transport_mode()?);
    stream.set_nodelay(true)?;
    let (reader, writer) = stream.into_split();
    Ok((
        SealedReader { stream: reader, state: Rc::clone(&state), nonce: 0, record: Vec::new() },
        SealedWriter { stream: writer, state, nonce: 0, record: Vec::new() },
    ))
}

impl SealedReader {
    /// The next part, as it was written; `None` at the end.
    ///
    /// # Errors
    /// The connection is broken, or somebody has changed it.
    pub async fn read(&mut self) -> Result<Option<Vec<u8>>> {
        let bytes = match self.stream.read_u16().await {
            Ok(bytes) => usize::from(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        self.record.resize(bytes, 0);
        self.stream.read_exact(&mut self.record).await?;
        let mut part = vec![0; bytes];
        let length = self.state.read_message(self.nonce, &self.record, &mut part)?;
        self.nonce += 1;
        part.truncate(length);
        Ok(Some(part))
    }
}

impl SealedReader {
    /// Reads what is of no use any more, until the other side closes.
    pub async fn drain(&mut self) {
        let mut place = [0; 4096];
        while let Ok(1..) = self.stream.read(&mut place).await {}
    }
}

impl SealedWriter {
    /// Writes one part of at most [`MOST_PART_BYTES`].
    ///
    /// # Errors
    /// The connection is broken.
    pub async fn write(&mut self, part: &[u8]) -> Result<()> {
        self.record.resize(2 + part.len() + SEAL_BYTES, 0);
        let bytes = self.state.write_message(self.nonce, part, &mut self.record[2..])?;
        self.nonce += 1;
        self.record[..2].copy_from_slice(&(bytes as u16).to_be_bytes());
        Ok(self.stream.write_all(&self.record[..2 + bytes]).await?)
    }

    /// Says that nothing more comes.
    pub async fn close(&mut self) {
        let _ = self.stream.shutdown().await;
    }
}

/// A message of any length: its parts, each with a byte that says whether more follow.
pub mod message {
    use super::*;

    /// The longest.
    const MOST_BYTES: usize = 32 << 20;

    /// # Errors
    /// The connection is broken.
    pub async fn write(writer: &mut SealedWriter, bytes: &[u8]) -> Result<()> {
        let parts = bytes.chunks(MOST_PART_BYTES - 1);
        let last = parts.len().saturating_sub(1);
        for (at, part) in parts.enumerate() {
            let mut whole = Vec::with_capacity(1 + part.len());
            whole.push(u8::from(at < last));
            whole.extend_from_slice(part);
            writer.write(&whole).await?;
        }
        // Most connections are idle most of the time, and a server has many.
        writer.record = Vec::new();
        Ok(())
    }

    /// # Errors
    /// The connection is broken, or says more than anybody may.
    pub async fn read(reader: &mut SealedReader) -> Result<Option<Vec<u8>>> {
        let mut all = Vec::new();
        loop {
            let Some(part) = reader.read().await? else { return Ok(None) };
            let Some((more, part)) = part.split_first() else { bail!("an empty part") };
            all.extend_from_slice(part);
            if all.len() > MOST_BYTES {
                bail!("a message of more than {} MiB", MOST_BYTES >> 20);
            }
            if *more == 0 {
                reader.record = Vec::new();
                return Ok(Some(all));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run<F: Future<Output = ()>>(test: F) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(test);
    }

    async fn meet(left: Secret, right: Secret) -> [Result<(SealedReader, SealedWriter)>; 2] {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let what = Preamble::Ticket([7; 16]);
        let near = async { initiate(TcpStream::connect(address).await?, what, &left).await };
        let far = async {
            let (mut stream, _) = listener.accept().await?;
            let mut preamble = [0; PREAMBLE_BYTES];
            stream.read_exact(&mut preamble).await?;
            assert_eq!(Preamble::read(&preamble), Ok(what));
            respond(stream, what, &right).await
        };
        let (near, far) = tokio::join!(near, far);
        [near, far]
    }

    #[test]
    fn long_and_short_messages_come_as_they_were_sent() {
        run(async {
            let [near, far] = meet([1; 32], [1; 32]).await.map(|side| side.expect("both know the secret"));
            let (mut writer, mut reader) = (near.1, far.0);
            let long: Vec<u8> = (0..200_000_u32).map(|at| at as u8).collect();
            for bytes in [&b"x"[..], &long, &long[..MOST_PART_BYTES - 1]] {
                let (sent, come) = tokio::join!(message::write(&mut writer, bytes), message::read(&mut reader));
                sent.expect("sent");
                assert_eq!(come.expect("come").as_deref(), Some(bytes));
            }
            writer.close().await;
            assert_eq!(reader.read().await.expect("closed"), None);
        });
    }

    #[test]
    fn who_does_not_know_the_secret_hears_nothing() {
        run(async {
            let [near, far] = meet([1; 32], [2; 32]).await;
            assert!(near.is_err() && far.is_err());
        });
    }

    #[test]
    fn a_preamble_of_another_version_is_told_from_noise() {
        let mut bytes = Preamble::Daemon.bytes();
        assert_eq!(Preamble::read(&bytes), Ok(Preamble::Daemon));
        bytes[5] = 9;
        assert_eq!(Preamble::read(&bytes), Err(NoPreamble::Version(9)));
        assert_eq!(Preamble::read(b"GET / HTTP/1.1\r\nHost: xy"), Err(NoPreamble::Stranger));
    }
}
