//! Which keys seal what two processes of a job say to each other.

use super::header::Process;
use super::mac::Key;
use crate::{cipher, siphash};

/// The key of hellos, which are said before the two know of each other which start of its rank each is.
pub fn of_hellos(job: &[u8; 16]) -> Key {
    Key(siphash::tag(job, b"weft links"))
}

/// The key of the link between two processes, in whichever order they are named. It is theirs alone: a rank that is
/// started once more in the same job begins with the same packet numbers, and must not do so with the same key.
pub fn of_link(job: &[u8; 16], one: Process, other: Process) -> Key {
    Key(siphash::tag(job, &text_of(*b"weft link ", one, other)))
}

/// The key of what is encrypted between two processes; theirs alone, as that of [`of_link`].
pub fn of_cipher(job: &[u8; 16], one: Process, other: Process) -> [u8; 16] {
    siphash::tag(job, &text_of(*b"weft crypt", one, other))
}

/// The nonce of a datagram: who sends it, and its number, which nobody else and nothing later has.
pub fn nonce(from: u32, number: u64) -> cipher::Nonce {
    let mut nonce = cipher::Nonce::default();
    nonce[..4].copy_from_slice(&from.to_le_bytes());
    nonce[4..].copy_from_slice(&number.to_le_bytes());
    nonce
}

fn text_of(what: [u8; 10], one: Process, other: Process) -> [u8; 26] {
    let (low, high) = if one.rank <= other.rank { (one, other) } else { (other, one) };
    let mut text = [0; 26];
    text[..10].copy_from_slice(&what);
    for (at, word) in [low.rank, low.incarnation, high.rank, high.incarnation].into_iter().enumerate() {
        text[10 + 4 * at..14 + 4 * at].copy_from_slice(&word.to_le_bytes());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: [u8; 16] = *b"the key of tests";

    fn process(rank: u32, incarnation: u32) -> Process {
        Process { rank, incarnation }
    }

    #[test]
    fn golden_text() {
        let text = b"weft link \x02\0\0\0\x09\0\0\0\x03\0\0\0\x0a\0\0\0";
        assert!(of_link(&JOB, process(3, 10), process(2, 9)) == Key(siphash::tag(&JOB, text)));
    }

    #[test]
    fn both_sides_have_the_same_key_and_no_other_pair_or_start_has_it() {
        let (one, other) = (process(2, 9), process(3, 10));
        let key = of_link(&JOB, one, other);
        assert!(key == of_link(&JOB, other, one));
        let others = [
            of_link(&JOB, process(2, 8), other),
            of_link(&JOB, one, process(3, 11)),
            of_link(&JOB, process(2, 10), process(3, 9)),
            of_link(&JOB, process(1, 9), other),
            of_link(b"another job's key"[..16].try_into().expect("16 bytes"), one, other),
            of_hellos(&JOB),
            Key(of_cipher(&JOB, one, other)),
        ];
        assert!(others.iter().all(|other| *other != key));
    }
}
