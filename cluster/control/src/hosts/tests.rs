use super::*;
use proptest::prelude::*;

fn named(list: &[(&str, usize)]) -> Vec<SlotHost> {
    list.iter().map(|(name, slots)| SlotHost { name: (*name).to_owned(), slots: *slots }).collect()
}

#[test]
fn list_gives_names_and_slots() {
    assert_eq!(parse_list("a:2, b,user@c.example:4096"), Ok(named(&[("a", 2), ("b", 1), ("user@c.example", 4096)])));
}

#[test]
fn slips_in_a_list_are_named() {
    for bad in ["", "a,,b", "a:0", "a:4097", "a:x", "a:", ":2", "-oProxyCommand=x", "a b", "a:+2", "a:2:3", "a;b", "$x"]
    {
        assert!(matches!(parse_list(bad), Err(HostsError::Bad { .. })), "{bad}");
    }
    assert_eq!(parse_list("a:2,b,a"), Err(HostsError::Twice { name: "a".into() }));
    let many = (0..=HOSTS_MAX).map(|number| format!("h{number}")).collect::<Vec<_>>().join(",");
    assert_eq!(parse_list(&many), Err(HostsError::TooMany { count: HOSTS_MAX + 1 }));
}

#[test]
fn host_file_in_the_common_formats() {
    let text = "# ours\n\nnode1 slots=4   # fast\n  node2:2\r\nnode3\n";
    assert_eq!(parse_file(text), Ok(named(&[("node1", 4), ("node2", 2), ("node3", 1)])));
}

#[test]
fn every_bad_line_of_a_host_file_is_told_with_its_number() {
    let text = "a slots=2\nb slots=x\nc cpus=2\na\nd 2\ne:0\n-x\nf slots=2 max_slots=3\n";
    let errors = parse_file(text).unwrap_err();
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert!(lines[0].starts_with("line 2: 'b slots=x' is not"), "{}", lines[0]);
    assert!(lines[1].starts_with("line 3: 'c cpus=2'"), "{}", lines[1]);
    assert_eq!(lines[2], "line 4: host 'a' stands in line 1 already; list it once, with all its slots");
    let numbers: Vec<&str> = lines[3..].iter().map(|line| &line[..7]).collect();
    assert_eq!(numbers, ["line 5:", "line 6:", "line 7:", "line 8:"]);
    assert_eq!(parse_file("# nothing\n"), Err(vec![HostsError::Empty]));
}

#[test]
fn maps_are_read() {
    assert_eq!("slot".parse(), Ok(RankMap::Slot));
    assert_eq!("host".parse(), Ok(RankMap::Host));
    assert_eq!("3-per-host".parse(), Ok(RankMap::PerHost(3)));
    for bad in ["", "0-per-host", "x-per-host", "core", "-per-host"] {
        assert!(matches!(bad.parse::<RankMap>(), Err(HostsError::UnknownMap { .. })), "{bad}");
    }
}

#[test]
fn ranks_are_spread_as_the_map_says() {
    let hosts = named(&[("a", 2), ("b", 1), ("c", 3)]);
    assert_eq!(spread(&hosts, RankMap::Slot, 5), Ok(vec![0, 0, 1, 2, 2]));
    assert_eq!(spread(&hosts, RankMap::Host, 6), Ok(vec![0, 1, 2, 0, 2, 2]));
    assert_eq!(spread(&hosts, RankMap::PerHost(1), 3), Ok(vec![0, 1, 2]));
    assert_eq!(ranks_wanted(&hosts, RankMap::Slot), 6);
    assert_eq!(ranks_wanted(&hosts, RankMap::PerHost(1)), 3);
}

#[test]
fn too_many_ranks_are_refused_with_the_numbers() {
    let hosts = named(&[("a", 2), ("b", 1)]);
    let text = |map, ranks| spread(&hosts, map, ranks).unwrap_err().to_string();
    assert_eq!(text(RankMap::Slot, 4), "4 ranks, but the hosts have 3 slots: a:2, b:1");
    assert_eq!(text(RankMap::PerHost(2), 3), "2 ranks per host, but host 'b' has 1 slots");
    assert_eq!(text(RankMap::PerHost(1), 3), "3 ranks, but 2 hosts with 1 ranks each take 2");
}

#[test]
fn launch_commands_are_cut_as_a_shell_does() {
    let command = |given: &str| given.parse::<Launch>().map(|launch| launch.command("h", &["/w x", "agent"]));
    assert_eq!(command("ip netns exec {host}").unwrap(), ["ip", "netns", "exec", "h", "/w x", "agent"]);
    assert_eq!(command("sh -c 'a \"b\"' \"c 'd'\" e\\ f {host}:1").unwrap()[2..6], ["a \"b\"", "c 'd'", "e f", "h:1"]);
    assert_eq!(command("/usr/bin/ssh {host}").unwrap(), ["/usr/bin/ssh", "h", "'/w x'", "agent"]);
    assert_eq!(command("timeout 60 ssh {host}").unwrap()[3..], ["h", "'/w x'", "agent"]);
    assert!(matches!(command("ssh host"), Err(HostsError::NoHostInLaunch { .. })));
    assert!(matches!(command("{host}"), Err(HostsError::NoHostInLaunch { .. })));
    assert!(matches!(command("sh 'x {host}"), Err(HostsError::OpenQuote { .. })));
    assert!(matches!(command(""), Err(HostsError::NoHostInLaunch { .. })));
}

#[test]
fn hosts_are_reached_by_ssh_unless_told_otherwise() {
    let command = Launch::default().command("node1", &["/opt/weft/bin/weft", "agent"]);
    assert_eq!(
        (command[0].as_str(), &command[command.len() - 3..]),
        ("ssh", &["node1", "/opt/weft/bin/weft", "agent"].map(String::from)[..])
    );
    assert!(command.contains(&"BatchMode=yes".to_owned()));
}

proptest! {
    #[test]
    fn no_host_gets_more_ranks_than_slots(
        slots in proptest::collection::vec(1usize..5, 1..6), turns: bool, ranks in 1usize..12,
    ) {
        let hosts: Vec<SlotHost> = slots.iter().map(|slots| SlotHost { name: "h".into(), slots: *slots }).collect();
        let map = if turns { RankMap::Host } else { RankMap::Slot };
        match spread(&hosts, map, ranks) {
            Err(_) => prop_assert!(ranks > slots.iter().sum()),
            Ok(places) => {
                prop_assert_eq!(places.len(), ranks);
                for (host, slots) in slots.iter().enumerate() {
                    prop_assert!(places.iter().filter(|place| **place == host).count() <= *slots);
                }
            }
        }
    }

    #[test]
    fn any_text_is_hosts_or_an_error(text in "[a-c:,# =slot0-9\\n-]{0,40}") {
        let _ = (parse_list(&text), parse_file(&text));
    }
}

#[test]
fn a_tree_has_every_host_once_and_nobody_much_to_start() {
    for hosts in 1..300 {
        let parents = parents(hosts);
        assert_eq!(parents.len(), hosts);
        let tops: Vec<_> = (0..hosts).filter(|host| parents[*host].is_none()).collect();
        let most = tops.iter().map(|top| parents.iter().filter(|parent| **parent == Some(*top)).count()).max();
        let side = (hosts as f64).sqrt().ceil() as usize;
        assert!(tops.len() <= side && most <= Some(side), "{hosts}: {parents:?}");
        assert!(parents.iter().flatten().all(|parent| parents[*parent].is_none()));
    }
    assert_eq!(parents(5), [None, None, Some(1), None, Some(3)]);
}
