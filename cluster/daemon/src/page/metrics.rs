//! A view in the text form of Prometheus.

use std::fmt::{Display, Write as _};
use weft_requests::{ClusterView, JobView, MemberStanding, MemberView};

const STANDINGS: [(MemberStanding, &str); 4] = [
    (MemberStanding::Alive, "alive"),
    (MemberStanding::Suspect, "suspect"),
    (MemberStanding::Dead, "dead"),
    (MemberStanding::Unknown, "unknown"),
];

/// All numbers of a view. Traffic is per sending member: pairs would be as many as the square of the members.
pub fn metrics(view: &ClusterView) -> String {
    let mut text = Metrics(String::new());
    text.gauge(
        "weft_database_version",
        "Version of the cluster's database",
        [(vec![("cluster", &*view.cluster)], view.version)],
    );
    let counted = STANDINGS.map(|(standing, word)| {
        let count = view.members.iter().filter(|member| member.standing == standing).count();
        (vec![("standing", word)], count)
    });
    text.gauge("weft_members", "Members by whether they are there", counted);
    of_members(&mut text, &view.members);
    let partitions = || view.partitions.iter().map(|part| (vec![("partition", &*part.name)], part));
    text.gauge("weft_partition_slots", "Slots of a partition", partitions().map(|(labels, part)| (labels, part.slots)));
    text.gauge(
        "weft_partition_slots_used",
        "Slots of its jobs",
        partitions().map(|(labels, part)| (labels, part.used)),
    );
    text.gauge("weft_jobs", "Jobs that run", [(vec![], view.jobs.len())]);
    text.gauge("weft_jobs_queued", "Jobs that wait for room", [(vec![], view.queue.len())]);
    let ranks = view.queue.iter().map(|job| job.ranks).sum::<usize>();
    text.gauge("weft_ranks_queued", "Ranks of jobs that wait for room", [(vec![], ranks)]);
    of_jobs(&mut text, &view.jobs);
    let sent = view.members.iter().map(|member| {
        let flows = view.traffic.iter().filter(|flow| flow.from == member.name);
        (vec![("member", &*member.name)], flows.map(|flow| flow.bytes).fold(0, u64::saturating_add))
    });
    // No counter: it falls when a job ends.
    text.gauge("weft_sent_bytes", "Bytes sent to other members by jobs that run", sent);
    text.0
}

fn of_members(text: &mut Metrics, members: &[MemberView]) {
    let each = || members.iter().map(|member| (vec![("member", &*member.name)], member));
    text.gauge("weft_slots", "Slots that a member takes", each().map(|(labels, member)| (labels, member.slots)));
    text.gauge("weft_slots_used", "Slots of jobs", each().map(|(labels, member)| (labels, member.used)));
    let said = || each().filter_map(|(labels, member)| Some((labels, member.load.as_ref()?)));
    text.gauge("weft_cores", "Cores of a member", said().map(|(labels, load)| (labels, load.cores)));
    text.gauge("weft_load", "Processes that run or could", said().map(|(labels, load)| (labels, load.load)));
    let pressure = said().filter_map(|(labels, load)| Some((labels, load.pressure?)));
    text.gauge("weft_pressure_percent", "Share of time in which somebody waited for a processor", pressure);
    text.gauge("weft_memory_bytes", "Memory", said().map(|(labels, load)| (labels, load.memory_bytes)));
    text.gauge("weft_memory_free_bytes", "Memory that is free", said().map(|(labels, load)| (labels, load.free_bytes)));
}

fn of_jobs(text: &mut Metrics, jobs: &[JobView]) {
    let each = || {
        jobs.iter().map(|job| {
            let partition = job.partition.as_deref().unwrap_or_default();
            (vec![("job", job.job.as_str()), ("user", &*job.user), ("partition", partition)], job)
        })
    };
    text.gauge("weft_job_ranks", "Ranks of a job", each().map(|(labels, job)| (labels, job.size)));
    let blocked = |job: &JobView| job.ranks.iter().filter(|rank| rank.blocked.is_some()).count();
    let looked = each().filter(|(_, job)| !job.ranks.is_empty());
    text.gauge("weft_job_ranks_blocked", "Ranks that wait", looked.map(|(labels, job)| (labels, blocked(job))));
}

struct Metrics(String);

impl Metrics {
    fn gauge<'a, V: Display>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Vec<(&'a str, &'a str)>, V)>,
    ) {
        let _ = writeln!(self.0, "# HELP {name} {help}.\n# TYPE {name} gauge");
        for (labels, value) in samples {
            let labels: Vec<String> =
                labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let _ = writeln!(self.0, "{name}{labels} {value}");
        }
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
