//! What a rank that spawns and the launcher of the new processes say to each other.

use crate::frame::FrameError;
use crate::frame::bytes::{Coded, FrameBytes};
use crate::job::{Program, is_reserved};
use crate::state::Exit;
use weft_wire::interface::InterfaceName;

/// What the launcher says first.
const ASKS: &[u8] = b"weft-spawn-2";
/// The variable of a spawned process that names the interface of those who have spawned it, and their door.
pub const PARENT_VARIABLE: &str = "WEFT_PARENT";
/// The variable of a launcher that names the door where it gets its order.
pub const ORDER_VARIABLE: &str = "WEFT_ORDER";
/// In the place of a kind of frame, for errors.
const KIND: u8 = b'o';
/// In the place of a rank: all of them.
const ALL: u32 = u32::MAX;
/// The signals that there are.
pub const SIGNALS: std::ops::RangeInclusive<i32> = 1..=64;

/// What is to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnOrder {
    pub programs: Vec<Program>,
    /// On this host of the job's, and no other.
    pub host: Option<String>,
    /// Those who order are told of the end of each process and may signal them; where one is lost the others go on.
    pub watched: bool,
}

impl SpawnOrder {
    /// The programs get the environment of this process, and come back to the door of this name, by the interface that
    /// orders.
    pub fn new(mut programs: Vec<Program>, interface: InterfaceName, door: &str) -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let mut environment: Vec<(String, String)> = std::env::vars_os().filter_map(text).collect();
        environment.retain(|(name, _)| !is_reserved(name));
        environment.push((PARENT_VARIABLE.to_owned(), format!("{} {door}", interface.text())));
        programs.retain(|program| program.ranks > 0);
        programs
            .iter_mut()
            .for_each(|program| program.environment.splice(..0, environment.iter().cloned()).for_each(drop));
        Self { programs, host: None, watched: false }
    }

    /// The door in the value of [`PARENT_VARIABLE`], if it is one of this interface.
    pub fn door_for(interface: InterfaceName, value: &str) -> Option<&str> {
        value.split_once(' ').filter(|(name, _)| *name == interface.text()).map(|(_, door)| door)
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
        self.host.put(&mut bytes);
        self.watched.put(&mut bytes);
        bytes
    }

    /// # Errors
    /// It is no order.
    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        let mut bytes = FrameBytes { rest: bytes, kind: KIND };
        let (programs, host, watched) = (Coded::take(&mut bytes)?, Coded::take(&mut bytes)?, Coded::take(&mut bytes)?);
        bytes.ended().map(|()| Self { programs, host, watched })
    }
}

/// What became of it. The end of a process is told where the order was to be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpawnWord {
    Started,
    Failed { text: String },
    Ended { rank: u32, exit: Exit },
}

/// How a process has ended, as it travels.
fn parts(exit: Exit) -> (u8, i32) {
    match exit {
        Exit::Code(code) => (b'c', code),
        Exit::Signal(signal) => (b's', signal),
        Exit::OutOfMemory { is_sure } => (b'm', is_sure.into()),
    }
}

impl SpawnWord {
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Started => b"s".to_vec(),
            Self::Failed { text } => [b"f", text.as_bytes()].concat(),
            Self::Ended { rank, exit } => {
                let (kind, number) = parts(*exit);
                [&[b'e', kind][..], &rank.to_le_bytes(), &number.to_le_bytes()].concat()
            }
        }
    }

    /// `None` where it is none.
    pub fn decode(piece: &[u8]) -> Option<Self> {
        match piece.split_first()? {
            (b's', []) => Some(Self::Started),
            (b'f', text) => Some(Self::Failed { text: String::from_utf8_lossy(text).into_owned() }),
            (b'e', [kind, numbers @ ..]) => {
                let [rank, number] = two_words(numbers)?;
                let exit = match kind {
                    b'c' => Exit::Code(number as i32),
                    b's' => Exit::Signal(number as i32),
                    b'm' => Exit::OutOfMemory { is_sure: number != 0 },
                    _ => return None,
                };
                Some(Self::Ended { rank, exit })
            }
            _ => None,
        }
    }
}

fn two_words(bytes: &[u8]) -> Option<[u32; 2]> {
    let (first, rest) = bytes.split_first_chunk()?;
    Some([u32::from_le_bytes(*first), u32::from_le_bytes(rest.try_into().ok()?)])
}

/// A signal that those who have ordered send to a process, or to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalWish {
    pub rank: Option<u32>,
    pub signal: i32,
}

impl SignalWish {
    pub fn encode(self) -> Vec<u8> {
        [&b"k"[..], &self.rank.unwrap_or(ALL).to_le_bytes(), &self.signal.to_le_bytes()].concat()
    }

    /// `None` where it is none.
    pub fn decode(piece: &[u8]) -> Option<Self> {
        let [rank, signal] = two_words(piece.strip_prefix(b"k")?)?;
        let signal = i32::try_from(signal).ok().filter(|signal| SIGNALS.contains(signal))?;
        Some(Self { rank: (rank != ALL).then_some(rank), signal })
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
        let order =
            SpawnOrder { programs: vec![program, Program::default()], host: Some("node7".to_owned()), watched: true };
        let bytes = order.encode();
        assert_eq!(SpawnOrder::decode(&bytes), Ok(order));
        for cut in 0..bytes.len() {
            assert!(SpawnOrder::decode(&bytes[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn the_programs_know_the_door_and_not_the_launcher_of_those_who_spawn() {
        let program = Program { program: "a".into(), ranks: 1, ..Program::default() };
        let none = Program { ranks: 0, ..program.clone() };
        let order = SpawnOrder::new(vec![program, none], InterfaceName::Pvm, "weft/door");
        let [program] = &order.programs[..] else { panic!("{order:?}") };
        assert!(program.environment.contains(&(PARENT_VARIABLE.into(), "pvm weft/door".into())));
        assert_eq!(SpawnOrder::door_for(InterfaceName::Pvm, "pvm weft/door"), Some("weft/door"));
        assert_eq!(SpawnOrder::door_for(InterfaceName::Mpi, "pvm weft/door"), None);
        assert!(program.environment.iter().all(|(name, _)| !name.starts_with("PMI_")));
        assert_eq!(program.environment.iter().filter(|(name, _)| name == "PATH").count(), 1);
    }

    #[test]
    fn what_became_of_it_is_read_as_it_was_written() {
        let ends = [Exit::Code(-3), Exit::Signal(9), Exit::OutOfMemory { is_sure: true }];
        let ends = ends.map(|exit| SpawnWord::Ended { rank: 7, exit });
        for word in [SpawnWord::Started, SpawnWord::Failed { text: "no such program".into() }].into_iter().chain(ends) {
            assert_eq!(SpawnWord::decode(&word.encode()), Some(word));
        }
        for wrong in [&b""[..], b"e", b"ex12345678", b"ec1234567", b"ec123456789"] {
            assert_eq!(SpawnWord::decode(wrong), None);
        }
    }

    #[test]
    fn what_is_wanted_of_the_launcher_is_read_as_it_was_written() {
        for wish in [SignalWish { rank: Some(3), signal: 1 }, SignalWish { rank: None, signal: 64 }] {
            assert_eq!(SignalWish::decode(&wish.encode()), Some(wish));
        }
        for signal in [0, -9, 65] {
            assert_eq!(SignalWish::decode(&SignalWish { rank: None, signal }.encode()), None, "{signal}");
        }
        assert_eq!(SignalWish::decode(b"k1234567"), None);
    }
}
