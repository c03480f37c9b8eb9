//! What the ranks find, and how they end.

use super::support::{LAUNCH, on_hosts, run, script};
use crate::launcher::{Running, finish, lines_sorted, on_ranks};
use std::process::{Command, Stdio};
use weft_tests::build;
use weft_tests::namespaces::Namespaces;
use weft_wire::job_map::JobMap;

const ADDRESS: &str = "$(ip -4 -o addr show dev eth0 | sed 's/.*inet //; s:/.*::')";

#[test]
fn ranks_fill_the_slots_of_one_host_after_the_other() {
    let text = format!("echo $PMI_RANK of $PMI_SIZE, $MPI_LOCALRANKID of $MPI_LOCALNRANKS at {ADDRESS}");
    let done = run(2, "", &text);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    let expected = [
        "0 of 4, 0 of 2 at 10.77.0.1",
        "1 of 4, 1 of 2 at 10.77.0.1",
        "2 of 4, 0 of 2 at 10.77.0.2",
        "3 of 4, 1 of 2 at 10.77.0.2",
    ];
    assert_eq!(lines_sorted(&done.out), expected);
}

#[test]
fn map_host_gives_a_rank_to_each_host_in_turn() {
    let done = run(2, "-n 3 --map host", &format!("echo $PMI_RANK $MPI_LOCALRANKID {ADDRESS}"));
    assert_eq!(lines_sorted(&done.out), ["0 0 10.77.0.1", "1 0 10.77.0.2", "2 1 10.77.0.1"], "{}", done.err);
    let done = run(2, "--map 1-per-host", &format!("echo $PMI_RANK {ADDRESS}"));
    assert_eq!(lines_sorted(&done.out), ["0 10.77.0.1", "1 10.77.0.2"], "{}", done.err);
}

#[test]
fn lists_of_the_other_launchers_lead_to_other_hosts() {
    let hosts = Namespaces::pair();
    let (one, two) = (hosts.name(1), hosts.name(2));
    let in_turn = ["0 10.77.0.1", "1 10.77.0.2", "2 10.77.0.1", "3 10.77.0.2"];
    let filled = ["0 10.77.0.1", "1 10.77.0.1", "2 10.77.0.2", "3 10.77.0.2"];
    let cases = [
        (format!("mpiexec -hosts {one},{two} -n 4"), in_turn),
        (format!("mpiexec -H {one}:2,{two}:2 --map-by node"), in_turn),
        (format!("mpiexec --host {one},{two} -npernode 2"), filled),
        (format!("mpiexec -H {one}:1,{two}:1 --oversubscribe -np 4 --bind-to none"), in_turn),
        (format!("srun -w {one},{two} --ntasks-per-node=2"), filled),
        (format!("srun -N2 -n4 -w {one},{two}"), filled),
        (format!("srun -m cyclic -n4 -w {one},{two}"), in_turn),
    ];
    for (line, expected) in cases {
        let mut command = Command::new(build::weft());
        command.args(line.split(' ')).stdin(Stdio::null());
        command.envs([("WEFT_LAUNCH", LAUNCH), ("WEFT_LAUNCH_TIMEOUT", "120"), ("WEFT_BIND", "none")]);
        let done = finish(&mut script(command, &format!("echo $PMI_RANK {ADDRESS}")));
        assert_eq!(lines_sorted(&done.out), expected, "{line}: {}", done.err);
    }
}

#[test]
fn what_a_batch_system_has_given_is_taken_where_nothing_else_is_said() {
    let hosts = Namespaces::pair();
    let (one, two) = (hosts.name(1), hosts.name(2));
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let file = folder.path().join("nodes");
    std::fs::write(&file, format!("{one}\n{two}\n{two}\n")).expect("there is room for a file");
    let file = file.to_string_lossy().into_owned();
    let cases = [
        ("PBS_NODEFILE", file.clone()),
        ("LSB_DJOB_HOSTFILE", file),
        ("LSB_MCPU_HOSTS", format!("{one} 1 {two} 2")),
        ("SLURM_JOB_NODELIST", format!("{one},{two},{two}")),
    ];
    for (name, value) in cases {
        let given = [("WEFT_LAUNCH", LAUNCH), ("WEFT_LAUNCH_TIMEOUT", "120"), (name, &*value)];
        let mut command = on_ranks("", &format!("echo $PMI_RANK {ADDRESS}"));
        let done = finish(command.envs(given));
        assert_eq!(lines_sorted(&done.out), ["0 10.77.0.1", "1 10.77.0.2", "2 10.77.0.2"], "{name}: {}", done.err);
        let mut command = on_ranks(&format!("--hosts {two}"), &format!("echo $PMI_RANK {ADDRESS}"));
        let done = finish(command.envs(given));
        assert_eq!(done.out, "0 10.77.0.2\n", "{name}: {}", done.err);
    }
    let mut command = on_ranks("", "true");
    let done = finish(command.env("PBS_NODEFILE", "/no/nodes"));
    assert_eq!(done.code, 2);
    assert!(done.err.starts_with("weft run: PBS_NODEFILE names '/no/nodes', which cannot be read: "), "{}", done.err);
}

