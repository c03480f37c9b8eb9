//! Byte streams between two processes of a host beside a connected kernel socket, the *anchor*.
//!
//! Each direction begins in the kernel, moves to a ring of bytes in shared memory when the other side is attached, and
//! may go back to the kernel once, for good. Everything else about the connection (its end, its errors, its addresses)
//! stays the kernel's.
//!
//! Written for code that is loaded into programs which know nothing of it: no call here allocates, uses the C library's
//! names of system calls, or blocks, except the guards, which wait for each other. All state is the process's own and
//! static, or in shared memory.
//!
//! Counting: `sent_by_kernel` and `received_by_kernel` are all bytes of the connection's life that went through the
//! kernel in that direction, as the caller counts them.
//!
//! Not here: descriptors of programs, their calls, when to offer, waiting (`weft-sockets`); the rendezvous
//! (`weft-agent`); rings and switches (`weft-device`).

mod answers;
mod bells;
mod client;
pub(crate) mod connection;
mod far;
pub(crate) mod guards;
mod looks;
mod page;
mod pulse;
mod tally;

pub use answers::{AnchorOffer, KernelReason, REASONS, Reason, Waiter, Writable};
pub use bells::{BellAddress, PooledBell};
pub use connection::Stream;
pub use guards::{ReceiveGuard, SendGuard};
pub use page::{Count, StreamCounters};

use crate::datagram::{DatagramChannel, DatagramPeer};
use std::os::fd::RawFd;
use std::sync::atomic::Ordering;
use weft_device::shm::stream as device;
pub use weft_device::shm::stream::lines::CallOptions;
pub use weft_device::shm::stream::order::FirstUntold;
pub use weft_device::shm::stream::{ByteSource as ReceiveRoute, FoundBytes as Readable, SendTarget as SendRoute};
pub use weft_wire::stream::page::REASON_MEANINGS;
pub use weft_wire::stream::tally::{
    Address, KernelOnly, Sums, VARIABLE as TALLY_VARIABLE, WANTED_VARIABLE, WantedTally, memory_name,
};

/// What the rendezvous has found: cookie of our socket, and our side, which is not attached yet.
#[derive(Debug)]
pub enum Mail {
    Stream { cookie: u64, stream: Stream },
    Pair { cookie: u64, peer: DatagramPeer, channel: DatagramChannel },
}

/// This process's streams: any number of these are the same one.
#[derive(Clone, Copy, Debug)]
pub struct Streams {
    _private: (),
}

impl Streams {
    /// No system call. Connects to the rendezvous at the first offer.
    pub const fn open() -> Self {
        Self { _private: () }
    }

    /// To be called in the child right after a fork, before any other call here: the child is a process of its own for
    /// the rendezvous, with counters and bells of its own. Streams that it inherited stay usable; the parent has called
    /// [`Stream::add_ref`] for each before the fork.
    pub fn forked(&self) {
        guards::forked();
        far::forked();
        device::bell::forked();
        client::forked();
        tally::forked();
    }

    /// From now on everything that is counted is counted in this memory, too, which outlives the process; so do
    /// children of forks. To be called once, before the program runs. The descriptor stays the caller's.
    ///
    /// # Errors
    /// It is no such memory, or cannot be mapped.
    pub fn join_tally(&self, memory: RawFd) -> std::io::Result<()> {
        tally::join(memory)
    }

    /// Whether the rendezvous is in another process namespace than we are, and answers nothing. One load.
    pub fn is_apart(&self) -> bool {
        client::is_apart()
    }

    /// Whether the rendezvous is of another version, as was seen by what it gave for connections that were shown. One
    /// load.
    pub fn is_of_other_version(&self) -> bool {
        client::is_strange()
    }

    /// How many sockets were shown so far.
    pub fn shown(&self) -> u32 {
        client::shown()
    }

    /// Waits, for some milliseconds at most, until the rendezvous has let go of the first `shown` sockets that were
    /// shown: until then what a process closes is open there. One load and a system call where it has.
    pub fn await_let_go(&self, shown: u32) {
        client::await_looked(shown);
    }

    /// Shows `anchor`, a connected TCP socket, to the rendezvous. Never blocks. Once per cookie is enough: the caller
    /// remembers. A failed connection to the rendezvous is remembered for a second.
    pub fn offer(&self, anchor: RawFd, cookie: u64) -> AnchorOffer {
        client::offer(anchor, cookie)
    }

