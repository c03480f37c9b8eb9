//! Starting tasks (`pvm_spawn(3PVM)`).

use super::output::{NEW, SPAWNED};
use super::tasks::TaskRecord;
use super::{ClientNumber, VirtualMachine};
use crate::code::{self, spawn as flag};
use crate::frame::{Answer, Destination, Introduction, Order, Program};

/// Most tasks of one call.
const MOST: u32 = 1 << 16;

/// A call of which not all tasks are known to have started.
struct SpawnCall {
    client: ClientNumber,
    parent: i32,
    prints_to: Destination,
    /// Identifiers, or codes of those that could not be started.
    tids: Vec<i32>,
    awaited: usize,
}

#[derive(Default)]
pub struct Spawning {
    calls: Vec<SpawnCall>,
    /// Those that have enrolled before their call was over.
    early: Vec<(ClientNumber, Introduction)>,
}

impl Spawning {
    pub fn is_pending(&self, tid: i32) -> bool {
        tid > 0 && self.calls.iter().any(|call| call.tids.contains(&tid))
    }

    pub fn defer(&mut self, client: ClientNumber, who: Introduction) {
        self.early.push((client, who));
    }

    pub fn forget(&mut self, client: ClientNumber) {
        self.early.retain(|(there, _)| *there != client);
    }
}

impl VirtualMachine {
    #[allow(clippy::too_many_arguments)]
    pub(super) fn spawn(
        &mut self,
        client: ClientNumber,
        parent: i32,
        program: Program,
        place: &str,
        count: u32,
        prints_to: Destination,
        context: i32,
    ) {
        if count == 0 || count > MOST || program.file.0.is_empty() {
            return self.answer(client, Answer::Tids { code: code::BAD_PARAM, tids: Vec::new() });
        }
        let chosen = self.hosts.choose(program.flags, place, client.0, count);
        let shown = if program.flags & flag::NO_PARENT != 0 { 0 } else { parent };
        let mut call = SpawnCall { client, parent, prints_to: prints_to.clone(), tids: Vec::new(), awaited: 0 };
        let mut started = Vec::new();
        for host in chosen {
            let task = TaskRecord {
                parent: shown,
                name: program.file.clone(),
                context,
                prints_to: prints_to.clone(),
                is_open: true,
                is_running: true,
                ..TaskRecord::default()
            };
            let number = host.ok_or(code::NO_HOST).and_then(|host| {
                let number = self.tasks.add(host, task).ok_or(code::OUT_OF_RES)?;
                started.push((host, number));
                Ok(number)
            });
            call.tids.push(number.unwrap_or_else(|code| code));
        }
        call.awaited = started.len();
        self.spawning.calls.push(call);
        for (host, tid) in started {
            self.order(host, Order::Start { tid, program: program.clone() });
        }
        self.finish_calls();
    }

    /// It runs, or could not be started.
    pub(super) fn on_started(&mut self, host: u32, tid: i32, pid: i32) {
        let Some(task) = self.tasks.on_host_mut(host, tid) else { return };
        task.pid = pid;
        if pid <= 0 {
            (task.is_running, task.is_open) = (false, false);
        }
        let calls = &mut self.spawning.calls;
        let call = calls.iter_mut().find(|call| call.awaited > 0 && call.tids.contains(&tid));
        let Some(call) = call else { return };
        call.awaited -= 1;
        if pid <= 0 {
            let code = if pid < 0 { pid } else { code::SYS_ERR };
            call.tids.iter_mut().filter(|there| **there == tid).for_each(|there| *there = code);
            self.end_task(tid);
        }
        self.finish_calls();
    }

    fn finish_calls(&mut self) {
        while let Some(place) = self.spawning.calls.iter().position(|call| call.awaited == 0) {
            let SpawnCall { client, parent, prints_to, tids, .. } = self.spawning.calls.remove(place);
            let siblings: Vec<i32> = tids.iter().copied().filter(|tid| *tid > 0).collect();
            for tid in &siblings {
                if let Some(task) = self.tasks.get_mut(*tid) {
                    task.siblings = siblings.clone();
                }
                if prints_to.tid != 0 {
                    self.tell_output(&prints_to, *tid, NEW, Some(parent), &[]);
                    self.tell_output(&prints_to, *tid, SPAWNED, Some(parent), &[]);
                }
            }
            self.answer(client, Answer::Tids { code: siblings.len() as i32, tids });
        }
        let early = std::mem::take(&mut self.spawning.early);
        early.into_iter().for_each(|(client, who)| self.enrol(client, who));
    }
}
