//! What the library and those who have loaded it hand each other. It has been the same since PMIx 3.

/// All ranks of the job, and those of this host (`PMIX_RANK_WILDCARD`, `PMIX_RANK_LOCAL_PEERS`).
pub const WILDCARD: u32 = u32::MAX - 1;

/// `pmix_proc_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PmixName {
    pub namespace: [u8; 256],
    pub rank: u32,
}

impl PmixName {
    pub fn new(namespace: &str, rank: u32) -> Self {
        let mut name = Self { namespace: [0; 256], rank };
        copy_text(&mut name.namespace, namespace);
        name
    }
}

/// `pmix_value_t`, whose union takes 24 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PmixDatum {
    pub kind: u16,
    pub data: [u64; 3],
}

/// Types of values (`pmix_data_type_t`).
impl PmixDatum {
    pub const BOOLEAN: u16 = 1;
    pub const STRING: u16 = 3;
    pub const UINT16: u16 = 13;
    pub const UINT32: u16 = 14;
    pub const INFO: u16 = 24;
    pub const DATA_ARRAY: u16 = 39;
    pub const RANK: u16 = 40;

    /// The machines that this is built for have the low byte first.
    pub const fn new(kind: u16, word: u64) -> Self {
        Self { kind, data: [word, 0, 0] }
    }
}

/// `pmix_info_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PmixEntry {
    pub key: [u8; 512],
    flags: u32,
    pub value: PmixDatum,
}

impl PmixEntry {
    pub fn new(key: &str, value: PmixDatum) -> Self {
        let mut entry = Self { key: [0; 512], flags: 0, value };
        copy_text(&mut entry.key, key);
        entry
    }
}

/// What does not fit is left out; the end is always there.
pub fn copy_text(to: &mut [u8], text: &str) {
    let length = text.len().min(to.len() - 1);
    to[..length].copy_from_slice(&text.as_bytes()[..length]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    /// As `pmix_common.h` has them on machines of 64 bits.
    #[test]
    fn layouts_are_those_of_the_library() {
        assert_eq!((size_of::<PmixName>(), offset_of!(PmixName, rank)), (260, 256));
        assert_eq!((size_of::<PmixDatum>(), offset_of!(PmixDatum, data)), (32, 8));
        assert_eq!(
            (size_of::<PmixEntry>(), offset_of!(PmixEntry, flags), offset_of!(PmixEntry, value)),
            (552, 512, 520)
        );
    }
}
