//! Who has connected to us and has not proven yet to be a rank of the job.

use super::book::{Book, Caller, Found};
use super::dial::{Heard, nonce, send};
use super::socket::{Read, Socket};
use weft_wire::tcp::record::Session;
use weft_wire::tcp::{Call, HELLO_BYTES, Nonce, PROOF_BYTES, USE};

enum Stage {
    /// Nothing is known yet.
    Silent,
    /// It has said something under a key that we do not know yet.
    Unknown([u8; HELLO_BYTES]),
    /// It has said that it is a rank, and has our nonce.
    Answered(Caller, Call, Nonce),
    /// It has proven that, and decides whether this connection is the pair's.
    Proven(Caller, Call, Nonce),
}

pub(super) struct Guest {
    socket: Socket,
    stage: Stage,
    heard: Heard,
    since_ns: u64,
}

/// What a guest turns out to be.
pub enum Step {
    /// Not known yet.
    Waiting,
    /// The rank that has called. It has proven itself, and if it is the lower one of the pair has chosen this connection.
    Rank(u32, Option<Session>),
    /// Gone, as who has tried several ways leaves the others.
    Gone,
    Stranger,
}

impl Guest {
    pub fn new(socket: Socket, now_ns: u64) -> Self {
        Self { socket, stage: Stage::Silent, heard: Heard::default(), since_ns: now_ns }
    }

    pub fn since_ns(&self) -> u64 {
        self.since_ns
    }

    pub fn into_socket(self) -> Socket {
        self.socket
    }

    /// The rank that it says to be; one that knows the key has said so.
    pub fn rank(&self) -> Option<u32> {
        match &self.stage {
            Stage::Silent | Stage::Unknown(_) => None,
            Stage::Answered(caller, ..) | Stage::Proven(caller, ..) => Some(caller.peer),
        }
    }

    /// Whether it has said something that may be understood later.
    pub fn is_unknown(&self) -> bool {
        matches!(self.stage, Stage::Unknown(_))
    }

    /// Looks again at what it has said, which is understood now or never.
    pub fn reconsider(&mut self, book: &Book, is_new: &mut dyn FnMut(&Call) -> bool) -> Step {
        match self.stage {
            Stage::Unknown(hello) => self.on_hello(&hello, book, is_new),
            _ => Step::Waiting,
        }
    }

    /// Hears what has come; `is_new` says whether a call was never heard.
    pub fn handle_ready(&mut self, book: &Book, is_new: &mut dyn FnMut(&Call) -> bool) -> Step {
        let session = |caller: &Caller, call: &Call, nonce: &Nonce| {
            book.badge.encrypts.then(|| Session::of_called(&caller.key, call, nonce))
        };
        match &self.stage {
            Stage::Silent => match self.heard.read::<HELLO_BYTES>(&self.socket) {
                Ok(None) => Step::Waiting,
                Ok(Some(hello)) => self.on_hello(&hello, book, is_new),
                // A rank whose other attempt was faster leaves this one without a word.
                Err(_) => Step::Gone,
            },
            // Nothing more is said before we answer.
            Stage::Unknown(_) => match self.socket.read(&mut [0]) {
                Ok(Read::Nothing) => Step::Waiting,
                Ok(Read::Bytes(_)) => Step::Stranger,
                Ok(Read::End) | Err(_) => Step::Gone,
            },
            Stage::Answered(caller, call, nonce) => match self.heard.read::<PROOF_BYTES>(&self.socket) {
                Ok(None) => Step::Waiting,
                Ok(Some(proof)) if call.is_proven_by(&proof, &caller.key, nonce) => {
                    if caller.we_lead {
                        return Step::Rank(caller.peer, session(caller, call, nonce));
                    }
                    self.stage = Stage::Proven(*caller, *call, *nonce);
                    // What chooses comes with what proves.
                    self.handle_ready(book, is_new)
                }
                Ok(Some(_)) => Step::Stranger,
                Err(_) => Step::Gone,
            },
            Stage::Proven(caller, call, nonce) => match self.heard.read::<{ USE.len() }>(&self.socket) {
                Ok(None) => Step::Waiting,
                Ok(Some(USE)) => Step::Rank(caller.peer, session(caller, call, nonce)),
                Ok(Some(_)) => Step::Stranger,
                Err(_) => Step::Gone,
            },
        }
    }

    fn on_hello(&mut self, hello: &[u8; HELLO_BYTES], book: &Book, is_new: &mut dyn FnMut(&Call) -> bool) -> Step {
        let (caller, call) = match book.find(hello) {
            Found::Caller(caller, call) => (caller, call),
            // A rank of the job has been led to the wrong one, which is no attack.
            Found::Misled => return Step::Gone,
            Found::Unknown => {
                self.stage = Stage::Unknown(*hello);
                return Step::Waiting;
            }
            Found::Stranger => return Step::Stranger,
        };
        // A rank makes a new nonce for each call: who repeats one is not it.
        if !is_new(&call) {
            return Step::Stranger;
        }
        // It tries again, and we have said at the start what is wrong.
        let Ok(nonce) = nonce(book.badge.encrypts) else { return Step::Gone };
        let differs = call.encrypts != book.badge.encrypts;
        // Who wants otherwise about encryption learns it from this, and is left.
        let call = call.with(book.badge.encrypts);
        if send(&self.socket, &call.answer(&caller.key, &nonce)).is_err() || differs {
            return Step::Gone;
        }
        self.stage = Stage::Answered(caller, call, nonce);
        Step::Waiting
    }
}
