//! The memory of the `xdp` lanes of one host: frames that the kernel fills and empties, and what their sharers say to
//! each other about them. The privileged party writes the header once; the lanes of all ranks map the whole.
//!
//! A page with the header; one word for each frame that is sent from; then the frames, those for what arrives first.
//! `docs/wire/xdp.md` shows it byte by byte.

/// What the memory begins with.
pub const MAGIC: u64 = u64::from_le_bytes(*b"weft-xdp");
/// Changes with every change of what follows.
pub const VERSION: u32 = 5;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 44;
/// Where the words about frames that are sent from begin.
pub const STATES_AT: usize = 4096;
/// Frames begin on a page, and no machine has larger ones than this.
const PAGE_BYTES: usize = 65536;
/// What the kernel keeps free before a packet that has arrived.
pub const KERNEL_HEADROOM: u32 = 256;
/// Frames that a lane may hold beside those in its ring.
pub const HELD_FRAMES: u32 = 64;
/// Frames that are with the kernel however many lanes have stopped looking.
const SPARE_FRAMES: u32 = 256;
/// Before the packet in a frame that is sent from, in turns: which of two uses of a frame an address means.
pub const TURN_BYTES: u32 = 64;
/// In the word of a frame that is sent from: the packet that begins there is through.
pub const THROUGH: u64 = 1;
/// Lanes of one host.
pub const MOST_LANES: u32 = 512;

/// Entries of a ring, at least.
pub const LEAST_ENTRIES: u32 = 64;

/// Numbers from which everything else follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneLayout {
    /// One for each rank of the job on this host.
    pub lanes: u32,
    /// Bytes of a frame: 2048 or 4096.
    pub frame_bytes: u32,
    /// Packets that wait for one lane. A power of two.
    pub receive_entries: u32,
    /// Packets of one lane on their way out. A power of two.
    pub send_frames: u32,
    /// Bytes of the largest packet of the interface, without its Ethernet header.
    pub mtu: u32,
    /// The interface's number in its network namespace, and the queue that the lanes share.
    pub interface: u32,
    pub queue: u32,
    /// What lanes send by is a tap device, in the place of an AF_XDP socket.
    pub sends_by_tap: bool,
}

/// Why bytes are no such header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    #[error("the memory of the xdp lanes does not begin as such")]
    NoLanes,
    #[error("the memory of the xdp lanes has version {found}, and this library reads version {VERSION}")]
    Version { found: u32 },
    #[error("the memory of the xdp lanes has {what} = {value}, which cannot be")]
    Value { what: &'static str, value: u32 },
}

impl LaneLayout {
    /// For so many lanes on an interface; none where there are too many. Fewer lanes have longer rings.
    pub fn new(lanes: u32, mtu: u32, interface: u32) -> Option<Self> {
        if !(1..=MOST_LANES).contains(&lanes) {
            return None;
        }
        let share = (8192 / lanes).clamp(256, 2048);
        let receive_entries = 1 << share.ilog2();
        let frame_bytes = if mtu + ETHERNET_BYTES + KERNEL_HEADROOM <= 2048 { 2048 } else { 4096 };
        let send_frames = (receive_entries / 4).max(128);
        Some(Self { lanes, frame_bytes, receive_entries, send_frames, mtu, interface, ..Self::default() })
    }

    /// The largest packet that a frame takes, with its Ethernet header.
    pub fn largest_packet(&self) -> u32 {
        self.mtu.saturating_add(ETHERNET_BYTES).min(self.frame_bytes - KERNEL_HEADROOM)
    }

    /// The largest packet that a lane sends.
    pub fn largest_sent(&self) -> u32 {
        self.largest_packet().min(self.frame_bytes - TURN_BYTES)
    }

    /// Frames for what arrives. A lane that has ended, or computes, keeps those in its ring and those that it holds. So
    /// there are as many as all lanes can keep, and some: whatever becomes of a lane, the others receive.
    pub fn receive_frames(&self) -> u32 {
        self.lanes * (self.receive_entries + HELD_FRAMES) + SPARE_FRAMES
    }

    /// Entries of the shared ring that brings frames to the kernel: all fit.
    pub fn fill_entries(&self) -> u32 {
        self.receive_frames().next_power_of_two()
    }

    /// Entries of the shared ring that brings frames back: all fit, whether anybody looks or not.
    pub fn completion_entries(&self) -> u32 {
        (self.lanes * self.send_frames).next_power_of_two()
    }

    /// Where the frames begin.
    pub fn frames_at(&self) -> usize {
        (STATES_AT + (self.lanes * self.send_frames) as usize * 8).next_multiple_of(PAGE_BYTES)
    }

    /// Bytes of all frames.
    pub fn frames_bytes(&self) -> usize {
        (self.receive_frames() + self.lanes * self.send_frames) as usize * self.frame_bytes as usize
    }

