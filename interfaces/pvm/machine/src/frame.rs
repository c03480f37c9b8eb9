//! What tasks, daemons and the machine say to each other.
//!
//! On a stream a frame is its length in four bytes, lowest first, then a byte that says which it is, then its fields in
//! order. Numbers have their bytes lowest first; texts and lists begin with their length in four bytes.
//!
//! What a client says first is its [`VERSION`], in a frame that is the same in all versions, and so is the answer to a
//! wrong one, [`Answer::Code`].
//!
//! Invariant: what is read is a claim; what is no frame is `None`, whatever the bytes are.

/// The largest frame; a mailbox message has to fit in.
pub const LARGEST: usize = 1 << 28;

/// Changes with every change of a frame: the daemon of a machine that stays may be older than the library of a task.
pub const VERSION: u32 = 1;

/// What a frame consists of.
pub trait FrameField: Sized {
    fn put(&self, to: &mut Vec<u8>);
    fn take(from: &mut &[u8]) -> Option<Self>;
}

macro_rules! number_fields {
    ($($type:ty)*) => { $(
        impl FrameField for $type {
            fn put(&self, to: &mut Vec<u8>) {
                to.extend(self.to_le_bytes());
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                let (head, rest) = from.split_first_chunk()?;
                *from = rest;
                Some(Self::from_le_bytes(*head))
            }
        }
    )* };
}

number_fields!(u8 i32 u32 u64);

impl FrameField for bool {
    fn put(&self, to: &mut Vec<u8>) {
        to.push(u8::from(*self));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        u8::take(from).map(|byte| byte != 0)
    }
}

/// ByteString of a message or a name: a list of bytes that is copied in one go.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteString(pub Vec<u8>);

impl ByteString {
    /// For people.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl From<&str> for ByteString {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl FrameField for ByteString {
    fn put(&self, to: &mut Vec<u8>) {
        (self.0.len() as u32).put(to);
        to.extend(&self.0);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let length = u32::take(from)? as usize;
        let (head, rest) = from.split_at_checked(length)?;
        *from = rest;
        Some(Self(head.to_vec()))
    }
}

impl FrameField for String {
    fn put(&self, to: &mut Vec<u8>) {
        (self.len() as u32).put(to);
        to.extend(self.as_bytes());
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        ByteString::take(from).map(|bytes| bytes.text())
    }
}

impl<T: FrameField> FrameField for Vec<T> {
    fn put(&self, to: &mut Vec<u8>) {
        (self.len() as u32).put(to);
        self.iter().for_each(|item| item.put(to));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let length = u32::take(from)? as usize;
        // An item has a byte at least.
        (length <= from.len()).then_some(())?;
        (0..length).map(|_| T::take(from)).collect()
    }
}

macro_rules! record {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name { $($(#[$about])* pub $field: $type,)* }

        impl FrameField for $name {
            fn put(&self, to: &mut Vec<u8>) {
                $(self.$field.put(to);)*
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: <$type>::take(from)?,)* })
            }
        }
    };
}

macro_rules! frames {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $number:literal $variant:ident $({ $($field:ident: $type:ty),* })?,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$about])* $variant $({ $($field: $type),* })?,)* }

        impl FrameField for $name {
            fn put(&self, to: &mut Vec<u8>) {
                match self {
                    $(Self::$variant $({ $($field),* })? => {
                        to.push($number);
                        $($($field.put(to);)*)?
                    })*
                }
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                match u8::take(from)? {
                    $($number => Some(Self::$variant $({ $($field: <$type>::take(from)?),* })?),)*
                    _ => None,
                }
            }
        }
    };
}

record! {
    /// Where what a task prints goes: a message to this task, in this context and with this tag. Task 0: the log.
    Destination { tid: i32, context: i32, tag: i32, }
}

record! {
    /// Who enrols.
    Introduction {
        pid: i32,
        /// The identifier that the task was started with, or 0.
        started_as: i32,
        /// How other tasks reach it. Empty of a rank of a job, which shows it when it is asked, and of a console, which
        /// nobody sends to.
        card: Vec<u64>,
        name: ByteString,
        /// The job that it is a rank of.
        job: u64,
        rank: u32,
        size: u32,
        /// Of a job on several hosts: their names, and for each rank the index of its own.
        hosts: Vec<ByteString>,
        places: Vec<u32>,
    }
}

record! {
    /// A task, as it is told when it has enrolled.
    Identity {
        tid: i32,
        /// 0: none.
        parent: i32,
        context: i32,
        /// The tasks that were started together with it.
        siblings: Vec<i32>,
        prints_to: Destination,
        /// The machine has several hosts: it is to show a card for all of them.
        is_wide: bool,
        /// The job with which the machine ends, since a rank of it has started the daemon.
        ends_with: String,
    }
}

