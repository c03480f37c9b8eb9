use super::*;

fn cluster(more: &str) -> Cluster {
    let members = ["a", "b"].map(|name| format!("[[member]]\nname = \"{name}\"\nslots = 4\n")).concat();
    let text = format!(
        "name = \"lab\"\nversion = 1\n{members}[[partition]]\nname = \"all\"\n{more}\n[[partition]]\nname = \"one\"\nmembers = [\"b\"]\n"
    );
    weft_database::read(&text).expect("a cluster")
}

fn wish(number: u64, ranks: usize, seconds: Option<u64>) -> JobWish {
    JobWish {
        job: JobName::new("a", number),
        user: "ann".to_owned(),
        program: "./prog".to_owned(),
        partition: "all".to_owned(),
        ranks,
        map: RankMap::Slot,
        seconds,
        since: number,
    }
}

fn idle(_: &str) -> Capacity {
    Capacity { slots: 4, load: 0.0 }
}

fn granted(verdicts: &[(JobName, OrderVerdict)]) -> Vec<u64> {
    let is_granted = |verdict: &OrderVerdict| matches!(verdict, OrderVerdict::Granted(_));
    let numbers = verdicts.iter().filter(|(_, verdict)| is_granted(verdict));
    numbers.map(|(job, _)| job.parts().expect("a job").1).collect()
}

fn ask(orders: &mut Orders, cluster: &Cluster, now: u64, wishes: Vec<JobWish>) -> Vec<u64> {
    wishes.into_iter().for_each(|wish| orders.enqueue(wish));
    granted(&orders.decide(cluster, now, idle))
}

#[test]
fn jobs_are_served_in_their_order_and_what_is_over_makes_room() {
    let (cluster, mut orders) = (cluster(""), Orders::default());
    assert_eq!(ask(&mut orders, &cluster, 0, vec![wish(1, 6, None), wish(2, 4, None), wish(3, 1, None)]), [1]);
    assert_eq!(orders.used("a") + orders.used("b"), 6);
    assert_eq!(orders.waiting().len(), 2, "a small one does not go before");
    orders.release(&JobName::new("a", 1));
    assert_eq!(ask(&mut orders, &cluster, 1, vec![]), [2, 3]);
}

#[test]
fn a_short_job_goes_before_one_that_could_not_begin_before_its_end() {
    let (cluster, mut orders) = (cluster(""), Orders::default());
    assert_eq!(ask(&mut orders, &cluster, 0, vec![wish(1, 6, Some(100)), wish(2, 8, None)]), [1]);
    assert_eq!(ask(&mut orders, &cluster, 10, vec![wish(3, 2, Some(91)), wish(4, 2, Some(90))]), [4]);
}

#[test]
fn nothing_goes_before_where_no_end_is_known() {
    let (cluster, mut orders) = (cluster(""), Orders::default());
    assert_eq!(ask(&mut orders, &cluster, 0, vec![wish(1, 6, None), wish(2, 8, None), wish(3, 2, Some(1))]), [1]);
}

#[test]
fn who_waits_for_other_members_holds_nobody_back() {
    let (cluster, mut orders) = (cluster(""), Orders::default());
    let on_b = |number, ranks| JobWish { partition: "one".to_owned(), ..wish(number, ranks, None) };
    assert_eq!(ask(&mut orders, &cluster, 0, vec![on_b(1, 3), on_b(2, 2), wish(3, 5, None)]), [1]);
    assert_eq!(ask(&mut orders, &cluster, 0, vec![wish(4, 4, None)]), [0_u64; 0], "one before it wants both");
    orders.forget_wish(&JobName::new("a", 3));
    assert_eq!(ask(&mut orders, &cluster, 0, vec![]), [4], "all of it fits on a");
}

#[test]
fn one_member_for_all_goes_before_several_and_the_launchers_before_others() {
    let (cluster, mut orders) = (cluster(""), Orders::default());
    let hosts = |orders: &mut Orders, wish: JobWish| {
        orders.enqueue(wish);
        match orders.decide(&cluster, 0, idle).pop() {
            Some((_, OrderVerdict::Granted(hosts))) => {
                hosts.into_iter().map(|(name, slots)| format!("{name}:{slots}")).collect()
            }
            other => vec![format!("{other:?}")],
        }
    };
    assert_eq!(hosts(&mut orders, wish(1, 3, None)), ["a:3"]);
    assert_eq!(hosts(&mut orders, wish(2, 3, None)), ["b:3"]);
    assert_eq!(hosts(&mut orders, JobWish { map: RankMap::Host, ..wish(3, 2, None) }), ["a:1", "b:1"]);
}

#[test]
fn a_job_that_can_never_begin_is_told_so() {
    let (cluster, mut orders) = (cluster(""), Orders::default());
    orders.enqueue(wish(1, 9, None));
    assert!(matches!(orders.decide(&cluster, 0, idle).pop(), Some((_, OrderVerdict::Never(_)))));
    assert!(orders.waiting().is_empty());
}

#[test]
fn limits_of_a_partition_hold() {
    let (cluster, mut orders) = (cluster("processes = 2\nexclusive = true"), Orders::default());
    assert_eq!(ask(&mut orders, &cluster, 0, vec![wish(1, 2, None)]), [1]);
    assert_eq!(ask(&mut orders, &cluster, 0, vec![JobWish { user: "bob".to_owned(), ..wish(2, 3, None) }]), [0_u64; 0]);
    orders.forget_wish(&JobName::new("a", 2));
    assert_eq!(ask(&mut orders, &cluster, 0, vec![wish(3, 2, None)]), [3], "her own, on the other member");
}

