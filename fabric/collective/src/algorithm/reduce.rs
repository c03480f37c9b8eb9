//! Reductions. All fold in the order of ranks, so that operations need not be commutative, and every rank that
//! computes a value computes it in the same way, so that results are the same bit for bit.

use super::tree::BinomialPlace;
use crate::schedule::{Party, Schedule, View};
use weft_fabric::settings::algorithms::{Allreduce, Reduce, ReduceScatter};

/// From this many bytes on halves are exchanged instead of whole vectors.
const LONG_BYTES: u64 = 16 << 10;
/// Up to this many bytes in all everyone computes everything in a reduce-scatter.
const SMALL_SCATTER_BYTES: u64 = 4 << 10;

/// A vector being folded: the value so far and a second place of the same shape. Folding what was received on the
/// right leaves the result in the received vector, so the two change places.
struct Accumulator {
    value: View,
    spare: View,
}

impl Accumulator {
    /// What was received into `spare` stands to the left of the value.
    fn fold_left(&self, s: &mut Schedule) {
        s.fold(self.spare, self.value);
    }

    /// What was received into `spare` stands to the right of the value, which stands where it is `held`.
    fn fold_right(&mut self, s: &mut Schedule, held: View) {
        s.fold(held, self.spare);
        std::mem::swap(&mut self.value, &mut self.spare);
    }

    fn finish(&self, s: &mut Schedule, output: View) {
        s.copy(self.value, output);
    }
}

/// The ranks among which a power of two takes part: the first `2 * extra` ranks work in pairs, of which the odd one
/// stands for both.
#[derive(Clone, Copy)]
struct FoldedRanks {
    me: Party,
    extra: u32,
    power: u32,
}

impl FoldedRanks {
    fn new(me: Party) -> Self {
        let power = 1 << me.size.ilog2();
        Self { me, extra: me.size - power, power }
    }

    /// Our number among the power of two; `None` for a rank that its partner stands for.
    fn number(self) -> Option<u32> {
        match self.me.rank {
            rank if rank >= 2 * self.extra => Some(rank - self.extra),
            rank if rank % 2 == 1 => Some(rank / 2),
            _ => None,
        }
    }

    fn rank(self, number: u32) -> u32 {
        if number < self.extra { 2 * number + 1 } else { number + self.extra }
    }

    /// Whether we stand for our neighbour too.
    fn is_double(self) -> bool {
        self.me.rank < 2 * self.extra && self.me.rank % 2 == 1
    }
}

/// Everyone gets the fold of all vectors. `input` is this rank's (the output itself in place).
pub fn allreduce(s: &mut Schedule, me: Party, input: View, output: View) {
    if me.size == 1 || s.size(output) == 0 {
        return s.copy(input, output);
    }
    let folded = FoldedRanks::new(me);
    let Some(number) = folded.number() else {
        s.send(me.rank + 1, input);
        s.wait();
        s.receive(me.rank + 1, output);
        return s.wait();
    };
    // Between two as many bytes go either way, and once.
    let chosen = s.size(output) >= LONG_BYTES && folded.power > 2;
    let long = s.algorithms.allreduce.map_or(chosen, |named| named == Allreduce::Halving);
    let long = long && output.count >= u64::from(folded.power);
    s.chose(if long { Allreduce::Halving } else { Allreduce::Doubling }, me, s.size(output));
    if long {
        halving(s, folded, number, input, output);
    } else {
        doubling(s, folded, number, input, output);
    }
    if folded.is_double() {
        s.send(me.rank - 1, output);
        s.wait();
    }
}

/// Recursive doubling: partners at growing distance exchange their whole values.
fn doubling(s: &mut Schedule, folded: FoldedRanks, number: u32, input: View, output: View) {
    let scratch = s.reserve_elements(output.shape, output.count);
    // Each fold on the right moves the value to the other place; begin so that it ends in the output.
    let swaps = (0..folded.power.ilog2()).filter(|bit| number & (1 << bit) == 0).count();
    let (value, spare) = if swaps % 2 == 0 { (output, scratch) } else { (scratch, output) };
    let mut acc = Accumulator { value, spare };
    // The input leaves from where it is, unless something is to be received there.
    let mut held = if folded.is_double() || input == acc.spare { acc.value } else { input };
    s.copy(input, held);
    if folded.is_double() {
        s.receive(folded.me.rank - 1, acc.spare);
        s.wait();
        acc.fold_left(s);
    }
    let mut distance = 1;
    while distance < folded.power {
        let (partner, stays_left) = (folded.rank(number ^ distance), number & distance == 0);
        s.receive(partner, acc.spare);
        s.send(partner, held);
        if !stays_left {
            s.copy(held, acc.value);
        }
        s.wait();
        if stays_left {
            acc.fold_right(s, held);
        } else {
            acc.fold_left(s);
        }
        held = acc.value;
        distance *= 2;
    }
    acc.finish(s, output);
}

