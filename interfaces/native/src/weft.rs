//! The safe Rust interface: everything that a process does, as methods of its part in the job.

mod processes;

use crate::active::{self, HandlerCall};
use crate::begun;
use crate::begun_desk::{DoneMessage, RequestNumber};
use crate::desk::FABRIC;
use crate::error::Result;
use crate::group_desk::{GroupNews, GroupNumber, JoinRules};
use crate::groups;
use crate::join;
use crate::known::{self, PortNumber};
use crate::memory::{self, OpenMemory, RemoteMemory};
use crate::message::{self, Pick};
use crate::names;
use crate::port;
use crate::raw;
use crate::received::ReceivedMessage;
use crate::select::{self, Happened, MaySleep, Polled};
use std::marker::PhantomData;
use std::os::fd::RawFd;
use std::time::Duration;
use weft_ports::Peer;

/// One thread calls: no lock is taken. The handle cannot go to another one.
pub struct Single(PhantomData<*const ()>);

/// Several threads call at the same time.
pub struct Threaded(());

/// This process's part in its job. When it is dropped, the process leaves.
pub struct Weft<K = Single> {
    kind: PhantomData<K>,
}

impl Weft<Single> {
    /// Joins the job that started this process, or makes one of this process alone.
    ///
    /// # Errors
    /// Why it cannot join; it has joined before.
    pub fn join() -> Result<Self> {
        join::join(false).map(|()| Self { kind: PhantomData })
    }
}

impl Weft<Threaded> {
    /// The same, where several threads are to call at the same time.
    ///
    /// # Errors
    /// As [`Weft::join`].
    pub fn join_threaded() -> Result<Self> {
        join::join(true).map(|()| Self { kind: PhantomData })
    }
}

impl<K> Weft<K> {
    /// Leaves the job, once everything has left that was sent. Dropping does the same.
    pub fn leave(self) {}

    /// Takes what has come, and calls its handlers; waits for nothing.
    ///
    /// # Errors
    /// The thread is inside a handler.
    pub fn poll(&self) -> Result<()> {
        known::allowed()?;
        FABRIC.poll();
        Ok(())
    }

    /// Opens the port of this number, below 16777216. Messages for it may have come before.
    ///
    /// # Errors
    /// The number is too high, or was opened before.
    pub fn open_port(&self, number: u32) -> Result<PortNumber> {
        port::open_numbered(Some(number))
    }

    /// Opens a port of a number that nobody else in this process uses.
    ///
    /// # Errors
    /// The thread is inside a handler.
    pub fn open_any_port(&self) -> Result<PortNumber> {
        port::open_numbered(None)
    }

    /// Closes a port: what has come and comes there is thrown away, and who waits there is told.
    ///
    /// # Errors
    /// It is not open.
    pub fn close_port(&self, port: PortNumber) -> Result<()> {
        port::close(port)
    }

    /// Sends; returns when `bytes` may be used again, which may be before the receiver has asked for them.
    ///
    /// # Errors
    /// There is no such process, it is gone, or the tag is negative.
    #[inline]
    pub fn send(&self, to: Peer, port: PortNumber, tag: i32, bytes: &[u8]) -> Result<()> {
        message::send(to, port, tag, bytes)
    }

    /// Sends bytes that are given away, and waits for nobody.
    ///
    /// # Errors
    /// There is no such process, or the tag is negative.
    pub fn send_owned(&self, to: Peer, port: PortNumber, tag: i32, bytes: impl Into<Box<[u8]>>) -> Result<()> {
        message::send_copy(to, port, tag, bytes.into())
    }

