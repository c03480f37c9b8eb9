//! Lanes that send by a tap device.

use super::cable::{Cable, LIMIT, lane, port, v4, wait_until};
use super::shared::{self, Made, next_of};
use super::{Both, next, send};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::time::Instant;
use weft_device::xdp::{LaneRoute, LaneState, Lanes};
use weft_wire::settings::XdpMode;

/// One now and then shows that the tap is down, and is lost.
const TRIES: Range<usize> = 0..1000;

/// The kernel would drop what a tap sends there.
#[test]
fn a_cable_that_leads_nowhere_else_is_sent_by_without_a_tap() {
    let cable = Cable::new();
    let words = "link add a0 type veth peer name b0|addr add 10.78.0.1/24 dev a0|link set a0 up|link set b0 up";
    words.split('|').for_each(|words| cable.ip(1, words));
    let socket = cable.socket(1);
    let mut lanes = cable.on(1, || {
        let all = weft_device::xdp::interfaces().expect("interfaces");
        let inside = all.iter().find(|interface| interface.name == "a0").expect("a0");
        Lanes::open(inside, &[port(&socket)], XdpMode::Auto).expect("lanes")
    });
    assert_eq!((lane(&mut lanes, 0).layout().sends_by_tap, lanes.note()), (false, None));
}

/// So nobody else's packets go by it, and the kernel has none to send by it either.
#[test]
fn a_tap_has_no_address_and_no_carrier_and_ends_with_its_lanes() {
    let both = Both::new();
    let tap = || {
        let all = both.cable.on(1, || weft_device::xdp::interfaces().expect("interfaces"));
        all.into_iter().find(|interface| interface.name.starts_with("weft"))
    };
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(tap().map(|tap| tap.addresses), Some(vec![]));
    let sent = both.cable.on(1, || std::fs::read_to_string("/proc/thread-self/net/dev").expect("it is there"));
    let sent = sent.lines().find(|line| line.trim_start().starts_with("weft")).expect("the tap").split_whitespace();
    assert_eq!(sent.skip(9).collect::<Vec<_>>(), ["0"; 8], "of what is sent");
    let Both { cable, sockets, lanes, _attached } = both;
    drop(_attached);
    let left = || cable.on(1, || weft_device::xdp::interfaces().expect("interfaces")).len();
    assert_eq!(left(), 3, "lanes still have it, beside lo and eth0");
    drop((lanes, sockets));
    wait_until(|| left() == 2);
}

#[test]
fn a_tap_that_is_taken_down_is_waited_for_and_one_that_is_deleted_ends_its_lane() {
    let mut both = Both::new();
    let [route, _] = both.routes(v4);
    let [from, to] = &mut both.lanes;
    for _ in 0..3 {
        both.cable.ip(1, "link set weft0 down");
        let refused = TRIES.filter(|_| !send(from, &route, b"down")).count();
        assert!(refused > TRIES.len() / 2, "other ways are to be tried: {refused}");
        assert_eq!(from.fault(), None);
        assert_eq!(to.receive(|_| panic!("it is down")), 0);
        both.cable.ip(1, "link set weft0 up");
        let begin = Instant::now();
        while to.receive(|frame| assert_eq!(frame.payload, b"up")) == 0 {
            assert!(begin.elapsed() < LIMIT, "nothing comes after the tap is up");
            send(from, &route, b"up");
        }
        assert_eq!(from.fault(), None);
    }
    both.cable.ip(1, "link del weft0");
    send(from, &route, b"deleted");
    assert!(from.fault().is_some_and(|why| why.contains("cannot be sent by any more")), "{:?}", from.fault());
    assert!(!send(from, &route, b"deleted") && !from.flush());
}

