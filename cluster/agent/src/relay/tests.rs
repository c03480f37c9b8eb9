use super::*;
use std::io::{Read, Write, pipe};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use weft_kernel::EventLoop;

const OUTPUT: Channel = Channel { member: 0, stream: RankStream::Output };
const PMI: Channel = Channel { member: 0, stream: RankStream::Pmi };

/// Two ends that are joined.
fn joined() -> [Relay; 2] {
    let (one_in, other_out) = pipe().unwrap();
    let (other_in, one_out) = pipe().unwrap();
    let relay = |incoming: OwnedFd, outgoing: OwnedFd| {
        sys::set_nonblocking(&incoming).unwrap();
        sys::set_nonblocking(&outgoing).unwrap();
        Relay::new(incoming, outgoing, Frames::default())
    };
    [relay(one_in.into(), one_out.into()), relay(other_in.into(), other_out.into())]
}

/// Lets both do what they can until neither can do any more.
fn turn(relays: &mut [Relay]) {
    let mut interest = EventLoop::new().unwrap();
    loop {
        let mut moved = false;
        for (number, relay) in relays.iter_mut().enumerate() {
            relay.interest().into_iter().for_each(|(fd, events, place)| interest.ask(fd, events, (number, place)));
            for ((_, place), found) in interest.turn(Some(Duration::ZERO)).unwrap() {
                relay.handle(place, found);
                moved = true;
            }
        }
        if !moved {
            return;
        }
    }
}

/// A stream from a writer at the first relay to a reader at the second.
fn stream(relays: &mut [Relay; 2]) -> (std::io::PipeWriter, std::io::PipeReader) {
    let (near, writer) = pipe().unwrap();
    let (reader, far) = pipe().unwrap();
    for fd in [near.as_raw_fd(), writer.as_raw_fd(), far.as_raw_fd(), reader.as_raw_fd()] {
        sys::set_nonblocking(&fd).unwrap();
    }
    relays[0].add_reader(OUTPUT, near.into());
    relays[1].add_writer(OUTPUT, far.into());
    (writer, reader)
}

/// Writes as much as there is room for.
fn fill(mut writer: &std::io::PipeWriter, bytes: &[u8]) -> usize {
    let mut written = 0;
    while let Ok(count @ 1..) = writer.write(&bytes[written..]) {
        written += count;
    }
    written
}

/// Reads what is there, or until the end.
fn take(mut reader: &std::io::PipeReader) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = reader.read_to_end(&mut bytes);
    bytes
}

