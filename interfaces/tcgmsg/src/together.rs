//! What all processes do together, in the same order: over trees of messages, with a step for each power of two.
//!
//! All messages of one operation between two processes go one way, so those of operations that follow each other are
//! received in their order. The type that the program has given must be the same on all processes, and so must lengths.

use crate::channel::checked;
use crate::failure::{assert_open, fail, lost};
use crate::place::{MESSENGER, TcgmsgContext, me, size};
use crate::tally;
use weft_ports::{Peer, TreePlace};

/// What two values become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combination {
    Sum,
    Product,
    Max,
    Min,
    AbsMax,
    AbsMin,
    /// Of integers only.
    Or,
}

impl Combination {
    /// By TCGMSG's name, which blanks may follow.
    pub fn of_name(name: &[u8]) -> Option<Self> {
        Some(match name.trim_ascii_end() {
            b"+" => Self::Sum,
            b"*" => Self::Product,
            b"max" => Self::Max,
            b"min" => Self::Min,
            b"absmax" => Self::AbsMax,
            b"absmin" => Self::AbsMin,
            b"or" => Self::Or,
            _ => return None,
        })
    }
}

/// A number as it lies in memory.
pub trait Numeral: Copy {
    const BYTES: usize = size_of::<Self>();
    fn read(from: &[u8]) -> Self;
    fn write(self, to: &mut [u8]);
    fn combine(self, other: Self, operation: Combination) -> Self;
    fn has(_: Combination) -> bool {
        true
    }
}

macro_rules! as_it_lies {
    () => {
        fn read(from: &[u8]) -> Self {
            Self::from_ne_bytes(from.try_into().expect("so many bytes"))
        }

        fn write(self, to: &mut [u8]) {
            to.copy_from_slice(&self.to_ne_bytes());
        }
    };
}

macro_rules! integer {
    ($type:ty) => {
        impl Numeral for $type {
            as_it_lies!();

            #[inline]
            fn combine(self, other: Self, operation: Combination) -> Self {
                match operation {
                    Combination::Sum => self.wrapping_add(other),
                    Combination::Product => self.wrapping_mul(other),
                    Combination::Max => self.max(other),
                    Combination::Min => self.min(other),
                    Combination::AbsMax => self.wrapping_abs().max(other.wrapping_abs()),
                    Combination::AbsMin => self.wrapping_abs().min(other.wrapping_abs()),
                    Combination::Or => self | other,
                }
            }
        }
    };
}

integer!(i32);
integer!(i64);

impl Numeral for f64 {
    as_it_lies!();

    #[inline]
    fn combine(self, other: Self, operation: Combination) -> Self {
        match operation {
            Combination::Sum | Combination::Or => self + other,
            Combination::Product => self * other,
            Combination::Max => self.max(other),
            Combination::Min => self.min(other),
            Combination::AbsMax => self.abs().max(other.abs()),
            Combination::AbsMin => self.abs().min(other.abs()),
        }
    }

    fn has(operation: Combination) -> bool {
        operation != Combination::Or
    }
}

/// Brings the bytes of `root` to all.
pub fn broadcast(kind: i32, bytes: &mut [u8], root: i64) {
    assert_open("BRDCST");
    let root = u32::try_from(root).ok().filter(|root| *root < size());
    let root = root.unwrap_or_else(|| fail("BRDCST: there is no such node:", i64::from(me())));
    spread("BRDCST", kind, bytes, root);
}

/// Combines what all have, number by number, and gives all the result, which is the same on all to the last bit.
pub fn combine<T: Numeral>(call: &'static str, kind: i32, bytes: &mut [u8], name: &[u8]) {
    assert_open(call);
    let operation = Combination::of_name(name).filter(|operation| T::has(*operation));
    let operation = operation.unwrap_or_else(|| {
        let name = String::from_utf8_lossy(name);
        fail(&format!("{call}: unknown operation '{}', numbers:", name.trim_end()), (bytes.len() / T::BYTES) as i64)
    });
    let mut theirs = vec![0; bytes.len()];
    let place = TreePlace::new(me(), 0, size());
    for child in place.children() {
        take(call, kind, &mut theirs, child);
        fold::<T>(bytes, &theirs, operation);
    }
    if let Some(parent) = place.parent() {
        send(call, kind, bytes, parent);
    }
    spread(call, kind, bytes, 0);
}

fn fold<T: Numeral>(ours: &mut [u8], theirs: &[u8], operation: Combination) {
    for (mine, other) in ours.chunks_exact_mut(T::BYTES).zip(theirs.chunks_exact(T::BYTES)) {
        T::read(mine).combine(T::read(other), operation).write(mine);
    }
}

/// Returns when all have come here.
pub fn synchronize(kind: i32) {
    assert_open("SYNCH");
    let steps = (0..u32::BITS).map(|power| 1 << power).take_while(|step| *step < size());
    for step in steps {
        send("SYNCH", kind, &[], (me() + step) % size());
        take("SYNCH", kind, &mut [], (me() + size() - step) % size());
    }
}

fn spread(call: &'static str, kind: i32, bytes: &mut [u8], root: u32) {
    let place = TreePlace::new(me(), root, size());
    if let Some(parent) = place.parent() {
        take(call, kind, bytes, parent);
    }
    for child in place.children().rev() {
        send(call, kind, bytes, child);
    }
}

fn send(call: &'static str, kind: i32, bytes: &[u8], to: u32) {
    if let Err(fault) = MESSENGER.send(call, Peer(to), TcgmsgContext::Together.subject(kind), bytes) {
        lost(call, to, fault);
    }
    tally::sent(to, bytes.len());
}

fn take(call: &'static str, kind: i32, room: &mut [u8], from: u32) {
    let outcome = MESSENGER.receive(call, TcgmsgContext::Together.from(Some(Peer(from))), room);
    let received = checked(call, kind, Peer(from), room.len(), outcome);
    if received.length != room.len() {
        let text = format!("{call}: node {from} gives {} bytes, expected", received.length);
        fail(&text, room.len() as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded<T: Numeral>(ours: T, theirs: T, name: &str) -> T {
        let (mut mine, mut other) = (vec![0; T::BYTES], vec![0; T::BYTES]);
        ours.write(&mut mine);
        theirs.write(&mut other);
        fold::<T>(&mut mine, &other, Combination::of_name(name.as_bytes()).expect("a name"));
        T::read(&mine)
    }

    #[test]
    fn operations_are_those_of_their_names() {
        let names = ["+", "*", "max", "min", "absmax", "absmin"];
        assert_eq!(names.map(|name| folded(-7.0, 3.0, name)), [-4.0, -21.0, 3.0, -7.0, 7.0, 3.0]);
        assert_eq!(names.map(|name| folded(-7_i32, 3, name)), [-4, -21, 3, -7, 7, 3]);
        assert_eq!(names.map(|name| folded(-7_i64, 3, name)), [-4, -21, 3, -7, 7, 3]);
        assert_eq!(folded(5_i32, 10, "or  "), 15);
        assert_eq!(Combination::of_name(b"sum"), None);
        assert!(!f64::has(Combination::Or));
    }
}