#[test]
fn programs_are_numbered_through_and_keep_their_options() {
    let mut command = on_hosts(2, "-n 1 --env COLOUR=red");
    command.args(["sh", "-c", "echo $PMI_RANK $COLOUR $PWD", ":", "-n", "2", "--wdir", "/", "--env", "COLOUR=blue"]);
    let done = finish(command.args(["sh", "-c", "echo $PMI_RANK $COLOUR $PWD"]));
    let here = std::env::current_dir().unwrap();
    let first = format!("0 red {}", here.display());
    assert_eq!(lines_sorted(&done.out), [first.as_str(), "1 blue /", "2 blue /"], "{}", done.err);
}

#[test]
fn environment_and_working_directory_are_those_of_the_launcher() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = script(on_hosts(1, ""), "echo \"${ODD@Q}|$PWD|$PMI_ID\"");
    command.current_dir(directory.path()).env("ODD", "a b\nc").env("PMI_ID", "of another launcher");
    let done = finish(&mut command);
    let line = format!("$'a b\\nc'|{}|\n", directory.path().display());
    assert_eq!(done.out, line.repeat(2), "{}", done.err);
}

#[test]
fn on_one_host_there_is_no_map() {
    let text = "echo ${WEFT_JOB_MAP-none} ${WEFT_TCP_LISTENER-none} ${WEFT_UDP_SOCKET-none}";
    let done = finish(&mut on_ranks("-n 1", text));
    assert_eq!((done.out.as_str(), done.code), ("none none none\n", 0), "{}", done.err);
}

#[test]
fn every_rank_has_the_same_map_of_the_job() {
    let hosts = Namespaces::pair();
    let directory = tempfile::tempdir().unwrap();
    let text = "cat /proc/self/fd/$WEFT_JOB_MAP > map-$PMI_RANK; echo forged 2>/dev/null > /proc/self/fd/$WEFT_JOB_MAP || \
                echo sealed";
    let done = finish(script(on_hosts(2, "-n 3 --map host"), text).current_dir(directory.path()));
    assert_eq!((done.out.as_str(), done.code), ("sealed\nsealed\nsealed\n", 0), "{}", done.err);
    let maps = [0, 1, 2].map(|rank| std::fs::read(directory.path().join(format!("map-{rank}"))).unwrap());
    assert!(maps.iter().all(|map| *map == maps[0]));
    let map = JobMap::decode(&maps[0]).unwrap();
    let names: Vec<&str> = map.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, [hosts.name(1), hosts.name(2)]);
    for (number, host) in map.hosts.iter().enumerate() {
        assert_eq!(host.addresses, [hosts.address(number + 1)]);
    }
    let places: Vec<(u32, u32)> = map.ranks.iter().map(|rank| (rank.host, rank.member)).collect();
    assert_eq!(places, [(0, 0), (1, 0), (0, 1)]);
    assert_ne!(map.key, [0; 16]);
}

/// The two ends of the map of two ranks: the TCP port of rank 0 stands 16 bytes before its end.
#[test]
fn a_rank_is_reached_at_its_port_from_the_other_host_and_from_nowhere_else() {
    let text = r#"
        ask() { echo "$1" >&$PMI_FD; read -r answer <&$PMI_FD; }
        ask "cmd=init pmi_version=1 pmi_subversion=1"
        port=$(tail -c 16 /proc/self/fd/$WEFT_JOB_MAP | od -An -tu2 -N2 | tr -d ' ')
        if test $PMI_RANK = 1; then
            (exec 9<>/dev/tcp/10.77.0.1/$port) && echo "reached"
            (exec 9<>/dev/tcp/127.0.0.1/$port) 2>/dev/null || echo "not here"
        else
            ls -l /proc/self/fd/$WEFT_TCP_LISTENER /proc/self/fd/$WEFT_UDP_SOCKET | grep -c 'socket:'
        fi
        ask "cmd=barrier_in"
        ask "cmd=finalize""#;
    // The barrier keeps rank 0, whose listener it is, until rank 1 has been there.
    let done = run(1, "", text);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert_eq!(lines_sorted(&done.out), ["2", "not here", "reached"]);
}

