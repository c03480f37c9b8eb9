//! Processes: who is there, starting more of them, signals, and ends.

use super::Weft;
use crate::end_desk::GoneHow;
use crate::ends;
use crate::error::Result;
use crate::join;
use crate::known::{self, PortNumber};
use crate::started::{self, WantedProcesses};
use std::ffi::OsString;
use weft_ports::Peer;

impl<K> Weft<K> {
    /// This process's number in the job.
    pub fn me(&self) -> Peer {
        known::me()
    }

    /// Processes of the job.
    pub fn size(&self) -> u32 {
        known::size()
    }

    /// How many hosts the job lies on.
    ///
    /// # Errors
    /// The thread is inside a handler.
    pub fn hosts(&self) -> Result<u32> {
        join::hosts()
    }

    /// The number of the host that a process of the job runs on.
    ///
    /// # Errors
    /// There is no such process, or it is of another job.
    pub fn host_of(&self, process: Peer) -> Result<u32> {
        join::host_of(process)
    }

    /// The name of a host of the job, as the user wrote it; of a job on one host, as that calls itself.
    ///
    /// ```
    /// # let weft = weft_native::Weft::join()?;
    /// for host in 0..weft.hosts()? {
    ///     println!("{}", weft.host_name(host)?);
    /// }
    /// let mine = weft.host_name(weft.host_of(weft.me())?)?;
    /// # assert!(!mine.is_empty());
    /// # Ok::<(), weft_native::NativeError>(())
    /// ```
    ///
    /// # Errors
    /// There is no such host.
    pub fn host_name(&self, host: u32) -> Result<String> {
        join::host_name(host)
    }

    /// How a process is gone, if it is.
    ///
    /// # Errors
    /// There is no such process.
    pub fn gone(&self, process: Peer) -> Result<Option<GoneHow>> {
        join::gone(process)
    }

    /// Starts so many processes of a program, a job of their own, on the host of this name or on any of this job's, and
    /// waits until all of them have joined. Their numbers here are in the order of those in their job. They know this
    /// process by [`Self::parent`], and go on where one of them is lost.
    ///
    /// ```no_run
    /// use weft_native::{Pick, ProcessEnd, Weft};
    ///
    /// let weft = Weft::join()?;
    /// let port = weft.open_port(7)?;
    /// let workers = weft.start("./worker", &["fast"], 2, None)?;
    /// for worker in &workers {
    ///     weft.notify(*worker, port, 9)?;
    ///     weft.send(*worker, port, 1, b"some work")?;
    /// }
    /// weft.signal(workers[1], 15)?;
    /// let (_, bytes) = weft.receive_whole(&[Pick::port(port).tagged(9)])?;
    /// println!("{:?}", ProcessEnd::from_bytes(&bytes));
    /// # Ok::<(), weft_native::NativeError>(())
    /// ```
    ///
    /// # Errors
    /// There is no such program or host, or a process has ended before it joined.
    pub fn start(
        &self,
        program: &str,
        arguments: &[impl AsRef<std::ffi::OsStr>],
        count: u32,
        host: Option<&str>,
    ) -> Result<Vec<Peer>> {
        let arguments: Vec<OsString> = arguments.iter().map(|word| word.as_ref().to_owned()).collect();
        started::start(WantedProcesses { program: program.to_owned(), arguments, count, host: host.map(str::to_owned) })
    }

    /// The process that has started this one by [`Self::start`], if one has.
    ///
    /// # Errors
    /// This process has left.
    pub fn parent(&self) -> Result<Option<Peer>> {
        started::parent()
    }

    /// Sends a signal to a process of this job, or one that this process has started.
    ///
    /// # Errors
    /// There is no such signal, the process has ended or is another one, or `weft run` has not started this job.
    pub fn signal(&self, process: Peer, signal: i32) -> Result<()> {
        started::signal(process, signal)
    }

    /// Has a message with this tag come to a port of this process, from this process, once another one is gone: of
    /// [`crate::ProcessEnd`]. It comes at once where that is gone already.
    ///
    /// # Errors
    /// There is no such process, or it is this one; the port is not open, or the tag is negative.
    pub fn notify(&self, process: Peer, port: PortNumber, tag: i32) -> Result<()> {
        ends::notify(process, port, tag)
    }
}
