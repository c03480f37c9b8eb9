//! The whole cluster, as a server sees it.

use crate::between::Asker;
use crate::daemon::Daemon;
use crate::report::{HostReport, now};
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};
use weft_database::Reservation;
use weft_requests::{
    ClusterReply, ClusterView, Demand, JobView, MemberView, PartitionView, ProcessView, QueuedView, RegisteredKind,
    ReservationView,
};

/// A page that nobody has looked at for so long asks no other daemon, so what it knows of the time then has gaps.
const LOOKED_AT: Duration = Duration::from_secs(3600);
/// What is older is not shown where there is something newer.
const FRESH: Duration = Duration::from_secs(3);

impl Daemon {
    /// What the page shows: what the server in charge has said last, which is asked for more; or, of itself, what this
    /// one knows without asking. Only who looks makes daemons read what ranks do.
    pub fn page_view(self: &Rc<Self>, is_looked_at: bool) -> ClusterView {
        let (glance, is_in_charge) = (&self.glance, self.is_in_charge());
        let is_within = |at: &Cell<Option<Instant>>, time| at.get().is_some_and(|at| at.elapsed() < time);
        if is_looked_at {
            glance.looked.set(Some(Instant::now()));
        }
        let is_wanted = is_looked_at || (!is_in_charge && is_within(&glance.looked, LOOKED_AT));
        if is_wanted && !glance.is_asked.replace(true) {
            let daemon = Rc::clone(self);
            tokio::task::spawn_local(async move {
                let asker = Asker { user: String::new(), uid: daemon.me.uid, groups: Vec::new(), pid: 0, began: 0 };
                let demand = Demand::Look { ranks: is_looked_at };
                if let ClusterReply::View(view) = daemon.ask_servers(&asker, &demand).await {
                    *daemon.glance.seen.borrow_mut() = *view;
                    daemon.glance.at.set(Some(Instant::now()));
                }
                daemon.glance.is_asked.set(false);
            });
        }
        let is_fresh = is_within(&glance.at, FRESH);
        if is_in_charge && !is_fresh { self.view() } else { glance.seen.borrow().clone() }
    }

    /// What is wrong where two members have changed the same version apart from each other.
    fn other_text(&self, report: &HostReport) -> Option<String> {
        let version = self.cluster().version;
        let is_other = report.load.version == version && ![0, self.me.file.tag.get()].contains(&report.text);
        is_other.then(|| {
            let me = &self.me.member;
            format!("has another text of version {version} than '{me}': weft cluster edit makes the next one of both")
        })
    }

    /// What there is to see now.
    pub fn view(&self) -> ClusterView {
        let cluster = self.cluster();
        let (heard, orders) = (self.heard.borrow(), self.orders.borrow());
        let member = |member: &weft_database::Member| {
            let (standing, since) = self.alive.standing(&member.name);
            let said = heard.get(&member.name);
            let of_said = || said.and_then(|report| report.trouble.clone().or_else(|| self.other_text(report)));
            MemberView {
                name: member.name.clone(),
                standing,
                since,
                slots: said.map_or(member.slots, |report| report.slots),
                usual_slots: member.slots,
                used: orders.used(&member.name),
                load: said.map(|report| report.load.clone()),
                trouble: self.why_missing(&member.name).or_else(of_said),
            }
        };
        let partition = |partition: &weft_database::Partition| PartitionView {
            name: partition.name.clone(),
            members: partition.hosts.iter().map(|host| host.name.clone()).collect(),
            slots: partition.slots(),
            used: partition.hosts.iter().map(|host| orders.used(&host.name).min(host.slots)).sum(),
            seconds: partition.limits.time.map(|time| time.as_secs()),
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
        let mut jobs: Vec<JobView> =
            jobs.map(|running| JobView { until: running.until, ..running.view.clone() }).collect();
        jobs.sort_by_key(|job| job.since);
        let processes = jobs.iter().filter_map(ProcessView::of).collect();
        jobs.retain(|job| job.kind == RegisteredKind::Job);
        ClusterView {
            cluster: cluster.name.clone(),
            version: cluster.version,
            time: now(),
            server: Some(self.me.member.clone()),
            members: cluster.members.iter().map(member).collect(),
            partitions: cluster.partitions.iter().map(partition).collect(),
            queue: orders.waiting().iter().enumerate().map(queued).collect(),
            jobs,
            processes,
            reservations: cluster.reservations.iter().filter(|one| one.until > now()).map(reservation).collect(),
            traffic: Vec::new(),
        }
    }
}

fn reservation(one: &Reservation) -> ReservationView {
    ReservationView {
        name: one.name.clone(),
        partition: one.partition.clone(),
        hosts: one.hosts.iter().map(|host| (host.name.clone(), host.slots)).collect(),
        users: one.users.clone(),
        from: one.from,
        until: one.until,
    }
}
