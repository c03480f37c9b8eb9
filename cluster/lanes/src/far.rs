//! What serves the connections to other hosts, as the rendezvous sees it. Who starts the rendezvous brings it along.

use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;
use weft_wire::stream::datagram::DatagramPeer;
use weft_wire::stream::packet::{Answer, SlotSide};

/// A process, as the rendezvous numbers it.
pub type Client = u64;

/// What a process is to be told, in this order. Descriptors are the guardian's.
#[derive(Debug)]
pub struct ProcessMail {
    pub client: Client,
    pub place: SlotSide,
    pub packets: Vec<(Answer, Option<RawFd>)>,
}

/// What is to be said after a turn.
#[derive(Debug, Default)]
pub struct FarTurn {
    pub mails: Vec<ProcessMail>,
    /// Processes that are to look at their connections: each is called by a signal.
    pub calls: Vec<Client>,
}

/// A connection to another host.
#[derive(Clone, Debug)]
pub struct FarConnection {
    pub client: Client,
    /// Of the end here, and the other end.
    pub port: u16,
    pub peer: DatagramPeer,
    /// Sent by the end here, and by the other one.
    pub bytes: [u64; 2],
}

/// Nothing here waits. The descriptor is readable when a turn is wanted.
pub trait Guardian: AsRawFd {
    /// Whether a connection between these addresses is one for it.
    fn leads(&self, local: SocketAddr, remote: SocketAddr) -> bool;

    /// A process has shown its end (local, remote) of such a connection.
    fn offer(&mut self, client: Client, cookie: u64, anchor: OwnedFd, ends: [SocketAddr; 2]);

    /// A process closes an end that it has shown.
    fn withdraw(&mut self, client: Client, cookie: u64);

    /// A process gives a place back. False where its arena is not the guardian's.
    fn release(&mut self, client: Client, place: &SlotSide) -> bool;

    /// A process that lives on has lost its way to us: it hears no mail. True where it has connections that go on
    /// without; when it has ended [`Self::leave`] follows.
    fn fall_silent(&mut self, client: Client) -> bool;

    /// A process has ended, in whatever way, or has become another program.
    fn leave(&mut self, client: Client);

    /// When a turn is wanted, whether the descriptor is readable or not; `None` while there is nothing to do.
    fn until_turn(&self) -> Option<Duration>;

    /// Does what is to be done now.
    fn turn(&mut self) -> FarTurn;

    /// This mail could not be handed out.
    fn untold(&mut self, client: Client, place: &SlotSide);

    fn connections(&self) -> Vec<FarConnection>;
}