    /// The socket of this cookie was shown, no mail has come for it, and it is closed now. Until it hears this the
    /// rendezvous holds open what leads to another host, and would let the next connection between its ports meet it.
    pub fn withdraw(&self, cookie: u64) {
        client::withdraw(cookie);
    }

    /// Whether the rendezvous has nothing by which this process could reach other hosts, so that what leads there is
    /// shown in vain. One load, and now and then a look whether that rendezvous is there still.
    pub fn is_host_only(&self, looks_after: bool) -> bool {
        client::is_host_only(looks_after)
    }

    /// Whether [`Self::take_mail`] may have something. Two loads.
    #[inline(always)]
    pub fn has_mail(&self) -> bool {
        client::has_mail()
    }

    /// The next connection, or pair of datagram sockets, for which the rendezvous has found both ends. `None` also
    /// while another thread takes mail.
    pub fn take_mail(&self) -> Option<Mail> {
        let granted = client::take_mail()?;
        let (cookie, stream) = (granted.cookie, Stream::begin(granted.arena, granted.place));
        Some(match granted.peer {
            None => Mail::Stream { cookie, stream },
            Some(peer) => Mail::Pair { cookie, peer, channel: DatagramChannel::begin(stream) },
        })
    }

    /// Shows a datagram socket that has exchanged datagrams with `peer`. Never blocks. As [`Self::offer`] otherwise.
    pub fn offer_pair(&self, socket: RawFd, cookie: u64, peer: DatagramPeer) -> AnchorOffer {
        client::offer_pair(socket, cookie, peer)
    }

    /// Gives a stream back that was never attached; the connection stays with the kernel.
    pub fn decline(&self, stream: Stream) {
        stream.drop_ref();
    }

    /// Takes what has come from other hosts, by whichever thread looks; true if something has. Two loads if nothing
    /// has.
    #[inline(always)]
    pub fn drive(&self) -> bool {
        far::drive()
    }

    /// Whether something has come that [`Self::drive`] would take: before a sleep on [`Self::lane`], which it would
    /// end.
    #[inline(always)]
    pub fn lane_has_arrived(&self) -> bool {
        far::has_arrived()
    }

    /// What becomes readable when something comes from other hosts, to be slept on beside all else and answered by
    /// [`Self::drive`]; `None` in a process without such connections.
    #[inline]
    pub fn lane(&self) -> Option<RawFd> {
        far::descriptor()
    }

    /// Whether this process has connections to other hosts. Few loads.
    #[inline]
    pub fn has_far(&self) -> bool {
        far::has_any()
    }

    /// Whether the rendezvous is gone by which this process has connections to other hosts: for some seconds, in which
    /// this was asked about every second, nothing was heard of it. Nothing comes or goes by the lane any more, and
    /// nobody says so. True for one caller a second at most, who is to end those connections.
    pub fn is_deserted(&self) -> bool {
        far::is_deserted()
    }

    /// Calls `each` with the token of every stream that came alive since (data, room or a request of the peer, for
    /// which a set was armed). Tokens are those of [`Stream::set_token`]; one may come more than once, and for nothing.
    pub fn scan_active(&self, mut each: impl FnMut(u32)) {
        client::visit_arenas(|arena| {
            if let Some((_, listener)) = arena.listener() {
                device::scan(listener, |slot| each(arena.token(slot).load(Ordering::Relaxed)));
            }
        });
    }

    /// Whether this process shares memory with others, or with itself.
    #[inline]
    pub fn has_arenas(&self) -> bool {
        client::has_arenas()
    }

    /// This process is about to do something by the kernel on a connection with these ports, ours and the other's,
    /// behind `sent` bytes that went by the kernel: the event has its place among those of streams. Told to a few other
    /// processes only. Answers when that was, for [`Self::note_done`].
    pub fn note_by_kernel(&self, ports: [u16; 2], sent: u64) -> u64 {
        let now = weft_device::sys::now_ns();
        visit_told(|arena| arena.by_kernel(arena.side()).note(connection_of(ports), sent, now));
        now
    }

