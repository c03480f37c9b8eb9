//! Who is to be told of the end of tasks and hosts, and of new hosts (`pvm_notify(3PVM)`).

use super::VirtualMachine;
use crate::code::{self, notify};
use crate::frame::{ByteString, Content, Event};
use crate::tid;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Notice {
    what: i32,
    /// Whose end: of a task, or a host by its number. 0 for new hosts.
    of: i32,
    /// What the body says.
    named: i32,
    to: i32,
    context: i32,
    tag: i32,
}

#[derive(Default)]
pub struct Notices {
    all: Vec<Notice>,
    /// For new hosts, how often still; below 0: always.
    of_hosts: Vec<(Notice, i32)>,
}

impl Notices {
    fn take(&mut self, wanted: impl Fn(&Notice) -> bool) -> Vec<Notice> {
        let (taken, kept) = std::mem::take(&mut self.all).into_iter().partition(wanted);
        self.all = kept;
        taken
    }

    pub fn forget(&mut self, tid: i32) {
        self.all.retain(|notice| notice.to != tid);
        self.of_hosts.retain(|(notice, _)| notice.to != tid);
    }
}

/// Numbers as a message holds them that is packed in XDR.
pub(super) fn packed(numbers: &[i32]) -> ByteString {
    ByteString(numbers.iter().flat_map(|number| number.to_be_bytes()).collect())
}

impl VirtualMachine {
    fn send_notice(&mut self, notice: Notice, body: &[i32]) {
        let source = self.tasks.host(notice.to).map_or(0, tid::daemon);
        let content = Content { encoding: 0, source, tag: notice.tag, bytes: packed(body) };
        self.tell_task(notice.to, Event::Message { context: notice.context, content });
    }

    pub(super) fn notify(&mut self, to: i32, what: i32, context: i32, tag: i32, count: i32, of: &[i32]) -> i32 {
        let cancels = what & notify::CANCEL != 0;
        let what = what & !notify::CANCEL;
        match what {
            notify::TASK_EXIT | notify::HOST_DELETE => {
                for named in of.iter().copied() {
                    let of = if what == notify::TASK_EXIT { named } else { tid::host(named) as i32 };
                    let notice = Notice { what, of, named, to, context, tag };
                    if cancels {
                        self.cancel(notice);
                    } else if self.is_there(what, of) {
                        self.notices.all.push(notice);
                    } else {
                        self.send_notice(notice, &[named]);
                    }
                }
                code::OK
            }
            notify::HOST_ADD => {
                let notice = Notice { what, of: 0, named: 0, to, context, tag };
                self.notices.of_hosts.retain(|(there, _)| *there != notice);
                if count != 0 && !cancels {
                    self.notices.of_hosts.push((notice, count));
                }
                code::OK
            }
            _ => code::BAD_PARAM,
        }
    }

    fn is_there(&self, what: i32, of: i32) -> bool {
        match what {
            notify::TASK_EXIT => self.tasks.is_there(of),
            _ => self.hosts.is_there(of as u32),
        }
    }

    /// Of one that is cancelled the message comes at once.
    fn cancel(&mut self, notice: Notice) {
        if let Some(place) = self.notices.all.iter().position(|there| *there == notice) {
            self.notices.all.remove(place);
            self.send_notice(notice, &[notice.named]);
        }
    }

    /// Whoever waits for this end is told.
    pub(super) fn tell_end_of(&mut self, what: i32, of: i32) {
        for notice in self.notices.take(|notice| notice.what == what && notice.of == of) {
            self.send_notice(notice, &[notice.named]);
        }
    }

    pub(super) fn tell_new_hosts(&mut self, numbers: &[u32]) {
        let daemons = numbers.iter().map(|number| tid::daemon(*number));
        let body: Vec<i32> = std::iter::once(numbers.len() as i32).chain(daemons).collect();
        for (notice, left) in std::mem::take(&mut self.notices.of_hosts) {
            self.send_notice(notice, &body);
            if left != 1 {
                self.notices.of_hosts.push((notice, left - i32::from(left > 0)));
            }
        }
    }
}
