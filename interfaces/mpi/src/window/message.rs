//! What the members of a window send each other, and what one remembers of it.
//!
//! A message is a head of eight words, spans (offset in the target's memory and length, two words each), and payload.
//! All travel on the window's own context, so that those of one member to another keep their order. Long operations are
//! several messages, each complete in itself.

use super::Window;
use super::elements::Span;
use crate::datatype::Datatype;
use crate::error::Class;
use crate::point::Buffer;
use std::collections::{HashMap, VecDeque};
use weft_fabric::{Endpoint, Envelope, Peer, RequestId, Selector, SendMode};

const WORD: usize = 8;
const HEAD_WORDS: usize = 8;
pub const HEAD: usize = HEAD_WORDS * WORD;
/// Most payload of one message, bytes: a multiple of every element's extent.
pub const MOST_PAYLOAD: usize = 32 * 1024;
/// Most spans of one message.
pub const MOST_SPANS: usize = 512;
const LONGEST: usize = HEAD + MOST_SPANS * 2 * WORD + MOST_PAYLOAD;
/// Messages, and answers, that may be on their way before an origin waits.
pub const MOST_UNDER_WAY: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum WindowMessageKind {
    Put = 1,
    Get,
    Accumulate,
    /// And the answer is what was there before.
    FetchAccumulate,
    CompareAndSwap,
    Lock,
    Unlock,
    Flush,
    Post,
    Complete,
    /// The answer to what fetches.
    Data,
    Granted,
    /// The answer to unlock and flush.
    Done,
}

impl WindowMessageKind {
    fn from_word(word: u64) -> Option<Self> {
        use WindowMessageKind::*;
        const ALL: [WindowMessageKind; 13] = [
            Put,
            Get,
            Accumulate,
            FetchAccumulate,
            CompareAndSwap,
            Lock,
            Unlock,
            Flush,
            Post,
            Complete,
            Data,
            Granted,
            Done,
        ];
        ALL.into_iter().find(|kind| *kind as u64 == word)
    }

    /// Whether each message of the kind has an answer with data.
    pub fn is_answered(self) -> bool {
        matches!(self, Self::Get | Self::FetchAccumulate | Self::CompareAndSwap)
    }

    /// Whether it is about what the receiver itself began.
    pub fn is_answer(self) -> bool {
        matches!(self, Self::Data | Self::Granted | Self::Done | Self::Post)
    }
}

/// The head of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowHead {
    pub kind: WindowMessageKind,
    /// Of the operation that an answer belongs to.
    pub id: u64,
    /// Codes of the element's type and of the operation.
    pub element: u64,
    pub op: u64,
    /// Position of the payload in the whole operation; of a lock: whether it is to be held alone.
    pub position: u64,
    /// Of an answer: 1 + the class of what went wrong.
    pub fault: u64,
}

impl WindowHead {
    pub fn new(kind: WindowMessageKind) -> Self {
        Self { kind, id: 0, element: 0, op: 0, position: 0, fault: 0 }
    }
}

/// A message that has come, as far as its length agrees with what it says.
pub struct WindowMessage<'a> {
    pub head: WindowHead,
    pub spans: Vec<Span>,
    pub payload: &'a [u8],
}

/// A message of synchronisation, which names no operation, is three words: so short that it travels in a cell.
const BRIEF: usize = 3 * WORD;

pub fn encode(head: WindowHead, spans: &[Span], payload: &[u8]) -> Box<[u8]> {
    if head == (WindowHead { position: head.position, fault: head.fault, ..WindowHead::new(head.kind) })
        && spans.is_empty()
        && payload.is_empty()
    {
        let words = [head.kind as u64, head.position, head.fault];
        return words.iter().flat_map(|word| word.to_le_bytes()).collect();
    }
    let words = [
        head.kind as u64,
        head.id,
        head.element,
        head.op,
        head.position,
        head.fault,
        spans.len() as u64,
        payload.len() as u64,
    ];
    let mut bytes = Vec::with_capacity(HEAD + spans.len() * 2 * WORD + payload.len());
    words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    for span in spans {
        bytes.extend(span.at.to_le_bytes());
        bytes.extend((span.count as u64).to_le_bytes());
    }
    bytes.extend(payload);
    bytes.into_boxed_slice()
}

