//! Reservations: as they are written, and in a text that people keep.

use super::*;

const RESERVED: &str = r#"name = "lab"
version = 7    # by hand

[[member]]
name = "node1"
slots = 4
[[member]]
name = "node2"
slots = 8

[[partition]]
name = "all"
[[partition]]
name = "few"
processes = 3

# The course of the autumn.
[[reservation]]
name = "course"
partition = "all"
members = ["node2"]
from = 2026-11-27T09:00:00+01:00
until = "2026-11-27T12:30:00Z"
users = ["ada", "grace"]

[[reservation]]
name = "few"
partition = "few"
slots = 4
from = 1970-01-01T00:00:01Z
until = 2026-01-01T00:00:00Z
"#;

#[test]
fn a_reservation_is_of_members_or_of_the_last_slots_of_a_partition() {
    let lab = read(RESERVED).expect("no mistakes");
    let [course, few] = &lab.reservations[..] else { panic!("two") };
    assert_eq!((course.from, course.until), (1_795_766_400, 1_795_782_600));
    assert_eq!(course.hosts, [host("node2", 8)]);
    assert!(course.is_for("ada") && !course.is_for("bob") && !few.is_for("ada"));
    // Of each member the partition has three slots, and the last one is filled last.
    assert_eq!((few.from, few.hosts.clone()), (1, vec![host("node2", 3), host("node1", 1)]));
    assert_eq!((few.slots_on("node1"), few.slots_on("node3")), (1, 0));
    assert!(course.is_between(0, course.from + 1) && !course.is_between(0, course.from));
    assert!(course.is_between(course.until - 1, u64::MAX) && !course.is_between(course.until, u64::MAX));
}

#[test]
fn moments_are_read_as_they_are_shown() {
    for (text, moment) in [
        ("1970-01-01T00:00:00Z", 0),
        ("2000-02-29T23:59:59Z", 951_868_799),
        ("2026-11-27T09:00:00Z", 1_795_770_000),
        ("2100-03-01T00:00:00Z", 4_107_542_400),
    ] {
        assert_eq!((read_moment(text), show_moment(moment)), (Some(moment), text.to_owned()));
    }
    assert_eq!(read_moment("2026-11-27T09:00:00-02:30"), Some(1_795_770_000 + 9000));
    for text in ["", "now", "2026-11-27", "2026-11-27T09:00:00", "2026-02-30T00:00:00Z", "1969-12-31T23:59:59Z"] {
        assert_eq!(read_moment(text), None, "{text}");
    }
    assert_eq!(show_moment(u64::MAX), "9999-12-31T23:59:59Z");
}

#[test]
fn reservations_come_and_go_in_a_text_and_all_else_stays() {
    let course = read(RESERVED).expect("no mistakes").reservations.remove(0);
    let left = without_reservations(RESERVED, |name| name == "course").expect("a text");
    assert_eq!(read(&left).expect("no mistakes").reservations.len(), 1);
    assert!(left.contains("version = 7    # by hand") && left.contains("autumn") && !left.contains("grace"), "{left}");
    let again = read(&with_reservation(&left, &course)).expect("no mistakes");
    assert_eq!(again.reservations[1], course);
    let none = without_reservations(RESERVED, |_| true).expect("a text");
    assert!(read(&none).expect("no mistakes").reservations.is_empty());
    assert_eq!(without_reservations(RESERVED, |_| false).as_deref(), Some(RESERVED));
}

#[test]
fn mistakes_of_reservations_are_told_with_their_lines() {
    let with = |lines: &str| {
        let text = "name = \"a\"\n[[member]]\nname = \"a\"\nslots = 2\n[[partition]]\nname = \"p\"\n[[reservation]]\n";
        mistakes(&format!("{text}name = \"r\"\n{lines}"))
    };
    let times = "from = 2026-11-27T09:00:00Z\nuntil = 2026-11-27T10:00:00Z\n";
    let told = [
        (
            with("partition = \"p\"\n"),
            vec!["line 7: a reservation needs a from", "line 7: a reservation needs a until"],
        ),
        (with(&format!("{times}partition = \"q\"\n")), vec!["line 11: partition = 'q', which is none"]),
        (with(&format!("{times}partition = \"p\"\nslots = 3\n")), vec!["line 8: slots = 3, and partition 'p' has 2"]),
        (
            with(&format!("{times}partition = \"p\"\nslots = 1\nmembers = [\"a\"]\n")),
            vec!["line 7: a reservation has members or slots, not both"],
        ),
        (with(&format!("{times}partition = \"p\"\nmembers = [\"b\"]\n")), vec!["line 12: 'b' is no member"]),
        (
            with("partition = \"p\"\nfrom = 2026-11-27T09:00:00Z\nuntil = 2026-11-27T09:00:00Z\n"),
            vec!["line 11: until is not after from"],
        ),
        (
            with("partition = \"p\"\nfrom = \"soon\"\nuntil = 3\n"),
            vec![
                "line 10: from is no moment, allowed are such as 2026-11-27T09:00:00+01:00",
                "line 11: until is no moment, allowed are such as 2026-11-27T09:00:00+01:00",
            ],
        ),
    ];
    told.into_iter().for_each(|(told, wanted)| assert_eq!(told, wanted));
}

#[test]
fn how_long_a_turn_lasts_is_bounded() {
    let with = |slice: &str| format!("name = \"a\"\nslice_ms = {slice}\n[[member]]\nname = \"a\"\n");
    assert_eq!(read(&with("50")).expect("no mistakes").slice_ms, 50);
    assert_eq!(read(RESERVED).expect("no mistakes").slice_ms, SLICE_MS);
    assert_eq!(mistakes(&with("5")), ["line 2: slice_ms = 5, allowed is 10 to 10000"]);
}
