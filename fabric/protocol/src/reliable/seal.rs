//! What makes a datagram believed: a checksum, or a message authentication code.

use weft_wire::link::{crc32c, mac};

/// Computes the seal of a datagram: over its bytes before the seal, and its packet number in full.
pub trait Seal {
    fn seal(&self, number: u64, bytes: &[u8]) -> u64;
}

/// CRC32C against corruption, for networks that are trusted. `extend` continues a checksum as
/// [`crc32c::extend`] does, which is the default; who may use the processor's instruction puts its own here.
#[derive(Clone, Copy)]
pub struct Checksum {
    pub extend: fn(u32, &[u8]) -> u32,
}

impl Default for Checksum {
    fn default() -> Self {
        Self { extend: crc32c::extend }
    }
}

impl Seal for Checksum {
    #[inline]
    fn seal(&self, number: u64, bytes: &[u8]) -> u64 {
        number >> 32 << 32 | u64::from((self.extend)(0, bytes))
    }
}

/// With a job's key, nobody else makes a datagram that is believed.
#[derive(Clone, Copy)]
pub struct Keyed {
    pub key: mac::Key,
}

impl Seal for Keyed {
    fn seal(&self, number: u64, bytes: &[u8]) -> u64 {
        mac::code(&self.key, number, bytes)
    }
}
