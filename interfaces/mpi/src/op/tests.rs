//! Tests of the operations.

use super::*;

fn run(op: PredefinedOperation, code: usize, a: &[u8], b: &[u8]) -> Vec<u8> {
    let datatype = Datatype::predefined(code).expect("a predefined type");
    let count = (a.len() as i64) / datatype.extent();
    let mut out = b.to_vec();
    let elements = Elements { count, datatype, handle: code };
    // SAFETY: both hold `count` elements.
    unsafe { Op::Predefined(op).reduce(a.as_ptr(), out.as_mut_ptr(), elements) }.expect("allowed");
    out
}

#[test]
fn long_double_is_subtracted_the_right_way_round_in_complex_products() {
    // 1.0L and 2.0L in the 80-bit form.
    let number = |exponent: u16| {
        let mut bytes = [0u8; 16];
        bytes[7] = 0x80;
        bytes[8..10].copy_from_slice(&exponent.to_le_bytes());
        bytes
    };
    let (one, two) = (number(0x3fff), number(0x4000));
    // (2 + i) * (2 + i) = 3 + 4i
    let a = [two, one].concat();
    let out = run(PredefinedOperation::Prod, 0x224, &a, &a);
    let mut three = number(0x4000);
    three[7] = 0xc0;
    assert_eq!(out[..10], three[..10]);
    assert_eq!(out[16..26], number(0x4001)[..10]);
}

#[test]
fn sum_of_doubles_adds() {
    let bytes = |values: &[f64]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    assert_eq!(run(PredefinedOperation::Sum, 0x214, &bytes(&[1.0, 2.0]), &bytes(&[0.5, 8.0])), bytes(&[1.5, 10.0]));
}