record! {
    /// What is to be started.
    Program {
        file: ByteString,
        arguments: Vec<ByteString>,
        /// `NAME=value`, beside what the daemon has.
        environment: Vec<ByteString>,
        directory: ByteString,
        /// Where a file without a slash is looked for first.
        places: Vec<ByteString>,
        flags: i32,
    }
}

record! {
    /// As `struct pvmtaskinfo`.
    TaskInfo { tid: i32, parent: i32, daemon: i32, flags: i32, name: ByteString, pid: i32, }
}

record! {
    /// As `struct pvmhostinfo`.
    HostInfo { tid: i32, name: String, architecture: String, speed: i32, signature: i32, }
}

record! {
    /// One name of the mailbox, as `struct pvmmboxinfo`.
    NameInfo { name: ByteString, indices: Vec<i32>, owners: Vec<i32>, flags: Vec<i32>, }
}

record! {
    /// A message without its way.
    Content { encoding: u32, source: i32, tag: i32, bytes: ByteString, }
}

frames! {
    /// What a task asks. There is one answer to each, in order.
    Request {
        /// Which [`VERSION`] the client speaks, said once, before all else. There is an answer to a wrong one only.
        0 Speak { version: u32 },
        1 Enrol { who: Introduction },
        2 Leave,
        /// How is this task reached?
        3 Meet { tid: i32 },
        4 Spawn { program: Program, place: ByteString, count: u32, prints_to: Destination, context: i32 },
        5 Signal { tid: i32, signal: i32 },
        6 TaskStatus { tid: i32 },
        7 HostStatus { name: ByteString },
        /// Of a host, if its daemon is named, or of one task; 0: all.
        8 Tasks { of: i32 },
        9 Hosts,
        10 AddHosts { names: Vec<ByteString> },
        11 DeleteHosts { names: Vec<ByteString> },
        12 Notify { what: i32, context: i32, tag: i32, count: i32, of: Vec<i32> },
        /// 0 for a new one, or one to be freed.
        13 Context { free: i32 },
        14 Put { name: ByteString, index: i32, flags: i32, content: Content },
        15 Get { name: ByteString, index: i32, flags: i32 },
        16 Delete { name: ByteString, index: i32 },
        17 Names { pattern: ByteString },
        18 Reset { class: ByteString, index: i32, kills: bool, keep: Vec<i32> },
        19 JoinGroup { name: ByteString },
        20 LeaveGroup { name: ByteString },
        21 Members { name: ByteString },
        22 Freeze { name: ByteString, size: i32 },
        23 Barrier { name: ByteString, count: i32 },
        24 PrintTo { destination: Destination },
        25 Halt,
        26 Time { host: i32 },
        27 Groups,
        /// How others reach it, of a task that has been asked; those of other hosts, too, where it is wide. There is no
        /// answer.
        28 ShowCard { card: Vec<u64>, is_wide: bool },
        /// A block of memory that the ranks of its job share, for their groups. There is no answer.
        29 OfferBlock { block: u32 },
        /// It has left a meeting that is over. There is no answer.
        30 LeftMeeting { number: u32 },
    }
}

frames! {
    /// What a task is told.
    Answer {
        1 Enrolled { identity: Identity },
        2 Code { code: i32 },
        /// An empty card: it is not there yet, and [`Event::Met`] or [`Event::Gone`] will say more.
        3 Card { code: i32, card: Vec<u64> },
        4 Tids { code: i32, tids: Vec<i32> },
        5 Tasks { code: i32, tasks: Vec<TaskInfo> },
        6 Hosts { hosts: Vec<HostInfo> },
        7 Added { hosts: Vec<HostInfo> },
        8 Content { code: i32, content: Content },
        9 Names { names: Vec<NameInfo> },
        /// Instances in order, 0 where there is none; whether the group is frozen.
        10 Members { code: i32, tids: Vec<i32>, is_frozen: bool },
        11 Time { seconds: u64, microseconds: u32 },
    }
}

frames! {
    /// What a task is told unasked.
    Event {
        /// This task has this card. It has asked for ours, or it was asked for.
        1 Met { tid: i32, card: Vec<u64> },
        2 Gone { tid: i32 },
        /// A message of the machine.
        3 Message { context: i32, content: Content },
        /// Somebody asks for the card of this task, or for one that is good on other hosts.
        4 WantCard { is_wide: bool },
        /// Barriers of this group, which has these members, are in this place of a block of the job's memory.
        5 MeetAt { name: ByteString, number: u32, block: u32, place: u32, tids: Vec<i32> },
        /// ... and no more.
        6 MeetNoMore { number: u32 },
    }
}

