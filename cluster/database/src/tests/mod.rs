use super::*;
use proptest::prelude::*;
use std::fmt::Write as _;

mod forms;
mod reserved;

const LAB: &str = r#"
name = "lab"
version = 3
default = "fast"
launch = "ssh -p 2222 {host}"

[[member]]
name = "node1"
slots = 4

[[member]]
name = "node2"

[[partition]]
name = "all"

[[partition]]
name = "fast"
members = ["node1"]
device = "shm,tcp"
ranks = 2
"#;

fn host(name: &str, slots: usize) -> SlotHost {
    SlotHost { name: name.to_owned(), slots }
}

fn mistakes(text: &str) -> Vec<String> {
    read(text).expect_err("it has mistakes").iter().map(ToString::to_string).collect()
}

#[test]
fn a_cluster_is_what_its_file_says() {
    let lab = read(LAB).expect("no mistakes");
    assert_eq!((lab.name.as_str(), lab.version), ("lab", 3));
    assert_eq!(lab.launch.as_ref().expect("given").to_string(), "ssh -p 2222 '{host}'");
    assert_eq!(lab.hosts(), [host("node1", 4), host("node2", 1)]);
    let fast = lab.partition(None).expect("a default");
    assert_eq!((fast.name.as_str(), fast.slots(), fast.most_ranks()), ("fast", 4, 2));
    assert_eq!(fast.device.as_deref(), Some("shm,tcp"));
    let all = lab.partition(Some("all")).expect("it is there");
    assert_eq!((&all.hosts, all.most_ranks()), (&lab.hosts(), 5));
    let line = lab.partition(Some("slow")).expect_err("it is not");
    assert_eq!(line, "'slow' is no partition of cluster 'lab', which has fast, all");
}

#[test]
fn a_file_without_partitions_has_one_of_all() {
    let lab = read("name = \"lab\"\n[[member]]\nname = \"a\"\n").expect("no mistakes");
    assert_eq!((lab.version, lab.partitions.len()), (1, 1));
    assert_eq!(lab.partition(Some("lab")).expect("named as the cluster").hosts, [host("a", 1)]);
}

#[test]
fn all_mistakes_are_told_with_their_lines() {
    let text = r#"name = "a lab"
default = "none"
launch = "ssh"
[[member]]
name = "-x"
[[member]]
name = "n1"
slots = -1
[[member]]
name = "n1"
[[partition]]
name = "p"
members = [
  "n1",
  "n2",
  "n1",
]
device = "shn"
ranks = 99999999
[[partition]]
name = "p"
members = []
"#;
    let told = mistakes(text);
    let lines: Vec<&str> = told.iter().filter_map(|told| told.split(':').next()).collect();
    let wanted = [1, 2, 3, 5, 8, 10, 15, 16, 18, 19, 21, 21].map(|line| format!("line {line}"));
    assert_eq!(lines, wanted, "{told:#?}");
    assert!(told[4].contains("slots = -1, allowed is 0 to"), "{told:#?}");
    assert!(told[8].contains("shn"), "{told:#?}");
}

#[test]
fn what_is_no_toml_or_nobody_s_key_is_one_line() {
    assert_eq!(mistakes("name = \"lab\"\n\nslots = 3\n[[member]]\nname = \"a\"\n").len(), 1);
    let told = mistakes("name = \"lab\"\n[[member]]\nname = \"a\"\nslotz = 3\n");
    assert!(told[0].starts_with("line 4: ") && told[0].contains("slotz") && told[0].contains("slots"), "{told:?}");
    assert!(mistakes("name = \"lab\"\nversion =\n")[0].starts_with("line 2: "));
    assert_eq!(mistakes("name = \"lab\"\n"), ["line 1: there is no [[member]]"]);
    assert!(mistakes("")[0].contains("name"));
}

#[test]
fn a_new_file_is_read_as_it_was_meant() {
    let launch: Launch = "ip netns exec {host}".parse().expect("a command");
    let hosts = [host("node1", 4), host("node2", 8)];
    let lab = read(&write_new("lab", &hosts, Some(&launch))).expect("no mistakes");
    assert_eq!((lab.hosts(), lab.launch), (hosts.to_vec(), Some(launch)));
    assert_eq!(lab.partitions[0].name, "all");
}

#[test]
fn a_version_is_counted_up_where_it_stands() {
    assert_eq!(read(&with_version(LAB, 4)).expect("no mistakes").version, 4);
    assert_eq!(with_version("name = \"a\"\n[[member]]\nversion = 1\n", 2).lines().next(), Some("version = 2"));
}

const GUARDED: &str = r#"
name = "lab"
servers = ["node2", "node1"]
port = 7000

