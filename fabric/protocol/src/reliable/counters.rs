//! What a link counts.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReliableCounters {
    pub datagrams_sent: u64,
    pub datagrams_received: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// Packets that were accepted, and that were handed on.
    pub packets_sent: u64,
    pub packets_received: u64,
    /// Datagrams that carried only an acknowledgement.
    pub acks_sent: u64,
    /// Datagrams that counted as lost, and those of them that had arrived.
    pub lost: u64,
    pub overtaken: u64,
    /// Bytes of payload that were sent again.
    pub bytes_sent_again: u64,
    /// Questions to a peer that had not answered.
    pub questions: u64,
    /// How often the path swallowed large datagrams.
    pub black_holes: u64,
    /// Datagrams that brought nothing new of the stream.
    pub duplicates: u64,
    /// Dropped: no datagram of this version.
    pub malformed: u64,
    /// Dropped: from or to somebody else.
    pub strangers: u64,
    /// Dropped: from or to an earlier process of the rank.
    pub stale: u64,
    /// Dropped: the packet number has been here before.
    pub replayed: u64,
    /// Dropped: the seal is wrong. Forged, or corrupted.
    pub forged: u64,
    /// Dropped: more than the credit allows.
    pub beyond_credit: u64,
}
