//! Task identifiers: a host and a number there, as in PVM 3 (`pvm_intro(1PVM)`).

/// The bits that name the host.
pub const HOST_MASK: i32 = 0x3ffc_0000;
/// The bits that name the task on its host.
pub const LOCAL_MASK: i32 = 0x0003_ffff;
const HOST_SHIFT: u32 = 18;
/// Set in the identifier of a daemon.
const DAEMON: i32 = i32::MIN;
/// Set where a number stands for several tasks.
const MULTICAST: i32 = 0x4000_0000;

/// Hosts have numbers from 1 to this.
pub const HOSTS: u32 = 0xfff;

/// The task with this number on a host.
pub fn task(host: u32, local: i32) -> i32 {
    ((host << HOST_SHIFT) as i32 & HOST_MASK) | (local & LOCAL_MASK)
}

/// The daemon of a host.
pub fn daemon(host: u32) -> i32 {
    task(host, 0) | DAEMON
}

/// The number of the host that an identifier names, of a task or a daemon.
pub fn host(tid: i32) -> u32 {
    ((tid & HOST_MASK) >> HOST_SHIFT) as u32
}

/// Whether it can be a task's.
pub fn is_task(tid: i32) -> bool {
    tid & (DAEMON | MULTICAST) == 0 && tid & LOCAL_MASK != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_have_the_parts_that_programs_know() {
        assert_eq!(task(1, 2), 0x40002);
        assert_eq!(daemon(1), 0x8004_0000_u32 as i32);
        assert_eq!((host(task(7, 9)), host(daemon(7))), (7, 7));
        assert!(is_task(0x40001));
        for other in [0, -1, 0x40000, daemon(1), 0x4004_0001] {
            assert!(!is_task(other), "{other:#x}");
        }
    }
}
