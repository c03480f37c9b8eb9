//! A cluster that is made up, of any size, as a busy one looks: for tests of those who show it.

use crate::{
    ClusterView, Flow, JobName, JobView, LoadView, MemberStanding, MemberView, PartitionView, QueuedView, RankView,
    RegisteredKind,
};

/// Numbers that look like chance, and are the same each time.
struct Fortune(u64);

impl Fortune {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    fn share(&mut self) -> f64 {
        self.below(1000) as f64 / 1000.0
    }
}

const NOW: u64 = 1_790_000_000;
const PROGRAMS: [(&str, &[&str], &str); 5] = [
    ("/opt/weft/heat", &["--grid", "8192"], "ada"),
    ("/opt/lammps/lmp", &["-in", "in.rhodo"], "grace"),
    ("/usr/bin/python3", &["train.py", "--epochs", "30"], "alan"),
    ("./cg.C.64", &[], "edsger"),
    ("/opt/gromacs/gmx_mpi", &["mdrun", "-s", "topol.tpr"], "barbara"),
];
const WAITS: [&str; 4] = [
    "MPI_Recv from rank 3, tag 17",
    "MPI_Allreduce, 8 of 64 ranks have come",
    "MPI_Waitall of 12 requests",
    "MPI_Barrier",
];

/// A cluster of so many hosts, so many seconds after its beginning.
pub fn view(hosts: usize, seconds: u64) -> ClusterView {
    let mut chance = Fortune(0x9e37_79b9_7f4a_7c15);
    let names: Vec<String> =
        (1..=hosts).map(|at| if hosts < 100 { format!("node{at:02}") } else { format!("n{at:03}") }).collect();
    let jobs = jobs(&mut chance, &names, seconds);
    let members: Vec<MemberView> =
        names.iter().enumerate().map(|(at, name)| member(&mut chance, at, name, &jobs)).collect();
    let traffic = traffic(&mut chance, &jobs, seconds);
    let partition = |name: &str, from: usize, to: usize| {
        let own = &members[from..to];
        let members = own.iter().map(|member| member.name.clone()).collect();
        let (slots, used) = (own.iter().map(|member| member.slots).sum(), own.iter().map(|member| member.used).sum());
        PartitionView { name: name.to_owned(), members, slots, used, seconds: None }
    };
    let partitions =
        vec![partition("batch", 0, hosts), partition("fast", 0, hosts / 3), partition("night", hosts / 2, hosts)];
    let queue = (0..4).map(|at| queued(&mut chance, at, NOW + seconds)).collect();
    let (cluster, server) = ("lab".to_owned(), Some(names[0].clone()));
    ClusterView {
        cluster,
        version: 42,
        time: NOW + seconds,
        server,
        members,
        partitions,
        queue,
        jobs,
        processes: vec![],
        traffic,
        reservations: vec![],
    }
}

fn member(chance: &mut Fortune, at: usize, name: &str, jobs: &[JobView]) -> MemberView {
    let of_jobs = jobs.iter().flat_map(|job| &job.hosts).filter(|(host, _)| host == name);
    let used: usize = of_jobs.map(|(_, ranks)| ranks).sum();
    let standing = match at % 61 {
        7 => MemberStanding::Dead,
        10 => MemberStanding::Suspect,
        _ => MemberStanding::Alive,
    };
    let drained = at % 47 == 5;
    let load = LoadView {
        cores: 16,
        load: used as f64 * (0.8 + 0.3 * chance.share()) + chance.share(),
        pressure: Some(chance.share() * used as f64),
        memory_bytes: 64 << 30,
        free_bytes: (4 << 30) + chance.below(50 << 30),
        weft: "0.1.0".to_owned(),
        version: 42,
    };
    let trouble = (at % 61 == 3).then(|| "its database has version 41".to_owned());
    let slots = if drained { 0 } else { 16 };
    let load = (standing != MemberStanding::Dead).then_some(load);
    MemberView { name: name.to_owned(), standing, since: 754, slots, usual_slots: 16, used, load, trouble }
}

fn jobs(chance: &mut Fortune, names: &[String], seconds: u64) -> Vec<JobView> {
    let usable: Vec<&String> =
        names.iter().enumerate().filter(|(at, _)| ![5, 7, 10].contains(&(at % 61))).map(|(_, name)| name).collect();
    let mut jobs = Vec::new();
    let mut first = 0;
    while first + 1 < usable.len() && jobs.len() < 14 {
        let count = (2 + chance.below(1 + usable.len() as u64 / 3) as usize).min(usable.len() - first);
        let per_host = [8, 16, 4][chance.below(3) as usize];
        let hosts: Vec<(String, usize)> =
            usable[first..first + count].iter().map(|name| ((*name).clone(), per_host)).collect();
        let (program, arguments, user) = PROGRAMS[jobs.len() % PROGRAMS.len()];
        let ranks = (0..count * per_host).map(|rank| of_rank(chance, rank, &hosts[rank / per_host].0)).collect();
        jobs.push(JobView {
            job: JobName::new(&hosts[0].0, 117 + jobs.len() as u64),
            kind: RegisteredKind::Job,
            pid: 4000,
            user: user.to_owned(),
            partition: (jobs.len() != 3).then(|| "batch".to_owned()),
            program: program.to_owned(),
            arguments: arguments.iter().map(ToString::to_string).collect(),
            size: count * per_host,
            hosts,
            since: NOW + seconds - 60 - chance.below(20_000),
            until: None,
            priority: 0,
            id: format!("{}-5eed", 3000 + jobs.len()),
            ranks,
        });
        first += count;
    }
    jobs
}

fn of_rank(chance: &mut Fortune, rank: usize, host: &str) -> RankView {
    let blocked = (chance.below(10) < 4).then(|| WAITS[chance.below(4) as usize].to_owned());
    let seconds = if chance.below(40) == 0 { 12.0 + chance.share() * 40.0 } else { chance.share() };
    RankView { rank: rank as u32, host: host.to_owned(), pid: 4000 + rank as u32, blocked, seconds, sent: 0 }
}

/// Neighbours of a job talk, and a little all do.
fn traffic(chance: &mut Fortune, jobs: &[JobView], seconds: u64) -> Vec<Flow> {
    let mut flows = Vec::new();
    for hosts in jobs.iter().map(|job| &job.hosts) {
        for (one, (from, _)) in hosts.iter().enumerate() {
            for (other, (to, _)) in hosts.iter().enumerate().filter(|(other, _)| *other != one) {
                let distance = one.abs_diff(other).min(hosts.len() - one.abs_diff(other)) as u32;
                let bytes = ((10 << 30) + chance.below(40 << 30)) >> (2 * distance).min(24);
                let bytes = bytes + seconds * (9 << 20 >> (2 * distance).min(20));
                flows.push(Flow { from: from.clone(), to: to.clone(), bytes });
            }
        }
    }
    flows
}

fn queued(chance: &mut Fortune, at: usize, now: u64) -> QueuedView {
    let (program, _, user) = PROGRAMS[(at + 2) % PROGRAMS.len()];
    let program = program.rsplit('/').next().unwrap_or_default().to_owned();
    let reason = if at == 0 { "no room".to_owned() } else { format!("{at} before it") };
    let (job, ranks) = (JobName::new("node01", 140 + at as u64), 16 << at);
    let since = now - 10 - chance.below(4000);
    QueuedView { job, user: user.to_owned(), partition: "batch".to_owned(), ranks, program, since, reason }
}
