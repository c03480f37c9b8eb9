//! Shared memory with processes of other jobs on this host: a segment of two for each that something was sent to.
//!
//! Between jobs there is no memory that all can write. Whoever first has something to send makes a segment for the two
//! of them, and offers it over their connection, where each has proven who it is. The other one opens it by process and
//! descriptor and finds there the token that it was told: so they are on one host, whatever hosts are called, and it is
//! the memory that was meant. Then it says that it has taken it, and both send through it and nothing else. What was
//! posted before waits ([`Held`]). Where it cannot be opened all goes over the connection, and nothing has gone any
//! other way.
//!
//! The connection stays: its end is how the end of the other process is known.

use super::Way;
use super::held::Held;
use super::upper::Upper;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use weft_device::shm::{Segment, ShmDevice};
use weft_device::tcp::Identity;
use weft_device::{Device, NoMemory, Packet, PeerFault, Posted, Sink, sys};
use weft_wire::cell::Head;
use weft_wire::share::Share;

/// A segment that we have offered, until that is answered.
pub(super) struct Offer {
    segment: Segment,
    _descriptor: Descriptor,
    /// In memory of our own, which who takes the segment copies as it would a long message.
    _token: Box<[u64; 2]>,
}

/// The descriptor of a segment that is offered, as long as it is that: some programs close all that they do not know.
struct Descriptor {
    descriptor: Option<OwnedFd>,
    identity: Option<sys::Identity>,
}

impl Drop for Descriptor {
    /// What is not ours any more stays open.
    fn drop(&mut self) {
        let Some(descriptor) = self.descriptor.take() else { return };
        if self.identity.is_none() || sys::identity(descriptor.as_fd()) != self.identity {
            let _ = descriptor.into_raw_fd();
        }
    }
}

/// A process of another job.
pub(super) struct Stranger {
    pub(super) them: Identity,
    pub(super) held: Held,
    pub(super) offer: Option<Offer>,
    /// How packets go there as soon as nothing is held any more.
    pub(super) way: Option<Way>,
}

/// Memory that is shared with a process of another job.
pub(super) struct Two {
    pub(super) rank: u32,
    me: u32,
    pub(super) shm: ShmDevice,
    /// The other process has left, and what it has sent was taken.
    pub(super) has_left: bool,
}

impl Two {
    /// The number of the other process in it.
    #[inline]
    pub fn them(&self) -> u32 {
        1 - self.me
    }
}

/// What has become of a segment that is gone.
#[derive(Clone, Copy, Default)]
pub(super) struct Posts {
    pub packets: u64,
    pub bytes: u64,
    pub wakeups: u64,
}

#[derive(Default)]
pub(super) struct Twos {
    /// Who we are for others, once we are open to them.
    me: Option<Identity>,
    allowed: bool,
    /// The number of the first process of another job.
    first: u32,
    pub(super) strangers: Vec<Stranger>,
    pub(super) twos: Vec<Two>,
    /// Of those something is held.
    pub(super) waiting: Vec<u32>,
    /// What connections had no room for.
    pub(super) unsaid: Vec<(u32, Share)>,
    /// Some have left whose memory is still in use.
    pub(super) leaving: bool,
    /// The bell that this process sleeps on.
    bell: u64,
    pub(super) news: News,
    pub(super) gone: Posts,
}

/// What has come over connections and concerns shared memory.
#[derive(Default)]
pub(super) struct News {
    pub(super) said: Vec<(u32, Share)>,
    pub(super) lost: Vec<PeerFault>,
}

impl Twos {
    /// From now on there may be processes of other jobs, the first of which has the number `first`. They are `allowed`
    /// to share memory with us.
    pub fn open(&mut self, me: Identity, first: u32, bell: u64, allowed: bool) {
        (self.me, self.first, self.bell, self.allowed) = (Some(me), first, bell, allowed);
    }

    /// The next process of another job, and how packets go there at first. It may be on this host if it is `near`.
    pub fn add(&mut self, them: Identity, near: bool) -> Way {
        self.strangers.push(Stranger { them, held: Held::default(), offer: None, way: None });
        if near && self.allowed { Way::Unmet } else { Way::Tcp }
    }

    pub fn stranger(&mut self, rank: u32) -> Option<&mut Stranger> {
        self.strangers.get_mut((rank as usize).checked_sub(self.first as usize)?)
    }

    #[inline]
    pub fn at(&mut self, index: u32) -> &mut Two {
        &mut self.twos[index as usize]
    }

    /// Of the two the one whose offer counts where both make one.
    fn leads(&self, them: Identity) -> bool {
        self.me.is_some_and(|me| me < them)
    }

    /// Keeps a packet for a process that is not met yet. True if shared memory is to be offered there.
    pub fn keep(&mut self, to: u32, head: Head, inline: &[u8], bulk: Option<&[u8]>) -> (Posted, bool) {
        let Some(stranger) = self.stranger(to) else { return (Posted::Full, false) };
        let posted = stranger.held.keep(head, inline, bulk);
        let unasked = stranger.offer.is_none() && stranger.way.is_none();
        if !self.waiting.contains(&to) {
            self.waiting.push(to);
        }
        (posted, unasked)
    }

