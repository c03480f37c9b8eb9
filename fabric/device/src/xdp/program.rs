//! The filter in the kernel: which packets of the interface go to a lane; and what a tap needs. Instructions of the
//! kernel's virtual machine, written down here; there is no compiler for it at build or run time.
//!
//! A packet goes to the lane of its UDP port if it came by the lanes' queue, is addressed to this host by Ethernet and
//! IP address, is whole (no fragment, no IP options) and fits a frame. All others go on to the kernel as if the filter
//! were not there, also those for a port without a lane. Checksums are not looked at.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::RawFd;

/// Which packets.
#[derive(Clone, Debug)]
pub struct Filter {
    pub queue: u32,
    pub hardware: [u8; 6],
    pub v4: Vec<Ipv4Addr>,
    pub v6: Vec<Ipv6Addr>,
    /// Bytes with the Ethernet header.
    pub largest_packet: u32,
}

/// One instruction: code, two registers, offset, constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Instruction(pub u64);

impl Instruction {
    const fn new(code: u8, to: u8, from: u8, offset: i16, constant: u32) -> Self {
        let registers = (from as u64) << 4 | to as u64;
        Self(code as u64 | registers << 8 | (offset as u16 as u64) << 16 | (constant as u64) << 32)
    }

    fn with_offset(self, offset: i16) -> Self {
        Self(self.0 & !0xffff_0000 | (offset as u16 as u64) << 16)
    }
}

// Codes, as in the kernel's Documentation/bpf/standardization/instruction-set.rst.
const LOAD_BYTE: u8 = 0x71;
const LOAD_HALF: u8 = 0x69;
const LOAD_WORD: u8 = 0x61;
const LOAD_MAP: u8 = 0x18;
/// The constant of [`LOAD_MAP`] is a descriptor of a map.
const IS_MAP: u8 = 1;
const MOVE: u8 = 0xbf;
const SET: u8 = 0xb7;
const ADD: u8 = 0x07;
const AND: u8 = 0x57;
/// To the network's order of bytes.
const SWAP: u8 = 0xdc;
const JUMP: u8 = 0x05;
const JUMP_ABOVE: u8 = 0x2d;
const JUMP_ABOVE_CONSTANT: u8 = 0x25;
/// These compare the lower 32 bits.
const JUMP_EQUAL: u8 = 0x16;
const JUMP_UNEQUAL: u8 = 0x56;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

const REDIRECT_MAP: u32 = 51;
const PACKET_BYTES: u32 = 188;
const REDIRECT_PEER: u32 = 155;
const PASS: u32 = 2;

// Where the context of a packet has what.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const QUEUE: i16 = 16;

const CONTEXT: u8 = 6;
const PORT: u8 = 7;
const PACKET: u8 = 2;
const END: u8 = 3;
const PROBE: u8 = 4;

const UDP: u32 = 17;
const ETHERNET: i16 = 14;
const V4_BYTES: i16 = 20;
const V6_BYTES: i16 = 40;
const UDP_BYTES: u32 = 8;

/// Where a jump leads.
#[derive(Clone, Copy)]
struct JumpLabel(usize);

/// Instructions with jumps whose aims are not known yet. All jumps lead forward.
struct Assembler {
    code: Vec<Instruction>,
    aims: Vec<Option<usize>>,
    jumps: Vec<(usize, JumpLabel)>,
}

impl Assembler {
    fn new() -> Self {
        Self { code: Vec::new(), aims: Vec::new(), jumps: Vec::new() }
    }

    fn label(&mut self) -> JumpLabel {
        self.aims.push(None);
        JumpLabel(self.aims.len() - 1)
    }

    fn here(&mut self, label: JumpLabel) {
        self.aims[label.0] = Some(self.code.len());
    }

    fn add(&mut self, code: u8, to: u8, from: u8, offset: i16, constant: u32) {
        self.code.push(Instruction::new(code, to, from, offset, constant));
    }

    fn jump(&mut self, code: u8, to: u8, from: u8, constant: u32, label: JumpLabel) {
        self.jumps.push((self.code.len(), label));
        self.add(code, to, from, 0, constant);
    }

    /// Register 0 is what stands at `at` in the packet.
    fn load(&mut self, code: u8, at: i16) {
        self.add(code, 0, PACKET, at, 0);
    }

    fn unless_equal(&mut self, code: u8, at: i16, value: u32, label: JumpLabel) {
        self.load(code, at);
        self.jump(JUMP_UNEQUAL, 0, 0, value, label);
    }

    /// To `label` where the packet has fewer bytes.
    fn unless_long(&mut self, bytes: u32, label: JumpLabel) {
        self.add(MOVE, PROBE, PACKET, 0, 0);
        self.add(ADD, PROBE, 0, 0, bytes);
        self.jump(JUMP_ABOVE, PROBE, END, 0, label);
    }

    fn finish(mut self) -> Vec<Instruction> {
        for (at, label) in self.jumps {
            let aim = self.aims[label.0].expect("every label has a place");
            let offset = i16::try_from(aim - at - 1).expect("no more addresses than an interface has");
            self.code[at] = self.code[at].with_offset(offset);
        }
        self.code
    }
}

