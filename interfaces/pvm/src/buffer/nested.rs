//! Messages within messages: as an element, with its heading, or the body alone.
//!
//! As an element a message is eight whole numbers (length of the body, context, tag, wait, encoding, checksum, source,
//! destination), then the body as bytes.

use super::encoding::{ElementKind, Encoding};
use super::message::{MessageHeading, TypedMessage};
use crate::errors::Code;

impl TypedMessage {
    /// Packs a message with its heading. Of one that is in place the bytes are read now.
    ///
    /// # Errors
    /// This one is in place, or there is no memory.
    pub(super) fn pack_message(&mut self, other: &Self) -> Result<(), Code> {
        let body = other.body();
        let length = i32::try_from(body.len()).map_err(|_| Code::OVERFLOW)?;
        let MessageHeading { context, tag, wait, checksum, source, destination } = other.heading;
        let encoding = other.encoding().signature();
        self.pack_ints(&[length, context, tag, wait, encoding, checksum, source, destination])?;
        // SAFETY: a slice.
        unsafe { self.pack(ElementKind::Byte, body.as_ptr(), length, 1) }
    }

    /// Packs the body of a message as if it had been packed here.
    ///
    /// # Errors
    /// The two are not written alike, or there is no memory.
    pub(super) fn pack_body(&mut self, other: &Self) -> Result<(), Code> {
        if self.encoding() != other.encoding() {
            return Err(Code::MISMATCH);
        }
        self.append_body(other)
    }

    /// Unpacks a message that was packed with its heading: how it is written, its body and its heading.
    ///
    /// # Errors
    /// There is none, or less than it says.
    pub(super) fn unpack_message(&mut self) -> Result<(Encoding, Vec<u8>, MessageHeading), Code> {
        let mut numbers = [0; 8];
        for number in &mut numbers {
            *number = self.unpack_int()?;
        }
        let [length, context, tag, wait, encoding, checksum, source, destination] = numbers;
        let length = usize::try_from(length).map_err(|_| Code::BAD_MSG)?;
        let encoding = Encoding::of_signature(encoding).ok_or(Code::BAD_MSG)?;
        let body = self.rest().get(..length).ok_or(Code::NO_DATA)?.to_vec();
        self.skip_bytes(length);
        Ok((encoding, body, MessageHeading { context, tag, wait, checksum, source, destination }))
    }
}
