//! Remote procedure calls: rank 0 calls rank 1, whose answers are empty.

use super::Ensemble;
use crate::payload::{look, mark, middle};
use anyhow::{Context, ensure};
use std::sync::atomic::{AtomicU64, Ordering};
use weft_panda::Rpc;

/// The server counts the calls; the caller says how many it has made.
static SERVED: AtomicU64 = AtomicU64::new(0);
static WRONG: AtomicU64 = AtomicU64::new(0);
/// A call without arguments ends a size.
static ENDED: AtomicU64 = AtomicU64::new(0);

pub struct KernelCalls {
    rpc: Rpc,
    argument: Vec<u8>,
    made: u64,
    ends: u64,
}

impl KernelCalls {
    pub fn join() -> anyhow::Result<Self> {
        let rpc = Rpc::join().context("cannot join")?;
        ensure!(rpc.platforms() == 2, "{} ranks, where two are needed", rpc.platforms());
        rpc.serve(|request| {
            match request.bytes() {
                [] => ENDED.fetch_add(1, Ordering::Release),
                bytes => {
                    let number = SERVED.fetch_add(1, Ordering::Relaxed);
                    WRONG.fetch_add(u64::from(look(bytes, number).is_err()), Ordering::Relaxed)
                }
            };
            request.reply(&[]);
        });
        Ok(Self { rpc, argument: Vec::new(), made: 0, ends: 0 })
    }
}

impl Ensemble for KernelCalls {
    fn leads(&self) -> bool {
        self.rpc.me() == 0
    }

    fn processes(&self) -> u32 {
        2
    }

    fn resize(&mut self, bytes: u32) {
        self.argument = (0..bytes as usize).map(middle).collect();
    }

    /// The server plays no rounds: it waits for the end of the size.
    fn agree(&mut self, rounds: u64) -> anyhow::Result<u64> {
        if self.leads() {
            if rounds == 0 {
                self.rpc.call(1, &[])?;
            }
            return Ok(rounds);
        }
        while ENDED.load(Ordering::Acquire) == self.ends {
            self.rpc.poll();
        }
        self.ends += 1;
        let wrong = WRONG.load(Ordering::Relaxed);
        ensure!(wrong == 0, "{wrong} calls had wrong arguments");
        Ok(0)
    }

    fn play(&mut self, rounds: u64) -> anyhow::Result<()> {
        for _ in 0..rounds {
            mark(&mut self.argument, self.made);
            let answer = self.rpc.call(1, &self.argument)?;
            ensure!(answer.is_empty(), "an answer of {} bytes, where none are asked for", answer.len());
            self.made += 1;
        }
        Ok(())
    }

    fn close(self) {}
}
