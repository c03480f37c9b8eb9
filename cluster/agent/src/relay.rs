//! One end of the link between launcher and agent: frames on one side, descriptors on the other.
//!
//! What a rank has as pipes and a socket to its agent, the launcher has once more as pipes and a socket to this relay.
//! So neither the launcher's poll loop nor the keeper sees that a host lies between; only the frames for them
//! ([`Relay::poll_frame`]) are told apart. Both ends run this same code.
//!
//! Memory is bounded: bytes of a stream are sent only against credit, which the other end gives when it has written
//! what came before; nothing is read from a stream while much waits to be sent.

use crate::sys;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use weft_cluster::frame::{self, Channel, Frame, Frames, PIECE_BYTES, RankStream, WINDOW_BYTES};

/// No stream is read while so much waits to be sent.
const SENDING_BYTES: usize = 512 << 10;
/// What the other end may send at the end of a job without credit: what its pipes held.
const LANE_MAX: usize = 8 << 20;
/// Credit is given back in pieces of this size at least.
const CREDIT_BYTES: usize = WINDOW_BYTES / 4;
const READ_BYTES: usize = 64 << 10;

/// The reason when the other end has just ended.
pub const ENDED: &str = "it has ended";

/// What a relay waits for on a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayPlace {
    Incoming,
    Outgoing,
    Lane(usize),
}

/// The descriptor of one stream here.
struct RelayLane {
    channel: Channel,
    /// It reads and writes: the end of one direction leaves the other open.
    two_way: bool,
    fd: Option<OwnedFd>,
    /// How many bytes may still be sent from here; `None` when nothing more is read.
    reading: Option<usize>,
    writing: Option<LaneWriting>,
}

/// What is to be written into a descriptor.
#[derive(Default)]
struct LaneWriting {
    queue: Vec<u8>,
    /// No more will come.
    ended: bool,
    /// Written, and not given back as credit yet.
    owed: usize,
}

/// One end of the link.
pub struct Relay {
    incoming: Option<OwnedFd>,
    outgoing: Option<OwnedFd>,
    frames: Frames,
    /// A frame that is not of a stream. What came after it is looked at when it has been taken.
    received: Option<Frame>,
    sending: Vec<u8>,
    lanes: Vec<RelayLane>,
    /// Why nothing more is heard from the other end.
    gone: Option<String>,
}

impl Relay {
    /// Both descriptors must not wait (`O_NONBLOCK`). `frames` may hold what was read already.
    pub fn new(incoming: OwnedFd, outgoing: OwnedFd, frames: Frames) -> Self {
        Self {
            incoming: Some(incoming),
            outgoing: Some(outgoing),
            frames,
            received: None,
            sending: Vec::new(),
            lanes: Vec::new(),
            gone: None,
        }
    }

    /// Reads `fd` for the other end.
    pub fn add_reader(&mut self, channel: Channel, fd: OwnedFd) {
        self.add(channel, fd, Some(WINDOW_BYTES), None);
    }

    /// Writes into `fd` what the other end reads.
    pub fn add_writer(&mut self, channel: Channel, fd: OwnedFd) {
        self.add(channel, fd, None, Some(LaneWriting::default()));
    }

    /// Both, for a socket.
    pub fn add_socket(&mut self, channel: Channel, fd: OwnedFd) {
        self.add(channel, fd, Some(WINDOW_BYTES), Some(LaneWriting::default()));
    }

    fn add(&mut self, channel: Channel, fd: OwnedFd, reading: Option<usize>, writing: Option<LaneWriting>) {
        let two_way = reading.is_some() && writing.is_some();
        self.lanes.push(RelayLane { channel, two_way, fd: Some(fd), reading, writing });
    }

    /// What is to be polled: descriptor, events, and what to hand to [`Relay::handle`].
    pub fn interest(&self) -> Vec<(RawFd, i16, RelayPlace)> {
        let mut wanted = Vec::new();
        if let Some(fd) = &self.incoming {
            wanted.push((fd.as_raw_fd(), libc::POLLIN, RelayPlace::Incoming));
        }
        if let Some(fd) = self.outgoing.as_ref().filter(|_| !self.sending.is_empty()) {
            wanted.push((fd.as_raw_fd(), libc::POLLOUT, RelayPlace::Outgoing));
        }
        for (at, lane) in self.lanes.iter().enumerate() {
            if let (Some(fd), Some(events)) = (&lane.fd, lane.events(self.sending.len() < SENDING_BYTES)) {
                wanted.push((fd.as_raw_fd(), events, RelayPlace::Lane(at)));
            }
        }
        wanted
    }

    /// Something has happened at that place. The streams may have been closed since it was asked for.
    pub fn handle(&mut self, place: RelayPlace, found: i16) {
        match place {
            RelayPlace::Incoming => self.read_frames(),
            RelayPlace::Outgoing => self.flush(),
            RelayPlace::Lane(at) => {
                if found & libc::POLLOUT != 0 || found & (libc::POLLERR | libc::POLLNVAL) != 0 {
                    self.write_lane(at, found & (libc::POLLERR | libc::POLLNVAL) != 0);
                }
                if found & (libc::POLLIN | libc::POLLHUP | libc::POLLERR) != 0 {
                    self.read_lane(at, true);
                }
            }
        }
    }

