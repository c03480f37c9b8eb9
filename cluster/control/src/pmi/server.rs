//! The launcher's half of PMI-1, and of PMI-2 ([`two`]): answers the ranks of one job.
//!
//! Both have the same store, names and barrier, so a job may have ranks of either.

mod two;

use super::{Fields, KEY_MAX, KVSNAME_MAX, LINE_MAX, LineBuffer, Lost, PROCESS_MAPPING, VALUE_MAX};
use crate::spawn::SIGNALS;
use std::collections::HashMap;
use std::collections::VecDeque;
use weft_wire::interface::InterfaceName;

/// What comes out of the server after bytes of a rank went in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PmiEvent {
    /// Write these bytes (one line, or a frame of PMI-2) to the rank.
    Reply { rank: usize, line: String },
    /// The rank has begun to use PMI (`MPI_Init`, or the like of another interface).
    Initialised { rank: usize, interface: InterfaceName },
    /// The rank has taken its leave (`MPI_Finalize`).
    Finalised { rank: usize },
    /// The rank asks to end the whole job (`MPI_Abort`).
    /// It says so when it has lost another one before.
    Abort { rank: usize, code: i32, message: String, lost: Option<Lost> },
    /// The rank asks for another launcher, which gets its order at this door.
    Spawn { rank: usize, door: String },
    /// A rank is to get this signal.
    Signal { rank: usize, signal: i32 },
    /// The rank broke the protocol; nothing more of it is read.
    Fault { rank: usize, reason: String },
}

struct PmiClient {
    input: LineBuffer,
    initialised: bool,
    in_barrier: bool,
    /// Inside an `mcmd=` block: its command and the counts that tell the last block of a row.
    block: Option<PmiBlock>,
    faulty: bool,
    /// It wants to be told which ranks are lost.
    watches: bool,
    dialect: Dialect,
}

/// What a rank speaks.
enum Dialect {
    One,
    /// With the thread that waits in the barrier, as it was named.
    Two {
        thread: Option<String>,
    },
}

#[derive(Default)]
struct PmiBlock {
    command: String,
    total: u32,
    so_far: u32,
}

/// Serves protocol 1.1 to all ranks of one job.
///
/// A `put` is visible at once, thus also after the next barrier. A second `put` of a key replaces the value.
pub struct PmiServer {
    job: String,
    appnum: Vec<usize>,
    mapping: String,
    store: HashMap<String, String>,
    published: HashMap<String, String>,
    clients: Vec<PmiClient>,
    events: VecDeque<PmiEvent>,
    /// Ranks that are lost while the others go on.
    lost: Vec<usize>,
    /// The number of each rank's host.
    places: Vec<usize>,
    /// What ranks of PMI-2 tell those of their host, and who waits for it.
    of_hosts: HashMap<(usize, String), String>,
    waiting: Vec<two::HostWaiter>,
}

impl PmiServer {
    /// A server for a job named `job` whose rank `r` belongs to program number `appnum[r]`; all on one host.
    pub fn new(job: &str, appnum: Vec<usize>) -> Self {
        let places = vec![0; appnum.len()];
        Self::on_hosts(job, appnum, &places)
    }

    /// The same where rank `r` runs on host number `places[r]`.
    pub fn on_hosts(job: &str, appnum: Vec<usize>, places: &[usize]) -> Self {
        let size = appnum.len();
        let client = || PmiClient {
            input: LineBuffer::new(LINE_MAX),
            initialised: false,
            in_barrier: false,
            block: None,
            faulty: false,
            watches: false,
            dialect: Dialect::One,
        };
        Self {
            job: job.chars().take(KVSNAME_MAX).collect(),
            appnum,
            mapping: mapping(places),
            store: HashMap::new(),
            published: HashMap::new(),
            clients: (0..size).map(|_| client()).collect(),
            events: VecDeque::new(),
            lost: Vec::new(),
            places: places.to_vec(),
            of_hosts: HashMap::new(),
            waiting: Vec::new(),
        }
    }

    /// A rank is lost: those that have asked are told, in lines that no request precedes.
    pub fn handle_lost(&mut self, rank: usize) {
        self.lost.push(rank);
        let watchers: Vec<usize> = (0..self.clients.len()).filter(|client| self.clients[*client].watches).collect();
        watchers.into_iter().for_each(|client| self.tell_lost(client, rank));
    }

