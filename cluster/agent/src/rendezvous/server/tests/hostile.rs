//! Processes that do what ours never do, by mistake or on purpose.

use super::*;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// A process of a rendezvous of its own, which has its page in its memory, with a connection that leads elsewhere.
fn with_far_end() -> (OwnedFd, sys::Mapping, Receiver<Said>, [TcpStream; 2]) {
    let (near, far) = connection();
    let (socket, hears) = serve(far.local_addr().expect("bound").port());
    let page = sys::map_for_test(&greet(&socket));
    offer(&socket, &near);
    assert!(matches!(hear(&hears), Said::Offer { .. }));
    // What the guardian has to say to it has come.
    for _ in 0..5 {
        next(&socket);
    }
    (socket, page, hears, [near, far])
}

#[test]
fn a_process_whose_socket_is_gone_has_ended_only_when_its_memory_is_gone() {
    let (socket, page, hears, _ends) = with_far_end();
    drop(socket);
    assert_eq!(hear(&hears), Said::Silent);
    // It is looked after every 25 ms.
    assert!(hears.recv_timeout(Duration::from_millis(200)).is_err(), "it lives");
    drop(page);
    assert_eq!(hear(&hears), Said::Leave);
}

#[test]
fn a_process_that_talks_nonsense_has_not_ended_for_that() {
    let another_version = StreamRequest::Hello { version: VERSION + 1 }.pack();
    for nonsense in [&b"nonsense"[..], &another_version] {
        let (scribe, hears) = Scribe::new(1);
        let (mut server, socket) = unturned(Some(Box::new(scribe)));
        let page = sys::map_for_test(&greet(&socket));
        for packet in [nonsense, &StreamRequest::Withdraw { cookie: 1 }.pack()] {
            sys::send(&socket, packet, None).expect("sent");
        }
        server.serve(0);
        server.serve(1);
        server.look_after_silent();
        assert_eq!(hear(&hears), Said::Silent);
        assert!(hears.try_recv().is_err(), "it is listened to no more, and lives");
        drop(page);
        server.look_after_silent();
        assert_eq!(hear(&hears), Said::Leave);
    }
}

#[test]
fn a_process_is_called_by_the_signal_that_means_nothing() {
    let (socket, _page, hears, _ends) = with_far_end();
    let called = sys::urgent_signals_for_test();
    sys::send(&socket, &StreamRequest::Withdraw { cookie: 9 }.pack(), None).expect("sent");
    assert_eq!(hear(&hears), Said::Withdraw { cookie: 9 });
    let end = Instant::now() + PATIENCE;
    while called() == 0 {
        assert!(Instant::now() < end, "nobody is called");
        std::thread::yield_now();
    }
}

#[test]
fn of_two_descriptors_none_stays_open() {
    let (socket, _hears) = serve(1);
    let _page = greet(&socket);
    let (mut ours, theirs) = UnixStream::pair().expect("a pair");
    let nothing = File::open("/dev/null").expect("nothing");
    let packet = StreamRequest::Offer { cookie: 1 }.pack();
    sys::send_two_for_test(&socket, &packet, [nothing.as_raw_fd(), theirs.as_raw_fd()]);
    drop(theirs);
    ours.set_read_timeout(Some(PATIENCE)).expect("set");
    assert_eq!(ours.read(&mut [0; 1]).expect("it was closed"), 0);
}

/// A rendezvous that nobody turns but the test, and a process that comes to it.
fn unturned(guardian: Option<Box<dyn Guardian>>) -> (RendezvousServer, OwnedFd) {
    let name = format!("weft-test-rendezvous-{}", sys::random().expect("a number"));
    let listener = RendezvousListener::bind(name.as_bytes()).expect("a name");
    let server = RendezvousServer::new(vec![listener], guardian).expect("it serves");
    (server, sys::connect_for_test(name.as_bytes()).expect("it comes"))
}

#[test]
fn a_shown_socket_whose_close_waits_keeps_nobody_waiting() {
    let (mut server, socket) = unturned(None);
    let (mut near, _far) = connection();
    near.set_nonblocking(true).expect("set");
    while near.write(&[0; 65536]).is_ok() {}
    let near = OwnedFd::from(near);
    let linger = libc::linger { l_onoff: 1, l_linger: 20 };
    weft_kernel::set_option(near.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, linger).expect("set");
    sys::send(&socket, &StreamRequest::Offer { cookie: 5 }.pack(), Some(near.as_raw_fd())).expect("sent");
    drop(near);
    server.serve(0);
    let begin = Instant::now();
    server.serve(1);
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}

/// As many as there are processes that come, or more than there may be, others have their turn.
#[test]
fn who_comes_in_crowds_is_taken_by_and_by_and_up_to_a_bound() {
    let name = format!("weft-test-rendezvous-{}", sys::random().expect("a number"));
    let listener = RendezvousListener::bind(name.as_bytes()).expect("a name");
    let mut server = RendezvousServer::new(vec![listener], None).expect("it serves");
    server.limits.processes = TURN + 5;
    let mut crowd: Vec<_> = (0..2 * TURN).map(|_| sys::connect_for_test(name.as_bytes()).expect("it comes")).collect();
    server.serve(0);
    assert_eq!(server.processes.len(), TURN);
    server.serve(0);
    assert_eq!(server.processes.len(), TURN + 5);
    let refused = crowd.pop().expect("the last");
    assert!(matches!(sys::receive(&refused, &mut [0; BYTES]), Ok((0, None))), "it is told at once");
    let ready = server.set.wait(Some(Duration::ZERO)).expect("waited");
    assert_eq!(ready.count(), 0, "nothing is left that would end the sleep");
}

#[test]
fn arenas_have_a_bound() {
    let (mut server, _socket) = unturned(None);
    server.limits.arenas = 1;
    let ends = ["127.0.0.1:1", "127.0.0.1:2"].map(|end| end.parse::<SocketAddr>().expect("an address"));
    for pair in 0..3 {
        for (client, [local, remote]) in [(2 * pair, ends), (2 * pair + 1, [ends[1], ends[0]])] {
            server.show(Tuple::new(7, local, remote), ShownEnd { client, cookie: 1, peer: None });
        }
    }
    assert_eq!(server.arenas.len(), 1);
}

#[test]
fn a_page_tells_whether_other_hosts_can_be_reached() {
    let (socket, _hears) = serve(1);
    let mut word = [9; 8];
    let page = greet(&socket);
    sys::send(&socket, &StreamRequest::Survey.pack(), None).expect("sent");
    while next(&socket).0 != Some(Answer::End) {}
    page.read_exact_at(&mut word, page::MAILS_AT as u64).expect("read");
    assert_eq!(word, [0; 8]);
    let name = format!("weft-test-rendezvous-{}", sys::random().expect("a number"));
    let listener = RendezvousListener::bind(name.as_bytes()).expect("a name");
    std::thread::spawn(move || run(vec![listener], None, Duration::from_millis(200)).expect("it serves"));
    let socket = sys::connect_for_test(name.as_bytes()).expect("it answers");
    let page = greet(&socket);
    sys::send(&socket, &StreamRequest::Survey.pack(), None).expect("sent");
    while next(&socket).0 != Some(Answer::End) {}
    page.read_exact_at(&mut word, page::MAILS_AT as u64).expect("read");
    assert_eq!(word, [0, 0, 0, 0, 1, 0, 0, 0]);
}