    /// The next frame that is not of a stream. All bytes of streams that came before it have been passed on, and none
    /// of those that came after it: it may be what makes the streams.
    pub fn poll_frame(&mut self) -> Option<Frame> {
        self.take_frames();
        self.received.take()
    }

    /// Why the other end is not heard any more. What it said before has been taken with [`Relay::poll_frame`] then.
    pub fn gone(&self) -> Option<&str> {
        self.gone.as_deref()
    }

    /// Sends a frame, at once if there is room.
    pub fn send(&mut self, frame: &Frame) {
        if self.outgoing.is_some() {
            frame.encode(&mut self.sending);
            self.flush();
        }
    }

    /// Writes what an agent begins with.
    pub fn greet(&mut self) {
        self.sending.extend(frame::greeting());
        self.flush();
    }

    /// Whether everything that was to be sent has gone out, or never will.
    pub fn has_sent_all(&self) -> bool {
        self.sending.is_empty() || self.outgoing.is_none()
    }

    /// Whether more should be sent that need not be.
    pub fn has_room(&self) -> bool {
        self.sending.len() < SENDING_BYTES
    }

    /// Sends what can be read from these streams now, without asking for credit.
    pub fn drain(&mut self, which: impl Fn(Channel) -> bool) {
        for at in 0..self.lanes.len() {
            while which(self.lanes[at].channel) && self.read_lane(at, false) {}
        }
    }

    /// What has come for a stream and found no room in its descriptor. It is asked for at the end, when the descriptor
    /// has been read.
    pub fn take_rest(&mut self, channel: Channel) -> Vec<u8> {
        let lane = self.lanes.iter_mut().find(|lane| lane.channel == channel);
        lane.and_then(|lane| lane.writing.as_mut())
            .map(|writing| std::mem::take(&mut writing.queue))
            .unwrap_or_default()
    }

    /// Nothing of the other end counts any more, for this reason.
    pub fn break_off(&mut self, reason: &str) {
        self.incoming = None;
        self.outgoing = None;
        self.sending.clear();
        self.frames = Frames::default();
        self.gone.get_or_insert(reason.to_owned());
    }

    /// Closes the streams of ranks. Their places stay, as they may have been asked for.
    pub fn close(&mut self) {
        self.lanes.iter_mut().filter(|lane| !lane.channel.stream.is_of_command()).for_each(RelayLane::shut);
    }

    /// Whether what launch commands at the other end have written has not all been passed on.
    pub fn carries(&self) -> bool {
        self.carried().next().is_some()
    }

    /// Whether anything may still come of launch commands at the other end. Where all has come, some of it may still
    /// wait for room here ([`Relay::carries`]).
    pub fn awaits_carried(&self) -> bool {
        self.carried().any(|writing| !writing.ended)
    }

    fn carried(&self) -> impl Iterator<Item = &LaneWriting> {
        let outputs = self.lanes.iter().filter(|lane| lane.channel.stream == RankStream::CommandOutput);
        outputs.filter_map(|lane| lane.writing.as_ref())
    }

    /// Nothing more comes of them: who reads it finds its end.
    pub fn end_carrying(&mut self) {
        self.lanes.iter_mut().filter(|lane| lane.channel.stream.is_of_command()).for_each(RelayLane::shut);
    }

    fn read_frames(&mut self) {
        // Not on the stack, of which a user may allow less.
        let mut bytes = vec![0; READ_BYTES];
        let Some(fd) = &self.incoming else { return };
        match sys::read(fd.as_raw_fd(), &mut bytes) {
            Ok(0) => {
                self.incoming = None;
                self.gone.get_or_insert(ENDED.to_owned());
            }
            Ok(count) => {
                self.frames.handle_bytes(&bytes[..count]);
                self.take_frames();
            }
            Err(error) if sys::is_temporary(&error) => {}
            Err(error) => self.break_off(&error.to_string()),
        }
    }

    /// Passes on what has come for streams, up to the next frame that is not of one.
    pub fn take_frames(&mut self) {
        while self.received.is_none() {
            match self.frames.poll_frame() {
                Ok(Some(frame)) => self.on_frame(frame),
                Ok(None) => return,
                Err(error) => return self.break_off(&format!("it sent what means nothing: {error}")),
            }
        }
    }