/// The elements that a number holds after `rounds` rounds of halving: (first, count).
fn piece(number: u32, rounds: u32, count: u64) -> (u64, u64) {
    let (mut first, mut end) = (0, count);
    for bit in 0..rounds {
        let middle = first + (end - first) / 2;
        if number & (1 << bit) == 0 { end = middle } else { first = middle }
    }
    (first, end - first)
}

/// Recursive halving with growing distance (each partner keeps half of what both have, so that neighbouring ranks are
/// folded first), after which number `i` has the fold of `piece(i)` in `output`, then the way back (Rabenseifner).
fn halving(s: &mut Schedule, folded: FoldedRanks, number: u32, input: View, output: View) {
    let rounds = folded.power.ilog2();
    reduce_pieces(s, folded, number, input, output);
    for bit in (0..rounds).rev() {
        let partner = number ^ (1 << bit);
        let (mine, theirs) = (piece(number, bit + 1, output.count), piece(partner, bit + 1, output.count));
        s.receive(folded.rank(partner), s.part(output, theirs.0, theirs.1));
        s.send(folded.rank(partner), s.part(output, mine.0, mine.1));
        s.wait();
    }
}

/// The first half of [`halving`].
fn reduce_pieces(s: &mut Schedule, folded: FoldedRanks, number: u32, input: View, output: View) {
    let scratch = s.reserve_elements(output.shape, output.count);
    let acc = Accumulator { value: output, spare: scratch };
    // As in `doubling`.
    let mut held = if folded.is_double() { output } else { input };
    s.copy(input, held);
    if folded.is_double() {
        s.receive(folded.me.rank - 1, acc.spare);
        s.wait();
        acc.fold_left(s);
    }
    let Accumulator { mut value, mut spare } = acc;
    for bit in 0..folded.power.ilog2() {
        let partner = number ^ (1 << bit);
        let (kept, given) = (piece(number, bit + 1, output.count), piece(partner, bit + 1, output.count));
        let part = |s: &Schedule, of: View| s.part(of, kept.0, kept.1);
        let (mine, room) = (part(s, held), part(s, spare));
        s.receive(folded.rank(partner), room);
        s.send(folded.rank(partner), s.part(held, given.0, given.1));
        if number & (1 << bit) == 0 {
            s.wait();
            s.fold(mine, room);
            std::mem::swap(&mut value, &mut spare);
        } else {
            let into = part(s, value);
            s.copy(mine, into);
            s.wait();
            s.fold(room, into);
        }
        held = value;
    }
    let (first, count) = piece(number, folded.power.ilog2(), output.count);
    s.copy(s.part(value, first, count), s.part(output, first, count));
}

/// The root gets the fold of all vectors; `output` counts only there.
pub fn reduce(s: &mut Schedule, me: Party, root: u32, input: View, output: View, commutative: bool) {
    if me.size == 1 || s.size(input) == 0 {
        return s.copy(input, output);
    }
    let folded = FoldedRanks::new(me);
    let long = s.size(input) >= LONG_BYTES && me.size > 2;
    let long = s.algorithms.reduce.map_or(long, |named| named == Reduce::Halving);
    let long = long && input.count >= u64::from(folded.power);
    s.chose(if long { Reduce::Halving } else { Reduce::Binomial }, me, s.size(input));
    if long {
        return reduce_long(s, folded, root, input, output);
    }
    // The order of ranks begins at rank 0; where order does not matter it may begin at the root.
    let top = if commutative { root } else { 0 };
    let target = if me.rank == root { output } else { s.reserve_elements(input.shape, input.count) };
    let value = binomial(s, me, top, input, target);
    match me.rank {
        rank if rank == root && root == top => s.copy(value, output),
        rank if rank == root => {
            s.receive(top, output);
            s.wait();
        }
        rank if rank == top => {
            s.send(root, value);
            s.wait();
        }
        _ => {}
    }
}

