use super::*;
use proptest::prelude::*;

fn in_environment(variables: &[(&str, &str)]) -> Result<Option<Allocation>, AllocationError> {
    let value = |name| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned());
    let file = |path: &str| match path {
        "/nodes" => Ok("a\nb.example\na\n\nb.example\na\n".to_owned()),
        "/empty" => Ok("\n".to_owned()),
        _ => Err("No such file".to_owned()),
    };
    read(value, file)
}

fn found(variables: &[(&str, &str)]) -> (BatchSystem, Vec<(String, usize)>, Option<usize>) {
    let Allocation { system, hosts, ranks } = in_environment(variables).expect("understood").expect("an allocation");
    (system, hosts.into_iter().map(|host| (host.name, host.slots)).collect(), ranks)
}

fn named(list: &[(&str, usize)]) -> Vec<(String, usize)> {
    list.iter().map(|(name, slots)| ((*name).to_owned(), *slots)).collect()
}

#[test]
fn without_a_batch_system_there_is_none() {
    assert_eq!(in_environment(&[("SLURM_CONF", "x"), ("PBS_NODEFILE", ""), ("PATH", "/bin")]), Ok(None));
}

#[test]
fn slurm_tells_hosts_tasks_and_their_number() {
    let job = [("SLURM_JOB_NODELIST", "login,n[09-11]"), ("SLURM_TASKS_PER_NODE", "2(x3),1"), ("SLURM_NTASKS", "5")];
    let hosts = named(&[("login", 2), ("n09", 2), ("n10", 2), ("n11", 1)]);
    assert_eq!(found(&job), (BatchSystem::Slurm, hosts.clone(), Some(5)));
    assert_eq!(found(&job[..2]), (BatchSystem::Slurm, hosts, None));
    let without = named(&[("login", 1), ("n09", 1), ("n10", 1), ("n11", 1)]);
    assert_eq!(found(&job[..1]), (BatchSystem::Slurm, without, None));
}

#[test]
fn a_shell_in_a_slurm_step_has_the_processors_of_the_job() {
    let shell = [
        ("SLURM_JOB_NODELIST", "n[1-2]"),
        ("SLURM_TASKS_PER_NODE", "1"),
        ("SLURM_JOB_CPUS_PER_NODE", "4(x2)"),
        ("SLURM_NTASKS", "1"),
        ("SLURM_STEP_ID", "0"),
        ("SLURM_STEP_NUM_TASKS", "1"),
    ];
    assert_eq!(found(&shell), (BatchSystem::Slurm, named(&[("n1", 4), ("n2", 4)]), None));
}

#[test]
fn one_of_several_tasks_takes_no_allocation() {
    assert_eq!(in_environment(&[("SLURM_JOB_NODELIST", "n[1-2]"), ("SLURM_STEP_NUM_TASKS", "2")]), Ok(None));
}

#[test]
fn pbs_lists_a_host_for_each_slot() {
    let hosts = named(&[("a", 3), ("b.example", 2)]);
    assert_eq!(found(&[("PBS_NODEFILE", "/nodes")]), (BatchSystem::Pbs, hosts, None));
}

#[test]
fn lsf_tells_it_in_three_ways() {
    let hosts = named(&[("a", 3), ("b.example", 2)]);
    let words = ("LSB_HOSTS", "a a b.example a b.example");
    let pairs = ("LSB_MCPU_HOSTS", "a 3 b.example 2");
    let file = ("LSB_DJOB_HOSTFILE", "/nodes");
    for variables in [&[words][..], &[pairs], &[file], &[("LSB_HOSTS", "x"), pairs], &[("LSB_MCPU_HOSTS", "x"), file]] {
        assert_eq!(found(variables), (BatchSystem::Lsf, hosts.clone(), None), "{variables:?}");
    }
}