    fn on_frame(&mut self, frame: Frame) {
        let channel = match &frame {
            Frame::Data { channel, .. }
            | Frame::End { channel }
            | Frame::Stop { channel }
            | Frame::Credit { channel, .. } => *channel,
            _ => return self.received = Some(frame),
        };
        // A stream that is not there has been closed here, and the other end does not know it yet.
        let Some(at) = self.lanes.iter().position(|lane| lane.channel == channel) else { return };
        match frame {
            Frame::Data { bytes, .. } => self.on_data(at, &bytes),
            Frame::End { .. } => {
                if let Some(writing) = self.lanes[at].writing.as_mut() {
                    writing.ended = true;
                }
                self.write_lane(at, false);
            }
            Frame::Stop { .. } => self.lanes[at].stop_reading(),
            Frame::Credit { bytes, .. } => {
                if let Some(credit) = self.lanes[at].reading.as_mut() {
                    *credit = (*credit + bytes as usize).min(WINDOW_BYTES);
                }
            }
            _ => {}
        }
    }

    fn on_data(&mut self, at: usize, bytes: &[u8]) {
        let Some(writing) = self.lanes[at].writing.as_mut() else { return };
        if writing.queue.len() + bytes.len() > LANE_MAX {
            return self.break_off("it sent more than it was let");
        }
        writing.queue.extend_from_slice(bytes);
        self.write_lane(at, false);
    }

    /// Writes what waits for the descriptor; `broken`: nobody will read it.
    fn write_lane(&mut self, at: usize, broken: bool) {
        let Some(lane) = self.lanes.get_mut(at) else { return };
        let (Some(fd), Some(writing)) = (&lane.fd, lane.writing.as_mut()) else { return };
        let mut broken = broken;
        while !writing.queue.is_empty() && !broken {
            match sys::write(fd.as_raw_fd(), &writing.queue) {
                Ok(count) => {
                    writing.queue.drain(..count);
                    writing.owed += count;
                }
                Err(error) if sys::is_temporary(&error) => break,
                Err(_) => broken = true,
            }
        }
        let channel = lane.channel;
        if broken {
            lane.stop_writing();
            return self.send(&Frame::Stop { channel });
        }
        let owed = if writing.owed >= CREDIT_BYTES { std::mem::take(&mut writing.owed) } else { 0 };
        if writing.ended && writing.queue.is_empty() {
            lane.stop_writing();
        } else if owed > 0 {
            self.send(&Frame::Credit { channel, bytes: owed as u32 });
        }
    }

    /// Reads a piece and sends it; answers whether there may be more. Without `by_credit`, whatever the credit is, and
    /// nothing to read is taken for the end.
    fn read_lane(&mut self, at: usize, by_credit: bool) -> bool {
        let Some(lane) = self.lanes.get_mut(at) else { return false };
        let (Some(fd), Some(credit)) = (&lane.fd, lane.reading) else { return false };
        let most = if by_credit { credit.min(PIECE_BYTES) } else { PIECE_BYTES };
        if most == 0 {
            return false;
        }
        let channel = lane.channel;
        let mut bytes = vec![0; most];
        match sys::read(fd.as_raw_fd(), &mut bytes) {
            Ok(count @ 1..) => {
                lane.reading = Some(credit.saturating_sub(count));
                self.send(&Frame::Data { channel, bytes: bytes[..count].to_vec() });
                true
            }
            Err(error) if sys::is_temporary(&error) => false,
            Ok(0) | Err(_) => {
                lane.stop_reading();
                self.send(&Frame::End { channel });
                false
            }
        }
    }

    fn flush(&mut self) {
        let mut sent = 0;
        while let Some(fd) = self.outgoing.as_ref().filter(|_| sent < self.sending.len()) {
            match sys::write(fd.as_raw_fd(), &self.sending[sent..]) {
                Ok(count) => sent += count,
                Err(error) if sys::is_temporary(&error) => break,
                // What it said last may still be on its way here, so we go on reading.
                Err(_) => self.outgoing = None,
            }
        }
        self.sending.drain(..sent);
    }
}

impl RelayLane {
    fn events(&self, may_send: bool) -> Option<i16> {
        let read = may_send && self.reading.is_some_and(|credit| credit > 0);
        let write = self.writing.as_ref().is_some_and(|writing| !writing.queue.is_empty());
        let events = if read { libc::POLLIN } else { 0 } | if write { libc::POLLOUT } else { 0 };
        // Of a pipe that we write into, the end of its reader shows without being asked for.
        let watch = self.writing.is_some() && !self.two_way;
        (events != 0 || watch).then_some(events)
    }

    fn shut(&mut self) {
        (self.fd, self.reading, self.writing) = (None, None, None);
    }

    fn stop_reading(&mut self) {
        self.reading = None;
        if !self.two_way || self.writing.is_none() {
            self.fd = None;
        }
    }

    fn stop_writing(&mut self) {
        self.writing = None;
        match (&self.fd, self.reading) {
            (Some(fd), Some(_)) => sys::end_writing(fd.as_raw_fd()),
            _ => self.fd = None,
        }
    }
}

/// The stream of a rank's output: 0 for standard output, 1 for standard error.
pub fn output_stream(sink: usize) -> RankStream {
    if sink == 0 { RankStream::Output } else { RankStream::Error }
}

#[cfg(test)]
mod tests;
