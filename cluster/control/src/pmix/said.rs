//! What a PMIx server and the launcher say to each other: pieces with their length before them, little-endian. The
//! agent of another host passes them on unread.

use crate::frame::bytes::{Coded, FrameBytes, put_blob};
use crate::frame::{FRAME_MAX, FrameError};
use crate::said;

/// The longest piece: the agent of another host passes it on in a frame, which has its kind before it.
pub const PIECE_MAX: usize = FRAME_MAX - 1;

/// What is done by several ranks together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Together {
    Fence,
    Connect,
    Disconnect,
}

impl Together {
    const ALL: [Self; 3] = [Self::Fence, Self::Connect, Self::Disconnect];
}

said! {
    /// A server says it. A `call` is a number that the server has given to what it wants an answer to.
    pub enum PmixSaid {
        /// It serves; what the environment of each of its ranks is to have.
        1: Ready { environments: Vec<Vec<(String, String)>> },
        /// It cannot.
        2: Failed { reason: String },
        /// A rank has begun.
        3: Connected { rank: u32 },
        /// It has taken its leave.
        4: Finalised { rank: u32 },
        /// It asks for the end of the job.
        5: Aborted { rank: u32, code: i32, text: String },
        /// All of this host's among these ranks (none named: all) have come, and have given this; or, with another
        /// status than 0, all that are left of them.
        6: Gathered { call: u64, status: i32, what: Together, ranks: Vec<u32>, data: Vec<u8> },
        /// What this rank, of another host, has put is wanted.
        7: Wanted { call: u64, rank: u32 },
        /// The answer to [`PmixTold::Wanted`].
        8: Found { ask: u64, status: i32, data: Vec<u8> },
        /// A value under a name for whoever asks by it, in the library's own form.
        9: Published { call: u64, key: String, value: Vec<u8> },
        /// It is taken back.
        10: Unpublished { call: u64, key: String },
        /// What is published under this name is wanted.
        11: LookedUp { call: u64, key: String },
        /// A rank wants what is not served.
        12: Refused { rank: u32, text: String },
    }
}

said! {
    /// The launcher says it to a server.
    pub enum PmixTold {
        /// The answer to a call.
        33: Done { call: u64, status: i32, data: Vec<u8> },
        /// What has this rank of your host put?
        34: Wanted { ask: u64, rank: u32 },
    }
}

impl Coded for Together {
    fn put(&self, to: &mut Vec<u8>) {
        to.push(*self as u8);
    }

    fn take(from: &mut FrameBytes) -> Result<Self, FrameError> {
        Self::ALL.get(usize::from(from.byte()?)).copied().ok_or_else(|| from.wrong())
    }
}

/// A piece with its length before it.
pub fn framed(piece: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(piece.len() + 4);
    put_blob(&mut bytes, piece);
    bytes
}

macro_rules! encodes {
    ($($name:ident)*) => { $(
        impl $name {
            pub fn encode(&self) -> Vec<u8> {
                let mut to = vec![self.kind()];
                self.put(&mut to);
                to
            }
        }
    )* };
}

encodes! { PmixSaid PmixTold }

/// Cuts what was read into pieces.
#[derive(Debug, Default)]
pub struct PmixPieces {
    buffer: Vec<u8>,
    taken: usize,
}

