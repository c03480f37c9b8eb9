//! CRC32C (Castagnoli; RFC 3720, appendix B.4), eight bytes at a time by tables. Processors have an instruction for it;
//! who may use it hands its own function to the link, which must answer the same.

/// The polynomial, bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

const TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

#[inline]
fn table(which: usize, byte: u32) -> u32 {
    TABLES[which][(byte & 0xff) as usize]
}

/// The checksum of what has checksum `crc` followed by `bytes`; that of nothing is 0.
pub fn extend(crc: u32, bytes: &[u8]) -> u32 {
    let mut crc = !crc;
    let (eights, rest) = bytes.as_chunks::<8>();
    for eight in eights {
        let word = u64::from_le_bytes(*eight) ^ u64::from(crc);
        let (low, high) = (word as u32, (word >> 32) as u32);
        crc = table(7, low) ^ table(6, low >> 8) ^ table(5, low >> 16) ^ table(4, low >> 24);
        crc ^= table(3, high) ^ table(2, high >> 8) ^ table(1, high >> 16) ^ table(0, high >> 24);
    }
    for byte in rest {
        crc = crc >> 8 ^ table(0, crc ^ u32::from(*byte));
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_answers_of_the_standard() {
        let ascending: Vec<u8> = (0..32).collect();
        let descending: Vec<u8> = (0..32).rev().collect();
        assert_eq!(extend(0, b"123456789"), 0xe306_9283);
        assert_eq!(extend(0, &[0; 32]), 0x8a91_36aa);
        assert_eq!(extend(0, &[0xff; 32]), 0x62a8_ab43);
        assert_eq!(extend(0, &ascending), 0x46dd_794e);
        assert_eq!(extend(0, &descending), 0x113f_db5c);
        assert_eq!(extend(0, &[]), 0);
    }

    proptest! {
        #[test]
        fn pieces_and_the_whole_have_one_checksum(bytes in prop::collection::vec(any::<u8>(), 0..200), at in any::<usize>()) {
            let (head, tail) = bytes.split_at(at % (bytes.len() + 1));
            prop_assert_eq!(extend(extend(0, head), tail), extend(0, &bytes));
        }
    }
}
