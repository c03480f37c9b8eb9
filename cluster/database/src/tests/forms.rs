//! The forms that a cluster has besides the file that people write: a written file, records, a zone.

use super::*;
use crate::records::{Texts, block_name, read_blocks, read_head, records};
use crate::zone::zone;

fn features() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[a-z][a-z0-9._-]{0,8}", 0..3)
}

/// The features of partitions are left out; they bound which members there may be.
fn partition(members: usize) -> impl Strategy<Value = (Partition, Vec<usize>)> {
    let accounts = || prop::option::of(prop::collection::vec("[A-Za-zäß0-9_\\\\$\"@-]{1,40}", 0..60));
    let rights = (accounts(), accounts(), -19..=20_i32, 0..=20_i32, any::<bool>());
    let limits =
        (prop::option::of(1..4096_usize), prop::option::of(1..=300_000_000_u64), prop::option::of(1..99_usize));
    let order = Just((0..members).collect::<Vec<_>>()).prop_shuffle();
    (rights, limits, order, 1..=members, 0..3_usize).prop_map(|(rights, limits, mut order, count, policy)| {
        let (users, groups, priority, above, exclusive) = rights;
        let (ranks, time, processes) = limits;
        order.truncate(count);
        let mut partition = Partition::new(String::new(), Vec::new());
        let highest = (priority + above).min(20);
        partition.limits =
            PartitionLimits { ranks, time: time.map(Duration::from_secs), processes, highest, exclusive };
        (partition.users, partition.groups, partition.priority) = (users, groups, priority);
        partition.policy = SchedulingPolicy::ALL[policy];
        partition.device = exclusive.then(|| "shm,tcp".to_owned());
        (partition, order)
    })
}

fn member() -> impl Strategy<Value = Member> {
    let addresses = prop::collection::vec(any::<IpAddr>(), 0..3);
    let cores = prop::option::of(1..=4096_usize);
    ("[a-zä][a-z0-9@%._-]{0,12}", 0..=4096_usize, addresses, cores, features())
        .prop_map(|(name, slots, addresses, cores, features)| Member { name, slots, addresses, cores, features })
}

prop_compose! {
    fn cluster()(members in prop::collection::vec(member(), 1..40))(
        partitions in prop::collection::vec(partition(members.len()), 1..6),
        servers in 1..=members.len().min(SERVERS_MAX),
        version in 0..=u64::MAX >> 1,
        port in 1..=u16::MAX,
        slice_ms in SLICES_MS,
        reserved in prop::collection::vec((0..1_u64 << 37, 1..1_u64 << 36, any::<bool>(), 0..3_usize), 0..4),
        mut members in Just(members),
    ) -> Cluster {
        members.iter_mut().enumerate().for_each(|(at, member)| member.name = format!("{}.{at}", member.name));
        let partitions = partitions.into_iter().enumerate().map(|(at, (mut partition, order))| {
            partition.name = format!("p{at}");
            let most = partition.limits.processes.unwrap_or(usize::MAX);
            let host = |at: usize| SlotHost { slots: members[at].slots.min(most), ..members[at].host() };
            partition.hosts = order.into_iter().map(host).collect();
            partition
        }).collect::<Vec<_>>();
        let reservations = reserved.into_iter().enumerate().map(|(at, (from, seconds, is_slots, users))| {
            let partition: &Partition = &partitions[at % partitions.len()];
            let slots = partition.slots() / 2;
            let slots = (is_slots && slots > 0).then_some(slots);
            let member = |host: &SlotHost| members.iter().find(|member| member.name == host.name).expect("a member").host();
            let hosts = match slots {
                Some(slots) => crate::reservation::last_slots(partition, slots),
                None => partition.hosts.iter().map(member).collect(),
            };
            let (name, partition) = (format!("r{at}"), partition.name.clone());
            let users = (0..users).map(|at| format!("user{at}")).collect();
            Reservation { name, partition, slots, hosts, from, until: from + seconds, users }
        }).collect();
        let servers = members.iter().rev().take(servers).map(|member| member.name.clone()).collect();
        let (name, launch) = ("lab".to_owned(), None);
        Cluster { name, version, launch, servers, port, slice_ms, members, partitions, reservations }
    }
}

/// The head and all other records, as they come from a name server: in no order.
fn taken(cluster: &Cluster) -> (Vec<Texts>, Vec<Texts>) {
    let mut blocks = records(cluster).into_iter().map(|block| block.records);
    let head = blocks.next().expect("there is a head");
    (head, blocks.rev().flat_map(|records| records.into_iter().rev()).collect())
}

