use super::*;
use std::io::Read;
use std::os::fd::AsRawFd;

fn drain(merger: &mut Merger) -> String {
    let text = String::from_utf8(merger.queue().to_vec()).unwrap();
    merger.handle_written(text.len());
    text
}

#[test]
fn lines_come_out_whole_however_they_are_cut() {
    let mut merger = Merger::new(2, false);
    merger.handle_bytes(0, b"he");
    merger.handle_bytes(1, b"other\nhal");
    merger.handle_bytes(0, b"llo\nmore");
    assert_eq!(drain(&mut merger), "other\nhello\n");
    merger.handle_end(0);
    merger.handle_bytes(1, b"f\n");
    assert_eq!(drain(&mut merger), "more\nhalf\n");
}

#[test]
fn last_line_without_end_stays_without_end() {
    let mut merger = Merger::new(1, false);
    merger.handle_bytes(0, b"abc");
    merger.handle_end(0);
    assert_eq!(drain(&mut merger), "abc");
}

#[test]
fn every_line_is_tagged_and_none_within() {
    let mut merger = Merger::new(2, true);
    merger.handle_bytes(1, b"a\n\nb");
    merger.handle_bytes(0, b"x\n");
    merger.handle_bytes(1, b"c\n");
    assert_eq!(drain(&mut merger), "[1] a\n[1] \n[0] x\n[1] bc\n");
}

#[test]
fn long_line_is_not_torn_and_the_others_follow() {
    let mut merger = Merger::new(2, true);
    merger.handle_bytes(0, &[b'x'; LINE_HELD_BYTES]);
    merger.handle_bytes(1, b"waits\n");
    assert_eq!(merger.exclusive_rank(), Some(0));
    merger.handle_bytes(0, b"y\nnext\n");
    let text = drain(&mut merger);
    assert!(text.ends_with("xy\n[0] next\n[1] waits\n"), "{}", &text[LINE_HELD_BYTES - 10..]);
}

#[test]
fn who_waits_for_a_long_line_is_not_read_without_bound() {
    let mut merger = Merger::new(2, false);
    merger.handle_bytes(0, &[b'x'; LINE_HELD_BYTES]);
    assert!(merger.has_room(1));
    merger.handle_bytes(1, &[b'y'; LINE_HELD_BYTES]);
    assert!(!merger.has_room(1));
    drain(&mut merger);
    assert!(merger.has_room(0));
    merger.release(0);
    assert!(drain(&mut merger).starts_with("\ny"));
}

#[test]
fn full_queue_stops_reading() {
    let mut merger = Merger::new(1, false);
    while merger.has_room(0) {
        merger.handle_bytes(0, &[b'\n'; 1000]);
    }
    assert!(merger.queue().len() < QUEUE_BYTES + 1000);
}

#[test]
fn prompt_is_shown_and_does_not_swallow_the_next_line() {
    let mut merger = Merger::new(2, false);
    merger.handle_bytes(0, b"n? ");
    merger.handle_silence(0);
    merger.handle_bytes(1, b"line\n");
    merger.handle_bytes(0, b"thanks\n");
    assert_eq!(drain(&mut merger), "n? \nline\nthanks\n");
}

#[test]
fn end_of_the_long_line_s_rank_frees_the_others() {
    let mut merger = Merger::new(3, false);
    merger.handle_bytes(0, &[b'x'; LINE_HELD_BYTES]);
    merger.handle_bytes(1, b"one\n");
    merger.handle_bytes(2, b"two");
    merger.handle_end(2);
    merger.handle_end(0);
    merger.handle_end_of_all();
    assert!(drain(&mut merger).ends_with("x\none\ntwo"));
}

#[test]
fn sink_writes_to_a_pipe_only_what_it_can_take() {
    let (mut reader, writer) = io::pipe().unwrap();
    let mut sink = MergedSink::new(writer.as_raw_fd(), Merger::new(1, false));
    sink.merger.handle_bytes(0, &[b'\n'; 5000]);
    sink.handle_writable();
    assert_eq!(sink.merger.queue().len(), 5000 - PIPE_BYTES);
    sink.handle_writable();
    assert!(!sink.has_work());
    drop(writer);
    let mut all = Vec::new();
    reader.read_to_end(&mut all).unwrap();
    assert_eq!(all.len(), 5000);
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Each rank's bytes come out in order and complete, and no line holds bytes of two ranks.
        #[test]
        fn nothing_is_lost_and_nothing_is_torn(
            writes in proptest::collection::vec((0usize..3, 0usize..20, any::<bool>()), 0..60)
        ) {
            let mut merger = Merger::new(3, false);
            let mut sent = vec![String::new(); 3];
            let mut seen = String::new();
            for (rank, length, ends) in writes {
                let letter = ["a", "b", "c"][rank];
                let text = letter.repeat(length) + if ends { "\n" } else { "" };
                sent[rank] += &text;
                merger.handle_bytes(rank, text.as_bytes());
                seen += &drain(&mut merger);
            }
            merger.handle_end_of_all();
            seen += &drain(&mut merger);
            for (rank, letter) in ['a', 'b', 'c'].into_iter().enumerate() {
                prop_assert_eq!(seen.matches(letter).count(), sent[rank].matches(letter).count());
                let lines: Vec<&str> = seen.lines().filter(|line| line.starts_with(letter)).collect();
                let expected: Vec<&str> = sent[rank].lines().filter(|line| !line.is_empty()).collect();
                prop_assert_eq!(lines, expected);
            }
        }
    }
}
