//! Packets for a process of another job that were posted before it was known how they go there. Their bytes are copied,
//! so that who sends little need not wait for it. Towards the port this is a device, of which what is accepted waits.

use std::collections::VecDeque;
use weft_device::shm::LARGEST_PACKET;
use weft_device::{Capabilities, Device, Posted, Sink, bytes_of, words_of};
use weft_wire::cell::{Head, INLINE_BYTES, Kind};

/// Posts are refused if more than so many bytes would wait.
const LIMIT_BYTES: usize = 2 * LARGEST_PACKET;
/// What a packet counts besides its bulk payload.
const PACKET_BYTES: usize = 128;

struct HeldPacket {
    head: Head,
    inline: [u8; INLINE_BYTES],
    inline_bytes: usize,
    bulk: Vec<u8>,
    /// So many bytes of the bulk payload have left.
    gone: usize,
}

/// The packets for one process, in their order.
#[derive(Default)]
pub(super) struct HeldPackets {
    packets: VecDeque<HeldPacket>,
    bytes: usize,
}

impl HeldPackets {
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Keeps a packet, of its bulk payload as much as one packet takes.
    pub fn keep(&mut self, head: Head, inline: &[u8], bulk: Option<&[u8]>) -> Posted {
        let bulk = bulk.unwrap_or_default();
        let bulk = &bulk[..bulk.len().min(LARGEST_PACKET)];
        if self.bytes + PACKET_BYTES + bulk.len() > LIMIT_BYTES {
            return Posted::Full;
        }
        let mut packet =
            HeldPacket { head, inline: [0; INLINE_BYTES], inline_bytes: inline.len(), bulk: bulk.to_vec(), gone: 0 };
        packet.inline[..inline.len()].copy_from_slice(inline);
        self.bytes += PACKET_BYTES + bulk.len();
        self.packets.push_back(packet);
        Posted::Sent(bulk.len())
    }

    /// Lets go by a device what there is room for; true if anything has left.
    pub fn flush(&mut self, device: &mut impl Device, to: u32) -> bool {
        let mut any = false;
        while let Some(packet) = self.packets.front_mut() {
            let Posted::Sent(piece) = packet.post(device, to) else { break };
            any = true;
            packet.gone += piece;
            if packet.gone == packet.bulk.len() {
                self.bytes -= PACKET_BYTES + packet.bulk.len();
                self.packets.pop_front();
            }
        }
        any
    }
}

impl HeldPacket {
    /// Posts what is left.
    fn post(&self, device: &mut impl Device, to: u32) -> Posted {
        let rest = &self.bulk[self.gone..];
        let (head, control) = match self.gone {
            0 => (self.head, self.inline_bytes / 8),
            // A protocol beside port knows the rest by that it has no control words.
            _ if !self.head.kind.is_of_port() => (self.head, 0),
            _ => (Head::control(Kind::More), 0),
        };
        // SAFETY: both are readable for their lengths.
        unsafe {
            match rest.is_empty() {
                true => device.post_short(to, head, self.inline.as_ptr(), self.inline_bytes),
                false => {
                    let words = words_of(&self.inline);
                    device.post_bulk(to, head, &words[..control], rest.as_ptr(), rest.len())
                }
            }
        }
    }
}

/// Those whom it is not known yet how to reach, as a device that keeps what is posted.
pub(super) struct Unmet {
    /// The number of the first process of another job.
    first: u32,
    held: Vec<HeldPackets>,
    /// Of those something is held, or was until it was known how packets go there.
    pub(super) waiting: Vec<u32>,
    /// Memory is to be offered to those, to whom something goes for the first time.
    wanted: Vec<u32>,
}

impl Unmet {
    /// Processes of other jobs have numbers from `first` on.
    pub fn new(first: u32) -> Self {
        Self { first, held: Vec::new(), waiting: Vec::new(), wanted: Vec::new() }
    }

    pub fn add_peer(&mut self) {
        self.held.push(HeldPackets::default());
    }

    /// It is known how packets go there: what is held leaves, if there is anything.
    pub fn note_decided(&mut self, rank: u32) {
        if !self.waiting.contains(&rank) {
            self.waiting.push(rank);
        }
    }

    pub fn take_wanted(&mut self) -> Option<u32> {
        self.wanted.pop()
    }

    /// What is held for a process.
    pub fn of(&mut self, rank: u32) -> Option<&mut HeldPackets> {
        self.held.get_mut((rank as usize).checked_sub(self.first as usize)?)
    }

    /// Nothing is held for a process any more.
    pub fn forget(&mut self, rank: u32) {
        self.of(rank).into_iter().for_each(|held| *held = HeldPackets::default());
        self.waiting.retain(|other| *other != rank);
        self.wanted.retain(|other| *other != rank);
    }