frames! {
    /// To a task.
    Told {
        1 Answer { answer: Answer },
        2 Event { event: Event },
    }
}

frames! {
    /// What a daemon has seen on its host.
    Seen {
        1 Asked { client: u32, bytes: ByteString },
        2 ClientGone { client: u32 },
        /// A code below 0 where it could not be started.
        3 Started { tid: i32, pid: i32 },
        4 Ended { tid: i32 },
        /// Nothing: there will be no more.
        5 Printed { tid: i32, bytes: ByteString },
        /// The daemon of another host is there.
        6 HostUp { number: u32, name: String, architecture: String },
        /// It is not, or not any more; why it could not be started.
        7 HostDown { number: u32, code: i32 },
        /// The daemon is there still; an answer to that of the first one.
        8 Pulse,
    }
}

frames! {
    /// What a daemon is to do on its host.
    Order {
        1 Tell { client: u32, bytes: ByteString },
        2 Close { client: u32 },
        3 Start { tid: i32, program: Program },
        4 Signal { pid: i32, signal: i32 },
        5 Log { line: ByteString },
        /// First daemon only: start one on another host.
        6 AddHost { number: u32, name: ByteString },
        7 DropHost { number: u32 },
        /// End, with all processes.
        8 End,
        /// The first daemon is there still.
        9 Pulse,
    }
}

/// The frame as it stands on a stream.
pub fn framed(frame: &impl FrameField) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    frame.put(&mut bytes);
    let length = (bytes.len() - 4) as u32;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// The frame that these bytes are, if they are one and nothing more.
pub fn read<T: FrameField>(mut bytes: &[u8]) -> Option<T> {
    let frame = T::take(&mut bytes)?;
    bytes.is_empty().then_some(frame)
}

/// What has come by a stream and is no whole frame yet.
#[derive(Default)]
pub struct FrameStream {
    bytes: Vec<u8>,
    /// So many have been taken.
    taken: usize,
}

/// What comes by the stream are no frames.
#[derive(Debug, PartialEq, Eq)]
pub struct Nonsense;

impl FrameStream {
    pub fn push(&mut self, bytes: &[u8]) {
        if self.taken == self.bytes.len() {
            self.bytes.clear();
            self.taken = 0;
        }
        self.bytes.extend(bytes);
    }

    /// The bytes of the next frame, if it is there.
    ///
    /// # Errors
    /// It would be too long.
    pub fn next_frame(&mut self) -> Result<Option<Vec<u8>>, Nonsense> {
        let rest = &self.bytes[self.taken..];
        let Some((head, rest)) = rest.split_first_chunk() else { return Ok(None) };
        let length = u32::from_le_bytes(*head) as usize;
        if length > LARGEST {
            return Err(Nonsense);
        }
        let Some(frame) = rest.get(..length) else { return Ok(None) };
        let frame = frame.to_vec();
        self.taken += 4 + length;
        if self.taken > 1 << 16 {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Request {
        let program = Program { file: "task".into(), arguments: vec!["a".into(), "".into()], ..Program::default() };
        let prints_to = Destination { tid: 1, context: -2, tag: 3 };
        Request::Spawn { program, place: "host".into(), count: 3, prints_to, context: -1 }
    }

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let bytes = framed(&example());
        assert_eq!(read(&bytes[4..]), Some(example()));
        for end in 4..bytes.len() {
            assert_eq!(read::<Request>(&bytes[4..end]), None, "cut at {end}");
        }
        assert_eq!(read::<Request>(&[bytes[4..].to_vec(), vec![0]].concat()), None);
        assert_eq!(read::<Request>(&[200]), None);
        // A list that would be longer than the frame.
        assert_eq!(read::<Vec<u8>>(&[255, 255, 255, 255, 1]), None);
    }

    #[test]
    fn frames_come_out_of_a_stream_that_is_cut_anywhere() {
        let stream: Vec<u8> = (0..3).flat_map(|_| framed(&example())).collect();
        for piece in [1, 3, 7, 1000] {
            let (mut incoming, mut found) = (FrameStream::default(), 0);
            for bytes in stream.chunks(piece) {
                incoming.push(bytes);
                while let Some(frame) = incoming.next_frame().expect("frames") {
                    assert_eq!(read(&frame), Some(example()));
                    found += 1;
                }
            }
            assert_eq!(found, 3);
        }
        let mut incoming = FrameStream::default();
        incoming.push(&[255; 4]);
        assert_eq!(incoming.next_frame(), Err(Nonsense));
    }
}
