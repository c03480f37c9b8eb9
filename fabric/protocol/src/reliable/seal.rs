//! What makes a datagram believed: a message authentication code, or the tag of an encryption.

use std::cell::Cell;
use weft_wire::cipher::{Cipher, TAG_BYTES};
use weft_wire::link::aegis::{self, Mac};
use weft_wire::link::header::Process;
use weft_wire::link::mac::{self, Key};
use weft_wire::link::{SEAL_BYTES, header, keys};

/// Seals and opens datagrams. A seal is over all bytes before it, and the packet number in full.
pub trait Seal {
    /// Bytes of a seal, which are the last ones of a datagram.
    #[inline]
    fn bytes(&self) -> usize {
        SEAL_BYTES
    }

    /// Seals a datagram whose last bytes are to be the seal. The first `clear` bytes stay as they are.
    fn seal(&self, number: u64, datagram: &mut [u8], clear: usize);

    /// A datagram as it was before it was sealed, but for the seal; `None` if that was not done by the other side.
    /// `room` is for one that has to be changed. `clear` is at most its length.
    fn open<'a>(&self, number: u64, datagram: &'a [u8], clear: usize, room: &'a mut Vec<u8>) -> Option<&'a [u8]>;
}

/// With a job's key, nobody else makes a datagram that is believed.
///
/// Which of two codes a datagram has stands in its header. AEGISMAC is the one where both processors have an
/// instruction for it: who has none seals with SipHash, and who has one does so too once it is answered that way.
#[derive(Clone)]
pub struct Keyed {
    key: Key,
    mac: Mac,
    /// Whether there is an instruction here, and whether there is as far as is known on both sides.
    is_fast: bool,
    by_aegis: Cell<bool>,
}

impl Keyed {
    pub fn new(key: &Key) -> Self {
        Self::on(aegis::is_fast(), key)
    }

    /// As on a processor that has an instruction for AEGISMAC, or has none.
    pub fn on(is_fast: bool, key: &Key) -> Self {
        Self { key: *key, mac: Mac::new(key), is_fast, by_aegis: Cell::new(is_fast) }
    }

    /// The code of a datagram whose header says which.
    #[inline]
    pub fn code(&self, number: u64, bytes: &[u8]) -> u64 {
        match header::has_aegis(bytes) {
            true => self.mac.code(number, bytes),
            false => mac::code(&self.key, number, bytes),
        }
    }
}

impl Seal for Keyed {
    #[inline]
    fn seal(&self, number: u64, datagram: &mut [u8], _: usize) {
        if self.by_aegis.get() {
            header::set_aegis(datagram);
        }
        put_code(datagram, |bytes| self.code(number, bytes));
    }

    #[inline]
    fn open<'a>(&self, number: u64, datagram: &'a [u8], _: usize, _: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        let opened = check_code(datagram, |bytes| self.code(number, bytes))?;
        self.by_aegis.set(header::has_aegis(datagram) && self.is_fast);
        Some(opened)
    }
}

#[inline]
fn put_code(datagram: &mut [u8], code: impl FnOnce(&[u8]) -> u64) {
    if let Some((bytes, seal)) = datagram.split_last_chunk_mut::<SEAL_BYTES>() {
        *seal = code(bytes).to_le_bytes();
    }
}

#[inline]
fn check_code(datagram: &[u8], code: impl FnOnce(&[u8]) -> u64) -> Option<&[u8]> {
    header::split_seal(datagram).filter(|(bytes, seal)| code(bytes) == *seal).map(|(bytes, _)| bytes)
}

/// With the key of two processes, nobody else reads what they send each other either. What is clear is the header, with
/// its acknowledgements.
#[derive(Clone)]
pub struct Encrypted {
    cipher: Cipher,
    local: u32,
    remote: u32,
}

impl Encrypted {
    pub fn new(job: &[u8; 16], local: Process, remote: Process) -> Self {
        let cipher = Cipher::new(&keys::of_cipher(job, local, remote));
        Self { cipher, local: local.rank, remote: remote.rank }
    }
}

impl Seal for Encrypted {
    #[inline]
    fn bytes(&self) -> usize {
        TAG_BYTES
    }

    fn seal(&self, number: u64, datagram: &mut [u8], clear: usize) {
        let (clear, rest) = datagram.split_at_mut(clear);
        if let Some((payload, seal)) = rest.split_last_chunk_mut::<TAG_BYTES>() {
            *seal = self.cipher.seal(&keys::nonce(self.local, number), clear, payload);
        }
    }

    fn open<'a>(&self, number: u64, datagram: &'a [u8], clear: usize, room: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        let (bytes, seal) = datagram.split_last_chunk::<TAG_BYTES>()?;
        room.clear();
        room.extend_from_slice(bytes);
        let (clear, payload) = room.split_at_mut_checked(clear)?;
        let opened = self.cipher.open(&keys::nonce(self.remote, number), clear, payload, seal);
        opened.then_some(&room[..])
    }
}

/// How the datagrams of a job are sealed.
#[derive(Clone)]
pub enum JobSeal {
    Keyed(Keyed),
    Encrypted(Box<Encrypted>),
}

impl JobSeal {
    /// Between these two processes of the job with this key.
    pub fn new(job: &[u8; 16], encrypts: bool, local: Process, remote: Process) -> Self {
        match encrypts {
            true => Self::Encrypted(Box::new(Encrypted::new(job, local, remote))),
            false => Self::Keyed(Keyed::new(&keys::of_link(job, local, remote))),
        }
    }
}

impl Seal for JobSeal {
    #[inline]
    fn bytes(&self) -> usize {
        match self {
            Self::Keyed(keyed) => keyed.bytes(),
            Self::Encrypted(encrypted) => encrypted.bytes(),
        }
    }

    #[inline]
    fn seal(&self, number: u64, datagram: &mut [u8], clear: usize) {
        match self {
            Self::Keyed(keyed) => keyed.seal(number, datagram, clear),
            Self::Encrypted(encrypted) => encrypted.seal(number, datagram, clear),
        }
    }

    #[inline]
    fn open<'a>(&self, number: u64, datagram: &'a [u8], clear: usize, room: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        match self {
            Self::Keyed(keyed) => keyed.open(number, datagram, clear, room),
            Self::Encrypted(encrypted) => encrypted.open(number, datagram, clear, room),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether it went with AEGISMAC.
    fn passes(from: &Keyed, to: &Keyed, number: u64) -> bool {
        let mut datagram = [7; 84];
        datagram[3] = 1;
        from.seal(number, &mut datagram, 52);
        assert!(to.open(number, &datagram, 52, &mut Vec::new()).is_some());
        let mut other = datagram;
        other[3] ^= 8;
        assert!(to.open(number, &other, 52, &mut Vec::new()).is_none(), "the code says which it is, too");
        header::has_aegis(&datagram)
    }

    #[test]
    fn aegis_is_for_two_that_have_an_instruction() {
        let on = |is_fast| Keyed::on(is_fast, &Key([3; 16]));
        let (fast, other, slow) = (on(true), on(true), on(false));
        assert!((0..3).all(|number| passes(&fast, &other, number) && passes(&other, &fast, number)));
        assert!(passes(&fast, &slow, 7), "it is not known yet");
        assert!(!passes(&slow, &fast, 8));
        assert!(!passes(&fast, &slow, 9) && !passes(&slow, &fast, 10));
        assert!(passes(&other, &fast, 11) && passes(&fast, &other, 12), "one that has it talks to this one again");
    }
}
