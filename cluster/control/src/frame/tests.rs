use super::*;
use crate::job::{Program, StdinTo};
use crate::placement::Bind;
use proptest::prelude::*;
use std::net::Ipv4Addr;

const CHANNEL: Channel = Channel { member: 3, stream: RankStream::Error };

fn hello() -> AgentHello {
    let addresses = vec![Ipv4Addr::new(10, 77, 0, 1).into(), std::net::Ipv6Addr::LOCALHOST.into()];
    AgentHello { version: "0.1.0".into(), checksum: 0x0102_0304, pid: 9, host: "h".into(), addresses }
}

fn start() -> HostStart {
    let first = Program {
        program: "./p".into(),
        arguments: vec!["-x".into(), "".into()],
        ranks: 2,
        environment: vec![("A".into(), "b=c".into())],
        directory: Some("/d".into()),
    };
    HostStart {
        job: "1-f".into(),
        secret: 7,
        front: "weft run".into(),
        size: 3,
        ranks: vec![0, 2],
        hosts: vec!["a".into(), "b".into()],
        places: vec![0, 1, 0],
        programs: vec![first, Program { program: "q".into(), ranks: 1, ..Program::default() }],
        environment: vec![("HOME".into(), "/h".into())],
        directory: "/w".into(),
        bind: Bind::None,
        stdin: StdinTo::Rank(2),
        output: [None, Some("out-%r".into())],
        cores: Some("/cores".into()),
    }
}

fn launch() -> Frame {
    Frame::Launch { directory: "/w".into(), commands: vec![vec!["ssh".into(), "b".into()], vec!["x".into()]] }
}

fn usage([wall_us, user_us, system_us, peak_bytes]: [u64; 4]) -> RankUsage {
    RankUsage { wall_us, user_us, system_us, peak_bytes }
}

fn sent_bytes([shm, tcp, udp, copied, messages, message_bytes]: [u64; 6]) -> SentBytes {
    SentBytes { shm, tcp, udp, copied, messages, message_bytes }
}

fn every_frame() -> Vec<Frame> {
    vec![
        Frame::Hello(hello()),
        Frame::Start(Box::new(start())),
        Frame::Ready(vec![(1, 2), (3, 4)]),
        Frame::Refused { code: 127, reason: "program 'x' does not exist".into() },
        Frame::Go(vec![1, 2, 3]),
        Frame::Started { member: 1, pid: 4_000_000 },
        Frame::NotStarted { member: 1, errno: 2 },
        Frame::Ended { member: 2, exit: Exit::Code(255) },
        Frame::Ended { member: 2, exit: Exit::Signal(11) },
        Frame::Ended { member: 2, exit: Exit::OutOfMemory { is_sure: false } },
        Frame::KeeperGone { pid: 7 },
        Frame::Over { leftovers: 1 },
        Frame::Signal { signal: 15 },
        Frame::SignalOne { member: 3, signal: 10 },
        Frame::Kill,
        Frame::Data { channel: CHANNEL, bytes: vec![5, 6] },
        Frame::End { channel: CHANNEL },
        Frame::Stop { channel: CHANNEL },
        Frame::Credit { channel: CHANNEL, bytes: 300 },
        launch(),
        Frame::Used { member: 2, usage: usage([1, 2, 3, u64::MAX]), sent: None },
        Frame::Used { member: u32::MAX, usage: RankUsage::default(), sent: Some(sent_bytes([4, 5, 6, 7, 8, 9])) },
        Frame::Failed { member: 1, text: "#0 main at p.c:3\n".into() },
        Frame::CommandEnded { command: 2, exit: Exit::Code(255) },
        Frame::CommandEnded { command: 2, exit: Exit::Signal(9) },
        Frame::CommandNotStarted { command: 1, errno: 2 },
        Frame::AskDoing,
        Frame::Doing(vec![("computing".into(), None), ("blocked in MPI_Recv".into(), Some(1500))]),
    ]
}

fn encoded(frame: &Frame) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    bytes
}

