//! The interfaces that one process may have open at the same time.
//!
//! Each has a section of the segment for itself, so that interfaces of one process do not take each other's packets. The
//! numbers are those of the sections, and never change their meaning.

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
}

impl InterfaceName {
    /// By their numbers.
    pub const ALL: [Self; 8] =
        [Self::Mpi, Self::Native, Self::Pvm, Self::P4, Self::Tcgmsg, Self::Am, Self::Fm, Self::Panda];

    pub const fn number(self) -> u32 {
        self as u32
    }

    /// As people read it.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Mpi => "mpi",
            Self::Native => "native",
            Self::Pvm => "pvm",
            Self::P4 => "p4",
            Self::Tcgmsg => "tcgmsg",
            Self::Am => "am",
            Self::Fm => "fm",
            Self::Panda => "panda",
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
    }
}