    /// Starts to send bytes, which come back when that is over ([`Self::wait`], [`Self::test`]). It moves where this
    /// process waits or polls.
    ///
    /// ```
    /// use weft_native::{Pick, Weft};
    ///
    /// let weft = Weft::join()?;
    /// let port = weft.open_port(7)?;
    /// let coming = weft.begin_receive(Pick::port(port).tagged(2), vec![0; 1 << 20])?;
    /// let leaving = weft.begin_send(weft.me(), port, 2, vec![7; 1 << 20])?;
    /// let came = weft.wait(coming)?;
    /// assert_eq!((came.message.length, came.bytes[0]), (1 << 20, 7));
    /// assert_eq!(weft.wait_any(&[leaving], None)?, Some(0));
    /// assert_eq!(weft.wait(leaving)?.bytes.len(), 1 << 20);
    /// # Ok::<(), weft_native::NativeError>(())
    /// ```
    ///
    /// # Errors
    /// There is no such process, or the tag is negative.
    pub fn begin_send(&self, to: Peer, port: PortNumber, tag: i32, bytes: Vec<u8>) -> Result<RequestNumber> {
        begun::send(to, port, tag, bytes)
    }

    /// Starts to receive a message into `room`, which comes back with it.
    ///
    /// # Errors
    /// The port is not open, or there is no such process.
    pub fn begin_receive(&self, pick: Pick, room: Vec<u8>) -> Result<RequestNumber> {
        begun::receive(pick, room)
    }

    /// What became of a message that was started, if it is over. It is forgotten then, after an error, too.
    ///
    /// # Errors
    /// There is no such message; the other process is gone, or the port was closed.
    pub fn test(&self, request: RequestNumber) -> Result<Option<DoneMessage>> {
        begun::test(request)
    }

    /// The same, once it is over.
    ///
    /// # Errors
    /// As [`Self::test`].
    pub fn wait(&self, request: RequestNumber) -> Result<DoneMessage> {
        begun::wait(request)
    }

    /// Waits until one of several messages is over, at most for `patience`: the index of the first that is. What became
    /// of it stays to be asked for.
    ///
    /// # Errors
    /// None is named, or there is no such message.
    pub fn wait_any(&self, requests: &[RequestNumber], patience: Option<Duration>) -> Result<Option<usize>> {
        begun::wait_any(requests, patience)
    }

    /// Takes a receive back that no message has met yet, and forgets it; false where it is to be waited for, as what is
    /// sent is always.
    ///
    /// # Errors
    /// There is no such message.
    pub fn cancel(&self, request: RequestNumber) -> Result<bool> {
        begun::cancel(request)
    }

    /// Receives a message into `room`. Of one that is longer than that the beginning is there.
    ///
    /// # Errors
    /// The port is not open, or the only process that it may come from is gone.
    #[inline]
    pub fn receive(&self, pick: Pick, room: &mut [u8]) -> Result<ReceivedMessage> {
        message::receive(pick, room)
    }

    /// Receives a message that one of several choices accepts; the first of them that has one gets it.
    ///
    /// # Errors
    /// As [`Self::receive`].
    pub fn receive_first(&self, picks: &[Pick], room: &mut [u8]) -> Result<ReceivedMessage> {
        message::receive_first(picks, room)
    }

    /// Receives a message of any length.
    ///
    /// # Errors
    /// As [`Self::receive`].
    pub fn receive_whole(&self, picks: &[Pick]) -> Result<(ReceivedMessage, Vec<u8>)> {
        message::receive_whole(picks)
    }

    /// The message that one of these choices would receive, and which, if one has come.
    ///
    /// # Errors
    /// As [`Self::receive`].
    pub fn probe(&self, picks: &[Pick]) -> Result<Option<(usize, ReceivedMessage)>> {
        message::probe(picks)
    }

    /// Opens a port with a name, by which any process of this user on this host, and of this job on any host, finds it
    /// ([`Self::find_port`]).
    ///
    /// # Errors
    /// The name is taken, or none.
    pub fn open_named_port(&self, name: &str) -> Result<PortNumber> {
        names::open_named(name)
    }

    /// By what a named port is found on other hosts, too. It is a secret as far as who knows it may send messages here.
    ///
    /// # Errors
    /// The port has no name.
    pub fn address_of(&self, port: PortNumber) -> Result<String> {
        names::address_of(port)
    }

