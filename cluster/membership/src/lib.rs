//! Which members of a cluster are alive: one member's machine, without a network, a clock or a thread.
//!
//! Members stand in two circles (`circles`). Each sends a datagram of 40 bytes to its neighbours, four at most, once a
//! second; so while all is well a host sends and receives four datagrams a second, however many hosts there are. Who
//! has not heard of a neighbour for [`ASK_NS`] asks it, and asks its other neighbours whether they hear it. Who has no
//! sign of life for [`SILENCE_NS`], from whatever side, *accuses* the neighbour of silence.
//!
//! What is said of a member is two numbers of which the higher holds (`repute`). Whoever learns of something new
//! tells its neighbours at once, so a thousand know after seven steps. What was lost on the way is found by comparing
//! digests, which every datagram carries. Only the accused can refute, by a higher number, and does so as soon as it
//! learns of it. An accusation that stands for [`HOLD_NS`] is shown to the caller (`board`): the member is *suspect*.
//! So the silence of a host is known to all within 3.8 s and some steps, and a host that freezes for two seconds is not
//! noticed.
//!
//! Silence proves nothing. *Dead* is only what is proven: the daemon said goodbye ([`MembershipView::leave`]); and a
//! later incarnation proves the death of the earlier one. Nothing is final but the end of an incarnation: a member that
//! was suspect is alive as soon as it is heard, and one that was taken for dead comes back with the next incarnation by
//! itself.
//!
//! The caller's loop, here with a network that brings everything at once:
//!
//! ```
//! use weft_membership::{MembershipView, Condition, MemberId};
//! let members = [MemberId::of("node1"), MemberId::of("node2")];
//! let mut views = members.map(|me| MembershipView::new(me, 1_700_000_000, &members, me.0, 0));
//! for _ in 0..4 {
//!     for at in [0, 1] {
//!         let due_ns = views[at].poll_timeout().expect("who has not left has something to do");
//!         views[at].handle_timeout(due_ns);
//!         while let Some((to, datagram)) = views[at].poll_transmit() {
//!             assert_eq!(to, members[1 - at]);
//!             views[1 - at].handle_datagram(due_ns, members[at], &datagram);
//!         }
//!     }
//! }
//! assert_eq!(views[0].state_of(members[1]), Some(Condition::Alive));
//! assert!(views[0].poll_event().is_some_and(|change| format!("{change:?}").starts_with("Alive")));
//! ```
//!
//! What must hold:
//! - The caller hands in datagrams that it has authenticated, with the member that has sent them. What stands in them
//!   is a claim all the same: there is no panic, and memory is bounded by the number of members.
//! - Time is the caller's, in nanoseconds, from a clock that does not go back (if it does, it stands still here). When
//!   the caller comes late it was not there itself, so that time is not counted as the silence of others.
//! - Within one cluster each host is known by the same [`MemberId`]; its daemon's incarnations should grow. If one does
//!   not (its host's clock was set back), it learns so from the others, and takes the next one.
//!
//! Deliberately not here: encryption, addresses, and sending; the list of members, which is the database's; when the
//! ranks of a silent host are given up, which is each job's to say (by `since_ns`).
//!
//! Test: `cargo test -p weft-membership` (a simulated network with loss, doubling, disorder, partitions, frozen hosts;
//! arbitrary datagrams). Longer: `cargo run --release -p weft-membership --example simulate -- --help`.
#![forbid(unsafe_code)]

mod board;
mod chance;
mod circles;
mod datagram;
mod hear;
mod repute;
mod roster;
mod view;
mod watch;

pub use chance::Chance;
pub use datagram::{DATAGRAM_BYTES, VERSION};
pub use view::MembershipView;

/// How often a member shows its neighbours that it lives; each time up to a tenth sooner or later.
pub const BEAT_NS: u64 = 1_000_000_000;
/// A neighbour that was not heard for so long is asked, and asked about.
pub const ASK_NS: u64 = 1_500_000_000;
/// So often.
pub const ASK_EVERY_NS: u64 = 400_000_000;
/// A neighbour that nobody has heard for so long is accused.
pub const SILENCE_NS: u64 = 3_400_000_000;
/// Who is accused has so long to refute before it is seen.
pub const HOLD_NS: u64 = 400_000_000;

/// A host of the cluster, by a number that all members give it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub u64);

impl MemberId {
    /// The number of the host with this name: a hash (FNV-1a). Two names of a cluster have the same one with a
    /// probability of 10^-13; who reads the list of members checks it.
    pub fn of(name: &str) -> Self {
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        Self(name.bytes().fold(0xcbf2_9ce4_8422_2325, hash))
    }
}

/// How a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Nobody has heard of it yet.
    Unseen,
    Alive,
    /// Nobody hears it: nothing new is placed there.
    Suspect {
        /// When its silence began, by the caller's clock; where this member learnt of it later, it is later, too.
        since_ns: u64,
    },
    /// Its daemon has ended, which is proven.
    Dead,
}

/// What has become of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberChange {
    /// It was heard for the first time, or again after a silence.
    Alive {
        member: MemberId,
        incarnation: u64,
    },
    Suspect {
        member: MemberId,
        incarnation: u64,
        /// As in [`Condition::Suspect`].
        since_ns: u64,
    },
    Dead {
        member: MemberId,
        incarnation: u64,
    },
    /// It is alive in a new incarnation, and what the earlier one had is gone. Said of the member itself: others took
    /// it for dead, or knew of a later incarnation; it goes on in this one.
    Restarted {
        member: MemberId,
        incarnation: u64,
    },
}

/// Datagrams that were dropped, by their reasons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DroppedDatagrams {
    /// From no member, or from this one.
    pub strangers: u64,
    /// Of another version; [`MembershipView::speaks`] says of which.
    pub other_versions: u64,
    pub malformed: u64,
    /// For another member.
    pub misdirected: u64,
    /// Of an earlier incarnation of their sender, which was told so.
    pub outdated: u64,
    /// Our own, because the caller did not fetch them.
    pub unsent: u64,
}
