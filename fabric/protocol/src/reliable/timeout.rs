//! What happens because time goes by. All deadlines stand in [`Link::deadlines`]; none is stored, so none can be stale.

use super::sent::SentEntry;
use super::{Link, Phase, Seal};

/// Without answer to so many questions, what was known of the path does not hold.
const SILENT_QUESTIONS: u32 = 2;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Timer {
    /// An acknowledgement has waited long enough for company.
    Acknowledge,
    /// A datagram that was overtaken counts as lost.
    Lose,
    /// Nothing is acknowledged: ask.
    Ask,
    /// The pacer allows the next datagram.
    Pace,
    /// A larger size of datagrams is to be tried.
    Try,
    /// The peer is silent: ask whether it is there.
    KeepAlive,
    /// The peer is dead.
    Silence,
    /// Both sides are finished: leave.
    Leave,
}

impl<S: Seal> Link<S> {
    fn deadlines(&self) -> [(Timer, u64); 8] {
        let config = &self.config;
        [
            (Timer::Acknowledge, self.received.due_ns()),
            (Timer::Lose, self.sent.lost_at_ns(self.rtt.lost_after_ns())),
            (Timer::Ask, self.ask_at_ns()),
            (Timer::Pace, if self.paced { self.pacer.ready_ns() } else { u64::MAX }),
            (Timer::Try, if self.sent.in_flight_bytes() > 0 { self.path.try_at_ns() } else { u64::MAX }),
            (Timer::KeepAlive, self.life.keep_alive_ns(config.keep_alive_ns)),
            (Timer::Silence, self.life.silence_ns(config.dead_after_ns)),
            (Timer::Leave, self.life.leave_ns(config.dead_after_ns, self.wait_ns(0))),
        ]
    }

    /// How long to wait for an answer.
    fn wait_ns(&self, doublings: u32) -> u64 {
        self.rtt.probe_after_ns(self.config.ack.delay_ns, doublings, self.config.probe_ns)
    }

    fn ask_at_ns(&self) -> u64 {
        if self.sent.in_flight_bytes() > 0 {
            return self.asked_ns + self.wait_ns(self.unanswered);
        }
        let waits = self.outgoing.wants_credit() || self.life.wants_parting();
        if waits { self.asked_ns + self.wait_ns(self.uncredited) } else { u64::MAX }
    }

    /// When [`Self::handle_timeout`] is next to be called; `None` if only a datagram or a packet can change anything.
    pub fn next_timeout(&self) -> Option<u64> {
        if !self.life.is_alive() {
            return None;
        }
        let first = self.deadlines().iter().fold(u64::MAX, |first, (_, at_ns)| first.min(*at_ns));
        (first != u64::MAX).then_some(first)
    }

    pub fn handle_timeout(&mut self, now_ns: u64) {
        if !self.life.is_alive() {
            return;
        }
        for (timer, at_ns) in self.deadlines() {
            if at_ns <= now_ns {
                self.on_timer(timer, now_ns);
            }
        }
    }

    fn on_timer(&mut self, timer: Timer, now_ns: u64) {
        match timer {
            // `poll_transmit` looks by itself.
            Timer::Acknowledge | Timer::Pace | Timer::Try => {}
            Timer::Lose => self.give_up_lost(now_ns),
            Timer::Ask => self.ask(now_ns),
            Timer::KeepAlive => {
                self.questions = self.questions.max(1);
                self.life.handle_question(now_ns);
            }
            Timer::Silence => {
                let all_but_said = self.incoming.ended() && self.outgoing.has_only_end_left();
                self.life.handle_silence(now_ns, all_but_said);
            }
            Timer::Leave => self.life.phase = Phase::Ended,
        }
    }

    fn ask(&mut self, now_ns: u64) {
        self.life.handle_question(now_ns);
        self.asked_ns = now_ns;
        self.questions = 1;
        if self.sent.in_flight_bytes() == 0 {
            self.uncredited += 1;
            return;
        }
        self.unanswered += 1;
        if self.unanswered >= SILENT_QUESTIONS {
            self.questions = 2;
            self.congestion.handle_silence();
            self.set_rate();
        }
        if self.path.handle_silence(now_ns, self.unanswered) {
            self.handle_black_hole();
        }
    }

    fn handle_black_hole(&mut self) {
        self.counters.black_holes += 1;
        self.handle_new_size();
    }

    /// Whatever counts as lost now is to be sent again.
    pub(super) fn give_up_lost(&mut self, now_ns: u64) {
        let after_ns = self.rtt.lost_after_ns();
        while let Some(entry) = self.sent.poll_lost(now_ns, after_ns) {
            self.handle_lost(now_ns, &entry);
        }
    }

    pub(super) fn handle_lost(&mut self, now_ns: u64, entry: &SentEntry) {
        self.counters.lost += 1;
        if entry.length == 0 {
            self.path.handle_try_lost(now_ns, entry.bytes as usize);
            return;
        }
        self.outgoing.handle_lost(entry.start, entry.length);
        self.congestion.handle_lost(u64::from(entry.bytes));
        let acked = self.outgoing.acked();
        let holds_first = (entry.start..entry.start + u64::from(entry.length)).contains(&acked);
        if holds_first && self.path.handle_first_lost(now_ns, acked, entry.bytes as usize) {
            self.handle_black_hole();
        }
    }
}
