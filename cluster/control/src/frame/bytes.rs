//! Values as bytes, and bytes as claims. Numbers are little-endian; what has a length has it before it, as a word.

use super::FrameError;
use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// What has not been read of a frame.
pub struct FrameBytes<'a> {
    pub rest: &'a [u8],
    /// Of the frame, for errors.
    pub kind: u8,
}

impl<'a> FrameBytes<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], FrameError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(FrameError::Cut(self.kind))?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        self.take(N)?.try_into().map_err(|_| FrameError::Cut(self.kind))
    }

    pub fn byte(&mut self) -> Result<u8, FrameError> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn blob(&mut self) -> Result<&'a [u8], FrameError> {
        let length = u32::take(self)? as usize;
        self.take(length)
    }

    pub fn wrong(&self) -> FrameError {
        FrameError::Value(self.kind)
    }

    pub fn ended(&self) -> Result<(), FrameError> {
        if self.rest.is_empty() { Ok(()) } else { Err(FrameError::Cut(self.kind)) }
    }
}

/// What can stand in a frame.
pub trait Coded: Sized {
    fn put(&self, to: &mut Vec<u8>);

    /// # Errors
    /// The bytes mean nothing.
    fn take(from: &mut FrameBytes) -> Result<Self, FrameError>;
}

macro_rules! numbers {
    ($($type:ty)*) => { $(
        impl Coded for $type {
            fn put(&self, to: &mut Vec<u8>) {
                to.extend(self.to_le_bytes());
            }

            fn take(from: &mut FrameBytes) -> Result<Self, FrameError> {
                from.array().map(Self::from_le_bytes)
            }
        }
    )* };
}

numbers! { u16 u32 i32 u64 }

/// A count, in a word.
impl Coded for usize {
    fn put(&self, to: &mut Vec<u8>) {
        u32::try_from(*self).unwrap_or(u32::MAX).put(to);
    }

    fn take(from: &mut FrameBytes) -> Result<Self, FrameError> {
        u32::take(from).map(|count| count as usize)
    }
}

/// Bytes with their length before them.
pub fn put_blob(to: &mut Vec<u8>, bytes: &[u8]) {
    bytes.len().put(to);
    to.extend(bytes);
}

impl Coded for String {
    fn put(&self, to: &mut Vec<u8>) {
        put_blob(to, self.as_bytes());
    }

    fn take(from: &mut FrameBytes) -> Result<Self, FrameError> {
        let bytes = from.blob()?.to_vec();
        Self::from_utf8(bytes).map_err(|_| from.wrong())
    }
}

impl Coded for OsString {
    fn put(&self, to: &mut Vec<u8>) {
        put_blob(to, self.as_bytes());
    }

    fn take(from: &mut FrameBytes) -> Result<Self, FrameError> {
        from.blob().map(|bytes| Self::from_vec(bytes.to_vec()))
    }
}

impl Coded for PathBuf {
    fn put(&self, to: &mut Vec<u8>) {
        put_blob(to, OsStr::as_bytes(self.as_os_str()));
    }

    fn take(from: &mut FrameBytes) -> Result<Self, FrameError> {
        OsString::take(from).map(Self::from)
    }
}

impl Coded for IpAddr {
    fn put(&self, to: &mut Vec<u8>) {
        match self {
            Self::V4(address) => put_blob(to, &address.octets()),
            Self::V6(address) => put_blob(to, &address.octets()),
        }
    }

    fn take(from: &mut FrameBytes) -> Result<Self, FrameError> {
        let bytes = from.blob()?;
        let v4 = <[u8; 4]>::try_from(bytes).map(|bytes| Ipv4Addr::from(bytes).into());
        v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(|bytes| Ipv6Addr::from(bytes).into())).map_err(|_| from.wrong())
    }
}

impl Coded for bool {
    fn put(&self, to: &mut Vec<u8>) {
        to.push((*self).into());
    }

    fn take(from: &mut FrameBytes) -> Result<Self, FrameError> {
        from.byte().map(|byte| byte != 0)
    }
}

