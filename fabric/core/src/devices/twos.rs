//! Shared memory with processes of other jobs on this host: a segment of two for each that something was sent to.
//!
//! Between jobs there is no memory that all can write. Whoever first has something to send makes a segment for the two
//! of them, and offers it over their connection, where each has proven who it is. The other one opens it by process and
//! descriptor and finds there the token that it was told: so they are on one host, whatever hosts are called, and it is
//! the memory that was meant. Then it says that it has taken it, and both send through it and nothing else. What was
//! posted before waits ([`super::held`]). Where it cannot be opened all goes over the connection, and nothing has gone
//! any other way.
//!
//! The connection stays: its end is how the end of the other process is known.

use super::{Above, NamedRanks};
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use weft_device::shm::{Segment, ShmDevice};
use weft_device::tcp::PeerIdentity;
use weft_device::{Capabilities, Device, NoMemory, PeerFault, Posted, Sink, sys};
use weft_wire::cell::Head;
use weft_wire::segment::RING_CELLS;
use weft_wire::share::Share;

/// A segment that we have offered, until that is answered.
pub(super) struct SegmentOffer {
    segment: Segment,
    _descriptor: OfferedDescriptor,
    /// In memory of our own, which who takes the segment copies as it would a long message.
    _token: Box<[u64; 2]>,
}

/// The descriptor of a segment that is offered, as long as it is that: some programs close all that they do not know.
struct OfferedDescriptor {
    descriptor: Option<OwnedFd>,
    identity: Option<sys::FileIdentity>,
}

impl Drop for OfferedDescriptor {
    /// What is not ours any more stays open.
    fn drop(&mut self) {
        let Some(descriptor) = self.descriptor.take() else { return };
        if self.identity.is_none() || sys::identity(descriptor.as_fd()) != self.identity {
            let _ = descriptor.into_raw_fd();
        }
    }
}

/// How packets go to a process that was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetBy {
    Memory,
    Connection,
}

/// A process of another job.
pub(super) struct Stranger {
    them: PeerIdentity,
    offer: Option<SegmentOffer>,
    /// How packets go there as soon as nothing is held any more.
    agreed: Option<MetBy>,
    two: Option<Box<Two>>,
}

/// Memory that is shared with a process of another job.
struct Two {
    me: u32,
    shm: ShmDevice,
    /// The other process has left, and what it has sent was taken.
    has_left: bool,
}

impl Two {
    /// The number of the other process in it.
    #[inline]
    fn them(&self) -> u32 {
        1 - self.me
    }
}

/// What was posted.
#[derive(Clone, Copy, Default)]
pub(super) struct Posts {
    pub packets: u64,
    pub bytes: u64,
    pub wakeups: u64,
}

#[derive(Default)]
pub(super) struct Twos {
    /// Who we are for others, once we are open to them.
    me: Option<PeerIdentity>,
    allowed: bool,
    /// The number of the first process of another job.
    first: u32,
    strangers: Vec<Stranger>,
    /// Those with whom we share memory.
    shared: Vec<u32>,
    /// What connections had no room for.
    pub(super) unsaid: Vec<(u32, Share)>,
    /// Some have left whose memory is still in use.
    pub(super) leaving: bool,
    /// The bell that this process sleeps on.
    bell: u64,
    pub(super) news: News,
    /// Through memory that is gone.
    gone: Posts,
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
    pub fn open(&mut self, me: PeerIdentity, first: u32, bell: u64, allowed: bool) {
        (self.me, self.first, self.bell, self.allowed) = (Some(me), first, bell, allowed);
    }

    /// The next process of another job, which may be on this host if it is `near`. Whether it is to be met: otherwise
    /// packets go over the connection.
    pub fn add(&mut self, them: PeerIdentity, near: bool) -> bool {
        self.strangers.push(Stranger { them, offer: None, agreed: None, two: None });
        near && self.allowed
    }

    fn at(&self, rank: u32) -> Option<usize> {
        (rank as usize).checked_sub(self.first as usize)
    }

