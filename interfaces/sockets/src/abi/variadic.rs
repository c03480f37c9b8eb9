//! Functions of C with any number of arguments, which cannot be written in Rust: one that prints does what is to be
//! done before, and jumps to the real one with all registers and the stack as they came; those that replace the program
//! may come back, so they show their words where they lie, and are the function with an array.

use std::ffi::{c_char, c_int};

use weft_fabric::stream::Reason;

use super::process;
use crate::{life, raw, real};

extern "C" fn before_printing(fd: c_int) {
    life::hand_back(fd, Reason::Stdio);
}

extern "C" fn real_dprintf() -> usize {
    real::address_of(c"dprintf")
}

/// Saves the argument registers, calls `$before` (with the first argument) and `$real`, which answers where to go on.
#[cfg(target_arch = "x86_64")]
macro_rules! pass_on {
    ($name:ident, $before:ident, $real:ident) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            std::arch::naked_asm!(
                "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "push rax",
                "sub rsp, 128",
                "movups [rsp], xmm0", "movups [rsp + 16], xmm1", "movups [rsp + 32], xmm2", "movups [rsp + 48], xmm3",
                "movups [rsp + 64], xmm4", "movups [rsp + 80], xmm5", "movups [rsp + 96], xmm6", "movups [rsp + 112], xmm7",
                "call {before}",
                "call {real}",
                "mov r11, rax",
                "movups xmm0, [rsp]", "movups xmm1, [rsp + 16]", "movups xmm2, [rsp + 32]", "movups xmm3, [rsp + 48]",
                "movups xmm4, [rsp + 64]", "movups xmm5, [rsp + 80]", "movups xmm6, [rsp + 96]", "movups xmm7, [rsp + 112]",
                "add rsp, 128",
                "pop rax", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                "jmp r11",
                before = sym $before,
                real = sym $real,
            )
        }
    };
}

/// As above; vector registers of arguments are kept, too.
#[cfg(target_arch = "aarch64")]
macro_rules! pass_on {
    ($name:ident, $before:ident, $real:ident) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            std::arch::naked_asm!(
                "stp x29, x30, [sp, -208]!",
                "stp x0, x1, [sp, 16]", "stp x2, x3, [sp, 32]", "stp x4, x5, [sp, 48]", "stp x6, x7, [sp, 64]",
                "stp q0, q1, [sp, 80]", "stp q2, q3, [sp, 112]", "stp q4, q5, [sp, 144]", "stp q6, q7, [sp, 176]",
                "bl {before}",
                "bl {real}",
                "mov x16, x0",
                "ldp x0, x1, [sp, 16]", "ldp x2, x3, [sp, 32]", "ldp x4, x5, [sp, 48]", "ldp x6, x7, [sp, 64]",
                "ldp q0, q1, [sp, 80]", "ldp q2, q3, [sp, 112]", "ldp q4, q5, [sp, 144]", "ldp q6, q7, [sp, 176]",
                "ldp x29, x30, [sp], 208",
                "br x16",
                before = sym $before,
                real = sym $real,
            )
        }
    };
}

pass_on!(dprintf, before_printing, real_dprintf);

/// How many words besides the first come in registers.
const IN_REGISTERS: usize = if cfg!(target_arch = "x86_64") { 5 } else { 7 };

/// The words of a call, as the C library wants them in an array.
#[derive(Clone, Copy)]
struct CallWords {
    registers: *const *const c_char,
    stack: *const *const c_char,
}

impl CallWords {
    /// # Safety
    /// No word before this one ended the list, but for the one that a caller knows to follow its end.
    unsafe fn at(self, index: usize) -> *const c_char {
        // SAFETY: the caller's promise: the word was passed.
        unsafe {
            match index.checked_sub(IN_REGISTERS) {
                None => self.registers.add(index).read(),
                Some(index) => self.stack.add(index).read(),
            }
        }
    }

    /// How many words there are before the one that ends them.
    ///
    /// # Safety
    /// A null pointer ends the list.
    unsafe fn count(self) -> usize {
        // SAFETY: none of the words looked at comes after the end.
        (0..).find(|index| unsafe { self.at(*index) }.is_null()).unwrap_or(0)
    }

    /// Calls `call` with the array; -1 when there is no memory for it or the program could not be replaced.
    ///
    /// # Safety
    /// As [`Self::count`].
    unsafe fn with_array(self, call: impl FnOnce(*const *const c_char) -> c_int) -> c_int {
        // SAFETY: the caller's promise.
        let count = unsafe { self.count() } + 1;
        // No allocator: this is called between fork and exec.
        let bytes = count * size_of::<*const c_char>();
        let array = raw::map(bytes, false).cast::<*const c_char>();
        if array.is_null() {
            raw::set_errno(libc::ENOMEM);
            return -1;
        }
        for index in 0..count {
            // SAFETY: below the count, its end included; the array has room for it.
            unsafe { array.add(index).write(self.at(index)) };
        }
        let answer = call(array);
        // SAFETY: nobody has kept it.
        unsafe { raw::unmap(array.cast(), bytes) };
        answer
    }
}

unsafe extern "C" fn list(path: *const c_char, registers: *const *const c_char, stack: *const *const c_char) -> c_int {
    // SAFETY: the program's own arguments.
    unsafe { CallWords { registers, stack }.with_array(|words| process::execv(path, words)) }
}

unsafe extern "C" fn list_in_path(
    file: *const c_char,
    registers: *const *const c_char,
    stack: *const *const c_char,
) -> c_int {
    // SAFETY: the program's own arguments.
    unsafe { CallWords { registers, stack }.with_array(|words| process::execvp(file, words)) }
}

unsafe extern "C" fn list_and_environment(
    path: *const c_char,
    registers: *const *const c_char,
    stack: *const *const c_char,
) -> c_int {
    let list = CallWords { registers, stack };
    // SAFETY: the program's own arguments; the environment follows the end of the list.
    unsafe {
        let environment = list.at(list.count() + 1).cast();
        list.with_array(|words| process::execve(path, words, environment))
    }
}

/// Lays the words that came in registers down, and calls `$body` with the first argument, their place and the stack's.
#[cfg(target_arch = "x86_64")]
macro_rules! lay_down {
    ($name:ident, $body:ident) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            std::arch::naked_asm!(
                "push r9", "push r8", "push rcx", "push rdx", "push rsi",
                "mov rsi, rsp",
                "lea rdx, [rsp + 48]",
                "call {body}",
                "add rsp, 40",
                "ret",
                body = sym $body,
            )
        }
    };
}

/// As above.
#[cfg(target_arch = "aarch64")]
macro_rules! lay_down {
    ($name:ident, $body:ident) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            std::arch::naked_asm!(
                "stp x29, x30, [sp, -80]!",
                "stp x1, x2, [sp, 16]", "stp x3, x4, [sp, 32]", "stp x5, x6, [sp, 48]", "str x7, [sp, 64]",
                "add x1, sp, 16",
                "add x2, sp, 80",
                "bl {body}",
                "ldp x29, x30, [sp], 80",
                "ret",
                body = sym $body,
            )
        }
    };
}

lay_down!(execl, list);
lay_down!(execlp, list_in_path);
lay_down!(execle, list_and_environment);
