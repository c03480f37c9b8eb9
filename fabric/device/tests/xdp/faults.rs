//! Processes that are killed, ranks that do not look, and interfaces that go down.

use super::cable::{self, Cable, LIMIT, lane, memory, port, v4, wait_until};
use super::{Both, next, pattern, send};
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use weft_device::udp::UdpPort;
use weft_device::xdp::{BATCH, Lane, LaneRoute, LaneSockets, Lanes, interfaces};
use weft_wire::settings::XdpMode;

const ROLE: &str = "WEFT_TEST_XDP_ROLE";

/// This binary once more, as a process of its own that plays a part; it has said that it is ready.
struct Part(Child);

impl Part {
    fn new(role: &str, descriptors: &[RawFd]) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this test"));
        command.args(["--exact", "faults::part", "--nocapture"]).env(ROLE, role);
        // SAFETY: numbers only. They are closed in us as before.
        descriptors.iter().for_each(|fd| assert_eq!(unsafe { libc::fcntl(*fd, libc::F_SETFD, 0) }, 0));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
        // SAFETY: as above.
        descriptors.iter().for_each(|fd| assert_eq!(unsafe { libc::fcntl(*fd, libc::F_SETFD, libc::FD_CLOEXEC) }, 0));
        let said = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
        assert!(said.into_iter().any(|line| line.ends_with("ready")), "'{role}' has not come so far");
        Self(child)
    }

    fn kill(mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("collected");
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Not a test: what [`Part`] plays. It never ends by itself unless its standard input does.
#[test]
fn part() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let words: Vec<&str> = role.split(' ').collect();
    let number = |at: usize| words[at].parse::<i32>().expect("a number");
    // SAFETY: descriptors that were left to us alone.
    let owned = |at: usize| unsafe { OwnedFd::from_raw_fd(number(at)) };
    let adopt = |lane| {
        let sockets = LaneSockets { receiver: owned(2), sender: owned(3) };
        Lane::adopt(owned(1).try_clone().expect("another"), sockets, lane).expect("a lane")
    };
    let mut kept = None;
    let mut lane = None;
    match words[0] {
        "holder" => {
            cable::enter(words[1]);
            let all = interfaces().expect("interfaces");
            let interface = all.iter().find(|interface| interface.name == "eth0").expect("eth0");
            kept = Some(Lanes::open(interface, &[number(2) as u16], XdpMode::Auto).expect("lanes"));
        }
        "locker" => {
            lane = Some(adopt(1));
            // SAFETY: plain data.
            let mut lock: libc::flock = unsafe { std::mem::zeroed() };
            (lock.l_type, lock.l_len) = (libc::F_WRLCK as i16, 1);
            // SAFETY: the kernel reads the lock during the call.
            assert_eq!(unsafe { libc::fcntl(number(4), libc::F_SETLK, &raw const lock) }, 0, "nobody has the lock");
        }
        "nobody" => {
            // SAFETY: numbers only; all capabilities go with the user.
            unsafe {
                assert_eq!((libc::setgid(65534), libc::setuid(65534)), (0, 0));
            }
            let mut lane = adopt(0);
            println!("ready");
            let mut echoed = 0;
            while echoed < number(4) {
                let mut got = Vec::new();
                lane.receive(|frame| got.push((LaneRoute::learn(&frame.ends), frame.payload.to_vec())));
                for (route, payload) in got {
                    assert!(send(&mut lane, &route, &payload) && lane.flush());
                    echoed += 1;
                }
                std::thread::yield_now();
            }
            // Nobody reads what a test that ends says.
            std::process::exit(0);
        }
        other => panic!("nobody plays '{other}'"),
    }
    println!("ready");
    let _ = std::io::stdin().read_line(&mut String::new());
    drop((kept, lane));
}

#[test]
fn the_filter_goes_with_a_holder_who_is_killed() {
    let cable = Cable::new();
    let (socket, plain) = (cable.socket(1), cable.socket(2));
    for round in 0..10 {
        let holder = Part::new(&format!("holder {} {}", cable.name(1), port(&socket)), &[]);
        assert!(cable.program(1).is_some());
        holder.kill();
        wait_until(|| cable.program(1).is_none());
        plain.send_to(&pattern(round, 99), v4(1, port(&socket))).expect("sent");
        let mut place = [0; 200];
        let length = socket.recv(&mut place).expect("it comes by the socket");
        assert_eq!(place[..length], pattern(round, 99));
    }
    cable.open(1, &[&socket]);
}

