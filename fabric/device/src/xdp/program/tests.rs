//! The filter, run here as the kernel would run it, and its bytes.

use super::*;

const MAC: [u8; 6] = [2, 0, 0, 0xab, 0xcd, 0xef];
const PORT_OF_LANE: u16 = 0x9c41;

fn filter() -> Filter {
    let v4 = vec![Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(192, 168, 3, 4)];
    let v6 = vec!["fd00::1".parse().expect("one"), "fd00:1:2:3:4:5:6:7".parse().expect("another")];
    Filter { queue: 0, hardware: MAC, v4, v6, largest_packet: 1514 }
}

/// What became of a packet: passed on, or redirected by this port.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    Redirect(u32),
}

/// Where packets and contexts lie for the interpreter.
const PACKET_AT: u64 = 0x1000;
const CONTEXT_AT: u64 = 0x10_0000;

/// Runs the instructions. A load outside of the packet, which the kernel would refuse beforehand, is a panic.
fn run(code: &[Instruction], packet: &[u8], queue: u32) -> Verdict {
    let mut registers = [0u64; 11];
    registers[1] = CONTEXT_AT;
    let mut at = 0;
    loop {
        let Instruction(bits) = code[at];
        let (op, to, from) = (bits as u8, (bits >> 8 & 15) as usize, (bits >> 12 & 15) as usize);
        let (offset, constant) = ((bits >> 16) as i16, (bits >> 32) as u32);
        let address = registers[from].wrapping_add_signed(offset.into());
        let bytes = |count: usize| {
            let start = (address - PACKET_AT) as usize;
            let mut word = [0; 8];
            word[..count].copy_from_slice(&packet[start..start + count]);
            u64::from_le_bytes(word)
        };
        at += 1;
        let mut jump = |taken: bool| at = if taken { at.wrapping_add_signed(offset.into()) } else { at };
        match op {
            LOAD_WORD if from == CONTEXT as usize => {
                registers[to] = match offset {
                    DATA => PACKET_AT,
                    DATA_END => PACKET_AT + packet.len() as u64,
                    QUEUE => queue.into(),
                    _ => panic!("context at {offset}"),
                }
            }
            LOAD_BYTE => registers[to] = bytes(1),
            LOAD_HALF => registers[to] = bytes(2),
            LOAD_WORD => registers[to] = bytes(4),
            LOAD_MAP => {
                registers[to] = constant.into();
                at += 1;
            }
            MOVE => registers[to] = registers[from],
            SET => registers[to] = constant.into(),
            ADD => registers[to] += u64::from(constant),
            AND => registers[to] &= u64::from(constant),
            SWAP => registers[to] = u64::from((registers[to] as u16).swap_bytes()),
            JUMP => jump(true),
            JUMP_ABOVE => jump(registers[to] > registers[from]),
            JUMP_ABOVE_CONSTANT => jump(registers[to] > u64::from(constant)),
            JUMP_EQUAL => jump(registers[to] as u32 == constant),
            JUMP_UNEQUAL => jump(registers[to] as u32 != constant),
            CALL if constant == PACKET_BYTES => {
                registers[0] = packet.len() as u64;
                registers[1..6].fill(u64::MAX);
            }
            CALL => {
                assert_eq!((constant, registers[1], registers[3]), (REDIRECT_MAP, 77, PASS.into()));
                return Verdict::Redirect(registers[2] as u32);
            }
            EXIT => {
                assert_eq!(registers[0], PASS.into());
                return Verdict::Pass;
            }
            _ => panic!("instruction {op:#x}"),
        }
    }
}

fn v4_packet(payload: usize) -> Vec<u8> {
    let mut packet = [&MAC[..], &[2, 0, 0, 0, 0, 9], &[8, 0]].concat();
    packet.extend([0x45, 0, 0, 28 + payload as u8, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 77, 0, 2, 10, 77, 0, 1]);
    packet.extend([0x12, 0x34, 0x9c, 0x41, 0, 8 + payload as u8, 0, 0]);
    packet.resize(42 + payload, 7);
    packet
}

fn v6_packet(payload: usize) -> Vec<u8> {
    let mut packet = [&MAC[..], &[2, 0, 0, 0, 0, 9], &[0x86, 0xdd]].concat();
    packet.extend([0x60, 0, 0, 0, 0, 8 + payload as u8, 17, 64]);
    packet.extend("fd00::2".parse::<Ipv6Addr>().expect("one").octets());
    packet.extend("fd00:1:2:3:4:5:6:7".parse::<Ipv6Addr>().expect("one").octets());
    packet.extend([0x12, 0x34, 0x9c, 0x41, 0, 8 + payload as u8, 0, 0]);
    packet.resize(62 + payload, 7);
    packet
}

fn verdict(packet: &[u8]) -> Verdict {
    run(&assemble(&filter(), 77), packet, 0)
}

