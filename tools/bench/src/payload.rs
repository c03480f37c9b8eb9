//! What is in the messages of a measurement, so that wrong data is noticed: real bytes, and the number of the message.

use anyhow::bail;

/// A message carries its number so often, and once more at its end.
const PAGE: usize = 4096;

/// The byte at a place that carries no number.
pub fn middle(at: usize) -> u8 {
    (at * 7 + (at >> 8)) as u8
}

/// Writes the number of a message into it.
pub fn mark(message: &mut [u8], number: u64) {
    message.iter_mut().step_by(PAGE).for_each(|byte| *byte = number as u8);
    if let Some(last) = message.last_mut() {
        *last = number as u8;
    }
}

/// Checks the numbers in each message, and all of some.
///
/// # Errors
/// It is another message, or its bytes are wrong.
pub fn look(message: &[u8], number: u64) -> anyhow::Result<()> {
    let step = if number.is_multiple_of(1024) { 1 } else { PAGE };
    let is_number = |at: usize| at.is_multiple_of(PAGE) || at + 1 == message.len();
    let right = |at: usize| message[at] == if is_number(at) { number as u8 } else { middle(at) };
    let wrong = (0..message.len()).step_by(step).chain([message.len() - 1]).find(|at| !right(*at));
    match wrong {
        Some(at) => bail!("message {number} is wrong at byte {at}"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_number_and_a_wrong_byte_are_noticed() {
        let mut message: Vec<u8> = (0..3 * PAGE + 5).map(middle).collect();
        mark(&mut message, 1024);
        look(&message, 1024).unwrap();
        assert!(look(&message, 1025).is_err());
        message[PAGE + 7] ^= 1;
        assert_eq!(look(&message, 1024).unwrap_err().to_string(), "message 1024 is wrong at byte 4103");
        mark(&mut message, 7);
        look(&message, 7).unwrap();
        let end = message.len() - 1;
        message[end] ^= 1;
        assert!(look(&message, 7).is_err());
    }
}