#[test]
fn a_grant_is_kept_until_its_member_tells_of_it_and_then_as_long_as_it_does() {
    let (cluster, mut orders) = (cluster(""), Orders::default());
    ask(&mut orders, &cluster, 0, vec![wish(1, 4, None)]);
    orders.heed("a", 1, vec![]);
    assert_eq!(orders.used("a"), 4, "the report was on its way already");
    orders.heed("b", 1, vec![]);
    let held = HeldSlots { user: "ann".to_owned(), partition: None, hosts: vec![("a".to_owned(), 4)], until: None };
    orders.heed("a", 2, vec![(JobName::new("a", 1), held.clone()), (JobName::new("b", 7), held)]);
    assert_eq!(orders.used("a"), 4, "nobody speaks for another member");
    orders.heed("a", 3, vec![]);
    assert_eq!(orders.used("a"), 0);
    ask(&mut orders, &cluster, 10, vec![wish(2, 4, None)]);
    orders.heed("a", 10 + UNCONFIRMED, vec![]);
    assert_eq!(orders.used("a"), 0, "its launcher never began");
}

#[test]
fn a_grant_of_which_its_member_does_not_tell_is_in_doubt_and_then_taken_back() {
    let (cluster, mut orders) = (cluster(""), Orders::default());
    ask(&mut orders, &cluster, 0, vec![wish(1, 4, None), wish(2, 4, None)]);
    assert_eq!(orders.in_doubt(DOUBTED - 1), []);
    let held = HeldSlots { user: "ann".to_owned(), partition: None, hosts: vec![("b".to_owned(), 4)], until: None };
    orders.heed("a", 1, vec![(JobName::new("a", 2), held)]);
    assert_eq!(orders.in_doubt(DOUBTED), [JobName::new("a", 1)]);
    assert_eq!((orders.used("a"), orders.used("b")), (4, 4));
    assert_eq!(orders.in_doubt(UNCONFIRMED), []);
    assert_eq!((orders.used("a"), orders.used("b")), (0, 4));
    assert_eq!(orders.jobs_of("a"), [(JobName::new("a", 2), vec!["b".to_owned()])]);
    assert_eq!(orders.jobs_of("b"), []);
}

/// A course of bob on `b`, whole or a part of it.
fn reserved(part: &str) -> Cluster {
    let times = "from = 1970-01-01T00:01:40Z\nuntil = 1970-01-01T00:03:20Z\nusers = [\"bob\"]";
    cluster(&format!("[[reservation]]\nname = \"course\"\npartition = \"all\"\n{part}\n{times}"))
}

fn of_bob(number: u64, ranks: usize) -> JobWish {
    JobWish { user: "bob".to_owned(), ..wish(number, ranks, None) }
}

#[test]
fn what_is_reserved_is_kept_for_its_users_while_it_is() {
    let cluster = reserved("members = [\"b\"]");
    let ask_at = |now, wish| ask(&mut Orders::default(), &cluster, now, vec![wish]);
    assert_eq!(ask_at(100, wish(1, 5, None)), [0_u64; 0]);
    assert_eq!(ask_at(100, wish(1, 4, None)), [1], "of the other member");
    assert_eq!(ask_at(199, of_bob(1, 8)), [1]);
    assert_eq!(ask_at(200, wish(1, 5, None)), [1]);
}

#[test]
fn a_job_gets_what_is_reserved_for_others_where_it_ends_before() {
    let cluster = reserved("members = [\"b\"]");
    let ask_at = |now, wish| ask(&mut Orders::default(), &cluster, now, vec![wish]);
    assert_eq!(ask_at(10, wish(1, 8, Some(90))), [1]);
    assert_eq!(ask_at(10, wish(1, 8, Some(91))), [0_u64; 0]);
    assert_eq!(ask_at(10, wish(1, 8, None)), [0_u64; 0]);
}

#[test]
fn slots_that_are_reserved_are_counted_with_those_that_their_users_have() {
    let (cluster, mut orders) = (reserved("slots = 6"), Orders::default());
    let on = |orders: &mut Orders, wish: JobWish| {
        orders.enqueue(wish);
        match orders.decide(&cluster, 100, idle).pop() {
            Some((_, OrderVerdict::Granted(hosts))) => format!("{hosts:?}"),
            Some((_, OrderVerdict::Waits { reason, .. })) => reason,
            other => format!("{other:?}"),
        }
    };
    assert_eq!(on(&mut orders, of_bob(1, 3)), r#"[("a", 3)]"#, "three of a, of which two are reserved");
    assert_eq!(on(&mut orders, wish(2, 1, None)), r#"[("a", 1)]"#);
    let reason = "1 rank, and partition 'all' has 0 free slots that reservation 'course' leaves";
    let told = on(&mut orders, wish(3, 1, None));
    assert!(told.starts_with(&format!("{reason} until ")), "{told}");
    orders.forget_wish(&JobName::new("a", 3));
    assert_eq!(on(&mut orders, of_bob(4, 4)), r#"[("b", 4)]"#);
}

#[test]
fn who_waits_for_the_end_of_a_reservation_lets_those_go_before_that_end_until_then() {
    let (cluster, mut orders) = (reserved("members = [\"b\"]"), Orders::default());
    assert_eq!(ask(&mut orders, &cluster, 100, vec![wish(1, 8, None), wish(2, 4, None)]), [0_u64; 0]);
    assert_eq!(ask(&mut orders, &cluster, 100, vec![wish(3, 4, Some(100)), wish(4, 1, Some(101))]), [3]);
    orders.release(&JobName::new("a", 3));
    assert_eq!(ask(&mut orders, &cluster, 200, vec![]), [1]);
}
