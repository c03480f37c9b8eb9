//! The same with the instruction of the processor, and the state in its registers.
#![allow(unsafe_code)]

use super::{Begin, RATE, ROUNDS_FIRST, ROUNDS_LAST, State, halves, last_halves, sizes};
use std::arch::x86_64::{
    __m128i, _mm_aesenc_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_unpackhi_epi64, _mm_xor_si128,
};

/// The processor has it.
#[derive(Clone, Copy)]
pub struct AesInstruction(());

impl AesInstruction {
    #[inline]
    pub fn detect() -> Option<Self> {
        std::arch::is_x86_feature_detected!("aes").then_some(Self(()))
    }

    /// The state after the first rounds.
    #[inline]
    pub fn begin(self, begin: Begin) -> State {
        // SAFETY: there is one of us only where the processor has the instruction.
        unsafe { begin_by_instruction(begin) }
    }

    #[inline]
    pub fn tag(self, state: &State, first: [u128; 2], bytes: &[u8]) -> u128 {
        // SAFETY: as in `begin`.
        unsafe { tag_by_instruction(state, first, bytes) }
    }
}

#[target_feature(enable = "aes")]
fn begin_by_instruction(Begin { state, halves }: Begin) -> State {
    let (mut state, halves) = (state.map(|word| block(word)), halves.map(|word| block(word)));
    for _ in 0..ROUNDS_FIRST {
        state = update(state, halves);
    }
    state.map(|block| word(block))
}

#[target_feature(enable = "aes")]
fn tag_by_instruction(state: &State, first: [u128; 2], bytes: &[u8]) -> u128 {
    let mut state = state.map(|word| block(word));
    state = update(state, first.map(|word| block(word)));
    let (blocks, rest) = bytes.as_chunks::<RATE>();
    for bytes in blocks {
        state = update(state, halves(bytes).map(|word| block(word)));
    }
    if !rest.is_empty() {
        state = update(state, last_halves(rest).map(|word| block(word)));
    }
    let sizes = _mm_xor_si128(state[2], block(sizes(bytes)));
    for _ in 0..ROUNDS_LAST {
        state = update(state, [sizes; 2]);
    }
    let [a, b, c, d, e, f, g, _] = state;
    let both = |one, other| _mm_xor_si128(one, other);
    word(both(both(both(a, b), both(c, d)), both(both(e, f), g)))
}

#[inline]
#[target_feature(enable = "aes")]
fn block(word: u128) -> __m128i {
    _mm_set_epi64x((word >> 64) as i64, word as i64)
}

#[inline]
#[target_feature(enable = "aes")]
fn word(block: __m128i) -> u128 {
    let (low, high) = (_mm_cvtsi128_si64(block), _mm_cvtsi128_si64(_mm_unpackhi_epi64(block, block)));
    u128::from(low as u64) | (u128::from(high as u64) << 64)
}

#[inline]
#[target_feature(enable = "aes")]
fn update(state: [__m128i; 8], [first, second]: [__m128i; 2]) -> [__m128i; 8] {
    let [a, b, c, d, e, f, g, h] = state;
    [
        _mm_aesenc_si128(h, _mm_xor_si128(a, first)),
        _mm_aesenc_si128(a, b),
        _mm_aesenc_si128(b, c),
        _mm_aesenc_si128(c, d),
        _mm_aesenc_si128(d, _mm_xor_si128(e, second)),
        _mm_aesenc_si128(e, f),
        _mm_aesenc_si128(f, g),
        _mm_aesenc_si128(g, h),
    ]
}