#[rustfmt::skip]
#[test]
fn bytes_of_the_short_frames() {
    let golden: &[(Frame, &[u8])] = &[
        (Frame::Ready(vec![(1, 0x203)]), &[9, 0, 0, 0,  3,  1, 0, 0, 0,  1, 0,  3, 2]),
        (Frame::Refused { code: 127, reason: "no".into() }, &[11, 0, 0, 0,  4,  127, 0, 0, 0,  2, 0, 0, 0, b'n', b'o']),
        (Frame::Go(vec![8, 9]), &[3, 0, 0, 0,  5,  8, 9]),
        (Frame::Started { member: 1, pid: 0x0203 }, &[9, 0, 0, 0,  6,  1, 0, 0, 0,  3, 2, 0, 0]),
        (Frame::NotStarted { member: 1, errno: 2 }, &[9, 0, 0, 0,  7,  1, 0, 0, 0,  2, 0, 0, 0]),
        (Frame::Ended { member: 1, exit: Exit::Code(3) }, &[9, 0, 0, 0,  8,  1, 0, 0, 0,  3, 0, 0, 0]),
        (Frame::Ended { member: 1, exit: Exit::Signal(9) }, &[9, 0, 0, 0,  9,  1, 0, 0, 0,  9, 0, 0, 0]),
        (Frame::Ended { member: 1, exit: Exit::OutOfMemory { is_sure: true } }, &[9, 0, 0, 0,  9,  1, 0, 0, 0,  0, 1, 0, 0]),
        (Frame::KeeperGone { pid: 4 }, &[5, 0, 0, 0,  10,  4, 0, 0, 0]),
        (Frame::Over { leftovers: 4 }, &[5, 0, 0, 0,  11,  4, 0, 0, 0]),
        (Frame::Signal { signal: 15 }, &[5, 0, 0, 0,  12,  15, 0, 0, 0]),
        (Frame::SignalOne { member: 3, signal: 10 }, &[9, 0, 0, 0,  27,  3, 0, 0, 0,  10, 0, 0, 0]),
        (Frame::Kill, &[1, 0, 0, 0,  13]),
        (Frame::Data { channel: CHANNEL, bytes: vec![7] }, &[10, 0, 0, 0,  14,  3, 0, 0, 0,  2, 0, 0, 0,  7]),
        (Frame::End { channel: CHANNEL }, &[9, 0, 0, 0,  15,  3, 0, 0, 0,  2, 0, 0, 0]),
        (Frame::Stop { channel: CHANNEL }, &[9, 0, 0, 0,  16,  3, 0, 0, 0,  2, 0, 0, 0]),
        (Frame::Credit { channel: CHANNEL, bytes: 5 }, &[13, 0, 0, 0,  17,  3, 0, 0, 0,  2, 0, 0, 0,  5, 0, 0, 0]),
        (Frame::CommandEnded { command: 1, exit: Exit::Code(3) }, &[9, 0, 0, 0,  19,  1, 0, 0, 0,  3, 0, 0, 0]),
        (Frame::CommandEnded { command: 1, exit: Exit::Signal(9) }, &[9, 0, 0, 0,  20,  1, 0, 0, 0,  9, 0, 0, 0]),
        (Frame::CommandNotStarted { command: 1, errno: 2 }, &[9, 0, 0, 0,  21,  1, 0, 0, 0,  2, 0, 0, 0]),
        (Frame::Failed { member: 1, text: "x".into() }, &[10, 0, 0, 0,  23,  1, 0, 0, 0,  1, 0, 0, 0, b'x']),
        (Frame::Pmix(vec![8, 9]), &[3, 0, 0, 0,  24,  8, 9]),
        (Frame::PmixGone, &[1, 0, 0, 0,  25]),
        (Frame::PmixBegins, &[1, 0, 0, 0,  26]),
        (Frame::AskDoing, &[1, 0, 0, 0,  28]),
        (Frame::Doing(vec![("x".into(), None)]), &[11, 0, 0, 0,  29,  1, 0, 0, 0,  1, 0, 0, 0,  b'x',  0]),
    ];
    for (frame, bytes) in golden {
        assert_eq!(encoded(frame), *bytes, "{frame:?}");
    }
    assert_eq!(greeting(), *b"weft-agt\x09\0\0\0");
}

