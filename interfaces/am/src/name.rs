//! Names of endpoints: where one is in all the job, in the form of a `struct sockaddr_in`, as AMUDP's are.

use crate::message::EndpointId;

/// An endpoint of a process of the job, and the C type `en_t`.
///
/// The address is one of 127.0.0.0/8 that is equal for processes of one host: programs look there who is near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct EndpointName {
    family: u16,
    /// Big endian, as in every such address.
    port: u16,
    address: u32,
    pub rank: u32,
    slot: u16,
    generation: u16,
}

const INTERNET: u16 = 2;
const LOOPBACK: u32 = 0x7f00_0001;

impl EndpointName {
    pub fn new(rank: u32, host: u32, id: EndpointId) -> Self {
        Self {
            family: INTERNET,
            port: id.slot.wrapping_add(1).to_be(),
            address: (LOOPBACK + host % 0xff_fffe).to_be(),
            rank,
            slot: id.slot,
            generation: id.generation,
        }
    }

    pub fn id(&self) -> EndpointId {
        EndpointId { slot: self.slot, generation: self.generation }
    }

    #[inline]
    pub fn is_of(&self, rank: u32, id: EndpointId) -> bool {
        self.rank == rank && self.id() == id
    }

    /// Whether it may be the name of an endpoint in a job of so many processes.
    pub fn is_possible(&self, processes: u32) -> bool {
        self.family == INTERNET && self.rank < processes
    }
}

const _: () = assert!(size_of::<EndpointName>() == 16);
