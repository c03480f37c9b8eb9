//! Functions of C with any number of arguments, which cannot be written in Rust: each does what is to be done before, and
//! jumps to the real one with all registers and the stack as they came.

use std::ffi::c_int;

use weft_fabric::stream::Reason;

use crate::{life, real};

extern "C" fn before_exec() {
    life::before_exec(Reason::Exec);
    life::leave();
}

extern "C" fn before_printing(fd: c_int) {
    life::hand_back(fd, Reason::Stdio);
}

extern "C" fn real_execl() -> usize {
    real::address_of(c"execl")
}

extern "C" fn real_execlp() -> usize {
    real::address_of(c"execlp")
}

extern "C" fn real_execle() -> usize {
    real::address_of(c"execle")
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

pass_on!(execl, before_exec, real_execl);
pass_on!(execlp, before_exec, real_execlp);
pass_on!(execle, before_exec, real_execle);
pass_on!(dprintf, before_printing, real_dprintf);
