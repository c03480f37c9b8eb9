//! Copies that write to memory and leave the caches to others.
//!
//! An ordinary store first fetches the line that it overwrites, and later throws another one out. For bytes that nobody
//! reads before they have left the caches anyway both are wasted.

/// Copies `length` bytes. The stores are not ordered with others until [`settle`].
///
/// # Safety
/// As `copy_nonoverlapping` of bytes.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    const LINE: usize = 64;
    let skew = to.align_offset(LINE).min(length);
    let lines = (length - skew) / LINE;
    let rest = skew + lines * LINE;
    // SAFETY: skew <= rest <= length; the stores go to whole lines, which are aligned more than they ask for.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, skew);
        for line in 0..lines {
            let at = skew + line * LINE;
            let (source, target) = (from.add(at).cast::<__m128i>(), to.add(at).cast::<__m128i>());
            // All four loads first: a line is written in one piece.
            let quarters: [__m128i; 4] = std::array::from_fn(|i| _mm_loadu_si128(source.add(i)));
            for (i, quarter) in quarters.into_iter().enumerate() {
                _mm_stream_si128(target.add(i), quarter);
            }
        }
        std::ptr::copy_nonoverlapping(from.add(rest), to.add(rest), length - rest);
    }
}

/// Other processors keep their own counsel about what to cache.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(from, to, length) };
}

/// Orders what [`copy`] stored before every later store.
pub fn settle() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has it.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    };
}

/// Asks for the line at an address, with ownership if it is to be written. A hint, for any address.
#[inline(always)]
pub(crate) fn fetch<const WRITE: bool>(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    // SAFETY: it reads and writes nothing, and does nothing where there is no memory.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_ET0, _MM_HINT_T0, _mm_prefetch};
        if WRITE { _mm_prefetch::<_MM_HINT_ET0>(at.cast()) } else { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
    let _ = at;
}

/// Moves bytes that were just written to the cache that all cores share, where another core finds them sooner than in
/// ours. A hint: processors that do not know it do nothing.
///
/// It costs the writer about as much as the reader gains, so it is for messages that somebody waits for.
#[inline]
pub(crate) fn hand_on(at: *const u8, length: usize) {
    const LINE: usize = 64;
    #[cfg(target_arch = "x86_64")]
    for line in 0..length.div_ceil(LINE) {
        let line = at.wrapping_add(line * LINE);
        // SAFETY: a hint, which reads and writes nothing; where it is not known its code is that of a no-operation.
        unsafe { std::arch::asm!("cldemote [{}]", in(reg) line, options(nostack, preserves_flags)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (at, length, LINE);
}

/// Bytes of the last cache that each of `sharers` processes of this host can count on, none of its own known better:
/// three quarters of an equal part. `usize::MAX` where the kernel does not say how large that cache is.
pub fn share_of_cache(sharers: u32) -> usize {
    let size = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index3/size");
    size.ok().and_then(|text| in_bytes(text.trim())).map_or(usize::MAX, |bytes| bytes / 4 * 3 / sharers.max(1) as usize)
}

/// `32768K`, as the kernel writes it.
fn in_bytes(text: &str) -> Option<usize> {
    let (digits, unit) = match text.strip_suffix('K') {
        Some(digits) => (digits, 1 << 10),
        None => match text.strip_suffix('M') {
            Some(digits) => (digits, 1 << 20),
            None => (text, 1),
        },
    };
    digits.parse::<usize>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_and_alignment_is_copied_and_nothing_beside_it() {
        let from: Vec<u8> = (0..1000u32).map(|i| (i * 7 + 3) as u8).collect();
        for skew in 0..70 {
            for length in (0..200).chain([640, 641, 900]) {
                let mut to = vec![0xa5u8; 1100];
                // SAFETY: skew + length <= 1100, and length + 5 <= 1000.
                unsafe { copy(from.as_ptr().add(5), to.as_mut_ptr().add(skew), length) };
                settle();
                assert_eq!(&to[skew..skew + length], &from[5..5 + length], "{length} bytes at {skew}");
                assert!(to[..skew].iter().chain(&to[skew + length..]).all(|b| *b == 0xa5), "{length} bytes at {skew}");
            }
        }
    }

    #[test]
    fn sizes_are_read_as_the_kernel_writes_them() {
        assert_eq!(in_bytes("32768K"), Some(32 << 20));
        assert_eq!(in_bytes("8M"), Some(8 << 20));
        assert_eq!(in_bytes("512"), Some(512));
        assert_eq!(in_bytes("many"), None);
    }
}
