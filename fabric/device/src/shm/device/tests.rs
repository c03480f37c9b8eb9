//! Who is fenced for.

use super::*;

#[test]
fn who_cannot_order_others_is_fenced_for_whenever_it_joins() {
    let segment = Segment::create(3).expect("segment");
    let mut first = ShmDevice::enter(segment.clone(), 0, false).expect("join");
    assert!(first.bells[1].needs_fence() && !first.all_order(), "who has not joined has said nothing");
    let mut confined = ShmDevice::enter(segment.clone(), 1, true).expect("join");
    assert!(
        first.outgoing(1).expect("memory").mailbox.needs_fence() && first.bells[1].needs_fence() && !first.all_order()
    );
    assert!(
        confined.outgoing(0).expect("memory").mailbox.needs_fence() && !confined.all_order(),
        "nobody orders it either"
    );
    let mut third = ShmDevice::enter(segment, 2, false).expect("join");
    assert!(
        !first.outgoing(2).expect("memory").mailbox.needs_fence()
            && !third.outgoing(0).expect("memory").mailbox.needs_fence()
    );
    assert!(third.bells[1].needs_fence() && !third.all_order());
}

#[test]
fn no_fence_once_all_have_joined() {
    let segment = Segment::create(2).expect("segment");
    let mut first = ShmDevice::enter(segment.clone(), 0, false).expect("join");
    assert!(!first.all_order());
    let mut second = ShmDevice::enter(segment, 1, false).expect("join");
    assert!(first.all_order() && second.all_order());
}
