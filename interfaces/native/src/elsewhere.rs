//! Names of ports that processes of our own job have on other hosts: those are asked, by active messages.
//!
//! Who looks for a name asks again and again, ever more rarely, since it may be opened later. Who has it answers
//! wherever it waits or polls; nobody else does.

use crate::known::{self, PortNumber};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weft_fabric::active::ActiveCall;
use weft_ports::{Endpoint, Peer};

/// Handlers of the library's own, after those of memory: somebody looks for a name, and hears who has it.
const LOOK: u16 = 4;
const HAVE: u16 = 5;

const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

#[derive(Default)]
struct JobNames {
    /// Of this process.
    mine: HashMap<String, PortNumber>,
    /// Searches that go on, by their numbers, and what was heard.
    searches: HashMap<u64, Option<(Peer, PortNumber)>>,
    asked: u64,
}

static NAMES: LazyLock<Mutex<JobNames>> = LazyLock::new(Mutex::default);

fn names() -> MutexGuard<'static, JobNames> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers what answers others; to be called once the process has joined.
pub fn begin(endpoint: &mut Endpoint) {
    endpoint.register_handler(LOOK, |call| {
        let name = std::str::from_utf8(call.bytes).unwrap_or_default();
        let port = names().mine.get(name).copied();
        if let (Some(port), Some(&asked)) = (port, call.arguments.first()) {
            // Who has sent something else than a request gets no answer.
            let _ = call.reply(HAVE, &[asked, port.0.into()], b"");
        }
    });
    endpoint.register_handler(HAVE, |call| _ = on_have(&call));
}

fn on_have(call: &ActiveCall<'_>) -> Option<()> {
    let [asked, port] = *call.arguments.first_chunk::<2>()?;
    let port = PortNumber(port.try_into().ok()?);
    // The first answer counts, and one to a search that is over, or never was, does not.
    names().searches.get_mut(&asked)?.get_or_insert((call.peer, port));
    Some(())
}

/// A port of this process has this name from now on.
pub fn add(name: &str, port: PortNumber) {
    names().mine.insert(name.to_owned(), port);
}

/// It has none any more.
pub fn forget_port(port: PortNumber) {
    names().mine.retain(|_, named| *named != port);
}

/// The search for a name on other hosts.
pub struct SearchElsewhere {
    asked: u64,
    next: Instant,
    pause: Duration,
}

impl SearchElsewhere {
    pub fn new() -> Self {
        let mut names = names();
        names.asked += 1;
        let asked = names.asked;
        names.searches.insert(asked, None);
        Self { asked, next: Instant::now(), pause: FIRST_PAUSE }
    }

    /// One step; who has the name, once that is known.
    pub fn advance(&mut self, endpoint: &mut Endpoint, name: &str, now: Instant) -> Option<(Peer, PortNumber)> {
        let heard = names().searches.get(&self.asked).copied().flatten();
        if heard.is_some() {
            return heard;
        }
        if now >= self.next {
            (self.next, self.pause) = (now + self.pause, (2 * self.pause).min(LONGEST_PAUSE));
            for peer in (0..known::size()).map(Peer) {
                if !endpoint.is_local(peer) {
                    // What cannot leave now is asked again, and who is gone has no names.
                    let _ = endpoint.try_request(peer, LOOK, &[self.asked], name.as_bytes());
                }
            }
        }
        None
    }
}

impl Drop for SearchElsewhere {
    fn drop(&mut self) {
        names().searches.remove(&self.asked);
    }
}
