//! Payloads that the kernel sends from where they are.

use super::super::socket::Socket;
use super::*;

/// Whether this process may pin as much.
fn is_allowed() -> bool {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let socket = Socket::dial(&listener.local_addr().expect("bound")).expect("begun");
    let _accepted = listener.accept().expect("a connection");
    let allowed = socket.allow_pinning() && socket.write_pinned(&vec![0; LARGEST_STREAMED]).is_some();
    println!("pinning is {}", if allowed { "allowed" } else { "not allowed here: only the bytes are looked at" });
    allowed
}

/// Takes what comes, and looks at it only at the end.
fn exchange(mut net: Vec<TcpDevice>, lengths: &[usize]) -> u32 {
    let (mut whole, mut got, mut expected) = (Whole::default(), Got::default(), Vec::new());
    for (round, length) in lengths.iter().enumerate() {
        let mut data: Vec<u8> = (0..*length).map(|at| (at * 7 + (at >> 9) + round) as u8).collect();
        expected.extend_from_slice(&data);
        let (mut sent, start) = (0, Instant::now());
        while sent < data.len() || net[0].has_tail(1, Some(net[0].mark(1))) {
            let (rest, more) = (&data[sent..], Head::control(Kind::More));
            if !rest.is_empty() {
                // SAFETY: the bytes are readable, and stay as they are until they have gone.
                let posted = unsafe { net[0].post_bulk(1, more, &[], rest.as_ptr(), rest.len()) };
                sent += if let Posted::Sent(bytes) = posted { bytes } else { 0 };
            }
            net[0].poll(&mut got);
            net[1].poll(&mut whole);
            assert!(start.elapsed() < LOST, "{sent} of {length} bytes in round {round}");
        }
        data.fill(0);
    }
    until_all(&mut net, &mut whole, expected.len());
    assert!(whole.bytes == expected, "as it was before it had gone");
    net[0].mark(1)
}

fn until_all(net: &mut [TcpDevice], whole: &mut Whole, length: usize) {
    let start = Instant::now();
    while whole.bytes.len() < length {
        for device in net.iter_mut() {
            device.poll(whole);
        }
        assert!(start.elapsed() < LOST, "{} of {length} bytes", whole.bytes.len());
    }
}

const LENGTHS: [usize; 6] = [100, 3_000_000, 300_000, 70_000, 1 << 20, 5_000_001];

#[test]
fn what_has_gone_may_change() {
    let plain = || [network(2), narrow_network(2)];
    for (mut net, pins, encrypts) in
        plain().map(|net| (net, true, false)).into_iter().chain([(network(2), false, false), (network(2), true, true)])
    {
        let is_narrow = net[0].kernel_bytes.is_some();
        net.iter_mut().for_each(|device| {
            device.set_pins(pins);
            device.set_encrypts(encrypts);
        });
        let pinned = exchange(net, &LENGTHS);
        let expected = pins && !encrypts && !is_narrow && is_allowed();
        assert_eq!(pinned > 3, expected, "{pinned}");
    }
}

/// Who waits for nothing else than that its bytes have gone is woken by that.
#[test]
fn the_notice_ends_a_sleep() {
    let (mut net, mut whole, mut got) = (network(2), Whole::default(), Got::default());
    net.iter_mut().for_each(|device| device.set_pins(true));
    // The kernel has learned to keep as much.
    stream(&mut net, &vec![1; 20 << 20], &mut whole, |whole| whole.bytes.len());
    let (data, start) = (vec![2; 512 << 10], Instant::now());
    let before = net[0].mark(1);
    let mut sent = 0;
    while sent < data.len() {
        let rest = &data[sent..];
        // SAFETY: the bytes are readable, and stay as they are.
        let posted = unsafe { net[0].post_bulk(1, Head::control(Kind::More), &[], rest.as_ptr(), rest.len()) };
        sent += if let Posted::Sent(bytes) = posted { bytes } else { 0 };
        net[0].poll(&mut got);
    }
    assert!(net[0].mark(1) > before || !is_allowed());
    let mark = net[0].mark(1);
    until_all(&mut net, &mut whole, (20 << 20) + data.len());
    while net[0].has_tail(1, Some(mark)) {
        if net[0].arm() {
            net[0].sleeper().sleep(Some(Duration::from_secs(20)));
        }
        net[0].disarm();
        net[0].poll(&mut got);
        assert!(start.elapsed() < Duration::from_secs(15), "nobody is woken");
    }
}

/// Takes bytes until its peer is lost.
#[derive(Default)]
struct Bereft {
    bytes: Whole,
    is_lost: bool,
}

impl Sink for Bereft {
    fn handle_packet(&mut self, packet: Packet<'_>) -> Result<(), &'static str> {
        self.bytes.handle_packet(packet)
    }

    fn handle_fault(&mut self, _: PeerFault) {
        self.is_lost = true;
    }
}

/// A peer that is given up while the kernel still sends to it gets no bytes that have changed since.
#[test]
fn nothing_more_goes_to_who_is_given_up() {
    let (mut net, mut far) = (network(2), Bereft::default());
    net.iter_mut().for_each(|device| device.set_pins(true));
    stream(&mut net, &vec![3; 20 << 20], &mut far, |far| far.bytes.bytes.len());
    let (mut data, mut sent) = (vec![3; 32 << 20], 0);
    while sent < data.len() {
        let rest = &data[sent..];
        // SAFETY: the bytes are readable, and change only when the peer is given up.
        let posted = unsafe { net[0].post_bulk(1, Head::control(Kind::More), &[], rest.as_ptr(), rest.len()) };
        let Posted::Sent(bytes) = posted else { break };
        sent += bytes;
    }
    assert!(sent < data.len(), "more than the kernel takes");
    net[0].give_up(1);
    data.fill(4);
    let start = Instant::now();
    while !far.is_lost {
        net[1].poll(&mut far);
        assert!(start.elapsed() < LOST, "nobody tells it");
    }
    assert!(far.bytes.bytes.iter().all(|byte| *byte == 3));
}
