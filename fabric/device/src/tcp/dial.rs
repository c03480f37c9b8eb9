//! Reaching one peer: every address of its host is tried until one leads to the peer itself.
//!
//! An address is a claim. Whoever answers there must prove that it knows the key of the job, and is the rank that was
//! called; until then the other addresses are tried beside it. A peer that computes answers late, so one that has taken
//! the connection is waited for as long as that takes, and only where no connection comes about there is a limit.
//!
//! Addresses are tried a tenth of a second apart. A rank is given up after 12 seconds, with a line that names each
//! address and what happened there; sooner where nobody listens any more at any of them.

use super::epoll::{Epoll, SocketWatch, Token};
use super::socket::{Read, TcpSocket};
use crate::{kernel, sys};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::Arc;
use weft_wire::tcp::record::RecordKeys;
use weft_wire::tcp::{ANSWER_BYTES, Dialling, Key, Nonce, USE, differs};

const MS: u64 = 1_000_000;
/// The next address is tried after so long without an answer from the ones before.
const STAGGER_NS: u64 = 100 * MS;
/// Before an address is tried again, for the first time; twice that for the second, and so on up to eight times.
const PAUSE_NS: u64 = 250 * MS;
/// After so long without a connection the user is told.
const NOTICE_NS: u64 = 3_000 * MS;
/// And after so long where connections are taken and nobody answers: a rank that computes does so as well.
const QUIET_NOTICE_NS: u64 = 30_000 * MS;
/// After so long without a connection the peer is given up: networks recover from short faults meanwhile. The time in
/// which one was taken does not count.
const LIMIT_NS: u64 = 12_000 * MS;

/// A peer that listened has ended where every address has refused connections for so long.
const REFUSED_NS: u64 = 3_000 * MS;
/// The same of an address of this host, which no fault of a network keeps from answering.
const REFUSED_HERE_NS: u64 = 200 * MS;

/// An address is tried so often at least.
const TRIES: u32 = 3;
/// One of this host.
const TRIES_HERE: u32 = 2;

/// One that was never used. The keys of an encrypted connection are made from it, so for those nothing but chance will
/// do.
///
/// # Errors
/// There are no random numbers, and it is for an encrypted connection.
pub fn nonce(encrypts: bool) -> io::Result<Nonce> {
    let half = || match kernel::true_random() {
        Some(number) => Ok(number.to_le_bytes()),
        None if encrypts => Err(io::Error::other("encryption needs random numbers, and the system gives none")),
        None => Ok(kernel::random().to_le_bytes()),
    };
    let mut nonce = [0; 16];
    nonce[..8].copy_from_slice(&half()?);
    nonce[8..].copy_from_slice(&half()?);
    Ok(nonce)
}

/// How far an attempt has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DialStage {
    /// To be tried from then on.
    Waiting {
        from_ns: u64,
    },
    Connecting,
    /// Connected, and the greeting is sent.
    Greeted,
    /// Both have proven themselves; the other side decides.
    Proven,
}

struct Attempt {
    address: SocketAddr,
    /// With a nonce of its own, which counts once.
    call: Dialling,
    stage: DialStage,
    /// When it was last begun.
    begun_ns: u64,
    /// Unless it waits.
    socket: Option<TcpSocket>,
    heard: GreetingBytes,
    failures: u32,
    /// Nobody listens there: so it ended the last time, and since when it has.
    refused: bool,
    /// The first and the last time in a row.
    refusals_ns: Option<(u64, u64)>,
    /// Whether it is an address of this host, once it has refused.
    is_here: Option<bool>,
    cause: Option<String>,
    /// The keys of the connection, where it is encrypted and both have proven themselves.
    session: Option<RecordKeys>,
    /// The rank wants otherwise about encryption.
    differs: bool,
}

/// Bytes of a message of the greeting, as far as they have come.
#[derive(Default)]
pub struct GreetingBytes {
    bytes: Vec<u8>,
}