    /// Makes memory for a process and us; what it is to be told, or `None` where there is no way but the connection.
    pub fn offer(&mut self, to: u32) -> Option<Share> {
        let made = Offer::new();
        let stranger = self.stranger(to)?;
        match made {
            Some((offer, said)) => {
                stranger.offer = Some(offer);
                Some(said)
            }
            None => {
                stranger.way = Some(Way::Tcp);
                None
            }
        }
    }

    /// Takes what another process shows, which goes there by `way` so far; the answer, if there is one.
    pub fn hear_offer(
        &mut self,
        upper: &mut impl Upper,
        from: u32,
        way: Way,
        said: &Share,
    ) -> Result<Option<Share>, &'static str> {
        let them = self.stranger(from).ok_or("shared memory within a job")?.them;
        if let Way::Two(_) = way {
            return Err("shared memory where there is some");
        }
        let leads = self.leads(them);
        let stranger = self.stranger(from).ok_or("shared memory within a job")?;
        if stranger.way.is_some_and(|way| way != Way::Tcp) {
            return Err("shared memory where there is some");
        }
        if leads && stranger.offer.is_some() {
            return Ok(None);
        }
        stranger.offer = None;
        if way == Way::Tcp || stranger.way.is_some() {
            return Ok(Some(Share::NotTaken));
        }
        let answer = match take(said) {
            Some((shm, pid)) => {
                self.begin(upper, from, 1, shm, pid);
                Share::Taken { copies: pid.is_some() }
            }
            None => {
                stranger.way = Some(Way::Tcp);
                Share::NotTaken
            }
        };
        Ok(Some(answer))
    }

    /// Our offer is answered.
    pub fn hear_answer(&mut self, upper: &mut impl Upper, from: u32, taken: Option<bool>) -> Result<(), &'static str> {
        let stranger = self.stranger(from).ok_or("shared memory within a job")?;
        let offer = stranger.offer.take().ok_or("an answer to no offer")?;
        match taken.map(|copies| (ShmDevice::join(offer.segment, 0), copies)) {
            Some((Ok(shm), copies)) => {
                let pid = shm.copy_slots().pid(1).filter(|pid| copies && is_ours(*pid));
                self.begin(upper, from, 0, shm, pid);
            }
            Some((Err(_), _)) => return Err("a segment that cannot be joined"),
            None => stranger.way = Some(Way::Tcp),
        }
        Ok(())
    }

    /// From now on we share memory with a process; with `pid`, its memory can be copied.
    fn begin(&mut self, upper: &mut impl Upper, rank: u32, me: u32, mut shm: ShmDevice, pid: Option<i32>) {
        shm.sleep_on_bell(self.bell);
        let slots = pid.map(|pid| (shm.copy_slots(), 1 - me, pid));
        upper.share_copies(rank, slots);
        let way = Way::Two(self.twos.len() as u32);
        self.twos.push(Two { rank, me, shm, has_left: false });
        if let Some(stranger) = self.stranger(rank) {
            stranger.way = Some(way);
        }
        if !self.waiting.contains(&rank) {
            self.waiting.push(rank);
        }
    }

    #[inline]
    pub fn poll(&mut self, upper: &mut impl Upper) -> bool {
        let mut any = false;
        for two in &mut self.twos {
            any |= two.shm.poll(&mut Renamed { sink: upper, rank: two.rank });
        }
        any
    }

    /// Whether something is to be done although nothing has come over connections.
    #[inline]
    pub fn has_work(&self) -> bool {
        !self.waiting.is_empty() || self.leaving || !self.unsaid.is_empty()
    }

    /// Whether packets for a process wait until it is known how they go.
    pub fn holds(&self, rank: u32) -> bool {
        let at = (rank as usize).checked_sub(self.first as usize);
        at.and_then(|at| self.strangers.get(at)).is_some_and(|stranger| !stranger.held.is_empty())
    }

    /// Whether packets wait until it is known how they go, for somebody whom `ended` does not name.
    pub fn has_held(&self, ended: impl Fn(u32) -> bool) -> bool {
        self.waiting.iter().any(|rank| !ended(*rank))
    }

    pub fn arm(&mut self) -> bool {
        self.twos.iter_mut().fold(true, |quiet, two| quiet & two.shm.arm())
    }

    pub fn arm_beside(&mut self) -> bool {
        self.twos.iter_mut().fold(true, |quiet, two| quiet & two.shm.arm_beside())
    }

    pub fn disarm(&mut self) {
        self.twos.iter_mut().for_each(|two| two.shm.disarm());
    }

    pub fn take_refusal(&mut self) -> Option<NoMemory> {
        self.twos.iter_mut().find_map(|two| Some(NoMemory { peer: two.rank, ..two.shm.take_refusal()? }))
    }

    pub fn has_left(&self, index: u32) -> bool {
        self.twos[index as usize].has_left
    }

    /// What went through shared memory with other jobs.
    pub fn posts(&self) -> Posts {
        self.twos.iter().fold(self.gone, |sum, two| {
            let (packets, bytes) = two.shm.posted();
            let Posts { packets: before, bytes: bytes_before, wakeups } = sum;
            Posts { packets: before + packets, bytes: bytes_before + bytes, wakeups: wakeups + two.shm.wakeups }
        })
    }
}

