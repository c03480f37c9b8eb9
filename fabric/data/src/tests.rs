//! Packing against an oracle: where each packed byte lies, one by one, worked out from the constructors' arguments
//! alone.

use super::{Form, Scalar};
use std::collections::HashSet;

/// A small generator (xorshift), so that a seed replays a case.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn within(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as u64) as i64
    }
}

/// A form, and the displacement of each of its bytes in the order of the type map.
#[derive(Clone)]
struct Shape {
    form: Form,
    bytes: Vec<i64>,
}

impl Shape {
    /// Scalars of 1, 2, 4, 8 and 16 bytes.
    fn scalar(random: &mut Random) -> Self {
        let scalar = [Scalar::Byte, Scalar::I16, Scalar::I32, Scalar::I64, Scalar::C64][random.below(5) as usize];
        Self { form: Form::scalar(scalar), bytes: (0..scalar.size()).collect() }
    }

    /// `len` bytes side by side.
    fn block(len: i64) -> Self {
        Self { form: Form::scalar(Scalar::Byte).block(len).expect("it is small"), bytes: (0..len).collect() }
    }

    /// The bytes of copies at these displacements.
    fn at(&self, displacements: impl IntoIterator<Item = i64>) -> Vec<i64> {
        displacements.into_iter().flat_map(|disp| self.bytes.iter().map(move |byte| byte + disp)).collect()
    }

    /// The bytes of blocks of so many copies, one extent apart, at these displacements.
    fn blocks(&self, blocks: impl IntoIterator<Item = (i64, i64)>) -> Vec<i64> {
        let extent = self.form.extent();
        blocks.into_iter().flat_map(|(length, disp)| self.at((0..length).map(|i| disp + i * extent))).collect()
    }

    fn rows(&self, count: i64, stride: i64) -> Self {
        let form = self.form.repeated(count, stride).expect("it is small");
        Self { form, bytes: self.at((0..count).map(|i| i * stride)) }
    }

    fn listed(&self, displacements: &[i64]) -> Self {
        let members = displacements.iter().map(|disp| self.form.shifted(*disp).expect("it is near"));
        let form = Form::sequence(&members.collect::<Vec<_>>()).expect("it is small");
        Self { form, bytes: self.at(displacements.iter().copied()) }
    }

    /// Blocks of bytes at displacements.
    fn indexed(blocks: &[(i64, i64)]) -> Self {
        Self::of_blocks(blocks.iter().map(|&(length, disp)| (Self::block(1), length, disp)))
    }

    /// Blocks of so many copies of a shape at displacements.
    fn of_blocks(blocks: impl Iterator<Item = (Self, i64, i64)>) -> Self {
        let (mut forms, mut bytes) = (Vec::new(), Vec::new());
        for (part, length, disp) in blocks {
            let block = part.form.block(length).expect("it is small");
            forms.push(block.shifted(disp).expect("it is near"));
            bytes.extend(part.blocks([(length, disp)]));
        }
        Self { form: Form::sequence(&forms).expect("it is small"), bytes }
    }

    fn resized(self, extent: i64) -> Self {
        Self { form: self.form.resized(0, extent).expect("it is small"), ..self }
    }

    /// A type made of others, at most `depth` constructors deep.
    fn any(random: &mut Random, depth: u32) -> Self {
        if depth == 0 {
            return Self::scalar(random);
        }
        let inner = Self::any(random, depth - 1);
        let extent = inner.form.extent();
        let reach = extent.abs() + 3;
        match random.below(5) {
            0 => inner.rows(random.within(0, 20), random.within(-2 * reach, 3 * reach)),
            1 => {
                let (count, length, stride) = (random.within(0, 9), random.within(0, 3), random.within(-4, 5));
                let block = inner.form.block(length).expect("it is small");
                let form = block.repeated(count, stride * extent).expect("it is small");
                Self { form, bytes: inner.blocks((0..count).map(|i| (length, i * stride * extent))) }
            }
            2 => {
                let count = random.within(0, 40);
                let listed: Vec<_> = (0..count).map(|_| random.within(-20 * reach, 20 * reach)).collect();
                inner.listed(&listed)
            }
            3 => {
                let other = Self::any(random, depth - 1);
                let parts = [inner.clone(), other, inner];
                let members = parts.map(|part| (part, random.within(0, 3), random.within(-99, 99)));
                Self::of_blocks(members.into_iter())
            }
            _ => {
                let room = random.within(0, 2 * reach);
                inner.resized(room)
            }
        }
    }

    /// Compares the runs of `count` copies.
    fn check_runs(&self, count: i64) {
        let places = self.at((0..count).map(|i| i * self.form.extent()));
        let mut seen = Vec::new();
        self.form.visit_runs(std::ptr::null(), count, 0, places.len(), |at, len| {
            seen.extend((0..len as i64).map(|i| (at as i64).wrapping_add(i)));
        });
        assert_eq!(seen, places, "runs of {count} of {:?}", self.form);
    }

