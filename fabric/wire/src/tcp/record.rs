//! What goes over a connection that is encrypted: records, each a piece of what would go there otherwise.
//!
//! | at | type | what |
//! |---|---|---|
//! | 0 | u32 | *n*, bytes of the piece, 1 to [`MOST_BYTES`] |
//! | 4 | *n* bytes | the piece, encrypted |
//! | then | 16 bytes | tag over it and the first four bytes |
//!
//! Each direction of a connection has a key of its own, made from the nonces of both sides ([`RecordKeys`]). The nonce
//! of a record is its number in its direction, from 0 on: 8 bytes, and 4 zeros.

use super::{Dialling, FRONT_BYTES, Key, LARGEST_PACKET, Nonce};
use crate::cipher::{self, Cipher, TAG_BYTES};
use crate::siphash::tag;

/// The longest piece.
pub const MOST_BYTES: usize = LARGEST_PACKET + FRONT_BYTES;
const HEAD_BYTES: usize = 4;
/// The longest record.
pub const LONGEST: usize = HEAD_BYTES + MOST_BYTES + TAG_BYTES;

/// The keys of one connection, as one side uses them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RecordKeys {
    pub sends: Key,
    pub receives: Key,
}

impl RecordKeys {
    /// For who has dialled. `nonce` is that of the answer; no other connection has both nonces.
    pub fn of_caller(job: &Key, call: &Dialling, nonce: &Nonce) -> Self {
        let key = |direction: u8| {
            let mut text = *b"weft record .................................";
            text[12] = direction;
            text[13..29].copy_from_slice(&call.nonce);
            text[29..45].copy_from_slice(nonce);
            tag(job, &text)
        };
        Self { sends: key(1), receives: key(2) }
    }

    /// For who was dialled.
    pub fn of_called(job: &Key, call: &Dialling, nonce: &Nonce) -> Self {
        let Self { sends, receives } = Self::of_caller(job, call, nonce);
        Self { sends: receives, receives: sends }
    }
}

/// One direction, at either end.
struct RecordDirection {
    cipher: Cipher,
    /// Records so far.
    count: u64,
}

impl RecordDirection {
    fn new(key: &Key) -> Self {
        Self { cipher: Cipher::new(key), count: 0 }
    }

    fn next(&mut self) -> cipher::Nonce {
        let mut nonce = cipher::Nonce::default();
        nonce[..8].copy_from_slice(&self.count.to_le_bytes());
        self.count += 1;
        nonce
    }
}

/// The sending end.
pub struct Sealing(RecordDirection);

impl Sealing {
    pub fn new(key: &Key) -> Self {
        Self(RecordDirection::new(key))
    }

    /// Appends the record of a piece, which is `first` and `second` together, 1 to [`MOST_BYTES`] long.
    pub fn seal(&mut self, first: &[u8], second: &[u8], records: &mut Vec<u8>) {
        let length = first.len() + second.len();
        debug_assert!((1..=MOST_BYTES).contains(&length));
        let head = (length as u32).to_le_bytes();
        records.extend_from_slice(&head);
        let from = records.len();
        records.extend_from_slice(first);
        records.extend_from_slice(second);
        let nonce = self.0.next();
        let tag = self.0.cipher.seal(&nonce, &head, &mut records[from..]);
        records.extend_from_slice(&tag);
    }
}

/// The receiving end.
pub struct RecordOpening(RecordDirection);

impl RecordOpening {
    pub fn new(key: &Key) -> Self {
        Self(RecordDirection::new(key))
    }

