//! Functions of C with any number of arguments, which cannot be written in Rust: an entry point saves the registers
//! that arguments may be in, and calls a function with a list of them, which is the `va_list` of the C library's own
//! calls.
//!
//! Layouts and rules are those of the System V ABI for x86-64 (3.5.7) and of the procedure call standard for AArch64
//! (appendix B).

use std::ffi::{c_double, c_int, c_void};

#[cfg(target_arch = "x86_64")]
pub type ArgumentList = RegistersFirst;
#[cfg(target_arch = "aarch64")]
pub type ArgumentList = RegistersBelow;

/// A `va_list`: which arguments are left.
#[cfg(target_arch = "x86_64")]
#[repr(C)]
pub struct RegistersFirst {
    /// ByteString of the saved registers that are used: of numbers, and of floating-point ones, which follow them.
    integers: u32,
    floats: u32,
    stack: *const u64,
    saved: *const u8,
}

#[cfg(target_arch = "x86_64")]
impl RegistersFirst {
    const INTEGERS: u32 = 6 * 8;
    const ALL: u32 = Self::INTEGERS + 8 * 16;

    /// # Safety
    /// The next argument is a number or a pointer.
    unsafe fn word(&mut self) -> u64 {
        if self.integers >= Self::INTEGERS {
            // SAFETY: as the caller says.
            return unsafe { self.next_on_stack() };
        }
        let at = self.integers as usize;
        self.integers += 8;
        // SAFETY: within the saved registers.
        unsafe { self.saved.add(at).cast::<u64>().read() }
    }

    /// # Safety
    /// The next argument is a floating-point number.
    unsafe fn float(&mut self) -> u64 {
        if self.floats >= Self::ALL {
            // SAFETY: as the caller says.
            return unsafe { self.next_on_stack() };
        }
        let at = self.floats as usize;
        self.floats += 16;
        // SAFETY: within the saved registers.
        unsafe { self.saved.add(at).cast::<u64>().read() }
    }

    /// # Safety
    /// There is one.
    unsafe fn next_on_stack(&mut self) -> u64 {
        // SAFETY: as the caller says.
        unsafe {
            let word = self.stack.read();
            self.stack = self.stack.add(1);
            word
        }
    }
}

/// A `va_list`: which arguments are left. Offsets are from the ends of the saved registers, and below zero until all
/// are used.
#[cfg(target_arch = "aarch64")]
#[repr(C)]
pub struct RegistersBelow {
    stack: *const u64,
    integers_end: *const u8,
    floats_end: *const u8,
    integers: i32,
    floats: i32,
}

#[cfg(target_arch = "aarch64")]
impl RegistersBelow {
    /// # Safety
    /// The next argument is a number or a pointer.
    unsafe fn word(&mut self) -> u64 {
        let at = self.integers;
        self.integers = at.saturating_add(8).min(0);
        // SAFETY: as the caller says.
        unsafe {
            if at < 0 { self.integers_end.offset(at as isize).cast::<u64>().read() } else { self.next_on_stack() }
        }
    }

    /// # Safety
    /// The next argument is a floating-point number.
    unsafe fn float(&mut self) -> u64 {
        let at = self.floats;
        self.floats = at.saturating_add(16).min(0);
        // SAFETY: as the caller says.
        unsafe { if at < 0 { self.floats_end.offset(at as isize).cast::<u64>().read() } else { self.next_on_stack() } }
    }

    /// # Safety
    /// There is one.
    unsafe fn next_on_stack(&mut self) -> u64 {
        // SAFETY: as the caller says.
        unsafe {
            let word = self.stack.read();
            self.stack = self.stack.add(1);
            word
        }
    }
}

impl ArgumentList {
    /// # Safety
    /// The next argument is an `int`, or shorter.
    pub unsafe fn int(&mut self) -> c_int {
        // SAFETY: as the caller says.
        unsafe { self.word() as c_int }
    }

    /// # Safety
    /// The next argument is a `long`.
    pub unsafe fn long(&mut self) -> i64 {
        // SAFETY: as the caller says.
        unsafe { self.word() as i64 }
    }

    /// # Safety
    /// The next argument is a `double`, or a `float`, which is passed as one.
    pub unsafe fn double(&mut self) -> c_double {
        // SAFETY: as the caller says.
        f64::from_bits(unsafe { self.float() })
    }

    /// # Safety
    /// The next argument is a pointer.
    pub unsafe fn pointer(&mut self) -> *mut c_void {
        // SAFETY: as the caller says.
        unsafe { self.word() as *mut c_void }
    }
}

/// Defines the function `$name(format, ...)` of C, which calls `$body(format, arguments)`.
#[cfg(target_arch = "x86_64")]
macro_rules! variadic {
    ($name:ident, $body:ident) => {
        /// # Safety
        /// The arguments are those that the format asks for.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            // The list is at the bottom, the saved registers stand 32 bytes higher, the stack's arguments after the
            // address to return to. The first argument, the format, is used. `al` tells whether there are floats.
            std::arch::naked_asm!(
                "sub rsp, 216",
                "mov [rsp + 40], rsi", "mov [rsp + 48], rdx", "mov [rsp + 56], rcx",
                "mov [rsp + 64], r8", "mov [rsp + 72], r9",
                "test al, al",
                "je 2f",
                "movups [rsp + 80], xmm0", "movups [rsp + 96], xmm1", "movups [rsp + 112], xmm2",
                "movups [rsp + 128], xmm3", "movups [rsp + 144], xmm4", "movups [rsp + 160], xmm5",
                "movups [rsp + 176], xmm6", "movups [rsp + 192], xmm7",
                "2:",
                "mov dword ptr [rsp], 8", "mov dword ptr [rsp + 4], 48",
                "lea rax, [rsp + 224]", "mov [rsp + 8], rax",
                "lea rax, [rsp + 32]", "mov [rsp + 16], rax",
                "mov rsi, rsp",
                "call {body}",
                "add rsp, 216",
                "ret",
                body = sym $body,
            )
        }
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! variadic {
    ($name:ident, $body:ident) => {
        /// # Safety
        /// The arguments are those that the format asks for.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            // The list stands at 16, saved registers of numbers at 48 and of floats at 112, the stack's arguments at
            // 240. The first argument, the format, is used.
            std::arch::naked_asm!(
                "stp x29, x30, [sp, -240]!",
                "mov x29, sp",
                "stp x0, x1, [sp, 48]", "stp x2, x3, [sp, 64]", "stp x4, x5, [sp, 80]", "stp x6, x7, [sp, 96]",
                "stp q0, q1, [sp, 112]", "stp q2, q3, [sp, 144]", "stp q4, q5, [sp, 176]", "stp q6, q7, [sp, 208]",
                "add x9, sp, 240", "str x9, [sp, 16]", "str x9, [sp, 32]",
                "add x9, sp, 112", "str x9, [sp, 24]",
                "mov w9, -56", "str w9, [sp, 40]", "mov w9, -128", "str w9, [sp, 44]",
                "add x1, sp, 16",
                "bl {body}",
                "ldp x29, x30, [sp], 240",
                "ret",
                body = sym $body,
            )
        }
    };
}

pub(super) use variadic;