/// The first bytes of `bytes` as the machine loads them.
fn word(bytes: &[u8]) -> u32 {
    u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn half(bytes: [u8; 2]) -> u32 {
    u16::from_ne_bytes(bytes).into()
}

/// The filter's instructions. `map` has the lanes' sockets by port. There is an address at least: the kernel refuses
/// instructions that nothing leads to.
pub fn assemble(filter: &Filter, map: RawFd) -> Vec<Instruction> {
    assert!(!(filter.v4.is_empty() && filter.v6.is_empty()), "a filter for no address");
    let mut a = Assembler::new();
    let [pass, other, redirect] = std::array::from_fn(|_| a.label());
    a.add(MOVE, CONTEXT, 1, 0, 0);
    a.add(LOAD_WORD, 0, CONTEXT, QUEUE, 0);
    a.jump(JUMP_UNEQUAL, 0, 0, filter.queue, pass);
    a.add(LOAD_WORD, PACKET, CONTEXT, DATA, 0);
    a.add(LOAD_WORD, END, CONTEXT, DATA_END, 0);
    a.unless_long((ETHERNET + V4_BYTES) as u32 + UDP_BYTES, pass);
    a.unless_equal(LOAD_WORD, 0, word(&filter.hardware), pass);
    a.unless_equal(LOAD_HALF, 4, half([filter.hardware[4], filter.hardware[5]]), pass);
    if !filter.v4.is_empty() {
        a.unless_equal(LOAD_HALF, 12, half([0x08, 0x00]), other);
        v4(&mut a, &filter.v4, redirect, pass);
    }
    a.here(other);
    if !filter.v6.is_empty() {
        a.unless_equal(LOAD_HALF, 12, half([0x86, 0xdd]), pass);
        v6(&mut a, &filter.v6, redirect, pass);
    } else {
        a.jump(JUMP, 0, 0, 0, pass);
    }

    a.here(redirect);
    a.add(SWAP, PORT, 0, 0, 16);
    a.add(MOVE, 1, CONTEXT, 0, 0);
    a.add(CALL, 0, 0, 0, PACKET_BYTES);
    a.jump(JUMP_ABOVE_CONSTANT, 0, 0, filter.largest_packet, pass);
    a.add(LOAD_MAP, 1, IS_MAP, 0, map as u32);
    a.add(0, 0, 0, 0, 0);
    a.add(MOVE, 2, PORT, 0, 0);
    a.add(SET, 3, 0, 0, PASS);
    a.add(CALL, 0, 0, 0, REDIRECT_MAP);
    a.add(EXIT, 0, 0, 0, 0);
    a.here(pass);
    a.add(SET, 0, 0, 0, PASS);
    a.add(EXIT, 0, 0, 0, 0);
    a.finish()
}

/// A filter that has everything go on.
pub fn pass() -> Vec<Instruction> {
    let mut a = Assembler::new();
    a.add(SET, 0, 0, 0, PASS);
    a.add(EXIT, 0, 0, 0, 0);
    a.finish()
}

/// A classifier by which all that an interface receives is received by the other end of a cable instead.
pub fn receive_at_peer(cable: u32) -> Vec<Instruction> {
    let mut a = Assembler::new();
    a.add(SET, 1, 0, 0, cable);
    a.add(SET, 2, 0, 0, 0);
    a.add(CALL, 0, 0, 0, REDIRECT_PEER);
    a.add(EXIT, 0, 0, 0, 0);
    a.finish()
}

/// Leads to `redirect` with the port of a packet for one of the addresses, or to `pass`.
fn v4(a: &mut Assembler, addresses: &[Ipv4Addr], redirect: JumpLabel, pass: JumpLabel) {
    a.unless_equal(LOAD_BYTE, ETHERNET, 0x45, pass);
    a.load(LOAD_HALF, ETHERNET + 6);
    a.add(AND, 0, 0, 0, half([0x3f, 0xff]));
    a.jump(JUMP_UNEQUAL, 0, 0, 0, pass);
    a.unless_equal(LOAD_BYTE, ETHERNET + 9, UDP, pass);
    a.load(LOAD_WORD, ETHERNET + 16);
    let ours = a.label();
    for address in addresses {
        a.jump(JUMP_EQUAL, 0, 0, word(&address.octets()), ours);
    }
    a.jump(JUMP, 0, 0, 0, pass);
    a.here(ours);
    a.add(LOAD_HALF, PORT, PACKET, ETHERNET + V4_BYTES + 2, 0);
    a.jump(JUMP, 0, 0, 0, redirect);
}

/// As [`v4`].
fn v6(a: &mut Assembler, addresses: &[Ipv6Addr], redirect: JumpLabel, pass: JumpLabel) {
    a.unless_long((ETHERNET + V6_BYTES) as u32 + UDP_BYTES, pass);
    a.load(LOAD_BYTE, ETHERNET);
    a.add(AND, 0, 0, 0, 0xf0);
    a.jump(JUMP_UNEQUAL, 0, 0, 0x60, pass);
    a.unless_equal(LOAD_BYTE, ETHERNET + 6, UDP, pass);
    let ours = a.label();
    for address in addresses {
        let other = a.label();
        for (part, at) in address.octets().chunks_exact(4).zip((ETHERNET + 24..).step_by(4)) {
            a.unless_equal(LOAD_WORD, at, word(part), other);
        }
        a.jump(JUMP, 0, 0, 0, ours);
        a.here(other);
    }
    a.jump(JUMP, 0, 0, 0, pass);
    a.here(ours);
    a.add(LOAD_HALF, PORT, PACKET, ETHERNET + V6_BYTES + 2, 0);
    a.jump(JUMP, 0, 0, 0, redirect);
}

#[cfg(all(test, target_endian = "little"))]
mod tests;
