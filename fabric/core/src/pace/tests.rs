use super::*;

#[test]
fn a_shared_core_is_handed_over_after_a_few_polls() {
    let mut policy = Policy::at(Bounds::default(), RunPlace::Told { shared: true, crowded: false }, 2, None);
    let mut pace = Pace::default();
    for _ in 1..POLLS_BEFORE_YIELD {
        assert_eq!(pace.idle(&mut policy), PaceStep::Poll);
    }
    assert_eq!(pace.idle(&mut policy), PaceStep::Yielded);
    // It may have come back late, where the tests run.
    (policy.late, policy.waits_to_hand_over) = (0, 0);
    assert_eq!(pace.idle(&mut policy), PaceStep::Yielded, "no more spinning in this wait");
}

#[test]
fn a_shared_core_that_comes_back_late_is_not_handed_over_for_some_waits() {
    let mut policy = Policy::at(Bounds::default(), RunPlace::Told { shared: true, crowded: false }, 2, None);
    let first = |policy: &mut Policy| {
        let mut pace = Pace::default();
        std::iter::from_fn(|| Some(pace.idle(policy))).find(|step| *step != PaceStep::Poll)
    };
    assert_eq!(first(&mut policy), Some(PaceStep::Yielded));
    // It may have come back late, where the tests run.
    (policy.late, policy.waits_to_hand_over) = (0, 0);
    let [least, most] = WAITS_AFTER_LATE;
    for waits in [least, least * 2, least * 4] {
        policy.came_back(0, LATE_NS, || 0);
        for _ in 0..waits {
            assert_eq!(first(&mut policy), Some(PaceStep::Sleep));
        }
        assert!(!policy.lies_down() && policy.times_first_turn(), "then it is tried again, and timed");
    }
    policy.came_back(0, LATE_NS - 1, || 0);
    assert_eq!(policy.late, least * 4 - 1, "one that is soon back shortens the next round");
    (0..4 * least).for_each(|_| policy.came_back(0, LATE_NS - 1, || 0));
    assert_eq!(policy.late, 0);
    (0..20).for_each(|_| policy.came_back(0, LATE_NS, || 0));
    assert_eq!(policy.late, most);
}

/// What was learnt of strangers is forgotten: others may have wanted the core, where the tests run.
fn forget(policy: &mut Policy) {
    policy.strangers = Strangers::default();
    policy.set_free_polls();
}

#[test]
fn who_never_hands_its_core_over_looks_now_and_then_whether_a_stranger_wants_it() {
    let mut policy = Policy::at(Bounds::default(), RunPlace::Told { shared: false, crowded: false }, 2, None);
    let last_of_a_wait_after = |moves, policy: &mut Policy| {
        (0..moves).for_each(|_| Pace::default().moved(policy));
        let mut pace = Pace::default();
        let steps = [(); POLLS_BEFORE_YIELD as usize].map(|()| pace.idle(policy));
        steps[POLLS_BEFORE_YIELD as usize - 1]
    };
    assert_eq!(last_of_a_wait_after(MOVES_ALONE - 1, &mut policy), PaceStep::Poll);
    assert_eq!(last_of_a_wait_after(1, &mut policy), PaceStep::Yielded);
    forget(&mut policy);
    assert!(policy.strangers.is_time_to_look(u64::MAX / 2));
    assert_eq!(last_of_a_wait_after(MOVES_ALONE, &mut policy), PaceStep::Poll, "it has just looked");
    let bounds = Bounds { yield_ns: 0, ..Bounds::default() };
    policy = Policy::at(bounds, RunPlace::Told { shared: false, crowded: false }, 2, None);
    assert_eq!(last_of_a_wait_after(MOVES_ALONE, &mut policy), PaceStep::Poll, "it is told not to hand over");
    assert_eq!(policy.free_polls, POLLS_PER_LOOK);
}

#[test]
fn among_strangers_who_take_turns_the_core_is_handed_over_soon() {
    let mut policy = Policy::at(Bounds::default(), RunPlace::Told { shared: false, crowded: false }, 2, None);
    let seen = |policy: &Policy| (policy.spin_ns(), policy.free_polls, policy.shares_core());
    let alone = (policy.bounds.spin_ns, POLLS_PER_LOOK, false);
    policy.came_back(0, TURN_NS, || 0);
    assert_eq!(seen(&policy), alone, "nobody took it");
    for moves in [true, false] {
        policy.came_back(0, TURN_NS + 1, || 1 + u64::from(moves));
        assert_eq!(seen(&policy), (TURN_NS, POLLS_BEFORE_YIELD, true));
        for _ in 0..100 {
            let mut pace = Pace { polls: 1, ..Pace::default() };
            if moves { pace.ended(&mut policy) } else { policy.came_back(0, TURN_NS, || 0) }
        }
        assert_eq!(seen(&policy), alone, "until it is not needed for long");
    }
}