    /// Finds a port by its name or address, and waits for it to be opened, at most for `patience`. Its owner must
    /// take part meanwhile: it answers where it waits or polls.
    ///
    /// # Errors
    /// Nobody has opened it in time, or its owner cannot be reached.
    pub fn find_port(&self, name: &str, patience: Option<Duration>) -> Result<(Peer, PortNumber)> {
        names::find(name, patience)
    }

    /// Waits for the first message that one of the choices accepts, or descriptor that is ready, at most for
    /// `patience`.
    ///
    /// # Errors
    /// A choice names a port that is not open or a process that is none; a descriptor cannot be waited for.
    pub fn select(&self, picks: &[Pick], descriptors: &mut [Polled], patience: Option<Duration>) -> Result<Happened> {
        select::select(picks, descriptors, patience)
    }

    /// A descriptor that can be read when something comes, as long as it is armed ([`Self::arm`]). It stays the same.
    ///
    /// # Errors
    /// Those of the system.
    pub fn descriptor(&self) -> Result<RawFd> {
        select::descriptor()
    }

    /// Arms the descriptor: to be called before an event loop sleeps on it, after the last look for messages.
    ///
    /// # Errors
    /// As [`Self::descriptor`].
    pub fn arm(&self) -> Result<MaySleep> {
        select::arm()
    }

    /// Sends bytes to a process, which receives them by [`Self::raw_receive`]; returns when they have left.
    ///
    /// # Errors
    /// There is no such process besides this one, or it is gone.
    pub fn raw_send(&self, to: Peer, bytes: &[u8]) -> Result<()> {
        raw::send(to, bytes)
    }

    /// Receives the next bytes of a process, as many as the room has.
    ///
    /// # Errors
    /// There is no such process besides this one, or it is gone.
    pub fn raw_receive(&self, from: Peer, room: &mut [u8]) -> Result<()> {
        raw::receive(from, room)
    }

    /// From now on messages that name this number, below [`HANDLERS`], call `what`, in the place of the handler before.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use weft_native::Weft;
    ///
    /// static SUM: AtomicU64 = AtomicU64::new(0);
    ///
    /// let weft = Weft::join()?;
    /// weft.handler(0, |call| {
    ///     let sum = call.arguments()[0] + call.bytes().iter().map(|byte| u64::from(*byte)).sum::<u64>();
    ///     call.reply(1, &[sum], b"").expect("a reply to a request");
    /// })?;
    /// weft.handler(1, |call| SUM.store(call.arguments()[0], Ordering::Relaxed))?;
    /// weft.call(weft.me(), 0, &[100], &[1, 2, 3])?;
    /// while SUM.load(Ordering::Relaxed) == 0 {
    ///     weft.poll()?;
    /// }
    /// assert_eq!(SUM.load(Ordering::Relaxed), 106);
    /// # Ok::<(), weft_native::NativeError>(())
    /// ```
    ///
    /// # Errors
    /// The number is too high.
    pub fn handler(&self, number: u16, what: impl FnMut(HandlerCall<'_>) + Send + 'static) -> Result<()> {
        active::set_handler(number, what)
    }

    /// From now on there is no handler of this number.
    ///
    /// # Errors
    /// The number is too high.
    pub fn remove_handler(&self, number: u16) -> Result<()> {
        active::remove_handler(number)
    }

    /// Calls a handler of a process, with up to [`CALL_ARGUMENTS`] numbers and [`CALL_BYTES`] bytes. Returns when the
    /// message has left.
    ///
    /// # Errors
    /// It is too long, there is no such process, or it is gone.
    #[inline]
    pub fn call(&self, to: Peer, handler: u16, arguments: &[u64], bytes: &[u8]) -> Result<()> {
        active::call(to, handler, arguments, bytes)
    }

    /// How many of this process's calls had no handler there.
    ///
    /// # Errors
    /// The thread is inside a handler.
    pub fn unhandled(&self) -> Result<u64> {
        active::unhandled()
    }

    /// Opens memory of so many bytes, zero at the start, which others use as long as it lives.
    ///
    /// ```
    /// use weft_native::{RemoteMemory, Weft};
    ///
    /// let weft = Weft::join()?;
    /// let memory = weft.open_memory(1 << 20)?;
    /// // These words travel in a message.
    /// let words = memory.remote().words();
    ///
    /// let there = RemoteMemory::from_words(words);
    /// weft.put(weft.me(), there, 4096, b"bytes")?;
    /// let mut room = [0; 5];
    /// memory.read(4096, &mut room)?;
    /// assert_eq!(&room, b"bytes");
    /// assert!(weft.put(weft.me(), there, (1 << 20) - 4, b"bytes").is_err());
    /// # Ok::<(), weft_native::NativeError>(())
    /// ```
    ///
    /// # Errors
    /// There is no such memory.
    pub fn open_memory(&self, bytes: usize) -> Result<OpenMemory> {
        memory::open(bytes)
    }

    /// Writes bytes into memory of a process; returns when they are there.
    ///
    /// # Errors
    /// The memory ends before that, was given up, or its owner is gone.
    pub fn put(&self, owner: Peer, memory: RemoteMemory, offset: u64, bytes: &[u8]) -> Result<()> {
        memory::put(owner, memory, offset, bytes)
    }

    /// Reads bytes out of memory of a process.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn get(&self, owner: Peer, memory: RemoteMemory, offset: u64, room: &mut [u8]) -> Result<()> {
        memory::get(owner, memory, offset, room)
    }

