//! A rank's half of PMI-1: encodes requests, reads answers. The caller owns the socket.

use super::{Fields, KEY_MAX, KVSNAME_MAX, LineBuffer, Lost, VALUE_MAX};
use std::collections::VecDeque;
use weft_wire::interface::InterfaceName;

/// The longest answer that is read; other managers add fields of their own to a line.
const ANSWER_MAX: usize = 16 * 1024;

/// What a rank asks its process manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PmiRequest {
    /// Always the first. The manager may answer a higher subversion. Only our own is told by which interface we begin.
    Init {
        interface: Option<InterfaceName>,
    },
    Maxes,
    KvsName,
    UniverseSize,
    Appnum,
    Put {
        kvsname: String,
        key: String,
        value: String,
    },
    Get {
        kvsname: String,
        key: String,
    },
    Barrier,
    /// Asks to be told which ranks are lost ([`Client::poll_lost`]). Only the manager of `weft run` knows it.
    Watch,
    Finalise,
    /// Our own launcher only: another launcher is to be started, which gets its order at this door.
    Spawn {
        door: String,
    },
    /// Our own launcher only: a rank is to get this signal.
    Signal {
        rank: usize,
        signal: i32,
    },
    /// Asks the manager to end the job. No answer is to be waited for.
    Abort {
        code: i32,
        message: String,
        /// What this one has lost before: why, most likely. Told to our own launcher only.
        lost: Option<Lost>,
    },
}

/// What the process manager answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Version and subversion that the manager speaks.
    Init(u32, u32),
    /// Longest name, key and value in bytes.
    Maxes {
        kvsname: usize,
        key: usize,
        value: usize,
    },
    KvsName(String),
    /// How many ranks there could be; `None` where the manager does not know (some answer -1).
    UniverseSize(Option<usize>),
    Appnum(usize),
    Put,
    /// `None`: nobody has put this key.
    Get(Option<String>),
    Barrier,
    Watch,
    Finalise,
    Spawn,
    Signal,
}