#[test]
fn bytes_arrive_in_order_and_the_end_after_them() {
    let mut relays = joined();
    let (writer, reader) = stream(&mut relays);
    let bytes: Vec<u8> = (0..1_000_000u32).map(|at| ((at * 7) >> 3) as u8).collect();
    let (mut written, mut seen) = (0, Vec::new());
    while seen.len() < bytes.len() {
        written += fill(&writer, &bytes[written..]);
        turn(&mut relays);
        seen.extend(take(&reader));
    }
    assert!(seen == bytes);
    drop(writer);
    turn(&mut relays);
    assert_eq!((&reader).read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_reader_that_does_not_read_stops_the_writer_in_bounded_memory() {
    let mut relays = joined();
    let (writer, reader) = stream(&mut relays);
    let mut written = 0;
    loop {
        let more = fill(&writer, &[b'x'; 4096]);
        turn(&mut relays);
        if more == 0 {
            break;
        }
        written += more;
        assert!(written < WINDOW_BYTES + (1 << 20), "{written}");
    }
    let held = relays[1].lanes[0].writing.as_ref().unwrap().queue.len();
    assert!(held <= WINDOW_BYTES, "{held}");
    let mut seen = 0;
    while seen < written {
        seen += take(&reader).len();
        turn(&mut relays);
    }
    assert!(fill(&writer, b"again") > 0);
}

#[test]
fn a_reader_that_leaves_is_told_to_the_writer() {
    let mut relays = joined();
    let (writer, reader) = stream(&mut relays);
    drop(reader);
    turn(&mut relays);
    assert_eq!((&writer).write(b"x").unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
}

#[test]
fn a_socket_goes_both_ways_and_ends_one_way_at_a_time() {
    let mut relays = joined();
    let (mut rank, near) = UnixStream::pair().unwrap();
    let (mut server, far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    far.set_nonblocking(true).unwrap();
    relays[0].add_socket(PMI, near.into());
    relays[1].add_socket(PMI, far.into());
    rank.write_all(b"ask").unwrap();
    rank.shutdown(std::net::Shutdown::Write).unwrap();
    turn(&mut relays);
    let mut asked = String::new();
    server.read_to_string(&mut asked).unwrap();
    assert_eq!(asked, "ask");
    server.write_all(b"answer").unwrap();
    drop(server);
    turn(&mut relays);
    let mut answered = String::new();
    rank.read_to_string(&mut answered).unwrap();
    assert_eq!(answered, "answer");
}

#[test]
fn frames_come_after_the_bytes_that_were_sent_before() {
    let mut relays = joined();
    let (writer, reader) = stream(&mut relays);
    fill(&writer, b"last words");
    relays[0].drain(|_| true);
    relays[0].send(&Frame::Over { leftovers: 0 });
    drop(writer);
    relays[1].handle(RelayPlace::Incoming, libc::POLLIN);
    assert_eq!(relays[1].poll_frame(), Some(Frame::Over { leftovers: 0 }));
    assert_eq!(take(&reader), b"last words");
}

#[test]
fn bytes_behind_a_frame_wait_until_it_has_been_taken() {
    let [mut one, mut other] = joined();
    let (reader, far) = pipe().unwrap();
    sys::set_nonblocking(&reader).unwrap();
    one.send(&Frame::Go(vec![1]));
    one.send(&Frame::Data { channel: OUTPUT, bytes: b"early".to_vec() });
    one.send(&Frame::End { channel: OUTPUT });
    drop(one);
    turn(std::slice::from_mut(&mut other));
    assert_eq!(other.poll_frame(), Some(Frame::Go(vec![1])));
    // Only now is it known that there is such a stream.
    other.add_writer(OUTPUT, far.into());
    assert_eq!(other.poll_frame(), None);
    assert_eq!((take(&reader), other.gone()), (b"early".to_vec(), Some("it has ended")));
}

#[test]
fn what_was_found_on_a_stream_that_has_been_closed_since_is_nothing() {
    let mut relays = joined();
    let (_writer, _reader) = stream(&mut relays);
    relays[0].close();
    relays[0].handle(RelayPlace::Lane(0), libc::POLLIN | libc::POLLOUT);
}

#[test]
fn what_found_no_room_is_there_at_the_end() {
    let mut relays = joined();
    let (writer, reader) = stream(&mut relays);
    let mut written = 0;
    loop {
        let more = fill(&writer, &[b'y'; 4096]);
        turn(&mut relays);
        written += more;
        if more == 0 {
            break;
        }
    }
    relays[0].drain(|_| true);
    turn(&mut relays);
    let piped = take(&reader).len();
    assert_eq!(piped + relays[1].take_rest(OUTPUT).len(), written);
}

#[test]
fn what_commands_wrote_is_passed_on_when_the_other_end_has_gone_after_them() {
    let [mut one, mut other] = joined();
    let (reader, far) = pipe().unwrap();
    [reader.as_raw_fd(), far.as_raw_fd()].iter().for_each(|fd| sys::set_nonblocking(fd).unwrap());
    let channel = Channel { member: 0, stream: RankStream::CommandOutput };
    other.add_writer(channel, far.into());
    let mut send = |frame: Frame| {
        one.send(&frame);
        while !one.has_sent_all() {
            turn(std::slice::from_mut(&mut other));
            one.flush();
        }
    };
    // More than a pipe holds.
    (0..6).for_each(|_| send(Frame::Data { channel, bytes: vec![b'y'; 32 << 10] }));
    turn(std::slice::from_mut(&mut other));
    assert!(other.awaits_carried());
    one.send(&Frame::End { channel });
    drop(one);
    turn(std::slice::from_mut(&mut other));
    assert_eq!((other.gone(), other.carries(), other.awaits_carried()), (Some("it has ended"), true, false));
    let mut got = Vec::new();
    while other.carries() {
        got.extend(take(&reader));
        turn(std::slice::from_mut(&mut other));
    }
    got.extend(take(&reader));
    assert_eq!(got, vec![b'y'; 6 * (32 << 10)]);
}

#[test]
fn nonsense_and_the_end_of_the_other_side_are_told() {
    let (incoming, mut other) = pipe().unwrap();
    let (_rest, outgoing) = pipe().unwrap();
    sys::set_nonblocking(&incoming).unwrap();
    let mut relay = Relay::new(incoming.into(), outgoing.into(), Frames::default());
    assert_eq!(relay.gone(), None);
    other.write_all(b"Welcome to host a\n").unwrap();
    turn(std::slice::from_mut(&mut relay));
    assert_eq!(relay.poll_frame(), None);
    assert!(relay.gone().unwrap().contains("means nothing"), "{:?}", relay.gone());

    let [mut one, other] = joined();
    drop(other);
    turn(std::slice::from_mut(&mut one));
    assert_eq!(one.gone(), Some("it has ended"));
}
