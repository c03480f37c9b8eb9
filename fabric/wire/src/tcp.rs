//! What two ranks say to each other over a TCP connection: who they are, that this connection is the one, and packets.
//!
//! ```text
//! who dials                         who was dialled
//! HELLO   from, to, nonce, tag  ->
//!                               <-  ANSWER  nonce, tag
//! PROOF   tag                   ->
//!         <- USE, from the lower rank of the two ->
//!         packets, in both directions, until a farewell
//! ```
//! Each tag is one under the key of the job over all that was said before it, and over the name of the step, so that no
//! tag can serve in the place of another. Where the job is encrypted, packets go in [`record`]s. `docs/wire/tcp.md`
//! shows the bytes.

pub mod record;

use crate::cell::{Claim, Head, INLINE_BYTES, decode};
use crate::siphash::{KEY_BYTES, TAG_BYTES, same, tag};

/// What every connection begins with.
pub const MAGIC: [u8; 8] = *b"weft-tcp";
/// Changes with every change of what is said.
pub const VERSION: u32 = 4;

pub const NONCE_BYTES: usize = 16;
const SIGNED_BYTES: usize = 24 + NONCE_BYTES;
pub const HELLO_BYTES: usize = SIGNED_BYTES + TAG_BYTES;
pub const ANSWER_BYTES: usize = NONCE_BYTES + TAG_BYTES;
pub const PROOF_BYTES: usize = TAG_BYTES;

/// The lower rank of a pair says that this connection is the one of the pair.
pub const USE: [u8; 8] = *b"weft-use";

pub type Key = [u8; KEY_BYTES];
pub type Nonce = [u8; NONCE_BYTES];

/// Who dials whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialling {
    pub from: u32,
    pub to: u32,
    pub nonce: Nonce,
    /// Whether what is said after the greeting is encrypted. Both sides must want the same.
    pub encrypts: bool,
}

/// Why a greeting is none of this job's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GreetingError {
    #[error("it does not speak our protocol")]
    Foreign,
    #[error("it speaks version {0} of the protocol, and this library version {VERSION}")]
    Version(u32),
    #[error("it does not know the key of the job")]
    Key,
}

impl Dialling {
    fn signed(&self) -> [u8; SIGNED_BYTES] {
        let mut bytes = [0; SIGNED_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.from.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.to.to_le_bytes());
        bytes[20] = u8::from(self.encrypts);
        bytes[24..].copy_from_slice(&self.nonce);
        bytes
    }

    pub fn hello(&self, key: &Key) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..SIGNED_BYTES].copy_from_slice(&self.signed());
        bytes[SIGNED_BYTES..].copy_from_slice(&self.tag(key, *b"hello---", &[0; NONCE_BYTES]));
        bytes
    }

    /// Reads a [`Dialling::hello`].
    ///
    /// # Errors
    /// Why it was not said by a rank of the job.
    pub fn from_hello(bytes: &[u8; HELLO_BYTES], key: &Key) -> Result<Self, GreetingError> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if bytes[..8] != MAGIC {
            return Err(GreetingError::Foreign);
        }
        if word(8) != VERSION {
            return Err(GreetingError::Version(word(8)));
        }
        if word(20) > 1 {
            return Err(GreetingError::Foreign);
        }
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&bytes[24..SIGNED_BYTES]);
        let call = Self { from: word(12), to: word(16), nonce, encrypts: word(20) == 1 };
        if same(&tail(bytes), &call.tag(key, *b"hello---", &[0; NONCE_BYTES])) {
            Ok(call)
        } else {
            Err(GreetingError::Key)
        }
    }

    /// What the one who was called says, with a nonce of its own.
    pub fn answer(&self, key: &Key, nonce: &Nonce) -> [u8; ANSWER_BYTES] {
        let mut bytes = [0; ANSWER_BYTES];
        bytes[..NONCE_BYTES].copy_from_slice(nonce);
        bytes[NONCE_BYTES..].copy_from_slice(&self.tag(key, *b"answer--", nonce));
        bytes
    }

    /// The same call from a rank that wants otherwise about encryption.
    pub fn with(self, encrypts: bool) -> Self {
        Self { encrypts, ..self }
    }

    /// The nonce of an answer to this call; `None` if it was not said by a rank of the job that wants the same.
    pub fn from_answer(&self, bytes: &[u8; ANSWER_BYTES], key: &Key) -> Option<Nonce> {
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&bytes[..NONCE_BYTES]);
        same(&tail(bytes), &self.tag(key, *b"answer--", &nonce)).then_some(nonce)
    }

    /// What the one who called says last; `nonce` is the other's.
    pub fn proof(&self, key: &Key, nonce: &Nonce) -> [u8; PROOF_BYTES] {
        self.tag(key, *b"proof---", nonce)
    }

    /// Whether the bytes prove that this call is a rank's, and one of now: it has seen our nonce.
    pub fn is_proven_by(&self, bytes: &[u8; PROOF_BYTES], key: &Key, nonce: &Nonce) -> bool {
        same(bytes, &self.proof(key, nonce))
    }

    fn tag(&self, key: &Key, step: [u8; 8], nonce: &Nonce) -> [u8; TAG_BYTES] {
        let mut text = [0; 8 + SIGNED_BYTES + NONCE_BYTES];
        text[..8].copy_from_slice(&step);
        text[8..8 + SIGNED_BYTES].copy_from_slice(&self.signed());
        text[8 + SIGNED_BYTES..].copy_from_slice(nonce);
        tag(key, &text)
    }
}

