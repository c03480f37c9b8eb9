use super::*;
use proptest::prelude::*;

fn map() -> JobMap {
    let host = |name: &str, addresses: Vec<IpAddr>| Host { name: name.to_owned(), addresses };
    let rank = |host, member, tcp_port, udp_port| MappedRank { host, member, tcp_port, udp_port };
    JobMap {
        key: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
        hosts: vec![
            host("a", vec![Ipv4Addr::new(10, 77, 0, 1).into(), Ipv6Addr::LOCALHOST.into()]),
            host("bb", Vec::new()),
        ],
        ranks: vec![rank(0, 0, 0x1234, 2), rank(1, 0, 3, 4), rank(0, 1, 5, 6)],
    }
}

/// `map()`, part by part.
#[rustfmt::skip]
const GOLDEN: &[&[u8]] = &[
    b"weft-map",
    &[1, 0, 0, 0,  2, 0, 0, 0,  3, 0, 0, 0,  0, 0, 0, 0],
    &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
    &[1, 0,  2, 0], b"a", &[4, 10, 77, 0, 1], &[6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
    &[2, 0,  0, 0], b"bb",
    &[0, 0, 0, 0,  0, 0, 0, 0,  0x34, 0x12,  2, 0],
    &[1, 0, 0, 0,  0, 0, 0, 0,  3, 0,  4, 0],
    &[0, 0, 0, 0,  1, 0, 0, 0,  5, 0,  6, 0],
];

#[test]
fn bytes_of_a_map() {
    assert_eq!(map().encode(), GOLDEN.concat());
    assert_eq!(JobMap::decode(&GOLDEN.concat()), Ok(map()));
}

#[test]
fn ranks_of_a_host_come_in_the_order_of_its_members() {
    assert_eq!(map().ranks_on(0).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(map().ranks_on(1).collect::<Vec<_>>(), [1]);
}

/// What becomes of `map()` with a change.
fn decoded(change: impl FnOnce(&mut JobMap)) -> Result<JobMap, JobMapError> {
    let mut changed = map();
    change(&mut changed);
    JobMap::decode(&changed.encode())
}

#[test]
fn maps_that_break_a_rule_are_refused_by_name() {
    assert_eq!(decoded(|map| map.ranks.clear()), Err(JobMapError::Empty));
    assert_eq!(decoded(|map| map.ranks[1].host = 2), Err(JobMapError::NoHost(1)));
    assert_eq!(decoded(|map| map.ranks[2].member = 0), Err(JobMapError::Member(2)));
    assert_eq!(decoded(|map| map.ranks[0].member = 1), Err(JobMapError::Member(0)));
    assert_eq!(decoded(|map| map.ranks[1].tcp_port = 0), Err(JobMapError::Port(1)));
    assert_eq!(decoded(|map| map.ranks[1].udp_port = 0), Err(JobMapError::Port(1)));
    for name in [String::new(), "a b".to_owned(), "a\n".to_owned(), "x".repeat(256), "x".repeat(70_000)] {
        assert_eq!(decoded(|map| map.hosts[1].name = name), Err(JobMapError::Name(1)));
    }
    let many = vec![Ipv4Addr::LOCALHOST.into(); MAX_ADDRESSES + 1];
    assert_eq!(decoded(|map| map.hosts[0].addresses = many), Err(JobMapError::Address(0)));
    assert!(decoded(|map| map.hosts[0].addresses.truncate(1)).is_ok());
}

#[test]
fn bytes_that_are_no_map_are_refused() {
    let golden = GOLDEN.concat();
    let with = |at: usize, byte: u8| {
        let mut bytes = golden.clone();
        bytes[at] = byte;
        JobMap::decode(&bytes)
    };
    assert_eq!(with(0, b'x'), Err(JobMapError::NoMap));
    assert_eq!(with(8, 9), Err(JobMapError::Version { found: 9 }));
    assert_eq!(with(20, 1), Err(JobMapError::NoMap));
    assert_eq!(with(45, 5), Err(JobMapError::Address(0)));
    assert_eq!(with(44, 0xff), Err(JobMapError::Name(0)));
    assert_eq!(with(19, 0xff), Err(JobMapError::Cut), "more ranks than bytes");
    for length in 0..golden.len() {
        let expected = if length < MAGIC.len() { JobMapError::NoMap } else { JobMapError::Cut };
        assert_eq!(JobMap::decode(&golden[..length]), Err(expected), "{length} bytes");
    }
    assert_eq!(JobMap::decode(&[golden, vec![0]].concat()), Err(JobMapError::TooLong(1)));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_map_survives(
        key: [u8; 16],
        hosts in proptest::collection::vec(("[a-z0-9.-]{1,40}", proptest::collection::vec(any::<IpAddr>(), 0..5)), 1..6),
        ranks in proptest::collection::vec((any::<u32>(), 1u16.., 1u16..), 1..20),
    ) {
        let hosts: Vec<Host> = hosts.into_iter().map(|(name, addresses)| Host { name, addresses }).collect();
        let mut members = vec![0; hosts.len()];
        let place = |(host, tcp_port, udp_port): (u32, u16, u16)| {
            let host = host % hosts.len() as u32;
            members[host as usize] += 1;
            MappedRank { host, member: members[host as usize] - 1, tcp_port, udp_port }
        };
        let ranks = ranks.into_iter().map(place).collect();
        let map = JobMap { key, hosts, ranks };
        prop_assert_eq!(JobMap::decode(&map.encode()), Ok(map));
    }

    #[test]
    fn a_flipped_byte_is_refused_or_makes_another_map(at in 0usize..112, bits in 1u8..) {
        let mut bytes = GOLDEN.concat();
        let at = at % bytes.len();
        bytes[at] ^= bits;
        if let Ok(decoded) = JobMap::decode(&bytes) {
            prop_assert_ne!(&decoded, &map());
            prop_assert_eq!(decoded.encode(), bytes);
        }
    }
}