[[member]]
name = "node1"
slots = 8
address = "10.0.0.1"
cores = 16
features = ["gpu", "ib"]

[[member]]
name = "node2"
slots = 4
address = ["10.0.0.2", "fd00::2"]

[[member]]
name = "node3"
slots = 0
features = ["gpu"]

[[partition]]
name = "night"
users = ["ada", "LAB\\grace"]
groups = ["staff"]
priority = -5
highest = 10
policy = "fifo"
time = "1d12h"
processes = 4
exclusive = true
features = ["gpu"]

[[partition]]
name = "all"
"#;

#[test]
fn what_the_daemons_need_is_in_the_file() {
    let lab = read(GUARDED).expect("no mistakes");
    assert_eq!((lab.servers.join(" ").as_str(), lab.port), ("node2 node1", 7000));
    let [first, second, third] = &lab.members[..] else { panic!("three members") };
    assert_eq!((first.addresses.len(), first.cores, first.features.len()), (1, Some(16), 2));
    assert_eq!(second.addresses, ["10.0.0.2", "fd00::2"].map(|text| text.parse::<IpAddr>().expect("an address")));
    assert_eq!(third.slots, 0);
    let night = lab.partition(None).expect("the first");
    // Those with the feature, and not more slots than it may have processes; the drained one belongs to it as before.
    assert_eq!(night.hosts, [host("node1", 4), host("node3", 0)]);
    assert_eq!(night.open_hosts(), [host("node1", 4)]);
    assert_eq!((night.priority, night.policy), (-5, SchedulingPolicy::Fifo));
    let time = Some(Duration::from_secs(36 * 3600));
    let wanted = PartitionLimits { ranks: None, time, processes: Some(4), highest: 10, exclusive: true };
    assert_eq!(night.limits, wanted);
}

#[test]
fn what_a_file_does_not_say_bounds_nothing() {
    let lab = read(LAB).expect("no mistakes");
    assert_eq!((lab.servers.join(" ").as_str(), lab.port), ("node1 node2", PORT));
    assert_eq!(*lab.partition(Some("all")).expect("it is there"), Partition::new("all".to_owned(), lab.hosts()));
    let alone = read("name = \"lab\"\n[[member]]\nname = \"a\"\n").expect("no mistakes");
    assert_eq!(alone.servers, ["a"]);
}

#[test]
fn a_partition_admits_its_users_and_groups_or_all() {
    let lab = read(GUARDED).expect("no mistakes");
    let [night, all] = &lab.partitions[..] else { panic!("two partitions") };
    assert!(
        night.admits("ada", &["x"]) && night.admits("LAB\\grace", &[""; 0]) && night.admits("bob", &["x", "staff"])
    );
    assert!(!night.admits("bob", &["x"]) && !night.admits("staff", &["ada"]));
    assert!(all.admits("bob", &[""; 0]));
    let closed = read("name = \"a\"\n[[member]]\nname = \"a\"\n[[partition]]\nname = \"p\"\nusers = []\n");
    assert!(!closed.expect("no mistakes").partitions[0].admits("ada", &["staff"]));
}

#[test]
fn mistakes_of_all_kinds_are_told_together_with_what_is_allowed() {
    let text = r#"name = 3
version = -1
servers = ["n9"]
port = 70000
color = "red"
[[member]]
name = "n1"
slots = "four"
address = ["10.0.0.1", "node1", 4]
cores = 0
features = "gpu"
[[member]]
slots = 1
[[partition]]
name = "p"
members = ["n1"]
features = ["gpu"]
users = ["a b"]
groups = "staff"
priority = 40
policy = "idle"
time = "2 hours"
processes = 0
exclusive = "yes"
[[partition]]
name = "q"
features = ["fpga"]
priority = 5
highest = 2
"#;
    let told = mistakes(text);
    let wanted = [
        "line 1: name is of the kind integer, allowed is text",
        "line 2: version = -1, allowed is 0 to ",
        "line 3: 'n9' is no member",
        "line 4: port = 70000, allowed is 1 to 65535",
        "line 5: a cluster has no 'color', allowed are name, version, ",
        "line 8: slots is of the kind string, allowed is 0 to 4096",
        "line 9: address = 'node1', allowed are addresses as 10.0.0.1",
        "line 9: an element of address is of the kind integer, allowed is text",
        "line 10: cores = 0, allowed is 1 to 4096",
        "line 11: features is of the kind string, allowed is a list",
        "line 12: a member needs a name",
        "line 16: member 'n1' has no feature 'gpu'",
        "line 18: 'a b' is no name of a user",
        "line 19: groups is of the kind string, allowed is a list",
        "line 20: priority = 40, allowed is -19 to 20",
        "line 21: policy = 'idle', allowed are other, fifo and gang",
        "line 22: time = '2 hours', allowed are times as 90s, 30m, 2h, 1d12h",
        "line 23: processes = 0, allowed is 1 to 4096",
        "line 24: exclusive is of the kind string, allowed is true or false",
        "line 26: partition 'q' has features that no member has",
        "line 29: highest = 2, allowed is 5 (its priority) to 20",
    ];
    assert_eq!(told.len(), wanted.len(), "{told:#?}");
    for (told, wanted) in told.iter().zip(wanted) {
        assert!(told.starts_with(wanted), "'{told}' begins not with '{wanted}'");
    }
}