pub fn decode(bytes: &[u8]) -> Option<WindowMessage<'_>> {
    let word = |index: usize| Some(u64::from_le_bytes(*bytes.get(index * WORD..)?.first_chunk()?));
    if bytes.len() == BRIEF {
        let head = WindowHead {
            position: word(1)?,
            fault: word(2)?,
            ..WindowHead::new(WindowMessageKind::from_word(word(0)?)?)
        };
        return Some(WindowMessage { head, spans: Vec::new(), payload: &[] });
    }
    let head = WindowHead {
        kind: WindowMessageKind::from_word(word(0)?)?,
        id: word(1)?,
        element: word(2)?,
        op: word(3)?,
        position: word(4)?,
        fault: word(5)?,
    };
    let count = usize::try_from(word(6)?).ok().filter(|count| *count <= MOST_SPANS)?;
    let spans: Option<Vec<Span>> = (0..count)
        .map(|span| {
            let at = word(HEAD_WORDS + 2 * span)? as i64;
            Some(Span { at, count: usize::try_from(word(HEAD_WORDS + 2 * span + 1)?).ok()? })
        })
        .collect();
    let payload = bytes.get(HEAD + count * 2 * WORD..)?;
    (payload.len() as u64 == word(7)?).then_some(())?;
    Some(WindowMessage { head, spans: spans?, payload })
}

/// Where the answers to an operation go.
pub struct AnswerPlace {
    pub rank: usize,
    /// Bytes that have not come, and parts that were asked for and have not come.
    pub left: usize,
    pub parts: usize,
    /// The whole answer: its own memory, or the program's.
    pub at: *mut u8,
    pub bytes: usize,
    pub landing: AnswerLanding,
    /// The program's request, if it has one.
    pub request: Option<usize>,
    pub fault: Option<Class>,
    /// The member was found to have ended, and what it has sent may still be on its way.
    pub doubted: bool,
}

/// What is left to be done when the answer is whole.
pub enum AnswerLanding {
    /// It came to where the program wants it.
    There,
    /// Packed bytes for the program's buffer.
    Packed(Vec<u8>, Buffer),
    /// Elements of the type, for the program's buffer.
    Elements(Vec<u8>, Buffer, &'static Datatype),
}

// SAFETY: the addresses are the program's, which keeps them until the operation is complete, or lead into the vectors.
unsafe impl Send for AnswerPlace {}

/// What one member knows of another.
#[derive(Default)]
pub struct Correspondent {
    /// Requests were sent since the last answer that says that all are done.
    pub dirty: bool,
    pub asked: u64,
    pub answered: u64,
    pub locks_asked: u64,
    pub granted: u64,
    /// Why the last one will never be granted.
    pub refused: Option<Class>,
    /// Operations whose answers are not whole.
    pub gets: u32,
    /// Exposure epochs of it that we have not begun to use, and uses of ours that it has ended.
    pub posts: u32,
    pub completes: u32,
    /// What went wrong there with our requests.
    pub fault: Option<Class>,
    /// What went wrong here with its requests since it was last told.
    pub fault_here: Option<Class>,
    /// The lock of ours that it holds, and whether alone.
    pub holds: Option<bool>,
}

impl Correspondent {
    /// Whether all that was sent to it is known to be done. Another thread may have asked, and wait for the answer.
    pub fn is_quiet(&self) -> bool {
        !self.dirty && self.is_answered()
    }

