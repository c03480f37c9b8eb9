//! Remote procedure calls for Rust.

use crate::calls::{RequestHandler, RpcCaller};
use crate::life;
use crate::message::{Content, words_of};
use crate::rpc::{reply, trans};
use crate::takers;
use crate::world::WORLD;
use std::sync::Arc;
use weft_fabric::{JoinError, Peer};

/// A process among those of the job, which calls the others and is called by them. There is one at a time.
///
/// ```no_run
/// let rpc = weft_panda::Rpc::join()?;
/// rpc.serve(|request| {
///     let sum: u32 = request.bytes().iter().map(|byte| u32::from(*byte)).sum();
///     request.reply(&sum.to_le_bytes());
/// });
/// let answer = rpc.call((rpc.me() + 1) % rpc.platforms(), &[1, 2, 3])?;
/// assert_eq!(answer, 6u32.to_le_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Rpc {
    me: u32,
    platforms: u32,
}

/// Why there is no answer to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlatformLost {
    pub platform: u32,
}

impl std::fmt::Display for PlatformLost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "platform {} has ended and answers no more", self.platform)
    }
}

impl std::error::Error for PlatformLost {}

impl Rpc {
    /// Joins the job, or makes one of this process alone where nobody has launched it. Handlers run from now on.
    ///
    /// # Errors
    /// Why the process cannot join.
    ///
    /// # Panics
    /// There is one already, or the system gives no thread.
    pub fn join() -> Result<Self, JoinError> {
        let (me, platforms) = life::open()?;
        life::start().expect("a thread");
        Ok(Self { me, platforms })
    }

    /// This process's number.
    pub fn me(&self) -> u32 {
        self.me
    }

    /// How many processes there are.
    pub fn platforms(&self) -> u32 {
        self.platforms
    }

    /// Has calls of others handled, also those that have come before. Handlers run one at a time; one that calls others
    /// lets further ones run meanwhile, in its thread.
    ///
    /// # Panics
    /// If there is a handler.
    pub fn serve(&self, handler: impl Fn(RpcRequest) + Send + Sync + 'static) {
        let handler = move |caller, content| handler(RpcRequest { caller, content });
        let mut world = WORLD.enter();
        assert!(world.calls.register(RequestHandler::Rust(Arc::new(handler))), "there is a handler");
        world.look_at_early();
    }

    /// Calls a process, and waits for its answer.
    ///
    /// # Errors
    /// It has ended.
    ///
    /// # Panics
    /// If there is no such process.
    pub fn call(&self, platform: u32, bytes: &[u8]) -> Result<Vec<u8>, PlatformLost> {
        assert!(platform < self.platforms, "no platform {platform}, of {}", self.platforms);
        let answer = trans("call", Peer(platform), bytes);
        answer.map(|content| content.bytes().to_vec()).map_err(|peer| PlatformLost { platform: peer.0 })
    }

    /// Runs handlers of what has come, if any.
    pub fn poll(&self) {
        takers::poll();
    }
}

impl Drop for Rpc {
    fn drop(&mut self) {
        life::close("leaving");
    }
}

/// A call that is to be answered, now or later, in any thread.
pub struct RpcRequest {
    caller: RpcCaller,
    content: Content,
}

impl RpcRequest {
    /// Who has called.
    pub fn from(&self) -> u32 {
        self.caller.from.0
    }

    pub fn bytes(&self) -> &[u8] {
        self.content.bytes()
    }

    pub fn reply(self, bytes: &[u8]) {
        reply("reply", self.caller, Content { words: words_of(bytes), length: bytes.len() });
    }
}
