//! The whole cluster, as a server sees it.

use crate::between::Asker;
use crate::daemon::Daemon;
use crate::report::now;
use std::rc::Rc;
use weft_requests::{ClusterReply, ClusterView, Demand, JobView, MemberView, PartitionView, QueuedView};

impl Daemon {
    /// What the page shows: what this server knows, or what the one in charge has said last; it is asked for more.
    pub fn page_view(self: &Rc<Self>) -> ClusterView {
        if self.is_in_charge() {
            return self.view();
        }
        if !self.glance.is_asked.replace(true) {
            let daemon = Rc::clone(self);
            tokio::task::spawn_local(async move {
                let asker = Asker { user: String::new(), uid: daemon.me.uid, groups: Vec::new(), pid: 0, began: 0 };
                if let ClusterReply::View(view) = daemon.ask_servers(&asker, &Demand::Look { ranks: false }).await {
                    *daemon.glance.seen.borrow_mut() = *view;
                }
                daemon.glance.is_asked.set(false);
            });
        }
        self.glance.seen.borrow().clone()
    }

    /// What there is to see now.
    pub fn view(&self) -> ClusterView {
        let cluster = self.cluster();
        let (heard, orders) = (self.heard.borrow(), self.orders.borrow());
        let member = |member: &weft_database::Member| {
            let (standing, since) = self.alive.standing(&member.name);
            let said = heard.get(&member.name);
            MemberView {
                name: member.name.clone(),
                standing,
                since,
                slots: said.map_or(member.slots, |report| report.slots),
                usual_slots: member.slots,
                used: orders.used(&member.name),
                load: said.map(|report| report.load.clone()),
                trouble: said.and_then(|report| report.trouble.clone()),
            }
        };
        let partition = |partition: &weft_database::Partition| PartitionView {
            name: partition.name.clone(),
            members: partition.hosts.iter().map(|host| host.name.clone()).collect(),
            slots: partition.slots(),
            used: partition.hosts.iter().map(|host| orders.used(&host.name).min(host.slots)).sum(),
        };
        let queued = |(before, wish): (usize, &crate::orders::JobWish)| QueuedView {
            job: wish.job.clone(),
            user: wish.user.clone(),
            partition: wish.partition.clone(),
            ranks: wish.ranks,
            program: wish.program.clone(),
            since: wish.since,
            reason: if before == 0 { "no room".to_owned() } else { format!("{before} before it") },
        };
        let jobs = heard.values().flat_map(|report| &report.jobs);
        let mut jobs: Vec<JobView> = jobs.map(|running| running.view.clone()).collect();
        jobs.sort_by_key(|job| job.since);
        ClusterView {
            cluster: cluster.name.clone(),
            version: cluster.version,
            time: now(),
            server: Some(self.me.member.clone()),
            members: cluster.members.iter().map(member).collect(),
            partitions: cluster.partitions.iter().map(partition).collect(),
            queue: orders.waiting().iter().enumerate().map(queued).collect(),
            jobs,
            traffic: Vec::new(),
        }
    }
}