    /// Packs and unpacks `count` copies in pieces, from a buffer that lies `shift` bytes past an aligned address.
    fn check(&self, count: i64, shift: usize, random: &mut Random) {
        let extent = self.form.extent();
        let places = self.at((0..count).map(|i| i * extent));
        let (low, high) = (places.iter().min().copied().unwrap_or(0), places.iter().max().copied().unwrap_or(0));
        let start = (-low).max(0) as usize + shift;
        let buffer: Vec<u8> = (0..start as i64 + high + 9).map(|_| random.below(256) as u8).collect();
        let place = |byte: i64| (start as i64 + byte) as usize;
        let wanted: Vec<u8> = places.iter().map(|&byte| buffer[place(byte)]).collect();
        let what = || format!("{count} of {:?}", self.form);

        self.check_runs(count);
        let pieces = pieces(wanted.len(), random);
        let mut packed = vec![0xa5; wanted.len() + 16];
        for &(from, to) in &pieces {
            // SAFETY: the buffer holds every byte of the shape, and the piece lies in `packed`.
            let moved = unsafe {
                let (base, out) = (buffer.as_ptr().add(start), packed.as_mut_ptr().add(8 + from));
                self.form.pack_to(base, count, from as u64, out, to - from)
            };
            assert_eq!(moved, to - from);
            assert!(
                packed[8 + to..].iter().all(|&byte| byte == 0xa5),
                "packing wrote behind {from}..{to} of {}",
                what()
            );
        }
        assert_eq!(packed[8..8 + wanted.len()], wanted, "packed {}", what());
        assert!(packed[..8].iter().all(|&byte| byte == 0xa5), "packing wrote before the start of {}", what());

        if places.iter().collect::<HashSet<_>>().len() < places.len() {
            return; // what is received into may not overlap
        }
        let mut back = vec![0x5a; buffer.len()];
        let mut expected = back.clone();
        for &(from, to) in &pieces {
            // SAFETY: as above.
            unsafe {
                let (base, data) = (back.as_mut_ptr().add(start), packed.as_ptr().add(8 + from));
                self.form.unpack_from(base, count, from as u64, data, to - from);
            }
            places[from..to].iter().for_each(|&byte| expected[place(byte)] = buffer[place(byte)]);
            assert!(back == expected, "unpacked {from}..{to} of {}", what());
        }
    }

    /// Some counts and shifts.
    fn check_all(&self, counts: &[i64], random: &mut Random) {
        for &count in counts {
            self.check(count, random.below(9) as usize, random);
        }
    }
}

/// A few pieces that cover so many bytes in order: one, or cut anywhere.
fn pieces(bytes: usize, random: &mut Random) -> Vec<(usize, usize)> {
    let mut cuts: Vec<usize> = (0..random.below(4)).map(|_| random.below(bytes as u64 + 1) as usize).collect();
    cuts.extend([0, bytes]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

#[test]
fn any_type_packs_as_its_type_map_says() {
    for seed in 1..=3000 {
        let random = &mut Random(0x9e37_79b9_7f4a_7c15u64.wrapping_mul(seed));
        let depth = 1 + random.below(3) as u32;
        let shape = Shape::any(random, depth);
        if shape.bytes.len() < 20_000 {
            shape.check_all(&[0, 1, 2, 5], random);
        }
    }
}

#[test]
fn blocks_of_every_length_pack_in_rows_at_any_distance() {
    let random = &mut Random(1);
    for len in 0..=70 {
        for stride in [len, len + 1, len + 7, 100, -100, 2048, -2048, 4096, 4097] {
            let rows = random.within(17, 90);
            Shape::block(len).rows(rows, stride).check_all(&[1, 3], random);
        }
    }
}

#[test]
fn columns_one_after_the_other_pack_in_patches() {
    let random = &mut Random(2);
    for len in [1, 2, 3, 4, 8, 12, 16, 24] {
        for stride in [64, 100, 192, -192, 2048, 4096] {
            let column = Shape::block(len).rows(random.within(1, 35), stride);
            for extent in [len, len + 1, -len, 63, 0] {
                let columns = column.clone().resized(extent);
                columns.check_all(&[1, 2, 9, 17, 33], random);
            }
        }
    }
}

#[test]
fn copies_of_a_few_blocks_pack_block_by_block() {
    let random = &mut Random(3);
    for case in 0..200 {
        let mut end = random.within(-9, 9);
        let blocks: Vec<(i64, i64)> = (0..random.within(2, 16))
            .map(|_| {
                let (gap, len) = (random.within(1, 20), random.within(1, if case % 4 == 0 { 80 } else { 17 }));
                let disp = end + gap;
                end = disp + len;
                (len, disp)
            })
            .collect();
        let record = Shape::indexed(&blocks).resized([end + 9, end + 50, 2048, 4096][random.below(4) as usize]);
        record.check_all(&[1, 2, 15, 17, 127, 128, 129, 260], random);
    }
}

#[test]
fn blocks_at_listed_displacements_pack_in_their_order() {
    let random = &mut Random(4);
    for len in 1..=70 {
        let places: Vec<i64> = (0..random.within(17, 60)).map(|i| i * 90 + random.within(0, 19)).collect();
        let ordered = Shape::block(len).listed(&places);
        ordered.check_all(&[1, 2, 4], random);
        let backwards: Vec<i64> = places.into_iter().rev().collect();
        Shape::block(len).listed(&backwards).check_all(&[1, 2], random);
    }
}

#[test]
fn a_list_that_reaches_further_than_2_gib_has_the_same_runs() {
    for apart in [1 << 20, 1 << 27, 3 << 30] {
        let places: Vec<i64> = (-20..20).map(|i| i * apart + i * i).collect();
        Shape::block(3).listed(&places).check_runs(2);
    }
}
