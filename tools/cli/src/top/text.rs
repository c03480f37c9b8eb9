//! A view as text, for a pipe.

use super::state::{alike, blocked, ranges, span, word};
use crate::counted::counted;
use std::fmt::Write as _;
use weft_requests::ClusterView;

pub fn of(view: &ClusterView) -> String {
    let mut text = String::new();
    let server = view.server.as_deref().unwrap_or("nobody now");
    let _ = writeln!(text, "cluster {}, version {}, jobs are ordered by {server}", view.cluster, view.version);
    hosts(view, &mut text);
    let width = view.partitions.iter().map(|part| part.name.len()).max().unwrap_or(0);
    text.push_str("\npartitions\n");
    for part in &view.partitions {
        let hosts = counted(part.members.len(), "host");
        let _ = write!(text, "  {:width$}  {}/{} slots, {hosts}", part.name, part.used, part.slots);
        let most = part.seconds.map_or_else(String::new, |most| format!(", jobs up to {}", span(most)));
        let _ = writeln!(text, "{most}");
    }
    for one in &view.reservations {
        let _ = writeln!(text, "  {}", crate::ask::reservation_line(one));
    }
    let _ = writeln!(text, "\nqueue: {}", view.queue.len());
    for job in &view.queue {
        let (waited, partition) = (span(view.time.saturating_sub(job.since)), &job.partition);
        let what = format!("{} of {}, {} on {partition}", job.program, job.user, counted(job.ranks, "rank"));
        let _ = writeln!(text, "  {}  {what}, since {waited}: {}", job.job, job.reason);
    }
    jobs(view, &mut text);
    text
}

fn hosts(view: &ClusterView, text: &mut String) {
    let width = view.members.iter().map(|member| member.name.len()).max().unwrap_or(0);
    text.push_str("\nhosts\n");
    for member in &view.members {
        let _ = write!(text, "  {:width$}  {:8}{:>4}/{} slots", member.name, word(member), member.used, member.slots);
        if let Some(load) = &member.load {
            let _ = write!(text, ", load {:.1} of {}, {} MiB free", load.load, load.cores, load.free_bytes >> 20);
        }
        if let Some(trouble) = &member.trouble {
            let _ = write!(text, ": {trouble}");
        }
        text.push('\n');
    }
}

fn jobs(view: &ClusterView, text: &mut String) {
    let _ = writeln!(text, "\njobs: {}", view.jobs.len());
    for job in &view.jobs {
        let (ran, partition) =
            (span(view.time.saturating_sub(job.since)), job.partition.as_deref().unwrap_or("no partition"));
        let places: Vec<String> = job.hosts.iter().map(|(host, ranks)| format!("{host}:{ranks}")).collect();
        let what = format!("{} of {}, {}, {} blocked", job.program, job.user, counted(job.size, "rank"), blocked(job));
        let _ = writeln!(text, "  {}  {what}, since {ran}, {partition} on {}", job.job, places.join(","));
        for group in alike(&job.ranks) {
            let which = ranges(&group.ranks);
            let _ = writeln!(text, "      {} {}, up to {:.1} s: {which}", group.ranks.len(), group.what, group.seconds);
        }
    }
}
