//! Latency and rate of ordered messages: `weft run -n 2 target/release/examples/rates`.

use std::sync::Arc;
use std::time::Instant;
use weft_fabric::Endpoint;
use weft_group::{GroupCalls as _, GroupEvent, GroupId, Groups, USUAL_RULES};
use weft_ports::{InterfaceName, Messenger, Waiting};

static PORTS: Messenger<Groups> = Messenger::new();

fn message(group: GroupId) -> (u32, Arc<[u8]>) {
    loop {
        if let GroupEvent::Message { message, .. } = PORTS.await_event("rates", group) {
            return (weft_group::process_of(message.origin).0, message.bytes);
        }
    }
}

fn main() {
    let mut endpoint = Endpoint::join_as(InterfaceName::Panda, &[]).expect("a job");
    let (me, size) = (endpoint.me().0, endpoint.world_size());
    let groups = Groups::new(&mut endpoint, 10);
    PORTS.open_beside(endpoint, groups, false);
    let group = PORTS.join_group("rates", USUAL_RULES).expect("a name");
    let members = loop {
        if let GroupEvent::View(view) = PORTS.await_event("rates", group)
            && view.members.len() == size as usize
        {
            break view.members;
        }
    };
    let place = members.iter().position(|member| weft_group::process_of(*member).0 == me).expect("one of them");
    let turn = |bytes: usize, count: u32| {
        // Each in turn: only the last member sends, and waits for its own message.
        let mine: Arc<[u8]> = vec![1; bytes].into();
        let begun = Instant::now();
        for _ in 0..count {
            if place == members.len() - 1 {
                PORTS.send_to_group("rates", group, mine.clone()).expect("a member");
            }
            message(group);
        }
        begun.elapsed().as_secs_f64() / f64::from(count)
    };
    for bytes in [8, 64, 1024, 65536] {
        let count = if bytes > 1024 { 3000 } else { 200_000 };
        turn(bytes, count / 10);
        let latency = turn(bytes, count);
        // All send as fast as they can, and take what comes.
        let mine: Arc<[u8]> = vec![1; bytes].into();
        let each = if bytes > 1024 { 3000 } else { 400_000 / size };
        let begun = Instant::now();
        let (mut sent, mut taken) = (0, 0);
        while taken < each * size {
            let what = Waiting { call: "both", peer: None, tag: None, context: 0 };
            let took = PORTS.wait_both(what, |endpoint, groups| {
                while sent < each && groups.try_send_among_others(group, mine.clone()).expect("a member") {
                    sent += 1;
                }
                let mut took = 0;
                while let Some(event) = groups.take_event(endpoint, group) {
                    took += u32::from(matches!(event, GroupEvent::Message { .. }));
                }
                (took > 0).then_some(took)
            });
            taken += took;
        }
        let rate = f64::from(taken) / begun.elapsed().as_secs_f64();
        // One sends.
        let begun = Instant::now();
        let (mut sent, mut taken) = (0, 0);
        let alone = place == members.len() - 1;
        while taken < each {
            let what = Waiting { call: "both", peer: None, tag: None, context: 0 };
            taken += PORTS.wait_both(what, |endpoint, groups| {
                while alone && sent < each && groups.try_send_among_others(group, mine.clone()).expect("a member") {
                    sent += 1;
                }
                let mut took = 0;
                while let Some(event) = groups.take_event(endpoint, group) {
                    took += u32::from(matches!(event, GroupEvent::Message { .. }));
                }
                (took > 0).then_some(took)
            });
        }
        let one = f64::from(taken) / begun.elapsed().as_secs_f64();
        if place == members.len() - 1 {
            println!(
                "{bytes:6} B: latency {:7.0} ns, all send {:.3} M/s, one sends {:.3} M/s, {:.2} GB/s",
                latency * 1e9,
                rate / 1e6,
                one / 1e6,
                one * bytes as f64 / 1e9
            );
        }
    }
    PORTS.leave_group("rates", group);
    PORTS.close_groups("rates");
    PORTS.close();
}
