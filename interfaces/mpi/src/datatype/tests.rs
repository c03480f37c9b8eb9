//! Tests of the datatype engine.

use super::*;

fn double() -> &'static Datatype {
    Datatype::predefined(0x214).expect("double")
}

#[test]
fn a_column_packs_in_pieces_and_back() {
    let column = Datatype::vector(5, 1, 7, double(), ConstructorForm::Int).expect("vector");
    let matrix: Vec<f64> = (0..35).map(f64::from).collect();
    let mut packed = [0u8; 40];
    for (at, piece) in [(0u64, 3usize), (3, 12), (15, 25)] {
        let out = &mut packed[at as usize..at as usize + piece];
        // SAFETY: the matrix holds the column.
        assert_eq!(unsafe { column.pack(matrix.as_ptr().cast(), 1, at, out) }, piece);
    }
    let values: Vec<f64> = packed.chunks(8).map(|b| f64::from_le_bytes(b.try_into().expect("8"))).collect();
    assert_eq!(values, [0.0, 7.0, 14.0, 21.0, 28.0]);
    let mut back = vec![-1.0f64; 35];
    // SAFETY: as above.
    assert_eq!(unsafe { column.unpack(back.as_mut_ptr().cast(), 1, 0, &packed) }, 40);
    assert!(back.iter().enumerate().all(|(i, &v)| v == if i % 7 == 0 { i as f64 } else { -1.0 }));
}

#[test]
fn a_padded_member_does_not_stand_out_of_the_type_that_holds_it() {
    let inner = Datatype::hvector(3, 4, 49, double(), ConstructorForm::Int).expect("hvector");
    assert_eq!((inner.true_extent(), inner.extent()), (130, 136));
    let outer = Datatype::hvector(2, 3, 4 * 136 + 1, &inner, ConstructorForm::Int).expect("hvector");
    assert_eq!((outer.true_extent(), outer.extent()), (545 + 2 * 136 + 130, 960));
    let narrow = Datatype::resized(&inner, 0, 130, ConstructorForm::Int).expect("resized");
    assert_eq!(Datatype::contiguous(2, &narrow, ConstructorForm::Int).expect("contiguous").extent(), 260);
}
