//! Latency and rates of ordered messages, and beside them messages from one process to another one:
//! `weft run -n 2 target/release/examples/rates`.
//!
//! Its arguments: from how many bytes on messages go to each host once (`never`: none do), and by how much less is sent
//! than usual.

use std::sync::Arc;
use std::time::Instant;
use weft_fabric::{Endpoint, Peer, Selector};
use weft_group::{GroupCalls as _, GroupEvent, GroupId, GroupRules, OrderedGroups, USUAL_RULES, process_of};
use weft_ports::{InterfaceName, Messenger, Subject, Waiting};

static PORTS: Messenger<OrderedGroups> = Messenger::new();
const CONTEXT: u32 = 10;
const BETWEEN: u32 = CONTEXT + 2;
const BOTH: Waiting = Waiting { call: "rates", peer: None, tag: None, context: CONTEXT };

/// The last member sends a message and waits for it, and so on: seconds for each.
fn latency(group: GroupId, sends: bool, bytes: usize, count: u32) -> f64 {
    let mine: Arc<[u8]> = vec![1; bytes].into();
    let begun = Instant::now();
    for _ in 0..count {
        if sends {
            PORTS.send_to_group("rates", group, mine.clone()).expect("a member");
        }
        while !matches!(PORTS.await_event("rates", group), GroupEvent::Message { .. }) {}
    }
    begun.elapsed().as_secs_f64() / f64::from(count)
}

/// Sends so many as fast as it can, and takes what comes until that is `count`: messages in a second.
fn rate(group: GroupId, own: u32, bytes: usize, count: u32) -> f64 {
    let mine: Arc<[u8]> = vec![1; bytes].into();
    let begun = Instant::now();
    let (mut sent, mut taken) = (0, 0);
    while taken < count {
        taken += PORTS.wait_both(BOTH, |endpoint, groups| {
            while sent < own && groups.try_send_among_others(group, mine.clone()).expect("a member") {
                sent += 1;
            }
            let events = std::iter::from_fn(|| groups.take_event(endpoint, group));
            let messages = events.filter(|event| matches!(event, GroupEvent::Message { .. })).count();
            u32::try_from(messages).ok().filter(|messages| *messages > 0)
        });
    }
    f64::from(count) / begun.elapsed().as_secs_f64()
}

/// Sends so many to one process, or takes them: messages in a second.
fn between(from: Peer, to: Peer, bytes: usize, count: u32) -> f64 {
    let (mut room, selector) = (vec![1; bytes], Selector { context: BETWEEN, peer: Some(from), tag: Some(0) });
    let begun = Instant::now();
    for _ in 0..count {
        if PORTS.me() == from {
            PORTS.send("rates", to, Subject { context: BETWEEN, tag: 0 }, &room).expect("a process");
        } else if PORTS.me() == to {
            PORTS.receive("rates", selector, &mut room).expect("a message");
        }
    }
    f64::from(count) / begun.elapsed().as_secs_f64()
}

fn main() {
    let mut endpoint = Endpoint::join_as(InterfaceName::Native, &[]).expect("a job");
    let (me, size) = (endpoint.me(), endpoint.world_size());
    let groups = OrderedGroups::new(&mut endpoint, CONTEXT);
    PORTS.open_beside(endpoint, groups, false);
    let mut words = std::env::args().skip(1);
    let tree_from = words.next().map_or(USUAL_RULES.tree_from, |word| word.parse().unwrap_or(usize::MAX));
    let less = words.next().and_then(|word| word.parse::<u32>().ok()).unwrap_or(1);
    let group = PORTS.join_group("rates", GroupRules { tree_from, ..USUAL_RULES }).expect("a name");
    let members = loop {
        match PORTS.await_event("rates", group) {
            GroupEvent::View(view) if view.members.len() == size as usize => break view.members,
            _ => {}
        }
    };
    // Not the sequencer, where there is another one.
    let [first, last] = [members[0], members[members.len() - 1]].map(process_of);
    let sends = last == me;
    for bytes in [8, 64, 1024, 65536] {
        let count = (if bytes > 1024 { 3000 } else { 200_000 } / less).max(160);
        latency(group, sends, bytes, count / 10);
        let latency = latency(group, sends, bytes, count);
        let each = count / size;
        let all = rate(group, each, bytes, each * size);
        let one = rate(group, if sends { count } else { 0 }, bytes, count);
        let straight = between(last, first, bytes, count);
        if sends {
            let (latency, all, megabytes) = (latency * 1e9, all / 1e6, one * bytes as f64 / 1e6);
            println!(
                "{bytes:6} B: {latency:6.0} ns; all send {all:.3} M/s; one {:.3} M/s, {megabytes:.0} MB/s, {:.2} of {:.3} M/s \
                 from one to one",
                one / 1e6,
                one / straight,
                straight / 1e6
            );
        }
    }
    PORTS.leave_group("rates", group);
    PORTS.close_groups("rates");
    PORTS.close();
}
