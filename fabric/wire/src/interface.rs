//! The interfaces that one process may have open at the same time.
//!
//! Each has a section of the segment for itself, so that interfaces of one process do not take each other's packets.
//! The numbers are those of the sections, and never change their meaning.

/// An interface over the fabric, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum InterfaceName {
    Mpi = 0,
    /// The fabric's own Rust API.
    Native = 1,
    Pvm = 2,
    P4 = 3,
    Tcgmsg = 4,
    /// Active messages.
    Am = 5,
    /// Fast messages.
    Fm = 6,
    Panda = 7,
    /// Shared objects.
    Objects = 8,
}

/// What programs call at the two ends of their time in a job, as messages and tools name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceCalls {
    pub begin: &'static str,
    pub end: &'static str,
    /// Ends the job for all.
    pub abort: &'static str,
}

impl InterfaceName {
    /// By their numbers.
    pub const ALL: [Self; 9] =
        [Self::Mpi, Self::Native, Self::Pvm, Self::P4, Self::Tcgmsg, Self::Am, Self::Fm, Self::Panda, Self::Objects];

    pub const fn number(self) -> u32 {
        self as u32
    }

    /// As people read it.
    pub const fn text(self) -> &'static str {
        self.words()[0]
    }

    /// The one with this [`Self::text`].
    pub fn of_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|interface| interface.text() == text)
    }

    pub const fn calls(self) -> InterfaceCalls {
        let [_, begin, end, abort] = self.words();
        InterfaceCalls { begin, end, abort }
    }

    const fn words(self) -> [&'static str; 4] {
        match self {
            Self::Mpi => ["mpi", "MPI_Init", "MPI_Finalize", "MPI_Abort"],
            Self::Native => ["native", "weft_init", "weft_finish", "abort"],
            Self::Pvm => ["pvm", "pvm_mytid", "pvm_exit", "abort"],
            Self::P4 => ["p4", "p4_initenv", "p4_wait_for_end", "p4_error"],
            Self::Tcgmsg => ["tcgmsg", "PBEGIN", "PEND", "PARERR"],
            Self::Am => ["am", "AM_Init", "AM_Terminate", "AMUDP_SPMDExit"],
            Self::Fm => ["fm", "FM_initialize", "FM_finalize", "abort"],
            Self::Panda => ["panda", "pan_init", "pan_end", "abort"],
            Self::Objects => ["objects", "weft_objects_init", "weft_objects_finish", "abort"],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_has_the_number_of_its_place() {
        let numbers = InterfaceName::ALL.map(InterfaceName::number);
        assert_eq!(numbers, std::array::from_fn(|at| at as u32));
        for interface in InterfaceName::ALL {
            assert_eq!(InterfaceName::of_text(interface.text()), Some(interface));
        }
        assert_eq!(InterfaceName::of_text("MPI"), None);
    }
}