#[test]
fn a_crowd_is_given_the_core_where_it_takes_turns() {
    let mut policy = Policy::at(Bounds::default(), RunPlace::Told { shared: false, crowded: true }, 2, None);
    let after_spinning = |policy: &mut Policy| {
        let mut pace = Pace::default();
        std::iter::from_fn(|| Some(pace.idle(policy))).find(|step| *step != PaceStep::Poll)
    };
    assert_eq!(after_spinning(&mut policy), Some(PaceStep::Yielded), "whoever it is");
    forget(&mut policy);
    assert!(policy.strangers.is_time_to_look(u64::MAX / 2));
    assert_eq!(after_spinning(&mut policy), Some(PaceStep::Sleep), "who wants the cores took no turns on this one");
    policy.came_back(0, TURN_NS + 1, || 1);
    assert_eq!(after_spinning(&mut policy), Some(PaceStep::Yielded));
}

#[test]
fn ranks_that_lie_down_leave_room_after_some_waits() {
    let segment = Segment::create(2).expect("segment");
    let place = RunPlace::Free { cores: segment.awake() as u32 - 1, segment: segment.clone() };
    let mut policy = Policy::at(Bounds::default(), place, 2, None);
    assert!(!policy.may_have_room());
    policy.place = RunPlace::Free { cores: segment.awake() as u32, segment };
    let waits = (1..).find(|_| policy.may_have_room()).expect("room");
    assert_eq!(waits, WAITS_WITHOUT_ROOM + 1, "and not a look in each wait");
    assert!(policy.may_have_room(), "where there was room each wait looks");
    assert_eq!(policy.free_polls, POLLS_PER_LOOK, "and spins");
}

#[test]
fn a_quota_of_fewer_cores_than_ranks_hands_over_as_well() {
    let shared = |members, quota| {
        Policy::at(Bounds::default(), RunPlace::Told { shared: false, crowded: false }, members, quota).shared
    };
    assert_eq!([shared(2, None), shared(2, Some(2)), shared(2, Some(1))], [false, false, true]);
    assert!(shared(1, Some(0)), "half a core is less than one");
    let mut policy = Policy::at(Bounds::default(), RunPlace::Told { shared: false, crowded: false }, 2, Some(1));
    policy.look_around(CROWD_PERIOD_NS);
    let mut pace = Pace::default();
    let steps: Vec<PaceStep> = (0..POLLS_BEFORE_YIELD).map(|_| pace.idle(&mut policy)).collect();
    assert_eq!(steps.last(), Some(&PaceStep::Yielded), "as where ranks share a core");
}

#[test]
fn room_for_those_awake_is_bounded_by_the_quota_too() {
    let segment = Segment::create(2).expect("segment");
    let awake = segment.awake() as u32;
    let has_room = |cores, quota| {
        let place = RunPlace::Free { cores, segment: segment.clone() };
        Policy::at(Bounds::default(), place, 2, quota).has_room()
    };
    assert!(has_room(awake, None) && has_room(awake, Some(awake)));
    assert!(awake > 0 && !has_room(awake, Some(awake - 1)));
}

#[test]
fn an_own_core_spins_then_yields_then_sleeps() {
    let mut policy = Policy::at(
        Bounds { spin_ns: 10_000, yield_ns: 100_000 },
        RunPlace::Told { shared: false, crowded: false },
        2,
        None,
    );
    let mut pace = Pace::default();
    let mut seen = Vec::new();
    loop {
        let step = pace.idle(&mut policy);
        if seen.last() != Some(&step) {
            seen.push(step);
        }
        if step == PaceStep::Sleep {
            break;
        }
    }
    assert_eq!(seen, [PaceStep::Poll, PaceStep::Yielded, PaceStep::Sleep]);
}

#[test]
fn the_spin_bound_shrinks_when_spinning_did_not_pay_and_grows_again() {
    let mut policy =
        Policy::at(Bounds { spin_ns: 8_000, yield_ns: 0 }, RunPlace::Told { shared: false, crowded: false }, 2, None);
    policy.learn(true);
    assert_eq!(policy.spin_ns, 4_000);
    for _ in 0..5 {
        policy.learn(true);
    }
    assert_eq!(policy.spin_ns, LEAST_SPIN_NS);
    for _ in 0..5 {
        policy.learn(false);
    }
    assert_eq!(policy.spin_ns, 8_000);
}