    /// Whether something is held for somebody whom `ended` does not name.
    pub fn has_held(&self, ended: impl Fn(u32) -> bool) -> bool {
        self.waiting.iter().any(|rank| !ended(*rank))
    }

    fn keep(&mut self, to: u32, head: Head, inline: &[u8], bulk: Option<&[u8]>) -> Posted {
        let Some(held) = self.of(to) else { return Posted::Full };
        let posted = held.keep(head, inline, bulk);
        if !self.waiting.contains(&to) {
            self.waiting.push(to);
            self.wanted.push(to);
        }
        posted
    }
}

impl Device for Unmet {
    const CAPABILITIES: Capabilities = Capabilities { may_wait: true, ..Capabilities::plain(LARGEST_PACKET) };

    unsafe fn post_short(&mut self, to: u32, head: Head, data: *const u8, length: usize) -> Posted {
        // SAFETY: the caller's promise; an empty range may come with any pointer.
        let inline = if length == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(data, length) } };
        self.keep(to, head, inline, None)
    }

    unsafe fn post_bulk(&mut self, to: u32, head: Head, control: &[u64], data: *const u8, length: usize) -> Posted {
        // SAFETY: the caller's promise.
        let bulk = unsafe { std::slice::from_raw_parts(data, length) };
        self.keep(to, head, &bytes_of(control)[..8 * control.len()], Some(bulk))
    }

    fn poll<S: Sink>(&mut self, _: &mut S) -> bool {
        false
    }

    fn takes_whole(&mut self, _: u32, _: usize) -> bool {
        false
    }

    fn has_tail(&self, to: u32) -> bool {
        let at = (to as usize).checked_sub(self.first as usize);
        at.and_then(|at| self.held.get(at)).is_some_and(|held| !held.is_empty())
    }

    fn has_ended(&self, _: u32) -> bool {
        false
    }

    fn arm(&mut self) -> bool {
        self.wanted.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_device::loopback::Loopback;

    /// Kinds, and lengths of inline and bulk payload.
    #[derive(Default)]
    struct Seen(Vec<(Kind, usize, usize)>);

    impl Sink for Seen {
        fn handle_packet(&mut self, packet: weft_device::Packet<'_>) -> Result<(), &'static str> {
            let bulk = packet.bulk.map_or(0, |bulk| bulk.len());
            self.0.push((packet.head.kind, packet.inline_bytes, bulk));
            Ok(())
        }

        fn handle_fault(&mut self, fault: weft_device::PeerFault) {
            panic!("{fault}");
        }
    }

    #[test]
    fn what_is_held_leaves_in_its_order_and_in_pieces_as_there_is_room() {
        let [mut out, mut there] = <[Loopback; 2]>::try_from(Loopback::network(2)).ok().expect("two");
        let mut filled = 0;
        while out.post_control(1, Head::control(Kind::Order), &[]) != Posted::Full {
            filled += 1;
        }
        let (mut seen, mut held) = (Seen::default(), HeldPackets::default());
        assert_eq!(held.keep(Head::control(Kind::Short), &[1; 9], None), Posted::Sent(0));
        assert_eq!(held.keep(Head::control(Kind::Eager), &[2; 8], Some(&[7; 10_000])), Posted::Sent(10_000));
        assert_eq!(held.keep(Head::control(Kind::Raw), &[], Some(&[8; 5_000])), Posted::Sent(5_000));
        assert!(!held.flush(&mut out, 1), "there is no room");
        there.poll(&mut seen);
        // Three are left room for.
        (3..filled).for_each(|_| _ = out.post_control(1, Head::control(Kind::Order), &[]));
        assert!(held.flush(&mut out, 1) && !held.is_empty());
        there.poll(&mut seen);
        assert!(held.flush(&mut out, 1) && held.is_empty());
        there.poll(&mut seen);
        let (more, raw) = (Kind::More, Kind::Raw);
        let wanted = [
            (Kind::Short, 9, 0),
            (Kind::Eager, 8, 4096),
            (more, 0, 4096),
            (more, 0, 1808),
            (raw, 0, 4096),
            (raw, 0, 904),
        ];
        assert_eq!(seen.0.iter().filter(|seen| seen.0 != Kind::Order).copied().collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn no_more_is_held_than_the_limit() {
        let mut held = HeldPackets::default();
        assert_eq!(held.keep(Head::control(Kind::Eager), &[0; 8], Some(&[1; 100_000])), Posted::Sent(LARGEST_PACKET));
        while held.keep(Head::control(Kind::Short), &[], None) != Posted::Full {}
        assert!(held.bytes <= LIMIT_BYTES && held.bytes > LIMIT_BYTES - PACKET_BYTES);
    }
}