    fn stranger(&mut self, rank: u32) -> Option<&mut Stranger> {
        let at = self.at(rank)?;
        self.strangers.get_mut(at)
    }

    #[inline]
    fn two(&mut self, rank: u32) -> Option<&mut Two> {
        self.stranger(rank)?.two.as_deref_mut()
    }

    /// How packets go to a process as soon as nothing is held for it any more, once that is known.
    pub fn agreed(&mut self, rank: u32) -> Option<MetBy> {
        self.stranger(rank)?.agreed
    }

    /// Those with whom we share memory.
    pub fn shared(&self) -> &[u32] {
        &self.shared
    }

    /// Of the two the one whose offer counts where both make one.
    fn leads(&self, them: PeerIdentity) -> bool {
        self.me.is_some_and(|me| me < them)
    }

    /// Makes memory for a process and us; what it is to be told, or `None` where there is no way but the connection, or
    /// there is no need.
    pub fn offer(&mut self, to: u32) -> Option<Share> {
        let stranger = self.stranger(to).filter(|stranger| stranger.offer.is_none() && stranger.agreed.is_none())?;
        match SegmentOffer::new() {
            Some((offer, said)) => {
                stranger.offer = Some(offer);
                Some(said)
            }
            None => {
                stranger.agreed = Some(MetBy::Connection);
                None
            }
        }
    }

    /// Takes what another process shows, to which packets go so far as `now` says; the answer, if there is one.
    pub fn hear_offer(
        &mut self,
        above: &mut impl Above,
        from: u32,
        now: Option<MetBy>,
        said: &Share,
    ) -> Result<Option<Share>, &'static str> {
        let them = self.stranger(from).ok_or("shared memory within a job")?.them;
        let leads = self.leads(them);
        let stranger = self.stranger(from).ok_or("shared memory within a job")?;
        if now == Some(MetBy::Memory) || stranger.agreed == Some(MetBy::Memory) {
            return Err("shared memory where there is some");
        }
        if leads && stranger.offer.is_some() {
            return Ok(None);
        }
        stranger.offer = None;
        if now.is_some() || stranger.agreed.is_some() {
            return Ok(Some(Share::NotTaken));
        }
        let answer = match take(said) {
            Some((shm, pid)) => {
                self.begin(above, from, 1, shm, pid);
                Share::Taken { copies: pid.is_some() }
            }
            None => {
                stranger.agreed = Some(MetBy::Connection);
                Share::NotTaken
            }
        };
        Ok(Some(answer))
    }

    /// Our offer is answered.
    pub fn hear_answer(&mut self, above: &mut impl Above, from: u32, taken: Option<bool>) -> Result<(), &'static str> {
        let stranger = self.stranger(from).ok_or("shared memory within a job")?;
        let offer = stranger.offer.take().ok_or("an answer to no offer")?;
        match taken.map(|copies| (ShmDevice::join(offer.segment, 0), copies)) {
            Some((Ok(shm), copies)) => {
                let pid = shm.copy_slots().pid(1).filter(|pid| copies && is_ours(*pid));
                self.begin(above, from, 0, shm, pid);
            }
            Some((Err(_), _)) => return Err("a segment that cannot be joined"),
            None => stranger.agreed = Some(MetBy::Connection),
        }
        Ok(())
    }

    /// From now on we share memory with a process; with `pid`, its memory can be copied.
    fn begin(&mut self, above: &mut impl Above, rank: u32, me: u32, mut shm: ShmDevice, pid: Option<i32>) {
        shm.sleep_on_bell(self.bell);
        let slots = pid.map(|pid| (shm.copy_slots(), 1 - me, pid));
        above.share_copies(rank, slots);
        let Some(stranger) = self.stranger(rank) else { return };
        stranger.agreed = Some(MetBy::Memory);
        stranger.two = Some(Box::new(Two { me, shm, has_left: false }));
        self.shared.push(rank);
    }

    /// Takes what somebody who has ended has sent.
    pub fn take_last(&mut self, above: &mut impl Above, rank: u32) {
        let Some(two) = self.two(rank) else { return };
        // The ring is filled no more; who fills it all the same is not waited for.
        for _ in 0..2 * RING_CELLS {
            if !two.shm.poll(&mut NamedRanks { sink: above, ranks: &[rank; 2] }) {
                break;
            }
        }
        two.has_left = true;
    }

    /// The memory that is shared with a process goes; what follows is the connection's. False if it is none of another
    /// job.
    pub fn leave(&mut self, rank: u32) -> bool {
        let Some(stranger) = self.stranger(rank) else { return false };
        (stranger.offer, stranger.agreed) = (None, Some(MetBy::Connection));
        if let Some(two) = stranger.two.take() {
            self.gone = self.gone.with(&two);
        }
        self.shared.retain(|other| *other != rank);
        self.unsaid.retain(|(other, _)| *other != rank);
        true
    }

    /// What went through shared memory with other jobs.
    pub fn posts(&self) -> Posts {
        self.twos().fold(self.gone, |sum, two| sum.with(two))
    }

    fn twos(&self) -> impl Iterator<Item = &Two> {
        let of = |rank: &u32| self.strangers[self.at(*rank)?].two.as_deref();
        self.shared.iter().filter_map(of)
    }

    fn each(&mut self, mut f: impl FnMut(u32, &mut Two) -> bool) -> bool {
        let Self { strangers, shared, first, .. } = self;
        let mut all = |rank: &u32| strangers[(*rank - *first) as usize].two.as_mut().is_some_and(|two| f(*rank, two));
        shared.iter().fold(false, |any, rank| all(rank) | any)
    }
}

