//! Connections that are encrypted, with somebody on the way.

use super::*;
use std::thread::JoinHandle;

const TEXT: &[u8] = b"nobody but the two ranks reads this";

/// Two ranks; of which the first and the second encrypt as said. What the higher one dials leads over `relay`.
fn pair(encrypts: [bool; 2], relay: Option<SocketAddr>) -> (Vec<TcpDevice>, Vec<PeerPlace>) {
    let (listeners, places) = listeners(2);
    let device = |((me, listener), encrypts): ((usize, TcpListener), bool)| {
        let mut led = places.clone();
        if let Some(relay) = relay.filter(|_| me == 1) {
            led[0].addresses = vec![relay];
        }
        let mut device = TcpDevice::new(me as u32, KEY, OwnedFd::from(listener), led, true).expect("a device");
        device.set_encrypts(encrypts);
        device
    };
    let net = listeners.into_iter().enumerate().zip(encrypts).map(device).collect();
    (net, places)
}

/// Takes one connection and passes on what comes, both ways, until one side ends; what the dialling side has said is
/// kept. `change` may change it.
fn relay(
    listener: TcpListener,
    to: SocketAddr,
    change: impl FnOnce(u64, &mut [u8]) -> bool + Send + Copy + 'static,
) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let (mut near, _) = listener.accept().expect("a connection");
        let mut far = TcpStream::connect(to).expect("connected");
        let (mut back_from, mut back_to) = (far.try_clone().expect("another"), near.try_clone().expect("another"));
        let back = std::thread::spawn(move || {
            let _ = std::io::copy(&mut back_from, &mut back_to);
            let _ = back_to.shutdown(Shutdown::Both);
        });
        let (mut kept, mut bytes, mut changed) = (Vec::new(), [0; 4096], false);
        while let Ok(count @ 1..) = near.read(&mut bytes) {
            if !changed {
                changed = change(kept.len() as u64, &mut bytes[..count]);
            }
            kept.extend_from_slice(&bytes[..count]);
            if far.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = far.shutdown(Shutdown::Both);
        back.join().expect("the other direction");
        kept
    })
}

fn send_text(device: &mut TcpDevice) {
    // SAFETY: the text outlives the call.
    let posted = unsafe { device.post_bulk(0, head(7), &[], TEXT.as_ptr(), TEXT.len()) };
    assert_eq!(posted, Posted::Sent(TEXT.len()));
}

/// What somebody on the way reads of a message from rank 1 to rank 0.
fn overheard(encrypts: bool) -> Vec<u8> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (mut net, places) = pair([encrypts; 2], Some(listener.local_addr().expect("bound")));
    let relay = relay(listener, places[0].addresses[0], |_, _| false);
    let mut got = sinks(2);
    // One that waits for the connection, and one that finds it.
    send_text(&mut net[1]);
    until(&mut net, &mut got, |got| got[0].tags.len() == 1);
    send_text(&mut net[1]);
    until(&mut net, &mut got, |got| got[0].tags.len() == 2 && got[0].bytes == 2 * TEXT.len());
    drop(net);
    relay.join().expect("the relay")
}

#[test]
fn who_sits_between_reads_what_is_not_encrypted_and_nothing_of_what_is() {
    let times = |bytes: Vec<u8>| bytes.windows(8).filter(|window| *window == &TEXT[..8]).count();
    assert_eq!(times(overheard(false)), 2);
    assert_eq!(times(overheard(true)), 0);
}

/// Behind the greeting of 72 bytes and the first record.
#[test]
fn a_bit_that_was_changed_on_the_way_loses_the_rank_and_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (mut net, places) = pair([true; 2], Some(listener.local_addr().expect("bound")));
    let relay = relay(listener, places[0].addresses[0], |before, bytes| {
        let after = before + bytes.len() as u64 > 72 + 30;
        if after {
            *bytes.last_mut().expect("some came") ^= 1;
        }
        after
    });
    let mut got = sinks(2);
    send_text(&mut net[1]);
    until(&mut net, &mut got, |got| !got[0].faults.is_empty());
    let [PeerFault::Lost { peer: 1, story }] = &got[0].faults[..] else { panic!("{:?}", got[0].faults) };
    assert!(story.contains("was changed on the way"), "{story}");
    assert_eq!(got[0].tags, [], "nothing of it is believed");
    drop(net);
    relay.join().expect("the relay");
}

#[test]
fn of_two_that_do_not_agree_the_one_that_dials_says_so_at_once() {
    for (encrypts, says) in
        [([true, false], "it encrypts and this rank does not"), ([false, true], "it does not encrypt")]
    {
        let (mut net, _) = pair(encrypts, None);
        let mut got = sinks(2);
        send_text(&mut net[1]);
        until(&mut net, &mut got, |got| !got[1].faults.is_empty());
        let [PeerFault::Lost { peer: 0, story }] = &got[1].faults[..] else { panic!("{:?}", got[1].faults) };
        assert!(story.contains(says) && story.contains("WEFT_ENCRYPT"), "{story}");
        assert_eq!(net[0].counters().strangers, 0, "it is one of the job");
        assert_eq!(got[0].tags, []);
    }
}

/// Long messages in both directions over connections that hold little, so that records are cut anywhere.
#[test]
fn what_is_long_comes_whole_in_both_directions() {
    let mut net = narrow_network(2);
    net.iter_mut().for_each(|device| device.set_encrypts(true));
    let mut got = sinks(2);
    let data = vec![3u8; 64 << 10];
    const MESSAGES: usize = 5;
    let (mut sent, start) = ([0; 2], Instant::now());
    while got.iter().any(|got| got.tags.len() < MESSAGES) {
        for me in 0..2 {
            // SAFETY: the data outlives the call.
            let posted = sent[me] < MESSAGES
                && unsafe { net[me].post_bulk(1 - me as u32, head(sent[me] as i32), &[], data.as_ptr(), data.len()) }
                    != Posted::Full;
            sent[me] += usize::from(posted);
        }
        net.iter_mut().zip(&mut got).for_each(|(device, got)| _ = device.poll(got));
        assert!(start.elapsed() < LOST && got.iter().all(|got| got.faults.is_empty()), "{sent:?}");
    }
    for got in &got {
        assert!(got.tags.iter().map(|(_, tag)| *tag).eq(0..MESSAGES as i32) && got.bytes == MESSAGES * data.len());
    }
}