    /// What was begun then has returned.
    pub fn note_done(&self, ports: [u16; 2], begun: u64) {
        let now = weft_device::sys::now_ns();
        visit_told(|arena| arena.by_kernel(arena.side()).note_done(connection_of(ports), begun, now));
    }

    /// When the first of these began at the other end of the connection with these ports, ours and the other's, of
    /// which `received` bytes were received, after the time `after`, that was not told of at `time`, as far as that is
    /// known.
    pub fn first_by_kernel(&self, [ours, others]: [u16; 2], received: u64, after: u64, time: u64) -> Option<u64> {
        let mut first = None;
        client::visit_arenas(|arena| {
            if !is_shared(arena) {
                return;
            }
            let log = arena.by_kernel(1 - arena.side());
            let found = log.first_after(connection_of([others, ours]), received, after, time);
            first = [first, found].into_iter().flatten().min();
        });
        first
    }

    /// The owner of a set's bell is about to sleep on it: from now on senders ring it. Order: arm what is to be waited
    /// for, `lie_down`, [`sleep_barrier`], [`Self::scan_active`] and a look at what was armed, then the kernel's sleep,
    /// then [`Self::get_up`].
    pub fn lie_down(&self, bell: BellAddress) {
        self.set_sleeping(bell, bell.number);
    }

    /// The set's owner is awake: senders only mark streams active.
    pub fn get_up(&self, bell: BellAddress) {
        self.set_sleeping(bell, 0);
    }

    fn set_sleeping(&self, bell: BellAddress, number: u64) {
        if bell.index < weft_wire::stream::arena::SLEEPERS {
            client::visit_arenas(|arena| {
                if let Some((_, listener)) = arena.listener() {
                    device::lie_down(listener, bell.index, number);
                }
            });
        }
    }

    /// The lowest descriptor of ours from `first` to `last`: not for the program to close. Nobody has given it such a
    /// number, so that the kernel would tell it that there is nothing.
    #[inline]
    pub fn first_of_ours(&self, first: RawFd, last: RawFd) -> Option<RawFd> {
        let ours = [
            device::bell::first_of_ours(first, last),
            client::socket_within(first, last),
            far::first_of_ours(first, last),
        ];
        ours.into_iter().flatten().min()
    }

    /// The program is about to put another file in the place of this descriptor of ours, which it may.
    pub fn give_up(&self, descriptor: RawFd) {
        device::bell::give_up(descriptor);
        far::give_up(descriptor);
    }

    /// The program has put other files in the place of the descriptors from `first` to `last`: bells may have been
    /// among them. To be said after it is done; who does it unseen will not be woken.
    pub fn closed(&self, first: RawFd, last: RawFd) {
        device::bell::closed(first, last);
    }

    /// Counters of this process, always at this address; a child of a fork begins anew.
    pub fn counters(&self) -> &'static StreamCounters {
        &page::PAGE.counters
    }
}

/// So many memories are written to for an event by the kernel: a bound of what a call costs in a process that talks to
/// many. Who is not told sees the event all the same, perhaps behind a later one.
const MOST_TOLD: usize = 16;

/// Those with connections come first.
fn visit_told(mut each: impl FnMut(&'static device::Arena)) {
    let mut told = 0;
    for with_connections in [true, false] {
        client::visit_arenas(|arena| {
            let has_connections = arena.held.load(Ordering::Relaxed) > 0;
            if told < MOST_TOLD && has_connections == with_connections && is_shared(arena) {
                each(arena);
                told += 1;
            }
        });
    }
}

/// Whether the process may still be there with which we have this memory: also where the last connection has ended that
/// went by it, what else is done between us has its place there.
fn is_shared(arena: &device::Arena) -> bool {
    arena.held.load(Ordering::Relaxed) > 0 || arena.retired.load(Ordering::Relaxed) == 0
}

/// A connection of this host by the ports of the end that does something and of the other one. Addresses are left out:
/// who is taken for another one is told of too early, and nothing else.
fn connection_of([from, to]: [u16; 2]) -> u32 {
    u32::from(from) << 16 | u32::from(to)
}

/// The sleeper's barrier between arming and the last look. All arenas that we have opened say that publishers fence,
/// too.
pub fn sleep_barrier() {
    // ORDER: stream-sleep, stream-mark
    std::sync::atomic::fence(Ordering::SeqCst);
}