    /// Joins the group of this name, with rules that all its members have alike, and waits until this process is a
    /// member. The others take part meanwhile: they let it in where they wait or poll.
    ///
    /// ```
    /// use weft_native::{GroupNews, JoinRules, Weft};
    ///
    /// let weft = Weft::join()?; let group = weft.join_group("board", JoinRules::default())?;
    /// weft.send_to_group(group, b"a note")?; assert_eq!(weft.receive_from_group(group, None)?,
    /// Some(GroupNews::Members(vec![weft.me()]))); let Some(GroupNews::Message { from, bytes, .. }) =
    /// weft.receive_from_group(group, None)? else { panic!("a note") }; assert_eq!((from, &bytes[..]), (weft.me(),
    /// &b"a note"[..])); weft.leave_group(group)?;
    /// # Ok::<(), weft_native::NativeError>(())
    /// ```
    ///
    /// # Errors
    /// The name is empty or too long, or this process is a member.
    pub fn join_group(&self, name: &str, rules: JoinRules) -> Result<GroupNumber> {
        groups::join(name, rules)
    }

    /// Sends to all members, this process among them; returns when the message is on its way to get its place.
    ///
    /// # Errors
    /// This process is no member, or the message is too long.
    pub fn send_to_group(&self, group: GroupNumber, bytes: &[u8]) -> Result<()> {
        groups::send(group, bytes.into())
    }

    /// What happens next in a group, at most after `patience`.
    ///
    /// # Errors
    /// This process is no member, and has received all before that.
    pub fn receive_from_group(&self, group: GroupNumber, patience: Option<Duration>) -> Result<Option<GroupNews>> {
        groups::receive(group, patience, |news| (news.clone(), true))
    }

    /// The members in the order of joining, as this process has last received, or may receive next.
    ///
    /// # Errors
    /// This process has not joined it.
    pub fn members_of_group(&self, group: GroupNumber) -> Result<Vec<Peer>> {
        groups::members(group)
    }

    /// Leaves a group once what this process has sent has its place; what was not received is thrown away.
    ///
    /// # Errors
    /// This process has not joined it.
    pub fn leave_group(&self, group: GroupNumber) -> Result<()> {
        groups::leave(group)
    }
}

impl<K> Drop for Weft<K> {
    fn drop(&mut self) {
        // It has left already where C code of the process did so.
        let _ = join::leave();
    }
}