#[test]
fn the_same_is_so_for_a_lane_that_is_used_by_turns() {
    let cable = Cable::new();
    let sockets = [cable.socket(1), cable.socket(2)];
    let mut attached = [cable.open(1, &[&sockets[0]]), cable.open(2, &[&sockets[1]])];
    let made = Made::take(&mut attached[0], 0);
    let (from, state) = (made.adopt(), shared::shared::<LaneState>());
    let mut to = lane(&mut attached[1], 0);
    sockets[1].send_to(b"hello", v4(1, port(&sockets[0]))).expect("sent");
    let route = LaneRoute::learn(&next_of(&from, state).0);
    cable.ip(1, "link set weft0 down");
    let refused = TRIES.filter(|_| !shared::send(&from, state, &route, b"down")).count();
    assert!(refused > TRIES.len() / 2 && !from.is_faulty(), "other ways are to be tried: {refused}");
    assert_eq!(to.receive(|_| panic!("it is down")), 0);
    cable.ip(1, "link set weft0 up");
    let begin = Instant::now();
    while to.receive(|_| {}) == 0 {
        assert!(begin.elapsed() < LIMIT && !from.is_faulty(), "nothing comes after the tap is up");
        shared::send(&from, state, &route, b"up");
    }
    cable.ip(1, "link del weft0");
    shared::send(&from, state, &route, b"deleted");
    assert!(from.is_faulty() && !shared::send(&from, state, &route, b"deleted"));
}

/// Whoever has a lane may have the kernel keep the device. It is nobody else's then.
#[test]
fn a_tap_that_is_kept_belongs_to_its_maker() {
    const KEEP: libc::c_ulong = 0x4004_54cb;
    let cable = Cable::new();
    let socket = cable.socket(1);
    let mut lanes = cable.open(1, &[&socket]);
    let lane = lanes.take_sockets(0).expect("sockets");
    // SAFETY: a number.
    assert_eq!(unsafe { libc::ioctl(lane.sender.as_raw_fd(), KEEP as _, 1 as libc::c_ulong) }, 0);
    drop((lanes, lane));
    cable.ip(1, "link show dev weft0");
    let refused = cable.on(1, || {
        let device =
            std::fs::File::options().read(true).write(true).open("/dev/net/tun").expect("there are tap devices");
        // SAFETY: numbers only. By the call itself, so that only this thread is another user's from now on.
        assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) }, 0);
        attach(&device)
    });
    assert_eq!(refused.map_err(|error| error.raw_os_error()), Err(Some(libc::EPERM)));
    cable.ip(1, "link del weft0");
}

/// Makes this a descriptor of the tap, as far as that depends on the kernel.
fn attach(device: &File) -> io::Result<()> {
    const SET_INTERFACE: libc::c_ulong = 0x4004_54ca;
    // SAFETY: plain data, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[..5].copy_from_slice(&b"weft0".map(|byte| byte as libc::c_char));
    request.ifr_ifru.ifru_flags = 0x1002;
    // SAFETY: the kernel reads and writes the request during the call.
    match unsafe { libc::ioctl(device.as_raw_fd(), SET_INTERFACE as _, &raw mut request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Two ends whose filters stand at different places: one has a tap, whose packets the other's filter does not see.
#[test]
fn where_one_end_alone_has_a_tap_sockets_get_what_lanes_do_not() {
    let mut both = Both::with_each([XdpMode::Auto, XdpMode::Native]);
    assert_eq!(both.lanes.each_ref().map(|lane| lane.layout().sends_by_tap), [true, false]);
    let [there, back] = both.routes(v4);
    for number in 0..100 {
        let bytes = super::pattern(number, 1 + number as usize * 14);
        let [first, second] = &mut both.lanes;
        assert!(send(first, &there, &bytes) && first.flush());
        let mut place = [0; 2048];
        let length = both.sockets[1].recv(&mut place).expect("it comes by the socket");
        assert!(place[..length] == bytes, "datagram {number}");
        assert!(send(second, &back, &bytes) && second.flush());
        assert!(next(first).1 == bytes, "datagram {number}");
    }
    assert_eq!(both.lanes[1].receive(|_| panic!("not by the lane")), 0);
}
