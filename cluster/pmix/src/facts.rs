//! What a PMIx server tells of the job, in PMIx's words: a key, and a value of the type that belongs to it.
//!
//! Keys and types are those of the PMIx standard 4; the library works out more of it for each rank.

use crate::PmixJob;

/// A value of one of PMIx's types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    Flag(bool),
    Text(String),
    Half(u16),
    Number(u32),
    Rank(u32),
    Several(Facts),
}

pub type Facts = Vec<(&'static str, Fact)>;

/// What the server is told of itself.
pub fn of_server(job: &PmixJob) -> Facts {
    vec![
        ("pmix.srv.nspace", Fact::Text(job.servers.clone())),
        ("pmix.srv.rank", Fact::Rank(job.here as u32)),
        ("pmix.hname", Fact::Text(job.hosts[job.here].clone())),
        ("pmix.srvr.tool", Fact::Flag(false)),
        ("pmix.srvr.remote", Fact::Flag(false)),
        ("pmix.srv.gway", Fact::Flag(false)),
    ]
}

/// What it is told of the job.
pub fn of_job(job: &PmixJob) -> Facts {
    let size = Fact::Number(job.places.len() as u32);
    let programs = job.programs.iter().max().map_or(0, |last| last + 1);
    let peers = |host| joined(job.ranks_on(host));
    let in_job = vec![
        ("pmix.nmap", Fact::Text(job.hosts.join(","))),
        ("pmix.pmap", Fact::Text((0..job.hosts.len()).map(peers).collect::<Vec<_>>().join(";"))),
        ("pmix.job.size", size.clone()),
        ("pmix.jobid", Fact::Text(job.namespace.clone())),
        ("pmix.univ.size", size.clone()),
        ("pmix.max.size", size),
        ("pmix.job.napps", Fact::Number(programs as u32)),
        ("pmix.num.nodes", Fact::Number(job.hosts.len() as u32)),
        ("pmix.spawned", Fact::Flag(false)),
    ];
    let mut facts = vec![("pmix.job.arr", Fact::Several(in_job))];
    facts.extend(of_host(job, job.here).split_off(2));
    facts.extend((0..job.hosts.len()).map(|host| ("pmix.node.arr", Fact::Several(of_host(job, host)))));
    facts.extend((0..programs).map(|program| ("pmix.app.arr", Fact::Several(of_program(job, program)))));
    facts.extend((0..job.places.len()).map(|rank| ("pmix.pdata", Fact::Several(of_rank(job, rank)))));
    facts
}

fn joined(ranks: impl Iterator<Item = usize>) -> String {
    ranks.map(|rank| rank.to_string()).collect::<Vec<_>>().join(",")
}

fn of_host(job: &PmixJob, host: usize) -> Facts {
    let count = job.ranks_on(host).count() as u32;
    vec![
        ("pmix.hname", Fact::Text(job.hosts[host].clone())),
        ("pmix.nodeid", Fact::Number(host as u32)),
        ("pmix.node.size", Fact::Number(count)),
        ("pmix.local.size", Fact::Number(count)),
        ("pmix.lpeers", Fact::Text(joined(job.ranks_on(host)))),
        ("pmix.lldr", Fact::Rank(job.ranks_on(host).next().unwrap_or_default() as u32)),
    ]
}

fn of_program(job: &PmixJob, program: usize) -> Facts {
    let mut ranks = (0..job.places.len()).filter(|rank| job.programs[*rank] == program);
    let first = ranks.next().unwrap_or_default() as u32;
    vec![
        ("pmix.appnum", Fact::Number(program as u32)),
        ("pmix.app.size", Fact::Number(ranks.count() as u32 + 1)),
        ("pmix.aldr", Fact::Rank(first)),
    ]
}

fn of_rank(job: &PmixJob, rank: usize) -> Facts {
    let host = job.places[rank];
    let before = |of: &[usize]| (0..rank).filter(|other| of[*other] == of[rank]).count();
    let local = before(&job.places) as u16;
    vec![
        // The library wants it first.
        ("pmix.rank", Fact::Rank(rank as u32)),
        ("pmix.grank", Fact::Rank(rank as u32)),
        ("pmix.lrank", Fact::Half(local)),
        ("pmix.nrank", Fact::Half(local)),
        ("pmix.nodeid", Fact::Number(host as u32)),
        ("pmix.hname", Fact::Text(job.hosts[host].clone())),
        ("pmix.appnum", Fact::Number(job.programs[rank] as u32)),
        ("pmix.apprank", Fact::Rank(before(&job.programs) as u32)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<'a>(facts: &'a Facts, key: &str) -> &'a Fact {
        &facts.iter().find(|(name, _)| *name == key).expect("it is told").1
    }

    #[test]
    fn ranks_are_counted_on_their_host_and_in_their_program() {
        let job = PmixJob {
            namespace: "j".into(),
            servers: "s".into(),
            hosts: vec!["a".into(), "b".into()],
            places: vec![0, 1, 0, 1],
            here: 1,
            programs: vec![0, 0, 1, 1],
        };
        let facts = of_job(&job);
        let Fact::Several(all) = value(&facts, "pmix.job.arr") else { panic!("an array") };
        assert_eq!(value(all, "pmix.nmap"), &Fact::Text("a,b".into()));
        assert_eq!(value(all, "pmix.pmap"), &Fact::Text("0,2;1,3".into()));
        assert_eq!(value(&facts, "pmix.lpeers"), &Fact::Text("1,3".into()), "of this host");
        assert_eq!(value(&facts, "pmix.lldr"), &Fact::Rank(1));
        let rank = of_rank(&job, 3);
        assert_eq!((value(&rank, "pmix.lrank"), value(&rank, "pmix.apprank")), (&Fact::Half(1), &Fact::Rank(1)));
        assert_eq!(value(&of_program(&job, 1), "pmix.aldr"), &Fact::Rank(2));
        assert_eq!(value(&of_program(&job, 1), "pmix.app.size"), &Fact::Number(2));
    }
}