impl PmixPieces {
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole piece.
    ///
    /// # Errors
    /// It is longer than any that is sent; nothing more of these bytes means anything.
    pub fn poll_piece(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        let Some((length, rest)) = self.buffer[self.taken..].split_first_chunk() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > PIECE_MAX {
            return Err(FrameError::Length(length));
        }
        let piece = rest.get(..length).map(<[u8]>::to_vec);
        self.taken += piece.as_ref().map_or(0, |piece| 4 + piece.len());
        Ok(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{GIVEN_MAX, SUCCESS, TOO_MUCH, bounded};
    use super::*;
    use crate::frame::{Frame, Frames};
    use proptest::prelude::*;

    fn each() -> Vec<PmixSaid> {
        let (call, rank, data) = (7, 3, vec![1, 0, 255]);
        let (key, text) = ("k".to_owned(), "why".to_owned());
        vec![
            PmixSaid::Ready { environments: vec![vec![("A".into(), "b".into())], vec![]] },
            PmixSaid::Failed { reason: text.clone() },
            PmixSaid::Connected { rank },
            PmixSaid::Finalised { rank },
            PmixSaid::Aborted { rank, code: -4, text: text.clone() },
            PmixSaid::Gathered { call, status: -3, what: Together::Connect, ranks: vec![0, 2], data: data.clone() },
            PmixSaid::Wanted { call, rank },
            PmixSaid::Found { ask: 9, status: -46, data: data.clone() },
            PmixSaid::Published { call, key: key.clone(), value: data },
            PmixSaid::Unpublished { call, key: key.clone() },
            PmixSaid::LookedUp { call, key },
            PmixSaid::Refused { rank, text },
        ]
    }

    #[test]
    fn what_is_said_comes_out_as_it_went_in() {
        for said in each() {
            assert_eq!(PmixSaid::decode(&said.encode()), Ok(said));
        }
        for told in [PmixTold::Done { call: 1, status: -1, data: vec![5] }, PmixTold::Wanted { ask: 2, rank: 1 }] {
            assert_eq!(PmixTold::decode(&told.encode()), Ok(told));
        }
    }

    #[test]
    fn pieces_are_cut_wherever_they_were_read() {
        let bytes: Vec<u8> = each().iter().flat_map(|said| framed(&said.encode())).collect();
        let mut pieces = PmixPieces::default();
        let mut found = Vec::new();
        for part in bytes.chunks(3) {
            pieces.handle_bytes(part);
            while let Some(piece) = pieces.poll_piece().expect("short ones") {
                found.push(PmixSaid::decode(&piece).expect("whole"));
            }
        }
        assert_eq!(found, each());
        pieces.handle_bytes(&[255; 8]);
        assert!(pieces.poll_piece().is_err());
    }

    #[test]
    fn the_longest_piece_fits_into_a_frame_and_a_longer_one_is_none() {
        let mut pieces = PmixPieces::default();
        let mut piece = vec![7; PIECE_MAX];
        pieces.handle_bytes(&framed(&piece));
        assert!(pieces.poll_piece() == Ok(Some(piece.clone())));
        let (mut frames, mut bytes) = (Frames::default(), Vec::new());
        Frame::Pmix(piece.clone()).encode(&mut bytes);
        frames.handle_bytes(&bytes);
        assert!(frames.poll_frame() == Ok(Some(Frame::Pmix(piece.clone()))));
        piece.push(7);
        pieces.handle_bytes(&framed(&piece));
        assert!(pieces.poll_piece() == Err(FrameError::Length(PIECE_MAX + 1)));
    }

    #[test]
    fn what_may_be_given_fits_into_a_piece_and_more_is_too_much() {
        let ranks: Vec<u32> = (0..1000).collect();
        let (status, data) = bounded(SUCCESS, vec![0; GIVEN_MAX - 4000], ranks.len());
        assert_eq!(status, SUCCESS);
        let gathered = PmixSaid::Gathered { call: 1, status, what: Together::Fence, ranks, data };
        assert!(gathered.encode().len() <= PIECE_MAX);
        assert!(bounded(SUCCESS, vec![0; GIVEN_MAX - 3999], 1000) == (TOO_MUCH, Vec::new()));
        let done = PmixTold::Done { call: 1, status, data: vec![0; GIVEN_MAX] };
        assert!(done.encode().len() <= PIECE_MAX);
    }

    proptest! {
        #[test]
        fn whatever_comes_is_an_answer(piece in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = (PmixSaid::decode(&piece), PmixTold::decode(&piece));
        }
    }
}
