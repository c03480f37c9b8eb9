//! Cells and segment for any numbers.

use proptest::prelude::*;
use weft_wire::cell::{Head, INLINE_BYTES, Kind, decode, stamp};
use weft_wire::segment::{Geometry, MAX_MEMBERS, PAGE_BYTES, pair};

proptest! {
    #![proptest_config(ProptestConfig { cases: 5000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_header_survives(
        kind in 1u8..=10, context: u32, tag: i32, source: u32, inline in 0u8..=48, bulk: bool, lap: u64,
    ) {
        let head = Head { kind: Kind::from_byte(kind).expect("a kind"), context, tag, source };
        let first = head.first_word(inline, bulk) | stamp(lap) as u64;
        prop_assert_eq!(first as u8, stamp(lap));
        let claim = decode(first, head.second_word()).expect("valid");
        prop_assert_eq!((claim.head, claim.inline_bytes, claim.bulk), (head, inline, bulk));
    }

    #[test]
    fn whatever_decodes_is_within_the_rules(first: u64, second: u64) {
        if let Some(claim) = decode(first, second) {
            prop_assert!(claim.inline_bytes as usize <= INLINE_BYTES);
            let again = claim.head.first_word(claim.inline_bytes, claim.bulk) | first & 0xff;
            prop_assert_eq!((again, claim.head.second_word()), (first, second));
        }
    }

    #[test]
    fn pairs_are_disjoint_aligned_and_inside(members in 1..=MAX_MEMBERS, a: u32, b: u32, c: u32, d: u32) {
        let g = Geometry::new(members).expect("in range");
        let (one, other) = ((a % members, b % members), (c % members, d % members));
        let (here, there) = (g.pair(one.0, one.1), g.pair(other.0, other.1));
        prop_assert_eq!(here % PAGE_BYTES, 0);
        prop_assert!(here + pair::BYTES <= g.bytes());
        prop_assert!(g.status(one.0) + PAGE_BYTES <= g.block(0));
        if one != other {
            prop_assert!(here.abs_diff(there) >= pair::BYTES);
        }
    }
}