    fn tell_lost(&mut self, client: usize, rank: usize) {
        self.reply(client, format!("cmd=lost rank={rank}"));
    }

    /// The answer, then those that are lost already.
    fn on_watch(&mut self, client: usize) {
        self.clients[client].watches = true;
        self.reply(client, "cmd=watching rc=0".to_owned());
        self.lost.clone().into_iter().for_each(|rank| self.tell_lost(client, rank));
    }

    /// The next thing to do, in the order in which it came about.
    pub fn poll_event(&mut self) -> Option<PmiEvent> {
        self.events.pop_front()
    }

    /// Takes in what was read from `rank`'s socket. Panics when `rank` is not of this job (the caller's bug).
    pub fn handle_bytes(&mut self, rank: usize, bytes: &[u8]) {
        if self.clients[rank].faulty {
            return;
        }
        self.clients[rank].input.handle_bytes(bytes);
        loop {
            let client = &mut self.clients[rank];
            let piece = match client.dialect {
                Dialect::One => client.input.poll_line().map_err(|error| error.to_string()),
                Dialect::Two { .. } => client.input.poll_frame(two::FRAME_MAX).map_err(|error| error.to_string()),
            };
            match (piece, &client.dialect) {
                (Ok(Some(line)), Dialect::One) => self.on_line(rank, &line),
                (Ok(Some(frame)), Dialect::Two { .. }) => self.on_frame(rank, &frame),
                (Ok(None), _) => return,
                (Err(reason), _) => return self.fault(rank, reason),
            }
            if self.clients[rank].faulty {
                return;
            }
        }
    }

    fn on_line(&mut self, rank: usize, line: &str) {
        if self.clients[rank].block.is_some() {
            return self.on_block_line(rank, line);
        }
        if line.is_empty() {
            return;
        }
        let fields = Fields::parse(line);
        match fields.command() {
            Some("init") => self.on_init(rank, &fields),
            Some(command) if fields.value("mcmd").is_some() => {
                self.clients[rank].block = Some(PmiBlock { command: command.to_owned(), total: 1, so_far: 1 });
            }
            Some(command) => self.on_command(rank, command, &fields),
            None => self.fault(rank, format!("the PMI line '{}' names no command", excerpt(line))),
        }
    }

    fn on_command(&mut self, rank: usize, command: &str, fields: &Fields) {
        match command {
            "get_maxes" => self.reply(
                rank,
                format!("cmd=maxes rc=0 kvsname_max={KVSNAME_MAX} keylen_max={KEY_MAX} vallen_max={VALUE_MAX}"),
            ),
            "get_my_kvsname" => self.reply(rank, format!("cmd=my_kvsname rc=0 kvsname={}", self.job)),
            "get_universe_size" => {
                self.reply(rank, format!("cmd=universe_size rc=0 size={}", self.clients.len()));
            }
            "get_appnum" => self.reply(rank, format!("cmd=appnum rc=0 appnum={}", self.appnum[rank])),
            "put" => self.on_put(rank, fields),
            "get" => self.on_get(rank, fields),
            "barrier_in" => self.on_barrier_in(rank),
            "finalize" => {
                self.reply(rank, "cmd=finalize_ack rc=0".to_owned());
                self.end(rank);
            }
            "abort" => self.on_abort(rank, fields),
            "watch" => self.on_watch(rank),
            "publish_name" => self.on_publish(rank, fields),
            "unpublish_name" => self.on_unpublish(rank, fields),
            "lookup_name" => self.on_lookup(rank, fields),
            "create_kvs" => self.refuse(rank, "newkvs", "create_kvs_is_not_served"),
            "destroy_kvs" => self.refuse(rank, "kvs_destroyed", "destroy_kvs_is_not_served"),
            "getbyidx" => self.refuse(rank, "getbyidx_results", "getbyidx_is_not_served"),
            "spawn" => self.refuse(rank, "spawn_result", SPAWN_REFUSED),
            super::SPAWN => self.on_our_spawn(rank, fields),
            super::SIGNAL => self.on_signal(rank, fields),
            other => self.fault(rank, format!("the PMI command '{}' is not served", excerpt(other))),
        }
    }

