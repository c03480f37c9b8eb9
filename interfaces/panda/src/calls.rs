//! Remote procedure calls that wait for their answers, and who handles those that come.
//!
//! Nothing is sent twice, so a handler runs once for each call. An answer to what nobody waits for is thrown away, so a
//! call is answered once.

use crate::labels::PandaArrival;
use crate::message::{Content, PandaMessage};
use std::ffi::c_void;
use std::sync::Arc;
use weft_fabric::Peer;

/// The handler of C: who is to be answered, and the request, which is the handler's.
pub type RpcFunction = unsafe extern "C" fn(*mut c_void, *mut PandaMessage);

#[derive(Clone)]
pub enum RequestHandler {
    C(RpcFunction),
    Rust(Arc<dyn Fn(RpcCaller, Content) + Send + Sync>),
}

/// Who has called, and the number of the call there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RpcCaller {
    pub from: Peer,
    pub number: u32,
}

impl RpcCaller {
    /// As C has it: a pointer to nothing.
    fn into_pointer(self) -> *mut c_void {
        std::ptr::without_provenance_mut((self.from.0 as usize + 1) << 32 | self.number as usize)
    }

    pub fn from_pointer(pointer: *mut c_void) -> Option<Self> {
        let from = Peer(u32::try_from(pointer.addr() >> 32).ok()?.checked_sub(1)?);
        Some(Self { from, number: pointer.addr() as u32 })
    }
}

/// How it stands with a call.
enum CallAnswer {
    Awaited,
    Here(Content),
    /// Its server has ended.
    None,
}

struct OpenCall {
    number: u32,
    server: Peer,
    answer: CallAnswer,
}

#[derive(Default)]
pub struct OpenCalls {
    numbers: u32,
    open: Vec<OpenCall>,
    handler: Option<RequestHandler>,
}

impl OpenCalls {
    pub fn handler(&self) -> Option<RequestHandler> {
        self.handler.clone()
    }

    /// False if there is one.
    pub fn register(&mut self, handler: RequestHandler) -> bool {
        let is_first = self.handler.is_none();
        self.handler.get_or_insert(handler);
        is_first
    }

    pub fn forget_handler(&mut self) {
        self.handler = None;
    }

    /// The number of a call that begins.
    pub fn begin(&mut self, server: Peer) -> u32 {
        self.numbers = self.numbers.wrapping_add(1);
        self.open.push(OpenCall { number: self.numbers, server, answer: CallAnswer::Awaited });
        self.numbers
    }

    /// An answer has come.
    #[inline]
    pub fn answer(&mut self, number: u32, from: Peer, content: Content) {
        let asked = |call: &&mut OpenCall| call.number == number && call.server == from;
        if let Some(call) = self.open.iter_mut().find(asked)
            && matches!(call.answer, CallAnswer::Awaited)
        {
            call.answer = CallAnswer::Here(content);
        }
    }

    /// What has become of a call, if it is over.
    #[inline]
    pub fn take(&mut self, number: u32) -> Option<Result<Content, Peer>> {
        let over = |call: &OpenCall| call.number == number && !matches!(call.answer, CallAnswer::Awaited);
        let at = self.open.iter().position(over)?;
        let OpenCall { server, answer, .. } = self.open.swap_remove(at);
        Some(if let CallAnswer::Here(content) = answer { Ok(content) } else { Err(server) })
    }

    pub fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whose answers are awaited.
    pub fn servers(&self) -> impl Iterator<Item = Peer> {
        self.open.iter().filter(|call| matches!(call.answer, CallAnswer::Awaited)).map(|call| call.server)
    }

    /// A server has ended: who waits for it is told. True if anybody does.
    pub fn lose(&mut self, server: Peer) -> bool {
        let mut any = false;
        for call in self.open.iter_mut().filter(|call| call.server == server) {
            if matches!(call.answer, CallAnswer::Awaited) {
                (call.answer, any) = (CallAnswer::None, true);
            }
        }
        any
    }
}

pub fn call_request(handler: &RequestHandler, PandaArrival { from, label, content }: PandaArrival) {
    let caller = RpcCaller { from, number: label.beside };
    match handler {
        RequestHandler::C(function) => {
            let message = Box::into_raw(Box::new(PandaMessage::of(content)));
            // SAFETY: the program has registered a function of this type. The message is its own from here on.
            unsafe { function(caller.into_pointer(), message) };
        }
        RequestHandler::Rust(function) => function(caller, content),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(byte: u8) -> Content {
        Content { words: vec![u64::from(byte)], length: 1 }
    }

    #[test]
    fn a_call_is_answered_once_and_by_whom_was_asked() {
        let mut calls = OpenCalls::default();
        let (one, other) = (calls.begin(Peer(1)), calls.begin(Peer(2)));
        calls.answer(one, Peer(2), content(9));
        calls.answer(7, Peer(1), content(9));
        assert_eq!(calls.take(one), None);
        calls.answer(one, Peer(1), content(1));
        calls.answer(one, Peer(1), content(2));
        assert_eq!((calls.take(one), calls.take(one)), (Some(Ok(content(1))), None));
        assert_eq!(calls.servers().collect::<Vec<_>>(), [Peer(2)]);
        assert!(calls.lose(Peer(2)) && !calls.lose(Peer(2)));
        assert_eq!(calls.take(other), Some(Err(Peer(2))));
        assert!(!calls.are_open());
    }

    #[test]
    fn a_caller_is_a_pointer_that_is_not_null() {
        for (from, number) in [(0, 0), (3, u32::MAX), (1 << 30, 5)] {
            let caller = RpcCaller { from: Peer(from), number };
            assert_eq!(RpcCaller::from_pointer(caller.into_pointer()), Some(caller));
        }
        assert_eq!(RpcCaller::from_pointer(std::ptr::null_mut()), None);
    }
}