#[test]
fn a_rank_needs_no_privilege() {
    let cable = Cable::new();
    let (socket, plain) = (cable.socket(1), cable.socket(2));
    let mut lanes = cable.open(1, &[&socket]);
    let (memory, lane) = (memory(&lanes), lanes.take_sockets(0).expect("sockets"));
    let numbers = [memory.as_raw_fd(), lane.receiver.as_raw_fd(), lane.sender.as_raw_fd()];
    let mut rank = Part::new(&format!("nobody {} {} {} 100", numbers[0], numbers[1], numbers[2]), &numbers);
    drop((memory, lane));
    for number in 0..100 {
        plain.send_to(&pattern(number, 700), v4(1, port(&socket))).expect("sent");
        let mut place = [0; 2048];
        let length = plain.recv(&mut place).expect("an answer");
        assert_eq!(place[..length], pattern(number, 700));
    }
    assert!(rank.0.wait().expect("it has ended").success());
}

/// Sends datagrams in small heaps by a socket and reads them from a lane, and answers how many came before none did.
fn flow(plain: &UdpSocket, socket: &UdpSocket, lane: &mut Lane, count: u32) -> u32 {
    let mut got = 0;
    for heap in 0..count / BATCH {
        for number in 0..BATCH {
            plain.send_to(&pattern(heap * BATCH + number, 300), v4(1, port(socket))).expect("sent");
        }
        // The cable hands a packet on within the call that sends it, or soon after: a lane that has frames gets all.
        let begin = Instant::now();
        let end = got + BATCH;
        while got < end && lane.statistics().expect("numbers").receive_dropped == 0 {
            lane.receive(|frame| {
                if frame.payload != b"mark" {
                    assert_eq!(frame.payload, pattern(got, 300));
                    got += 1;
                }
            });
            assert!(begin.elapsed() < LIMIT, "{got} of {end} came");
            std::thread::yield_now();
        }
        if got < end {
            break;
        }
    }
    got
}

#[test]
fn a_rank_that_is_killed_inside_the_lock_holds_nobody_up() {
    let cable = Cable::new();
    let (sockets, plain) = ([cable.socket(1), cable.socket(1)], cable.socket(2));
    let mut lanes = cable.open(1, &[&sockets[0], &sockets[1]]);
    let mut first = lane(&mut lanes, 0);
    let (shared, second) = (memory(&lanes), lanes.take_sockets(1).expect("sockets"));
    let again = shared.try_clone().expect("another");
    let numbers = [&shared, &second.receiver, &second.sender, &again].map(AsRawFd::as_raw_fd);
    let [a, b, c, d] = numbers;
    let locker = Part::new(&format!("locker {a} {b} {c} {d}"), &numbers);
    drop(second);
    // Nobody else gets in. What is received meanwhile stays held, up to a bound, and then waits in the ring.
    for number in 0..200 {
        plain.send_to(&pattern(number, 300), v4(1, port(&sockets[0]))).expect("sent");
    }
    let begin = Instant::now();
    let mut got = 0;
    while first.receive(|_| got += 1) > 0 || got < weft_wire::xdp::HELD_FRAMES {
        assert!(begin.elapsed() < LIMIT, "{got} came");
    }
    assert_eq!(got, weft_wire::xdp::HELD_FRAMES, "no more without the lock");
    locker.kill();
    while got < 200 {
        first.receive(|frame| {
            assert_eq!(frame.payload, pattern(got, 300));
            got += 1;
        });
        assert!(begin.elapsed() < LIMIT, "{got} came");
        std::thread::yield_now();
    }
    let frames = first.layout().receive_frames().next_multiple_of(BATCH);
    assert_eq!(flow(&plain, &sockets[0], &mut first, 2 * frames), 2 * frames);
}