fn again(head: &[Texts], rest: &[Texts]) -> Result<Cluster, Vec<String>> {
    read_blocks(&read_head(head).map_err(|line| vec![line])?, rest)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_cluster_is_the_same_after_it_was_a_file(cluster in cluster()) {
        prop_assert_eq!(read(&write(&cluster)), Ok(cluster));
    }

    #[test]
    fn a_cluster_is_the_same_after_it_was_records(cluster in cluster()) {
        let (head, rest) = taken(&cluster);
        prop_assert!(head.iter().chain(&rest).flatten().all(|text| text.len() <= 255));
        prop_assert_eq!(again(&head, &rest), Ok(cluster));
    }

    #[test]
    fn records_of_which_one_is_missing_are_refused(cluster in cluster(), at in any::<prop::sample::Index>()) {
        let (head, mut rest) = taken(&cluster);
        rest.remove(at.index(rest.len()));
        prop_assert!(again(&head, &rest).is_err());
    }

    #[test]
    fn damaged_records_are_refused_or_a_cluster(
        record in any::<prop::sample::Index>(),
        text in any::<prop::sample::Index>(),
        put in "[a-z0-9=/ -]{0,20}",
    ) {
        let (mut head, mut rest) = taken(&read(GUARDED).expect("no mistakes"));
        let at = record.index(head.len() + rest.len());
        let record = if at < head.len() { &mut head[at] } else { &mut rest[at - 1] };
        let text = text.index(record.len());
        record[text] = put;
        if let Ok(cluster) = again(&head, &rest) {
            prop_assert_eq!(read(&write(&cluster)), Ok(cluster));
        }
    }
}

#[test]
fn ten_thousand_members_are_records_of_some_hundred_answers() {
    let mut cluster = read(&large(10_000)).expect("no mistakes");
    // The worst order: no two follow each other.
    cluster.partitions[0].hosts = (0..10_000).map(|at| cluster.members[at * 7919 % 10_000].host()).collect();
    let blocks = records(&cluster);
    assert!(blocks.len() < 200 && blocks.iter().all(|block| block.records.concat().concat().len() < 10_000));
    let (head, rest) = taken(&cluster);
    assert_eq!(again(&head, &rest), Ok(cluster));
}

#[test]
fn a_launch_command_is_not_among_the_records() {
    let lab = read(LAB).expect("no mistakes");
    let (head, rest) = taken(&lab);
    assert!(!head.iter().chain(&rest).flatten().any(|text| text.contains("2222")));
    assert_eq!(again(&head, &rest), Ok(Cluster { launch: None, ..lab }));
}

#[test]
fn what_is_no_head_of_ours_says_why() {
    let head = |texts: &[&str]| read_head(&[texts.iter().map(ToString::to_string).collect()]).expect_err("no head");
    assert_eq!(head(&["v=spf1 -all"]), "cluster 0 is not among the records");
    assert_eq!(head(&["cluster=0/0/1", "form=weft2"]), "the records have the form 'weft2', this Weft reads weft1");
    assert_eq!(head(&["cluster=0/0/2", "form=weft1"]), "of cluster 0 not all records are there");
    let much = ["cluster=0/0/1", "form=weft1", "version=1", "blocks=9999"];
    assert_eq!(head(&much), "cluster 0 has blocks=9999, allowed is 1024 at most");
}

#[test]
fn a_zone_has_the_version_as_serial_and_says_where_servers_are() {
    let mut lab = read(GUARDED).expect("no mistakes");
    lab.version = (1 << 32) + 5;
    let text = zone(&lab, "lab.example.", &[]).expect("a zone");
    let has = |line: &str| assert!(text.lines().any(|other| other == line), "{line}\n{text}");
    has("@ IN SOA node2.lab.example. hostmaster.lab.example. 5 300 60 604800 60");
    has("@ IN NS node2.lab.example.");
    has("node2 IN AAAA fd00::2");
    has("_weftd._tcp IN SRV 0 0 7000 node2.lab.example.");
    assert!(text.contains(&format!("\n{} IN TXT \"member=0/0/1\" \"name=node1\"", block_name(0, lab.version))));
    assert!(text.contains(r#""user=LAB\\grace""#), "{text}");
    assert!(zone(&lab, "lab.example", &["ns.example".to_owned()]).expect("a zone").contains("@ IN NS ns.example.\n"));
    assert!(zone(&lab, "a b", &[]).expect_err("no name").contains("'a b' is no name of a zone"));
    lab.members.iter_mut().for_each(|member| member.addresses.clear());
    assert!(zone(&lab, "lab.example", &[]).expect_err("nobody").contains("no name server is given"));
}
