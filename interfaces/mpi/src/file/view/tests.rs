//! Views against a model that lists every byte.

use super::*;
use crate::abi::{BYTE, DOUBLE, INT};
use crate::datatype::{ArrayOrder, ConstructorForm};

fn named(handle: usize) -> Datatype {
    Datatype::predefined(handle).unwrap().clone()
}

/// A small generator of pseudo-random numbers (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// A filetype of ints whose data never goes backwards, and the offsets of its bytes.
fn filetype(dice: &mut Dice) -> Datatype {
    let int = named(INT);
    let (blocks, length) = (1 + dice.below(5) as i64, 1 + dice.below(3) as i64);
    let vector =
        |dice: &mut Dice| Datatype::vector(blocks, length, length + dice.below(4) as i64, &int, ConstructorForm::Int);
    let base = match dice.below(4) {
        0 => Datatype::contiguous(blocks, &int, ConstructorForm::Int).unwrap(),
        1 => vector(dice).unwrap(),
        2 => {
            let rows = 1 + dice.below(4) as i64;
            let starts = [dice.below(3) as i64, dice.below(4) as i64];
            Datatype::subarray(
                &[rows + 2, length + 3],
                &[rows, length],
                &starts,
                ArrayOrder::C,
                &int,
                ConstructorForm::Int,
            )
            .unwrap()
        }
        _ => {
            let mut at = 0;
            let (mut lengths, mut places) = (Vec::new(), Vec::new());
            for _ in 0..blocks {
                at += dice.below(4) as i64;
                lengths.push(dice.below(3) as i64);
                places.push(at);
                at += lengths.last().unwrap();
            }
            Datatype::indexed(&lengths, &places, &int, ConstructorForm::Int).unwrap()
        }
    };
    let end = base.true_lower_bound() + base.true_extent();
    Datatype::resized(&base, 0, end + 4 * dice.below(3) as i64, ConstructorForm::Int).unwrap()
}

/// Offsets of the first bytes of the stream, one by one.
fn model(displacement: i64, tile: &Datatype, bytes: usize) -> Vec<u64> {
    let mut offsets = Vec::new();
    for i in 0.. {
        if tile.size() == 0 || offsets.len() >= bytes {
            break;
        }
        tile.visit_scalars(|scalar, disp, count| {
            let first = displacement + i * tile.extent() + disp;
            offsets.extend((first..first + count * scalar.size()).map(|offset| offset as u64));
        });
    }
    offsets.truncate(bytes);
    offsets
}

#[test]
fn a_view_shows_the_bytes_that_the_filetype_names() {
    for seed in 1..400u64 {
        let mut dice = Dice(seed * 0x9e37_79b9);
        let tile = filetype(&mut dice);
        let displacement = dice.below(50) as i64;
        let view = FileView::new(displacement, named(INT), tile.clone(), Datarep::Native).unwrap();
        let offsets = model(displacement, &tile, 300);
        if offsets.is_empty() {
            assert!(view.is_empty() && view.offset(0).is_err(), "seed {seed}");
            continue;
        }
        for _ in 0..20 {
            let at = dice.below(200);
            let bytes = dice.below(100);
            let mut pieces = Vec::new();
            view.pieces(at, bytes, &mut pieces).unwrap();
            let named: Vec<u64> = pieces.iter().flat_map(|piece| piece.offset..piece.end()).collect();
            assert_eq!(named, offsets[at as usize..(at + bytes) as usize], "seed {seed}");
            assert!(pieces.windows(2).all(|pair| pair[0].end() < pair[1].offset), "seed {seed}: neighbours are joined");
            assert_eq!(view.offset(at).unwrap(), offsets[at as usize], "seed {seed}");
            let limit = dice.below(400);
            let part = &offsets[at as usize..(at + bytes) as usize];
            let before = part.iter().filter(|&&offset| offset < limit).count() as u64;
            assert_eq!(view.before(limit, at, bytes), before, "seed {seed}");
        }
        let size = dice.below(*offsets.last().unwrap());
        let etypes = offsets.iter().step_by(4).filter(|&&offset| offset < size).count() as u64;
        assert_eq!(view.etypes_in(size), etypes, "seed {seed}");
    }
}

#[test]
fn a_plain_view_is_one_run_of_the_file() {
    let view = FileView::new(7, named(BYTE), named(BYTE), Datarep::Native).unwrap();
    let mut pieces = Vec::new();
    view.pieces(1 << 40, 1 << 41, &mut pieces).unwrap();
    assert!(view.is_dense());
    assert_eq!(pieces, [FilePiece { offset: (1 << 40) + 7, bytes: 1 << 41 }]);
    assert_eq!((view.etypes_in(6), view.etypes_in(7), view.etypes_in(1007)), (0, 0, 1000));
}

#[test]
fn offsets_beyond_the_largest_file_are_refused() {
    let int = named(INT);
    let wide = Datatype::resized(&int, 0, 1 << 40, ConstructorForm::Int).unwrap();
    let view = FileView::new(0, int.clone(), wide, Datarep::Native).unwrap();
    assert!(view.offset(4 << 22).is_ok() && view.offset(4 << 23).is_err());
    let view = FileView::new(i64::MAX - 10, int.clone(), int, Datarep::Native).unwrap();
    assert!(view.offset(6).is_ok() && view.offset(20).is_err());
    assert_eq!(view.etypes_in(1 << 60), 0);
}

#[test]
fn filetypes_that_the_standard_forbids_are_refused_by_what_is_wrong() {
    let (int, double) = (named(INT), named(DOUBLE));
    let refused = |etype: &Datatype, tile: Datatype, why: &str| {
        let error = FileView::new(0, etype.clone(), tile, Datarep::Native).unwrap_err();
        assert!(matches!(error.class, Class::Arg | Class::Io));
        assert!(error.detail.contains(why), "{}", error.detail);
    };
    refused(&double, Datatype::contiguous(3, &int, ConstructorForm::Int).unwrap(), "whole etypes");
    refused(&int, Datatype::indexed(&[1, 1], &[2, 0], &int, ConstructorForm::Int).unwrap(), "backwards");
    refused(
        &int,
        Datatype::indexed(&[1, 1], &[-1, 0], &int, ConstructorForm::Int).unwrap(),
        "negative displacement -4",
    );
    refused(&Datatype::contiguous(0, &int, ConstructorForm::Int).unwrap(), int.clone(), "no data");
}

#[test]
fn a_filetype_that_overlaps_itself_is_known_as_such() {
    let int = named(INT);
    let sorted = |tile: Datatype| FileView::new(0, int.clone(), tile, Datarep::Native).unwrap().is_sorted();
    assert!(sorted(int.clone()) && sorted(Datatype::vector(3, 1, 2, &int, ConstructorForm::Int).unwrap()));
    assert!(!sorted(Datatype::indexed(&[3, 1], &[0, 1], &int, ConstructorForm::Int).unwrap()));
    let vector = Datatype::vector(3, 1, 2, &int, ConstructorForm::Int).unwrap();
    assert!(
        !sorted(Datatype::resized(&vector, 0, 4, ConstructorForm::Int).unwrap()),
        "copies lie between each other's pieces"
    );
}