/// The key of the calls that a process of another job makes: it stands in the place of the job's key. `key` is that of
/// the process that is called, `world` and `rank` name the one that calls.
pub fn key_of_caller(key: &Key, world: u64, rank: u32) -> Key {
    let mut text = [0; 20];
    text[..8].copy_from_slice(b"foreign-");
    text[8..16].copy_from_slice(&world.to_le_bytes());
    text[16..].copy_from_slice(&rank.to_le_bytes());
    tag(key, &text)
}

/// Why a rank cannot be talked to that wants otherwise about encryption than one that `encrypts`, or does not.
pub fn differs(encrypts: bool) -> &'static str {
    match encrypts {
        true => {
            "it does not encrypt and this rank does; WEFT_ENCRYPT (--encrypt) must be the same for all ranks of a job"
        }
        false => "it encrypts and this rank does not; WEFT_ENCRYPT (--encrypt) must be the same for all ranks of a job",
    }
}

fn tail<const N: usize>(bytes: &[u8; N]) -> [u8; TAG_BYTES] {
    *bytes.last_chunk().expect("no message is shorter than a tag")
}

/// Bytes of a packet's header, without its inline payload: two words, and a third where bulk comes.
pub const HEAD_BYTES: usize = 16;
/// Most bytes without meaning before a bulk payload: who sends may want it at another place of its page.
pub const GAP_BYTES: usize = 32;
/// Most bytes of a packet before its bulk payload.
pub const FRONT_BYTES: usize = HEAD_BYTES + 8 + INLINE_BYTES + GAP_BYTES;
/// Largest bulk payload of one packet,
pub const LARGEST_PACKET: usize = 64 * 1024;
/// and of one that belongs to a stream, which is handed on as it comes. A long message should leave in few calls: where
/// sender and receiver meet at the socket each makes the other wait. 1 MiB between two namespaces took bare programs
/// 201 us in calls of 64 KiB, 165 in calls of 128, 120 in calls of 512, and 115 in one.
pub const LARGEST_STREAMED: usize = 1024 * 1024;

/// In the place of a cell's stamp.
const PACKET: u8 = b'P';
const FAREWELL: u8 = b'F';

/// The last that a rank sends before it closes.
pub const FAREWELL_BYTES: [u8; HEAD_BYTES] = [FAREWELL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// What stands before a packet's bulk payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketFront {
    bytes: [u8; FRONT_BYTES],
    length: usize,
}

impl PacketFront {
    /// `inline` is at most [`INLINE_BYTES`] long.
    #[inline]
    pub fn new(head: Head, inline: &[u8], bulk: Option<usize>) -> Self {
        let mut bytes = [0; FRONT_BYTES];
        let first = head.first_word(inline.len() as u8, bulk.is_some()) | u64::from(PACKET);
        bytes[..8].copy_from_slice(&first.to_le_bytes());
        bytes[8..16].copy_from_slice(&head.second_word().to_le_bytes());
        let mut at = HEAD_BYTES;
        if let Some(bulk) = bulk {
            bytes[at..at + 8].copy_from_slice(&(bulk as u64).to_le_bytes());
            at += 8;
        }
        bytes[at..at + inline.len()].copy_from_slice(inline);
        Self { bytes, length: at + inline.len() }
    }

    /// The same with a gap of [`GAP_BYTES`] before the bulk payload, which there is.
    #[inline]
    pub fn with_gap(mut self) -> Self {
        self.bytes[HEAD_BYTES + 4] = GAP_BYTES as u8;
        self.length += GAP_BYTES;
        self
    }

    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// A bulk payload in received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bulk {
    pub at: usize,
    pub bytes: usize,
}

impl Bulk {
    pub fn end(&self) -> usize {
        self.at + self.bytes
    }
}

/// What stands at the beginning of received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpFrame {
    /// A packet: its header, where its inline payload begins, and its bulk payload, with which it ends.
    Packet {
        claim: Claim,
        inline_at: usize,
        bulk: Option<Bulk>,
    },
    /// The same, of which the end of the bulk payload has not come.
    Begun {
        claim: Claim,
        inline_at: usize,
        bulk: Bulk,
    },
    Farewell,
    /// So many bytes are needed before more can be said.
    Partial {
        needed: usize,
    },
}

impl TcpFrame {
    /// Looks at the beginning of `bytes`.
    ///
    /// # Errors
    /// What rule they break.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let Some(head) = bytes.first_chunk::<HEAD_BYTES>() else { return Ok(Self::Partial { needed: HEAD_BYTES }) };
        let [first, second] = [word(head, 0), word(head, 8)];
        match first as u8 {
            PACKET => {}
            FAREWELL if *head == FAREWELL_BYTES => return Ok(Self::Farewell),
            _ => return Err("bytes between two packets"),
        }
        let claim = decode(first, second).ok_or("a header with an unknown kind, length or flag")?;
        let inline_at = if claim.bulk { HEAD_BYTES + 8 } else { HEAD_BYTES };
        let front = inline_at + claim.inline_bytes as usize;
        if bytes.len() < front {
            return Ok(Self::Partial { needed: front });
        }
        if !claim.bulk {
            return Ok(Self::Packet { claim, inline_at, bulk: None });
        }
        let lengths = word(bytes, HEAD_BYTES);
        let (length, gap) = (lengths as u32 as usize, (lengths >> 32) as usize);
        let most = if claim.head.kind.is_streamed() { LARGEST_STREAMED } else { LARGEST_PACKET };
        if length > most || length == 0 || gap > GAP_BYTES {
            return Err("a bulk length outside of what one packet holds");
        }
        let bulk = Bulk { at: front + gap, bytes: length };
        match bytes.len() < bulk.end() {
            true => Ok(Self::Begun { claim, inline_at, bulk }),
            false => Ok(Self::Packet { claim, inline_at, bulk: Some(bulk) }),
        }
    }
}

/// The eight bytes from `at` on as a number.
#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests;
