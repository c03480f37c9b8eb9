//! The job map: where every rank of a job that runs on several hosts is, and at which ports it is waited for.
//!
//! The launcher makes it from what the agents report, and every rank finds it in its `WEFT_JOB_MAP`. It crosses hosts,
//! so numbers are little-endian. `docs/wire/job_map.md` shows it byte by byte.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What every map begins with.
pub const MAGIC: [u8; 8] = *b"weft-map";
/// Changes with every change of what follows.
pub const VERSION: u32 = 1;
/// Bytes before the first host.
pub const HEADING_BYTES: usize = 40;
/// Bytes of a rank.
pub const RANK_BYTES: usize = 12;
/// The longest name of a host, in bytes.
pub const NAME_BYTES: usize = 255;
/// Of one host; no more is worth a probe.
pub const MAX_ADDRESSES: usize = 64;

/// Where all ranks of a job are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobMap {
    /// Known to the ranks of the job and to nobody else.
    pub key: [u8; 16],
    pub hosts: Vec<Host>,
    /// By rank.
    pub ranks: Vec<MappedRank>,
}

/// One host of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// As the user wrote it.
    pub name: String,
    /// Those of its interfaces. A claim: whether one leads there shows when it is tried.
    pub addresses: Vec<IpAddr>,
}

/// One rank of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedRank {
    /// Index in [`JobMap::hosts`].
    pub host: u32,
    /// Its place in the segment of its host: the ranks of a host are its members 0, 1, ... in the order of their ranks.
    pub member: u32,
    /// Where its listener is, on every address of its host.
    pub tcp_port: u16,
    /// Where its socket for datagrams is, on every address of its host.
    pub udp_port: u16,
}

/// Why bytes are no job map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobMapError {
    #[error("the job map does not begin as one")]
    NoMap,
    #[error("the job map has version {found}, and this library reads version {VERSION}")]
    Version { found: u32 },
    #[error("the job map ends in the middle")]
    Cut,
    #[error("the job map has {0} bytes behind its end")]
    TooLong(usize),
    #[error("the job map has no ranks")]
    Empty,
    #[error("host {0} of the job map has a name that is no name")]
    Name(u32),
    #[error("host {0} of the job map has an address that is none, or too many of them")]
    Address(u32),
    #[error("rank {0} of the job map is on no host of the map")]
    NoHost(u32),
    #[error("rank {0} of the job map is not the next member of its host")]
    Member(u32),
    #[error("rank {0} of the job map has a port that is none")]
    Port(u32),
}

impl JobMap {
    /// The bytes of the map. One that breaks the rules becomes bytes that [`Self::decode`] refuses.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADING_BYTES + self.ranks.len() * RANK_BYTES);
        bytes.extend(MAGIC);
        let counts = [self.hosts.len(), self.ranks.len()].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        [VERSION, counts[0], counts[1], 0].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes.extend(self.key);
        for Host { name, addresses } in &self.hosts {
            let lengths = [name.len(), addresses.len()].map(|length| u16::try_from(length).unwrap_or(u16::MAX));
            lengths.iter().for_each(|length| bytes.extend(length.to_le_bytes()));
            bytes.extend(name.as_bytes());
            addresses.iter().for_each(|address| put_address(&mut bytes, address));
        }
        for MappedRank { host, member, tcp_port, udp_port } in &self.ranks {
            [*host, *member].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
            [*tcp_port, *udp_port].iter().for_each(|port| bytes.extend(port.to_le_bytes()));
        }
        bytes
    }

    /// Reads a map. Whatever is accepted keeps the rules: every rank is on a host of the map, the ranks of a host are
    /// its members in order, no port is 0.
    ///
    /// # Errors
    /// The first rule that the bytes break.
    pub fn decode(bytes: &[u8]) -> Result<Self, JobMapError> {
        let mut rest = UnreadBytes(bytes);
        if rest.array() != Ok(MAGIC) {
            return Err(JobMapError::NoMap);
        }
        let version = rest.word()?;
        if version != VERSION {
            return Err(JobMapError::Version { found: version });
        }
        let (hosts, ranks) = (rest.word()?, rest.word()?);
        if rest.word()? != 0 {
            return Err(JobMapError::NoMap);
        }
        let key = rest.array()?;
        // Counts are claims: nothing is reserved for them, and the bytes run out first.
        let hosts = (0..hosts).map(|host| rest.host(host)).collect::<Result<Vec<_>, _>>()?;
        let mut members = vec![0; hosts.len()];
        let ranks = (0..ranks).map(|rank| rest.rank(rank, &mut members)).collect::<Result<Vec<_>, _>>()?;
        if ranks.is_empty() {
            return Err(JobMapError::Empty);
        }
        match rest.0.len() {
            0 => Ok(Self { key, hosts, ranks }),
            more => Err(JobMapError::TooLong(more)),
        }
    }

    /// The ranks on `host`, in the order of its members.
    pub fn ranks_on(&self, host: u32) -> impl Iterator<Item = usize> + '_ {
        self.ranks.iter().enumerate().filter(move |(_, rank)| rank.host == host).map(|(number, _)| number)
    }
}

