//! What a rank that spawns and the launcher of the new processes say to each other.

use crate::frame::FrameError;
use crate::frame::bytes::{Bytes, Coded};
use crate::job::{Program, is_reserved};

/// What the launcher says first.
const ASKS: &[u8] = b"weft-spawn-2";
/// The variable of a spawned process that names the door of those who have spawned it.
pub const PARENT_VARIABLE: &str = "WEFT_PARENT";
/// The variable of a launcher that names the door where it gets its order.
pub const ORDER_VARIABLE: &str = "WEFT_ORDER";
/// In the place of a kind of frame, for errors.
const KIND: u8 = b'o';

/// What is to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub programs: Vec<Program>,
}

impl Order {
    /// The programs get the environment of this process, and come back to the door of this name.
    pub fn new(mut programs: Vec<Program>, door: &str) -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let mut environment: Vec<(String, String)> = std::env::vars_os().filter_map(text).collect();
        environment.retain(|(name, _)| !is_reserved(name));
        environment.push((PARENT_VARIABLE.to_owned(), door.to_owned()));
        programs.retain(|program| program.ranks > 0);
        programs
            .iter_mut()
            .for_each(|program| program.environment.splice(..0, environment.iter().cloned()).for_each(drop));
        Self { programs }
    }

    /// What a launcher says to get one.
    pub fn asking() -> &'static [u8] {
        ASKS
    }

    pub fn is_asked_for(piece: &[u8]) -> bool {
        piece == ASKS
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.programs.put(&mut bytes);
        bytes
    }

    /// # Errors
    /// It is no order.
    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        let mut bytes = Bytes { rest: bytes, kind: KIND };
        let programs = Vec::take(&mut bytes)?;
        bytes.ended().map(|()| Self { programs })
    }
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    Started,
    Failed { text: String },
}

impl Word {
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Started => b"s".to_vec(),
            Self::Failed { text } => [b"f", text.as_bytes()].concat(),
        }
    }

    /// `None` where it is neither.
    pub fn decode(piece: &[u8]) -> Option<Self> {
        match piece.split_first()? {
            (b's', []) => Some(Self::Started),
            (b'f', text) => Some(Self::Failed { text: String::from_utf8_lossy(text).into_owned() }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_was_written() {
        let program = Program {
            program: "./worker".into(),
            arguments: vec!["-x".into(), "".into()],
            ranks: 3,
            environment: vec![("A".into(), "b=c".into())],
            directory: Some("/tmp".into()),
        };
        let order = Order { programs: vec![program, Program::default()] };
        let bytes = order.encode();
        assert_eq!(Order::decode(&bytes), Ok(order));
        for cut in 0..bytes.len() {
            assert!(Order::decode(&bytes[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn the_programs_know_the_door_and_not_the_launcher_of_those_who_spawn() {
        let program = Program { program: "a".into(), ranks: 1, ..Program::default() };
        let none = Program { ranks: 0, ..program.clone() };
        let order = Order::new(vec![program, none], "weft/door");
        let [program] = &order.programs[..] else { panic!("{order:?}") };
        assert!(program.environment.contains(&(PARENT_VARIABLE.into(), "weft/door".into())));
        assert!(program.environment.iter().all(|(name, _)| !name.starts_with("PMI_")));
        assert_eq!(program.environment.iter().filter(|(name, _)| name == "PATH").count(), 1);
    }

    #[test]
    fn what_became_of_it_is_read_as_it_was_written() {
        for word in [Word::Started, Word::Failed { text: "no such program".into() }] {
            assert_eq!(Word::decode(&word.encode()), Some(word));
        }
        assert_eq!(Word::decode(b""), None);
    }
}