    /// Bytes of the record that begins so, or more than there are while that is not known.
    ///
    /// # Errors
    /// What rule it breaks.
    pub fn needed(bytes: &[u8]) -> Result<usize, &'static str> {
        let Some(head) = bytes.first_chunk::<HEAD_BYTES>() else { return Ok(HEAD_BYTES) };
        match u32::from_le_bytes(*head) as usize {
            length @ 1..=MOST_BYTES => Ok(HEAD_BYTES + length + TAG_BYTES),
            _ => Err("a record of a length that none has"),
        }
    }

    /// The piece in a whole record, which is the next one.
    ///
    /// # Errors
    /// It is not what was sent: somebody has changed, left out or put in something.
    pub fn open<'a>(&mut self, record: &'a mut [u8]) -> Result<&'a [u8], &'static str> {
        const CHANGED: &str = "what came on the encrypted connection was changed on the way";
        let (head, rest) = record.split_at_mut_checked(HEAD_BYTES).ok_or(CHANGED)?;
        let (piece, tag) = rest.split_last_chunk_mut::<TAG_BYTES>().ok_or(CHANGED)?;
        let nonce = self.0.next();
        if self.0.cipher.open(&nonce, head, piece, tag) { Ok(piece) } else { Err(CHANGED) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Dialling = Dialling { from: 3, to: 1, nonce: [0x5a; 16], encrypts: true };
    const NONCE: Nonce = [0xa5; 16];

    fn session(job: u8) -> RecordKeys {
        RecordKeys::of_caller(&[job; 16], &CALL, &NONCE)
    }

    #[test]
    fn golden_bytes() {
        let mut records = Vec::new();
        let mut sealing = Sealing::new(&session(9).sends);
        sealing.seal(b"ab", b"c", &mut records);
        sealing.seal(b"", b"d", &mut records);
        let text: String = records.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text, GOLDEN);
    }

    const GOLDEN: &str = "03000000850406aff73913ec5132b2f243d9959ed7f52c010000006a8ccf22b345b7636b014a497671b74045";

    #[test]
    fn both_sides_have_the_same_keys_and_each_connection_its_own() {
        let called = RecordKeys::of_called(&[9; 16], &CALL, &NONCE);
        let caller = session(9);
        assert!(called.sends == caller.receives && called.receives == caller.sends && caller.sends != caller.receives);
        let again = Dialling { nonce: [0x5b; 16], ..CALL };
        let others = [
            session(8),
            RecordKeys::of_caller(&[9; 16], &again, &NONCE),
            RecordKeys::of_caller(&[9; 16], &CALL, &[0xa6; 16]),
        ];
        let keys = |session: &RecordKeys| [session.sends, session.receives];
        assert!(others.iter().flat_map(keys).all(|key| !keys(&caller).contains(&key)));
    }

    #[test]
    fn pieces_come_back_in_order_and_nothing_else_does() {
        let key = session(9).sends;
        let (mut sealing, mut opening) = (Sealing::new(&key), RecordOpening::new(&key));
        let longest = vec![7; MOST_BYTES];
        let mut records = Vec::new();
        sealing.seal(b"one", b"", &mut records);
        let second = records.len();
        sealing.seal(&longest[1..], &longest[..1], &mut records);
        assert_eq!(records.len() - second, LONGEST);
        assert_eq!((RecordOpening::needed(&records[..3]), RecordOpening::needed(&records)), (Ok(4), Ok(second)));
        let mut other = records.clone();
        assert_eq!(opening.open(&mut other[..second]), Ok(&b"one"[..]));
        assert_eq!(opening.open(&mut other[second..]), Ok(&longest[..]));
        // Again, the second first, and spoilt anywhere.
        assert!(opening.open(&mut records.clone()[..second]).is_err());
        assert!(RecordOpening::new(&key).open(&mut records.clone()[second..]).is_err());
        for at in 0..second {
            let mut spoilt = records[..second].to_vec();
            spoilt[at] ^= 4;
            assert!(RecordOpening::new(&key).open(&mut spoilt).is_err(), "byte {at}");
        }
    }

    #[test]
    fn lengths_that_no_record_has_are_refused() {
        for length in [0, MOST_BYTES as u32 + 1, u32::MAX] {
            assert!(RecordOpening::needed(&length.to_le_bytes()).is_err(), "{length}");
        }
    }
}