#[test]
fn all_that_makes_a_text_no_toml_is_told_at_once() {
    let told = mistakes("name = lab\nversion = 1\nversion = 2\n[[member]\n");
    assert!(told.len() >= 3, "{told:#?}");
    assert!(told[0].starts_with("line 1: ") && told.iter().any(|told| told.starts_with("line 3: ")), "{told:#?}");
}

#[test]
fn there_are_one_to_eight_servers_which_are_members() {
    let with = |servers: &str| format!("name = \"a\"\nservers = [{servers}]\n[[member]]\nname = \"a\"\n");
    assert_eq!(mistakes(&with("")), ["line 2: 0 servers, allowed are 1 to 8"]);
    assert_eq!(mistakes(&with("\"a\", \"a\"")), ["line 2: 'a' is listed twice"]);
    assert_eq!(mistakes(&with(&["\"a\""; 9].join(","))).len(), 9);
}

#[test]
fn times_are_read_as_they_are_shown() {
    for (text, seconds) in [("90s", 90), ("30m", 1800), ("2h", 7200), ("1d12h", 129_600), ("1h0m1s", 3601)] {
        assert_eq!(read_time(text), Some(Duration::from_secs(seconds)), "{text}");
    }
    for text in ["", "2", "h", "0s", "1m1h", "1h1h", "1.5h", "-1h", "2H", "99999999999999999999d", "4000d"] {
        assert_eq!(read_time(text), None, "{text}");
    }
    assert_eq!(show_time(Duration::from_secs(129_601)), "1d12h1s");
}

/// A cluster of so many members, and partitions of a tenth of them each.
fn large(members: usize) -> String {
    let mut text = "name = \"large\"\nservers = [\"n0\", \"n1\"]\n".to_owned();
    for member in 0..members {
        let _ = write!(text, "[[member]]\nname = \"n{member}\"\nslots = 64\nfeatures = [\"x\"]\n");
        let _ = writeln!(text, "address = [\"10.0.{}.{}\"]", member / 256 % 256, member % 256);
    }
    for part in 0..10 {
        let names: Vec<String> =
            (part * members / 10..(part + 1) * members / 10).map(|n| format!("\"n{n}\"")).collect();
        let _ = write!(text, "[[partition]]\nname = \"p{part}\"\nmembers = [{}]\n", names.join(",\n"));
    }
    text
}

#[test]
fn ten_thousand_members_are_read() {
    let large = read(&large(10_000)).expect("no mistakes");
    assert_eq!((large.members.len(), large.partitions.len()), (10_000, 10));
    assert!(large.partitions.iter().all(|partition| partition.hosts.len() == 1000));
}

#[test]
fn what_is_too_large_is_one_line() {
    assert_eq!(mistakes(&large(MEMBERS_MAX + 10)), ["line 1: 16394 members; a cluster may have 16384"]);
    let mut text = "name = \"a\"\n[[member]]\nname = \"a\"\n".to_owned();
    (0..=PARTITIONS_MAX).for_each(|n| text.push_str(&format!("[[partition]]\nname = \"p{n}\"\n")));
    assert_eq!(mistakes(&text).len(), 1, "of 257");
}

proptest! {
    #[test]
    fn no_text_makes_it_fail_otherwise(text in "[\\[\\]a-z=\" \n0-9{},-]{0,200}") {
        if let Err(mistakes) = read(&text) {
            prop_assert!(!mistakes.is_empty());
        }
    }

    #[test]
    fn a_damaged_file_is_refused_or_read(at in 0..LAB.len(), byte in 32_u8..127) {
        let mut bytes = LAB.as_bytes().to_vec();
        bytes[at] = byte;
        let text = String::from_utf8(bytes).expect("ASCII");
        if let Ok(lab) = read(&text) {
            prop_assert!(!lab.partitions.is_empty() && lab.partitions.iter().all(|part| !part.hosts.is_empty()));
        }
    }
}