#[test]
fn datagrams_for_us_go_to_the_lane_of_their_port() {
    for packet in [v4_packet(0), v4_packet(64), v6_packet(0), v6_packet(64)] {
        assert_eq!(verdict(&packet), Verdict::Redirect(PORT_OF_LANE.into()));
        assert_eq!(run(&assemble(&filter(), 77), &packet, 1), Verdict::Pass, "another queue");
    }
    let mut second = v4_packet(3);
    second[30..34].copy_from_slice(&[192, 168, 3, 4]);
    assert_eq!(verdict(&second), Verdict::Redirect(PORT_OF_LANE.into()));
}

#[test]
fn everything_else_goes_on_to_the_kernel() {
    // Hardware address, kind, IP version or header length, fragment, protocol, address.
    let changes: [(usize, u8); 10] =
        [(0, 3), (5, 0), (12, 9), (14, 0x46), (14, 0x55), (20, 0x20), (20, 0x1f), (21, 1), (23, 6), (33, 9)];
    for (at, value) in changes {
        let mut packet = v4_packet(20);
        packet[at] = value;
        assert_eq!(verdict(&packet), Verdict::Pass, "byte {at} = {value}");
    }
    for (at, value) in [(0, 3), (13, 0), (14, 0x40), (20, 44), (20, 6), (38, 9), (42, 9), (46, 9), (53, 9)] {
        let mut packet = v6_packet(20);
        packet[at] = value;
        assert_eq!(verdict(&packet), Verdict::Pass, "byte {at} = {value}");
    }
    assert_eq!(verdict(&[0xff; 1500]), Verdict::Pass);
}

#[test]
fn no_length_is_read_beyond() {
    for whole in [v4_packet(9), v6_packet(9)] {
        let headers = whole.len() - 9;
        for length in 0..whole.len() {
            let expected = if length < headers { Verdict::Pass } else { Verdict::Redirect(PORT_OF_LANE.into()) };
            assert_eq!(verdict(&whole[..length]), expected, "{length} bytes");
        }
    }
}

#[test]
fn what_no_frame_takes_goes_on_to_the_kernel() {
    let mut packet = v4_packet(0);
    packet.resize(1514, 0);
    assert_eq!(verdict(&packet), Verdict::Redirect(PORT_OF_LANE.into()));
    packet.push(0);
    assert_eq!(verdict(&packet), Verdict::Pass);
}

#[test]
fn a_host_may_have_addresses_of_one_kind_only() {
    let v4_only = Filter { v6: Vec::new(), ..filter() };
    let v6_only = Filter { v4: Vec::new(), ..filter() };
    let [four, six] = [v4_packet(1), v6_packet(1)];
    let run = |filter: &Filter, packet: &[u8]| run(&assemble(filter, 77), packet, 0);
    assert_eq!([run(&v4_only, &six), run(&v6_only, &four)], [Verdict::Pass, Verdict::Pass]);
    let port = u32::from(PORT_OF_LANE);
    assert_eq!([run(&v4_only, &four), run(&v6_only, &six)], [Verdict::Redirect(port), Verdict::Redirect(port)]);
}

#[test]
fn the_filter_has_these_bytes() {
    let small = Filter { v4: vec![Ipv4Addr::new(10, 77, 0, 1)], v6: Vec::new(), ..filter() };
    let golden: &[u64] = &[
        0x0000_0000_0000_16bf,
        0x0000_0000_0010_6061,
        0x0000_0000_0022_0056,
        0x0000_0000_0000_6261,
        0x0000_0000_0004_6361,
        0x0000_0000_0000_24bf,
        0x0000_002a_0000_0407,
        0x0000_0000_001d_342d,
        0x0000_0000_0000_2061,
        0xab00_0002_001b_0056,
        0x0000_0000_0004_2069,
        0x0000_efcd_0019_0056,
        0x0000_0000_000c_2069,
        0x0000_0008_000c_0056,
        0x0000_0000_000e_2071,
        0x0000_0045_0015_0056,
        0x0000_0000_0014_2069,
        0x0000_ff3f_0000_0057,
        0x0000_0000_0012_0056,
        0x0000_0000_0017_2071,
        0x0000_0011_0010_0056,
        0x0000_0000_001e_2061,
        0x0100_4d0a_0001_0016,
        0x0000_0000_000d_0005,
        0x0000_0000_0024_2769,
        0x0000_0000_0001_0005,
        0x0000_0000_000a_0005,
        0x0000_0010_0000_07dc,
        0x0000_0000_0000_61bf,
        0x0000_00bc_0000_0085,
        0x0000_05ea_0006_0025,
        0x0000_004d_0000_1118,
        0x0000_0000_0000_0000,
        0x0000_0000_0000_72bf,
        0x0000_0002_0000_03b7,
        0x0000_0033_0000_0085,
        0x0000_0000_0000_0095,
        0x0000_0002_0000_00b7,
        0x0000_0000_0000_0095,
    ];
    let code: Vec<u64> = assemble(&small, 77).iter().map(|instruction| instruction.0).collect();
    let lines: Vec<String> = code.iter().map(|bits| format!("{bits:#018x}")).collect();
    assert_eq!(code, golden, "{}", lines.join(",\n"));
}
