//! What members say to each other, as bytes. All numbers are little-endian; docs/wire/membership.md has the table.
//!
//! Every datagram is a sign of life with the sender's own repute and the digest of its roster. The rest is lists that
//! are mostly empty.

use crate::MemberId;
use crate::repute::Repute;
use crate::roster::GROUPS;

/// The first byte of every datagram. Other versions may mean anything by what follows it.
pub const VERSION: u8 = 1;
/// No datagram is longer.
pub const DATAGRAM_BYTES: usize = 1200;
/// The receiver shall answer at once.
pub(crate) const ANSWER: u8 = 1;
/// This is an answer: nobody answers it for being one from afar.
pub(crate) const IS_ANSWER: u8 = 2;

const HEAD_BYTES: usize = 40;
const SAID_BYTES: usize = 20;
const ASKED_BYTES: usize = 8;
const TOLD_BYTES: usize = 10;
/// How many reputes fit into a datagram that has nothing else.
pub(crate) const SAID_MAX: usize = (DATAGRAM_BYTES - HEAD_BYTES) / SAID_BYTES;
/// Members that one datagram may ask about.
pub(crate) const ASKED_MAX: usize = 8;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Datagram {
    pub(crate) flags: u8,
    /// Milliseconds since the sender heard of the receiver; `u16::MAX` for never, and for longer.
    pub(crate) heard_ms: u16,
    /// Counts the sender's datagrams.
    pub(crate) number: u32,
    pub(crate) to: MemberId,
    /// The sender's own.
    pub(crate) repute: Repute,
    pub(crate) digest: u64,
    /// What the sender says of members.
    pub(crate) said: Vec<(MemberId, Repute)>,
    /// Of whom the sender asks whether the receiver hears them.
    pub(crate) asked: Vec<MemberId>,
    /// Whom the sender hears, and how many milliseconds ago.
    pub(crate) told: Vec<(MemberId, u16)>,
    /// The digests of the sender's groups.
    pub(crate) groups: Option<Box<[u32; GROUPS]>>,
}

/// Why bytes are no datagram that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// Its sender speaks this version.
    Version(u8),
    Malformed,
}

impl Datagram {
    pub(crate) fn write(&self) -> Vec<u8> {
        let groups = if self.groups.is_some() { GROUPS } else { 0 };
        let lists = self.said.len() * SAID_BYTES + self.asked.len() * ASKED_BYTES + self.told.len() * TOLD_BYTES;
        let mut bytes = Vec::with_capacity(HEAD_BYTES + lists + groups * 4);
        bytes.extend([VERSION, self.flags]);
        bytes.extend(self.heard_ms.to_le_bytes());
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.to.0.to_le_bytes());
        bytes.extend(self.repute.incarnation.to_le_bytes());
        bytes.extend(self.digest.to_le_bytes());
        bytes.extend(self.repute.count.to_le_bytes());
        bytes.extend([self.said.len(), self.asked.len(), self.told.len(), groups].map(|count| count as u8));
        for (member, repute) in &self.said {
            bytes.extend(member.0.to_le_bytes());
            bytes.extend(repute.incarnation.to_le_bytes());
            bytes.extend(repute.count.to_le_bytes());
        }
        self.asked.iter().for_each(|member| bytes.extend(member.0.to_le_bytes()));
        for (member, age_ms) in &self.told {
            bytes.extend(member.0.to_le_bytes());
            bytes.extend(age_ms.to_le_bytes());
        }
        self.groups.iter().flat_map(|groups| groups.iter()).for_each(|group| bytes.extend(group.to_le_bytes()));
        debug_assert!(bytes.len() <= DATAGRAM_BYTES);
        bytes
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Unreadable> {
        match bytes.first() {
            None => Err(Unreadable::Malformed),
            Some(&VERSION) => DatagramReader(&bytes[1..]).datagram().ok_or(Unreadable::Malformed),
            Some(&version) => Err(Unreadable::Version(version)),
        }
    }
}