impl Posts {
    fn with(self, two: &Two) -> Self {
        let (packets, bytes) = two.shm.posted();
        Self { packets: self.packets + packets, bytes: self.bytes + bytes, wakeups: self.wakeups + two.shm.wakeups }
    }
}

impl Device for Twos {
    const CAPABILITIES: Capabilities = ShmDevice::CAPABILITIES;

    #[inline]
    unsafe fn post_short(&mut self, to: u32, head: Head, data: *const u8, length: usize) -> Posted {
        let Some(two) = self.two(to) else { return Posted::Full };
        // SAFETY: the caller's promise.
        unsafe { two.shm.post_short(two.them(), head, data, length) }
    }

    #[inline]
    unsafe fn post_bulk(&mut self, to: u32, head: Head, control: &[u64], data: *const u8, length: usize) -> Posted {
        let Some(two) = self.two(to) else { return Posted::Full };
        // SAFETY: the caller's promise.
        unsafe { two.shm.post_bulk(two.them(), head, control, data, length) }
    }

    #[inline]
    fn poll<S: Sink>(&mut self, sink: &mut S) -> bool {
        self.each(|rank, two| two.shm.poll(&mut NamedRanks { sink, ranks: &[rank; 2] }))
    }

    #[inline]
    fn takes_whole(&mut self, to: u32, length: usize) -> bool {
        self.two(to).is_some_and(|two| two.shm.takes_whole(two.them(), length))
    }

    fn has_ended(&self, peer: u32) -> bool {
        self.at(peer).and_then(|at| self.strangers[at].two.as_ref()).is_none_or(|two| two.has_left)
    }

    fn arm(&mut self) -> bool {
        !self.each(|_, two| !two.shm.arm())
    }

    fn arm_beside(&mut self) -> bool {
        !self.each(|_, two| !two.shm.arm_beside())
    }

    fn disarm(&mut self) {
        self.each(|_, two| {
            two.shm.disarm();
            false
        });
    }

    fn take_refusal(&mut self) -> Option<NoMemory> {
        let mut refusal = None;
        self.each(|rank, two| {
            refusal = refusal.take().or_else(|| Some(NoMemory { peer: rank, ..two.shm.take_refusal()? }));
            false
        });
        refusal
    }
}

impl SegmentOffer {
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
        let _descriptor = OfferedDescriptor { descriptor: Some(descriptor), identity };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_meant_is_taken() {
        let (offer, said) = SegmentOffer::new().expect("memory");
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
