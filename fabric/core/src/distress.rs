//! A process of a job that a signal is about to end says so to the keeper of its host, and waits a moment for it to
//! look.
//!
//! Without a core that is the only time at which anybody can see where it stands. Nothing is done here but that: no
//! stack is walked and no memory asked for, since both may be broken. When the keeper has looked, or does not, the
//! process ends as it would have: by the same signal, with the core that it would have left.
//!
//! All is well: nothing happens, after a few system calls when the library is loaded. A program that handles these
//! signals itself, before or after, is left to do so. Programs that no launcher has started are left alone.
//!
//! Test: `cargo test -p weft-tests --test faults`.

use std::cell::UnsafeCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use weft_device::kernel;
use weft_wire::distress::{self, DistressCall, REGISTERS};

/// Those that tell of a mistake of the program.
const SIGNALS: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT];
/// How long the keeper may take, in looks at the word that it changes.
const LOOKS: u32 = 600;
const LOOK: Duration = Duration::from_millis(5);
/// For handlers of the first thread: its own stack may be what has overflowed. The kernel stores all registers there,
/// too.
const STACK_BYTES: usize = 64 << 10;

static SOCKET_NAME: OnceLock<Vec<u8>> = OnceLock::new();
static RELEASE: AtomicU32 = AtomicU32::new(0);

struct Stack(UnsafeCell<[u8; STACK_BYTES]>);
// SAFETY: only the kernel writes there, when it calls a handler of the first thread.
unsafe impl Sync for Stack {}
static STACK: Stack = Stack(UnsafeCell::new([0; STACK_BYTES]));

/// To be called when the library is loaded.
pub fn watch() {
    let Some(name) = std::env::var_os(distress::VARIABLE).filter(|name| !name.is_empty()) else { return };
    if SOCKET_NAME.set(name.into_encoded_bytes()).is_err() {
        return;
    }
    // SAFETY: the handler does what is permitted in one; the stack is there as long as the process, and nobody else's.
    unsafe {
        let stack = libc::stack_t { ss_sp: STACK.0.get().cast(), ss_flags: 0, ss_size: STACK_BYTES };
        let mut before: libc::stack_t = std::mem::zeroed();
        libc::sigaltstack(std::ptr::null(), &mut before);
        if before.ss_flags & libc::SS_DISABLE != 0 {
            libc::sigaltstack(&stack, std::ptr::null_mut());
        }
        for signal in SIGNALS {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut action);
            if action.sa_sigaction == libc::SIG_DFL {
                action.sa_sigaction = on_signal as *const () as usize;
                // A second one, in the handler or elsewhere, ends the process as ever.
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESETHAND;
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
        }
    }
}

extern "C" fn on_signal(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel hands both in; they live as long as this call.
    let (info, context) = unsafe { (&*info, &*context.cast::<libc::ucontext_t>()) };
    let was_sent = info.si_code <= 0;
    let (instruction, registers) = registers(context);
    let call = DistressCall {
        pid: kernel::process(),
        thread: kernel::thread(),
        signal: signal as u32,
        processor: if cfg!(target_arch = "x86_64") { distress::X86 } else { distress::ARM },
        // SAFETY: of a signal that the processor has raised.
        address: if was_sent { 0 } else { unsafe { info.si_addr() as u64 } },
        release: RELEASE.as_ptr() as u64,
        instruction,
        registers,
    };
    tell(&call);
    if was_sent {
        // It does not come again by itself.
        // SAFETY: numbers only.
        unsafe { libc::syscall(libc::SYS_tgkill, call.pid, call.thread, signal) };
    }
}

/// Says it, and waits until somebody has looked. Whoever is not there is not waited for.
fn tell(call: &DistressCall) {
    let Some(name) = SOCKET_NAME.get() else { return };
    let Ok(socket) = kernel::socket(libc::AF_UNIX, libc::SOCK_DGRAM) else { return };
    // SAFETY: asks the kernel to let others of this user look at this process, where only ancestors may.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY) };
    let mut heard = false;
    let pause = libc::timespec { tv_sec: 0, tv_nsec: LOOK.as_nanos() as libc::c_long };
    for _ in 0..LOOKS {
        // The kernel queues few calls (`net.unix.max_dgram_qlen`); who fails beside many others tries again.
        if !heard {
            let fd = std::os::fd::AsRawFd::as_raw_fd(&socket);
            match kernel::send_to(fd, &call.encode(), &kernel::Abstract::new(name)) {
                Ok(_) => heard = true,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
        if RELEASE.load(Ordering::Relaxed) != 0 {
            return;
        }
        // SAFETY: the time is valid; that it is cut short does not matter.
        unsafe { libc::syscall(libc::SYS_nanosleep, &pause, std::ptr::null_mut::<libc::timespec>()) };
    }
}

/// Where the thread was, and its registers by the numbers of DWARF.
#[cfg(target_arch = "x86_64")]
fn registers(context: &libc::ucontext_t) -> (u64, [u64; REGISTERS]) {
    use libc::*;
    let order = [
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8, REG_R9, REG_R10, REG_R11,
        REG_R12, REG_R13, REG_R14, REG_R15,
    ];
    let mut registers = [0; REGISTERS];
    for (register, number) in registers.iter_mut().zip(order) {
        *register = context.uc_mcontext.gregs[number as usize] as u64;
    }
    (context.uc_mcontext.gregs[REG_RIP as usize] as u64, registers)
}

#[cfg(target_arch = "aarch64")]
fn registers(context: &libc::ucontext_t) -> (u64, [u64; REGISTERS]) {
    let mut registers = [0; REGISTERS];
    registers[..31].copy_from_slice(&context.uc_mcontext.regs);
    registers[31] = context.uc_mcontext.sp;
    (context.uc_mcontext.pc, registers)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn registers(_: &libc::ucontext_t) -> (u64, [u64; REGISTERS]) {
    (0, [0; REGISTERS])
}
