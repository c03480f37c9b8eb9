//! What handles stand for, and how they are built: what errors, too, have to know.

/// Codes below this one are predefined.
pub const FIRST_USER: usize = 0x1000;

pub(super) const INDEX_BITS: u32 = 20;
pub(super) const INDEX_MASK: usize = (1 << INDEX_BITS) - 1;
pub(super) const GENERATION_BITS: u32 = 7;
pub(super) const KIND_SHIFT: u32 = INDEX_BITS + GENERATION_BITS;

/// What a handle stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Comm = 1,
    Group,
    Datatype,
    Op,
    Request,
    Message,
    Info,
    Errhandler,
    Win,
    File,
    Session,
    Keyval,
}

impl Kind {
    /// The null handle, which is also the first code of the kind's predefined range.
    pub const fn null(self) -> usize {
        match self {
            Self::Op => 0x20,
            Self::Comm => 0x100,
            Self::Group => 0x108,
            Self::Win => 0x110,
            Self::File => 0x118,
            Self::Session => 0x120,
            Self::Message => 0x128,
            Self::Info => 0x130,
            Self::Errhandler => 0x140,
            Self::Request => 0x180,
            Self::Datatype => 0x200,
            Self::Keyval => 0,
        }
    }

    pub const fn noun(self) -> &'static str {
        match self {
            Self::Op => "op",
            Self::Comm => "comm",
            Self::Group => "group",
            Self::Win => "win",
            Self::File => "file",
            Self::Session => "session",
            Self::Message => "message",
            Self::Info => "info",
            Self::Errhandler => "errhandler",
            Self::Request => "request",
            Self::Datatype => "datatype",
            Self::Keyval => "keyval",
        }
    }

    /// Whether a handle of the program's own objects is of this kind.
    pub const fn has(self, handle: usize) -> bool {
        handle >> KIND_SHIFT == self as usize
    }
}