#[test]
fn values_put_on_one_host_are_read_on_the_other() {
    let text = r#"
        ask() { echo "$1" >&$PMI_FD; read -r answer <&$PMI_FD; }
        ask "cmd=init pmi_version=1 pmi_subversion=1"
        ask "cmd=get_my_kvsname"; name=${answer##*kvsname=}
        ask "cmd=put kvsname=$name key=k$PMI_RANK value=v$PMI_RANK"
        ask "cmd=barrier_in"
        ask "cmd=get kvsname=$name key=k$((1 - PMI_RANK))"; echo "$PMI_RANK ${answer##*value=}"
        ask "cmd=get kvsname=$name key=PMI_process_mapping"; echo "$PMI_RANK ${answer##*value=}"
        ask "cmd=finalize""#;
    let done = run(1, "", text);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    let mapping = "(vector,(0,2,1))";
    let expected = [format!("0 {mapping}"), "0 v1".into(), format!("1 {mapping}"), "1 v0".into()];
    assert_eq!(lines_sorted(&done.out), expected);
}

#[test]
fn code_of_the_failing_rank_is_ours_and_the_report_names_its_host() {
    let done = run(2, "", "test $PMI_RANK = 3 && exit 7; exec sleep 1000");
    assert_eq!(done.code, 7);
    let lines: Vec<&str> = done.err.lines().collect();
    let host = Namespaces::pair().name(2);
    assert!(lines[0].starts_with("weft run: rank 3 (pid "), "{}", done.err);
    assert!(lines[0].ends_with(&format!(" on {host} exited with code 7")), "{}", done.err);
    assert_eq!(lines[1], "weft run: the 3 ranks that still ran were ended");
}

#[test]
fn abort_ends_the_ranks_of_all_hosts() {
    let text = r#"
        echo "cmd=init pmi_version=1 pmi_subversion=1" >&$PMI_FD; read -r answer <&$PMI_FD
        test $PMI_RANK = 0 && echo "cmd=abort exitcode=9" >&$PMI_FD
        exec sleep 1000"#;
    let done = run(1, "", text);
    assert_eq!(done.code, 9);
    assert!(done.err.contains("rank 0 (pid") && done.err.contains("MPI_Abort with code 9"), "{}", done.err);
}

#[test]
fn signal_counts_from_128_and_is_named() {
    let done = run(1, "", "test $PMI_RANK = 1 && kill -SEGV $$; exec sleep 1000");
    assert_eq!(done.code, 139);
    assert!(done.err.contains("was killed by signal 11 (segmentation fault)"), "{}", done.err);
}

#[test]
fn timeout_ends_the_job_with_124() {
    let done = run(1, "--timeout 1s", "exec sleep 1000");
    assert_eq!(done.code, 124);
    assert!(done.err.contains("time limit of 1 s"), "{}", done.err);
    assert!(done.err.starts_with("weft run: ranks 0-1: not joined yet\n"), "{}", done.err);
}

#[test]
fn signals_are_passed_on_to_the_ranks_of_all_hosts() {
    for (signal, name) in [(10, "USR1"), (12, "USR2"), (1, "HUP"), (15, "TERM"), (2, "INT"), (3, "QUIT")] {
        let text = format!("trap 'echo {name}; exit 0' {name}; echo up; while :; do read x < /dev/null; done");
        let mut job = Running::start(&mut script(on_hosts(1, ""), &text));
        assert_eq!([job.line(), job.line()], ["up", "up"]);
        job.signal(signal);
        assert_eq!([job.line(), job.line()], [name, name]);
        assert_eq!(job.code(), 0, "{name}");
    }
}

#[test]
fn second_interrupt_ends_ranks_that_ignore_the_first() {
    let text = "trap 'echo caught' INT; echo up; while :; do read x < /dev/null; done";
    let mut job = Running::start(&mut script(on_hosts(1, ""), text));
    assert_eq!([job.line(), job.line()], ["up", "up"]);
    job.signal(libc::SIGINT);
    assert_eq!([job.line(), job.line()], ["caught", "caught"]);
    job.signal(libc::SIGINT);
    assert_eq!(job.code(), 130);
    job.wait_until_nothing_lives();
}