#[rustfmt::skip]
#[test]
fn bytes_of_the_long_frames() {
    let text = |text: &[u8]| [&u32::to_le_bytes(text.len() as u32), text].concat();
    let hello_bytes = [
        &[59, 0, 0, 0, 1][..], &text(b"0.1.0"), &[4, 3, 2, 1, 0, 0, 0, 0], &[9, 0, 0, 0], &text(b"h"),
        &[2, 0, 0, 0], &text(&[10, 77, 0, 1]), &text(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
    ].concat();
    assert_eq!(encoded(&Frame::Hello(hello())), hello_bytes);
    let start_bytes = [
        &[2][..], &text(b"1-f"), &[7, 0, 0, 0, 0, 0, 0, 0], &text(b"weft run"), &[3, 0, 0, 0],
        &[2, 0, 0, 0], &[0, 0, 0, 0], &[2, 0, 0, 0],
        &[2, 0, 0, 0], &text(b"a"), &text(b"b"),
        &[3, 0, 0, 0], &[0, 0, 0, 0], &[1, 0, 0, 0], &[0, 0, 0, 0],
        &[2, 0, 0, 0],
        &text(b"./p"), &[2, 0, 0, 0], &text(b"-x"), &text(b""), &[2, 0, 0, 0], &[1, 0, 0, 0], &text(b"A"), &text(b"b=c"),
        &[1], &text(b"/d"),
        &text(b"q"), &[0, 0, 0, 0], &[1, 0, 0, 0], &[0, 0, 0, 0], &[0],
        &[1, 0, 0, 0], &text(b"HOME"), &text(b"/h"), &text(b"/w"),
        &[2], &[0, 2, 0, 0, 0], &[0], &[1], &text(b"out-%r"), &[1], &text(b"/cores"),
    ].concat();
    let launch_bytes = [
        &[18][..], &text(b"/w"), &[2, 0, 0, 0], &[2, 0, 0, 0], &text(b"ssh"), &text(b"b"), &[1, 0, 0, 0], &text(b"x"),
    ].concat();
    assert_eq!(encoded(&launch())[4..], launch_bytes);
    let long = |number: u64| number.to_le_bytes();
    let used_bytes = [
        &[22, 3, 0, 0, 0][..], &long(1), &long(2), &long(3), &long(4), &[1], &long(5), &long(6), &long(7), &long(8),
        &long(9), &long(10),
    ].concat();
    let sent = Some(sent_bytes([5, 6, 7, 8, 9, 10]));
    assert_eq!(encoded(&Frame::Used { member: 3, usage: usage([1, 2, 3, 4]), sent })[4..], used_bytes);
    let length = u32::to_le_bytes(start_bytes.len() as u32);
    assert_eq!(encoded(&Frame::Start(Box::new(start()))), [&length[..], &start_bytes].concat());
}

#[test]
fn frames_survive_however_they_are_cut() {
    let frames = every_frame();
    let bytes = frames.iter().flat_map(encoded).collect::<Vec<_>>();
    for size in [1, 2, 3, 7, 64, bytes.len()] {
        let mut reader = Frames::default();
        let mut seen = Vec::new();
        for piece in bytes.chunks(size) {
            reader.handle_bytes(piece);
            while let Some(frame) = reader.poll_frame().expect("frames") {
                seen.push(frame);
            }
        }
        assert_eq!(seen, frames, "pieces of {size}");
    }
}

fn read(bytes: &[u8]) -> Result<Option<Frame>, FrameError> {
    let mut reader = Frames::default();
    reader.handle_bytes(bytes);
    reader.poll_frame()
}

#[test]
fn what_is_no_frame_is_refused_by_name() {
    assert_eq!(read(&[0, 0, 0, 0]), Err(FrameError::Length(0)));
    assert_eq!(read(b"Welcome to host a"), Err(FrameError::Length(u32::from_le_bytes(*b"Welc") as usize)));
    assert_eq!(read(&[1, 0, 0, 0, 99]), Err(FrameError::Kind(99)));
    assert_eq!(read(&[2, 0, 0, 0, 13, 0]), Err(FrameError::Cut(13)));
    assert_eq!(read(&[9, 0, 0, 0, 15, 0, 0, 0, 0, 7, 0, 0, 0]), Err(FrameError::Value(15)), "a stream that is none");
    for frame in every_frame() {
        let whole = encoded(&frame);
        let open_ended = matches!(frame, Frame::Go(_) | Frame::Data { .. });
        for length in LENGTH_BYTES + 1..whole.len() {
            let mut cut = whole[..length].to_vec();
            cut[..LENGTH_BYTES].copy_from_slice(&u32::to_le_bytes((length - LENGTH_BYTES) as u32));
            assert!(open_ended || read(&cut).is_err(), "{frame:?} cut to {length}");
        }
    }
}

#[test]
fn a_start_whose_ranks_make_no_sense_is_refused() {
    let with = |change: &dyn Fn(&mut HostStart)| {
        let mut start = start();
        change(&mut start);
        read(&encoded(&Frame::Start(Box::new(start))))
    };
    let wrong = Err(FrameError::Value(2));
    assert_eq!(with(&|start| start.ranks.clear()), wrong);
    assert_eq!(with(&|start| start.ranks[1] = 3), wrong);
    assert_eq!(with(&|start| start.ranks[1] = 0), wrong);
    assert_eq!(with(&|start| start.size = 4), wrong);
    assert_eq!(with(&|start| start.programs.clear()), wrong);
    assert_eq!(with(&|start| start.places.truncate(2)), wrong);
    assert_eq!(with(&|start| start.places[1] = 2), wrong, "a host that is none");
    assert!(with(&|start| start.ranks[1] = 1).is_ok());
}

proptest! {
    #[test]
    fn nonsense_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0u8..26) {
        let framed = [&u32::to_le_bytes(bytes.len() as u32 + 1)[..], &[kind], &bytes].concat();
        let _ = read(&framed);
        let _ = read(&bytes);
    }
}
