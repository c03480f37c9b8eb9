//! Telling one build of this program from another.

use std::io::Read;

/// A checksum of the executable that runs here. It finds what was mixed up, not what was forged.
pub fn of_this_program() -> std::io::Result<u64> {
    of(std::fs::File::open("/proc/self/exe")?)
}

/// Of everything that can be read there.
pub fn of(mut file: impl Read) -> std::io::Result<u64> {
    let mut sum = Sum(0xcbf2_9ce4_8422_2325);
    let mut piece = vec![0; 1 << 16];
    let mut length = 0;
    loop {
        let count = fill(&mut file, &mut piece)?;
        piece[count..].fill(0);
        let words = piece[..count.next_multiple_of(8)].chunks_exact(8);
        words.for_each(|word| sum.add(u64::from_le_bytes(word.try_into().unwrap_or_default())));
        length += count as u64;
        if count < piece.len() {
            sum.add(length);
            return Ok(sum.0);
        }
    }
}

/// Reads until the piece is full or there is no more.
fn fill(file: &mut impl Read, piece: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < piece.len() {
        match file.read(&mut piece[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Fowler, Noll and Vo's function over words instead of bytes, turned so that high bits come down again.
struct Sum(u64);

impl Sum {
    fn add(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_changed_byte_and_any_length_is_told_apart() {
        let program: Vec<u8> = (0..70_000u32).map(|at| at as u8).collect();
        let whole = of(&program[..]).unwrap();
        assert_eq!(of(&program[..]).unwrap(), whole);
        for at in [0, 7, 8, 65_535, 65_536, 69_999] {
            let mut other = program.clone();
            other[at] ^= 0x80;
            assert_ne!(of(&other[..]).unwrap(), whole, "byte {at}");
        }
        assert_ne!(of(&program[..69_999]).unwrap(), whole);
        assert_ne!(of(&[0; 8][..]).unwrap(), of(&[0; 7][..]).unwrap());
    }

    #[test]
    fn this_program_has_one() {
        assert_eq!(of_this_program().unwrap(), of_this_program().unwrap());
    }
}