/// Whether there is one, then the value.
impl<T: Coded> Coded for Option<T> {
    fn put(&self, to: &mut Vec<u8>) {
        to.push(self.is_some().into());
        self.iter().for_each(|value| value.put(to));
    }

    fn take(from: &mut FrameBytes) -> Result<Self, FrameError> {
        match from.byte()? {
            0 => Ok(None),
            1 => T::take(from).map(Some),
            _ => Err(from.wrong()),
        }
    }
}

/// The count is a claim: nothing is reserved for it, and the bytes run out first.
impl<T: Coded> Coded for Vec<T> {
    fn put(&self, to: &mut Vec<u8>) {
        self.len().put(to);
        self.iter().for_each(|item| item.put(to));
    }

    fn take(from: &mut FrameBytes) -> Result<Self, FrameError> {
        let count = u32::take(from)?;
        (0..count).map(|_| T::take(from)).collect()
    }
}

/// Everything that is left.
impl Coded for Vec<u8> {
    fn put(&self, to: &mut Vec<u8>) {
        to.extend(self);
    }

    fn take(from: &mut FrameBytes) -> Result<Self, FrameError> {
        Ok(std::mem::take(&mut from.rest).to_vec())
    }
}

impl<A: Coded, B: Coded> Coded for (A, B) {
    fn put(&self, to: &mut Vec<u8>) {
        self.0.put(to);
        self.1.put(to);
    }

    fn take(from: &mut FrameBytes) -> Result<Self, FrameError> {
        Ok((A::take(from)?, B::take(from)?))
    }
}

impl<T: Coded> Coded for [T; 2] {
    fn put(&self, to: &mut Vec<u8>) {
        self.iter().for_each(|value| value.put(to));
    }

    fn take(from: &mut FrameBytes) -> Result<Self, FrameError> {
        Ok([T::take(from)?, T::take(from)?])
    }
}

/// Structures whose fields follow each other.
macro_rules! structures {
    ($($name:ty { $($field:ident),+ })*) => { $(
        impl $crate::frame::bytes::Coded for $name {
            fn put(&self, to: &mut Vec<u8>) {
                $(self.$field.put(to);)+
            }

            fn take(from: &mut $crate::frame::bytes::FrameBytes) -> Result<Self, $crate::frame::FrameError> {
                Ok(Self { $($field: $crate::frame::bytes::Coded::take(from)?),+ })
            }
        }
    )* };
}

/// An enum of what is said. Each kind has its number, or several, which are told apart by what follows.
#[macro_export]
macro_rules! said {
    (@name $name:ident $type:ty) => { $name };
    ($(#[$about:meta])* pub enum $name:ident {
        $($(#[$doc:meta])* $kind:literal $(| $more:literal)* : $variant:ident
            $(($type:ty))? $({ $($field:ident: $of:ty),+ })?,)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $variant $(($type))? $({ $($field: $of),+ })?,)+
        }

        impl $name {
            fn kind(&self) -> u8 {
                match self {
                    $(Self::$variant { .. } => $kind,)+
                }
            }

            /// What follows the kind.
            fn put(&self, to: &mut Vec<u8>) {
                match self {
                    $(Self::$variant $((said!(@name value $type)))? $({ $($field),+ })? => {
                        $(<$type as $crate::frame::bytes::Coded>::put(value, to);)?
                        $($($crate::frame::bytes::Coded::put($field, to);)+)?
                    })+
                }
            }

            /// # Errors
            /// The bytes mean nothing.
            pub fn decode(piece: &[u8]) -> Result<Self, $crate::frame::FrameError> {
                let (kind, rest) = piece.split_first().ok_or($crate::frame::FrameError::Length(0))?;
                let mut from = $crate::frame::bytes::FrameBytes { rest, kind: *kind };
                let said = match *kind {
                    $($kind $(| $more)* => Self::$variant
                        $((<$type as $crate::frame::bytes::Coded>::take(&mut from)?))?
                        $({ $($field: $crate::frame::bytes::Coded::take(&mut from)?),+ })?,)+
                    other => return Err($crate::frame::FrameError::Kind(other)),
                };
                from.ended().map(|()| said)
            }
        }
    };
}

pub(crate) use structures;
