//! What tests read and make themselves is right.

use weft_tests::sockets::{Moved, random_bytes};

#[test]
fn sums_of_several_processes_are_added() {
    let said = "hello\nweft: 7: sockets: accelerated 2 ends of connections; over shared memory 100 bytes in, 50 bytes out; \
                through the kernel 3 bytes in, 4 bytes out; 9 wake-ups of others, 8 sleeps; processes with sockets: 1\n\
                weft: 7: sockets: stayed with the kernel 1: a reason\n\
                weft sock: sockets: accelerated 1 ends of connections; over shared memory 1 bytes in, 1 bytes out; \
                through the kernel 1 bytes in, 1 bytes out; 0 wake-ups of others, 0 sleeps; processes with sockets: 2\n";
    assert_eq!(Moved::of(said), Moved { accelerated: 3, by_ring: 152, by_kernel: 9 });
    assert_eq!(Moved::of("nothing"), Moved::default());
}

#[test]
fn random_bytes_are_as_many_as_asked_for_and_do_not_repeat() {
    let bytes = random_bytes(1, 4099);
    assert_eq!((bytes.len(), bytes == random_bytes(1, 4099)), (4099, true));
    assert_ne!(bytes[..2048], bytes[2048..4096]);
}