impl GreetingBytes {
    /// Reads until `N` bytes are there, and not one more; `None` while some are missing.
    pub fn read<const N: usize>(&mut self, socket: &TcpSocket) -> io::Result<Option<[u8; N]>> {
        let have = self.bytes.len();
        self.bytes.resize(N, 0);
        let read = socket.read(&mut self.bytes[have..]);
        self.bytes.truncate(have + if let Ok(Read::Bytes(count)) = read { count } else { 0 });
        if read? == Read::End {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let whole = self.bytes.first_chunk().copied();
        if whole.is_some() {
            self.bytes.clear();
        }
        Ok(whole)
    }
}

/// The attempts to reach one peer.
pub struct Dial {
    attempts: Vec<Attempt>,
    began_ns: u64,
    /// When it would have begun if no connection had been taken in between.
    since_ns: u64,
    /// Since when one is taken.
    connected_ns: Option<u64>,
    noticed: bool,
    /// Of the two sides this one chooses which connection stays.
    leads: bool,
    /// It is given up soon where nobody listens any more. All listen before anybody hears of them; but within a job
    /// faults of the network are ridden out first.
    gives_up_soon: bool,
}

/// What time has brought.
pub enum Due {
    Nothing,
    /// No connection yet. To be told to the user, as the next one; one of both, once.
    Notice(String),
    /// Connections are taken, and nobody answers.
    Quiet(String),
    /// Nothing leads to the peer.
    Unreachable(String),
}

impl Dial {
    /// From rank `from` to rank `to`, which has these addresses.
    pub fn new(from: u32, to: u32, encrypts: bool, addresses: &[SocketAddr], now_ns: u64) -> Self {
        let attempt = |(index, address): (usize, &SocketAddr)| Attempt {
            address: *address,
            call: Dialling { from, to, nonce: [0; 16], encrypts },
            stage: DialStage::Waiting { from_ns: now_ns + index as u64 * STAGGER_NS },
            begun_ns: now_ns,
            socket: None,
            heard: GreetingBytes::default(),
            failures: 0,
            refused: false,
            refusals_ns: None,
            is_here: None,
            cause: None,
            session: None,
            differs: false,
        };
        let attempts = addresses.iter().enumerate().map(attempt).collect();
        let (noticed, gives_up_soon, leads) = (false, false, from < to);
        Self { attempts, began_ns: now_ns, since_ns: now_ns, connected_ns: None, noticed, leads, gives_up_soon }
    }

    /// The same to a process of another job, where not the ranks say who of the two chooses.
    pub fn for_another_job(self, leads: bool) -> Self {
        Self { leads, gives_up_soon: true, ..self }
    }

    /// All addresses are those of another host.
    #[cfg(test)]
    pub fn elsewhere(mut self) -> Self {
        self.attempts.iter_mut().for_each(|attempt| attempt.is_here = Some(false));
        self
    }

    /// When [`Self::handle_time`] has something to do next.
    pub fn next_ns(&self) -> u64 {
        if self.differs() || self.has_ended() {
            return 0;
        }
        let notice = (!self.noticed).then_some(self.notice_ns());
        let starts = self.attempts.iter().filter_map(|attempt| match attempt.stage {
            DialStage::Waiting { from_ns } => Some(from_ns),
            _ => None,
        });
        let limit = self.attempts.iter().map(|attempt| attempt.hopeless_ns(self.since_ns)).max().unwrap_or(0);
        let limit = (!self.is_connected()).then_some(limit);
        starts.chain(notice).chain(limit).min().unwrap_or(u64::MAX)
    }

    /// When the user is told that there is nothing yet.
    fn notice_ns(&self) -> u64 {
        if self.is_connected() { self.began_ns + QUIET_NOTICE_NS } else { self.since_ns + NOTICE_NS }
    }

    /// Whether the other side may hold one of the connections for the pair's already.
    pub fn is_proven(&self) -> bool {
        self.attempts.iter().any(|attempt| attempt.stage == DialStage::Proven)
    }

    #[cfg(test)]
    pub fn is_connecting(&self) -> bool {
        self.attempts.iter().any(|attempt| attempt.stage == DialStage::Connecting)
    }

    #[cfg(test)]
    pub fn tries(&self) -> u32 {
        self.attempts.iter().map(|attempt| attempt.failures).sum()
    }

    /// Whether the rank itself has said that there is no way to talk.
    fn differs(&self) -> bool {
        self.attempts.iter().any(|attempt| attempt.differs)
    }

