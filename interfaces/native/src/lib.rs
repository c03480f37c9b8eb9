//! libweft: ports of our own, for C programs (`include/weft.h`) and for Rust.
//!
//! A process joins its job by [`Weft::join`]; what was started alone is a job of one. A message goes to a *process*
//! and a *port* there, with a tag, and its receiver selects by all three. Ports have numbers that the program
//! chooses, or a name by which any process of the user finds them. Beside messages there are raw bytes between two
//! processes ([`Weft::raw_send`]), memory that others read and write ([`OpenMemory`]), handlers that messages call
//! ([`Weft::handler`]), groups whose members all get the same messages in the same order ([`Weft::join_group`]),
//! messages that are started now and waited for later ([`Weft::begin_send`]), and processes that a process starts
//! ([`Weft::start`]).
//!
//! ```
//! use weft_native::{Pick, Weft};
//!
//! let weft = Weft::join()?;
//! let port = weft.open_port(7)?;
//! weft.send(weft.me(), port, 1, b"a word to oneself")?;
//! let mut room = [0; 100];
//! let message = weft.receive(Pick::port(port), &mut room)?;
//! assert_eq!(&room[..message.length], b"a word to oneself");
//! assert_eq!((message.process, message.tag), (weft.me(), 1));
//! # Ok::<(), weft_native::NativeError>(())
//! ```
//!
//! Shape: `abi` turns C into calls of the other files, which are safe for their callers. What threads wait for beside
//! messages stands in `desk`, which the fabric looks after where they wait.
//!
//! Invariants:
//! - Whatever a caller gives is checked before the fabric sees it; no call panics on it.
//! - A process that is inside a handler makes no call but the reply.
//! - Nothing that this library makes outlives the process: names are sockets in no file system.
//!
//! Test: `cargo test -p weft-native`, and `cargo test -p weft-tests --test native` after `cargo xtask tree`.

mod abi;
mod active;
mod begun;
mod begun_desk;
mod desk;
mod elsewhere;
mod end_desk;
mod ends;
mod error;
mod group_desk;
mod groups;
mod join;
mod known;
mod memory;
mod message;
mod names;
mod office;
mod port;
mod raw;
mod received;
mod select;
mod started;
mod started_desk;
mod weft;

pub use active::{CALL_ARGUMENTS, CALL_BYTES, HANDLERS, HandlerCall};
pub use begun_desk::{DoneMessage, RequestNumber};
pub use end_desk::{GoneHow, ProcessEnd};
pub use error::{ErrorKind, NativeError};
pub use group_desk::{GroupNews, GroupNumber, JoinRules};
pub use known::PortNumber;
pub use memory::{OpenMemory, RemoteMemory};
pub use message::Pick;
pub use office::NAME_BYTES;
pub use port::FIRST_GIVEN;
pub use received::ReceivedMessage;
pub use select::{Happened, MaySleep, Polled};
pub use weft::{Single, Threaded, Weft};
pub use weft_ports::Peer;