/// Why a request cannot be sent, or an answer not be used. The conversation is over after the latter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    #[error("PMI {what} '{text}' is not 1 to {max} bytes without blank or newline")]
    Unsendable { what: &'static str, text: String, max: usize },
    #[error("PMI request sent while the answer to '{pending}' is due")]
    OutOfTurn { pending: &'static str },
    #[error("the process manager answered '{line}' to '{asked}'")]
    Unexpected { asked: &'static str, line: String },
    #[error("the process manager refused '{asked}': {reason}")]
    Refused { asked: &'static str, reason: String },
    #[error("the process manager sent a line of more than {ANSWER_MAX} bytes")]
    TooLong,
}

impl PmiRequest {
    /// The name of the request on the wire.
    pub fn name(&self) -> &'static str {
        self.names().0
    }

    /// The request's name and the name of its answer.
    fn names(&self) -> (&'static str, &'static str) {
        match self {
            Self::Init { .. } => ("init", "response_to_init"),
            Self::Maxes => ("get_maxes", "maxes"),
            Self::KvsName => ("get_my_kvsname", "my_kvsname"),
            Self::UniverseSize => ("get_universe_size", "universe_size"),
            Self::Appnum => ("get_appnum", "appnum"),
            Self::Put { .. } => ("put", "put_result"),
            Self::Get { .. } => ("get", "get_result"),
            Self::Barrier => ("barrier_in", "barrier_out"),
            Self::Watch => ("watch", "watching"),
            Self::Finalise => ("finalize", "finalize_ack"),
            Self::Spawn { .. } => (super::SPAWN, super::SPAWNED),
            Self::Signal { .. } => (super::SIGNAL, super::SIGNALLED),
            Self::Abort { .. } => ("abort", ""),
        }
    }

    /// The line to write, newline included.
    pub fn encode(&self) -> Result<String, ClientError> {
        let name = self.name();
        Ok(match self {
            Self::Init { interface } => {
                let interface = interface.map(|of| format!(" interface={}", of.text())).unwrap_or_default();
                format!("cmd={name} pmi_version=1 pmi_subversion=1{interface}\n")
            }
            Self::Put { kvsname, key, value } => {
                check("kvsname", kvsname, KVSNAME_MAX)?;
                check("key", key, KEY_MAX)?;
                check("value", value, VALUE_MAX)?;
                format!("cmd={name} kvsname={kvsname} key={key} value={value}\n")
            }
            Self::Get { kvsname, key } => {
                check("kvsname", kvsname, KVSNAME_MAX)?;
                check("key", key, KEY_MAX)?;
                format!("cmd={name} kvsname={kvsname} key={key}\n")
            }
            Self::Spawn { door } => {
                check("door", door, VALUE_MAX)?;
                format!("cmd={name} door={door}\n")
            }
            Self::Signal { rank, signal } => format!("cmd={name} rank={rank} signal={signal}\n"),
            Self::Abort { code, message, lost } => abort_line(*code, message, *lost),
            _ => format!("cmd={name}\n"),
        })
    }
}

fn check(what: &'static str, text: &str, max: usize) -> Result<(), ClientError> {
    let fits = !text.is_empty() && text.len() <= max && !text.contains([' ', '\n', '\r', '\t', '\0']);
    let unsendable = || ClientError::Unsendable { what, text: text.chars().take(80).collect(), max };
    fits.then_some(()).ok_or_else(unsendable)
}

/// A message has no way to keep its blanks; they become underscores.
fn abort_line(code: i32, message: &str, lost: Option<Lost>) -> String {
    let safe: String = message.chars().map(|c| if c.is_ascii_graphic() { c } else { '_' }).take(400).collect();
    let message = if safe.is_empty() { safe } else { format!(" message={safe}") };
    let lost = lost.map(|lost| format!(" lost={lost}")).unwrap_or_default();
    format!("cmd=abort exitcode={code}{message}{lost}\n")
}

/// One conversation with the process manager: ask with [`Client::handle_request`], write the bytes it returns, feed
/// what is read to [`Client::handle_bytes`], take the answer with [`Client::poll_reply`].
#[derive(Debug)]
pub struct Client {
    input: LineBuffer,
    pending: Option<PmiRequest>,
    /// Told, and not taken.
    lost: VecDeque<usize>,
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl Client {
    pub fn new() -> Self {
        Self { input: LineBuffer::new(ANSWER_MAX), pending: None, lost: VecDeque::new() }
    }

    /// The bytes to write for `request`. One request at a time; an abort may cut in.
    pub fn handle_request(&mut self, request: PmiRequest) -> Result<Vec<u8>, ClientError> {
        if matches!(request, PmiRequest::Abort { .. }) {
            return Ok(request.encode()?.into_bytes());
        }
        if let Some(pending) = &self.pending {
            return Err(ClientError::OutOfTurn { pending: pending.name() });
        }
        let line = request.encode()?;
        self.pending = Some(request);
        Ok(line.into_bytes())
    }

    /// Whether the answer to a request is due.
    pub fn is_waiting(&self) -> bool {
        self.pending.is_some()
    }

    /// Takes in what was read from the manager's socket.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        self.input.handle_bytes(bytes);
    }

    /// The answer to the pending request, once its line is whole. Nothing is pending afterwards, also after an error.
    pub fn poll_reply(&mut self) -> Result<Option<Reply>, ClientError> {
        let Some(request) = self.pending.as_ref() else { return Ok(None) };
        let line = loop {
            match self.input.poll_line().map_err(|_| ClientError::TooLong)? {
                None => return Ok(None),
                Some(line) if note_lost(&mut self.lost, &line) => {}
                Some(line) => break line,
            }
        };
        let reply = parse_reply(request, &line);
        self.pending = None;
        reply.map(Some)
    }

    /// The next rank that is lost, as far as has been read. Nothing may be pending.
    pub fn poll_lost(&mut self) -> Option<usize> {
        if self.pending.is_none() {
            while let Ok(Some(line)) = self.input.poll_line() {
                note_lost(&mut self.lost, &line);
            }
        }
        self.lost.pop_front()
    }
}

/// Whether the line tells of a rank that is lost, which is noted.
fn note_lost(lost: &mut VecDeque<usize>, line: &str) -> bool {
    let fields = Fields::parse(line);
    if fields.command() != Some("lost") {
        return false;
    }
    lost.extend(fields.number::<usize>("rank"));
    true
}

fn parse_reply(request: &PmiRequest, line: &str) -> Result<Reply, ClientError> {
    let (asked, answer) = request.names();
    let fields = Fields::parse(line);
    let unexpected = || ClientError::Unexpected { asked, line: line.chars().take(120).collect() };
    if fields.command() != Some(answer) {
        return Err(unexpected());
    }
    let refused = fields.value("rc").is_some_and(|rc| rc != "0");
    if refused && !matches!(request, PmiRequest::Get { .. }) {
        return Err(ClientError::Refused {
            asked,
            reason: fields.value("msg").unwrap_or("no reason given").to_owned(),
        });
    }
    let number = |key| fields.number::<usize>(key).ok_or_else(unexpected);
    Ok(match request {
        PmiRequest::Init { .. } => init_reply(&fields).ok_or_else(unexpected)?,
        PmiRequest::Maxes => {
            Reply::Maxes { kvsname: number("kvsname_max")?, key: number("keylen_max")?, value: number("vallen_max")? }
        }
        PmiRequest::KvsName => Reply::KvsName(fields.value("kvsname").ok_or_else(unexpected)?.to_owned()),
        PmiRequest::UniverseSize => {
            Reply::UniverseSize(usize::try_from(fields.number::<i64>("size").ok_or_else(unexpected)?).ok())
        }
        PmiRequest::Appnum => Reply::Appnum(number("appnum")?),
        PmiRequest::Put { .. } => Reply::Put,
        // `found=FALSE` is how some managers say that a key is missing while `rc` is 0.
        PmiRequest::Get { .. } if refused || fields.value("found") == Some("FALSE") => Reply::Get(None),
        PmiRequest::Get { .. } => Reply::Get(Some(fields.value("value").ok_or_else(unexpected)?.to_owned())),
        PmiRequest::Barrier => Reply::Barrier,
        PmiRequest::Watch => Reply::Watch,
        PmiRequest::Finalise => Reply::Finalise,
        PmiRequest::Spawn { .. } => Reply::Spawn,
        PmiRequest::Signal { .. } => Reply::Signal,
        PmiRequest::Abort { .. } => return Err(unexpected()),
    })
}

fn init_reply(fields: &Fields) -> Option<Reply> {
    Some(Reply::Init(fields.number("pmi_version")?, fields.number("pmi_subversion")?))
}

#[cfg(test)]
mod tests {
    use super::super::{PmiEvent, PmiServer};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn losses_are_told_to_those_that_have_asked_and_may_come_before_an_answer() {
        let mut server = PmiServer::new("job", vec![0; 3]);
        let mut client = Client::new();
        let exchange = |client: &mut Client, server: &mut PmiServer, bytes: &[u8]| {
            server.handle_bytes(0, bytes);
            while let Some(event) = server.poll_event() {
                if let PmiEvent::Reply { rank: 0, line } = event {
                    client.handle_bytes(line.as_bytes());
                }
            }
        };
        server.handle_lost(2);
        let asked = client.handle_request(PmiRequest::Watch).unwrap();
        exchange(&mut client, &mut server, &asked);
        assert_eq!(client.poll_reply(), Ok(Some(Reply::Watch)));
        server.handle_lost(1);
        let asked = client.handle_request(PmiRequest::KvsName).unwrap();
        exchange(&mut client, &mut server, &asked);
        assert_eq!(client.poll_lost(), None, "an answer is due");
        assert_eq!(client.poll_reply(), Ok(Some(Reply::KvsName("job".to_owned()))));
        assert_eq!((client.poll_lost(), client.poll_lost(), client.poll_lost()), (Some(2), Some(1), None));
    }

    fn reply_to(request: PmiRequest, line: &str) -> Result<Option<Reply>, ClientError> {
        let mut client = Client::new();
        client.handle_request(request).unwrap();
        client.handle_bytes(line.as_bytes());
        client.poll_reply()
    }

    #[test]
    fn higher_subversion_is_accepted() {
        let line = "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2\n";
        assert_eq!(reply_to(PmiRequest::Init { interface: None }, line), Ok(Some(Reply::Init(1, 2))));
    }

    #[test]
    fn unknown_universe_size_is_an_answer() {
        let line = "cmd=universe_size rc=0 size=-1\n";
        assert_eq!(reply_to(PmiRequest::UniverseSize, line), Ok(Some(Reply::UniverseSize(None))));
    }

    #[test]
    fn missing_key_is_an_answer_in_both_dialects() {
        let get = || PmiRequest::Get { kvsname: "j".into(), key: "k".into() };
        assert_eq!(reply_to(get(), "cmd=get_result rc=-1 msg=key_k_not_found\n"), Ok(Some(Reply::Get(None))));
        assert_eq!(reply_to(get(), "cmd=get_result rc=0 found=FALSE\n"), Ok(Some(Reply::Get(None))));
        let found = reply_to(get(), "cmd=get_result rc=0 found=TRUE value=a=b\n");
        assert_eq!(found, Ok(Some(Reply::Get(Some("a=b".into())))));
    }

    #[test]
    fn refusal_names_request_and_reason() {
        let error = reply_to(PmiRequest::Barrier, "cmd=barrier_out rc=-1 msg=no\n").unwrap_err();
        assert_eq!(error.to_string(), "the process manager refused 'barrier_in': no");
    }

    #[test]
    fn answer_to_something_else_is_an_error() {
        assert!(matches!(reply_to(PmiRequest::Barrier, "cmd=maxes\n"), Err(ClientError::Unexpected { .. })));
    }

    #[test]
    fn half_a_line_is_no_answer_yet() {
        assert_eq!(reply_to(PmiRequest::Barrier, "cmd=barrier_ou"), Ok(None));
    }

    #[test]
    fn blank_in_a_value_is_refused_before_it_is_sent() {
        let put = PmiRequest::Put { kvsname: "j".into(), key: "k".into(), value: "a b".into() };
        assert!(matches!(put.encode(), Err(ClientError::Unsendable { what: "value", .. })));
    }

    #[test]
    fn second_request_must_wait_but_abort_may_not() {
        let mut client = Client::new();
        client.handle_request(PmiRequest::Barrier).unwrap();
        assert_eq!(client.handle_request(PmiRequest::Maxes), Err(ClientError::OutOfTurn { pending: "barrier_in" }));
        let line = client
            .handle_request(PmiRequest::Abort { code: 3, message: "it broke".into(), lost: Some(Lost::Rank(7)) })
            .unwrap();
        assert_eq!(line, b"cmd=abort exitcode=3 message=it_broke lost=7\n");
    }

    proptest! {
        #[test]
        fn client_and_server_understand_each_other(key in "[a-zA-Z0-9_-]{1,64}", value in "[!-~]{1,1024}") {
            prop_assume!(!key.starts_with("PMI_"));
            let mut server = PmiServer::new("job", vec![0]);
            let mut client = Client::new();
            let mut exchange = |request: PmiRequest| {
                server.handle_bytes(0, &client.handle_request(request).unwrap());
                while let Some(event) = server.poll_event() {
                    if let PmiEvent::Reply { line, .. } = event { client.handle_bytes(line.as_bytes()); }
                }
                client.poll_reply().unwrap().unwrap()
            };
            prop_assert_eq!(exchange(PmiRequest::Init { interface: Some(InterfaceName::Pvm) }), Reply::Init(1, 1));
            prop_assert_eq!(exchange(PmiRequest::Maxes), Reply::Maxes { kvsname: 256, key: 64, value: 1024 });
            let Reply::KvsName(kvsname) = exchange(PmiRequest::KvsName) else { panic!("kvsname expected") };
            prop_assert_eq!(exchange(PmiRequest::UniverseSize), Reply::UniverseSize(Some(1)));
            prop_assert_eq!(exchange(PmiRequest::Appnum), Reply::Appnum(0));
            let put = PmiRequest::Put { kvsname: kvsname.clone(), key: key.clone(), value: value.clone() };
            prop_assert_eq!(exchange(put), Reply::Put);
            prop_assert_eq!(exchange(PmiRequest::Get { kvsname, key }), Reply::Get(Some(value)));
            prop_assert_eq!(exchange(PmiRequest::Barrier), Reply::Barrier);
            prop_assert_eq!(exchange(PmiRequest::Spawn { door: "weft/door".into() }), Reply::Spawn);
            prop_assert_eq!(exchange(PmiRequest::Signal { rank: 0, signal: 15 }), Reply::Signal);
            prop_assert_eq!(exchange(PmiRequest::Finalise), Reply::Finalise);
        }

        #[test]
        fn any_answer_is_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let mut client = Client::new();
            client.handle_request(PmiRequest::Maxes).unwrap();
            client.handle_bytes(&bytes);
            let _ = client.poll_reply();
        }
    }
}