    /// Whether the peer counts as ended, because nobody listens at any address.
    fn has_ended(&self) -> bool {
        let is_deserted = |attempt: &Attempt| attempt.is_deserted(self.gives_up_soon);
        !self.attempts.is_empty() && self.attempts.iter().all(is_deserted)
    }

    fn is_connected(&self) -> bool {
        self.attempts.iter().any(|attempt| matches!(attempt.stage, DialStage::Greeted | DialStage::Proven))
    }

    /// Begins the attempts that are due. `token` names the attempt of an index.
    pub fn handle_time(&mut self, now_ns: u64, epoll: &Arc<Epoll>, token: impl Fn(usize) -> Token) -> Due {
        if self.differs() {
            return Due::Unreachable(self.story());
        }
        for index in 0..self.attempts.len() {
            let attempt = &mut self.attempts[index];
            if matches!(attempt.stage, DialStage::Waiting { from_ns } if from_ns <= now_ns)
                && let Err(cause) = attempt.begin(now_ns, epoll, token(index))
            {
                attempt.refused = is_refusal(&cause);
                self.fail(index, cause.to_string(), now_ns);
            }
        }
        let connected = self.is_connected();
        let has_ended = self.has_ended();
        let is_hopeless = |attempt: &Attempt| attempt.hopeless_ns(self.since_ns) <= now_ns;
        if !connected && (has_ended || self.attempts.iter().all(is_hopeless)) {
            return Due::Unreachable(self.story());
        }
        if self.noticed || now_ns < self.notice_ns() {
            return Due::Nothing;
        }
        self.noticed = true;
        if connected { Due::Quiet(self.story()) } else { Due::Notice(self.story()) }
    }

    /// Every address, and what happened there.
    fn story(&self) -> String {
        if self.attempts.is_empty() {
            return "its host has no address".to_owned();
        }
        let lines: Vec<String> = self.attempts.iter().map(Attempt::story).collect();
        lines.join("; ")
    }

    /// Moves the attempt whose socket is ready. The pair's connection, if it is this one: for the lower rank one that
    /// has been proven, for the higher one that the lower has chosen.
    pub fn handle_ready(
        &mut self,
        index: usize,
        key: &Key,
        now_ns: u64,
        epoll: &Epoll,
        token: Token,
    ) -> Option<(TcpSocket, SocketAddr, Option<RecordKeys>)> {
        let attempt = self.attempts.get_mut(index)?;
        match attempt.step(key, self.leads, epoll, token) {
            Ok(false) => {
                if self.is_connected() {
                    self.connected_ns.get_or_insert(now_ns);
                }
                None
            }
            Ok(true) => attempt.socket.take().map(|socket| (socket, attempt.address, attempt.session)),
            Err(cause) => {
                self.fail(index, cause, now_ns);
                None
            }
        }
    }

    fn fail(&mut self, index: usize, cause: String, now_ns: u64) {
        let attempt = &mut self.attempts[index];
        attempt.stage = DialStage::Waiting { from_ns: now_ns + (PAUSE_NS << attempt.failures.min(3)) };
        attempt.socket = None;
        attempt.heard = GreetingBytes::default();
        attempt.failures += 1;
        attempt.cause = Some(cause);
        let first_ns = attempt.refusals_ns.map_or(now_ns, |(first_ns, _)| first_ns);
        attempt.refusals_ns = attempt.refused.then_some((first_ns, now_ns));
        if attempt.refused {
            attempt.is_here.get_or_insert_with(|| sys::is_own_address(attempt.address.ip()));
        }
        // Nobody need wait for this one any more.
        let untried = self.attempts.iter_mut().find(|attempt| attempt.failures == 0);
        if let Some(Attempt { stage: DialStage::Waiting { from_ns }, .. }) = untried {
            *from_ns = now_ns;
        }
        if !self.is_connected()
            && let Some(from_ns) = self.connected_ns.take()
        {
            self.since_ns += now_ns.saturating_sub(from_ns);
        }
    }
}

impl Attempt {
    /// From when on nothing is to be hoped of it. Time alone proves nothing: a rank that computes looks at its sockets
    /// after any time, and an address that has failed before has then to be tried again.
    fn hopeless_ns(&self, since_ns: u64) -> u64 {
        match self.stage {
            _ if self.failures >= TRIES => since_ns + LIMIT_NS,
            DialStage::Waiting { from_ns } => from_ns.max(since_ns) + LIMIT_NS,
            _ => self.begun_ns + LIMIT_NS,
        }
    }

