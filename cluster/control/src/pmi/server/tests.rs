use super::*;
use proptest::prelude::*;

fn server(size: usize) -> PmiServer {
    PmiServer::new("job", vec![0; size])
}

fn ask(server: &mut PmiServer, rank: usize, line: &str) -> Vec<PmiEvent> {
    server.handle_bytes(rank, format!("{line}\n").as_bytes());
    std::iter::from_fn(|| server.poll_event()).collect()
}

fn answer(server: &mut PmiServer, rank: usize, line: &str) -> String {
    match ask(server, rank, line).as_slice() {
        [PmiEvent::Reply { rank: to, line }] if *to == rank => line.trim_end().to_owned(),
        other => panic!("one reply expected, got {other:?}"),
    }
}

#[test]
fn init_is_answered_with_1_1_and_told_once() {
    let mut server = server(1);
    let line = "cmd=init pmi_version=1 pmi_subversion=1";
    let events = ask(&mut server, 0, line);
    assert_eq!(events.len(), 2);
    assert_eq!(
        events[0],
        PmiEvent::Reply { rank: 0, line: "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n".into() }
    );
    assert_eq!(events[1], PmiEvent::Initialised { rank: 0, interface: InterfaceName::Mpi });
    assert_eq!(ask(&mut server, 0, line).len(), 1);
}

#[test]
fn who_begins_may_say_by_which_interface() {
    for (said, interface) in [("pvm", InterfaceName::Pvm), ("none of ours", InterfaceName::Mpi)] {
        let events = ask(&mut server(1), 0, &format!("cmd=init pmi_version=1 pmi_subversion=1 interface={said}"));
        assert_eq!(events[1], PmiEvent::Initialised { rank: 0, interface });
    }
}

#[test]
fn other_major_version_is_refused() {
    let events = ask(&mut server(1), 0, "cmd=init pmi_version=3 pmi_subversion=0");
    let [PmiEvent::Reply { line, .. }] = events.as_slice() else { panic!("{events:?}") };
    assert!(line.contains("rc=-1"));
}

#[test]
fn value_put_by_one_rank_is_read_by_another() {
    let mut server = server(2);
    assert!(answer(&mut server, 0, "cmd=put kvsname=job key=k value=a=b").contains("rc=0"));
    assert!(answer(&mut server, 1, "cmd=get kvsname=job key=k").ends_with("value=a=b"));
    assert_eq!(answer(&mut server, 1, "cmd=get kvsname=job key=z"), "cmd=get_result rc=-1 msg=key_z_not_found");
    assert!(answer(&mut server, 1, "cmd=get kvsname=other key=k").contains("rc=-1"));
    assert!(answer(&mut server, 1, "cmd=put kvsname=job key=PMI_x value=1").contains("rc=-1"));
}

#[test]
fn mapping_puts_all_ranks_on_one_host() {
    let line = answer(&mut server(3), 0, "cmd=get kvsname=job key=PMI_process_mapping");
    assert!(line.ends_with("value=(vector,(0,1,3))"), "{line}");
}

#[test]
fn mapping_tells_the_host_of_every_rank() {
    assert_eq!(mapping(&[0, 0, 1, 1, 2]), "(vector,(0,2,2),(2,1,1))");
    assert_eq!(mapping(&[0, 1, 0, 1]), "(vector,(0,2,1),(0,2,1))");
    assert_eq!(mapping(&[1, 0]), "(vector,(1,1,1),(0,1,1))");
    let ragged: Vec<usize> = (0..2000).map(|rank| rank % 7 * 2).collect();
    assert_eq!(mapping(&ragged), "");
}

#[test]
fn barrier_opens_when_the_last_rank_enters_and_closes_again() {
    let mut server = server(3);
    assert!(ask(&mut server, 0, "cmd=barrier_in").is_empty());
    assert!(ask(&mut server, 0, "cmd=barrier_in").is_empty(), "one rank twice is one rank");
    assert!(ask(&mut server, 2, "cmd=barrier_in").is_empty());
    assert_eq!(ask(&mut server, 1, "cmd=barrier_in").len(), 3);
    assert!(ask(&mut server, 1, "cmd=barrier_in").is_empty());
}

