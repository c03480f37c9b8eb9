//! A datagram that leaves: what goes into it, and how it is written.

use super::outgoing::StreamPiece;
use super::sent::SentEntry;
use super::{Link, Phase, Seal};
use weft_wire::link::header::{AT_ONCE, BYTES, DONE, Header, MOST_WORDS, WANTS_ACK};

/// What the next datagram is for.
enum DatagramPlan {
    /// Bytes of the stream, for the first time or again.
    Data(StreamPiece, bool),
    /// To be answered; carries the piece if there is one.
    Question(Option<StreamPiece>),
    /// Padding up to this size, to see whether it passes.
    Try(usize),
    /// What has arrived, and nothing else.
    Acknowledge,
}

impl<S: Seal> Link<S> {
    /// Whether [`Self::poll_transmit`] may have something to write now. Where this says no it has nothing, and this is
    /// cheaper to ask.
    #[inline]
    pub fn may_transmit(&mut self, now_ns: u64) -> bool {
        self.life.is_alive()
            && (self.questions > 0
                || self.outgoing.has_piece()
                || self.received.due(now_ns)
                || self.life.phase == Phase::Closing
                || self.life.has_done_to_say()
                || self.sent.in_flight_bytes() > 0 && self.path.wanted(now_ns).is_some())
    }

    /// Writes the next datagram that is to be sent now into `buffer`, which has room for [`super::Sizes::largest`]
    /// bytes, and answers its length; `None` when there is none. What was written counts as sent: a caller that cannot
    /// send it after all may drop it, as the network may.
    #[inline]
    pub fn poll_transmit(&mut self, now_ns: u64, buffer: &mut [u8]) -> Option<usize> {
        if !self.life.is_alive() {
            return None;
        }
        if let Some(entry) = self.sent.poll_crowded_out() {
            self.handle_lost(now_ns, &entry);
        }
        if self.life.phase == Phase::Closing {
            // Without room now, there will be some when something has been acknowledged.
            self.outgoing.try_end();
        }
        let (mut header, mut words) = (Header::default(), [0; MOST_WORDS]);
        let plan = self.plan(now_ns, buffer.len())?;
        self.received.acknowledge(now_ns, &mut header, &mut words);
        Some(self.write(now_ns, &plan, header, &words, buffer))
    }

    /// Bytes of payload that a datagram takes beside the acknowledgements.
    #[inline]
    fn payload_room(&self, buffer_bytes: usize) -> usize {
        let words = self.received.words();
        self.path.size().min(buffer_bytes).saturating_sub(self.overhead_bytes() + 8 * words)
    }

    #[inline]
    fn plan(&mut self, now_ns: u64, buffer_bytes: usize) -> Option<DatagramPlan> {
        let room = self.payload_room(buffer_bytes);
        if room == 0 {
            return None;
        }
        if self.questions > 0 {
            self.questions -= 1;
            return Some(self.plan_question(room));
        }
        if let Some(piece) = self.plan_data(now_ns, room) {
            return Some(piece);
        }
        let trying = self.path.wanted(now_ns).filter(|size| *size <= buffer_bytes && self.sent.in_flight_bytes() > 0);
        if let Some(size) = trying {
            return Some(DatagramPlan::Try(size));
        }
        (self.received.due(now_ns) || self.life.has_done_to_say()).then_some(DatagramPlan::Acknowledge)
    }

    /// The oldest bytes that have not arrived say most; the window does not count.
    fn plan_question(&mut self, room: usize) -> DatagramPlan {
        self.counters.questions += 1;
        DatagramPlan::Question(self.outgoing.oldest(room))
    }

    #[inline]
    fn plan_data(&mut self, now_ns: u64, room: usize) -> Option<DatagramPlan> {
        self.paced = false;
        if !self.outgoing.has_piece() {
            return None;
        }
        if self.window_is_full() || self.sent.is_full() {
            self.congestion.handle_limited();
            return None;
        }
        if !self.pacer.may_send(now_ns) {
            self.congestion.handle_limited();
            self.paced = true;
            return None;
        }
        if let Some(piece) = self.outgoing.take_lost(room) {
            return Some(DatagramPlan::Data(piece, true));
        }
        let in_flight = self.sent.in_flight_bytes() > 0;
        self.outgoing.take_new(room, in_flight).map(|piece| DatagramPlan::Data(piece, false))
    }