    /// Whether nobody listens there, and that is not by chance: for a moment a host may refuse what it takes again.
    fn is_deserted(&self, also_elsewhere: bool) -> bool {
        let (tries, least_ns) = match self.is_here {
            Some(true) => (TRIES_HERE, REFUSED_HERE_NS),
            _ if also_elsewhere => (TRIES, REFUSED_NS),
            _ => return false,
        };
        let is_over = self.failures >= tries && matches!(self.stage, DialStage::Waiting { .. });
        is_over && self.refusals_ns.is_some_and(|(first_ns, last_ns)| last_ns.saturating_sub(first_ns) >= least_ns)
    }

    fn begin(&mut self, now_ns: u64, epoll: &Arc<Epoll>, token: Token) -> io::Result<()> {
        self.begun_ns = now_ns;
        self.call.nonce = nonce(self.call.encrypts)?;
        let mut socket = TcpSocket::dial(&self.address)?;
        socket.watch(epoll, SocketWatch::Both, token)?;
        self.stage = DialStage::Connecting;
        self.socket = Some(socket);
        Ok(())
    }

    fn story(&self) -> String {
        let what = match (self.stage, &self.cause) {
            (DialStage::Greeted, _) => "connected, but nobody has answered our greeting",
            (DialStage::Proven, _) => "connected and greeted",
            (_, Some(cause)) => cause,
            (DialStage::Connecting, None) => "no answer to the request for a connection",
            (DialStage::Waiting { .. }, None) => "not tried yet",
        };
        format!("{}: {what}", self.address)
    }

    /// One step of the greeting; true when the connection may be used.
    fn step(&mut self, key: &Key, leads: bool, epoll: &Epoll, token: Token) -> Result<bool, String> {
        let Some(socket) = &self.socket else { return Ok(false) };
        let call = &self.call;
        match self.stage {
            DialStage::Waiting { .. } => Ok(false),
            DialStage::Connecting => {
                let error = socket.error();
                self.refused = error.as_ref().is_some_and(is_refusal);
                if let Some(error) = error {
                    return Err(error.to_string());
                }
                epoll.change(socket.raw(), SocketWatch::Input, token).map_err(|error| error.to_string())?;
                send(socket, &call.hello(key))?;
                self.stage = DialStage::Greeted;
                Ok(false)
            }
            DialStage::Greeted => {
                let Some(answer) = self.heard.read::<ANSWER_BYTES>(socket).map_err(told)? else { return Ok(false) };
                let Some(nonce) = call.from_answer(&answer, key) else {
                    self.differs = call.with(!call.encrypts).from_answer(&answer, key).is_some();
                    return Err(match self.differs {
                        true => differs(call.encrypts),
                        false => "who answered there is no rank of this job: it does not know the key",
                    }
                    .to_owned());
                };
                self.session = call.encrypts.then(|| RecordKeys::of_caller(key, call, &nonce));
                send(socket, &call.proof(key, &nonce))?;
                self.stage = DialStage::Proven;
                if leads {
                    send(socket, &USE)?;
                }
                Ok(leads)
            }
            DialStage::Proven => match self.heard.read::<{ USE.len() }>(socket).map_err(told)? {
                None => Ok(false),
                Some(USE) => Ok(true),
                Some(_) => Err("who answered there does not keep the protocol".to_owned()),
            },
        }
    }
}

fn is_refusal(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}

fn told(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            "the connection was taken and closed again; another program may listen there, or too many that said nothing \
             were connected to it"
                .to_owned()
        }
        _ => error.to_string(),
    }
}

/// Sends a short message on a connection on which little has been said, so that it has room.
pub fn send(socket: &TcpSocket, bytes: &[u8]) -> Result<(), String> {
    match socket.write(&[IoSlice::new(bytes)], false) {
        Ok(count) if count == bytes.len() => Ok(()),
        Ok(_) => Err("no room for a greeting".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
