//! A rank that speaks PMI-1 through our client: each tells its neighbour something by way of the process manager.
//! Runs under any launcher of the protocol; the tests start it under ours and under others.

use std::io::{Error, Read, Write};
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::net::UnixStream;
use weft_cluster::pmi::{Client, PROCESS_MAPPING, PmiRequest, Reply};

struct Manager {
    socket: UnixStream,
    client: Client,
}

impl Manager {
    fn ask(&mut self, request: PmiRequest) -> Result<Reply, Error> {
        let line = self.client.handle_request(request).map_err(Error::other)?;
        self.socket.write_all(&line)?;
        loop {
            if let Some(reply) = self.client.poll_reply().map_err(Error::other)? {
                return Ok(reply);
            }
            let mut bytes = [0; 512];
            let count = self.socket.read(&mut bytes)?;
            if count == 0 {
                return Err(Error::other("the process manager closed the connection"));
            }
            self.client.handle_bytes(&bytes[..count]);
        }
    }
}

fn number(name: &str) -> Result<i32, Error> {
    let text = std::env::var(name).map_err(|_| Error::other(format!("{name} is not set")))?;
    text.parse().map_err(|_| Error::other(format!("{name}='{text}' is not a number")))
}

fn main() -> Result<(), Error> {
    let (fd, rank, size): (RawFd, _, _) = (number("PMI_FD")?, number("PMI_RANK")?, number("PMI_SIZE")?);
    // SAFETY: the process manager passed this descriptor on for us alone to use.
    let socket = unsafe { UnixStream::from_raw_fd(fd) };
    let mut manager = Manager { socket, client: Client::new() };
    let init = manager.ask(PmiRequest::Init { interface: None })?;
    assert!(matches!(init, Reply::Init(1, 1..)), "{init:?}");
    manager.ask(PmiRequest::Maxes)?;
    let Reply::KvsName(kvsname) = manager.ask(PmiRequest::KvsName)? else { panic!("a name was asked for") };
    let universe = manager.ask(PmiRequest::UniverseSize)?;
    assert!(matches!(universe, Reply::UniverseSize(known) if known.is_none_or(|n| n as i32 >= size)), "{universe:?}");
    assert_eq!(manager.ask(PmiRequest::Appnum)?, Reply::Appnum(0));
    let mapping = manager.ask(PmiRequest::Get { kvsname: kvsname.clone(), key: PROCESS_MAPPING.into() })?;
    assert!(matches!(&mapping, Reply::Get(Some(text)) if text.starts_with("(vector,")), "{mapping:?}");
    let put = PmiRequest::Put { kvsname: kvsname.clone(), key: format!("k{rank}"), value: format!("from-{rank}") };
    manager.ask(put)?;
    manager.ask(PmiRequest::Barrier)?;
    let key = format!("k{}", (rank + size - 1) % size);
    let Reply::Get(Some(heard)) = manager.ask(PmiRequest::Get { kvsname: kvsname.clone(), key })? else {
        panic!("the neighbour has put its key before the barrier")
    };
    assert_eq!(manager.ask(PmiRequest::Get { kvsname, key: "nobody".into() })?, Reply::Get(None));
    println!("rank {rank} of {size} heard '{heard}'");
    manager.ask(PmiRequest::Barrier)?;
    manager.ask(PmiRequest::Finalise)?;
    Ok(())
}