#[test]
fn a_rank_that_is_stopped_inside_the_lock_costs_others_their_lanes_and_no_more() {
    let cable = Cable::new();
    let (sockets, plain) = ([cable.socket(1), cable.socket(1)], cable.socket(2));
    let mut lanes = cable.open(1, &[&sockets[0], &sockets[1]]);
    let mut first = lane(&mut lanes, 0);
    let (shared, second) = (memory(&lanes), lanes.take_sockets(1).expect("sockets"));
    let again = shared.try_clone().expect("another");
    let numbers = [&shared, &second.receiver, &second.sender, &again].map(AsRawFd::as_raw_fd);
    let [a, b, c, d] = numbers;
    let locker = Part::new(&format!("locker {a} {b} {c} {d}"), &numbers);
    let begin = Instant::now();
    while first.fault().is_none() {
        plain.send_to(&[1; 300], v4(1, port(&sockets[0]))).expect("sent");
        first.receive(|_| {});
        assert!(begin.elapsed() < LIMIT, "a lane waits for the lock for ever");
        std::thread::yield_now();
    }
    assert!(first.fault().is_some_and(|why| why.contains("inside the lock")), "{:?}", first.fault());
    drop(first);
    let mut place = [0; 512];
    loop {
        plain.send_to(b"kernel", v4(1, port(&sockets[0]))).expect("sent");
        if sockets[0].recv(&mut place).expect("it comes by the socket") == 6 {
            break;
        }
    }
    locker.kill();
}

#[test]
fn ranks_that_do_not_look_lose_their_own_datagrams_only() {
    let cable = Cable::new();
    let (sockets, plain) = ([cable.socket(1), cable.socket(1), cable.socket(1)], cable.socket(2));
    let mut lanes = cable.open(1, &[&sockets[0], &sockets[1], &sockets[2]]);
    let [mut first, asleep, dead] = [0, 1, 2].map(|number| lane(&mut lanes, number));
    let is_full = |lane: &Lane| lane.statistics().expect("numbers").receive_ring_full > 100;
    let begin = Instant::now();
    while !is_full(&asleep) || !is_full(&dead) {
        for socket in [&sockets[1], &sockets[2]] {
            plain.send_to(&[1; 1000], v4(1, port(socket))).expect("sent");
        }
        assert!(begin.elapsed() < LIMIT, "the rings do not fill");
    }
    // All that is still on the cable comes before this, unless the cable has no room for it.
    let mut marked = false;
    while !marked {
        plain.send_to(b"mark", v4(1, port(&sockets[0]))).expect("sent");
        first.receive(|_| marked = true);
        assert!(begin.elapsed() < LIMIT, "nothing comes to who looks");
    }
    drop(dead);
    let frames = first.layout().receive_frames().next_multiple_of(BATCH);
    assert_eq!(flow(&plain, &sockets[0], &mut first, 2 * frames), 2 * frames);
    // The port of a rank that has ended belongs to its socket again.
    plain.send_to(b"kernel", v4(1, port(&sockets[2]))).expect("sent");
    assert_eq!(sockets[2].recv(&mut [0; 64]).expect("by the socket"), 6);
}

#[test]
fn an_interface_that_goes_down_and_comes_up_carries_on() {
    [XdpMode::Auto, XdpMode::Native].into_iter().for_each(|mode| goes_down_and_comes_up(&mut Both::with(mode)));
}

fn goes_down_and_comes_up(both: &mut Both) {
    let [route, _] = both.routes(v4);
    for round in 0..3 {
        both.cable.ip(1, "link set eth0 down");
        // Longer than between two looks whether it is up.
        std::thread::sleep(std::time::Duration::from_millis(20));
        let [from, to] = &mut both.lanes;
        let is_kept = send(from, &route, &pattern(round, 200));
        assert!(if is_kept { !from.flush() } else { from.layout().sends_by_tap }, "it is down");
        assert!(!send(from, &route, b"more"), "other ways are to be tried");
        assert_eq!((from.fault(), to.receive(|_| panic!("it is down"))), (None, 0));
        both.cable.ip(1, "link set eth0 up");
        let begin = Instant::now();
        // What was kept may be lost, as the interface comes up before its other end notices. Then it is sent again.
        let mut got = false;
        while !got {
            assert!(begin.elapsed() < LIMIT, "nothing comes after the interface is up");
            send(from, &route, &pattern(round, 200));
            from.flush();
            to.receive(|frame| {
                assert_eq!(frame.payload, pattern(round, 200));
                got = true;
            });
            std::thread::yield_now();
        }
        while to.receive(|_| {}) > 0 {}
        assert_eq!((from.fault(), to.fault()), (None, None));
        // Nothing of this round is left when the next one begins.
        while !from.flush() {}
        let mark = [0xee; 3];
        while !send(from, &route, &mark) || !from.flush() {}
        while next(to).1 != mark {}
    }
}

