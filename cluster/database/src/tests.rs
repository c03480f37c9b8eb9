use super::*;
use proptest::prelude::*;

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

fn host(name: &str, slots: usize) -> Host {
    Host { name: name.to_owned(), slots }
}

fn mistakes(text: &str) -> Vec<String> {
    read(text).expect_err("it has mistakes").iter().map(ToString::to_string).collect()
}

#[test]
fn a_cluster_is_what_its_file_says() {
    let lab = read(LAB).expect("no mistakes");
    assert_eq!((lab.name.as_str(), lab.version), ("lab", 3));
    assert_eq!(lab.launch.as_ref().expect("given").to_string(), "ssh -p 2222 '{host}'");
    assert_eq!(lab.members, [host("node1", 4), host("node2", 1)]);
    let fast = lab.partition(None).expect("a default");
    assert_eq!((fast.name.as_str(), fast.slots(), fast.most_ranks()), ("fast", 4, 2));
    assert_eq!(fast.device.as_deref(), Some("shm,tcp"));
    let all = lab.partition(Some("all")).expect("it is there");
    assert_eq!((&all.hosts, all.most_ranks()), (&lab.members, 5));
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
slots = 0
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
    assert!(told[4].contains("slots = 0, allowed is 1 to"), "{told:#?}");
    assert!(told[8].contains("shn"), "{told:#?}");
}

#[test]
fn what_is_no_toml_or_nobody_s_key_is_one_line() {
    assert_eq!(mistakes("name = \"lab\"\n\nslots = 3\n").len(), 1);
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
    assert_eq!((lab.members, lab.launch), (hosts.to_vec(), Some(launch)));
    assert_eq!(lab.partitions[0].name, "all");
}

#[test]
fn a_version_is_counted_up_where_it_stands() {
    assert_eq!(read(&with_version(LAB, 4)).expect("no mistakes").version, 4);
    assert_eq!(with_version("name = \"a\"\n[[member]]\nversion = 1\n", 2).lines().next(), Some("version = 2"));
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
