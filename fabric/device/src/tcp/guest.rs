//! Who has connected to us and has not proven yet to be a rank of the job.

use super::dial::{Heard, nonce, send};
use super::socket::Socket;
use weft_wire::tcp::record::Session;
use weft_wire::tcp::{Call, HELLO_BYTES, Key, Nonce, PROOF_BYTES, USE};

enum Stage {
    /// Nothing is known yet.
    Silent,
    /// It has said that it is a rank, and has our nonce.
    Answered(Call, Nonce),
    /// It has proven that, and decides whether this connection is the pair's.
    Proven(Call, Nonce),
}

pub struct Guest {
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
            Stage::Silent => None,
            Stage::Answered(call, _) | Stage::Proven(call, _) => Some(call.from),
        }
    }

    /// Hears what has come. `me` is the rank that was called, of so many, which encrypts or does not; `is_new` says whether a
    /// call was never heard.
    pub fn handle_ready(
        &mut self,
        me: u32,
        size: u32,
        (key, encrypts): (&Key, bool),
        is_new: &mut impl FnMut(&Call) -> bool,
    ) -> Step {
        let session = |call: &Call, nonce: &Nonce| encrypts.then(|| Session::of_called(key, call, nonce));
        match &self.stage {
            Stage::Silent => match self.heard.read::<HELLO_BYTES>(&self.socket) {
                Ok(None) => Step::Waiting,
                Ok(Some(hello)) => match Call::from_hello(&hello, key) {
                    Ok(call) if call.to == me && call.from < size && call.from != me => {
                        // A rank makes a new nonce for each call: who repeats one is not it.
                        if !is_new(&call) {
                            return Step::Stranger;
                        }
                        // It tries again, and we have said at the start what is wrong.
                        let Ok(nonce) = nonce(encrypts) else { return Step::Gone };
                        let differs = call.encrypts != encrypts;
                        // Who wants otherwise about encryption learns it from this, and is left.
                        let call = call.with(encrypts);
                        if send(&self.socket, &call.answer(key, &nonce)).is_err() || differs {
                            return Step::Gone;
                        }
                        self.stage = Stage::Answered(call, nonce);
                        Step::Waiting
                    }
                    // A rank of the job has been led to the wrong one, which is no attack.
                    Ok(_) => Step::Gone,
                    Err(_) => Step::Stranger,
                },
                // A rank whose other attempt was faster leaves this one without a word.
                Err(_) => Step::Gone,
            },
            Stage::Answered(call, nonce) => match self.heard.read::<PROOF_BYTES>(&self.socket) {
                Ok(None) => Step::Waiting,
                Ok(Some(proof)) if call.is_proven_by(&proof, key, nonce) => {
                    let from = call.from;
                    if me < from {
                        return Step::Rank(from, session(call, nonce));
                    }
                    self.stage = Stage::Proven(*call, *nonce);
                    // What chooses comes with what proves.
                    self.handle_ready(me, size, (key, encrypts), is_new)
                }
                Ok(Some(_)) => Step::Stranger,
                Err(_) => Step::Gone,
            },
            Stage::Proven(call, nonce) => match self.heard.read::<{ USE.len() }>(&self.socket) {
                Ok(None) => Step::Waiting,
                Ok(Some(USE)) => Step::Rank(call.from, session(call, nonce)),
                Ok(Some(_)) => Step::Stranger,
                Err(_) => Step::Gone,
            },
        }
    }
}
