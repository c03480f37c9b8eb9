//! Who has connected to us and has not proven yet to be a rank of the job.

use super::book::{Book, Caller, FoundPeer};
use super::dial::{GreetingBytes, nonce, send};
use super::socket::{Read, TcpSocket};
use weft_wire::tcp::record::RecordKeys;
use weft_wire::tcp::{Dialling, HELLO_BYTES, Nonce, PROOF_BYTES, USE};

enum GuestStage {
    /// Nothing is known yet.
    Silent,
    /// It has said something under a key that we do not know yet.
    Unknown([u8; HELLO_BYTES]),
    /// It has said that it is a rank, and has our nonce.
    Answered(Caller, Dialling, Nonce),
    /// It has proven that, and decides whether this connection is the pair's.
    Proven(Caller, Dialling, Nonce),
}

pub(super) struct Guest {
    socket: TcpSocket,
    stage: GuestStage,
    heard: GreetingBytes,
    since_ns: u64,
}

/// What a guest turns out to be.
pub enum GuestStep {
    /// Not known yet.
    Waiting,
    /// The rank that has called. It has proven itself, and if it is the lower one of the pair has chosen this
    /// connection.
    Rank(u32, Option<RecordKeys>),
    /// Gone, as who has tried several ways leaves the others.
    Gone,
    Stranger,
}

impl Guest {
    pub fn new(socket: TcpSocket, now_ns: u64) -> Self {
        Self { socket, stage: GuestStage::Silent, heard: GreetingBytes::default(), since_ns: now_ns }
    }

    pub fn since_ns(&self) -> u64 {
        self.since_ns
    }

    pub fn into_socket(self) -> TcpSocket {
        self.socket
    }

    /// The rank that it says to be; one that knows the key has said so.
    pub fn rank(&self) -> Option<u32> {
        match &self.stage {
            GuestStage::Silent | GuestStage::Unknown(_) => None,
            GuestStage::Answered(caller, ..) | GuestStage::Proven(caller, ..) => Some(caller.peer),
        }
    }

    /// Whether it has said something that may be understood later.
    pub fn is_unknown(&self) -> bool {
        matches!(self.stage, GuestStage::Unknown(_))
    }

    /// Looks again at what it has said, which is understood now or never.
    pub fn reconsider(&mut self, book: &Book, is_new: &mut dyn FnMut(&Dialling) -> bool) -> GuestStep {
        match self.stage {
            GuestStage::Unknown(hello) => self.on_hello(&hello, book, is_new),
            _ => GuestStep::Waiting,
        }
    }

    /// Hears what has come; `is_new` says whether a call was never heard.
    pub fn handle_ready(&mut self, book: &Book, is_new: &mut dyn FnMut(&Dialling) -> bool) -> GuestStep {
        let session = |caller: &Caller, call: &Dialling, nonce: &Nonce| {
            book.badge.encrypts.then(|| RecordKeys::of_called(&caller.key, call, nonce))
        };
        match &self.stage {
            GuestStage::Silent => match self.heard.read::<HELLO_BYTES>(&self.socket) {
                Ok(None) => GuestStep::Waiting,
                Ok(Some(hello)) => self.on_hello(&hello, book, is_new),
                // A rank whose other attempt was faster leaves this one without a word.
                Err(_) => GuestStep::Gone,
            },
            // Nothing more is said before we answer.
            GuestStage::Unknown(_) => match self.socket.read(&mut [0]) {
                Ok(Read::Nothing) => GuestStep::Waiting,
                Ok(Read::Bytes(_)) => GuestStep::Stranger,
                Ok(Read::End) | Err(_) => GuestStep::Gone,
            },
            GuestStage::Answered(caller, call, nonce) => match self.heard.read::<PROOF_BYTES>(&self.socket) {
                Ok(None) => GuestStep::Waiting,
                Ok(Some(proof)) if call.is_proven_by(&proof, &caller.key, nonce) => {
                    if caller.we_lead {
                        return GuestStep::Rank(caller.peer, session(caller, call, nonce));
                    }
                    self.stage = GuestStage::Proven(*caller, *call, *nonce);
                    // What chooses comes with what proves.
                    self.handle_ready(book, is_new)
                }
                Ok(Some(_)) => GuestStep::Stranger,
                Err(_) => GuestStep::Gone,
            },
            GuestStage::Proven(caller, call, nonce) => match self.heard.read::<{ USE.len() }>(&self.socket) {
                Ok(None) => GuestStep::Waiting,
                Ok(Some(USE)) => GuestStep::Rank(caller.peer, session(caller, call, nonce)),
                Ok(Some(_)) => GuestStep::Stranger,
                Err(_) => GuestStep::Gone,
            },
        }
    }

    fn on_hello(
        &mut self,
        hello: &[u8; HELLO_BYTES],
        book: &Book,
        is_new: &mut dyn FnMut(&Dialling) -> bool,
    ) -> GuestStep {
        let (caller, call) = match book.find(hello) {
            FoundPeer::Caller(caller, call) => (caller, call),
            // A rank of the job has been led to the wrong one, which is no attack.
            FoundPeer::Misled => return GuestStep::Gone,
            FoundPeer::Unknown => {
                self.stage = GuestStage::Unknown(*hello);
                return GuestStep::Waiting;
            }
            FoundPeer::Stranger => return GuestStep::Stranger,
        };
        // A rank makes a new nonce for each call: who repeats one is not it.
        if !is_new(&call) {
            return GuestStep::Stranger;
        }
        // It tries again, and we have said at the start what is wrong.
        let Ok(nonce) = nonce(book.badge.encrypts) else { return GuestStep::Gone };
        let differs = call.encrypts != book.badge.encrypts;
        // Who wants otherwise about encryption learns it from this, and is left.
        let call = call.with(book.badge.encrypts);
        if send(&self.socket, &call.answer(&caller.key, &nonce)).is_err() || differs {
            return GuestStep::Gone;
        }
        self.stage = GuestStage::Answered(caller, call, nonce);
        GuestStep::Waiting
    }
}
