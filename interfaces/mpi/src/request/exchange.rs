//! Two messages under way that complete together.

use super::{Ground, OperationEnd, Request};
use crate::failure::Failures;
use weft_fabric::{Endpoint, Fault, Outcome};

/// A send and a receive that complete together; the status is that of the receive.
pub struct SendReceive {
    send: Request,
    receive: Request,
    sent: Option<OperationEnd>,
    received: Option<OperationEnd>,
}

impl SendReceive {
    pub fn new(send: Request, receive: Request) -> Self {
        Self { send, receive, sent: None, received: None }
    }

    /// Those still under way.
    pub fn parts(&self) -> impl Iterator<Item = &Request> {
        let send = self.sent.is_none().then_some(&self.send);
        send.into_iter().chain(self.received.is_none().then_some(&self.receive))
    }

    pub fn into_parts(self) -> Vec<Request> {
        let send = self.sent.is_none().then_some(self.send);
        send.into_iter().chain(self.received.is_none().then_some(self.receive)).collect()
    }

    pub fn end(&mut self, ground: &mut Ground) -> Option<OperationEnd> {
        if self.sent.is_none() {
            self.sent = self.send.end(ground);
        }
        if self.received.is_none() {
            self.received = self.receive.end(ground);
        }
        if self.sent.is_none() || self.received.is_none() {
            return None;
        }
        let (sent, received) = (self.sent.take()?, self.received.take()?);
        Some(OperationEnd { status: received.status, error: received.error.or(sent.error) })
    }

    /// Whether the receive is one from anybody that cannot go on before the program has acknowledged a loss.
    pub fn stalls(&self, failures: &Failures, endpoint: &mut Endpoint) -> bool {
        match &self.receive {
            Request::Transfer(transfer) if self.received.is_none() => transfer.stalls(failures, endpoint),
            _ => false,
        }
    }

    /// Ends a receive that stalls, in a call that cannot leave it.
    pub fn end_stalled(&mut self, failures: &Failures, endpoint: &mut Endpoint) {
        if !self.stalls(failures, endpoint) {
            return;
        }
        if let Request::Transfer(transfer) = &mut self.receive
            && endpoint.cancel_receive(transfer.id)
            && let Some(outcome) = endpoint.take_outcome(transfer.id)
        {
            self.received = Some(transfer.conclude(Outcome { fault: Some(Fault::PeerLost), ..outcome }));
        }
    }

    /// The communicator of the receive, where there is one.
    pub fn comm(&self) -> usize {
        if let Request::Transfer(transfer) = &self.receive { transfer.comm as usize } else { 0 }
    }
}
