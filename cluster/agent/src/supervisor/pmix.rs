//! PMIx: what the servers of the hosts say, and what they are told.

use super::*;
use weft_cluster::frame::Frame;
use weft_cluster::pmix::{GIVEN_MAX, PmixEvent};
use weft_wire::interface::InterfaceName;

impl Supervisor {
    /// The server of this host may have said something.
    pub(super) fn read_pmix(&mut self) {
        let Some(server) = self.managers.pmix_here.as_mut() else { return };
        server.flush();
        let pieces: Vec<_> = std::iter::from_fn(|| server.poll_piece()).collect();
        let is_gone = server.is_gone();
        pieces.iter().for_each(|piece| self.handle_pmix(0, piece));
        if is_gone && !self.is_over() {
            self.managers.pmix_here = None;
            self.break_down("the process with its PMIx server has ended");
        }
    }

    /// The server of the host that is watched there has said this.
    pub(super) fn handle_pmix(&mut self, watch: usize, piece: &[u8]) {
        if let Err(error) = self.managers.pmix.handle_piece(watch, piece) {
            return self.break_down(&format!("a PMIx server said what means nothing: {error}"));
        }
        self.handle_pmix_events();
    }

    pub(super) fn handle_pmix_events(&mut self) {
        while let Some(event) = self.managers.pmix.poll_event() {
            match event {
                PmixEvent::Tell { host, told } => self.tell_pmix(host, told.encode()),
                PmixEvent::Initialised { rank } => {
                    self.state.handle_interface(rank, InterfaceName::Mpi);
                    let decision = self.state.handle_initialised(rank);
                    self.obey(decision);
                }
                PmixEvent::Finalised { rank } => self.state.handle_finalised(rank),
                PmixEvent::Abort { rank, code, message } => {
                    let decision = self.state.handle_abort(rank, code, &message, None);
                    self.obey(decision);
                }
                PmixEvent::Refused { rank, text } => say(&self.front, format_args!("rank {rank}: {text}")),
                PmixEvent::TooMuch => say(
                    &self.front,
                    format_args!("a PMIx fence has failed: its ranks have put more than {GIVEN_MAX} bytes together"),
                ),
            }
        }
    }

    fn tell_pmix(&mut self, host: usize, piece: Vec<u8>) {
        match self.watches.get_mut(host).map(|watch| &mut watch.way) {
            Some(WatchWay::Far { relay, .. }) => relay.send(&Frame::Pmix(piece)),
            Some(WatchWay::Near { .. }) => {
                if let Some(server) = self.managers.pmix_here.as_mut() {
                    server.tell(&piece);
                }
            }
            None => {}
        }
    }
}
