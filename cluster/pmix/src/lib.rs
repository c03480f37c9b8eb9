//! The process that holds the PMIx server of the ranks of one host.
//!
//! PMIx is no wire protocol but a library: each rank loads one, and speaks with the library in its server in words that
//! belong to the two. So there has to be a process that has loaded it, `libpmix.so.2`. It has threads and state of its
//! own, which neither launcher nor agent nor keeper should have: this is a process beside them, forked where a job's
//! programs want PMIx, and nowhere else. It passes on what the library wants of its host, and gives it the answers
//! ([`weft_cluster::pmix`] is what is said); it decides nothing.
//!
//! Invariants: when the other end of its socket is closed it removes what ranks have left, as they had asked the
//! library to, and ends; who started it does not wait long for that. An upcall of the library takes a number, is passed
//! on, and returns; it waits for nobody but the reader of the socket.
//!
//! The library listens at a port of the loopback interface, and takes the user and group of who connects from what that
//! one says of itself (`psec/native`, in every version since 4). So a user of the host is kept out by what is not known
//! to all: the name of the job has a random part. Who connects as a tool needs no name, and cannot be refused (4.2 and
//! 5.0 crash then); it gets no upcall through.
//!
//! Not here: who starts and ends it, and what fences mean between hosts (launcher).
//!
//! Test: `cargo test -p weft-tests --features programs --test pmix`, with Debian's `libpmix2` installed.

mod facts;
mod library;
mod upcalls;

use library::PmixServerLibrary;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::net::UnixStream;
use weft_cluster::pmix::{PmixPieces, PmixSaid, PmixTold};

/// As the loader finds it.
pub const LIBRARY: &str = "libpmix.so.2";
/// Names another file.
pub const LIBRARY_VARIABLE: &str = "WEFT_PMIX_LIBRARY";

/// What ranks are told of their job.
#[derive(Clone, Debug)]
pub struct PmixJob {
    /// What the job is called. Who knows this is taken for a rank.
    pub namespace: String,
    /// What its servers are called together, which is told to all who connect.
    pub servers: String,
    pub hosts: Vec<String>,
    /// The number of each rank's host.
    pub places: Vec<usize>,
    /// That of this one.
    pub here: usize,
    /// The number of each rank's program.
    pub programs: Vec<usize>,
}

impl PmixJob {
    /// The ranks of a host.
    fn ranks_on(&self, host: usize) -> impl Iterator<Item = usize> {
        (0..self.places.len()).filter(move |rank| self.places[*rank] == host)
    }
}

/// Serves until the other end of the socket is closed. The process must have one thread only, and nobody else may use
/// its environment. The first library is used that can be loaded. Answers the exit code.
pub fn serve(socket: UnixStream, job: &PmixJob, libraries: &[OsString]) -> i32 {
    let Ok(writer) = socket.try_clone() else { return 1 };
    library::clean_environment();
    upcalls::start(writer, &job.namespace);
    let (library, ready) = match begin(job, libraries) {
        Ok((library, environments)) => (Some(library), PmixSaid::Ready { environments }),
        Err(reason) => (None, PmixSaid::Failed { reason }),
    };
    upcalls::say(&ready);
    let code = listen(socket, library);
    if let Some(library) = library {
        library.forget_job(&job.namespace, job.ranks_on(job.here));
    }
    code
}

/// What the environment of each rank of this host is to have.
type Environments = Vec<Vec<(String, String)>>;

/// Loads the library and tells it who the ranks are; answers their environments.
fn begin(job: &PmixJob, names: &[OsString]) -> Result<(PmixServerLibrary, Environments), String> {
    let none = Err("no library is named".to_owned());
    let library = names.iter().fold(none, |found, name| found.or_else(|_| PmixServerLibrary::load(name)))?;
    library.init(facts::of_server(job), upcalls::module())?;
    library.register_job(&job.namespace, job.ranks_on(job.here).count(), facts::of_job(job))?;
    let environment = |rank| {
        library.register_rank(&job.namespace, rank)?;
        library.environment(&job.namespace, rank)
    };
    let environments = job.ranks_on(job.here).map(|rank| environment(rank as u32)).collect::<Result<_, _>>()?;
    Ok((library, environments))
}

/// Does what is told.
fn listen(mut socket: UnixStream, library: Option<PmixServerLibrary>) -> i32 {
    let mut pieces = PmixPieces::default();
    let mut bytes = vec![0; 64 << 10];
    loop {
        match socket.read(&mut bytes) {
            Ok(0) => return 0,
            Ok(count) => pieces.handle_bytes(&bytes[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => return 1,
        }
        loop {
            let told = match pieces.poll_piece() {
                Ok(None) => break,
                Ok(Some(piece)) => PmixTold::decode(&piece),
                Err(error) => Err(error),
            };
            match (told, &library) {
                (Ok(PmixTold::Done { call, status, data }), _) => upcalls::answer(call, status, data),
                (Ok(PmixTold::Wanted { ask, rank }), Some(library)) => upcalls::look_up(library, ask, rank),
                (Ok(PmixTold::Wanted { .. }), None) => {}
                (Err(_), _) => return 1,
            }
        }
    }
}