    fn on_init(&mut self, rank: usize, fields: &Fields) {
        if fields.value("pmi_version") == Some("2") {
            self.reply(rank, "cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0".to_owned());
            self.clients[rank].dialect = Dialect::Two { thread: None };
            return;
        }
        let rc = if fields.value("pmi_version") == Some("1") { 0 } else { -1 };
        self.reply(rank, format!("cmd=response_to_init rc={rc} pmi_version=1 pmi_subversion=1"));
        if rc == 0 && !self.clients[rank].initialised {
            // Only our own libraries say it, and those of MPI need not.
            let interface = fields.value("interface").and_then(InterfaceName::of_text).unwrap_or(InterfaceName::Mpi);
            self.begin(rank, interface);
        }
    }

    fn begin(&mut self, rank: usize, interface: InterfaceName) {
        self.clients[rank].initialised = true;
        self.events.push_back(PmiEvent::Initialised { rank, interface });
    }

    /// It may begin again: sessions of MPI do.
    fn end(&mut self, rank: usize) {
        self.clients[rank].initialised = false;
        self.events.push_back(PmiEvent::Finalised { rank });
    }

    fn on_put(&mut self, rank: usize, fields: &Fields) {
        let (key, value) = (fields.value("key").unwrap_or(""), fields.value("value").unwrap_or(""));
        let put = match fields.value("kvsname") == Some(&self.job) {
            true => self.put(key, value),
            false => Err("unknown_kvsname"),
        };
        match put {
            Ok(()) => self.reply(rank, "cmd=put_result rc=0 msg=success".to_owned()),
            Err(problem) => self.refuse(rank, "put_result", problem),
        }
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), &'static str> {
        if key.is_empty() || key.len() > KEY_MAX {
            return Err("bad_key_length");
        }
        if key.starts_with("PMI_") {
            return Err("key_is_reserved");
        }
        if value.len() > VALUE_MAX {
            return Err("bad_value_length");
        }
        self.store.insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    fn on_get(&mut self, rank: usize, fields: &Fields) {
        let key = fields.value("key").unwrap_or("");
        if fields.value("kvsname") != Some(&self.job) {
            return self.refuse(rank, "get_result", "unknown_kvsname");
        }
        let found = if key == PROCESS_MAPPING { Some(&self.mapping) } else { self.store.get(key) };
        match found {
            Some(value) => self.reply(rank, format!("cmd=get_result rc=0 msg=success value={value}")),
            None => {
                let key: String = key.chars().take(KEY_MAX).collect();
                self.refuse(rank, "get_result", &format!("key_{key}_not_found"));
            }
        }
    }

    fn on_barrier_in(&mut self, rank: usize) {
        self.clients[rank].in_barrier = true;
        if self.clients.iter().all(|client| client.in_barrier) {
            for rank in 0..self.clients.len() {
                self.clients[rank].in_barrier = false;
                match &mut self.clients[rank].dialect {
                    Dialect::One => self.reply(rank, "cmd=barrier_out rc=0".to_owned()),
                    Dialect::Two { thread } => {
                        let thread = thread.take();
                        self.answer(rank, "kvs-fence", thread.as_deref(), &[]);
                    }
                }
            }
        }
    }

    fn on_abort(&mut self, rank: usize, fields: &Fields) {
        let code = fields.number("exitcode").unwrap_or(1);
        let message = fields.value("message").or(fields.value("error_msg")).unwrap_or("").to_owned();
        let lost = fields.value("lost").and_then(Lost::parse);
        let lost = lost.filter(|lost| !matches!(lost, Lost::Rank(rank) if *rank >= self.clients.len()));
        self.events.push_back(PmiEvent::Abort { rank, code, message, lost });
    }

    fn on_our_spawn(&mut self, rank: usize, fields: &Fields) {
        let Some(door) = fields.value("door") else { return self.refuse(rank, super::SPAWNED, "door_missing") };
        self.events.push_back(PmiEvent::Spawn { rank, door: door.to_owned() });
        self.reply(rank, format!("cmd={} rc=0", super::SPAWNED));
    }

    fn on_signal(&mut self, rank: usize, fields: &Fields) {
        let number = |name| fields.value(name).and_then(|text| text.parse::<i32>().ok());
        let of = number("rank").and_then(|of| usize::try_from(of).ok()).filter(|of| *of < self.clients.len());
        match of.zip(number("signal").filter(|signal| SIGNALS.contains(signal))) {
            None => self.refuse(rank, super::SIGNALLED, "no_such_rank_or_signal"),
            Some((of, signal)) => {
                self.events.push_back(PmiEvent::Signal { rank: of, signal });
                self.reply(rank, format!("cmd={} rc=0", super::SIGNALLED));
            }
        }
    }