#[test]
fn an_interface_that_vanishes_ends_its_lanes() {
    let mut both = Both::new();
    let [route, _] = both.routes(v4);
    both.cable.ip(2, "link del eth0");
    let [from, to] = &mut both.lanes;
    let begin = Instant::now();
    while from.fault().is_none() {
        assert!(begin.elapsed() < LIMIT, "no fault");
        send(from, &route, b"anybody?");
        from.flush();
    }
    assert!(!send(from, &route, b"anybody?") && !from.flush());
    assert_eq!(to.receive(|_| panic!("from nowhere")), 0);
}

/// Where a child by fork has the descriptor, too, closing ours would end no watching.
#[test]
fn a_lane_that_has_failed_is_handed_out_to_be_watched_no_more() {
    let mut both = Both::new();
    let [route, _] = both.routes(v4);
    let Both { cable, sockets: [socket, _], lanes: [mut lane, _], .. } = both;
    // SAFETY: a new descriptor.
    let epoll = unsafe { OwnedFd::from_raw_fd(libc::epoll_create1(libc::EPOLL_CLOEXEC)) };
    let control = |what, lane: &Lane| {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        // SAFETY: the event lives across the call.
        unsafe { libc::epoll_ctl(epoll.as_raw_fd(), what, lane.descriptor().as_raw_fd(), &raw mut event) }
    };
    assert_eq!(control(libc::EPOLL_CTL_ADD, &lane), 0);
    let mut port = UdpPort::new(socket.into()).expect("a port");
    assert!(port.take_failed_lane().is_none(), "there is none");
    cable.ip(2, "link del eth0");
    let begin = Instant::now();
    while lane.fault().is_none() {
        assert!(begin.elapsed() < LIMIT, "no fault");
        send(&mut lane, &route, b"anybody?");
        lane.flush();
    }
    port.set_lane(lane, true);
    let failed = port.take_failed_lane().expect("it has failed");
    assert!(port.lane().is_none() && port.take_failed_lane().is_none(), "the socket goes on alone");
    assert_eq!(control(libc::EPOLL_CTL_DEL, &failed), 0, "it is still open");
}

#[test]
fn what_goes_by_the_socket_leaves_while_the_lane_is_stuck() {
    let both = Both::with(XdpMode::Native);
    let ports = both.ports();
    both.sockets[1].send_to(b"hello", v4(1, ports[0])).expect("sent");
    let Both { cable, sockets: [socket, _], lanes: [lane, _], .. } = both;
    let beside = cable.socket(1);
    let here = std::net::SocketAddr::new(std::net::Ipv4Addr::LOCALHOST.into(), cable::port(&beside));
    let mut port = UdpPort::new(socket.into()).expect("a port");
    port.set_lane(lane, true);
    let (mut from, begin) = (None, Instant::now());
    while from.is_none() {
        assert!(begin.elapsed() < LIMIT, "it does not come by the lane");
        port.receive(0, false, |address, _| {
            from = Some(address);
            true
        });
    }
    cable.ip(1, "link set eth0 down");
    let mut send = |to| {
        assert!(port.send(&to, 0, |place| {
            place[..4].copy_from_slice(b"sent");
            Some(4)
        }));
        port.flush()
    };
    assert!(!send(from.expect("just come")), "it is in the ring of a lane that is down");
    send(here);
    assert_eq!(beside.recv(&mut [0; 16]).expect("it comes"), 4);
}
