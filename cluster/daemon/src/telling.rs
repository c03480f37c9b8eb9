//! What members tell the servers: everything when something has changed, and otherwise, now and then, that nothing has.
//!
//! A server that begins, or was silent, has to be told everything. That is seen at the connection to it, which breaks
//! when it ends, and by those who watch who is alive; and one that has heard nothing before says so.

use crate::between::{Errand, Response};
use crate::daemon::Daemon;
use crate::report::{self, HostReport};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};
use weft_requests::MemberStanding;

/// Who has nothing new to tell says that so often.
const STILL: Duration = Duration::from_secs(30);

/// What each server was told last, and when.
type Told = Rc<RefCell<HashMap<String, (Rc<HostReport>, Instant)>>>;

impl Daemon {
    /// Tells the servers how this host is, and decides what waits.
    pub async fn tell(self: Rc<Self>) {
        let told = Told::default();
        let (mut load, mut looked) = (report::load(), Instant::now());
        loop {
            self.reread();
            self.look_after_orders();
            self.release_lost();
            if looked.elapsed() >= report::LOADED {
                (load, looked) = (report::load(), Instant::now());
            }
            let report = Rc::new(self.own_report(load.clone()));
            for server in &self.cluster().servers {
                self.tell_server(server, &report, &told);
            }
            let _ = tokio::time::timeout(report::EVERY, self.changed.notified()).await;
        }
    }

    /// Begins to tell a server what it has to hear now, if anything.
    fn tell_server(self: &Rc<Self>, server: &str, report: &Rc<HostReport>, told: &Told) {
        let is_there = *server == self.me.member
            || self.alive.standing(server).0 == MemberStanding::Alive
                && self.links.borrow().get(server).is_some_and(|link| link.is_open());
        if !is_there {
            told.borrow_mut().remove(server);
        }
        let errand = match told.borrow().get(server) {
            Some((last, _)) if !last.says_the_same(report) => Errand::Heed(Box::new(HostReport::clone(report))),
            Some((_, at)) if at.elapsed() < STILL => return,
            Some(_) => Errand::Still { member: self.me.member.clone(), load: report.load.clone() },
            None => Errand::Heed(Box::new(HostReport::clone(report))),
        };
        // Until the answer comes this counts as told: it is not said twice.
        told.borrow_mut().insert(server.to_owned(), (Rc::clone(report), Instant::now()));
        let (daemon, server, told) = (Rc::clone(self), server.to_owned(), Rc::clone(told));
        tokio::task::spawn_local(async move {
            match daemon.ask_once(&server, errand).await {
                Ok(Response::Version(version)) if version < daemon.cluster().version => {
                    let text = daemon.cluster.borrow().1.clone();
                    let _ = daemon.ask_once(&server, Errand::Adopt { text }).await;
                }
                Ok(Response::Version(_)) => {}
                _ => drop(told.borrow_mut().remove(&server)),
            }
        });
    }

    /// Gives members that have said that theirs is older this database.
    pub fn spread(self: &Rc<Self>) {
        let (version, text) = (self.cluster().version, self.cluster.borrow().1.clone());
        let heard = self.heard.borrow();
        let older = heard.values().filter(|report| report.load.version < version && report.member != self.me.member);
        for member in older.map(|report| report.member.clone()) {
            self.give_database(member, text.clone());
        }
    }

    pub fn give_database(self: &Rc<Self>, member: String, text: String) {
        let daemon = Rc::clone(self);
        tokio::task::spawn_local(async move { daemon.ask_once(&member, Errand::Adopt { text }).await.map(drop) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::{Besieged, run};
    use crate::report::RunningJob;
    use weft_requests::{JobName, made};

    #[test]
    fn who_was_given_up_has_to_tell_everything_again() {
        run(async {
            let daemon = Besieged::up("one").await.daemon;
            let mut view = made::view(4, 0).jobs.remove(0);
            (view.job, view.hosts) = (JobName::new("two", 1), vec![("one".to_owned(), 1)]);
            let jobs = vec![RunningJob { view, until: None }];
            let report = HostReport { member: "two".to_owned(), jobs, ..daemon.own_report(report::load()) };
            let still = || daemon.heed_still("two", report.load.clone());
            let used = || daemon.orders.borrow().used("one");
            assert!(matches!(still(), Response::Failed(_)));
            assert!(matches!(daemon.heed(report.clone()), Response::Version(1)));
            assert!(matches!(still(), Response::Version(1)));
            assert_eq!(used(), 1);
            let trouble = |text| {
                daemon.heed(HostReport { text, ..report.clone() });
                daemon.view().members[1].trouble.clone()
            };
            assert_eq!(trouble(report.text), None);
            assert!(trouble(report.text + 1).expect("told").contains("another text of version 1 than 'one'"));
            daemon.give_up("two");
            assert_eq!(used(), 0);
            assert!(matches!(still(), Response::Failed(_)), "its job may go on");
            daemon.heed(report.clone());
            assert_eq!(used(), 1);
        });
    }
}