impl Offer {
    /// `None` where there is no memory, no descriptor or no random number for it.
    fn new() -> Option<(Self, Share)> {
        let random = weft_device::kernel::true_random;
        let token = Box::new([random()?, random()?]);
        let (segment, descriptor) = Segment::create_for_two(*token).ok()?;
        let said = Share::Offer {
            pid: std::process::id(),
            namespace: sys::pid_namespace()?,
            descriptor: descriptor.as_raw_fd() as u32,
            token: *token,
            address: token.as_ptr() as u64,
        };
        let identity = sys::identity(descriptor.as_fd());
        let _descriptor = Descriptor { descriptor: Some(descriptor), identity };
        Some((Self { segment, _descriptor, _token: token }, said))
    }
}

/// Whether a process is of our user. For root the kernel would allow more.
fn is_ours(pid: i32) -> bool {
    let uid = |path: &str| std::fs::metadata(path).ok().map(|entry| entry.uid());
    uid(&format!("/proc/{pid}")).is_some_and(|theirs| Some(theirs) == uid("/proc/self"))
}

/// Whether a process is in our network namespace: it hears our bell, and we its.
fn is_in_our_network(pid: i32) -> bool {
    let network = |process: &str| std::fs::metadata(format!("/proc/{process}/ns/net")).ok().map(|entry| entry.ino());
    network(&pid.to_string()).is_some_and(|theirs| Some(theirs) == network("self"))
}

/// Opens and joins what is offered; and the process that offers it, if its memory can be copied.
fn take(said: &Share) -> Option<(ShmDevice, Option<i32>)> {
    let Share::Offer { pid, namespace, descriptor, token, address } = *said else { return None };
    if sys::pid_namespace()? != namespace || !is_ours(pid as i32) || !is_in_our_network(pid as i32) {
        return None;
    }
    let segment = Segment::open_of_two(pid as i32, descriptor as i32, token).ok()?;
    let mut copied = [0u64; 2];
    // SAFETY: the array is as long. The address is a claim: the kernel refuses what is not mapped there.
    let copies =
        unsafe { sys::copy_from_process(pid as i32, address, copied.as_mut_ptr().cast(), size_of_val(&copied)) };
    let copies = copies.is_ok() && copied == token;
    Some((ShmDevice::join(segment, 1).ok()?, copies.then_some(pid as i32)))
}

/// Hands packets of the other one of two on as those of a process of another job.
pub(super) struct Renamed<'a, S> {
    pub(super) sink: &'a mut S,
    pub(super) rank: u32,
}

impl<S: Sink> Sink for Renamed<'_, S> {
    #[inline]
    fn handle_packet(&mut self, mut packet: Packet<'_>) -> Result<(), &'static str> {
        packet.from = self.rank;
        self.sink.handle_packet(packet)
    }

    fn handle_fault(&mut self, fault: PeerFault) {
        self.sink.handle_fault(match fault {
            PeerFault::Nonsense { what, .. } => PeerFault::Nonsense { peer: self.rank, what },
            PeerFault::CutOff { .. } => PeerFault::CutOff { peer: self.rank },
            lost => lost,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_meant_is_taken() {
        let (offer, said) = Offer::new().expect("memory");
        let Share::Offer { pid, namespace, descriptor, token, address } = said else { panic!("an offer") };
        let (_, copies) = take(&said).expect("memory of our own");
        assert!(copies.is_some() || sys::attach_works().is_err());
        let other = std::fs::File::open("/proc/self/exe").expect("a file");
        let wrong = [
            Share::Offer { pid: 1 << 30, namespace, descriptor, token, address },
            Share::Offer { pid: u32::MAX, namespace, descriptor, token, address },
            Share::Offer { pid, namespace: namespace ^ 1, descriptor, token, address },
            Share::Offer { pid, namespace, descriptor: other.as_raw_fd() as u32, token, address },
            Share::Offer { pid, namespace, descriptor: u32::MAX, token, address },
            Share::Offer { pid, namespace, descriptor, token: [token[0], !token[1]], address },
            Share::NotTaken,
        ];
        assert!(wrong.iter().all(|said| take(said).is_none()));
        let elsewhere = Share::Offer { pid, namespace, descriptor, token, address: 8 };
        assert!(take(&elsewhere).expect("the same memory").1.is_none(), "memory that cannot be copied");
        drop(offer);
        assert!(take(&said).is_none(), "it is no longer open");
    }
}
