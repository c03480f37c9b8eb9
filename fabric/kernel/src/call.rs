//! The call itself.

use std::io;

/// One system call. Answers what the kernel does: a result, or a negative error number.
///
/// # Safety
/// What the call does to memory must be sound.
#[inline]
pub unsafe fn call(number: libc::c_long, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let answer: isize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the kernel's calling convention; it changes rcx, r11 and rax only. The caller answers for memory.
    unsafe {
        std::arch::asm!("syscall", inlateout("rax") number as isize => answer, in("rdi") a, in("rsi") b, in("rdx") c,
            in("r10") d, in("r8") e, in("r9") f, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the kernel's calling convention. The caller answers for memory.
    unsafe {
        std::arch::asm!("svc 0", in("x8") number, inlateout("x0") a as isize => answer, in("x1") b, in("x2") c,
            in("x3") d, in("x4") e, in("x5") f, options(nostack));
    }
    answer
}

/// A call with up to six arguments, and its result.
///
/// # Safety
/// As [`call`].
#[inline]
pub unsafe fn checked<const N: usize>(number: libc::c_long, arguments: [usize; N]) -> io::Result<usize> {
    let mut all = [0; 6];
    all[..N].copy_from_slice(&arguments);
    // SAFETY: the caller's.
    let answer = unsafe { call(number, all) };
    if answer < 0 { Err(io::Error::from_raw_os_error(-answer as i32)) } else { Ok(answer as usize) }
}

/// [`checked`], with arguments of any types that are words: numbers, and pointers to what lives across the call.
#[macro_export]
macro_rules! system_call {
    ($number:expr $(, $argument:expr)* $(,)?) => { $crate::checked($number, [$($argument as usize),*]) };
}
