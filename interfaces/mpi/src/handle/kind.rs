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
pub enum HandleKind {
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

impl HandleKind {
    /// The null handle, which is also the first code of the kind's predefined range.
    pub const fn null(self) -> usize {
        self.facts().0
    }

    pub const fn noun(self) -> &'static str {
        self.facts().1
    }

    const fn facts(self) -> (usize, &'static str) {
        match self {
            Self::Op => (0x20, "op"),
            Self::Comm => (0x100, "comm"),
            Self::Group => (0x108, "group"),
            Self::Win => (0x110, "win"),
            Self::File => (0x118, "file"),
            Self::Session => (0x120, "session"),
            Self::Message => (0x128, "message"),
            Self::Info => (0x130, "info"),
            Self::Errhandler => (0x140, "errhandler"),
            Self::Request => (0x180, "request"),
            Self::Datatype => (0x200, "datatype"),
            Self::Keyval => (0, "keyval"),
        }
    }

    /// Whether a handle of the program's own objects is of this kind.
    pub const fn has(self, handle: usize) -> bool {
        handle >> KIND_SHIFT == self as usize
    }
}