    /// Bytes of the whole.
    pub fn bytes(&self) -> usize {
        self.frames_at() + self.frames_bytes()
    }

    /// The number of the first frame that a lane sends from, and of its word.
    pub fn first_sent(&self, lane: u32) -> (u32, u32) {
        (self.receive_frames() + lane * self.send_frames, lane * self.send_frames)
    }

    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
        for (at, word) in bytes[8..].chunks_exact_mut(4).zip(self.words()) {
            at.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn words(&self) -> [u32; 9] {
        let numbers = [self.lanes, self.frame_bytes, self.receive_entries, self.send_frames, self.mtu, self.interface];
        let [lanes, frame_bytes, receive_entries, send_frames, mtu, interface] = numbers;
        [
            VERSION,
            lanes,
            frame_bytes,
            receive_entries,
            send_frames,
            mtu,
            interface,
            self.queue,
            self.sends_by_tap.into(),
        ]
    }

    /// # Errors
    /// These bytes are no header, or its numbers cannot be.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, LayoutError> {
        if bytes[..8] != MAGIC.to_le_bytes() {
            return Err(LayoutError::NoLanes);
        }
        let mut words = [0; 9];
        for (word, at) in words.iter_mut().zip(bytes[8..].chunks_exact(4)) {
            *word = u32::from_le_bytes([at[0], at[1], at[2], at[3]]);
        }
        let [version, lanes, frame_bytes, receive_entries, send_frames, mtu, interface, queue, tap] = words;
        if version != VERSION {
            return Err(LayoutError::Version { found: version });
        }
        let is_ring = |entries: u32| entries.is_power_of_two() && (LEAST_ENTRIES..=65536).contains(&entries);
        let rules = [
            ("lanes", lanes, (1..=MOST_LANES).contains(&lanes)),
            ("frame bytes", frame_bytes, matches!(frame_bytes, 2048 | 4096)),
            ("receive entries", receive_entries, is_ring(receive_entries)),
            ("send frames", send_frames, is_ring(send_frames)),
            ("mtu", mtu, (68..=65536).contains(&mtu)),
            ("sending by tap", tap, tap <= 1),
        ];
        match rules.iter().find(|(.., holds)| !holds) {
            Some(&(what, value, _)) => Err(LayoutError::Value { what, value }),
            None => {
                let sends_by_tap = tap == 1;
                Ok(Self { lanes, frame_bytes, receive_entries, send_frames, mtu, interface, queue, sends_by_tap })
            }
        }
    }
}

/// Bytes of an Ethernet header without tags.
pub const ETHERNET_BYTES: u32 = 14;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_these_bytes() {
        let layout = LaneLayout { sends_by_tap: true, ..LaneLayout::new(4, 1500, 7).expect("four lanes") };
        let mut golden = b"weft-xdp".to_vec();
        golden.extend([
            5, 0, 0, 0, 4, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 2, 0, 0, 0xdc, 5, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0,
            0,
        ]);
        assert_eq!(layout.encode().as_slice(), golden);
        assert_eq!(LaneLayout::decode(&layout.encode()), Ok(layout));
    }

    #[test]
    fn nonsense_is_no_header() {
        let good = LaneLayout::new(2, 1500, 1).expect("two lanes").encode();
        assert_eq!(LaneLayout::decode(&[0; HEADER_BYTES]), Err(LayoutError::NoLanes));
        for (at, value) in [(8, 1), (12, 0), (13, 9), (17, 3), (20, 3), (24, 1), (28, 1), (31, 1), (40, 2), (43, 1)] {
            let mut bytes = good;
            bytes[at] = value;
            if at == 28 {
                bytes[29] = 0;
            }
            assert!(LaneLayout::decode(&bytes).is_err(), "byte {at} = {value}");
        }
    }

    #[test]
    fn every_count_of_lanes_has_room_for_all_that_they_can_hold() {
        for lanes in 1..=MOST_LANES {
            for mtu in [576, 1500, 1778, 1779, 3500, 9000] {
                let layout = LaneLayout::new(lanes, mtu, 1).expect("so many");
                let kept = lanes * (layout.receive_entries + HELD_FRAMES);
                assert!(layout.receive_frames() > kept, "{lanes} lanes");
                assert!(layout.fill_entries() >= layout.receive_frames());
                assert!(layout.completion_entries() >= lanes * layout.send_frames);
                assert!(layout.largest_packet() + KERNEL_HEADROOM <= layout.frame_bytes);
                assert_eq!(layout.frames_at() % PAGE_BYTES, 0);
                assert_eq!(
                    layout.first_sent(lanes - 1).0 + layout.send_frames,
                    layout.frames_bytes() as u32 / layout.frame_bytes
                );
                assert_eq!(LaneLayout::decode(&layout.encode()), Ok(layout));
            }
        }
        assert_eq!((LaneLayout::new(0, 1500, 1), LaneLayout::new(MOST_LANES + 1, 1500, 1)), (None, None));
    }
}
