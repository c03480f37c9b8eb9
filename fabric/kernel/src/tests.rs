//! What callers rely on beside the calls themselves.

use super::*;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;

#[test]
fn a_packet_brings_its_descriptor_or_says_that_there_is_none_now() {
    let (from, to) = UnixStream::pair().expect("a pair");
    let nothing = receive_packet(to.as_raw_fd(), &mut [0; 8]).map(|(bytes, _)| bytes);
    assert_eq!(nothing.expect_err("nothing was sent").kind(), ErrorKind::WouldBlock);
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    send_packet(from.as_raw_fd(), b"with", Some(writer.as_raw_fd())).expect("room");
    drop(writer);
    let mut packet = [0; 8];
    let (bytes, descriptor) = receive_packet(to.as_raw_fd(), &mut packet).expect("it is there");
    assert_eq!(&packet[..bytes], b"with");
    let came = descriptor.expect("it was sent");
    File::from(OwnedFd::from(came)).write_all(b"through").expect("room");
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("nobody else holds the other end");
    assert_eq!(text, "through");
    send_packet(from.as_raw_fd(), b"alone", None).expect("room");
    drop(from);
    let next = |packet: &mut [u8]| receive_packet(to.as_raw_fd(), packet).expect("it is there");
    assert!(matches!(next(&mut packet), (5, None)));
    assert!(matches!(next(&mut packet), (0, None)), "the end");
}

#[test]
fn memory_with_bytes_keeps_its_length_and_where_it_is_final_its_bytes() {
    for is_final in [false, true] {
        let memory = File::from(memory_with(c"weft-test", b"bytes", is_final).expect("memory"));
        assert!(is_sealed(memory.as_raw_fd(), 5) && !is_sealed(memory.as_raw_fd(), 6));
        assert!(memory.set_len(4).is_err() && memory.set_len(6).is_err());
        assert_eq!(memory.write_all_at(b"B", 0).is_ok(), !is_final);
        let mut bytes = [0; 5];
        memory.read_exact_at(&mut bytes, 0).expect("all are there");
        assert_eq!(&bytes, if is_final { b"bytes" } else { b"Bytes" });
    }
}

#[test]
fn a_thread_runs_where_it_is_told_to() {
    let all = affinity().expect("asked");
    let last = *all.last().expect("one at least");
    let told = std::thread::spawn(move || set_affinity(&[last]).and_then(|()| affinity()));
    assert_eq!(told.join().expect("no panic").expect("told"), [last]);
    assert_eq!(affinity().expect("asked"), all, "another thread's is its own");
    assert!(set_affinity(&[]).is_err());
}

#[test]
fn a_number_out_of_the_way_is_high_and_leads_to_the_same() {
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let (soft, hard) = limits(libc::RLIMIT_NOFILE).expect("asked");
    assert!(soft <= hard);
    let moved = Descriptor::own(out_of_the_way(OwnedFd::from(writer).into_raw_fd()));
    assert!(moved.as_raw_fd() as u64 >= soft.saturating_sub(64).min(900));
    File::from(OwnedFd::from(moved)).write_all(b"x").expect("room");
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("nobody else holds the other end");
    assert_eq!(text, "x");
}
