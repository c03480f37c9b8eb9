//! The predefined operations: names and codes.

/// A predefined operation, with the numeric value of its handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum PredefinedOperation {
    Sum = 0x21,
    Min = 0x22,
    Max = 0x23,
    Prod = 0x24,
    Band = 0x28,
    Bor = 0x29,
    Bxor = 0x2a,
    Land = 0x30,
    Lor = 0x31,
    Lxor = 0x32,
    Minloc = 0x38,
    Maxloc = 0x39,
    Replace = 0x3c,
    NoOp = 0x3d,
}

use PredefinedOperation::*;

impl PredefinedOperation {
    pub const ALL: [Self; 14] = [Sum, Min, Max, Prod, Band, Bor, Bxor, Land, Lor, Lxor, Minloc, Maxloc, Replace, NoOp];

    /// The operation with this handle code; none for the null handle and for numbers that are no operation.
    pub fn from_code(code: usize) -> Option<Self> {
        Self::ALL.into_iter().find(|op| *op as usize == code)
    }

    /// Its name without the prefix.
    pub fn name(self) -> &'static str {
        match self {
            Sum => "SUM",
            Min => "MIN",
            Max => "MAX",
            Prod => "PROD",
            Band => "BAND",
            Bor => "BOR",
            Bxor => "BXOR",
            Land => "LAND",
            Lor => "LOR",
            Lxor => "LXOR",
            Minloc => "MINLOC",
            Maxloc => "MAXLOC",
            Replace => "REPLACE",
            NoOp => "NO_OP",
        }
    }
}