#[test]
fn spawn_is_refused_once_after_its_last_block() {
    let mut server = server(1);
    let first = "mcmd=spawn\nnprocs=2\nexecname=./a b\ntotspawns=2\nspawnssofar=1\nendcmd";
    assert!(ask(&mut server, 0, first).is_empty());
    let second = "mcmd=spawn\nnprocs=1\nexecname=./c\ntotspawns=2\nspawnssofar=2\nendcmd";
    assert!(answer(&mut server, 0, second).starts_with("cmd=spawn_result rc=-1"));
    assert!(answer(&mut server, 0, "cmd=get_appnum").ends_with("appnum=0"));
}

#[test]
fn names_are_published_looked_up_and_withdrawn() {
    let mut server = server(2);
    assert!(answer(&mut server, 0, "cmd=lookup_name service=s").contains("rc=-1"));
    assert!(answer(&mut server, 0, "cmd=publish_name service=s port=p#1").contains("rc=0"));
    assert!(answer(&mut server, 0, "cmd=publish_name service=s port=q").contains("rc=-1"));
    assert!(answer(&mut server, 1, "cmd=lookup_name service=s").ends_with("port=p#1"));
    assert!(answer(&mut server, 0, "cmd=unpublish_name service=s").contains("rc=0"));
    assert!(answer(&mut server, 0, "cmd=unpublish_name service=s").contains("rc=-1"));
}

#[test]
fn abort_carries_code_and_message() {
    let events = ask(&mut server(1), 0, "cmd=abort exitcode=7 message=why");
    assert_eq!(events, [PmiEvent::Abort { rank: 0, code: 7, message: "why".into(), lost: None }]);
    let cases = [("1", Some(Lost::Rank(1))), ("2", None), ("-1", None), ("other", Some(Lost::Elsewhere))];
    for (told, lost) in cases {
        let events = ask(&mut server(2), 0, &format!("cmd=abort exitcode=7 lost={told}"));
        assert_eq!(events, [PmiEvent::Abort { rank: 0, code: 7, message: String::new(), lost }]);
    }
}

#[test]
fn unknown_command_is_a_fault_and_ends_the_conversation() {
    let mut server = server(1);
    let events = ask(&mut server, 0, "cmd=dance");
    let [PmiEvent::Fault { reason, .. }] = events.as_slice() else { panic!("{events:?}") };
    assert!(reason.contains("'dance'"));
    assert!(ask(&mut server, 0, "cmd=get_appnum").is_empty());
}

proptest! {
    #[test]
    fn nonsense_never_panics_and_answers_stay_bounded(
        input in proptest::collection::vec((0usize..2, "(cmd=|mcmd=)?(put|get|spawn|init|abort|publish_name)?[ -~\\n]{0,80}\\n"), 0..20)
    ) {
        let mut server = server(2);
        for (rank, text) in input {
            server.handle_bytes(rank, text.as_bytes());
            while let Some(event) = server.poll_event() {
                if let PmiEvent::Reply { line, .. } = event {
                    prop_assert!(line.len() <= LINE_MAX && line.ends_with('\n'));
                    prop_assert_eq!(line.matches('\n').count(), 1);
                }
            }
        }
    }

    #[test]
    fn store_agrees_with_a_map(ops in proptest::collection::vec((0u8..5, proptest::option::of("[a-z=:]{0,8}")), 0..40)) {
        let mut server = server(1);
        let mut oracle = HashMap::new();
        for (key, value) in ops {
            match value {
                Some(value) => {
                    answer(&mut server, 0, &format!("cmd=put kvsname=job key=k{key} value={value}"));
                    oracle.insert(key, value);
                }
                None => {
                    let line = answer(&mut server, 0, &format!("cmd=get kvsname=job key=k{key}"));
                    let seen = Fields::parse(&line).value("value").map(str::to_owned);
                    prop_assert_eq!(seen.as_ref(), oracle.get(&key));
                }
            }
        }
    }
}

#[test]
fn a_signal_is_passed_on_where_there_are_such_a_rank_and_signal() {
    let mut server = server(2);
    let told = ask(&mut server, 0, "cmd=weft_signal rank=1 signal=10");
    assert_eq!(told[0], PmiEvent::Signal { rank: 1, signal: 10 });
    assert_eq!(told[1], PmiEvent::Reply { rank: 0, line: "cmd=weft_signal_result rc=0\n".into() });
    for wrong in ["rank=2 signal=10", "rank=-1 signal=10", "rank=1 signal=0", "rank=1 signal=65", "rank=1"] {
        let refused = answer(&mut server, 0, &format!("cmd=weft_signal {wrong}"));
        assert!(refused.starts_with("cmd=weft_signal_result rc=-1"), "{wrong}: {refused}");
    }
}
