//! Whether the other side is there, and how the two part.
//!
//! Each side ends its stream with a record that is acknowledged like any other. A side is *finished* when it has the
//! other's end and the other has its. It says so in every datagram from then on (the flag *done*), and stays to
//! acknowledge what the other may still repeat. When it hears that the other is finished, too, it stays a little, in
//! case its own word was lost, and leaves. The other's word may be lost as well: then it asks for it, and leaves at the
//! latest when a peer would count as dead. Nothing is lost by that, since both streams are through.

/// Questions without answer before silence counts.
const LEAST_QUESTIONS: u32 = 3;
/// Who has heard that the other side is finished stays for so many waits of a question.
const STAY_WAITS: u64 = 4;

/// Why a link is of no use any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Gone {
    #[error("no answer for {} ms", silent_ns / 1_000_000)]
    Silent { silent_ns: u64 },
    #[error("it sent {what}")]
    Nonsense { what: &'static str },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Packets go both ways.
    Open,
    /// This side accepts no more; what it has accepted is still sent, and packets still arrive.
    Closing,
    /// Both sides have everything. The link can be forgotten.
    Ended,
    /// The peer is dead, or has broken the rules. What was not acknowledged may not have arrived.
    Gone(Gone),
}

pub struct Life {
    pub phase: Phase,
    heard_ns: u64,
    /// When a silent peer was last asked.
    asked_ns: u64,
    questions: u32,
    finished_ns: Option<u64>,
    /// When the other side was first heard to be finished, or has spoken since.
    parted_ns: Option<u64>,
    /// Our *done* is still to be said.
    say_done: bool,
}

impl Life {
    pub fn new(now_ns: u64) -> Self {
        Self {
            phase: Phase::Open,
            heard_ns: now_ns,
            asked_ns: now_ns,
            questions: 0,
            finished_ns: None,
            parted_ns: None,
            say_done: false,
        }
    }

    /// Whether datagrams are sent and taken.
    #[inline]
    pub fn is_alive(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Closing)
    }

    pub fn is_finished(&self) -> bool {
        self.finished_ns.is_some()
    }

    /// Whether we want to hear that the other side is finished.
    pub fn wants_parting(&self) -> bool {
        self.finished_ns.is_some() && self.parted_ns.is_none()
    }

    /// A datagram of the peer's has arrived.
    #[inline]
    pub fn handle_heard(&mut self, now_ns: u64, done: bool) {
        (self.heard_ns, self.questions) = (self.heard_ns.max(now_ns), 0);
        if done || self.parted_ns.is_some() {
            self.say_done |= self.parted_ns.is_none();
            self.parted_ns = Some(now_ns);
        }
    }

    /// Both streams are through.
    pub fn handle_finished(&mut self, now_ns: u64) {
        if self.finished_ns.is_none() {
            self.finished_ns = Some(now_ns);
            self.say_done = true;
        }
    }

    /// Whether a datagram is to be sent only to say that we are finished.
    #[inline]
    pub fn has_done_to_say(&self) -> bool {
        self.say_done && self.finished_ns.is_some()
    }

    pub fn handle_done_said(&mut self) {
        self.say_done = false;
    }

    /// The peer has been asked.
    pub fn handle_question(&mut self, now_ns: u64) {
        self.questions += 1;
        self.asked_ns = now_ns;
    }

    /// When to ask a peer that has been silent. Who is finished asks by itself.
    #[inline]
    pub fn keep_alive_ns(&self, every_ns: u64) -> u64 {
        if self.is_finished() { u64::MAX } else { self.heard_ns.max(self.asked_ns).saturating_add(every_ns) }
    }

    /// When silence will count as death. Somebody who has not asked has heard nothing because of himself.
    #[inline]
    pub fn silence_ns(&self, dead_after_ns: u64) -> u64 {
        if self.questions < LEAST_QUESTIONS || self.is_finished() {
            return u64::MAX;
        }
        self.heard_ns.saturating_add(dead_after_ns)
    }

    /// When to leave, once finished.
    #[inline]
    pub fn leave_ns(&self, dead_after_ns: u64, wait_ns: u64) -> u64 {
        match (self.finished_ns, self.parted_ns) {
            (Some(_), Some(parted_ns)) => parted_ns.saturating_add(STAY_WAITS * wait_ns),
            (Some(finished_ns), None) => finished_ns.max(self.heard_ns).saturating_add(dead_after_ns),
            (None, _) => u64::MAX,
        }
    }

    /// The peer is silent. If both streams are through but for the acknowledgement of our end, it has left in order.
    pub fn handle_silence(&mut self, now_ns: u64, all_but_said: bool) {
        let silent_ns = now_ns.saturating_sub(self.heard_ns);
        self.phase = if all_but_said { Phase::Ended } else { Phase::Gone(Gone::Silent { silent_ns }) };
    }
}