    pub fn is_answered(&self) -> bool {
        self.asked == self.answered && self.gets == 0
    }
}

/// The messages of a window.
pub struct Service {
    pub context: u32,
    source: u32,
    receive: Option<(RequestId, Box<[u8]>)>,
    sending: Vec<(RequestId, Box<[u8]>)>,
    pub others: Vec<Correspondent>,
    pub replies: HashMap<u64, AnswerPlace>,
    next_id: u64,
    /// Parts of answers that have not come.
    pub parts: usize,
    /// Members that wait for our lock, and whether they want it alone.
    pub locks: VecDeque<(u32, bool)>,
    /// Requests that came while a lock was held by somebody else, in their order.
    pub backlog: VecDeque<(u32, Box<[u8]>)>,
}

impl Service {
    pub fn new(context: u32, source: u32, members: usize) -> Self {
        Self {
            context,
            source,
            receive: None,
            sending: Vec::new(),
            others: (0..members).map(|_| Correspondent::default()).collect(),
            replies: HashMap::new(),
            next_id: 0,
            parts: 0,
            locks: VecDeque::new(),
            backlog: VecDeque::new(),
        }
    }

    /// From now on messages are received.
    pub fn open(&mut self, endpoint: &mut Endpoint) {
        let bytes = vec![0u8; LONGEST].into_boxed_slice();
        self.post(endpoint, bytes);
    }

    fn post(&mut self, endpoint: &mut Endpoint, mut bytes: Box<[u8]>) {
        let anyone = Selector { context: self.context, peer: None, tag: None };
        // SAFETY: the bytes live on the heap, kept with the request and not touched until it is complete or cancelled.
        let id = unsafe { endpoint.post_receive(anyone, bytes.as_mut_ptr(), bytes.len()) };
        self.receive = Some((id, bytes));
    }

    /// The next message, from the member of that rank: hands it to `handle`, then waits for the next one.
    pub fn next(&mut self, endpoint: &mut Endpoint) -> Option<(u32, Box<[u8]>)> {
        let (id, _) = self.receive.as_ref()?;
        let outcome = endpoint.take_outcome(*id)?;
        let (_, bytes) = self.receive.take()?;
        let length = (outcome.length as usize).min(bytes.len());
        let message = match outcome.fault {
            None if (outcome.source as usize) < self.others.len() => {
                Some((outcome.source, bytes[..length].to_vec().into_boxed_slice()))
            }
            _ => None,
        };
        self.post(endpoint, bytes);
        message.or_else(|| self.next(endpoint))
    }

    pub fn send(&mut self, endpoint: &mut Endpoint, to: Peer, bytes: Box<[u8]>) {
        let envelope = Envelope { context: self.context, tag: 0, source: self.source };
        // SAFETY: the bytes live on the heap, kept with the request until it is complete.
        unsafe {
            if !endpoint.try_send(to, envelope, bytes.as_ptr(), bytes.len()) {
                let id = endpoint.post_send(to, envelope, bytes.as_ptr(), bytes.len(), SendMode::Standard);
                self.sending.push((id, bytes));
            }
        }
    }

    /// Forgets what has been sent.
    pub fn reap(&mut self, endpoint: &mut Endpoint) {
        self.sending.retain(|(id, _)| endpoint.take_outcome(*id).is_none());
    }

    /// No more than may be: an origin waits before it sends more.
    pub fn has_room(&self) -> bool {
        self.sending.len() < MOST_UNDER_WAY && self.parts < MOST_UNDER_WAY
    }

    /// Whether others wait for a lock of ours that we cannot give yet.
    pub fn is_pending(&self) -> bool {
        !(self.locks.is_empty() && self.backlog.is_empty())
    }

    /// Whether answers are on their way to us.
    pub fn is_awaiting(&self) -> bool {
        let awaits = |other: &Correspondent| {
            other.asked != other.answered || other.locks_asked != other.granted || other.gets > 0
        };
        self.others.iter().any(awaits)
    }

    /// Keeps where an answer goes; its number.
    pub fn expect(&mut self, reply: AnswerPlace) -> u64 {
        self.next_id += 1;
        self.others[reply.rank].gets += 1;
        self.replies.insert(self.next_id, reply);
        self.next_id
    }