const V4: u8 = 4;
const V6: u8 = 6;

fn put_address(bytes: &mut Vec<u8>, address: &IpAddr) {
    match address {
        IpAddr::V4(address) => {
            bytes.push(V4);
            bytes.extend(address.octets());
        }
        IpAddr::V6(address) => {
            bytes.push(V6);
            bytes.extend(address.octets());
        }
    }
}

/// What has not been read yet.
struct UnreadBytes<'a>(&'a [u8]);

impl<'a> UnreadBytes<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], JobMapError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(JobMapError::Cut)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], JobMapError> {
        self.take(N)?.try_into().map_err(|_| JobMapError::Cut)
    }

    fn half(&mut self) -> Result<u16, JobMapError> {
        self.array().map(u16::from_le_bytes)
    }

    fn word(&mut self) -> Result<u32, JobMapError> {
        self.array().map(u32::from_le_bytes)
    }

    fn host(&mut self, number: u32) -> Result<Host, JobMapError> {
        let (name, addresses) = (self.half()? as usize, self.half()? as usize);
        if name == 0 || name > NAME_BYTES {
            return Err(JobMapError::Name(number));
        }
        if addresses > MAX_ADDRESSES {
            return Err(JobMapError::Address(number));
        }
        let name = std::str::from_utf8(self.take(name)?).map_err(|_| JobMapError::Name(number))?;
        if name.chars().any(|letter| letter.is_control() || letter.is_whitespace()) {
            return Err(JobMapError::Name(number));
        }
        let addresses = (0..addresses).map(|_| self.address(number)).collect::<Result<_, _>>()?;
        Ok(Host { name: name.to_owned(), addresses })
    }

    fn address(&mut self, host: u32) -> Result<IpAddr, JobMapError> {
        match self.array::<1>()? {
            [V4] => Ok(Ipv4Addr::from(self.array::<4>()?).into()),
            [V6] => Ok(Ipv6Addr::from(self.array::<16>()?).into()),
            _ => Err(JobMapError::Address(host)),
        }
    }

    /// `members`: how many ranks each host has had before this one.
    fn rank(&mut self, number: u32, members: &mut [u32]) -> Result<MappedRank, JobMapError> {
        let rank =
            MappedRank { host: self.word()?, member: self.word()?, tcp_port: self.half()?, udp_port: self.half()? };
        let next = members.get_mut(rank.host as usize).ok_or(JobMapError::NoHost(number))?;
        if rank.member != *next {
            return Err(JobMapError::Member(number));
        }
        *next += 1;
        if rank.tcp_port == 0 || rank.udp_port == 0 {
            return Err(JobMapError::Port(number));
        }
        Ok(rank)
    }
}

#[cfg(test)]
mod tests;