    fn on_publish(&mut self, rank: usize, fields: &Fields) {
        match self.publish(fields.value("service"), fields.value("port")) {
            Ok(()) => self.reply(rank, "cmd=publish_result rc=0 info=ok".to_owned()),
            Err(problem) => self.refuse(rank, "publish_result", problem),
        }
    }

    fn publish(&mut self, service: Option<&str>, port: Option<&str>) -> Result<(), &'static str> {
        let (service, port) = service.zip(port).ok_or("service_or_port_missing")?;
        if self.published.contains_key(service) {
            return Err("service_already_published");
        }
        self.published.insert(service.to_owned(), port.to_owned());
        Ok(())
    }

    fn on_unpublish(&mut self, rank: usize, fields: &Fields) {
        match fields.value("service").and_then(|service| self.published.remove(service)) {
            Some(_) => self.reply(rank, "cmd=unpublish_result rc=0 info=ok".to_owned()),
            None => self.refuse(rank, "unpublish_result", "service_not_found"),
        }
    }

    fn on_lookup(&mut self, rank: usize, fields: &Fields) {
        match fields.value("service").and_then(|service| self.published.get(service)) {
            Some(port) => self.reply(rank, format!("cmd=lookup_result rc=0 info=ok port={port}")),
            None => self.refuse(rank, "lookup_result", "service_not_found"),
        }
    }

    /// A spawn is a row of blocks, and one answer is due after the last of them.
    fn on_block_line(&mut self, rank: usize, line: &str) {
        let Some(block) = self.clients[rank].block.as_mut() else { return };
        if line == "endcmd" {
            let last = block.so_far >= block.total;
            if let (true, Some(block)) = (last, self.clients[rank].block.take()) {
                self.on_block(rank, &block.command);
            }
        } else if let Some(total) = line.strip_prefix("totspawns=") {
            block.total = total.parse().unwrap_or(1);
        } else if let Some(so_far) = line.strip_prefix("spawnssofar=") {
            block.so_far = so_far.parse().unwrap_or(u32::MAX);
        }
    }

    fn on_block(&mut self, rank: usize, command: &str) {
        match command {
            "spawn" => self.refuse(rank, "spawn_result", SPAWN_REFUSED),
            other => self.fault(rank, format!("the PMI command '{}' is not served", excerpt(other))),
        }
    }

    fn refuse(&mut self, rank: usize, answer: &str, why: &str) {
        self.reply(rank, format!("cmd={answer} rc=-1 msg={why}"));
    }

    fn reply(&mut self, rank: usize, mut line: String) {
        line.push('\n');
        debug_assert!(line.len() <= LINE_MAX, "an answer is one bounded line");
        self.events.push_back(PmiEvent::Reply { rank, line });
    }

    fn fault(&mut self, rank: usize, reason: String) {
        self.clients[rank].faulty = true;
        self.events.push_back(PmiEvent::Fault { rank, reason });
    }
}

/// `(vector,(first host,hosts,ranks on each),...)`. Nothing where it would not fit into a line: clients then ask no
/// more.
fn mapping(places: &[usize]) -> String {
    let mut blocks: Vec<(usize, usize, usize)> = Vec::new();
    for run in places.chunk_by(|one, next| one == next) {
        let (host, ranks) = (run[0], run.len());
        match blocks.last_mut() {
            Some((first, hosts, each)) if *first + *hosts == host && *each == ranks => *hosts += 1,
            _ => blocks.push((host, 1, ranks)),
        }
    }
    let blocks: String = blocks.iter().map(|(first, hosts, each)| format!(",({first},{hosts},{each})")).collect();
    let text = format!("(vector{blocks})");
    if text.len() <= MAPPING_MAX { text } else { String::new() }
}

/// Old clients read lines of 1023 bytes, and the words of the answer stand before the value.
const MAPPING_MAX: usize = 960;

const SPAWN_REFUSED: &str = "spawn_is_not_supported_by_weft_run";

/// The beginning of what a rank sent, fit to stand in one line of a message.
fn excerpt(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).take(60).collect()
}

#[cfg(test)]
mod tests;