    /// Nothing more is done about an answer; what still comes of it is thrown away.
    pub fn forget(&mut self, id: u64) -> Option<AnswerPlace> {
        let reply = self.replies.remove(&id)?;
        self.others[reply.rank].gets -= 1;
        self.parts -= reply.parts;
        Some(reply)
    }

    /// Ends receiving.
    pub fn close(&mut self, endpoint: &mut Endpoint) {
        if let Some((id, bytes)) = self.receive.take() {
            if endpoint.cancel_receive(id) || endpoint.is_complete(id) {
                endpoint.take_outcome(id);
            } else {
                // A message is half here, from a member that still sends: it has to find the memory.
                endpoint.release(id);
                Box::leak(bytes);
            }
        }
        for (id, bytes) in self.sending.drain(..) {
            endpoint.release(id);
            Box::leak(bytes);
        }
    }
}

impl Window {
    /// Sends a request that a later flush asks about.
    pub(super) fn request(
        &mut self,
        endpoint: &mut Endpoint,
        rank: usize,
        head: WindowHead,
        spans: &[Span],
        payload: &[u8],
    ) {
        self.service.others[rank].dirty = true;
        if let Some(reply) = self.service.replies.get_mut(&head.id).filter(|_| head.kind.is_answered()) {
            reply.parts += 1;
            self.service.parts += 1;
        }
        self.service.send(endpoint, self.targets[rank].peer, encode(head, spans, payload));
    }

    /// Asks a member to say when all that we sent before is done.
    pub(super) fn ask(&mut self, endpoint: &mut Endpoint, rank: usize, kind: WindowMessageKind) {
        let other = &mut self.service.others[rank];
        other.asked += 1;
        other.dirty = false;
        self.service.send(endpoint, self.targets[rank].peer, encode(WindowHead::new(kind), &[], &[]));
    }

    pub(super) fn tell(&mut self, endpoint: &mut Endpoint, rank: usize, head: WindowHead) {
        if rank == self.me() {
            let mine = &mut self.service.others[rank];
            match head.kind {
                WindowMessageKind::Post => mine.posts += 1,
                WindowMessageKind::Complete => mine.completes += 1,
                _ => {}
            }
            return;
        }
        self.service.send(endpoint, self.targets[rank].peer, encode(head, &[], &[]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded() {
        let head = WindowHead {
            id: 7,
            element: 0x209,
            op: 0x21,
            position: 4096,
            fault: 3,
            ..WindowHead::new(WindowMessageKind::FetchAccumulate)
        };
        let spans = [Span { at: -8, count: 3 }, Span { at: 1 << 40, count: 1 }];
        let bytes = encode(head, &spans, b"payload");
        let message = decode(&bytes).expect("whole");
        assert_eq!((message.head, message.spans.as_slice(), message.payload), (head, &spans[..], &b"payload"[..]));
        let brief = WindowHead { position: 1, fault: 9, ..WindowHead::new(WindowMessageKind::Done) };
        let bytes = encode(brief, &[], &[]);
        let message = decode(&bytes).expect("whole");
        assert_eq!((bytes.len(), message.head, message.spans.len()), (BRIEF, brief, 0));
    }

    #[test]
    fn what_does_not_agree_with_itself_is_refused() {
        let bytes = encode(WindowHead::new(WindowMessageKind::Put), &[Span { at: 0, count: 4 }], b"four");
        assert!(decode(&bytes).is_some());
        assert!(decode(&bytes[..bytes.len() - 1]).is_none());
        for (place, nonsense) in [(0, 0u64), (0, 99), (6, 2), (6, u64::MAX), (7, 5)] {
            let mut spoilt = bytes.to_vec();
            spoilt[place * 8..][..8].copy_from_slice(&nonsense.to_le_bytes());
            assert!(decode(&spoilt).is_none(), "word {place} is {nonsense}");
        }
        assert!(decode(&[]).is_none());
    }
}