    /// What carries no payload does not count. Else the one try of a larger datagram would fill the least window, to
    /// which a peer that computes brings us: what is short would wait until it answers, and if we compute meanwhile
    /// until after that.
    #[inline]
    fn window_is_full(&self) -> bool {
        let carrying = self.sent.carrying_bytes();
        carrying > 0 && carrying + self.path.size() as u64 > self.congestion.window()
    }

    #[inline]
    fn write(
        &mut self,
        now_ns: u64,
        plan: &DatagramPlan,
        mut header: Header,
        words: &[u64],
        buffer: &mut [u8],
    ) -> usize {
        let nothing = StreamPiece { start: self.outgoing.next_position(), length: 0 };
        let (piece, flags) = match plan {
            DatagramPlan::Data(piece, _) => (*piece, WANTS_ACK),
            DatagramPlan::Question(piece) => (piece.unwrap_or(nothing), WANTS_ACK | AT_ONCE),
            DatagramPlan::Try(_) => (nothing, WANTS_ACK | AT_ONCE),
            DatagramPlan::Acknowledge => (nothing, 0),
        };
        let payload_at = header.payload_at();
        let seal_bytes = self.seal.bytes();
        let least = payload_at + piece.length + seal_bytes;
        let length = if let DatagramPlan::Try(size) = plan { least.max(*size) } else { least };
        let buffer = &mut buffer[..length];

        header.floor = self.sent.floor();
        let number = self.note_sent(now_ns, plan, piece, length);
        header.flags = flags | self.more_flags();
        (header.to, header.from) = (self.config.remote, self.config.local);
        header.number = number as u32;
        header.position = piece.start as u32;
        header.received = self.incoming.received();
        header.credit = self.incoming.promise();
        header.payload_bytes = piece.length as u16;

        let sealed = &mut buffer[..length - seal_bytes];
        sealed[..BYTES].copy_from_slice(&header.pack());
        for (at, word) in words[..header.words as usize].iter().enumerate() {
            sealed[BYTES + 8 * at..BYTES + 8 * at + 8].copy_from_slice(&word.to_le_bytes());
        }
        let [first, second] = self.outgoing.bytes(piece);
        sealed[payload_at..payload_at + first.len()].copy_from_slice(first);
        sealed[payload_at + first.len()..payload_at + piece.length].copy_from_slice(second);
        sealed[payload_at + piece.length..].fill(0);
        self.seal.seal(number, buffer, payload_at);
        length
    }

    /// Notes what leaves, and gives it its number.
    #[inline]
    fn note_sent(&mut self, now_ns: u64, plan: &DatagramPlan, piece: StreamPiece, length: usize) -> u64 {
        self.counters.datagrams_sent += 1;
        self.counters.bytes_sent += length as u64;
        if let DatagramPlan::Acknowledge = plan {
            self.counters.acks_sent += 1;
            return self.sent.skip();
        }
        let again = matches!(plan, DatagramPlan::Question(_) | DatagramPlan::Data(_, true));
        self.counters.bytes_sent_again += if again { piece.length as u64 } else { 0 };
        self.asked_ns = now_ns;
        self.pacer.handle_sent(length);
        let entry =
            SentEntry { sent_ns: now_ns, start: piece.start, length: piece.length as u32, bytes: length as u32 };
        let number = self.sent.record(entry);
        if let DatagramPlan::Try(_) = plan {
            self.path.handle_tried();
        }
        number
    }

    /// Who can send no more until it hears something says so; who is finished says that.
    #[inline]
    fn more_flags(&mut self) -> u8 {
        let mut flags = if self.window_is_full() { AT_ONCE } else { 0 };
        if self.life.is_finished() {
            self.life.handle_done_said();
            flags |= DONE;
        }
        flags
    }
}