#[test]
fn what_is_not_understood_is_named_with_its_variable() {
    let slip = |variables: &[(&str, &str)]| in_environment(variables).unwrap_err().to_string();
    assert_eq!(
        slip(&[("SLURM_JOB_NODELIST", "n[1-")]),
        "SLURM_JOB_NODELIST is 'n[1-', which is not a list of hosts such as login,node[01-03,7]"
    );
    let tasks = [("SLURM_JOB_NODELIST", "n1"), ("SLURM_TASKS_PER_NODE", "2(y3)")];
    assert_eq!(slip(&tasks), "SLURM_TASKS_PER_NODE is '2(y3)', which is not counts such as 2(x3),1");
    assert_eq!(slip(&[("PBS_NODEFILE", "/no")]), "PBS_NODEFILE names '/no', which cannot be read: No such file");
    assert_eq!(slip(&[("PBS_NODEFILE", "/empty")]), "PBS_NODEFILE: no host is listed");
    assert!(slip(&[("LSB_MCPU_HOSTS", "a 2 b")]).starts_with("LSB_MCPU_HOSTS is 'a 2 b', which is not hosts"));
    assert!(slip(&[("LSB_HOSTS", "a -oProxyCommand=x")]).starts_with("LSB_HOSTS: host '-oProxyCommand=x'"));
    assert!(slip(&[("LSB_HOSTS", "a:2")]).starts_with("LSB_HOSTS: host 'a:2'"));
}

#[test]
fn brackets_may_stand_anywhere_and_keep_their_digits() {
    let names = |list| expand(list).expect("a list");
    assert_eq!(names("r[1-2]n[08,10].x"), ["r1n08.x", "r1n10.x", "r2n08.x", "r2n10.x"]);
    assert_eq!(names("a-b,c[3]"), ["a-b", "c3"]);
    for bad in ["", "a,", "a]", "[", "a[]", "a[2-1]", "a[x]", "a[1-2", "a[-1]", "a[0-999999999]", "a[1-64]b[1-64]"] {
        assert_eq!(expand(bad), None, "{bad}");
    }
}

/// A list as Slurm writes it, with the names that it means.
fn written() -> impl Strategy<Value = (String, Vec<String>)> {
    let part = ("[a-z][a-z-]{0,4}", proptest::collection::vec((0usize..99, 0usize..5), 0..4), "[a-z.]{0,3}");
    proptest::collection::vec(part, 1..5).prop_map(|parts| {
        let mut names = Vec::new();
        let mut texts = Vec::new();
        for (before, ranges, after) in parts {
            if ranges.is_empty() {
                names.push(format!("{before}{after}"));
                texts.push(format!("{before}{after}"));
                continue;
            }
            let range = |(from, more): &(usize, usize)| match more {
                0 => format!("{from:03}"),
                more => format!("{from:03}-{:03}", from + more),
            };
            let inside: Vec<String> = ranges.iter().map(range).collect();
            texts.push(format!("{before}[{}]{after}", inside.join(",")));
            let numbers = ranges.iter().flat_map(|(from, more)| *from..=from + more);
            names.extend(numbers.map(|number| format!("{before}{number:03}{after}")));
        }
        (texts.join(","), names)
    })
}

proptest! {
    #[test]
    fn a_list_means_what_it_was_written_for((text, names) in written()) {
        prop_assert_eq!(expand(&text), Some(names));
    }

    #[test]
    fn counts_mean_what_they_were_written_for(runs in proptest::collection::vec((1usize..50, 1usize..9), 1..9)) {
        let text = |(count, times): &(usize, usize)| match times {
            1 => count.to_string(),
            times => format!("{count}(x{times})"),
        };
        let text = runs.iter().map(text).collect::<Vec<_>>().join(",");
        let plain: Vec<usize> = runs.iter().flat_map(|(count, times)| std::iter::repeat_n(*count, *times)).collect();
        prop_assert_eq!(counts(&text), Some(plain));
    }

    #[test]
    fn whatever_stands_in_a_variable_is_hosts_or_an_error(
        list in "([a-c]|\\[|\\]|[0-9]|,|-|\\(x|\\)| ){0,30}",
        counts in "([0-9]|\\(x|\\)|,){0,12}",
    ) {
        for variables in [
            &[("SLURM_JOB_NODELIST", &*list), ("SLURM_TASKS_PER_NODE", &*counts)][..],
            &[("LSB_MCPU_HOSTS", &*list)],
            &[("LSB_HOSTS", &*list)],
        ] {
            if let Ok(Some(allocation)) = in_environment(variables) {
                prop_assert!((1..=HOSTS_MAX).contains(&allocation.hosts.len()));
                prop_assert!(allocation.hosts.iter().all(|host| (1..=RANKS_MAX).contains(&host.slots)));
            }
        }
    }
}
