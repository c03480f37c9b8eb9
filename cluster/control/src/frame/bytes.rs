//! Values as bytes, and bytes as claims.

use super::{Channel, FrameError, Stream};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Writing values behind each other.
pub trait Put {
    fn half(&mut self, value: u16);
    fn word(&mut self, value: u32);
    fn words<const N: usize>(&mut self, values: [u32; N]);
    fn longs<const N: usize>(&mut self, values: [u64; N]);
    /// Its length, then its bytes.
    fn blob(&mut self, value: &[u8]);
    fn text(&mut self, value: &str);
    fn os(&mut self, value: &OsStr);
    fn channel(&mut self, channel: Channel);
    /// Its length, then its items.
    fn list<T>(&mut self, items: &[T], put: impl Fn(&mut Self, &T));
}

impl Put for Vec<u8> {
    fn half(&mut self, value: u16) {
        self.extend(value.to_le_bytes());
    }

    fn word(&mut self, value: u32) {
        self.extend(value.to_le_bytes());
    }

    fn words<const N: usize>(&mut self, values: [u32; N]) {
        values.into_iter().for_each(|value| self.word(value));
    }

    fn longs<const N: usize>(&mut self, values: [u64; N]) {
        values.into_iter().for_each(|value| self.extend(value.to_le_bytes()));
    }

    fn blob(&mut self, value: &[u8]) {
        self.word(u32::try_from(value.len()).unwrap_or(u32::MAX));
        self.extend(value);
    }

    fn text(&mut self, value: &str) {
        self.blob(value.as_bytes());
    }

    fn os(&mut self, value: &OsStr) {
        self.blob(value.as_bytes());
    }

    fn channel(&mut self, Channel { member, stream }: Channel) {
        self.word(member);
        self.word(stream as u32);
    }

    fn list<T>(&mut self, items: &[T], put: impl Fn(&mut Self, &T)) {
        self.word(u32::try_from(items.len()).unwrap_or(u32::MAX));
        items.iter().for_each(|item| put(self, item));
    }
}

/// What has not been read of a frame.
pub struct Bytes<'a> {
    pub rest: &'a [u8],
    /// Of the frame, for errors.
    pub kind: u8,
}

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], FrameError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(FrameError::Cut(self.kind))?;
        self.rest = rest;
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        self.take(N)?.try_into().map_err(|_| FrameError::Cut(self.kind))
    }

    pub fn byte(&mut self) -> Result<u8, FrameError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub fn half(&mut self) -> Result<u16, FrameError> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn word(&mut self) -> Result<u32, FrameError> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn longs<const N: usize>(&mut self) -> Result<[u64; N], FrameError> {
        let mut values = [0; N];
        for value in &mut values {
            *value = u64::from_le_bytes(self.array()?);
        }
        Ok(values)
    }

    /// Whether there is one, then the value.
    pub fn option<T>(&mut self, value: impl Fn(&mut Self) -> Result<T, FrameError>) -> Result<Option<T>, FrameError> {
        match self.byte()? {
            0 => Ok(None),
            1 => value(self).map(Some),
            _ => Err(self.wrong()),
        }
    }

    pub fn blob(&mut self) -> Result<&'a [u8], FrameError> {
        let length = self.word()? as usize;
        self.take(length)
    }

    pub fn text(&mut self) -> Result<String, FrameError> {
        let bytes = self.blob()?.to_vec();
        String::from_utf8(bytes).map_err(|_| self.wrong())
    }

    pub fn os(&mut self) -> Result<OsString, FrameError> {
        self.blob().map(|bytes| OsString::from_vec(bytes.to_vec()))
    }

    pub fn channel(&mut self) -> Result<Channel, FrameError> {
        let (member, stream) = (self.word()?, self.word()?);
        let stream = Stream::ALL.get(stream as usize).ok_or_else(|| self.wrong())?;
        Ok(Channel { member, stream: *stream })
    }

    /// The count is a claim: nothing is reserved for it, and the bytes run out first.
    pub fn list<T>(&mut self, item: impl Fn(&mut Self) -> Result<T, FrameError>) -> Result<Vec<T>, FrameError> {
        let count = self.word()?;
        (0..count).map(|_| item(self)).collect()
    }

    /// Everything that is left.
    pub fn all(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.rest).to_vec()
    }

    pub fn wrong(&self) -> FrameError {
        FrameError::Value(self.kind)
    }

    pub fn ended(&self) -> Result<(), FrameError> {
        if self.rest.is_empty() { Ok(()) } else { Err(FrameError::Cut(self.kind)) }
    }
}