struct DatagramReader<'a>(&'a [u8]);

impl DatagramReader<'_> {
    fn datagram(&mut self) -> Option<Datagram> {
        let flags = self.byte()?;
        let heard_ms = self.short()?;
        let number = self.int()?;
        let to = self.member()?;
        let (incarnation, digest, count) = (self.long()?, self.long()?, self.int()?);
        let repute = Some(Repute { incarnation, count }).filter(|repute| repute.is_sound())?;
        let [said, asked, told, groups] = self.take()?;
        let (said, asked, told) = (usize::from(said), usize::from(asked), usize::from(told));
        let groups = usize::from(groups);
        let bytes = said * SAID_BYTES + asked * ASKED_BYTES + told * TOLD_BYTES + groups * 4;
        if self.0.len() != bytes || bytes + HEAD_BYTES > DATAGRAM_BYTES || asked > ASKED_MAX || told > ASKED_MAX {
            return None;
        }
        let said = (0..said).map(|_| self.said()).collect::<Option<_>>()?;
        let asked = (0..asked).map(|_| self.member()).collect::<Option<_>>()?;
        let told = (0..told).map(|_| Some((self.member()?, self.short()?))).collect::<Option<_>>()?;
        let groups = match groups {
            0 => None,
            GROUPS => Some(self.groups()?),
            _ => return None,
        };
        Some(Datagram { flags, heard_ms, number, to, repute, digest, said, asked, told, groups })
    }

    fn said(&mut self) -> Option<(MemberId, Repute)> {
        let said = (self.member()?, Repute { incarnation: self.long()?, count: self.int()? });
        said.1.is_sound().then_some(said)
    }

    fn groups(&mut self) -> Option<Box<[u32; GROUPS]>> {
        let mut groups = Box::new([0; GROUPS]);
        for group in groups.iter_mut() {
            *group = self.int()?;
        }
        Some(groups)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn member(&mut self) -> Option<MemberId> {
        self.long().map(MemberId)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take().map(u8::from_le_bytes)
    }

    fn short(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn int(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn long(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Datagram {
        let said = (0..30).map(|number| (MemberId(number), Repute::first(number).accused())).collect();
        let told = vec![(MemberId(9), 44), (MemberId(10), u16::MAX)];
        let groups = Some(Box::new(std::array::from_fn(|group| group as u32 * 77)));
        let repute = Repute::first(u64::MAX);
        let (to, asked) = (MemberId(u64::MAX), vec![MemberId(5); ASKED_MAX]);
        Datagram { flags: ANSWER, heard_ms: 500, number: 70_000, to, repute, digest: 1, said, asked, told, groups }
    }

    #[test]
    fn what_was_written_is_read() {
        assert_eq!(Datagram::read(&full().write()), Ok(full()));
        let longest = Datagram { said: vec![Default::default(); SAID_MAX], ..Datagram::default() };
        assert!(longest.write().len() <= DATAGRAM_BYTES);
        assert_eq!(Datagram::read(&longest.write()), Ok(longest));
        assert_eq!(Datagram::default().write().len(), HEAD_BYTES);
    }

    #[test]
    fn what_is_too_short_or_too_long_or_too_high_is_malformed() {
        let bytes = full().write();
        for end in 0..bytes.len() {
            assert_eq!(Datagram::read(&bytes[..end]), Err(Unreadable::Malformed), "{end} bytes");
        }
        assert_eq!(Datagram::read(&[bytes, vec![0]].concat()), Err(Unreadable::Malformed));
        let repute = Repute { incarnation: u64::MAX, count: 0 };
        assert_eq!(Datagram::read(&Datagram { repute, ..full() }.write()), Err(Unreadable::Malformed));
    }

    #[test]
    fn another_version_is_told_from_nonsense() {
        assert_eq!(Datagram::read(&[VERSION + 1]), Err(Unreadable::Version(VERSION + 1)));
        assert_eq!(Datagram::read(&[]), Err(Unreadable::Malformed));
    }
}