/// Folds along a binomial tree from `top` on, in the order of ranks counted from there; answers where the value lies
/// at the top.
fn binomial(s: &mut Schedule, me: Party, top: u32, input: View, target: View) -> View {
    let place = BinomialPlace::new(me, top);
    let children = place.children();
    let mut value = input;
    if !children.is_empty() {
        let mut rooms = [s.reserve_elements(input.shape, input.count), target];
        // The last child's room is the target, unless the input lies there and has to be read first.
        if input != target && children.len() % 2 == 1 {
            rooms.swap(0, 1);
        }
        for (i, &(child, ..)) in children.iter().enumerate() {
            let room = rooms[i % 2];
            s.receive(child, room);
            s.wait();
            s.fold(value, room);
            value = room;
        }
    }
    if let Some(parent) = place.parent() {
        s.send(parent, value);
        s.wait();
    }
    value
}

/// Pieces are folded as in [`halving`] and sent to the root directly.
fn reduce_long(s: &mut Schedule, folded: FoldedRanks, root: u32, input: View, output: View) {
    let me = folded.me;
    let number = folded.number();
    let work = if me.rank == root { output } else { s.reserve_elements(input.shape, input.count) };
    match number {
        Some(number) => reduce_pieces(s, folded, number, input, work),
        None => {
            s.send(me.rank + 1, input);
            s.wait();
        }
    }
    let rounds = folded.power.ilog2();
    if me.rank == root {
        for other in (0..folded.power).filter(|&other| Some(other) != number) {
            let (first, count) = piece(other, rounds, input.count);
            s.receive(folded.rank(other), s.part(output, first, count));
        }
    } else if let Some(number) = number {
        let (first, count) = piece(number, rounds, input.count);
        s.send(root, s.part(work, first, count));
    }
    s.wait();
}

/// Rank `i` gets the fold of everyone's `i`-th block. `input` is the whole vector, `counts` the elements of the
/// blocks; `output` is this rank's block (in place: `input` lies there too and is overwritten at its beginning).
pub fn reduce_scatter(s: &mut Schedule, me: Party, counts: &[u64], input: View, output: View) {
    let mut starts = vec![0];
    for &count in counts {
        starts.push(starts[starts.len() - 1] + count);
    }
    let block = |s: &Schedule, rank: u32| s.part(input, starts[rank as usize], counts[rank as usize]);
    let mine = block(s, me.rank);
    if me.size == 1 || s.size(input) == 0 {
        return s.copy(mine, output);
    }
    let small = s.size(input) <= SMALL_SCATTER_BYTES;
    let chosen = if small { ReduceScatter::Allreduce } else { ReduceScatter::Pairwise };
    let algorithm = s.algorithms.reduce_scatter.unwrap_or(chosen);
    s.chose(algorithm, me, s.size(input));
    if algorithm == ReduceScatter::Allreduce {
        let whole = s.reserve_elements(input.shape, input.count);
        allreduce(s, me, input, whole);
        return s.copy(s.part(whole, starts[me.rank as usize], counts[me.rank as usize]), output);
    }
    pairwise_scatter(s, me, |s, rank| block(s, rank), output);
}

/// Everyone's block comes directly. Those of lower ranks are folded downwards from our own, those of higher ranks
/// downwards from the last: two values, joined at the end.
fn pairwise_scatter(s: &mut Schedule, me: Party, block: impl Fn(&Schedule, u32) -> View, output: View) {
    let mine = block(s, me.rank);
    let lower = s.reserve_elements(mine.shape, mine.count);
    let upper = s.reserve_elements(mine.shape, mine.count);
    let room = s.reserve_elements(mine.shape, mine.count);
    s.copy(mine, lower);
    for distance in 1..me.size {
        let (from, to) = (me.before(distance), me.after(distance));
        let first_upper = distance == me.rank + 1;
        s.receive(from, if first_upper { upper } else { room });
        s.send(to, block(s, to));
        s.wait();
        if !first_upper {
            s.fold(room, if distance <= me.rank { lower } else { upper });
        }
    }
    let result = if me.rank + 1 < me.size { upper } else { lower };
    if result == upper {
        s.fold(lower, upper);
    }
    s.copy(result, output);
}
