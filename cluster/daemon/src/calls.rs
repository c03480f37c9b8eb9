//! Serves other daemons.

use crate::between::{DaemonLetter, Errand, Response, Responses, write_all};
use crate::daemon::Daemon;
use crate::door::Preference;
use crate::report::now;
use crate::seal::{SealedReader, SealedWriter, message};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use weft_requests::ClusterReply;

/// Calls that a connection has at the same time: more are not read.
const MOST_CALLS: usize = 4096;

/// Calls of one connection that are under way. One that is over is taken out: what is kept of it is some KiB.
type Calls = Rc<RefCell<HashMap<u64, AbortHandle>>>;

/// Serves a daemon that has connected, until it goes.
pub async fn serve(daemon: Rc<Daemon>, (mut reader, writer): (SealedReader, SealedWriter)) {
    let (out, letters) = mpsc::unbounded_channel();
    tokio::task::spawn_local(write_all(letters, writer));
    let calls = Calls::default();
    while let Ok(Some(bytes)) = message::read(&mut reader).await {
        match serde_json::from_slice(&bytes) {
            Ok(DaemonLetter::Call(number, errand)) if errand.needs_others() => {
                if calls.borrow().len() >= MOST_CALLS {
                    break;
                }
                let call = Box::pin(answer(Rc::clone(&daemon), number, *errand, out.clone()));
                let under_way = Rc::clone(&calls);
                let task = tokio::task::spawn_local(async move {
                    call.await;
                    under_way.borrow_mut().remove(&number);
                });
                calls.borrow_mut().insert(number, task.abort_handle());
            }
            Ok(DaemonLetter::Call(number, errand)) => {
                let response = Box::new(daemon.carry_out_at_once(*errand));
                let _ = out.send(DaemonLetter::Response(number, response));
            }
            Ok(DaemonLetter::Cancel(number)) => {
                calls.borrow_mut().remove(&number).inspect(AbortHandle::abort);
            }
            _ => break,
        }
    }
    calls.borrow().values().for_each(AbortHandle::abort);
    let _ = out.send(DaemonLetter::Cancel(u64::MAX));
}

/// Carries out one errand, and sends what comes back as it comes.
async fn answer(daemon: Rc<Daemon>, number: u64, errand: Errand, out: mpsc::UnboundedSender<DaemonLetter>) {
    let (sender, mut responses) = mpsc::unbounded_channel::<Response>();
    let pass_on = async {
        while let Some(response) = responses.recv().await {
            let is_last = response.is_last();
            if out.send(DaemonLetter::Response(number, Box::new(response))).is_err() || is_last {
                return;
            }
        }
        let nothing = Box::new(Response::Failed("it has no answer".to_owned()));
        let _ = out.send(DaemonLetter::Response(number, nothing));
    };
    tokio::join!(daemon.carry_out(errand, sender), pass_on);
}

impl Errand {
    /// Whether the answer may have to wait for somebody.
    fn needs_others(&self) -> bool {
        matches!(self, Self::Order { .. } | Self::For { .. } | Self::Ranks)
    }
}

impl Daemon {
    /// Carries out what another daemon asks.
    pub async fn carry_out(self: &Rc<Self>, errand: Errand, out: Responses) {
        let response = match errand {
            Errand::Order { asker, job, placing } => return self.order(asker, job, placing, out).await,
            Errand::For { asker, demand } => Response::Last(self.answer_for(&asker, demand).await),
            Errand::Ranks => Response::Ranks(self.own_ranks().await),
            other => self.carry_out_at_once(other),
        };
        let _ = out.send(response);
    }

    fn carry_out_at_once(self: &Rc<Self>, errand: Errand) -> Response {
        match errand {
            Errand::Greet { cluster, member } if cluster != self.cluster_name() || member != self.me.member => {
                Response::Failed(format!("this is '{}' of cluster '{}'", self.me.member, self.cluster_name()))
            }
            Errand::Greet { .. } => Response::Version(self.cluster().version),
            Errand::Heed(report) => self.heed(*report),
            Errand::Still { member, load } => self.heed_still(&member, load),
            Errand::Adopt { text } => self.adopt(text),
            Errand::Granted { job, held } => {
                self.orders.borrow_mut().note(job, held, now());
                Response::Last(ClusterReply::Done)
            }
            Errand::Over { job } => {
                self.orders.borrow_mut().release(&job);
                let mut heard = self.heard.borrow_mut();
                heard.values_mut().for_each(|report| report.jobs.retain(|running| running.view.job != job));
                drop(heard);
                self.decide();
                Response::Last(ClusterReply::Done)
            }
            Errand::Turns { server, turns } => {
                self.heed_turns(server, turns);
                Response::Last(ClusterReply::Done)
            }
            Errand::Clock => Response::Clock(weft_kernel::now()),
            Errand::Holds { job } => Response::Holds(self.holds(&job)),
            Errand::Admit { job, user, priority, partition } => {
                let first = self.runs_first(partition.as_deref(), priority);
                let how = Preference { priority, first, takes_turns: self.takes_turns(partition.as_deref()) };
                match self.tickets.borrow_mut().admit(job, user, how) {
                    Ok(pass) => Response::Admitted(pass),
                    Err(error) => Response::Failed(error.to_string()),
                }
            }
            Errand::Order { .. } | Errand::For { .. } | Errand::Ranks => Response::Failed("it needs others".to_owned()),
        }
    }
}
