//! What a process says that a signal is about to end: which thread stands where, so that somebody else may look.
//!
//! One datagram to a socket of the host's keeper, whose name the process is told. It is a claim: whoever reads it looks
//! only at processes of the job.

/// The variable with the socket's name, which is in no file system.
pub const VARIABLE: &str = "WEFT_DISTRESS";

/// `weft-dst` as little-endian bytes.
pub const MAGIC: u64 = u64::from_le_bytes(*b"weft-dst");
pub const VERSION: u32 = 1;
/// Registers by the numbers of DWARF; what a machine does not have is 0.
pub const REGISTERS: usize = 33;
/// Bytes of a call.
pub const BYTES: usize = 48 + 8 * (REGISTERS + 1);

/// Which processor the registers are of.
pub const X86: u32 = 1;
pub const ARM: u32 = 2;

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DistressCall {
    pub pid: u32,
    pub thread: u32,
    pub signal: u32,
    pub processor: u32,
    /// The address that could not be used, or 0.
    pub address: u64,
    /// Where a word (32 bits) stands in the process's memory. The process waits a while for another value than 0 there.
    pub release: u64,
    /// Where the thread was.
    pub instruction: u64,
    pub registers: [u64; REGISTERS],
}

impl DistressCall {
    pub fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
        let words = [VERSION, self.pid, self.thread, self.signal, self.processor, 0];
        for (place, word) in bytes[8..32].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let longs = [self.address, self.release, self.instruction].into_iter().chain(self.registers);
        for (place, long) in bytes[32..].chunks_exact_mut(8).zip(longs) {
            place.copy_from_slice(&long.to_le_bytes());
        }
        bytes
    }

    /// `None` for what is no call, or one of another version.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
        let word = |at: usize| bytes[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let long = |at: usize| bytes[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        (long(0) == MAGIC && word(8) == VERSION).then(|| Self {
            pid: word(12),
            thread: word(16),
            signal: word(20),
            processor: word(24),
            address: long(32),
            release: long(40),
            instruction: long(48),
            registers: std::array::from_fn(|number| long(56 + 8 * number)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_read_as_it_was_written() {
        let registers = std::array::from_fn(|number| number as u64 * 3);
        let call = DistressCall {
            pid: 1,
            thread: 2,
            signal: 11,
            processor: ARM,
            address: 4,
            release: 5,
            instruction: 6,
            registers,
        };
        let bytes = call.encode();
        assert_eq!(DistressCall::decode(&bytes), Some(call));
        assert_eq!(DistressCall::decode(&bytes[1..]), None);
        let mut other = bytes;
        other[8] = 2;
        assert_eq!(DistressCall::decode(&other), None, "of another version");
    }
}
